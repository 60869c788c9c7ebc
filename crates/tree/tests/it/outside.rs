//! Names from outside and what stands outside of them: paths by other links, twins, strays, roots made again, probes.

use std::path::Path;

use cotenant_model::{FolderId, FolderSpec, PathError};
use cotenant_tree::{RootState, Tree};

use crate::fixture::{exists, root_path, shown, texts, ws};

fn parsed(tree: &Tree, text: &str) -> Result<String, PathError> {
    tree.parse(text).map(|wire| tree.folders().show(&wire.at))
}

#[test]
fn c061_a_path_through_another_link_to_the_root_means_the_same_file() {
    let ws =
        ws("mkdir -p src; echo x > src/a; ln -s \"$W\" ../alias; ln -s src inside; ln -s /etc ../etc-alias");
    let base = ws.scratch.base().display().to_string();
    let root = ws.scratch.root().display().to_string();
    for (text, meant) in [
        (format!("{root}/src/a"), "src/a"),
        (format!("{base}/alias/src/a"), "src/a"),
        (format!("{base}/alias"), "."),
        (format!("{base}/alias/not/there"), "not/there"),
        (format!("{base}//alias//src/"), "src"),
        // The link inside is followed beneath the root like any other, not here.
        (format!("{base}/alias/inside/a"), "inside/a"),
    ] {
        assert_eq!(parsed(&ws.tree, &text).as_deref(), Ok(meant), "{text}");
    }
    assert!(ws.tree.parse(&format!("{base}/alias/src/")).unwrap().dir_only);
    for text in
        [format!("{base}/etc-alias/passwd"), "/etc/passwd".into(), format!("{root}-evil/f"), base.clone()]
    {
        assert_eq!(parsed(&ws.tree, &text), Err(PathError::Absolute), "{text}");
    }
    let up = format!("{base}/alias/../alias/src/a");
    assert!(matches!(parsed(&ws.tree, &up), Err(PathError::DotDot { .. } | PathError::Absolute)), "{up}");
}

#[test]
fn a_further_folder_is_known_by_its_identity_too() {
    let ws = ws("mkdir ../docs; echo x > ../docs/a; ln -s docs ../manual");
    let base = ws.scratch.base().to_path_buf();
    let docs =
        FolderSpec { name: "docs".into(), path: base.join("docs"), access: cotenant_model::Access::Read };
    let tree = Tree::open(&ws.scratch.root(), &[docs], cotenant_model::ClassRules::default()).unwrap();
    let text = |path: &Path| path.display().to_string();
    assert_eq!(parsed(&tree, &text(&base.join("manual/a"))).as_deref(), Ok("docs:a"));
    assert_eq!(parsed(&tree, &text(&base.join("docs/a"))).as_deref(), Ok("docs:a"));
    assert_eq!(parsed(&tree, "docs:a").as_deref(), Ok("docs:a"));
}

#[test]
fn c022_a_twin_is_the_same_name_in_another_unicode_form() {
    let ws = ws("printf x > \"$(printf 'a\\314\\210.txt')\"; touch plain.txt b.txt; mkdir d");
    let twin = |path: &str| ws.tree.twin(&root_path(path)).map(|twin| twin.path.to_string());
    assert_eq!(twin("\u{e4}.txt").as_deref(), Some("a\u{308}.txt"));
    assert_eq!(twin("a\u{308}.txt"), None, "it is no twin of itself");
    for path in ["plain.txt", "\u{e9}.txt", "d/\u{e4}.txt", "gone/\u{e4}.txt"] {
        assert_eq!(twin(path), None, "{path}");
    }
}

#[test]
fn strays_are_the_temporary_names_of_commits_and_nothing_else() {
    let ws = ws("mkdir -p src/deep node_modules .git; echo node_modules > .gitignore; \
         touch .cotenant-0123456789abcdef src/deep/.cotenant-ffffffffffffffff node_modules/.cotenant-00000000000000aa \
         .git/.cotenant-00000000000000bb src/.cotenant-notes src/.cotenant-0123456789abcde src/cotenant-0123456789abcdef");
    let mut strays = texts(&ws.tree.strays());
    strays.sort();
    assert_eq!(
        strays,
        [
            ".cotenant-0123456789abcdef",
            "node_modules/.cotenant-00000000000000aa",
            "src/deep/.cotenant-ffffffffffffffff"
        ]
    );
    assert!(exists(&ws.scratch.path(".cotenant-0123456789abcdef")), "looking removes nothing");
    let listed = shown(&ws.list(".", None));
    assert!(listed.contains(&"src/.cotenant-notes".to_owned()), "{listed:?}");
    assert!(strays.iter().all(|stray| !listed.contains(stray)), "nobody else is shown them: {listed:?}");
    assert_eq!(ws.names(".cotenant-ffff*").total, 0, "nor do they find them");
}

#[test]
fn a_probe_leaves_no_trace() {
    let ws = ws("touch f");
    let probe = ws.tree.probe(FolderId::ROOT);
    assert!(
        probe.unnamed_files && probe.leases,
        "what the scratch folder's file system is known to have: {probe:?}"
    );
    assert_eq!(ws.scratch.sh("ls -A").stdout, "f\n");
    assert_eq!(ws.tree.probe(FolderId(7)), cotenant_tree::Probe::default(), "no such folder, nothing there");
}

#[test]
fn a_root_that_was_made_again_is_opened_anew_and_a_renamed_one_followed() {
    let ws = ws("echo old > f");
    assert_eq!(ws.tree.root_state(), RootState::Same);
    let (root, aside) = (ws.scratch.root(), ws.scratch.base().join("aside"));
    std::fs::rename(&root, &aside).unwrap();
    assert_eq!(ws.tree.root_state(), RootState::Renamed { now: aside.canonicalize().unwrap() });
    assert_eq!(ws.read("f").unwrap(), "old\n", "it is followed by its descriptor");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("f"), "new\n").unwrap();
    assert_eq!(ws.tree.root_state(), RootState::Removed, "the path names another directory");
    assert_eq!(ws.read("f").unwrap(), "old\n", "until it is opened anew");
    ws.tree.reopen_root().unwrap();
    assert_eq!((ws.tree.root_state(), ws.read("f").unwrap()), (RootState::Same, "new\n".to_owned()));
    std::fs::remove_dir_all(&root).unwrap();
    assert_eq!(ws.tree.root_state(), RootState::Removed);
    ws.tree.reopen_root().unwrap_err();
    std::fs::create_dir(&root).unwrap();
}
