//! Questions as the command line sees them: listed, shown, approved by digest, denied with a reason.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cotenant_coord::Pending;
use cotenant_model::{ApprovalId, Code, Refusal};
use cotenant_tools::{Approved, NotAnswered};
use serde_json::{Map, Value, json};

use super::{Desk, text};
use crate::Peer;

/// How long a reviewer's wait for the next question may take, in milliseconds.
const WAIT_MS: u64 = 50_000;

/// Who has a review open, by process, and how often.
#[derive(Default)]
pub(super) struct Reviewers(Mutex<HashMap<u32, u32>>);

impl Desk {
    /// `pending`: the questions that wait, oldest first.
    pub(super) fn pending(&self) -> Value {
        let questions: Vec<Value> =
            self.toolbox.waiting().iter().map(|question| self.question(question)).collect();
        json!({"pending": questions})
    }

    fn question(&self, question: &Pending) -> Value {
        let folders = self.workspace().tree().folders();
        let paths: Vec<String> = question.paths().map(|at| folders.show(at)).collect();
        let now = self.workspace().clock().steady();
        let asked = self.toolbox.asked_by(question.id);
        json!({
            "hook": asked.as_ref().map(|asked| &asked.hook),
            "why": asked.as_ref().map(|asked| &asked.reason),
            "id": question.id.to_string(),
            "agent": &*question.plan.author.agent,
            "task": question.plan.author.task.as_deref(),
            "tool": &*question.plan.tool,
            "kind": &*question.plan.tool,
            "paths": paths,
            "digest": question.digest.to_string(),
            "diff": question.plan.diff,
            "hunks": hunks(&question.plan.diff),
            "age_s": now.since(question.asked) / 1000,
            "answers": ["approve", "reject"],
        })
    }

    /// `approve`: what was seen is what lands.
    pub(super) fn approve(&self, args: &Map<String, Value>, peer: &Peer) -> Result<Value, Refusal> {
        self.only_a_human(peer)?;
        let id = id(args)?;
        let Some(digest) = text(args, "digest") else {
            return Err(Refusal::new(
                Code::BadInput,
                "The digest of what you saw is needed; nothing was approved.",
            )
            .fact("id", id.to_string())
            .next(format!("cotenant pending --json shows it; then cotenant approve {id} --digest D")));
        };
        match self.toolbox.approve(id, digest) {
            Ok(Approved::Landed(change)) => Ok(json!({"id": id.to_string(), "change": change.to_string()})),
            Ok(Approved::Done) => Ok(json!({"id": id.to_string(), "done": true})),
            Ok(Approved::Runs(job)) => Ok(json!({"id": id.to_string(), "job": job.to_string()})),
            Err(not) => Err(not_answered(id, not)),
        }
    }

    /// `deny`: nothing of it is written, and the agent is told why.
    pub(super) fn deny(&self, args: &Map<String, Value>, peer: &Peer) -> Result<Value, Refusal> {
        self.only_a_human(peer)?;
        let id = id(args)?;
        let reason = text(args, "reason").unwrap_or_default();
        match self.toolbox.deny(id, text(args, "digest"), reason) {
            Ok(()) => Ok(json!({"id": id.to_string(), "denied": true})),
            Err(not) => Err(not_answered(id, not)),
        }
    }

    /// No answer from below an agent: nothing that its connection or this daemon started may answer.
    pub(super) fn only_a_human(&self, peer: &Peer) -> Result<(), Refusal> {
        let mut barred: Vec<u32> =
            self.workspace().coord().sessions().filter_map(|session| session.pid).collect();
        barred.push(std::process::id());
        let ancestors =
            std::iter::successors(crate::sys::parent_of(peer.pid), |pid| crate::sys::parent_of(*pid));
        if ancestors.take_while(|pid| *pid > 1).any(|pid| barred.contains(&pid)) {
            return Err(Refusal::new(
                Code::PermissionDenied,
                "An agent cannot answer its own questions; nothing was done.",
            )
            .next("tell the user to run `cotenant review`"));
        }
        Ok(())
    }

    /// `wait`: returns when there are other questions than the caller knows, or after a while.
    pub(super) fn wait_for_question(&self, args: &Map<String, Value>) -> Value {
        let known: Vec<&str> = args
            .get("known")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let other = |coord: &mut cotenant_coord::Coord| {
            let ids: Vec<String> = coord.pending().map(|question| question.id.to_string()).collect();
            (ids != known).then_some(())
        };
        self.workspace().wait(WAIT_MS, other);
        self.pending()
    }

    /// `review`: a human is there, for as long as the connection lasts.
    pub(super) fn reviewer_came(&self, peer: &Peer) -> Value {
        let mut reviewers = self.reviewers.0.lock().unwrap_or_else(PoisonError::into_inner);
        *reviewers.entry(peer.pid).or_default() += 1;
        self.workspace().coord().reviewer_came();
        self.pending()
    }

    pub(super) fn reviewer_went(&self, peer: &Peer) {
        let mut reviewers = self.reviewers.0.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..reviewers.remove(&peer.pid).unwrap_or(0) {
            self.workspace().coord().reviewer_went();
        }
    }
}

fn id(args: &Map<String, Value>) -> Result<ApprovalId, Refusal> {
    let given = text(args, "id").unwrap_or_default();
    given.parse().map_err(|error| {
        Refusal::new(Code::BadInput, format!("{error}.")).next("cotenant pending lists the questions")
    })
}

fn not_answered(id: ApprovalId, not: NotAnswered) -> Refusal {
    let refusal = |code, why: String| Refusal::new(code, why).fact("id", id.to_string());
    let look = format!("look again (cotenant pending), then cotenant approve {id} --digest D");
    match not {
        NotAnswered::Gone => refusal(Code::NotFound, format!("The question {id} is gone or has already been answered."))
            .next("cotenant pending lists the questions"),
        NotAnswered::Other(digest) => {
            refusal(Code::ApprovalStale, "That is not the change that waits now; nothing was written.".to_owned())
                .fact("digest", digest)
                .next(look)
        }
        NotAnswered::Replanned(digest) => refusal(
            Code::ApprovalStale,
            "The file changed since the change was shown; nothing was written. The change still fits and waits anew.".to_owned(),
        )
        .fact("digest", digest)
        .next(look),
        NotAnswered::Stale => refusal(
            Code::ApprovalStale,
            "The file changed since the change was shown, and the change does not fit any more; nothing was written.".to_owned(),
        )
        .next("the agent is told, and may ask again"),
        NotAnswered::Refused(refusal) => *refusal,
    }
}

/// The hunks of a unified diff, from 1.
fn hunks(diff: &str) -> Vec<Value> {
    let mut hunks: Vec<String> = Vec::new();
    for line in diff.lines() {
        if line.starts_with("@@") {
            hunks.push(String::new());
        }
        if let Some(hunk) =
            hunks.last_mut().filter(|_| !line.starts_with("--- ") && !line.starts_with("+++ "))
        {
            hunk.push_str(line);
            hunk.push('\n');
        }
    }
    hunks.iter().enumerate().map(|(index, diff)| json!({"index": index + 1, "diff": diff})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_parent_and_the_first_has_none_that_lives() {
        assert_eq!(crate::sys::parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
        assert_eq!(crate::sys::parent_of(u32::MAX), None);
    }

    #[test]
    fn a_diff_falls_into_its_hunks() {
        let diff = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n@@ -9 +9 @@\n z\n--- b\n+++ b\n@@ -1 +1 @@\n-q\n";
        let found = hunks(diff);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], json!({"index": 1, "diff": "@@ -1 +1 @@\n-x\n+y\n"}));
        assert_eq!(found[1], json!({"index": 2, "diff": "@@ -9 +9 @@\n z\n"}));
        assert!(hunks("new directory d/\n").is_empty());
    }
}
