//! Sessions: when they end by silence, what ends with them, and where turns begin.

use cotenant_coord::{Coord, Effect, Footprint, IDLE_MS, NewSession, Why};
use cotenant_model::{ApprovalId, Millis, Profile};

use crate::kit::{A, B, all, ask, at, call, docs, edit, pair, who};

fn http(ttl_ms: u64) -> NewSession {
    NewSession { ttl_ms: Some(ttl_ms), pid: None, ..who("remote") }
}

#[test]
fn a_session_is_what_it_said_of_itself() {
    let mut coord = pair();
    let session = coord.session(A).unwrap();
    assert_eq!((&*session.agent, session.task.as_deref(), session.turn), ("agent-a", Some("work"), 1));
    assert_eq!((session.profile, session.pid, session.opened), (Profile::Careful, Some(100), Millis(0)));
    coord.rename_session(A, "claude-1".into());
    coord.set_plan_mode(A, true);
    let session = coord.session(A).unwrap();
    assert!(&*session.agent == "claude-1" && session.plan_mode && !coord.session(B).unwrap().plan_mode);
    assert_eq!(&*coord.tally(A).unwrap().agent, "claude-1");
    assert_eq!(coord.sessions().map(|session| session.id).collect::<Vec<_>>(), [A, B]);
}

#[test]
fn a_session_only_becomes_narrower() {
    let mut coord = pair();
    let may = |coord: &Coord, path: &str| coord.session(A).unwrap().may_enter(&at(path));
    assert!(may(&coord, "x"));
    coord.narrow_session(A, vec![at("src"), docs("a")]);
    assert!(may(&coord, "src") && may(&coord, "src/x/y") && !may(&coord, "srcx") && !may(&coord, "."));
    assert!(
        coord.session(A).unwrap().may_enter(&docs("a/b")) && !coord.session(A).unwrap().may_enter(&docs("b"))
    );
    coord.narrow_session(A, vec![at("src/deep"), at("other")]);
    assert!(may(&coord, "src/deep/x") && !may(&coord, "src/x") && !may(&coord, "other"));
    coord.narrow_session(A, vec![at("elsewhere")]);
    assert!(!may(&coord, "src/deep/x"), "nothing in common is nothing at all");
}

#[test]
fn a_session_over_http_ends_by_silence_and_a_local_one_does_not() {
    let mut coord = pair();
    coord.open_session(cotenant_model::SessionId(3), http(60_000), Millis(10));
    let remote = cotenant_model::SessionId(3);
    assert_eq!(coord.next_deadline(), Some(Millis(60_010)));
    coord.called(remote, Millis(30_000));
    assert_eq!(coord.next_deadline(), Some(Millis(90_000)));
    assert_eq!(coord.tick(Millis(89_999)), []);
    assert_eq!(coord.tick(Millis(90_000)), [Effect::Ended { session: remote, why: Why::Expired }]);
    assert!(coord.session(remote).is_none() && coord.session(A).is_some());
    assert_eq!(coord.next_deadline(), None);
    assert_eq!(coord.tick(Millis(u64::MAX)), []);
}

#[test]
fn a_call_that_runs_keeps_its_session() {
    let mut coord = Coord::new();
    coord.open_session(A, http(1000), Millis(0));
    coord.called(A, Millis(0));
    let ticket = coord.arrive(A, Footprint::Nothing);
    assert_eq!(coord.next_deadline(), None, "there is nothing to wake up for");
    assert_eq!(coord.tick(Millis(50_000)), []);
    coord.leave(ticket);
    coord.called(A, Millis(50_000));
    assert_eq!(coord.next_deadline(), Some(Millis(51_000)));
    assert_eq!(coord.tick(Millis(51_000)).len(), 1);
}

#[test]
fn time_that_seems_to_go_back_shortens_nothing() {
    let mut coord = Coord::new();
    coord.open_session(A, http(1000), Millis(5000));
    coord.called(A, Millis(4000));
    assert_eq!(coord.next_deadline(), Some(Millis(6000)));
}

#[test]
fn what_is_bound_to_a_session_ends_with_it_and_its_question_does_not() {
    let mut coord = pair();
    coord.shown(A, &at("f"), all("v1", 1), Millis(1));
    let token = coord.keep_retry(A, call("edit_file", 10, None), Millis(1));
    let (wire, retry) = ask(&mut coord, 7, edit("f", "v1", "v2"), Millis(1));
    assert!(!coord.is_idle());
    assert_eq!(coord.end_session(A, Millis(2)), [Effect::Ended { session: A, why: Why::Closed }]);
    assert_eq!(coord.end_session(A, Millis(3)), [], "once");
    assert!(coord.receipt(A, &at("f")).is_none());
    assert!(coord.retry(A, token, Millis(2)).is_none() && coord.retry(A, retry, Millis(2)).is_none());
    assert_eq!(coord.turn(A), 0);
    coord.end_session(B, Millis(2));
    assert!(!coord.is_idle(), "a human may still answer");
    let deny = cotenant_coord::HumanAnswer::Deny { reason: "no".to_owned() };
    assert!(coord.answer(ApprovalId(7), &wire, deny, Millis(4)).is_ok());
    assert!(coord.is_idle());
}

#[test]
fn turns_begin_at_a_mark_and_at_the_first_change_after_silence() {
    let mut coord = pair();
    assert_eq!(coord.turn(A), 1);
    coord.called(A, Millis(1000));
    assert_eq!(coord.turn_for_change(A, Millis(1500)), 1);
    assert_eq!(coord.mark_turn(A, Millis(2000)), 2);
    coord.called(A, Millis(3000));
    assert_eq!(coord.turn_for_change(A, Millis(3001)), 2);

    // Silence, then a read, then two changes: one new turn, at the first change.
    let back = Millis(3001 + IDLE_MS);
    coord.called(A, back);
    assert_eq!(coord.turn(A), 2);
    coord.called(A, back.plus(10));
    assert_eq!(coord.turn_for_change(A, back.plus(11)), 3);
    assert_eq!(coord.turn_for_change(A, back.plus(12)), 3);

    // A millisecond less is no silence.
    coord.called(A, back.plus(12 + IDLE_MS - 1));
    assert_eq!(coord.turn_for_change(A, back.plus(12 + IDLE_MS)), 3);
    assert_eq!(coord.turn(B), 1, "another session has its own turns");
}

#[test]
fn a_mark_after_silence_begins_one_turn_not_two() {
    let mut coord = pair();
    let back = Millis(IDLE_MS * 2);
    coord.called(A, back);
    assert_eq!(coord.mark_turn(A, back), 2);
    assert_eq!(coord.turn_for_change(A, back.plus(1)), 2);
}

#[test]
fn refusals_in_a_row_are_counted_per_path_and_code() {
    use cotenant_model::Code::{FileChangedSinceRead, TextNotFound};
    let mut coord = pair();
    let (f, g) = (at("f"), at("g"));
    let mut refused = |id, path: Option<&cotenant_model::WsPath>, code| coord.refused(id, path, code);
    assert_eq!(refused(A, Some(&f), TextNotFound), 1);
    assert_eq!(refused(A, Some(&f), TextNotFound), 2);
    assert_eq!(refused(A, Some(&g), TextNotFound), 1, "another path");
    assert_eq!(refused(B, Some(&f), TextNotFound), 1, "another session");
    assert_eq!(refused(A, None, TextNotFound), 1);
    assert_eq!(refused(A, Some(&f), TextNotFound), 3);
    assert_eq!(refused(A, Some(&f), FileChangedSinceRead), 1, "another code starts anew");
    assert_eq!(refused(A, Some(&f), TextNotFound), 1);
    coord.succeeded(A, Some(&g));
    assert_eq!(coord.refused(A, Some(&g), TextNotFound), 1, "a success ends the row");
    coord.end_session(A, Millis(1));
    assert_eq!(coord.refused(A, Some(&f), TextNotFound), 1);
    assert_eq!(
        coord.refused(A, Some(&f), TextNotFound),
        1,
        "nothing is remembered of a session that is gone"
    );
}
