//! `.editorconfig`: which properties reach a path.

use cotenant_text::{EditorConfig, Encoding, Eol, Want, compose, properties};

fn of(text: &str, path: &str) -> EditorConfig {
    properties(&[("", text)], path)
}

/// Whether a section with this glob reaches the path.
fn reaches(glob: &str, path: &str) -> bool {
    of(&format!("[{glob}]\nend_of_line = crlf\n"), path).end_of_line.is_some()
}

#[test]
fn globs_match_as_the_dialect_says() {
    let rows: &[(&str, &[&str], &[&str])] = &[
        ("*", &["a", "d/a", ".env", "d/e/f.rs"], &[]),
        ("*.rs", &["a.rs", "d/e/a.rs", ".rs"], &["a.rsx", "a.rs/b"]),
        ("Makefile", &["Makefile", "d/Makefile"], &["Makefile.am", "xMakefile"]),
        ("/a.rs", &["a.rs"], &["d/a.rs"]),
        ("src/*.rs", &["src/a.rs"], &["a.rs", "src/d/a.rs", "x/src/a.rs"]),
        ("src/**.rs", &["src/a.rs", "src/d/e/a.rs"], &["a.rs"]),
        ("src/**/a.rs", &["src/a.rs", "src/d/e/a.rs"], &["srca.rs"]),
        ("**/a.rs", &["a.rs", "d/e/a.rs"], &["ba.rs"]),
        ("a?.c", &["ab.c", "d/aé.c"], &["a.c", "abc.c"]),
        ("[ab].c", &["a.c", "b.c"], &["c.c"]),
        ("[!ab].c", &["c.c"], &["a.c"]),
        ("[a-c]1", &["b1"], &["d1"]),
        ("[ab", &["[ab"], &["a"]),
        ("a[/b]c", &["a[/b]c"], &["abc"]),
        ("*.{js,ts}", &["a.js", "d/a.ts"], &["a.py", "a.jsts"]),
        ("{src,test}/*.{c,h}", &["src/a.c", "test/b.h"], &["lib/a.c"]),
        ("{a,{b,c}d}", &["a", "bd", "cd"], &["b", "ad"]),
        ("{single}", &["{single}"], &["single"]),
        ("{a,}b", &["ab", "b"], &["bb"]),
        ("a{1..12}", &["a1", "a12"], &["a0", "a13", "a"]),
        ("n{-3..3}", &["n-3", "n0"], &["n-4", "n4"]),
        ("{a,b", &["{a,b"], &["a"]),
        ("a\\*b", &["a*b"], &["axb"]),
        ("", &[], &["a"]),
    ];
    for (glob, hits, misses) in rows {
        for path in *hits {
            assert!(reaches(glob, path), "{glob} reaches {path}");
        }
        for path in *misses {
            assert!(!reaches(glob, path), "{glob} does not reach {path}");
        }
    }
}

#[test]
fn hostile_globs_end() {
    let many = "*a".repeat(100);
    assert!(!reaches(&many, &"a".repeat(99)));
    assert!(!reaches(&"{".repeat(1000), "a"));
    assert!(!reaches(&format!("{}{}", "{".repeat(500), "}".repeat(500)), "a"));
    assert!(!reaches(&format!("{}x{}", "{a,".repeat(300), "}".repeat(300)), "b"));
    assert!(!reaches(&"*".repeat(100_000), "b"), "too long to be looked at");
}

#[test]
fn later_sections_and_nearer_files_win() {
    let text = "; first\nroot = true\n[*]\nend_of_line = lf\ncharset = utf-8\n\n[*.bat]\nend_of_line = CRLF\n# last\n";
    assert_eq!(of(text, "a.sh").end_of_line, Some(Eol::Lf));
    assert_eq!(of(text, "d/a.bat").end_of_line, Some(Eol::Crlf));
    assert_eq!(of(text, "d/a.bat").charset, Some(Encoding::Utf8));
    let near = "[*.bat]\nend_of_line = lf\ncharset = latin1\n";
    let both = properties(&[("d", near), ("", text)], "d/a.bat");
    assert_eq!((both.end_of_line, both.charset), (Some(Eol::Lf), Encoding::from_label("latin1")));
    let elsewhere = properties(&[("d", near), ("", text)], "dd/a.bat");
    assert_eq!(elsewhere.end_of_line, Some(Eol::Crlf));
}

#[test]
fn root_ends_the_search() {
    let outer = "[*]\nend_of_line = crlf\n";
    assert_eq!(properties(&[("d", "root=TRUE\n"), ("", outer)], "d/a"), EditorConfig::default());
    assert_eq!(properties(&[("d", "[*]\nroot = true\n"), ("", outer)], "d/a").end_of_line, Some(Eol::Crlf));
}

#[test]
fn values_are_read_leniently_and_nonsense_is_nothing() {
    let found = of(
        "\u{feff}[*]\nCharset=UTF-8-BOM ; with a mark\nInsert_Final_Newline = False\nend_of_line = cr\nindent_size = 4\nno equals sign\n",
        "a",
    );
    assert_eq!(
        found,
        EditorConfig {
            charset: Some(Encoding::Utf8),
            bom: Some(true),
            end_of_line: None,
            insert_final_newline: Some(false)
        }
    );
    let unset = of(
        "[*]\nend_of_line=crlf\ncharset=utf-16le\ninsert_final_newline=true\n[a]\nend_of_line=unset\ncharset=unset\ninsert_final_newline=unset\n",
        "a",
    );
    assert_eq!(unset, EditorConfig::default());
    assert_eq!(of("[*]\nend_of_line=crlf\nend_of_line=nonsense\n", "a").end_of_line, Some(Eol::Crlf));
    assert_eq!(of("end_of_line=crlf\n", "a"), EditorConfig::default(), "before any section");
}

#[test]
fn the_wish_of_a_project_shapes_a_new_file() {
    let text = "[*.bat]\nend_of_line = crlf\ncharset = latin1\ninsert_final_newline = false\n[*.txt]\ncharset = utf-16be\n[*.csv]\ncharset = utf-8-bom\n";
    let write = |path: &str, content: &str| compose(content, None, &of(text, path).want()).unwrap();
    assert_eq!(write("a.bat", "é\nb"), b"\xe9\r\nb");
    assert_eq!(write("a.txt", "a\n"), b"\xfe\xff\0a\0\n");
    assert_eq!(write("a.csv", "a"), b"\xef\xbb\xbfa\n");
    assert_eq!(of(text, "a.rs").want(), Want::default());
}
