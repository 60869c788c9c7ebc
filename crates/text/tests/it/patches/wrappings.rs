//! What a patch may be wrapped in, what only looks so, and how much text may stand around it.

use cotenant_text::patch::{Grammar, Options, parse};

use super::kit::{bad, one, read, shown, text};

const ENVELOPE: &str = "*** Begin Patch\n*** Update File: x\n@@\n-a\n+b\n*** End Patch\n";
const DIFF: &str = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
const BLOCK: &str = "x\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n";

/// A JSON string of a text.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn is_the_change(input: &str) {
    let file = one(input);
    assert_eq!(
        (text(&file.path).as_str(), shown(&file.hunks[0])),
        ("x", vec!["-a".to_owned(), "+b".to_owned()]),
        "{input}"
    );
}

#[test]
fn every_grammar_comes_as_json() {
    for patch in [ENVELOPE, DIFF, BLOCK] {
        is_the_change(&quoted(patch));
        is_the_change(&quoted(&quoted(patch)));
        for name in ["patch", "input", "diff"] {
            is_the_change(&format!("{{{}: {}}}", quoted(name), quoted(patch)));
            is_the_change(&format!(
                " {{ \"cwd\" : \".\" ,\n{} :{} , \"n\": [1.5e3, {{}}] }} \n",
                quoted(name),
                quoted(patch)
            ));
        }
        is_the_change(&format!("[\"apply_patch\", {}]", quoted(patch)));
    }
}

#[test]
fn a_json_object_prefers_the_name_patch() {
    is_the_change(&format!("{{\"diff\": \"no\", \"input\": \"no\", \"patch\": {}}}", quoted(DIFF)));
}

#[test]
fn what_only_resembles_json_is_no_json() {
    for broken in [
        format!("{{\"patch\": {}", quoted(DIFF)),
        format!("{{\"text\": {}}}", quoted(DIFF)),
        format!("{{\"patch\": [{}]}}", quoted(DIFF)),
        format!("[\"cat\", {}]", quoted(DIFF)),
        format!("[{}]", quoted(DIFF)),
        format!("{} and more", quoted(DIFF)),
        "\"".to_owned(),
        "{".to_owned(),
        "\"\\ud800\"".to_owned(),
    ] {
        assert!(bad(&broken).what.contains("no line of this begins a patch"), "{broken}");
    }
}

#[test]
fn every_grammar_comes_in_a_heredoc() {
    for patch in [ENVELOPE, DIFF, BLOCK] {
        for open in ["<<'EOF'", "<<EOF", "<< \"EOF\"", "<<-EOF", "<<'EOF' "] {
            is_the_change(&format!("apply_patch {open}\n{patch}EOF\n"));
            is_the_change(&format!("cd sub && apply_patch {open}\n{patch}EOF\n"));
        }
        is_the_change(&format!("<<'EOF'\n{patch}EOF\n"));
        is_the_change(&format!("sh$ git status\n\ngit apply <<'PATCH_END'\n{patch}PATCH_END\nsh$ true\n"));
    }
}

#[test]
fn a_merge_conflict_mark_is_no_heredoc() {
    let refused = bad("<<<<<<< HEAD\na\n=======\nb\n>>>>>>> main\n");
    assert!(refused.what.contains("no line of this begins a patch"), "{refused}");
}

#[test]
fn options_of_the_command_are_heeded_or_refused() {
    let strip = |command: &str, names: &str| {
        let patch = format!("{command} <<'EOF'\n--- {names}\n+++ {names}\n@@ -1 +1 @@\n-a\n+b\nEOF\n");
        parse(&patch, &Options::default())
            .map(|patch| (patch.cd, text(&patch.files[0].path)))
            .map_err(|bad| bad.what)
    };
    let yes = |cd: Option<&str>, path: &str| Ok((cd.map(str::to_owned), path.to_owned()));
    assert_eq!(strip("git apply -p2", "p/q/x"), yes(None, "x"));
    assert_eq!(strip("patch -p 1", "p/q/x"), yes(None, "q/x"));
    assert_eq!(strip("patch --strip=0 -u -N", "p/x"), yes(None, "p/x"));
    assert_eq!(strip("cd top && git apply --directory=sub -p1 -", "p/x"), yes(Some("top/sub"), "x"));
    assert_eq!(strip("cd 'a b' ; patch -p1", "p/x"), yes(Some("a b"), "x"));
    for (command, what) in [
        ("git apply -R", "`-R` is not understood"),
        ("git apply --reverse", "`--reverse` is not understood"),
        ("git apply --check", "`--check` is not understood"),
        ("patch --dry-run", "`--dry-run` is not understood"),
        ("patch x.c", "`x.c` is not understood"),
        ("patch -p", "`-p` without a value"),
        ("patch -px", "takes a number"),
        ("git stash", "no command that takes a patch"),
        ("cd sub", "no command that takes a patch"),
    ] {
        let refused = strip(command, "p/x").unwrap_err();
        assert!(refused.contains(what), "{command}: {refused}");
    }
}

#[test]
fn fences_may_be_long_nested_and_left_open() {
    for patch in [ENVELOPE, DIFF] {
        is_the_change(&format!("````\n{patch}````\n"));
        is_the_change(&format!("~~~~ patch\n{patch}~~~~~\nDone.\n"));
        is_the_change(&format!("text\n\n```\n\n{patch}\n```\n"));
        is_the_change(&format!("```\n{patch}"));
        is_the_change(&format!("```json\n{patch}```"));
        is_the_change(&format!("```sh\ncd d && apply_patch <<'EOF'\n{patch}EOF\n```\n"));
        is_the_change(&format!("apply_patch <<'EOF'\n```\n{patch}```\nEOF\n"));
    }
}

#[test]
fn a_fence_within_the_patch_is_content() {
    let patch = "*** Begin Patch\n*** Update File: x\n@@\n ```\n-a\n+b\n ```\n*** End Patch\n";
    assert_eq!(shown(&one(patch).hunks[0]), [" ```", "-a", "+b", " ```"]);
    assert_eq!(shown(&one(&format!("````\n{patch}````\n")).hunks[0]).len(), 4);
    let block = "x\n<<<<<<< SEARCH\n```\na\n```\n=======\n```\nb\n```\n>>>>>>> REPLACE\n";
    assert_eq!(shown(&one(block).hunks[0]), [" ```", "-a", "+b", " ```"]);
}

#[test]
fn text_before_and_behind_is_passed_over() {
    for (patch, grammar) in
        [(ENVELOPE, Grammar::Envelope), (DIFF, Grammar::Unified), (BLOCK, Grammar::Blocks)]
    {
        let input = format!(
            "I changed this:\n\n{}{patch}\nThat is all.\n",
            if grammar == Grammar::Blocks { "" } else { "So:\n" }
        );
        assert_eq!(read(&input).grammar, grammar);
        is_the_change(&input);
    }
}

#[test]
fn lines_are_numbered_as_they_were_sent() {
    let refused = bad("Look:\n\n```\n*** Begin Patch\n*** Rename File: x\n*** End Patch\n```\n");
    assert_eq!((refused.line, refused.seen.as_str()), (5, "*** Rename File: x"));
    let refused = bad("git apply <<'EOF'\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\nEOF\n");
    assert_eq!(refused.line, 2);
}
