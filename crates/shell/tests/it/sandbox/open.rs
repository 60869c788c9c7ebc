//! An overlay that stays open over many commands.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use cotenant_shell::run::How;
use cotenant_shell::sandbox::{Grade, Mode, OpenOverlay, OverlayError, Session, StartError};
use rustix::fs::{Mode as Bits, OFlags, openat};

use super::rig::{Rig, exists, rel, word};

fn open(rig: &Rig) -> Option<Arc<OpenOverlay>> {
    rig.can_stage("an open overlay").then(|| {
        let protected = vec![(0, rel("closed"))];
        Arc::new(
            OpenOverlay::open(&rig.machine, &rig.session, vec![rig.folder()], protected, Vec::new()).unwrap(),
        )
    })
}

fn file(dir: &OwnedFd, path: &str, flags: OFlags) -> std::fs::File {
    openat(dir, path, flags | OFlags::CLOEXEC, Bits::from_raw_mode(0o644)).unwrap().into()
}

fn changes(overlay: &OpenOverlay) -> Vec<String> {
    overlay.upper().unwrap().walk(0, 1000).unwrap().entries.iter().map(word).collect()
}

#[test]
fn what_one_command_writes_the_next_one_reads_and_the_folder_does_not_change() {
    let rig = Rig::new();
    rig.put("src/main", "before\n");
    rig.put("closed", "kept\n");
    let Some(overlay) = open(&rig) else { return };
    let run = |script: &str| rig.run(rig.request(script, How::Overlay(overlay.clone())));
    run("echo after > src/main; mkdir out; echo 1 > out/x").ok();
    let again =
        run("cat src/main out/x; rm -r out; echo more >> src/main; pwd; echo x > closed; cat closed").ok();
    let expected = format!("after\n1\n{}\n", rig.root().display());
    assert!(again.said.contains(&expected) && again.said.contains("kept\n"), "{}", again.said);
    assert_eq!((again.ended.tier.mode, again.ended.tier.grade()), (Mode::Exec, Grade::G3));
    assert_eq!(changes(&overlay), ["src dir", "src/main file copied"]);
    assert_eq!(rig.text("src/main"), "before\n");
}

#[test]
fn the_daemon_works_in_it_too() {
    let rig = Rig::new();
    rig.put("src/main", "before\n");
    let Some(overlay) = open(&rig) else { return };
    let run = |script: &str| rig.run(rig.request(script, How::Overlay(overlay.clone()))).ok();
    run("echo from-command > made");
    let dir = overlay.dir(0).unwrap();
    let read = std::io::read_to_string(file(dir, "made", OFlags::RDONLY)).unwrap();
    assert_eq!(read, "from-command\n");
    file(dir, "src/main", OFlags::WRONLY | OFlags::TRUNC).write_all(b"from-daemon\n").unwrap();
    assert_eq!(run("cat src/main").said, "from-daemon\n");
    assert_eq!(changes(&overlay), ["made file new", "src dir", "src/main file copied"]);
    assert!(!exists(&rig.root().join("made")));
    assert_eq!(overlay.dir(1).unwrap_err(), OverlayError::NoFolder(1));
}

#[test]
fn processes_end_with_their_command_and_it_is_read_in_between() {
    let rig = Rig::new();
    let Some(overlay) = open(&rig) else { return };
    let start = |script: &str| rig.start(rig.request(script, How::Overlay(overlay.clone())));
    let job = start("echo up; sleep 60.5 & while :; do sleep 0.1; done").unwrap();
    assert!(job.output().wait_beyond(0, cotenant_testkit::PATIENCE));
    assert_eq!(overlay.upper().unwrap_err(), OverlayError::Running);
    job.stop();
    let ran = rig.finish(job);
    assert!(ran.ended.stopped);
    assert_eq!(changes(&overlay), Vec::<String>::new());
    let ran = rig.finish(start("ls /proc | grep -c '^[0-9]'").unwrap()).ok();
    assert!(ran.said.trim().parse::<u32>().unwrap() < 8, "{}", ran.said);
}

#[test]
fn one_that_is_closed_or_anothers_is_refused() {
    let rig = Rig::new();
    let Some(overlay) = open(&rig) else { return };
    let other = Session::open(&rig.machine).unwrap();
    let request = rig.request("true", How::Overlay(overlay.clone()));
    let refused = cotenant_shell::run::start(&rig.machine, &other, request.clone()).unwrap_err();
    assert!(matches!(refused, StartError::BadRequest(_)), "{refused}");
    overlay.close();
    assert!(matches!(rig.start(request).unwrap_err(), StartError::Busy(_)));
    assert_eq!(overlay.upper().unwrap_err(), OverlayError::Closed);
    assert!(overlay.dir(0).is_err());
}

#[test]
fn the_network_is_given_to_single_commands() {
    let rig = Rig::new();
    let Some(overlay) = open(&rig) else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut request = rig.request(
        &format!("(echo > /dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo got"),
        How::Overlay(overlay),
    );
    assert_eq!(rig.run(request.clone()).said, "");
    request.network = true;
    assert_eq!(rig.run(request).said, "got\n");
}
