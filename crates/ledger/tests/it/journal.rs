//! The journal: in order, chained, masked, and any tampering is found.

use cotenant_ledger::{JournalEntry, JournalReport, commit, verify_export};
use cotenant_model::{Digest, Millis};
use proptest::prelude::*;

use crate::Folder;

/// A folder whose journal has `count` entries.
fn written(count: u64) -> Folder {
    let folder = Folder::new();
    let ledger = folder.open();
    for number in 0..count {
        commit::journal(&ledger, Millis(number), "call", format!("{{\"n\":{number}}}").as_bytes());
    }
    drop(ledger);
    folder
}

fn tamper(folder: &Folder, sql: &str) {
    let conn = rusqlite::Connection::open(folder.state().join("ledger.db")).unwrap();
    assert!(conn.execute(sql, []).unwrap() > 0, "{sql}");
    conn.close().unwrap();
}

#[test]
fn entries_come_back_in_order_over_restarts() {
    let folder = written(200);
    let ledger = folder.open();
    commit::journal(&ledger, Millis(200), "decision", b"\xff\x00 not text");
    let entries = ledger.journal_entries(0, usize::MAX).unwrap();
    assert_eq!(entries.len(), 201);
    for (index, entry) in entries.iter().enumerate().take(200) {
        assert_eq!((entry.seq, entry.time), (index as u64 + 1, Millis(index as u64)));
        assert_eq!(entry.body, format!("{{\"n\":{index}}}").into_bytes());
    }
    assert_eq!((&*entries[200].kind, &*entries[200].body), ("decision", &b"\xff\x00 not text"[..]));
    assert_eq!(ledger.journal_entries(199, 1).unwrap(), entries[199..200]);
    let report = ledger.verify_journal().unwrap();
    assert_eq!(report, JournalReport { entries: 201, broken_at: None, head: Some(entries[200].hash) });
}

#[test]
fn an_empty_journal_is_whole() {
    let folder = Folder::new();
    let ledger = folder.open();
    assert_eq!(ledger.verify_journal(), Ok(JournalReport::default()));
    assert_eq!(verify_export([]), JournalReport::default());
}

#[test]
fn the_hash_is_the_one_documented() {
    let folder = written(2);
    let entries = folder.open().journal_entries(0, 2).unwrap();
    let mut covered = entries[0].hash.as_bytes().to_vec();
    covered.extend(1_u64.to_le_bytes());
    covered.extend(4_u32.to_le_bytes());
    covered.extend(b"call{\"n\":1}");
    assert_eq!(entries[1].hash, Digest::of(&covered));
}

#[test]
fn tampering_with_the_database_is_found() {
    for (sql, broken_at) in [
        ("UPDATE journal SET body = 'x' WHERE seq = 5", 5),
        ("UPDATE journal SET time = 0 WHERE seq = 7", 7),
        ("UPDATE journal SET kind = 'other' WHERE seq = 3", 3),
        ("UPDATE journal SET hash = zeroblob(32) WHERE seq = 4", 4),
        ("DELETE FROM journal WHERE seq = 6", 7),
        ("DELETE FROM journal WHERE seq = 1", 2),
        ("DELETE FROM journal WHERE seq < 4", 4),
    ] {
        let folder = written(10);
        tamper(&folder, sql);
        assert_eq!(folder.open().verify_journal().unwrap().broken_at, Some(broken_at), "{sql}");
    }
}

#[test]
fn a_cut_end_is_found_with_a_head_kept_elsewhere() {
    let folder = written(10);
    let kept = folder.open().verify_journal().unwrap().head;
    tamper(&folder, "DELETE FROM journal WHERE seq = 10");
    let report = folder.open().verify_journal().unwrap();
    assert_eq!((report.broken_at, report.entries), (None, 9));
    assert_ne!(report.head, kept);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn an_export_that_was_changed_anywhere_is_found(
        at in 0_usize..12, what in 0_u8..5, from in 0_usize..6, bit in 0_u8..8,
    ) {
        thread_local!(static ENTRIES: Vec<JournalEntry> = {
            let folder = written(12);
            folder.open().journal_entries(0, 99).unwrap()
        });
        let mut entries = ENTRIES.with(Clone::clone).split_off(from);
        let good = verify_export(entries.clone());
        prop_assert_eq!(good.broken_at, None);
        prop_assert_eq!(good.entries as usize, 12 - from);
        // What is behind the first entry of a part is proved; the first one is taken on trust.
        let at = 1 + at % (entries.len() - 1);
        let entry = &mut entries[at];
        match what {
            0 => entry.body[0] ^= 1 << bit,
            1 => entry.time.0 ^= 1 << bit,
            2 => entry.kind.push('x'),
            3 => entry.seq += 1,
            _ => { entries.remove(at); }
        }
        let report = verify_export(entries.clone());
        let cut_at_end = what == 4 && at == entries.len();
        prop_assert_eq!(report.broken_at.is_some(), !cut_at_end);
        prop_assert!(report.head != good.head);
    }
}

#[test]
fn secrets_are_masked_before_they_are_hashed() {
    let folder = Folder::new();
    let ledger = folder.open();
    let body = br#"{"command":"curl -H 'Authorization: Bearer abcdefghijkl' -d password=hunter2","n":1}"#;
    commit::journal(&ledger, Millis(1), "call", body);
    drop(ledger);
    let ledger = folder.open();
    let entry = &ledger.journal_entries(0, 1).unwrap()[0];
    let text = String::from_utf8(entry.body.clone()).unwrap();
    assert!(!text.contains("hunter2") && !text.contains("abcdefghijkl"), "{text}");
    assert!(text.starts_with(r#"{"command":"curl -H '"#) && text.ends_with(r#"","n":1}"#), "{text}");
    assert_eq!(ledger.verify_journal().unwrap().broken_at, None);
    let database = std::fs::read(folder.state().join("ledger.db")).unwrap();
    assert!(!database.windows(7).any(|window| window == b"hunter2"));
}

#[test]
fn many_threads_write_one_chain() {
    let folder = Folder::new();
    let ledger = folder.open();
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let ledger = &ledger;
            scope.spawn(move || {
                (0..50).for_each(|number| {
                    commit::journal(ledger, Millis(number), "call", &thread.to_le_bytes())
                });
            });
        }
    });
    assert_eq!(ledger.verify_journal().unwrap().entries, 400);
    assert_eq!(ledger.verify_journal().unwrap().broken_at, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn masking_keeps_json_in_one_piece(
        words in prop::collection::vec(
            prop::sample::select([
                "password", "=", ":", " ", "\\\"", "\"", "'", "token", "sk-abcdefghijklmnopqrst", "x", ",", "{", "}",
                "Bearer ", "abcdefghijklmnop", "\\\\", "\\n", "ä", "://u:", "@", "-----BEGIN PRIVATE KEY-----",
            ].as_slice()),
            0..24,
        ),
    ) {
        // The text as a string of JSON, and that JSON as a string once more.
        let text = words.concat();
        let once = serde_json::json!({"a": text, "password": "p", "b": 1}).to_string();
        let twice = serde_json::json!({"a": once, "b": 1}).to_string();
        for json in [once, twice] {
            let masked = cotenant_ledger::mask(&json);
            let parsed: serde_json::Value = match serde_json::from_str(&masked) {
                Ok(parsed) => parsed,
                Err(error) => return Err(TestCaseError::fail(format!("{json} became {masked}: {error}"))),
            };
            prop_assert_eq!(&parsed["b"], 1, "{} became {}", json, masked);
            prop_assert!(parsed["password"].is_null() || parsed["password"] == "[masked]", "{}", masked);
        }
    }
}
