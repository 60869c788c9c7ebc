//! SEARCH/REPLACE blocks.

use cotenant_text::patch::{Grammar, Op};

use super::kit::{bad, on, one, read, shown, text};

fn block(path: &str, old: &str, new: &str) -> String {
    format!("{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n")
}

#[test]
fn a_block_replaces_lines() {
    let file = one(&block("src/x.rs", "a\nb\n", "a\nB\nc\n"));
    assert_eq!((text(&file.path), file.op.clone()), ("src/x.rs".to_owned(), Op::Update));
    assert_eq!(shown(&file.hunks[0]), [" a", "-b", "+B", "+c"]);
    assert_eq!(on("z\na\nb\nd\n", &block("x", "a\nb\n", "a\nB\nc\n")), "z\na\nB\nc\nd\n");
    assert_eq!(on("z\na\nb\nd\n", &block("x", "a\nb\n", "")), "z\nd\n");
}

#[test]
fn an_empty_search_creates_the_file() {
    let file = one(&block("new.txt", "", "one\ntwo\n"));
    assert_eq!((file.op.clone(), file.content()), (Op::Add, b"one\ntwo\n".to_vec()));
    assert!(one(&block("new.txt", "", "")).content().is_empty());
}

#[test]
fn each_block_sees_what_the_one_before_left() {
    let patch = read(&(block("x", "a\n", "b\n") + &block("x", "b\n", "c\n") + &block("y", "q\n", "r\n")));
    assert_eq!(patch.grammar, Grammar::Blocks);
    let found: Vec<_> = patch.files.iter().map(|f| (text(&f.path), f.hunks[0].ordinal)).collect();
    assert_eq!(found, [("x".to_owned(), 1), ("x".to_owned(), 2), ("y".to_owned(), 1)]);
}

#[test]
fn the_path_stands_above_in_many_dresses() {
    let body = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n";
    let cases = [
        ("src/x.rs\n", "src/x.rs"),
        ("`src/x.rs`:\n\n", "src/x.rs"),
        ("### `src/x.rs`\n```rust\n", "src/x.rs"),
        ("```rust\nsrc/x.rs\n", "src/x.rs"),
        ("**src/x.rs**\n", "src/x.rs"),
        ("my notes.txt\n", "my notes.txt"),
    ];
    for (above, path) in cases {
        assert_eq!(text(&one(&format!("{above}{body}")).path), path, "{above}");
    }
    let prose = read(&format!("x\n{body}```\n\nAnd now the second change. It is small.\n```\n{body}"));
    assert_eq!(
        prose.files.iter().map(|f| text(&f.path)).collect::<Vec<_>>(),
        ["x", "x"],
        "no path: that of the block before"
    );
    assert!(bad(body).what.contains("no path stands above"));
    assert!(bad(&format!("Change the following lines\n{body}")).what.contains("no path stands above"));
}

#[test]
fn marks_may_have_five_to_nine_signs_and_other_signs() {
    for count in 5..=9 {
        let mark = |sign: &str| sign.repeat(count);
        let patch = format!("x\n{} SEARCH\na\n{}\nb\n{} REPLACE\n", mark("<"), mark("="), mark(">"));
        assert_eq!(on("a\n", &patch), "b\n", "{count}");
    }
    assert_eq!(on("a\n", "x\n------- SEARCH\na\n=======\nb\n+++++++ REPLACE\n"), "b\n");
    assert_eq!(
        on("a\n", "x\n<<<<<<< SEARCH\na\n======\nb\n>>>>>>>> REPLACE\n"),
        "b\n",
        "of different lengths"
    );
    assert!(
        bad("x\n<<<< SEARCH\na\n====\nb\n>>>> REPLACE\n").what.contains("no line of this begins a patch")
    );
}

#[test]
fn a_stated_start_line_tells_places_apart() {
    let patch = "x\n<<<<<<< SEARCH\n:start_line:3\n-------\na\n=======\nb\n>>>>>>> REPLACE\n";
    assert_eq!(on("a\n-\na\n", patch), "a\n-\nb\n");
}

#[test]
fn marks_within_the_text_are_refused_unless_they_can_be_told() {
    let conflict = block("x", "a\n=======\nb\n", "c\n");
    assert!(bad(&conflict).what.contains("use the envelope"), "{}", bad(&conflict));
    let nested = block("x", "<<<<<<< SEARCH\n", "c\n");
    assert!(bad(&nested).what.contains("stands where none may"));
    assert_eq!(
        on("Title\n=====\n", &block("x", "Title\n=====\n", "Name\n=====\n")),
        "Name\n=====\n",
        "five signs where the marks have seven"
    );
    let escaped = block("x", "a\n\\=======\nb\n", "a\n\\>>>>>>> REPLACE\nb\n");
    assert_eq!(on("a\n=======\nb\n", &escaped), "a\n>>>>>>> REPLACE\nb\n");
    assert!(bad("x\n<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n").what.contains("stands where none may"));
    assert!(bad("x\n<<<<<<< SEARCH\na\n=======\n").what.contains("cut off"));
}

#[test]
fn line_endings_and_the_final_newline_stay() {
    assert_eq!(on("a\r\nb\r\n", &block("x", "a\n", "c\nd\n")), "c\r\nd\r\nb\r\n");
    assert_eq!(on("a\nb", &block("x", "b\n", "c\n")), "a\nc");
    assert_eq!(on("a\nb\n", &block("x", "b\n", "c\n").replace('\n', "\r\n")), "a\nc\n");
}
