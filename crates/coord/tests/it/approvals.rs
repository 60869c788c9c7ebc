//! Questions: one digest, one answer, one landing; and a random walk over everything that can happen to one.

use cotenant_coord::{
    AnswerError, Answered, ApprovalOutcome, Approver, Coord, Effect, Grant, HumanAnswer, KEPT_MS, Notice,
};
use cotenant_model::{ApprovalId, ChangeId, Code, Digest, Millis, Refusal};
use proptest::prelude::*;

use crate::kit::{A, B, ask, at, digest, edit, pair};

const Q: ApprovalId = ApprovalId(21);
const NOW: Millis = Millis(1000);

fn deny(reason: &str) -> HumanAnswer {
    HumanAnswer::Deny { reason: reason.to_owned() }
}

fn approve(coord: &mut Coord, wire: &str) -> Result<Grant, AnswerError> {
    match coord.answer(Q, wire, HumanAnswer::Approve, NOW)? {
        Answered::Approved(grant) => Ok(*grant),
        Answered::Denied => panic!("an approval is no denial"),
    }
}

/// A pair with one open question.
fn asked() -> (Coord, String) {
    let mut coord = pair();
    let (wire, _) = ask(&mut coord, Q.0, edit("f", "v1", "v2"), NOW);
    (coord, wire)
}

fn told(coord: &mut Coord) -> Vec<String> {
    let folders = crate::kit::folders();
    coord.take_notices(A).iter().map(|notice| notice.text(&folders, NOW)).collect()
}

#[test]
fn a_question_shows_what_would_land() {
    let (coord, wire) = asked();
    let pending: Vec<_> = coord.pending().collect();
    let [question] = pending[..] else { panic!("{pending:?}") };
    assert_eq!((question.id, question.session, question.asked), (Q, A, NOW));
    assert_eq!(question.digest.to_string(), wire);
    assert_eq!(question.paths().collect::<Vec<_>>(), [&at("f")]);
    assert_eq!((&*question.plan.author.agent, &*question.plan.tool), ("agent-a", "edit_file"));
    assert_eq!(coord.outcome(Q), Some(&ApprovalOutcome::Pending));
    assert_eq!(coord.outcome(ApprovalId(99)), None);
}

#[test]
fn approval_yields_the_grant_of_exactly_the_plan_that_was_shown() {
    let (mut coord, wire) = asked();
    let grant = approve(&mut coord, &wire).unwrap();
    assert_eq!(grant.digest().to_string(), wire);
    assert_eq!(grant.plan(), &edit("f", "v1", "v2"));
    assert_eq!(grant.approver(), Approver::Human { question: Some(Q) });
    assert!(grant.tokens().is_empty());
    assert_eq!(coord.outcome(Q), Some(&ApprovalOutcome::Landing));
    assert_eq!(coord.pending().count(), 0, "nobody else is asked");
    assert_eq!(approve(&mut coord, &wire).unwrap_err(), AnswerError::Gone, "an answer is given once");
    assert_eq!(coord.answer(Q, &wire, deny("late"), NOW).unwrap_err(), AnswerError::Gone);
    assert_eq!(coord.settle(Q, ApprovalOutcome::Landed(ChangeId(162)), NOW), [Effect::Settled(Q)]);
    assert_eq!(coord.outcome(Q), Some(&ApprovalOutcome::Landed(ChangeId(162))));
    assert_eq!(told(&mut coord), ["a21 approved: landed as c162"]);
}

#[test]
fn a_denial_lands_nothing_and_tells_the_reason() {
    let (mut coord, wire) = asked();
    assert!(matches!(coord.answer(Q, &wire, deny("keep\nthe name"), NOW), Ok(Answered::Denied)));
    let denied = ApprovalOutcome::Denied { reason: "keep\nthe name".to_owned() };
    assert_eq!(coord.outcome(Q), Some(&denied));
    assert_eq!(approve(&mut coord, &wire).unwrap_err(), AnswerError::Gone);
    assert_eq!(coord.settle(Q, ApprovalOutcome::Landed(ChangeId(1)), NOW), []);
    assert_eq!(coord.outcome(Q), Some(&denied));
    assert_eq!(told(&mut coord), ["a21 denied: \"keep the name\"; nothing was written"]);
}

#[test]
fn the_answer_must_name_the_present_digest() {
    let (mut coord, wire) = asked();
    for other in ["", "a", &wire[..15], "0000000000000000", &format!("{wire}00"), "not hex at all!!"] {
        for answer in [HumanAnswer::Approve, deny("")] {
            let error = coord.answer(Q, other, answer, NOW).unwrap_err();
            assert_eq!(
                error,
                AnswerError::OtherDigest { present: edit("f", "v1", "v2").digest() },
                "{other}"
            );
        }
    }
    let gone = coord.answer(ApprovalId(99), &wire, HumanAnswer::Approve, NOW).unwrap_err();
    assert_eq!(gone, AnswerError::Gone);
    assert!(approve(&mut coord, &wire.to_uppercase()).is_ok());
}

/// C050: a plan that was made anew is another question; the old yes does not fit it.
#[test]
fn c050_a_plan_made_anew_needs_a_new_yes() {
    let (mut coord, old) = asked();
    let anew = edit("f", "v1+", "v2+");
    assert!(coord.replan(Q, anew.clone()));
    let present = anew.digest();
    assert_eq!(approve(&mut coord, &old).unwrap_err(), AnswerError::OtherDigest { present });
    let grant = approve(&mut coord, &present.to_string()).unwrap();
    assert_eq!(grant.plan(), &anew);
    // The commit finds the file changed once more: the grant is spent, the question open again.
    drop(grant);
    let third = edit("f", "v1++", "v2++");
    assert!(!coord.replan(Q, third.clone()), "one that lands is left alone");
    assert!(coord.reopen(Q, third.clone()));
    assert!(!coord.reopen(Q, third.clone()), "once for each grant");
    assert_eq!(coord.outcome(Q), Some(&ApprovalOutcome::Pending));
    assert!(approve(&mut coord, &present.to_string()).is_err());
    assert!(approve(&mut coord, &third.digest().to_string()).is_ok());
}

#[test]
fn what_follows_from_what() {
    let refusal = || ApprovalOutcome::Refused(Box::new(Refusal::new(Code::Busy, "open elsewhere")));
    let denied = || ApprovalOutcome::Denied { reason: String::new() };
    for (outcome, from_pending, from_landing) in [
        (ApprovalOutcome::Landed(ChangeId(1)), false, true),
        (refusal(), false, true),
        (denied(), true, false),
        (ApprovalOutcome::Stale, true, true),
        (ApprovalOutcome::Pending, false, false),
        (ApprovalOutcome::Landing, false, false),
    ] {
        for (approved, follows) in [(false, from_pending), (true, from_landing)] {
            let (mut coord, wire) = asked();
            let grant = approved.then(|| approve(&mut coord, &wire).unwrap());
            let effects = coord.settle(Q, outcome.clone(), NOW);
            assert_eq!(!effects.is_empty(), follows, "{outcome:?} {approved}");
            assert_eq!(
                coord.outcome(Q).unwrap() == &outcome,
                follows
                    || !approved && outcome == ApprovalOutcome::Pending
                    || approved && outcome == ApprovalOutcome::Landing
            );
            assert_eq!(coord.outcome(Q).unwrap().is_final(), follows);
            drop(grant);
        }
    }
    let mut coord = pair();
    assert_eq!(coord.settle(Q, ApprovalOutcome::Stale, NOW), [], "a question that never was");
}

#[test]
fn the_texts_of_outcomes() {
    let busy = ApprovalOutcome::Refused(Box::new(Refusal::new(Code::Busy, "open elsewhere")));
    for (outcome, approved, text) in [
        (ApprovalOutcome::Denied { reason: String::new() }, false, "a21 denied: nothing was written"),
        (
            ApprovalOutcome::Stale,
            false,
            "a21 void: the files changed and it no longer fits; nothing was written",
        ),
        (busy, true, "a21 approved, but refused: BUSY"),
    ] {
        let (mut coord, wire) = asked();
        let grant = approved.then(|| approve(&mut coord, &wire).unwrap());
        coord.settle(Q, outcome, NOW);
        assert_eq!(told(&mut coord), [text]);
        drop(grant);
    }
}

#[test]
fn a_call_that_answers_with_the_outcome_is_not_told_of_it_again() {
    let (mut coord, wire) = asked();
    assert_eq!(coord.collect(Q), Some(ApprovalOutcome::Pending));
    coord.answer(Q, &wire, deny("no"), NOW).unwrap();
    assert_eq!(coord.collect(Q), Some(ApprovalOutcome::Denied { reason: "no".to_owned() }));
    assert_eq!(told(&mut coord), Vec::<String>::new());
    assert!(coord.collect(Q).is_some(), "it may be collected again while it is kept");
    assert_eq!(coord.collect(ApprovalId(99)), None);
}

#[test]
fn the_result_is_kept_for_ten_minutes_after_the_answer_however_late_that_is() {
    let mut coord = pair();
    let (wire, token) = ask(&mut coord, Q.0, edit("f", "v1", "v2"), NOW);
    let late = NOW.plus(KEPT_MS * 100);
    coord.tick(late);
    assert_eq!(coord.next_deadline(), None, "a question has no deadline");
    assert!(coord.retry(A, token, late).is_some());
    coord.answer(Q, &wire, deny("no"), late).unwrap();
    assert_eq!(coord.next_deadline(), Some(late.plus(KEPT_MS)));
    let last = late.plus(KEPT_MS - 1);
    coord.tick(last);
    assert!(coord.retry(A, token, last).is_some() && coord.outcome(Q).is_some());
    let over = late.plus(KEPT_MS);
    assert!(coord.retry(A, token, over).is_none(), "over without a tick, too");
    coord.tick(over);
    assert!(coord.outcome(Q).is_none() && coord.next_deadline().is_none());
}

#[test]
fn a_replaced_root_voids_what_waits_and_not_what_lands() {
    let mut coord = pair();
    let (wire, _) = ask(&mut coord, 1, edit("f", "v1", "v2"), NOW);
    ask(&mut coord, 2, edit("g", "v1", "v2"), NOW);
    let grant = coord.answer(ApprovalId(1), &wire, HumanAnswer::Approve, NOW).unwrap();
    assert_eq!(coord.void_all(NOW), [Effect::Settled(ApprovalId(2))]);
    assert_eq!(coord.outcome(ApprovalId(1)), Some(&ApprovalOutcome::Landing));
    assert_eq!(coord.outcome(ApprovalId(2)), Some(&ApprovalOutcome::Stale));
    drop(grant);
}

#[test]
fn an_agent_cannot_bury_the_human() {
    let mut coord = pair();
    for id in 0..100 {
        assert!(coord.may_ask("agent-a"), "{id}");
        ask(&mut coord, id, edit("f", "v1", &id.to_string()), NOW);
    }
    assert!(!coord.may_ask("agent-a") && coord.may_ask("agent-b"));
    coord.settle(ApprovalId(3), ApprovalOutcome::Stale, NOW);
    assert!(coord.may_ask("agent-a"));
}

#[test]
fn reviewers_come_and_go() {
    let mut coord = Coord::new();
    coord.reviewer_went();
    assert_eq!(coord.reviewers(), 0);
    coord.reviewer_came();
    coord.reviewer_came();
    coord.reviewer_went();
    assert_eq!(coord.reviewers(), 1);
}

#[test]
fn who_has_gone_is_told_nothing_and_leaves_nothing_behind() {
    let (mut coord, wire) = asked();
    coord.end_session(A, NOW);
    coord.answer(Q, &wire, deny("no"), NOW).unwrap();
    assert!(coord.take_notices(A).is_empty() && coord.take_notices(B).is_empty());
}

#[test]
fn a_grant_by_policy_binds_to_its_plan() {
    let mut coord = pair();
    let grant = coord.authorise(edit("f", "a", "b"), Approver::Policy);
    assert_eq!((grant.digest(), grant.approver()), (edit("f", "a", "b").digest(), Approver::Policy));
    assert_eq!(grant.into_plan(), edit("f", "a", "b"));
}

/// What can happen to a question; numbers choose among what is there.
#[derive(Clone, Debug)]
enum Event {
    Ask(u8),
    /// With the present digest, or with an earlier one.
    Approve(u8, bool),
    Deny(u8, bool),
    Replan(u8),
    /// The commit of a grant ends: landed, refused, or found the files changed and planned anew.
    Commit(u8, u8),
    Stale(u8),
    Wait(u32),
    EndSession,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        3 => (0..6u8).prop_map(Event::Ask),
        3 => (0..6u8, any::<bool>()).prop_map(|(q, present)| Event::Approve(q, present)),
        2 => (0..6u8, any::<bool>()).prop_map(|(q, present)| Event::Deny(q, present)),
        2 => (0..6u8).prop_map(Event::Replan),
        4 => (any::<u8>(), 0..3u8).prop_map(|(grant, end)| Event::Commit(grant, end)),
        1 => (0..6u8).prop_map(Event::Stale),
        2 => (0..400_000u32).prop_map(Event::Wait),
        1 => Just(Event::EndSession),
    ];
    prop::collection::vec(event, 1..80)
}

/// The walk: the state under test, what was ever seen of each question, and the grants that were given out.
struct Walk {
    coord: Coord,
    now: Millis,
    digests: Vec<Vec<Digest>>,
    approved: Vec<Option<Digest>>,
    denied: Vec<bool>,
    landed: Vec<Vec<Digest>>,
    grants: Vec<(u8, Grant)>,
    versions: u32,
}

impl Walk {
    fn new() -> Walk {
        let none = || vec![Vec::new(); 6];
        Walk {
            coord: pair(),
            now: NOW,
            digests: none(),
            approved: vec![None; 6],
            denied: vec![false; 6],
            landed: none(),
            grants: Vec::new(),
            versions: 0,
        }
    }

    fn fresh(&mut self) -> cotenant_model::Plan {
        self.versions += 1;
        edit("f", "v1", &format!("v{}", self.versions))
    }

    fn wire(&self, q: u8, present: bool) -> String {
        let known = &self.digests[usize::from(q)];
        let chosen = if present { known.last() } else { known.first() };
        chosen.map_or_else(|| digest("nothing").to_string(), Digest::to_string)
    }

    fn step(&mut self, event: &Event) -> Result<(), TestCaseError> {
        match *event {
            Event::Ask(q) if self.digests[usize::from(q)].is_empty() => {
                let plan = self.fresh();
                self.digests[usize::from(q)].push(plan.digest());
                ask(&mut self.coord, u64::from(q), plan, self.now);
            }
            Event::Ask(_) => {}
            Event::Approve(q, present) => self.approve(q, present)?,
            Event::Deny(q, present) => {
                let wire = self.wire(q, present);
                let id = ApprovalId(u64::from(q));
                self.denied[usize::from(q)] |= self.coord.answer(id, &wire, deny("no"), self.now).is_ok();
            }
            Event::Replan(q) => {
                let plan = self.fresh();
                if self.coord.replan(ApprovalId(u64::from(q)), plan.clone()) {
                    self.digests[usize::from(q)].push(plan.digest());
                }
            }
            Event::Commit(n, end) => self.commit(n, end)?,
            Event::Stale(q) if self.grants.iter().all(|(of, _)| *of != q) => {
                self.coord.settle(ApprovalId(u64::from(q)), ApprovalOutcome::Stale, self.now);
            }
            Event::Stale(_) => {}
            Event::Wait(ms) => {
                self.now = self.now.plus(u64::from(ms));
                self.coord.tick(self.now);
            }
            Event::EndSession => {
                self.coord.end_session(A, self.now);
            }
        }
        Ok(())
    }

    fn approve(&mut self, q: u8, present: bool) -> Result<(), TestCaseError> {
        let wire = self.wire(q, present);
        let latest = self.digests[usize::from(q)].last().copied();
        let answered = self.coord.answer(ApprovalId(u64::from(q)), &wire, HumanAnswer::Approve, self.now);
        if let Ok(Answered::Approved(grant)) = answered {
            prop_assert_eq!(Some(grant.digest()), latest, "only the digest that stands now");
            prop_assert!(grant.digest().matches(&wire), "and only the one that the human named");
            prop_assert!(self.grants.iter().all(|(of, _)| *of != q), "one grant at a time");
            self.approved[usize::from(q)] = Some(grant.digest());
            self.grants.push((q, *grant));
        }
        Ok(())
    }

    fn commit(&mut self, n: u8, end: u8) -> Result<(), TestCaseError> {
        if self.grants.is_empty() {
            return Ok(());
        }
        let (q, grant) = self.grants.remove(usize::from(n) % self.grants.len());
        let id = ApprovalId(u64::from(q));
        match end {
            0 => {
                self.landed[usize::from(q)].push(grant.digest());
                let effects = self.coord.settle(id, ApprovalOutcome::Landed(ChangeId(9)), self.now);
                prop_assert_eq!(effects, [Effect::Settled(id)], "who commits is believed");
            }
            1 => {
                let refusal = Box::new(Refusal::new(Code::Busy, "busy"));
                let effects = self.coord.settle(id, ApprovalOutcome::Refused(refusal), self.now);
                prop_assert_eq!(effects, [Effect::Settled(id)]);
            }
            _ => {
                let plan = self.fresh();
                self.digests[usize::from(q)].push(plan.digest());
                prop_assert!(self.coord.reopen(id, plan));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        for q in 0..6u8 {
            let n = usize::from(q);
            let outcome = self.coord.outcome(ApprovalId(u64::from(q)));
            prop_assert!(self.landed[n].len() <= 1, "a plan lands at most once");
            prop_assert!(
                self.landed[n].iter().all(|digest| Some(*digest) == self.approved[n]),
                "as approved"
            );
            prop_assert!(!self.denied[n] || self.landed[n].is_empty(), "what is denied never lands");
            let landing = self.grants.iter().any(|(of, _)| *of == q);
            prop_assert_eq!(landing, outcome == Some(&ApprovalOutcome::Landing), "question {}", q);
            if matches!(outcome, Some(ApprovalOutcome::Landed(_))) {
                prop_assert_eq!(self.landed[n].len(), 1);
            }
            let pending = self.coord.pending().any(|question| question.id == ApprovalId(u64::from(q)));
            prop_assert_eq!(pending, outcome == Some(&ApprovalOutcome::Pending));
        }
        let due = self.coord.next_deadline();
        prop_assert!(due.is_none_or(|due| due > self.now), "what is over was ended: {:?}", due);
        Ok(())
    }
}

proptest! {
    #[test]
    fn whatever_happens_a_plan_lands_once_as_approved_or_not_at_all(events in events()) {
        let mut walk = Walk::new();
        for event in &events {
            walk.step(event)?;
            walk.coord.tick(walk.now);
            walk.check()?;
        }
    }
}

#[test]
fn a_notice_of_an_answer_has_its_kind() {
    let (mut coord, wire) = asked();
    coord.answer(Q, &wire, deny(""), NOW).unwrap();
    let notices = coord.take_notices(A);
    assert!(matches!(&notices[..], [Notice::Approval { id: Q, .. }]), "{notices:?}");
    assert_eq!((notices[0].kind().name(), notices[0].at()), ("approval", None));
}
