//! The diff that a human and a dry run are shown: every operation, every invisible character, within its bytes.

use cotenant_model::{Body, Content, Digest, Entry, FileOp, Folders, Op, RelPath, WsPath};
use cotenant_tools::planned::{Planned, file_diff};

fn content(text: &str) -> Content {
    text.as_bytes().into()
}

fn planned(ops: Vec<(&str, Op, Option<&str>)>) -> Planned {
    let mut planned = Planned::default();
    for (path, op, before) in ops {
        planned.ops.push(FileOp { at: WsPath::root(RelPath::parse(path).unwrap()), op });
        planned.before.push(before.map(content));
    }
    planned
}

#[test]
fn each_kind_of_operation_is_told_in_its_order() {
    let old = Entry::file(Digest::of(b"old\n"));
    let plan = planned(vec![
        ("d", Op::MakeDir { mode: None }, None),
        ("d/new", Op::Create { new: Body::file(content("x\n")), like: None }, None),
        ("changed", Op::Replace { old, new: Body::file(content("new\n")) }, Some("old\n")),
        ("gone", Op::Delete { old }, Some("old\n")),
        ("bin", Op::Replace { old, new: Body::file(content("\0\x01\x02")) }, Some("old\n")),
        ("empty", Op::RemoveDir, None),
    ]);
    let diff = plan.diff(&Folders::default(), 10_000);
    let mut at = 0;
    for part in [
        "new directory d/\n",
        "--- /dev/null\n+++ d/new\n",
        "+x\n",
        "--- changed\n+++ changed\n",
        "-old\n+new\n",
        "--- gone\n+++ /dev/null\n",
        "-old\n",
        "--- bin\n+++ bin\nbinary: 4 bytes before, 3 after\n",
        "removed directory empty/\n",
    ] {
        at +=
            diff[at..].find(part).unwrap_or_else(|| panic!("{part:?} in its place in\n{diff}")) + part.len();
    }
}

#[test]
fn what_does_not_fit_is_counted() {
    let name = |n: usize| format!("file-{n}");
    let names: Vec<String> = (0..40).map(name).collect();
    let make = |name: &'static str| Op::Create { new: Body::file(content(name)), like: None };
    let plan = planned(names.iter().map(|name| (name.as_str(), make("one line\n"), None)).collect());
    let diff = plan.diff(&Folders::default(), 500);
    let shown = diff.matches("+one line").count();
    assert!(diff.ends_with(&format!("… {} of 40 paths are left out\n", 40 - shown)), "{diff}");
    assert!(shown > 3 && diff.len() < 700, "{} bytes", diff.len());
}

#[test]
fn nothing_unseen_hides_in_a_diff() {
    let diff =
        file_diff("a", "a", Some(&content("admin\n")), Some(&content("ad\u{200b}min\u{202e} \t\n")), 1000);
    assert!(!diff.contains('\u{200b}') && !diff.contains('\u{202e}'), "{diff}");
    assert!(diff.contains("<U+200B>") && diff.contains("<U+202E>"), "{diff}");
}
