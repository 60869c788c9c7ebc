//! The same patches through the tools that people have: `git apply`, GNU `patch`, and the envelope's own binary.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::draft::{Answer, Draft};
use super::errors::ERRORS;
use super::formats::Format;
use super::score::{Counts, Outcome, head};

/// A tool that applies patches, and how it is started in a folder with the patch on its standard input or as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Peer {
    Git,
    Patch,
    Codex,
}

const PEERS: [Peer; 3] = [Peer::Git, Peer::Patch, Peer::Codex];

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Peer::Git => "git apply",
            Peer::Patch => "GNU patch",
            Peer::Codex => "codex apply_patch",
        }
    }

    fn reads(self, format: Format) -> bool {
        match self {
            Peer::Git | Peer::Patch => format.is_diff(),
            Peer::Codex => format == Format::Envelope,
        }
    }
}

/// What the peers that are here made of the cases.
pub(super) struct Peers {
    codex: Option<PathBuf>,
    here: Vec<Peer>,
    scratch: PathBuf,
    total: BTreeMap<Peer, Counts>,
    errors: BTreeMap<(&'static str, Peer), Counts>,
}

impl Peers {
    /// Those that are installed; the envelope's binary where `COTENANT_CODEX` says.
    pub(super) fn here() -> Peers {
        let answers = |name: &str| Command::new(name).arg("--version").stdout(Stdio::null()).status().is_ok();
        let codex = std::env::var_os("COTENANT_CODEX").map(PathBuf::from);
        let installed = |peer: &Peer| match peer {
            Peer::Git => answers("git"),
            Peer::Patch => answers("patch"),
            Peer::Codex => codex.is_some(),
        };
        let here = PEERS.into_iter().filter(installed).collect();
        let scratch = cotenant_testkit::fresh_directory(&std::env::temp_dir(), "peers");
        Peers { codex, here, scratch, total: BTreeMap::new(), errors: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, error: &'static str, draft: &Draft) {
        for peer in self.here.clone().into_iter().filter(|peer| peer.reads(draft.format)) {
            let outcome = self.judged(peer, draft);
            self.total.entry(peer).or_default().add(outcome);
            self.errors.entry((error, peer)).or_default().add(outcome);
        }
    }

    fn judged(&self, peer: Peer, draft: &Draft) -> Outcome {
        let folder = self.scratch.join("case");
        let before = draft.disk.content();
        let files = [(draft.path.clone(), before.clone())].into_iter().chain(draft.others.clone());
        for (path, content) in files {
            std::fs::create_dir_all(folder.join(&path).parent().unwrap()).unwrap();
            std::fs::write(folder.join(&path), content).unwrap();
        }
        self.run(peer, &folder, &draft.sent.patch(draft.format));
        let now = std::fs::read(folder.join(&draft.path)).unwrap_or_default();
        let others = draft.others.iter().any(|(path, content)| {
            std::fs::read(folder.join(path)).unwrap_or_default() != content.as_bytes()
        });
        std::fs::remove_dir_all(&folder).unwrap();
        let unchanged = now == before.as_bytes();
        match draft.right().unwrap() {
            _ if others => Outcome::Wrong,
            Answer::Bytes(bytes) if now == bytes.as_bytes() => Outcome::Right,
            Answer::Nothing if unchanged => Outcome::Right,
            _ if !unchanged => Outcome::Wrong,
            Answer::Bytes(_) if draft.is_sole() => Outcome::Refused,
            _ => Outcome::Rightly,
        }
    }

    fn run(&self, peer: Peer, folder: &Path, patch: &str) {
        let mut command = match peer {
            Peer::Git => Command::new("git"),
            Peer::Patch => Command::new("patch"),
            Peer::Codex => Command::new(self.codex.as_ref().unwrap()),
        };
        match peer {
            Peer::Git => command.args(["apply", "-p1", "-"]),
            Peer::Patch => command.args(["-p1", "-s", "-f", "--no-backup-if-mismatch", "-r", "-"]),
            Peer::Codex => command.arg0("apply_patch").arg(patch),
        };
        command
            .current_dir(folder)
            .env("HOME", &self.scratch)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CEILING_DIRECTORIES", &self.scratch)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // One that does not read to the end has its reasons.
        let _ = child.stdin.take().unwrap().write_all(patch.as_bytes());
        child.wait().unwrap();
    }

    /// The figures of each, and of each error.
    pub(super) fn tables(&self) -> String {
        let mut text = head("peer");
        for peer in &self.here {
            text.push_str(&self.total.get(peer).cloned().unwrap_or_default().row(peer.name()));
        }
        let names: Vec<&str> = self.here.iter().map(|peer| peer.name()).collect();
        text.push_str(&format!("\nright / refused / WRONG\n\n| error | {} |\n", names.join(" | ")));
        text.push_str(&format!("|---|{}\n", "---:|".repeat(names.len())));
        for error in ERRORS {
            let cells = self.here.iter().map(|peer| match self.errors.get(&(error.name, *peer)) {
                Some(counts) => format!(
                    "{} / {} / {}",
                    counts.of(Outcome::Right),
                    counts.of(Outcome::Refused) + counts.of(Outcome::Rightly),
                    counts.of(Outcome::Wrong)
                ),
                None => "–".to_owned(),
            });
            text.push_str(&format!("| {} | {} |\n", error.name, cells.collect::<Vec<_>>().join(" | ")));
        }
        text
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}
