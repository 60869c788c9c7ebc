//! Notices: each is told once, in order, in one line.

use cotenant_coord::{Notice, NoticeKind};
use cotenant_model::{ApprovalId, ChangeId, Millis};

use crate::kit::{A, B, at, docs, folders, pair};

fn reload(path: &str, change: u64, lines: &[(usize, usize)]) -> Notice {
    Notice::Reload {
        at: at(path),
        by: Some("agent-b".into()),
        change: ChangeId(change),
        lines: lines.to_vec(),
        deleted: false,
        time: Millis(0),
    }
}

fn message(text: &str) -> Notice {
    Notice::Other { kind: NoticeKind::Message, at: None, text: text.to_owned() }
}

fn text(notice: &Notice) -> String {
    notice.text(&folders(), Millis(12_000))
}

#[test]
fn each_is_told_once_in_order_and_repeated_on_request() {
    let mut coord = pair();
    coord.push_notice(A, message("one"));
    coord.push_notice(A, reload("f", 1, &[]));
    coord.push_notice(A, message("two"));
    assert_eq!(coord.recent_notices(A).count(), 0, "not told yet");
    assert_eq!(coord.take_notices(A), [message("one"), reload("f", 1, &[]), message("two")]);
    assert!(coord.take_notices(A).is_empty() && coord.take_notices(B).is_empty());
    let recent: Vec<_> = coord.recent_notices(A).cloned().collect();
    assert_eq!(recent, [message("one"), reload("f", 1, &[]), message("two")]);
}

#[test]
fn a_later_change_of_a_file_replaces_the_earlier_and_names_no_lines() {
    let mut coord = pair();
    coord.push_notice(A, reload("f", 1, &[(40, 52)]));
    coord.push_notice(A, reload("g", 2, &[(3, 3)]));
    coord.push_notice(A, reload("f", 3, &[(7, 9)]));
    assert_eq!(coord.take_notices(A), [reload("g", 2, &[(3, 3)]), reload("f", 3, &[])]);
    // Told already: the next one stands for itself, and is the one that is repeated.
    coord.push_notice(A, reload("f", 4, &[(1, 2)]));
    assert_eq!(coord.take_notices(A), [reload("f", 4, &[(1, 2)])]);
    let recent: Vec<_> = coord.recent_notices(A).cloned().collect();
    assert_eq!(recent, [reload("g", 2, &[(3, 3)]), reload("f", 4, &[(1, 2)])]);
}

#[test]
fn there_is_a_bound_and_the_oldest_go() {
    let mut coord = pair();
    for n in 0..130 {
        coord.push_notice(A, message(&n.to_string()));
    }
    let taken = coord.take_notices(A);
    assert_eq!((taken.len(), &taken[0], &taken[99]), (100, &message("30"), &message("129")));
    let recent: Vec<_> = coord.recent_notices(A).collect();
    assert_eq!((recent.len(), recent[0]), (20, &message("110")));
}

#[test]
fn a_session_that_is_gone_gets_none() {
    let mut coord = pair();
    coord.end_session(A, Millis(1));
    coord.push_notice(A, message("x"));
    assert!(coord.take_notices(A).is_empty());
}

#[test]
fn the_texts() {
    let tail = "; read it before you edit there";
    for (notice, expected) in [
        (
            reload("src/b.rs", 161, &[(40, 52)]),
            format!("reload src/b.rs: agent-b changed lines 40-52 (c161, 12 s ago){tail}"),
        ),
        (reload("f", 1, &[(7, 7)]), format!("reload f: agent-b changed line 7 (c1, 12 s ago){tail}")),
        (reload("f", 1, &[(9, 8)]), format!("reload f: agent-b changed lines 9 (c1, 12 s ago){tail}")),
        (reload("f", 1, &[]), format!("reload f: agent-b changed it (c1, 12 s ago){tail}")),
        (
            reload("f", 1, &[(1, 1), (3, 4), (6, 6), (8, 8), (10, 10), (12, 12)]),
            format!("reload f: agent-b changed lines 1,3-4,6,8,10 and more (c1, 12 s ago){tail}"),
        ),
        (
            Notice::Reload {
                at: docs("x.md"),
                by: None,
                change: ChangeId(5),
                lines: vec![],
                deleted: true,
                time: Millis(12_000),
            },
            "reload docs:x.md: another program or a human deleted it (c5, 0 s ago)".to_owned(),
        ),
        (
            Notice::Approval { id: ApprovalId(21), text: "approved: landed as c162".to_owned() },
            "a21 approved: landed as c162".to_owned(),
        ),
        (message("a\nb\u{1b}[2K! fake"), "a b [2K! fake".to_owned()),
    ] {
        assert_eq!(text(&notice), expected);
    }
}

#[test]
fn kinds_and_paths_as_on_the_wire() {
    let other = |kind| Notice::Other { kind, at: Some(at("f")), text: String::new() };
    for (kind, name) in [
        (NoticeKind::LostLease, "lost_lease"),
        (NoticeKind::Reload, "reload"),
        (NoticeKind::Strike, "strike"),
        (NoticeKind::Approval, "approval"),
        (NoticeKind::Message, "message"),
    ] {
        assert_eq!((other(kind).kind(), kind.name()), (kind, name));
    }
    assert_eq!(other(NoticeKind::Strike).at(), Some(&at("f")));
    assert_eq!(reload("g", 1, &[]).at(), Some(&at("g")));
}
