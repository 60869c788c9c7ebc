//! What the disk adds to a path's class.

use cotenant_model::PathClass;

use crate::fixture::ws;

#[test]
fn p124_a_buried_bare_repository_is_sensitive_at_any_depth() {
    let ws = ws(
        "mkdir -p a/bare/objects a/bare/refs a/bare/sub a/half/objects; echo ref > a/bare/HEAD; echo x > a/half/HEAD; \
                 ln -s bare/sub a/l",
    );
    for (path, class) in [
        ("a/bare/config", PathClass::Sensitive),
        ("a/bare/hooks/post-checkout", PathClass::Sensitive),
        ("a/bare/sub/x/y", PathClass::Sensitive),
        ("a/l/x", PathClass::Sensitive),
        ("a/bare", PathClass::Ordinary),
        ("a/half/config", PathClass::Ordinary),
        ("a/x", PathClass::Ordinary),
    ] {
        assert_eq!(ws.at(path).class.class, class, "{path}");
    }
    assert_eq!(ws.at("a/bare/config").class.rule, "bare repository");
}

#[test]
fn a_root_that_is_a_bare_repository_is_sensitive_throughout() {
    let ws = ws("mkdir objects refs; echo ref > HEAD");
    assert_eq!(ws.at("config").class.class, PathClass::Sensitive);
    assert_eq!(ws.at("deep/er").class.class, PathClass::Sensitive);
}

#[test]
fn what_gitattributes_calls_generated_is_generated() {
    let ws = ws("mkdir -p src/proto/own docs vendor/x\n\
        printf '# comment\\n*.pb.rs linguist-generated\\n/docs/** linguist-generated=true\\n\"a b.txt\" linguist-generated text\\n*.lock -diff\\n!*.no linguist-generated\\nhand.pb.rs -linguist-generated\\n' > .gitattributes\n\
        printf '*.pb.rs linguist-generated=false\\n' > src/proto/own/.gitattributes\n\
        touch src/proto/api.pb.rs; ln -s src/proto/api.pb.rs api");
    for (path, class) in [
        ("src/proto/api.pb.rs", PathClass::Generated),
        ("new.pb.rs", PathClass::Generated),
        ("api", PathClass::Generated),
        ("docs/deep/x", PathClass::Generated),
        ("vendor/x/docs/y", PathClass::Ordinary),
        ("a b.txt", PathClass::Generated),
        ("vendor/a b.txt", PathClass::Generated),
        ("hand.pb.rs", PathClass::Ordinary),
        ("src/proto/own/x.pb.rs", PathClass::Ordinary),
        ("Cargo.lock", PathClass::Ordinary),
        ("x.no", PathClass::Ordinary),
        (".gitattributes", PathClass::Sensitive),
    ] {
        assert_eq!(ws.at(path).class.class, class, "{path}");
    }
    assert_eq!(ws.at("src/proto/api.pb.rs").class.rule, ".gitattributes: *.pb.rs linguist-generated");
}

#[test]
fn a_changed_gitattributes_counts_at_once() {
    let ws = ws("echo '*.gen linguist-generated' > .gitattributes");
    assert_eq!(ws.at("x.gen").class.class, PathClass::Generated);
    ws.scratch.sh("echo '*.other linguist-generated' > .gitattributes");
    assert_eq!(ws.at("x.gen").class.class, PathClass::Ordinary);
    assert_eq!(ws.at("x.other").class.class, PathClass::Generated);
    ws.scratch.sh("rm .gitattributes");
    assert_eq!(ws.at("x.other").class.class, PathClass::Ordinary);
}

#[test]
fn a_gitattributes_that_is_a_link_or_a_fifo_says_nothing_and_does_not_block() {
    let ws = ws(
        "echo '*.gen linguist-generated' > $OUT/a; ln -s ../out/a .gitattributes; mkdir d; mkfifo d/.gitattributes",
    );
    assert_eq!(ws.at("x.gen").class.class, PathClass::Ordinary);
    assert_eq!(ws.at("d/x.gen").class.class, PathClass::Ordinary);
}
