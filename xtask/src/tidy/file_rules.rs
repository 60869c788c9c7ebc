//! The rules that look at one file at a time.

use super::Finding;
use super::scan::{Kind, Named, Source, Token};

const FUNCTION_LINES: usize = 70;
const FILE_LINES: usize = 800;

/// Crates in which `std::fs` is absent.
const WITHOUT_FILES: &[&str] = &["model", "text", "coord", "engine", "tools", "mcp"];
/// Crates that know no time but the values they are given.
const WITHOUT_CLOCK: &[&str] = &["model", "text", "coord"];
/// Crates that may measure durations, in their `sys` module only.
const MEASURING_IN_SYS: &[&str] = &["tree", "shell", "watch"];
/// Crates that read the wall clock.
const WITH_WALL_CLOCK: &[&str] = &["daemon", "cli"];
/// Words that start or replace a process.
const SPAWNING: &[&str] =
    &["fork", "vfork", "posix_spawn", "posix_spawnp", "execv", "execve", "execveat", "execvp"];

/// Everything wrong with one file.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rules =
        [header, file_length, function_length, files, spawning, clock, commit, panics, unsafety, ignored];
    for rule in rules {
        rule(source, &mut findings);
    }
    findings
}

fn found(source: &Source, line: usize, rule: &'static str, what: impl Into<String>) -> Finding {
    Finding { path: source.path.clone(), line, rule, what: what.into() }
}

fn header(source: &Source, findings: &mut Vec<Finding>) {
    let says = source.text.lines().next().and_then(|line| line.strip_prefix("//!"));
    if says.is_none_or(|says| says.trim().is_empty()) {
        findings.push(found(source, 1, "header", "open the file with a //! line that says what it is for"));
    }
}

fn file_length(source: &Source, findings: &mut Vec<Finding>) {
    let lines = source.text.lines().count();
    if lines > FILE_LINES {
        let what = format!(
            "{lines} lines, {FILE_LINES} at most; move what belongs together into a module of its own"
        );
        findings.push(found(source, 0, "length", what));
    }
}

fn function_length(source: &Source, findings: &mut Vec<Finding>) {
    for (at, token) in source.shipped() {
        let name = source.tokens.get(at + 1).filter(|name| name.kind == Kind::Word);
        let (true, Some(name)) = (token.text == "fn" && token.kind == Kind::Word, name) else { continue };
        let Some(body) = body_of(source, at) else { continue };
        let lines = source.tokens[source.close_of(body)].line + 1 - token.line;
        if lines > FUNCTION_LINES {
            let what = format!("fn {} has {lines} lines, {FUNCTION_LINES} at most; split it", name.text);
            findings.push(found(source, token.line, "length", what));
        }
    }
}

/// The brace that opens the body of the function at `at`; none where it is only declared.
fn body_of(source: &Source, at: usize) -> Option<usize> {
    let mut at = at;
    while let Some(token) = source.tokens.get(at) {
        match (token.kind, token.text.as_str()) {
            (Kind::Open, "{") => return Some(at),
            (Kind::Open, _) => at = source.close_of(at) + 1,
            (Kind::Sign, ";") => return None,
            _ => at += 1,
        }
    }
    None
}

fn files(source: &Source, findings: &mut Vec<Finding>) {
    if !WITHOUT_FILES.contains(&source.krate()) {
        return;
    }
    let opens = |path: &&Named| path.begins(&["std", "fs"]) || path.begins(&["std", "*"]);
    for path in source.shipped_paths().iter().filter(opens) {
        let what = format!(
            "{} in {}: bytes and files come through tree or as values",
            path.segments.join("::"),
            source.krate()
        );
        findings.push(found(source, path.line, "owners", what));
    }
}

fn spawning(source: &Source, findings: &mut Vec<Finding>) {
    let in_spawn = ["daemon", "cli"].contains(&source.krate()) && source.module() == "spawn.rs";
    if source.krate() == "shell" || in_spawn {
        return;
    }
    let spawns = |path: &Named| {
        let last = path.segments.last().map_or("", String::as_str);
        path.has(&["process", "Command"])
            || path.begins(&["tokio", "process"])
            || path.begins(&["std", "process", "*"])
            || SPAWNING.contains(&last)
    };
    for path in source.shipped_paths().iter().filter(|path| spawns(path)) {
        let what = format!(
            "{} starts a process: only shell and the spawn.rs of daemon and cli may",
            path.segments.join("::")
        );
        findings.push(found(source, path.line, "spawn", what));
    }
}

fn clock(source: &Source, findings: &mut Vec<Finding>) {
    let krate = source.krate();
    let wall = [&["SystemTime", "now"], &["Timestamp", "now"], &["Zoned", "now"], &["ClockId", "Realtime"]];
    let steady = [&["Instant", "now"], &["ClockId", "Monotonic"]];
    let no_steady = WITHOUT_CLOCK.contains(&krate) || (MEASURING_IN_SYS.contains(&krate) && !source.is_sys());
    for path in source.shipped_paths() {
        let reads_wall = !WITH_WALL_CLOCK.contains(&krate) && wall.iter().any(|words| path.has(*words));
        let reads_steady = no_steady && steady.iter().any(|words| path.has(*words));
        if reads_wall || reads_steady {
            let what =
                format!("{} in {krate}: time comes in as a value from daemon", path.segments.join("::"));
            findings.push(found(source, path.line, "clock", what));
        }
    }
}

fn commit(source: &Source, findings: &mut Vec<Finding>) {
    if source.krate() == "engine" {
        return;
    }
    for path in source.shipped_paths() {
        for owner in ["tree", "ledger"] {
            let name = format!("cotenant_{owner}");
            let outside = source.krate() != owner && path.segments[0] == name;
            let reached = outside && (path.has(&[&name, "commit"]) || path.has(&[&name, "*"]));
            if reached {
                let what = format!(
                    "{} reaches {owner}::commit, which only engine may name",
                    path.segments.join("::")
                );
                findings.push(found(source, path.line, "commit", what));
            }
        }
    }
    renamed_or_passed_on(source, findings);
}

/// The two ways around the rule above: another name for the crate, and the owner handing its module on.
fn renamed_or_passed_on(source: &Source, findings: &mut Vec<Finding>) {
    let owner = ["tree", "ledger"].contains(&source.krate());
    for (at, token) in source.shipped() {
        let crate_renamed =
            ["cotenant_tree", "cotenant_ledger"].contains(&token.text.as_str()) && source.is(at + 1, "as");
        if crate_renamed {
            let what =
                format!("{} under another name hides its commit module; use it by its own", token.text);
            findings.push(found(source, token.line, "commit", what));
        }
        let handed_on =
            owner && token.text == "pub" && source.is(at + 1, "use") && names_commit(source, at + 2);
        if handed_on {
            findings.push(found(
                source,
                token.line,
                "commit",
                "do not re-export what stands in commit; engine names it there",
            ));
        }
    }
}

fn names_commit(source: &Source, at: usize) -> bool {
    source.tokens[at..].iter().take_while(|token| token.text != ";").any(|token| token.text == "commit")
}

fn panics(source: &Source, findings: &mut Vec<Finding>) {
    let methods = ["unwrap", "expect", "unwrap_err", "expect_err"];
    let macros = ["panic", "todo", "unimplemented"];
    for (at, token) in source.shipped() {
        let word = token.text.as_str();
        let called = at > 0 && source.is(at - 1, ".") && source.is(at + 1, "(") && methods.contains(&word);
        let invoked = source.is(at + 1, "!") && !source.is(at + 2, "=") && macros.contains(&word);
        if called || invoked {
            let what = format!("{word} outside tests: return an error, or make the case impossible by type");
            findings.push(found(source, token.line, "panics", what));
        }
    }
}

fn unsafety(source: &Source, findings: &mut Vec<Finding>) {
    if source.is_sys() {
        return;
    }
    for (_, token) in source.shipped().filter(|(_, token)| token.text == "unsafe" && token.kind == Kind::Word)
    {
        findings.push(found(
            source,
            token.line,
            "unsafe",
            "unsafe belongs into the crate's sys module, behind a plain function",
        ));
    }
}

/// A test may be ignored only if another one of its file runs it by name, in surroundings of its own making.
fn ignored(source: &Source, findings: &mut Vec<Finding>) {
    for (at, token) in source.tokens.iter().enumerate() {
        if token.text != "#" || !source.is(at + 1, "[") {
            continue;
        }
        let close = source.close_of(at + 1);
        let conditional = source.is(at + 2, "cfg_attr");
        let ignores = source.is(at + 2, "ignore")
            || (conditional && source.tokens[at + 2..close].iter().any(|token| token.text == "ignore"));
        if ignores && !run_by_name(source, close) {
            let what = "an ignored test tests nothing: let it run, put it under COTENANT_LONG, or remove it";
            findings.push(found(source, token.line, "ignored", what));
        }
    }
}

/// The function after the attribute that ends at `close` is named by a string of the file, as `test` or `module::test`.
fn run_by_name(source: &Source, close: usize) -> bool {
    let name =
        (close..source.tokens.len()).find(|at| source.is(*at, "fn")).and_then(|at| source.tokens.get(at + 1));
    let Some(name) = name else { return false };
    let names = |token: &Token| {
        let said = token.text.trim_matches('"');
        token.kind == Kind::Literal && said.rsplit("::").next() == Some(&name.text)
    };
    source.tokens.iter().any(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules broken by `text` as the file `path`, each with its line.
    fn broken(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let source = Source::new(path, &format!("//! A file.\n{text}")).unwrap();
        check(&source).iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn header_is_the_first_line_and_says_something() {
        let rules = |text| check(&Source::new("crates/tree/tests/it/main.rs", text).unwrap());
        assert_eq!(rules("//! What it is for.\nfn a() {}"), []);
        for bad in ["fn a() {}", "//!\nfn a() {}", "// A file.\n", "\n//! Late.", ""] {
            assert_eq!(rules(bad).first().map(|finding| finding.rule), Some("header"), "{bad:?}");
        }
    }

    #[test]
    fn a_file_of_800_lines_passes_and_one_more_does_not() {
        let text = |lines: usize| "// line\n".repeat(lines - 1);
        for path in
            ["crates/tree/src/a.rs", "crates/tree/tests/it/a.rs", "xtask/src/a.rs", "crates/testkit/src/a.rs"]
        {
            assert_eq!(broken(path, &text(800)), []);
            assert_eq!(broken(path, &text(801)), [("length", 0)]);
        }
    }

    #[test]
    fn a_function_of_70_lines_passes_and_one_more_does_not() {
        let function = |lines: usize| {
            format!("fn a<T: Fn(u8)>(\n) -> [u8; 2]\nwhere T: X {{\n{}}}", "\n".repeat(lines - 4))
        };
        assert_eq!(broken("crates/tree/src/a.rs", &function(70)), []);
        assert_eq!(broken("crates/tree/src/a.rs", &function(71)), [("length", 2)]);
        let method = format!(
            "impl A {{ trait_fn!(); }}\ntrait B {{ fn a(&self);\n fn b() {{\n{}}} }}",
            "\n".repeat(80)
        );
        assert_eq!(broken("crates/tree/src/a.rs", &method), [("length", 4)]);
    }

    #[test]
    fn long_functions_are_free_in_tests_testkit_and_xtask() {
        let long = format!("fn a() {{\n{}}}", "\n".repeat(90));
        for path in ["crates/tree/tests/it/a.rs", "crates/testkit/src/a.rs", "xtask/src/a.rs"] {
            assert_eq!(broken(path, &long), []);
        }
        assert_eq!(broken("crates/tree/src/a.rs", &format!("#[cfg(test)]\nmod tests {{ {long} }}")), []);
    }

    #[test]
    fn std_fs_stays_with_its_owners() {
        for text in [
            "use std::fs;",
            "use std::{io, fs::File};",
            "fn a() { std::fs::read(x) }",
            "use ::std::fs;",
            "use std::*;",
        ] {
            for krate in WITHOUT_FILES {
                assert_eq!(
                    broken(&format!("crates/{krate}/src/a.rs"), text),
                    [("owners", 2)],
                    "{krate}: {text}"
                );
            }
            for krate in ["tree", "ledger", "daemon", "cli", "testkit"] {
                assert_eq!(broken(&format!("crates/{krate}/src/a.rs"), text), [], "{krate}: {text}");
            }
        }
        assert_eq!(broken("crates/engine/src/a.rs", "// std::fs\nuse std::os::unix::fs::MetadataExt;"), []);
        assert_eq!(broken("crates/engine/tests/it/main.rs", "use std::fs;"), []);
    }

    #[test]
    fn processes_start_in_their_places_only() {
        let texts = [
            "use std::process::Command;",
            "use std::process::{Command as C, Stdio};",
            "use std::process::*;",
            "fn a() { process::Command::new(x) }",
            "use tokio::process;",
            "fn a() { libc::fork() }",
        ];
        for text in texts {
            assert_eq!(broken("crates/tree/src/a.rs", text), [("spawn", 2)], "{text}");
            assert_eq!(broken("crates/daemon/src/lib.rs", text), [("spawn", 2)], "{text}");
            for place in ["crates/daemon/src/spawn.rs", "crates/cli/src/spawn.rs", "crates/shell/src/run.rs"]
            {
                assert_eq!(broken(place, text), [], "{place}: {text}");
            }
        }
        assert_eq!(broken("crates/cli/src/main.rs", "use clap::Command; use std::process::ExitCode;"), []);
    }

    #[test]
    fn the_wall_clock_is_read_at_the_rim() {
        for text in [
            "fn a() { std::time::SystemTime::now() }",
            "fn a() { jiff::Timestamp::now() }",
            "fn a() { Zoned::now() }",
        ] {
            assert_eq!(broken("crates/ledger/src/a.rs", text), [("clock", 2)], "{text}");
            assert_eq!(broken("crates/daemon/src/a.rs", text), [], "{text}");
        }
        assert_eq!(broken("crates/ledger/src/a.rs", "fn a(t: std::time::SystemTime) {}"), []);
    }

    #[test]
    fn durations_are_measured_where_allowed() {
        let text = "fn a() { std::time::Instant::now() }";
        for (path, allowed) in [
            ("crates/coord/src/a.rs", false),
            ("crates/tree/src/open.rs", false),
            ("crates/tree/src/sys.rs", true),
            ("crates/tree/src/sys/wait.rs", true),
            ("crates/engine/src/a.rs", true),
        ] {
            assert_eq!(broken(path, text).is_empty(), allowed, "{path}");
        }
    }

    #[test]
    fn only_engine_names_the_commit_modules() {
        for text in [
            "use cotenant_tree::commit;",
            "use cotenant_ledger::{commit::seal, read};",
            "fn a() { cotenant_tree::commit::exchange() }",
            "use cotenant_tree::*;",
        ] {
            assert_eq!(broken("crates/tools/src/a.rs", text), [("commit", 2)], "{text}");
            assert_eq!(broken("crates/engine/src/a.rs", text), [], "{text}");
            assert_eq!(broken("crates/tools/tests/it/main.rs", text), [], "{text}");
        }
        assert_eq!(broken("crates/tools/src/a.rs", "use cotenant_tree as t;"), [("commit", 2)]);
        assert_eq!(broken("crates/tools/src/a.rs", "use cotenant_tree::{open, Tree};"), []);
        assert_eq!(broken("crates/tree/src/lib.rs", "pub mod commit;\nuse commit::x;"), []);
        assert_eq!(broken("crates/tree/src/lib.rs", "pub use commit::exchange;"), [("commit", 2)]);
    }

    #[test]
    fn nothing_that_ships_panics_by_word() {
        for text in [
            "fn a() { x.unwrap() }",
            "fn a() { x.expect(\"y\") }",
            "fn a() { panic!() }",
            "fn a() { vec![todo!()] }",
            "fn a() { unimplemented!(\"z\") }",
        ] {
            assert_eq!(broken("crates/tree/src/a.rs", text), [("panics", 2)], "{text}");
            assert_eq!(broken("crates/tree/src/a.rs", &format!("#[cfg(test)] mod tests {{ {text} }}")), []);
            assert_eq!(broken("crates/tree/tests/it/a.rs", text), []);
        }
        let fine =
            "fn expect() { x.unwrap_or(1); x.expected(); \"panic!\"; self::expect(); if panic != x {} }";
        assert_eq!(broken("crates/tree/src/a.rs", fine), []);
    }

    #[test]
    fn unsafe_stands_in_sys() {
        let text = "fn a() { unsafe { b() } }";
        assert_eq!(broken("crates/tree/src/open.rs", text), [("unsafe", 2)]);
        assert_eq!(broken("crates/tree/src/sys.rs", text), []);
        assert_eq!(broken("crates/tree/src/sys/lease.rs", text), []);
        assert_eq!(broken("crates/tree/src/open.rs", "#![deny(unsafe_code)]"), []);
    }

    #[test]
    fn no_test_is_ignored_anywhere() {
        for text in [
            "#[ignore]\nfn a() {}",
            "#[ignore = \"slow\"]\nfn a() {}",
            "#[cfg_attr(unix, ignore)]\nfn a() {}",
        ] {
            for path in ["crates/tree/tests/it/a.rs", "crates/tree/src/a.rs", "xtask/src/a.rs"] {
                assert_eq!(broken(path, text), [("ignored", 2)], "{path}: {text}");
            }
        }
        let run = "fn b() { alone(\"a::inside\") }\n#[ignore = \"run by b\"]\nfn inside() {}";
        assert_eq!(broken("crates/tree/tests/it/a.rs", run), []);
        let not_run = "fn b() { alone(\"a::outside\") }\n#[ignore = \"run by inside\"]\nfn inside() {}";
        assert_eq!(broken("crates/tree/tests/it/a.rs", not_run), [("ignored", 3)]);
        assert_eq!(
            broken(
                "crates/tree/src/a.rs",
                "use ignore::Walk;\n#[cfg_attr(unix, allow(x))]\nfn a() { b(ignore) }"
            ),
            []
        );
    }
}
