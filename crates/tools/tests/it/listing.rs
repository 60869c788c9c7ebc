//! `tools/list`: what it may weigh, and what its schemas must not hold.

use cotenant_model::ToolSet;
use cotenant_tools::registry;
use serde_json::{Value, json};

fn weight(sets: &[ToolSet]) -> usize {
    json!({"tools": registry::listing(sets, false)}).to_string().len()
}

#[test]
fn the_listings_stay_within_their_budgets() {
    let default = [ToolSet::Core, ToolSet::Team, ToolSet::History, ToolSet::Organise];
    for (sets, most) in
        [(&[ToolSet::Core][..], 8 * 1024), (&default[..], 12 * 1024), (&ToolSet::ALL[..], 16 * 1024)]
    {
        let weight = weight(sets);
        assert!(weight <= most, "{sets:?}: {weight} bytes");
    }
}

/// Keywords that clients stumble over, or that say what is the default anyway.
#[test]
fn schemas_hold_nothing_that_clients_stumble_over() {
    fn walk(value: &Value, inside: &str) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let forbidden =
                        ["$schema", "format", "$ref", "default", "additionalProperties", "anyOf", "oneOf"];
                    assert!(
                        inside == "properties" || !forbidden.contains(&key.as_str()),
                        "{key} in {inside}"
                    );
                    walk(value, key);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| walk(value, inside)),
            Value::Null => panic!("null in {inside}"),
            _ => {}
        }
    }
    for tool in registry::listing(&ToolSet::ALL, false) {
        walk(&tool["inputSchema"], "inputSchema");
        assert!(tool.get("outputSchema").is_none());
        assert_eq!(tool["annotations"]["openWorldHint"], json!(false));
        assert!(
            tool["title"].is_string() && !tool["description"].as_str().unwrap().is_empty(),
            "{}",
            tool["name"]
        );
    }
    assert!(
        registry::listing(&ToolSet::ALL, true)
            .iter()
            .all(|tool| tool["outputSchema"]["type"] == json!("object"))
    );
}

#[test]
fn hints_that_equal_the_protocols_default_are_left_out() {
    for tool in registry::TOOLS {
        let hints = &tool.listing(false)["annotations"];
        assert_ne!(hints.get("readOnlyHint"), Some(&json!(false)));
        assert_ne!(hints.get("destructiveHint"), Some(&json!(true)));
        assert_eq!(hints.get("readOnlyHint") == Some(&json!(true)), !tool.mutates(), "{}", tool.name);
    }
}

/// The contract's names are there, in their sets, and every tool is in exactly one.
#[test]
fn every_tool_of_this_issue_is_registered_once() {
    let names = |set| registry::in_sets(&[set]).map(|tool| tool.name).collect::<Vec<_>>();
    assert_eq!(
        names(ToolSet::Core),
        [
            "read_file",
            "list_directory",
            "search_files",
            "edit_file",
            "write_file",
            "replace_text",
            "apply_patch",
            "move_path",
            "delete_file",
            "run_command",
            "command_output",
            "stop_command",
            "undo",
            "read_more",
            "retry",
            "whoami"
        ]
    );
    assert_eq!(names(ToolSet::History), ["history", "show_change", "rewind", "list_trash", "restore_file"]);
    assert_eq!(names(ToolSet::Organise), ["create_path", "rename_path"]);
    assert_eq!(names(ToolSet::Exec), ["exec_open", "exec_run", "exec_promote", "exec_close"]);
}
