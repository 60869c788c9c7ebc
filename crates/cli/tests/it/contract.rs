//! The contract on the wire: the list of tools and its budgets, aliases, the handshake, what the sets hold.

use std::collections::BTreeSet;

use cotenant_testkit::Reply;
use serde_json::{Value, json};

use crate::support::{TOKEN, http_settings, open_session, scratch, session_headers, tool_call};

/// The tools built so far, with their set.
const BUILT: &[(&str, &str)] = &[
    ("read_file", "core"),
    ("list_directory", "core"),
    ("search_files", "core"),
    ("edit_file", "core"),
    ("write_file", "core"),
    ("undo", "core"),
    ("read_more", "core"),
    ("retry", "core"),
    ("whoami", "core"),
    ("history", "history"),
    ("show_change", "history"),
    ("create_path", "organise"),
];

fn listed(flags: &[&str]) -> Vec<Value> {
    scratch().mcp().flags(flags).start().tools()
}

fn names(tools: &[Value]) -> BTreeSet<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn the_list_of_tools_stays_within_its_budgets() {
    let size = |tools: &[Value]| json!({"tools": tools}).to_string().len();
    let (core, usual) = (listed(&["--tools", "core"]), listed(&[]));
    let all = listed(&["--tools", "core,team,history,organise,plan,exec"]);
    let sizes = (size(&core), size(&usual), size(&all));
    assert!(sizes.0 <= 8 * 1024 && sizes.1 <= 12 * 1024 && sizes.2 <= 16 * 1024, "{sizes:?}");
    for (name, set) in BUILT {
        assert_eq!(names(&core).contains(name), *set == "core", "{name} in core");
        assert!(names(&usual).contains(name), "{name} is missing");
    }
    assert!(names(&core).is_subset(&names(&usual)) && names(&usual).is_subset(&names(&all)));
    assert_eq!(names(&all).len(), all.len(), "a tool is listed twice");
}

#[test]
fn schemas_are_plain_and_tools_say_what_they_are_for() {
    for tool in listed(&["--tools", "core,team,history,organise,plan,exec"]) {
        let text = tool.to_string();
        for word in [
            "$schema",
            "\"format\"",
            "$ref",
            "\"default\"",
            "\"null\"",
            "additionalProperties",
            "outputSchema",
        ] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        assert!(tool["title"].is_string() && tool["description"].as_str().unwrap().len() > 10, "{text}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{text}");
        assert_eq!(tool["annotations"]["openWorldHint"], false, "{text}");
        for name in tool["inputSchema"]["required"].as_array().into_iter().flatten() {
            assert!(tool["inputSchema"]["properties"].get(name.as_str().unwrap()).is_some(), "{text}");
        }
    }
}

#[test]
fn a_tool_outside_the_sets_is_not_there() {
    let scratch = scratch();
    let mut client = scratch.mcp().flags(&["--tools", "core"]).start();
    let id = client.post_call("create_path", json!({"path": "made", "kind": "directory"}));
    let answer = client.answer(id);
    assert!(answer.get("error").is_some() || answer["result"]["isError"] == true, "{answer}");
    assert!(!scratch.path("made").exists());
}

#[test]
fn every_revision_with_a_handshake_is_spoken() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = scratch.mcp().revision(revision).start();
        assert_eq!(client.welcome["protocolVersion"], revision);
        assert_eq!(client.welcome["serverInfo"]["name"], "cotenant");
        assert!(client.welcome["capabilities"]["tools"].is_object());
        client.read("f.txt").says("1|x");
        assert_eq!(client.request("ping", json!({})), json!({}));
    }
    // A revision nobody knows is answered with one that is.
    let mut client = scratch.mcp().revision("1999-01-01").start();
    assert!(client.welcome["protocolVersion"].as_str().unwrap().starts_with("202"));
    client.read("f.txt");
}

#[test]
fn the_revision_without_a_handshake_is_spoken() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    let mut client = scratch.mcp().revision("2026-07-28").start();
    let versions = client.welcome["supportedVersions"].to_string();
    assert!(versions.contains("2026-07-28"), "{}", client.welcome);
    assert!(client.welcome.to_string().contains("whoami"), "no instructions: {}", client.welcome);
    client.read("f.txt");
    client.edit("f.txt", "x", "y").ok();
    assert_eq!(client.tools().len(), listed(&[]).len());
}

#[test]
fn the_instructions_are_short_and_name_the_folders() {
    let scratch = scratch();
    std::fs::create_dir(scratch.out().join("docs")).unwrap();
    let docs = scratch.out().join("docs");
    std::fs::write(docs.join("a.md"), "read me\n").unwrap();
    let path = docs.display();
    scratch.configure(&format!(
        "[workspace]\nfolders = [{{ name = \"docs\", path = \"{path}\", access = \"read\" }}]\n"
    ));
    let mut client = scratch.mcp().start();
    let instructions = client.welcome["instructions"].as_str().unwrap().to_owned();
    assert!(instructions.len() <= 1024 && instructions.contains("docs"), "{instructions}");
    client.read("docs:a.md").says("1|read me");
    client.edit("docs:a.md", "read", "wrote").refused("PATH_READ_ONLY");
    client.write("docs:b.md", "x\n").refused("PATH_READ_ONLY");
    assert!(!docs.join("b.md").exists());
}

/// What agents of other hosts send, and what it means here.
#[test]
fn other_hosts_names_for_arguments_are_understood() {
    let scratch = scratch();
    let mut client = scratch.mcp().start();
    let text = (1..=20).map(|line| format!("line {line}\n")).collect::<String>();
    scratch.put("a.txt", &text);
    let root = scratch.root();
    let absolute = root.join("a.txt");
    for (arguments, lines) in [
        (json!({"file_path": "a.txt"}), "1-20"),
        (json!({"filePath": "a.txt"}), "1-20"),
        (json!({"absolute_path": absolute}), "1-20"),
        (json!({"path": "a.txt", "offset": 3, "limit": 2}), "3-4"),
        (json!({"path": "a.txt", "offset": "3", "limit": "2"}), "3-4"),
        (json!({"path": "a.txt", "offset": 0, "limit": 2}), "1-2"),
        (json!({"path": "a.txt", "start_line": 5, "end_line": 6}), "5-6"),
        (json!({"path": "a.txt", "startLine": 5, "endLine": 6}), "5-6"),
        (json!({"path": "a.txt", "view_range": [7, 9]}), "7-9"),
        (json!({"path": "a.txt", "view_range": "[7, 9]"}), "7-9"),
        (json!({"path": "a.txt", "head": 4}), "1-4"),
        (json!({"path": "a.txt", "tail": 2}), "19-20"),
        (json!({"path": "a.txt", "start": -2}), "19-20"),
        (json!({"path": "a.txt", "explanation": "because", "limit": 1}), "1-1"),
    ] {
        let read = client.call("read_file", arguments.clone());
        assert_eq!(read.ok().get("lines"), lines, "{arguments}");
    }
    let plain = client.call("read_file", json!({"path": "a.txt", "line_numbers": "false", "limit": 1}));
    assert_eq!(plain.content().trim_end(), "line 1");
    for arguments in [
        json!({"file_path": "a.txt", "old_string": "line 1\n", "new_string": "LINE 1\n"}),
        json!({"path": "a.txt", "old_str": "line 2\n", "new_str": "LINE 2\n", "description": "why"}),
        json!({"path": "a.txt", "oldText": "line 3\n", "newText": "LINE 3\n"}),
        json!({"path": "a.txt", "old_text": "line 4", "new_text": "LINE 4", "replaceAll": "false"}),
        json!({"path": "a.txt", "old_text": "line 5", "new_text": "LINE 5", "allow_multiple": true}),
        json!({"path": "a.txt", "edits": "[{\"old_string\":\"line 6\",\"new_string\":\"LINE 6\"}]"}),
    ] {
        client.call("edit_file", arguments).ok();
    }
    assert_eq!(scratch.text("a.txt").matches("LINE").count(), 6);
    client.call("write_file", json!({"file_path": "b.txt", "contents": "b\n"})).ok();
    client.call("write_file", json!({"path": "c.txt", "file_text": "c\n"})).ok();
    assert_eq!((scratch.text("b.txt"), scratch.text("c.txt")), ("b\n".to_owned(), "c\n".to_owned()));
    for arguments in [
        json!({"query": "LINE [12]", "contentSearch": true}),
        json!({"pattern": "line [12]$", "content_search": true, "-i": true}),
        json!({"pattern": "LINE [12]", "output_mode": "content", "-A": 1}),
        json!({"pattern": "LINE [12]", "content_search": true, "include": "*.txt"}),
        json!({"pattern": "LINE [12]$", "content_search": true, "ignoreCase": "true", "head_limit": 10}),
    ] {
        let found = client.call("search_files", arguments.clone());
        assert_eq!(found.ok().number("matches"), 2, "{arguments}: {}", found.text);
    }
    let files = json!({"pattern": "LINE", "content_search": true, "output_mode": "files_with_matches"});
    client.call("search_files", files).ok().says("a.txt").never_says("LINE 1");
}

#[test]
fn what_is_not_understood_is_said() {
    let scratch = scratch();
    scratch.put("a.txt", "one\n");
    let mut client = scratch.mcp().start();
    let read = client.call("read_file", json!({"path": "a.txt", "colour": "red"}));
    assert_eq!(read.ok().get("ignored"), "colour");
    let refused = client
        .call("edit_file", json!({"path": "a.txt", "old_text": "one", "new_text": "1", "dryrun": true}));
    refused.refused("BAD_INPUT").says("dryrun").says("dry_run");
    client.follow(&refused).ok();
    assert_eq!(scratch.text("a.txt"), "one\n", "the next call is a dry run");
    let both = json!({"path": "a.txt", "file_path": "b.txt", "old_text": "one", "new_text": "1"});
    client.call("edit_file", both).refused("BAD_INPUT");
    let same = json!({"path": "a.txt", "file_path": "a.txt", "old_text": "one", "new_text": "1"});
    client.call("edit_file", same).ok();
}

#[test]
fn http_and_stdio_give_the_same_answers() {
    let scratch = scratch();
    http_settings(&scratch);
    scratch.put("f.txt", "one\ntwo\n");
    let served = scratch.serve();
    let session = open_session(&served.http);
    let over_http = |id, tool, arguments: Value| {
        let call = tool_call(id, tool, &arguments);
        Reply::read(&served.http.rpc(Some(TOKEN), &session_headers(&session), &call).json()["result"])
    };
    let mut client = scratch.mcp().start();
    let arguments = json!({"path": "f.txt"});
    assert_eq!(over_http(2, "read_file", arguments.clone()).text, client.call("read_file", arguments).text);
    let absent = json!({"path": "absent"});
    assert_eq!(over_http(3, "read_file", absent.clone()).text, client.call("read_file", absent).text);
    let edit = json!({"path": "f.txt", "old_text": "one", "new_text": "1"});
    over_http(4, "edit_file", edit).ok();
    assert_eq!(scratch.text("f.txt"), "1\ntwo\n");
    // Another agent's change is told before it is edited over.
    client.edit("f.txt", "one", "uno").refused_as(&["FILE_CHANGED_SINCE_READ", "TEXT_NOT_FOUND"]);
}

#[test]
fn every_tool_is_a_command_too() {
    let scratch = scratch();
    scratch.put("a.txt", "one\n");
    let read = scratch.run(&["read-file", "a.txt"]);
    assert!(read.ok().stdout.contains("1|one"), "{read:?}");
    let fields = scratch.run(&["read-file", "a.txt", "--json"]).ok().json();
    assert_eq!(fields["path"], "a.txt");
    let refused = scratch.run(&["read-file", "absent"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!((refused.stdout.clone() + &refused.stderr).contains("NOT_FOUND"), "{refused:?}");
    assert_eq!(scratch.run(&["read-file", "a.txt", "--nonsense"]).code, 2);
    for (tool, _) in BUILT {
        let help = scratch.cotenant(&[&tool.replace('_', "-"), "--help"]).output().unwrap();
        assert!(help.status.success(), "{tool}: {help:?}");
    }
}
