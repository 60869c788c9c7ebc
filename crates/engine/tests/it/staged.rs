//! Runs that wrote into an upper layer: what the command saw, and what becomes of it now (R19, R22).

use std::fs;
use std::os::unix::fs::MetadataExt;

use cotenant_engine::effects::{Barrier, Clash, Conflict, Mark, Run, Settled, plan_effects};
use cotenant_model::{Becomes, Body, ChangeId, Effects, State, WsPath};

use crate::desk::{Desk, grow_old};
use crate::rig::{self, at};

/// A workspace, and the beginning of a run in it.
struct Stage {
    desk: Desk,
    run: Run,
}

/// The moment that the file system would stamp now.
fn barrier(desk: &Desk) -> Barrier {
    let path = desk.place.tree.path().with_extension("barrier");
    fs::write(&path, "").unwrap();
    let meta = fs::metadata(&path).unwrap();
    fs::remove_file(path).unwrap();
    Barrier { ctime_ns: i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec()) }
}

impl Stage {
    /// With these files, which are old when the run begins.
    fn with(files: &[(&str, &str)]) -> Stage {
        Stage::begin(files, grow_old)
    }

    fn begin(files: &[(&str, &str)], prepare: impl FnOnce(&Desk)) -> Stage {
        let desk = Desk::new();
        files.iter().for_each(|(path, bytes)| desk.put(path, bytes));
        prepare(&desk);
        let barrier = Some(barrier(&desk));
        let mark = Mark::now(desk.ws.ledger()).unwrap();
        Stage { desk, run: Run { barrier, mark, ..Run::default() } }
    }

    fn writes(mut self, path: &str, bytes: &str) -> Stage {
        let body = Body::file(bytes.as_bytes()).with_mode(0o644);
        self.run.effects.insert(at(path), Becomes::new(State::Entry(body)));
        self
    }

    fn removes(mut self, path: &str) -> Stage {
        self.run.effects.insert(at(path), Becomes::new(State::Absent));
        self
    }

    fn makes(mut self, path: &str, opaque: bool) -> Stage {
        self.run.effects.insert(at(path), Becomes::new(State::Dir { mode: Some(0o755) }));
        self.run.opaque.extend(opaque.then(|| at(path)));
        self
    }

    fn plan(&self) -> Result<Settled, Vec<Conflict>> {
        plan_effects(&self.desk.ws, self.run.clone())
    }

    /// What comes of it, as `path: before > after`, with `<- path` where it only got another name.
    #[track_caller]
    fn told(&self) -> Vec<String> {
        let settled = self.plan().unwrap_or_else(|conflicts| panic!("{conflicts:?}"));
        let show = |state: &State| match state {
            State::Absent => "-".to_owned(),
            State::Dir { .. } => "dir".to_owned(),
            State::Entry(body) => String::from_utf8_lossy(&body.content).into_owned(),
        };
        let shifts = settled.shifts.iter().map(|shift| {
            let from = shift.from.as_ref().map(|from| format!(" <- {}", from.path)).unwrap_or_default();
            format!("{}: {} > {}{from}", shift.at.path, show(&shift.before), show(&shift.after))
        });
        shifts.collect()
    }

    #[track_caller]
    fn clashes(&self) -> Vec<(String, Clash, Option<ChangeId>)> {
        let conflicts = self.plan().expect_err("a conflict");
        conflicts
            .into_iter()
            .map(|conflict| (conflict.at.path.to_string(), conflict.why, conflict.by))
            .collect()
    }
}

fn lines(changed: &[(usize, &str)]) -> String {
    let line = |number| changed.iter().find(|(at, _)| *at == number).map_or("line", |(_, text)| *text);
    (1..=12).map(|number| format!("{} {number}\n", line(number))).collect()
}

#[test]
fn what_nobody_touched_since_is_as_the_command_saw_it() {
    let stage = Stage::with(&[("a", "a0"), ("b", "b0"), ("d/x", "x0"), ("d/y", "y0"), ("touched", "t0")]);
    let stage = stage.writes("a", "a1").removes("b").writes("new/n", "n1").makes("new", false);
    let stage = stage.removes("d").writes("touched", "t0");
    let told = [
        "a: a0 > a1",
        "b: b0 > -",
        "d: dir > -",
        "d/x: x0 > -",
        "d/y: y0 > -",
        "new: - > dir",
        "new/n: - > n1",
    ];
    assert_eq!(stage.told(), told);
}

#[test]
fn an_opaque_directory_hides_what_is_not_made_again() {
    let stage =
        Stage::with(&[("d/x", "x0"), ("d/y", "y0"), ("d/e/z", "z0"), ("d/e/deep/w", "w0"), ("dx", "beside")]);
    stage.desk.put(".gitignore", "*.log\n");
    stage.desk.put("d/out.log", "ignored");
    grow_old(&stage.desk);
    let barrier = barrier(&stage.desk);
    let stage = Stage { run: Run { barrier: Some(barrier), ..stage.run.clone() }, ..stage };
    let stage = stage.makes("d", true).writes("d/x", "x0").writes("d/y", "y1").writes("d/n", "n1");
    let told = [
        "d/e: dir > -",
        "d/e/deep: dir > -",
        "d/e/deep/w: w0 > -",
        "d/e/z: z0 > -",
        "d/n: - > n1",
        "d/out.log: ignored > -",
        "d/y: y0 > y1",
    ];
    assert_eq!(stage.told(), told);
}

#[test]
fn a_file_that_came_into_a_hidden_directory_is_a_conflict() {
    let stage = Stage::with(&[("d/x", "x0")]).makes("d", true);
    stage.desk.put("d/foreign", "f");
    let by = stage.desk.commit(vec![rig::create("d/ours", b"o")]).change;
    let clashes =
        [("d/foreign".to_owned(), Clash::Unknown, None), ("d/ours".to_owned(), Clash::Created, Some(by))];
    assert_eq!(stage.clashes(), clashes);
}

#[test]
fn a_commit_before_the_run_is_known_even_if_it_is_young() {
    let stage = Stage::begin(&[("f", "0")], |desk| {
        desk.commit(vec![rig::replace("f", b"0", b"1"), rig::create("g", b"g1")]);
    });
    let stage = stage.writes("f", "2").removes("g");
    assert_eq!(stage.told(), ["f: 1 > 2", "g: g1 > -"]);
}

#[test]
fn a_young_file_that_nobody_knows_is_a_conflict_and_an_old_one_is_not() {
    let young = Stage::begin(&[], |desk| desk.put("f", "0")).writes("f", "1");
    assert_eq!(young.clashes(), [("f".to_owned(), Clash::Unknown, None)]);
    let old = Stage::with(&[("f", "0")]).writes("f", "1");
    assert_eq!(old.told(), ["f: 0 > 1"]);
    // Without a barrier only the ledger tells.
    let blind = Stage { run: Run { barrier: None, ..old.run.clone() }, ..old };
    assert_eq!(blind.clashes(), [("f".to_owned(), Clash::Unknown, None)]);
    let known = Stage::begin(&[], |desk| drop(desk.commit(vec![rig::create("f", b"0")]))).writes("f", "1");
    let known = Stage { run: Run { barrier: None, ..known.run.clone() }, ..known };
    assert_eq!(known.told(), ["f: 0 > 1"]);
    // What is to be as it is need not be known.
    let same = Stage::begin(&[], |desk| desk.put("f", "0")).writes("f", "0").removes("nothing");
    assert_eq!(same.told(), [""; 0]);
}

#[test]
fn distant_lines_of_others_are_merged() {
    let base = lines(&[]);
    let stage = Stage::with(&[("f", &base)]).writes("f", &lines(&[(2, "command")]));
    let theirs = lines(&[(10, "other")]);
    stage.desk.commit(vec![rig::replace("f", base.as_bytes(), theirs.as_bytes())]);
    let settled = stage.plan().unwrap();
    assert_eq!(settled.merged, [at("f")]);
    let after = settled.shifts[0].after.entry().unwrap();
    assert_eq!(String::from_utf8_lossy(&after.content), lines(&[(2, "command"), (10, "other")]));
    assert_eq!(&*settled.shifts[0].before.entry().unwrap().content, theirs.as_bytes());
}

#[test]
fn foreign_lines_are_merged_where_the_ledger_knows_what_was_there() {
    let base = lines(&[]);
    let stage = Stage::begin(&[], |desk| {
        desk.commit(vec![rig::create("f", lines(&[]).as_bytes())]);
    });
    fs::write(stage.desk.path("f"), lines(&[(10, "foreign")])).unwrap();
    let stage = stage.writes("f", &lines(&[(2, "command")]));
    let settled = stage.plan().unwrap();
    let after = settled.shifts[0].after.entry().unwrap();
    assert_eq!(String::from_utf8_lossy(&after.content), lines(&[(2, "command"), (10, "foreign")]));
    // Where it does not, it is refused.
    let stage = Stage::with(&[("f", &base)]).writes("f", &lines(&[(2, "command")]));
    fs::write(stage.desk.path("f"), lines(&[(10, "foreign")])).unwrap();
    assert_eq!(stage.clashes(), [("f".to_owned(), Clash::Unknown, None)]);
}

#[test]
fn touching_lines_whole_files_and_modes_conflict_with_who() {
    let base = lines(&[]);
    let stage = Stage::with(&[("f", &base), ("bin", "\0zero"), ("gone", "g0"), ("edited", "e0")]);
    let by = stage.desk.commit(vec![
        rig::replace("f", base.as_bytes(), lines(&[(3, "other")]).as_bytes()),
        rig::replace("bin", b"\0zero", b"\0one"),
        rig::delete("gone", b"g0"),
        rig::replace("edited", b"e0", b"e1"),
        rig::create("new", b"theirs"),
    ]);
    let by = Some(by.change);
    let stage = stage.writes("f", &lines(&[(3, "command")])).writes("bin", "\0two").writes("gone", "g1");
    let stage = stage.removes("edited").writes("new", "ours");
    let clash = |path: &str, why| (path.to_owned(), why, by);
    let clashes = [
        clash("bin", Clash::Changed),
        clash("edited", Clash::Changed),
        clash("f", Clash::Changed),
        clash("gone", Clash::Deleted),
        clash("new", Clash::Created),
    ];
    assert_eq!(stage.clashes(), clashes);
}

#[test]
fn the_same_done_by_both_is_done() {
    let stage = Stage::with(&[("f", "0"), ("g", "g0")]).writes("f", "1").removes("g").writes("n", "n1");
    stage.desk.commit(vec![rig::replace("f", b"0", b"1"), rig::delete("g", b"g0"), rig::create("n", b"n1")]);
    assert_eq!(stage.told(), [""; 0]);
    // What the command only copied up stays as others made it.
    let stage = Stage::with(&[("f", "0")]).writes("f", "0");
    stage.desk.commit(vec![rig::replace("f", b"0", b"1")]);
    assert_eq!(stage.told(), [""; 0]);
}

#[test]
fn a_mode_and_a_text_of_two_hands_are_both_kept() {
    let stage = Stage::with(&[("f", "0\n")]);
    stage.desk.commit(vec![rig::replace("f", b"0\n", b"1\n")]);
    let mut stage = stage;
    let body = Body::file(&b"0\n"[..]).with_mode(0o755);
    stage.run.effects.insert(at("f"), Becomes::new(State::Entry(body)));
    let settled = stage.plan().unwrap();
    let after = settled.shifts[0].after.entry().unwrap();
    assert_eq!((&*after.content, after.mode), (&b"1\n"[..], Some(0o755)));
}

#[test]
fn another_name_is_told_as_one() {
    let stage = Stage::with(&[("a", "content"), ("b", "other"), ("empty", "")]);
    let stage = stage.removes("a").writes("z", "content").removes("empty").writes("void", "");
    assert_eq!(stage.told(), ["a: content > -", "empty:  > -", "void: - > ", "z: - > content <- a"]);
    // Said by the layer itself, with other bytes.
    let mut stage = Stage::with(&[("a", "content")]).removes("a").writes("z", "content, edited");
    stage.run.effects.get_mut(&at("z")).unwrap().from = Some(at("a"));
    assert_eq!(stage.told(), ["a: content > -", "z: - > content, edited <- a"]);
}

#[test]
fn what_agents_may_not_touch_and_what_is_no_file_is_a_conflict() {
    let stage = Stage::with(&[(".env", "S=1"), ("d/.env", "S=2"), ("d/x", "x"), ("f", "f"), ("real/y", "y")]);
    stage.desk.sh("mkfifo pipe; ln -s real way");
    let stage = stage.writes(".env", "S=3").makes("d", true).writes("pipe", "p").writes("way/y", "z");
    let found: Vec<(String, &str)> = stage
        .clashes()
        .into_iter()
        .map(|(path, why, _)| {
            let kind = match why {
                Clash::Protected { rule } if rule == ".env*" => "protected",
                Clash::Closed { .. } => "closed",
                _ => "other",
            };
            (path, kind)
        })
        .collect();
    let expected = [(".env", "protected"), ("d/.env", "protected"), ("pipe", "closed"), ("way/y", "closed")];
    assert_eq!(found, expected.map(|(path, kind)| (path.to_owned(), kind)));
}

#[test]
fn another_kind_of_thing_is_a_conflict_told_once() {
    let stage = Stage::with(&[("f", "f"), ("d/x", "x")]);
    let stage = stage.makes("f", false).writes("f/in", "i").writes("d", "a file now");
    let clashes = [("d".to_owned(), Clash::Kind, None), ("f".to_owned(), Clash::Kind, None)];
    assert_eq!(stage.clashes(), clashes);
}

#[test]
fn permissions_of_directories_are_named() {
    let stage = Stage::with(&[("d/x", "x"), ("e/y", "y")]);
    let mut stage = stage.makes("e", false).writes("d/x", "x1");
    stage.run.effects.insert(at("d"), Becomes::new(State::Dir { mode: Some(0o700) }));
    let settled = stage.plan().unwrap();
    assert_eq!((settled.unlike, settled.shifts.len()), (vec![at("d")], 1));
}

#[test]
fn a_directory_that_others_moved_takes_the_ground_away() {
    let stage = Stage::with(&[("d/x", "x"), ("f", "f")]).writes("d/x", "x1").writes("f", "f1");
    let tree = stage.desk.ws.tree();
    let listing = tree.below(&tree.locate(&tree.parse("d").unwrap()).unwrap()).unwrap().digest;
    let what = cotenant_model::Moved::Directory { listing };
    let op = cotenant_model::Op::Move { to: at("e"), what, over: None };
    let by = stage.desk.commit(vec![cotenant_model::FileOp { at: at("d"), op }]).change;
    assert_eq!(stage.clashes(), [("d/x".to_owned(), Clash::Moved, Some(by))]);
}

#[test]
fn nothing_done_is_nothing_to_do() {
    let stage = Stage::with(&[("f", "f")]);
    assert_eq!(stage.plan(), Ok(Settled::default()));
    let effects: Effects = [(WsPath::default(), Becomes::new(State::Dir { mode: None }))].into();
    let stage = Stage { run: Run { effects, ..stage.run.clone() }, ..stage };
    assert_eq!(stage.plan(), Ok(Settled::default()));
}
