//! Tests of the ledger against its public surface.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do"
)]

mod blobs;
mod crash;
mod fault;
mod follow;
mod history;
mod journal;
mod machine;
mod pack;
mod recall;
mod retention;
mod round;
mod stock;
mod trash;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cotenant_ledger::{Intent, IntentPath, Ledger, LedgerError, LedgerOptions, ParentId, commit};
use cotenant_model::{
    Change, ChangeFile, ChangeId, ChangeKind, ChangeOp, Digest, Durability, FolderId, Millis, Outcome,
    RelPath, SessionId, WsPath,
};

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(cotenant_testkit::fresh_directory(&std::env::temp_dir(), "ledger"))
    }

    /// Where the ledger goes: not there yet.
    pub(crate) fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn open(&self) -> Ledger {
        let (ledger, unsealed) = self.try_open(Durability::Full).unwrap();
        assert_eq!(unsealed, []);
        ledger
    }

    pub(crate) fn try_open(&self, durability: Durability) -> Result<(Ledger, Vec<Intent>), LedgerError> {
        Ledger::open(&LedgerOptions { dir: self.state(), durability })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn at(path: &str) -> WsPath {
    WsPath::root(RelPath::parse(path).unwrap())
}

pub(crate) fn in_folder(folder: u16, path: &str) -> WsPath {
    WsPath { folder: FolderId(folder), path: RelPath::parse(path).unwrap() }
}

/// An edit of `path` from `pre` to `post`.
pub(crate) fn edit(path: &str, pre: &[u8], post: &[u8]) -> ChangeFile {
    ChangeFile {
        at: at(path),
        op: ChangeOp::Edit,
        pre: Some(Digest::of(pre)),
        post: Some(Digest::of(post)),
        pre_mode: 0o100_644,
        post_mode: 0o100_644,
        from: None,
    }
}

pub(crate) fn change(id: ChangeId, files: Vec<ChangeFile>) -> Change {
    Change {
        id,
        time: Millis(1_000_000 + id.0),
        kind: ChangeKind::Planned,
        outcome: Outcome::Open,
        agent: Some("codex".into()),
        session: Some(SessionId(3)),
        task: Some("parser".into()),
        turn: 1,
        tool: "edit_file".into(),
        files,
        undoes: None,
    }
}

pub(crate) fn intent(change: Change) -> Intent {
    let paths = change
        .files
        .iter()
        .enumerate()
        .map(|(index, file)| IntentPath {
            at: file.at.clone(),
            op: file.op,
            parent: ParentId { dev: u64::MAX, ino: 1 << 63, mount: index as u64 },
            temp: format!(".cotenant-{index:016x}"),
            pre: file.pre,
            post: file.post,
            from: file.from.clone(),
            pre_mode: 0o640,
            post_mode: file.post_mode,
            uid: 1000,
            gid: u32::MAX,
            inline_pre: None,
            made_ino: None,
        })
        .collect();
    Intent { change, paths, idempotency: None }
}

/// Intends and seals a change of `files`.
pub(crate) fn land(ledger: &Ledger, files: Vec<ChangeFile>) -> ChangeId {
    let id = commit::next_change(ledger);
    commit::intend(ledger, intent(change(id, files))).wait().unwrap();
    commit::seal(ledger, id, Outcome::Sealed, None);
    id
}

/// Set in a child process: the folder it works in.
pub(crate) const CHILD: &str = "COTENANT_LEDGER_CHILD";

/// This test binary once more, to run only `test`, with [`CHILD`] set.
pub(crate) fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(CHILD, folder).stdin(Stdio::null());
    command
}

/// Runs `test` as a child in a mount namespace of its own; `false` with the reason printed where this machine does
/// not let us.
pub(crate) fn in_namespace(test: &str, folder: &Path) -> bool {
    let probe = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        println!("SKIP {test}: no mount namespace (not root, or no unshare)");
        return false;
    }
    let status = Command::new("unshare")
        .arg("-m")
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, folder)
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed in its namespace");
    true
}

/// In the child of [`in_namespace`]: mounts `kind` with `options` on `folder`.
pub(crate) fn mount(kind: &str, options: &str, folder: &Path) {
    let status = Command::new("mount").args(["-t", kind, "-o", options, kind]).arg(folder).status().unwrap();
    assert!(status.success());
}
