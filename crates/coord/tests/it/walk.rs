//! Everything at once: random events from a seed. The same events give the same state and effects; nothing is left of a
//! session that ended; and the next deadline is always one that a tick can keep.

use cotenant_coord::{
    Coord, Effect, Footprint, Handle, HumanAnswer, LandedFile, LineMap, NewSession, Suggestion, Ticket, Touch,
};
use cotenant_model::{ApprovalId, ChangeId, Code, Millis, SessionId};
use cotenant_text::Region;
use proptest::prelude::*;

use crate::kit::{all, at, call, digest, edit, some, who};

type Step = (u8, u8, u8, u8);

/// One event, chosen by four numbers; what it led to, as text.
fn apply(coord: &mut Coord, now: &mut Millis, tickets: &mut Vec<Ticket>, step: Step) -> String {
    let (kind, session, path, extra) = step;
    let id = SessionId(u64::from(session % 4));
    let path = at(["a", "a/b", "a/b/c", "d"][usize::from(path % 4)]);
    let version = format!("v{}", extra % 5);
    let change = ChangeId(u64::from(extra));
    match kind % 20 {
        0 => {
            let ttl_ms = (extra % 2 == 0).then_some(u64::from(extra) * 500);
            coord.open_session(id, NewSession { ttl_ms, ..who("agent") }, *now);
            String::new()
        }
        1 => format!("{:?}", coord.end_session(id, *now)),
        2 => {
            coord.called(id, *now);
            format!("{}", coord.turn_for_change(id, *now))
        }
        3 => format!("{}", coord.mark_turn(id, *now)),
        4 => {
            coord.shown(id, &path, some(&version, 20, &[(usize::from(extra % 9), 9)]), *now);
            format!("{:?}", coord.receipt(id, &path))
        }
        5 => {
            coord.shown(id, &path, all(&version, 20), *now);
            String::new()
        }
        6 => {
            let regions = vec![Region { old: 3..5, new: 3..4 }];
            let map = LineMap { regions, total_lines: Some(19), known: extra % 3 > 0 };
            coord.renewed(id, &path, digest(&version), Some(digest("v9")), &map, *now);
            format!("{:?}", coord.standing(id, &path, digest("v9")))
        }
        7 => {
            let post = (extra % 4 > 0).then(|| digest(&version));
            let file = LandedFile { at: path, post, lines: vec![(1, 2)] };
            coord.landed((extra % 3 > 0).then_some(id), change, &[file], *now);
            String::new()
        }
        8 => format!("{:?}", coord.take_notices(id)),
        9 => format!("{}", coord.refused(id, Some(&path), Code::ALL[usize::from(extra % 3)])),
        10 => {
            let touch = Touch { at: path, subtree: extra % 3 == 0, write: extra % 2 == 0 };
            tickets.push(coord.arrive(id, Footprint::Paths(vec![touch])));
            format!("{:?}", tickets.last().map(|ticket| coord.ready(*ticket)))
        }
        11 if !tickets.is_empty() => {
            let ticket = tickets.remove(usize::from(extra) % tickets.len());
            format!("{:?}", coord.leave(ticket))
        }
        12 => {
            let question = ApprovalId(u64::from(extra % 8));
            let token = coord.keep_retry(id, call("edit_file", 9, Some(question)), *now);
            coord.ask(question, edit("f", "v1", &version), id, token, *now);
            format!("{token:?}")
        }
        13 => {
            let wire = edit("f", "v1", &version).digest().to_string();
            let deny = HumanAnswer::Deny { reason: version };
            format!(
                "{:?}",
                coord.answer(ApprovalId(u64::from(path.path.components().count() as u8)), &wire, deny, *now)
            )
        }
        14 => {
            let handle = Handle { title: version, bytes: vec![0; 9].into() };
            format!("{:?}", coord.keep_handle(id, handle, *now))
        }
        15 => {
            let suggestion = Suggestion { at: path, payload: vec![1].into() };
            format!("{:?}", coord.keep_suggestion(id, suggestion, *now))
        }
        16 => {
            coord.moved(Some(id), ChangeId(7), &path, &at("moved"), *now);
            coord.counted(id, "edit_file", Err(Code::TextNotFound));
            coord.missed_text(id, &version);
            format!("{:?}", coord.signatures())
        }
        17 => format!("{:?}", coord.void_all(*now)),
        _ => {
            *now = now.plus(u64::from(extra) * u64::from(session) * 20);
            format!("{:?}", coord.tick(*now))
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(any::<Step>(), 1..150)
}

/// Nothing that was bound to a session is left when it is gone.
fn nothing_left(coord: &Coord, id: SessionId, now: Millis) -> bool {
    let paths = ["a", "a/b", "a/b/c", "d", "moved"];
    coord.turn(id) == 0
        && paths.iter().all(|path| coord.receipt(id, &at(path)).is_none())
        && coord.own_changes(id).is_none()
        && coord.recent_notices(id).next().is_none()
        && (0..200).all(|token| coord.handle(id, cotenant_model::HandleId(token), now).is_none())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_same_events_give_the_same_state_and_effects(steps in steps()) {
        let run = || {
            let (mut coord, mut now, mut tickets) = (Coord::new(), Millis(0), Vec::new());
            let said: Vec<String> =
                steps.iter().map(|step| apply(&mut coord, &mut now, &mut tickets, *step)).collect();
            (said, format!("{coord:?}"))
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn a_session_that_ended_leaves_nothing_and_deadlines_are_kept(steps in steps()) {
        let (mut coord, mut now, mut tickets) = (Coord::new(), Millis(0), Vec::new());
        for step in steps {
            apply(&mut coord, &mut now, &mut tickets, step);
            if step.3 % 8 == 7 {
                let id = SessionId(u64::from(step.1 % 4));
                for effect in coord.end_session(id, now) {
                    if let Effect::Ready(woken) = effect {
                        prop_assert!(woken.iter().all(|ticket| coord.ready(*ticket)));
                    }
                }
            }
            for id in (0..4).map(SessionId).filter(|id| coord.session(*id).is_none()) {
                prop_assert!(nothing_left(&coord, id, now), "{:?}", id);
            }
            // At the deadline it names, a tick always has something to do: the daemon's timer never spins.
            for _ in 0..3 {
                let Some(due) = coord.next_deadline() else { break };
                let due = due.max(now);
                coord.tick(due);
                prop_assert!(coord.next_deadline().is_none_or(|next| next > due), "it would spin at {:?}", due);
                now = due;
            }
        }
    }
}
