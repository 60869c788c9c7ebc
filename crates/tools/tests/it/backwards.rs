//! Three agents' changes at random, some of them undone in any order: nobody else's lines move, or a conflict is said.
//! `COTENANT_UNDO_RUNS` sets how many runs (default 150), `COTENANT_UNDO_SEED` repeats one.
//!
//! Every line is written once in all the world, so that what an undo did is seen in the lines alone: it may take away
//! only lines that its change brought, and bring only lines that its change took away.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cotenant_engine::{Submitted, Wish};
use cotenant_model::{
    Author, Body, ClassHit, Digest, Durability, Entry, FileOp, Moved, Op, Plan, Profile, RelPath, SessionId,
    Settings, WsPath,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::json;

use crate::fixture::{Fixture, fact};

const AGENTS: [&str; 3] = ["ada", "bob", "cyd"];
const NAMES: [&str; 6] = ["a", "b", "d/a", "d/b", "e/a", "e/f/b"];
const DIRS: [&str; 4] = ["d", "e", "g", "e/f"];

/// What somebody does; numbers choose among what there is by then.
#[derive(Clone, Debug)]
enum Deed {
    Replace(usize, usize),
    Insert(usize, usize),
    Cut(usize, usize),
    Create(usize),
    Delete(usize),
    Move(usize, usize),
    MoveEdited(usize, usize),
    MoveDir(usize, usize),
    Chmod(usize),
    Link(usize),
    Foreign(usize),
    Undo(usize),
}

fn deeds() -> impl Strategy<Value = Vec<(usize, Deed)>> {
    let n = || 0usize..64;
    let deed = prop_oneof![
        4 => (n(), n()).prop_map(|(f, l)| Deed::Replace(f, l)),
        3 => (n(), n()).prop_map(|(f, l)| Deed::Insert(f, l)),
        2 => (n(), n()).prop_map(|(f, l)| Deed::Cut(f, l)),
        2 => n().prop_map(Deed::Create),
        2 => n().prop_map(Deed::Delete),
        3 => (n(), n()).prop_map(|(f, to)| Deed::Move(f, to)),
        1 => (n(), n()).prop_map(|(f, to)| Deed::MoveEdited(f, to)),
        2 => (n(), n()).prop_map(|(d, to)| Deed::MoveDir(d, to)),
        1 => n().prop_map(Deed::Chmod),
        1 => n().prop_map(Deed::Link),
        1 => n().prop_map(Deed::Foreign),
        6 => n().prop_map(Deed::Undo),
    ];
    proptest::collection::vec((0..AGENTS.len(), deed), 4..16)
}

type Lines = BTreeMap<String, usize>;

/// The tree as lines: of every file by path, with its mode; a link is one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Snapshot(BTreeMap<String, (u32, Vec<String>)>);

impl Snapshot {
    fn of(root: &Path) -> Snapshot {
        let mut found = BTreeMap::new();
        let mut waiting = vec![PathBuf::new()];
        while let Some(dir) = waiting.pop() {
            for entry in std::fs::read_dir(root.join(&dir)).unwrap() {
                let path = dir.join(entry.unwrap().file_name());
                // What a commit displaced keeps a name for a moment.
                if path.file_name().unwrap().to_str().unwrap().starts_with(".cotenant-") {
                    continue;
                }
                let meta = std::fs::symlink_metadata(root.join(&path)).unwrap();
                if meta.is_dir() {
                    waiting.push(path);
                    continue;
                }
                let mode = meta.permissions().mode() & 0o777;
                let lines = if meta.is_symlink() {
                    let target = std::fs::read_link(root.join(&path)).unwrap();
                    vec![format!("-> {}", target.display())]
                } else {
                    let text = std::fs::read_to_string(root.join(&path)).unwrap();
                    text.lines().map(str::to_owned).collect()
                };
                found.insert(path.to_str().unwrap().to_owned(), (mode, lines));
            }
        }
        Snapshot(found)
    }

    fn lines(&self) -> Lines {
        let mut all = Lines::new();
        for line in self.0.values().flat_map(|(_, lines)| lines) {
            *all.entry(line.clone()).or_default() += 1;
        }
        all
    }

    /// In each file, which line stands before which: over all its pairs.
    fn order(&self) -> BTreeSet<(&str, &str)> {
        let mut pairs = BTreeSet::new();
        for (_, lines) in self.0.values() {
            for (index, first) in lines.iter().enumerate() {
                pairs.extend(lines[index + 1..].iter().map(|second| (first.as_str(), second.as_str())));
            }
        }
        pairs
    }
}

/// Lines of `one` that are not in `other`.
fn minus(one: &Lines, other: &Lines) -> Lines {
    let left = |(line, count): (&String, &usize)| {
        let left = count.saturating_sub(*other.get(line).unwrap_or(&0));
        (left > 0).then(|| (line.clone(), left))
    };
    one.iter().filter_map(left).collect()
}

fn within(one: &Lines, other: &Lines) -> bool {
    minus(one, other).is_empty()
}

/// What a change did, as it was seen.
struct Seen {
    id: String,
    by: usize,
    brought: Lines,
    took: Lines,
    /// Whether it did anything to names or modes.
    names: bool,
}

/// Runs share a workspace; each has a directory.
struct Arena {
    f: Fixture,
    sessions: Vec<SessionId>,
    run: std::cell::Cell<usize>,
}

impl Arena {
    fn new() -> Arena {
        let settings =
            Settings { profile: Profile::Trusting, durability: Durability::Fast, ..Settings::default() };
        let f = Fixture::with(settings);
        let sessions = AGENTS.iter().map(|agent| f.session(agent)).collect();
        Arena { f, sessions, run: std::cell::Cell::new(0) }
    }
}

struct Run<'a> {
    arena: &'a Arena,
    top: String,
    line: usize,
    changes: Vec<Seen>,
}

impl Run<'_> {
    fn begin(arena: &Arena) -> Run<'_> {
        arena.run.set(arena.run.get() + 1);
        let mut run = Run { arena, top: format!("run{}", arena.run.get()), line: 0, changes: Vec::new() };
        for name in ["a", "d/a", "e/f/b"] {
            let text: String = (0..6).map(|_| run.fresh()).collect();
            arena.f.put(&format!("{}/{name}", run.top), text);
        }
        run
    }

    fn fresh(&mut self) -> String {
        self.line += 1;
        format!("{}.{}\n", self.top, self.line)
    }

    fn root(&self) -> PathBuf {
        self.arena.f.path(&self.top)
    }

    fn at(&self, name: &str) -> WsPath {
        WsPath::root(RelPath::parse(&format!("{}/{name}", self.top)).unwrap())
    }

    fn files(&self) -> Vec<String> {
        Snapshot::of(&self.root()).0.into_keys().collect()
    }

    fn pick(&self, index: usize) -> Option<String> {
        let files = self.files();
        (!files.is_empty()).then(|| files[index % files.len()].clone())
    }

    fn entry(&self, name: &str) -> Entry {
        let path = self.root().join(name);
        if path.is_symlink() {
            let target = std::fs::read_link(path).unwrap();
            return Entry::link(Digest::of(target.to_str().unwrap().as_bytes()));
        }
        Entry::file(Digest::of(&std::fs::read(path).unwrap()))
    }

    fn missing(&self, name: &str) -> Option<Vec<FileOp>> {
        let above: Vec<&str> = name.match_indices('/').map(|(end, _)| &name[..end]).collect();
        let mut ops = Vec::new();
        for dir in above {
            match std::fs::symlink_metadata(self.root().join(dir)) {
                Ok(meta) if meta.is_dir() => {}
                Ok(_) => return None,
                Err(_) => ops.push(FileOp { at: self.at(dir), op: Op::MakeDir { mode: None } }),
            }
        }
        Some(ops)
    }

    /// The operations of a deed, if it can be done.
    fn plan(&mut self, deed: &Deed) -> Option<Vec<FileOp>> {
        let one = |at: WsPath, op: Op| Some(vec![FileOp { at, op }]);
        match deed {
            Deed::Replace(file, line) | Deed::Insert(file, line) | Deed::Cut(file, line) => {
                let name = self.pick(*file).filter(|name| !self.root().join(name).is_symlink())?;
                let text = std::fs::read_to_string(self.root().join(&name)).unwrap();
                let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
                let index = line % (lines.len() + 1);
                match deed {
                    Deed::Insert(..) => lines.insert(index, self.fresh()),
                    Deed::Replace(..) if index < lines.len() => lines[index] = self.fresh(),
                    _ if index < lines.len() => drop(lines.remove(index)),
                    _ => return None,
                }
                let new = Body::file(lines.concat().into_bytes());
                one(self.at(&name), Op::Replace { old: self.entry(&name), new })
            }
            Deed::Create(name) | Deed::Link(name) => {
                let name = NAMES[name % NAMES.len()];
                let new = match deed {
                    Deed::Create(_) => Body::file((self.fresh() + &self.fresh()).into_bytes()),
                    _ => Body::link(self.fresh().trim_end().as_bytes()),
                };
                let mut ops = self.missing(name)?;
                let op = match std::fs::symlink_metadata(self.root().join(name)) {
                    Ok(meta) if meta.is_dir() => return None,
                    Ok(_) => Op::Replace { old: self.entry(name), new },
                    Err(_) => Op::Create { new, like: None },
                };
                ops.push(FileOp { at: self.at(name), op });
                Some(ops)
            }
            Deed::Delete(file) => {
                let name = self.pick(*file)?;
                one(self.at(&name), Op::Delete { old: self.entry(&name) })
            }
            Deed::Chmod(file) => {
                let name = self.pick(*file).filter(|name| !self.root().join(name).is_symlink())?;
                let path = self.root().join(&name);
                let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
                let new = Body::file(std::fs::read(&path).unwrap()).with_mode(mode ^ 0o111);
                one(self.at(&name), Op::Replace { old: self.entry(&name), new })
            }
            Deed::Move(file, to) => {
                let (name, to) = (self.pick(*file)?, NAMES[to % NAMES.len()]);
                let mut ops = self.missing(to)?;
                let over = match std::fs::symlink_metadata(self.root().join(to)) {
                    Ok(meta) if meta.is_dir() => return None,
                    Ok(_) if name == to => return None,
                    Ok(_) => Some(self.entry(to)),
                    Err(_) => None,
                };
                let op = Op::Move { to: self.at(to), what: Moved::Entry(self.entry(&name)), over };
                ops.push(FileOp { at: self.at(&name), op });
                Some(ops)
            }
            Deed::MoveEdited(file, to) => {
                let name = self.pick(*file).filter(|name| !self.root().join(name).is_symlink())?;
                let to = NAMES[to % NAMES.len()];
                let mut ops = self.missing(to)?;
                if std::fs::symlink_metadata(self.root().join(to)).is_ok() {
                    return None;
                }
                let text = std::fs::read_to_string(self.root().join(&name)).unwrap() + &self.fresh();
                let like = Some(self.at(&name));
                ops.push(FileOp {
                    at: self.at(to),
                    op: Op::Create { new: Body::file(text.into_bytes()), like },
                });
                ops.push(FileOp { at: self.at(&name), op: Op::Delete { old: self.entry(&name) } });
                Some(ops)
            }
            Deed::MoveDir(dir, to) => {
                let (dir, to) = (DIRS[dir % DIRS.len()], DIRS[to % DIRS.len()]);
                let root = self.root();
                let inside = to.starts_with(&format!("{dir}/")) || !root.join(dir).is_dir();
                if inside || std::fs::symlink_metadata(root.join(to)).is_ok() {
                    return None;
                }
                let tree = self.arena.f.toolbox.workspace().tree();
                let wire = tree.parse(&format!("{}/{dir}", self.top)).unwrap();
                let listing = tree.below(&tree.locate(&wire).unwrap()).unwrap().digest;
                let mut ops = self.missing(to)?;
                let what = Moved::Directory { listing };
                ops.push(FileOp { at: self.at(dir), op: Op::Move { to: self.at(to), what, over: None } });
                Some(ops)
            }
            Deed::Foreign(_) | Deed::Undo(_) => None,
        }
    }

    fn land(&self, by: usize, ops: Vec<FileOp>) -> String {
        let session = self.arena.sessions[by];
        let author = Author { agent: AGENTS[by].into(), session, task: None, turn: 1 };
        let classes = vec![ClassHit::ordinary(); ops.len()];
        let plan =
            Plan { author, tool: "test".into(), ops, diff: String::new(), undoes: None, command: None };
        let wish = Wish {
            also: Vec::new(),
            plan,
            classes,
            profile: Profile::Trusting,
            others_work: false,
            asked: false,
            by_human: false,
            read_only: Vec::new(),
            durability: Durability::Fast,
            idempotency: None,
        };
        match self.arena.f.toolbox.workspace().submit(wish) {
            Ok(Submitted::Landed(landed)) => landed.change.to_string(),
            Ok(Submitted::Ask(_)) => panic!("nobody is asked here"),
            Err(refusal) => panic!("{refusal}"),
        }
    }

    fn act(&mut self, by: usize, deed: &Deed) -> Result<(), TestCaseError> {
        match deed {
            Deed::Undo(_) if self.changes.is_empty() => {}
            Deed::Undo(which) => self.undo(which % self.changes.len())?,
            Deed::Foreign(file) => {
                if let Some(name) = self.pick(*file).filter(|name| !self.root().join(name).is_symlink()) {
                    let path = self.root().join(name);
                    let text = self.fresh() + &std::fs::read_to_string(&path).unwrap();
                    std::fs::write(path, text).unwrap();
                }
            }
            _ => {
                let before = Snapshot::of(&self.root());
                if let Some(ops) = self.plan(deed) {
                    let names = ops.iter().any(|op| !matches!(op.op, Op::Replace { .. }));
                    let id = self.land(by, ops);
                    let other = matches!(deed, Deed::Chmod(_) | Deed::Link(_) | Deed::Create(_));
                    self.seen(id, by, &before, names || other);
                }
            }
        }
        Ok(())
    }

    fn seen(&mut self, id: String, by: usize, before: &Snapshot, names: bool) -> Snapshot {
        let after = Snapshot::of(&self.root());
        let (old, new) = (before.lines(), after.lines());
        self.changes.push(Seen { id, by, brought: minus(&new, &old), took: minus(&old, &new), names });
        after
    }

    /// Takes a change back, and looks at every line.
    fn undo(&mut self, which: usize) -> Result<(), TestCaseError> {
        let change = &self.changes[which];
        let (id, by, names) = (change.id.clone(), change.by, change.names);
        let (brought, took) = (change.brought.clone(), change.took.clone());
        let before = Snapshot::of(&self.root());
        let session = self.arena.sessions[by];
        let answer = self.arena.f.call_as(session, "undo", json!({"change": id}));
        if answer.is_error {
            prop_assert_eq!(&Snapshot::of(&self.root()), &before, "a refusal wrote: {}", answer.text);
            let said = ["UNDO_CONFLICT", "NOTHING_TO_CHANGE"];
            prop_assert!(said.iter().any(|code| answer.text.starts_with(code)), "{}", answer.text);
            return Ok(());
        }
        let undo = fact(&answer.text, "change").unwrap();
        let after = self.seen(undo, by, &before, names);
        let (old, new) = (before.lines(), after.lines());
        let (went, came) = (minus(&old, &new), minus(&new, &old));
        prop_assert!(
            within(&went, &brought),
            "{id} took lines of others: {went:?}\n{}\n{before:?}",
            answer.text
        );
        prop_assert!(
            within(&came, &took),
            "{id} brought lines of others: {came:?}\n{}\n{before:?}",
            answer.text
        );
        // Where all of the change still stood, all of it is taken back.
        if within(&brought, &old) && took.keys().all(|line| !old.contains_key(line)) {
            prop_assert!(
                went == brought && came == took,
                "{id} only in part: {}\n{before:?}\n{after:?}",
                answer.text
            );
        }
        // Lines that stay do not change places within their file.
        let order = after.order();
        let turned = before.order().into_iter().find(|(first, second)| order.contains(&(*second, *first)));
        prop_assert_eq!(turned, None, "{}", answer.text);
        if !names {
            let paths = |snapshot: &Snapshot| {
                snapshot.0.iter().map(|(path, (mode, _))| (path.clone(), *mode)).collect::<Vec<_>>()
            };
            prop_assert_eq!(paths(&before), paths(&after), "{}", answer.text);
        }
        Ok(())
    }
}

fn for_all<S: Strategy>(runs: u32, strategy: S, check: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = number("COTENANT_UNDO_RUNS").map_or(runs, |runs| u32::try_from(runs).unwrap());
    let seed = number("COTENANT_UNDO_SEED").unwrap_or_else(|| u64::from(std::process::id()) * 7919);
    println!("COTENANT_UNDO_SEED={seed} runs={cases}");
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Config::default()
    };
    if let Err(failure) = TestRunner::new(config).run(&strategy, check) {
        panic!("COTENANT_UNDO_SEED={seed}: {failure}");
    }
}

#[test]
fn any_change_is_taken_back_in_any_order_and_no_line_of_others_with_it() {
    let arena = Arena::new();
    for_all(150, deeds(), |deeds| {
        let mut run = Run::begin(&arena);
        for (by, deed) in deeds {
            run.act(by, &deed)?;
        }
        Ok(())
    });
}

/// With nobody else in between, the newest change first, everything goes back to where it began.
#[test]
fn all_of_three_agents_work_goes_back_to_where_it_began() {
    let arena = Arena::new();
    for_all(60, deeds(), |deeds| {
        let mut run = Run::begin(&arena);
        let began = Snapshot::of(&run.root());
        for (by, deed) in
            deeds.into_iter().filter(|(_, deed)| !matches!(deed, Deed::Foreign(_) | Deed::Undo(_)))
        {
            run.act(by, &deed)?;
        }
        for change in run.changes.iter().rev() {
            let session = arena.sessions[change.by];
            let answer = arena.f.call_as(session, "undo", json!({"change": change.id}));
            prop_assert!(!answer.is_error, "{}", answer.text);
        }
        prop_assert_eq!(Snapshot::of(&run.root()), began);
        Ok(())
    });
}

/// One agent's work is taken back as one change; with nobody else's in between the tree is what it was before it.
#[test]
fn a_rewind_takes_back_all_of_an_agents_work_and_no_line_of_others() {
    let arena = Arena::new();
    for_all(80, deeds(), |deeds| {
        let mut run = Run::begin(&arena);
        let began = Snapshot::of(&run.root());
        for (by, deed) in &deeds {
            run.act(*by, deed)?;
        }
        let Some(first) = run.changes.iter().find(|change| change.by == 0).map(|change| change.id.clone())
        else {
            return Ok(());
        };
        let own = |wanted: bool| run.changes.iter().filter(move |change| (change.by == 0) == wanted);
        let all = |wanted: bool, side: fn(&Seen) -> &Lines| {
            let mut lines = Lines::new();
            own(wanted)
                .flat_map(side)
                .for_each(|(line, count)| *lines.entry(line.clone()).or_default() += count);
            lines
        };
        let (brought, took) = (all(true, |change| &change.brought), all(true, |change| &change.took));
        let alone =
            own(false).count() == 0 && !deeds.iter().any(|(_, deed)| matches!(deed, Deed::Foreign(_)));
        let before = Snapshot::of(&run.root());
        let answer = arena.f.call_as(arena.sessions[0], "rewind", json!({"change": first}));
        let after = Snapshot::of(&run.root());
        if answer.is_error {
            prop_assert_eq!(&after, &before, "a refusal wrote: {}", answer.text);
            let nothing = answer.text.starts_with("NOTHING_TO_CHANGE");
            prop_assert!(nothing || answer.text.starts_with("UNDO_CONFLICT") && !alone, "{}", answer.text);
            prop_assert!(!nothing || !alone || after == began, "{}", answer.text);
            return Ok(());
        }
        let (old, new) = (before.lines(), after.lines());
        prop_assert!(within(&minus(&old, &new), &brought), "{}\n{before:?}\n{after:?}", answer.text);
        prop_assert!(within(&minus(&new, &old), &took), "{}\n{before:?}\n{after:?}", answer.text);
        if alone {
            prop_assert_eq!(&after, &began, "{}", answer.text);
        }
        let rewound = fact(&answer.text, "change").unwrap();
        let back = arena.f.call_as(arena.sessions[0], "undo", json!({"change": rewound}));
        prop_assert!(!back.is_error, "{}", back.text);
        prop_assert_eq!(Snapshot::of(&run.root()).lines(), old, "undone as one: {}", back.text);
        Ok(())
    });
}
