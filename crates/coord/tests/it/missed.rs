//! What a session did, and what it missed of others.

use cotenant_coord::{Coord, LandedFile, LineMap, Notice};
use cotenant_model::{ChangeId, Millis, SessionId};

use crate::kit::{A, B, all, at, digest, folders, pair, some};

const NOW: Millis = Millis(1000);

fn landed(coord: &mut Coord, by: Option<SessionId>, change: u64, path: &str, post: Option<&str>) {
    let file = LandedFile { at: at(path), post: post.map(digest), lines: vec![(4, 6)] };
    coord.landed(by, ChangeId(change), &[file], NOW);
}

fn told(coord: &mut Coord, id: SessionId) -> Vec<String> {
    coord.take_notices(id).iter().map(|notice| notice.text(&folders(), NOW)).collect()
}

fn unseen(coord: &Coord, id: SessionId, path: &str) -> Vec<u64> {
    let missed = coord.own_changes(id).and_then(|work| work.unseen.get(&at(path)));
    missed.into_iter().flatten().map(|unseen| unseen.change.0).collect()
}

#[test]
fn own_changes_are_listed_by_file() {
    let mut coord = pair();
    assert!(coord.own_changes(A).is_none());
    landed(&mut coord, Some(A), 118, "src/b.rs", Some("v1"));
    landed(&mut coord, Some(A), 121, "src/b.rs", Some("v2"));
    landed(&mut coord, Some(A), 123, "a", None);
    landed(&mut coord, Some(B), 124, "a", Some("v3"));
    let changed = &coord.own_changes(A).unwrap().changed;
    let listed: Vec<_> = changed.iter().map(|(at, changes)| (at.path.to_string(), changes.clone())).collect();
    assert_eq!(
        listed,
        [("a".to_owned(), vec![ChangeId(123)]), ("src/b.rs".to_owned(), vec![ChangeId(118), ChangeId(121)])]
    );
}

#[test]
fn others_who_saw_the_file_hear_of_it_and_nobody_else() {
    let mut coord = pair();
    coord.shown(B, &at("f"), some("v1", 9, &[(1, 2)]), NOW);
    landed(&mut coord, Some(A), 7, "f", Some("v2"));
    landed(&mut coord, Some(A), 8, "g", Some("v2"));
    assert_eq!(unseen(&coord, B, "f"), [7]);
    let work = coord.own_changes(B).unwrap();
    let missed = &work.unseen[&at("f")][0];
    assert_eq!((missed.by.as_deref(), missed.time), (Some("agent-a"), NOW));
    assert_eq!(missed.lines, [(4, 6)]);
    assert!(work.changed.is_empty() && !work.unseen.contains_key(&at("g")));
    let expected = "reload f: agent-a changed lines 4-6 (c7, 0 s ago); read it before you edit there";
    assert_eq!(told(&mut coord, B), [expected]);
    assert!(told(&mut coord, A).is_empty(), "own work is no news");
}

#[test]
fn who_looks_again_has_missed_nothing() {
    let mut coord = pair();
    coord.shown(B, &at("f"), all("v1", 9), NOW);
    landed(&mut coord, Some(A), 7, "f", Some("v2"));
    landed(&mut coord, Some(A), 8, "f", Some("v3"));
    assert_eq!(unseen(&coord, B, "f"), [7, 8]);
    coord.shown(B, &at("f"), all("v3", 9), NOW);
    assert!(unseen(&coord, B, "f").is_empty() && told(&mut coord, B).is_empty());
    // The same after the whole diff was shown, which the engine says by renewing.
    landed(&mut coord, Some(A), 9, "f", Some("v4"));
    let map = LineMap { known: true, total_lines: Some(9), ..LineMap::default() };
    coord.renewed(B, &at("f"), digest("v3"), Some(digest("v4")), &map, NOW);
    assert!(unseen(&coord, B, "f").is_empty() && told(&mut coord, B).is_empty());
}

#[test]
fn a_change_back_to_what_was_seen_is_no_news() {
    let mut coord = pair();
    coord.shown(B, &at("f"), all("v1", 9), NOW);
    landed(&mut coord, Some(A), 7, "f", Some("v2"));
    landed(&mut coord, Some(A), 8, "f", Some("v1"));
    assert!(unseen(&coord, B, "f").is_empty() && told(&mut coord, B).is_empty());
}

#[test]
fn foreign_writes_and_deletions_are_told_too() {
    let mut coord = pair();
    coord.shown(A, &at("f"), all("v1", 9), NOW);
    coord.shown(B, &at("f"), all("v1", 9), NOW);
    landed(&mut coord, None, 7, "f", None);
    for id in [A, B] {
        assert_eq!(told(&mut coord, id), ["reload f: another program or a human deleted it (c7, 0 s ago)"]);
    }
    assert!(coord.own_changes(A).unwrap().changed.is_empty());
}

#[test]
fn what_lands_after_its_session_ended_still_has_a_name() {
    let mut coord = pair();
    coord.shown(B, &at("f"), all("v1", 9), NOW);
    coord.end_session(A, NOW);
    landed(&mut coord, Some(A), 7, "f", Some("v2"));
    assert!(
        matches!(&coord.take_notices(B)[..], [Notice::Reload { by: Some(by), .. }] if &**by == "agent-a")
    );
    assert!(coord.own_changes(A).is_none());
}

#[test]
fn of_many_missed_changes_the_latest_ten_are_kept() {
    let mut coord = pair();
    coord.shown(B, &at("f"), all("v", 9), NOW);
    for change in 1..=15 {
        landed(&mut coord, Some(A), change, "f", Some(&format!("v{change}")));
    }
    assert_eq!(unseen(&coord, B, "f"), (6..=15).collect::<Vec<_>>());
    assert_eq!(coord.take_notices(B).len(), 1);
}

#[test]
fn a_replaced_root_is_nothing_that_was_missed() {
    let mut coord = pair();
    coord.shown(B, &at("f"), all("v1", 9), NOW);
    landed(&mut coord, Some(A), 7, "f", Some("v2"));
    coord.void_all(NOW);
    assert!(unseen(&coord, B, "f").is_empty());
    assert_eq!(coord.own_changes(A).unwrap().changed.len(), 1, "own work stands in the history");
}

#[test]
fn a_move_is_told_once_with_its_goal_and_what_was_read_goes_along() {
    let mut coord = pair();
    for path in ["d/f", "d/sub/g", "other"] {
        coord.shown(A, &at(path), all(path, 3), NOW);
        coord.shown(B, &at(path), all(path, 3), NOW);
    }
    coord.moved(Some(A), ChangeId(9), &at("d"), &at("e"), NOW);
    assert_eq!(
        told(&mut coord, B),
        ["moved d: agent-a moved it to e (c9, 0 s ago); what you read of it holds there"]
    );
    assert!(told(&mut coord, A).is_empty(), "who moved it knows");
    assert_eq!(coord.receipt(B, &at("e/sub/g")).unwrap().digest, digest("d/sub/g"));
    assert_eq!(coord.own_changes(A).unwrap().changed.keys().collect::<Vec<_>>(), [&at("e")]);
    coord.moved(None, ChangeId(10), &at("other"), &at("d"), NOW);
    for id in [A, B] {
        let text = told(&mut coord, id);
        assert!(
            text[0].starts_with("moved other: another program or a human moved it to d (c10"),
            "{text:?}"
        );
    }
}

#[test]
fn work_and_what_was_missed_follow_a_file_and_seeing_it_there_is_enough() {
    let mut coord = pair();
    coord.shown(B, &at("d/f"), all("v1", 9), NOW);
    landed(&mut coord, Some(A), 7, "d/f", Some("v2"));
    landed(&mut coord, Some(A), 8, "e/f", Some("v1"));
    coord.moved(Some(A), ChangeId(9), &at("d/f"), &at("e/f"), NOW);
    assert!(unseen(&coord, B, "d/f").is_empty());
    assert_eq!(unseen(&coord, B, "e/f"), [7]);
    assert_eq!(coord.own_changes(A).unwrap().changed[&at("e/f")], [ChangeId(8), ChangeId(7), ChangeId(9)]);
    coord.shown(B, &at("e/f"), all("v2", 9), NOW);
    assert!(unseen(&coord, B, "e/f").is_empty());
    let left = told(&mut coord, B);
    assert!(left.iter().all(|notice| !notice.starts_with("moved")), "{left:?}");
}

#[test]
fn a_move_of_what_nobody_saw_is_no_news() {
    let mut coord = pair();
    coord.shown(B, &at("dx"), all("v1", 9), NOW);
    coord.moved(Some(A), ChangeId(9), &at("d"), &at("e"), NOW);
    assert!(told(&mut coord, B).is_empty());
}
