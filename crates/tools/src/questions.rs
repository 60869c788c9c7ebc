//! Questions to the human, from the call that raises one to the answer that lands it and the retry that collects it.

use std::sync::{Arc, MutexGuard, PoisonError};

use cotenant_coord::{AnswerError, ApprovalOutcome, Grant, HumanAnswer, Pending, Retry};
use cotenant_engine::Idempotency;
use cotenant_model::{ApprovalId, ChangeId, Code, Durability, JobId, Plan, Refusal, RetryToken, SessionId};
use serde_json::{Map, Value, json};

use crate::args::{Args, canonical, with_end_line};
use crate::calls::Heard;
use crate::gate::AskedBy;
use crate::host::Call;
use crate::planned::Planned;
use crate::reply::Reply;
use crate::shell::effects::Settling;
use crate::shell::exec::Opening;
use crate::shell::jobs::Job;
use crate::shell::wanted::Wanted;
use crate::tool::{Run, Tool};
use crate::toolbox::Toolbox;

/// What is needed to carry a question out, and to answer the session afterwards.
pub(crate) struct Question {
    session: SessionId,
    tool: &'static Tool,
    raw: Map<String, Value>,
    durability: Durability,
    key: Option<Idempotency>,
    retry: RetryToken,
    planned: Planned,
    /// What an answer of yes brings about.
    then: Then,
    /// The command that a yes began: its answer is the question's.
    job: Option<JobId>,
    /// The hook that wants it asked, and why.
    asked: Option<AskedBy>,
    /// The answer, once it has landed.
    done: Option<Reply>,
}

/// What a yes to a question brings about.
pub(crate) enum Then {
    /// The plan lands; where the files changed by then, the same call plans anew.
    Lands,
    /// The plan lands as it is, or not at all: it was shown byte for byte.
    LandsAsShown,
    /// The plan lands; where the files changed by then, what a command did is merged into them anew.
    Merges(Arc<Settling>),
    /// The command runs.
    Runs(Box<Wanted>),
    /// The sandbox is opened.
    Opens(Box<Opening>),
}

/// What is put before a human.
pub(crate) struct Raised<'a> {
    pub(crate) session: SessionId,
    pub(crate) tool: &'static Tool,
    pub(crate) raw: &'a Map<String, Value>,
    pub(crate) plan: Plan,
    pub(crate) planned: Planned,
    pub(crate) then: Then,
    pub(crate) asked: Option<AskedBy>,
    pub(crate) key: Option<&'a Idempotency>,
}

/// How a plan is made anew.
enum Again {
    No,
    Call,
    Merge(Arc<Settling>),
}

/// What begins with a yes.
pub(crate) enum Begins {
    Command(Box<Wanted>),
    Sandbox(Box<Opening>),
}

/// Whose it is, with the arguments of the call, and the call's key.
pub(crate) type ToBegin = (SessionId, Map<String, Value>, Begins, Option<Idempotency>);

/// What a human's yes led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approved {
    /// The change that landed.
    Landed(ChangeId),
    /// The command that runs.
    Runs(JobId),
    /// What was asked for was done, and changed nothing.
    Done,
}

/// Why a human's answer did not take effect.
#[derive(Debug)]
pub enum NotAnswered {
    /// The question is gone, or has been answered.
    Gone,
    /// The plan is another one by now: its digest.
    Other(String),
    /// The files changed; a new plan waits under this digest.
    Replanned(String),
    /// The files changed, and the change does not fit any more.
    Stale,
    /// The commit was refused.
    Refused(Box<Refusal>),
}

impl Toolbox {
    fn all_questions(&self) -> MutexGuard<'_, std::collections::HashMap<ApprovalId, Question>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a plan before the human and, where a reviewer is there, waits a while for the answer.
    pub(crate) fn ask(
        &self,
        heard: &Heard<'_>,
        plan: Plan,
        planned: Planned,
        then: Then,
        key: Option<&Idempotency>,
    ) -> Result<Reply, Refusal> {
        let (session, tool) = (heard.call.session, heard.tool);
        let asked = heard.asked.clone();
        let id = self.raise(Raised { session, tool, raw: &heard.raw, plan, planned, then, asked, key })?;
        self.await_answer(heard, id)
    }

    /// Puts something before the human; whoever wants the outcome collects it.
    pub(crate) fn raise(&self, raised: Raised<'_>) -> Result<ApprovalId, Refusal> {
        let Raised { session, tool, raw, plan, planned, then, asked, key } = raised;
        let mut raw = raw.clone();
        raw.remove("idempotency_key");
        let args = serde_json::to_vec(&raw).unwrap_or_default();
        let now = self.ws.clock().steady();
        let id = ApprovalId(self.ws.next_id("approval")?);
        let kept = Retry { tool: tool.name.into(), args: args.into(), approval: Some(id) };
        let retry = self.ws.coord().keep_retry(session, kept, now);
        let durability = self.ws.durability(self.terms(session).and_then(|terms| terms.durability));
        let key = key.cloned();
        let question = Question {
            session,
            tool,
            raw,
            durability,
            key,
            retry,
            planned,
            then,
            asked,
            job: None,
            done: None,
        };
        self.all_questions().insert(id, question);
        self.ws.ask(id, plan, retry).inspect_err(|_| drop(self.all_questions().remove(&id)))?;
        Ok(id)
    }

    /// The outcome of a question that was just raised by a call, after a wait where a reviewer is there.
    pub(crate) fn await_answer(&self, heard: &Heard<'_>, id: ApprovalId) -> Result<Reply, Refusal> {
        // A call that waits for a human leaves the order: later calls on its paths run (R17).
        self.leave(heard.call.ticket);
        let wait_ms = match self.ws.coord().reviewers() {
            0 => 0,
            _ => (self.ws.settings().approval_wait_s * 1000).min(self.left_ms(heard)),
        };
        self.collect(heard, id, wait_ms)
    }

    /// The outcome of a question, waiting for it up to `wait_ms`.
    pub(crate) fn collect(&self, heard: &Heard<'_>, id: ApprovalId, wait_ms: u64) -> Result<Reply, Refusal> {
        let began = self.ws.clock().steady();
        if let Some(job) = self.begun(id) {
            return self.followed(heard, &job, wait_ms);
        }
        let settled = |outcome: Option<&ApprovalOutcome>| outcome.is_none_or(ApprovalOutcome::is_final);
        let waited = self.ws.wait(wait_ms, |coord| settled(coord.outcome(id)).then_some(()));
        let outcome = match waited {
            Some(()) => self.ws.coord().collect(id),
            None => Some(ApprovalOutcome::Pending),
        };
        match outcome {
            Some(ApprovalOutcome::Landed(change)) => {
                let done = self.all_questions().remove(&id).and_then(|question| question.done);
                Ok(done.unwrap_or_else(|| Reply::new().fact("change", change.to_string())))
            }
            Some(ApprovalOutcome::Ran) => {
                let done = self.all_questions().remove(&id).and_then(|question| question.done);
                Ok(done.unwrap_or_default())
            }
            Some(ApprovalOutcome::Denied { reason }) => Err(self.denied(id, &reason)),
            Some(ApprovalOutcome::Refused(refusal)) => {
                self.all_questions().remove(&id);
                Err(*refusal)
            }
            Some(ApprovalOutcome::Pending | ApprovalOutcome::Landing) => {
                Err(self.pending(id, self.ws.clock().steady().since(began) / 1000))
            }
            Some(ApprovalOutcome::Stale) | None => Err(self.stale(heard.call, id)),
        }
    }

    fn pending(&self, id: ApprovalId, waited_s: u64) -> Refusal {
        let (kind, path, digest) = {
            let coord = self.ws.coord();
            match coord.pending().find(|question| question.id == id) {
                Some(found) => {
                    (found.plan.tool.to_string(), self.paths(&found.plan), found.digest.to_string())
                }
                None => (String::new(), Vec::new(), String::new()),
            }
        };
        let token =
            self.all_questions().get(&id).map(|question| question.retry.to_string()).unwrap_or_default();
        let asked = self.asked_by(id);
        let reviewer = if self.ws.coord().reviewers() > 0 { "there" } else { "none" };
        let why = asked.as_ref().filter(|asked| !asked.reason.is_empty());
        let why = why.map(|asked| format!(" Why it is asked: {:?}.", asked.reason)).unwrap_or_default();
        let refusal = Refusal::new(
            Code::ApprovalPending,
            format!("A human must approve this change; nobody has answered yet, which is not a refusal. It lands by itself when approved, even if you do not ask again.{why}"),
        )
        .fact("id", id.to_string())
        .fact("kind", kind);
        let refusal = match asked {
            Some(asked) => refusal.fact("hook", asked.hook),
            None => refusal,
        };
        let refusal = match &path[..] {
            [one] => refusal.fact("path", one.as_str()),
            _ => refusal.fact("paths", path),
        };
        refusal.fact("waited_s", waited_s).fact("reviewer", reviewer).fact("digest", digest).next(format!(
            "go on with work that does not need it. Later: retry {}. Tell the user once: `cotenant review`, or `cotenant approve {id}`. Do not do the same by another tool: that asks again",
            json!({"token": token, "wait_s": 50})
        ))
    }

    pub(crate) fn paths(&self, plan: &Plan) -> Vec<String> {
        let folders = self.ws.tree().folders();
        let mut files: Vec<String> =
            plan.ops.iter().flat_map(|op| op.paths()).map(|at| folders.show(at)).collect();
        files.dedup();
        files
    }

    fn denied(&self, id: ApprovalId, reason: &str) -> Refusal {
        let question = self.all_questions().remove(&id);
        let path =
            question.as_ref().and_then(|question| question.raw.get("path")?.as_str().map(str::to_owned));
        let said = if reason.is_empty() {
            "The human said no.".to_owned()
        } else {
            format!("The human said no: {reason:?}.")
        };
        let refusal = Refusal::new(Code::ApprovalDenied, format!("{said} Nothing was written."))
            .fact("id", id.to_string())
            .fact("kind", question.as_ref().map_or("", |question| question.tool.name));
        let refusal = match path {
            Some(path) => refusal.fact("path", path),
            None => refusal,
        };
        let refusal =
            refusal.fact("by", "human").next("do what the reason says; do not send this change again");
        // A no is final: the same key does not ask again.
        if let Some(key) = question.and_then(|question| question.key) {
            self.ws.remember(&key, &crate::calls::store_refusal(&refusal));
        }
        refusal
    }

    fn stale(&self, call: &Call, id: ApprovalId) -> Refusal {
        let question = self.all_questions().remove(&id);
        let refusal = Refusal::new(
            Code::ApprovalStale,
            "The files changed before the human answered, and the change does not fit any more. Nothing was written.",
        )
        .fact("id", id.to_string());
        let Some(question) = question else { return refusal.next("whoami {}") };
        let token = self.ctx(call.session, question.tool, &question.raw).retry_token();
        refusal.next(format!(
            "read the file, then retry {} if the change is still right",
            json!({"token": token})
        ))
    }

    /// `retry`: repeats a call with some arguments changed, or collects what a human decided.
    pub(crate) fn retry(&self, heard: &Heard<'_>) -> Result<Reply, Refusal> {
        let session = heard.call.session;
        let token = heard.args.need("token");
        let now = self.ws.clock().steady();
        let kept = token
            .trim()
            .parse::<RetryToken>()
            .ok()
            .and_then(|token| self.ws.coord().retry(session, token, now));
        let Some(kept) = kept else {
            return Err(Refusal::new(
                Code::HandleExpired,
                format!("{token} is no token of this session, or over 10 minutes old; nothing was done."),
            )
            .fact("token", token)
            .next("send the call itself again"));
        };
        let mut set = heard.args.value("set").and_then(Value::as_object).cloned().unwrap_or_default();
        if heard.args.flag("dry_run") {
            set.insert("dry_run".to_owned(), true.into());
        }
        let wait_ms = heard.args.count("wait_s").unwrap_or(0) as u64 * 1000;
        if let Some(id) = kept.approval.filter(|_| set.is_empty()) {
            self.leave(heard.call.ticket);
            return self.collect(heard, id, wait_ms.min(self.left_ms(heard)));
        }
        let repeatable = |tool: &&'static Tool| !matches!(tool.run, Run::Retry);
        let Some(tool) = crate::registry::find(&kept.tool).filter(repeatable) else {
            return Err(Refusal::new(Code::HandleExpired, "That tool is gone.").next("whoami {}"));
        };
        let mut args: Map<String, Value> = serde_json::from_slice(&kept.args).unwrap_or_default();
        for (name, value) in set {
            // The argument may have come under another of its names the first time.
            let meant = canonical(tool, &name);
            args.retain(|kept, _| canonical(tool, kept) != meant);
            if !value.is_null() {
                args.insert(name, value);
            }
        }
        self.again(heard, tool, args)
    }

    /// Runs the repeated call as a new one.
    fn again(
        &self,
        heard: &Heard<'_>,
        tool: &'static Tool,
        raw: Map<String, Value>,
    ) -> Result<Reply, Refusal> {
        let raw = with_end_line(tool, &raw);
        let args =
            Args::decode(tool, &raw).map_err(|refusal| self.retryable(heard.call, tool, &raw, refusal))?;
        let call = Call { tool: tool.name.to_owned(), args: raw.clone(), ..heard.call.clone() };
        self.run_plain(&Heard { call: &call, tool, raw, args, asked: None, began: heard.began })
    }

    /// Whether the same key waits for a human: then its outcome is this call's answer.
    pub(crate) fn recall_question(
        &self,
        heard: &Heard<'_>,
        key: &Idempotency,
    ) -> Result<Option<crate::host::Answer>, Refusal> {
        let id = {
            let questions = self.all_questions();
            let same = |question: &Question| {
                question.key.as_ref().is_some_and(|other| {
                    other.agent == key.agent && other.tool == key.tool && other.key == key.key
                })
            };
            let found = questions.iter().find(|(_, question)| same(question));
            found.map(|(id, question)| {
                (*id, question.key.as_ref().is_some_and(|other| other.args == key.args))
            })
        };
        let Some((id, same_call)) = id else { return Ok(None) };
        if !same_call {
            return Err(crate::calls::key_used(heard.tool));
        }
        let reply = self.collect(heard, id, 0)?;
        Ok(Some(self.render_reply(heard.call, reply)))
    }

    /// The hook that wants a question asked, and why; `None` where it is asked by rule or profile.
    pub fn asked_by(&self, id: ApprovalId) -> Option<AskedBy> {
        self.all_questions().get(&id).and_then(|question| question.asked.clone())
    }

    /// The questions that wait, oldest first.
    pub fn waiting(&self) -> Vec<Pending> {
        self.ws.coord().pending().cloned().collect()
    }

    /// A human approves: the change lands at once, if the files are still what the plan was made against; a command
    /// begins to run.
    pub fn approve(&self, id: ApprovalId, digest: &str) -> Result<Approved, NotAnswered> {
        let grant = match self.ws.answered(id, digest, HumanAnswer::Approve) {
            Ok(Some(grant)) => grant,
            Ok(None) | Err(AnswerError::Gone) => return Err(NotAnswered::Gone),
            Err(AnswerError::OtherDigest { present }) => return Err(NotAnswered::Other(present.to_string())),
        };
        self.decided("approve", id, digest, "");
        match grant.plan().command {
            Some(_) => self.begin_approved(id),
            None => self.land_approved(id, grant).map(Approved::Landed),
        }
    }

    fn land_approved(&self, id: ApprovalId, grant: Grant) -> Result<ChangeId, NotAnswered> {
        let turn = grant.plan().author.turn;
        let taken = {
            let questions = self.all_questions();
            questions.get(&id).map(|question| {
                (question.session, question.planned.clone(), question.durability, question.key.clone())
            })
        };
        let Some((session, planned, durability, key)) = taken else { return Err(NotAnswered::Gone) };
        match self.ws.land(grant, durability, key.clone()) {
            Ok(landed) => {
                let reply = self.finish(session, planned, &landed);
                if let Some(key) = &key {
                    self.ws.remember(key, &crate::calls::store_reply(&reply));
                }
                if let Some(question) = self.all_questions().get_mut(&id) {
                    question.done = Some(reply);
                }
                self.settle(id, ApprovalOutcome::Landed(landed.change));
                Ok(landed.change)
            }
            Err(refusal)
                if matches!(
                    refusal.code,
                    Code::FileChangedSinceRead | Code::AlreadyExists | Code::NotFound
                ) =>
            {
                Err(self.replan(id, turn, refusal))
            }
            Err(refusal) => {
                self.settle(id, ApprovalOutcome::Refused(Box::new(refusal.clone())));
                Err(NotAnswered::Refused(Box::new(refusal)))
            }
        }
    }

    /// The files changed under a plan that waited: planned anew where the change still fits, in the turn it was asked in.
    fn replan(&self, id: ApprovalId, turn: u32, refusal: Refusal) -> NotAnswered {
        let again = {
            let questions = self.all_questions();
            questions.get(&id).map(|question| {
                let how = match &question.then {
                    Then::Lands => Again::Call,
                    Then::Merges(settling) => Again::Merge(Arc::clone(settling)),
                    Then::LandsAsShown | Then::Runs(_) | Then::Opens(_) => Again::No,
                };
                (question.session, question.tool, question.raw.clone(), how)
            })
        };
        let planned = again.and_then(|(session, tool, raw, how)| {
            let ctx = self.ctx(session, tool, &raw);
            let planned = match how {
                Again::No => None,
                Again::Merge(settling) => self.merged_anew(&ctx, &settling),
                Again::Call => {
                    let Run::Change(plan) = tool.run else { return None };
                    plan(&ctx, &Args::decode(tool, &raw).ok()?).ok()
                }
            }?;
            let diff = planned.diff(self.ws.tree().folders(), crate::calls::DIFF);
            let plan = Plan { diff, ..self.plan(session, tool, &planned, turn) };
            Some((planned, plan))
        });
        let Some((planned, plan)) = planned else {
            return self.not_again(id, refusal);
        };
        let digest = plan.digest().to_string();
        if let Some(question) = self.all_questions().get_mut(&id) {
            question.planned = planned;
        }
        self.ws.coord().reopen(id, plan);
        self.ws.wake();
        NotAnswered::Replanned(digest)
    }

    /// Nothing can be planned anew: the question is void, and what was to land as shown says why.
    fn not_again(&self, id: ApprovalId, refusal: Refusal) -> NotAnswered {
        let as_shown = {
            let questions = self.all_questions();
            questions.get(&id).is_some_and(|question| matches!(question.then, Then::LandsAsShown))
        };
        if as_shown {
            self.settle(id, ApprovalOutcome::Refused(Box::new(refusal)));
        } else {
            self.settle(id, ApprovalOutcome::Stale);
        }
        NotAnswered::Stale
    }

    /// What a question that was approved is to run, with all that belongs to the call.
    pub(crate) fn to_run(&self, id: ApprovalId) -> Option<ToBegin> {
        let questions = self.all_questions();
        let question = questions.get(&id)?;
        let begins = match &question.then {
            Then::Runs(wanted) => Begins::Command(wanted.clone()),
            Then::Opens(opening) => Begins::Sandbox(opening.clone()),
            _ => return None,
        };
        Some((question.session, question.raw.clone(), begins, question.key.clone()))
    }

    /// A question whose yes was carried out at once has its answer.
    pub(crate) fn carried(&self, id: ApprovalId, reply: Reply) {
        if let Some(question) = self.all_questions().get_mut(&id) {
            question.done = Some(reply);
        }
        self.settle(id, ApprovalOutcome::Ran);
    }

    /// The command that a question's yes began.
    pub(crate) fn begins(&self, id: ApprovalId, job: JobId) {
        if let Some(question) = self.all_questions().get_mut(&id) {
            question.job = Some(job);
        }
    }

    /// The job that a question's yes began, if it is still known.
    fn begun(&self, id: ApprovalId) -> Option<Arc<Job>> {
        let (session, job) = {
            let questions = self.all_questions();
            let question = questions.get(&id)?;
            (question.session, question.job?)
        };
        self.jobs.get(session, job)
    }

    /// A human says no.
    pub fn deny(&self, id: ApprovalId, digest: Option<&str>, reason: &str) -> Result<(), NotAnswered> {
        let present = self
            .waiting()
            .into_iter()
            .find(|question| question.id == id)
            .map(|question| question.digest.to_string());
        let Some(present) = present else { return Err(NotAnswered::Gone) };
        let digest = digest.unwrap_or(present.as_str());
        match self.ws.answered(id, digest, HumanAnswer::Deny { reason: reason.to_owned() }) {
            Ok(_) => {
                self.decided("deny", id, digest, reason);
                self.ws.wake();
                Ok(())
            }
            Err(AnswerError::Gone) => Err(NotAnswered::Gone),
            Err(AnswerError::OtherDigest { present }) => Err(NotAnswered::Other(present.to_string())),
        }
    }

    pub(crate) fn settle(&self, id: ApprovalId, outcome: ApprovalOutcome) {
        let now = self.ws.clock().steady();
        let _effects = self.ws.coord().settle(id, outcome, now);
        self.ws.wake();
    }

    fn decided(&self, answer: &str, id: ApprovalId, digest: &str, reason: &str) {
        let body = json!({"id": id.to_string(), "answer": answer, "digest": digest, "reason": reason});
        self.ws.journal("decision", body.to_string().as_bytes());
    }
}
