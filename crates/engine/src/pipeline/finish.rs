//! What is left to do once a change has ended: its images go into the ledger, then its temporary names go (R1, R6, R7).
//!
//! The order is the whole point: no name is removed before what it names is stored and synced and the seal is written.

use std::io;
use std::time::{Duration, Instant};

use cotenant_ledger::commit as record;
use cotenant_ledger::{INLINE_MAX, LedgerError};
use cotenant_model::{
    Change, ChangeFile, ChangeId, ChangeKind, Content, Digest, Durability, Entry, EntryKind, Millis, Outcome,
    WsPath,
};
use cotenant_tree::commit::{self, Inode, Leaf, Look, Stamp};

use super::Question;
use super::desk::{Desk, Pair};
use super::swap::Displaced;

/// How long a displaced file's descriptor is kept, to see whether somebody still writes into it (R7).
const WATCH: Duration = Duration::from_secs(2);
/// A displaced file up to this size is copied into the store; a larger one is renamed into it, which costs nothing but
/// lets a writer that came by an old descriptor damage the image.
const COPY_MAX: u64 = 1 << 20;

/// A change that ended, with what is left on the disk of it.
pub(super) struct Finish {
    pub(super) change: ChangeId,
    /// What it was promised to survive.
    pub(super) durability: Durability,
    /// When it was made, wall clock.
    pub(super) time: Millis,
    /// The clock's reading at `time`, to date what is found later.
    pub(super) since: Instant,
    pub(super) outcome: Outcome,
    pub(super) rests: Vec<Rest>,
}

/// One path of it.
pub(super) struct Rest {
    pub(super) pair: Pair,
    pub(super) pre: Option<Entry>,
    /// The pre-image is in the ledger already.
    pub(super) kept: bool,
    pub(super) post: Option<Entry>,
    /// The post-image; `None` after a crash, when the disk has it or nobody.
    pub(super) content: Option<Content>,
    /// The displaced file, fenced.
    pub(super) old: Option<Displaced>,
}

/// A file whose name is gone but which a writer may still hold.
pub(super) struct Watched {
    at: WsPath,
    inode: Inode,
    /// Its digest when the name went.
    last: Digest,
    /// Its change time then, where a lease proved that nobody had written; `None`: only the digest tells.
    stamp: Option<Stamp>,
    time: Millis,
    since: Instant,
}

/// Why finishing stopped. What is left is recovered later: every name is still in its intent.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfinished {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("{0}")]
    Disk(#[from] io::Error),
}

/// How far finishing came.
pub(super) enum Finished {
    /// All names are gone; what is left is watched for late writers.
    Done(Vec<Watched>),
    /// Somebody writes into a displaced file: its name stays until they are through.
    Later(Finish),
}

/// What became of the file at a temporary name.
enum Kept {
    /// There is none.
    Nothing,
    /// Its image is stored.
    Stored { index: usize, leaf: Leaf, digest: Digest },
    /// Somebody is writing into it.
    Waiting,
}

impl Desk {
    /// Stores every image, then removes the temporary names.
    pub(super) fn finish(&self, mut job: Finish) -> Result<Finished, Unfinished> {
        let mut fresh = self.keep_posts(&job)?;
        let mut found = Vec::new();
        let mut stored = Vec::new();
        let mut waiting = false;
        for index in 0..job.rests.len() {
            match self.keep_displaced(&mut job, index, &mut fresh, &mut found)? {
                Kept::Waiting => waiting = true,
                other => stored.push(other),
            }
        }
        record::sync_blobs(&self.ledger, &fresh)?;
        if waiting {
            return Ok(Finished::Later(job));
        }
        for file in found {
            self.observed(file, job.now())?;
        }
        record::written(&self.ledger)?;
        let (watched, gone) = self.remove_names(&job, stored)?;
        self.remove_dirs(&job)?;
        if gone {
            record::swept(&self.ledger, job.change);
        }
        Ok(Finished::Done(watched))
    }

    /// The new images, which until now were only in memory and under their names. Returns those to be synced: what
    /// lies in the database becomes durable with the next intent, before anything relies on it.
    fn keep_posts(&self, job: &Finish) -> Result<Vec<Digest>, Unfinished> {
        let mut fresh = Vec::new();
        if job.outcome == Outcome::Aborted {
            return Ok(fresh);
        }
        for rest in &job.rests {
            let Some(post) = rest.post.filter(|post| !record::has(&self.ledger, post.digest)) else {
                continue;
            };
            self.step("store.post", &rest.pair.at)?;
            if let Some(content) = &rest.content {
                let stored = record::store_content(&self.ledger, content, job.durability)?;
                fresh.extend((content.len() > INLINE_MAX).then_some(stored));
            } else if let Some(leaf) = rest.pair.target.look()?.leaf()
                && leaf.entry()? == post
            {
                fresh.push(self.keep(&leaf)?);
            }
        }
        Ok(fresh)
    }

    /// Stores what stands at the temporary name of a path, if it is a file: our own new one of a change that did not
    /// land, the old one, or a foreign one, which is recorded as found.
    fn keep_displaced(
        &self,
        job: &mut Finish,
        index: usize,
        fresh: &mut Vec<Digest>,
        found: &mut Vec<ChangeFile>,
    ) -> Result<Kept, Unfinished> {
        let (overtaken, patient) = (job.outcome == Outcome::Overtaken, job.since.elapsed() < WATCH);
        let Some(rest) = job.rests.get_mut(index) else { return Ok(Kept::Nothing) };
        self.step("store.pre", &rest.pair.at)?;
        let (leaf, fenced) = match rest.old.take() {
            Some(old) if old.wanted() => {
                self.keep_before_writer(rest, &old.leaf, fresh)?;
                return Ok(Kept::Waiting);
            }
            Some(old) => {
                let fenced = old.fenced();
                (old.leaf, fenced)
            }
            None => match self.displaced(rest)? {
                None => return Ok(Kept::Nothing),
                Some(Leaf::File(inode)) if inode.grip().is_err() && patient => return Ok(Kept::Waiting),
                Some(leaf) => (leaf, false),
            },
        };
        let entry = match rest.pre {
            Some(pre) if fenced => pre,
            _ => leaf.entry()?,
        };
        let (old, ours) = (rest.pre == Some(entry), rest.post == Some(entry));
        if old && rest.kept || ours && !overtaken {
            return Ok(Kept::Stored { index, leaf, digest: entry.digest });
        }
        // Somebody may have written since: what was stored counts.
        let digest = self.take_in(rest, &leaf, entry.digest, old && fenced)?;
        fresh.push(digest);
        let stored = Some(Entry { digest, ..entry });
        if rest.pre != stored && rest.post != stored {
            found.push(found_file(&rest.pair.at, rest.pre, digest, &leaf));
        }
        Ok(Kept::Stored { index, leaf, digest })
    }

    /// Takes a displaced file or link into the store. `known`: nobody can have written into it since its digest was
    /// read, so a large one need not be copied.
    fn take_in(&self, rest: &Rest, leaf: &Leaf, digest: Digest, known: bool) -> Result<Digest, Unfinished> {
        match leaf {
            Leaf::File(inode) if known && inode.size() > COPY_MAX && inode.links() == 1 => {
                record::adopt(&self.ledger, rest.pair.temp.dir().fd(), rest.pair.temp.name(), digest)?;
                Ok(digest)
            }
            _ => Ok(self.keep(leaf)?),
        }
    }

    /// Copies a file's bytes, or the text of a link, into the store.
    pub(super) fn keep(&self, leaf: &Leaf) -> Result<Digest, LedgerError> {
        match leaf {
            Leaf::File(inode) => record::store_file(&self.ledger, inode.fd()),
            Leaf::Link(link) => record::store(&self.ledger, &link.target),
        }
    }

    /// The file or link at the temporary name of a path.
    fn displaced(&self, rest: &Rest) -> Result<Option<Leaf>, Unfinished> {
        match rest.pair.temp.look()? {
            look @ (Look::File(_) | Look::Link(_)) => Ok(look.leaf()),
            Look::Absent | Look::Directory(_) => Ok(None),
            Look::Other(_) | Look::Denied(_) => {
                self.question(
                    &rest.pair,
                    "what was displaced cannot be read as a file; it waits at its temporary name",
                );
                Ok(None)
            }
        }
    }

    /// A writer waits for the lease on the old file: its image must be safe before they are let in.
    fn keep_before_writer(
        &self,
        rest: &mut Rest,
        old: &Leaf,
        fresh: &mut Vec<Digest>,
    ) -> Result<(), Unfinished> {
        if !rest.kept {
            fresh.push(self.keep(old)?);
            rest.kept = true;
        }
        Ok(())
    }

    /// Unlinks the temporary names whose images are stored, and keeps the descriptors. Also says whether all are gone.
    fn remove_names(&self, job: &Finish, stored: Vec<Kept>) -> Result<(Vec<Watched>, bool), Unfinished> {
        let (mut watched, mut gone) = (Vec::new(), true);
        for kept in stored {
            let Kept::Stored { index, leaf, digest } = kept else { continue };
            let Some(rest) = job.rests.get(index) else { continue };
            self.step("unlink", &rest.pair.at)?;
            // What an adoption renamed away, or another put there, is not ours to remove.
            if rest.pair.temp.id()? == Some(leaf.id()) {
                gone &= self.unlink(rest)?;
            }
            let Leaf::File(inode) = leaf else { continue };
            // Only a lease that nobody asked for proves that nothing was written before the stamp was taken.
            let stamp = inode.stamp()?;
            let stamp = inode.gripped().then_some(stamp);
            inode.let_go();
            watched.push(Watched {
                at: rest.pair.at.clone(),
                inode,
                last: digest,
                stamp,
                time: job.time,
                since: job.since,
            });
        }
        Ok((watched, gone))
    }

    /// Removes a temporary name; false where the directory's permissions came to forbid it. The next start tries again.
    fn unlink(&self, rest: &Rest) -> Result<bool, Unfinished> {
        use io::ErrorKind as Kind;
        match rest.pair.temp.unlink() {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), Kind::PermissionDenied | Kind::ReadOnlyFilesystem) => {
                self.question(
                    &rest.pair,
                    "its directory was made read-only, so a temporary name is left in it",
                );
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what is left of directories: made ones that did not land, removed ones that did.
    fn remove_dirs(&self, job: &Finish) -> Result<(), Unfinished> {
        for rest in job.rests.iter().filter(|rest| rest.pre.is_none() && rest.post.is_none()) {
            let Look::Directory(_) = rest.pair.temp.look()? else { continue };
            self.step("rmdir", &rest.pair.at)?;
            let Err(error) = rest.pair.temp.remove_dir() else { continue };
            if !matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) {
                return Err(error.into());
            }
            // Somebody who was inside put a file there: it must not vanish behind a hidden name.
            if commit::rename(&rest.pair.temp, &rest.pair.target).is_err() {
                self.question(
                    &rest.pair,
                    "a removed directory got a file meanwhile; it waits at its temporary name",
                );
            }
        }
        Ok(())
    }

    /// Looks whether a watched file was written since its name went; if so, the bytes are stored and recorded.
    pub(super) fn look_again(&self, watched: &mut Watched) -> Result<(), Unfinished> {
        let stamp = watched.inode.stamp()?;
        if watched.stamp == Some(stamp) {
            return Ok(());
        }
        self.step("late", &watched.at)?;
        let digest = watched.inode.digest()?;
        if digest != watched.last {
            let stored = record::store_file(&self.ledger, watched.inode.fd())?;
            record::sync_blobs(&self.ledger, &[stored])?;
            let file = ChangeFile {
                at: watched.at.clone(),
                pre: Some(watched.last),
                post: Some(stored),
                pre_mode: EntryKind::File.bits() | watched.inode.mode(),
                post_mode: EntryKind::File.bits() | watched.inode.mode(),
                ..ChangeFile::default()
            };
            self.observed(file, now(watched.time, watched.since))?;
            watched.last = stored;
        }
        Ok(())
    }

    /// Records a foreign write that is not on top.
    fn observed(&self, file: ChangeFile, time: Millis) -> Result<(), LedgerError> {
        let mut change = Change {
            id: ChangeId(0),
            time,
            kind: ChangeKind::Observed,
            outcome: Outcome::Sealed,
            agent: None,
            session: None,
            task: None,
            turn: 0,
            tool: "".into(),
            files: vec![file],
            undoes: None,
        };
        change.id = record::observe(&self.ledger, change.clone())?;
        self.found(change);
        Ok(())
    }

    /// Asks the human about a path.
    pub(super) fn question(&self, pair: &Pair, why: &str) {
        let why = format!("{why} ({})", String::from_utf8_lossy(pair.temp.name()));
        self.ask(Question { at: pair.at.clone(), why });
    }
}

impl Finish {
    fn now(&self) -> Millis {
        now(self.time, self.since)
    }
}

impl Watched {
    /// When nobody has to look any more.
    pub(super) fn due(&self) -> Instant {
        self.since + WATCH
    }
}

/// The wall clock, from what it was at `since`: nothing here reads it.
fn now(time: Millis, since: Instant) -> Millis {
    time.plus(u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX))
}

fn found_file(at: &WsPath, before: Option<Entry>, now: Digest, leaf: &Leaf) -> ChangeFile {
    ChangeFile {
        at: at.clone(),
        pre: before.map(|before| before.digest),
        post: Some(now),
        pre_mode: before.map_or(0, |before| before.kind.bits()),
        post_mode: leaf.mode(),
        ..ChangeFile::default()
    }
}
