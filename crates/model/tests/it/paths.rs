//! Paths against a model that keeps a list of components and knows nothing else.

use cotenant_model::{FolderId, Folders, NAME_MAX, PATH_MAX, PathError, RelPath, WsPath};
use proptest::prelude::*;

/// What a text comes to: its components, or the first rule it breaks.
fn model(text: &str) -> Result<Vec<&str>, PathError> {
    if text.is_empty() {
        return Err(PathError::Empty);
    }
    if text.contains('\0') {
        return Err(PathError::Nul);
    }
    if text.starts_with('/') {
        return Err(PathError::Absolute);
    }
    if text.len() >= PATH_MAX {
        return Err(PathError::PathTooLong);
    }
    let mut kept: Vec<&str> = Vec::new();
    let (mut dots, mut left) = (false, false);
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                dots = true;
                left |= kept.pop().is_none();
            }
            name => kept.push(name),
        }
    }
    if dots {
        let inside = if kept.is_empty() { ".".to_owned() } else { kept.join("/") };
        return Err(PathError::DotDot { cleaned: (!left).then_some(inside) });
    }
    if kept.iter().any(|name| name.len() > NAME_MAX) {
        return Err(PathError::NameTooLong);
    }
    Ok(kept)
}

fn component() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,4}",
        2 => Just(".".to_owned()),
        1 => Just("..".to_owned()),
        2 => Just(String::new()),
        1 => prop_oneof![Just("..."), Just(".. "), Just("~"), Just("a:b"), Just("docs:"), Just("\\"), Just("é"), Just("-x"), Just("a\nb")].prop_map(str::to_owned),
        1 => (250usize..260).prop_map(|len| "n".repeat(len)),
    ]
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(component(), 0..8).prop_map(|parts| parts.join("/"))
}

fn shown(path: &RelPath) -> Vec<String> {
    path.components().map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_relative_path_is_its_components(text in text()) {
        match (RelPath::parse(&text), model(&text)) {
            (Ok(path), Ok(parts)) => {
                prop_assert_eq!(shown(&path), parts.clone());
                prop_assert_eq!(path.is_root(), parts.is_empty());
                prop_assert_eq!(path.leaf(), parts.last().map(|part| part.as_bytes()));
                prop_assert_eq!(RelPath::parse(&path.to_string()), Ok(path), "what is shown is read back");
            }
            (path, parts) => prop_assert_eq!(path.map(|path| shown(&path)), parts.map(|parts| parts.into_iter().map(str::to_owned).collect())),
        }
    }

    #[test]
    fn a_cleaned_path_is_clean(text in text()) {
        if let Err(PathError::DotDot { cleaned: Some(cleaned) }) = RelPath::parse(&text) {
            match RelPath::parse(&cleaned) {
                Ok(path) => prop_assert_eq!(path.to_string(), cleaned),
                Err(error) => prop_assert_eq!(error, PathError::NameTooLong),
            }
        }
    }

    #[test]
    fn joining_parents_and_containment_agree(parts in proptest::collection::vec("[ab]{1,2}", 0..5), other in proptest::collection::vec("[ab]{1,2}", 0..5)) {
        let of = |parts: &[String]| parts.iter().fold(RelPath::root(), |path, part| path.join(part.as_bytes()));
        let (path, ancestor) = (of(&parts), of(&other));
        prop_assert_eq!(path.is_within(&ancestor), parts.starts_with(&other));
        prop_assert_eq!(path.parent(), parts.split_last().map(|(_, above)| of(above)));
        let joined = if parts.is_empty() { ".".to_owned() } else { parts.join("/") };
        prop_assert_eq!(RelPath::parse(&joined), Ok(path.clone()));
        prop_assert_eq!(path.to_string(), joined);
        // The order of locks is total and does not depend on how a path came to be.
        prop_assert_eq!(path.cmp(&ancestor), parts.join("/").cmp(&other.join("/")));
        let at = |folder, path: &RelPath| WsPath { folder: FolderId(folder), path: path.clone() };
        prop_assert_eq!(at(1, &path).is_within(&at(1, &ancestor)), parts.starts_with(&other));
        prop_assert!(!at(1, &path).is_within(&at(2, &ancestor)), "another folder holds nothing of this one");
    }

    #[test]
    fn any_bytes_are_refused_or_kept(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(path) = RelPath::from_bytes(&bytes) {
            let kept: Vec<&[u8]> = path.components().collect();
            let wanted: Vec<&[u8]> = bytes.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
            prop_assert_eq!(kept, wanted);
            prop_assert!(!path.as_bytes().contains(&0) && !path.as_bytes().starts_with(b"/"));
            prop_assert_eq!(path.to_str().is_some(), std::str::from_utf8(path.as_bytes()).is_ok());
        }
    }

    #[test]
    fn every_way_to_write_a_place_leads_there(folder in 0usize..4, parts in proptest::collection::vec("[a-z]{1,3}", 0..4), slashes in 1usize..3, dot in any::<bool>(), end in any::<bool>()) {
        let folders = folders();
        let slash = "/".repeat(slashes);
        let rest = parts.join(&slash);
        let tail = if end { "/" } else { "" };
        let middle = if dot { "./" } else { "" };
        let (name, hosts): (&str, &[&str]) = [
            ("", &["/home/u/proj", "/home/u/alias"][..]),
            ("docs", &["/srv/docs"][..]),
            ("inner", &["/home/u/proj/sub"][..]),
            ("x", &["/"][..]),
        ][folder];
        let wanted = WsPath { folder: FolderId(u16::try_from(folder).unwrap()), path: parts.iter().fold(RelPath::root(), |path, part| path.join(part.as_bytes())) };
        // A host path of the root that is the inner folder's too belongs to the inner one.
        let stolen = |host: &str| folder == 0 && host == "/home/u/proj" && parts.first().is_some_and(|part| part == "sub");
        let below_all = folder == 3 && parts.first().is_some_and(|part| ["home", "srv"].contains(&part.as_str()));
        for host in hosts.iter().filter(|host| !stolen(host) && !below_all) {
            let text = format!("{host}{slash}{middle}{rest}{tail}");
            let wire = folders.parse(&text).unwrap();
            prop_assert_eq!(&wire.at, &wanted, "{}", text);
            prop_assert_eq!(wire.dir_only, text.ends_with('/'));
        }
        let by_name = if folder == 0 { format!("{middle}{rest}{tail}") } else { format!("{name}:{middle}{rest}{tail}") };
        if !(by_name.is_empty() || folder == 0 && by_name.starts_with('/')) {
            let wire = folders.parse(&by_name).unwrap();
            prop_assert_eq!(&wire.at, &wanted, "{}", by_name);
        }
        let again = folders.parse(&folders.show(&wanted)).unwrap();
        prop_assert_eq!(again.at, wanted, "what is shown is read back");
    }
}

/// The root under two names, a folder beside it, one below it, and one above all.
fn folders() -> Folders {
    let mut folders = Folders::default();
    folders.add("", vec![b"/home/u/proj".to_vec(), b"/home/u/alias".to_vec()]);
    folders.add("docs", vec![b"/srv/docs".to_vec()]);
    folders.add("inner", vec![b"/home/u/proj/sub".to_vec()]);
    folders.add("x", vec![b"/".to_vec()]);
    folders
}

#[test]
fn folders_are_known_by_name_and_number() {
    let folders = folders();
    assert_eq!((folders.len(), folders.is_empty()), (4, false));
    assert_eq!(folders.by_name("docs"), Some(FolderId(1)));
    assert_eq!(folders.by_name(""), None, "the root goes by no name");
    assert_eq!(folders.by_name("DOCS"), None);
    assert_eq!(folders.name(FolderId(9)), "");
    assert!(Folders::default().is_empty());
    assert_eq!(Folders::default().parse("/x"), Err(PathError::Absolute));
}

#[test]
fn the_longest_folder_wins_and_no_prefix_does() {
    let folders = folders();
    for (text, shown) in [
        ("/home/u/proj/sub/a", "inner:a"),
        ("/home/u/proj/subs/a", "subs/a"),
        ("/home/u/proj/a/sub", "a/sub"),
        ("/home/u/alias/sub", "sub"),
        ("/etc/passwd", "x:etc/passwd"),
        ("/", "x:."),
        ("inner:sub", "inner:sub"),
        ("docs:docs:a", "docs:docs:a"),
        ("docs:a:b", "docs:a:b"),
        (":a", ":a"),
        ("Docs:a", "Docs:a"),
        ("a/docs:b", "a/docs:b"),
    ] {
        assert_eq!(folders.show(&folders.parse(text).unwrap().at), shown, "{text}");
    }
    for (text, error) in [
        ("docs:../a", PathError::DotDot { cleaned: None }),
        ("docs:a/../b", PathError::DotDot { cleaned: Some("b".to_owned()) }),
        ("/srv/docs/..", PathError::DotDot { cleaned: None }),
        ("/srv\0/docs", PathError::Nul),
        ("", PathError::Empty),
    ] {
        assert_eq!(folders.parse(text), Err(error), "{text:?}");
    }
    assert_eq!(folders.parse(&format!("/srv/docs/{}", "a/".repeat(3000))), Err(PathError::PathTooLong));
}

#[test]
fn the_limits_are_those_of_the_system() {
    let name = |len: usize| RelPath::parse(&"n".repeat(len)).is_ok();
    assert!(name(NAME_MAX) && !name(NAME_MAX + 1));
    assert!(
        RelPath::parse(&"é".repeat(NAME_MAX / 2)).is_ok()
            && RelPath::parse(&"é".repeat(NAME_MAX / 2 + 1)).is_err(),
        "bytes, not characters"
    );
    let deep = |bytes: usize| RelPath::parse(&"a/".repeat(bytes / 2)).map(|path| path.components().count());
    assert_eq!(deep(PATH_MAX - 2), Ok(PATH_MAX / 2 - 1));
    assert_eq!(deep(PATH_MAX), Err(PathError::PathTooLong));
}

#[test]
fn each_error_is_a_sentence_without_the_path() {
    for error in [
        PathError::Empty,
        PathError::Nul,
        PathError::DotDot { cleaned: Some("secret".to_owned()) },
        PathError::Absolute,
        PathError::NameTooLong,
        PathError::PathTooLong,
    ] {
        let text = error.to_string();
        assert!(text.len() < 80 && !text.contains("secret") && !text.ends_with('.'), "{text}");
    }
}
