//! R5 end to end: every state of two paths that a crash can leave, made by hand, and what recovery must make of it.

use std::fs;

use cotenant_ledger::commit as record;
use cotenant_ledger::{Intent, IntentPath, Ledger, LedgerOptions, ParentId, Query};
use cotenant_model::{
    Change, ChangeFile, ChangeId, ChangeKind, ChangeOp, Digest, Durability, Outcome, SessionId,
};

use crate::rig::*;

/// What stands at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Absent,
    Pre,
    Post,
    Foreign,
}

const ALL: [Is; 4] = [Is::Absent, Is::Pre, Is::Post, Is::Foreign];
const PATHS: [&str; 2] = ["a", "b"];

fn version(path: &str, what: &str) -> Vec<u8> {
    format!("{path} {what}\n").into_bytes()
}

fn bytes(path: &str, is: Is, where_: &str) -> Option<Vec<u8>> {
    match is {
        Is::Absent => None,
        Is::Pre => Some(version(path, "pre")),
        Is::Post => Some(version(path, "post")),
        Is::Foreign => Some(version(path, &format!("foreign at the {where_}"))),
    }
}

/// What COMMIT.md says of a path by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    NotSwapped,
    Swapped,
    Lost,
    Unknown,
    Foreign,
}

fn case(target: Is, temp: Is) -> Case {
    match (target, temp) {
        (Is::Pre, Is::Post) => Case::NotSwapped,
        (_, Is::Post) | (_, Is::Foreign) => Case::Foreign,
        (_, Is::Pre) | (Is::Post, Is::Absent) => Case::Swapped,
        (Is::Pre, Is::Absent) => Case::Lost,
        (Is::Foreign | Is::Absent, Is::Absent) => Case::Unknown,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Forward,
    Back,
    Nothing,
}

fn way(states: [(Is, Is); 2]) -> Way {
    let cases = states.map(|(target, temp)| case(target, temp));
    let begun = cases.iter().any(|case| matches!(case, Case::Swapped | Case::NotSwapped));
    let unfinished = cases.iter().any(|case| matches!(case, Case::Lost | Case::Unknown));
    if cases.contains(&Case::Foreign) || begun && unfinished {
        Way::Back
    } else if begun {
        Way::Forward
    } else {
        Way::Nothing
    }
}

/// What must stand at the target afterwards.
fn expected(path: &str, (target, temp): (Is, Is), way: Way) -> Option<Vec<u8>> {
    match (way, target, temp) {
        (Way::Forward, Is::Pre, Is::Post) => bytes(path, Is::Post, ""),
        (Way::Back, Is::Post, Is::Pre) => bytes(path, Is::Pre, ""),
        (Way::Back, Is::Post, Is::Foreign) => bytes(path, Is::Foreign, "temp"),
        _ => bytes(path, target, "target"),
    }
}

fn intent(place: &Place, id: ChangeId, temps: &[String; 2]) -> Intent {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata(place.tree.path()).unwrap();
    let digests =
        |path: &str| (Some(Digest::of(&version(path, "pre"))), Some(Digest::of(&version(path, "post"))));
    let file = |path: &&str| {
        let (pre, post) = digests(path);
        ChangeFile { at: at(path), pre, post, pre_mode: 0o100_644, ..ChangeFile::default() }
    };
    let path = |(path, temp): (&&str, &String)| {
        let (pre, post) = digests(path);
        IntentPath {
            at: at(path),
            op: ChangeOp::Edit,
            parent: ParentId { dev: meta.dev(), ino: meta.ino(), mount: 0 },
            temp: temp.clone(),
            pre,
            post,
            pre_mode: 0o644,
            uid: meta.uid(),
            gid: meta.gid(),
            inline_pre: Some(version(path, "pre")),
            ..IntentPath::default()
        }
    };
    Intent {
        change: Change {
            id,
            time: NOW,
            kind: ChangeKind::Planned,
            outcome: Outcome::Open,
            agent: Some("agent-a".into()),
            session: Some(SessionId(1)),
            task: None,
            turn: 1,
            tool: "edit_file".into(),
            files: PATHS.iter().map(file).collect(),
            undoes: None,
        },
        paths: PATHS.iter().zip(temps).map(path).collect(),
        idempotency: None,
    }
}

fn open_ledger(place: &Place) -> Ledger {
    let options = LedgerOptions { dir: place.state.path().to_owned(), durability: Durability::Full };
    Ledger::open(&options).unwrap().0
}

fn check(states: [(Is, Is); 2]) {
    let place = Place::fast();
    let temps = [".cotenant-00000000000000aa".to_owned(), ".cotenant-00000000000000bb".to_owned()];
    let mut versions = Vec::new();
    for ((path, temp), (at_target, at_temp)) in PATHS.iter().zip(&temps).zip(states) {
        for (name, bytes) in [
            (path.to_string(), bytes(path, at_target, "target")),
            (temp.clone(), bytes(path, at_temp, "temp")),
        ] {
            let Some(bytes) = bytes else { continue };
            fs::write(place.tree.path().join(name), &bytes).unwrap();
            versions.push(bytes);
        }
    }
    let ledger = open_ledger(&place);
    let id = record::next_change(&ledger);
    record::intend(&ledger, intent(&place, id, &temps)).wait().unwrap();
    drop(ledger);

    let rig = place.open();
    rig.settle();
    let way = way(states);
    let said = format!("{states:?} {way:?} {:?} {:?}", rig.recovered, files(&rig.root));
    for (path, state) in PATHS.iter().zip(states) {
        assert_eq!(rig.read(path), expected(path, state, way), "{path} of {said}");
        assert!(rig.has(&version(path, "pre")), "the old {path} is lost: {said}");
    }
    let outcome = rig.recovered.changes[0].1;
    match way {
        Way::Forward => assert_eq!(outcome, Outcome::Sealed, "{said}"),
        Way::Nothing => assert_eq!(outcome, Outcome::Aborted, "{said}"),
        Way::Back => assert!(matches!(outcome, Outcome::Aborted | Outcome::Overtaken), "{said}"),
    }
    // Our own new version of a change of which nothing stands needs not be kept; every other one must be.
    let ours = |bytes: &Vec<u8>| PATHS.iter().any(|path| *bytes == version(path, "post"));
    for bytes in versions.iter().filter(|bytes| outcome != Outcome::Aborted || !ours(bytes)) {
        assert!(rig.has(bytes), "{} is lost: {said}", String::from_utf8_lossy(bytes));
    }
    let met = states.contains(&(Is::Foreign, Is::Foreign));
    assert!(
        !met || !rig.recovered.questions.is_empty(),
        "two foreign versions met and nobody is asked: {said}"
    );
    drop(rig);
    let again = place.open();
    assert_eq!(again.recovered.changes, [], "recovered twice: {said}");
}

#[test]
fn every_state_of_two_paths() {
    let mut count = 0;
    for target in ALL {
        for temp in ALL {
            for other_target in ALL {
                for other_temp in ALL {
                    // The order of the two paths matters only for the order of the steps.
                    count += 1;
                    if count % 3 == 0 || std::env::var_os("COTENANT_LONG").is_some() {
                        check([(target, temp), (other_target, other_temp)]);
                    }
                }
            }
        }
    }
    for target in ALL {
        for temp in ALL {
            check([(target, temp), (target, temp)]);
        }
    }
}

/// Two changes of one path in a row, neither sealed: the later one proves that the earlier one was through.
#[test]
fn a_later_intent_settles_an_earlier_one() {
    let place = Place::fast();
    let rig = place.open();
    for path in PATHS {
        rig.write(path, &version(path, "later"));
    }
    drop(rig);
    let ledger = open_ledger(&place);
    let temps = [".cotenant-00000000000000aa".to_owned(), ".cotenant-00000000000000bb".to_owned()];
    for (path, temp) in PATHS.iter().zip(&temps) {
        fs::write(place.tree.path().join(temp), version(path, "pre")).unwrap();
    }
    let first = record::next_change(&ledger);
    record::intend(&ledger, intent(&place, first, &temps)).wait().unwrap();
    let second = record::next_change(&ledger);
    let mut later = intent(
        &place,
        second,
        &[".cotenant-00000000000000cc".to_owned(), ".cotenant-00000000000000dd".to_owned()],
    );
    for (path, file) in later.paths.iter_mut().zip(&mut later.change.files) {
        let name = path.at.path.to_string();
        path.inline_pre = Some(version(&name, "post"));
        path.pre = path.post;
        path.post = Some(Digest::of(&version(&name, "later")));
        (file.pre, file.post) = (path.pre, path.post);
    }
    record::intend(&ledger, later).wait().unwrap();
    drop(ledger);
    let rig = place.open();
    rig.settle();
    assert_eq!(rig.recovered.changes, [(first, Outcome::Sealed), (second, Outcome::Sealed)]);
    for path in PATHS {
        assert_eq!(rig.read(path).unwrap(), version(path, "later"));
        for image in ["pre", "post", "later"] {
            assert!(rig.blob(&version(path, image)).is_some(), "{path} {image}");
        }
    }
    assert_eq!(rig.ledger.history(&Query::default()).unwrap().len(), 2);
}

/// The directory is another one now: nothing in it is touched, and the human is told where to look.
#[test]
fn another_directory_at_the_path_is_left_alone() {
    let place = Place::fast();
    let rig = place.open();
    rig.write("d/f", b"theirs");
    drop(rig);
    let ledger = open_ledger(&place);
    let id = record::next_change(&ledger);
    let mut intent = intent(
        &place,
        id,
        &[".cotenant-00000000000000aa".to_owned(), ".cotenant-00000000000000bb".to_owned()],
    );
    intent.paths.truncate(1);
    intent.change.files.truncate(1);
    intent.paths[0].at = at("d/f");
    intent.paths[0].post = Some(Digest::of(b"theirs"));
    intent.paths[0].op = ChangeOp::Create;
    intent.paths[0].pre = None;
    record::intend(&ledger, intent).wait().unwrap();
    drop(ledger);
    let rig = place.open();
    rig.settle();
    assert_eq!(rig.read("d/f").unwrap(), b"theirs");
    assert_eq!(rig.recovered.questions.len(), 1, "{:?}", rig.recovered);
    assert_eq!(rig.recovered.changes, [(id, Outcome::Aborted)]);
}
