//! A call's arguments as a hook reads them, and back: every path in one spelling, Claude Code's names beside ours.

use cotenant_engine::Workspace;
use cotenant_tools::args::accepted;
use cotenant_tools::tool::{Kind, Tool};
use serde_json::{Map, Value};

use super::dialect::Input;
use super::matcher;

/// Our arguments, and what Claude Code's file tools call them.
const NAMES: &[(&str, &str)] =
    &[("path", "file_path"), ("old_text", "old_string"), ("new_text", "new_string")];

/// Claude Code's tools that take those.
const FILE_TOOLS: &[&str] = &["Read", "Edit", "Write"];

/// Not a matter of hooks, and kept whatever they say: with it a call happens once.
const KEY: &str = "idempotency_key";

/// Kept where a hook does not speak of it: nobody leaves it out meaning that the change be made.
const DRY_RUN: &str = "dry_run";

/// The arguments as hooks read them. A path is as answers show it, however it was written; `file_path` is absolute.
pub(super) fn shown(ws: &Workspace, tool: &Tool, args: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = args.clone();
    shown.remove(KEY);
    let by_file = matcher::also(tool.name).iter().any(|name| FILE_TOOLS.contains(name));
    for param in accepted(tool).filter(|param| param.kind == Kind::Path) {
        // One that leads nowhere is refused later, in its own words.
        let text = shown.get(param.name).and_then(Value::as_str);
        let Some(path) = text.and_then(|text| ws.tree().parse(text).ok()) else { continue };
        if by_file && param.name == "path" {
            let host = ws.tree().host_path(path.at.folder).join(path.at.path.to_string());
            shown.insert("file_path".to_owned(), host.display().to_string().into());
        }
        shown.insert(param.name.to_owned(), ws.tree().folders().show(&path.at).into());
    }
    for (ours, theirs) in NAMES.iter().filter(|_| by_file) {
        if let Some(value) = shown.get(*ours).cloned() {
            shown.entry(*theirs).or_insert(value);
        }
    }
    shown
}

/// The arguments that a hook wants, where they are others than those it was shown. Of two names for one argument the
/// one counts that was changed.
pub(super) fn wanted(
    args: &Map<String, Value>,
    shown: &Map<String, Value>,
    input: Input,
) -> Option<Map<String, Value>> {
    let mut wanted = match input {
        Input::Whole(whole) => whole,
        Input::Some(some) => shown.clone().into_iter().chain(some).collect(),
    };
    let same = |wanted: &Map<String, Value>, name: &str| wanted.get(name) == shown.get(name);
    for (ours, theirs) in NAMES {
        let other = wanted.contains_key(*theirs) && !same(&wanted, theirs);
        if other && same(&wanted, ours) {
            wanted.remove(*ours);
        } else if !other && wanted.contains_key(*ours) {
            wanted.remove(*theirs);
        }
    }
    let ours = |name: &str| NAMES.iter().any(|(_, theirs)| *theirs == name);
    let kept = |name: &String| !ours(name) || args.contains_key(name);
    let before: Map<String, Value> = shown
        .iter()
        .filter(|(name, _)| kept(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(dry_run) = before.get(DRY_RUN) {
        wanted.entry(DRY_RUN).or_insert(dry_run.clone());
    }
    if wanted == before {
        return None;
    }
    wanted.remove(KEY);
    wanted.extend(args.get(KEY).map(|key| (KEY.to_owned(), key.clone())));
    Some(wanted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(json: Value) -> Map<String, Value> {
        json.as_object().unwrap().clone()
    }

    /// What becomes of a write of `a.txt` when a hook says this.
    fn after(input: Input) -> Option<Value> {
        let args = map(json!({"path": "./a.txt", "content": "x", "idempotency_key": "k"}));
        let shown = map(json!({"path": "a.txt", "file_path": "/w/a.txt", "content": "x"}));
        wanted(&args, &shown, input).map(Value::from)
    }

    #[test]
    fn the_name_that_was_changed_counts() {
        for (whole, wanted) in [
            (
                json!({"path": "b.txt", "file_path": "/w/a.txt", "content": "x"}),
                json!({"path": "b.txt", "content": "x"}),
            ),
            (
                json!({"path": "a.txt", "file_path": "/w/b.txt", "content": "x"}),
                json!({"file_path": "/w/b.txt", "content": "x"}),
            ),
            (
                json!({"file_path": "/w/b.txt", "content": "y"}),
                json!({"file_path": "/w/b.txt", "content": "y"}),
            ),
            (
                json!({"file_path": "/w/a.txt", "content": "y"}),
                json!({"file_path": "/w/a.txt", "content": "y"}),
            ),
            (
                json!({"path": "a.txt", "file_path": "/w/a.txt", "content": "y"}),
                json!({"path": "a.txt", "content": "y"}),
            ),
            // Both, differently: the tool itself refuses that.
            (
                json!({"path": "b.txt", "file_path": "/w/c.txt", "content": "x"}),
                json!({"path": "b.txt", "file_path": "/w/c.txt", "content": "x"}),
            ),
            (json!({}), json!({})),
        ] {
            let mut wanted = wanted;
            wanted["idempotency_key"] = "k".into();
            assert_eq!(after(Input::Whole(map(whole.clone()))), Some(wanted), "{whole}");
        }
    }

    #[test]
    fn the_same_again_is_no_change() {
        assert_eq!(
            after(Input::Whole(map(json!({"path": "a.txt", "file_path": "/w/a.txt", "content": "x"})))),
            None
        );
        assert_eq!(after(Input::Whole(map(json!({"path": "a.txt", "content": "x"})))), None);
        assert_eq!(after(Input::Some(Map::new())), None);
        assert_eq!(after(Input::Some(map(json!({"content": "x"})))), None);
    }

    #[test]
    fn what_is_named_alone_leaves_the_rest() {
        let changed = after(Input::Some(map(json!({"content": "y", "idempotency_key": "other"})))).unwrap();
        assert_eq!(changed, json!({"path": "a.txt", "content": "y", "idempotency_key": "k"}));
    }

    #[test]
    fn a_dry_run_stays_one_unless_it_is_said() {
        let args = map(json!({"path": "a", "dry_run": true}));
        let run = |input: Value| wanted(&args, &args, Input::Whole(map(input))).map(Value::from);
        assert_eq!(run(json!({"path": "b"})), Some(json!({"path": "b", "dry_run": true})));
        assert_eq!(run(json!({"path": "a"})), None);
        assert_eq!(run(json!({"path": "a", "dry_run": false})), Some(json!({"path": "a", "dry_run": false})));
    }
}
