//! Runs, jobs, output, approvals: what an agent sees of a command.

use cotenant_model::{Commands, Profile, Settings};
use serde_json::json;

use super::{run, run_with, sh};
use crate::fixture::{Fixture, body, fact, notices};

#[test]
fn an_answer_says_how_it_ended_and_shows_the_output_in_order() {
    let fixture = Fixture::new();
    let said = run(&fixture, "echo one; echo two >&2; echo three; exit 3");
    assert_eq!(fact(&said, "exit").as_deref(), Some("3"));
    assert_eq!(fact(&said, "changed").as_deref(), Some("0"));
    // Two streams are two pipes: within each the order is that of writing.
    let lines = body(&said);
    assert!(lines.find("one") < lines.find("three") && lines.contains("two"), "{said}");
    let killed = run(&fixture, "kill -9 $$");
    assert_eq!(
        (fact(&killed, "exit").as_deref(), fact(&killed, "signal").as_deref()),
        (Some("none"), Some("9")),
        "{killed}"
    );
}

#[test]
fn c117_what_holds_the_output_open_does_not_hold_the_answer() {
    let fixture = Fixture::new();
    for (command, said) in [
        ("sleep 60 & echo done", "done"),
        ("(while :; do echo tick; sleep 0.2; done) & echo started", "started"),
        ("setsid sleep 60 & echo spawned", "spawned"),
    ] {
        let answer = run(&fixture, command);
        assert_eq!(fact(&answer, "exit").as_deref(), Some("0"), "{answer}");
        assert!(body(&answer).contains(said), "{answer}");
        assert!(answer.contains("was ended"), "{answer}");
    }
    assert_eq!(body(&run(&fixture, "echo later")), "later");
}

#[test]
fn c118_standard_input_is_at_its_end_in_every_mode() {
    let fixture = Fixture::new();
    for command in ["cat", "read x; echo got"] {
        assert!(fact(&run(&fixture, command), "exit").is_some());
        let started = run_with(&fixture, command, json!({"background": true}));
        assert!(started.starts_with("running job="), "{started}");
        let id = fact(&started, "job").unwrap();
        let ended = fixture.ok("command_output", json!({"id": id, "wait_s": 50}));
        assert_eq!(fact(&ended, "exit").as_deref(), Some("0"), "{ended}");
    }
}

#[test]
fn c120_no_pager_waits() {
    let fixture = Fixture::new();
    sh(
        &fixture,
        "git init -q .; git config user.email t@e.st; git config user.name t; for i in 1 2 3; do git commit -q --allow-empty -m m$i; done; git config core.pager less",
    );
    let log = run(&fixture, "git log --oneline");
    assert_eq!(fact(&log, "exit").as_deref(), Some("0"), "{log}");
    assert!(body(&log).contains("m1"), "{log}");
}

#[test]
fn c126_a_directory_that_is_gone_is_said_and_the_session_goes_on() {
    let fixture = Fixture::new();
    sh(&fixture, "mkdir -p tmpd/x");
    assert!(body(&run(&fixture, "cd tmpd/x && pwd")).ends_with("tmpd/x"));
    run(&fixture, "rm -rf tmpd");
    assert_eq!(body(&run(&fixture, "echo alive")), "alive");
    let refused = fixture.no("NOT_FOUND", "run_command", json!({"command": "echo hi", "cwd": "tmpd/x"}));
    assert!(refused.contains("tmpd"), "{refused}");
}

#[test]
fn c127_each_call_begins_where_it_says() {
    let fixture = Fixture::new();
    sh(&fixture, "mkdir server");
    run(&fixture, "cd server && pwd");
    let root = fixture.path(".").canonicalize().unwrap();
    assert_eq!(body(&run(&fixture, "pwd")), root.to_str().unwrap());
    let there = run_with(&fixture, "pwd", json!({"cwd": "server"}));
    assert_eq!(fact(&there, "cwd").as_deref(), Some("server"));
    let other = fixture.session("agent-b");
    let theirs = fixture.ok_as(other, "run_command", json!({"command": "pwd"}));
    assert_eq!(body(&theirs), root.to_str().unwrap());
}

#[test]
fn c129_what_a_command_deleted_comes_back() {
    let fixture = Fixture::new();
    sh(&fixture, "mkdir old; printf 'uncommitted\\n' > old/note.md");
    let gone = run(&fixture, "rm -rf old");
    assert!(!fixture.has("old"), "{gone}");
    let trash = fixture.ok("list_trash", json!({}));
    assert!(trash.contains("path=old/note.md"), "{trash}");
    fixture.ok("undo", json!({}));
    assert_eq!(fixture.get("old/note.md"), "uncommitted\n");
    fixture.no("COMMAND_DENIED", "run_command", json!({"command": "rm -rf ../other"}));
    // What cannot be read in the text finds nothing of what is there: a command has a root of its own.
    let beside = fixture.path("../beside");
    std::fs::create_dir(&beside).unwrap();
    run(&fixture, "d=..; python3 -c \"import shutil; shutil.rmtree('$d/beside', True)\"");
    assert!(beside.exists());
}

#[test]
fn c130_a_command_reaches_the_shell_as_it_is() {
    let fixture = Fixture::new();
    for (command, said) in [
        ("printf '%s' '!a'", "!a"),
        ("printf '%s' \"b!\"", "b!"),
        ("cat <<'E'\nc!\nE", "c!"),
        ("test 1 != 2 && echo ok", "ok"),
        ("printf '1\\n2\\n' | awk 'NR!=2'", "1"),
    ] {
        assert_eq!(body(&run(&fixture, command)), said, "{command}");
    }
}

#[test]
fn c136_the_exit_is_the_commands_own() {
    let fixture = Fixture::new();
    sh(&fixture, "mkdir d");
    assert_eq!(fact(&run(&fixture, "cd d; false"), "exit").as_deref(), Some("1"));
    assert_eq!(fact(&run(&fixture, "exit 3"), "exit").as_deref(), Some("3"));
    assert_eq!(fact(&run(&fixture, "exit 137"), "exit").as_deref(), Some("137"));
}

#[test]
fn a_time_limit_ends_all_of_it_and_nothing_of_it_lands() {
    let fixture = Fixture::new();
    let said =
        run_with(&fixture, "echo x > made; (trap '' TERM; sleep 500) & sleep 500", json!({"timeout_s": 1}));
    assert_eq!(fact(&said, "timed_out").as_deref(), Some("yes"), "{said}");
    assert!(!fixture.has("made"));
    assert!(notices(&said).iter().any(|notice| notice.contains("dropped")), "{said}");
}

#[test]
fn a_job_is_followed_and_stopped_by_its_own_session_alone() {
    let fixture = Fixture::new();
    let started = run_with(&fixture, "echo begun; sleep 500", json!({"background": true, "timeout_s": 900}));
    let id = fact(&started, "job").unwrap();
    let other = fixture.session("agent-b");
    let refused = fixture.call_as(other, "command_output", json!({"id": id}));
    assert!(refused.text.starts_with("NOT_FOUND"), "{}", refused.text);
    let me = fixture.ok("whoami", json!({}));
    assert!(me.contains(&format!("job: {id} running")), "{me}");
    let job = || fixture.ok("command_output", json!({"id": id, "offset": 0}));
    while !job().contains("begun") {
        std::thread::yield_now();
    }
    let stopped = fixture.ok("stop_command", json!({"id": id}));
    assert_eq!(fact(&stopped, "stopped").as_deref(), Some("yes"), "{stopped}");
    assert!(body(&stopped).contains("begun"), "{stopped}");
}

#[test]
fn a_session_takes_its_jobs_with_it() {
    let fixture = Fixture::new();
    let other = fixture.session("agent-b");
    let started = fixture.ok_as(other, "run_command", json!({"command": "sleep 500", "background": true}));
    assert!(started.starts_with("running"), "{started}");
    assert!(fixture.toolbox.is_running());
    cotenant_tools::host::Host::close(&*fixture.toolbox, other);
    assert!(!fixture.toolbox.is_running());
}

#[test]
fn a_server_of_one_command_answers_the_next() {
    let fixture = Fixture::new();
    sh(&fixture, "echo served > page");
    let server = run_with(
        &fixture,
        "python3 -u -m http.server 8123 --bind 127.0.0.1",
        json!({"background": true, "timeout_s": 300}),
    );
    assert!(server.starts_with("running"), "{server}");
    let get = "for i in $(seq 100); do python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8123/page\").read().decode())' 2>/dev/null && exit; sleep 0.1; done; exit 1";
    let got = run(&fixture, get);
    assert_eq!(body(&got), "served", "{got}");
}

#[test]
fn long_output_shows_both_ends_and_all_of_it_is_kept() {
    let fixture = Fixture::new();
    let said = run(&fixture, "seq 1 20000");
    let handle = fact(&said, "handle").unwrap();
    assert!(fact(&said, "shown").unwrap().starts_with("head:"), "{said}");
    assert_eq!(fact(&said, "out").as_deref(), Some("108894"));
    assert!(body(&said).starts_with("1\n2\n") && body(&said).ends_with("\n20000"), "{said}");
    let page = fixture.ok("read_more", json!({"handle": handle, "offset": 50000, "limit": 100}));
    assert!(body(&page).lines().all(|line| line.parse::<u32>().is_ok()), "{page}");
    let found = fixture.ok("read_more", json!({"handle": handle, "pattern": "^1234\\d$"}));
    assert_eq!(fact(&found, "matches").as_deref(), Some("10"), "{found}");
    let failed = run(&fixture, "seq 1 20000; exit 1");
    assert!(failed.len() > said.len() * 3, "more of it where it failed");
}

#[test]
fn a_repeated_command_says_what_is_new() {
    let fixture = Fixture::new();
    fixture.put("out", "ok a\nok b\n");
    run(&fixture, "cat out");
    fixture.put("out", "ok a\nFAILED b\n");
    let again = run(&fixture, "cat out");
    let told = notices(&again).join("\n");
    assert!(told.contains("same command: 1 lines are new, 1 are gone: `FAILED b`"), "{again}");
}

#[test]
fn a_file_that_a_command_showed_counts_as_read() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\ntwo\n");
    let edit = json!({"path": "a.txt", "old_text": "two", "new_text": "2"});
    fixture.no("EDIT_REQUIRES_PRIOR_READ", "edit_file", edit.clone());
    let fresh = Fixture::new();
    fresh.put("a.txt", "one\ntwo\n");
    run(&fresh, "cat a.txt");
    fresh.ok("edit_file", edit);
}

#[test]
fn careful_asks_once_on_the_diff_and_lands_what_was_shown() {
    let fixture = Fixture::careful();
    fixture.put("a.txt", "one\n");
    assert_eq!(fact(&run(&fixture, "cat a.txt; python3 -c 'print(1)'"), "exit").as_deref(), Some("0"));
    let asked = fixture.no(
        "APPROVAL_PENDING",
        "run_command",
        json!({"command": "python3 -c \"open('a.txt','a').write('two\\n')\"; echo said"}),
    );
    assert_eq!(fixture.get("a.txt"), "one\n", "nothing before a yes");
    let question = fixture.toolbox.waiting().pop().unwrap();
    assert!(
        question.plan.diff.contains("$ python3 -c") && question.plan.diff.contains("+two"),
        "{}",
        question.plan.diff
    );
    fixture.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
    assert_eq!(fixture.get("a.txt"), "one\ntwo\n");
    let done = fixture.retry(&asked);
    assert!(done.text.contains("change=c") && done.text.ends_with("said"), "{}", done.text);
}

#[test]
fn careful_asks_about_what_a_command_only_creates() {
    let fixture = Fixture::careful();
    let call = json!({"command": "python3 -c \"open('conftest.py','w').write('x')\""});
    fixture.no("APPROVAL_PENDING", "run_command", call);
    assert!(!fixture.has("conftest.py"));
    let question = fixture.toolbox.waiting().pop().unwrap();
    fixture.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
    assert_eq!(fixture.get("conftest.py"), "x");
}

#[test]
fn what_others_changed_before_the_yes_is_merged_anew_under_another_digest() {
    let fixture = Fixture::careful();
    fixture.put("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    fixture.no("APPROVAL_PENDING", "run_command", json!({"command": "perl -pi -e 's/9/nine/' a.txt"}));
    let question = fixture.toolbox.waiting().pop().unwrap();
    fixture.put("a.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    assert!(fixture.toolbox.approve(question.id, &question.digest.to_string()).is_err());
    let anew = fixture.toolbox.waiting().pop().unwrap();
    assert_ne!(anew.digest, question.digest);
    fixture.toolbox.approve(anew.id, &anew.digest.to_string()).unwrap();
    assert_eq!(fixture.get("a.txt"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

#[test]
fn an_edit_without_a_shell_lands_as_it_was_shown_or_not_at_all() {
    let fixture = Fixture::careful();
    fixture.put("a.txt", "one\ntwo\n");
    let asked = fixture.no("APPROVAL_PENDING", "run_command", json!({"command": "sed -i s/one/1/ a.txt"}));
    let question = fixture.toolbox.waiting().pop().unwrap();
    assert!(question.plan.diff.starts_with("--- a.txt"), "{}", question.plan.diff);
    fixture.put("a.txt", "one\ntwo\nthree\n");
    assert!(fixture.toolbox.approve(question.id, &question.digest.to_string()).is_err());
    let moved = fixture.retry(&asked);
    assert!(moved.text.starts_with("FILE_CHANGED_SINCE_READ"), "{}", moved.text);
    assert_eq!(fixture.get("a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn a_direct_command_is_asked_first_runs_at_the_yes_and_is_one_change() {
    let fixture = Fixture::careful();
    fixture.put("a.txt", "one\n");
    let call = json!({"command": "echo two >> a.txt; mkdir d; echo x > d/y", "mode": "direct"});
    let asked = fixture.no("APPROVAL_PENDING", "run_command", call);
    assert_eq!(fixture.get("a.txt"), "one\n");
    let question = fixture.toolbox.waiting().pop().unwrap();
    assert!(question.plan.diff.starts_with("run in ., direct:\necho two"), "{}", question.plan.diff);
    fixture.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
    let done = fixture.retry(&asked.replace("\"wait_s\":50", "\"wait_s\":40"));
    assert!(!done.is_error && done.text.contains("mode=direct grade=G2"), "{}", done.text);
    assert_eq!(fixture.get("a.txt"), "one\ntwo\n");
    let change = fact(&done.text, "change").unwrap();
    let question = {
        fixture.no("APPROVAL_PENDING", "undo", json!({"change": change}));
        fixture.toolbox.waiting().pop().unwrap()
    };
    fixture.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
    assert_eq!(fixture.get("a.txt"), "one\n");
    assert!(!fixture.has("d"));
}

#[test]
fn the_floor_and_the_rules_refuse_before_anything_runs() {
    let rule = |pattern: &str, answer| cotenant_model::CommandRule {
        pattern: pattern.to_owned(),
        matches: Vec::new(),
        not_matches: Vec::new(),
        reason: "use the make target".to_owned(),
        answer,
    };
    let commands = Commands {
        rules: vec![
            rule("python3 *", cotenant_model::Answer::Deny),
            rule("touch *", cotenant_model::Answer::Ask),
        ],
        ..Commands::default()
    };
    let fixture = Fixture::with(Settings { profile: Profile::Trusting, commands, ..Settings::default() });
    let refused = fixture.no("COMMAND_DENIED", "run_command", json!({"command": "echo x > w; python3 -c 1"}));
    assert!(
        refused.contains("use the make target") && refused.contains("rule=commands.deny[0]"),
        "{refused}"
    );
    fixture.no("COMMAND_DENIED", "run_command", json!({"command": "sudo id"}));
    fixture.no("APPROVAL_PENDING", "run_command", json!({"command": "touch asked"}));
    assert!(!fixture.has("w") && !fixture.has("asked"));
}

#[test]
fn readonly_and_plan_mode_let_only_what_changes_nothing_run() {
    let fixture = Fixture::with(Settings { profile: Profile::ReadOnly, ..Settings::default() });
    fixture.put("a.txt", "one\n");
    assert_eq!(body(&run(&fixture, "cat a.txt | wc -l")).trim(), "1");
    fixture.no("PROFILE_READ_ONLY", "run_command", json!({"command": "make"}));
}

#[test]
fn ignored_files_are_no_change_and_keep_their_times() {
    let fixture = Fixture::careful();
    sh(
        &fixture,
        "git init -q .; printf 'target/\\n*.log\\n' > .gitignore; mkdir -p target sub; echo old > target/a; touch -d '2020-01-02' target/a",
    );
    let said = run(
        &fixture,
        "cat target/a; echo new > target/b; touch -d '2021-03-04' target/b; echo log > x.log; touch -d '2021-03-04' x.log; mkdir -p sub/target; echo deep > sub/target/c",
    );
    assert_eq!(fact(&said, "changed").as_deref(), Some("0"), "what is ignored alone: {said}");
    assert_eq!(fixture.get("sub/target/c"), "deep\n");
    assert_eq!((fixture.get("target/b"), fixture.get("x.log")), ("new\n".to_owned(), "log\n".to_owned()));
    let time = |path: &str| std::fs::metadata(fixture.path(path)).unwrap().modified().unwrap();
    assert_eq!(time("target/b"), time("x.log"));
    assert_eq!(fixture.changes().len(), 0);
}

#[test]
fn what_stands_in_git_and_what_is_protected_never_lands() {
    let fixture = Fixture::new();
    sh(&fixture, "git init -q .; printf 'x\\n' > a; printf S=1 > .env");
    for command in ["sh -c 'cp a .git/hooks/pre-commit'", "python3 -c \"open('.git/config','a').write('x')\""]
    {
        let refused = fixture.call("run_command", json!({"command": command}));
        assert!(refused.is_error, "{command}: {}", refused.text);
    }
    let refused = fixture.no(
        "PATH_PROTECTED",
        "run_command",
        json!({"command": "python3 -c \"open('.env','w').write('S=2')\"; python3 -c \"open('b','w')\""}),
    );
    assert!(refused.contains(".env"), "{refused}");
    assert_eq!(fixture.get(".env"), "S=1");
    assert!(!fixture.has(".git/hooks/pre-commit") && !fixture.has("b"));
}

#[test]
fn a_dry_run_shows_and_drops() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\n");
    for command in ["sed -i s/one/1/ a.txt", "perl -pi -e s/one/1/ a.txt"] {
        let shown = run_with(&fixture, command, json!({"dry_run": true}));
        assert!(shown.contains("+1"), "{command}: {shown}");
        assert_eq!(fixture.get("a.txt"), "one\n");
    }
}

#[test]
fn a_patch_in_a_command_goes_to_the_patch_tool() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\ntwo\n");
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** End Patch\nEOF";
    let said = run(&fixture, patch);
    assert!(said.starts_with("patch="), "{said}");
    assert_eq!(fixture.get("a.txt"), "one\n2\n");
}

#[test]
fn argv_and_foreign_names_are_understood() {
    let fixture = Fixture::new();
    let said = fixture.ok("run_command", json!({"cmd": ["bash", "-lc", "echo \"a b\""], "timeout": 5000}));
    assert_eq!(body(&said), "a b");
    let said = fixture.ok("run_command", json!({"command": ["printf", "%s", "it's $HOME"]}));
    assert_eq!(body(&said), "it's $HOME");
}
