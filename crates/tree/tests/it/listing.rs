//! Listings.

use cotenant_model::ClassRules;
use cotenant_tree::{ListOptions, TreeError};

use crate::fixture::{count, shown, ws, ws_with};

#[test]
fn entries_come_in_byte_order_with_directories_as_their_path_and_slash() {
    let ws = ws("mkdir -p a/x b; touch a-b a.txt a/x/f a/y b/z .hidden Z; ln -s a link; mkfifo pipe");
    let all = shown(&ws.list(".", None));
    assert_eq!(
        all,
        [".hidden", "Z", "a-b", "a.txt", "a/", "a/x/", "a/x/f", "a/y", "b/", "b/z", "link@", "pipe?"]
    );
    assert_eq!(shown(&ws.list(".", Some(1))), [".hidden", "Z", "a-b", "a.txt", "a/", "b/", "link@", "pipe?"]);
    assert_eq!(shown(&ws.list("a", Some(1))), ["a/x/", "a/y"]);
    assert_eq!(
        shown(&ws.list("link", None)),
        ["a/x/", "a/x/f", "a/y"],
        "named by a link, told by the real path"
    );
}

#[test]
fn what_is_left_out_is_counted_by_reason() {
    let ws = ws(
        "mkdir -p .git src node_modules/deep; touch .git/x .env k.pem src/a src/.cotenant-0123456789abcdef \
                 .cotenant-short node_modules/deep/f x.log; printf '*.log\\nnode_modules/\\n' > .gitignore",
    );
    let listing = ws.list(".", None);
    assert_eq!(shown(&listing), [".cotenant-short", ".gitignore", "src/", "src/a"]);
    assert_eq!(listing.omitted, [("ignored", 2), ("protected", 3)]);
    let everything = ws.list_with(".", &ListOptions { depth: None, limit: 100, include_ignored: true });
    assert_eq!(count(&everything.omitted, "ignored"), 0);
    assert!(shown(&everything).contains(&"node_modules/deep/f".to_owned()));
    assert!(!shown(&everything).contains(&".env".to_owned()), "protected stays protected");
}

#[test]
fn the_total_is_exact_whatever_the_limit() {
    let ws = ws("mkdir d; for i in $(seq 1 60); do touch d/$i; done");
    for limit in [0, 10, 60, 100] {
        let listing = ws.list_with("d", &ListOptions { depth: Some(1), limit, include_ignored: false });
        assert_eq!((listing.total, listing.entries.len()), (60, limit.min(60)));
    }
}

#[test]
fn c082_link_cycles_end() {
    let ws = ws("mkdir -p a/b; ln -s .. a/up; ln -s . a/self; ln -s ../b a/b/loop; printf 'z\\n' > a/b/f");
    assert_eq!(shown(&ws.list(".", None)), ["a/", "a/b/", "a/b/f", "a/b/loop@", "a/self@", "a/up@"]);
    let found = ws.names("**/*");
    assert_eq!((found.total, count(&found.skipped, "links")), (1, 3));
    let hits = ws.grep(".", "z");
    assert_eq!((hits.total_matches, count(&hits.skipped, "links")), (1, 3));
}

#[test]
fn a_wide_and_deep_tree_is_listed_alike_by_one_and_by_several_threads() {
    let ws = ws(
        "for a in $(seq 1 12); do for b in $(seq 1 8); do mkdir -p $a/$b/x; touch $a/$b/f $a/$b/x/g; done; done",
    );
    let all = shown(&ws.list(".", None));
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(all, sorted);
    assert_eq!(all.len(), 12 + 12 * 8 * 4);
    for _ in 0..20 {
        assert_eq!(shown(&ws.list(".", None)), all);
    }
}

#[test]
fn c034_a_directory_that_is_gone_is_not_listed_as_an_empty_one() {
    let ws = ws("mkdir -p d; touch d/f");
    assert_eq!(
        ws.tree.list(&ws.at("d/f"), &options()).unwrap_err(),
        TreeError::NotADirectory { at: "d/f".into() }
    );
    assert_eq!(ws.tree.list(&ws.at("gone"), &options()).unwrap_err(), TreeError::NotFound);
    let place = ws.at("d");
    ws.scratch.sh("rm -r d");
    assert_eq!(ws.tree.list(&place, &options()).unwrap_err(), TreeError::NotFound);
}

fn options() -> ListOptions {
    ListOptions { depth: None, limit: 100, include_ignored: false }
}

#[test]
fn own_rules_protect_and_except_in_listings_too() {
    let rules =
        ClassRules::new(&["src/vault".into(), "*.secret".into()], &[".env.example".into()], &[]).unwrap();
    let ws = ws_with("mkdir -p src/vault vault; touch src/vault/a vault/b x.secret .env .env.example", rules);
    let listing = ws.list(".", None);
    assert_eq!(shown(&listing), [".env.example", "src/", "vault/", "vault/b"]);
    assert_eq!(count(&listing.omitted, "protected"), 3);
}

#[test]
fn names_that_are_no_text_are_listed_and_found() {
    let ws = ws("printf x > \"$(printf 'a\\377b')\"; printf x > $'new\\nline'");
    assert_eq!(shown(&ws.list(".", None)), ["a\\xffb", "new\nline"]);
    assert_eq!(ws.grep(".", "x").total_files, 2);
}
