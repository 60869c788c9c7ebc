//! Encodings, line endings, marks: what was not edited keeps every byte.

use cotenant_testkit::Reply;
use serde_json::json;

use super::{Case, cases};
use crate::support::{TOKEN, diff_lines, http_settings, open_session, session_headers, tool_call};

cases!(c001, c002, c004, c005, c007, c008, c010, c011, c013, c014, c016, c017, c019, c020, c022);

fn c001(case: &Case) {
    let mut agent = case.agent();
    let read = agent.read("a.txt");
    read.never_says("\r");
    assert_eq!(read.get("eol"), "crlf");
    agent.edit("a.txt", "alpha\nbeta", "ALPHA\nBETA").ok();
}

fn c002(case: &Case) {
    let mut agent = case.agent();
    agent.read("mix.txt");
    let edit = json!({"path": "mix.txt", "old_text": "three", "new_text": "THREE", "dry_run": true});
    let preview = agent.call("edit_file", edit);
    assert_eq!(diff_lines(preview.ok()), (1, 1), "{}", preview.text);
    agent.edit("mix.txt", "three", "THREE").ok();
}

fn c004(case: &Case) {
    let mut agent = case.agent();
    agent.read("u.pas");
    agent.overwrite("u.pas", "unit B;\nbegin\nend.\n").ok();
    case.check();
    let asked = json!({"path": "u.pas", "content": "unit C;\nend.\n", "overwrite": true, "eol": "lf"});
    agent.call("write_file", asked).ok().says("lf");
    assert_eq!(case.text("u.pas"), "unit C;\nend.\n");
}

fn c005(case: &Case) {
    case.agent().write("src/Makefile", "all:\n\techo ok\n").ok();
}

fn c007(case: &Case) {
    let mut agent = case.agent();
    agent.read("p.ascx");
    agent.overwrite("p.ascx", "<p>vérifié</p>\n").ok();
    case.check();
    agent.overwrite("p.ascx", "\u{feff}<p>deux</p>\n").ok();
    assert_eq!(case.text("p.ascx"), "\u{feff}<p>deux</p>\n");
}

fn c008(case: &Case) {
    let mut agent = case.agent();
    agent.read("s.c");
    agent.edit("s.c", "x = 1", "x = 2").ok();
    assert_eq!(case.bytes("s.c"), b"// \xa9 Acme\r\nint x = 2;\r\n");
    // What the encoding cannot hold is named, and nothing is written.
    let refused = agent.edit("s.c", "x = 2", "x = '→'");
    refused.refused("NOT_ENCODABLE").says_one_of(&["→", "U+2192"]);
}

fn c010(case: &Case) {
    let mut agent = case.agent();
    let read = agent.read("k.reg");
    read.says("[Key]").says("\"a\"=dword:1");
    assert_eq!((read.get("encoding"), read.get("eol")), ("utf-16le".to_owned(), "crlf".to_owned()));
    agent.edit("k.reg", "dword:1", "dword:2").ok();
}

fn c011(case: &Case) {
    let mut agent = case.agent();
    agent.read("d.md");
    let before = case.bytes("d.md");
    let refused = agent.edit("d.md", "Ana: \"Yes.\"", "Ana: \"Sure.\"");
    refused.refused("TEXT_NOT_FOUND").says("U+201C").says("1|");
    assert_eq!(case.bytes("d.md"), before);
    agent.edit("d.md", "Ana: “Yes.”", "Ana: “Sure.”").ok();
}

fn c013(case: &Case) {
    let mut agent = case.agent();
    agent.read("f.txt");
    agent.edit("f.txt", "l'eau", "l’eau").ok();
}

fn c014(case: &Case) {
    let mut agent = case.agent();
    agent.write("e.html", "<code>a &amp;&amp; b &lt; c</code>\n").ok();
    agent.edit("e.html", "&lt;", "&gt;").ok();
}

/// A new file gets a final newline unless `.editorconfig` says otherwise, as here: the case counts the bytes.
fn c016(case: &Case) {
    case.put(".editorconfig", "root = true\n[*]\ninsert_final_newline = false\n");
    let content = "\u{5f20}".repeat(3000);
    let mut agent = case.agent();
    let arguments = json!({"path": "han.txt", "content": content});
    let (id, bytes) = agent.encode("tools/call", json!({"name": "write_file", "arguments": arguments}));
    for chunk in bytes.chunks(7) {
        agent.send_raw(chunk);
    }
    agent.reply(id).ok();
    case.check();

    http_settings(case);
    case.run(&["stop"]).ok();
    let served = case.serve();
    let session = open_session(&served.http);
    let message =
        tool_call(2, "write_file", &json!({"path": "han-http.txt", "content": content})).to_string();
    let bearer = format!("Bearer {TOKEN}");
    let mut headers = session_headers(&session).to_vec();
    headers.push(("Authorization", &bearer));
    headers.push(("Content-Type", "application/json"));
    headers.push(("Accept", "application/json, text/event-stream"));
    let answer = served.http.send_chunked("POST", "/mcp", &headers, message.as_bytes(), 7);
    Reply::read(&answer.json()["result"]).ok();
    assert_eq!(case.text("han-http.txt"), case.text("han.txt"));
}

fn c017(case: &Case) {
    let mut agent = case.agent();
    agent.read("Makefile");
    agent.edit("Makefile", "two.c", "deux.c").ok();
}

fn c019(case: &Case) {
    let mut agent = case.agent();
    let read = agent.read("ff.txt");
    assert_eq!(read.number("of"), 2);
    read.says("2|last");
    agent.grep("last", "ff.txt").ok().says("2:last");
    let second = agent.call("read_file", json!({"path": "ff.txt", "start": 2}));
    assert_eq!((second.get("lines").as_str(), second.number("of")), ("2-2", 2));
    let before = case.bytes("ff.txt");
    agent.edit("ff.txt", "last", "LAST").ok();
    let odd = before.len() - b"last\n".len();
    assert_eq!(case.bytes("ff.txt"), [&before[..odd], b"LAST\n"].concat());
}

/// Reads are by line; a long line is clipped, and a notice spells out the call that shows its rest.
fn c020(case: &Case) {
    let line = "🧪".repeat(25_000);
    case.put("long.txt", format!("{line}\nend\n"));
    let mut agent = case.agent();
    agent.read("w.txt").says("A🧪B한C");
    let mut page = agent.read("long.txt");
    assert_eq!((page.number("clipped_lines"), page.number("of")), (1, 2));
    let mut whole = String::new();
    loop {
        page.never_says("\u{fffd}");
        let (_, shown) = page.numbered()[0];
        let Some((text, _)) = shown.split_once("…[") else {
            whole += shown;
            break;
        };
        assert!(!text.is_empty(), "no way forward: {}", page.text);
        whole += text;
        let (tool, arguments) = page.noticed_call().unwrap_or_else(|| panic!("no way on: {}", page.text));
        page = agent.call(&tool, arguments);
        page.ok();
    }
    assert!(whole == line, "the pages do not give the line back");
}

fn c022(case: &Case) {
    let (composed, decomposed) = ("\u{e4}.txt", "a\u{308}.txt");
    let mut agent = case.agent();
    let read = agent.call("read_file", json!({"path": composed}));
    read.says(decomposed);
    if read.code().is_some() {
        read.refused("NOT_FOUND");
    }
    agent.glob("*\u{e4}*").ok().says(decomposed);
    agent.glob("*").ok().says(decomposed).says("\u{e9}.txt");
    let written = agent.write(composed, "second\n");
    written.says(decomposed);
    let names = case.sh("ls | wc -l").stdout.trim().parse::<u32>().unwrap();
    let refused = written.code().is_some();
    assert_eq!(names, if refused { 2 } else { 3 });
    assert!(refused || !written.notices().is_empty(), "{}", written.text);
}
