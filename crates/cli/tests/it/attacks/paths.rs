//! Paths that lead out, into protected places, or to what is not a file.

use cotenant_testkit::{Client, Reply, snapshot};
use serde_json::json;

use super::{Attack, for_each_of};

/// What only files outside the workspace, or secrets in it, hold: a whole first line, or a part.
const SECRETS: [&str; 4] = ["|secret", "|sib", "root:x:0:0", "X=1"];

fn client(attack: &Attack) -> Client {
    if attack.needs_mount() {
        let script = format!("cd \"$W\" && {} && cd \"$W\" && exec \"$@\"", attack.setup());
        return attack.mcp().wrapped(&script).start();
    }
    attack.mcp().start()
}

fn never_leaks(reply: &Reply) {
    for secret in SECRETS {
        reply.never_says(secret);
    }
}

/// Decided otherwise than the entry says: any `..` is refused, a hard link may be read.
fn may_be_read(id: &str, attack: &Attack) -> bool {
    match id {
        "P004" => false,
        "P072" => true,
        _ => attack.expects() == "allow",
    }
}

#[test]
fn reading() {
    for_each_of("path-read", |id, attack| {
        let mut client = client(attack);
        let outside = snapshot(&attack.out());
        let reply = client.call("read_file", json!({"path": attack.input()}));
        if may_be_read(id, attack) {
            let expected = if id == "P072" { "1|secret" } else { "1|in" };
            reply.ok().says(expected);
        } else {
            assert!(reply.refused_as(&[]).is_error, "{}", reply.text);
            never_leaks(&reply);
        }
        assert_eq!(snapshot(&attack.out()), outside);
        // Nothing hung, nothing broke.
        client.call("whoami", json!({})).ok();
    });
}

#[test]
fn the_codes_of_refused_reads() {
    for (id, code) in [
        ("P004", "PATH_OUTSIDE"),
        ("P005", "PATH_OUTSIDE"),
        ("P008", "PATH_OUTSIDE"),
        ("P013", "BAD_INPUT"),
        ("P017", "NOT_A_DIRECTORY"),
        ("P019", "PATH_OUTSIDE"),
        ("P020", "NOT_FOUND"),
        ("P028", "PATH_OUTSIDE"),
        ("P029", "PATH_OUTSIDE"),
        ("P041", "PATH_OUTSIDE"),
        ("P047", "PATH_OUTSIDE"),
        ("P073", "NOT_A_FILE"),
        ("P075", "NOT_A_FILE"),
        ("P115", "PATH_PROTECTED"),
        ("P117", "PATH_PROTECTED"),
    ] {
        let Some(attack) = Attack::open(id) else { return };
        let reply = client(&attack).call("read_file", json!({"path": attack.input()}));
        assert_eq!(reply.code(), Some(code), "{id}: {}", reply.text);
    }
}

/// Writes the path, over what is there if it can be read.
fn write(client: &mut Client, path: &str) -> Reply {
    let read = client.call("read_file", json!({"path": path}));
    let content = "written by the test\n";
    if read.code().is_none() { client.overwrite(path, content) } else { client.write(path, content) }
}

#[test]
fn writing() {
    for_each_of("path-write", |id, attack| {
        let surroundings = || [attack.out(), attack.base().join("root-evil")].map(|side| snapshot(&side));
        let (outside, inside) = (surroundings(), snapshot(&attack.root()));
        let path = attack.input();
        let reply = write(&mut client(attack), &path);
        never_leaks(&reply);
        if attack.expects() == "allow" {
            reply.ok();
            assert_eq!(attack.text(&path), "written by the test\n");
            attack.sh("test ! -e sl || test -L sl");
        } else {
            // An `ask` counts when it was asked; P071 is decided: a hard link is refused.
            assert!(attack.expects() == "ask" || reply.is_error, "asked, but to be refused:\n{}", reply.text);
            reply.refused_as(if id == "P071" { &["HARD_LINKED"] } else { &[] });
            assert_eq!(snapshot(&attack.root()), inside);
        }
        assert_eq!(surroundings(), outside);
    });
}

#[test]
fn protected_paths_are_refused_by_their_code() {
    for id in ["P082", "P083", "P089", "P090", "P091", "P093", "P094", "P101", "P103", "P118"] {
        let Some(attack) = Attack::open(id) else { return };
        let reply = client(&attack).write(&attack.input(), "x\n");
        assert_eq!(reply.code(), Some("PATH_PROTECTED"), "{id}: {}", reply.text);
    }
    for id in ["P113", "P114", "P124"] {
        let Some(attack) = Attack::open(id) else { return };
        let reply = client(&attack).write(&attack.input(), "x\n");
        assert_eq!(reply.code(), Some("APPROVAL_PENDING"), "{id}: {}", reply.text);
    }
}

#[test]
fn listing() {
    for_each_of("path-list", |_, attack| {
        let reply = client(attack).call("list_directory", json!({"path": attack.input()}));
        reply.refused("PATH_OUTSIDE").never_says("secret.txt");
    });
}

#[test]
fn searching() {
    for_each_of("path-search", |_, attack| {
        let reply = client(attack).grep("secret", ".");
        assert_eq!(reply.ok().number("matches"), 0, "{}", reply.text);
        reply.never_says("secret.txt");
    });
}

#[test]
fn deleting() {
    for_each_of("path-delete", |id, attack| {
        let (outside, inside) = (snapshot(&attack.out()), snapshot(&attack.root()));
        let reply = client(attack).call("delete_file", json!({"path": attack.input()}));
        never_leaks(&reply);
        if attack.expects() == "allow" {
            reply.ok();
            attack.sh("test ! -L l && test ! -e l");
        } else {
            let code = match id {
                "P061" => "NOT_A_FILE",
                "P062" => "PATH_OUTSIDE",
                _ => "PATH_PROTECTED",
            };
            reply.refused(code);
            assert_eq!(snapshot(&attack.root()), inside);
        }
        assert_eq!(snapshot(&attack.out()), outside);
    });
}

#[test]
fn moving() {
    for_each_of("path-move", |id, attack| {
        let surroundings = || [attack.out(), attack.base().join("root-evil")].map(|side| snapshot(&side));
        let (outside, inside) = (surroundings(), snapshot(&attack.root()));
        let input = attack.input();
        let (from, to) = input.split_once(" -> ").expect("two paths");
        let mut agent = client(attack);
        let reply = agent.call("move_path", json!({"from": from, "to": to}));
        let code = match id {
            "P066" => "BAD_INPUT",
            "P067" => "ALREADY_EXISTS",
            "P120" | "P121" => "PATH_PROTECTED",
            _ => "PATH_OUTSIDE",
        };
        never_leaks(reply.refused(code));
        // Asking to overwrite changes nothing of it, but where a file stands that was named by its digest.
        let again = agent.call("move_path", json!({"from": from, "to": to, "overwrite": true}));
        again.refused(if id == "P067" { "EDIT_REQUIRES_PRIOR_READ" } else { code });
        assert_eq!((surroundings(), snapshot(&attack.root())), (outside, inside));
    });
}

/// Not an entry of its own: nothing is moved over a mount point, out of one, or with one in it.
#[test]
fn a_mount_point_is_never_moved_over_or_along() {
    let scratch = crate::support::scratch();
    scratch.put("d/inner/x", "x\n");
    scratch.put("a", "a\n");
    let script = "mount -t tmpfs none d/inner && echo there > d/inner/y && exec \"$@\"";
    let mut agent = scratch.mcp().wrapped(script).start();
    for (from, to) in [("d", "e"), ("a", "d/inner/a"), ("a", "d/inner"), ("d/inner", "e"), ("d/inner/y", "y")]
    {
        let reply = agent.call("move_path", json!({"from": from, "to": to}));
        reply.refused("CROSS_DEVICE").says("mount point");
    }
    agent.call("rename_path", json!({"path": "d", "new_name": "e"})).refused("CROSS_DEVICE");
    agent.call("move_path", json!({"from": "a", "to": "d/a"})).ok();
    assert_eq!((scratch.text("d/a"), scratch.text("d/inner/x")), ("a\n".to_owned(), "x\n".to_owned()));
}
