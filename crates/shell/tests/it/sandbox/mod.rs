//! Commands that run: where their writes go, what they see, how they end.
#![allow(clippy::print_stderr, reason = "a test that cannot run here says so")]

mod confined;
mod direct;
mod endings;
mod fenced;
mod open;
mod oracle;
mod output;
mod rig;
mod rooted;
mod staged;
mod text;

use rig::Rig;

/// A machine on which no sandbox can be tried would let every test here pass unnoticed.
#[test]
fn some_sandbox_can_be_tried_here() {
    let rig = Rig::new();
    let held = rig.machine.direct_tier();
    assert!(held.own_root || held.landlock.is_some(), "{:?}", rig.machine.report());
    let report = rig.machine.report();
    let names: Vec<&str> = report.iter().map(|ability| ability.name).collect();
    assert_eq!(names, ["namespaces", "overlay", "network", "proc", "landlock", "seccomp", "cgroup"]);
    assert!(report.iter().all(|ability| !ability.state.as_ref().unwrap_or_else(|why| why).is_empty()));
}
