//! Where something is now: names are followed through the ledger, never guessed from what stands where.

use std::collections::BTreeSet;

use cotenant_ledger::{Query, Since};
use cotenant_model::{Change, ChangeId, Refusal, WsPath};

use super::steps;
use crate::ctx::Ctx;

/// Something got another name.
#[derive(Clone, Debug)]
struct Renamed {
    change: ChangeId,
    from: WsPath,
    to: WsPath,
}

/// What got another name since a change, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Vec<Renamed>);

impl Names {
    /// The names since `oldest`, without those that the changes of `skip` gave: these are taken back themselves.
    pub(super) fn since(
        ctx: &Ctx<'_>,
        oldest: ChangeId,
        skip: &BTreeSet<ChangeId>,
    ) -> Result<Names, Refusal> {
        let query = Query { since: Some(Since::Change(oldest)), ..Query::default() };
        let changes = ctx.ws.ledger().history(&query).map_err(|error| error.refusal())?;
        Ok(Names::of(changes.iter().rev().filter(|change| !skip.contains(&change.id))))
    }

    /// The names that these changes gave, the oldest first.
    pub(super) fn of<'a>(changes: impl Iterator<Item = &'a Change>) -> Names {
        let renamed = |change: &'a Change| {
            steps::renames(change).map(|(from, to)| Renamed {
                change: change.id,
                from: from.clone(),
                to: to.clone(),
            })
        };
        Names(changes.flat_map(renamed).collect())
    }

    /// Where that is now which stood at `at` after a change.
    pub(super) fn of_what_stood(&self, at: &WsPath, after: ChangeId) -> WsPath {
        self.follow(at, after, |at, from| at.is_within(from)).0
    }

    /// What a name is now whose directories may have got others: nothing stood there, or another thing than is meant.
    pub(super) fn of_the_place(&self, at: &WsPath, after: ChangeId) -> WsPath {
        self.follow(at, after, |at, from| at != from && at.is_within(from)).0
    }

    /// The last change that moved what stood at `at` itself, not only a directory above it.
    pub(super) fn moved_on(&self, at: &WsPath, after: ChangeId) -> Option<ChangeId> {
        self.follow(at, after, |at, from| at.is_within(from)).1
    }

    fn follow(
        &self,
        at: &WsPath,
        after: ChangeId,
        goes: impl Fn(&WsPath, &WsPath) -> bool,
    ) -> (WsPath, Option<ChangeId>) {
        let (mut at, mut itself) = (at.clone(), None);
        let first = self.0.partition_point(|renamed| renamed.change <= after);
        // Within one change names change at once: the one that is nearest to the path counts.
        for one in self.0.get(first..).unwrap_or_default().chunk_by(|a, b| a.change == b.change) {
            let fit = one.iter().filter(|renamed| goes(&at, &renamed.from));
            let Some(nearest) = fit.max_by_key(|renamed| renamed.from.path.as_bytes().len()) else {
                continue;
            };
            if nearest.from == at {
                itself = Some(nearest.change);
            }
            at = rebased(&at, &nearest.from, &nearest.to);
        }
        (at, itself)
    }
}

/// A path below `from` as it is called once that is called `to`.
pub(super) fn rebased(at: &WsPath, from: &WsPath, to: &WsPath) -> WsPath {
    let rest = at.path.as_bytes().get(from.path.as_bytes().len()..).unwrap_or_default();
    rest.split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
        .fold(to.clone(), |at, name| at.join(name))
}
