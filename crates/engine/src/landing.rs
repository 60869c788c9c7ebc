//! From a wish to a landed change: verdict, grant, pipeline; and from a human's answer to the same.

use cotenant_coord::{
    AnswerError, Answered, Approver, Grant, HumanAnswer, JudgeFacts, LandedFile, Verdict, judge,
};
use cotenant_ledger::Idempotency;
use cotenant_model::{
    Access, ApprovalId, ClassHit, Code, Content, Durability, FolderId, Moved, Op, Plan, Profile, Refusal,
    RetryToken, SessionId, WsPath,
};

use crate::pipeline::{How, Landed};
use crate::workspace::Workspace;

/// A plan with what its verdict and its commit need.
pub struct Wish {
    /// The plan.
    pub plan: Plan,
    /// The class of each operation's path, in the order of the plan.
    pub classes: Vec<ClassHit>,
    /// Further paths that it touches: those below a moved directory, at both ends.
    pub also: Vec<WsPath>,
    /// The session's profile.
    pub profile: Profile,
    /// It takes back another's change: a human must agree in every profile.
    pub others_work: bool,
    /// A hook wants a human to agree, whatever the profile.
    pub asked: bool,
    /// A human gives the command: what would be asked is answered by that.
    pub by_human: bool,
    /// Folders that this session may only read, beside those that nobody may write.
    pub read_only: Vec<FolderId>,
    /// What it shall survive.
    pub durability: Durability,
    /// The key under which the call must happen once.
    pub idempotency: Option<Idempotency>,
}

/// What became of a wish.
pub enum Submitted {
    /// It landed.
    Landed(Landed),
    /// A human must be asked.
    Ask(Box<Plan>),
}

impl Workspace {
    /// Judges a wish and, where policy allows it, carries it out.
    pub fn submit(&self, wish: Wish) -> Result<Submitted, Refusal> {
        match self.verdict(&wish) {
            Verdict::Refuse(refusal) => Err(refusal),
            Verdict::Ask if !wish.by_human => Ok(Submitted::Ask(Box::new(wish.plan))),
            allowed => {
                let approver = match allowed {
                    Verdict::Ask => Approver::Human { question: None },
                    _ => Approver::Policy,
                };
                let grant = self.coord().authorise(wish.plan, approver);
                self.land(grant, wish.durability, wish.idempotency).map(Submitted::Landed)
            }
        }
    }

    fn verdict(&self, wish: &Wish) -> Verdict {
        let folders = self.tree().folders();
        let ids = (0..folders.len()).filter_map(|index| u16::try_from(index).ok().map(FolderId));
        let mut read_only: Vec<FolderId> = ids.filter(|id| self.tree().access(*id) == Access::Read).collect();
        read_only.extend(&wish.read_only);
        let plan_mode =
            self.coord().session(wish.plan.author.session).is_some_and(|session| session.plan_mode);
        let verdict = judge(
            &wish.plan,
            &JudgeFacts {
                profile: wish.profile,
                rules: self.rules(),
                classes: &wish.classes,
                also: &wish.also,
                folders,
                read_only: &read_only,
                plan_mode,
                own_change: !wish.others_work,
                undoable: true,
            },
        );
        if wish.asked && verdict == Verdict::Allow { Verdict::Ask } else { verdict }
    }

    /// Commits a grant.
    pub fn land(
        &self,
        grant: Grant,
        durability: Durability,
        idempotency: Option<Idempotency>,
    ) -> Result<Landed, Refusal> {
        let leaves = |op: &Op| matches!(op, Op::RemoveDir | Op::Move { what: Moved::Directory { .. }, .. });
        if grant.plan().ops.iter().any(|op| leaves(&op.op)) {
            // What earlier changes displaced keeps a name beside its target for a moment; a directory that is to go
            // elsewhere, or altogether, must be rid of it.
            self.pipeline().idle();
        }
        let now = self.clock().wall();
        let written: Vec<Content> = grant.plan().ops.iter().filter_map(|op| op.content().cloned()).collect();
        let taker = (!grant.plan().only_creates()).then_some(grant.plan().author.session);
        let how = How { durability, now, idempotency, still_valid: &|_grant| Ok(()) };
        let landed = self.pipeline().commit(grant, &how)?;
        if let Some(session) = taker {
            self.upkeep.taken_away(session);
        }
        // Stored in the background; until then it is here.
        written.iter().for_each(|bytes| self.keep(bytes));
        Ok(landed)
    }

    /// Tells every session what landed: receipts, what they have not seen, notices. `moves`: what went from where to
    /// where, directories with all that lies in them.
    pub fn announce(
        &self,
        by: Option<SessionId>,
        landed: &Landed,
        files: &[LandedFile],
        moves: &[(WsPath, WsPath)],
    ) {
        let now = self.clock().steady();
        let mut coord = self.coord();
        coord.landed(by, landed.change, files, now);
        for (from, to) in moves {
            coord.moved(by, landed.change, from, to, now);
        }
        drop(coord);
        self.wake();
    }

    /// Puts a plan before the human. `LIMIT_REACHED` where the agent has too many questions open.
    pub fn ask(&self, id: ApprovalId, plan: Plan, retry: RetryToken) -> Result<(), Refusal> {
        let now = self.clock().steady();
        let session = plan.author.session;
        let mut coord = self.coord();
        if !coord.may_ask(&plan.author.agent) {
            return Err(Refusal::new(
                Code::LimitReached,
                "Too many of your changes wait for a human already; nothing was asked.",
            )
            .next("tell the user to run `cotenant review`, and go on with work that needs no approval"));
        }
        coord.ask(id, plan, session, retry, now);
        Ok(())
    }

    /// A human's answer. A grant comes back for what was approved.
    pub fn answered(
        &self,
        id: ApprovalId,
        digest: &str,
        answer: HumanAnswer,
    ) -> Result<Option<Grant>, AnswerError> {
        let now = self.clock().steady();
        let answered = self.coord().answer(id, digest, answer, now)?;
        self.wake();
        Ok(match answered {
            Answered::Approved(grant) => Some(*grant),
            Answered::Denied => None,
        })
    }

    /// The next id of a kind; ids never repeat, over restarts too.
    pub fn next_id(&self, kind: &str) -> Result<u64, Refusal> {
        Ok(self.ledger().next_id(kind))
    }

    /// Keeps an answer under its idempotency key.
    pub fn remember(&self, key: &Idempotency, answer: &[u8]) {
        cotenant_ledger::commit::remember(self.ledger(), key, answer, self.clock().wall());
    }

    /// Appends to the journal.
    pub fn journal(&self, kind: &str, body: &[u8]) {
        cotenant_ledger::commit::journal(self.ledger(), self.clock().wall(), kind, body);
    }
}
