//! What is measured of the daemon and the bridge themselves: their start, their memory, their list of tools.

use cotenant_testkit::Scratch;
use serde_json::json;

use crate::Failure;

use super::files::daemon_of;
use super::ground::{Ground, megabytes};
use super::samples::{in_turn, timed};
use super::table::{Row, number};

/// From the start of the bridge until `initialize` is answered: with no daemon, and with one.
pub(crate) fn start(ground: &Ground) -> Result<Vec<Row>, Failure> {
    let root = ground.tree()?;
    let scratch = Scratch::new(&ground.program);
    let start = || {
        let (client, took) = timed(|| scratch.mcp().root(&root).start());
        (client, took)
    };
    let mut cold = |_| {
        // Fails where none runs, which is as good.
        scratch.run_at(&root, &["stop"]);
        start().1
    };
    let mut warm = |_| {
        let held = start();
        let took = start().1;
        drop(held);
        took
    };
    let [cold, warm] = in_turn(ground.rounds * 2, [&mut cold, &mut warm]);
    scratch.run_at(&root, &["stop"]);
    let row = |what: &str, samples: super::samples::Samples, at_most: f64| Row {
        group: "start",
        what: what.to_owned(),
        figure: samples.p50(),
        unit: "ms",
        at_most: Some(at_most),
        from: format!("p99 {}", number(samples.p99())),
    };
    Ok(vec![
        row("a bridge that starts the daemon", cold, 15.0),
        row("a bridge to a running daemon", warm, 5.0),
    ])
}

/// What daemon and bridge hold when a client has connected and asked for the tools.
pub(crate) fn memory(ground: &Ground) -> Result<Vec<Row>, Failure> {
    let root = ground.tree()?;
    let scratch = Scratch::new(&ground.program);
    let mut client = scratch.mcp().root(&root).start();
    client.tools();
    let (daemon, bridge) = (daemon_of(&scratch, &root)?, client.pid());
    let both = |field: &str| Ok::<_, Failure>((megabytes(daemon, field)?, megabytes(bridge, field)?));
    let mut rows = Vec::new();
    for (what, field, most) in [("resident", "VmRSS", Some(18.0)), ("with shared pages divided", "Pss", None)]
    {
        let (of_daemon, of_bridge) = both(field)?;
        rows.push(Row {
            group: "memory",
            what: format!("daemon and bridge, {what}"),
            figure: of_daemon + of_bridge,
            unit: "MB",
            at_most: most,
            from: format!("{} and {}", number(of_daemon), number(of_bridge)),
        });
    }
    // What a day's work leaves behind.
    for _ in 0..5 {
        let all = json!({"pattern": "table", "content_search": true, "limit": 200});
        client.call("search_files", all).ok();
        client
            .call("list_directory", json!({"recursive": true, "limit": 20_000, "max_bytes": 4_000_000}))
            .ok();
    }
    rows.push(Row {
        group: "memory",
        what: "daemon after five searches and listings of everything".to_owned(),
        figure: megabytes(daemon, "VmRSS")?,
        unit: "MB",
        at_most: None,
        from: format!("peak {}", number(megabytes(daemon, "VmHWM")?)),
    });
    Ok(rows)
}

/// `tools/list` by its sets.
pub(crate) fn tools(ground: &Ground) -> Result<Vec<Row>, Failure> {
    let scratch = Scratch::new(&ground.program);
    let mut rows = Vec::new();
    for (what, flags, most) in [("core", &["--tools", "core"][..], 8.0), ("the default sets", &[], 12.0)] {
        let tools = scratch.mcp().flags(flags).start().tools();
        let bytes = json!({ "tools": tools }).to_string().len();
        rows.push(Row {
            group: "tools",
            what: format!("tools/list of {what}"),
            figure: bytes as f64 / 1024.0,
            unit: "KB",
            at_most: Some(most),
            from: format!("{} tools", tools.len()),
        });
    }
    Ok(rows)
}
