//! Whole sessions at random against a naive model: what stands in each file, and what each session has seen of it.

use std::collections::BTreeMap;

use cotenant_model::SessionId;
use proptest::prelude::*;
use serde_json::json;

use crate::fixture::{Fixture, fact};

const PATHS: [&str; 3] = ["a", "d/b", "d/e/c"];
const LINES: usize = 5;

/// What a session, or someone outside, does.
#[derive(Clone, Debug)]
enum Step {
    Read { who: usize, path: usize },
    Edit { who: usize, path: usize, line: usize },
    Write { who: usize, path: usize, overwrite: bool },
    Outside { path: usize, line: usize },
    Remove { path: usize },
    Undo { who: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let (who, path, line) = (0usize..2, 0usize..3, 0..LINES);
    prop_oneof![
        3 => (who.clone(), path.clone()).prop_map(|(who, path)| Step::Read { who, path }),
        5 => (who.clone(), path.clone(), line.clone()).prop_map(|(who, path, line)| Step::Edit { who, path, line }),
        3 => (who.clone(), path.clone(), any::<bool>()).prop_map(|(who, path, overwrite)| Step::Write { who, path, overwrite }),
        1 => (path.clone(), line).prop_map(|(path, line)| Step::Outside { path, line }),
        1 => path.prop_map(|path| Step::Remove { path }),
        1 => who.prop_map(|who| Step::Undo { who }),
    ]
}

/// The naive model: the text of each file, and the version that each session saw whole last.
#[derive(Default)]
struct Model {
    files: BTreeMap<usize, Vec<String>>,
    seen: BTreeMap<(usize, usize), Vec<String>>,
    fresh: usize,
}

impl Model {
    /// A line that never stood anywhere before.
    fn word(&mut self) -> String {
        self.fresh += 1;
        format!("word-{}", self.fresh)
    }

    fn text(lines: &[String]) -> String {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Whether an edit of `line` is clear of every line that others changed since the session looked.
    fn clear(&self, who: usize, path: usize, line: usize) -> Option<bool> {
        let (seen, now) = (self.seen.get(&(who, path))?, self.files.get(&path)?);
        if seen.len() != now.len() {
            // Another file altogether: nothing of it was seen.
            return Some(false);
        }
        let changed = (0..now.len()).filter(|at| seen[*at] != now[*at]);
        Some(changed.into_iter().all(|at| at.abs_diff(line) > 1))
    }
}

struct Run {
    f: Fixture,
    sessions: [SessionId; 2],
    model: Model,
}

impl Run {
    fn read(&mut self, who: usize, path: usize) {
        let answer = self.f.call_as(self.sessions[who], "read_file", json!({"path": PATHS[path]}));
        match self.model.files.get(&path) {
            Some(lines) => {
                assert!(!answer.is_error, "{}", answer.text);
                self.model.seen.insert((who, path), lines.clone());
            }
            None => assert!(answer.text.starts_with("NOT_FOUND"), "{}", answer.text),
        }
    }

    fn edit(&mut self, who: usize, path: usize, line: usize) {
        let new = self.model.word();
        let old = self.model.files.get(&path).map_or("absent".to_owned(), |lines| lines[line].clone());
        let args =
            json!({"path": PATHS[path], "old_text": format!("{old}\n"), "new_text": format!("{new}\n")});
        let answer = self.f.call_as(self.sessions[who], "edit_file", args);
        let clear = self.model.clear(who, path, line);
        let current = self.model.seen.get(&(who, path)) == self.model.files.get(&path);
        let Some(lines) = self.model.files.get_mut(&path) else {
            assert!(answer.text.starts_with("NOT_FOUND"), "{}", answer.text);
            return;
        };
        let before = lines.clone();
        match clear {
            None => assert!(answer.text.starts_with("EDIT_REQUIRES_PRIOR_READ"), "{}", answer.text),
            Some(false) => assert!(answer.text.starts_with("FILE_CHANGED_SINCE_READ"), "{}", answer.text),
            Some(true) => {
                assert!(!answer.is_error, "{}", answer.text);
                lines[line] = new;
            }
        }
        // A refusal shows a part, and lines that others changed elsewhere were still not shown: a look settles both.
        let now = if answer.is_error { before } else { lines.clone() };
        self.model.seen.insert((who, path), now);
        if answer.is_error || !current {
            self.f.ok_as(self.sessions[who], "read_file", json!({"path": PATHS[path]}));
        }
    }

    fn write(&mut self, who: usize, path: usize, overwrite: bool) {
        let lines: Vec<String> = (0..LINES).map(|_| self.model.word()).collect();
        let args = json!({"path": PATHS[path], "content": Model::text(&lines), "overwrite": overwrite});
        let answer = self.f.call_as(self.sessions[who], "write_file", args);
        let code = match (self.model.files.get(&path), self.model.seen.get(&(who, path))) {
            (None, _) => "path=",
            (Some(_), _) if !overwrite => "ALREADY_EXISTS",
            (Some(_), None) => "EDIT_REQUIRES_PRIOR_READ",
            (Some(now), Some(seen)) if now == seen => "path=",
            (Some(_), Some(_)) => "FILE_CHANGED_SINCE_READ",
        };
        assert!(answer.text.starts_with(code), "{code}: {}", answer.text);
        if code == "path=" {
            self.model.files.insert(path, lines.clone());
            self.model.seen.insert((who, path), lines);
        }
    }

    /// Takes the session's last change back; what that does to the file is read from the disk, that it does no more is not.
    fn undo(&mut self, who: usize) {
        let before = self.model.files.clone();
        let answer = self.f.call_as(self.sessions[who], "undo", json!({}));
        for (path, name) in PATHS.iter().enumerate() {
            let now =
                self.f.has(name).then(|| self.f.get(name).lines().map(str::to_owned).collect::<Vec<_>>());
            let same = before.get(&path) == now.as_ref();
            let touched = answer.text.lines().any(|line| line.ends_with(&format!(" {name}")));
            assert!(same || (!answer.is_error && touched), "{name}: {}", answer.text);
            match now {
                Some(now) => {
                    if !same {
                        // Own work is never stale, and both know of it from here on.
                        [0, 1].iter().for_each(|who| self.seen_again(*who, path, &now));
                    }
                    self.model.files.insert(path, now);
                }
                None => {
                    self.model.files.remove(&path);
                    // What a session deletes itself it has seen nothing of any more.
                    if !same {
                        self.model.seen.remove(&(who, path));
                    }
                }
            }
        }
    }

    fn seen_again(&mut self, who: usize, path: usize, now: &[String]) {
        self.f.ok_as(self.sessions[who], "read_file", json!({"path": PATHS[path]}));
        self.model.seen.insert((who, path), now.to_vec());
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Read { who, path } => self.read(who, path),
            Step::Edit { who, path, line } => self.edit(who, path, line),
            Step::Write { who, path, overwrite } => self.write(who, path, overwrite),
            Step::Undo { who } => self.undo(who),
            Step::Outside { path, line } => {
                let word = self.model.word();
                if let Some(lines) = self.model.files.get_mut(&path) {
                    lines[line] = word;
                    self.f.put(PATHS[path], Model::text(lines));
                }
            }
            Step::Remove { path } => {
                if self.model.files.remove(&path).is_some() {
                    std::fs::remove_file(self.f.path(PATHS[path])).unwrap();
                }
            }
        }
        for (path, name) in PATHS.iter().enumerate() {
            let wanted = self.model.files.get(&path).map(|lines| Model::text(lines));
            assert_eq!(self.f.has(name).then(|| self.f.get(name)), wanted, "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_sessions_and_someone_outside(steps in proptest::collection::vec(step(), 1..25)) {
        let f = Fixture::new();
        let sessions = [f.session, f.session("agent-b")];
        let mut run = Run { f, sessions, model: Model::default() };
        for step in steps {
            run.step(step);
        }
        // And every image that a session left is still there to be shown.
        for change in run.f.changes() {
            let shown = run.f.ok("show_change", json!({"change": change}));
            prop_assert!(!shown.contains("no longer kept") && fact(&shown, "expired").is_none(), "{}", shown);
        }
    }
}
