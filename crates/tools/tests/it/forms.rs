//! The same answer for models and for programs, the list of tools, and what a session is told at its beginning.

use cotenant_model::{Code, Durability, ToolSet};
use cotenant_tools::args::accepted;
use cotenant_tools::host::{Answer, Hello, Host};
use cotenant_tools::tool::Kind;
use cotenant_tools::{docs, registry};
use serde_json::{Value, json};

use crate::fixture::{Fixture, body, fact, next_calls, notices};
use crate::pages::{cases, workspace};

fn hello(agent: &str) -> Hello {
    Hello { agent: Some(agent.to_owned()), tools: Some(ToolSet::ALL.to_vec()), ..Hello::default() }
}

/// A value of line 1 as a program gets it.
fn shown(value: &Value) -> Option<String> {
    let bare = |text: &str| cotenant_model::FactValue::from(text).to_string();
    match value {
        Value::String(text) => Some(bare(text)),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(if *flag { "yes" } else { "no" }.to_owned()),
        Value::Array(list) => {
            let list: Vec<String> = list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
            Some(cotenant_model::FactValue::List(list).to_string())
        }
        _ => None,
    }
}

/// Line 1, `_meta` and the fields say the same.
fn agree(answer: &Answer, program: bool) {
    let facts = match answer.meta.get("cotenant/refusal") {
        Some(refusal) => &refusal["facts"],
        None => &answer.meta["cotenant/facts"],
    };
    for (name, value) in facts.as_object().unwrap() {
        assert_eq!(fact(&answer.text, name), shown(value), "{name} in {}", answer.text);
    }
    let Some(fields) = &answer.structured else {
        assert!(!program, "a program gets fields: {}", answer.text);
        return;
    };
    assert!(program, "a model does not: {}", answer.text);
    assert_eq!(fields["text"], json!(answer.text));
    if answer.meta.contains_key("cotenant/refusal") {
        for name in ["code", "message", "next", "facts"] {
            assert_eq!(fields[name], answer.meta["cotenant/refusal"][name], "{name}");
        }
        return;
    }
    // `changes` is a count for models and the list itself for programs.
    for (name, value) in facts.as_object().unwrap().iter().filter(|(name, _)| *name != "changes") {
        assert_eq!(&fields[name], value, "{name}");
    }
    if let Some(content) = fields.get("content").and_then(Value::as_str) {
        assert_eq!(content, body(&answer.text));
    }
}

#[test]
fn line_one_meta_and_fields_agree_in_every_refusal() {
    for structured in [false, true] {
        let f = workspace();
        let session = f.toolbox.open(&Hello { structured, ..hello("agent-p") }).unwrap();
        for (_, _, tool, args) in cases() {
            agree(&f.call_as(session, tool, args), structured);
        }
    }
}

#[test]
fn line_one_meta_and_fields_agree_in_every_answer() {
    let f = Fixture::new();
    let program = f.toolbox.open(&Hello { structured: true, ..hello("agent-p") }).unwrap();
    let calls = [
        ("write_file", json!({"path": "two words", "content": "one\ntwo\n"})),
        ("read_file", json!({"path": "two words"})),
        ("edit_file", json!({"path": "two words", "old_text": "one", "new_text": "1"})),
        ("edit_file", json!({"path": "two words", "old_text": "two", "new_text": "2", "dry_run": true})),
        ("search_files", json!({"pattern": "two", "content_search": true})),
        ("search_files", json!({"pattern": "no such", "content_search": true})),
        ("list_directory", json!({})),
        ("create_path", json!({"path": "d/e/"})),
        ("history", json!({})),
        ("show_change", json!({"change": "c1"})),
        ("whoami", json!({})),
        ("undo", json!({})),
    ];
    for (tool, args) in calls {
        agree(&f.call_as(program, tool, args.clone()), true);
        if tool == "read_file" || tool == "history" {
            agree(&f.call(tool, args), false);
        }
    }
    // The command line asks for the fields call by call.
    let args = json!({"path": "two words"}).as_object().cloned().unwrap_or_default();
    let ticket = f.toolbox.arrive(f.session, "read_file", &args);
    let meta = json!({"cotenant/structured": true}).as_object().cloned().unwrap_or_default();
    let call =
        cotenant_tools::host::Call { session: f.session, tool: "read_file".to_owned(), args, meta, ticket };
    agree(&f.toolbox.call(call), true);
}

#[test]
fn fields_of_history_are_those_of_the_contract() {
    let f = Fixture::new();
    let program =
        f.toolbox.open(&Hello { structured: true, task: Some("t".to_owned()), ..hello("agent-p") }).unwrap();
    f.ok_as(program, "write_file", json!({"path": "d/a", "content": "x\n"}));
    f.ok_as(program, "undo", json!({}));
    let fields = f.call_as(program, "history", json!({})).structured.unwrap();
    let changes = fields["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 2);
    let first = &changes[1];
    for (name, value) in [
        ("id", json!("c1")),
        ("agent", json!("agent-p")),
        ("task", json!("t")),
        ("tool", json!("write_file")),
        ("kind", json!("planned")),
        ("evidence", json!("mediated")),
        ("files", json!([{"path": "d", "op": "mkdir"}, {"path": "d/a", "op": "create"}])),
    ] {
        assert_eq!(first[name], value, "{name}: {first}");
    }
    assert_eq!(changes[0]["undoes"], json!("c1"));
    let me = f.call_as(program, "whoami", json!({})).structured.unwrap();
    for name in ["agent", "mode", "leases", "strikes", "taint", "notices"] {
        assert!(me.get(name).is_some(), "{name}: {me}");
    }
}

#[test]
fn a_notice_is_told_in_text_and_in_meta_once() {
    let f = Fixture::new();
    let program = f.toolbox.open(&Hello { structured: true, ..hello("agent-p") }).unwrap();
    f.ok("write_file", json!({"path": "a", "content": "1\n2\n"}));
    f.ok_as(program, "read_file", json!({"path": "a"}));
    f.ok("edit_file", json!({"path": "a", "old_text": "2", "new_text": "two"}));
    let refusal = f.call_as(program, "read_file", json!({"path": "nowhere"}));
    assert_eq!(notices(&refusal.text).len(), 1, "a refusal tells it, too: {}", refusal.text);
    let notice = &refusal.meta["cotenant/notices"][0];
    assert_eq!((&notice["kind"], &notice["path"]), (&json!("reload"), &json!("a")));
    assert_eq!(notices(&refusal.text)[0], format!("! {}", notice["message"].as_str().unwrap()));
    let next = f.call_as(program, "list_directory", json!({}));
    assert!(!next.meta.contains_key("cotenant/notices"), "{}", next.text);
    let again = f.call_as(program, "whoami", json!({})).structured.unwrap();
    assert_eq!(again["notices"].as_array().map(Vec::len), Some(1), "whoami repeats what was told: {again}");
}

#[test]
fn the_instructions_fit_and_name_only_what_there_is() {
    let f = Fixture::new();
    for sets in [
        vec![ToolSet::Core],
        vec![ToolSet::Core, ToolSet::History],
        ToolSet::ALL.to_vec(),
        vec![ToolSet::History],
    ] {
        let session = f.toolbox.open(&Hello { tools: Some(sets.clone()), ..hello("x") }).unwrap();
        let text = f.toolbox.instructions(session);
        assert!(text.len() <= 1024, "{} bytes: {text}", text.len());
        let listed: Vec<String> =
            f.toolbox.tools(session).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        for tool in [
            "search_files",
            "edit_file",
            "write_file",
            "undo",
            "apply_patch",
            "run_command",
            "retry",
            "whoami",
        ] {
            assert_eq!(
                text.split(|ch: char| !ch.is_ascii_alphabetic() && ch != '_').any(|word| word == tool),
                listed.iter().any(|name| name == tool),
                "{tool} with {sets:?}: {text}"
            );
        }
        assert!(
            std::sync::Arc::ptr_eq(&f.toolbox.tools(session), &f.toolbox.tools(session)),
            "the list does not change"
        );
    }
    let gone = f.session("y");
    f.toolbox.close(gone);
    assert!(f.toolbox.tools(gone).is_empty());
}

#[test]
fn a_weaker_durability_is_said_with_every_change() {
    let f = Fixture::new();
    let fast = f.toolbox.open(&Hello { durability: Some(Durability::Fast), ..hello("fast") }).unwrap();
    let done = f.ok_as(fast, "write_file", json!({"path": "a", "content": "x"}));
    assert_eq!(fact(&done, "durability").as_deref(), Some("fast"), "{done}");
    let full = f.ok("write_file", json!({"path": "b", "content": "x"}));
    assert_eq!(fact(&full, "durability"), None, "{full}");
}

#[test]
fn the_pages_name_every_tool_argument_and_code() {
    let page = docs::tools_page();
    for tool in registry::TOOLS {
        assert!(page.contains(&format!("### {}\n", tool.name)) && page.contains(tool.about), "{}", tool.name);
        for param in tool.params {
            assert!(page.contains(&format!("| `{}` |", param.name)), "{} {}", tool.name, param.name);
        }
    }
    let refusals = docs::refusals_head();
    Code::ALL.iter().for_each(|code| assert!(refusals.contains(&format!("`{code}`")), "{code}"));
    let paths = docs::paths_page();
    for rule in cotenant_model::PROTECTED.iter().chain(cotenant_model::SENSITIVE) {
        assert!(paths.contains(&format!("`{rule}`")), "{rule}");
    }
}

#[test]
fn a_tool_takes_each_argument_once_and_lists_what_it_requires() {
    for tool in registry::TOOLS {
        let mut names: Vec<&str> = accepted(tool).map(|param| param.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{}", tool.name);
        for param in tool.params {
            assert!(param.listed || !param.required, "{} {} is required and hidden", tool.name, param.name);
            assert!(param.kind != Kind::Choice(&[]), "{} {} has no choice", tool.name, param.name);
        }
        let schema = &tool.listing(false)["inputSchema"];
        let listed = schema["properties"].as_object().unwrap();
        assert_eq!(listed.len(), tool.params.iter().filter(|param| param.listed).count(), "{}", tool.name);
        let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        assert!(required.iter().all(|name| listed.contains_key(name.as_str().unwrap())), "{}", tool.name);
        assert!(accepted(tool).any(|param| param.name == "dry_run") == tool.mutates(), "{}", tool.name);
    }
    for (alias, tool) in
        [("exec_read", "read_file"), ("exec_write", "write_file"), ("exec_ls", "list_directory")]
    {
        assert_eq!(registry::find(alias).map(|found| found.name), Some(tool));
    }
    assert!(registry::find("").is_none() && registry::find("READ_FILE").is_none());
    assert_eq!(registry::near("readfile", &ToolSet::ALL), Some("read_file"));
    assert_eq!(
        registry::near("history", &[ToolSet::Core]),
        None,
        "a tool outside of the sets is not proposed"
    );
}

#[test]
fn a_next_step_names_only_tools_of_the_session() {
    for sets in [
        vec![ToolSet::Core],
        vec![ToolSet::History],
        vec![ToolSet::Organise],
        vec![ToolSet::Core, ToolSet::Organise],
        vec![ToolSet::Team],
    ] {
        let f = workspace();
        let other = f.session("agent-b");
        // The same agent, so that what it may undo is its own; it reads what the first session read.
        let session = f.toolbox.open(&Hello { tools: Some(sets.clone()), ..hello("agent-a") }).unwrap();
        f.put("stale", "one\ntwo\nthree\n");
        if sets.contains(&ToolSet::Core) {
            f.ok_as(session, "read_file", json!({"path": "stale"}));
        }
        f.ok_as(other, "read_file", json!({"path": "stale"}));
        f.ok_as(other, "edit_file", json!({"path": "stale", "old_text": "two", "new_text": "2"}));
        let own = [
            ("edit_file", json!({"path": "stale", "old_text": "two", "new_text": "zwei"})),
            ("undo", json!({})),
            ("undo", json!({"change": "c99"})),
            ("history", json!({"since": "soon"})),
            ("show_change", json!({"change": "c99"})),
            ("show_change", json!({})),
            ("create_path", json!({"path": "src"})),
            ("create_path", json!({"path": "src/lib.rs/x"})),
        ];
        let refusals = cases().into_iter().map(|(_, _, tool, args)| (tool, args)).chain(own);
        for (tool, args) in refusals {
            let answer = f.call_as(session, tool, args);
            assert!(answer.is_error || answer.text.starts_with("path="), "{tool}: {}", answer.text);
            let next =
                answer.meta.get("cotenant/refusal").map_or("-", |refusal| refusal["next"].as_str().unwrap());
            assert!(!next.is_empty(), "{}", answer.text);
            for (named, _) in next_calls(&answer.text) {
                let found = registry::find(&named).unwrap();
                assert!(sets.contains(&found.set), "{sets:?} {tool}: {}", answer.text);
            }
        }
    }
}
