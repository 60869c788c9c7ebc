//! Where something is now: names are followed through the ledger, never guessed from what stands where.

use std::collections::BTreeSet;

use cotenant_model::{Change, ChangeFile, ChangeId, ChangeOp, Digest, Refusal, WsPath};

use super::steps;
use crate::ctx::Ctx;

/// What a change did to names.
#[derive(Clone, Debug)]
struct Turn {
    change: ChangeId,
    /// What got another name: from, to.
    renamed: Vec<(WsPath, WsPath)>,
    /// Where something went for good, or was covered by another thing, and its bytes; `None` for a directory.
    gone: Vec<(WsPath, Option<Digest>)>,
    /// Where something came to be, or came back.
    came: Vec<(WsPath, Option<Digest>)>,
}

/// What happened to names since a change, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Vec<Turn>);

/// Where a thing is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whereabouts {
    /// Its name; of one that is gone, the last one it had.
    pub(super) at: WsPath,
    /// It was deleted or covered since, with these bytes. Only what has the same bytes is it again.
    gone: Option<Option<Digest>>,
    /// The last change that moved it itself, not only a directory above it.
    mover: Option<ChangeId>,
}

impl Names {
    /// What happened since `oldest`, but for what the changes of `skip` did: these are taken back themselves.
    pub(super) fn since(
        ctx: &Ctx<'_>,
        oldest: ChangeId,
        skip: &BTreeSet<ChangeId>,
    ) -> Result<Names, Refusal> {
        let changes = ctx.ws.ledger().comings_and_goings(oldest).map_err(|error| error.refusal())?;
        Ok(Names(changes.iter().filter(|change| !skip.contains(&change.id)).map(Turn::of).collect()))
    }

    /// Where that is now which stood at `at` after a change.
    pub(super) fn of_what_stood(&self, at: &WsPath, after: ChangeId) -> Whereabouts {
        let thing = Whereabouts { at: at.clone(), gone: None, mover: None };
        self.after(after).fold(thing, Whereabouts::follow)
    }

    /// What a name is now whose directories may have got others: nothing stood there, or another thing than is meant.
    pub(super) fn of_the_place(&self, at: &WsPath, after: ChangeId) -> WsPath {
        let turned = |at: WsPath, turn: &Turn| turn.takes(&at, |from| *from != at).unwrap_or(at);
        self.after(after).fold(at.clone(), turned)
    }

    /// The last change that moved that away itself which stood at `at`; `None` where it is back, or gone.
    pub(super) fn moved_on(&self, at: &WsPath, after: ChangeId) -> Option<ChangeId> {
        let now = self.of_what_stood(at, after);
        now.mover.filter(|_| now.at != self.of_the_place(at, after))
    }

    fn after(&self, change: ChangeId) -> impl Iterator<Item = &Turn> {
        let first = self.0.partition_point(|turn| turn.change <= change);
        self.0.get(first..).unwrap_or_default().iter()
    }
}

impl Whereabouts {
    /// Whether it was deleted or covered since.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.is_some()
    }

    fn follow(mut self, turn: &Turn) -> Whereabouts {
        // What is moved away from where a thing was that is gone is another one; the directory is the same.
        let (at, here) = (self.at.clone(), self.gone.is_none());
        if let Some(to) = turn.takes(&at, |from| here || *from != at) {
            if turn.renamed.iter().any(|(from, _)| *from == at) {
                self.mover = Some(turn.change);
            }
            return Whereabouts { at: to, ..self };
        }
        let bytes = |list: &[(WsPath, Option<Digest>)]| {
            list.iter().find(|(path, _)| *path == at).map(|(_, bytes)| *bytes)
        };
        self.gone = match (self.gone, bytes(&turn.gone), bytes(&turn.came)) {
            (None, gone, _) => gone,
            (Some(gone), _, Some(came)) if gone == came => None,
            (gone, ..) => gone,
        };
        self
    }
}

impl Turn {
    fn of(change: &Change) -> Turn {
        let renamed: Vec<(WsPath, WsPath)> =
            steps::renames(change).map(|(from, to)| (from.clone(), to.clone())).collect();
        let left = |at: &WsPath| renamed.iter().any(|(from, _)| from == at);
        let goes =
            |file: &&ChangeFile| matches!(file.op, ChangeOp::Delete | ChangeOp::RemoveDir | ChangeOp::Move);
        let comes = |file: &&ChangeFile| {
            let comes = matches!(file.op, ChangeOp::Create | ChangeOp::MakeDir);
            comes || file.op == ChangeOp::Edit && left(&file.at)
        };
        let files = change.files.iter();
        Turn {
            change: change.id,
            gone: files.clone().filter(goes).map(|file| (file.at.clone(), file.pre)).collect(),
            came: files.filter(comes).map(|file| (file.at.clone(), file.post)).collect(),
            renamed,
        }
    }

    /// What `at` is called afterwards, if one of the renamed that `fits` is it or above it. Names change at once: the
    /// one that is nearest counts.
    fn takes(&self, at: &WsPath, fits: impl Fn(&WsPath) -> bool) -> Option<WsPath> {
        let above = self.renamed.iter().filter(|(from, _)| at.is_within(from) && fits(from));
        let (from, to) = above.max_by_key(|(from, _)| from.path.as_bytes().len())?;
        at.moved(from, to)
    }
}
