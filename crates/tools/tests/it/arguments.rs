//! Arguments as clients send them: aliases, folded names, coerced types, and the refusals that teach.

use cotenant_model::Code;
use cotenant_tools::args::{Args, nearest, with_end_line};
use cotenant_tools::registry;
use serde_json::{Map, Value, json};

fn decode(tool: &str, args: Value) -> Result<Args, cotenant_model::Refusal> {
    let tool = registry::find(tool).unwrap();
    let raw = args.as_object().cloned().unwrap_or_default();
    Args::decode(tool, &with_end_line(tool, &raw))
}

fn map(tool: &str, args: Value) -> Value {
    decode(tool, args)
        .map(|args| Value::from(args.map().clone()))
        .unwrap_or_else(|refusal| refusal.to_string().into())
}

#[test]
fn the_names_of_other_clients_are_understood() {
    for (tool, given, meant) in [
        ("read_file", json!({"file_path": "a"}), json!({"path": "a"})),
        ("read_file", json!({"filePath": "a", "offset": 0}), json!({"path": "a", "start": 1})),
        (
            "read_file",
            json!({"path": "a", "view_range": [3, 7]}),
            json!({"path": "a", "start": 3, "limit": 5}),
        ),
        ("read_file", json!({"path": "a", "view_range": [3, -1]}), json!({"path": "a", "start": 3})),
        (
            "read_file",
            json!({"path": "a", "start_line": 3, "end_line": 7}),
            json!({"path": "a", "start": 3, "limit": 5}),
        ),
        ("read_file", json!({"path": "a", "head": 5}), json!({"path": "a", "limit": 5})),
        ("read_file", json!({"path": "a", "tail": "5"}), json!({"path": "a", "start": -5, "limit": 5})),
        (
            "edit_file",
            json!({"file_path": "a", "old_string": "x", "newText": "y", "allow_multiple": "true"}),
            json!({"path": "a", "old_text": "x", "new_text": "y", "replace_all": true}),
        ),
        ("write_file", json!({"path": "a", "file_text": "x"}), json!({"path": "a", "content": "x"})),
        (
            "search_files",
            json!({"query": "x", "contentSearch": true, "output_mode": "files_with_matches", "-i": true, "type": "rs", "head_limit": 3}),
            json!({"pattern": "x", "content_search": true, "output": "files", "ignore_case": true, "glob": "*.rs", "limit": 3}),
        ),
    ] {
        assert_eq!(map(tool, given.clone()), meant, "{tool} {given}");
    }
}

#[test]
fn types_are_coerced_where_the_meaning_is_plain() {
    for (given, meant) in [
        (json!({"path": "a", "start": "200"}), json!({"path": "a", "start": 200})),
        (json!({"path": "a", "start": 2.0}), json!({"path": "a", "start": 2})),
        (json!({"path": "a", "line_numbers": "false"}), json!({"path": "a", "line_numbers": false})),
        (json!({"path": "a", "start": null}), json!({"path": "a"})),
        (json!({"path": "a", "description": "why"}), json!({"path": "a"})),
    ] {
        assert_eq!(map("read_file", given.clone()), meant, "{given}");
    }
    let edits = json!({"path": "a", "edits": "[{\"old_text\":\"x\",\"new_text\":\"y\"}]"});
    assert_eq!(map("edit_file", edits)["edits"][0]["old_text"], json!("x"));
}

#[test]
fn a_slip_is_refused_with_what_is_accepted() {
    let refused = |tool, args| decode(tool, args).unwrap_err();
    for (tool, args, names) in [
        (
            "edit_file",
            json!({"path": "a", "old_text": "x", "new_text": "y", "dryrun": true}),
            "Did you mean dry_run?",
        ),
        ("read_file", json!({}), "needs path"),
        ("read_file", json!({"path": 7}), "must be a text"),
        ("read_file", json!({"path": "a", "start": "soon"}), "whole number"),
        ("read_file", json!({"path": "a", "start": 1.5}), "whole number"),
        ("edit_file", json!({"path": "a", "edits": 3}), "an array"),
        (
            "search_files",
            json!({"pattern": "x", "content_search": true, "output": "all"}),
            "content, files, count",
        ),
        (
            "edit_file",
            json!({"path": "a", "file_path": "b", "old_text": "", "new_text": ""}),
            "twice with different values",
        ),
    ] {
        let refusal = refused(tool, args.clone());
        assert_eq!(refusal.code, Code::BadInput, "{args}");
        assert!(refusal.message.contains(names), "{args}: {}", refusal.message);
        assert!(refusal.message.contains("It takes:") && !refusal.next.is_empty());
    }
}

#[test]
fn reading_tools_name_what_they_ignore() {
    let args = decode("read_file", json!({"path": "a", "colour": "red"})).unwrap();
    assert_eq!(args.ignored, ["colour"]);
}

#[test]
fn the_same_value_twice_is_no_contradiction() {
    assert_eq!(map("read_file", json!({"path": "a", "file_path": "a"})), json!({"path": "a"}));
}

#[test]
fn a_near_name_is_a_slip_a_far_one_is_not() {
    let names = || ["path", "old_text", "dry_run"].into_iter();
    assert_eq!(nearest("dryrun", names()), Some("dry_run"));
    assert_eq!(nearest("oldtxt", names()), Some("old_text"));
    assert_eq!(nearest("quantity", names()), None);
}

#[test]
fn nothing_that_a_client_sends_can_panic() {
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!("\0"),
        json!([]),
        json!({}),
        json!([[]]),
        json!(u64::MAX),
    ];
    for tool in registry::TOOLS {
        for name in
            ["path", "view_range", "tail", "end_line", "edits", "set", "limit", "content", "timeout", "é", ""]
        {
            for value in &values {
                let mut args = Map::new();
                args.insert(name.to_owned(), value.clone());
                let _ = Args::decode(tool, &with_end_line(tool, &args));
            }
        }
    }
}
