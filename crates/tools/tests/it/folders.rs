//! Further folders beside the root: every tool names what lies in them `NAME:path`, and nothing mixes.

use std::path::PathBuf;

use cotenant_model::{Access, AgentRule, FolderSpec, Profile, Settings};
use cotenant_tools::host::Host;
use serde_json::json;

use crate::fixture::{Fixture, body, fact, notices};

struct Two {
    f: Fixture,
    docs: PathBuf,
}

impl Drop for Two {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.docs);
    }
}

/// A workspace with the folder `docs` for reading and writing.
fn two(name: &str, rule: Option<AgentRule>) -> Two {
    let docs = cotenant_testkit::fresh_directory(&std::env::temp_dir(), name);
    let folder = FolderSpec { name: "docs".to_owned(), path: docs.clone(), access: Access::ReadWrite };
    let f = Fixture::with(Settings {
        folders: vec![folder],
        profile: Profile::Trusting,
        agents: rule.map(|rule| ("agent-a".to_owned(), rule)).into_iter().collect(),
        ..Settings::default()
    });
    Two { f, docs }
}

#[test]
fn a_file_of_a_folder_is_written_edited_listed_found_and_undone() {
    let Two { f, docs } = &two("whole", None);
    let made = f.ok("write_file", json!({"path": "docs:a/b.md", "content": "# one\n"}));
    assert!(made.starts_with("path=docs:a/b.md created=yes"), "{made}");
    assert_eq!(std::fs::read_to_string(docs.join("a/b.md")).unwrap(), "# one\n");
    assert!(!f.has("a"), "nothing of it is in the root");
    let edited = f.ok("edit_file", json!({"path": "docs:a/b.md", "old_text": "one", "new_text": "two"}));
    assert_eq!(fact(&edited, "path").as_deref(), Some("docs:a/b.md"));
    assert_eq!(body(&f.ok("list_directory", json!({"path": "docs:"}))), "a/");
    assert_eq!(body(&f.ok("list_directory", json!({"path": "docs:a"}))), "b.md");
    let hits = f.ok("search_files", json!({"pattern": "two", "content_search": true, "path": "docs:."}));
    assert!(body(&hits).starts_with("docs:a/b.md\n1:# two"), "{hits}");
    let none = f.ok("search_files", json!({"pattern": "two", "content_search": true}));
    assert_eq!(
        fact(&none, "matches").as_deref(),
        Some("0"),
        "the root is searched, not its neighbours: {none}"
    );
    let history = f.ok("history", json!({"path": "docs:a"}));
    assert_eq!(fact(&history, "changes").as_deref(), Some("2"), "{history}");
    assert!(body(&history).contains("files=docs:a/b.md"), "{history}");
    assert_eq!(fact(&f.ok("history", json!({"path": "a"})), "changes").as_deref(), Some("0"));
    assert!(
        body(&f.ok("show_change", json!({"change": "c2"}))).starts_with("--- docs:a/b.md\n+++ docs:a/b.md")
    );
    f.ok("undo", json!({"change": "c2", "paths": ["docs:a/b.md"]}));
    f.ok("undo", json!({"change": "c1"}));
    assert!(!docs.join("a").exists());
}

#[test]
fn the_same_path_in_two_folders_is_two_files() {
    let Two { f, docs } = &two("same", None);
    f.put("x", "root\n");
    std::fs::write(docs.join("x"), "docs\n").unwrap();
    f.ok("read_file", json!({"path": "x"}));
    f.no(
        "EDIT_REQUIRES_PRIOR_READ path=docs:x",
        "edit_file",
        json!({"path": "docs:x", "old_text": "docs", "new_text": "d"}),
    );
    f.ok("edit_file", json!({"path": "docs:x", "old_text": "docs", "new_text": "d"}));
    assert_eq!(
        (f.get("x").as_str(), std::fs::read_to_string(docs.join("x")).unwrap().as_str()),
        ("root\n", "d\n")
    );
    let other = f.session("agent-b");
    f.ok_as(other, "read_file", json!({"path": "docs:x"}));
    f.ok("edit_file", json!({"path": "docs:x", "old_text": "d", "new_text": "e"}));
    let told = f.ok_as(other, "list_directory", json!({}));
    assert!(notices(&told)[0].starts_with("! reload docs:x: agent-a changed line 1"), "{told}");
}

#[test]
fn what_is_protected_in_the_root_is_protected_everywhere() {
    let Two { f, docs } = &two("protected", None);
    std::fs::write(docs.join(".env"), "K=1\n").unwrap();
    f.no("PATH_PROTECTED path=docs:.env", "read_file", json!({"path": "docs:.env"}));
    f.no("PATH_PROTECTED", "write_file", json!({"path": "docs:.git/config", "content": "x"}));
    f.no("PATH_PROTECTED", "read_file", json!({"path": docs.join(".env").display().to_string()}));
    f.no("PATH_OUTSIDE", "read_file", json!({"path": "docs:../x"}));
    std::os::unix::fs::symlink("/etc/passwd", docs.join("out")).unwrap();
    f.no("PATH_OUTSIDE", "read_file", json!({"path": "docs:out"}));
    f.no("APPROVAL_PENDING", "write_file", json!({"path": "docs:AGENTS.md", "content": "x"}));
    let listed = f.ok("list_directory", json!({"path": "docs:."}));
    assert!(!body(&listed).contains(".env"), "{listed}");
}

#[test]
fn an_agent_may_be_left_with_one_folder() {
    let rule =
        AgentRule { folders: Some([("docs".to_owned(), Access::ReadWrite)].into()), ..AgentRule::default() };
    let Two { f, docs } = &two("narrow", Some(rule));
    f.put("secret", "x\n");
    std::fs::write(docs.join("open"), "x\n").unwrap();
    f.ok("read_file", json!({"path": "docs:open"}));
    f.ok("edit_file", json!({"path": "docs:open", "old_text": "x", "new_text": "y"}));
    for (tool, args) in [
        ("read_file", json!({"path": "secret"})),
        ("list_directory", json!({})),
        ("search_files", json!({"pattern": "x", "content_search": true})),
        ("write_file", json!({"path": "new", "content": "x"})),
        ("create_path", json!({"path": "new/"})),
    ] {
        let answer = f.call(tool, args);
        assert!(answer.text.starts_with("PATH_OUTSIDE"), "{tool}: {}", answer.text);
    }
    assert!(!f.has("new"));
    // Another agent has all of it, and its change of the root is not shown to the narrowed one.
    let other = f.session("agent-b");
    f.ok_as(other, "write_file", json!({"path": "theirs", "content": "hidden\n"}));
    let shown = f.ok("show_change", json!({"change": "c2"}));
    assert!(shown.contains("not shown") && !shown.contains("hidden"), "{shown}");
    // What a client announces narrows further, never wider.
    f.toolbox.introduce(
        f.session,
        "client",
        Some(&["file:///".to_owned(), f.path("").display().to_string()]),
    );
    assert!(f.call("read_file", json!({"path": "secret"})).text.starts_with("PATH_OUTSIDE"));
}

#[test]
fn a_text_in_another_folder_is_not_offered_by_name() {
    let Two { f, docs } = &two("other", None);
    f.put("a", "nothing of the kind\n");
    std::fs::write(docs.join("b"), "fn a_very_special_name() {}\n").unwrap();
    f.ok("read_file", json!({"path": "a"}));
    let miss = f.no(
        "TEXT_NOT_FOUND",
        "edit_file",
        json!({"path": "a", "old_text": "fn a_very_special_name() {}", "new_text": "x"}),
    );
    assert!(!miss.contains("docs:b"), "{miss}");
}
