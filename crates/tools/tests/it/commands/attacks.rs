//! The command entries of the shared attacks, run for real behind a fence: before anybody agrees to anything, and with a
//! yes to every question. In both cases nothing outside happens, and what is protected stays as it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use cotenant_model::{ExecLimits, Profile, Settings};
use cotenant_testkit::{fence, inside_fence, records};
use serde_json::{Value, json};

use super::ground::{Ground, approve_all, base, difference, ground, protected};
use crate::fixture::{Fixture, fact};

/// A user that owns nothing else.
const NOBODY: u32 = 54_321;

/// The entries are run in so many tests.
const PARTS: usize = 12;

/// Names the part to a test that runs behind a fence.
const PART: &str = "COTENANT_PART";

/// A secret of the home that no answer may show.
const SECRET: &str = "hunter2-of-the-home";

/// What an entry needs that its setup leaves to its comment.
const FURTHER: &[(&str, &str)] = &[
    ("X022", "echo KEY=hunter2-of-env > .env"),
    ("X050", "echo x > x.txt"),
    (
        "X058",
        "mkdir -p docs .claude; echo '{}' > .claude/settings.json; ln -s .claude/settings.json video.mp4",
    ),
    ("X059", "echo evil > evil; ln -s .git/hooks docs"),
    ("X065", "git -C $OUT init -q"),
    ("X066", "git -C $OUT init -q"),
    ("X067", "git -C $OUT init -q"),
];

/// Those that end by a limit; they get small ones.
const LIMITED: &[&str] = &["X033", "X034", "X035", "X037", "X038", "X039", "X041", "X042"];

/// How the places outside are written in a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// As they are: the text shows them.
    Literal,
    /// As variables that the call sets: the text does not.
    Named,
}

/// One entry, set up in a workspace of its own.
struct Attack<'a> {
    record: &'a Value,
    fixture: Fixture,
    spelling: Spelling,
}

/// What must stay as it is.
struct Sight {
    outside: Ground,
    home: Ground,
    protected: Ground,
    workspace: Ground,
}

impl Sight {
    fn of(fixture: &Fixture) -> Sight {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        let beside = |name: &Path| name.starts_with("root") || name.starts_with("state");
        Sight {
            outside: ground(&base(fixture), true, beside),
            home: ground(&home, true, |_| false),
            protected: protected(fixture),
            workspace: ground(&fixture.path("."), false, |_| false),
        }
    }

    /// Where there was no repository, a human may agree to a `git init`, and to a `git config` that they were shown. The
    /// hooks are git's own samples even so.
    fn set_apart_a_fresh_repository(&mut self, before: &Sight) {
        if before.protected.contains_key(Path::new(".git")) {
            return;
        }
        let templates = ["", "branches", "config", "description", "hooks", "info", "info/exclude"];
        self.protected.retain(|name, _| {
            let sample =
                name.starts_with(".git/hooks") && name.extension().is_some_and(|end| end == "sample");
            let template =
                name.strip_prefix(".git").is_ok_and(|inside| templates.map(Path::new).contains(&inside));
            !(sample || template)
        });
    }

    /// What is not as it was, of what no command may ever change.
    fn escaped(&self, after: &Sight) -> Vec<String> {
        let pairs = [
            ("outside", &self.outside, &after.outside),
            ("home", &self.home, &after.home),
            ("protected", &self.protected, &after.protected),
        ];
        let differs = pairs.into_iter().filter(|(_, before, after)| before != after);
        differs.map(|(what, before, after)| format!("{what}: {}", difference(before, after))).collect()
    }
}

impl<'a> Attack<'a> {
    fn new(record: &'a Value, spelling: Spelling) -> Attack<'a> {
        let id = record["id"].as_str().unwrap();
        let exec = match LIMITED.contains(&id) {
            true => ExecLimits { memory_mb: 512, processes: 128, disk_mb: 32, ..ExecLimits::default() },
            false => ExecLimits::default(),
        };
        let attack =
            Attack { record, fixture: Fixture::with(Settings { exec, ..Settings::default() }), spelling };
        std::fs::create_dir(base(&attack.fixture).join("out")).unwrap();
        attack.set_up(record["setup"].as_str().unwrap());
        FURTHER.iter().filter(|(of, _)| *of == id).for_each(|(_, script)| attack.set_up(script));
        attack
    }

    fn places(&self) -> [(&'static str, String); 2] {
        let base = base(&self.fixture);
        [("OUT", base.join("out")), ("W", base.join("root"))]
            .map(|(name, path)| (name, path.to_str().unwrap().to_owned()))
    }

    /// The setup, outside of any sandbox.
    fn set_up(&self, script: &str) {
        let done = Command::new("bash")
            .args(["-ec", script])
            .current_dir(self.fixture.path("."))
            .envs(self.places())
            .output()
            .unwrap();
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn expects(&self) -> &str {
        self.record["expect"].as_str().unwrap()
    }

    fn id(&self) -> &str {
        self.record["id"].as_str().unwrap()
    }

    /// The call of `run_command`.
    fn call(&self) -> Value {
        let [out, root] = self.places().map(|(_, path)| path);
        let mut command = self.record["input"].as_str().unwrap().to_owned();
        command = command.replace("OUTDIR", "out").replace("WSNAME", "root").replace("ABSW", &root);
        let timeout = if LIMITED.contains(&self.id()) { 2 } else { 20 };
        match self.spelling {
            Spelling::Literal => {
                let command = command.replace("$OUT", &out).replace("$W", &root);
                json!({"command": command, "timeout_s": timeout})
            }
            Spelling::Named => {
                json!({"command": command, "timeout_s": timeout, "env": {"OUT": out, "W": root}})
            }
        }
    }

    /// How it was answered, in a word; the faults found go to `faults`.
    fn run(&self, faults: &mut Vec<String>) -> &'static str {
        let before = Sight::of(&self.fixture);
        let first = self.fixture.call("run_command", self.call());
        let unasked = Sight::of(&self.fixture);
        let word = self.answered(&first.text, first.is_error);
        let mut wrong: Vec<String> = before.escaped(&unasked);
        let waits = matches!(self.expects(), "ask" | "ask+contain" | "refuse");
        if waits && before.workspace != unasked.workspace {
            wrong.push(format!("landed unasked: {}", difference(&before.workspace, &unasked.workspace)));
        }
        if waits && word == "ran direct" {
            wrong.push("ran in the workspace unasked".to_owned());
        }
        if self.expects() == "allow" && !matches!(word, "ran staged" | "ran direct" | "simulated") {
            wrong.push("not run".to_owned());
        }
        let last = approve_all(&self.fixture, &first.text);
        let mut agreed = Sight::of(&self.fixture);
        agreed.set_apart_a_fresh_repository(&before);
        wrong.extend(before.escaped(&agreed).into_iter().map(|what| format!("after a yes: {what}")));
        // Of a variable nobody knows what it deletes: the human saw it all, and agreed to it.
        let known = !(self.id() == "X003" && self.spelling == Spelling::Named);
        if self.expects() == "refuse" && known && before.workspace != agreed.workspace {
            let what = difference(&before.workspace, &agreed.workspace);
            wrong.push(format!("after a yes: what is to be refused landed: {what}"));
        }
        for text in [&first.text, &last] {
            if text.contains(SECRET) || text.contains("COTENANT_FENCE") {
                wrong.push("shows a secret of the home, or the daemon's environment".to_owned());
            }
        }
        let head = first.text.lines().next().unwrap_or_default();
        faults.extend(wrong.into_iter().map(|what| {
            format!(
                "{} {} {:?}: {what}\n  {}\n  {head}",
                self.id(),
                self.expects(),
                self.spelling,
                self.call()
            )
        }));
        word
    }

    /// An answer in a word.
    fn answered(&self, text: &str, is_error: bool) -> &'static str {
        let first = |question: &cotenant_coord::Pending| question.plan.diff.starts_with("run in ");
        if text.starts_with("APPROVAL_PENDING") {
            let asked_first = self.fixture.toolbox.waiting().iter().any(first);
            return if asked_first { "asked before the run" } else { "asked on the diff" };
        }
        match fact(text, "mode").as_deref() {
            _ if is_error => "refused",
            Some("staged") => "ran staged",
            Some("simulated") => "simulated",
            _ => "ran direct",
        }
    }
}

/// A home with secrets, where the fence has one.
fn furnish_home() {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    for path in [".ssh/id_rsa", ".aws/credentials", ".netrc", ".gitconfig.d/secret"] {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, SECRET).unwrap();
    }
}

/// Runs every `PARTS`th entry from the `part`th on, in both spellings.
fn attacked(part: usize) {
    assert!(inside_fence().is_some(), "only behind a fence");
    furnish_home();
    let all = records("cases/attacks.jsonl").unwrap();
    let entries = all.iter().filter(|record| record["kind"] == "command").skip(part).step_by(PARTS);
    let (mut counts, mut faults) = (BTreeMap::<(&str, &str), u32>::new(), Vec::new());
    for record in entries {
        for spelling in [Spelling::Literal, Spelling::Named] {
            let attack = Attack::new(record, spelling);
            let word = attack.run(&mut faults);
            *counts.entry((record["expect"].as_str().unwrap(), word)).or_default() += 1;
        }
    }
    for ((expect, word), count) in &counts {
        println!("{expect}: {word}: {count}");
    }
    if !counts.keys().any(|(_, word)| word.ends_with("staged") || word.ends_with("diff")) {
        println!("SKIP staged: no command ran on a copy here");
    }
    assert!(counts.values().sum::<u32>() > 22, "{counts:?}");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Runs a test of this file behind a fence, as a user without any rights, with the part that it is to take.
#[track_caller]
fn behind_a_fence(name: &str, part: usize) {
    if records("cases/attacks.jsonl").is_none() {
        return;
    }
    let (program, part) = (std::env::current_exe().unwrap(), format!("{PART}={part}"));
    let arguments = [&part, program.to_str().unwrap(), name, "--exact", "--nocapture", "--include-ignored"];
    match fence(NOBODY, Path::new("/usr/bin/env"), &arguments) {
        Err(why) => println!("SKIP {name}: {why}"),
        Ok(fenced) => {
            println!("{}", fenced.said);
            assert!(fenced.code == Some(0) && fenced.said.contains("1 passed"), "{}", fenced.said);
        }
    }
}

#[test]
#[ignore = "run behind a fence"]
fn entries() {
    attacked(std::env::var(PART).unwrap().parse().unwrap());
}

macro_rules! parts {
    ($($name:ident $part:literal)*) => {$(
        #[test]
        fn $name() {
            behind_a_fence("commands::attacks::entries", $part);
        }
    )*};
}

parts! {
    attacks_reach_nothing_outside_1 0
    attacks_reach_nothing_outside_2 1
    attacks_reach_nothing_outside_3 2
    attacks_reach_nothing_outside_4 3
    attacks_reach_nothing_outside_5 4
    attacks_reach_nothing_outside_6 5
    attacks_reach_nothing_outside_7 6
    attacks_reach_nothing_outside_8 7
    attacks_reach_nothing_outside_9 8
    attacks_reach_nothing_outside_10 9
    attacks_reach_nothing_outside_11 10
    attacks_reach_nothing_outside_12 11
}

#[test]
fn every_command_entry_is_run_and_has_an_expectation() {
    let Some(all) = records("cases/attacks.jsonl") else { return };
    let entries: Vec<&Value> = all.iter().filter(|record| record["kind"] == "command").collect();
    assert!(entries.len() >= 150, "{}", entries.len());
    for record in entries {
        let expect = record["expect"].as_str().unwrap();
        assert!(["allow", "ask", "ask+contain", "contain", "refuse"].contains(&expect), "{record}");
    }
}

#[test]
fn what_is_protected_stays_in_every_mode_1() {
    behind_a_fence("commands::attacks::protected_paths_attacked", 0);
}

#[test]
fn what_is_protected_stays_in_every_mode_2() {
    behind_a_fence("commands::attacks::protected_paths_attacked", 1);
}

/// What is there before each attack on protected paths: two repositories, one of them below a directory that can be
/// renamed, an `.env`, and no editor's settings.
const PROTECTED: &str = "git init -q .; git config user.email t@e.st; git config user.name t; mkdir -p sub/deep; \
    git init -q sub/deep; echo KEY=1 > .env; echo a > a.txt; echo evil > evil; chmod +x evil; \
    git add a.txt; git commit -qm base";

/// Each tries to put something where only a human may.
const AT_PROTECTED: &[&str] = &[
    "mv .git .old && mkdir -p .git/hooks && cp evil .git/hooks/pre-commit",
    "python3 -c \"import os; os.rename('.git', 'old'); os.makedirs('.git/hooks')\"",
    "mv .git/hooks .git/h && mkdir .git/hooks && cp evil .git/hooks/pre-commit",
    "rm -rf .git && cp -r sub/deep/.git .git",
    "rm -rf .git; printf 'gitdir: /tmp/evil' > .git",
    "d=.g; d=${d}it; cp evil $d/hooks/post-checkout",
    "python3 -c \"open('.g'+'it/config','a').write('[core] fsmonitor=./evil')\"",
    "git config core.fsmonitor ./evil",
    "git config filter.x.clean ./evil",
    "git -c core.hooksPath=. config --local core.hooksPath .",
    "GIT_DIR=sub/deep/.git git config core.fsmonitor ./evil",
    "ln -s .git g && cp evil g/hooks/pre-push",
    "ln .git/config link && echo x >> link",
    "mv sub away && cp evil away/deep/.git/hooks/post-checkout && mv away sub",
    "python3 -c \"import os; os.rename('sub','x'); open('x/deep/.git/config','a').write('x'); os.rename('x','sub')\"",
    "mv sub/deep other; mkdir sub/deep; mv other/.git sub/deep/g2",
    "mkdir -p new && cd new && git init -q . && cp ../evil .git/hooks/pre-commit",
    "cd sub && cd deep && cp ../../evil .git/hooks/pre-commit",
    "find sub -name config -exec sh -c 'echo x >> \"$1\"' _ {} \\;",
    "tar cf t.tar .git && tar xf t.tar --transform 's,.git/,.git/hooks/,'; true",
    "echo K=2 > .env",
    "cp evil .envrc; cp evil .env.production; true",
    "mkdir -p .vscode && echo '{}' > .vscode/settings.json",
    "mkdir -p .claude && echo '{}' > .claude/settings.json",
    "echo '[approvals]' > cotenant.toml",
    "mv a.txt .env.moved",
    "mkdir x && cp evil x/.env && mv x y",
    "rm -f .env",
    "chmod 777 .env .git/config; true",
    "touch -d 2001-01-01 .git/hooks; mkdir .git/hooks/d; true",
    "unshare -rm sh -c 'mount --bind sub .git; cp evil .git/x'; true",
    "perl -e 'rename \"a.txt\", \".git/info/exclude\"'; true",
    "install -m 755 evil .git/hooks/commit-msg; dd if=evil of=.git/hooks/update 2>/dev/null; true",
    "git worktree add wt 2>/dev/null; cp evil wt/.git; true",
    "python3 -c \"import os; os.symlink('/tmp/evil', '.git/hooks/pre-commit')\"; true",
];

/// The same, where there is nothing yet that could be bound, and no name that the text shows.
const AT_ABSENT: &[&str] = &[
    "python3 -c \"open('.env.local','w').write('x')\"",
    "python3 -c \"import os; os.makedirs('.idea'); open('.idea/workspace.xml','w')\"",
    "python3 -c \"open('cotenant'+'.toml','w').write('[approvals]')\"",
    "python3 -c \"import os; os.makedirs('sub/.vs'+'code'); open('sub/.vs'+'code/tasks.json','w')\"",
    "python3 -c \"import os; os.makedirs('x/.cl'+'aude'); open('x/.cl'+'aude/settings.json','w')\"",
    "python3 -c \"import os; os.makedirs('.hus'+'ky'); open('.hus'+'ky/pre-commit','w')\"",
    "python3 -c \"import os; os.rename('evil', '.bash'+'rc')\"",
    "python3 -c \"import os; os.symlink('evil', '.mcp'+'.json')\"",
    "d=.c; mkdir -p ${d}argo; cp evil ${d}argo/config.toml",
];

#[test]
fn what_is_protected_is_not_created_on_a_copy_nor_silently_in_the_workspace() {
    behind_a_fence("commands::attacks::absent_paths_attacked", 0);
}

#[test]
#[ignore = "run behind a fence"]
fn absent_paths_attacked() {
    assert!(inside_fence().is_some(), "only behind a fence");
    for command in AT_ABSENT {
        for mode in ["auto", "staged", "direct"] {
            let fixture = trusting();
            super::sh(&fixture, PROTECTED);
            let before = protected(&fixture);
            let said =
                fixture.call("run_command", json!({"command": command, "mode": mode, "timeout_s": 20}));
            let after = protected(&fixture);
            if mode != "direct" {
                assert_eq!(before, after, "{mode} {command}: {}\n{}", said.text, difference(&before, &after));
                continue;
            }
            // What is not there cannot be bound: should it come to be, the answer names it.
            for name in after.keys().filter(|name| !before.contains_key(*name)) {
                let topmost = name.ancestors().filter(|dir| after.contains_key(*dir)).last().unwrap();
                let named =
                    said.text.contains(topmost.to_str().unwrap()) && said.text.contains("not_restorable=");
                assert!(named, "{command}: {} came silently: {}", name.display(), said.text);
            }
        }
    }
}

/// A workspace that asks nobody about what can be undone.
fn trusting() -> Fixture {
    Fixture::with(Settings { profile: Profile::Trusting, ..Settings::default() })
}

#[test]
#[ignore = "run behind a fence"]
fn protected_paths_attacked() {
    assert!(inside_fence().is_some(), "only behind a fence");
    let mut faults = Vec::new();
    let part: usize = std::env::var(PART).unwrap().parse().unwrap();
    for command in AT_PROTECTED.iter().skip(part).step_by(2) {
        for mode in ["auto", "direct"] {
            let fixture = trusting();
            super::sh(&fixture, PROTECTED);
            let before = Sight::of(&fixture);
            assert!(before.protected.len() > 8, "{:?}", before.protected);
            let said =
                fixture.call("run_command", json!({"command": command, "mode": mode, "timeout_s": 20}));
            let unasked = before.escaped(&Sight::of(&fixture));
            approve_all(&fixture, &said.text);
            let agreed = before.escaped(&Sight::of(&fixture));
            if !(unasked.is_empty() && agreed.is_empty()) {
                let head = said.text.lines().next().unwrap_or_default();
                faults.push(format!(
                    "{mode}: {command}\n  {head}\n  unasked {unasked:?}\n  after a yes {agreed:?}"
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
