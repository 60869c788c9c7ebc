//! What questions to a ledger of 100,000 changes cost, and what a large file that is edited often takes in the store.
//!
//! `cargo bench -p cotenant-ledger --bench history -- DIR [ROUNDS]` works below DIR and prints `CASE cotenant VALUE` for
//! every measurement: microseconds, and of `growth` the bytes kept over those of one image.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cotenant_ledger::{
    Intent, IntentPath, Keep, Ledger, LedgerOptions, Point, Query, TrashQuery, commit, prune,
};
use cotenant_model::{
    Change, ChangeFile, ChangeId, ChangeKind, ChangeOp, Digest, Durability, Millis, Outcome, RelPath,
    SessionId, WsPath,
};

/// Changes in the ledger.
const CHANGES: u64 = 100_000;
/// Versions of the large file, and its size in bytes.
const VERSIONS: u64 = 100;
const LARGE: usize = 1_000_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let base = PathBuf::from(words.first().map_or("target/bench-history", String::as_str));
    let rounds: usize = words.get(1).map_or(40, |rounds| rounds.parse().unwrap());
    let _ = fs::remove_dir_all(&base);
    fs::create_dir_all(&base).unwrap();
    growth(&base.join("growth"), rounds);
    questions(&base.join("questions"), rounds);
    fs::remove_dir_all(&base).unwrap();
}

fn open(dir: &Path) -> Ledger {
    Ledger::open(&LedgerOptions { dir: dir.to_owned(), durability: Durability::Fast }).unwrap().0
}

fn at(path: &str) -> WsPath {
    WsPath::root(RelPath::parse(path).unwrap())
}

fn time<T>(case: &str, rounds: usize, mut ask: impl FnMut() -> T) {
    for _ in 0..rounds {
        let start = Instant::now();
        let answer = ask();
        println!("{case} cotenant {}", start.elapsed().as_nanos() as f64 / 1e3);
        drop(answer);
    }
}

/// A change of one file; `pre` is its image before, where it is small.
fn land(ledger: &Ledger, file: ChangeFile, pre: Option<Vec<u8>>) -> commit::Ticket {
    let id = commit::next_change(ledger);
    let path = IntentPath {
        at: file.at.clone(),
        op: file.op,
        from: file.from.clone(),
        pre: file.pre,
        post: file.post,
        inline_pre: pre,
        ..IntentPath::default()
    };
    let change = Change {
        id,
        time: Millis(id.0 * 1000),
        kind: ChangeKind::Planned,
        outcome: Outcome::Open,
        agent: Some(["codex", "claude", "gemini"][id.0 as usize % 3].into()),
        session: Some(SessionId(id.0 / 500 + 1)),
        task: None,
        turn: (id.0 / 10 % 50) as u32,
        tool: "edit_file".into(),
        files: vec![file],
        undoes: None,
    };
    let ticket = commit::intend(ledger, Intent { change, paths: vec![path], idempotency: None });
    commit::seal(ledger, id, Outcome::Sealed, None);
    commit::swept(ledger, id);
    ticket
}

/// A file of a workspace of 5,000, by the number of the change.
fn some_file(number: u64) -> String {
    format!("src/module{:02}/file{:03}.rs", number % 100, number / 100 % 50)
}

fn questions(dir: &Path, rounds: usize) {
    let ledger = open(dir);
    let mut tickets = Vec::new();
    for number in 0..CHANGES {
        let pre = format!("image {number} {}", "x".repeat(200)).into_bytes();
        let path = some_file(number.wrapping_mul(7919));
        let file = ChangeFile {
            at: at(&path),
            pre: Some(Digest::of(&pre)),
            post: Some(Digest::of(&number.to_le_bytes())),
            ..ChangeFile::default()
        };
        let file = match number % 100 {
            0 => ChangeFile { op: ChangeOp::Delete, post: None, ..file },
            1 => ChangeFile { op: ChangeOp::Move, from: Some(at(&some_file(number))), pre: None, ..file },
            _ => ChangeFile { op: ChangeOp::Edit, ..file },
        };
        let pre = file.pre.map(|_| pre);
        tickets.push(land(&ledger, file, pre));
        if tickets.len() == 500 {
            tickets.drain(..).for_each(|ticket| ticket.wait().unwrap());
        }
    }
    drop(tickets);
    drop(ledger);
    let ledger = open(dir);
    let path = Query { path: Some(at(&some_file(7919))), limit: 50, ..Query::default() };
    time("history-path", rounds, || ledger.history(&path).unwrap());
    let below = Query { path: Some(at("src/module07")), limit: 50, ..Query::default() };
    time("history-folder", rounds, || ledger.history(&below).unwrap());
    let agent = Query { agent: Some("claude".to_owned()), limit: 50, ..Query::default() };
    time("history-agent", rounds, || ledger.history(&agent).unwrap());
    let session = Point::Turn { session: SessionId(CHANGES / 500), turn: 1 };
    time("changes-since", rounds, || ledger.changes_since("claude", session).unwrap());
    time("present-path", rounds, || ledger.present_path(&at(&some_file(7919)), ChangeId(1)).unwrap());
    let trash = TrashQuery { limit: 50, ..TrashQuery::default() };
    time("trash", rounds, || ledger.trash(&trash).unwrap());
    let trash = TrashQuery { path: Some(at("src/module07")), ..trash };
    time("trash-folder", rounds, || ledger.trash(&trash).unwrap());
    let image = ledger.trash(&TrashQuery { limit: 1, ..TrashQuery::default() }).unwrap()[0].digest;
    time("restore-small", rounds, || ledger.blob(image).unwrap().unwrap());
    let now = Millis(CHANGES * 1000);
    time("retention", 3, || prune(&ledger, now, Keep::default()).unwrap());
}

fn growth(dir: &Path, rounds: usize) {
    let ledger = open(dir);
    let mut state = 1_u64;
    let mut image: Vec<u8> = (0..LARGE)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        })
        .collect();
    let mut last = commit::store(&ledger, &image).unwrap();
    for number in 0..VERSIONS {
        let place = number as usize * 7919 % (LARGE - 10);
        image[place..place + 10].copy_from_slice(&[number as u8; 10]);
        let next = commit::store(&ledger, &image).unwrap();
        let edit = ChangeFile { at: at("large"), pre: Some(last), post: Some(next), ..ChangeFile::default() };
        land(&ledger, edit, None).wait().unwrap();
        last = next;
    }
    commit::flush(&ledger).unwrap();
    let start = Instant::now();
    while commit::pack(&ledger).unwrap() {}
    println!("pack-one cotenant {}", start.elapsed().as_nanos() as f64 / 1e3 / VERSIONS as f64);
    // The deepest of a chain is read over all of it.
    time("restore-1MB", rounds, || ledger.blob(last).unwrap().unwrap());
    drop(ledger);
    println!("growth cotenant {}", size(dir) as f64 / LARGE as f64);
}

/// Bytes of the images and of the database, without the reserve.
fn size(dir: &Path) -> u64 {
    fs::read_dir(dir)
        .unwrap()
        .flatten()
        .filter(|entry| {
            entry.file_name() != "ballast" && !entry.file_name().to_string_lossy().contains("-wal")
        })
        .map(
            |entry| if entry.path().is_dir() { size(&entry.path()) } else { entry.metadata().unwrap().len() },
        )
        .sum()
}
