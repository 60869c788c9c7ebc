//! Near paths.

use crate::fixture::{root_path, texts, ws};

fn near(setup: &str, path: &str) -> Vec<String> {
    let ws = ws(setup);
    texts(&ws.tree.near(&root_path(path)))
}

#[test]
fn neighbours_with_few_letters_changed_come_first() {
    let tree = "mkdir -p src lib; touch src/parser.rs src/parse.rs src/printer.rs lib/pasrer.rs";
    assert_eq!(near(tree, "src/pasrer.rs"), ["src/parser.rs", "src/parse.rs", "lib/pasrer.rs"]);
    assert_eq!(near(tree, "src/Parser.rs"), ["src/parser.rs", "src/parse.rs"]);
    assert_eq!(near(tree, "src/nothing_like_it"), Vec::<String>::new());
}

#[test]
fn the_same_name_elsewhere_and_in_a_directory_of_another_spelling() {
    assert_eq!(near("mkdir -p src/utils; touch src/utils/x.rs", "src/util/x.rs"), ["src/utils/x.rs"]);
    assert_eq!(near("mkdir -p Src; touch Src/a.rs", "src/a.rs"), ["Src/a.rs"]);
    assert_eq!(near("mkdir -p a/b; touch a/b/only.c", "only.c"), ["a/b/only.c"]);
}

#[test]
fn never_more_than_three_never_itself_never_protected() {
    let many = near("for i in 1 2 3 4 5 6; do touch file$i; done", "file7");
    assert_eq!(many, ["file1", "file2", "file3"]);
    assert_eq!(near("touch here", "here"), Vec::<String>::new());
    assert_eq!(near("touch .env; mkdir .git; touch .git/config", ".en"), Vec::<String>::new());
    assert_eq!(near("mkdir .git; touch .git/config", ".git/confi"), Vec::<String>::new());
    assert_eq!(near("true", "."), Vec::<String>::new());
}
