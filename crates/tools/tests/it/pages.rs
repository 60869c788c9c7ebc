//! The reference pages in `docs/` say what the code says. `COTENANT_BLESS=1` writes them anew.

use std::path::{Path, PathBuf};

use cotenant_model::Settings;
use cotenant_tools::docs;
use serde_json::{Value, json};

use crate::fixture::Fixture;

fn docs_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn compare(name: &str, page: &str) {
    let path = docs_dir().join(name);
    if std::env::var_os("COTENANT_BLESS").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == page, "docs/{name} is out of date: run this test with COTENANT_BLESS=1\n{page}");
}

#[test]
fn the_tools_page_is_the_registry() {
    compare("tools.md", &docs::tools_page());
}

#[test]
fn the_paths_page_is_the_table() {
    compare("paths.md", &docs::paths_page());
}

/// Every refusal that this issue's tools can raise, from a real call.
#[test]
fn the_refusals_page_is_what_calls_answer() {
    let f = workspace();
    let mut page = docs::refusals_head();
    for (code, title, tool, args) in cases() {
        let answer = f.call(tool, args);
        assert!(answer.text.starts_with(code), "{title}: {}", answer.text);
        assert!(answer.text.len() <= 1200 + 2048, "{title}: {} bytes", answer.text.len());
        assert!(answer.text.contains("\nnext: "), "{title} names no next step: {}", answer.text);
        let tool = if tool.is_empty() { "(no tool)" } else { tool };
        page.push_str(&format!("\n## {code}: {title}\n\n`{tool}`\n\n```\n{}\n```\n", answer.text));
    }
    compare("refusals.md", &page);
}

/// A workspace in which each of [`cases`] is refused.
pub(crate) fn workspace() -> Fixture {
    let f = Fixture::with(Settings {
        profile: cotenant_model::Profile::Trusting,
        generated: vec![cotenant_model::GeneratedRule {
            paths: vec!["gen/**".to_owned()],
            from: Some("api.proto".to_owned()),
            command: Some("buf generate".to_owned()),
        }],
        ..Settings::default()
    });
    prepare(&f);
    f
}

fn prepare(f: &Fixture) {
    f.put("src/main.go", "func f() {\n\tif err != nil {\n\t\treturn nil, err\n\t}\n}\n");
    f.put("src/lib.rs", "impl A {\n    close();\n}\nimpl B {\n    close();\n}\n");
    f.put("src/seen.rs", "one\ntwo\nthree\nfour\n");
    f.put("src/near.rs", "one\ntwo\nthree\nfour\n");
    f.put("gen/api.rs", "x\n");
    f.put("bin", b"v\0x\n");
    f.put("latin1.txt", b"caf\xe9\nplain\n");
    f.put(".env", "K=1\n");
    for path in ["src/main.go", "src/lib.rs", "src/seen.rs", "src/near.rs", "gen/api.rs", "latin1.txt"] {
        f.ok("read_file", json!({"path": path}));
    }
    f.put("src/seen.rs", "one\ntwo\nTHREE\nfour\n");
    f.put("src/near.rs", "one\ntwo\nTHREE\nfour\n");
    f.put("linked", "x\n");
    std::fs::hard_link(f.path("linked"), f.path("linked-too")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", f.path("out")).unwrap();
    f.ok("read_file", json!({"path": "linked"}));
    // A change that a later one stands on.
    f.ok("write_file", json!({"path": "notes.md", "content": "a\n"}));
    f.ok("edit_file", json!({"path": "notes.md", "old_text": "a", "new_text": "b"}));
    f.ok("edit_file", json!({"path": "notes.md", "old_text": "b", "new_text": "c"}));
}

pub(crate) fn cases() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let edit = |path: &str, old: &str, new: &str| json!({"path": path, "old_text": old, "new_text": new});
    vec![
        (
            "BAD_INPUT",
            "an argument's name is a slip",
            "edit_file",
            json!({"path": "a", "old_text": "x", "new_text": "y", "dryrun": true}),
        ),
        ("BAD_INPUT", "no such tool", "raed_file", json!({"path": "a"})),
        ("PATH_OUTSIDE", "a `..` that would stay inside", "read_file", json!({"path": "src/../src/lib.rs"})),
        ("PATH_OUTSIDE", "absolute", "read_file", json!({"path": "/etc/passwd"})),
        ("PATH_OUTSIDE", "a link that leads out", "read_file", json!({"path": "out"})),
        ("PATH_PROTECTED", "a secret", "read_file", json!({"path": ".env"})),
        (
            "PATH_PROTECTED",
            "what git runs",
            "write_file",
            json!({"path": ".git/hooks/pre-commit", "content": "x"}),
        ),
        ("PATH_READ_ONLY", "a generated file", "edit_file", edit("gen/api.rs", "x", "y")),
        ("NOT_FOUND", "with near paths", "read_file", json!({"path": "src/mian.go"})),
        (
            "ALREADY_EXISTS",
            "write_file does not overwrite unasked",
            "write_file",
            json!({"path": "src/lib.rs", "content": "x"}),
        ),
        ("NOT_A_FILE", "a directory", "read_file", json!({"path": "src"})),
        ("NOT_A_DIRECTORY", "a file", "list_directory", json!({"path": "src/lib.rs"})),
        ("NOT_TEXT", "binary", "read_file", json!({"path": "bin"})),
        (
            "NOT_ENCODABLE",
            "an undeclared encoding takes ASCII only",
            "edit_file",
            edit("latin1.txt", "plain", "naïve"),
        ),
        ("HARD_LINKED", "a file with two names", "edit_file", edit("linked", "x", "y")),
        (
            "TEXT_NOT_FOUND",
            "tabs",
            "edit_file",
            edit("src/main.go", "    if err != nil {\n        return nil, err\n    }", "    return nil, err"),
        ),
        (
            "TEXT_NOT_FOUND",
            "the file changed since",
            "edit_file",
            edit("src/seen.rs", "two\nthree", "two\n3"),
        ),
        (
            "TEXT_NOT_FOUND",
            "nothing like it",
            "edit_file",
            edit("src/lib.rs", "fn quite_another_thing()", "x"),
        ),
        ("TEXT_AMBIGUOUS", "two places", "edit_file", edit("src/lib.rs", "close();", "open();")),
        ("NOTHING_TO_CHANGE", "the same text", "edit_file", edit("src/lib.rs", "impl A", "impl A")),
        ("EDIT_REQUIRES_PRIOR_READ", "an unseen file", "edit_file", edit("linked-too", "x", "y")),
        (
            "EDIT_REQUIRES_PRIOR_READ",
            "overwriting what was not seen",
            "write_file",
            json!({"path": "bin", "content": "x", "overwrite": true}),
        ),
        ("FILE_CHANGED_SINCE_READ", "next to the edit", "edit_file", edit("src/near.rs", "four", "4")),
        (
            "PATTERN_INVALID",
            "a broken expression",
            "search_files",
            json!({"pattern": "a(", "content_search": true}),
        ),
        (
            "PATTERN_TOO_LARGE",
            "an expression that compiles to too much",
            "search_files",
            json!({"pattern": "(\\w{500}){500}", "content_search": true}),
        ),
        ("UNDO_CONFLICT", "a later change stands on it", "undo", json!({"change": "c2"})),
        ("HANDLE_EXPIRED", "an unknown token", "retry", json!({"token": "r999"})),
    ]
}
