//! What a command did that wrote the workspace itself is one change, and `undo` takes it back byte for byte.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use cotenant_engine::effects::{self, Bounds, Loss, Recorded};
use cotenant_model::{Author, WsPath};
use cotenant_testkit::{Dice, snapshot};
use serde_json::json;

use crate::fixture::{Fixture, body, fact, notices};

/// Plays a command between the two looks.
fn run(f: &Fixture, command: impl FnOnce(&Path)) -> Recorded {
    run_within(f, Bounds::default(), command)
}

fn run_within(f: &Fixture, bounds: Bounds, command: impl FnOnce(&Path)) -> Recorded {
    let ws = f.toolbox.workspace();
    let before = effects::before(ws, &[WsPath::default()], None, bounds).unwrap();
    command(&f.path(""));
    let author = Author { agent: "agent-a".into(), session: f.session, task: None, turn: 1 };
    effects::after(ws, &before, &author, "run_command").unwrap()
}

/// What it did, as lines `op path`, of a rename both names.
fn told(f: &Fixture, recorded: &Recorded) -> Vec<String> {
    let show = |at| f.toolbox.workspace().tree().folders().show(at);
    let files = recorded.files.iter().map(|file| match &file.from {
        Some(from) => format!("{} {} <- {}", file.op.name(), show(&file.at), show(from)),
        None => format!("{} {}", file.op.name(), show(&file.at)),
    });
    files.collect()
}

fn losses(f: &Fixture, recorded: &Recorded) -> Vec<(String, Loss)> {
    let show = |at| f.toolbox.workspace().tree().folders().show(at);
    recorded.not_restorable.iter().map(|(at, loss)| (show(at), *loss)).collect()
}

fn project() -> Fixture {
    let f = Fixture::new();
    f.put("src/a.rs", "fn a() {}\n");
    f.put("src/b.rs", "fn b() {}\n");
    f.put("src/deep/c.rs", "fn c() {}\n");
    f.put("big.bin", vec![7; 40_000]);
    f.put("tool.sh", "#!/bin/sh\n");
    f.put(".gitignore", "target/\n");
    f.put("target/out", "ignored");
    fs::set_permissions(f.path("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("src/a.rs", f.path("link")).unwrap();
    fs::create_dir(f.path("empty")).unwrap();
    f
}

/// Undoes the change and expects the tree to be as it was.
#[track_caller]
fn undone(f: &Fixture, recorded: &Recorded, before: &Snapshot) {
    let change = recorded.change.expect("a change").to_string();
    f.ok("undo", json!({"change": change}));
    f.toolbox.workspace().settle();
    assert_eq!(&snapshot(&f.path("")), before, "{:?}", told(f, recorded));
}

type Snapshot = std::collections::BTreeMap<Vec<u8>, (u32, u32, Vec<u8>)>;

/// A command and the lines that history has of it.
type Case = (&'static str, fn(&Path), &'static [&'static str]);

const CASES: &[Case] = &[
    ("an edit", |w| fs::write(w.join("src/a.rs"), "fn z() {}\n").unwrap(), &["edit src/a.rs"]),
    ("a file that comes", |w| fs::write(w.join("new"), "n").unwrap(), &["create new"]),
    ("one that goes", |w| fs::remove_file(w.join("big.bin")).unwrap(), &["delete big.bin"]),
    ("another name", |w| fs::rename(w.join("src/a.rs"), w.join("z.rs")).unwrap(), &["move z.rs <- src/a.rs"]),
    (
        "over another",
        |w| fs::rename(w.join("src/a.rs"), w.join("src/b.rs")).unwrap(),
        &["move src/b.rs <- src/a.rs"],
    ),
    (
        "another name and other rights",
        |w| {
            fs::rename(w.join("src/a.rs"), w.join("z.rs")).unwrap();
            fs::set_permissions(w.join("z.rs"), fs::Permissions::from_mode(0o700)).unwrap();
        },
        &["delete src/a.rs", "create z.rs <- src/a.rs"],
    ),
    (
        "a mode",
        |w| fs::set_permissions(w.join("tool.sh"), fs::Permissions::from_mode(0o600)).unwrap(),
        &["edit tool.sh"],
    ),
    (
        "a link turned",
        |w| {
            fs::remove_file(w.join("link")).unwrap();
            symlink("src/b.rs", w.join("link")).unwrap();
        },
        &["edit link"],
    ),
    (
        "a link in place of a file and a file in place of a link",
        |w| {
            fs::remove_file(w.join("link")).unwrap();
            fs::write(w.join("link"), "a file now").unwrap();
            fs::remove_file(w.join("tool.sh")).unwrap();
            symlink("anywhere", w.join("tool.sh")).unwrap();
        },
        &["edit link", "edit tool.sh"],
    ),
    (
        "directories",
        |w| {
            fs::create_dir_all(w.join("one/two")).unwrap();
            fs::write(w.join("one/two/three"), "3").unwrap();
            fs::remove_dir(w.join("empty")).unwrap();
        },
        &["rmdir empty", "mkdir one", "mkdir one/two", "create one/two/three"],
    ),
    (
        "a directory removed with all in it",
        |w| fs::remove_dir_all(w.join("src")).unwrap(),
        &["rmdir src", "delete src/a.rs", "delete src/b.rs", "rmdir src/deep", "delete src/deep/c.rs"],
    ),
    (
        "a directory under another name",
        |w| fs::rename(w.join("src"), w.join("lib")).unwrap(),
        &[
            "mkdir lib",
            "move lib/a.rs <- src/a.rs",
            "move lib/b.rs <- src/b.rs",
            "mkdir lib/deep",
            "move lib/deep/c.rs <- src/deep/c.rs",
            "rmdir src",
            "rmdir src/deep",
        ],
    ),
    (
        "two that change names",
        |w| {
            fs::rename(w.join("src/a.rs"), w.join("t")).unwrap();
            fs::rename(w.join("src/b.rs"), w.join("src/a.rs")).unwrap();
            fs::rename(w.join("t"), w.join("src/b.rs")).unwrap();
        },
        &["edit src/a.rs", "edit src/b.rs"],
    ),
    (
        "a chain of names",
        |w| {
            fs::rename(w.join("src/b.rs"), w.join("c")).unwrap();
            fs::rename(w.join("src/a.rs"), w.join("src/b.rs")).unwrap();
        },
        &["create c", "move src/b.rs <- src/a.rs"],
    ),
    (
        "the same length at the same time",
        |w| {
            let at = w.join("src/a.rs");
            let then = fs::metadata(&at).unwrap().modified().unwrap();
            fs::write(&at, "fn A() {}\n").unwrap();
            fs::File::options().write(true).open(&at).unwrap().set_modified(then).unwrap();
        },
        &["edit src/a.rs"],
    ),
    (
        "ignore rules, and what they ignore",
        |w| {
            fs::write(w.join(".gitignore"), "src/\n").unwrap();
            fs::write(w.join("target/more"), "ignored").unwrap();
            fs::write(w.join("src/a.rs"), "still seen").unwrap();
            fs::remove_file(w.join("target/more")).unwrap();
        },
        &["edit .gitignore", "edit src/a.rs"],
    ),
    (
        "a hard link, and one name of two",
        |w| fs::hard_link(w.join("src/a.rs"), w.join("again")).unwrap(),
        &["create again"],
    ),
];

#[test]
fn whatever_a_command_did_is_one_change_that_undo_takes_back() {
    for (what, command, expected) in CASES {
        let f = project();
        let before = snapshot(&f.path(""));
        let recorded = run(&f, command);
        assert_eq!(told(&f, &recorded), *expected, "{what}");
        assert_eq!(losses(&f, &recorded), [], "{what}");
        assert_eq!(recorded.overlapped, [], "{what}");
        undone(&f, &recorded, &before);
    }
}

#[test]
fn an_undo_of_a_run_is_undone_as_well() {
    for (what, command, _) in CASES {
        let f = project();
        let recorded = run(&f, command);
        let after = snapshot(&f.path(""));
        f.ok("undo", json!({"change": recorded.change.unwrap().to_string()}));
        let undo = f.changes()[0].clone();
        f.ok("undo", json!({"change": undo}));
        f.toolbox.workspace().settle();
        assert_eq!(snapshot(&f.path("")), after, "{what}");
    }
}

#[test]
fn nothing_done_is_no_change() {
    let f = project();
    let recorded = run(&f, |w| {
        let bytes = fs::read(w.join("src/a.rs")).unwrap();
        // Written anew with the same bytes: a touch.
        fs::write(w.join("src/a.rs"), bytes).unwrap();
        fs::write(w.join("passing"), "by").unwrap();
        fs::remove_file(w.join("passing")).unwrap();
        fs::write(w.join("target/out"), "ignored").unwrap();
    });
    assert_eq!(recorded, Recorded::default());
    assert_eq!(f.changes(), Vec::<String>::new());
}

#[test]
fn history_says_who_and_by_what_and_shows_both_sides() {
    let f = project();
    let recorded = run(&f, |w| {
        fs::write(w.join("src/a.rs"), "fn z() {}\n").unwrap();
        fs::rename(w.join("src/b.rs"), w.join("z.rs")).unwrap();
        fs::remove_file(w.join("tool.sh")).unwrap();
    });
    let change = recorded.change.unwrap().to_string();
    let history = f.ok("history", json!({"agent": "me"}));
    let line = body(&history).lines().next().unwrap().to_owned();
    assert!(line.starts_with(&change), "{history}");
    assert_eq!(fact(&line, "kind").as_deref(), Some("observed"));
    assert_eq!(fact(&line, "agent").as_deref(), Some("agent-a"));
    assert_eq!(fact(&line, "tool").as_deref(), Some("run_command"));
    let shown = f.ok("show_change", json!({"change": change}));
    for part in ["-fn a() {}\n+fn z() {}", "rename from src/b.rs\nrename to z.rs", "deleted file mode 100755"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let trash = f.ok("list_trash", json!({}));
    assert!(trash.contains("path=tool.sh") && trash.contains("by=agent-a"), "{trash}");
    let item = body(&trash).split(' ').next().unwrap().to_owned();
    f.ok("restore_file", json!({"item": item}));
    assert_eq!(f.get("tool.sh"), "#!/bin/sh\n");
}

#[test]
fn the_last_change_of_the_session_may_be_a_run_and_a_rewind_goes_behind_it() {
    let f = project();
    let before = snapshot(&f.path(""));
    f.ok("write_file", json!({"path": "first", "content": "1\n"}));
    run(&f, |w| fs::write(w.join("src/a.rs"), "run\n").unwrap());
    f.ok("undo", json!({}));
    assert_eq!(f.get("src/a.rs"), "fn a() {}\n");
    run(&f, |w| fs::remove_dir_all(w.join("src")).unwrap());
    f.ok("rewind", json!({"turn": 1}));
    f.toolbox.workspace().settle();
    assert_eq!(snapshot(&f.path("")), before);
}

#[test]
fn later_lines_of_others_stay_when_a_run_is_undone() {
    let f = Fixture::new();
    let text: String = (1..=20).map(|line| format!("line {line}\n")).collect();
    f.put("f", &text);
    let recorded = run(&f, |w| fs::write(w.join("f"), text.replace("line 3\n", "line three\n")).unwrap());
    f.ok("read_file", json!({"path": "f"}));
    f.ok("edit_file", json!({"path": "f", "old_text": "line 17", "new_text": "line seventeen"}));
    f.ok("undo", json!({"change": recorded.change.unwrap().to_string()}));
    assert_eq!(f.get("f"), text.replace("line 17\n", "line seventeen\n"));
}

#[test]
fn others_hear_of_it_and_own_receipts_follow() {
    let f = project();
    let other = f.session("agent-b");
    for session in [f.session, other] {
        f.ok_as(session, "read_file", json!({"path": "src/a.rs"}));
        f.ok_as(session, "read_file", json!({"path": "src/b.rs"}));
    }
    run(&f, |w| {
        fs::write(w.join("src/a.rs"), "fn a() { 1 }\n").unwrap();
        fs::rename(w.join("src/b.rs"), w.join("z.rs")).unwrap();
    });
    let heard = notices(&f.ok_as(other, "whoami", json!({}))).join("\n");
    assert!(heard.contains("src/a.rs") && heard.contains("agent-a"), "{heard}");
    assert!(heard.contains("z.rs"), "{heard}");
    assert_eq!(notices(&f.ok("whoami", json!({}))), Vec::<String>::new());
    // The author of a run is not called stale.
    f.ok("write_file", json!({"path": "z.rs", "content": "fn b() { 2 }\n", "overwrite": true}));
}

#[test]
fn what_is_not_kept_is_listed_and_never_taken_for_new() {
    let f = project();
    f.put("huge", vec![1; 70_000]);
    f.put("p", "1234567890");
    f.put("q", "12345");
    let bounds = Bounds { file_bytes: 50_000, run_bytes: 40_050, ..Bounds::default() };
    let recorded = run_within(&f, bounds, |w| {
        fs::write(w.join("huge"), "small").unwrap();
        fs::remove_file(w.join("big.bin")).unwrap();
        fs::write(w.join("q"), "other").unwrap();
        fs::write(w.join("new"), vec![3; 60_000]).unwrap();
    });
    // The smallest came in first; of what came to be, the digest is enough to take it away again.
    assert_eq!(told(&f, &recorded), ["create new", "edit q"]);
    let lost = [("big.bin".to_owned(), Loss::OverBudget), ("huge".to_owned(), Loss::TooLarge)];
    assert_eq!(losses(&f, &recorded), lost);
    f.ok("undo", json!({"change": recorded.change.unwrap().to_string()}));
    assert!(!f.has("new") && !f.has("big.bin"));
    assert_eq!((f.get("q"), f.get("huge")), ("12345".to_owned(), "small".to_owned()));
    // A name alone is given back without the bytes.
    let before = snapshot(&f.path(""));
    f.put("huge", vec![1; 70_000]);
    let recorded = run_within(&f, bounds, |w| fs::rename(w.join("huge"), w.join("vast")).unwrap());
    assert_eq!((told(&f, &recorded), losses(&f, &recorded)), (vec!["move vast <- huge".to_owned()], vec![]));
    f.ok("undo", json!({}));
    assert!(before.contains_key(&b"huge"[..]) && f.has("huge") && !f.has("vast"));
}

#[test]
fn what_cannot_be_put_back_is_listed_by_reason() {
    let f = project();
    f.put(".env", "SECRET=1");
    f.put("twice", "one");
    fs::hard_link(f.path("twice"), f.path("other-name")).unwrap();
    let recorded = run(&f, |w| {
        fs::write(w.join(".env"), "SECRET=2").unwrap();
        fs::create_dir_all(w.join("sub/.git")).unwrap();
        fs::write(w.join("sub/.git/HEAD"), "ref").unwrap();
        fs::set_permissions(w.join("empty"), fs::Permissions::from_mode(0o700)).unwrap();
        drop(std::os::unix::net::UnixListener::bind(w.join("socket")).unwrap());
        fs::write(w.join("twice"), "two").unwrap();
        fs::remove_file(w.join("tool.sh")).unwrap();
        fs::create_dir(w.join("tool.sh")).unwrap();
        fs::write(w.join("tool.sh/inside"), "i").unwrap();
        fs::remove_dir_all(w.join("src/deep")).unwrap();
        fs::write(w.join("src/deep"), "a file").unwrap();
    });
    let lost = [
        (".env", Loss::Protected),
        ("empty", Loss::Directory),
        ("other-name", Loss::HardLinked),
        ("socket", Loss::Special),
        ("src/deep", Loss::KindChanged),
        ("tool.sh", Loss::KindChanged),
        ("twice", Loss::HardLinked),
    ];
    assert_eq!(losses(&f, &recorded), lost.map(|(at, loss)| (at.to_owned(), loss)));
    let did = [
        "edit other-name",
        "mkdir sub",
        "delete tool.sh",
        "mkdir tool.sh",
        "create tool.sh/inside",
        "edit twice",
        "rmdir src/deep",
        "create src/deep",
        "delete src/deep/c.rs",
    ];
    let mut found = told(&f, &recorded);
    found.sort_by_key(|line| did.iter().position(|did| did == line));
    assert_eq!(found, did);
    // Nothing of a secret came into the store, and what became another thing is in the trash.
    let ledger = f.toolbox.workspace().ledger();
    assert_eq!(ledger.blob(cotenant_model::Digest::of(b"SECRET=1")), Ok(None));
    assert!(f.ok("list_trash", json!({})).contains("path=tool.sh"));
    // The rest is taken back path by path.
    let change = recorded.change.unwrap().to_string();
    f.no("UNDO_CONFLICT", "undo", json!({"change": change}));
    f.ok("undo", json!({"change": change, "paths": ["tool.sh/inside", "sub"]}));
    assert!(!f.has("tool.sh/inside"));
}

/// One random thing that a command does below `root`.
fn something(dice: &mut Dice, root: &Path) {
    let all: Vec<Vec<u8>> = snapshot(root).into_keys().collect();
    let pick = |dice: &mut Dice| {
        let index = usize::try_from(dice.below(all.len().max(1) as u64)).unwrap();
        all.get(index).map(|name| root.join(String::from_utf8(name.clone()).unwrap()))
    };
    let name = |dice: &mut Dice| format!("n{}", dice.below(12));
    let place = |dice: &mut Dice| match pick(dice) {
        Some(dir) if dir.is_dir() && !dir.is_symlink() => dir,
        Some(file) => file.parent().unwrap().to_owned(),
        None => root.to_owned(),
    };
    let new = place(dice).join(name(dice));
    let old = pick(dice);
    // What a kind of thing forbids just does not happen.
    let _ = match (dice.below(9), old) {
        (0 | 1, _) if !new.is_dir() && !new.is_symlink() => {
            fs::write(&new, format!("line\n{}\n", dice.below(5)).repeat(dice.below(4) as usize))
        }
        (2, Some(old)) if old.is_file() && !old.is_symlink() => fs::write(&old, format!("{}", dice.below(7))),
        (3, Some(old)) if old.is_dir() && !old.is_symlink() => fs::remove_dir_all(&old),
        (3, Some(old)) => fs::remove_file(&old),
        (4 | 5, Some(old)) if fs::symlink_metadata(&new).is_err() => fs::rename(&old, &new),
        (6, Some(old)) if old.is_file() && !old.is_symlink() => fs::set_permissions(
            &old,
            fs::Permissions::from_mode([0o644, 0o755, 0o600][dice.below(3) as usize]),
        ),
        (7, _) => fs::create_dir(&new),
        (8, _) => symlink(name(dice), &new),
        (4 | 5, Some(old)) if old.is_file() && new.is_file() && !new.is_symlink() => fs::rename(&old, &new),
        _ => Ok(()),
    };
}

/// Whether a path is a directory in one and something else in the other: that is not put back at once.
fn kinds_differ(one: &Snapshot, other: &Snapshot) -> bool {
    let is_dir = |mode: u32| mode & 0o170_000 == 0o040_000;
    one.iter().any(|(name, (mode, ..))| {
        other.get(name).is_some_and(|(theirs, ..)| is_dir(*mode) != is_dir(*theirs))
    })
}

#[test]
fn whatever_random_commands_do_undo_gives_the_old_tree() {
    let mut dice = Dice::thrown();
    let f = Fixture::new();
    let mut runs = 0;
    while runs < 60 {
        let before = snapshot(&f.path(""));
        let steps = 1 + dice.below(12);
        let recorded = run(&f, |w| (0..steps).for_each(|_| something(&mut dice, w)));
        let after = snapshot(&f.path(""));
        if kinds_differ(&before, &after) {
            assert!(recorded.not_restorable.iter().any(|(_, loss)| *loss == Loss::KindChanged));
            continue;
        }
        assert_eq!(losses(&f, &recorded), []);
        assert_eq!(recorded.change.is_some(), before != after, "{:?}", told(&f, &recorded));
        runs += 1;
        if recorded.change.is_some() {
            undone(&f, &recorded, &before);
            // Go on from what the command made, every second time.
            if runs % 2 == 0 {
                let undo = f.changes()[0].clone();
                f.ok("undo", json!({"change": undo}));
                f.toolbox.workspace().settle();
                assert_eq!(snapshot(&f.path("")), after);
            }
        }
    }
}
