//! What was read is no longer what is there: refused, shown, and never lost.

use cotenant_testkit::Client;
use serde_json::json;

use super::{Case, cases};

cases!(c038, c039, c041, c042, c044, c045, c047, c048, c050);

fn c038(case: &Case) {
    // Two sessions, because a refusal shows the change and thereby counts as a read.
    let mut writer = case.agent_named("writer");
    let mut editor = case.agent_named("editor");
    writer.read("s.env.txt");
    editor.read("s.env.txt");
    case.put("s.env.txt", "A=1\nB=9\n");
    writer.overwrite("s.env.txt", "A=2\nB=1\n").refused("FILE_CHANGED_SINCE_READ").says("+B=9");
    editor.edit("s.env.txt", "A=1", "A=2").refused("FILE_CHANGED_SINCE_READ").says("+B=9");
    case.check();
    editor.read("s.env.txt");
    editor.edit("s.env.txt", "A=1", "A=2").ok();
    writer.read("s.env.txt");
    writer.overwrite("s.env.txt", "A=3\nB=9\n").ok();
    assert_eq!(case.text("s.env.txt"), "A=3\nB=9\n");
}

fn c039(case: &Case) {
    let mut agent = case.agent();
    agent.read("t.txt");
    case.sh("touch -d '+1 hour' t.txt; cp t.txt x && mv x t.txt");
    agent.edit("t.txt", "same", "other").ok();
}

fn c041(case: &Case) {
    let mut agent = case.agent();
    agent.read("b.txt");
    case.sh("printf 'k=7\\n' > b.txt; touch -d 2001-01-01 b.txt");
    agent.edit("b.txt", "k=", "key=").refused("FILE_CHANGED_SINCE_READ").says("+k=7");
}

fn c042(case: &Case) {
    let mut editor = case.agent_named("editor");
    let edit = editor.edit("p.txt", "precious", "x");
    edit.refused("EDIT_REQUIRES_PRIOR_READ").says("1|precious");
    let mut writer = case.agent_named("writer");
    writer.write("p.txt", "new\n").refused("ALREADY_EXISTS");
    let mut blunt = case.agent_named("blunt");
    blunt.overwrite("p.txt", "new\n").refused("EDIT_REQUIRES_PRIOR_READ");
    case.check();
    writer.write("fresh.txt", "needs no read\n").ok();
}

fn c044(case: &Case) {
    let mut agent = case.agent();
    agent.read("e.txt");
    agent.edit("e.txt", "one", "1").ok();
    agent.edit("e.txt", "two", "2").ok();
    agent.overwrite("e.txt", "1 2 3\n").ok();
}

fn c045(case: &Case) {
    let mut agents = [case.agent_named("left"), case.agent_named("right")];
    for round in 0..200 {
        case.put("state.txt", "left=0\nright=0\n");
        agents.iter_mut().for_each(|agent| drop(agent.read("state.txt")));
        let edit = |agent: &mut Client, side: &str| {
            let (old, new) = (format!("{side}=0"), format!("{side}=1"));
            agent.post_call("edit_file", json!({"path": "state.txt", "old_text": old, "new_text": new}))
        };
        let [left, right] = &mut agents;
        let (one, two) = (edit(left, "left"), edit(right, "right"));
        let replies = [left.reply(one), right.reply(two)];
        let text = case.text("state.txt");
        let mut landed = 0;
        for (reply, line) in replies.iter().zip(["left=1", "right=1"]) {
            match reply.code() {
                None => landed += 1,
                Some(code) => assert!(["FILE_CHANGED_SINCE_READ", "BUSY"].contains(&code), "{}", reply.text),
            }
            assert_eq!(text.contains(line), reply.code().is_none(), "round {round}: {text}\n{}", reply.text);
        }
        assert!(landed > 0, "round {round}: nobody got through");
    }
}

fn c047(case: &Case) {
    let mut agent = case.agent();
    let read = agent.call("read_file", json!({"path": "big.txt", "limit": 100}));
    assert_eq!(
        (read.get("lines").as_str(), read.number("of"), read.number("next_start")),
        ("1-100", 5000, 101)
    );
    let hundred = (1..=100).map(|line| format!("{line}\n")).collect::<String>();
    agent.overwrite("big.txt", &hundred).refused("EDIT_REQUIRES_PRIOR_READ");
    agent.edit("big.txt", "49\n50\n51", "49\nfifty\n51").ok();
}

fn c048(case: &Case) {
    let mut agent = case.agent();
    agent.read("w.ini");
    agent.edit("w.ini", "y = 2", "y = 3").ok();
    agent.edit("w.ini", "x = 1", "x = 0").ok();
}

fn c050(case: &Case) {
    let mut agent = case.mcp().profile("careful").start();
    agent.read("ap.txt");
    let asked = agent.edit("ap.txt", "mode=a", "mode=b");
    let id = asked.refused("APPROVAL_PENDING").get("id");
    let digest = asked.meta["cotenant/refusal"]["facts"]["digest"].as_str().expect("a digest").to_owned();
    case.put("ap.txt", "mode=a\nextra\n");
    let approved = case.run(&["approve", &id, "--digest", &digest]);
    assert_eq!(approved.code, 1, "{approved:?}");
    case.check();
    // A new preview under a new digest, or none: never the old yes for another diff.
    let again = agent.call("retry", json!({"token": asked.offered("token")}));
    if again.refused_as(&["APPROVAL_PENDING", "APPROVAL_STALE"]).code() == Some("APPROVAL_PENDING") {
        assert_ne!(again.meta["cotenant/refusal"]["facts"]["digest"], digest.as_str());
    }
    assert_eq!(case.run(&["approve", &id, "--digest", &digest]).code, 1);
    case.check();
}
