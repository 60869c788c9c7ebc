//! The journal for people: exported as JSON lines, checked as a chain.

use cotenant_ledger::{JournalEntry, JournalReport, verify_export};
use cotenant_model::{Code, Digest, Millis, Refusal};
use serde_json::{Map, Value, json};

use super::Desk;

/// Entries of one answer.
const PAGE: usize = 1000;

impl Desk {
    /// `journal`: the entries after number `after`, a page of them.
    pub(super) fn journal(&self, args: &Map<String, Value>) -> Result<Value, Refusal> {
        let after = args.get("after").and_then(Value::as_u64).unwrap_or(0);
        let entries =
            self.workspace().ledger().journal_entries(after, PAGE).map_err(|error| error.refusal())?;
        let last = entries.last().map(|entry| entry.seq);
        let more = entries.len() == PAGE;
        let lines: Vec<Value> = entries.iter().map(line).collect();
        Ok(json!({"entries": lines, "last": last, "more": more}))
    }

    /// `journal_verify`: the stored chain.
    pub(super) fn journal_verify(&self) -> Result<Value, Refusal> {
        let report = self.workspace().ledger().verify_journal().map_err(|error| error.refusal())?;
        Ok(verdict(&report))
    }
}

/// An entry as a JSON line. The body is text as it was hashed, so that the line can be checked.
fn line(entry: &JournalEntry) -> Value {
    json!({
        "seq": entry.seq,
        "time": entry.time.0,
        "kind": entry.kind,
        "body": String::from_utf8_lossy(&entry.body),
        "hash": entry.hash.hex(),
    })
}

fn verdict(report: &JournalReport) -> Value {
    json!({
        "entries": report.entries,
        "whole": report.broken_at.is_none(),
        "broken_at": report.broken_at,
        "head": report.head.map(|head| head.hex()),
    })
}

/// Checks an exported journal, JSON lines. An error names the line that is none of ours.
pub fn verify_lines(text: &str) -> Result<Value, Refusal> {
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let entry = serde_json::from_str::<Value>(line).ok().and_then(|line| parsed(&line));
        entries.push(entry.ok_or_else(|| {
            Refusal::new(Code::BadInput, format!("Line {} is no entry of a journal.", index + 1))
                .next("cotenant journal --json > FILE exports one")
        })?);
    }
    Ok(verdict(&verify_export(entries)))
}

fn parsed(line: &Value) -> Option<JournalEntry> {
    let hash = line.get("hash")?.as_str()?;
    let bytes: Option<Vec<u8>> =
        (0..hash.len() / 2).map(|at| u8::from_str_radix(hash.get(2 * at..2 * at + 2)?, 16).ok()).collect();
    Some(JournalEntry {
        seq: line.get("seq")?.as_u64()?,
        time: Millis(line.get("time")?.as_u64()?),
        kind: line.get("kind")?.as_str()?.to_owned(),
        body: line.get("body")?.as_str()?.as_bytes().to_vec(),
        hash: Digest::from_bytes(&bytes?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seq: u64, body: &str) -> String {
        json!({"seq": seq, "time": 1, "kind": "call", "body": body, "hash": Digest::of(body.as_bytes()).hex()}).to_string()
    }

    #[test]
    fn an_export_of_nothing_is_whole() {
        let verdict = verify_lines("\n\n").unwrap();
        assert_eq!((&verdict["whole"], &verdict["entries"]), (&json!(true), &json!(0)));
    }

    #[test]
    fn a_line_that_is_no_entry_is_named() {
        let short = json!({"seq": 1, "time": 1, "kind": "call", "body": "", "hash": "ab"}).to_string();
        for line in ["{}", "[]", "nonsense", "{\"seq\": \"1\"}", &short] {
            let refusal = verify_lines(&format!("\n{line}\n")).unwrap_err();
            assert_eq!(refusal.code, Code::BadInput, "{line}");
            assert!(refusal.message.contains("Line 2"), "{}", refusal.message);
        }
    }

    #[test]
    fn hashes_that_do_not_follow_are_found() {
        let verdict = verify_lines(&format!("{}\n{}\n", entry(1, "{}"), entry(2, "{}"))).unwrap();
        assert_eq!(verdict["whole"], json!(false));
        assert!(verdict["broken_at"].is_u64(), "{verdict}");
    }
}
