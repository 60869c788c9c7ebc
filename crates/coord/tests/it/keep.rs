//! Kept things: bound to their session, their time, and so many bytes.

use std::sync::Arc;

use cotenant_coord::{Coord, Handle, KEEP_MS, Suggestion};
use cotenant_model::{ApprovalId, HandleId, Millis, RetryToken, SessionId, SuggestionId};
use proptest::prelude::*;

use crate::kit::{A, B, at, call, pair};

const NOW: Millis = Millis(1000);
const MB: usize = 1024 * 1024;

fn suggestion() -> Suggestion {
    Suggestion { at: at("f"), payload: Arc::from(&b"edit"[..]) }
}

fn handle(bytes: usize) -> Handle {
    Handle { title: "search_files".to_owned(), bytes: Arc::from(vec![0; bytes]) }
}

#[test]
fn ids_rise_by_kind_and_things_come_back_as_they_were() {
    let mut coord = pair();
    assert_eq!(coord.keep_retry(A, call("edit_file", 3, None), NOW), RetryToken(1));
    assert_eq!(coord.keep_retry(B, call("undo", 4, None), NOW), RetryToken(2));
    assert_eq!(coord.keep_suggestion(A, suggestion(), NOW), SuggestionId(1));
    assert_eq!(coord.keep_handle(A, handle(5), NOW), HandleId(1));
    assert_eq!(coord.retry(A, RetryToken(1), NOW), Some(call("edit_file", 3, None)));
    assert_eq!(coord.retry(A, RetryToken(1), NOW), Some(call("edit_file", 3, None)), "it stays");
    assert_eq!(coord.suggestion(A, SuggestionId(1), NOW), Some(suggestion()));
    assert_eq!(coord.handle(A, HandleId(1), NOW), Some(handle(5)));
}

#[test]
fn another_session_gets_nothing() {
    let mut coord = pair();
    let (r, s, h) = (
        coord.keep_retry(A, call("undo", 1, None), NOW),
        coord.keep_suggestion(A, suggestion(), NOW),
        coord.keep_handle(A, handle(1), NOW),
    );
    assert!(coord.retry(B, r, NOW).is_none());
    assert!(coord.suggestion(B, s, NOW).is_none());
    assert!(coord.handle(B, h, NOW).is_none());
    assert!(coord.retry(A, RetryToken(99), NOW).is_none());
}

#[test]
fn each_has_its_time() {
    let mut coord = pair();
    let r = coord.keep_retry(A, call("undo", 1, None), NOW);
    let s = coord.keep_suggestion(A, suggestion(), NOW.plus(1));
    let h = coord.keep_handle(A, handle(1), NOW);
    assert_eq!(coord.next_deadline(), Some(NOW.plus(KEEP_MS)));
    let last = NOW.plus(KEEP_MS - 1);
    assert!(coord.retry(A, r, last).is_some());
    let over = NOW.plus(KEEP_MS);
    assert!(coord.retry(A, r, over).is_none(), "over without a tick, too");
    assert!(coord.suggestion(A, s, over).is_some());
    assert!(coord.tick(over).is_empty());
    assert_eq!(coord.next_deadline(), Some(NOW.plus(KEEP_MS + 1)));
    coord.tick(NOW.plus(KEEP_MS + 1));
    assert_eq!(coord.next_deadline(), Some(NOW.plus(3_600_000)));
    assert!(coord.handle(A, h, NOW.plus(3_599_999)).is_some());
    coord.tick(NOW.plus(3_600_000));
    assert!(coord.next_deadline().is_none() && coord.handle(A, h, NOW).is_none());
}

#[test]
fn a_token_may_come_before_its_question_and_lives_as_any_other_if_none_comes() {
    let mut coord = pair();
    let token = coord.keep_retry(A, call("undo", 1, Some(ApprovalId(5))), NOW);
    coord.tick(NOW);
    assert!(coord.retry(A, token, NOW).is_some(), "a tick between token and question harms nothing");
    let over = NOW.plus(KEEP_MS);
    assert!(coord.retry(A, token, over).is_none());
    coord.tick(over);
    assert!(coord.next_deadline().is_none());
}

#[test]
fn the_oldest_answers_of_a_session_make_room() {
    let mut coord = pair();
    let others = coord.keep_handle(B, handle(MB), NOW);
    let kept: Vec<HandleId> = (0..20).map(|_| coord.keep_handle(A, handle(MB), NOW)).collect();
    let alive = |coord: &Coord| kept.iter().filter(|id| coord.handle(A, **id, NOW).is_some()).count();
    assert_eq!(alive(&coord), 15, "16 MB with what each entry counts beside its bytes");
    assert!(coord.handle(A, kept[4], NOW).is_none() && coord.handle(A, kept[19], NOW).is_some());
    assert!(coord.handle(B, others, NOW).is_some(), "not at the cost of another session");
    let huge = coord.keep_handle(A, handle(17 * MB), NOW);
    assert!(coord.handle(A, huge, NOW).is_some(), "the newest stays, however large");
    assert_eq!(alive(&coord), 0);
}

#[test]
fn all_sessions_together_have_a_bound_and_pending_calls_are_not_dropped_for_it() {
    let mut coord = Coord::new();
    let sessions: Vec<SessionId> = (1..=6).map(SessionId).collect();
    for id in &sessions {
        coord.open_session(*id, crate::kit::who("a"), NOW);
    }
    let (_, pending) = crate::kit::ask(&mut coord, 1, crate::kit::edit("f", "a", "b"), NOW);
    let kept: Vec<_> = sessions
        .iter()
        .map(|id| (*id, coord.keep_retry(*id, call("edit_file", 15 * MB, None), NOW)))
        .collect();
    let alive: Vec<bool> = kept.iter().map(|(id, token)| coord.retry(*id, *token, NOW).is_some()).collect();
    assert_eq!(alive, [false, false, true, true, true, true], "64 MB in all");
    assert!(coord.retry(A, pending, NOW).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// However much is kept by whom: what is left is the newest, each session within its bound and all within theirs.
    #[test]
    fn what_is_left_is_the_newest_within_the_bounds(
        given in prop::collection::vec((1..7u64, 1..9usize), 1..60),
    ) {
        let mut coord = Coord::new();
        (1..7).for_each(|id| coord.open_session(SessionId(id), crate::kit::who("a"), NOW));
        // Shared bytes: what is tested are the sums.
        let sizes: Vec<Arc<[u8]>> = (0..9).map(|megabytes| vec![0; (megabytes * MB).saturating_sub(8192)].into()).collect();
        let mut kept = Vec::new();
        for (session, megabytes) in given {
            let session = SessionId(session);
            let handle = Handle { title: String::new(), bytes: sizes[megabytes].clone() };
            kept.push((session, megabytes, coord.keep_handle(session, handle, NOW)));
        }
        let alive: Vec<_> = kept.iter().filter(|(session, _, id)| coord.handle(*session, *id, NOW).is_some()).collect();
        prop_assert!(alive.iter().map(|(_, megabytes, _)| megabytes).sum::<usize>() <= 64);
        for session in (1..7).map(SessionId) {
            let of = |list: &[&(SessionId, usize, HandleId)]| -> Vec<HandleId> {
                list.iter().filter(|entry| entry.0 == session).map(|entry| entry.2).collect()
            };
            let own: usize = alive.iter().filter(|entry| entry.0 == session).map(|entry| entry.1).sum();
            prop_assert!(own <= 16);
            let (left, all) = (of(&alive), of(&kept.iter().collect::<Vec<_>>()));
            prop_assert!(all.ends_with(&left), "{:?} {:?}", left, all);
        }
        prop_assert!(kept.last().is_some_and(|last| alive.contains(&last)));
    }
}
