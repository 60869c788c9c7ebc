//! Patches through the bridge: one over 1,000 files, taken back in one, and one that does not fit a large file.

use std::fmt::Write;

use cotenant_testkit::Scratch;
use serde_json::json;

use crate::Failure;

use super::ground::Ground;
use super::samples::{Samples, timed};
use super::table::{Row, number};

const FILES: usize = 1000;
/// Lines of a file of the many, and of the large one.
const LINES: usize = 60;
const LARGE: usize = 200_000;

/// A line that stands once in a file.
fn line(number: usize) -> String {
    format!("    let value_{number} = compute({}, \"name of {number}\"); // of many", number * 7 % 1000)
}

fn content(lines: usize) -> String {
    (0..lines).fold(String::new(), |text, number| text + &line(number) + "\n")
}

/// The patch of all files that replaces one line of each by `new`.
fn patch(old: &str, new: &str) -> String {
    let mut text = String::new();
    for file in 0..FILES {
        let (before, after) = (line(29), line(31));
        let path = format!("d{}/f{file}.rs", file % 20);
        let _ = write!(
            text,
            "--- a/{path}\n+++ b/{path}\n@@ -30,3 +30,3 @@\n {before}\n-{old}\n+{new}\n {after}\n"
        );
    }
    text
}

/// A patch of 1,000 files at `batch`, its undo, and a failing match with full diagnosis.
pub(crate) fn patches(ground: &Ground) -> Result<Vec<Row>, Failure> {
    let scratch = Scratch::new(&ground.program);
    let text = content(LINES);
    for file in 0..FILES {
        scratch.put(&format!("d{}/f{file}.rs", file % 20), &text);
    }
    scratch.put("large.rs", content(LARGE));
    let mut client = scratch.mcp().profile("trusting").flags(&["--durability", "batch"]).start();
    let (mut applied, mut undone, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..=ground.rounds.min(8) {
        let there = patch(&line(30), "    changed();");
        let (reply, took) = timed(|| client.call("apply_patch", json!({"patch": there})));
        let change = reply.ok().get("change");
        applied.push(took.as_secs_f64() * 1e3);
        let (reply, took) = timed(|| client.call("undo", json!({"change": change})));
        reply.ok();
        undone.push(took.as_secs_f64() * 1e3);
        let stale = format!(
            "--- a/large.rs\n+++ b/large.rs\n@@ -150001,3 +150001,3 @@\n {}\n-    let other = 1;\n+    x();\n {}\n",
            line(150_000),
            line(150_002)
        );
        let (reply, took) = timed(|| client.call("apply_patch", json!({"patch": stale})));
        reply.refused("PATCH_CONFLICT");
        missed.push(took.as_secs_f64() * 1e3);
    }
    let row = |what: &str, taken: Vec<f64>, at_most: f64| {
        // The first of each warms what the others find warm.
        let taken = Samples::new(taken.into_iter().skip(1).collect());
        Row {
            group: "patch",
            what: what.to_owned(),
            figure: taken.p50(),
            unit: "ms",
            at_most: Some(at_most),
            from: format!("p99 {}", number(taken.p99())),
        }
    };
    Ok(vec![
        row("1,000 files as one change at batch", applied, 1000.0),
        row("that change undone", undone, 1000.0),
        row("a failing match in 200,000 lines", missed, 300.0),
    ])
}
