//! The reported faults of other tools' shells and seds that need whole calls, each with its check at the end.

use std::process::Command;

use cotenant_model::{Answer, CommandRule, Commands, Profile, Settings};
use cotenant_testkit::{fenced_test, inside_fence, records};
use serde_json::json;

use super::ground::{approve_all, base, difference, ground};
use super::{run, run_with, sh};
use crate::fixture::{Fixture, body, fact};

/// A user that owns nothing else.
const NOBODY: u32 = 54_321;

/// A case, set up in the workspace.
struct Case {
    fixture: Fixture,
    check: Option<String>,
}

impl std::ops::Deref for Case {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

impl Case {
    /// `None` where the data is not there.
    fn with(id: &str, settings: Settings) -> Option<Case> {
        let record = records("cases/open.jsonl")?.into_iter().find(|record| record["id"] == id);
        let record = record.unwrap_or_else(|| panic!("no case {id}"));
        let fixture = Fixture::with(settings);
        sh(&fixture, record["setup"].as_str().unwrap());
        Some(Case { fixture, check: record["check"].as_str().map(str::to_owned) })
    }

    fn trusting(id: &str) -> Option<Case> {
        Case::with(id, Settings { profile: Profile::Trusting, ..Settings::default() })
    }

    fn careful(id: &str) -> Option<Case> {
        Case::with(id, Settings::default())
    }

    /// A command that must be carried out without a shell.
    fn simulated(&self, command: &str) -> String {
        let said = run(self, command);
        assert_eq!(fact(&said, "mode").as_deref(), Some("simulated"), "{command}: {said}");
        assert_eq!(fact(&said, "exit").as_deref(), Some("0"), "{command}: {said}");
        said
    }

    /// Commands of which none may do anything in the workspace before somebody agrees.
    fn do_nothing_unasked(&self, commands: &[&str]) {
        for command in commands {
            let before = ground(&self.path("."), false, |_| false);
            let said = self.call("run_command", json!({"command": command, "timeout_s": 20}));
            let after = ground(&self.path("."), false, |_| false);
            assert_eq!(before, after, "{command}: {}\n{}", said.text, difference(&before, &after));
            assert_ne!(fact(&said.text, "mode").as_deref(), Some("direct"), "{command}: {}", said.text);
        }
        self.checked();
    }

    /// The case's own check of the disk, outside of any sandbox.
    fn checked(&self) {
        let Some(check) = &self.check else { return };
        let done = Command::new("bash").args(["-c", check]).current_dir(self.path(".")).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{check}: {told}");
    }
}

/// Runs a test of this file behind a fence, as a user without any rights.
#[track_caller]
fn behind_a_fence(name: &str) {
    if records("cases/open.jsonl").is_some() {
        fenced_test(NOBODY, &format!("commands::cases::{name}"));
    }
}

#[test]
fn c101_the_number_of_an_occurrence_counts() {
    let Some(case) = Case::trusting("C101") else { return };
    let said = case.simulated("sed -i 's/o\\{2\\}/U/2' f.txt");
    assert!(said.contains("f.txt"), "{said}");
    assert_eq!(case.get("f.txt"), "ooU oooo\n", "{said}");
    assert_eq!(case.changes().len(), 1);
    case.checked();
}

#[test]
fn c102_a_back_reference_is_what_it_refers_to() {
    let Some(case) = Case::trusting("C102") else { return };
    run(&case, "sed -i -e 's/\\(e\\)\\{2\\}/<\\1>/' f.txt ; sed -i -E 's/(k[a-z]+)=(\\w+)/\\2=\\1/' f.txt");
    assert_eq!(case.get("f.txt"), "<e>bb val=key\n");
    case.checked();
}

#[test]
fn c104_line_ends_stay() {
    let Some(case) = Case::trusting("C104") else { return };
    case.simulated("sed -i 's/<v>1/<v>9/' m.xml");
    assert_eq!(case.bytes("m.xml"), b"<v>9</v>\r\n<w>2</w>\r\n");
    case.checked();
    case.ok("undo", json!({}));
    assert_eq!(case.bytes("m.xml"), b"<v>1</v>\r\n<w>2</w>\r\n");
}

#[test]
fn c105_a_link_stays_a_link_and_what_matches_nothing_touches_nothing() {
    let Some(case) = Case::trusting("C105") else { return };
    case.simulated("sed -i 's/id=1/id=2/' conf");
    let modified = || std::fs::metadata(case.path("real.conf")).unwrap().modified().unwrap();
    let before = modified();
    let said = case.simulated("sed -i 's/nomatch/x/' conf");
    assert_eq!(modified(), before, "{said}");
    assert_eq!(fact(&said, "change"), None, "{said}");
    assert_eq!(case.changes().len(), 1);
    case.checked();
}

#[test]
fn c107_an_empty_suffix_is_done_as_it_was_meant() {
    let Some(case) = Case::trusting("C107") else { return };
    let said = case.simulated("sed -i '' 's/a/b/' f.txt");
    assert!(said.contains("notices="), "the other reading is named: {said}");
    case.simulated("sed -i '' -E 's/b|z/c/' f.txt");
    assert_eq!(case.get("f.txt"), "c\n");
    case.checked();
}

#[test]
fn c108_no_stray_file_is_left() {
    let Some(case) = Case::trusting("C108") else { return };
    case.simulated("sed -i -e 's/a/b/' f.json");
    assert_eq!(case.get("f.json"), "b\n");
    case.checked();
}

#[test]
fn c110_each_command_of_a_script_is_one() {
    let Some(case) = Case::trusting("C110") else { return };
    sh(&case, "cp f.txt f2.txt; cp f.txt f3.txt");
    run(&case, "sed -i 's/p/q/;d' f.txt");
    run(&case, "sed -i 's/p/q/;s/q/r/' f2.txt");
    run(&case, "sed -i '/p/s/p/x/' f3.txt");
    assert_eq!([case.get("f.txt"), case.get("f2.txt"), case.get("f3.txt")], ["", "r\nr\n", "x\nq\n"]);
    case.checked();
}

#[test]
fn c111_an_ampersand_is_the_match_and_an_escaped_one_itself() {
    let Some(case) = Case::careful("C111") else { return };
    for command in ["sed -i 's/R D/[&]/' f.txt", "sed -i 's/Q/A\\&B/' f.txt"] {
        case.no("APPROVAL_PENDING", "run_command", json!({"command": command}));
        let question = case.toolbox.waiting().pop().unwrap();
        let added = |line: &&str| line.starts_with('+') && !line.starts_with("+++");
        let shown: Vec<&str> = question.plan.diff.lines().filter(added).map(|line| &line[1..]).collect();
        case.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
        let now = case.get("f.txt");
        assert!(
            !shown.is_empty() && shown.iter().all(|line| now.lines().any(|is| is == *line)),
            "{shown:?} {now}"
        );
    }
    assert_eq!(case.get("f.txt"), "[R D]\nA&B\n");
    case.checked();
}

#[test]
fn c113_a_sed_that_runs_programs_is_no_reading() {
    let Some(case) = Case::careful("C113") else { return };
    case.do_nothing_unasked(&[
        "sed -n '1e touch pwned' f.txt",
        "sed 's/.*/touch pwned2/e' f.txt",
        "sed -e '1!b' -e 'e touch pwned3' f.txt",
    ]);
}

#[test]
fn c114_a_sed_that_writes_is_no_reading_wherever_the_w_stands() {
    let Some(case) = Case::careful("C114") else { return };
    case.do_nothing_unasked(&[
        "sed -e 's/a/b/' -e '/x/w out.txt' n.txt",
        "sed -i 's/a/b/w out2.txt' n.txt",
        "sed --expression='s/a/b/' -e 'w out3.txt' n.txt",
    ]);
    let outside = base(&case).join("out4");
    let command = format!("sed -n 'w {}' n.txt", outside.display());
    case.do_nothing_unasked(&[&command]);
    assert!(!outside.exists());
}

#[test]
fn c116_letters_in_a_text_are_no_commands() {
    let Some(case) = Case::trusting("C116") else { return };
    case.simulated("sed -i 's/text/e/g' f.txt");
    case.simulated("sed -i 's/file/w x/' f.txt");
    assert_eq!(case.get("f.txt"), "e w x new\n");
    case.checked();
}

#[test]
fn c121_there_is_no_terminal_to_ask_at() {
    behind_a_fence("c121_fenced");
}

#[test]
#[ignore = "run behind a fence"]
fn c121_fenced() {
    assert!(inside_fence().is_some());
    let case = Case::trusting("C121").unwrap();
    let said = run(&case, "read -r p < /dev/tty; echo \"got $p\"; tty");
    assert_eq!(fact(&said, "timed_out"), None, "{said}");
    assert!(body(&said).contains("not a tty") && !said.contains("exit=0"), "{said}");
    let said = run_with(&case, "ssh -o ConnectTimeout=2 nobody@192.0.2.1 true", json!({"timeout_s": 20}));
    assert_ne!(fact(&said, "exit").as_deref(), Some("0"), "{said}");
    assert_eq!(fact(&said, "timed_out"), None, "{said}");
    case.no("COMMAND_DENIED", "run_command", json!({"command": "sudo -k; sudo true"}));
    case.no("COMMAND_DENIED", "run_command", json!({"command": "s=sud; ${s}o -n true"}));
    // The floor does not see this one: it ends by itself, for there is nobody to ask and no right to gain.
    let hidden =
        "python3 -c \"import subprocess as s, sys; sys.exit(s.run(['s'+'u', '-c', 'id']).returncode)\"";
    let said = run_with(&case, hidden, json!({"timeout_s": 20}));
    assert!(fact(&said, "exit").is_some_and(|exit| exit != "0") && !said.contains("uid=0"), "{said}");
}

#[test]
fn c123_what_ignores_a_signal_or_left_the_group_is_ended_too() {
    let Some(case) = Case::trusting("C123") else { return };
    let stub = "./stub.sh";
    for command in [stub, "setsid ./stub.sh", "(setsid bash -c 'trap \"\" TERM; sleep 312' &); sleep 313"] {
        for mode in ["staged", "direct"] {
            let said = run_with(&case, command, json!({"timeout_s": 1, "mode": mode}));
            // `setsid` may leave its program behind and end at once: then it is named as what was ended.
            let left_behind =
                said.contains("was ended: setsid") || said.contains("was ended: /bin/bash ./stub.sh");
            let timed_out = fact(&said, "timed_out").as_deref() == Some("yes");
            assert!(timed_out || command.starts_with("setsid") && left_behind, "{command} {mode}: {said}");
            assert_eq!(left_running(&case), Vec::<String>::new(), "{command} {mode}");
        }
    }
    // A double fork that is not waited for ends with its command.
    let said = run(&case, "(setsid bash -c 'trap \"\" TERM; sleep 312' &)");
    assert_eq!(fact(&said, "exit").as_deref(), Some("0"), "{said}");
    assert_eq!(left_running(&case), Vec::<String>::new());
}

/// The sleeps of this case's commands that still run: those whose working directory is its workspace, as this process or the
/// sandbox sees it. Only our own processes are looked at.
fn left_running(case: &Case) -> Vec<String> {
    let mine = base(case);
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let found = processes.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let sleeps = ["sleep 311", "sleep 312", "sleep 313"].iter().any(|sleep| line.contains(sleep));
        let there = std::fs::read_link(entry.path().join("cwd")).ok()?.starts_with(&mine);
        (sleeps && there).then_some(line)
    });
    found.collect()
}

#[test]
fn c124_a_flood_is_cut_and_counted_and_takes_no_memory() {
    let Some(case) = Case::trusting("C124") else { return };
    let before = peak_kilobytes();
    let flood = run_with(&case, "yes", json!({"timeout_s": 2}));
    assert_eq!(fact(&flood, "timed_out").as_deref(), Some("yes"), "{flood}");
    for (command, bytes) in [
        ("head -c 300000000 /dev/zero | tr '\\0' a", "300000000"),
        ("head -c 50000000 /dev/urandom | cat", "50000000"),
    ] {
        let said = run(&case, command);
        assert_eq!(fact(&said, "out").as_deref(), Some(bytes), "{:.300}", said);
        assert!(fact(&said, "handle").is_some() && said.len() < 40_000, "{:.300}", said);
    }
    let grown = peak_kilobytes() - before;
    assert!(grown < 64 * 1024, "{grown} kB");
}

/// The most memory that this process ever held.
fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Settings with a rule that lets the commands of each pattern run unasked.
fn allowing(patterns: &[&str]) -> Settings {
    let rule = |pattern: &&str| CommandRule {
        pattern: (*pattern).to_owned(),
        matches: Vec::new(),
        not_matches: Vec::new(),
        reason: String::new(),
        answer: Answer::Allow,
    };
    let rules = patterns.iter().map(rule).collect();
    Settings { commands: Commands { rules, ..Commands::default() }, ..Settings::default() }
}

#[test]
fn c132_a_rule_that_allows_a_word_allows_nothing_beside_it() {
    behind_a_fence("c132_fenced");
}

#[test]
#[ignore = "run behind a fence"]
fn c132_fenced() {
    assert!(inside_fence().is_some());
    let allowed = allowing(&["echo *", "ls *", "git branch", "env"]);
    let case = Case::with("C132", allowed).unwrap();
    sh(
        &case,
        "git init -q -b main .; git -c user.name=t -c user.email=t@e.st commit -q --allow-empty -m m; git branch other",
    );
    case.do_nothing_unasked(&[
        "echo hi\ntouch w1",
        "echo x > w2",
        "echo hi & touch w3",
        "ls <(touch w4)",
        "env touch w5",
        "echo `touch w6`",
        "echo \"$(touch w7)\"",
        "echo a; touch w8",
    ]);
    case.no("APPROVAL_PENDING", "run_command", json!({"command": "git branch -D other"}));
    assert!(body(&run(&case, "git branch --list other")).contains("other"));
    let shown = case.toolbox.waiting().into_iter().map(|question| question.plan.diff).collect::<Vec<_>>();
    assert!(shown.iter().any(|diff| diff.contains("git branch -D other")), "{shown:?}");
    // What the rules do allow is not asked about.
    assert_eq!(body(&run(&case, "echo hi; ls -d .")), "hi\n.");
}

#[test]
fn c133_arguments_that_run_write_or_delete_are_no_reading() {
    behind_a_fence("c133_fenced");
}

#[test]
#[ignore = "run behind a fence"]
fn c133_fenced() {
    assert!(inside_fence().is_some());
    let case = Case::careful("C133").unwrap();
    sh(
        &case,
        "git init -q .; tar cf a v.txt; git add v.txt; git -c user.name=t -c user.email=t@e.st commit -qm m",
    );
    case.do_nothing_unasked(&[
        "find . -delete",
        "find . -exec touch z1 {} +",
        "find . -fprint z2",
        "sort -o z3 v.txt",
        "sort --compress-program sh v.txt",
        "rg --pre touch x",
        "uniq v.txt z4",
        "tar --to-command=touch -xf a",
        "git -c core.pager=touch\\ z5 log",
        "git diff --output=z6",
        "awk 'BEGIN{system(\"touch z7\")}'",
        "xargs touch",
    ]);
    let readonly = Fixture::with(Settings { profile: Profile::ReadOnly, ..Settings::default() });
    readonly.put("v.txt", "v\n");
    for command in ["find . -name v.txt", "sort v.txt", "grep -r v .", "uniq v.txt", "sed -n 1p v.txt"] {
        let said = run(&readonly, command);
        assert_eq!(fact(&said, "exit").as_deref(), Some("0"), "{command}: {said}");
        assert!(body(&said).contains('v'), "{command}: {said}");
    }
}

#[test]
fn c135_a_rule_for_a_script_is_none_for_its_interpreter() {
    let Some(case) = Case::with("C135", allowing(&["python3 script.py"])) else { return };
    case.put("script.py", "open('made', 'w').write('x')\nprint('ran')\n");
    let said = run(&case, "python3 script.py");
    assert_eq!(body(&said).lines().last(), Some("ran"), "{said}");
    assert_eq!(case.get("made"), "x", "what the rule allows, lands");
    case.do_nothing_unasked(&[
        "python3 -c 'open(\"y1\",\"w\")'",
        "python3 script.py; python3 -c 'open(\"y2\",\"w\")'",
        "python3 script.py && touch y3",
        "node -e 'require(\"fs\").writeFileSync(\"y4\",\"\")'",
        "python3 ./other.py",
    ]);
}

#[test]
fn c138_what_git_would_run_later_is_not_planted() {
    let Some(case) = Case::trusting("C138") else { return };
    sh(&case, "git config user.email t@e.st; git config user.name t; printf 'x\\n' > evil; chmod +x evil");
    let kept = |case: &Case| {
        ground(&case.path("."), false, |name| {
            let name = name.to_string_lossy();
            !(name.ends_with(".git") || name == "vendor" || name == "vendor/sub" || name.contains(".git/"))
                || [".git/objects", ".git/refs", ".git/logs", ".git/index"]
                    .iter()
                    .any(|own| name.contains(own))
                || name.ends_with("HEAD")
                || name.ends_with("COMMIT_EDITMSG")
        })
    };
    let before = kept(&case);
    case.no("PATH_PROTECTED", "write_file", json!({"path": ".git/hooks/pre-commit", "content": "x"}));
    case.no("PATH_PROTECTED", "write_file", json!({"path": "vendor/sub/.git/config", "content": "x"}));
    case.no("PATH_PROTECTED", "move_path", json!({"from": "evil", "to": ".git/hooks/pre-commit"}));
    for command in [
        "echo x > vendor/sub/.git/hooks/post-checkout",
        "git config core.fsmonitor ./evil",
        "git config filter.x.clean ./evil",
        "git -C vendor/sub config core.fsmonitor ./evil",
        "mv evil .git/hooks/pre-commit",
        "python3 -c \"import os; os.rename('evil', '.git/hooks/pre-commit')\"",
        "python3 -c \"import os; os.rename('.git', '.old'); open('.git','w').write('gitdir: other')\"",
        "python3 -c \"open('vendor/sub/.git/hooks/post-checkout','w')\"",
    ] {
        for mode in ["auto", "direct"] {
            let said = case.call("run_command", json!({"command": command, "mode": mode}));
            approve_all(&case, &said.text);
            let after = kept(&case);
            assert_eq!(before, after, "{mode} {command}: {}\n{}", said.text, difference(&before, &after));
        }
    }
    let committed = run(&case, "git add evil && git commit -qm legitimate && git log --oneline");
    assert!(body(&committed).contains("legitimate"), "{committed}");
    assert_eq!(before, kept(&case));
    case.checked();
}

#[test]
fn every_case_of_the_shell_and_of_sed_has_a_test() {
    let Some(all) = records("cases/open.jsonl") else { return };
    let source = [include_str!("cases.rs"), include_str!("running.rs")].concat();
    for case in all.iter().filter(|case| case["area"] == "shell" || case["area"] == "sed") {
        let id = case["id"].as_str().unwrap().to_lowercase();
        assert!(source.contains(&format!("fn {id}_")), "no test for {id}");
    }
}
