//! The trash: what comes into it, how it is listed, and what it says of what is gone.

use std::collections::BTreeSet;

use cotenant_ledger::{Displaced, Keep, Ledger, Since, TrashItem, TrashQuery, commit, prune};
use cotenant_model::{
    Change, ChangeFile, ChangeId, ChangeKind, ChangeOp, Digest, FolderId, Millis, Outcome, RelPath, TrashId,
    WsPath,
};
use proptest::prelude::*;

use crate::{Folder, at, change, edit, in_folder, intent, land};

const DAY: u64 = 24 * 3600 * 1000;
const NOW: Millis = Millis(40_000 * DAY);

fn delete(path: &str, pre: &[u8]) -> ChangeFile {
    ChangeFile { op: ChangeOp::Delete, post: None, post_mode: 0, ..edit(path, pre, b"") }
}

fn create(path: &str, post: &[u8]) -> ChangeFile {
    ChangeFile { op: ChangeOp::Create, pre: None, pre_mode: 0, ..edit(path, b"", post) }
}

fn moved(from: &str, to: &str, over: Option<&[u8]>) -> ChangeFile {
    let file = edit(to, over.unwrap_or_default(), b"moved");
    ChangeFile { op: ChangeOp::Move, from: Some(at(from)), pre: over.map(Digest::of), ..file }
}

/// Lands a change by `tool`.
fn land_by(ledger: &Ledger, tool: &str, outcome: Outcome, files: Vec<ChangeFile>) -> ChangeId {
    let id = commit::next_change(ledger);
    let made = Change { tool: tool.into(), ..change(id, files) };
    commit::intend(ledger, intent(made)).wait().unwrap();
    commit::seal(ledger, id, outcome, None);
    id
}

fn all(ledger: &Ledger) -> Vec<TrashItem> {
    ledger.trash(&TrashQuery { expired: true, ..TrashQuery::default() }).unwrap()
}

#[test]
fn what_was_taken_away_comes_into_it_and_what_was_changed_does_not() {
    let link = |file: ChangeFile| ChangeFile { post_mode: 0o120_777, ..file };
    let renamed = ChangeFile { from: Some(at("old name")), ..create("new name", b"x") };
    let copied = ChangeFile { from: Some(at("original")), ..create("copy", b"x") };
    let dir = ChangeFile { at: at("dir"), op: ChangeOp::RemoveDir, ..ChangeFile::default() };
    let cases: [(&str, Vec<ChangeFile>, &[Displaced]); 13] = [
        ("delete_file", vec![delete("f", b"1")], &[Displaced::Deleted]),
        ("apply_patch", vec![delete("f", b"1"), edit("g", b"1", b"2")], &[Displaced::Deleted]),
        ("undo", vec![delete("f", b"1")], &[Displaced::Deleted]),
        ("write_file", vec![edit("f", b"1", b"2")], &[Displaced::Overwritten]),
        ("restore_file", vec![edit("f", b"1", b"2")], &[Displaced::Overwritten]),
        ("move_path", vec![moved("f", "g", Some(b"1"))], &[Displaced::MovedOver]),
        ("apply_patch", vec![link(edit("f", b"1", b"target"))], &[Displaced::Replaced]),
        ("edit_file", vec![edit("f", b"1", b"2")], &[]),
        ("undo", vec![edit("f", b"1", b"2")], &[]),
        ("write_file", vec![create("f", b"1")], &[]),
        ("move_path", vec![moved("f", "g", None)], &[]),
        ("apply_patch", vec![renamed, delete("old name", b"1")], &[]),
        ("apply_patch", vec![copied, delete("f", b"1"), dir], &[Displaced::Deleted]),
    ];
    for (tool, files, how) in cases {
        let folder = Folder::new();
        let ledger = folder.open();
        land_by(&ledger, tool, Outcome::Aborted, files.clone());
        assert_eq!(all(&ledger), [], "nothing of it stands");
        for outcome in [Outcome::Sealed, Outcome::Overtaken] {
            let id = land_by(&ledger, tool, outcome, files.clone());
            let found = all(&ledger);
            let ways: Vec<Displaced> =
                found.iter().filter(|item| item.change == id).map(|item| item.how).collect();
            assert_eq!(ways, how, "{tool} {files:?}");
        }
    }
}

#[test]
fn an_item_says_all_there_is_to_know() {
    let folder = Folder::new();
    let ledger = folder.open();
    let large = vec![7; 20_000];
    commit::store(&ledger, b"small").unwrap();
    commit::store(&ledger, &large).unwrap();
    let first = land(&ledger, vec![ChangeFile { pre_mode: 0o100_755, ..delete("a", b"small") }]);
    let found = Change { agent: None, tool: "".into(), ..change(ChangeId(0), vec![delete("b", &large)]) };
    let second = commit::observe(&ledger, found).unwrap();
    land(&ledger, vec![ChangeFile { pre_mode: 0o120_777, ..delete("c", b"not stored") }]);
    let items = all(&ledger);
    assert_eq!(items.iter().map(|item| item.id).collect::<Vec<_>>(), [TrashId(3), TrashId(2), TrashId(1)]);
    let wanted = TrashItem {
        id: TrashId(1),
        change: first,
        at: at("a"),
        digest: Digest::of(b"small"),
        size: Some(5),
        mode: 0o100_755,
        how: Displaced::Deleted,
        time: Millis(1_000_000 + first.0),
        by: Some("codex".into()),
        kind: ChangeKind::Planned,
        tool: "edit_file".into(),
        expired: None,
    };
    assert_eq!(items[2], wanted);
    assert_eq!(ledger.trash_item(TrashId(1)), Ok(Some(wanted)));
    let found = &items[1];
    assert_eq!((found.change, found.by.as_deref(), found.kind), (second, None, ChangeKind::Observed));
    assert_eq!(found.size, Some(20_000));
    assert_eq!((items[0].size, items[0].mode), (None, 0o120_777), "no image, no size");
    for unknown in [0, 4, u64::MAX] {
        assert_eq!(ledger.trash_item(TrashId(unknown)), Ok(None));
    }
    drop(ledger);
    assert_eq!(all(&folder.open()), items, "after a restart the numbers are the same");
}

#[test]
fn a_packed_image_has_its_own_size() {
    let folder = Folder::new();
    let ledger = folder.open();
    let (one, mut two) = (vec![1; 300_000], vec![1; 300_000]);
    two.extend_from_slice(b"and more");
    commit::store(&ledger, &one).unwrap();
    commit::store(&ledger, &two).unwrap();
    land(&ledger, vec![edit("a", &one, &two)]);
    while commit::pack(&ledger).unwrap() {}
    land(&ledger, vec![delete("a", &two)]);
    assert_eq!(all(&ledger)[0].size, Some(300_008));
}

#[test]
fn a_hundred_deletions_in_one_second_keep_their_order() {
    let folder = Folder::new();
    let (ledger, _) = folder.try_open(cotenant_model::Durability::Fast).unwrap();
    // The same file again and again, and many at once.
    for number in 0..50_u8 {
        land(&ledger, vec![delete("same", &[number])]);
    }
    land(&ledger, (0..50_u8).map(|number| delete(&format!("f{number:02}"), &[number])).collect());
    let items = all(&ledger);
    assert_eq!(items.len(), 100);
    assert!(items.windows(2).all(|pair| pair[0].id > pair[1].id && pair[0].change >= pair[1].change));
    let again: Vec<Digest> = items[50..].iter().rev().map(|item| item.digest).collect();
    assert_eq!(again, (0..50_u8).map(|number| Digest::of(&[number])).collect::<Vec<_>>(), "each its own");
    assert_eq!((&items[0].at, &items[49].at), (&at("f49"), &at("f00")));
    let mut pages = Vec::new();
    while let Some(page) = Some(TrashQuery {
        before: pages.last().map(|item: &TrashItem| item.id),
        limit: 7,
        ..TrashQuery::default()
    })
    .map(|query| ledger.trash(&query).unwrap())
    .filter(|page| !page.is_empty())
    {
        assert!(page.len() <= 7);
        pages.extend(page);
    }
    assert_eq!(pages, items, "page by page it is the same");
}

#[test]
fn names_of_every_kind_are_kept_apart() {
    let folder = Folder::new();
    let ledger = folder.open();
    let raw = |bytes: &[u8]| WsPath::root(RelPath::from_bytes(bytes).unwrap());
    let names =
        [&b"a__b"[..], b"a/b", b"a b", b"a\nb", b"a\xff", b"a\xff/b", b"a%_b", b"A__b", b"\xe2\x80\xae"];
    for (number, name) in names.iter().enumerate() {
        land(&ledger, vec![ChangeFile { at: raw(name), ..delete("x", &[number as u8]) }]);
    }
    for (number, name) in names.iter().enumerate() {
        let query = TrashQuery { path: Some(raw(name)), ..TrashQuery::default() };
        let found = ledger.trash(&query).unwrap();
        let exact: Vec<&TrashItem> = found.iter().filter(|item| item.at == raw(name)).collect();
        assert_eq!(exact.len(), 1, "{name:?}");
        assert_eq!(exact[0].digest, Digest::of(&[number as u8]));
        assert!(found.iter().all(|item| item.at.is_within(&raw(name))));
    }
}

#[test]
fn a_state_of_before_the_trash_gets_one() {
    let folder = Folder::new();
    let ledger = folder.open();
    land(&ledger, vec![delete("a", b"1")]);
    land_by(&ledger, "write_file", Outcome::Sealed, vec![edit("b", b"1", b"2")]);
    land_by(&ledger, "write_file", Outcome::Aborted, vec![delete("c", b"1")]);
    land(&ledger, vec![edit("d", b"1", b"2")]);
    let items = all(&ledger);
    assert_eq!(items.len(), 2);
    drop(ledger);
    let conn = rusqlite::Connection::open(folder.state().join("ledger.db")).unwrap();
    conn.execute_batch(
        "DROP TABLE trash; DROP INDEX image_base; ALTER TABLE image DROP COLUMN base; PRAGMA user_version = 2;",
    )
    .unwrap();
    conn.close().unwrap();
    assert_eq!(all(&folder.open()), items);
}

#[test]
fn what_has_expired_says_when() {
    let folder = Folder::new();
    let ledger = folder.open();
    commit::store(&ledger, b"1").unwrap();
    let aged = |days: u64, path: &str| {
        let id = commit::next_change(&ledger);
        let made = Change { time: Millis(NOW.0 - days * DAY), ..change(id, vec![delete(path, b"1")]) };
        commit::intend(&ledger, intent(made)).wait().unwrap();
        commit::seal(&ledger, id, Outcome::Sealed, None);
    };
    aged(31, "a");
    aged(29, "b");
    assert_eq!(prune(&ledger, NOW, Keep::default()).unwrap().expired, 1);
    assert_eq!(ledger.trash_item(TrashId(1)).unwrap().unwrap().expired, Some(NOW));
    let listed = |expired| {
        let items = ledger.trash(&TrashQuery { expired, ..TrashQuery::default() }).unwrap();
        items.iter().map(|item| item.id.0).collect::<Vec<_>>()
    };
    assert_eq!((listed(false), listed(true)), (vec![2], vec![2, 1]));
    assert_eq!(ledger.blob(Digest::of(b"1")), Ok(Some(b"1".to_vec())), "the other one needs it");
}

const PATHS: [&str; 6] = ["a", "a/b", "a/b/c", "a-b", "a0", "b"];

fn query() -> impl Strategy<Value = TrashQuery> {
    let since = prop_oneof![
        (0_u64..30).prop_map(|id| Since::Change(ChangeId(id))),
        (0_u64..30).prop_map(|id| Since::Time(Millis(1_000_000 + id))),
    ];
    let path = prop_oneof![
        (0_u16..2, prop::sample::select(PATHS.as_slice())).prop_map(|(folder, path)| in_folder(folder, path)),
        (0_u16..2).prop_map(|folder| WsPath { folder: FolderId(folder), path: RelPath::root() }),
    ];
    (
        prop::option::of(0_u16..2),
        prop::option::of(path),
        prop::option::of(since),
        prop::option::of(0_u64..40),
        0_usize..8,
    )
        .prop_map(|(folder, path, since, before, limit)| TrashQuery {
            folder: folder.map(FolderId),
            path,
            since,
            before: before.map(TrashId),
            expired: false,
            limit,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_listing_is_what_a_plain_list_says(
        changes in prop::collection::vec(prop::collection::btree_map((0_u16..2, 0_usize..6), 0_u8..3, 1..4), 0..20),
        queries in prop::collection::vec(query(), 1..20),
    ) {
        let folder = Folder::new();
        let (ledger, _) = folder.try_open(cotenant_model::Durability::Fast).unwrap();
        let mut list: Vec<(u64, ChangeId, WsPath)> = Vec::new();
        for files in changes {
            let files: Vec<ChangeFile> = files
                .into_iter()
                .map(|((folder, path), kind)| {
                    let file = if kind == 0 { edit("x", b"1", b"2") } else { delete("x", &[kind]) };
                    ChangeFile { at: in_folder(folder, PATHS[path]), ..file }
                })
                .collect();
            let id = land(&ledger, files.clone());
            for file in files.iter().filter(|file| file.op == ChangeOp::Delete) {
                list.push((list.len() as u64 + 1, id, file.at.clone()));
            }
        }
        for query in queries {
            let meant = |(number, id, at): &&(u64, ChangeId, WsPath)| {
                query.folder.is_none_or(|folder| at.folder == folder)
                    && query.path.as_ref().is_none_or(|path| at.is_within(path))
                    && query.before.is_none_or(|before| *number < before.0)
                    && match query.since {
                        None => true,
                        Some(Since::Change(since)) => *id > since,
                        Some(Since::Time(since)) => Millis(1_000_000 + id.0) >= since,
                    }
            };
            let mut wanted: Vec<u64> = list.iter().rev().filter(meant).map(|item| item.0).collect();
            if query.limit > 0 {
                wanted.truncate(query.limit);
            }
            let found: Vec<u64> = ledger.trash(&query).unwrap().iter().map(|item| item.id.0).collect();
            prop_assert_eq!(found, wanted, "{:?}", query);
        }
        prop_assert_eq!(list.iter().map(|item| item.0).collect::<BTreeSet<_>>().len(), list.len());
    }
}
