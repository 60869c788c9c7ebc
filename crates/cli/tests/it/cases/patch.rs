//! Area `patch`: a patch lands where it fits, all of it, or says why not and changes nothing.

use cotenant_testkit::{Client, Reply};
use serde_json::json;

use super::{Case, cases};

cases!(c085, c086, c088, c089, c091, c092, c094, c095, c097, c098, c100);

/// Applies a patch that the case's setup left beside the workspace.
fn patch(case: &Case, agent: &mut Client, name: &str) -> Reply {
    let text = std::fs::read_to_string(case.base().join(name)).expect("the setup made it");
    agent.call("apply_patch", json!({"patch": text}))
}

fn c085(case: &Case) {
    let mut agent = case.agent();
    patch(case, &mut agent, "p.diff").ok();
    case.check();
    agent.call("undo", json!({})).ok();
    let envelope =
        "*** Begin Patch\n*** Update File: c.txt\n@@\n red\n-green\n+GREEN\n+GREEN2\n blue\n*** End Patch\n";
    agent.call("apply_patch", json!({"patch": envelope})).ok();
    case.check();
}

fn c086(case: &Case) {
    patch(case, &mut case.agent(), "p.diff").refused("ALREADY_EXISTS").says("digest=");
}

fn c088(case: &Case) {
    let mut agent = case.agent();
    patch(case, &mut agent, "p.diff").refused("PATCH_CONFLICT").says("missing.txt").says("fit=2");
    case.sh("grep -qx 1 a.txt && grep -qx 1 c.txt && test ! -e missing.txt");
    let text = std::fs::read_to_string(case.base().join("p.diff")).unwrap();
    let good: String = text.split_inclusive("--- ").filter(|part| !part.contains("missing")).collect();
    agent
        .call(
            "apply_patch",
            json!({"patch": format!("--- {}", good.trim_start_matches("--- ").trim_end_matches("--- "))}),
        )
        .ok();
}

fn c089(case: &Case) {
    let mut agent = case.agent();
    patch(case, &mut agent, "bad.diff").refused("PATCH_CONFLICT");
    case.sh("! grep INS a.txt");
    patch(case, &mut agent, "good.diff").ok();
    patch(case, &mut agent, "good.diff").refused_as(&["ALREADY_APPLIED", "PATCH_CONFLICT"]);
}

fn c091(case: &Case) {
    patch(case, &mut case.agent(), "p.diff").refused("PATCH_CONFLICT").says("stand at 1, 5");
}

fn c092(case: &Case) {
    patch(case, &mut case.agent(), "p.diff").ok();
    case.sh("sed -n 6p dup.txt | grep -qx x=2");
}

fn c094(case: &Case) {
    patch(case, &mut case.agent(), "p.diff").ok();
}

fn c095(case: &Case) {
    let mut agent = case.agent();
    patch(case, &mut agent, "p.diff").refused("PATCH_CONFLICT").says("src/a.c").says("no such file");
    let text = std::fs::read_to_string(case.base().join("p.diff")).unwrap();
    agent.call("apply_patch", json!({"patch": text, "cwd": "vendor/dep"})).ok();
}

fn c097(case: &Case) {
    let mut agent = case.agent();
    for (old, new) in [("top", "T1"), ("T1", "T2"), ("T2", "T3")] {
        let envelope =
            format!("*** Begin Patch\n*** Update File: b.txt\n@@\n-{old}\n+{new}\n next\n*** End Patch\n");
        agent.call("apply_patch", json!({"patch": envelope})).ok();
    }
}

fn c098(case: &Case) {
    patch(case, &mut case.agent(), "p.diff").ok();
    assert!(["north\nsouth\neast", "north\nsouth\neast\n"].contains(&case.text("e.txt").as_str()));
}

fn c100(case: &Case) {
    case.sh("git init -q . && printf 'in\\n' > inside.txt && cp .git/config ../config");
    let mut agent = case.agent();
    patch(case, &mut agent, "p1.diff").refused("PATH_OUTSIDE");
    patch(case, &mut agent, "p2.diff").refused("PATH_OUTSIDE");
    for (name, code) in [("../moved", "PATH_OUTSIDE"), (".git/config", "PATH_PROTECTED")] {
        let rename = format!(
            "diff --git a/inside.txt b/{name}\nsimilarity index 100%\nrename from inside.txt\nrename to {name}\n"
        );
        agent.call("apply_patch", json!({"patch": rename})).refused(code);
        agent.write(name, "x").refused(code);
    }
    let edit = "--- a/.git/config\n+++ b/.git/config\n@@ -1 +1 @@\n-[core]\n+[evil]\n";
    agent.call("apply_patch", json!({"patch": edit})).refused("PATH_PROTECTED");
    case.sh("cmp .git/config ../config && grep -qx in inside.txt");
}
