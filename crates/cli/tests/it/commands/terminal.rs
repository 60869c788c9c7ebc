//! Commands from a terminal: texts, fields, exit status, what a human is told, and what stays on record.

use cotenant_testkit::Scratch;
use serde_json::{Value, json};

use super::{all_gone, approve, asleep, can_stage, marker, waiting};
use crate::support::scratch;

fn trusting() -> Scratch {
    let scratch = scratch();
    scratch.configure("[approvals]\nprofile = \"trusting\"\n");
    scratch
}

#[test]
fn a_command_prints_its_answer_and_ends_with_nought() {
    let scratch = trusting();
    scratch.put("a.txt", "one\n");
    let said = scratch.run(&["run-command", "perl -pi -e 's/one/1/' a.txt; echo said"]);
    assert!(said.ok().stdout.starts_with("exit=0 ms="), "{said:?}");
    assert!(said.stdout.contains(" change=c1 ") && said.stdout.contains("\nM a.txt +1 -1\n"), "{said:?}");
    assert!(said.stdout.ends_with("said\n") && said.stderr.is_empty(), "{said:?}");
    assert_eq!(scratch.text("a.txt"), "1\n");
    // The command's own failure is a result; that cotenant did what it was asked to is its exit status.
    let failed = scratch.run(&["run-command", "exit 3"]);
    assert!(failed.ok().stdout.starts_with("exit=3 "), "{failed:?}");
    for refused in ["sudo id", "rm -rf /", ""] {
        assert_eq!(scratch.run(&["run-command", refused]).code, 1, "{refused:?}");
    }
    assert_eq!(scratch.run(&["run-command"]).code, 2, "a missing argument is a slip");
    assert_eq!(scratch.run(&["run-command", "true", "--mode", "loose"]).code, 2);
    assert_eq!(scratch.run(&["run-command", "true", "--nonsense"]).code, 2);
}

#[test]
fn every_field_is_there_as_json() {
    let scratch = trusting();
    if !can_stage(&scratch) {
        return;
    }
    scratch.sh("mkdir sub; printf 'one\\n' > sub/a.txt");
    let fields = scratch
        .run(&["run-command", "echo two >> a.txt; echo said; echo err >&2", "--cwd", "sub", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&fields["exit"], &fields["mode"], &fields["cwd"]),
        (&json!(0), &json!("staged"), &json!("sub"))
    );
    assert_eq!((&fields["change"], &fields["changed"]), (&json!("c1"), &json!(1)), "{fields}");
    assert_eq!((&fields["grade"], &fields["out"]), (&json!("G3"), &json!(9)), "{fields}");
    assert!(fields["tier"].as_str().is_some_and(|tier| !tier.is_empty()), "{fields}");
    assert!(fields["ms"].is_number() && fields["handle"].is_string(), "{fields}");
    let text = fields["text"].as_str().unwrap();
    assert!(text.contains("said") && text.contains("err"), "{fields}");
    let direct = scratch.run(&["run-command", "true; echo x", "--mode", "direct", "--json"]).ok().json();
    assert_eq!((&direct["mode"], &direct["grade"]), (&json!("direct"), &json!("G2")), "{direct}");
    let refused = scratch.run(&["run-command", "sudo id", "--json"]);
    assert_eq!((refused.code, &refused.json()["code"]), (1, &json!("COMMAND_DENIED")), "{refused:?}");
    assert!(refused.json()["next"].as_str().is_some_and(|next| !next.is_empty()), "{refused:?}");
}

#[test]
fn a_time_limit_and_a_job_from_the_terminal() {
    let scratch = trusting();
    let late = scratch.run(&["run-command", "sleep 600", "--timeout-s", "1", "--json"]).ok().json();
    assert_eq!(late["timed_out"], json!(true), "{late}");
    assert_eq!(scratch.run(&["run-command", "true", "--timeout-s", "soon"]).code, 1);
    let marker = marker();
    let command = format!("echo begun; sleep {marker}");
    let started =
        scratch.run(&["run-command", &command, "--background", "--timeout-s", "900", "--json"]).ok().json();
    let job = started["job"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    // The next call of the same terminal is of the same session: the job is there, and is its own.
    asleep(&marker);
    let output = scratch.run(&["command-output", &job, "--json"]).ok().json();
    assert_eq!(output["job"], json!(job), "{output}");
    let stopped = scratch.run(&["stop-command", &job, "--json"]).ok().json();
    assert_eq!(stopped["stopped"], json!(true), "{stopped}");
    all_gone(&marker);
    assert_eq!(scratch.run(&["stop-command", "j999999"]).code, 1);
}

#[test]
fn careful_asks_a_terminal_too_and_the_exit_status_says_so() {
    let scratch = scratch();
    scratch.put("a.txt", "one\n");
    let asked = scratch.run(&["run-command", "perl -pi -e 's/one/1/' a.txt", "--json"]);
    assert_eq!((asked.code, &asked.json()["code"]), (1, &json!("APPROVAL_PENDING")), "{asked:?}");
    assert_eq!(scratch.text("a.txt"), "one\n");
    let line = scratch.run(&["pending"]).ok().stdout.clone();
    assert!(line.starts_with("a1 run_command agent="), "{line}");
    approve(&scratch, &waiting(&scratch)).ok();
    assert_eq!(scratch.text("a.txt"), "1\n");
    assert_eq!(scratch.run(&["pending"]).ok().stdout, "nothing waits\n");
}

#[test]
fn a_question_about_a_command_shows_its_text_its_parts_and_why() {
    let scratch = scratch();
    scratch.configure(
        "[commands]\nask = [{ pattern = \"touch *\", match = [\"touch a\"], reason = \"ask before new files\" }]\n",
    );
    scratch.put("a.txt", "one\n");
    let mut agent = scratch.mcp().profile("trusting").flags(&["--agent", "ada", "--task", "tidy"]).start();
    let command = "cat a.txt | grep -c one && touch made; echo over";
    agent.call("run_command", json!({"command": command})).refused("APPROVAL_PENDING");
    let question = waiting(&scratch);
    let shown = question["diff"].as_str().unwrap();
    assert!(shown.contains(command) && shown.contains("its parts:\n"), "{shown}");
    for part in ["\n  cat a.txt\n", "\n  grep -c one\n", "\n  touch made\n", "\n  echo over\n"] {
        assert!(shown.contains(part), "{part:?} in {shown}");
    }
    assert!(shown.contains("ask before new files"), "{shown}");
    let review = scratch.run(&["review"]);
    assert!(review.stdout.contains("agent=ada") && review.stdout.contains("(tidy)"), "{review:?}");
    assert!(review.stdout.contains("  touch made"), "{review:?}");
    assert!(!scratch.path("made").exists());
    approve(&scratch, &question).ok();
    let done = agent.call("run_command", json!({"command": "ls"}));
    done.ok();
}

#[test]
fn rules_whose_examples_do_not_hold_are_named_and_nothing_is_served() {
    let scratch = scratch();
    for (toml, named) in [
        ("[commands]\ndeny = [{ pattern = \"npm *\", match = [\"yarn add x\"] }]\n", "npm *"),
        (
            "[commands]\nask = [{ pattern = \"git push *\", not_match = [\"git push origin\"] }]\n",
            "git push *",
        ),
        ("[commands]\nallow = [{ pattern = \"make test\", match = [\"make test all\"] }]\n", "make test"),
        (
            "[commands]\ndeny = [{ pattern = \"npm *\" }, { pattern = \"curl *\", match = [\"wget x\"] }]\n",
            "curl *",
        ),
    ] {
        scratch.put("cotenant.toml", toml);
        let checked = scratch.run(&["config", "check"]);
        assert_eq!(checked.code, 1, "{toml}: {checked:?}");
        assert!(checked.stderr.contains(named), "{toml}: {}", checked.stderr);
        assert_eq!(scratch.run(&["config", "check", "--json"]).json()["code"], "BAD_INPUT", "{toml}");
        assert_eq!(scratch.run(&["run-command", "true"]).code, 1, "{toml}");
    }
    scratch.put(
        "cotenant.toml",
        "[approvals]\nprofile = \"trusting\"\n[commands]\ndeny = [{ pattern = \"npm install *\", match = [\"npm install left-pad\", \"npm install\"], not_match = [\"npm test\"], reason = \"use pnpm add\" }]\n",
    );
    scratch.run(&["config", "check"]).ok();
    for command in
        ["npm install x", "cd . && npm install x", "sh -c 'npm install x'", "env A=1 npm install x"]
    {
        let refused = scratch.run(&["run-command", command]);
        assert_eq!(refused.code, 1, "{command}: {refused:?}");
        assert!(refused.stdout.starts_with("COMMAND_DENIED"), "{command}: {refused:?}");
        assert!(refused.stdout.contains("use pnpm add"), "{command}: {refused:?}");
    }
}

#[test]
fn commands_are_in_history_counts_and_journal() {
    let scratch = trusting();
    scratch.put("a.txt", "one\n");
    let mut agent = scratch.mcp().flags(&["--agent", "ada"]).start();
    agent.call("run_command", json!({"command": "perl -pi -e 's/one/1/' a.txt"})).ok();
    agent.call("run_command", json!({"command": "sed -i s/1/2/ a.txt"})).ok();
    agent.call("run_command", json!({"command": "echo x >> a.txt", "mode": "direct"})).ok();
    agent.call("run_command", json!({"command": "sudo id"})).refused("COMMAND_DENIED");
    agent.call("run_command", json!({"command": "echo token=hunter2-hunter2-hunter2-hunter2"})).ok();
    assert_eq!(scratch.text("a.txt"), "2\nx\n");
    let history = scratch.run(&["history", "--json"]).ok().json();
    let changes = history["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 3, "{history}");
    for change in changes {
        assert_eq!((&change["tool"], &change["agent"]), (&json!("run_command"), &json!("ada")), "{change}");
        assert_eq!(change["files"][0]["path"], "a.txt", "{change}");
    }
    let plain = scratch.run(&["history"]).ok().stdout.clone();
    assert_eq!(plain.matches("tool=run_command").count(), 3, "{plain}");
    let stats = scratch.run(&["stats", "--json"]).ok().json();
    assert_eq!(stats["tools"]["run_command"]["calls"], json!(5), "{stats}");
    assert_eq!(stats["refusals"]["COMMAND_DENIED"], json!(1), "{stats}");
    assert!(scratch.run(&["stats"]).ok().stdout.contains("run_command calls=5"));
    scratch.run(&["stop"]).ok();
    let export = scratch.run(&["journal", "--json"]).ok().stdout.clone();
    let entries: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| entries.iter().filter(|entry| entry["kind"] == kind).count();
    let calls = entries.iter().filter(|entry| entry.to_string().contains("run_command")).count();
    assert!(of("change") == 3 && calls >= 5, "five calls and three changes: {export}");
    assert!(!export.contains("hunter2"), "secrets are masked");
    assert!(scratch.run(&["journal", "verify"]).ok().stdout.starts_with("whole: "));
    scratch.run(&["undo"]).ok();
    assert_eq!(scratch.text("a.txt"), "2\n");
}

#[test]
fn the_doctor_says_how_commands_can_be_held_here() {
    let scratch = scratch();
    let report = scratch.run(&["doctor", "--json"]).json();
    let checks = report["checks"].as_array().unwrap();
    for grade in ["G3", "G2"] {
        let of_grade: Vec<&Value> = checks.iter().filter(|check| check["grade"] == grade).collect();
        assert!(!of_grade.is_empty(), "{grade}: {report}");
        if report["grades"][grade] == json!(true) {
            // What is promised is kept: a command that runs says the same.
            let mode = if grade == "G3" { "staged" } else { "direct" };
            let said = scratch.run(&["run-command", "true", "--mode", mode, "--json"]);
            assert!([json!("G3"), json!("G2"), Value::Null].contains(&said.json()["grade"]), "{said:?}");
            if said.code == 0 {
                assert_eq!(said.json()["grade"], json!(grade), "{said:?}");
            }
        }
    }
    let plain = scratch.run(&["doctor"]);
    assert!(plain.stdout.contains("G3") && plain.stdout.contains("G2"), "{plain:?}");
}

#[test]
fn the_list_of_tools_holds_the_commands_and_stays_within_its_budgets() {
    let listed = |sets: &str| scratch().mcp().flags(&["--tools", sets]).start().tools();
    let size = |tools: &[Value]| json!({"tools": tools}).to_string().len();
    let has = |tools: &[Value], name: &str| tools.iter().any(|tool| tool["name"] == name);
    let sets = ["core", "team", "history", "organise", "plan", "exec"];
    let core = listed("core");
    assert!(size(&core) <= 8 * 1024, "{}", size(&core));
    for name in ["run_command", "command_output", "stop_command"] {
        assert!(has(&core, name), "{name}");
    }
    for number in 1..1 << sets.len() {
        let chosen: Vec<&str> =
            sets.iter().enumerate().filter(|(at, _)| number >> at & 1 == 1).map(|(_, set)| *set).collect();
        // Alone, with core, and all: what lies between cannot be larger than all of it.
        if ![1, 2, 6].contains(&chosen.len()) {
            continue;
        }
        let tools = listed(&chosen.join(","));
        assert!(size(&tools) <= 16 * 1024, "{chosen:?}: {}", size(&tools));
        for (set, name) in [("core", "run_command"), ("exec", "exec_open"), ("exec", "exec_promote")] {
            assert_eq!(has(&tools, name), chosen.contains(&set), "{name} with {chosen:?}");
        }
    }
    let usual = scratch().mcp().start().tools();
    assert!(size(&usual) <= 12 * 1024, "{}", size(&usual));
    assert!(has(&usual, "run_command") && !has(&usual, "exec_open"));
}
