//! Against other MCP file servers, by the shared benchmark: it installs them, runs all in turn and checks every answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Failure, workspace};

use super::ground::Ground;
use super::table::{Row, number};

/// The adapters of the peers, and how `install.sh` calls them.
const PEERS: &[&str] = &["official", "rust-mcp-fs", "patchloom", "fast-filesystem"];

/// Operation, our adapter, and the part of the best peer's median that ours may take.
const OPERATIONS: &[(&str, &str, Option<f64>)] = &[
    ("read_small", "cotenant", Some(0.7)),
    ("read_medium", "cotenant", None),
    ("list_dir", "cotenant", Some(1.0)),
    ("edit_small", "cotenant-fast", Some(1.0)),
    ("edit_small", "cotenant", None),
    ("edit_large", "cotenant-fast", None),
    ("write_new", "cotenant-fast", None),
    ("read_range", "cotenant", Some(1.0)),
    ("list_all", "cotenant", Some(1.0)),
    ("list_recursive", "cotenant", None),
    ("glob", "cotenant", Some(1.0)),
    ("search", "cotenant", Some(1.0)),
    ("search_regex", "cotenant", Some(1.0)),
];

pub(crate) fn run(ground: &Ground) -> Result<Vec<Row>, Failure> {
    let Some(script) = cotenant_testkit::shared("peerbench/peerbench.py") else {
        return Err(
            "SKIPPED: there is no shared folder with peerbench; COTENANT_SHARED_DIR may name it".into()
        );
    };
    let shared = script.parent().map(Path::to_path_buf).unwrap_or_default();
    let home = workspace::root().join("target/peerbench");
    fs::create_dir_all(&home)?;
    let peers: Vec<&str> = PEERS.iter().copied().filter(|peer| installed(&shared, &home, peer)).collect();
    if peers.is_empty() {
        return Err("no peer could be installed".into());
    }
    let out = measure(ground, &shared, &home, &peers)?;
    rows(&serde_json::from_str(&fs::read_to_string(out)?)?, &peers)
}

/// Installs a peer unless that was done before; says so where it fails.
fn installed(shared: &Path, home: &Path, peer: &str) -> bool {
    let mark = home.join(format!("{peer}.installed"));
    if mark.exists() {
        return true;
    }
    println!("installing {peer}");
    let status = Command::new(shared.join("install.sh")).arg(peer).env("PEERBENCH_HOME", home).status();
    let done = status.is_ok_and(|status| status.success()) && fs::write(&mark, "").is_ok();
    if !done {
        println!("{peer} could not be installed and is left out");
    }
    done
}

fn measure(ground: &Ground, shared: &Path, home: &Path, peers: &[&str]) -> Result<PathBuf, Failure> {
    let (out, tree) = (home.join("bench.json"), home.join("tree"));
    // A record of the runs before would make this one slower.
    let state = home.join("state");
    if state.exists() {
        fs::remove_dir_all(&state)?;
    }
    for dir in ["state", "run"] {
        fs::create_dir_all(home.join(dir))?;
    }
    let with_home = |command: &mut Command| {
        command.env("PEERBENCH_HOME", home).env("COTENANT", &ground.program);
        command.env("XDG_STATE_HOME", home.join("state")).env("XDG_RUNTIME_DIR", home.join("run")).status()
    };
    let mut bench = Command::new("python3");
    bench.arg(shared.join("peerbench.py")).arg("bench").arg("--root").arg(&tree).arg("--adapters");
    for name in ["cotenant", "cotenant-fast"].iter().chain(peers) {
        bench.arg(shared.join(format!("adapters/{name}.json")));
    }
    bench.args(["--rounds", &ground.rounds.to_string()]).arg("--out").arg(&out);
    let status = with_home(&mut bench)?;
    // Both adapters have had one daemon, which nobody needs any more.
    let _ = with_home(Command::new(&ground.program).arg("stop").arg("--root").arg(&tree));
    if status.success() { Ok(out) } else { Err(format!("peerbench: {status}").into()) }
}

/// The operations against the best peer of each.
fn rows(report: &Value, peers: &[&str]) -> Result<Vec<Row>, Failure> {
    let servers = &report["servers"];
    let median = |server: &str, operation: &str| {
        let figures = &servers[server]["ops"][operation];
        // Wrong answers are no answers, however fast.
        figures["median_ms"].as_f64().filter(|_| figures["failed"] == 0)
    };
    let mut rows = Vec::new();
    for (operation, adapter, most) in OPERATIONS {
        let best = peers.iter().filter_map(|peer| Some((median(peer, operation)?, *peer)));
        let Some((best, peer)) = best.min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        let figures = &servers[*adapter]["ops"][*operation];
        let ours = median(adapter, operation);
        let from = match ours {
            Some(ours) => format!(
                "{} (p99 {}) to {} ms, {peer}",
                number(ours),
                number(figures["p99_ms"].as_f64().unwrap_or(f64::NAN)),
                number(best)
            ),
            None => format!("{} answers were wrong: {}", figures["failed"], figures["why"]),
        };
        rows.push(Row {
            group: "peers",
            what: if *adapter == "cotenant" {
                (*operation).to_owned()
            } else {
                format!("{operation} (fast)")
            },
            figure: ours.unwrap_or(f64::NAN) / best,
            unit: "x",
            at_most: *most,
            from,
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn op(median: f64, failed: u64) -> Value {
        json!({"read_small": {"median_ms": median, "p99_ms": 9.0, "failed": failed, "why": "wrong"}})
    }

    #[test]
    fn each_operation_is_set_against_its_best_peer_that_answers_right() {
        let report = json!({"servers": {
            "cotenant": {"ops": op(0.1, 0)}, "a": {"ops": op(0.4, 0)}, "b": {"ops": op(0.2, 0)}, "c": {"ops": op(0.01, 3)},
        }});
        let rows = rows(&report, &["a", "b", "c"]).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].figure, rows[0].what.as_str()), (0.5, "read_small"));
        assert!(rows[0].from.ends_with("ms, b"), "{}", rows[0].from);
    }

    #[test]
    fn our_own_wrong_answers_are_no_figure() {
        let report = json!({"servers": {"cotenant": {"ops": op(0.1, 2)}, "a": {"ops": op(0.4, 0)}}});
        let rows = rows(&report, &["a"]).unwrap();
        assert!(rows[0].figure.is_nan() && rows[0].from.contains("2 answers were wrong"));
    }
}
