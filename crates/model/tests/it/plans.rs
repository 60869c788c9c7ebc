//! Plans and digests: what a human's yes binds to.

use cotenant_model::{
    Author, Body, ChangeId, ChangeOp, Content, Digest, Entry, FileOp, FolderId, Moved, Op, Plan, PreImage,
    RelPath, SessionId, WsPath,
};
use proptest::prelude::*;

fn plan(ops: Vec<FileOp>) -> Plan {
    let author = Author { agent: "a".into(), session: SessionId(1), task: None, turn: 1 };
    Plan { author, tool: "edit_file".into(), ops, diff: String::new(), undoes: None, command: None }
}

fn content(text: &str) -> Content {
    text.as_bytes().into()
}

fn file(bytes: &str) -> Entry {
    Entry::file(Digest::of(bytes.as_bytes()))
}

fn op() -> impl Strategy<Value = Op> {
    let text = "[ab]{0,2}";
    prop_oneof![
        Just(Op::MakeDir { mode: None }),
        Just(Op::RemoveDir),
        (text, proptest::option::of(prop_oneof![Just(0o644), Just(0o755)])).prop_map(|(text, mode)| {
            Op::Create { new: Body { mode, ..Body::file(content(&text)) }, like: None }
        }),
        (text, text).prop_map(|(old, text)| Op::Replace { old: file(&old), new: Body::file(content(&text)) }),
        text.prop_map(|old| Op::Delete { old: file(&old) }),
        (text, "[ab]{1,3}", proptest::option::of(text)).prop_map(|(old, to, over)| Op::Move {
            to: WsPath::root(RelPath::parse(&to).unwrap()),
            what: Moved::Entry(file(&old)),
            over: over.as_deref().map(file),
        }),
    ]
}

fn file_op() -> impl Strategy<Value = FileOp> {
    (0u16..3, "[ab]{1,3}(/[ab]{1,2})?", op()).prop_map(|(folder, path, op)| FileOp {
        at: WsPath { folder: FolderId(folder), path: RelPath::parse(&path).unwrap() },
        op,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Two plans have one digest exactly when they would write the same.
    #[test]
    fn the_digest_is_the_operations(a in proptest::collection::vec(file_op(), 0..4), b in proptest::collection::vec(file_op(), 0..4)) {
        prop_assert_eq!(plan(a.clone()).digest() == plan(b.clone()).digest(), a == b);
        prop_assert_eq!(plan(a.clone()).digest(), plan(a).digest());
    }

    /// What is said about a plan does not change what is agreed to; any operation added, dropped or swapped does.
    #[test]
    fn the_digest_binds_to_every_operation_and_to_nothing_else(ops in proptest::collection::vec(file_op(), 1..5), extra in file_op(), at in 0usize..5) {
        let base = plan(ops.clone());
        let mut told = base.clone();
        told.author = Author { agent: "b".into(), session: SessionId(9), task: Some("t".into()), turn: 4 };
        told.tool = "undo".into();
        told.diff = "other".to_owned();
        told.undoes = Some(ChangeId(3));
        prop_assert_eq!(told.digest(), base.digest());
        let at = at % ops.len();
        let mut more = ops.clone();
        more.insert(at, extra.clone());
        prop_assert_ne!(plan(more).digest(), base.digest());
        let mut fewer = ops.clone();
        fewer.remove(at);
        prop_assert_ne!(plan(fewer).digest(), base.digest());
        let mut other = ops.clone();
        other[at] = extra;
        prop_assert_eq!(plan(other.clone()).digest() == base.digest(), other == ops);
        let mut moved = ops.clone();
        moved[at].at.folder = FolderId(7);
        prop_assert_ne!(plan(moved).digest(), base.digest());
    }

    #[test]
    fn what_stands_before_and_after(op in file_op()) {
        let (pre, post) = (op.pre(), op.post());
        match &op.op {
            Op::MakeDir { .. } => prop_assert_eq!((pre, post, op.verb()), (PreImage::Absent, None, "mkdir")),
            Op::RemoveDir => prop_assert_eq!((pre, post, op.verb()), (PreImage::Directory, None, "rmdir")),
            Op::Create { new, .. } => prop_assert_eq!((pre, post, op.verb()), (PreImage::Absent, Some(new.entry()), "create")),
            Op::Replace { old, new } => prop_assert_eq!((pre, post, op.verb()), (PreImage::Entry(*old), Some(new.entry()), "edit")),
            Op::Delete { old } => prop_assert_eq!((pre, post, op.verb()), (PreImage::Entry(*old), None, "delete")),
            Op::Move { what: Moved::Entry(old), .. } => prop_assert_eq!((pre, post, op.verb()), (PreImage::Entry(*old), None, "move")),
            Op::Move { .. } => prop_assert_eq!((pre, post, op.verb()), (PreImage::Directory, None, "move")),
        }
        let creates = matches!(op.op, Op::MakeDir { .. } | Op::Create { .. });
        prop_assert_eq!(plan(vec![op.clone()]).only_creates(), creates);
        let dir = FileOp { at: op.at.clone(), op: Op::MakeDir { mode: None } };
        prop_assert_eq!(plan(vec![dir, op]).only_creates(), creates, "one that does not is enough");
    }

    #[test]
    fn a_digest_is_named_by_sixteen_digits_or_more(bytes in proptest::collection::vec(any::<u8>(), 0..50), keep in 0usize..=64, flip in 0usize..64) {
        let digest = Digest::of(&bytes);
        let hex = digest.hex();
        prop_assert_eq!(hex.len(), 64);
        prop_assert!(hex.starts_with(&digest.to_string()));
        prop_assert_eq!(digest.matches(&hex[..keep]), keep >= 16);
        prop_assert_eq!(digest.matches(&hex[..keep].to_uppercase()), keep >= 16);
        prop_assert!(!digest.matches(&format!("{hex}0")), "more digits than there are");
        let other = if &hex[flip..=flip] == "0" { "1" } else { "0" };
        let wrong = format!("{}{other}{}", &hex[..flip], &hex[flip + 1..]);
        prop_assert!(!digest.matches(&wrong));
        prop_assert_eq!(Digest::from_bytes(digest.as_bytes()), Some(digest));
        prop_assert_eq!(Digest::from_bytes(&digest.as_bytes()[..keep.min(31)]), None);
    }

    #[test]
    fn a_stream_in_any_pieces_has_the_digest_of_the_whole(bytes in proptest::collection::vec(any::<u8>(), 0..300), cuts in proptest::collection::vec(0usize..300, 0..6)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
        cuts.sort_unstable();
        let streamed = Digest::stream::<()>(|sink| {
            let mut from = 0;
            for at in &cuts {
                sink(&bytes[from..*at]);
                from = *at;
            }
            sink(&bytes[from..]);
            Ok(())
        });
        prop_assert_eq!(streamed, Ok(Digest::of(&bytes)));
    }
}

#[test]
fn a_stream_that_fails_has_no_digest() {
    assert_eq!(
        Digest::stream(|sink| {
            sink(b"a");
            Err("torn")
        }),
        Err("torn")
    );
}

#[test]
fn a_name_is_not_mistaken_for_a_part_of_another() {
    let make = |path: &str| FileOp {
        at: WsPath::root(RelPath::parse(path).unwrap()),
        op: Op::MakeDir { mode: None },
    };
    let digests: Vec<Digest> = [vec!["a", "b"], vec!["a/b"], vec!["ab"], vec!["b", "a"], vec!["a"], vec![]]
        .into_iter()
        .map(|paths| plan(paths.into_iter().map(make).collect()).digest())
        .collect();
    for (index, digest) in digests.iter().enumerate() {
        assert!(!digests[..index].contains(digest), "{index}");
    }
}

#[test]
fn a_change_says_what_happened_in_one_word() {
    let words: Vec<&str> =
        [ChangeOp::Create, ChangeOp::Edit, ChangeOp::Delete, ChangeOp::MakeDir, ChangeOp::RemoveDir]
            .map(ChangeOp::name)
            .to_vec();
    assert_eq!(words, ["create", "edit", "delete", "mkdir", "rmdir"]);
}
