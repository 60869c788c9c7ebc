//! The human's side of the command line: review, counts, the journal, settings, what the machine can do.

use std::io::Write;
use std::process::Stdio;

use cotenant_testkit::{Client, Http, Output, Scratch};
use serde_json::{Value, json};

use crate::support::{initialize, scratch};

/// An agent in the profile `careful` with a change that waits.
fn waiting(scratch: &Scratch, path: &str, old: &str, new: &str) -> (Client, Value) {
    let mut agent = scratch.mcp().profile("careful").flags(&["--agent", "ada", "--task", "tidy up"]).start();
    agent.read(path);
    agent.edit(path, old, new).refused_as_or_ok(&["APPROVAL_PENDING"]);
    let question = scratch.run(&["pending", "--json"]).ok().json()["pending"][0].clone();
    (agent, question)
}

/// Runs a command with `input` on standard input.
fn told(scratch: &Scratch, arguments: &[&str], input: &str) -> Output {
    let mut command = scratch.cotenant(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    Output {
        code: done.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

#[test]
fn a_review_shows_the_change_and_takes_yes_and_no() {
    let scratch = scratch();
    scratch.put("a.txt", "one\ntwo\n");
    scratch.put("b.txt", "three\n");
    let (mut agent, _) = waiting(&scratch, "a.txt", "two", "2");
    agent.read("b.txt");
    let second = agent.edit("b.txt", "three", "3");
    let review = told(&scratch, &["review"], "a\nd\nkeep it as it is\n");
    let said = review.ok().stdout.clone();
    assert!(said.contains("-two") && said.contains("+2") && said.contains("agent=ada"), "{said}");
    assert!(
        said.contains("tidy up") && said.contains("landed as c1") && said.contains("a2 denied"),
        "{said}"
    );
    assert_eq!((scratch.text("a.txt"), scratch.text("b.txt")), ("one\n2\n".into(), "three\n".into()));
    agent.retry(&second.offered("token"), json!({})).refused("APPROVAL_DENIED").says("keep it as it is");
}

#[test]
fn a_review_that_is_left_answers_nothing() {
    let scratch = scratch();
    scratch.put("a.txt", "one\n");
    let (_agent, question) = waiting(&scratch, "a.txt", "one", "1");
    for input in ["", "q\n", "s\n", "what?\nq\n", "d\n"] {
        told(&scratch, &["review"], input).ok();
        let still = scratch.run(&["pending", "--json"]).ok().json();
        assert_eq!(still["pending"][0]["digest"], question["digest"], "{input:?}");
    }
    assert_eq!(scratch.text("a.txt"), "one\n");
}

#[test]
fn without_a_terminal_only_the_digest_that_was_seen_approves() {
    let scratch = scratch();
    scratch.put("a.txt", "one\n");
    let (mut agent, question) = waiting(&scratch, "a.txt", "one", "1");
    let id = question["id"].as_str().unwrap();
    for digest in [&[][..], &["--digest", "0123456789abcdef"], &["--digest", "0123"]] {
        let refused = scratch.run(&[&["approve", id], digest].concat());
        assert_eq!(refused.code, 1, "{refused:?}");
    }
    assert_eq!(scratch.text("a.txt"), "one\n");
    let landed = scratch.run(&["approve", id, "--digest", question["digest"].as_str().unwrap(), "--json"]);
    assert_eq!(landed.ok().json()["change"], "c1");
    assert_eq!(scratch.text("a.txt"), "1\n");
    // Answered once is answered.
    let digest = question["digest"].as_str().unwrap();
    assert_eq!(scratch.run(&["approve", id, "--digest", digest]).code, 1);
    assert_eq!(scratch.run(&["deny", id, "--reason", "late"]).code, 1);
    assert_eq!(scratch.run(&["approve", "nonsense", "--digest", digest]).code, 1);
    agent.call("whoami", json!({})).ok().says("a1").says("c1");
}

#[test]
fn a_question_says_who_asks_for_what() {
    let scratch = scratch();
    scratch.put("src/a.txt", "one\ntwo\nthree\n");
    let (_agent, question) = waiting(&scratch, "src/a.txt", "two", "2");
    assert_eq!((&question["agent"], &question["task"]), (&json!("ada"), &json!("tidy up")));
    assert_eq!((&question["tool"], &question["kind"]), (&json!("edit_file"), &json!("edit_file")));
    assert_eq!(question["paths"], json!(["src/a.txt"]));
    assert_eq!(question["hunks"].as_array().unwrap().len(), 1);
    assert!(question["hunks"][0]["diff"].as_str().unwrap().contains("-two\n+2"));
    let line = scratch.run(&["pending"]).ok().stdout.clone();
    assert!(line.starts_with("a1 edit_file agent=ada src/a.txt digest="), "{line}");
    let status = scratch.run(&["status", "--json"]).ok().json();
    assert_eq!((&status["pending"], &status["agents"][0]["agent"]), (&json!(1), &json!("ada")));
}

#[test]
fn counts_name_tools_codes_and_the_edit_that_cannot_succeed() {
    let scratch = scratch();
    // A no-break space stands where the agent sees a space.
    scratch.put("odd.txt", "let\u{a0}x = 1;\nlet y = 2;\n");
    let mut agent = scratch.mcp().flags(&["--agent", "ada"]).start();
    agent.read("odd.txt");
    for _ in 0..3 {
        agent.edit("odd.txt", "let x = 1;", "let x = 2;").refused("TEXT_NOT_FOUND");
    }
    agent.edit("odd.txt", "y = 2", "y = 3").ok();
    let stats = scratch.run(&["stats", "--json"]).ok().json();
    assert_eq!(
        (&stats["tools"]["edit_file"]["calls"], &stats["refusals"]["TEXT_NOT_FOUND"]),
        (&json!(4), &json!(3))
    );
    assert_eq!(stats["tools"]["edit_file"]["error_rate"], json!(0.75));
    let ada = stats["sessions"].as_array().unwrap().iter().find(|session| session["agent"] == "ada").unwrap();
    assert_eq!((&ada["edits"], &ada["edit_error_rate"]), (&json!(4), &json!(0.75)));
    let signature = &stats["signatures"][0];
    assert_eq!(
        (&signature["agent"], &signature["code"], &signature["count"]),
        (&json!("ada"), &json!("TEXT_NOT_FOUND"), &json!(3))
    );
    assert!(!signature["cause"].as_str().unwrap().is_empty(), "{signature}");
    let lines = scratch.run(&["stats"]).ok().stdout.clone();
    assert!(
        lines.contains("edit_file calls=4 error_rate=75.0%") && lines.contains("3 TEXT_NOT_FOUND in a row"),
        "{lines}"
    );
    assert!(!stats.to_string().contains("odd.txt"), "counts hold no paths");
}

#[test]
fn the_journal_holds_calls_decisions_and_changes_and_shows_any_tampering() {
    let scratch = scratch();
    scratch.put("a.txt", "one\n");
    let (mut agent, question) = waiting(&scratch, "a.txt", "one", "1");
    let digest = question["digest"].as_str().unwrap();
    scratch.run(&["approve", "a1", "--digest", digest]).ok();
    agent.write("token.txt", "password = \"hunter2-hunter2-hunter2\"\n").ok();
    scratch.run(&["stop"]).ok();
    let export = scratch.run(&["journal", "--json"]).ok().stdout.clone();
    let entries: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = entries.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    for kind in ["call", "decision", "change"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let numbers: Vec<u64> = entries.iter().map(|entry| entry["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "without gaps");
    assert!(!export.contains("hunter2"), "secrets are masked");
    assert!(scratch.run(&["journal", "verify"]).ok().stdout.starts_with("whole: "));
    let file = scratch.base().join("journal.jsonl");
    std::fs::write(&file, &export).unwrap();
    let verify = |text: &str| {
        std::fs::write(&file, text).unwrap();
        scratch.run(&["journal", "verify", file.to_str().unwrap()]).code
    };
    assert_eq!(verify(&export), 0);
    let lines: Vec<&str> = export.lines().collect();
    let changed = export.replacen("\"result\\\":\\\"ok", "\"result\\\":\\\"no", 1);
    assert_ne!(changed, export);
    for (what, text) in [
        ("a word", changed),
        ("an entry left out", [&lines[..1], &lines[2..]].concat().join("\n")),
        ("two swapped", [&lines[1..2], &lines[..1], &lines[2..]].concat().join("\n")),
    ] {
        assert_eq!(verify(&text), 1, "{what}");
    }
    assert_eq!(verify("not an entry\n"), 1);
    assert_eq!(scratch.run(&["journal", "verify", "/nowhere"]).code, 2);
}

#[test]
fn settings_are_checked_with_the_nearest_name() {
    let scratch = scratch();
    scratch.run(&["config", "check"]).ok();
    for (toml, said) in [
        ("[workspace]\nfoldrs = []\n", "folders"),
        ("[aprovals]\nprofile = \"careful\"\n", "approvals"),
        ("[approvals]\nprofile = \"carefull\"\n", "careful"),
        ("[limits]\nread_lines = \"many\"\n", "line=2"),
        ("[durability]\nmode = \"quick\"\n", "full"),
        ("[commands]\ndeny = [{ pattern = \"\" }]\n", "empty pattern"),
        ("[hooks]\npre_tool_call = [{ comand = \"x\" }]\n", "command"),
        ("[hooks]\npre_tool_call = [{ command = \"x\", timeout_s = 31 }]\n", "1 to 30"),
        ("[edits\n", "cotenant.toml"),
    ] {
        scratch.put("cotenant.toml", toml);
        let checked = scratch.run(&["config", "check"]);
        assert_eq!(checked.code, 1, "{toml}: {checked:?}");
        assert!(checked.stderr.contains(said), "{toml}: {}", checked.stderr);
        let as_json = scratch.run(&["config", "check", "--json"]);
        assert_eq!(as_json.json()["code"], "BAD_INPUT", "{toml}");
        // And nothing is served by settings that do not hold.
        assert_eq!(scratch.run(&["list-directory"]).code, 1, "{toml}");
    }
    scratch.put("cotenant.toml", "[approvals]\nprofile = \"readonly\"\n");
    scratch.run(&["config", "check"]).ok();
    let refused = scratch.run(&["write-file", "a.txt", "x"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stdout.starts_with("PROFILE_READ_ONLY"), "{refused:?}");
}

#[test]
fn the_doctor_grades_the_machine_and_reports_strays() {
    let scratch = scratch();
    scratch.put("src/.cotenant-0123456789abcdef", "left by somebody\n");
    scratch.put("src/.cotenant-notes", "an ordinary file\n");
    let report = scratch.run(&["doctor", "--json"]).json();
    for grade in ["G4", "G3", "G2", "G1"] {
        assert!(report["grades"][grade].is_boolean(), "{report}");
        let checks = report["checks"].as_array().unwrap();
        let all =
            checks.iter().filter(|check| check["grade"] == grade).all(|check| check["ok"] == json!(true));
        assert_eq!(report["grades"][grade], json!(all), "{grade} is what its checks say");
    }
    assert_eq!(report["strays"], json!(["src/.cotenant-0123456789abcdef"]));
    assert!(scratch.path("src/.cotenant-0123456789abcdef").exists(), "reported, never removed");
    let plain = scratch.run(&["doctor"]);
    assert_eq!(plain.code, if report["grades"]["G4"] == json!(true) { 0 } else { 3 });
    let listed = scratch.run(&["list-directory", "src"]).ok().stdout.clone();
    assert!(listed.contains(".cotenant-notes") && !listed.contains("0123456789abcdef"), "{listed}");
}

#[test]
fn a_moved_workspace_finds_its_history() {
    let scratch = scratch();
    let (from, to) = (scratch.path("project"), scratch.path("moved here"));
    scratch.put("project/cotenant.toml", "[approvals]\nprofile = \"trusting\"\n");
    if std::fs::metadata(&from).unwrap().created().is_err() {
        return;
    }
    scratch.run_at(&from, &["write-file", "a.txt", "one\n"]).ok();
    let change = scratch.run_at(&from, &["history", "--json"]).ok().json()["changes"][0]["id"].clone();
    scratch.run_at(&from, &["stop"]).ok();
    std::fs::rename(&from, &to).unwrap();
    let history = scratch.run_at(&to, &["history", "--json"]).ok().json();
    assert_eq!(history["changes"][0]["id"], change, "{history}");
    let doctor = scratch.run_at(&to, &["doctor", "--json"]).json();
    assert_eq!(doctor["moved_from"], json!(from.display().to_string()));
    // What was done before the move can be taken back after it.
    scratch.run_at(&to, &["undo", "--change", change.as_str().unwrap()]).ok();
    assert!(!to.join("a.txt").exists());
    scratch.run_at(&to, &["stop"]).ok();
}

#[test]
fn what_is_over_the_limits_goes_at_the_first_destructive_change() {
    let scratch = scratch();
    scratch.configure("[approvals]\nprofile = \"trusting\"\n[retention]\ndays = 0\nmegabytes = 0\n");
    scratch.run(&["write-file", "a.txt", "one\n"]).ok();
    let first = scratch.run(&["history", "--json"]).ok().json()["changes"][0]["id"].clone();
    let expired =
        || scratch.run(&["show-change", first.as_str().unwrap(), "--json"]).ok().json()["expired"].clone();
    assert!(expired().is_null(), "the newest of its path stays");
    scratch.run(&["edit-file", "a.txt", "--old-text", "one", "--new-text", "two"]).ok();
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while expired().is_null() {
        assert!(std::time::Instant::now() < patience, "nobody looked");
    }
    assert!(expired().as_str().unwrap().ends_with('Z'), "with its date");
}

#[test]
fn tools_on_the_command_line_share_the_terminals_session() {
    let scratch = scratch();
    scratch.configure("[approvals]\nprofile = \"trusting\"\n");
    scratch.put("a.txt", "one\ntwo\n");
    // Not read yet by this terminal.
    let refused = scratch.run(&["edit-file", "a.txt", "--old-text", "two", "--new-text", "2"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stdout.starts_with("EDIT_REQUIRES_PRIOR_READ"), "{refused:?}");
    // The refusal showed the place, which counts for the next call of the same terminal.
    scratch.run(&["edit-file", "a.txt", "--old-text", "two", "--new-text", "2"]).ok();
    let read = scratch.run(&["read-file", "a.txt", "--json"]).ok().json();
    assert_eq!((&read["path"], &read["of"]), (&json!("a.txt"), &json!(2)));
    assert!(read["text"].as_str().unwrap().contains("2|2"), "{read}");
    let written = told(&scratch, &["write-file", "b.txt", "-"], "from a pipe\n");
    assert_eq!((written.code, scratch.text("b.txt")), (0, "from a pipe\n".to_owned()));
    let history = scratch.run(&["history", "--json", "--limit", "1"]).ok().json();
    assert_eq!(history["changes"][0]["files"][0], json!({"path": "b.txt", "op": "create"}));
    assert_eq!(scratch.run(&["read-file"]).code, 2, "a missing argument is a slip");
    assert_eq!(scratch.run(&["read-file", "a.txt", "--start", "soon"]).code, 1);
    assert_eq!(scratch.run(&["no-such-tool"]).code, 2);
    let mut gone = scratch.cotenant(&["whoami"]);
    let gone = gone.env("COTENANT_SESSION", "se99999").output().unwrap();
    assert_eq!(gone.status.code(), Some(1));
}

/// As a container runtime starts things: the session's leader cannot be seen from within.
#[test]
fn calls_whose_terminal_lies_outside_the_container_share_a_session() {
    let scratch = scratch();
    scratch.configure("[approvals]\nprofile = \"trusting\"\n");
    scratch.put("a.txt", "one\n");
    let program = scratch.program().display().to_string();
    let user = if rustix::process::geteuid().is_root() { "-pf" } else { "-rpf" };
    let script = format!(
        "test \"$(ps -o sid= -p $$ | tr -d ' ')\" = 0 || echo not-outside; \
         {program} whoami; {program} read-file a.txt; \
         {program} edit-file a.txt --old-text one --new-text 1; {program} stop"
    );
    let mut command = scratch.within("unshare");
    command.args([user, "--mount-proc", "bash", "-c", &script]).current_dir(scratch.root());
    let done = command.output().expect("unshare runs");
    let said = String::from_utf8_lossy(&done.stdout);
    if !said.starts_with("agent=") && !said.contains("IO_ERROR") {
        println!("SKIP: no pid namespace to be had here: {done:?}");
        return;
    }
    assert!(!said.contains("not-outside") && !said.contains("IO_ERROR"), "{said}");
    assert_eq!(scratch.text("a.txt"), "1\n", "what one call read the next may edit: {said}");
}

#[test]
fn served_without_tokens_one_is_made_and_printed() {
    let scratch = scratch();
    let mut command = scratch.cotenant(&["serve"]);
    let mut served = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(served.stdout.take().unwrap()));
    let http =
        lines.find_map(|line| line.ok().filter(|line| line.starts_with("over HTTP"))).expect("an address");
    let address = http.split("http://").nth(1).unwrap().split('/').next().unwrap();
    let token = http.rsplit("Bearer ").next().unwrap().trim();
    let door = Http::new(address.parse().unwrap());
    assert_eq!(door.rpc(None, &[], &initialize()).status, 401);
    assert_eq!(door.rpc(Some("0123456789abcdef0123456789abcdef"), &[], &initialize()).status, 401);
    assert_eq!(door.rpc(Some(token), &[], &initialize()).status, 200);
    scratch.run(&["stop"]).ok();
    assert!(served.wait().unwrap().success(), "it ends with the daemon");
    assert!(lines.map_while(Result::ok).any(|line| line.contains("the daemon has ended")));
}

#[test]
fn status_is_honest_about_a_daemon_that_does_not_run() {
    let scratch = scratch();
    assert_eq!(scratch.run(&["status"]).code, 1);
    assert_eq!(scratch.run(&["status", "--json"]).json()["running"], json!(false));
    assert!(scratch.run(&["stop"]).ok().stdout.contains("no daemon runs"));
    let agent = scratch.mcp().start();
    let status = scratch.run(&["status", "--json"]).ok().json();
    assert_eq!(
        status["watcher"]["ready"],
        json!(false),
        "there is no watcher yet, and nothing pretends there is"
    );
    let pid = scratch.run(&["status", "--pid"]).ok().stdout.trim().to_owned();
    assert_eq!(status["pid"].to_string(), pid);
    drop(agent);
}
