//! What is written is read back; one owner; many writers; ids that never come again.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;

use cotenant_ledger::{Idempotency, Intent, Ledger, LedgerError, LedgerOptions, Medium, commit};
use cotenant_model::{
    Change, ChangeFile, ChangeId, ChangeKind, ChangeOp, Code, Digest, Durability, Millis, Outcome, RelPath,
    WsPath,
};

use crate::{Folder, at, change, edit, in_folder, intent, land};

/// Every field with a value that could get lost.
fn rich(id: ChangeId) -> Change {
    let raw = WsPath::root(RelPath::from_bytes(b"src/\xff\xfe'\n.rs").unwrap());
    let made = |at, op| ChangeFile { at, op, pre_mode: 0o42_775, ..ChangeFile::default() };
    Change {
        undoes: Some(ChangeId(7)),
        turn: u32::MAX,
        files: vec![
            made(in_folder(2, "new"), ChangeOp::MakeDir),
            ChangeFile { at: raw, ..edit("x", b"old", b"new") },
            ChangeFile { pre: None, op: ChangeOp::Create, ..edit("made.txt", b"", b"made") },
            ChangeFile { post: None, op: ChangeOp::Delete, ..edit("gone.txt", b"gone", b"") },
            made(at("dir"), ChangeOp::RemoveDir),
            ChangeFile {
                op: ChangeOp::Move,
                from: Some(in_folder(1, "from\nhere")),
                post_mode: 0o120_777,
                ..edit("to", b"over", b"moved")
            },
        ],
        ..change(id, Vec::new())
    }
}

#[test]
fn an_intent_is_read_back_whole_until_it_is_sealed() {
    let folder = Folder::new();
    let ledger = folder.open();
    let id = commit::next_change(&ledger);
    let mut intended = intent(rich(id));
    intended.paths[1].inline_pre = Some(b"old".to_vec());
    intended.idempotency = Some(Idempotency {
        agent: "codex".into(),
        tool: "edit_file".into(),
        key: "k 1".to_owned(),
        args: Digest::of(b"args"),
    });
    commit::intend(&ledger, intended.clone()).wait().unwrap();
    commit::note_made_dir(&ledger, id, 0, u64::MAX - 1);
    assert_eq!(ledger.change(id), Ok(Some(rich(id))), "open changes are visible");
    drop(ledger);

    intended.paths[0].made_ino = Some(u64::MAX - 1);
    let (ledger, unsealed) = folder.try_open(Durability::Full).unwrap();
    assert_eq!(unsealed, [intended]);
    commit::seal(&ledger, id, Outcome::Overtaken, None);
    assert_eq!(ledger.change(id), Ok(Some(Change { outcome: Outcome::Overtaken, ..rich(id) })));
    assert_eq!(
        ledger.blob(Digest::of(b"old")),
        Ok(Some(b"old".to_vec())),
        "the inline image moved to the store"
    );
    drop(ledger);

    let ledger = folder.open();
    assert_eq!(ledger.change(id).unwrap().unwrap().outcome, Outcome::Overtaken);
    assert!(commit::next_change(&ledger) > id);
}

#[test]
fn a_second_seal_and_a_seal_of_nothing_change_nothing() {
    let folder = Folder::new();
    let ledger = folder.open();
    let id = land(&ledger, vec![edit("a", b"1", b"2")]);
    commit::seal(&ledger, id, Outcome::Aborted, None);
    commit::seal(&ledger, ChangeId(999), Outcome::Sealed, None);
    assert_eq!(ledger.change(id).unwrap().unwrap().outcome, Outcome::Sealed);
    assert_eq!(ledger.change(ChangeId(999)), Ok(None));
}

#[test]
fn an_observed_change_gets_an_id_and_stands() {
    let folder = Folder::new();
    let ledger = folder.open();
    let first = land(&ledger, vec![edit("a", b"1", b"2")]);
    let found = Change {
        agent: None,
        session: None,
        task: None,
        tool: "".into(),
        ..change(ChangeId(0), vec![edit("a", b"2", b"3")])
    };
    let id = commit::observe(&ledger, found.clone()).unwrap();
    assert!(id > first);
    let stands = Change { id, kind: ChangeKind::Observed, outcome: Outcome::Sealed, ..found };
    assert_eq!(ledger.newest(&at("a")), Some(stands));
}

#[test]
fn the_newest_change_is_of_exactly_the_path_and_stands() {
    let folder = Folder::new();
    let ledger = folder.open();
    let id = land(&ledger, vec![edit("d/a", b"1", b"2"), edit("d/b", b"1", b"2")]);
    let aborted = commit::next_change(&ledger);
    commit::intend(&ledger, intent(change(aborted, vec![edit("d/a", b"2", b"3")]))).wait().unwrap();
    commit::seal(&ledger, aborted, Outcome::Aborted, None);
    let open = commit::next_change(&ledger);
    commit::intend(&ledger, intent(change(open, vec![edit("d/a", b"2", b"3")]))).wait().unwrap();
    assert_eq!(ledger.newest(&at("d/a")).unwrap().id, id);
    assert_eq!(ledger.newest(&at("d")), None);
    assert_eq!(ledger.newest(&in_folder(1, "d/a")), None);
}

#[test]
fn one_process_owns_a_state_folder() {
    let folder = Folder::new();
    let ledger = folder.open();
    let refused = folder.try_open(Durability::Full).unwrap_err();
    assert_eq!(refused, LedgerError::Locked(folder.state()));
    assert_eq!(refused.refusal().code, Code::IoError);
    let clone = ledger.clone();
    drop(ledger);
    assert!(folder.try_open(Durability::Full).is_err(), "a clone still owns it");
    drop(clone);
    folder.open();
}

#[test]
fn a_later_schema_is_left_alone() {
    let folder = Folder::new();
    drop(folder.open());
    let conn = rusqlite::Connection::open(folder.state().join("ledger.db")).unwrap();
    conn.pragma_update(None, "user_version", 4711).unwrap();
    conn.close().unwrap();
    let refused = folder.try_open(Durability::Full).unwrap_err();
    assert!(matches!(refused, LedgerError::Newer { found: 4711, .. }), "{refused}");
}

#[test]
fn a_log_whose_database_is_gone_is_not_replayed() {
    let folder = Folder::new();
    let ledger = folder.open();
    let id = land(&ledger, vec![edit("a", b"1", b"2")]);
    commit::flush(&ledger).unwrap();
    let wal = std::fs::read(folder.state().join("ledger.db-wal")).unwrap();
    assert!(!wal.is_empty());
    drop(ledger);
    std::fs::remove_file(folder.state().join("ledger.db")).unwrap();
    std::fs::write(folder.state().join("ledger.db-wal"), wal).unwrap();
    assert_eq!(folder.open().change(id), Ok(None));
}

#[test]
fn everything_is_for_the_owner_alone() {
    let folder = Folder::new();
    let ledger = folder.open();
    assert_eq!(ledger.medium(), Medium::Disk);
    commit::store(&ledger, &[7; 100_000]).unwrap();
    land(&ledger, vec![edit("a", b"1", b"2")]);
    commit::flush(&ledger).unwrap();
    let mut seen = 0;
    let mut folders = vec![folder.state()];
    while let Some(dir) = folders.pop() {
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700, "{dir:?}");
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            seen += 1;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
        }
    }
    assert!(seen >= 5, "database, log, index, ballast, lock, image: {seen}");
}

#[test]
fn many_sessions_intend_at_once_and_none_is_lost() {
    let folder = Folder::new();
    let ledger = folder.open();
    let workers: Vec<_> = (0..16)
        .map(|worker| {
            let ledger = ledger.clone();
            std::thread::spawn(move || {
                (0..20)
                    .map(|step| {
                        let path = format!("w{worker}/f{step}");
                        let id = land(&ledger, vec![edit(&path, b"1", b"2")]);
                        // Its own seal is seen at once.
                        assert_eq!(ledger.newest(&at(&path)).unwrap().id, id);
                        id
                    })
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let ids: HashSet<ChangeId> = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
    assert_eq!(ids.len(), 320);
    drop(ledger);
    let ledger = folder.open();
    assert!(ids.iter().all(|id| ledger.change(*id).unwrap().unwrap().outcome == Outcome::Sealed));
}

#[test]
fn tickets_may_be_waited_for_in_any_order_or_not_at_all() {
    let folder = Folder::new();
    let ledger = folder.open();
    let mut tickets = Vec::new();
    for step in 0..50 {
        let id = commit::next_change(&ledger);
        let path = format!("f{step}");
        tickets.push((id, commit::intend(&ledger, intent(change(id, vec![edit(&path, b"1", b"2")])))));
    }
    drop(tickets.pop());
    for (_, ticket) in tickets.into_iter().rev() {
        ticket.wait().unwrap();
    }
    drop(ledger);
    let (_ledger, unsealed) = folder.try_open(Durability::Full).unwrap();
    assert_eq!(unsealed.len(), 50);
    assert!(unsealed.is_sorted_by_key(|intent| intent.change.id));
}

#[test]
fn ids_never_come_again() {
    let folder = Folder::new();
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let ledger = folder.open();
        for _ in 0..1500 {
            assert!(seen.insert(ledger.next_id("session")));
        }
        assert!(ledger.next_id("approval") >= 1);
    }
    assert!(seen.contains(&1));
}

#[test]
fn each_durability_keeps_what_it_says_through_a_restart() {
    for durability in [Durability::Full, Durability::Batch, Durability::Fast] {
        let folder = Folder::new();
        let (ledger, _) = folder.try_open(durability).unwrap();
        assert_eq!(ledger.durability(), durability);
        let id = land(&ledger, vec![edit("a", b"1", b"2")]);
        let digest = commit::store(&ledger, &[1; 50_000]).unwrap();
        let small = commit::store(&ledger, b"small").unwrap();
        commit::sync_blobs(&ledger, &[digest, small]).unwrap();
        drop(ledger);
        let ledger = folder.open();
        assert!(ledger.change(id).unwrap().is_some());
        assert!(commit::has(&ledger, digest) && commit::has(&ledger, small));
    }
}

#[test]
fn the_time_of_a_change_is_the_one_given() {
    let folder = Folder::new();
    let ledger = folder.open();
    let id = commit::next_change(&ledger);
    let late = Change { time: Millis(1 << 60), ..change(id, vec![edit("a", b"1", b"2")]) };
    commit::intend(&ledger, intent(late)).wait().unwrap();
    assert_eq!(ledger.change(id).unwrap().unwrap().time, Millis(1 << 60));
}

#[test]
fn names_to_be_swept_outlive_the_seal() {
    let folder = Folder::new();
    let ledger = folder.open();
    let ids: Vec<ChangeId> =
        (0..3).map(|number| land(&ledger, vec![edit(&format!("f{number}"), b"1", b"2")])).collect();
    commit::swept(&ledger, ids[1]);
    let open = commit::next_change(&ledger);
    commit::intend(&ledger, intent(change(open, vec![edit("open", b"1", b"2")]))).wait().unwrap();
    commit::swept(&ledger, open);
    drop(ledger);

    let (ledger, unsealed) = folder.try_open(Durability::Full).unwrap();
    assert_eq!(unsealed[0].paths.len(), 1, "an unsealed intent keeps its names, whatever was said of it");
    let unswept = commit::unswept(&ledger).unwrap();
    let told: Vec<_> = unswept.iter().map(|intent| (intent.change.id, intent.change.outcome)).collect();
    assert_eq!(told, [(ids[0], Outcome::Sealed), (ids[2], Outcome::Sealed)]);
    assert_eq!(unswept[0].paths, intent(change(ids[0], vec![edit("f0", b"1", b"2")])).paths);
    for id in [ids[0], ids[2]] {
        commit::swept(&ledger, id);
    }
    assert_eq!(commit::unswept(&ledger), Ok(Vec::new()));
    assert!(ledger.change(ids[0]).unwrap().is_some(), "history does not depend on it");
}

#[test]
fn a_sealed_change_holds_no_image_for_its_names() {
    let folder = Folder::new();
    let ledger = folder.open();
    let id = commit::next_change(&ledger);
    let mut intended = intent(change(id, vec![edit("a", b"before", b"after")]));
    intended.paths[0].inline_pre = Some(b"before".to_vec());
    commit::intend(&ledger, intended).wait().unwrap();
    commit::seal(&ledger, id, Outcome::Sealed, None);
    assert_eq!(commit::unswept(&ledger).unwrap()[0].paths[0].inline_pre, None);
    assert_eq!(ledger.blob(Digest::of(b"before")), Ok(Some(b"before".to_vec())));
}

#[test]
fn a_database_that_never_reached_the_disk_is_made_anew() {
    let folder = Folder::new();
    drop(folder.open());
    let mark = folder.state().join("making");
    assert!(!mark.exists(), "the writing thread brought it there");
    // As a power cut during the first start may leave it.
    for torn in [&b""[..], b"SQLite format 3\0 and then nothing"] {
        std::fs::write(&mark, b"").unwrap();
        std::fs::write(folder.state().join("ledger.db"), torn).unwrap();
        let ledger = folder.open();
        let id = land(&ledger, vec![edit("a", b"1", b"2")]);
        drop(ledger);
        assert!(!mark.exists());
        assert!(folder.open().change(id).unwrap().is_some(), "what was promised since stays");
    }
}

#[test]
fn a_database_that_is_none_is_refused_and_kept() {
    let folder = Folder::new();
    drop(folder.open());
    let database = folder.state().join("ledger.db");
    std::fs::write(&database, [b'x'; 8192]).unwrap();
    let refused = folder.try_open(Durability::Full).unwrap_err();
    assert!(matches!(refused, LedgerError::Database(_)), "{refused:?}");
    assert_eq!(std::fs::read(&database).unwrap(), [b'x'; 8192], "history is not thrown away for a new start");
}

#[test]
fn the_log_is_copied_when_nobody_writes() {
    let folder = Folder::new();
    let ledger = folder.open();
    for number in 0..20 {
        land(&ledger, vec![edit(&format!("f{number}"), b"1", b"2")]);
    }
    commit::flush(&ledger).unwrap();
    // (busy, pages in the log, pages copied): asked for without copying anything.
    let conn = rusqlite::Connection::open(folder.state().join("ledger.db")).unwrap();
    let state = || -> (i64, i64) {
        conn.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok((row.get(1)?, row.get(2)?))).unwrap()
    };
    assert!(state().0 > 0);
    while state().0 != state().1 {
        std::thread::yield_now();
    }
    assert_eq!(ledger.failure(), None);
}

#[test]
fn every_error_has_a_refusal_that_names_the_ledger() {
    let dir = std::path::PathBuf::from("/state");
    let all = [
        LedgerError::Locked(dir.clone()),
        LedgerError::Unsuitable { dir, kind: "NFS" },
        LedgerError::Newer { found: 9, known: 1 },
        LedgerError::OutOfSpace,
        LedgerError::Failed("flush failed".into()),
        LedgerError::Io { what: "read /state/blobs".into(), error: "denied".into() },
        LedgerError::Database("malformed".into()),
        LedgerError::Missing(Digest::of(b"")),
        LedgerError::Corrupt(Digest::of(b"")),
    ];
    for error in all {
        let refusal = error.refusal();
        let full = error == LedgerError::OutOfSpace;
        assert_eq!(refusal.code, if full { Code::OutOfSpace } else { Code::IoError }, "{error}");
        assert_eq!(refusal.get("what"), Some(&cotenant_model::FactValue::from("ledger")));
        assert!(refusal.message.contains(&error.to_string()), "{}", refusal.message);
        assert!(!refusal.next.is_empty());
    }
}

#[test]
fn reopening_a_healthy_ledger_loses_nothing() {
    let folder = Folder::new();
    let ledger = folder.open();
    let sealed = land(&ledger, vec![edit("a", b"1", b"2")]);
    let open = commit::next_change(&ledger);
    commit::intend(&ledger, intent(change(open, vec![edit("b", b"1", b"2")]))).wait().unwrap();
    commit::journal(&ledger, Millis(1), "call", b"one");
    let unsealed = ledger.reopen().unwrap();
    assert_eq!(unsealed.len(), 1);
    assert_eq!(ledger.change(sealed).unwrap().unwrap().outcome, Outcome::Sealed);
    commit::journal(&ledger, Millis(2), "call", b"two");
    assert_eq!(ledger.verify_journal().unwrap().entries, 2);
    assert_eq!(ledger.verify_journal().unwrap().broken_at, None);
    assert!(commit::next_change(&ledger) > open);
}

#[test]
fn a_plan_of_a_thousand_paths_is_one_intent() {
    let folder = Folder::new();
    let ledger = folder.open();
    let files: Vec<ChangeFile> =
        (0..1000).map(|number| edit(&format!("d{}/f{number:04}", number % 10), b"1", b"2")).collect();
    let id = land(&ledger, files.clone());
    assert_eq!(ledger.change(id).unwrap().unwrap().files, files);
    assert_eq!(ledger.newest(&at("d7/f0007")).unwrap().id, id);
}

#[test]
fn an_intent_at_fast_outlives_the_process_with_its_key() {
    let folder = Folder::new();
    let ledger = folder.open();
    let id = commit::next_change(&ledger);
    let key = Idempotency { agent: "a".into(), tool: "t".into(), key: "k".to_owned(), args: Digest::of(b"") };
    let keyed = Intent { idempotency: Some(key.clone()), ..intent(change(id, vec![edit("a", b"1", b"2")])) };
    commit::intend_at(&ledger, keyed, Durability::Fast).wait().unwrap();
    assert_eq!(ledger.recall(&key, Millis(1)).unwrap().unwrap().change, Some(id));
    drop(ledger);
    let (ledger, unsealed) =
        Ledger::open(&LedgerOptions { dir: folder.state(), durability: Durability::Full }).unwrap();
    assert_eq!(unsealed.iter().map(|intent| intent.change.id).collect::<Vec<_>>(), [id]);
    commit::store_at(&ledger, b"2", Durability::Full).unwrap();
    commit::remember(&ledger, &Idempotency { key: "other".to_owned(), ..key.clone() }, b"answer", Millis(1));
    // What was only told a moment ago is recalled all the same.
    let other = ledger.recall(&Idempotency { key: "other".to_owned(), ..key }, Millis(1)).unwrap().unwrap();
    assert_eq!(other.answer.as_deref(), Some(&b"answer"[..]));
}
