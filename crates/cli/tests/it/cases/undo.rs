//! Area `undo`: rewind, undo and trash take back what they say, and nothing else.

use cotenant_testkit::{Client, Reply};
use serde_json::json;

use super::{Case, cases};

cases!(c139, c142, c143, c145, c146, c148, c149, c151, c152);

fn delete(agent: &mut Client, path: &str) -> Reply {
    agent.read(path);
    agent.call("delete_file", json!({"path": path}))
}

fn c139(case: &Case) {
    let mut agent = case.agent();
    agent.read("t");
    agent.edit("t", "a", "b").ok();
    agent.write("new.txt", "made\n").ok();
    case.sh("find .git -type f -exec sha256sum {} + | sort > ../git.before");
    agent.call("rewind", json!({"turn": 1})).ok();
    case.check();
    agent.call("list_trash", json!({"path": "new.txt"})).ok().says("t1 path=new.txt");
    case.sh("find .git -type f -exec sha256sum {} + | sort | cmp - ../git.before");
}

fn c142(case: &Case) {
    let mut agent = case.agent();
    agent.read("agent.txt");
    agent.edit("agent.txt", "1", "A").ok();
    agent.read("both.txt");
    agent.edit("both.txt", "l1", "A1").ok();
    case.put("human.txt", "2\n");
    case.sh("sed -i s/l3/H3/ both.txt");
    agent.call("rewind", json!({"turn": 1})).ok();
    assert_eq!(case.text("both.txt"), "l1\nl2\nH3\n");
}

fn c143(case: &Case) {
    let mut agent = case.agent();
    agent.read("f");
    agent.edit("f", "1", "2").ok();
    let middle = agent.edit("f", "2", "3").ok().get("change");
    let rewound = agent.call("rewind", json!({"turn": 1})).ok().get("change");
    assert_eq!(case.text("f"), "1\n");
    agent.call("history", json!({})).ok().says(&format!("{rewound} ")).says("tool=rewind");
    agent.call("undo", json!({"change": rewound})).ok();
    assert_eq!(case.text("f"), "3\n");
    agent.call("rewind", json!({"change": middle})).ok();
}

fn c145(case: &Case) {
    let empty = case.base().join("home").display().to_string();
    for (round, path) in ["/usr/bin:/bin", "/nowhere"].iter().enumerate() {
        let mut agent = case.mcp().env("HOME", &empty).env("PATH", path).start();
        agent.read("f");
        agent.edit("f", "1", "2").ok();
        agent.call("rewind", json!({"turn": 1})).ok();
        assert_eq!(case.text("f"), "1\n", "round {round}");
        drop(agent);
        case.run(&["stop"]).ok();
        // Then in no repository at all.
        case.sh("rm -rf .git");
    }
}

fn c146(case: &Case) {
    let rounds = if cotenant_testkit::long() { 50 } else { 6 };
    let mut first = None;
    for round in 0..rounds {
        let mut agent = case.agent_named("ada");
        for path in ["f", "third/lib/a"] {
            agent.read(path);
            let done = agent.call(
                "write_file",
                json!({"path": path, "content": format!("{round}\n"), "overwrite": true}),
            );
            first.get_or_insert(done.ok().get("change"));
        }
        let id = agent.post_call("undo", json!({}));
        // At another moment of the call each time.
        std::thread::yield_now();
        case.kill_daemon();
        case.sh("git status >/dev/null && git -C third/lib status >/dev/null");
        let _ = id;
        drop(agent);
    }
    let mut agent = case.agent_named("ada");
    agent.call("history", json!({"path": "third/lib/a"})).ok().says("tool=write_file");
    agent.call("rewind", json!({"change": first})).ok();
    assert_eq!((case.text("f"), case.text("third/lib/a")), ("1\n".to_owned(), "x\n".to_owned()));
}

fn c148(case: &Case) {
    let mut agent = case.agent();
    agent.read("f");
    for n in 1..=20 {
        agent.edit("f", &n.to_string(), &(n + 1).to_string()).ok();
    }
    agent.call("rewind", json!({"change": "c11"})).ok();
    assert_eq!(case.text("f"), "11\n");
    case.run(&["stop"]).ok();
    let size = case.sh("du -sk --apparent-size \"$XDG_STATE_HOME\" | cut -f1").stdout;
    let kib: u64 = size.trim().parse().unwrap();
    // The ballast of 4 MiB is there from the start.
    assert!(kib < 4096 + 5000, "{kib} KiB");
}

fn c149(case: &Case) {
    let mut agent = case.agent();
    let mut other = case.agent_named("bob");
    agent.read("a/same.txt");
    other.read("b/same.txt");
    let ids = (
        agent.post_call("delete_file", json!({"path": "a/same.txt"})),
        other.post_call("delete_file", json!({"path": "b/same.txt"})),
    );
    agent.reply(ids.0).ok();
    other.reply(ids.1).ok();
    for version in ["1", "2", "3"] {
        agent.write("a/same.txt", version).ok();
        delete(&mut agent, "a/same.txt").ok();
    }
    let listed = agent.call("list_trash", json!({}));
    assert_eq!(listed.ok().number("items"), 5, "{listed:?}");
    let all = case.run(&["trash", "--json"]).ok().json();
    let items = all["items"].as_array().unwrap();
    for (index, item) in items.iter().take(3).enumerate() {
        assert_eq!(item["path"], "a/same.txt");
        let to = format!("back/{index}");
        agent.call("restore_file", json!({"item": item["item"], "to": to})).ok();
        assert_eq!(case.text(&to), format!("{}\n", 3 - index));
    }
    for item in &items[3..] {
        agent.call("restore_file", json!({"item": item["item"]})).ok();
    }
}

fn c151(case: &Case) {
    let mut agent = case.agent();
    agent.edit("new/dir/n.txt", "", "x").ok();
    agent.write("w.txt", "y").ok();
    agent
        .call("apply_patch", json!({"patch": "*** Begin Patch\n*** Add File: p.txt\n+p\n*** End Patch\n"}))
        .ok();
    assert_eq!(case.text("p.txt"), "p\n");
    agent.call("rewind", json!({"turn": 1})).ok();
}

fn c152(case: &Case) {
    let mut agent = case.agent();
    let turn = |agent: &mut Client, turn: &str, tool: &str, arguments: serde_json::Value| {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"cotenant/turn": turn}});
        Reply::read(&agent.request("tools/call", params))
    };
    agent.read("del");
    turn(&mut agent, "one", "delete_file", json!({"path": "del"})).ok();
    turn(&mut agent, "two", "write_file", json!({"path": "del", "content": "again\n"})).ok();
    turn(&mut agent, "three", "rewind", json!({"turn": 2})).ok();
    case.sh("test ! -e del");
    let trash = agent.call("list_trash", json!({}));
    assert_eq!(trash.ok().number("items"), 2, "{trash:?}");
    turn(&mut agent, "four", "rewind", json!({"turn": 1})).ok();
}
