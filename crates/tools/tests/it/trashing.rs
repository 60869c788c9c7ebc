//! `list_trash` and `restore_file`: what went comes back with its mode, its link and its name, and never over something.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use cotenant_engine::{Submitted, Wish};
use cotenant_model::{
    Author, ClassHit, Digest, Durability, Entry, FileOp, Op, Plan, Profile, RelPath, WsPath,
};
use serde_json::{Value, json};

use crate::fixture::{Fixture, body, fact};

fn delete(f: &Fixture, path: &str) {
    f.ok("read_file", json!({"path": path}));
    f.ok("delete_file", json!({"path": path}));
}

/// The items as lines.
fn items(f: &Fixture, args: Value) -> Vec<String> {
    body(&f.ok("list_trash", args)).lines().map(str::to_owned).collect()
}

#[test]
fn an_item_is_a_line_and_comes_back_where_it_was() {
    let f = Fixture::new();
    f.put("src/old.rs", "fn main() {}\n");
    std::fs::set_permissions(f.path("src/old.rs"), std::fs::Permissions::from_mode(0o754)).unwrap();
    delete(&f, "src/old.rs");
    let listed = f.ok("list_trash", json!({}));
    assert_eq!(listed, "items=1\nt1 path=src/old.rs deleted=2026-11-30T15:44:03Z by=agent-a change=c1");
    let done = f.ok("restore_file", json!({"item": "t1"}));
    assert!(done.starts_with("path=src/old.rs restored=t1 bytes=13 change=c2 digest="), "{done}");
    assert_eq!(f.get("src/old.rs"), "fn main() {}\n");
    let mode = std::fs::metadata(f.path("src/old.rs")).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o754);
    // Its own work was seen: it may go on with it.
    f.ok("edit_file", json!({"path": "src/old.rs", "old_text": "main", "new_text": "other"}));
    f.ok("undo", json!({}));
    f.ok("undo", json!({"change": "c2"}));
    assert!(!f.has("src/old.rs"), "a restore is a change, too");
}

#[test]
fn it_never_goes_over_something_and_says_where_it_can_go() {
    let f = Fixture::new();
    f.put("a.tar.gz", "1\n");
    delete(&f, "a.tar.gz");
    f.put("a.tar.gz", "new\n");
    f.put("dir/x", "x\n");
    let refusal = f.no("ALREADY_EXISTS path=a.tar.gz item=t1", "restore_file", json!({"item": "t1"}));
    assert!(!f.follow(&refusal).is_error, "{refusal}");
    assert_eq!((f.get("a.tar.gz").as_str(), f.get("a.tar-restored.gz").as_str()), ("new\n", "1\n"));
    let again = f.no("ALREADY_EXISTS", "restore_file", json!({"item": "t1"}));
    f.follow(&again);
    assert_eq!(f.get("a.tar-restored-2.gz"), "1\n");
    f.no("ALREADY_EXISTS path=dir item=t1", "restore_file", json!({"item": "t1", "to": "dir"}));
    let directory = f.no("BAD_INPUT", "restore_file", json!({"item": "t1", "to": "none/"}));
    assert!(!f.follow(&directory).is_error && f.has("none/a.tar-restored.gz"), "{directory}");
    f.ok("restore_file", json!({"item": "t1", "to": "new/deep/b"}));
    assert_eq!(f.get("new/deep/b"), "1\n");
    for to in ["../b", ".git/b", ".env"] {
        let answer = f.call("restore_file", json!({"item": "t1", "to": to}));
        assert!(answer.text.starts_with("PATH_"), "{}", answer.text);
    }
}

#[test]
fn a_link_comes_back_as_a_link() {
    let f = Fixture::new();
    std::os::unix::fs::symlink("no/where", f.path("link")).unwrap();
    f.ok("delete_file", json!({"path": "link"}));
    assert!(!f.has("link"));
    f.ok("restore_file", json!({"item": "t1"}));
    assert_eq!(std::fs::read_link(f.path("link")).unwrap().as_os_str(), "no/where");
    f.ok("undo", json!({"change": "c2"}));
    assert!(!f.has("link"));
}

#[test]
fn what_was_overwritten_is_in_the_trash_and_what_was_edited_is_not() {
    let f = Fixture::new();
    f.put("a", "1\n");
    f.ok("read_file", json!({"path": "a"}));
    f.ok("edit_file", json!({"path": "a", "old_text": "1", "new_text": "2"}));
    assert_eq!(items(&f, json!({})), [""; 0]);
    f.ok("write_file", json!({"path": "a", "content": "3\n", "overwrite": true}));
    let [item] = &items(&f, json!({}))[..] else { panic!("one item") };
    assert!(item.starts_with("t1 path=a overwritten="), "{item}");
    f.ok("restore_file", json!({"item": "t1", "to": "b"}));
    assert_eq!((f.get("a").as_str(), f.get("b").as_str()), ("3\n", "2\n"));
}

/// C149, and names that other trashes stumble over.
#[test]
fn every_version_of_any_name_has_an_item_of_its_own() {
    let f = Fixture::new();
    let names = [
        "a/same.txt",
        "b/same.txt",
        "with space",
        "__init__.py",
        "x__2026__y",
        "line\nbreak",
        "\"quoted\"",
        "-rf",
    ];
    for name in names {
        f.put(name, format!("{name:?}\n"));
        delete(&f, name);
    }
    for version in 0..3 {
        f.ok("write_file", json!({"path": "a/same.txt", "content": format!("v{version}\n")}));
        f.ok("delete_file", json!({"path": "a/same.txt"}));
    }
    let listed = items(&f, json!({}));
    assert_eq!(listed.len(), names.len() + 3, "one line each: {listed:?}");
    assert_eq!(items(&f, json!({"path": "a"})).len(), 4);
    for (index, name) in names.iter().enumerate() {
        f.ok("restore_file", json!({"item": format!("t{}", index + 1)}));
        assert_eq!(f.get(name), format!("{name:?}\n"));
    }
    for version in 0..3 {
        let item = format!("t{}", names.len() + 1 + version);
        f.ok("restore_file", json!({"item": item, "to": format!("back/{version}")}));
        assert_eq!(f.get(&format!("back/{version}")), format!("v{version}\n"));
    }
}

#[test]
fn a_name_that_is_no_text_is_listed_and_restored() {
    let f = Fixture::new();
    let name = std::ffi::OsStr::from_bytes(b"odd\xff.bin");
    std::fs::write(f.path("").join(name), b"\0\x01").unwrap();
    // No argument of a tool can name it; a directory that is moved or a command's effects can.
    let at = WsPath::root(RelPath::from_bytes(name.as_bytes()).unwrap());
    let op = Op::Delete { old: Entry::file(Digest::of(b"\0\x01")) };
    let author = Author { agent: "agent-a".into(), session: f.session, task: None, turn: 1 };
    let wish = Wish {
        plan: Plan {
            author,
            tool: "run_command".into(),
            ops: vec![FileOp { at, op }],
            diff: String::new(),
            undoes: None,
            command: None,
        },
        classes: vec![ClassHit::ordinary()],
        profile: Profile::Trusting,
        others_work: false,
        asked: false,
        by_human: false,
        also: Vec::new(),
        read_only: Vec::new(),
        durability: Durability::Fast,
        idempotency: None,
    };
    assert!(matches!(f.toolbox.workspace().submit(wish), Ok(Submitted::Landed(_))));
    assert!(items(&f, json!({}))[0].starts_with("t1 path=\"odd\\\\xff.bin\""), "{:?}", items(&f, json!({})));
    f.ok("restore_file", json!({"item": "t1"}));
    assert_eq!(std::fs::read(f.path("").join(name)).unwrap(), b"\0\x01");
}

#[test]
fn a_hundred_deletions_in_one_second_keep_their_order_and_all_come_back() {
    let f = Fixture::new();
    for n in 0..100 {
        f.put(&format!("d/{n}"), format!("{n}\n"));
        delete(&f, &format!("d/{n}"));
    }
    let listed = items(&f, json!({"limit": 1000}));
    let paths: Vec<String> = listed.iter().map(|line| fact(line, "path").unwrap()).collect();
    assert_eq!(paths, (0..100).rev().map(|n| format!("d/{n}")).collect::<Vec<_>>());
    let page = f.ok("list_trash", json!({"limit": 3}));
    assert!(fact(&page, "more").is_some() && body(&page).lines().count() == 3, "{page}");
    assert_eq!(items(&f, json!({"since": "c98"})).len(), 2);
    for n in 0..100 {
        f.ok("restore_file", json!({"item": format!("t{}", n + 1)}));
        assert_eq!(f.get(&format!("d/{n}")), format!("{n}\n"));
    }
}

#[test]
fn what_is_no_item_is_said_to_be_none() {
    let f = Fixture::new();
    let none = f.no("NOT_FOUND item=t7", "restore_file", json!({"item": "t7"}));
    assert!(!f.follow(&none).is_error);
    f.no("BAD_INPUT", "restore_file", json!({"item": "7"}));
    f.no("BAD_INPUT", "list_trash", json!({"since": "yesterday"}));
    assert_eq!(f.ok("list_trash", json!({})), "items=0");
}

#[test]
fn what_has_expired_says_so_with_its_date() {
    let f = Fixture::new();
    f.put("a", "x\n");
    delete(&f, "a");
    // Something newer at that path: the newest change of each path is kept.
    f.ok("write_file", json!({"path": "a", "content": "y\n"}));
    f.ok("delete_file", json!({"path": "a"}));
    f.toolbox.workspace().settle();
    f.pass(200 * 24 * 3600 * 1000);
    f.toolbox.workspace().keep_house().unwrap();
    assert_eq!(items(&f, json!({})).len(), 0);
    let expired =
        f.no("NOT_RESTORABLE item=t1 path=a expired=20", "restore_file", json!({"item": "t1", "to": "b"}));
    assert!(!f.follow(&expired).is_error, "{expired}");
    // What was written of late is at hand in memory; other bytes take its place.
    for n in 0..5 {
        f.ok("write_file", json!({"path": format!("big{n}"), "content": format!("{n}").repeat(3_900_000)}));
    }
    let undo = f.no("NOT_RESTORABLE change=c1", "undo", json!({"change": "c1", "paths": ["a"]}));
    assert!(undo.contains("since 20"), "{undo}");
}
