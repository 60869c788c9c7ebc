//! Searching: what is there is found, what was left out is counted, and nothing floods the answer.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Case, cases};

cases!(c067, c068, c070, c071, c073, c074, c076, c077, c079, c080, c082, c083);

fn c067(case: &Case) {
    let mut agent = case.agent();
    let plain = agent.grep("MARK7", ".");
    plain.ok().says("kept.txt").never_says("w.py").never_says("app.log").says("ignored:");
    agent.grep("MARK7", "scripts/").ok().says("w.py");
    agent.grep("MARK7", "scripts/w.py").ok().says("w.py");
    let all = json!({"pattern": "MARK7", "content_search": true, "path": ".", "include_ignored": true});
    let all = agent.call("search_files", all);
    all.ok().says("kept.txt").says("scripts/w.py").says("app.log").says("protected:").never_says("\n.env\n");
}

fn c068(case: &Case) {
    let mut agent = case.agent();
    agent.grep("needle9", ".config/app").ok().says("needle9").says("a\n");
    agent.grep("needle9", ".").ok().says(".config/app/a").says(".github/b");
    agent.glob(".github/*").ok().says(".github/b");
}

fn c070(case: &Case) {
    let mut agent = case.agent();
    for found in [
        agent.glob("**/*"),
        agent.call("search_files", json!({"pattern": "x", "content_search": true, "glob": "*.js"})),
        agent.call("search_files", json!({"pattern": "x", "content_search": true, "glob": "*"})),
    ] {
        found.ok().says("b.js").never_says("a.log").never_says("node_modules/");
    }
}

fn c071(case: &Case) {
    let found = case.agent().grep("findme", ".");
    found.ok();
    let binary = found.text.contains("n.py") || found.get("skipped").contains("binary");
    let ignored = found.text.contains("sub/t.txt") || found.get("skipped").contains("ignored");
    assert!(binary && ignored, "{}", found.text);
}

fn c073(case: &Case) {
    let mut agent = case.agent();
    assert_eq!(agent.grep("--pre=./pre.sh", ".").ok().number("matches"), 0);
    let filtered = json!({"pattern": "hello", "content_search": true, "glob": "--pre=./pre.sh"});
    assert_eq!(agent.call("search_files", filtered).ok().number("matches"), 0);
    agent.grep("hello", "--pre=./pre.sh").refused("NOT_FOUND");
}

fn c074(case: &Case) {
    let found = case.agent().grep("STATSX", ".");
    found.ok().says("v.min.js").says("s.js").says("clipped");
    assert_eq!((found.number("matches"), found.number("files")), (2, 2));
    assert!(found.fact("next_offset").is_none(), "{}", found.text);
    assert!(found.text.len() < 20_000, "{} bytes", found.text.len());
    let length = (80_000 * 8 + 6 + 80_000 * 4).to_string();
    found.says(&length);
    let longest = found.text.lines().map(str::len).max();
    assert!(longest < Some(1024), "a line of {longest:?} bytes");
}

fn c076(case: &Case) {
    let mut agent = case.agent();
    let mut page = |path: &str, offset: u64| {
        let search =
            json!({"pattern": "hit", "content_search": true, "path": path, "limit": 50, "offset": offset});
        let reply = agent.call("search_files", search);
        let files: Vec<String> =
            reply.ok().content().lines().filter(|line| line.ends_with(".txt")).map(str::to_owned).collect();
        (files, reply.fact("next_offset"))
    };
    let (first, next) = page("m", 0);
    assert_eq!((first.len(), next.as_deref()), (50, Some("50")));
    let (second, next) = page("m", 50);
    assert_eq!((second.len(), next), (10, None));
    assert_eq!(first.iter().chain(&second).collect::<BTreeSet<_>>().len(), 60, "the pages overlap");
    assert_eq!(page("m", 0).0, first, "the order is not stable");
    let (exact, next) = page("k", 0);
    assert_eq!((exact.len(), next), (50, None));
}

fn c077(case: &Case) {
    let mut agent = case.agent();
    for more in [
        json!({"limit": 5}),
        json!({"limit": 25}),
        json!({"limit": 1000}),
        json!({"output": "count"}),
        json!({"output": "files"}),
    ] {
        let mut search = json!({"pattern": "w", "content_search": true});
        search.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let found = agent.call("search_files", search);
        if !found.ok().get("matches").starts_with("at_least:") {
            assert_eq!((found.number("matches"), found.number("files")), (27, 9), "{}", found.text);
        }
    }
}

fn c079(case: &Case) {
    let mut agent = case.agent();
    for pattern in ["needle$", "^needle$"] {
        let found = agent.grep(pattern, ".");
        found.ok().says("c.txt").says("l.txt").never_says("\r");
        assert_eq!(
            (found.number("matches"), found.text.matches("1:needle").count()),
            (2, 2),
            "{}",
            found.text
        );
    }
}

fn c080(case: &Case) {
    let mut agent = case.agent();
    for path in [".", "pkg", "pkg/x", "pkg/x/build"] {
        let found = agent.grep("string5", path);
        assert_eq!(found.ok().number("matches"), 1, "{path}: {}", found.text);
    }
    agent.grep("string5", ".").says("pkg/x/build/foo").never_says("\nbuild/foo");
    assert_eq!(agent.grep("string5", "build").ok().number("matches"), 1);
}

fn c082(case: &Case) {
    let mut agent = case.agent();
    let listed = agent.call("list_directory", json!({"path": ".", "recursive": true}));
    for found in [agent.glob("**/*"), agent.grep("z", "."), listed] {
        assert_eq!(found.ok().text.matches("/f").count(), 1, "{}", found.text);
    }
}

fn c083(case: &Case) {
    let mut agent = case.agent();
    let mut from = |start: u64| agent.call("read_file", json!({"path": "r.txt", "start": start}));
    let (last, fourth, far) = (from(3), from(4), from(100));
    last.ok().says("3|c");
    assert_eq!(last.get("final_newline"), "no");
    for past in [&fourth, &far] {
        past.says("past the end").says("3 lines");
        assert!(past.numbered().is_empty(), "{}", past.text);
    }
    let empty = agent.read("empty.txt");
    empty.says("empty").never_says("past the end");
    assert_eq!(empty.number("bytes"), 0);
    assert!(empty.numbered().is_empty(), "{}", empty.text);
}
