//! Random trees of links, resolved by the gate and by a slow walk that is plain to see through.

use std::path::{Path, PathBuf};

use cotenant_model::Code;
use cotenant_testkit::{Dice, long};
use cotenant_tree::Kind;

use crate::fixture::{Ws, ws};

/// Where a path leads, by one step after the other on the host; `Err` says why nowhere.
fn walk(root: &Path, path: &str) -> Result<(String, &'static str), Code> {
    let mut here: Vec<String> = Vec::new();
    let mut todo: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let mut links = 0;
    let mut gone = false;
    while let Some(name) = todo.pop() {
        let host =
            |names: &[String]| names.iter().fold(root.to_owned(), |path: PathBuf, name| path.join(name));
        if name.is_empty() || name == "." {
            continue;
        }
        if name == ".." {
            if gone {
                return Err(Code::NotFound);
            }
            here.pop().ok_or(Code::PathOutside)?;
            continue;
        }
        here.push(name);
        let Ok(facts) = host(&here).symlink_metadata() else {
            gone = true;
            continue;
        };
        if facts.is_symlink() {
            links += 1;
            if links > 40 {
                return Err(Code::NotAFile);
            }
            let target = std::fs::read_link(host(&here)).unwrap();
            let target = target.to_str().unwrap();
            if target.starts_with('/') {
                return Err(Code::PathOutside);
            }
            here.pop();
            todo.extend(target.split('/').rev().map(str::to_owned));
        } else if !facts.is_dir() && !todo.is_empty() {
            return Err(Code::NotADirectory);
        }
    }
    let host = here.iter().fold(root.to_owned(), |path, name| path.join(name));
    let kind = match host.symlink_metadata() {
        Ok(facts) if facts.is_dir() => "dir",
        Ok(_) => "file",
        Err(_) => "absent",
    };
    Ok((if here.is_empty() { ".".to_owned() } else { here.join("/") }, kind))
}

fn gate(ws: &Ws, path: &str) -> Result<(String, &'static str), Code> {
    let place = ws.locate(path).map_err(|refusal| refusal.code)?;
    let kind = match place.kind {
        Kind::Dir => "dir",
        Kind::File(_) => "file",
        Kind::Link => "link",
        Kind::Absent { .. } => "absent",
    };
    Ok((place.real.path.to_string(), kind))
}

fn name(dice: &mut Dice) -> &'static str {
    ["a", "b", "c", "d"][usize::try_from(dice.below(4)).unwrap()]
}

fn target(dice: &mut Dice) -> String {
    let parts = ["a", "b", "c", "d", "..", "..", ".", ""];
    let count = 1 + dice.below(4);
    let text: Vec<&str> = (0..count).map(|_| parts[usize::try_from(dice.below(8)).unwrap()]).collect();
    let text = text.join("/");
    if text.is_empty() { ".".to_owned() } else { text }
}

fn grow(root: &Path, dice: &mut Dice) {
    for _ in 0..4 + dice.below(16) {
        let depth = 1 + dice.below(3);
        let mut path = root.to_owned();
        for _ in 0..depth {
            path.push(name(dice));
        }
        let _ = std::fs::create_dir_all(path.parent().unwrap());
        let _ = match dice.below(5) {
            0 => std::fs::create_dir(&path),
            1 => std::fs::write(&path, "x"),
            _ => std::os::unix::fs::symlink(target(dice), &path),
        };
    }
}

#[test]
fn the_gate_agrees_with_a_walk_step_by_step() {
    let mut dice = Dice::thrown();
    let rounds = if long() { 2000 } else { 150 };
    let (mut asked, mut through, mut refused) = (0, 0, 0);
    let ws = ws("true");
    for round in 0..rounds {
        let root = ws.scratch.root();
        for entry in std::fs::read_dir(&root).unwrap() {
            let path = entry.unwrap().path();
            let _ = if path.is_dir() && !path.is_symlink() {
                std::fs::remove_dir_all(path)
            } else {
                std::fs::remove_file(path)
            };
        }
        grow(&root, &mut dice);
        for _ in 0..60 {
            let count = 1 + dice.below(4);
            let path: Vec<&str> = (0..count).map(|_| name(&mut dice)).collect();
            let path = path.join("/");
            let (slow, fast) = (walk(&root, &path), gate(&ws, &path));
            let tree = || ws.scratch.sh("find . -printf '%p %y %l\\n'").stdout;
            assert_eq!(fast, slow, "round {round} {path}\n{}", tree());
            asked += 1;
            through += usize::from(slow.as_ref().is_ok_and(|(real, _)| *real != path));
            refused += usize::from(slow.is_err());
        }
    }
    assert!(
        through > asked / 20 && refused > asked / 20,
        "{asked} {through} {refused}: too tame to prove anything"
    );
}
