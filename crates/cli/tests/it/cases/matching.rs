//! Finding the text to replace: exact or refused with the cause, never almost.

use serde_json::json;

use super::{Case, cases};

cases!(c023, c024, c026, c027, c029, c030, c032, c033, c035, c036);

fn c023(case: &Case) {
    let mut agent = case.agent();
    agent.read("f.go");
    let before = case.bytes("f.go");
    let spaces = agent.edit("f.go", "    if ok {\n        return 1", "    if ok {\n        return 2");
    spaces.refused("TEXT_NOT_FOUND").says("cause=tabs").says("2|→if ok {");
    assert_eq!(case.bytes("f.go"), before);
    agent.edit("f.go", "\tif ok {\n\t\treturn 1", "\tif ok {\n\t\treturn 2").ok();
    case.check();
    // The suggestion does the same in one short call.
    let again = agent.edit("f.go", "    if ok {\n        return 2", "    if ok {\n        return 3");
    let suggestion = again.refused("TEXT_NOT_FOUND").offered("suggestion");
    agent.call("edit_file", json!({"path": "f.go", "suggestion": suggestion})).ok();
    assert_eq!(case.text("f.go"), "func f() {\n\tif ok {\n\t\treturn 3\n\t}\n}\n");
}

fn c024(case: &Case) {
    let mut agent = case.agent();
    agent.read("t.cfg");
    let refused = agent.edit("t.cfg", "\\tvalue = 1", "\\tvalue = 2");
    refused.refused("TEXT_NOT_FOUND").says("1|");
    assert!(refused.text.to_lowercase().contains("tab"), "{}", refused.text);
}

fn c026(case: &Case) {
    let mut agent = case.agent();
    agent.read("i.txt");
    let refused = agent.edit("i.txt", "    three_sp", "    four_sp");
    let suggestion = refused.refused("TEXT_NOT_FOUND").says("cause=indent").offered("suggestion");
    case.check();
    let accepted = agent.call("edit_file", json!({"path": "i.txt", "suggestion": suggestion}));
    assert!(accepted.ok().get("match").starts_with("indent"), "{}", accepted.text);
    assert_eq!(case.text("i.txt"), "top\n   four_sp\nend\n");
}

fn c027(case: &Case) {
    let mut agent = case.agent();
    agent.read("w2.txt");
    let refused = agent.edit("w2.txt", "left right", "X");
    let lines: Vec<u64> =
        refused.refused("TEXT_NOT_FOUND").numbered().iter().map(|(line, _)| *line).collect();
    assert!(lines.contains(&1) && lines.contains(&3), "{}", refused.text);
}

fn c029(case: &Case) {
    let mut agent = case.agent();
    agent.read("ws.txt");
    agent.edit("ws.txt", " ", "Z").refused("TEXT_NOT_FOUND");
    agent.edit("ws.txt", "", "Z").refused("ALREADY_EXISTS");
    let edits = json!([{"old_text": "", "new_text": "Z", "replace_all": true}]);
    agent
        .call("edit_file", json!({"path": "ws.txt", "edits": edits}))
        .refused_as(&["ALREADY_EXISTS", "BAD_INPUT"]);
}

fn c030(case: &Case) {
    let mut agent = case.agent();
    agent.read("m.md");
    agent.edit("m.md", "line one", "line one  ").ok();
    agent.edit("m.md", "\nline two\n\n", "\n  line 2  \n\n").refused("TEXT_NOT_FOUND");
}

fn c032(case: &Case) {
    let mut agent = case.agent();
    agent.read("r.txt");
    let edit = json!({"path": "r.txt", "old_text": "ab", "new_text": "abab", "replace_all": true});
    let edited = agent.call("edit_file", edit);
    assert_eq!(edited.ok().number("replaced"), 4);
}

fn c033(case: &Case) {
    let mut agent = case.agent();
    agent.read("c.ts");
    let state = || case.sh("stat -c '%Y %i %z' c.ts").stdout;
    let before = (state(), agent.call("history", json!({})).number("changes"));
    let edits = [("let low = 4;", "let low = 40;"), ("let gone = 3;", "x")];
    agent.edits("c.ts", &edits).refused("TEXT_NOT_FOUND").says("item=2");
    assert_eq!((state(), agent.call("history", json!({})).number("changes")), before);
}

fn c035(case: &Case) {
    let mut agent = case.agent();
    agent.read("s.ini");
    agent.edits("s.ini", &[("red", "green"), ("green", "blue")]).ok();
    assert_eq!(case.text("s.ini"), "stage = blue\n");
    agent.edits("s.ini", &[("blue", "a a"), ("a", "z")]).refused("TEXT_AMBIGUOUS").says("item=2");
}

fn c036(case: &Case) {
    let mut agent = case.agent();
    agent.edits("new.txt", &[("", "hello\n"), ("absent", "x")]).refused("TEXT_NOT_FOUND");
    agent.edits("made/new.txt", &[("", "hello\n"), ("absent", "x")]).refused("TEXT_NOT_FOUND");
    assert!(!case.path("made").exists());
}
