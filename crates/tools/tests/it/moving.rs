//! `move_path` and `rename_path`: what goes, where it stands then, who hears of it, and everything that does not go.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

use cotenant_model::{Access, Answer, ApprovalRule, Digest, FolderSpec, GeneratedRule, Profile, Settings};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{Fixture, fact, next_calls, notices};

fn mv(from: &str, to: &str) -> Value {
    json!({"from": from, "to": to})
}

fn over(from: &str, to: &str) -> Value {
    json!({"from": from, "to": to, "overwrite": true})
}

fn trusting(settings: Settings) -> Fixture {
    Fixture::with(Settings { profile: Profile::Trusting, ..settings })
}

#[test]
fn a_file_nobody_saw_goes_with_the_directories_that_are_missing() {
    let f = Fixture::new();
    f.put("src/a.rs", "x\n");
    let moved = f.ok("move_path", mv("src/a.rs", "lib/deep/b.rs"));
    assert!(moved.starts_with("path=lib/deep/b.rs from=src/a.rs digest="), "{moved}");
    assert!(moved.contains(" directories=2 change=c1 notices=1\n"), "{moved}");
    assert_eq!(notices(&moved), ["! undo {\"change\":\"c1\"} moves it back"]);
    assert_eq!(f.get("lib/deep/b.rs"), "x\n");
    assert!(!f.has("src/a.rs") && f.has("src"));
    f.no(
        "EDIT_REQUIRES_PRIOR_READ",
        "edit_file",
        json!({"path": "lib/deep/b.rs", "old_text": "x", "new_text": "y"}),
    );
}

#[test]
fn what_was_read_counts_at_the_new_place() {
    let f = Fixture::new();
    let other = f.session("agent-b");
    f.put("d/sub/a", "one\ntwo\n");
    f.ok("read_file", json!({"path": "d/sub/a"}));
    f.ok_as(other, "read_file", json!({"path": "d/sub/a"}));
    f.ok("move_path", mv("d", "e"));
    f.ok("edit_file", json!({"path": "e/sub/a", "old_text": "one", "new_text": "1"}));
    let told = f.ok_as(other, "list_directory", json!({}));
    assert!(notices(&told)[0].contains("moved d: agent-a moved it to e (c1, "), "{told}");
    let stale = f.call_as(other, "edit_file", json!({"path": "e/sub/a", "old_text": "one", "new_text": "2"}));
    assert!(stale.text.starts_with("TEXT_NOT_FOUND path=e/sub/a cause=stale"), "{}", stale.text);
    let me = f.ok("whoami", json!({}));
    assert!(me.contains("e/sub/a") && !me.contains("d/sub/a"), "{me}");
}

#[test]
fn an_existing_directory_is_moved_into_and_the_answer_says_so() {
    let f = Fixture::new();
    f.put("a", "a\n");
    f.put("d/x", "x\n");
    f.put("e/y", "y\n");
    symlink("e", f.path("l")).unwrap();
    for (from, to, ends) in
        [("a", "d", "d/a"), ("d/a", "e/", "e/a"), ("d", "e", "e/d"), ("e/d/x", "l", "l/x")]
    {
        let moved = f.ok("move_path", mv(from, to));
        assert_eq!(fact(&moved, "path").as_deref(), Some(ends), "{moved}");
        assert!(notices(&moved)[0].contains("moved into it"), "{moved}");
        assert!(f.has(ends) && !f.has(from), "{moved}");
    }
    assert!(std::fs::symlink_metadata(f.path("l")).unwrap().is_symlink() && f.has("e/x"));
}

#[test]
fn a_final_slash_means_a_directory() {
    let f = Fixture::new();
    f.put("a", "a\n");
    f.put("d/x", "x\n");
    f.put("plain", "p\n");
    let made = f.ok("move_path", mv("a", "new/"));
    assert_eq!((fact(&made, "path").as_deref(), f.get("new/a").as_str()), (Some("new/a"), "a\n"), "{made}");
    f.ok("move_path", mv("d/", "e/"));
    assert_eq!(f.get("e/x"), "x\n", "a directory is renamed to a name that is free");
    f.no("NOT_A_DIRECTORY", "move_path", mv("new/a", "plain/"));
    f.no("NOT_A_DIRECTORY", "move_path", mv("plain/", "q"));
}

#[test]
fn nothing_is_overwritten_unasked_and_what_is_stays_kept() {
    let f = Fixture::new();
    f.put("a", "new\n");
    f.put("b", "old\n");
    let exists = f.no("ALREADY_EXISTS path=b lines=1 bytes=4 digest=", "move_path", mv("a", "b"));
    assert!(exists.contains("First lines: `old`"), "{exists}");
    f.no("EDIT_REQUIRES_PRIOR_READ path=b", "move_path", over("a", "b"));
    f.no(
        "FILE_CHANGED_SINCE_READ",
        "move_path",
        json!({"from": "a", "to": "b", "overwrite": true, "expected_digest": "0123456789abcdef"}),
    );
    assert_eq!((f.get("a").as_str(), f.get("b").as_str()), ("new\n", "old\n"));
    let done = f.retry(&exists);
    assert!(!done.is_error && fact(&done.text, "overwritten").is_some(), "{}", done.text);
    assert_eq!((f.get("b").as_str(), f.has("a")), ("new\n", false));
    assert_eq!(
        f.toolbox.workspace().image(Digest::of(b"old\n")).as_deref(),
        Some(&b"old\n"[..]),
        "it is kept"
    );
    f.put("c", "third\n");
    f.ok("read_file", json!({"path": "b"}));
    f.ok("move_path", over("c", "b"));
    assert_eq!(f.get("b"), "third\n");
}

#[test]
fn a_dry_run_shows_the_names_and_what_would_go() {
    let f = Fixture::new();
    f.put("a", "new\n");
    f.put("b", "old\n");
    f.put("d/x", "x\n");
    f.ok("read_file", json!({"path": "b"}));
    let dry = f.ok("move_path", json!({"from": "a", "to": "b", "overwrite": true, "dry_run": true}));
    assert!(
        dry.ends_with("rename from a\nrename to b\nover what stands there:\n--- b\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-old\n"),
        "{dry}"
    );
    let dir = f.ok("move_path", json!({"from": "d", "to": "x/y", "dry_run": true}));
    assert!(dir.ends_with("new directory x/\nrename from d/\nrename to x/y/\n"), "{dir}");
    assert!(f.has("a") && f.has("d") && !f.has("x"));
}

#[test]
fn a_link_goes_itself_and_never_what_it_points_to() {
    let f = Fixture::new();
    f.put("target", "t\n");
    f.put("a", "a\n");
    symlink("target", f.path("l")).unwrap();
    symlink("/etc/passwd", f.path("out")).unwrap();
    symlink("nowhere", f.path("dangling")).unwrap();
    for (from, to, target) in
        [("l", "l2", "target"), ("out", "out2", "/etc/passwd"), ("dangling", "d2", "nowhere")]
    {
        let moved = f.ok("move_path", mv(from, to));
        assert_eq!(fact(&moved, "kind").as_deref(), Some("link"), "{moved}");
        assert_eq!(std::fs::read_link(f.path(to)).unwrap().to_str(), Some(target));
        assert!(!f.has(from));
    }
    let taken = f.no("ALREADY_EXISTS", "move_path", mv("a", "l2"));
    assert!(!f.retry(&taken).is_error, "a link itself needs no receipt");
    assert_eq!((f.get("l2").as_str(), f.get("target").as_str()), ("a\n", "t\n"));
    let gone = f.ok("delete_file", json!({"path": "out2"}));
    assert!(gone.starts_with("path=out2 deleted=yes kind=link target=/etc/passwd change=c"), "{gone}");
    assert!(!f.has("out2") && std::path::Path::new("/etc/passwd").exists());
}

#[test]
fn one_file_by_two_names_is_told_apart_from_two_files() {
    let f = Fixture::new();
    f.put("a", "keep\n");
    std::fs::hard_link(f.path("a"), f.path("b")).unwrap();
    symlink("a", f.path("c")).unwrap();
    let linked = f.no("HARD_LINKED", "move_path", over("a", "b"));
    assert_eq!(next_calls(&linked)[0], ("delete_file".to_owned(), json!({"path": "a"})));
    f.no("NOTHING_TO_CHANGE", "move_path", mv("a", "a"));
    f.no("NOTHING_TO_CHANGE", "move_path", mv("a", "./a"));
    f.no("NOTHING_TO_CHANGE", "move_path", over("a", "c"));
    f.no("NOTHING_TO_CHANGE", "move_path", mv("a", "."));
    f.no("NOTHING_TO_CHANGE", "rename_path", json!({"path": "a", "new_name": "a"}));
    f.ok("move_path", mv("a", "d/a"));
    assert_eq!(
        (f.get("d/a").as_str(), f.get("b").as_str()),
        ("keep\n", "keep\n"),
        "a move keeps the other name"
    );
    assert_eq!(f.changes().len(), 1);
}

#[test]
fn what_cannot_be_moved_is_refused_by_its_own_code() {
    let f = trusting(Settings {
        generated: vec![GeneratedRule { paths: vec!["gen/**".to_owned()], from: None, command: None }],
        ..Settings::default()
    });
    for path in ["d/x", "gen/g", ".env", "with/.env", "with/gen.txt", "a", "tree/gen/deep", "to/keep"] {
        f.put(path, "x\n");
    }
    f.put(".gitattributes", "*.pb linguist-generated\n");
    f.put("protos/x.pb", "x\n");
    f.put(".git/HEAD", "x\n");
    for (from, to, code) in [
        ("none", "b", "NOT_FOUND"),
        (".", "b", "BAD_INPUT"),
        ("d", "d/sub/d", "BAD_INPUT"),
        ("d", "d/x/y", "NOT_A_DIRECTORY"),
        ("a", "../a", "PATH_OUTSIDE"),
        ("../a", "b", "PATH_OUTSIDE"),
        ("a", "/etc/a", "PATH_OUTSIDE"),
        (".env", "b", "PATH_PROTECTED"),
        ("a", ".env", "PATH_PROTECTED"),
        ("a", "d/.env.local", "PATH_PROTECTED"),
        ("with", "b", "PATH_PROTECTED"),
        (".git", "old", "PATH_PROTECTED"),
        ("d", ".git/hooks", "PATH_PROTECTED"),
        ("d", ".git", "PATH_PROTECTED"),
        ("d", ".vscode", "PATH_PROTECTED"),
        ("gen/g", "b", "PATH_READ_ONLY"),
        ("a", "gen/new", "PATH_READ_ONLY"),
        ("protos", "b", "PATH_READ_ONLY"),
        ("d", "to/d.pb", "PATH_READ_ONLY"),
        ("d", "a", "ALREADY_EXISTS"),
        ("a", "a/b", "NOT_A_DIRECTORY"),
    ] {
        let answer = f.call("move_path", mv(from, to));
        assert!(answer.text.starts_with(code), "{from} to {to}, {code} wanted: {}", answer.text);
        assert!(answer.text.contains("\nnext: "), "{}", answer.text);
    }
    f.no("ALREADY_EXISTS", "move_path", over("d", "a"));
    assert!(f.changes().is_empty() && f.has("with/.env") && f.has("d/x"));
}

#[test]
fn what_a_moved_directory_would_become_counts_too() {
    let f = trusting(Settings {
        generated: vec![GeneratedRule { paths: vec!["out/*/made".to_owned()], from: None, command: None }],
        protected_add: vec!["vault/*/key".to_owned()],
        ..Settings::default()
    });
    f.put("d/key", "k\n");
    f.put("d/made", "m\n");
    f.no("PATH_PROTECTED path=vault/d/key", "move_path", mv("d", "vault/d"));
    f.no("PATH_READ_ONLY path=out/d/made", "move_path", mv("d", "out/d"));
    f.ok("move_path", mv("d", "free/d"));
    assert_eq!(f.get("free/d/key"), "k\n");
}

#[test]
fn folders_are_no_places_to_move_between() {
    let outside = cotenant_testkit::fresh_directory(&std::env::temp_dir(), "moving");
    for name in ["docs", "notes"] {
        std::fs::create_dir_all(outside.join(name)).unwrap();
        std::fs::write(outside.join(name).join("f"), "x\n").unwrap();
    }
    let folder = |name: &str, access| FolderSpec { name: name.to_owned(), path: outside.join(name), access };
    let f = trusting(Settings {
        folders: vec![folder("docs", Access::Read), folder("notes", Access::ReadWrite)],
        ..Settings::default()
    });
    f.put("a", "x\n");
    f.no("CROSS_DEVICE", "move_path", mv("a", "notes:a"));
    f.no("CROSS_DEVICE", "move_path", mv("notes:f", "b"));
    f.no("PATH_READ_ONLY", "move_path", mv("docs:f", "docs:g"));
    f.no("PATH_READ_ONLY", "delete_file", json!({"path": "docs:f"}));
    f.no("BAD_INPUT", "move_path", mv("notes:.", "b"));
    let moved = f.ok("move_path", mv("notes:f", "notes:sub/g"));
    assert_eq!(fact(&moved, "path").as_deref(), Some("notes:sub/g"), "{moved}");
    assert!(outside.join("notes/sub/g").exists());
    drop(f);
    std::fs::remove_dir_all(outside).unwrap();
}

#[test]
fn a_name_is_changed_in_its_place() {
    let f = Fixture::new();
    f.put("d/Config.md", "v\n");
    f.put("d/other", "o\n");
    for (name, wanted) in [("config.md", "d/config.md"), ("Config.md", "d/Config.md"), ("a b\\c", "d/a b\\c")]
    {
        let mut from = std::fs::read_dir(f.path("d")).unwrap().map(|entry| entry.unwrap().file_name());
        let from = from.find(|name| name != "other").unwrap().into_string().unwrap();
        let renamed = f.ok("rename_path", json!({"path": format!("d/{from}"), "new_name": name}));
        assert_eq!(f.get(wanted), "v\n", "{renamed}");
        assert_eq!(std::fs::read_dir(f.path("d")).unwrap().count(), 2, "exactly one entry");
    }
    for name in ["", ".", "..", "x/y", "/x", "a\0b"] {
        let refusal = f.no(
            "BAD_INPUT tool=rename_path argument=new_name",
            "rename_path",
            json!({"path": "d/other", "new_name": name}),
        );
        assert!(refusal.contains("move_path"), "{refusal}");
    }
    f.no("ALREADY_EXISTS", "rename_path", json!({"path": "d/other", "new_name": "a b\\c"}));
    f.no("PATH_PROTECTED", "rename_path", json!({"path": "d/other", "new_name": ".env"}));
    f.no("BAD_INPUT", "rename_path", json!({"path": ".", "new_name": "x"}));
    f.ok("rename_path", json!({"path": "d", "new_name": "e"}));
    assert_eq!(f.get("e/other"), "o\n");
    f.no("PATH_OUTSIDE", "rename_path", json!({"path": "e/other", "new_name": "n".repeat(300)}));
}

#[test]
fn a_directory_that_changed_since_the_plan_stays() {
    let f = Fixture::careful();
    f.put("d/x", "x\n");
    f.call("move_path", mv("d", "e"));
    let question = f.toolbox.waiting().remove(0);
    assert!(question.plan.diff.contains("rename from d/\nrename to e/\n"), "{}", question.plan.diff);
    f.put("d/.env", "K=1\n");
    let approved = f.toolbox.approve(question.id, &question.digest.to_string());
    assert!(approved.is_err(), "what came in between is protected: {approved:?}");
    assert!(f.has("d/.env") && f.has("d/x") && !f.has("e"));
}

#[test]
fn who_asks_for_the_old_name_hears_the_new_one() {
    let f = Fixture::new();
    let other = f.session("agent-b");
    f.put("src/util/parse.rs", "x\n");
    f.put("src/util/other.rs", "y\n");
    f.ok("move_path", mv("src/util/parse.rs", "lib/scan.rs"));
    let gone = f.call_as(other, "read_file", json!({"path": "src/util/parse.rs"})).text;
    assert!(gone.starts_with("NOT_FOUND path=src/util/parse.rs"), "{gone}");
    assert!(gone.contains("It was moved to lib/scan.rs by agent-a, 0 s ago (c1)."), "{gone}");
    assert_eq!(next_calls(&gone)[0], ("read_file".to_owned(), json!({"path": "lib/scan.rs"})));
    f.ok("move_path", mv("lib", "src/core"));
    f.ok("rename_path", json!({"path": "src/util", "new_name": "tools"}));
    for (old, new) in [("src/util/parse.rs", "src/core/scan.rs"), ("src/util/other.rs", "src/tools/other.rs")]
    {
        for (tool, args) in [
            ("read_file", json!({"path": old})),
            ("edit_file", json!({"path": old, "old_text": "x", "new_text": "y"})),
            ("move_path", mv(old, "elsewhere")),
            ("delete_file", json!({"path": old})),
        ] {
            let gone = f.no("NOT_FOUND", tool, args);
            assert_eq!(fact(&gone, "moved_to").as_deref(), Some(new), "{tool}: {gone}");
            assert!(!f.follow(&gone).is_error);
        }
    }
    let directory = f.no("NOT_FOUND", "list_directory", json!({"path": "lib"}));
    assert!(directory.contains("It was moved to src/core by agent-a"), "{directory}");
    f.ok("delete_file", json!({"path": "src/tools/other.rs"}));
    let deleted = f.no("NOT_FOUND", "read_file", json!({"path": "src/util/other.rs"}));
    assert!(!deleted.contains("It was moved"), "what is gone is nowhere: {deleted}");
}

#[test]
fn a_human_is_told_both_ends() {
    let f = Fixture::careful();
    f.put("a", "x\n");
    let asked = f.call("move_path", mv("a", "b"));
    assert!(asked.text.starts_with("APPROVAL_PENDING id=a1 kind=move_path paths=a,b"), "{}", asked.text);
    let question = f.toolbox.waiting().remove(0);
    f.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
    assert!(!f.has("a") && f.has("b"));
}

#[test]
fn a_rule_on_what_lies_below_holds_for_the_directory_above() {
    let f = trusting(Settings {
        approval_rules: vec![ApprovalRule {
            tool: None,
            paths: vec!["src/core/**".to_owned()],
            answer: Answer::Deny,
        }],
        ..Settings::default()
    });
    f.put("src/core/a", "x\n");
    f.put("other/a", "x\n");
    f.no("APPROVAL_DENIED tool=move_path path=src/core", "move_path", mv("src", "lib"));
    f.no("APPROVAL_DENIED", "move_path", mv("other/a", "src/core/b"));
    f.no("APPROVAL_DENIED", "rename_path", json!({"path": "src", "new_name": "lib"}));
    assert!(f.has("src/core/a") && f.has("other/a"));
}

#[test]
fn what_agents_are_told_by_is_asked_about_at_either_end_and_below() {
    let f = Fixture::new();
    f.put("AGENTS.md", "x\n");
    f.put("a", "x\n");
    f.put("d/.github/workflows/ci.yml", "x\n");
    for (from, to) in [("AGENTS.md", "b"), ("a", "sub/AGENTS.md"), ("d", "e")] {
        let asked = f.call("move_path", mv(from, to));
        assert!(asked.text.starts_with("APPROVAL_PENDING"), "{from} to {to}: {}", asked.text);
    }
}

#[test]
fn other_hosts_names_for_both_ends_are_understood() {
    let f = Fixture::new();
    f.put("a", "x\n");
    f.ok("move_path", json!({"source": "a", "destination": "b"}));
    f.ok("move_path", json!({"source_path": "b", "destinationPath": "c"}));
    let outside = f.no("PATH_OUTSIDE", "move_path", json!({"source": "d/../c", "destination": "b"}));
    let (tool, args) = next_calls(&outside).remove(0);
    assert_eq!((tool.as_str(), args), ("move_path", json!({"from": "c", "destination": "b"})));
    assert!(!f.follow(&outside).is_error);
    assert_eq!(f.get("b"), "x\n");
    let there = f.no("PATH_OUTSIDE", "move_path", json!({"from": "b", "to": "x/../e"}));
    assert!(!f.follow(&there).is_error);
    assert_eq!(f.get("e"), "x\n");
}

#[test]
fn names_with_any_characters_go_and_come() {
    let f = Fixture::new();
    f.put("start", "x\n");
    let mut from = "start".to_owned();
    for name in ["a b", "a\nb", "-rf", "\u{202e}x", "ü", "__x__", "'\"$(x)"] {
        f.ok("move_path", mv(&from, name));
        assert_eq!(f.get(name), "x\n", "{name:?}");
        from = name.to_owned();
    }
    let dry = f.ok("move_path", json!({"from": from, "to": "\u{202e}evil\n+x", "dry_run": true}));
    assert!(!dry.contains('\u{202e}') && !dry.contains("\n+x"), "{dry}");
}

/// What a move does to a tree, the naive way: `None` where it must not happen.
fn model(tree: &BTreeMap<String, String>, from: &str, to: &str) -> Option<BTreeMap<String, String>> {
    let below = |path: &str, at: &str| path == at || path.starts_with(&format!("{at}/"));
    let is_dir = |at: &str| tree.keys().any(|path| path.starts_with(&format!("{at}/")));
    let stands = |at: &str| tree.keys().any(|path| below(path, at));
    let name = from.rsplit('/').next()?;
    let to = if is_dir(to) && from != to { format!("{to}/{name}") } else { to.to_owned() };
    let parents_are_free = (0..to.len())
        .all(|at| !to.is_char_boundary(at) || to.as_bytes()[at] != b'/' || !tree.contains_key(&to[..at]));
    if !stands(from) || stands(&to) || below(&to, from) || !parents_are_free {
        return None;
    }
    let rename = |path: &String| match below(path, from) {
        true => format!("{to}{}", &path[from.len()..]),
        false => path.clone(),
    };
    Some(tree.iter().map(|(path, text)| (rename(path), text.clone())).collect())
}

fn files(f: &Fixture, dir: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(f.path(dir)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let path = if dir.is_empty() { name } else { format!("{dir}/{name}") };
        match f.path(&path).is_dir() {
            true => files(f, &path, found),
            false => drop(found.insert(path.clone(), f.get(&path))),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random moves over a small tree against the naive model, and the whole way back by undo.
    #[test]
    fn moves_do_what_renaming_paths_does(
        moves in proptest::collection::vec(("[ab](/[ab]){0,2}", "[ab](/[abc]){0,2}"), 1..8),
    ) {
        let f = Fixture::new();
        let mut tree = BTreeMap::new();
        for path in ["a/a/a", "a/b", "b/a"] {
            f.put(path, format!("{path}\n"));
            tree.insert(path.to_owned(), format!("{path}\n"));
        }
        for (from, to) in &moves {
            let answer = f.call("move_path", mv(from, to));
            // An empty directory is one for the tool, but has no file to show it in the model.
            let empty = |at: &str| f.path(at).is_dir() && { let mut inside = BTreeMap::new(); files(&f, at, &mut inside); inside.is_empty() };
            let wanted = model(&tree, from, to);
            let mut now = BTreeMap::new();
            files(&f, "", &mut now);
            if answer.is_error {
                prop_assert_eq!(&now, &tree, "{}", answer.text);
                let doubtful = empty(from) || empty(to) || answer.text.contains("is a directory");
                prop_assert!(wanted.is_none() || doubtful, "{} to {}: {}", from, to, answer.text);
            } else {
                let same = wanted.as_ref().is_some_and(|wanted| *wanted == now);
                let count = now.len() == tree.len() && now.values().eq(tree.values()) || now.values().collect::<std::collections::BTreeSet<_>>() == tree.values().collect();
                prop_assert!(same || (count && fact(&answer.text, "path").as_deref() != Some(to)) || wanted.is_none() && count, "{} to {}: {}\n{:?}\n{:?}", from, to, answer.text, wanted, now);
                tree = now;
            }
        }
    }
}
