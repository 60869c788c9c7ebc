//! Edits, whole files and new paths: every byte outside of what was asked stays, and what may not be written is not.

use cotenant_model::{GeneratedRule, Profile, Settings};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{Fixture, fact, notices};

fn edits(path: &str, list: &[(&str, &str)]) -> Value {
    let list: Vec<Value> = list.iter().map(|(old, new)| json!({"old_text": old, "new_text": new})).collect();
    json!({"path": path, "edits": list})
}

fn seen(f: &Fixture, path: &str, bytes: impl AsRef<[u8]>) {
    f.put(path, bytes);
    f.ok("read_file", json!({"path": path}));
}

#[test]
fn each_edit_sees_the_result_of_the_one_before() {
    let f = Fixture::new();
    seen(&f, "a", "one\ntwo\nthree\n");
    let done = f.ok("edit_file", edits("a", &[("one", "uno"), ("uno\ntwo", "1\n2"), ("three", "3")]));
    assert_eq!(f.get("a"), "1\n2\n3\n");
    assert!(done.contains("match=exact change=c1"), "{done}");
    assert_eq!(f.changes().len(), 1, "several edits are one change");
}

#[test]
fn one_edit_at_fault_stops_them_all_and_is_named() {
    let f = Fixture::new();
    let text = "a a\nb\n";
    seen(&f, "a", text);
    for (list, code, item) in [
        (vec![("b", "B"), ("a", "A")], "TEXT_AMBIGUOUS", "2"),
        (vec![("b", "B"), ("zzzzz", "A")], "TEXT_NOT_FOUND", "2"),
        (vec![("b", "b"), ("a a", "A")], "NOTHING_TO_CHANGE", "1"),
        (vec![("b", "B"), ("b\n", "x")], "TEXT_NOT_FOUND", "2"),
    ] {
        let refusal = f.no(code, "edit_file", edits("a", &list));
        assert_eq!(fact(&refusal, "item").as_deref(), Some(item), "{refusal}");
        assert_eq!(f.get("a"), text, "{refusal}");
    }
    let empty = f.no("ALREADY_EXISTS", "edit_file", edits("a", &[("", "x"), ("b", "B")]));
    assert!(empty.contains("old_text is empty"), "{empty}");
    f.no("BAD_INPUT", "edit_file", edits("a", &[("b", "B"), ("", "x")]));
    f.no("BAD_INPUT", "edit_file", json!({"path": "a", "edits": []}));
    f.no("BAD_INPUT", "edit_file", json!({"path": "a", "edits": [{"old_text": "b"}]}));
    f.no("BAD_INPUT", "edit_file", json!({"path": "a", "edits": ["b"]}));
    f.no("BAD_INPUT", "edit_file", json!({"path": "a", "old_text": "b"}));
    f.no("BAD_INPUT", "edit_file", json!({"path": "a"}));
    f.no(
        "BAD_INPUT",
        "edit_file",
        json!({"path": "a", "old_text": "b", "new_text": "B", "edits": [{"old_text": "b", "new_text": "c"}]}),
    );
    assert_eq!((f.get("a").as_str(), f.changes().len()), (text, 0));
}

#[test]
fn edits_by_other_clients_names_are_understood() {
    for item in [
        json!({"oldText": "b", "newText": "B"}),
        json!({"old_string": "b", "new_string": "B"}),
        json!({"old_str": "b", "new_str": "B", "replaceAll": true}),
        json!({"old_text": "b", "new_text": "B", "line": 2}),
    ] {
        let f = Fixture::new();
        seen(&f, "a", "a\nb\n");
        f.ok("edit_file", json!({"filePath": "a", "edits": [item]}));
        assert_eq!(f.get("a"), "a\nB\n", "{item}");
    }
    let f = Fixture::new();
    seen(&f, "a", "a\nb\n");
    f.ok("edit_file", json!({"path": "a", "edits": "[{\"old_text\":\"b\",\"new_text\":\"B\"}]"}));
    f.ok("edit_file", json!({"path": "a", "edits": {"old_text": "a", "new_text": "A"}}));
    assert_eq!(f.get("a"), "A\nB\n");
}

#[test]
fn an_empty_old_text_creates_and_the_rest_applies_to_that() {
    let f = Fixture::new();
    let made = f.ok("edit_file", edits("d/a", &[("", "one\ntwo\n"), ("two", "2")]));
    assert!(made.contains("created=yes lines=2 bytes=6 directories=1 change=c1"), "{made}");
    assert_eq!(f.get("d/a"), "one\n2\n");
    f.no("TEXT_NOT_FOUND", "edit_file", edits("e/a", &[("", "one\n"), ("zzz", "2")]));
    assert!(!f.has("e"), "nothing of it stands");
    f.no("NOT_FOUND", "edit_file", json!({"path": "d/b", "old_text": "x", "new_text": "y"}));
    f.ok("edit_file", json!({"path": "d/empty", "old_text": "", "new_text": ""}));
    assert_eq!(f.bytes("d/empty"), b"");
}

#[test]
fn which_of_several_is_told_by_line_or_all() {
    let f = Fixture::new();
    seen(&f, "a", "x\nx x\nx\n");
    let refusal = f.no(
        "TEXT_AMBIGUOUS path=a count=4",
        "edit_file",
        json!({"path": "a", "old_text": "x", "new_text": "y"}),
    );
    f.ok("edit_file", json!({"path": "a", "old_text": "x", "new_text": "y", "line": 3}));
    assert_eq!(f.get("a"), "x\nx x\ny\n");
    let two = f.call("edit_file", json!({"path": "a", "old_text": "x", "new_text": "y", "line": 2}));
    assert!(two.is_error, "line 2 has two of them: {}", two.text);
    f.call("edit_file", json!({"path": "a", "old_text": "x", "new_text": "y", "line": 99}));
    assert_eq!(f.get("a"), "x\nx x\ny\n");
    let token = refusal.split("\"token\":\"").nth(1).unwrap().split('"').next().unwrap();
    let all = f.ok("retry", json!({"token": token, "set": {"replace_all": true}}));
    assert_eq!((fact(&all, "replaced").as_deref(), f.get("a").as_str()), (Some("3"), "y\ny y\ny\n"));
}

#[test]
fn the_form_of_a_file_outlives_its_edits() {
    let f = Fixture::new();
    f.put(".editorconfig", "root = true\n[*.l1]\ncharset = latin1\n");
    let le = |text: &str| -> Vec<u8> {
        [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
    };
    for (name, before, after) in [
        ("crlf", b"a\r\nb\r\n".to_vec(), b"a\r\nB\r\nB2\r\n".to_vec()),
        ("cut", b"a\nb".to_vec(), b"a\nB\nB2".to_vec()),
        ("mixed", b"a\r\nb\nc\r\n".to_vec(), b"a\r\nB\nB2\nc\r\n".to_vec()),
        ("bom", b"\xef\xbb\xbfa\nb\n".to_vec(), b"\xef\xbb\xbfa\nB\nB2\n".to_vec()),
        ("x.l1", b"\xe9\nb\n".to_vec(), b"\xe9\nB\nB2\n".to_vec()),
        ("odd", b"\xff\xe9\x80\nb\n".to_vec(), b"\xff\xe9\x80\nB\nB2\n".to_vec()),
        ("le", le("é\r\nb\r\n"), le("é\r\nB\r\nB2\r\n")),
    ] {
        seen(&f, name, &before);
        f.ok("edit_file", json!({"path": name, "old_text": "b", "new_text": "B\nB2"}));
        assert_eq!(f.bytes(name), after, "{name}");
        f.ok("undo", json!({}));
        assert_eq!(f.bytes(name), before, "{name}: taken back to the byte");
    }
}

#[test]
fn a_new_file_is_written_as_the_settings_of_its_folder_say() {
    let f = Fixture::new();
    f.put(
        ".editorconfig",
        "root = true\n[*]\ninsert_final_newline = true\n[*.bat]\nend_of_line = crlf\n[*.l1]\ncharset = latin1\n[*.bom]\ncharset = utf-8-bom\n[*.raw]\ninsert_final_newline = false\n",
    );
    for (name, content, bytes) in [
        ("a.txt", "x", &b"x\n"[..]),
        ("a.bat", "x\ny", b"x\r\ny\r\n"),
        ("a.l1", "é\n", b"\xe9\n"),
        ("a.bom", "é\n", b"\xef\xbb\xbf\xc3\xa9\n"),
        ("a.raw", "x\n", b"x\n"),
        ("b.raw", "x", b"x"),
    ] {
        f.ok("write_file", json!({"path": name, "content": content}));
        assert_eq!(f.bytes(name), bytes, "{name}");
    }
    let odd = f.no("NOT_ENCODABLE", "write_file", json!({"path": "b.l1", "content": "ok\n→\n"}));
    assert!(odd.contains("U+2192") && odd.contains("line 2, column 1"), "{odd}");
    assert!(!f.has("b.l1"));
}

#[test]
fn an_overwrite_keeps_the_old_form_unless_told_otherwise() {
    let f = Fixture::new();
    let over = |more: Value| {
        let mut args = json!({"path": "a", "content": "x\ny\n", "overwrite": true});
        args.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        args
    };
    for (more, bytes) in [
        (json!({}), &b"\xef\xbb\xbfx\r\ny\r\n"[..]),
        (json!({"eol": "lf"}), b"\xef\xbb\xbfx\ny\n"),
        (json!({"eol": "lf", "encoding": "utf-8"}), b"x\ny\n"),
    ] {
        seen(&f, "a", b"\xef\xbb\xbfold\r\n");
        let answer = f.call("write_file", over(more.clone()));
        assert!(!answer.is_error, "{more}: {}", answer.text);
        // An encoding that is named says nothing of the mark.
        let written = f.bytes("a");
        let unmarked = written.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&written);
        assert_eq!(unmarked, bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes), "{more}");
    }
    f.no("BAD_INPUT", "write_file", over(json!({"encoding": "klingon"})));
    f.no("BAD_INPUT", "write_file", over(json!({"eol": "cr"})));
}

#[test]
fn a_link_is_edited_through_and_stays_a_link() {
    let f = Fixture::new();
    f.put("real/a", "one\n");
    std::os::unix::fs::symlink("real/a", f.path("link")).unwrap();
    f.ok("read_file", json!({"path": "link"}));
    let done = f.ok("edit_file", json!({"path": "link", "old_text": "one", "new_text": "two"}));
    assert_eq!(fact(&done, "resolved").as_deref(), Some("real/a"), "{done}");
    assert_eq!(f.get("real/a"), "two\n");
    assert!(std::fs::symlink_metadata(f.path("link")).unwrap().is_symlink());
    // The receipt is the file's, whatever name it goes by.
    f.ok("edit_file", json!({"path": "real/a", "old_text": "two", "new_text": "three"}));
    std::os::unix::fs::symlink("../.env", f.path("real/secret")).unwrap();
    f.put(".env", "K=1\n");
    f.no("PATH_PROTECTED", "read_file", json!({"path": "real/secret"}));
    f.no("PATH_PROTECTED", "write_file", json!({"path": "real/secret", "content": "x", "overwrite": true}));
    assert_eq!(f.get(".env"), "K=1\n");
}

#[test]
fn a_generated_file_names_its_source_and_its_command() {
    let rule = GeneratedRule {
        paths: vec!["gen/**".to_owned()],
        from: Some("api.proto".to_owned()),
        command: Some("buf generate".to_owned()),
    };
    let f =
        Fixture::with(Settings { profile: Profile::Trusting, generated: vec![rule], ..Settings::default() });
    f.put(".gitattributes", "*.lock linguist-generated\nkept.lock -linguist-generated\n");
    seen(&f, "gen/a", "x\n");
    seen(&f, "b.lock", "x\n");
    seen(&f, "kept.lock", "x\n");
    let ours = f.no(
        "PATH_READ_ONLY path=gen/a",
        "edit_file",
        json!({"path": "gen/a", "old_text": "x", "new_text": "y"}),
    );
    assert!(ours.contains("api.proto") && ours.contains("buf generate"), "{ours}");
    let theirs = f.no(
        "PATH_READ_ONLY path=b.lock",
        "write_file",
        json!({"path": "b.lock", "content": "y", "overwrite": true}),
    );
    assert!(theirs.contains(".gitattributes"), "{theirs}");
    f.no("PATH_READ_ONLY", "write_file", json!({"path": "gen/new", "content": "y"}));
    f.no("PATH_READ_ONLY", "create_path", json!({"path": "gen/dir", "kind": "directory"}));
    f.ok("edit_file", json!({"path": "kept.lock", "old_text": "x", "new_text": "y"}));
    assert!(fact(&f.ok("read_file", json!({"path": "gen/a"})), "generated").is_some());
}

#[test]
fn paths_are_created_once_with_what_is_missing_above() {
    let f = Fixture::new();
    let dir = f.ok("create_path", json!({"path": "a/b/c", "kind": "directory"}));
    assert!(dir.starts_with("path=a/b/c/ created=yes directories=3 change=c1"), "{dir}");
    f.ok("create_path", json!({"path": "a/b/c/f", "content": "x"}));
    assert_eq!(f.get("a/b/c/f"), "x\n");
    f.ok("create_path", json!({"path": "a/none"}));
    assert_eq!(f.bytes("a/none"), b"");
    f.ok("create_path", json!({"path": "d/e/"}));
    assert!(f.path("d/e").is_dir());
    for (path, code) in [
        ("a/b", "ALREADY_EXISTS"),
        ("a/b/", "ALREADY_EXISTS"),
        ("a/none", "ALREADY_EXISTS"),
        ("a/none/x", "NOT_A_DIRECTORY"),
        (".", "ALREADY_EXISTS"),
        ("/", "PATH_OUTSIDE"),
        ("", "BAD_INPUT"),
    ] {
        let answer = f.call("create_path", json!({"path": path}));
        assert!(answer.is_error && answer.text.starts_with(code), "{path:?}: {}", answer.text);
    }
    f.no("ALREADY_EXISTS", "create_path", json!({"path": "a", "kind": "directory"}));
    f.no("BAD_INPUT", "create_path", json!({"path": "q", "kind": "socket"}));
}

#[test]
fn what_was_sent_otherwise_than_written_is_said() {
    let f = Fixture::new();
    seen(&f, "a", "fn a() {}\nfn b() {}\n");
    let echoed = f.ok(
        "edit_file",
        json!({"path": "a", "old_text": "1|fn a() {}\n2|fn b() {}", "new_text": "1|fn c() {}"}),
    );
    assert_eq!(f.get("a"), "fn c() {}\n", "{echoed}");
    assert!(notices(&echoed)[0].contains("not byte for byte"), "{echoed}");
    seen(&f, "d", "a\r\nb\r\n");
    f.ok("edit_file", json!({"path": "d", "old_text": "a\nb", "new_text": "c\nd"}));
    assert_eq!(f.get("d"), "c\r\nd\r\n");
    let same = f.no(
        "NOTHING_TO_CHANGE",
        "edit_file",
        json!({"path": "d", "old_text": "c\nd", "new_text": "c\r\nd"}),
    );
    assert!(same.contains("line endings only"), "{same}");
}

#[test]
fn a_large_result_is_shown_in_part() {
    let f = Fixture::new();
    seen(&f, "a", "start\nend\n");
    let many: String = (0..100).map(|n| format!("line {n}\n")).collect();
    let done = f.ok("edit_file", json!({"path": "a", "old_text": "start\n", "new_text": many}));
    assert_eq!(fact(&done, "edited").as_deref(), Some("1-100"), "{done}");
    assert!(crate::fixture::body(&done).lines().count() <= 12, "{done}");
    seen(&f, "b", "x\ny\n".repeat(50));
    let spread =
        f.ok("edit_file", json!({"path": "b", "old_text": "x", "new_text": "z", "replace_all": true}));
    assert!(fact(&spread, "edited").unwrap().ends_with(",+42") && spread.len() < 600, "{spread}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Several edits against the naive model: each replaces the one occurrence in what the one before left, or none is done.
    #[test]
    fn edits_do_what_string_replacement_does(
        lines in proptest::collection::vec("[abc]{1,3}", 1..8),
        edits in proptest::collection::vec(("[abc]{1,3}", "[xyz]{0,3}", any::<bool>()), 1..4),
    ) {
        let f = Fixture::new();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        seen(&f, "m", &text);
        let mut model = Some(text.clone());
        for (old, new, all) in &edits {
            model = model.and_then(|text| match text.matches(old.as_str()).count() {
                0 => None,
                1 => Some(text.replacen(old.as_str(), new, 1)),
                // Occurrences that overlap are more than one, however they are counted.
                _ if *all => Some(text.replace(old.as_str(), new)),
                _ => None,
            });
        }
        let list: Vec<Value> = edits.iter().map(|(old, new, all)| json!({"old_text": old, "new_text": new, "replace_all": all})).collect();
        let answer = f.call("edit_file", json!({"path": "m", "edits": list}));
        let overlaps = edits.iter().any(|(old, ..)| old.len() > 1 && old.bytes().all(|byte| Some(byte) == old.bytes().next()));
        if !overlaps {
            prop_assert_eq!(!answer.is_error, model.as_ref().is_some_and(|model| *model != text), "{}", answer.text);
        }
        let wanted = if answer.is_error { text } else { model.unwrap_or_default() };
        prop_assert!(overlaps || f.get("m") == wanted, "{:?}", f.get("m"));
    }

    /// What is written is read back: any text, any ending.
    #[test]
    fn what_is_written_is_what_is_read(text in "[a-zé😀\t \\n]{0,80}", crlf in any::<bool>()) {
        let f = Fixture::new();
        let eol = if crlf { "crlf" } else { "lf" };
        f.ok("write_file", json!({"path": "w", "content": text, "eol": eol}));
        let wanted = if text.is_empty() || text.ends_with('\n') { text.clone() } else { format!("{text}\n") };
        let stored = if crlf { wanted.replace('\n', "\r\n") } else { wanted.clone() };
        prop_assert_eq!(f.get("w"), stored);
        let read = f.ok("read_file", json!({"path": "w", "line_numbers": false}));
        if !wanted.is_empty() {
            prop_assert_eq!(crate::fixture::body(&read) + "\n", wanted);
        }
    }
}
