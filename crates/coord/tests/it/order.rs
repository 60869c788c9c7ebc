//! The order of calls (R17): tables for what overlaps, and the queue against a naive model.

use std::collections::{BTreeMap, BTreeSet};

use cotenant_coord::{Coord, Effect, Footprint, Ticket, Touch};
use cotenant_model::{Millis, SessionId};
use proptest::prelude::*;

use crate::kit::{A, B, at, docs, pair};

fn read(path: &str) -> Touch {
    Touch { at: at(path), subtree: false, write: false }
}

fn write(path: &str) -> Touch {
    Touch { at: at(path), subtree: false, write: true }
}

fn below(touch: Touch) -> Touch {
    Touch { subtree: true, ..touch }
}

fn paths(touches: &[Touch]) -> Footprint {
    Footprint::Paths(touches.to_vec())
}

/// Whether the second of two calls of one session waits for the first.
fn waits(first: Footprint, second: Footprint) -> bool {
    let mut coord = pair();
    let one = coord.arrive(A, first.clone());
    let two = coord.arrive(A, second.clone());
    let elsewhere = coord.arrive(B, second);
    assert!(coord.ready(one), "the first never waits");
    assert!(coord.ready(elsewhere), "sessions do not wait for each other");
    let waited = !coord.ready(two);
    assert_eq!(coord.leave(one), if waited { vec![two] } else { vec![] });
    assert!(coord.ready(two));
    waited
}

#[test]
fn what_overlaps() {
    let elsewhere = Touch { at: docs("a"), subtree: true, write: true };
    for (first, second, expected) in [
        (paths(&[read("a")]), paths(&[read("a")]), false),
        (paths(&[read("a")]), paths(&[write("a")]), true),
        (paths(&[write("a")]), paths(&[write("a")]), true),
        (paths(&[write("a")]), paths(&[write("b")]), false),
        (paths(&[write("a")]), paths(&[elsewhere]), false),
        (paths(&[below(read("d"))]), paths(&[read("d/x")]), false),
        (paths(&[below(read("d"))]), paths(&[write("d/x/y")]), true),
        (paths(&[below(read("d"))]), paths(&[write("dx")]), false),
        (paths(&[read("d")]), paths(&[write("d/x")]), false),
        (paths(&[below(read("."))]), paths(&[write("any/where")]), true),
        (paths(&[below(write("d/e"))]), paths(&[below(read("d"))]), true),
        (paths(&[write("a"), write("b")]), paths(&[read("x"), read("b")]), true),
        (paths(&[]), paths(&[write("a")]), false),
        (Footprint::Everything, paths(&[read("a")]), true),
        (Footprint::Everything, Footprint::Everything, true),
        (Footprint::Everything, Footprint::Nothing, false),
        (Footprint::Nothing, Footprint::Nothing, false),
    ] {
        assert_eq!(waits(first.clone(), second.clone()), expected, "{first:?} {second:?}");
        assert_eq!(waits(second.clone(), first.clone()), expected, "{second:?} {first:?}");
    }
}

#[test]
fn a_reader_between_two_writers_keeps_its_place() {
    let mut coord = pair();
    let w1 = coord.arrive(A, paths(&[write("f")]));
    let r1 = coord.arrive(A, paths(&[read("f")]));
    let r2 = coord.arrive(A, paths(&[read("f")]));
    let w2 = coord.arrive(A, paths(&[write("f")]));
    assert_eq!(coord.leave(w1), [r1, r2]);
    assert_eq!(coord.leave(r2), Vec::<Ticket>::new());
    assert!(!coord.ready(w2));
    assert_eq!(coord.leave(r1), [w2]);
}

#[test]
fn who_leaves_the_queue_for_a_human_lets_the_others_pass_and_leaves_once() {
    let mut coord = pair();
    let asked = coord.arrive(A, paths(&[write("f")]));
    let next = coord.arrive(A, paths(&[write("f")]));
    assert_eq!(coord.leave(asked), [next]);
    assert_eq!(coord.leave(asked), Vec::<Ticket>::new());
    let later = coord.arrive(A, paths(&[write("f")]));
    assert_eq!(coord.leave(asked), Vec::<Ticket>::new(), "a second time frees nobody");
    assert!(!coord.ready(later));
    assert!(coord.ready(999), "nothing holds a call that is not there");
}

#[test]
fn who_gives_up_in_the_middle_frees_only_those_behind_it() {
    let mut coord = pair();
    let first = coord.arrive(A, paths(&[write("a")]));
    let middle = coord.arrive(A, paths(&[write("a"), write("b")]));
    let behind = coord.arrive(A, paths(&[write("b")]));
    assert_eq!(coord.leave(middle), [behind]);
    assert!(coord.ready(first) && coord.ready(behind));
}

#[test]
fn the_end_of_a_session_wakes_all_its_calls() {
    let mut coord = pair();
    let one = coord.arrive(A, Footprint::Everything);
    let two = coord.arrive(A, Footprint::Everything);
    let other = coord.arrive(B, Footprint::Everything);
    let effects = coord.end_session(A, Millis(9));
    assert!(effects.contains(&Effect::Ready(vec![one, two])), "{effects:?}");
    assert!(coord.ready(two) && coord.ready(other));
    assert_eq!(coord.leave(one), Vec::<Ticket>::new());
}

/// What a naive reader of R17 would write: all calls in a list, everything looked up anew each time.
#[derive(Default)]
struct Model {
    calls: BTreeMap<Ticket, (SessionId, Footprint)>,
}

impl Model {
    fn overlap(one: &Footprint, two: &Footprint) -> bool {
        let everything = |footprint: &Footprint| *footprint == Footprint::Everything;
        match (one, two) {
            (Footprint::Paths(one), Footprint::Paths(two)) => one.iter().any(|a| {
                two.iter().any(|b| {
                    let covers = |outer: &Touch, inner: &Touch| {
                        let (outer_path, inner_path) = (outer.at.path.to_string(), inner.at.path.to_string());
                        outer_path == inner_path
                            || outer.subtree
                                && (outer_path == "." || inner_path.starts_with(&format!("{outer_path}/")))
                    };
                    (a.write || b.write) && (covers(a, b) || covers(b, a))
                })
            }),
            _ => {
                (everything(one) && *two != Footprint::Nothing)
                    || (everything(two) && *one != Footprint::Nothing)
            }
        }
    }

    fn ready(&self, ticket: Ticket) -> bool {
        let (session, footprint) = &self.calls[&ticket];
        !self
            .calls
            .range(..ticket)
            .any(|(_, (id, earlier))| id == session && Model::overlap(earlier, footprint))
    }
}

fn footprint() -> impl Strategy<Value = Footprint> {
    let path = prop::sample::select(vec!["a", "a/b", "a/b/c", "ab", "d", "."]);
    let touch = (path, any::<bool>(), any::<bool>()).prop_map(|(path, subtree, write)| Touch {
        at: at(path),
        subtree: subtree || path == ".",
        write,
    });
    prop_oneof![
        8 => prop::collection::vec(touch, 0..4).prop_map(Footprint::Paths),
        1 => Just(Footprint::Everything),
        1 => Just(Footprint::Nothing),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Arrive(bool, Footprint),
    /// A call that runs, or waits and gives up, leaves: the n-th of those that are there.
    Leave(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (any::<bool>(), footprint()).prop_map(|(a, footprint)| Step::Arrive(a, footprint)),
        any::<prop::sample::Index>().prop_map(|index| Step::Leave(index.index(1000))),
    ];
    prop::collection::vec(step, 1..60)
}

/// Runs the steps in both, with the running calls as the engine would know them from the wake-ups alone.
fn compare(steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut coord, mut model) = (pair(), Model::default());
    let mut running: BTreeSet<Ticket> = BTreeSet::new();
    let drain = std::iter::repeat_n(Step::Leave(0), steps.len());
    for step in steps.iter().cloned().chain(drain) {
        match step {
            Step::Arrive(first, footprint) => {
                let session = if first { A } else { B };
                let ticket = coord.arrive(session, footprint.clone());
                prop_assert!(model.calls.keys().all(|earlier| *earlier < ticket), "tickets rise");
                model.calls.insert(ticket, (session, footprint));
                if coord.ready(ticket) {
                    running.insert(ticket);
                }
            }
            Step::Leave(_) if model.calls.is_empty() => {}
            Step::Leave(n) => {
                let ticket = *model.calls.keys().nth(n % model.calls.len()).unwrap();
                let woken = coord.leave(ticket);
                model.calls.remove(&ticket);
                running.remove(&ticket);
                prop_assert!(woken.iter().all(|ticket| running.insert(*ticket)), "woken twice: {:?}", woken);
            }
        }
        agree(&coord, &model, &running)?;
    }
    prop_assert!(model.calls.is_empty(), "who drains from the front comes to the end");
    Ok(())
}

fn agree(coord: &Coord, model: &Model, running: &BTreeSet<Ticket>) -> Result<(), TestCaseError> {
    for (ticket, (session, footprint)) in &model.calls {
        prop_assert_eq!(coord.ready(*ticket), model.ready(*ticket), "ticket {}", ticket);
        // No lost wake-up, no early one: what may run was said to be ready, and nothing else was.
        prop_assert_eq!(running.contains(ticket), model.ready(*ticket), "ticket {}", ticket);
        for other in running.iter().filter(|other| *other < ticket && running.contains(ticket)) {
            let (owner, theirs) = &model.calls[other];
            prop_assert!(owner != session || !Model::overlap(theirs, footprint), "two at once");
        }
    }
    // No deadlock: the first of each session can always run.
    for session in [A, B] {
        let first = model.calls.iter().find(|(_, (id, _))| *id == session);
        prop_assert!(first.is_none_or(|(ticket, _)| coord.ready(*ticket)));
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_queue_does_what_a_list_would_do(steps in steps()) {
        compare(&steps)?;
    }
}
