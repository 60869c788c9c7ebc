//! How an agent works: refusals that lead on, handles, dry runs, history and undo, and what a session knows of itself.

use cotenant_testkit::Client;
use serde_json::json;

use crate::support::{diff_lines, scratch};

#[test]
fn a_refusals_next_call_works_as_it_stands() {
    let scratch = scratch();
    scratch.put("src/utils/parse.rs", "fn a() {}\nfn b() {}\n");
    scratch.put("old.txt", "old\n");
    let mut agent = scratch.mcp().start();

    let missing = agent.call("read_file", json!({"path": "src/util/parse.rs"}));
    missing.refused("NOT_FOUND").says("src/utils/parse.rs");
    agent.follow(&missing).ok().says("1|fn a() {}");

    let exists = agent.write("old.txt", "new\n");
    exists.refused("ALREADY_EXISTS").says("old");
    agent.follow(&exists).ok();
    assert_eq!(scratch.text("old.txt"), "new\n");

    scratch.put("unread.txt", "alpha\nbeta\n");
    let unread = agent.edit("unread.txt", "beta", "gamma");
    unread.refused("EDIT_REQUIRES_PRIOR_READ").says("2|beta");
    agent.follow(&unread).ok();
    assert_eq!(scratch.text("unread.txt"), "alpha\ngamma\n");

    scratch.put("link.txt", "x\n");
    let outside = agent.call("read_file", json!({"path": "src/../link.txt"}));
    outside.refused("PATH_OUTSIDE");
    agent.follow(&outside).ok().says("1|x");
}

#[test]
fn one_of_several_places_is_chosen_by_a_retry() {
    let scratch = scratch();
    scratch.put("m.rs", "impl A {\n  close()\n}\nimpl B {\n  close()\n}\n");
    let mut agent = scratch.mcp().start();
    agent.read("m.rs");
    let ambiguous = agent.edit("m.rs", "  close()", "  shut()");
    ambiguous.refused("TEXT_AMBIGUOUS").says("impl B");
    assert_eq!((ambiguous.number("count"), ambiguous.get("lines")), (2, "2,5".to_owned()));
    agent.retry(&ambiguous.offered("token"), json!({"line": 5})).ok();
    assert_eq!(scratch.text("m.rs"), "impl A {\n  close()\n}\nimpl B {\n  shut()\n}\n");
    let token = {
        scratch.put("n.rs", "x\nx\n");
        agent.read("n.rs");
        agent.edit("n.rs", "x", "y").refused("TEXT_AMBIGUOUS").offered("token")
    };
    agent.retry(&token, json!({"replace_all": true})).ok();
    assert_eq!(scratch.text("n.rs"), "y\ny\n");
    agent.retry("r9999", json!({})).refused("HANDLE_EXPIRED");
}

#[test]
fn a_change_by_another_is_shown_and_then_counts_as_read() {
    let scratch = scratch();
    scratch.put("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    let mut first = scratch.mcp().flags(&["--agent", "first"]).start();
    let mut second = scratch.mcp().flags(&["--agent", "second", "--task", "numbers"]).start();
    first.read("a.txt");
    second.read("a.txt");
    second.edit("a.txt", "two", "2").ok();
    let stale = first.edit("a.txt", "two\nthree", "II\nIII");
    stale.refused_as(&["FILE_CHANGED_SINCE_READ", "TEXT_NOT_FOUND"]).says("second");
    let near = first.edit("a.txt", "three", "III");
    near.refused_as_or_ok(&["FILE_CHANGED_SINCE_READ"]);
    if near.code().is_some() {
        first.edit("a.txt", "three", "III").ok();
    }
    first.edit("a.txt", "five", "V").ok();
    assert_eq!(scratch.text("a.txt"), "one\n2\nIII\nfour\nV\n");
}

#[test]
fn a_far_change_by_another_does_not_stop_an_edit() {
    let scratch = scratch();
    let text = (1..=50).map(|line| format!("line {line}\n")).collect::<String>();
    scratch.put("a.txt", &text);
    let mut agent = scratch.mcp().start();
    agent.read("a.txt");
    scratch.put("a.txt", text.replace("line 3\n", "line three\n"));
    let edited = agent.edit("a.txt", "line 40\n", "line forty\n");
    edited.ok();
    let expected = text.replace("line 3\n", "line three\n").replace("line 40\n", "line forty\n");
    assert_eq!(scratch.text("a.txt"), expected);
}

#[test]
fn the_rest_of_a_capped_answer_is_read_by_its_handle() {
    let scratch = scratch();
    for number in 0..300 {
        scratch.put(&format!("many/file-{number:03}"), "");
    }
    let mut agent = scratch.mcp().start();
    let first = agent.call("list_directory", json!({"path": "many", "limit": 100}));
    assert_eq!(first.ok().number("total"), 300);
    let handle = first.get("handle");
    let matching = agent.call("read_more", json!({"handle": handle, "pattern": "file-29[0-9]"}));
    assert_eq!(matching.ok().content().matches("file-29").count(), 10, "{}", matching.text);
    let mut names: Vec<String> = first.content().lines().map(str::to_owned).collect();
    let mut offset = first.fact("next_offset");
    while let Some(from) = offset {
        let page = agent.call("read_more", json!({"handle": handle, "offset": from}));
        names.extend(page.ok().content().lines().map(str::to_owned));
        offset = page.fact("next_offset");
    }
    let expected: Vec<String> = (0..300).map(|number| format!("file-{number:03}")).collect();
    let short = |name: &String| name.rsplit('/').next().unwrap().to_owned();
    assert_eq!(names.iter().map(short).collect::<Vec<_>>(), expected);
    agent.call("read_more", json!({"handle": "h9999"})).refused("HANDLE_EXPIRED");
}

#[test]
fn a_long_diff_is_kept_behind_a_handle() {
    let scratch = scratch();
    let text = (1..=4000).map(|line| format!("line number {line}\n")).collect::<String>();
    let mut agent = scratch.mcp().start();
    let change = agent.write("big.txt", &text).ok().get("change");
    let shown = agent.call("show_change", json!({"change": change}));
    let handle = shown.ok().get("handle");
    let matching = agent.call("read_more", json!({"handle": handle, "pattern": "number 399[0-9]"}));
    assert_eq!(matching.ok().number("matches"), 10, "{}", matching.text);
    let (mut offset, mut lines) = (Some(0), 0);
    while let Some(from) = offset {
        let page = agent.call("read_more", json!({"handle": handle, "offset": from}));
        lines += page.ok().content().matches("+line number").count();
        offset = page.fact("next_offset").map(|next| next.parse::<u64>().unwrap());
        assert!(offset.is_none_or(|next| next > from), "{}", page.text);
    }
    assert_eq!(lines, 4000);
}

#[test]
fn pages_of_a_file_join_without_a_gap() {
    let scratch = scratch();
    let text = (1..=2500).map(|line| format!("line number {line}\n")).collect::<String>();
    scratch.put("big.txt", &text);
    let mut agent = scratch.mcp().start();
    let (mut start, mut whole) = (1, String::new());
    loop {
        let page = agent.call("read_file", json!({"path": "big.txt", "start": start, "line_numbers": false}));
        whole += page.ok().content();
        whole += if whole.ends_with('\n') { "" } else { "\n" };
        match page.fact("next_start") {
            Some(next) => start = next.parse::<u64>().unwrap(),
            None => break,
        }
    }
    assert_eq!(whole, text);
}

#[test]
fn an_idempotency_key_gives_the_first_result_again() {
    let scratch = scratch();
    scratch.put("a.txt", "n=0\n");
    let mut agent = scratch.mcp().flags(&["--agent", "agent-a"]).start();
    agent.read("a.txt");
    let edit = json!({"path": "a.txt", "old_text": "0", "new_text": "0+1", "idempotency_key": "k1"});
    let first = agent.call("edit_file", edit.clone());
    let again = agent.call("edit_file", edit.clone());
    assert_eq!(first.ok().get("change"), again.ok().get("change"));
    assert_eq!(scratch.text("a.txt"), "n=0+1\n");
    let mut other = edit.clone();
    other["new_text"] = json!("2");
    agent.call("edit_file", other).refused("BAD_INPUT");
    // It holds beyond the daemon's life.
    scratch.kill_daemon();
    let later = agent.call("edit_file", edit);
    assert_eq!(later.ok().get("change"), first.get("change"));
    assert_eq!(scratch.text("a.txt"), "n=0+1\n");
}

#[test]
fn a_dry_run_shows_and_writes_nothing() {
    let scratch = scratch();
    scratch.put("a.txt", "one\ntwo\n");
    let mut agent = scratch.mcp().start();
    agent.read("a.txt");
    for (tool, arguments) in [
        ("edit_file", json!({"path": "a.txt", "old_text": "two", "new_text": "2"})),
        ("write_file", json!({"path": "a.txt", "content": "one\n2\n", "overwrite": true})),
    ] {
        let mut dry = arguments.clone();
        dry["dry_run"] = json!(true);
        let preview = agent.call(tool, dry);
        assert_eq!(diff_lines(preview.ok()), (1, 1), "{}", preview.text);
        assert!(preview.fact("change").is_none(), "{}", preview.text);
    }
    agent.call("write_file", json!({"path": "made/new.txt", "content": "x\n", "dry_run": true})).ok();
    assert_eq!(scratch.sh("ls; cat a.txt").stdout, "a.txt\none\ntwo\n");
    assert_eq!(agent.call("history", json!({})).number("changes"), 0);
}

#[test]
fn history_shows_what_was_done_and_undo_takes_it_back() {
    let scratch = scratch();
    scratch.put("a.txt", "one\ntwo\n");
    let mut agent = scratch.mcp().flags(&["--agent", "agent-a", "--task", "numbers"]).start();
    agent.read("a.txt");
    let edited = agent.edit("a.txt", "two", "2").ok().get("change");
    let made = agent.write("made/new.txt", "x\n").ok().get("change");
    let history = agent.call("history", json!({}));
    assert_eq!(history.ok().number("changes"), 2);
    history
        .says(&edited)
        .says("agent=agent-a")
        .says("tool=edit_file")
        .says("task=numbers")
        .says("files=a.txt");
    let of_path = agent.call("history", json!({"path": "made/new.txt"}));
    assert_eq!(of_path.number("changes"), 1);
    of_path.says(&made);
    let shown = agent.call("show_change", json!({"change": edited}));
    shown.ok().says("-two").says("+2").says("agent-a");
    agent.call("show_change", json!({"change": "c9999"})).refused("NOT_FOUND");

    let preview = agent.call("undo", json!({"change": edited, "dry_run": true}));
    preview.ok().says("-2").says("+two");
    assert_eq!(scratch.text("a.txt"), "one\n2\n");
    let undone = agent.call("undo", json!({"change": edited})).ok().get("change");
    assert_eq!(scratch.text("a.txt"), "one\ntwo\n");
    agent.call("undo", json!({"change": made})).ok();
    assert!(!scratch.path("made/new.txt").exists());
    // An undo is a change too.
    agent.call("undo", json!({"change": undone})).ok();
    assert_eq!(scratch.text("a.txt"), "one\n2\n");
    assert_eq!(agent.call("history", json!({})).number("changes"), 5);
    scratch.run(&["journal", "verify"]).ok();
}

#[test]
fn history_outlives_the_daemon_and_the_bridge() {
    let scratch = scratch();
    scratch.put("a.txt", "one\n");
    let change = {
        let mut agent = scratch.mcp().flags(&["--agent", "agent-a"]).start();
        agent.read("a.txt");
        agent.edit("a.txt", "one", "1").ok().get("change")
    };
    scratch.run(&["stop"]).ok();
    let mut agent = scratch.mcp().flags(&["--agent", "agent-a"]).start();
    agent.call("history", json!({})).ok().says(&change);
    agent.call("undo", json!({"change": change})).ok();
    assert_eq!(scratch.text("a.txt"), "one\n");
}

#[test]
fn a_write_of_the_same_bytes_is_no_change() {
    let scratch = scratch();
    scratch.put("a.txt", "one\n");
    let mut agent = scratch.mcp().start();
    agent.read("a.txt");
    agent.overwrite("a.txt", "one\n").refused("NOTHING_TO_CHANGE");
    agent.edit("a.txt", "one", "one").refused("NOTHING_TO_CHANGE");
    assert_eq!(agent.call("history", json!({})).number("changes"), 0);
}

#[test]
fn a_session_knows_itself() {
    let scratch = scratch();
    let mut agent = scratch.mcp().flags(&["--agent", "agent-a", "--task", "fix it"]).start();
    agent.write("a.txt", "x\n").ok();
    let own = agent.call("whoami", json!({}));
    assert_eq!((own.get("agent"), own.get("task")), ("agent-a".to_owned(), "fix it".to_owned()));
    assert_eq!((own.get("mode"), own.get("profile")), ("normal".to_owned(), "trusting".to_owned()));
    own.says("a.txt");
    assert!(own.text.len() <= 2048, "{} bytes", own.text.len());
    let unnamed = |client: &mut Client| client.call("whoami", json!({})).get("agent");
    let (mut one, mut two) = (scratch.mcp().name("editor").start(), scratch.mcp().name("editor").start());
    let names = (unnamed(&mut one), unnamed(&mut two));
    assert!(
        names.0.starts_with("editor-") && names.1.starts_with("editor-") && names.0 != names.1,
        "{names:?}"
    );
}

#[test]
fn specials_in_new_text_are_literal() {
    let scratch = scratch();
    scratch.put("a.txt", "a\nb two\nc\n");
    let mut agent = scratch.mcp().start();
    agent.read("a.txt");
    agent.edit("a.txt", "b two", "b $& $1 \\1 \\n ${x}").ok();
    assert_eq!(scratch.text("a.txt"), "a\nb $& $1 \\1 \\n ${x}\nc\n");
}

#[test]
fn echoed_line_numbers_are_taken_off_and_named() {
    let scratch = scratch();
    scratch.put("a.txt", "one\ntwo\nthree\n");
    let mut agent = scratch.mcp().start();
    agent.read("a.txt");
    let edited = agent.edit("a.txt", "1|one\n2|two", "1|uno\n2|dos");
    assert!(!edited.ok().notices().is_empty(), "not said: {}", edited.text);
    assert_eq!(scratch.text("a.txt"), "uno\ndos\nthree\n");
}
