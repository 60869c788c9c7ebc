//! Counts: by tool, code and session, and the signature of three failures in a row.

use cotenant_model::Code::{ApprovalPending, TextAmbiguous, TextNotFound};
use cotenant_model::{Millis, SessionId};

use cotenant_coord::{Coord, Tally};

use crate::kit::{A, B, pair, who};

/// A failed edit with its cause, as the tools report it.
fn miss(coord: &mut Coord, id: SessionId, cause: &str) {
    coord.counted(id, "edit_file", Err(TextNotFound));
    coord.missed_text(id, cause);
}

fn signatures(coord: &Coord) -> Vec<(SessionId, u32, String)> {
    coord.signatures().iter().map(|noted| (noted.session, noted.count, noted.cause.clone())).collect()
}

#[test]
fn calls_and_refusals_by_tool_code_and_session() {
    let mut coord = pair();
    for _ in 0..17 {
        coord.counted(A, "edit_file", Ok(()));
    }
    coord.counted(A, "edit_file", Err(TextNotFound));
    coord.counted(A, "edit_file", Err(TextNotFound));
    coord.counted(A, "write_file", Err(ApprovalPending));
    coord.counted(A, "read_file", Ok(()));
    coord.counted(B, "edit_file", Err(TextAmbiguous));
    let own = &coord.tally(A).unwrap().totals;
    assert_eq!(own.tools["edit_file"], Tally { calls: 19, errors: 2 });
    assert_eq!(own.tools["write_file"], Tally { calls: 1, errors: 0 }, "pending is no error");
    assert_eq!(own.edits(), Tally { calls: 20, errors: 2 });
    assert_eq!(own.calls(), Tally { calls: 21, errors: 2 });
    assert_eq!(own.refusals[&ApprovalPending], 1);
    assert!((own.edits().error_rate() - 0.1).abs() < 1e-9);
    let totals = coord.totals();
    assert_eq!(totals.tools["edit_file"], Tally { calls: 20, errors: 3 });
    assert_eq!(totals.refusals.values().sum::<u64>(), 4);
    assert!(Tally::default().error_rate() == 0.0);
}

#[test]
fn totals_outlive_sessions_and_names_are_bounded() {
    let mut coord = pair();
    coord.counted(A, "edit_file", Ok(()));
    coord.end_session(A, Millis(1));
    assert!(coord.tally(A).unwrap().ended && !coord.tally(B).unwrap().ended);
    coord.counted(SessionId(99), "edit_file", Ok(()));
    assert_eq!(coord.totals().tools["edit_file"].calls, 2, "also of a session that nobody knows");
    for n in 0..300 {
        coord.counted(B, &format!("tool{n}"), Ok(()));
    }
    assert_eq!(coord.totals().tools.len(), 201);
    assert_eq!(coord.totals().tools["other"].calls, 101);
}

#[test]
fn the_latest_ended_sessions_are_remembered() {
    let mut coord = Coord::new();
    for id in (1..=250).map(SessionId) {
        coord.open_session(id, who("a"), Millis(0));
        coord.end_session(id, Millis(0));
    }
    let left: Vec<u64> = coord.tallies().map(|tally| tally.session.0).collect();
    assert_eq!(left, (51..=250).collect::<Vec<_>>());
}

#[test]
fn three_in_a_row_are_a_signature_with_the_likely_cause() {
    let mut coord = pair();
    miss(&mut coord, A, "tabs");
    miss(&mut coord, A, "eol");
    assert!(signatures(&coord).is_empty());
    coord.counted(A, "read_file", Ok(()));
    miss(&mut coord, A, "tabs");
    assert_eq!(signatures(&coord), [(A, 3, "tabs".to_owned())]);
    // The run goes on: one signature, with the count and the cause of now.
    miss(&mut coord, A, "eol");
    miss(&mut coord, A, "eol");
    assert_eq!(signatures(&coord), [(A, 5, "eol".to_owned())]);
    assert_eq!(&*coord.signatures()[0].agent, "agent-a");
    assert_eq!(coord.signatures()[0].code, TextNotFound);
}

#[test]
fn an_edit_that_goes_through_ends_the_row() {
    let mut coord = pair();
    miss(&mut coord, A, "tabs");
    miss(&mut coord, A, "tabs");
    coord.counted(A, "edit_file", Ok(()));
    miss(&mut coord, A, "tabs");
    miss(&mut coord, A, "tabs");
    assert!(signatures(&coord).is_empty());
    miss(&mut coord, A, "tabs");
    // A second row of the same session is a second signature, and another session has its own.
    coord.counted(A, "write_file", Ok(()));
    (0..3).for_each(|_| miss(&mut coord, A, "unknown"));
    (0..3).for_each(|_| miss(&mut coord, B, "invisible"));
    miss(&mut coord, A, "unknown");
    assert_eq!(
        signatures(&coord),
        [(A, 3, "tabs".to_owned()), (B, 3, "invisible".to_owned()), (A, 4, "unknown".to_owned())]
    );
}

#[test]
fn of_causes_found_equally_often_the_last_counts() {
    let mut coord = pair();
    for cause in ["tabs", "eol", "stale"] {
        miss(&mut coord, A, cause);
    }
    assert_eq!(signatures(&coord), [(A, 3, "stale".to_owned())]);
    miss(&mut coord, SessionId(99), "tabs");
    assert_eq!(coord.signatures().len(), 1, "of a session that is not open, nothing");
}
