//! Each entry of the class tables in each spelling that some file system takes for it, and the names beside it that stay
//! ordinary.

use cotenant_model::{ClassHit, ClassRules, GeneratedRule, PROTECTED, PathClass, RelPath, SENSITIVE};
use proptest::prelude::*;

fn hit(path: &str) -> ClassHit {
    ClassRules::default().classify(&RelPath::parse(path).unwrap_or_else(|error| panic!("{path:?}: {error}")))
}

/// A name that the rule covers.
fn example(rule: &str) -> String {
    match (rule.strip_suffix('*'), rule.strip_prefix('*')) {
        (Some(start), _) => format!("{start}.rest"),
        (_, Some(end)) => format!("some{end}"),
        _ => rule.to_owned(),
    }
}

fn entries() -> impl Iterator<Item = (&'static str, PathClass)> {
    let of = |class| move |rule: &&'static str| (*rule, class);
    PROTECTED.iter().map(of(PathClass::Protected)).chain(SENSITIVE.iter().map(of(PathClass::Sensitive)))
}

/// The same name as careless file systems spell it.
fn spellings(name: &str) -> Vec<String> {
    let middle = name.char_indices().nth(name.chars().count() / 2).map_or(0, |(at, _)| at);
    let (front, back) = name.split_at(middle);
    let title: String = name
        .chars()
        .enumerate()
        .map(|(n, ch)| if n % 2 == 0 { ch.to_ascii_uppercase() } else { ch })
        .collect();
    let mut all = vec![
        name.to_owned(),
        name.to_uppercase(),
        title,
        format!("{name}."),
        format!("{name} "),
        format!("{name}. . "),
        format!("{name}::$DATA"),
        format!("{name}:stream"),
        name.replace('k', "\u{212a}"),
        name.replace('s', "\u{17f}"),
        name.replace('/', "\\"),
    ];
    for unseen in [
        '\u{200b}', '\u{200c}', '\u{200d}', '\u{200e}', '\u{202e}', '\u{2060}', '\u{206f}', '\u{feff}',
        '\u{ad}',
    ] {
        all.push(format!("{front}{unseen}{back}"));
        all.push(format!("{unseen}{name}"));
        all.push(format!("{name}{unseen}"));
    }
    all
}

#[test]
fn each_entry_holds_in_every_spelling_at_any_depth() {
    for (rule, class) in entries() {
        for spelled in spellings(&example(rule)) {
            for path in [
                spelled.clone(),
                format!("sub/{spelled}"),
                format!("a/b/c/{spelled}"),
                format!("{spelled}/below"),
                format!("x/{spelled}/deep/er"),
                format!("x\\{spelled}"),
                format!("./x//{spelled}/"),
            ] {
                let found = hit(&path);
                assert_eq!((found.class, found.rule.as_str()), (class, rule), "{path:?}");
            }
        }
    }
}

#[test]
fn short_names_of_hidden_entries_hold_and_others_do_not() {
    for (rule, class) in entries() {
        let Some(bare) = rule.trim_end_matches('*').strip_prefix('.').filter(|bare| !bare.contains('/'))
        else {
            continue;
        };
        let stem: String = bare.chars().filter(|ch| *ch != '.').take(6).collect();
        for short in [
            format!("{stem}~1"),
            format!("{}~4", stem.to_uppercase()),
            format!("x/{stem}~1/y"),
            format!("{stem}~1.ext"),
        ] {
            let found = hit(&short);
            assert!(
                found.class >= class.min(PathClass::Sensitive) && !found.rule.is_empty(),
                "{short}: {found:?}"
            );
        }
        for other in [format!("{stem}~"), format!("{stem}~x"), format!("q{stem}q~1"), format!("{stem}-1")] {
            let found = hit(&other);
            let covered =
                entries().any(|(rule, _)| rule.strip_prefix('*').is_some_and(|end| other.ends_with(end)));
            assert!(found.class == PathClass::Ordinary || covered, "{other}: {found:?}");
        }
    }
}

#[test]
fn names_that_only_contain_an_entry_stay_ordinary() {
    for (rule, _) in entries() {
        let whole = !rule.starts_with('*') && !rule.ends_with('*');
        let bare = rule.trim_matches('*');
        let mut near = vec![format!("x{bare}x"), format!("a{bare}.txt"), format!("my-{bare}-notes")];
        if whole {
            near.extend([format!("{bare}x"), format!("{bare}-old"), format!("{bare}s")]);
        }
        if let Some(end) = rule.strip_prefix('*') {
            near.extend([end.to_owned(), end.trim_start_matches('.').to_owned(), format!("a{end}x")]);
        }
        if rule.contains('/') {
            let (first, second) = rule.split_once('/').unwrap();
            near.extend([
                first.to_owned(),
                second.to_owned(),
                format!("{first}/x/{second}"),
                format!("{second}/{first}"),
                rule.replace('/', ""),
            ]);
        }
        for name in near {
            let found = hit(&name);
            // Another entry may cover it: `.env-old` is what `.env*` is for.
            let other = entries().any(|(other, _)| {
                other != rule
                    && (other.strip_suffix('*').is_some_and(|start| name.starts_with(start))
                        || other
                            .strip_prefix('*')
                            .is_some_and(|end| name.len() > end.len() && name.ends_with(end))
                        || other == name)
            });
            assert!(found.class == PathClass::Ordinary || other, "{name}: {found:?} by {rule}");
        }
    }
    for name in ["a:.git", ":", "::", "~1", "~", ".", "...", " ", ". .", "\\"] {
        if let Ok(path) = RelPath::parse(name) {
            let class = ClassRules::default().classify(&path).class;
            assert!(class == PathClass::Ordinary, "{name:?} is {class:?}");
        }
    }
}

#[test]
fn the_stricter_of_two_classes_is_the_greater() {
    use PathClass::{Generated, Ordinary, Protected, Sensitive};
    assert!(Protected > Generated && Generated > Sensitive && Sensitive > Ordinary);
    let (a, b) = (ClassHit::of(Sensitive, "a"), ClassHit::of(Sensitive, "b"));
    assert_eq!(a.clone().max(b).rule, "a", "the first of equals");
    assert_eq!(ClassHit::ordinary().max(a.clone()), a);
    assert_eq!(a.clone().max(ClassHit::of(Protected, "p")).class, Protected);
    // A path under both tables is protected.
    assert_eq!(hit(".github/workflows/.env").class, Protected);
    assert_eq!(hit(".claude/CLAUDE.md").class, Protected);
    assert_eq!(hit("docs/AGENTS.md").class, Sensitive);
}

fn rules(add: &[&str], except: &[&str], generated: &[&str]) -> ClassRules {
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let rule = GeneratedRule { paths: owned(generated), from: Some("src.in".to_owned()), command: None };
    ClassRules::new(&owned(add), &owned(except), &[rule]).unwrap()
}

#[test]
fn settings_add_and_except_by_pattern() {
    use PathClass::{Generated, Ordinary, Protected, Sensitive};
    let rules = rules(
        &["vault/", "*.secret", "a/**/deep", "Mixed Case"],
        &[".env.example", "tests/**/*.pem", "vault/open"],
        &["gen/**", "*.pb.rs", "AGENTS.md"],
    );
    for (path, class) in [
        ("vault", Protected),
        ("vault/x/y", Protected),
        ("VAULT/x", Protected),
        ("vaults", Ordinary),
        ("x/vault", Ordinary),
        ("k.secret", Protected),
        ("k.secret/below", Protected),
        ("x/k.secret", Ordinary),
        ("a/deep", Protected),
        ("a/b/c/deep/er", Protected),
        ("mixed case/x", Protected),
        (".env.example", Ordinary),
        (".env.example/x", Ordinary),
        ("sub/.env.example", Protected),
        (".env", Protected),
        ("tests/a.pem", Ordinary),
        ("tests/a/b.pem", Ordinary),
        ("a.pem", Protected),
        ("vault/open", Ordinary),
        ("vault/open/x", Ordinary),
        ("vault/opened", Protected),
        ("gen/x/y", Generated),
        ("gen", Ordinary),
        ("x.pb.rs", Generated),
        ("gen/.env", Protected),
        ("AGENTS.md", Generated),
        ("sub/AGENTS.md", Sensitive),
    ] {
        let found = rules.classify(&RelPath::parse(path).unwrap());
        assert_eq!(found.class, class, "{path}: {found:?}");
        assert_eq!(found.rule.is_empty(), class == Ordinary, "{path}: {found:?}");
        assert_eq!(found.from.is_some(), class == Generated, "{path}");
    }
}

#[test]
fn a_pattern_that_does_not_parse_is_named() {
    for bad in ["a[", "{a,b", "x/**y[!"] {
        let error = ClassRules::new(&[bad.to_owned()], &[], &[]).unwrap_err();
        assert!(error.contains(bad), "{error}");
        assert!(ClassRules::new(&[], &[bad.to_owned()], &[]).is_err());
        let rule = GeneratedRule { paths: vec![bad.to_owned()], from: None, command: None };
        assert!(ClassRules::new(&[], &[], &[rule]).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is protected stays so, whatever stands above and below it, and whatever unseen characters are strewn in.
    #[test]
    fn nothing_around_a_protected_name_opens_it(
        index in 0..PROTECTED.len(),
        above in proptest::collection::vec("[a-z]{1,6}", 0..4),
        below in proptest::collection::vec("[a-z.]{1,6}", 0..3),
        strewn in proptest::collection::vec((0usize..12, proptest::sample::select(vec!['\u{200b}', '\u{2060}', '\u{feff}', '\u{202d}'])), 0..4),
    ) {
        let mut name: Vec<char> = example(PROTECTED[index]).chars().collect();
        for (at, unseen) in strewn {
            name.insert(at.min(name.len()), unseen);
        }
        let name: String = name.into_iter().collect();
        let below = below.into_iter().filter(|part| part != "." && part != "..");
        let path: Vec<String> = above.into_iter().chain([name]).chain(below).collect();
        prop_assert_eq!(hit(&path.join("/")).class, PathClass::Protected, "{:?}", path);
    }

    /// A walk judges a name as the whole path would be judged.
    #[test]
    fn a_walk_and_a_path_agree(parent in proptest::collection::vec("[a-z]{1,4}", 0..3), name in prop_oneof!["[a-z.~:\\\\]{1,8}", (0..PROTECTED.len()).prop_map(|index| example(PROTECTED[index]))]) {
        prop_assume!(name != "." && name != "..");
        let parent = parent.iter().fold(RelPath::root(), |path, part| path.join(part.as_bytes()));
        for rules in [ClassRules::default(), rules(&["a*"], &["*.pem"], &[])] {
            let path = parent.join(name.as_bytes());
            if rules.classify(&parent).class != PathClass::Protected {
                prop_assert_eq!(rules.protects(&parent, name.as_bytes()), rules.classify(&path).class == PathClass::Protected, "{:?}", path);
            }
        }
    }

    #[test]
    fn any_bytes_have_a_class(bytes in proptest::collection::vec(any::<u8>(), 1..30)) {
        if let Ok(path) = RelPath::from_bytes(&bytes) {
            let found = ClassRules::default().classify(&path);
            prop_assert_eq!(found.rule.is_empty(), found.class == PathClass::Ordinary);
        }
    }
}
