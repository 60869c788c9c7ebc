//! Each form of edit, what it leaves, what it depended on, and when it is left to the shell.

use cotenant_model::{Becomes, Body, Code, Content, Digest, EntryKind, State, WsPath};
use cotenant_shell::edits::{Environment, Ground, Sed, Simulated, recognise, simulate};

use super::tree::{Item, Tree};
use super::{HOST, at, carried, done, folders, left, utf8};

fn workspace() -> Tree {
    Tree::from([
        ("f", Item::file("foo\nbar\n")),
        ("tool", Item::file("#!/bin/sh\n").with_mode(0o755)),
        ("g", Item::file("g\n").with_mode(0o600)),
        ("sub", Item::Dir(0o755)),
        ("sub/h", Item::file("h\n")),
        ("sub/up", Item::Link("../f".to_owned())),
        ("out", Item::Link("../secret".to_owned())),
        ("etc", Item::Link("/etc/passwd".to_owned())),
        ("way", Item::Link("sub".to_owned())),
        ("round", Item::Link("round".to_owned())),
        ("h1", Item::File { bytes: b"two\n".to_vec(), mode: 0o644, links: 2 }),
        ("h2", Item::File { bytes: b"two\n".to_vec(), mode: 0o644, links: 2 }),
        ("pipe", Item::Other),
    ])
}

/// The state of a regular file.
fn file(text: &str, mode: Option<u32>) -> State {
    State::Entry(Body { kind: EntryKind::File, content: Content::from(text.as_bytes()), mode })
}

#[test]
fn an_edit_says_what_it_leaves_and_what_it_depended_on() {
    let (outcome, _) = done("sed -i 's/foo/new/' f tool", &workspace());
    assert_eq!(
        outcome.effects.into_iter().collect::<Vec<_>>(),
        [(at("f"), Becomes::new(file("new\nbar\n", None)))]
    );
    assert_eq!(
        outcome.read,
        [(at("f"), Digest::of(b"foo\nbar\n")), (at("tool"), Digest::of(b"#!/bin/sh\n"))]
    );
    assert_eq!(outcome.notes, ["sed changed nothing in tool"]);
    assert_eq!(outcome.stdout, b"");
}

#[test]
fn a_backup_is_the_old_file() {
    let (outcome, after) = done("sed -i.bak 's/g/x/' g", &workspace());
    let backup = Becomes { state: file("g\n", Some(0o600)), from: Some(at("g")) };
    assert_eq!(outcome.effects[&at("g.bak")], backup);
    assert_eq!(outcome.effects[&at("g")], Becomes::new(file("x\n", None)));
    let (outcome, _) = done("sed -i.bak 's/nothing/x/' g", &workspace());
    assert_eq!(outcome.effects.into_keys().collect::<Vec<_>>(), [at("g.bak")]);
    let (_, twice) = done("sed -i.bak 's/x/y/' g", &after);
    assert_eq!((twice.bytes("g"), twice.bytes("g.bak")), (&b"y\n"[..], &b"x\n"[..]));
    assert_eq!(
        left("sed -i.bak 's/h/x/' sub/up", &workspace()),
        "sub/up is a link, which -i.bak would rename"
    );
    let mut taken = workspace();
    taken.0.insert("g.bak".to_owned(), Item::Dir(0o755));
    assert_eq!(left("sed -i.bak 's/g/x/' g", &taken), "g.bak is not a file");
}

#[test]
fn links_are_edited_through_and_lead_nowhere_else() {
    let (outcome, after) = done("sed -i 's/foo/new/' way/up && echo x >> way/up", &workspace());
    assert_eq!(outcome.effects.keys().collect::<Vec<_>>(), [&at("f")]);
    assert_eq!(after.bytes("f"), b"new\nbar\nx\n");
    for (command, why) in [
        ("sed -i 's/a/b/' out", "out leads outside"),
        ("sed -i 's/a/b/' etc", "etc leads through a link that is not followed here"),
        ("echo x > etc", "etc leads through a link that is not followed here"),
        ("rm etc/x", "etc/x leads through a link that is not followed here"),
        ("echo x > round", "round leads through a link that is not followed here"),
        ("cd way && rm h", "cd way: way is not a directory"),
        ("mkdir -p etc", "etc leads through a link that is not followed here"),
        ("mv sub/up f", "sub/up and f may be the same file, or lie on two file systems"),
    ] {
        assert_eq!(left(command, &workspace()), why, "{command}");
    }
    let (outcome, _) = done("rm out etc && mv way sub/way2", &workspace());
    assert_eq!(outcome.effects.len(), 4);
    assert_eq!(outcome.effects[&at("sub/way2")].from, Some(at("way")));
}

#[test]
fn a_file_of_two_names_is_refused_where_it_would_be_written() {
    for command in
        ["sed -i 's/two/2/' h1", "echo x > h1", "cp f h1", "truncate -s 0 h1", "tee -a h1 <<'EOF'\nEOF"]
    {
        let Simulated::Refused(refusal) = carried(command, &workspace()) else { panic!("{command}") };
        assert_eq!(refusal.code, Code::HardLinked);
        assert!(refusal.to_string().starts_with("HARD_LINKED path=h1 links=2\nh1 has 2 names"), "{refusal}");
    }
    done("rm h1 && cp h2 n && mv h2 m", &workspace());
    assert!(left("mv h1 h2", &workspace()).contains("may be the same file"));
}

#[test]
fn a_chain_is_one_transaction() {
    let command = "mkdir -p new/deep && cd new && cat > a.txt <<'EOF' && sed -i 's/one/1/' a.txt\none\ntwo\nEOF\nmv a.txt deep/b.txt\ncp deep/b.txt deep/c.txt; rm -f gone; echo ok";
    let (outcome, after) = done(command, &workspace());
    let paths: Vec<String> = outcome.effects.keys().map(|at| at.path.to_string()).collect();
    assert_eq!(paths, ["new", "new/deep", "new/deep/b.txt", "new/deep/c.txt"]);
    assert_eq!(after.bytes("new/deep/c.txt"), b"1\ntwo\n");
    assert!(outcome.effects.values().all(|becomes| becomes.from.is_none()), "what is new comes from nowhere");
    assert_eq!((outcome.stdout, outcome.notes), (b"ok\n".to_vec(), vec!["there is no gone".to_owned()]));
    let (outcome, _) = done("mv f x && mv x y && sed -i 's/foo/new/' y", &workspace());
    assert_eq!(
        outcome.effects[&at("y")],
        Becomes { state: file("new\nbar\n", Some(0o644)), from: Some(at("f")) }
    );
    assert_eq!(outcome.effects[&at("f")], Becomes::new(State::Absent));
    assert_eq!(outcome.effects.len(), 2);
    let (outcome, _) = done("touch n && rm n", &workspace());
    assert!(outcome.effects.is_empty());
    assert!(left("rm f && rm f", &workspace()).contains("no such file"));
}

#[test]
fn modes_are_said_where_they_are_not_the_places_own() {
    let mode = |command: &str, path: &str, umask| {
        let edit = recognise(command, &Environment::new([("LANG", "C.UTF-8")], umask)).unwrap();
        let Simulated::Done(outcome) = super::run(&edit, &workspace()) else { panic!("{command}") };
        outcome.effects[&at(path)].state.entry().unwrap().mode
    };
    assert_eq!(mode("echo x > n", "n", 0o022), None);
    assert_eq!(mode("echo x > tool", "tool", 0o022), None);
    assert_eq!(mode("cp tool n", "n", 0o027), Some(0o750));
    assert_eq!(mode("cp tool g", "g", 0o022), None);
    assert_eq!(mode("mv tool g", "g", 0o022), Some(0o755));
    assert_eq!(mode("cat > n <<'EOF' && mv n g\nEOF", "g", 0o077), None);
    assert_eq!(mode("cat > n <<'EOF' && mv n g\nEOF", "g", 0o022), Some(0o644));
}

#[test]
fn absolute_paths_below_a_folder_are_understood() {
    let (_, after) =
        done(&format!("cd {HOST}/sub && sed -i 's/h/x/' {HOST}/sub/h && echo new > {HOST}/n"), &workspace());
    assert_eq!((after.bytes("sub/h"), after.bytes("n")), (&b"x\n"[..], &b"new\n"[..]));
    let (outcome, _) = done(&format!("mkdir -p {HOST}/a//./b/"), &workspace());
    assert_eq!(outcome.effects.keys().collect::<Vec<_>>(), [&at("a"), &at("a/b")]);
    for path in ["/etc/hosts", "/srv/project-evil/f", "../f", "sub/../f", "/srv/project/../x"] {
        assert!(!left(&format!("echo x > {path}"), &workspace()).is_empty(), "{path}");
    }
}

#[test]
fn what_a_shell_would_fail_at_is_left_to_it() {
    for command in [
        "rm gone",
        "rm sub",
        "mv gone x",
        "mv sub x",
        "mv f gone/x",
        "mv f tool g",
        "cp f f",
        "cp sub x",
        "cp gone x",
        "cp f x/",
        "cd f && rm x",
        "cd gone && rm x",
        "mkdir sub",
        "mkdir gone/x",
        "mkdir -p f",
        "mkdir -p f/x",
        "touch f",
        "touch n/",
        "echo x > sub",
        "echo x > gone/x",
        "echo x > n/",
        "sed -i 's/a/b/' gone",
        "sed -i 's/a/b/' sub",
        "sed -i 's/a/b/' pipe",
        "cp pipe x",
        "cat >> pipe <<'EOF'\nEOF",
        "sed -i 's/a/\\1/' f",
        "sed -i 's/\\(/x/' f",
        "mv f sub/h/x",
        "mv f f",
        "mv f tool/",
    ] {
        left(command, &workspace());
    }
    let (outcome, after) = done("mv f sub/h && mv tool sub", &workspace());
    assert_eq!((outcome.effects.len(), after.bytes("sub/tool")), (4, &b"#!/bin/sh\n"[..]));
    done("mv f sub && cp tool g sub/ && cp -f g sub/g", &workspace());
    let two = done("mkdir a && cp f a/f && cp f g", &workspace()).1;
    assert_eq!(left("mv f a/f sub", &two), "two files would become sub/f");
}

#[test]
fn nothing_is_carried_out_that_takes_too_long_or_too_much() {
    assert_eq!(left("sed -i ':a;ba' f", &workspace()), "sed: 2 s passed");
    assert_eq!(left("sed -i ':a;p;ba' f", &workspace()), "sed: it writes over 16 MiB");
    let doubled = left("sed -i ':a;s/.*/&&/;ba' f", &workspace());
    assert!(doubled.starts_with("sed: "), "{doubled}");
    let large = Tree::from([("f", Item::file(vec![b'x'; (10 << 20) + 1]))]);
    assert_eq!(left("sed -i 's/a/b/' f", &large), "f is over 10 MiB");
    assert_eq!(left("cp f n", &large), "f is not a file, or over 10 MiB");
    assert_eq!(left("echo x >> f", &large), "f is over 10 MiB");
}

#[test]
fn the_bsd_form_means_its_script_unless_that_is_a_file() {
    let (outcome, after) = done("sed -i '' -e 's/foo/new/' f", &workspace());
    assert_eq!(after.bytes("f"), b"new\nbar\n");
    assert_eq!(outcome.notes.last().unwrap(), "it was carried out as `sed -i`, without the ''");
    let mut odd = workspace();
    odd.0.insert("2p".to_owned(), Item::file("x"));
    assert_eq!(left("sed -i '' 2p f", &odd), "`sed -i ''` takes 2p for a file, and there is one");
}

#[test]
fn notes_name_traps_and_what_matched_nothing() {
    let notes = |command| done(command, &workspace()).0.notes;
    assert_eq!(
        notes("sed -i 's/fo+/x/' f"),
        ["sed changed nothing in f; without `-E`, `+ ? | ( ) { }` are plain characters"]
    );
    assert_eq!(notes("sed -i -E 's/fO+/x/' f"), ["sed changed nothing in f"]);
    assert!(notes("sed -n -i 's/foo/x/' f")[0].contains("leaves the file empty"));
    assert!(notes("sed -i 1q f")[0].contains("cuts the file off"));
    let Simulated::Shell { notes, .. } = carried("sed -i -E 's/(?:a)/x/' f", &workspace()) else { panic!() };
    assert!(notes[0].contains("sed knows no"), "{notes:?}");
}

#[test]
fn a_patch_goes_to_its_tool() {
    let patch = "*** Begin Patch\n*** Delete File: $x\n*** End Patch\n";
    let to = |command: &str| carried(command, &workspace());
    let here = Simulated::Patch { text: patch.to_owned(), cwd: WsPath::default() };
    assert_eq!(to(&format!("apply_patch <<'EOF'\n{patch}EOF")), here);
    assert_eq!(to(&format!("apply_patch '{patch}'")), here);
    let below = Simulated::Patch { text: patch.to_owned(), cwd: at("sub") };
    assert_eq!(to(&format!("cd sub && apply_patch <<'EOF'\n{patch}EOF\n")), below);
    assert!(
        left(&format!("cd gone && apply_patch <<'EOF'\n{patch}EOF\n"), &workspace())
            .contains("not a directory")
    );
}

#[test]
fn paths_are_named_for_those_who_ask_first() {
    let targets = |command| recognise(command, &utf8()).unwrap().targets();
    assert_eq!(
        targets("cd a && sed -i 's/x/y/' f g && cd b/ && mv f /srv/g; tee 'h i' <<'E'\nE"),
        ["a/f", "a/g", "a/b/f", "/srv/g", "a/b/h i"]
    );
    assert_eq!(targets("apply_patch 'x'"), Vec::<String>::new());
}

#[test]
fn without_gnu_sed_only_the_others_are_carried_out() {
    let (tree, folders) = (workspace(), folders());
    let run = |command: &str| {
        let ground = Ground { cwd: &at("sub"), folders: &folders, files: &tree, sed: None };
        simulate(&recognise(command, &utf8()).unwrap(), &ground)
    };
    assert!(
        matches!(run("sed -i 's/h/x/' h"), Simulated::Shell { why, .. } if why == "there is no GNU sed 4.3 or later")
    );
    let Simulated::Done(outcome) = run("rm h") else { panic!() };
    assert_eq!(outcome.effects.into_keys().collect::<Vec<_>>(), [at("sub/h")]);
}

#[test]
fn only_a_gnu_sed_that_is_new_enough_is_found() {
    let directory = cotenant_testkit::fresh_directory(&std::env::temp_dir(), "sed");
    let find = |says: &str| {
        let path = directory.join("sed");
        // A new name each time: a binary that is known is not asked again.
        let _ = std::fs::remove_file(&path);
        std::fs::write(
            directory.join("new"),
            format!("#!/bin/sh\n[ \"$1\" = --version ] && echo '{says}'\n"),
        )
        .unwrap();
        std::fs::rename(directory.join("new"), &path).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Sed::find(&format!("/nonexistent:{}:/usr/bin", directory.display())).map(|sed| sed.version())
    };
    assert_eq!(find("sed (GNU sed) 4.8"), Some((4, 8)));
    assert_eq!(find("sed (GNU sed) 4.2"), None);
    assert_eq!(find("This is not GNU sed version 4.0"), None);
    std::fs::remove_file(directory.join("sed")).unwrap();
    let real = Sed::find(&format!("{}:/usr/bin:/bin", directory.display())).unwrap();
    assert!(real.path().starts_with("/usr/bin") || real.path().starts_with("/bin"));
    std::fs::remove_dir_all(directory).unwrap();
}
