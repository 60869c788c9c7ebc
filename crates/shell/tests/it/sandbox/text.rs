//! What is made of bytes and of names: output as it is shown, and the environment of a command.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use cotenant_shell::run::{environment, plain};

#[test]
fn output_is_shown_as_a_terminal_would_have_left_it() {
    for (raw, shown) in [
        // Colours, titles, links, and what moves a cursor.
        ("\x1b[1;38;5;208mwarn\x1b[0m: x", "warn: x"),
        ("\x1b[38:2::255:0:0mred\x1b[m", "red"),
        ("\x1b[?25lhidden\x1b[?25h", "hidden"),
        ("\x1b[>4;1mkeys\x1b[<u", "keys"),
        ("\x1b[ q\x1b[!pcursor", "cursor"),
        ("\x1b]0;a title\x07$ ls", "$ ls"),
        ("\x1b]8;id=1;https://x.y\x1b\\text\x1b]8;;\x1b\\.", "text."),
        ("\x1bPq#0;2;0;0;0\x1b\\image", "image"),
        ("\x1b_private\x1b\\a\x1b^note\x1b\\b\x1bXstring\x1b\\c", "abc"),
        ("\x1b(B\x1b)0\x1b#8\x1b%Gset", "set"),
        ("\x1b7\x1b8\x1bM\x1b=\x1b>kept", "kept"),
        // What is no sequence, or not all of one.
        ("a\x1b", "a"),
        ("a\x1b[", "a"),
        ("a\x1b[1;2", "a"),
        ("a\x1b]0;b", "a"),
        ("a\x1b]0;b\nc\x07", "a\nc\\x07"),
        ("a\x1b[3\nm", "a\nm"),
        ("\x1b\x1b[1mx", "x"),
        ("\x1bé", "é"),
        // Lines that are written over.
        ("1%\r50%\r100%", "100%"),
        ("1%\r50%\r100%\r", "100%"),
        ("1%\r\n2%\r\n", "1%\n2%\n"),
        ("long line\rab", "ab"),
        ("\r\r\r", ""),
        ("a\r\r\nb", "a\nb"),
        ("\r\n\r\n", "\n\n"),
        ("a\x1b[K\rb\x1b[K", "b"),
        // Backspaces.
        ("ab\x08c", "ac"),
        ("\x08\x08a", "a"),
        ("é\x08e", "e"),
        ("N\x08NA\x08AM\x08ME\x08E", "NAME"),
        ("a\n\x08b", "a\nb"),
        ("\\x00\x08", "\\x0"),
        // Controls and what is no text.
        ("a\0b", "a\\x00b"),
        ("\x07\x0b\x0c\x7f", "\\x07\\x0b\\x0c\\x7f"),
        ("\u{9b}31m", "\\x9b31m"),
        ("\u{85}\u{9f}\u{a0}", "\\x85\\x9f\u{a0}"),
        ("tab\tstays", "tab\tstays"),
        ("", ""),
        ("\n", "\n"),
        ("\n\n", "\n\n"),
    ] {
        assert_eq!(plain(raw.as_bytes()), shown, "{raw:?}");
    }
    for (raw, shown) in [
        (&b"\xff\xfe"[..], "\\xff\\xfe"),
        (b"\xe2\x82", "\\xe2\\x82"),
        (b"a\xc3\n\xa9", "a\\xc3\n\\xa9"),
        (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
        (b"ok \xf0\x9f\x98\x80", "ok \u{1f600}"),
    ] {
        assert_eq!(plain(raw), shown, "{raw:?}");
    }
}

#[test]
fn plain_text_twice_is_plain_text_once() {
    for raw in ["a\x1b[1mb\rc\0\x08d", "\x1b[\x1b[31m", "x\x08\x1b]0;y\x07\\x1b[1m"] {
        let once = plain(raw.as_bytes());
        assert_eq!(plain(once.as_bytes()), once, "{raw:?}");
    }
}

/// The value of a name, where the daemon has `own` and the call gives `given`.
fn value(name: &str, own: &[(&str, &str)], named: &[&str], given: &[(&str, &str)]) -> Option<String> {
    let own = own.iter().map(|(name, value)| (OsString::from(*name), OsString::from(*value)));
    let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
    let given: Vec<(String, String)> =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    environment(own, &named, &given).into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

#[test]
fn each_name_comes_from_where_it_should() {
    for (name, taken) in [
        ("HOME", true),
        ("CARGO_HOME", true),
        ("VIRTUAL_ENV", true),
        ("LC_TIME", true),
        ("LC_", true),
        ("TZ", true),
        ("SSL_CERT_FILE", true),
        // Secrets, sockets, and what changes how programs are found or loaded.
        ("AWS_SECRET_ACCESS_KEY", false),
        ("GITHUB_TOKEN", false),
        ("ANTHROPIC_API_KEY", false),
        ("SSH_AUTH_SOCK", false),
        ("DBUS_SESSION_BUS_ADDRESS", false),
        ("LD_PRELOAD", false),
        ("LD_LIBRARY_PATH", false),
        ("BASH_ENV", false),
        ("ENV", false),
        ("PYTHONSTARTUP", false),
        ("GIT_DIR", false),
        ("GIT_CONFIG_GLOBAL", false),
        ("XDG_RUNTIME_DIR", false),
        ("HTTPS_PROXY", false),
        ("home", false),
        ("HOMEX", false),
        ("XLC_ALL", false),
    ] {
        let own = [(name, "own")];
        assert_eq!(value(name, &own, &[], &[]), taken.then(|| "own".to_owned()), "{name}");
        assert_eq!(value(name, &own, &[name], &[]).as_deref(), Some("own"), "{name}, named by the settings");
        assert_eq!(value(name, &[], &[name], &[]).as_deref(), None, "{name}, named and not there");
        assert_eq!(value(name, &own, &[name], &[(name, "given")]).as_deref(), Some("given"), "{name}, given");
    }
}

#[test]
fn what_is_always_set_yields_to_the_call_alone() {
    for (name, set) in [
        ("TERM", "dumb"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("EDITOR", "true"),
        ("GIT_EDITOR", "true"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("PIP_NO_INPUT", "1"),
    ] {
        assert_eq!(value(name, &[], &[], &[]).as_deref(), Some(set), "{name}");
        assert_eq!(value(name, &[(name, "own")], &[name], &[]).as_deref(), Some(set), "{name}");
        assert_eq!(value(name, &[], &[], &[(name, "given")]).as_deref(), Some("given"), "{name}");
        assert_eq!(value(name, &[], &[], &[(name, "")]).as_deref(), Some(""), "{name}");
    }
    for (name, fallback) in
        [("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), ("LANG", "C.UTF-8")]
    {
        assert_eq!(value(name, &[], &[], &[]).as_deref(), Some(fallback));
        assert_eq!(value(name, &[(name, "own")], &[], &[]).as_deref(), Some("own"));
    }
}

#[test]
fn names_are_sorted_each_once_and_none_that_no_environment_holds() {
    let odd = OsString::from_vec(b"\xff".to_vec());
    let own = [("LC_ALL".into(), odd.clone()), (odd, "x".into()), ("HOME".into(), "/h".into())];
    let given = [("A", "1"), ("A", "2"), ("", "x"), ("B=C", "x"), ("D", "\0"), ("E\0", "x"), ("F", "\n=")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let made = environment(own, &["B=C".to_owned()], &given);
    let names: Vec<&str> = made.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.is_sorted_by(|one, other| one < other), "{names:?}");
    for absent in ["", "B=C", "D", "E\0", "LC_ALL"] {
        assert!(!names.contains(&absent), "{absent:?}");
    }
    let get = |name: &str| made.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    assert_eq!((get("A"), get("F"), get("HOME")), (Some("2"), Some("\n="), Some("/h")));
}
