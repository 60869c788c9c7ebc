//! The look before a command runs: whatever it may overwrite can be had later, or is known not to be.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cotenant_ledger::PinGuard;
use cotenant_model::{Digest, GitObjects, Refusal, Tracked, WsPath};
use cotenant_tree::{EntryKind, Key, RACY_NS, Scan, Stat};

use super::images::{Covered, Image, Version};
use super::others::Mark;
use super::reading::{self, Read, Wanted};
use super::{Bounds, Loss};
use crate::workspace::Workspace;

/// What reading a small file costs, in bytes of a large one.
const FILE_COST: u64 = 16 << 10;

/// What was there before a command ran.
pub struct Before {
    pub(super) scans: Vec<Scan>,
    pub(super) bounds: Bounds,
    pub(super) git: Option<Arc<dyn GitObjects>>,
    /// What had landed before the look.
    pub(super) mark: Mark,
    /// Files that were so young, or changed so often, that only their digest tells them from a later version.
    pub(super) fresh: BTreeMap<WsPath, (Stat, Digest)>,
    covered: Arc<Covered>,
    uncovered: BTreeMap<WsPath, Loss>,
    _pins: PinGuard,
}

impl Before {
    /// Files whose bytes will not be to be had once they are overwritten, with the reason, in path order.
    pub fn uncovered(&self) -> impl Iterator<Item = (&WsPath, Loss)> {
        self.uncovered.iter().map(|(at, loss)| (at, *loss))
    }

    /// Where the bytes of a version are.
    pub(super) fn image(&self, at: &WsPath, stat: &Stat) -> Result<Image, Loss> {
        if let Some((_, digest)) = self.fresh.get(at).filter(|(fresh, _)| fresh == stat) {
            return Ok(Image::Stored(*digest));
        }
        let image = self.covered.get(&Version::of(stat)).cloned();
        image.ok_or_else(|| self.uncovered.get(at).copied().unwrap_or(Loss::Unreadable))
    }
}

/// Looks at these folders, or directories in them, before a command runs. `git` knows the repositories among them.
///
/// # Errors
/// A folder that cannot be read, or a ledger that cannot take in what is to be kept: nothing should be run then.
pub fn before(
    ws: &Workspace,
    folders: &[WsPath],
    git: Option<Arc<dyn GitObjects>>,
    bounds: Bounds,
) -> Result<Before, Refusal> {
    let mark = Mark::now(ws.ledger()).map_err(|error| error.refusal())?;
    let mut scans = Vec::with_capacity(folders.len());
    for folder in folders {
        let shown = || ws.tree().folders().show(folder);
        scans.push(ws.tree().scan(folder, None).map_err(|error| error.refusal(&shown()))?);
    }
    let mut found = Found::default();
    let known = ws.known().get();
    scans.iter().for_each(|scan| found.known(scan, known.as_deref(), git.is_some()));
    if let Some(git) = git.as_ref().filter(|_| found.cost() > bounds.unasked_bytes) {
        scans.iter().for_each(|scan| found.ask(scan, &**git));
    }
    let read = reading::store(ws, std::mem::take(&mut found.wanted), bounds, false);
    let (read, _stored) = read.map_err(|error| error.refusal())?;
    found.take_in(&scans, read);
    let Found { covered, fresh, uncovered, .. } = found;
    let digests: Vec<Digest> = fresh.values().map(|(_, digest)| *digest).collect();
    let pins = ws.ledger().pin(&digests);
    let covered = Arc::new(Covered::new(ws.ledger(), covered));
    ws.known().set(&covered);
    Ok(Before { scans, bounds, git, mark, fresh, covered, uncovered, _pins: pins })
}

/// The work trees of repositories: where something called `.git` stands.
fn repositories(scan: &Scan) -> Vec<WsPath> {
    let git = scan.entries().filter(|(at, _)| at.path.leaf() == Some(b".git"));
    git.filter_map(|(at, _)| at.parent()).collect()
}

/// What was found so far.
#[derive(Default)]
struct Found {
    covered: HashMap<Version, Image>,
    fresh: BTreeMap<WsPath, (Stat, Digest)>,
    wanted: Vec<Wanted>,
    uncovered: BTreeMap<WsPath, Loss>,
}

impl Found {
    /// Takes over what the last run knew, of git only where there is one; the rest is wanted.
    fn known(&mut self, scan: &Scan, known: Option<&Covered>, git: bool) {
        for (at, key) in scan.entries() {
            if key.kind != EntryKind::File || key.protected {
                continue;
            }
            let version = Version::of(&key.stat);
            let image = known.and_then(|known| known.get(&version)).filter(|_| !scan.is_racy(key));
            match image.filter(|image| git || !matches!(image, Image::Git { .. })) {
                Some(image) => drop(self.covered.insert(version, image.clone())),
                None => self.wanted.push(Wanted { at, bytes: key.stat.size }),
            }
        }
    }

    /// What it costs to read all that is wanted.
    fn cost(&self) -> u64 {
        self.wanted.iter().map(|file| file.bytes.saturating_add(FILE_COST)).sum()
    }

    /// Takes off what git keeps of the files as they stand.
    fn ask(&mut self, scan: &Scan, git: &dyn GitObjects) {
        for repository in repositories(scan) {
            let tracked = git.tracked(&repository).unwrap_or_default();
            let repository = Arc::new(repository);
            // Git wrote its index after it looked at the last of them. One that is as young as that may have been
            // changed since, by a write of the same time.
            let written = tracked.iter().map(|file| file.seen.ctime_ns).max().unwrap_or(0);
            for file in tracked.into_iter().filter(|file| file.seen.ctime_ns + RACY_NS < written) {
                let clean = scan.get(&file.at).filter(|key| is_clean(key, &file) && !scan.is_racy(key));
                if let Some(key) = clean {
                    let image = Image::Git { repository: Arc::clone(&repository), object: file.object };
                    self.covered.entry(Version::of(&key.stat)).or_insert(image);
                }
            }
        }
        let covered = &self.covered;
        let is_covered = |key: &Key| !scan.is_racy(key) && covered.contains_key(&Version::of(&key.stat));
        self.wanted.retain(|file| !scan.get(&file.at).is_some_and(is_covered));
    }

    /// Takes note of what was read.
    fn take_in(&mut self, scans: &[Scan], read: Vec<Read>) {
        for Read { at, found } in read {
            let (stat, digest) = match found {
                Ok(found) => found,
                Err(loss) => {
                    self.uncovered.insert(at, loss);
                    continue;
                }
            };
            let seen = scans.iter().find_map(|scan| Some((scan, scan.get(&at)?)));
            if seen.is_some_and(|(scan, key)| key.stat == stat && !scan.is_racy(key)) {
                self.covered.insert(Version::of(&stat), Image::Stored(digest));
            } else {
                self.fresh.insert(at, (stat, digest));
            }
        }
    }
}

/// Whether a file is as git saw it last, and git's object has as many bytes.
fn is_clean(key: &Key, file: &Tracked) -> bool {
    #[allow(clippy::cast_possible_truncation, reason = "git keeps the lower halves")]
    let halves = (key.stat.ino as u32, key.stat.size as u32);
    key.kind == EntryKind::File
        && !key.protected
        && key.stat.size == file.bytes
        && halves == (file.seen.ino, file.seen.size)
        && (key.stat.ctime_ns, key.stat.mtime_ns) == (file.seen.ctime_ns, file.seen.mtime_ns)
}
