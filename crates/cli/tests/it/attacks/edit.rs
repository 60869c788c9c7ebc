//! Edits that other tools get wrong.

use serde_json::json;

use super::Attack;

pub(super) const IDS: &[&str] =
    &["E132", "E134", "E135", "E136", "E138", "E139", "E140", "E142", "E143", "E144", "E146"];

#[test]
fn e132_e134_line_ends_and_the_missing_last_one_are_kept() {
    let Some(attack) = Attack::open("E132") else { return };
    let mut agent = attack.mcp().start();
    agent.read("c.txt");
    agent.edit("c.txt", "a\nb", "A\nb").ok();
    assert_eq!(attack.text("c.txt"), "A\r\nb\r\n");

    let Some(attack) = Attack::open("E134") else { return };
    let mut agent = attack.mcp().start();
    agent.read("n.txt");
    agent.edit("n.txt", "b", "c").ok();
    assert_eq!(attack.text("n.txt"), "a\nc");
}

#[test]
fn e135_every_other_byte_is_kept() {
    let Some(attack) = Attack::open("E135") else { return };
    let mut agent = attack.mcp().start();
    agent.read("bad.txt").never_says("\u{fffd}");
    agent.edit("bad.txt", "x", "y").ok();
    assert_eq!(attack.bytes("bad.txt"), b"y\xff\n");
}

#[test]
fn e136_binary_is_no_text() {
    let Some(attack) = Attack::open("E136") else { return };
    attack.mcp().start().call("read_file", json!({"path": "bin"})).refused("NOT_TEXT");
}

#[test]
fn e138_e139_content_decides_not_time_or_inode() {
    let Some(attack) = Attack::open("E138") else { return };
    let mut agent = attack.mcp().start();
    agent.read("r.txt");
    attack.sh("touch -r r.txt ref; printf 'y\\n' > r.txt; touch -r ref r.txt");
    agent.edit("r.txt", "x", "z").refused_as(&["FILE_CHANGED_SINCE_READ", "TEXT_NOT_FOUND"]);
    assert_eq!(attack.text("r.txt"), "y\n");

    let Some(attack) = Attack::open("E139") else { return };
    let mut agent = attack.mcp().start();
    agent.read("r.txt");
    attack.sh("cp r.txt other; mv other r.txt");
    agent.edit("r.txt", "x", "z").ok();
    assert_eq!(attack.text("r.txt"), "z\n");
}

#[test]
fn e140_to_e144_what_does_not_fit_exactly_once_is_refused() {
    for (id, path, old, new, code) in [
        ("E140", "r.txt", "a", "b", "TEXT_AMBIGUOUS"),
        ("E142", "r.txt", "", "y", "ALREADY_EXISTS"),
        ("E143", "r.txt", "x", "x", "NOTHING_TO_CHANGE"),
        ("E144", "u.txt", "cafe\u{301}", "the", "TEXT_NOT_FOUND"),
    ] {
        let Some(attack) = Attack::open(id) else { return };
        let mut agent = attack.mcp().start();
        agent.read(path);
        let before = attack.bytes(path);
        let refused = agent.edit(path, old, new);
        assert_eq!(refused.code(), Some(code), "{id}: {}", refused.text);
        assert_eq!(attack.bytes(path), before, "{id}");
        if id == "E144" {
            refused.says_one_of(&["U+0301", "composed", "NFC"]);
        }
    }
}

#[test]
fn e146_escapes_reach_no_terminal() {
    let Some(attack) = Attack::open("E146") else { return };
    let mut agent = attack.mcp().profile("careful").start();
    agent.read("esc.txt");
    let asked = agent.edit("esc.txt", "x", "y\u{1b}]0;evil\u{7}");
    asked.refused("APPROVAL_PENDING");
    for command in [&["pending"][..], &["pending", "--json"], &["review"]] {
        let shown = attack.run(command);
        assert!(shown.stdout.contains("esc.txt"), "{command:?}: {shown:?}");
        assert!(!(shown.stdout + &shown.stderr).contains(['\u{1b}', '\u{7}']), "{command:?}");
    }
}
