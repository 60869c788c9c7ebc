//! Where files went, and what was done since a point.

use std::collections::BTreeMap;

use cotenant_ledger::{Ledger, Point, Whereabouts, commit};
use cotenant_model::{
    Change, ChangeFile, ChangeId, ChangeOp, Digest, Durability, Outcome, SessionId, WsPath,
};
use proptest::prelude::*;

use crate::{Folder, at, change, edit, intent, land};

fn moved(from: &str, to: &str) -> ChangeFile {
    ChangeFile { op: ChangeOp::Move, from: Some(at(from)), pre: None, pre_mode: 0, ..edit(to, b"", b"x") }
}

fn made(path: &str) -> ChangeFile {
    ChangeFile { op: ChangeOp::Create, pre: None, pre_mode: 0, ..edit(path, b"", b"x") }
}

fn gone(path: &str) -> ChangeFile {
    ChangeFile { op: ChangeOp::Delete, post: None, post_mode: 0, ..edit(path, b"x", b"") }
}

fn found(ledger: &Ledger, path: &str, since: ChangeId) -> (String, Option<ChangeId>) {
    let Whereabouts { at, gone } = ledger.present_path(&crate::at(path), since).unwrap();
    (at.path.to_string(), gone)
}

fn here(path: &str) -> (String, Option<ChangeId>) {
    (path.to_owned(), None)
}

#[test]
fn a_file_is_followed_over_its_own_moves_and_those_of_its_directories() {
    let folder = Folder::new();
    let ledger = folder.open();
    let start = land(&ledger, vec![made("src/a/f.rs")]);
    assert_eq!(found(&ledger, "src/a/f.rs", start), here("src/a/f.rs"));
    land(&ledger, vec![moved("src/a/f.rs", "src/a/g.rs")]);
    land(&ledger, vec![moved("src/a", "src/b")]);
    let middle = land(&ledger, vec![edit("src/b/g.rs", b"x", b"y")]);
    land(&ledger, vec![moved("src", "lib")]);
    land(&ledger, vec![moved("lib/bc", "lib/other")]);
    assert_eq!(found(&ledger, "src/a/f.rs", start), here("lib/b/g.rs"));
    assert_eq!(found(&ledger, "src/b/g.rs", middle), here("lib/b/g.rs"));
    assert_eq!(found(&ledger, "src/a", start), here("lib/b"), "a directory, too");
    // What came to the old place is another file.
    let other = land(&ledger, vec![made("src/a/f.rs")]);
    assert_eq!(found(&ledger, "src/a/f.rs", other), here("src/a/f.rs"));
    assert_eq!(found(&ledger, "src/a/f.rs", start), here("lib/b/g.rs"));
}

#[test]
fn of_a_file_that_is_gone_the_last_place_is_known() {
    let folder = Folder::new();
    let ledger = folder.open();
    let start = land(&ledger, vec![made("a"), made("b")]);
    let over = land(&ledger, vec![ChangeFile { pre: Some(Digest::of(b"x")), ..moved("b", "a") }]);
    assert_eq!(found(&ledger, "a", start), ("a".to_owned(), Some(over)));
    assert_eq!(found(&ledger, "b", start), here("a"));
    // The one on top goes on; the one below does not go with it.
    land(&ledger, vec![moved("a", "d/c")]);
    assert_eq!(found(&ledger, "a", start), ("a".to_owned(), Some(over)));
    let deleted = land(&ledger, vec![gone("d/c")]);
    land(&ledger, vec![moved("d", "e")]);
    assert_eq!(found(&ledger, "b", start), ("e/c".to_owned(), Some(deleted)));
    land(&ledger, vec![made("e/c")]);
    assert_eq!(found(&ledger, "b", start), here("e/c"), "as an undo brings it back");
}

#[test]
fn a_patch_renames_by_a_creation_and_a_deletion() {
    let folder = Folder::new();
    let ledger = folder.open();
    let start = land(&ledger, vec![made("a"), made("b")]);
    let from = |from: &str, to: &str| ChangeFile { from: Some(at(from)), ..made(to) };
    land(&ledger, vec![from("a", "renamed"), gone("a"), from("b", "copied")]);
    assert_eq!(found(&ledger, "a", start), here("renamed"));
    assert_eq!(found(&ledger, "b", start), here("b"), "a copy leaves it where it was");
}

#[test]
fn what_did_not_land_moved_nothing() {
    let folder = Folder::new();
    let ledger = folder.open();
    let start = land(&ledger, vec![made("a")]);
    for outcome in [Outcome::Aborted, Outcome::Overtaken] {
        let id = commit::next_change(&ledger);
        commit::intend(&ledger, intent(change(id, vec![moved("a", "b")]))).wait().unwrap();
        commit::seal(&ledger, id, outcome, None);
    }
    assert_eq!(found(&ledger, "a", start), here("a"));
    land(&ledger, vec![moved("a", "c")]);
    assert_eq!(found(&ledger, "a", start), here("c"));
}

#[test]
fn two_that_change_places_are_told_apart() {
    let folder = Folder::new();
    let ledger = folder.open();
    let start = land(&ledger, vec![made("d/a"), made("d/b")]);
    // All at once: each `from` is said as it was before.
    land(&ledger, vec![moved("d/a", "d/b"), moved("d/b", "d/a"), moved("d/a/x", "y")]);
    assert_eq!((found(&ledger, "d/a", start), found(&ledger, "d/b", start)), (here("d/b"), here("d/a")));
    // The nearer move counts.
    land(&ledger, vec![moved("d", "e"), moved("d/a", "kept")]);
    assert_eq!((found(&ledger, "d/a", start), found(&ledger, "d/b", start)), (here("e/b"), here("kept")));
}

/// Lands an edit as one of the agent's, in a session and a turn.
fn as_agent(ledger: &Ledger, agent: &str, session: u64, turn: u32, path: &str) -> ChangeId {
    let id = commit::next_change(ledger);
    let made = change(id, vec![edit(path, b"1", b"2")]);
    let made = Change { agent: Some(agent.into()), session: Some(SessionId(session)), turn, ..made };
    commit::intend(ledger, intent(made)).wait().unwrap();
    commit::seal(ledger, id, Outcome::Sealed, None);
    id
}

#[test]
fn an_agents_changes_since_a_point_are_its_own_in_every_session() {
    let folder = Folder::new();
    let ledger = folder.open();
    let first = as_agent(&ledger, "a", 1, 1, "f");
    let second = as_agent(&ledger, "a", 1, 3, "f");
    as_agent(&ledger, "b", 2, 3, "f");
    let resumed = as_agent(&ledger, "a", 3, 1, "g");
    let open = commit::next_change(&ledger);
    commit::intend(
        &ledger,
        intent(Change { agent: Some("a".into()), ..change(open, vec![edit("h", b"1", b"2")]) }),
    )
    .wait()
    .unwrap();
    let since = |agent: &str, point: Point| {
        let changes = ledger.changes_since(agent, point).unwrap();
        assert!(changes.iter().all(|change| !change.files.is_empty()));
        changes.iter().map(|change| change.id).collect::<Vec<_>>()
    };
    let turn = |session: u64, turn: u32| Point::Turn { session: SessionId(session), turn };
    assert_eq!(since("a", turn(1, 1)), [resumed, second, first]);
    assert_eq!(since("a", turn(1, 2)), [resumed, second], "turn 2 made none: from the next one on");
    assert_eq!(since("a", turn(3, 1)), [resumed]);
    assert_eq!(since("a", turn(1, 4)), []);
    assert_eq!(since("a", Point::After(first)), [resumed, second]);
    assert_eq!(since("a", Point::After(ChangeId(0))), [resumed, second, first]);
    assert_eq!(since("nobody", Point::After(ChangeId(0))), []);
    let later = ledger.later_changes(&at("f"), first).unwrap();
    assert_eq!(later.iter().map(|change| change.id.0).collect::<Vec<_>>(), [3, 2]);
}

/// What happens in the property below: names are of two directories with two files each, and of what they become.
#[derive(Clone, Debug)]
enum Step {
    Make(u8),
    Delete(u8),
    Move(u8, u8),
    MoveDir(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0_u8..12).prop_map(Step::Make),
        1 => (0_u8..12).prop_map(Step::Delete),
        3 => (0_u8..12, 0_u8..12).prop_map(|(from, to)| Step::Move(from, to)),
        2 => (0_u8..4, 0_u8..4).prop_map(|(from, to)| Step::MoveDir(from, to)),
    ]
}

fn dir(number: u8) -> String {
    format!("d{number}")
}

fn file(number: u8) -> String {
    format!("{}/f{}", dir(number / 3), number % 3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn files_are_where_a_model_with_inodes_has_them(steps in prop::collection::vec(step(), 1..30)) {
        let folder = Folder::new();
        let (ledger, _) = folder.try_open(Durability::Fast).unwrap();
        // What stands where, by a number that is never given twice.
        let mut tree: BTreeMap<String, usize> = BTreeMap::new();
        let mut born: Vec<(ChangeId, String)> = Vec::new();
        for step in steps {
            match step {
                Step::Make(number) if !tree.contains_key(&file(number)) => {
                    let id = land(&ledger, vec![made(&file(number))]);
                    tree.insert(file(number), born.len());
                    born.push((id, file(number)));
                }
                Step::Delete(number) if tree.remove(&file(number)).is_some() => {
                    land(&ledger, vec![gone(&file(number))]);
                }
                Step::Move(from, to) if from != to => {
                    let Some(inode) = tree.remove(&file(from)) else { continue };
                    let over = tree.insert(file(to), inode).map(|_| Digest::of(b"x"));
                    land(&ledger, vec![ChangeFile { pre: over, ..moved(&file(from), &file(to)) }]);
                }
                Step::MoveDir(from, to) if !tree.keys().any(|path| path.starts_with(&dir(to))) => {
                    land(&ledger, vec![moved(&dir(from), &dir(to))]);
                    let name = |path: &String| path.strip_prefix(&dir(from)).map(|rest| format!("{}{rest}", dir(to)));
                    tree = tree.iter().map(|(path, inode)| (name(path).unwrap_or(path.clone()), *inode)).collect();
                }
                _ => {}
            }
        }
        for (inode, (id, path)) in born.iter().enumerate() {
            let found = ledger.present_path(&at(path), *id).unwrap();
            match tree.iter().find(|(_, stands)| **stands == inode) {
                Some((now, _)) => prop_assert_eq!(&found, &Whereabouts { at: at(now), gone: None }, "{} of {}", path, id),
                // What was made anew at its last place counts as it.
                None => prop_assert!(found.gone.is_some() || tree.contains_key(&found.at.path.to_string())),
            }
        }
    }
}

#[test]
fn the_folder_is_part_of_the_place() {
    let folder = Folder::new();
    let ledger = folder.open();
    let start = land(&ledger, vec![made("a")]);
    let elsewhere = |path: &str| -> WsPath { crate::in_folder(1, path) };
    land(&ledger, vec![ChangeFile { from: Some(elsewhere("a")), at: elsewhere("b"), ..moved("a", "b") }]);
    assert_eq!(found(&ledger, "a", start), here("a"));
    assert_eq!(ledger.present_path(&elsewhere("a"), start).unwrap().at, elsewhere("b"));
}
