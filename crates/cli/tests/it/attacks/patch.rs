//! Patches that lead out, into what is protected, or that mean two things.

use serde_json::json;

use super::Attack;

pub(super) const IDS: &[&str] = &["P147", "P149", "P150", "P151", "P153", "P154", "P155", "P157"];

/// Applies a patch in the workspace of an entry; nothing may have changed where it was refused.
fn refused(id: &str, patch: impl Fn(&Attack) -> String, codes: &[&str]) {
    let Some(attack) = Attack::open(id) else { return };
    let look = "find src .git/hooks .git/config -type f -exec sha256sum {} + | sort; find . -type l; cat ../*/secret.txt; test ! -e /etc/x";
    let before = attack.sh(look).stdout;
    attack.mcp().start().call("apply_patch", json!({"patch": patch(&attack)})).refused_as(codes);
    assert_eq!(attack.sh(look).stdout, before, "{id}");
}

#[test]
fn p147_p149_no_name_leads_out() {
    let out = |attack: &Attack| attack.out().file_name().unwrap().to_str().unwrap().to_owned();
    let envelope = |name: &str| {
        format!("*** Begin Patch\n*** Update File: {name}\n@@\n-secret\n+taken\n*** End Patch\n")
    };
    refused("P147", |attack| envelope(&format!("../{}/secret.txt", out(attack))), &["PATH_OUTSIDE"]);
    refused("P147", |attack| envelope(attack.out().join("secret.txt").to_str().unwrap()), &["PATH_OUTSIDE"]);
    refused("P149", |_| "--- /dev/null\n+++ /etc/x\n@@ -0,0 +1 @@\n+x\n".to_owned(), &["PATH_OUTSIDE"]);
}

#[test]
fn p150_no_rename_leads_into_what_is_protected() {
    let rename = "diff --git a/src/a.txt b/.git/hooks/pre-commit\nsimilarity index 100%\nrename from src/a.txt\nrename to .git/hooks/pre-commit\n";
    refused("P150", |_| rename.to_owned(), &["PATH_PROTECTED"]);
}

#[test]
fn p151_no_link_is_made_that_leads_out() {
    for target in ["/etc", "../../etc", "src/../../out", ".git/config"] {
        let patch = format!(
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
        );
        refused("P151", |_| patch.clone(), &["PATH_OUTSIDE", "PATH_PROTECTED"]);
    }
    let Some(attack) = Attack::open("P151") else { return };
    let inside = "diff --git a/src/l b/src/l\nnew file mode 120000\n--- /dev/null\n+++ b/src/l\n@@ -0,0 +1 @@\n+../src/a.txt\n\\ No newline at end of file\n";
    attack.mcp().start().call("apply_patch", json!({"patch": inside})).ok();
    attack.sh("test \"$(readlink src/l)\" = ../src/a.txt");
}

#[test]
fn p153_an_executable_is_asked_about() {
    let Some(attack) = Attack::open("P153") else { return };
    let new =
        "diff --git a/run b/run\nnew file mode 100755\n--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+#!/bin/sh\n";
    let bit = "diff --git a/src/a.txt b/src/a.txt\nold mode 100644\nnew mode 100755\n";
    let mut agent = attack.mcp().profile("careful").start();
    for patch in [new, bit] {
        agent.call("apply_patch", json!({"patch": patch})).refused("APPROVAL_PENDING");
    }
    attack.sh("test ! -e run && test ! -x src/a.txt");
    agent.call("apply_patch", json!({"patch": new.replace("100755", "100644")})).ok();
}

#[test]
fn p154_all_or_nothing() {
    let Some(attack) = Attack::open("P154") else { return };
    attack.sh("printf '1\\n' > a; printf '1\\n' > b; printf 'x\\n' > c");
    let one = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-1\n+2\n");
    let patch = ["a", "b", "c"].map(one).concat();
    attack.mcp().start().call("apply_patch", json!({"patch": patch})).refused("PATCH_CONFLICT").says("fit=2");
    attack.sh("grep -qx 1 a && grep -qx 1 b && grep -qx x c");
}

#[test]
fn p155_one_path_has_one_section() {
    let unified = "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1 +1 @@\n-in\n+one\n--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1 +1 @@\n-in\n+two\n";
    refused("P155", |_| unified.to_owned(), &["PATCH_MALFORMED"]);
    let envelope = "*** Begin Patch\n*** Update File: src/a.txt\n@@\n-in\n+one\n*** Update File: ./src/a.txt\n@@\n-one\n+two\n*** End Patch\n";
    refused("P155", |_| envelope.to_owned(), &["PATCH_MALFORMED"]);
}

#[test]
fn p157_no_bit_but_the_execute_bits() {
    let patch = "diff --git a/src/a.txt b/src/a.txt\nold mode 100644\nnew mode 104755\n";
    refused("P157", |_| patch.to_owned(), &["PATCH_MALFORMED"]);
}
