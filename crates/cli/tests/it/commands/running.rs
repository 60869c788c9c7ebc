//! What a command answers and what it leaves, the same over both transports.

use serde_json::json;

use super::{both, can_stage};

#[test]
fn a_command_that_goes_well_says_how_it_ran_and_what_it_said() {
    both("trusting", |scratch, mut agent| {
        if !can_stage(scratch) {
            return;
        }
        scratch.put("a.txt", "one\n");
        let said = agent.run("cat a.txt; echo err >&2");
        assert_eq!((said.ok().number("exit"), said.number("changed")), (0, 0));
        assert_eq!((said.get("mode"), said.number("out")), ("staged".to_owned(), 8));
        assert!(said.fact("change").is_none() && said.fact("handle").is_none(), "{}", said.text);
        assert!(said.content().contains("one") && said.content().contains("err"), "{}", said.text);
    });
}

#[test]
fn a_command_that_fails_is_a_result_and_its_changes_land_all_the_same() {
    both("trusting", |scratch, mut agent| {
        let said = agent.run("echo made > made.txt; echo no >&2; exit 7");
        assert_eq!(said.ok().number("exit"), 7);
        said.says("no").says("A made.txt");
        assert_eq!(scratch.text("made.txt"), "made\n");
        let signalled = agent.run("kill -TERM $$");
        assert_eq!((signalled.ok().get("exit"), signalled.number("signal")), ("none".to_owned(), 15));
        assert_eq!(agent.run("no-such-program-anywhere").ok().number("exit"), 127);
    });
}

#[test]
fn what_a_command_changes_is_one_change_that_undo_takes_back() {
    both("trusting", |scratch, mut agent| {
        scratch.sh("printf 'one\\n' > a.txt; printf 'gone\\n' > b.txt; printf 'x\\n' > c.txt; mkdir d");
        let before = scratch.sh("find . -not -name cotenant.toml | sort; stat -c '%n %a' *.txt; cat *.txt");
        let said = agent.run(
            "perl -pi -e 's/one/1/' a.txt; rm b.txt; mv c.txt d/c.txt; chmod 700 d/c.txt; ln -s a.txt l",
        );
        assert_eq!((said.ok().number("exit"), said.number("changed")), (0, 4), "{}", said.text);
        let change = said.get("change");
        assert_eq!(scratch.text("a.txt"), "1\n");
        assert_eq!(scratch.sh("readlink l; stat -c %a d/c.txt; ls").stdout.lines().next(), Some("a.txt"));
        let shown = agent.call("show_change", json!({"change": change}));
        shown.ok().says("-one").says("+1").says("tool=run_command");
        assert_eq!(agent.call("history", json!({})).number("changes"), 1);
        agent.call("undo", json!({})).ok();
        let after = scratch.sh("find . -not -name cotenant.toml | sort; stat -c '%n %a' *.txt; cat *.txt");
        assert_eq!(after.stdout, before.stdout);
    });
}

#[test]
fn an_edit_in_place_needs_no_shell_and_is_one_change_too() {
    both("trusting", |scratch, mut agent| {
        scratch.put("a.txt", "one\ntwo\n");
        let said = agent.run("sed -i 's/two/2/' a.txt");
        assert_eq!((said.ok().number("exit"), said.get("mode")), (0, "simulated".to_owned()));
        assert_eq!(scratch.text("a.txt"), "one\n2\n");
        agent.call("undo", json!({"change": said.get("change")})).ok();
        assert_eq!(scratch.text("a.txt"), "one\ntwo\n");
    });
}

#[test]
fn the_rest_of_a_long_output_is_read_by_its_handle_and_searched() {
    both("trusting", |_, mut agent| {
        let said = agent.run("seq 1 30000; printf '\\033[31mred\\033[0m end\\n'");
        assert_eq!(said.ok().number("out"), 168_894 + 17);
        assert!(said.text.len() < 6 * 1024, "{} bytes", said.text.len());
        said.says("\nred end").never_says("\u{1b}");
        let handle = said.get("handle");
        let found = agent.call("read_more", json!({"handle": handle, "pattern": "^2999[0-9]$"}));
        assert_eq!(found.ok().number("matches"), 10, "{}", found.text);
        let (mut offset, mut next) = (Some(0), 1);
        while let Some(from) = offset {
            let page = agent.call("read_more", json!({"handle": handle, "offset": from}));
            for line in page.ok().content().lines().take_while(|line| !line.starts_with("red")) {
                assert_eq!(line, next.to_string(), "no line is lost or told twice: {from}");
                next += 1;
            }
            offset = page.fact("next_offset").map(|to| to.parse::<u64>().unwrap());
            assert!(offset.is_none_or(|to| to > from), "{}", page.text);
        }
        assert_eq!(next, 30_001);
        // A failure shows more of it.
        let failed = agent.run("seq 1 30000; exit 3");
        assert!(failed.ok().text.len() > 16 * 1024, "{} bytes", failed.text.len());
        agent.call("read_more", json!({"handle": "h999999"})).refused("HANDLE_EXPIRED");
    });
}

#[test]
fn a_replayed_key_gives_the_first_result_and_runs_nothing_again() {
    for mode in ["staged", "direct"] {
        both("trusting", |scratch, mut agent| {
            if !can_stage(scratch) {
                return;
            }
            scratch.put("log", "");
            let call = json!({"mode": mode, "idempotency_key": "k1"});
            let first = agent.run_with("echo ran >> log; cat log", call.clone());
            assert_eq!((first.ok().number("exit"), first.get("mode")), (0, mode.to_owned()));
            let again = agent.run_with("echo ran >> log; cat log", call.clone());
            assert_eq!(again.ok().get("change"), first.get("change"), "{}", again.text);
            assert_eq!(scratch.text("log"), "ran\n", "{mode}: run twice");
            agent.run_with("echo other >> log", call.clone()).refused("BAD_INPUT");
            assert_eq!(scratch.text("log"), "ran\n");
            // It holds beyond the daemon's life.
            if matches!(agent, super::Agent::Stdio(_)) {
                scratch.kill_daemon();
                let later = agent.run_with("echo ran >> log; cat log", call);
                assert_eq!(later.ok().get("change"), first.get("change"), "{}", later.text);
            }
            assert_eq!(scratch.text("log"), "ran\n", "{mode}: run twice");
            assert_eq!(agent.call("history", json!({})).number("changes"), 1);
        });
    }
}

#[test]
fn a_replayed_key_of_what_changed_nothing_runs_nothing_again() {
    both("trusting", |scratch, mut agent| {
        scratch.sh("printf 'target/\\n' > .gitignore; mkdir target; git init -q .");
        let call = json!({"idempotency_key": "k2"});
        let command = "echo ran >> target/log; cat target/log";
        agent.run_with(command, call.clone()).ok();
        let again = agent.run_with(command, call);
        assert_eq!(again.ok().number("exit"), 0);
        assert_eq!(scratch.text("target/log"), "ran\n", "run twice: {}", again.text);
    });
}

#[test]
fn each_call_is_told_where_and_how_to_run() {
    both("trusting", |scratch, mut agent| {
        scratch.sh("mkdir sub");
        let there = agent.run_with("pwd; echo $GREETING", json!({"cwd": "sub", "env": {"GREETING": "hi"}}));
        assert_eq!(there.ok().get("cwd"), "sub");
        there.says("/sub\nhi");
        let late = agent.run_with("echo x > made; sleep 600", json!({"timeout_s": 1}));
        assert_eq!(late.ok().get("timed_out"), "yes");
        late.says("dropped");
        assert!(!scratch.path("made").exists());
        let shown = agent.run_with("perl -e 'open F, \">p\"; print F 1'", json!({"dry_run": true}));
        shown.ok().says("p");
        assert!(!scratch.path("p").exists());
        for (more, code) in [
            (json!({"cwd": "absent"}), "NOT_FOUND"),
            (json!({"cwd": "../out"}), "PATH_OUTSIDE"),
            (json!({"cwd": "/"}), "PATH_OUTSIDE"),
            (json!({"timeout_s": 0}), "BAD_INPUT"),
            (json!({"timeout_s": 3601}), "BAD_INPUT"),
            (json!({"mode": "loose"}), "BAD_INPUT"),
            (json!({"env": {"A=B": "x"}}), "BAD_INPUT"),
            (json!({"colour": "red"}), "BAD_INPUT"),
        ] {
            agent.run_with("echo ran > ran", more).refused(code);
        }
        for command in ["", "  \n", "echo a\0b"] {
            agent.run(command).refused("BAD_INPUT");
        }
        assert!(!scratch.path("ran").exists());
    });
}

#[test]
fn what_is_denied_runs_in_no_mode_and_says_why() {
    both("trusting", |scratch, mut agent| {
        scratch.sh("printf 'S=1\\n' > .env");
        for mode in ["auto", "direct"] {
            for command in ["sudo id", "rm -rf /", "echo x; mkfs.ext4 /dev/sda", ":(){ :|:& };:"] {
                let refused = agent.run_with(command, json!({"mode": mode}));
                refused.refused("COMMAND_DENIED");
                assert!(refused.is_error, "{}", refused.text);
            }
        }
        for mode in ["staged", "direct"] {
            let said = agent
                .run_with("python3 -c \"open('.env','w').write('S=2')\"; echo x > b", json!({"mode": mode}));
            assert_eq!(scratch.text(".env"), "S=1\n", "{mode}: {}", said.text);
        }
    });
}
