//! Counts: calls and refusals per tool and session, and edits that cannot succeed.

use serde_json::{Map, Value, json};

use super::Desk;

impl Desk {
    /// `stats`: no paths, no tasks.
    pub(super) fn stats(&self) -> Value {
        let coord = self.workspace().coord();
        let totals = coord.totals();
        let tools: Map<String, Value> = totals
            .tools
            .iter()
            .map(|(tool, tally)| {
                (
                    tool.to_string(),
                    json!({"calls": tally.calls, "errors": tally.errors, "error_rate": tally.error_rate()}),
                )
            })
            .collect();
        let refusals: Map<String, Value> =
            totals.refusals.iter().map(|(code, count)| (code.name().to_owned(), (*count).into())).collect();
        let sessions: Vec<Value> = coord
            .tallies()
            .map(|tally| {
                json!({
                    "session": tally.session.to_string(),
                    "agent": &*tally.agent,
                    "calls": tally.totals.calls().calls,
                    "edits": tally.totals.edits().calls,
                    "edit_error_rate": tally.totals.edits().error_rate(),
                    "ended": tally.ended,
                })
            })
            .collect();
        let signatures: Vec<Value> = coord
            .signatures()
            .iter()
            .map(|signature| {
                json!({
                    "agent": &*signature.agent,
                    "code": signature.code.name(),
                    "count": signature.count,
                    "cause": &*signature.cause,
                })
            })
            .collect();
        json!({"tools": tools, "refusals": refusals, "sessions": sessions, "signatures": signatures})
    }
}
