//! What the system forbids, what the settings forbid, and what is never served at all.

use std::path::Path;

use cotenant_testkit::{Client, Scratch};
use serde_json::json;

use crate::support::scratch;

/// An agent that is not root, so that modes bind it; `None` where this machine cannot run one.
fn plain_user(scratch: &Scratch) -> Option<Client> {
    if !rustix::process::geteuid().is_root() {
        return Some(scratch.mcp().start());
    }
    let program = scratch.program().display();
    let base = scratch.base().display();
    let as_nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let ready = scratch.try_sh(&format!("chown -R 65534:65534 {base} && {as_nobody} test -x {program}"));
    if ready.code != 0 {
        eprintln!("SKIP: no user but root can run the program here: {ready:?}");
        return None;
    }
    Some(scratch.mcp().wrapped(&format!("exec {as_nobody} \"$@\"")).start())
}

#[test]
fn what_the_system_forbids_is_refused_and_counted() {
    let scratch = scratch();
    scratch.sh("printf 'needle\\n' | tee open.txt shut.txt only-read.txt >/dev/null; mkdir shut fixed; printf 'needle\\n' > shut/in.txt");
    let Some(mut agent) = plain_user(&scratch) else { return };
    scratch.sh("chmod 000 shut.txt shut; chmod 444 only-read.txt; chmod 555 fixed");
    agent.call("read_file", json!({"path": "shut.txt"})).refused("PERMISSION_DENIED");
    agent.call("read_file", json!({"path": "shut/in.txt"})).refused("PERMISSION_DENIED");
    agent.call("list_directory", json!({"path": "shut"})).refused("PERMISSION_DENIED");
    agent.write("fixed/new.txt", "x\n").refused("PERMISSION_DENIED");
    agent.read("only-read.txt");
    agent.edit("only-read.txt", "needle", "x").refused("PERMISSION_DENIED");
    let found = agent.grep("needle", ".");
    assert_eq!(found.ok().number("matches"), 2, "{}", found.text);
    found.says("skipped=");
    scratch.sh("chmod 700 shut; grep -qx needle only-read.txt && test ! -e fixed/new.txt");
    drop(agent);
}

#[test]
fn a_file_without_the_owners_write_bit_stays_even_for_root() {
    let scratch = scratch();
    scratch.sh("printf 'x\\n' > r.txt; chmod 444 r.txt");
    let mut agent = scratch.mcp().start();
    agent.read("r.txt");
    agent.edit("r.txt", "x", "y").refused("PERMISSION_DENIED");
    agent.overwrite("r.txt", "y\n").refused("PERMISSION_DENIED");
    assert_eq!(scratch.sh("stat -c %a r.txt; cat r.txt").stdout, "444\nx\n");
}

#[test]
fn generated_files_are_refused_with_their_generator() {
    let scratch = scratch();
    scratch.put("gen/api.rs", "one\n");
    scratch.put("proto/x.pb.rs", "one\n");
    scratch.put(".gitattributes", "*.pb.rs linguist-generated\n");
    scratch.configure(
        "[workspace]\ngenerated = [{ paths = [\"gen/**\"], from = \"api.yaml\", command = \"make api\" }]\n",
    );
    let mut agent = scratch.mcp().start();
    assert!(agent.read("gen/api.rs").fact("generated").is_some());
    agent.edit("gen/api.rs", "one", "1").refused("PATH_READ_ONLY").says("make api").says("api.yaml");
    agent.write("gen/new.rs", "x\n").refused("PATH_READ_ONLY");
    agent.read("proto/x.pb.rs");
    agent.edit("proto/x.pb.rs", "one", "1").refused("PATH_READ_ONLY").says("linguist-generated");
}

#[test]
fn exceptions_to_protected_paths_are_lines_of_the_settings() {
    let scratch = scratch();
    scratch.put(".env.example", "KEY=\n");
    scratch.put("private/a.txt", "secret\n");
    let mut agent = scratch.mcp().start();
    agent.call("read_file", json!({"path": ".env.example"})).refused("PATH_PROTECTED");
    agent.read("private/a.txt");
    agent.write("cotenant.toml", "[workspace]\n").refused("PATH_PROTECTED");
    drop(agent);
    scratch.run(&["stop"]).ok();
    scratch.configure("[workspace]\nprotected = { add = [\"private/**\"], except = [\".env.example\"] }\n");
    let mut agent = scratch.mcp().start();
    agent.read(".env.example").says("KEY=");
    agent.call("read_file", json!({"path": "private/a.txt"})).refused("PATH_PROTECTED").never_says("secret");
    assert_eq!(agent.grep("secret", ".").number("matches"), 0);
    agent.call("read_file", json!({"path": "cotenant.toml"})).refused("PATH_PROTECTED");
}

#[test]
fn the_machines_own_directories_are_not_served() {
    let scratch = scratch();
    for root in [
        "/", "/root", "/home", "/var", "/run", "/tmp", "/etc", "/proc", "/sys", "/dev", "/usr", "/usr/lib",
        "/boot",
    ] {
        if !Path::new(root).exists() {
            continue;
        }
        let output = scratch.run_at(Path::new(root), &["mcp"]);
        assert_ne!(output.code, 0, "{root} is served");
        assert!(!output.stderr.is_empty(), "{root}: nobody is told why: {output:?}");
    }
    let absent = scratch.run_at(&scratch.base().join("absent"), &["mcp"]);
    assert!(absent.code != 0 && !absent.stderr.is_empty(), "{absent:?}");
}
