//! From states to operations: whatever stood and whatever shall stand, the operations lead there, one a path.

use std::collections::{BTreeMap, BTreeSet};

use cotenant_model::{Body, ClassHit, Entry, EntryKind, FileOp, Moved, Op, PathClass, RelPath, WsPath};
use cotenant_tools::states::{Impossible, Operations, Shift, Shifts, State};
use proptest::prelude::*;

type Tree = BTreeMap<WsPath, State>;

fn at(path: &str) -> WsPath {
    WsPath::root(RelPath::parse(path).unwrap())
}

fn file(text: &str) -> State {
    State::Entry(Body::file(text.as_bytes()).with_mode(0o644))
}

fn dir() -> State {
    State::Dir { mode: None }
}

fn shift(before: State, after: State, from: Option<&str>) -> Shift {
    Shift { before, after, from: from.map(at), class: ClassHit::ordinary() }
}

/// The operations of `path: before -> after [<- from]`.
fn operations(shifts: &[(&str, State, State, Option<&str>)]) -> Operations {
    try_operations(shifts).unwrap()
}

fn try_operations(shifts: &[(&str, State, State, Option<&str>)]) -> Result<Operations, Impossible> {
    let mut all = Shifts::default();
    for (path, before, after, from) in shifts {
        all.set(at(path), shift(before.clone(), after.clone(), *from));
    }
    all.operations()
}

fn verbs(found: &Operations) -> Vec<String> {
    found.ops.iter().map(|op| format!("{} {}", op.verb(), op.at.path)).collect()
}

#[test]
fn one_operation_for_each_way_to_change() {
    let mode = |mode| State::Entry(Body::file(&b"x"[..]).with_mode(mode));
    let link = |target: &str| State::Entry(Body::link(target.as_bytes()));
    let cases = [
        (State::Absent, file("x"), Some("create")),
        (file("x"), State::Absent, Some("delete")),
        (file("x"), file("y"), Some("edit")),
        (file("x"), file("x"), None),
        (file("x"), State::Entry(Body::file(&b"x"[..])), None),
        (mode(0o644), mode(0o755), Some("edit")),
        (link("x"), file("x"), Some("edit")),
        (link("x"), link("x"), None),
        (State::Absent, dir(), Some("mkdir")),
        (dir(), State::Absent, Some("rmdir")),
        (dir(), State::Dir { mode: Some(0o700) }, None),
        (State::Absent, State::Absent, None),
    ];
    for (before, after, verb) in cases {
        let found = operations(&[("p", before.clone(), after.clone(), None)]);
        assert_eq!(found.ops.first().map(FileOp::verb), verb, "{before:?} -> {after:?}");
    }
}

#[test]
fn a_name_alone_that_changes_is_a_move_and_with_an_edit_it_is_not() {
    let renamed = |new: State| {
        operations(&[("a", file("x"), State::Absent, None), ("b", State::Absent, new, Some("a"))])
    };
    let found = renamed(file("x"));
    assert_eq!(verbs(&found), ["move a"]);
    assert_eq!(found.ops[0].paths().collect::<Vec<_>>(), [&at("a"), &at("b")]);
    for edited in [file("y"), State::Entry(Body::file(&b"x"[..]).with_mode(0o755))] {
        let found = renamed(edited);
        assert_eq!(verbs(&found), ["delete a", "create b"]);
        assert!(matches!(&found.ops[1].op, Op::Create { like: Some(like), .. } if *like == at("a")));
    }
    // Nobody said that it is the same file.
    let found = operations(&[("a", file("x"), State::Absent, None), ("b", State::Absent, file("x"), None)]);
    assert_eq!(verbs(&found), ["delete a", "create b"]);
}

#[test]
fn of_two_copies_one_is_the_move_and_a_copy_of_what_stays_is_made_like_it() {
    let found = operations(&[
        ("a", file("x"), State::Absent, None),
        ("b", State::Absent, file("x"), Some("a")),
        ("c", State::Absent, file("x"), Some("a")),
        ("d", State::Absent, file("x"), Some("unnamed")),
    ]);
    assert_eq!(verbs(&found), ["move a", "create c", "create d"]);
    let like = |op: &FileOp| match &op.op {
        Op::Create { like, .. } => like.clone(),
        _ => None,
    };
    assert_eq!(found.ops.iter().map(like).collect::<Vec<_>>(), [None, Some(at("a")), Some(at("unnamed"))]);
}

#[test]
fn a_link_is_like_no_file_and_a_file_like_no_link() {
    let link = State::Entry(Body::link(&b"x"[..]));
    for (old, new, alike) in
        [(link.clone(), file("x"), false), (file("x"), link.clone(), false), (link.clone(), link, true)]
    {
        let found = operations(&[("a", old, file("other"), None), ("b", State::Absent, new, Some("a"))]);
        assert!(matches!(&found.ops[1].op, Op::Create { like, .. } if like.is_some() == alike), "{found:?}");
    }
}

#[test]
fn swaps_and_chains_of_names_are_replacements() {
    let found = operations(&[("a", file("x"), file("y"), Some("b")), ("b", file("y"), file("x"), Some("a"))]);
    assert_eq!(verbs(&found), ["edit a", "edit b"]);
    let found = operations(&[
        ("a", file("x"), State::Absent, None),
        ("b", file("y"), file("x"), Some("a")),
        ("c", State::Absent, file("y"), Some("b")),
    ]);
    assert_eq!(verbs(&found), ["delete a", "edit b", "create c"]);
}

#[test]
fn missing_directories_are_made_and_those_with_something_left_stay() {
    let mut shifts = Shifts::default();
    shifts.set(at("d/e/f"), shift(State::Absent, file("x"), None));
    shifts.dirs([at("d"), at("d/e")]);
    assert_eq!(verbs(&shifts.operations().unwrap()), ["mkdir d", "mkdir d/e", "create d/e/f"]);
    let found = operations(&[
        ("d", dir(), State::Absent, None),
        ("d/gone", file("x"), State::Absent, None),
        ("d/new", State::Absent, file("x"), None),
    ]);
    assert_eq!(verbs(&found), ["delete d/gone", "create d/new"]);
}

#[test]
fn a_file_does_not_become_a_directory_nor_a_directory_a_file() {
    let clash =
        try_operations(&[("a", file("x"), State::Absent, None), ("a/b", State::Absent, file("y"), None)]);
    assert_eq!(clash.unwrap_err(), Impossible::FileInTheWay(at("a")));
    let clash = try_operations(&[("a", file("x"), dir(), None)]);
    assert_eq!(clash.unwrap_err(), Impossible::FileInTheWay(at("a")));
    let clash = try_operations(&[("a", dir(), file("x"), None)]);
    assert_eq!(clash.unwrap_err().at(), &at("a"));
}

#[test]
fn a_move_has_the_stricter_class_of_its_ends_and_every_operation_its_old_bytes() {
    let mut shifts = Shifts::default();
    let sensitive = ClassHit::of(PathClass::Sensitive, "AGENTS.md");
    shifts.set(at("a"), shift(file("x"), State::Absent, None));
    shifts.set(at("b"), Shift { class: sensitive.clone(), ..shift(State::Absent, file("x"), Some("a")) });
    shifts.set(at("c"), shift(file("old"), file("new"), None));
    let found = shifts.operations().unwrap();
    assert_eq!(found.classes, [sensitive, ClassHit::ordinary()]);
    assert_eq!(found.before, [None, Some(b"old"[..].into())]);
}

// --- against a naive model ---

/// What a plan does to a tree, in the order of R12, every expectation checked.
fn carry_out(tree: &mut Tree, ops: &[FileOp]) {
    let rank = |op: &FileOp| match op.op {
        Op::MakeDir { .. } => 0,
        Op::Create { .. } => 1,
        Op::Replace { .. } => 2,
        Op::Move { .. } => 3,
        Op::Delete { .. } => 4,
        Op::RemoveDir => 5,
    };
    let mut ops: Vec<&FileOp> = ops.iter().collect();
    ops.sort_by(|a, b| {
        let by_path = if rank(a) == 5 { b.at.cmp(&a.at) } else { a.at.cmp(&b.at) };
        rank(a).cmp(&rank(b)).then(by_path)
    });
    for FileOp { at, op } in ops {
        match op {
            Op::MakeDir { mode } => put(tree, at, State::Dir { mode: *mode }),
            Op::Create { new, like } => {
                let old = like.as_ref().map(|like| standing(tree, like));
                let mode = new.mode.or(old.and_then(|old| old.mode));
                put(tree, at, State::Entry(Body { mode, ..new.clone() }));
            }
            Op::Replace { old, new } => {
                let was = take(tree, at, *old);
                put(tree, at, State::Entry(Body { mode: new.mode.or(was.mode), ..new.clone() }));
            }
            Op::Delete { old } => {
                take(tree, at, *old);
            }
            Op::Move { to, what: Moved::Entry(what), over: None } => {
                let body = take(tree, at, *what);
                put(tree, to, State::Entry(body));
            }
            Op::RemoveDir => {
                assert!(!tree.keys().any(|below| below != at && below.is_within(at)), "{at:?} is not empty");
                assert!(matches!(tree.remove(at), Some(State::Dir { .. })));
            }
            Op::Move { .. } => panic!("a directory moved whole is not made here"),
        }
    }
}

fn standing(tree: &Tree, at: &WsPath) -> Body {
    tree.get(at).and_then(State::entry).unwrap_or_else(|| panic!("no file at {at:?}")).clone()
}

fn take(tree: &mut Tree, at: &WsPath, expected: Entry) -> Body {
    let body = standing(tree, at);
    assert_eq!(body.entry(), expected);
    tree.remove(at);
    body
}

fn put(tree: &mut Tree, at: &WsPath, state: State) {
    let parent = at.parent().filter(|parent| !parent.path.is_root());
    assert!(
        parent.is_none_or(|parent| matches!(tree.get(&parent), Some(State::Dir { .. }))),
        "no parent of {at:?}"
    );
    assert_eq!(tree.insert(at.clone(), state), None, "{at:?} was taken");
}

const PATHS: [&str; 9] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f", "f/a"];

/// A tree over those paths: what has no directory above it is not there.
fn trees() -> impl Strategy<Value = Tree> {
    let state = prop_oneof![
        2 => Just(State::Absent),
        3 => Just(dir()),
        4 => (0u8..4, any::<bool>()).prop_map(|(text, executable)| {
            let mode = if executable { 0o755 } else { 0o644 };
            State::Entry(Body::file(vec![b'0' + text]).with_mode(mode))
        }),
        1 => (0u8..2).prop_map(|text| State::Entry(Body::link(vec![b'0' + text]))),
    ];
    proptest::collection::vec(state, PATHS.len()).prop_map(|states| {
        let mut tree = Tree::new();
        for (path, state) in PATHS.iter().zip(states) {
            let parent = at(path).parent().filter(|parent| !parent.path.is_root());
            if state.stands()
                && parent.is_none_or(|parent| matches!(tree.get(&parent), Some(State::Dir { .. })))
            {
                tree.insert(at(path), state);
            }
        }
        tree
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any tree becomes any other with one operation a path, whatever is said about who comes from whom; but where a
    /// file and a directory would change places.
    #[test]
    fn any_tree_becomes_any_other(
        before in trees(),
        after in trees(),
        sources in proptest::collection::vec(proptest::option::of(0..PATHS.len()), PATHS.len()),
        silent in any::<bool>(),
    ) {
        let get = |tree: &Tree, path: &str| tree.get(&at(path)).cloned().unwrap_or_default();
        let mut shifts = Shifts::default();
        for (path, source) in PATHS.iter().zip(&sources) {
            let from = source.map(|index| PATHS[index]).filter(|from| {
                get(&after, path).entry().is_some() && get(&before, from).entry().is_some()
            });
            let (before, after) = (get(&before, path), get(&after, path));
            // A set need not name what does not change.
            if !silent || before != after {
                shifts.set(at(path), shift(before, after, from));
            }
        }
        let clash = PATHS.iter().any(|path| {
            let kinds = (get(&before, path), get(&after, path));
            matches!(kinds, (State::Dir { .. }, State::Entry(_)) | (State::Entry(_), State::Dir { .. }))
        });
        match shifts.operations() {
            Ok(found) => {
                prop_assert!(!clash);
                prop_assert_eq!((found.classes.len(), found.before.len()), (found.ops.len(), found.ops.len()));
                let touched: Vec<&WsPath> = found.ops.iter().flat_map(FileOp::paths).collect();
                let distinct: BTreeSet<&WsPath> = touched.iter().copied().collect();
                prop_assert_eq!(distinct.len(), touched.len(), "{:?}", found.ops);
                let mut tree = before;
                carry_out(&mut tree, &found.ops);
                let modeless = |tree: &Tree| -> Tree {
                    let plain = |state: &State| match state {
                        State::Entry(body) if body.kind == EntryKind::Link => State::Entry(Body::link(body.content.clone())),
                        other => other.clone(),
                    };
                    tree.iter().map(|(at, state)| (at.clone(), plain(state))).collect()
                };
                prop_assert_eq!(modeless(&tree), modeless(&after));
            }
            Err(_) => prop_assert!(clash),
        }
    }
}
