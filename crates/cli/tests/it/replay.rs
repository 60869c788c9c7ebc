//! Real history replayed: what `git show` prints of a commit, applied by `apply_patch`, gives the commit's exact tree.
//!
//! Every run replays a history made here, with all that git's patches can say. `cargo xtask replay DIR…` replays the
//! newest commits of repositories, `COTENANT_REPLAY_COMMITS` of each (2,000), and prints the figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use cotenant_testkit::{Client, Reply, Scratch};
use serde_json::json;

use crate::support::scratch;

/// The tree without files, which git knows without being told: no attributes of the history turn line endings over.
const NO_ATTRIBUTES: &str = "--attr-source=4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// A repository whose history is replayed, and where.
struct Replay<'a> {
    scratch: &'a Scratch,
    git_dir: PathBuf,
    index: PathBuf,
}

/// What became of the commits.
#[derive(Debug, Default)]
struct Outcome {
    exact: usize,
    /// Commits that change no file of the first parent's tree.
    empty: usize,
    /// Commits that no patch in a text argument can say, by reason.
    beyond: BTreeMap<&'static str, usize>,
    /// What was refused, or gave another tree: commit and answer.
    wrong: Vec<(String, String)>,
    asked: usize,
}

impl Replay<'_> {
    fn git(&self, args: &[&str]) -> Vec<u8> {
        let done = Command::new("git")
            .args(["-c", "core.autocrlf=false", "-c", "core.quotePath=true", "-c", "core.safecrlf=false"])
            .arg(NO_ATTRIBUTES)
            .arg("--git-dir")
            .arg(&self.git_dir)
            .arg("--work-tree")
            .arg(self.scratch.root())
            .args(args)
            .env("GIT_INDEX_FILE", &self.index)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.scratch.root())
            .output()
            .expect("git runs");
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    }

    fn word(&self, args: &[&str]) -> String {
        String::from_utf8(self.git(args)).unwrap().trim().to_owned()
    }

    /// Puts the tree of a commit into the workspace.
    fn checkout(&self, commit: &str) {
        for entry in std::fs::read_dir(self.scratch.root()).unwrap().map(|entry| entry.unwrap()) {
            if entry.file_name() == "cotenant.toml" {
                continue;
            }
            // What a change displaced may go by itself meanwhile.
            let _ = match entry.file_type() {
                Ok(kind) if kind.is_dir() => std::fs::remove_dir_all(entry.path()),
                _ => std::fs::remove_file(entry.path()),
            };
        }
        self.git(&["read-tree", commit]);
        self.git(&["checkout-index", "-a", "-f"]);
    }

    /// The id of the tree that the workspace is now.
    fn tree(&self) -> String {
        self.git(&["add", "-A", "-f", "--", ".", ":!cotenant.toml", ":(exclude,glob)**/.cotenant-*"]);
        self.word(&["write-tree"])
    }

    /// The patch of a commit against its first parent: as git prints it where that is text, else all of it as binary.
    fn patch(&self, commit: &str) -> Result<String, &'static str> {
        let show = ["show", "--binary", "--full-index", "-m", "--first-parent", "--no-color", commit];
        let text = self.git(&show);
        let modes = self.word(&["diff-tree", "-r", "-m", "--first-parent", "--no-commit-id", commit]);
        if modes.lines().any(|line| line.contains("160000")) {
            return Err("a submodule");
        }
        if let Ok(text) = String::from_utf8(text) {
            return Ok(text);
        }
        // Bytes of another encoding cannot stand in a JSON string; git can say them in base 85.
        let attributes = self.scratch.base().join("all-binary");
        std::fs::write(&attributes, "* -diff\n").unwrap();
        let setting = format!("core.attributesFile={}", attributes.display());
        let binary = self.git(&[&["-c", &setting][..], &show].concat());
        String::from_utf8(binary).map_err(|_| "a message in another encoding")
    }
}

/// Applies a patch; a human approves where one is asked.
fn applied(scratch: &Scratch, agent: &mut Client, patch: &str, outcome: &mut Outcome) -> Reply {
    let reply = agent.call("apply_patch", json!({"patch": patch}));
    if reply.code() != Some("APPROVAL_PENDING") {
        return reply;
    }
    outcome.asked += 1;
    let pending = scratch.run(&["pending", "--json"]).ok().json()["pending"][0].clone();
    let (id, digest) =
        (pending["id"].as_str().unwrap().to_owned(), pending["digest"].as_str().unwrap().to_owned());
    scratch.run(&["approve", &id, "--digest", &digest]).ok();
    agent.retry(&reply.offered("token"), json!({}))
}

/// Replays the commits between the oldest and the newest of `commits`, which follow each other.
fn replay(replay: &Replay<'_>, commits: &[String]) -> Outcome {
    let mut outcome = Outcome::default();
    let Some((first, rest)) = commits.split_first() else { return outcome };
    replay.checkout(first);
    let scratch = replay.scratch;
    scratch
        .configure("[workspace]\nprotected = { except = [\"**\"] }\n[approvals]\nprofile = \"trusting\"\n");
    let mut agent = scratch.mcp().profile("trusting").flags(&["--durability", "fast"]).start();
    for commit in rest {
        let wanted = replay.word(&["rev-parse", &format!("{commit}^{{tree}}")]);
        if wanted == replay.word(&["rev-parse", &format!("{commit}^^{{tree}}")]) {
            outcome.empty += 1;
            continue;
        }
        let reason = match replay.patch(commit) {
            Ok(patch) => {
                let reply = applied(scratch, &mut agent, &patch, &mut outcome);
                if reply.code().is_none() && replay.tree() == wanted {
                    outcome.exact += 1;
                    continue;
                }
                outcome.wrong.push((commit.clone(), reply.text.clone()));
                None
            }
            Err(reason) => Some(reason),
        };
        if let Some(reason) = reason {
            *outcome.beyond.entry(reason).or_default() += 1;
        }
        // The next commit needs this one's tree.
        replay.checkout(commit);
    }
    outcome
}

fn repository<'a>(scratch: &'a Scratch, git_dir: &Path) -> Replay<'a> {
    Replay { scratch, git_dir: git_dir.to_owned(), index: scratch.base().join("replay-index") }
}

/// The newest `count` commits and the one before them, oldest first, by first parents.
fn newest(replay: &Replay<'_>, count: usize) -> Vec<String> {
    let list = replay.word(&["rev-list", "--first-parent", &format!("-n{}", count + 1), "HEAD"]);
    let mut commits: Vec<String> = list.lines().map(str::to_owned).collect();
    commits.reverse();
    commits
}

/// A history with everything that git's patches can say.
const HISTORY: &str = r#"
set -e
mkdir "$OUT/made" && cd "$OUT/made"
git init -q -b main && git config user.name n && git config user.email e@e && git config core.autocrlf false
commit() { git add -A -f . && git commit -q --allow-empty -m "$1"; }
seq 1 400 > long; printf 'a\r\nb\r\nc\r\n' > crlf; printf 'no newline' > bare; mkdir -p src; seq 1 60 > src/lib.rs
commit 'one

--- a/not
+++ b/a header
@@ -1 +1 @@'
sed -i '7s/.*/seven/;200s/.*/two hundred/;393d' long; commit two
sed -i '1i zero' long; sed -i '30,40d' long; commit three
printf 'a\r\nB\r\nc\r\n' > crlf; commit 'crlf line'
printf 'no newline\nnow more' > bare; commit 'still no newline'
printf 'ends\n' > bare; commit 'a newline'
chmod +x src/lib.rs; commit mode
git mv src/lib.rs src/other.rs; commit rename
git mv src/other.rs lib.rs; sed -i 5s/.*/five/ lib.rs; commit 'rename and edit'
cp lib.rs copy.rs; sed -i 2s/.*/two/ copy.rs; commit copy
ln -s lib.rs link; ln -s nowhere dangling; commit links
ln -sfn copy.rs link; commit relink
rm link; printf 'now a file\n' > link; commit 'link to file'
rm bare; ln -s long bare; commit 'file to link'
head -c 3000 /dev/urandom > bin; commit binary
printf 'xyz' | dd of=bin bs=1 seek=100 conv=notrunc status=none; commit 'binary edit'
rm bin; commit 'binary gone'
: > empty; commit 'empty file'
rm empty; commit 'empty gone'
printf 'x\n' > 'with space'; printf 'y\n' > 'quo"te'; printf 'z\n' > "tab	name"; printf 'u\n' > 'ünï'; commit names
printf 'X\n' > 'with space'; git mv 'quo"te' 'other "name"'; printf 'Z\n' > "tab	name"; commit 'names again'
printf 'caf\351\nx\n' > latin; commit latin
printf 'caf\351\ny\n' > latin; commit 'latin edit'
printf '\357\273\277bom\n' > bom; commit bom
printf '\357\273\277bom 2\n' > bom; commit 'bom edit'
mkdir -p deep/er/est; printf 'd\n' > deep/er/est/file; commit deep
git rm -q -r deep; commit 'deep gone'
printf -- '-- \n--- a/x\n+++ b/x\n@@ -1 +1 @@\n' > tricky; commit tricky
printf -- '-- \n--- a/y\n+++ b/y\n@@ -2 +2 @@\n' > tricky; commit 'tricky edit'
printf '\\ No newline at end of file\n' > slash; commit slash
printf 'one\rtwo\rthree\n' > lone; commit 'lone returns'
printf 'one\r2\rthree\n' > lone; commit 'lone returns edit'
printf 'a\n\f\nb\n' > feed; commit feed
seq 1 20 | sed 's/.*/same/' > same; commit same
sed -i '10s/.*/different/' same; commit 'one among equals'
sed -i '10s/.*/same/;15s/.*/different/' same; commit 'another among equals'
mkdir -p .vscode .github/workflows; echo '{}' > .vscode/settings.json; echo x=1 > .env
echo 'on: push' > .github/workflows/ci.yml; commit 'settings'
git checkout -q -b side HEAD~3; echo side > side; commit side; git checkout -q main; git merge -q --no-edit side
commit 'nothing'
rm -rf src; commit 'last'
"#;

#[test]
fn a_history_of_everything_git_can_say() {
    let scratch = scratch();
    scratch.sh(HISTORY).ok();
    let made = repository(&scratch, &scratch.out().join("made/.git"));
    let commits = newest(&made, 1000);
    let outcome = replay(&made, &commits);
    assert!(outcome.wrong.is_empty(), "{:#?}", outcome.wrong);
    assert!(outcome.beyond.is_empty(), "{outcome:?}");
    assert_eq!(outcome.exact + outcome.empty, commits.len() - 1, "{outcome:?}");
    assert!(outcome.exact > 35 && outcome.asked > 0, "{outcome:?}");
}

/// Only where repositories are given: see above.
#[test]
fn repositories_that_are_given() {
    let Some(given) = std::env::var_os("COTENANT_REPLAY") else { return };
    let count = std::env::var("COTENANT_REPLAY_COMMITS").map_or(2000, |count| count.parse().unwrap());
    for directory in std::env::split_paths(&given) {
        let began = Instant::now();
        let scratch = scratch();
        let git_dir =
            if directory.join(".git").is_dir() { directory.join(".git") } else { directory.clone() };
        let repo = repository(&scratch, &git_dir);
        let commits = newest(&repo, count);
        let outcome = replay(&repo, &commits);
        let name =
            directory.components().rev().nth(1).map(|name| name.as_os_str().to_string_lossy().into_owned());
        eprintln!(
            "{}: {} commits in {:.0?}: {} exact, {} empty, {} asked about, beyond a text {:?}, wrong {}",
            name.unwrap_or_default(),
            commits.len() - 1,
            began.elapsed(),
            outcome.exact,
            outcome.empty,
            outcome.asked,
            outcome.beyond,
            outcome.wrong.len()
        );
        for (commit, answer) in outcome.wrong.iter().take(20) {
            eprintln!("{commit}: {}", answer.lines().take(12).collect::<Vec<_>>().join("\n  "));
        }
        assert!(outcome.wrong.is_empty());
    }
}
