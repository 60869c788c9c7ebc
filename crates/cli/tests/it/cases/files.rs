//! Links, modes, kinds of files, and a process killed in the middle of a write.

use std::time::Duration;

use cotenant_testkit::{Dice, long};
use serde_json::json;

use super::{Case, cases};

cases!(c051, c052, c054, c055, c057, c058, c060, c061, c063, c064, c066);

fn c051(case: &Case) {
    let mut agent = case.agent();
    agent.read("link").says("d/real");
    agent.overwrite("link", "new\n").ok().says("d/real");
    agent.edit("link", "new", "newer").ok().says("d/real");
}

fn c052(case: &Case) {
    let mut agent = case.agent();
    agent.read("l2");
    agent.edit("l2", "v", "w").ok();
    agent.write("c1", "x").refused("NOT_A_FILE");
    agent.call("read_file", json!({"path": "c1"})).refused("NOT_A_FILE");
    let dangling = agent.write("dang", "x\n");
    if dangling.code().is_none() {
        assert_eq!(case.text("nowhere"), "x\n");
    }
}

fn c054(case: &Case) {
    let mut agent = case.agent();
    agent.read("run.sh");
    agent.edit("run.sh", "X", "Y").ok();
    agent.read("sec.txt");
    agent.overwrite("sec.txt", "k2\n").ok();
    case.check();
    agent.call("undo", json!({})).ok();
    assert_eq!(case.text("sec.txt"), "k\n");
    agent.call("delete_file", json!({"path": "run.sh"})).ok();
    agent.call("restore_file", json!({"item": "t2"})).ok();
    case.check();
    let patch = "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo Y\n+echo Z\n\
                 --- a/sec.txt\n+++ b/sec.txt\n@@ -1 +1 @@\n-k\n+k3\n";
    agent.call("apply_patch", json!({"patch": patch})).ok();
    case.check();
    agent
        .call("replace_text", json!({"path": ".", "pattern": "[Zk]", "replacement": "q", "regex": true}))
        .ok();
    agent.call("move_path", json!({"from": "run.sh", "to": "bin/run.sh"})).ok();
    agent.call("move_path", json!({"from": "bin/run.sh", "to": "run.sh"})).ok();
    case.check();
    agent.call("rewind", json!({"turn": 1})).ok();
    case.check();
    assert_eq!(case.text("run.sh"), "#!/bin/sh\necho X\n");
}

fn c055(case: &Case) {
    let mut agent = case.agent();
    agent.read("h1");
    agent.edit("h1", "needle", "thread").refused("HARD_LINKED").says("2");
    assert_eq!((case.text("h1"), case.text("h2")), ("needle\n".to_owned(), "needle\n".to_owned()));
    case.sh("test h1 -ef h2");
}

fn c057(case: &Case) {
    let mut agent = case.agent();
    for (tool, arguments) in [
        ("read_file", json!({"path": "leak"})),
        ("read_file", json!({"path": "outd/f"})),
        ("list_directory", json!({"path": "outd"})),
        ("search_files", json!({"pattern": "**", "content_search": false, "path": "outd"})),
        ("search_files", json!({"pattern": "S[E]CRET", "content_search": true, "path": "outd/f"})),
        ("edit_file", json!({"path": "leak", "old_text": "S", "new_text": "T"})),
        ("move_path", json!({"from": "outd/f", "to": "leak2"})),
        ("replace_text", json!({"path": "leak", "pattern": "S", "replacement": "T"})),
        ("replace_text", json!({"path": "outd", "pattern": "S", "replacement": "T"})),
        ("delete_file", json!({"path": "outd/f"})),
    ] {
        agent.call(tool, arguments).refused("PATH_OUTSIDE").never_says("SECRET");
    }
    let searched = agent.grep("S[E]CRET", ".");
    assert_eq!(searched.ok().never_says("SECRET").number("matches"), 0);
    agent.glob("outd/**").never_says("outd/f");
    agent.call("history", json!({})).never_says("SECRET");
    case.run(&["journal", "verify"]).ok();
    case.run(&["stop"]).ok();
    case.sh("! grep -rq SECRET \"$XDG_STATE_HOME\" && grep -qx SECRET ../out/f && test ! -e leak2");
}

fn c058(case: &Case) {
    let mut agent = case.agent();
    agent.write("sub/new.txt", "x").refused("PATH_OUTSIDE");
    agent.write("sub/a/b/new.txt", "x").refused("PATH_OUTSIDE");
    agent.edit("sub/edited.txt", "", "x").refused("PATH_OUTSIDE");
    agent.call("create_path", json!({"path": "sub/made", "kind": "directory"})).refused("PATH_OUTSIDE");
    agent.write("gone", "x").ok();
    agent.call("delete_file", json!({"path": "gone"})).ok();
    agent.call("restore_file", json!({"item": "t1", "to": "sub/r"})).refused("PATH_OUTSIDE");
    case.put("README", "r\n");
    agent.call("move_path", json!({"from": "README", "to": "sub/m"})).refused("PATH_OUTSIDE");
    agent.call("move_path", json!({"from": "README", "to": "sub/a/b/m"})).refused("PATH_OUTSIDE");
    let patch = "--- /dev/null\n+++ b/sub/p.txt\n@@ -0,0 +1 @@\n+p\n";
    agent.call("apply_patch", json!({"patch": patch})).refused("PATH_OUTSIDE");
    // The link itself is inside, and so is a name beside it.
    agent.call("move_path", json!({"from": "README", "to": "sub"})).refused("ALREADY_EXISTS");
    assert_eq!(case.text("README"), "r\n");
}

fn c060(case: &Case) {
    let refused = case.agent().call("read_file", json!({"path": "lk/../top.txt"}));
    refused.refused("PATH_OUTSIDE").never_says("S3").never_says("1|in");
}

fn c061(case: &Case) {
    let (alias, real) = (case.base().join("alias"), case.base().join("realroot"));
    let mut agents = [case.mcp().root(&alias).start(), case.mcp().root(&real).start()];
    let names = [alias.join("f"), real.join("f"), "f".into()];
    for agent in &mut agents {
        for name in &names {
            let read = agent.read(name.to_str().unwrap());
            assert_eq!((read.get("path").as_str(), read.content().trim_end()), ("f", "1|ok"));
        }
    }
    let pid = |root| case.run_at(root, &["status", "--pid"]).stdout;
    assert_eq!(pid(&alias), pid(&real), "one directory has two daemons");
    // Read under one name, edited under the other.
    let [first, second] = &mut agents;
    first.edit(names[1].to_str().unwrap(), "ok", "done").ok();
    assert_eq!(second.call("history", json!({"path": "f"})).number("changes"), 1);
    case.run_at(&real, &["stop"]).ok();
}

/// A name that differs in case alone is another name here, and after each call there is exactly one.
fn c063(case: &Case) {
    let mut agent = case.agent();
    let names = || case.sh("ls").stdout;
    let there = agent.call("rename_path", json!({"path": "Config.md", "new_name": "config.md"}));
    assert_eq!((there.ok().get("path").as_str(), names().as_str()), ("config.md", "config.md\n"));
    assert_eq!(case.text("config.md"), "v\n");
    let history = agent.call("history", json!({}));
    history.ok().says("tool=rename_path");
    assert_eq!(history.number("changes"), 1);
    case.check();
    agent.call("move_path", json!({"from": "config.md", "to": "Config.md"})).ok();
    assert_eq!((names().as_str(), case.text("Config.md").as_str()), ("Config.md\n", "v\n"));
    if case.try_sh("mkdir folded && chattr +F folded").code != 0 {
        eprintln!("SKIP: this volume folds no case");
        return;
    }
    case.put("folded/Config.md", "v\n");
    agent.call("rename_path", json!({"path": "folded/Config.md", "new_name": "config.md"})).ok();
    assert_eq!(case.sh("ls folded").stdout, "config.md\n");
}

fn c064(case: &Case) {
    let mut agent = case.agent();
    let moves = [
        ("b.txt", true, "HARD_LINKED"),
        ("a.txt", false, "NOTHING_TO_CHANGE"),
        ("a.txt", true, "NOTHING_TO_CHANGE"),
        ("c.txt", true, "NOTHING_TO_CHANGE"),
        ("c.txt", false, "NOTHING_TO_CHANGE"),
    ];
    for (to, overwrite, code) in moves {
        let moved = agent.call("move_path", json!({"from": "a.txt", "to": to, "overwrite": overwrite}));
        moved.refused(code);
        case.check();
    }
    agent.read("a.txt");
    agent.overwrite("a.txt", "keep\n").refused_as(&["HARD_LINKED", "NOTHING_TO_CHANGE"]);
    case.sh("test a.txt -ef b.txt && test -L c.txt");
}

/// The whole file is the old one or the new one at every moment, and the call is answered by the next daemon. The full
/// disk is entry D381 of the attacks.
fn c066(case: &Case) {
    let mut agent = case.agent();
    let mut dice = Dice::thrown();
    let (new, size) = ("b".repeat(9_000_000), 9_000_000);
    let mut landed = 0;
    for run in 0..if long() { 50 } else { 4 } {
        case.put("big.txt", "a".repeat(size));
        let digest = agent.call("read_file", json!({"path": "big.txt", "limit": 1})).get("digest");
        let write = json!({"path": "big.txt", "content": new, "overwrite": true, "expected_digest": digest});
        let id = agent.post_call("write_file", write);
        let early = agent.answer_within(id, Duration::from_millis(dice.below(150)));
        case.kill_daemon();
        case.check();
        let reply = match early {
            Some(answer) => cotenant_testkit::Reply::read(&answer["result"]),
            None => agent.reply(id),
        };
        case.check();
        let first = case.bytes("big.txt")[0];
        assert_eq!(first, if reply.code().is_none() { b'b' } else { b'a' }, "run {run}: {}", reply.text);
        landed += u64::from(reply.code().is_none());
    }
    let history = agent.call("history", json!({"path": "big.txt"}));
    assert!(history.number("changes") >= landed, "{}", history.text);
    case.run(&["stop"]).ok();
    case.sh("! ls -A | grep '^[.]cotenant-'");
}
