//! How commands end: of themselves, by a signal, by their time, with all that they started.

use std::time::Duration;

use cotenant_shell::run::{How, Request};
use cotenant_shell::sandbox::{Mode, Session, StartError};
use cotenant_testkit::{PATIENCE, inside_fence};

use super::rig::{Ran, Rig, direct, rel, seconds, staged};

/// A time to sleep that no other test sleeps, not even the same one behind a fence, whose processes we see.
fn own_time(seconds: u32) -> String {
    let fenced = u32::from(inside_fence().is_some());
    format!("{seconds}.{fenced}{}", std::process::id())
}

/// Processes of this machine that sleep for so long.
fn sleeping(time: &str) -> usize {
    let wanted = format!("sleep\0{time}\0").into_bytes();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted))
        .count()
}

/// The same command in every way that this machine can run it.
fn each(rig: &Rig, script: &str, check: impl Fn(Ran)) {
    check(Rig::bare().direct(script));
    if rig.machine.direct_tier().own_root {
        check(rig.direct(script));
    }
    if rig.machine.staged().is_ok() {
        check(rig.staged(script));
    }
}

#[test]
fn an_exit_status_and_a_signal_are_told_apart() {
    let rig = Rig::new();
    for (script, exit, signal) in [
        ("true", Some(0), None),
        ("cd /; false", Some(1), None),
        ("exit 137", Some(137), None),
        ("kill -9 $$", None, Some(9)),
        ("kill -TERM $$", None, Some(15)),
        ("kill -SEGV $$", None, Some(11)),
        ("no-such-program-here", Some(127), None),
    ] {
        each(&rig, script, |ran| {
            assert_eq!((ran.ended.exit, ran.ended.signal), (exit, signal), "{script}: {}", ran.said);
            assert!(!ran.ended.timed_out && !ran.ended.stopped && ran.ended.exceeded.is_none());
        });
    }
}

#[test]
fn c117_a_process_that_keeps_the_output_open_does_not_keep_the_answer() {
    let (rig, time) = (Rig::new(), own_time(60));
    for script in [
        "sleep 60.117 & echo done",
        "(while :; do echo tick; sleep 0.2; done) & echo done",
        "setsid sleep 60.117 & echo done",
        "nohup sleep 60.117 >/dev/null 2>&1 & echo done",
    ] {
        let script = script.replace("60.117", &time);
        each(&rig, &script, |ran| {
            assert_eq!(ran.ended.exit, Some(0));
            assert!(ran.said.contains("done"), "{}", ran.said);
            assert!(!ran.ended.left_running.is_empty(), "{script} {}", ran.ended.tier);
            assert_eq!(sleeping(&time), 0, "{script} {}", ran.ended.tier);
        });
    }
}

#[test]
fn c118_standard_input_is_at_its_end_and_c121_there_is_no_terminal() {
    let rig = Rig::new();
    each(&rig, "cat; read x || echo end; read -r p < /dev/tty || echo none; tty", |ran| {
        assert!(ran.said.contains("end\n") && ran.said.contains("none\n"), "{}", ran.said);
        assert!(ran.said.contains("not a tty\n"), "{}", ran.said);
    });
}

#[test]
fn c123_nothing_outlives_its_time() {
    let (rig, time) = (Rig::new(), own_time(311));
    rig.put("stub.sh", &format!("trap '' TERM INT HUP\nsleep {time} & wait; wait\n"));
    for script in [
        "bash stub.sh",
        "setsid bash stub.sh & wait",
        "(setsid bash -c 'trap \"\" TERM; sleep 311.123; sleep 311.123' &); bash stub.sh",
        "while :; do setsid sleep 311.123 & sleep 0.01; done",
    ] {
        let script = script.replace("311.123", &time);
        let limited = |how: How| {
            let mut request = rig.request(&script, how);
            request.timeout = Duration::from_millis(300);
            request
        };
        let mut ways = vec![rig.run(limited(direct(&[])))];
        if rig.machine.staged().is_ok() {
            ways.push(rig.run(limited(staged())));
        }
        let bare = Rig::bare();
        bare.put("stub.sh", &rig.text("stub.sh"));
        let mut request = bare.request(&script, direct(&[]));
        request.timeout = Duration::from_millis(300);
        ways.push(bare.run(request));
        for ran in ways {
            assert!(ran.ended.timed_out && !ran.ended.stopped, "{:?}", ran.ended);
            assert_eq!(sleeping(&time), 0, "{script} {}", ran.ended.tier);
        }
    }
}

#[test]
fn a_command_has_time_to_tidy_up_when_it_is_stopped() {
    let rig = Rig::new();
    let script = "trap 'echo tidied; exit 3' TERM; echo ready; while :; do sleep 0.1; done";
    let job = rig.start(rig.request(script, direct(&[]))).unwrap();
    assert!(job.output().wait_beyond(0, PATIENCE));
    assert_eq!(job.wait(Duration::ZERO), None);
    assert!(job.upper().is_err());
    job.stop();
    let ran = rig.finish(job);
    assert_eq!((ran.ended.exit, ran.ended.stopped, ran.ended.timed_out), (Some(3), true, false));
    assert!(ran.said.contains("tidied"), "{}", ran.said);
}

#[test]
fn a_session_that_ends_takes_its_commands_with_it() {
    let (rig, time) = (Rig::new(), own_time(77));
    let script = format!("setsid sleep {time} & wait");
    let jobs: Vec<_> = (0..3).map(|_| rig.start(rig.request(&script, direct(&[]))).unwrap()).collect();
    rig.session.end();
    for job in jobs {
        assert!(job.wait(PATIENCE).unwrap().stopped);
    }
    assert_eq!(sleeping(&time), 0);
    assert!(matches!(rig.start(rig.request("true", direct(&[]))), Err(StartError::Busy(_))));
}

#[test]
fn what_cannot_be_started_says_why_and_leaves_nothing() {
    let rig = Rig::new();
    let refused = |request: Request| rig.start(request).unwrap_err();
    let mut request = rig.request("true", direct(&[]));
    request.cwd = (0, rel("not/there"));
    assert_eq!(refused(request), StartError::NoDirectory("not/there".to_owned()));
    let mut request = rig.request("true", direct(&[]));
    request.cwd = (3, rel("."));
    assert!(matches!(refused(request), StartError::BadRequest(_)));
    assert!(matches!(refused(rig.request("a\0b", direct(&[]))), StartError::BadRequest(_)));
    rig.put("file", "x");
    let mut request = rig.request("true", direct(&[]));
    request.cwd = (0, rel("file"));
    assert!(matches!(refused(request), StartError::NoDirectory(_)));
    std::os::unix::fs::symlink("/etc", rig.root().join("link")).unwrap();
    let mut request = rig.request("pwd", direct(&[]));
    request.cwd = (0, rel("link"));
    assert!(matches!(refused(request), StartError::NoDirectory(_)));
    // A folder that is no longer the one that was asked about.
    let request = rig.request("true", direct(&[]));
    std::fs::rename(rig.root(), rig.base.join("moved")).unwrap();
    std::fs::create_dir(rig.root()).unwrap();
    if rig.has_root("what_cannot_be_started_says_why_and_leaves_nothing") {
        assert!(matches!(refused(request), StartError::SetUp { .. }));
    }
}

#[test]
fn a_command_runs_where_it_was_told_and_its_length_is_no_matter() {
    let rig = Rig::new();
    rig.put("a/b/file", "x");
    std::os::unix::fs::symlink("a/b", rig.root().join("inner")).unwrap();
    for (cwd, ends) in [("a/b", "root/a/b\n"), (".", "root\n"), ("inner", "a/b\n")] {
        let mut request = rig.request("pwd -P; ls", direct(&[]));
        request.cwd = (0, rel(cwd));
        let ran = rig.run(request).ok();
        assert!(ran.said.contains(ends), "{cwd}: {}", ran.said);
    }
    let long = format!("echo {} | wc -c", "x".repeat(100_000));
    assert_eq!(rig.direct(&long).ok().said.trim(), "100001");
    // The kernel takes no longer argument than 128 KiB; that is an answer, not a hang.
    let longer = format!("echo {}", "x".repeat(200_000));
    assert!(matches!(rig.start(rig.request(&longer, direct(&[]))), Err(StartError::SetUp { .. })));
}

#[test]
fn many_commands_at_once_do_not_mix() {
    let rig = Rig::new();
    let jobs: Vec<_> = (0..16)
        .map(|number| {
            let how = if number % 2 == 0 && rig.machine.staged().is_ok() { staged() } else { direct(&[]) };
            rig.start(rig.request(&format!("echo {number} > file-{number}; cat file-{number}"), how)).unwrap()
        })
        .collect();
    for (number, job) in jobs.into_iter().enumerate() {
        let ran = rig.finish(job).ok();
        assert_eq!(ran.said, format!("{number}\n"));
        let lands = ran.ended.tier.mode == Mode::Direct;
        assert_eq!(rig.root().join(format!("file-{number}")).exists(), lands);
    }
}

#[test]
fn sessions_share_neither_home_nor_temporary_files() {
    let rig = Rig::new();
    rig.direct("echo mine > ~/kept; echo mine > /tmp/kept; echo mine > $TMPDIR/kept2").ok();
    let again = rig.direct("cat ~/kept $TMPDIR/kept $TMPDIR/kept2").ok();
    assert_eq!(again.said, "mine\nmine\nmine\n");
    let other = Session::open(&rig.machine).unwrap();
    let request = seconds(rig.request("cat ~/kept $TMPDIR/kept", direct(&[])), 20);
    let job = cotenant_shell::run::start(&rig.machine, &other, request).unwrap();
    assert_eq!(job.wait(PATIENCE).unwrap().exit, Some(1));
    assert!(!rig.base.join("home/kept").exists());
}
