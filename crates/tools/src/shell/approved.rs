//! What a human let happen that is no plan: a command runs, a sandbox is opened.

use cotenant_coord::ApprovalOutcome;
use cotenant_engine::Idempotency;
use cotenant_model::{ApprovalId, Code, Refusal, SessionId};
use serde_json::{Map, Value};

use super::RUN;
use super::wanted::Wanted;
use crate::questions::{Approved, Begins, NotAnswered};
use crate::toolbox::Toolbox;

impl Toolbox {
    /// Begins what a question that was answered with yes is about.
    pub(crate) fn begin_approved(&self, id: ApprovalId) -> Result<Approved, NotAnswered> {
        let Some((session, raw, begins, key)) = self.to_run(id) else { return Err(NotAnswered::Gone) };
        let begun = match (self.terms(session), begins) {
            (None, _) => {
                Err(Refusal::new(Code::SessionEnded, "The session that asked has ended; nothing was run.")
                    .next("run it again"))
            }
            (Some(_), Begins::Command(wanted)) => self.run_approved(id, session, &raw, *wanted, key.as_ref()),
            (Some(_), Begins::Sandbox(opening)) => self.opened(session, *opening).map(|reply| {
                self.carried(id, reply);
                Approved::Done
            }),
        };
        self.ws.wake();
        begun.map_err(|refusal| {
            self.settle(id, ApprovalOutcome::Refused(Box::new(refusal.clone())));
            NotAnswered::Refused(Box::new(refusal))
        })
    }

    /// Starts the command; its changes land without another question.
    fn run_approved(
        &self,
        id: ApprovalId,
        session: SessionId,
        raw: &Map<String, Value>,
        wanted: Wanted,
        key: Option<&Idempotency>,
    ) -> Result<Approved, Refusal> {
        let ctx = self.ctx(session, &RUN, raw);
        let judged = self.judged(&wanted);
        let way = self.way(&ctx, &wanted, &judged)?;
        self.start_job(&ctx, wanted, &judged, way, Some(id), key).map(|job| Approved::Runs(job.id))
    }
}
