//! Reading history: changes by id, path, agent, session, turn and time, newest first.

use cotenant_model::{Change, ChangeFile, ChangeId, ChangeOp, Millis, Outcome, RelPath, SessionId, WsPath};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::{Ledger, LedgerError, rows};

type Sql<T> = rusqlite::Result<T>;

/// Which changes to list.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// On this path; a directory covers all below. A move is at both its ends, and where it is of a directory, at every
    /// path below those. `None`: everywhere.
    pub path: Option<WsPath>,
    /// By this agent.
    pub agent: Option<String>,
    /// In this session.
    pub session: Option<SessionId>,
    /// In this turn (of `session`, as turns are counted by session).
    pub turn: Option<u32>,
    /// From here on.
    pub since: Option<Since>,
    /// Also those that were aborted, of which nothing stands.
    pub aborted: bool,
    /// At most so many; 0 for no limit.
    pub limit: usize,
}

/// Where a listing ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// After this change, itself left out.
    Change(ChangeId),
    /// At or after this time, wall clock.
    Time(Millis),
}

impl Query {
    /// Whether a change is meant.
    pub fn admits(&self, change: &Change) -> bool {
        let wanted =
            |wanted: &Option<String>, is: Option<&str>| wanted.as_deref().is_none_or(|want| is == Some(want));
        wanted(&self.agent, change.agent.as_deref())
            && self.session.is_none_or(|session| change.session == Some(session))
            && self.turn.is_none_or(|turn| change.turn == turn)
            && (self.aborted || change.outcome != Outcome::Aborted)
            && match self.since {
                None => true,
                Some(Since::Change(id)) => change.id > id,
                Some(Since::Time(time)) => change.time >= time,
            }
            && self.path.as_ref().is_none_or(|path| change.files.iter().any(|file| touches(file, path)))
    }
}

/// Whether a path, or one below it, was changed or moved along.
fn touches(file: &ChangeFile, path: &WsPath) -> bool {
    let moved = file.from.as_ref().filter(|_| file.op == ChangeOp::Move);
    file.at.is_within(path)
        || moved.is_some_and(|from| from.is_within(path) || path.is_within(from) || path.is_within(&file.at))
}

impl Ledger {
    /// A change; an unsealed one has the outcome `Open`.
    pub fn change(&self, id: ChangeId) -> Result<Option<Change>, LedgerError> {
        self.settle();
        self.read(|conn| {
            let sealed = one(conn, id.0)?;
            if sealed.is_some() {
                return Ok(sealed);
            }
            Ok(rows::open_changes(conn)?.into_iter().find(|change| change.id == id))
        })
    }

    /// The changes that are under way, oldest first.
    pub fn unsealed(&self) -> Result<Vec<ChangeId>, LedgerError> {
        self.settle();
        Ok(self.read(rows::open_changes)?.into_iter().map(|change| change.id).collect())
    }

    /// Changes, newest first; unsealed ones among them.
    pub fn history(&self, query: &Query) -> Result<Vec<Change>, LedgerError> {
        self.settle();
        self.read(|conn| {
            let mut found: Vec<Change> = rows::open_changes(conn)?;
            found.retain(|change| query.admits(change));
            for id in sealed(conn, query)? {
                found.extend(one(conn, id)?);
            }
            found.sort_by_key(|change| std::cmp::Reverse(change.id));
            found.truncate(limit(query));
            Ok(found)
        })
    }

    /// The newest change of exactly this path of which something stands (sealed or overtaken), a move away from it too;
    /// `None` also where the ledger cannot be read.
    pub fn newest(&self, at: &WsPath) -> Option<Change> {
        self.settle();
        let newest = self.read(|conn| {
            let id = newest(conn, at, "path")?.max(newest(conn, at, "origin")?);
            id.map_or(Ok(None), |id| one(conn, id))
        });
        newest.ok().flatten()
    }
}

/// The newest change of what stands in this column: `path`, or of a move `origin`.
fn newest(conn: &Connection, at: &WsPath, column: &str) -> Sql<Option<u64>> {
    let moves = if column == "origin" { "AND f.op = 5" } else { "" };
    conn.prepare_cached(&format!(
        "SELECT c.id FROM path p JOIN file f ON f.{column} = p.id CROSS JOIN change c ON c.id = f.change \
         WHERE p.folder = ?1 AND p.bytes = ?2 AND c.outcome IN (?3, ?4) {moves} ORDER BY f.change DESC LIMIT 1",
    ))?
    .query_row(
        params![
            at.folder.0,
            at.path.as_bytes(),
            rows::outcome(Outcome::Sealed),
            rows::outcome(Outcome::Overtaken)
        ],
        |row| row.get::<_, i64>(0).map(i64::cast_unsigned),
    )
    .optional()
}

fn limit(query: &Query) -> usize {
    if query.limit == 0 { usize::MAX } else { query.limit }
}

/// A sealed change.
pub(crate) fn one(conn: &Connection, id: u64) -> Sql<Option<Change>> {
    let sql = format!("SELECT {}, outcome FROM change WHERE id = ?1", rows::CHANGE);
    let change =
        conn.prepare_cached(&sql)?.query_map([id.cast_signed()], rows::change)?.next().transpose()?;
    change
        .map(|mut change| {
            change.files = rows::files(conn, change.id)?;
            Ok(change)
        })
        .transpose()
}

/// The ids of sealed changes, newest first.
fn sealed(conn: &Connection, query: &Query) -> Sql<Vec<u64>> {
    let (source, mut values) = match &query.path {
        None => (Source::All, Vec::new()),
        Some(path) => source(conn, path)?,
    };
    let mut wanted = String::new();
    let mut want = |sql: &str, value: Value| {
        values.push(value);
        wanted.push_str(&sql.replace('?', &format!("?{}", values.len())));
    };
    if let Some(agent) = &query.agent {
        want(" AND c.agent = ?", agent.clone().into());
    }
    if let Some(session) = query.session {
        want(" AND c.session = ?", session.0.cast_signed().into());
    }
    if let Some(turn) = query.turn {
        want(" AND c.turn = ?", turn.into());
    }
    if !query.aborted {
        want(" AND c.outcome <> ?", rows::outcome(Outcome::Aborted).into());
    }
    match query.since {
        None => {}
        Some(Since::Change(id)) => want(" AND c.id > ?", id.0.cast_signed().into()),
        Some(Since::Time(time)) => want(" AND c.time >= ?", time.0.cast_signed().into()),
    }
    want(" ORDER BY 1 DESC LIMIT ?", i64::try_from(limit(query)).unwrap_or(i64::MAX).into());
    let sql = match source {
        Source::All => format!("SELECT c.id FROM change c WHERE 1{wanted}"),
        Source::Dense { places, above } => format!(
            "SELECT c.id FROM change c WHERE (EXISTS (SELECT 1 FROM file f CROSS JOIN path p ON p.id = f.path \
             WHERE f.change = c.id AND {places}) OR EXISTS (SELECT 1 FROM file f CROSS JOIN path p ON p.id = f.origin \
             WHERE f.change = c.id AND f.op = {MOVE} AND {places}) OR c.id IN ({above})){wanted}"
        ),
        Source::Single => format!(
            "SELECT DISTINCT f.change FROM file f CROSS JOIN change c ON c.id = f.change WHERE f.path = ?1{wanted}"
        ),
        Source::Sparse { above } => format!(
            "SELECT c.id FROM change c WHERE c.id IN (SELECT f.change FROM file f WHERE f.path IN ({NUMBERS}) \
             UNION ALL {MOVED_FROM} UNION ALL {above}){wanted}"
        ),
    };
    conn.prepare_cached(&sql)?
        .query_map(params_from_iter(values), |row| row.get::<_, i64>(0).map(i64::cast_unsigned))?
        .collect()
}

/// How the changes of a path are found without looking at all of them.
enum Source {
    All,
    /// Many changes are meant (those of the paths that fit the condition): from the newest change backwards.
    /// `above`: the changes that moved a directory it lies in.
    Dense {
        places: &'static str,
        above: String,
    },
    /// One path that was never moved, by its number: its changes stand in order in the index.
    Single,
    /// Few changes are meant, of a path and what lies below it: all of them, then sorted.
    Sparse {
        above: String,
    },
}

const FOLDER: &str = "p.folder = ?1";
/// The bytes of a path, and those between which stand the ones below it.
pub(crate) fn below(at: &WsPath) -> [Value; 3] {
    let end = |byte: u8| [at.path.as_bytes(), &[byte]].concat();
    [at.path.as_bytes().to_vec().into(), end(b'/').into(), end(b'0').into()]
}

/// A path and what lies below it: `0` follows `/`, so those are the names between `name/` and `name0`.
const BELOW: &str = "p.folder = ?1 AND (p.bytes = ?2 OR (p.bytes > ?3 AND p.bytes < ?4))";
/// The numbers of those paths; in two parts, because SQLite would look at a whole folder for the one with `OR`.
const NUMBERS: &str = "SELECT id FROM path WHERE folder = ?1 AND bytes = ?2 \
                       UNION ALL SELECT id FROM path WHERE folder = ?1 AND bytes > ?3 AND bytes < ?4";
/// The number of a move in `file.op`.
const MOVE: i64 = 5;
/// The changes that moved one of those paths away.
const MOVED_FROM: &str = "SELECT f.change FROM file f WHERE f.op = 5 AND f.origin IN ( \
                          SELECT id FROM path WHERE folder = ?1 AND bytes = ?2 \
                          UNION ALL SELECT id FROM path WHERE folder = ?1 AND bytes > ?3 AND bytes < ?4)";
/// From so many changes on, a directory's are many.
const MANY: i64 = 2000;

fn source(conn: &Connection, at: &WsPath) -> Sql<(Source, Vec<Value>)> {
    if at.path == RelPath::root() {
        let above = "SELECT 0".to_owned();
        return Ok((Source::Dense { places: FOLDER, above }, vec![at.folder.0.into()]));
    }
    let mut values: Vec<Value> = std::iter::once(at.folder.0.into()).chain(below(at)).collect();
    let numbers: Vec<i64> = conn
        .prepare_cached(&format!("{NUMBERS} LIMIT 2"))?
        .query_map(params_from_iter(values.iter()), |row| row.get(0))?
        .collect::<Sql<_>>()?;
    let (above, ancestors) = moved_above(at, values.len());
    if let [number] = numbers[..] {
        let moved = format!("SELECT 1 FROM ({MOVED_FROM} UNION ALL {above}) LIMIT 1");
        if !conn.prepare_cached(&moved)?.exists(params_from_iter(values.iter().chain(&ancestors)))? {
            return Ok((Source::Single, vec![number.into()]));
        }
    }
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM ({NUMBERS}) p CROSS JOIN file f ON f.path = p.id LIMIT {MANY})"
    );
    let touched: i64 =
        conn.prepare_cached(&sql)?.query_row(params_from_iter(values.iter()), |row| row.get(0))?;
    values.extend(ancestors);
    Ok((
        if touched < MANY { Source::Sparse { above } } else { Source::Dense { places: BELOW, above } },
        values,
    ))
}

/// The changes that moved a directory which `at` lies in, to or fro, and their values, numbered on from `used`.
fn moved_above(at: &WsPath, used: usize) -> (String, Vec<Value>) {
    let above = std::iter::successors(at.parent(), WsPath::parent).filter(|dir| !dir.path.is_root());
    let ancestors: Vec<Value> = above.map(|dir| dir.path.as_bytes().to_vec().into()).collect();
    let names: Vec<String> = (used + 1..=used + ancestors.len()).map(|number| format!("?{number}")).collect();
    let end = |column: &str| {
        format!(
            "SELECT f.change FROM path p CROSS JOIN file f ON f.{column} = p.id \
             WHERE f.op = {MOVE} AND p.folder = ?1 AND p.bytes IN ({})",
            names.join(", ")
        )
    };
    (format!("{} UNION ALL {}", end("path"), end("origin")), ancestors)
}
