//! The journal: what was called, decided and changed, each entry chained to the one before by its hash.
//!
//! `hash = BLAKE3(previous hash ‖ time ‖ length of kind ‖ kind ‖ body)`: time in milliseconds as 8 bytes and the length
//! as 4, both little-endian; before the first entry stand 32 zero bytes. A change, an insertion or a removal breaks
//! every later entry; that nothing was cut off at the end is proved by a head kept elsewhere.

use cotenant_model::{Digest, Millis};
use rusqlite::{Connection, Row, params};

use crate::mask::mask_bytes;
use crate::{Ledger, LedgerError, commit, rows};

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// Its number, from 1 without gaps.
    pub seq: u64,
    /// Wall clock.
    pub time: Millis,
    /// A word, such as `call`.
    pub kind: String,
    /// Opaque bytes, secrets masked.
    pub body: Vec<u8>,
    /// The hash of the chain up to here.
    pub hash: Digest,
}

/// The outcome of checking a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalReport {
    /// Entries checked, the broken one included.
    pub entries: u64,
    /// The number of the first entry that does not follow from the one before; nothing is checked behind it.
    pub broken_at: Option<u64>,
    /// The hash of the last good entry; `None` for an empty chain.
    pub head: Option<Digest>,
}

/// Checks an exported chain. Where it does not begin with entry 1, its first entry is taken on trust.
pub fn verify_export(entries: impl IntoIterator<Item = JournalEntry>) -> JournalReport {
    let mut check = Check::default();
    entries.into_iter().take_while(|entry| check.goes_on(entry)).for_each(drop);
    check.report
}

impl Ledger {
    /// Journal entries with a number over `after`, in order, at most `limit`.
    pub fn journal_entries(&self, after: u64, limit: usize) -> Result<Vec<JournalEntry>, LedgerError> {
        // Where it failed, the database says what stands.
        let _ = commit::flush(self);
        self.read(|conn| {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            conn.prepare_cached(&format!("{ENTRIES} LIMIT ?2"))?
                .query_map(params![after.cast_signed(), limit], entry)?
                .collect()
        })
    }

    /// Checks the whole chain of the journal.
    pub fn verify_journal(&self) -> Result<JournalReport, LedgerError> {
        // Where it failed, the database says what stands.
        let _ = commit::flush(self);
        self.read(|conn| {
            let mut check = Check { begins: true, ..Check::default() };
            for entry in conn.prepare_cached(ENTRIES)?.query_map([0], entry)? {
                if !check.goes_on(&entry?) {
                    break;
                }
            }
            Ok(check.report)
        })
    }
}

const ENTRIES: &str = "SELECT seq, time, kind, body, hash FROM journal WHERE seq > ?1 ORDER BY seq";

fn entry(row: &Row<'_>) -> rusqlite::Result<JournalEntry> {
    Ok(JournalEntry {
        seq: row.get::<_, i64>(0)?.cast_unsigned(),
        time: Millis(row.get::<_, i64>(1)?.cast_unsigned()),
        kind: row.get(2)?,
        // Whoever tampered may have changed the type, too.
        body: row.get_ref(3)?.as_bytes()?.to_vec(),
        hash: rows::digest(row, 4)?,
    })
}

/// A walk along a chain.
#[derive(Default)]
struct Check {
    report: JournalReport,
    next: Option<u64>,
    /// The chain must begin with entry 1.
    begins: bool,
}

impl Check {
    /// Whether the walk goes on after this entry.
    fn goes_on(&mut self, entry: &JournalEntry) -> bool {
        self.report.entries += 1;
        let trusted = self.next.is_none() && entry.seq != 1 && !self.begins;
        let follows = entry.seq == self.next.unwrap_or(1)
            && entry.hash == link(self.report.head, entry.time, &entry.kind, &entry.body);
        if !(trusted || follows) {
            self.report.broken_at = Some(entry.seq);
            return false;
        }
        self.report.head = Some(entry.hash);
        self.next = entry.seq.checked_add(1);
        true
    }
}

fn link(previous: Option<Digest>, time: Millis, kind: &str, body: &[u8]) -> Digest {
    let length = u32::try_from(kind.len()).unwrap_or(u32::MAX);
    let hash = Digest::stream(|sink| {
        sink(previous.map_or([0; 32], |hash| *hash.as_bytes()).as_slice());
        sink(&time.0.to_le_bytes());
        sink(&length.to_le_bytes());
        sink(kind.as_bytes());
        sink(body);
        Ok::<(), std::convert::Infallible>(())
    });
    match hash {
        Ok(hash) => hash,
    }
}

/// An entry that is not written yet.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) time: Millis,
    pub(crate) kind: String,
    pub(crate) body: Vec<u8>,
}

/// The end of the chain, as the writer knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chain {
    seq: u64,
    head: Option<Digest>,
}

impl Chain {
    /// The end of the chain on disk.
    pub(crate) fn load(conn: &Connection) -> rusqlite::Result<Chain> {
        let last = conn
            .prepare("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1")?
            .query_map([], |row| {
                Ok(Chain { seq: row.get::<_, i64>(0)?.cast_unsigned(), head: Some(rows::digest(row, 1)?) })
            })?
            .next()
            .transpose()?;
        Ok(last.unwrap_or_default())
    }

    /// Appends an entry, secrets masked. The chain counts as longer only once the transaction is committed: the
    /// caller keeps the old one until then.
    pub(crate) fn append(&mut self, conn: &Connection, draft: &Draft) -> rusqlite::Result<()> {
        let body = mask_bytes(&draft.body);
        let hash = link(self.head, draft.time, &draft.kind, &body);
        let seq = self.seq + 1;
        conn.prepare_cached("INSERT INTO journal VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
            seq.cast_signed(),
            draft.time.0.cast_signed(),
            draft.kind,
            body,
            hash.as_bytes().as_slice()
        ])?;
        *self = Chain { seq, head: Some(hash) };
        Ok(())
    }
}
