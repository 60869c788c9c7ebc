//! Along history: what an agent did since a point, what came later at a path, and where a file went.

use cotenant_model::{Change, ChangeFile, ChangeId, ChangeOp, Outcome, SessionId, WsPath};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use crate::history::{Since, one};
use crate::{Ledger, LedgerError, Query, rows};

type Sql<T> = rusqlite::Result<T>;

/// A point in history to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Right after this change.
    After(ChangeId),
    /// Before the first change of this turn of the session, or, where it made none, of the next turn that did.
    Turn {
        /// The session, as turns are counted by session.
        session: SessionId,
        /// The turn.
        turn: u32,
    },
}

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// Its path; of one that is gone, the last one it had.
    pub at: WsPath,
    /// The change that deleted it or put another in its place. What is made there later counts as its return.
    pub gone: Option<ChangeId>,
}

impl Ledger {
    /// What stands of an agent's changes since a point, in whichever session they were made, newest first.
    pub fn changes_since(&self, agent: &str, point: Point) -> Result<Vec<Change>, LedgerError> {
        self.settle();
        let after = match point {
            Point::After(change) => Some(change),
            Point::Turn { session, turn } => self.read(|conn| before_turn(conn, session, turn))?,
        };
        let Some(after) = after else { return Ok(Vec::new()) };
        let query =
            Query { agent: Some(agent.to_owned()), since: Some(Since::Change(after)), ..Query::default() };
        self.sealed_history(&query)
    }

    /// The changes of a path after one of them, moves of it included, newest first.
    pub fn later_changes(&self, at: &WsPath, after: ChangeId) -> Result<Vec<Change>, LedgerError> {
        let query = Query { path: Some(at.clone()), since: Some(Since::Change(after)), ..Query::default() };
        self.sealed_history(&query)
    }

    /// The changes after one of them in which something came, went or got another name, oldest first; unsealed ones
    /// among them.
    pub fn comings_and_goings(&self, after: ChangeId) -> Result<Vec<Change>, LedgerError> {
        self.settle();
        self.read(|conn| {
            let names = |change: &Change| change.files.iter().any(|file| file.op != ChangeOp::Edit);
            // First what is open: what is sealed meanwhile is found twice rather than not at all.
            let mut changes = rows::open_changes(conn)?;
            changes.retain(|change| change.id > after && names(change));
            let ids: Vec<i64> = conn
                .prepare_cached(
                    "SELECT DISTINCT f.change FROM file f CROSS JOIN change c ON c.id = f.change \
                     WHERE f.change > ?1 AND f.op <> ?2 AND c.outcome <> ?3",
                )?
                .query_map(
                    params![after.0.cast_signed(), rows::op(ChangeOp::Edit), rows::outcome(Outcome::Aborted)],
                    |row| row.get(0),
                )?
                .collect::<Sql<_>>()?;
            for id in ids {
                changes.extend(one(conn, id.cast_unsigned())?);
            }
            changes.sort_by_key(|change| change.id);
            changes.dedup_by_key(|change| change.id);
            Ok(changes)
        })
    }

    fn sealed_history(&self, query: &Query) -> Result<Vec<Change>, LedgerError> {
        let mut changes = self.history(query)?;
        changes.retain(|change| change.outcome != Outcome::Open);
        Ok(changes)
    }

    /// Where the file or directory is now that stood at `at` right after the change `since`, by the moves that history
    /// knows of, those of directories above it too.
    pub fn present_path(&self, at: &WsPath, since: ChangeId) -> Result<Whereabouts, LedgerError> {
        self.settle();
        self.read(|conn| {
            let mut now = Whereabouts { at: at.clone(), gone: None };
            let mut after = since.0;
            while let Some(change) = next_event(conn, &now.at, after)? {
                now.follow(&change);
                after = change.id.0;
            }
            Ok(now)
        })
    }
}

impl Whereabouts {
    /// What a change did to it.
    fn follow(&mut self, change: &Change) {
        // What stands where a file was that is gone is another one; the directory is the same.
        let ours = |file: &&ChangeFile| self.gone.is_none() || file.from.as_ref() != Some(&self.at);
        let away = change.files.iter().filter(ours);
        let away = away.filter_map(|file| Some((file, carried(change, file, &self.at)?)));
        if let Some((_, to)) = away.max_by_key(|(file, _)| depth(file)) {
            self.at = to;
            return;
        }
        for file in change.files.iter().filter(|file| file.at == self.at) {
            match file.op {
                ChangeOp::Delete | ChangeOp::RemoveDir | ChangeOp::Move => {
                    self.gone = self.gone.or(Some(change.id))
                }
                ChangeOp::Create | ChangeOp::MakeDir => self.gone = None,
                ChangeOp::Edit => {}
            }
        }
    }
}

fn depth(file: &ChangeFile) -> usize {
    file.from.as_ref().map_or(0, |from| from.path.as_bytes().len())
}

/// Where a file of a change took what stood at `at`, itself or with its directory. A patch renames by a creation and a
/// deletion.
fn carried(change: &Change, file: &ChangeFile, at: &WsPath) -> Option<WsPath> {
    let from = file.from.as_ref().filter(|from| at.is_within(from))?;
    let deleted = || change.files.iter().any(|other| other.op == ChangeOp::Delete && other.at == *from);
    let moved = file.op == ChangeOp::Move || file.op == ChangeOp::Create && deleted();
    let below = at.path.components().skip(from.path.components().count());
    moved.then(|| below.fold(file.at.clone(), |dir, name| dir.join(name)))
}

/// The change before the first one of a turn or a later one of its session; `None` where there is none.
fn before_turn(conn: &Connection, session: SessionId, turn: u32) -> Sql<Option<ChangeId>> {
    let first: Option<i64> = conn
        .prepare_cached("SELECT min(id) FROM change WHERE session = ?1 AND turn >= ?2")?
        .query_row(params![session.0.cast_signed(), turn], |row| row.get(0))?;
    Ok(first.map(|first| ChangeId(first.cast_unsigned().saturating_sub(1))))
}

/// The next change after one that may have taken away, brought back or moved what stands at `at`.
fn next_event(conn: &Connection, at: &WsPath, after: u64) -> Sql<Option<Change>> {
    let mut values: Vec<Value> = vec![
        at.folder.0.into(),
        after.cast_signed().into(),
        rows::outcome(Outcome::Sealed).into(),
        rows::op(ChangeOp::Edit).into(),
        at.path.as_bytes().to_vec().into(),
    ];
    let above = std::iter::successors(at.parent(), WsPath::parent).filter(|dir| !dir.path.is_root());
    values.extend(above.map(|dir| Value::from(dir.path.as_bytes().to_vec())));
    let places: Vec<String> = (5..=values.len()).map(|number| format!("?{number}")).collect();
    let first: Option<i64> = conn
        .prepare_cached(&format!(
            "SELECT min(id) FROM ( \
                 SELECT min(c.id) AS id FROM path p CROSS JOIN file f ON f.origin = p.id AND f.change > ?2 \
                     CROSS JOIN change c ON c.id = f.change \
                     WHERE p.folder = ?1 AND p.bytes IN ({}) AND c.outcome = ?3 \
                 UNION ALL SELECT min(c.id) FROM path p CROSS JOIN file f ON f.path = p.id AND f.change > ?2 \
                     CROSS JOIN change c ON c.id = f.change \
                     WHERE p.folder = ?1 AND p.bytes = ?5 AND f.op <> ?4 AND c.outcome = ?3)",
            places.join(", ")
        ))?
        .query_row(params_from_iter(values), |row| row.get(0))?;
    first.map_or(Ok(None), |first| one(conn, first.cast_unsigned()))
}
