//! The one state behind the pipeline, with every event that it knows. The parts decide, each for itself; what one
//! event means to several of them stands here.

use cotenant_model::{
    Agent, ApprovalId, ChangeId, Code, Digest, HandleId, Millis, Plan, RetryToken, SessionId, SuggestionId,
    WsPath,
};

use crate::approvals::{AnswerError, Answered, ApprovalOutcome, Approvals, HumanAnswer, Pending};
use crate::effect::{Effect, Why};
use crate::grant::{Approver, Grant};
use crate::keep::{Handle, Keep, Retry, Suggestion};
use crate::lines::LineMap;
use crate::notices::{Notice, Notices};
use crate::order::{Footprint, Order, Ticket};
use crate::receipts::{Receipt, Receipts, Shown, Standing};
use crate::sessions::{NewSession, Session, Sessions};
use crate::stats::{SessionTally, Signature, Stats, Totals};
use crate::tries::Tries;
use crate::work::{LandedFile, Unseen, Work, Works};

/// Sessions, receipts, order, approvals and what is kept, of one workspace.
///
/// Events about a session that is not open change nothing, but for its questions and the counts. `now` is on any one scale that never goes back.
#[derive(Debug, Default)]
pub struct Coord {
    sessions: Sessions,
    receipts: Receipts,
    tries: Tries,
    order: Order,
    approvals: Approvals,
    reviewers: u32,
    keep: Keep,
    notices: Notices,
    works: Works,
    stats: Stats,
}

impl Coord {
    /// Nobody connected, nothing known.
    pub fn new() -> Coord {
        Coord::default()
    }

    /// Nobody is connected and no question is open: the daemon may stop.
    pub fn is_idle(&self) -> bool {
        self.sessions.is_empty() && self.approvals.open().next().is_none()
    }

    /// Ends what is over at `now`. Call it at [`Coord::next_deadline`]; oftener does no harm.
    pub fn tick(&mut self, now: Millis) -> Vec<Effect> {
        let expired = self.sessions.expired(now, |id| self.order.busy(id));
        self.approvals.expire(now);
        self.keep.expire(now, |approval| self.approvals.is_kept(approval, now));
        expired.into_iter().flat_map(|id| self.end(id, Why::Expired)).collect()
    }

    /// When [`Coord::tick`] has something to do next.
    pub fn next_deadline(&self) -> Option<Millis> {
        let session = self.sessions.deadlines(|id| self.order.busy(id)).map(|(deadline, _)| deadline).min();
        [session, self.keep.deadline(), self.approvals.deadline()].into_iter().flatten().min()
    }
}

/// Sessions and turns.
impl Coord {
    /// Opens a session; its first turn begins. An id is used once.
    pub fn open_session(&mut self, id: SessionId, who: NewSession, now: Millis) {
        self.stats.open(id, &who.agent);
        self.sessions.open(id, who, now);
    }

    /// The client said who it is.
    pub fn rename_session(&mut self, id: SessionId, agent: Agent) {
        if let Some(session) = self.sessions.get_mut(id) {
            self.stats.open(id, &agent);
            session.agent = agent;
        }
    }

    /// Narrows a session to directories; it can only become narrower: what lies in none of the former ones is dropped.
    pub fn narrow_session(&mut self, id: SessionId, within: Vec<WsPath>) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.within = Some(within.into_iter().filter(|root| session.may_enter(root)).collect());
        }
    }

    /// Switches plan mode.
    pub fn set_plan_mode(&mut self, id: SessionId, on: bool) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.plan_mode = on;
        }
    }

    /// The client went. What was bound to the session goes; its open questions stay and land if approved.
    pub fn end_session(&mut self, id: SessionId, _now: Millis) -> Vec<Effect> {
        self.end(id, Why::Closed)
    }

    fn end(&mut self, id: SessionId, why: Why) -> Vec<Effect> {
        if !self.sessions.end(id) {
            return Vec::new();
        }
        self.receipts.end(id);
        self.tries.end(id);
        self.keep.end(id);
        self.notices.end(id);
        self.works.end(id);
        self.stats.end(id);
        let tickets = self.order.end(id);
        let ready = (!tickets.is_empty()).then_some(Effect::Ready(tickets));
        [Effect::Ended { session: id, why }].into_iter().chain(ready).collect()
    }

    /// The session, while it is open.
    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(id)
    }

    /// The open sessions, by id.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter()
    }

    /// Something was heard of the session: a call came, or its answer went.
    pub fn called(&mut self, id: SessionId, now: Millis) {
        self.sessions.called(id, now);
    }

    /// The session's turn, from 1; 0 where it is not open.
    pub fn turn(&self, id: SessionId) -> u32 {
        self.sessions.get(id).map_or(0, |session| session.turn)
    }

    /// A turn begins, at the client's prompt hook or `_meta`; its number.
    pub fn mark_turn(&mut self, id: SessionId, now: Millis) -> u32 {
        self.sessions.mark_turn(id, now)
    }

    /// The turn that a change planned now belongs to. After [`crate::IDLE_MS`] without a call it is a new one.
    pub fn turn_for_change(&mut self, id: SessionId, now: Millis) -> u32 {
        self.sessions.turn_for_change(id, now)
    }
}

/// Receipts, and what others changed.
impl Coord {
    /// An answer shows the session something of a file.
    pub fn shown(&mut self, id: SessionId, at: &WsPath, shown: Shown, now: Millis) {
        if self.sessions.get(id).is_some() {
            self.receipts.shown(id, at, &shown, now);
            self.saw(id, at);
        }
    }

    /// What the session was shown of the file.
    pub fn receipt(&self, id: SessionId, at: &WsPath) -> Option<&Receipt> {
        self.receipts.get(id, at)
    }

    /// The session's own change took the file from `old` to `new` (`None`: deleted): its receipt follows, others' stay
    /// on what they were shown. After a whole diff of another's change was shown, the same event catches up.
    pub fn renewed(
        &mut self,
        id: SessionId,
        at: &WsPath,
        old: Digest,
        new: Option<Digest>,
        map: &LineMap,
        now: Millis,
    ) {
        if self.sessions.get(id).is_some() {
            self.receipts.renewed(id, at, old, new, map, now);
            if map.known {
                self.saw(id, at);
            }
        }
    }

    /// The path and all below it is gone: no receipt for it stands.
    pub fn forget_path(&mut self, at: &WsPath) {
        self.receipts.forget(at);
    }

    /// A change of a session or (`None`) one that was found moved a file or directory: receipts for it and all below
    /// follow, those of what it replaced go. Other sessions that saw something of it hear where it went.
    pub fn moved(
        &mut self,
        by: Option<SessionId>,
        change: ChangeId,
        from: &WsPath,
        to: &WsPath,
        now: Millis,
    ) {
        let agent = self.agent(by);
        let others: Vec<_> = self.receipts.holders_below(from).filter(|id| Some(*id) != by).collect();
        for id in others {
            let (at, to, by) = (from.clone(), to.clone(), agent.clone());
            self.notices.push(id, Notice::Moved { at, to, by, change, time: now });
        }
        self.receipts.moved(from, to);
        self.works.moved(from, to);
        if let Some(id) = by.filter(|id| self.sessions.get(*id).is_some()) {
            self.works.did(id, to, change);
            self.tries.succeeded(id, Some(to));
        }
    }

    /// The agent behind a change, of a session that has ended, too: what it asked for lands when a human says yes.
    fn agent(&self, by: Option<SessionId>) -> Option<Agent> {
        Some(self.stats.session(by?)?.agent.clone())
    }

    /// The root was replaced: receipts and open plans are void.
    pub fn void_all(&mut self, now: Millis) -> Vec<Effect> {
        self.receipts.clear();
        self.works.forget_unseen();
        let pending: Vec<ApprovalId> = self.approvals.pending().map(|question| question.id).collect();
        pending.into_iter().flat_map(|id| self.settle(id, ApprovalOutcome::Stale, now)).collect()
    }

    /// How the session stands to a file that now has the digest `current`.
    pub fn standing(&self, id: SessionId, at: &WsPath, current: Digest) -> Standing {
        self.receipts.standing(id, at, current)
    }

    /// A change landed, of a session or (`None`) found: other sessions that saw the files hear of it.
    pub fn landed(&mut self, by: Option<SessionId>, change: ChangeId, files: &[LandedFile], now: Millis) {
        let agent = self.agent(by);
        for file in files {
            if let Some(id) = by.filter(|id| self.sessions.get(*id).is_some()) {
                self.works.did(id, &file.at, change);
            }
            let others: Vec<_> = self.receipts.holders(&file.at).filter(|(id, _)| Some(*id) != by).collect();
            for (id, seen) in others {
                if file.post == Some(seen) {
                    // Back to what the session saw, as after an undo.
                    self.saw(id, &file.at);
                } else {
                    self.missed(id, file, agent.clone(), change, now);
                }
            }
        }
    }

    fn missed(&mut self, id: SessionId, file: &LandedFile, by: Option<Agent>, change: ChangeId, now: Millis) {
        let (at, lines, deleted) = (file.at.clone(), file.lines.clone(), file.post.is_none());
        let unseen = Unseen { by: by.clone(), change, lines: lines.clone(), time: now };
        self.works.missed(id, &at, unseen);
        self.notices.push(id, Notice::Reload { at, by, change, lines, deleted, time: now });
    }

    fn saw(&mut self, id: SessionId, at: &WsPath) {
        self.works.saw(id, at);
        let told = |notice: &Notice| match notice {
            Notice::Reload { at: path, .. } | Notice::Moved { to: path, .. } => path == at,
            Notice::Approval { .. } | Notice::Other { .. } => false,
        };
        self.notices.withdraw(id, told);
    }

    /// What the session did and what it missed; `None` for nothing.
    pub fn own_changes(&self, id: SessionId) -> Option<&Work> {
        self.works.get(id)
    }

    /// The call was refused; how many times in a row with this code on this path. From [`crate::REGION_AT`] on the
    /// answer carries the region itself.
    pub fn refused(&mut self, id: SessionId, at: Option<&WsPath>, code: Code) -> u32 {
        if self.sessions.get(id).is_some() { self.tries.refused(id, at, code) } else { 1 }
    }

    /// A change on the path went through: refusals count anew.
    pub fn succeeded(&mut self, id: SessionId, at: Option<&WsPath>) {
        self.tries.succeeded(id, at);
    }
}

/// The order of calls.
impl Coord {
    /// A call arrived, in the order of the wire; its place.
    pub fn arrive(&mut self, id: SessionId, footprint: Footprint) -> Ticket {
        let ticket = self.order.arrive(id, footprint);
        if self.sessions.get(id).is_none() {
            self.order.leave(ticket);
        }
        ticket
    }

    /// Whether the call may run: no earlier one of its session overlaps it. True also when its session has ended.
    pub fn ready(&self, ticket: Ticket) -> bool {
        self.order.ready(ticket)
    }

    /// The call is done, was given up, or waits for a human; the calls that may run now. A second time does nothing.
    pub fn leave(&mut self, ticket: Ticket) -> Vec<Ticket> {
        self.order.leave(ticket)
    }
}

/// Approvals and grants.
impl Coord {
    /// Permission for a plan that the verdict allowed, or that a human commanded. The plan of a question gets its grant
    /// from [`Coord::answer`] alone.
    pub fn authorise(&mut self, plan: Plan, approver: Approver) -> Grant {
        Grant::mint(plan, Vec::new(), approver)
    }

    /// Whether the agent may put one more question; beyond 100 open ones the answer is `LIMIT_REACHED`.
    pub fn may_ask(&self, agent: &str) -> bool {
        self.approvals.may_ask(agent)
    }

    /// A plan waits for a human from now on. `retry`: from [`Coord::keep_retry`] with this question's id.
    pub fn ask(&mut self, id: ApprovalId, plan: Plan, session: SessionId, retry: RetryToken, now: Millis) {
        let digest = plan.digest();
        self.approvals.ask(Pending { id, session, plan, digest, asked: now, retry });
    }

    /// The questions that can be answered, oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &Pending> {
        self.approvals.pending()
    }

    /// A human answers. `digest` names the plan they saw: at least 16 hex digits. After `Approved` the engine commits
    /// the grant and settles the question; `Denied` is settled already ([`Effect::Settled`] is due).
    pub fn answer(
        &mut self,
        id: ApprovalId,
        digest: &str,
        answer: HumanAnswer,
        now: Millis,
    ) -> Result<Answered, AnswerError> {
        match answer {
            HumanAnswer::Approve => {
                let plan = self.approvals.approve(id, digest)?;
                let approver = Approver::Human { question: Some(id) };
                Ok(Answered::Approved(Box::new(self.authorise(plan, approver))))
            }
            HumanAnswer::Deny { reason } => {
                self.approvals.check(id, digest)?;
                self.settle(id, ApprovalOutcome::Denied { reason }, now);
                Ok(Answered::Denied)
            }
        }
    }

    /// Where the question stands; `None` when it was never asked or its outcome is no longer kept.
    pub fn outcome(&self, id: ApprovalId) -> Option<&ApprovalOutcome> {
        self.approvals.outcome(id)
    }

    /// Where the question stands, for a call that answers with it: the session need not be told again.
    pub fn collect(&mut self, id: ApprovalId) -> Option<ApprovalOutcome> {
        let (session, outcome) = self.approvals.settled(id)?;
        let outcome = outcome.clone();
        self.notices
            .withdraw(session, |notice| matches!(notice, Notice::Approval { id: of, .. } if *of == id));
        Some(outcome)
    }

    /// The last word on an open question; its session is told with the next answer. Only what was approved lands or is
    /// refused, and nothing is settled twice: anything else is ignored, without effect.
    pub fn settle(&mut self, id: ApprovalId, outcome: ApprovalOutcome, now: Millis) -> Vec<Effect> {
        let text = settled(&outcome);
        let Some(session) = self.approvals.settle(id, outcome, now) else { return Vec::new() };
        if self.sessions.get(session).is_some() {
            self.notices.push(session, Notice::Approval { id, text });
        }
        vec![Effect::Settled(id)]
    }

    /// The files under a waiting plan changed and it was planned anew, or a human edited it: the question stands under
    /// the new digest. Whether it was waiting; one that lands is left alone, or its plan could land twice.
    pub fn replan(&mut self, id: ApprovalId, plan: Plan) -> bool {
        self.approvals.replan(id, plan, false)
    }

    /// The commit of an approved plan found its files changed, wrote nothing, and it was planned anew: the human is
    /// asked again, under the new digest. Only for the commit that consumed the grant. Whether it was landing.
    pub fn reopen(&mut self, id: ApprovalId, plan: Plan) -> bool {
        self.approvals.replan(id, plan, true)
    }

    /// A reviewer is there: a terminal review or a page's event stream opened.
    pub fn reviewer_came(&mut self) {
        self.reviewers = self.reviewers.saturating_add(1);
    }

    /// And closed.
    pub fn reviewer_went(&mut self) {
        self.reviewers = self.reviewers.saturating_sub(1);
    }

    /// How many are there.
    pub fn reviewers(&self) -> u32 {
        self.reviewers
    }
}

/// What the notice of an outcome says.
fn settled(outcome: &ApprovalOutcome) -> String {
    match outcome {
        ApprovalOutcome::Landed(change) => format!("approved: landed as {change}"),
        ApprovalOutcome::Ran => "approved: it ran and changed nothing".to_owned(),
        ApprovalOutcome::Denied { reason } if reason.is_empty() => "denied: nothing was written".to_owned(),
        ApprovalOutcome::Denied { reason } => format!("denied: \"{reason}\"; nothing was written"),
        ApprovalOutcome::Stale => {
            "void: the files changed and it no longer fits; nothing was written".to_owned()
        }
        ApprovalOutcome::Refused(refusal) => format!("approved, but refused: {}", refusal.code),
        ApprovalOutcome::Pending | ApprovalOutcome::Landing => "waits".to_owned(),
    }
}

/// What is kept for a session.
impl Coord {
    /// Keeps a call for `retry`: 10 minutes, with a question at least until 10 minutes after its answer.
    pub fn keep_retry(&mut self, session: SessionId, retry: Retry, now: Millis) -> RetryToken {
        let id = self.keep.keep_retry(session, retry, now);
        self.keep_if_open(session);
        RetryToken(id)
    }

    /// The call, if it is this session's and still kept. It stays.
    pub fn retry(&self, session: SessionId, token: RetryToken, now: Millis) -> Option<Retry> {
        let lives = |retry: &Retry| retry.approval.is_some_and(|id| self.approvals.is_kept(id, now));
        self.keep.retries.get(session, token.0, now, lives).cloned()
    }

    /// Keeps a proposal, for 10 minutes.
    pub fn keep_suggestion(
        &mut self,
        session: SessionId,
        suggestion: Suggestion,
        now: Millis,
    ) -> SuggestionId {
        let id = self.keep.keep_suggestion(session, suggestion, now);
        self.keep_if_open(session);
        SuggestionId(id)
    }

    /// The proposal, if it is this session's and still kept.
    pub fn suggestion(&self, session: SessionId, id: SuggestionId, now: Millis) -> Option<Suggestion> {
        self.keep.suggestions.get(session, id.0, now, |_| false).cloned()
    }

    /// Keeps a capped answer, for an hour and within 16 MB per session, 64 MB in all; the oldest go first.
    pub fn keep_handle(&mut self, session: SessionId, handle: Handle, now: Millis) -> HandleId {
        let id = self.keep.keep_handle(session, handle, now);
        self.keep_if_open(session);
        HandleId(id)
    }

    /// A call that outlived its session gets its id, but nobody could ever fetch what it names.
    fn keep_if_open(&mut self, session: SessionId) {
        if self.sessions.get(session).is_none() {
            self.keep.end(session);
        }
    }

    /// The answer, if it is this session's and still kept.
    pub fn handle(&self, session: SessionId, id: HandleId, now: Millis) -> Option<Handle> {
        self.keep.handles.get(session, id.0, now, |_| false).cloned()
    }
}

/// Notices and counts.
impl Coord {
    /// Something the session must be told with its next answer.
    pub fn push_notice(&mut self, session: SessionId, notice: Notice) {
        if self.sessions.get(session).is_some() {
            self.notices.push(session, notice);
        }
    }

    /// What must be told, in order; it counts as told.
    pub fn take_notices(&mut self, session: SessionId) -> Vec<Notice> {
        self.notices.take(session)
    }

    /// Whether something waits to be told.
    pub fn has_notices(&self, session: SessionId) -> bool {
        self.notices.waits(session)
    }

    /// What was told last, oldest first: `whoami` repeats it.
    pub fn recent_notices(&self, session: SessionId) -> impl Iterator<Item = &Notice> {
        self.notices.recent(session)
    }

    /// Counts a call and how it ended.
    pub fn counted(&mut self, session: SessionId, tool: &str, outcome: Result<(), Code>) {
        self.stats.counted(session, tool, outcome);
    }

    /// A `TEXT_NOT_FOUND` with its likely cause, such as `tabs`. Three in a row, with no edit that went through between
    /// them, are a signature.
    pub fn missed_text(&mut self, session: SessionId, cause: &str) {
        self.stats.missed(session, cause);
    }

    /// The counts since the start, by tool and by code.
    pub fn totals(&self) -> &Totals {
        self.stats.totals()
    }

    /// The counts of one session.
    pub fn tally(&self, session: SessionId) -> Option<&SessionTally> {
        self.stats.session(session)
    }

    /// The counts of the open sessions and of the latest ended ones, by id.
    pub fn tallies(&self) -> impl Iterator<Item = &SessionTally> {
        self.stats.sessions()
    }

    /// The signatures, oldest first.
    pub fn signatures(&self) -> &[Signature] {
        self.stats.signatures()
    }
}
