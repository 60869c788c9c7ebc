//! Following a command: what an answer says while it runs and once it has ended, `command_output`, `stop_command`.

use std::sync::Arc;

use cotenant_model::{Code, JobId, Refusal};
use serde_json::json;

use super::jobs::{End, Job, Report, Said};
use super::show::{self, Share};
use crate::calls::Heard;
use crate::reply::{Reply, call_text};
use crate::toolbox::Toolbox;

/// An answer is made within so many milliseconds: no call is answered later than 50 s.
const ANSWERING_MS: u64 = 1000;

impl Toolbox {
    /// How long a call may follow a command.
    pub(super) fn follows_ms(&self, heard: &Heard<'_>) -> u64 {
        self.left_ms(heard).saturating_sub(ANSWERING_MS)
    }

    /// The answer of a command: its end, or that it goes on, after a wait.
    pub(crate) fn followed(&self, heard: &Heard<'_>, job: &Arc<Job>, wait_ms: u64) -> Result<Reply, Refusal> {
        let end = self.ws.wait(wait_ms.min(self.follows_ms(heard)), |_| job.end());
        match end {
            None => {
                // What goes on as a job does not hold up later calls (R17).
                self.leave(heard.call.ticket);
                Ok(self.running(job))
            }
            Some(End::Asked(question)) => self.await_answer(heard, question),
            Some(End::Refused(refusal)) => Err(*refusal),
            Some(End::Done(report)) => Ok(self.compared(job, &report)),
        }
    }

    fn running(&self, job: &Job) -> Reply {
        let output = job.process.output();
        let id = job.id.to_string();
        let shown = show::excerpt(output, Share::tail(show::RUNNING), &job.handle.to_string());
        job.tell(output.len());
        let after_s = self.ws.clock().steady().since(job.began) / 1000;
        let wait = call_text("command_output", &json!({"id": id, "wait_s": 50}));
        let stop = call_text("stop_command", &json!({"id": id}));
        let lands = if job.mode == "staged" { " Its file changes land when it ends." } else { "" };
        Reply::new()
            .lead("running")
            .fact("job", id)
            .fact("after_s", after_s)
            .fact("timeout_s", job.wanted.timeout_s)
            .fact("mode", job.mode)
            .fact("out", output.len())
            .fact_if("shown", shown.shown)
            .content(lines(&format!("next: {wait}; {stop} ends it.{lands}"), &shown.text))
    }

    /// The whole answer of an ended command: facts, changed files, output.
    pub(super) fn whole(&self, job: &Job, report: &Report) -> Reply {
        let output = job.process.output();
        let limits = &self.ws.settings().limits;
        let share = match (report.cut, report.well) {
            (true, _) => Share::tail(show::ENDED),
            (_, true) => Share::of(limits.shown_ok_bytes, true),
            (_, false) => Share::of(limits.shown_failed_bytes, false),
        };
        let shown = show::excerpt(output, share, &job.handle.to_string());
        job.tell(output.len());
        let reply = report.reply.clone().fact("out", output.len());
        let reply = match &shown.shown {
            Some(_) => reply.fact_if("shown", shown.shown.clone()).fact("handle", job.handle.to_string()),
            None => reply.field("handle", job.handle.to_string()),
        };
        let content = lines(&reply.content, &shown.text);
        reply.content(content)
    }

    /// The same, with what is new since the last run of the same command.
    fn compared(&self, job: &Job, report: &Report) -> Reply {
        let reply = self.whole(job, report);
        let now = Arc::new(show::counted(job.process.output()));
        let said = Said { handle: job.handle, lines: Arc::clone(&now) };
        match self.jobs.said(job.session, &job.wanted.command, said) {
            Some(before) if before.handle != job.handle => {
                let news = show::news(&before.lines, &now);
                reply
                    .field("vs", before.handle.to_string())
                    .notice(format!("vs={} same command: {news}", before.handle))
            }
            _ => reply,
        }
    }

    /// `command_output`.
    pub(super) fn job_output(&self, heard: &Heard<'_>) -> Result<Reply, Refusal> {
        let job = self.job_of(heard)?;
        let wait_ms = heard.args.count("wait_s").unwrap_or(0) as u64 * 1000;
        let end = self.ws.wait(wait_ms.min(self.follows_ms(heard)), |_| job.end());
        let from = heard.args.count("offset").map_or_else(|| job.told(), |offset| offset as u64);
        match end {
            None => Ok(self.since(&job, self.running_facts(&job), from)),
            Some(End::Asked(question)) => self.collect(heard, question, 0),
            Some(End::Refused(refusal)) => Err(*refusal),
            Some(End::Done(report)) => Ok(self.since(&job, report.reply, from)),
        }
    }

    fn running_facts(&self, job: &Job) -> Reply {
        let after_s = self.ws.clock().steady().since(job.began) / 1000;
        Reply::new()
            .lead("running")
            .fact("job", job.id.to_string())
            .fact("after_s", after_s)
            .fact("timeout_s", job.wanted.timeout_s)
            .fact("mode", job.mode)
    }

    /// Output from a byte on.
    fn since(&self, job: &Job, reply: Reply, from: u64) -> Reply {
        let output = job.process.output();
        let room = self.ws.settings().limits.shown_failed_bytes;
        let (from, bytes) = show::from(output, from, room);
        let next = from + bytes.len() as u64;
        job.tell(next);
        let text = cotenant_shell::run::plain(&bytes);
        let reply = reply.fact("out", output.len()).fact("shown", format!("{from}-{next}"));
        let reply = if next < output.len() { reply.fact("next_offset", next) } else { reply };
        let content = lines(&reply.content, text.trim_end_matches('\n'));
        reply.content(content)
    }

    /// `stop_command`.
    pub(super) fn job_stop(&self, heard: &Heard<'_>) -> Result<Reply, Refusal> {
        let job = self.job_of(heard)?;
        job.process.stop();
        match self.ws.wait(self.follows_ms(heard), |_| job.end()) {
            None => Ok(self.running(&job)),
            Some(End::Asked(question)) => self.collect(heard, question, 0),
            Some(End::Refused(refusal)) => Err(*refusal),
            Some(End::Done(report)) => Ok(self.whole(&job, &report)),
        }
    }

    fn job_of(&self, heard: &Heard<'_>) -> Result<Arc<Job>, Refusal> {
        let name = heard.args.need("id").trim();
        let job = name.parse::<JobId>().ok().and_then(|id| self.jobs.get(heard.call.session, id));
        job.ok_or_else(|| {
            let known: Vec<String> =
                self.jobs.of(heard.call.session).iter().rev().take(5).map(|job| job.id.to_string()).collect();
            let why = format!("{name:?} is no job of this session.");
            let refusal = Refusal::new(Code::NotFound, why).fact("id", name);
            match known.first() {
                Some(newest) => {
                    let next = call_text(heard.tool.name, &json!({"id": newest}));
                    refusal.fact("jobs", known).next(next)
                }
                None => refusal.next("run_command {\"command\":\"…\",\"background\":true} starts one"),
            }
        })
    }
}

/// Two parts, each on lines of its own, where there is something in them.
fn lines(first: &str, second: &str) -> String {
    match (first.is_empty(), second.is_empty()) {
        (true, _) => second.to_owned(),
        (_, true) => first.to_owned(),
        _ => format!("{first}\n{second}"),
    }
}
