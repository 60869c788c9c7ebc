//! What is measured through the bridge on large files and large trees.

use std::process::{Command, Stdio};
use std::time::Duration;

use cotenant_testkit::{Client, Scratch};
use serde_json::json;

use crate::Failure;

use super::ground::{Ground, NEEDLE, NEEDLES, forget_peak, megabytes};
use super::samples::{Samples, in_turn, timed};
use super::table::{Row, number};

const MEGABYTE: usize = 1 << 20;

/// Edits of a line each in a text of 1 MB.
pub(crate) fn edit(ground: &Ground) -> Result<Vec<Row>, Failure> {
    let scratch = Scratch::new(&ground.program);
    let line = |number: usize| format!("line {number:06} of a text that is edited here and there");
    let lines = MEGABYTE / (line(0).len() + 1);
    let text: Vec<String> = (0..lines).map(line).collect();
    scratch.put("text.txt", text.join("\n") + "\n");
    let mut client = scratch.mcp().flags(&["--durability", "fast"]).start();
    let edits = ground.rounds * 25;
    let mut taken = Vec::new();
    for round in 0..edits + 5 {
        let number = (round * 7919) % lines;
        client.call("read_file", json!({"path": "text.txt", "start": number + 1, "limit": 5})).ok();
        let edit = || client.edit("text.txt", &line(number), &format!("edited {number:06} in round {round}"));
        let (reply, took) = timed(edit);
        reply.ok();
        if round >= 5 {
            taken.push(took.as_secs_f64() * 1e3);
        }
    }
    let taken = Samples::new(taken);
    let row = |what: &str, figure: f64, at_most: f64| Row {
        group: "edit",
        what: what.to_owned(),
        figure,
        unit: "ms",
        at_most: Some(at_most),
        from: format!("{edits} edits"),
    };
    Ok(vec![row("1 MB at fast, p50", taken.p50(), 3.0), row("1 MB at fast, p99", taken.p99(), 10.0)])
}

/// 200 lines of a file of 1 GB: its beginning, its middle and its end.
pub(crate) fn range(ground: &Ground) -> Result<Vec<Row>, Failure> {
    let root = ground.big()?;
    let scratch = Scratch::new(&ground.program);
    let mut client = scratch.mcp().root(&root).start();
    let daemon = daemon_of(&scratch, &root)?;
    let lines = i64::try_from(std::fs::metadata(root.join("big.txt"))?.len() / 64)?;
    client.call("read_file", json!({"path": "big.txt", "start": 1, "limit": 200})).ok();
    let resident = megabytes(daemon, "VmRSS")?;
    forget_peak(daemon)?;
    let mut read = |start: i64| {
        let (reply, took) =
            timed(|| client.call("read_file", json!({"path": "big.txt", "start": start, "limit": 200})));
        reply.ok();
        assert_eq!(reply.content().lines().count(), 200, "{}", reply.text);
        took
    };
    // One after the other: they share the client.
    let mut measure = |start: i64| {
        let taken = (0..=ground.rounds).map(|_| read(start).as_secs_f64() * 1e3).skip(1).collect();
        Samples::new(taken)
    };
    let mut rows = Vec::new();
    for (what, start) in [("the first 200", 1), ("200 in the middle", lines / 2), ("the last 200", -200)] {
        let taken = measure(start);
        rows.push(Row {
            group: "range",
            what: format!("{what} lines of 1 GB"),
            figure: taken.p50(),
            unit: "ms",
            at_most: Some(50.0),
            from: format!("p99 {}", number(taken.p99())),
        });
    }
    let peak = megabytes(daemon, "VmHWM")?;
    rows.push(Row {
        group: "range",
        what: "more resident meanwhile".to_owned(),
        figure: peak - resident,
        unit: "MB",
        at_most: Some(32.0),
        from: format!("{} MB before", number(resident)),
    });
    Ok(rows)
}

/// Content searches against `rg`, both on a warm tree.
pub(crate) fn search(ground: &Ground) -> Result<Vec<Row>, Failure> {
    let root = ground.tree()?;
    let scratch = Scratch::new(&ground.program);
    let mut client = scratch.mcp().root(&root).start();
    let mut rows = Vec::new();
    for (what, pattern, regex) in
        [("a rare literal", NEEDLE, false), ("an expression", r"needle_[a-z]{2}_stack", true)]
    {
        let mut ours = |_| search_once(&mut client, pattern, regex);
        let mut theirs = |_| rg_once(&root, pattern, regex);
        let [ours, rg] = in_turn(ground.rounds * 2, [&mut ours, &mut theirs]);
        rows.push(Row {
            group: "search",
            what: format!("{what} in 20,000 files"),
            figure: ours.p50() / rg.p50(),
            unit: "x",
            at_most: Some(1.2),
            from: format!(
                "{} (p99 {}) to {} (p99 {}) ms, rg",
                number(ours.p50()),
                number(ours.p99()),
                number(rg.p50()),
                number(rg.p99())
            ),
        });
    }
    Ok(rows)
}

fn search_once(client: &mut Client, pattern: &str, regex: bool) -> Duration {
    let arguments = json!({
        "pattern": pattern, "content_search": true, "regex": regex, "context_lines": 0, "limit": 1000,
    });
    let (reply, took) = timed(|| client.call("search_files", arguments));
    assert_eq!(reply.ok().text.matches(NEEDLE).count().min(NEEDLES), NEEDLES, "{}", reply.text);
    took
}

fn rg_once(root: &std::path::Path, pattern: &str, regex: bool) -> Duration {
    let mut rg = Command::new("rg");
    // It reads ignore files only where there is a repository, unless told otherwise.
    rg.args(["--no-config", "--no-require-git", "-n"]).args((!regex).then_some("-F"));
    rg.arg(pattern).arg(".").current_dir(root).stderr(Stdio::inherit());
    let (output, took) = timed(|| rg.output());
    let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let found = output.map_or(0, |text| text.matches(NEEDLE).count());
    assert_eq!(found, NEEDLES, "rg is needed as the peer");
    took
}

/// The daemon that serves `root`.
pub(crate) fn daemon_of(scratch: &Scratch, root: &std::path::Path) -> Result<i32, Failure> {
    Ok(scratch.run_at(root, &["status", "--pid"]).ok().stdout.trim().parse()?)
}
