//! From a wanted command to what the sandbox is asked for: folders, what is bound through, what may not be written.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cotenant_model::{Access, ExecLimits, FolderId, RelPath, SessionId, WsPath};
use cotenant_shell::policy::{GitUse, Judgement};
use cotenant_shell::run::{Folder, How, InFolder, OutputLimits, Request};

use super::flow::{Way, Where};
use super::wanted::Wanted;
use crate::toolbox::Toolbox;

/// Words in a command that may take a whole directory away: an ignored directory that is named beside one is not bound
/// through, for a mount point cannot be removed.
const TAKES_AWAY: &[&str] = &["rm", "rmdir", "mv", "clean", "unlink", "find"];

/// The ignored directories of the workspace, as they were found the last time.
#[derive(Default)]
pub(crate) struct IgnoredDirs(Mutex<Option<Arc<Vec<WsPath>>>>);

impl IgnoredDirs {
    fn get(&self, find: impl FnOnce() -> Vec<WsPath>) -> Arc<Vec<WsPath>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.get_or_insert_with(|| Arc::new(find())))
    }

    /// They are looked for anew.
    pub(super) fn set(&self, found: Vec<WsPath>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(found));
    }
}

impl Toolbox {
    /// The numbers of all folders.
    fn folder_ids(&self) -> impl Iterator<Item = FolderId> + use<> {
        (0..self.ws.tree().folders().len()).filter_map(|index| u16::try_from(index).ok().map(FolderId))
    }

    /// The folders that a session's commands see.
    pub(super) fn folders(&self, session: SessionId) -> Vec<Folder> {
        let read_only = self.terms(session).map(|terms| terms.read_only.clone()).unwrap_or_default();
        let tree = self.ws.tree();
        let folder = |id: FolderId| Folder {
            host: tree.host_path(id).to_owned(),
            dir: tree.root_dir(id).and_then(|dir| dir.fd().try_clone_to_owned().ok()).map(Arc::new),
            writable: tree.access(id) == Access::ReadWrite && !read_only.contains(&id),
        };
        self.folder_ids().map(folder).collect()
    }

    /// The request for a command.
    pub(super) fn request(
        &self,
        session: SessionId,
        wanted: &Wanted,
        judged: &Judgement,
        way: &Way,
        agreed: bool,
    ) -> Request {
        let folders = self.folders(session);
        let how = match &way.place {
            Where::Staged => How::Staged { through: self.through(&folders, wanted), read_only: Vec::new() },
            Where::Direct => {
                let git = judged.git == GitUse::Writes;
                How::Direct { read_only: self.guarded(&folders, git, agreed), git }
            }
            Where::Inside(exec) => How::Overlay(Arc::clone(&exec.overlay)),
        };
        let settings = self.ws.settings();
        let limits = match &way.place {
            Where::Inside(exec) => exec.limits.clone(),
            _ => ExecLimits { cpu_s: settings.exec.cpu_s.max(wanted.timeout_s), ..settings.exec.clone() },
        };
        Request {
            script: wanted.command.clone(),
            cwd: (usize::from(wanted.cwd.folder.0), wanted.cwd.path.clone()),
            env: self.variables(wanted, way),
            timeout: Duration::from_secs(wanted.timeout_s),
            network: way.network,
            folders,
            how,
            limits,
            caches: settings.commands.caches.clone(),
            output: OutputLimits::default(),
        }
    }

    /// The environment of a command. On a copy git must not refresh its index by the way: that would be a write to `.git`,
    /// which is never taken over.
    fn variables(&self, wanted: &Wanted, way: &Way) -> Vec<(String, String)> {
        let mut env = self.shell.environment(&wanted.env);
        if env.iter().any(|(name, _)| name == "GIT_CONFIG_COUNT") {
            return env;
        }
        // A bare repository among the files is one that somebody planted.
        let mut settings = vec![("safe.bareRepository", "explicit")];
        if !matches!(way.place, Where::Direct) {
            settings.push(("diff.autoRefreshIndex", "false"));
        }
        env.push(("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string()));
        for (index, (key, value)) in settings.into_iter().enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{index}"), key.to_owned()));
            env.push((format!("GIT_CONFIG_VALUE_{index}"), value.to_owned()));
        }
        env
    }

    /// The ignored directories that are bound through: those that are there and ignored at this moment.
    fn through(&self, folders: &[Folder], wanted: &Wanted) -> Vec<InFolder> {
        let tree = self.ws.tree();
        let known = self.ignored_dirs.get(|| self.find_ignored_dirs());
        let mut ignores = tree.ignores();
        let mut through: Vec<InFolder> = Vec::new();
        for at in known.iter() {
            let index = usize::from(at.folder.0);
            let writable = folders.get(index).is_some_and(|folder| folder.writable);
            if writable
                && !may_take_away(&wanted.command, &at.path)
                && ignores.covers(at, true)
                && self.is_directory(at)
            {
                through.push((index, at.path.clone()));
            }
        }
        through
    }

    fn is_directory(&self, at: &WsPath) -> bool {
        matches!(cotenant_model::FileSource::see(&*self.ws, at), cotenant_model::Seen::Directory { .. })
    }

    /// Ignored directories in which git tracks nothing.
    pub(super) fn find_ignored_dirs(&self) -> Vec<WsPath> {
        let tree = self.ws.tree();
        let mut found: Vec<WsPath> = self
            .folder_ids()
            .filter(|id| tree.access(*id) == Access::ReadWrite)
            .flat_map(|id| tree.ignored_dirs(id))
            .collect();
        if let Some(git) = self.shell.git(&self.ws).filter(|_| !found.is_empty()) {
            for id in self.folder_ids() {
                let root = WsPath { folder: id, path: RelPath::root() };
                for tracked in git.tracked(&root).unwrap_or_default() {
                    found.retain(|dir| !tracked.at.is_within(dir));
                }
            }
        }
        found
    }

    /// What a direct command may not write: protected paths that are there. What git itself writes it may where the
    /// command is git's; `.venv` where a human agreed.
    fn guarded(&self, folders: &[Folder], git: bool, agreed: bool) -> Vec<InFolder> {
        let mut guarded = Vec::new();
        for (index, _) in folders.iter().enumerate().filter(|(_, folder)| folder.writable) {
            let Some(id) = u16::try_from(index).ok().map(FolderId) else { continue };
            for at in self.ws.tree().protected_paths(id) {
                let top_git = at.path.as_bytes() == b".git";
                let venv = at.path.leaf() == Some(b".venv");
                if !(top_git && git || venv && agreed) {
                    guarded.push((index, at.path));
                }
            }
        }
        guarded
    }

    /// The folders that a session's direct commands may change, for the looks before and after.
    pub(super) fn written_folders(&self, session: SessionId) -> Vec<WsPath> {
        let folders = self.folders(session);
        let written = super::upper::writable(&folders).into_iter();
        written.map(|(_, folder)| WsPath { folder, path: RelPath::root() }).collect()
    }
}

/// Whether the command may take the directory away: it has a word that can, and names it or a directory above it, or
/// everything.
fn may_take_away(command: &str, dir: &RelPath) -> bool {
    let words = || command.split(|ch: char| !(ch.is_alphanumeric() || "_-.*?/".contains(ch)));
    let takes = words().any(|word| TAKES_AWAY.contains(&word));
    takes
        && words().any(|word| {
            let word = word.trim_start_matches("./").trim_end_matches('/');
            let wild = word.contains(['*', '?']) || matches!(word, "clean" | ".");
            let named =
                dir.components().any(|part| part == word.as_bytes() || word.as_bytes().ends_with(part));
            wild || named
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_may_go_is_not_bound_through() {
        let dir = RelPath::parse("web/node_modules").unwrap();
        for command in [
            "rm -rf web/node_modules",
            "cd web && rm -rf node_modules && npm ci",
            "rm -rf web",
            "mv web/node_modules old",
            "git clean -fdx",
            "cargo clean; cd web",
            "rm -rf */node_modules",
            "find . -name node_modules -delete",
        ] {
            assert!(may_take_away(command, &dir), "{command}");
        }
        for command in
            ["npm test", "rm -f a.txt", "ls web/node_modules", "make all", "cp web/node_modules/x y"]
        {
            assert!(!may_take_away(command, &dir), "{command}");
        }
    }
}
