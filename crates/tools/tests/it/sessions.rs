//! What passes with time and from call to call: turns, tokens, handles, the order of a session.

use cotenant_model::{Access, AgentRule, Profile, Settings};
use cotenant_tools::host::Host;
use serde_json::{Map, json};

use crate::fixture::{Fixture, fact};

#[test]
fn a_long_silence_begins_a_turn_with_the_next_change() {
    let f = Fixture::new();
    f.ok("write_file", json!({"path": "a", "content": "1\n"}));
    f.pass(121_000);
    f.ok("write_file", json!({"path": "b", "content": "1\n"}));
    assert_eq!(fact(&f.ok("whoami", json!({})), "turn").as_deref(), Some("2"));
    let first = f.ok("history", json!({"turn": 1}));
    assert!(first.contains("files=a") && !first.contains("files=b"), "{first}");
}

#[test]
fn a_token_is_good_for_ten_minutes_and_for_its_session_only() {
    let f = Fixture::new();
    f.put("net.rs", "a\n");
    let refusal = f.no(
        "EDIT_REQUIRES_PRIOR_READ",
        "edit_file",
        json!({"path": "net.rs", "old_text": "a", "new_text": "b"}),
    );
    let token = refusal.split("\"token\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let other = f.session("agent-b");
    let answer = f.call_as(other, "retry", json!({"token": token}));
    assert!(answer.text.starts_with("HANDLE_EXPIRED"), "{}", answer.text);
    f.pass(600_001);
    f.no("HANDLE_EXPIRED", "retry", json!({"token": token}));
    assert_eq!(f.get("net.rs"), "a\n");
}

#[test]
fn what_an_answer_cannot_hold_is_read_by_its_handle() {
    let f = Fixture::new();
    let long: String = (1..=3000).map(|n| format!("line {n}\n")).collect();
    f.ok("write_file", json!({"path": "long.txt", "content": long}));
    let shown = f.ok("show_change", json!({"change": "c1", "max_bytes": 2000}));
    let handle = fact(&shown, "handle").unwrap();
    let hits = f.ok("read_more", json!({"handle": handle, "pattern": "line 299\\d"}));
    assert_eq!(fact(&hits, "matches").as_deref(), Some("10"), "{hits}");
    let mut offset = 0;
    let mut whole = String::new();
    loop {
        let page = f.ok("read_more", json!({"handle": handle, "offset": offset, "limit": 5000}));
        whole.push_str(page.split_once('\n').unwrap().1);
        whole.push('\n');
        let Some(next) = fact(&page, "next_offset") else { break };
        offset = next.parse().unwrap();
    }
    assert!(
        (1..=3000).all(|n| whole.contains(&format!("+line {n}\n"))),
        "nothing is left out over the pages"
    );
    f.no("PATTERN_INVALID", "read_more", json!({"handle": handle, "pattern": "("}));
}

#[test]
fn calls_of_a_session_on_one_path_run_in_the_order_they_came() {
    let f = Fixture::new();
    f.put("par", "a\n");
    f.ok("read_file", json!({"path": "par"}));
    let args = |old: &str, new: &str| {
        let value = json!({"path": "par", "old_text": old, "new_text": new});
        value.as_object().cloned().unwrap_or_else(Map::new)
    };
    let calls: Vec<_> = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]
        .iter()
        .map(|(old, new)| {
            let args = args(old, new);
            let ticket = f.toolbox.arrive(f.session, "edit_file", &args);
            cotenant_tools::host::Call {
                session: f.session,
                tool: "edit_file".to_owned(),
                args,
                meta: Map::new(),
                ticket,
            }
        })
        .collect();
    std::thread::scope(|scope| {
        // The last to arrive is the first to be run.
        for call in calls.into_iter().rev() {
            scope.spawn(|| assert!(!f.toolbox.call(call).is_error));
        }
    });
    assert_eq!(f.get("par"), "e\n");
}

#[test]
fn a_session_that_ended_is_told_so() {
    let f = Fixture::new();
    f.toolbox.close(f.session);
    f.no("SESSION_ENDED", "whoami", json!({}));
}

#[test]
fn an_agent_may_be_narrowed_to_folders_and_to_reading() {
    let rule = AgentRule { folders: Some([(String::new(), Access::Read)].into()), ..AgentRule::default() };
    let settings = Settings {
        profile: Profile::Trusting,
        agents: [("agent-a".to_owned(), rule)].into(),
        ..Settings::default()
    };
    let f = Fixture::with(settings);
    f.put("a", "1\n");
    f.ok("read_file", json!({"path": "a"}));
    f.no("PATH_READ_ONLY", "edit_file", json!({"path": "a", "old_text": "1", "new_text": "2"}));
    let other = f.session("agent-b");
    assert!(!f.call_as(other, "write_file", json!({"path": "b", "content": "x"})).is_error);
}

#[test]
fn a_clients_roots_only_narrow() {
    let f = Fixture::new();
    f.put("src/a", "1\n");
    f.put("docs/b", "1\n");
    let root = f.path("src").display().to_string();
    f.toolbox.introduce(f.session, "client", Some(&[format!("file://{root}")]));
    f.ok("read_file", json!({"path": "src/a"}));
    f.no("PATH_OUTSIDE", "read_file", json!({"path": "docs/b"}));
    let other = f.session("agent-b");
    f.toolbox.introduce(other, "client", Some(&["file:///".to_owned()]));
    assert!(
        !f.call_as(other, "read_file", json!({"path": "docs/b"})).is_error,
        "a parent of the root is all of it"
    );
    assert!(f.call_as(other, "read_file", json!({"path": "/etc/passwd"})).is_error);
}

#[test]
fn a_root_that_was_replaced_is_opened_anew_and_old_receipts_are_void() {
    let f = Fixture::new();
    f.put("a", "1\n");
    f.ok("read_file", json!({"path": "a"}));
    std::fs::rename(f.path(""), f.path("../old")).unwrap();
    f.put("a", "2\n");
    let newcomer = f.session("agent-b");
    assert!(f.call_as(newcomer, "read_file", json!({"path": "a"})).text.contains("1|2"));
    f.no("EDIT_REQUIRES_PRIOR_READ", "edit_file", json!({"path": "a", "old_text": "2", "new_text": "3"}));
}
