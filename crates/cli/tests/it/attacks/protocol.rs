//! The HTTP door, roots that a client announces, and patterns made to take for ever.

use std::time::Instant;

use cotenant_testkit::PATIENCE;
use serde_json::json;

use crate::support::{TOKEN, http_settings, initialize, scratch};

pub(super) const IDS: &[&str] = &["M392", "M394", "M395", "M396"];

#[test]
fn m392_without_token_or_for_another_host_nothing_is_answered() {
    let scratch = scratch();
    http_settings(&scratch);
    let served = scratch.serve();
    assert_eq!(served.http.rpc(None, &[], &initialize()).status, 401);
    for token in [None, Some(TOKEN)] {
        assert_eq!(served.http.rpc(token, &[("Host", "evil.test")], &initialize()).status, 403);
    }
    assert!(served.http.address().ip().is_loopback());
}

#[test]
fn m394_announced_roots_only_narrow() {
    let scratch = scratch();
    scratch.put("src/a.txt", "in\n");
    scratch.put("other/b.txt", "b\n");
    let mut wide = scratch.mcp().announcing(&["file:///"]).start();
    wide.call("read_file", json!({"path": "/etc/passwd"})).refused("PATH_OUTSIDE");
    wide.read("src/a.txt");

    let narrow = format!("file://{}/src", scratch.root().display());
    let mut narrow = scratch.mcp().announcing(&[&narrow]).start();
    narrow.read("src/a.txt");
    narrow.call("read_file", json!({"path": "other/b.txt"})).refused("PATH_OUTSIDE");
    narrow.write("other/c.txt", "x\n").refused("PATH_OUTSIDE");
    narrow.grep("b", ".").never_says("1:b");
    assert_eq!(narrow.grep("in", "src").number("matches"), 1);
}

#[test]
fn m395_m396_work_is_bounded() {
    let scratch = scratch();
    scratch.put("a.txt", "a".repeat(1 << 20) + "!\n");
    scratch.sh("d=deep; for i in $(seq 1 60); do d=$d/d$i; done; mkdir -p $d; : > $d/x");
    let mut agent = scratch.mcp().start();
    let started = Instant::now();
    assert_eq!(agent.grep("(a+)+$", ".").ok().number("matches"), 0);
    agent.glob("**/**/**/**/x").ok().says("/x");
    agent
        .glob(&format!("{}x", "**/*/".repeat(100)))
        .refused_as_or_ok(&["PATTERN_TOO_LARGE", "PATTERN_INVALID"]);
    let huge = agent.grep("(a{1000}){1000}{1000}", ".");
    huge.refused_as(&["PATTERN_TOO_LARGE", "PATTERN_INVALID"]);
    agent.grep("(unclosed", ".").refused("PATTERN_INVALID");
    assert!(started.elapsed() < PATIENCE, "took {:?}", started.elapsed());
}
