//! The recorded results of the real sed and bash, against what `run_command` leaves on the disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use cotenant_testkit::records;
use serde_json::{Value, json};

use super::ground::{Ground, Thing, approve_all, decoded, difference, ground};
use crate::fixture::{Fixture, body, fact};

/// Names the part to the process that has the locale and the umask of its cases.
const PART: &str = "COTENANT_PART";

/// The cases of a locale are run in so many tests.
const PARTS: usize = 4;

/// Of the groups that are not all run, every so manieth is.
const SAMPLE: usize = 4;

/// What a case has on the disk, before or after.
fn recorded(files: &Value) -> Ground {
    let thing = |file: &Value| {
        let mode = u32::from_str_radix(file["mode"].as_str().unwrap().trim_start_matches("0o"), 8).unwrap();
        match file["type"].as_str().unwrap() {
            "file" => Thing::new('f', mode, decoded(file["b64"].as_str().unwrap())),
            "symlink" => Thing::new('l', 0, file["target"].as_str().unwrap()),
            "dir" => Thing::new('d', mode, ""),
            _ => Thing::new('p', mode, ""),
        }
    };
    files.as_object().unwrap().iter().map(|(path, file)| (PathBuf::from(path), thing(file))).collect()
}

/// Makes it so; names whose recorded count of links is more than one are one file.
fn put(fixture: &Fixture, case: &Value) {
    use std::os::unix::fs::PermissionsExt;
    let before = recorded(&case["files_before"]);
    let mut shared: Option<PathBuf> = None;
    for (name, thing) in &before {
        let path = fixture.path(name.to_str().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let links = case["files_before"][name.to_str().unwrap()]["nlink"].as_u64();
        match (thing.kind, &shared) {
            ('l', _) => {
                std::os::unix::fs::symlink(String::from_utf8(thing.bytes.clone()).unwrap(), &path).unwrap();
                continue;
            }
            ('d', _) => std::fs::create_dir_all(&path).unwrap(),
            ('f', Some(first)) if links == Some(2) => std::fs::hard_link(first, &path).unwrap(),
            ('f', _) => std::fs::write(&path, &thing.bytes).unwrap(),
            other => panic!("{other:?}"),
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(thing.mode)).unwrap();
        if links == Some(2) {
            shared = Some(path);
        }
    }
    assert_eq!(seen(fixture), before, "{}", case["id"]);
}

/// The workspace as it is, but what git keeps.
fn seen(fixture: &Fixture) -> Ground {
    ground(&fixture.path("."), false, |name| name.starts_with(".git"))
}

/// Where we are not to be as sed is, what is to be there instead, and the exit.
fn wanted(case: &Value, first: &Value) -> (Ground, Option<i64>) {
    let (mut after, exit) = (recorded(&case["files_after"]), case["exit"].as_i64());
    match case["id"].as_str().unwrap() {
        // As their writer meant it: what the same script does without the empty word.
        "seed-019" | "seed-020" | "seed-021" => (recorded(&first["files_after"]), Some(0)),
        // A link keeps being a link.
        "meta-457" => {
            let edited = after.insert(PathBuf::from("ln"), Thing::new('l', 0, "f")).unwrap();
            after.insert(PathBuf::from("f"), edited);
            (after, exit)
        }
        // What holds several names, or never ends, leaves all as it was.
        "meta-459" | "meta-470" => (recorded(&case["files_before"]), exit),
        _ => (after, exit),
    }
}

/// What is wrong with how a case was carried out; `None` where nothing is. Adds to the count of those without a shell.
fn wrong(case: &Value, first: &Value, simulated: &mut usize) -> Option<String> {
    let (id, command) = (case["id"].as_str().unwrap(), case["shell"].as_str().unwrap());
    let fixture = Fixture::new();
    put(&fixture, case);
    let mut call = json!({"command": command, "timeout_s": if id == "meta-470" { 1 } else { 20 }});
    if case["env"].as_object().is_some_and(|env| !env.is_empty()) {
        call["env"] = case["env"].clone();
    }
    let mut said = fixture.call("run_command", call);
    // What does not parse is never automatic.
    if said.text.starts_with("APPROVAL_PENDING") {
        said.text = approve_all(&fixture, &said.text);
    }
    let (after, exit) = wanted(case, first);
    let now = seen(&fixture);
    let fail = |what: String| {
        let head = said.text.lines().next().unwrap_or_default();
        Some(format!("{id} {} {command:?}: {what}\n  {head}", case["verdict"]))
    };
    if id == "seed-086" && said.text.starts_with("COMMAND_DENIED") && now == recorded(&case["files_before"]) {
        // The home of the call is the workspace itself; the floor takes `~` for the real one, and refuses.
        return None;
    }
    if now != after {
        return fail(difference(&after, &now));
    }
    let mode = fact(&said.text, "mode");
    match id {
        "meta-459" if !said.text.starts_with("HARD_LINKED") => return fail("not refused".to_owned()),
        "meta-459" => return None,
        "meta-470" if fact(&said.text, "timed_out").as_deref() != Some("yes") => {
            return fail("it never ends".to_owned());
        }
        "meta-470" => return None,
        _ if said.is_error => return fail("refused".to_owned()),
        _ => {}
    }
    if fact(&said.text, "exit") != exit.map(|code| code.to_string()) {
        return fail(format!("the exit is {exit:?}"));
    }
    if case["verdict"] == "simulate" && mode.as_deref() != Some("simulated") {
        return fail("a shell was started".to_owned());
    }
    *simulated += usize::from(mode.as_deref() == Some("simulated"));
    let printed = decoded(case["stdout_b64"].as_str().unwrap());
    let plain = printed.is_ascii() && !printed.iter().any(|byte| byte.is_ascii_control() && *byte != b'\n');
    let printed = String::from_utf8_lossy(&printed);
    if plain && !body(&said.text).contains(printed.trim_end_matches('\n')) {
        return fail(format!("prints {printed:?}: {}", said.text));
    }
    None
}

/// Whether a case is one of those that are run: all of some groups, and of the rest every so manieth. `COTENANT_LONG` is
/// for all of them.
fn is_chosen(number: usize, case: &Value) -> bool {
    ["meta", "bytes", "other"].iter().any(|group| case["group"] == *group)
        || number.is_multiple_of(SAMPLE)
        || std::env::var_os("COTENANT_LONG").is_some()
}

/// The cases of a locale and a umask.
fn chosen<'a>(all: &'a [Value], locale: &str, umask: &str) -> Vec<&'a Value> {
    let fits = |case: &&Value| case["locale"] == locale && case["umask"] == umask;
    let numbered = all.iter().enumerate().filter(|(number, case)| is_chosen(*number, case));
    numbered.map(|(_, case)| case).filter(fits).collect()
}

/// Runs the cases of a locale and a umask again, in a process that has both.
#[track_caller]
fn in_a_process_of_its_own(locale: &str, umask: &str, part: usize, parts: usize) {
    if records("cases/sed.jsonl").is_none() {
        return;
    }
    let script = format!("umask {}; exec \"$0\" \"$@\"", umask.trim_start_matches("0o"));
    let done = Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args(["commands::sed::cases", "--exact", "--nocapture", "--include-ignored"])
        .env("LC_ALL", locale)
        .env(PART, format!("{locale} {umask} {part} {parts}"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("1 passed"), "{said}\n{told}");
    println!("{said}");
}

#[test]
#[ignore = "run in a process of its own, with a locale and a umask"]
fn cases() {
    let part = std::env::var(PART).unwrap();
    let [locale, umask, part, parts] = part.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let all = records("cases/sed.jsonl").unwrap();
    let cases = chosen(&all, locale, umask).into_iter();
    let cases: Vec<_> = cases.skip(part.parse().unwrap()).step_by(parts.parse().unwrap()).collect();
    let (mut simulated, mut found) = (0, Vec::new());
    for case in &cases {
        let command = case["shell"].as_str().unwrap();
        let program = ["perl", "git", "patch"]
            .into_iter()
            .find(|program| command.starts_with(program) && !Path::new("/usr/bin").join(program).exists());
        match program {
            Some(program) => println!("SKIP {}: no {program}", case["id"]),
            None => found.extend(wrong(case, &all[0], &mut simulated)),
        }
    }
    println!("{locale} {umask}: {} cases, {simulated} without a shell", cases.len());
    assert!(!cases.is_empty());
    assert!(found.is_empty(), "{} of {}:\n{}", found.len(), cases.len(), found.join("\n"));
}

#[test]
fn sed_leaves_what_sed_leaves_1() {
    in_a_process_of_its_own("C.UTF-8", "0o22", 0, PARTS);
}

#[test]
fn sed_leaves_what_sed_leaves_2() {
    in_a_process_of_its_own("C.UTF-8", "0o22", 1, PARTS);
}

#[test]
fn sed_leaves_what_sed_leaves_3() {
    in_a_process_of_its_own("C.UTF-8", "0o22", 2, PARTS);
}

#[test]
fn sed_leaves_what_sed_leaves_4() {
    in_a_process_of_its_own("C.UTF-8", "0o22", 3, PARTS);
}

#[test]
fn a_locale_of_bytes_and_another_umask_change_nothing() {
    in_a_process_of_its_own("C", "0o22", 0, 1);
    in_a_process_of_its_own("C.UTF-8", "0o77", 0, 1);
}

#[test]
fn every_case_belongs_to_a_process_that_is_started() {
    let Some(all) = records("cases/sed.jsonl") else { return };
    let started = [("C.UTF-8", "0o22"), ("C", "0o22"), ("C.UTF-8", "0o77")];
    let run: usize = started.iter().map(|(locale, umask)| chosen(&all, locale, umask).len()).sum();
    let chosen = all.iter().enumerate().filter(|(number, case)| is_chosen(*number, case)).count();
    assert_eq!(run, chosen);
    assert!(run >= 190, "{run}");
}

#[test]
fn in_careful_what_is_shown_is_what_lands() {
    let Some(all) = records("cases/sed.jsonl") else { return };
    let cases = all.iter().filter(|case| case["verdict"] == "simulate" && case["locale"] == "C.UTF-8");
    for case in cases.filter(|case| case["shell"].as_str().unwrap().is_ascii()).step_by(9) {
        let fixture = Fixture::careful();
        put(&fixture, case);
        let before = seen(&fixture);
        let said = fixture.call("run_command", json!({"command": case["shell"]}));
        if said.text.starts_with("APPROVAL_PENDING") {
            assert_eq!(seen(&fixture), before, "{}", case["id"]);
            let question = fixture.toolbox.waiting().pop().unwrap();
            assert!(!question.plan.diff.is_empty(), "{}", said.text);
            fixture.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
        } else {
            let changed = case["changed"].as_array().unwrap();
            let created = |name: &Value| !before.contains_key(Path::new(name.as_str().unwrap()));
            assert!(!said.is_error && changed.iter().all(created), "{}: {}", case["id"], said.text);
        }
        let after = recorded(&case["files_after"]);
        assert_eq!(seen(&fixture), after, "{}", difference(&after, &seen(&fixture)));
    }
}
