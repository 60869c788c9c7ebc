//! The daemon's life: found or started, never two, replaced, idle, stopped.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use cotenant_daemon::{Asking, Kind, Place, connect, connect_or_start};
use cotenant_model::Code;
use serde_json::{Map, Value, json};

use crate::{Ground, acting, asking, call, ended, kill, paused, process, refused, text};

fn opened(ground: &Ground) -> Vec<String> {
    let text = fs::read_to_string(ground.place.root.join("opened")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn it_is_started_by_the_first_and_found_by_the_next() {
    let ground = Ground::new();
    assert_eq!(ground.pid(), None);
    let first = ground.admin();
    assert_ne!(first.pid, std::process::id());
    assert_eq!((ground.admin().pid, ground.pid()), (first.pid, Some(first.pid)));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&ground.place.socket), 0o600);
    assert_eq!(mode(ground.place.socket.parent().unwrap()), 0o700);
    assert_eq!(mode(&ground.place.state), 0o700);
    // It leads a session of its own: what ends its starter does not end it.
    let stat = fs::read_to_string(format!("/proc/{}/stat", first.pid)).unwrap();
    let session = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_owned();
    assert_eq!(session, first.pid.to_string());
    assert_eq!(opened(&ground), ["false"]);
}

#[test]
fn it_holds_nothing_that_its_starter_had_open() {
    let ground = Ground::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    // As a caller does that passes a descriptor on by intent: without the flag that ends it at exec.
    rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).unwrap();
    let admin = ground.admin();
    drop(writer);
    assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert_eq!(ground.pid(), Some(admin.pid));
}

#[test]
fn of_many_starters_at_once_one_becomes_the_daemon() {
    let ground = Ground::new();
    let pids: Vec<u32> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..6).map(|_| scope.spawn(|| ground.admin().pid)).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    assert_eq!(opened(&ground), ["false"]);
}

#[test]
fn a_second_daemon_by_hand_says_that_there_is_one() {
    let ground = Ground::new();
    let pid = ground.admin().pid;
    let mut second = Command::new(&ground.starter.exe)
        .args(&ground.starter.args)
        .envs(ground.starter.env.clone())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    second.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(second.wait().unwrap().success());
    assert!(said.contains("{\"cotenant_daemon\":\"ready\"}"), "{said}");
    assert_eq!(ground.pid(), Some(pid));
    assert_eq!(opened(&ground).len(), 1);
}

#[test]
fn a_killed_daemon_is_followed_by_another() {
    let ground = Ground::new();
    let first = ground.admin().pid;
    kill(first);
    assert_eq!(ground.pid(), None);
    let second = ground.admin().pid;
    assert_ne!(first, second);
    assert_eq!(opened(&ground).len(), 2);
}

#[test]
fn a_workspace_that_cannot_be_opened_is_refused_with_its_reason() {
    let ground = Ground::new();
    fs::write(ground.place.root.join("broken"), "").unwrap();
    let refusal = refused(connect_or_start(&ground.place, &ground.starter, &asking(Kind::Admin)));
    assert_eq!(refusal.to_string(), "IO_ERROR at=7\nThe ledger is broken.\nnext: cotenant doctor");
    assert_eq!(ground.pid(), None);
    fs::remove_file(ground.place.root.join("broken")).unwrap();
    ground.admin();
}

#[test]
fn settings_that_are_wrong_are_refused_with_the_line() {
    let ground = Ground::configured("[approvals]\nprofil = \"careful\"\n");
    let refusal = refused(connect_or_start(&ground.place, &ground.starter, &asking(Kind::Admin)));
    assert_eq!(refusal.code, Code::BadInput);
    assert!(refusal.to_string().contains("near=profile"), "{refusal}");
}

#[test]
fn a_daemon_that_dies_at_its_start_is_reported_with_its_log() {
    let mut ground = Ground::new();
    ground.starter.exe = "/bin/sh".into();
    ground.starter.args = vec!["-c".to_owned(), "echo deeply unwell >&2; exit 3".to_owned()];
    let refusal = refused(connect_or_start(&ground.place, &ground.starter, &asking(Kind::Admin)));
    assert_eq!(refusal.code, Code::IoError);
    assert!(refusal.block.contains("deeply unwell"), "{refusal}");
    ground.starter.exe = "/no/such/file".into();
    assert_eq!(
        refused(connect_or_start(&ground.place, &ground.starter, &asking(Kind::Admin))).code,
        Code::IoError
    );
}

#[test]
fn roots_that_are_none_have_no_place() {
    let ground = Ground::new();
    let file = ground.folder.join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(refused(Place::of(&file, &ground.homes)).code, Code::NotADirectory);
    assert_eq!(refused(Place::of(&ground.folder.join("absent"), &ground.homes)).code, Code::NotFound);
    // One root has one place, however it is spelled.
    let link = ground.folder.join("link");
    std::os::unix::fs::symlink(&ground.place.root, &link).unwrap();
    assert_eq!(Place::of(&link, &ground.homes).unwrap(), ground.place);
    assert_ne!(Place::of(&ground.folder, &ground.homes).unwrap().key, ground.place.key);
}

#[test]
fn an_idle_daemon_ends_and_a_needed_one_does_not() {
    let mut ground = Ground::new();
    ground.starter = acting::starter(&ground.folder, Duration::from_millis(1));
    let mut client = ground.admin();
    let daemon = process(client.pid);
    fs::write(ground.place.root.join("busy"), "").unwrap();
    // It answers as long as someone is connected, whatever its idle time.
    for _ in 0..3 {
        client.ask("echo", Map::new()).unwrap();
    }
    fs::remove_file(ground.place.root.join("busy")).unwrap();
    drop(client);
    ended(&daemon);
    assert!(!ground.place.socket.exists());
    assert_eq!(ground.pid(), None);
}

#[test]
fn stop_lets_calls_finish_and_returns_when_all_is_over() {
    let ground = Ground::new();
    let pauses = ground.pauses();
    let mut bridge = ground.bridge();
    bridge.initialize();
    bridge.send(call(1, "pause", json!({})));
    let (pid, held) = paused(&pauses);
    ground.no_more_pauses();
    let daemon = process(pid);
    let mut admin = ground.admin();
    assert_eq!(admin.ask("stop", Map::new()).unwrap()["pid"], pid);
    drop(held);
    assert_eq!(text(&bridge.answer()), "went on");
    admin.wait_end();
    // Whoever waited finds the lock free.
    let next = ground.admin();
    assert_ne!(next.pid, pid);
    ended(&daemon);
}

#[test]
fn a_daemon_of_another_build_finishes_its_calls_and_is_replaced() {
    let ground = Ground::new();
    let pauses = ground.pauses();
    let mut old = ground.starter.clone();
    old.exe = ground.folder.join("older");
    fs::copy(&ground.starter.exe, &old.exe).unwrap();
    let any = Asking { any_build: true, ..asking(Kind::Admin) };
    let first = connect_or_start(&ground.place, &old, &any).unwrap();
    assert_ne!(first.build, cotenant_daemon::build_id());
    // A bridge that takes any build is connected to it, and has a call under way.
    let older = process(first.pid);
    let mut stream = UnixStream::connect(&ground.place.socket).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let greeting = json!({ "cotenant": 1, "build": "x", "any_build": true, "kind": "mcp" });
    writeln!(stream, "{greeting}\n{}", call(1, "pause", json!({}))).unwrap();
    let (_, held) = paused(&pauses);
    ground.no_more_pauses();
    let new = std::thread::scope(|scope| {
        let new = scope.spawn(|| ground.admin());
        // The old one has let go of its socket, and still works.
        let mut first = first;
        assert!(first.ask("echo", Map::new()).is_err() || !new.is_finished());
        drop(held);
        new.join().unwrap()
    });
    let said: Vec<Value> =
        lines.by_ref().lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!(text(&said[1]), "went on");
    ended(&older);
    assert_eq!(new.build, cotenant_daemon::build_id());
    assert_eq!(opened(&ground), ["false", "false"]);
}

#[test]
fn greetings_that_are_none_are_refused_or_dropped() {
    let ground = Ground::new();
    drop(ground.admin());
    let say = |line: &str| {
        let mut stream = UnixStream::connect(&ground.place.socket).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = String::new();
        // A reset is no answer either.
        let _ = stream.read_to_string(&mut said);
        said
    };
    let build = cotenant_daemon::build_id();
    for line in [
        "nonsense\n".to_owned(),
        "{}\n".to_owned(),
        format!("{{\"cotenant\":2,\"build\":\"{build}\",\"kind\":\"mcp\"}}\n"),
        format!("{{\"cotenant\":1,\"build\":\"{build}\",\"kind\":\"other\"}}\n"),
        format!("{{\"cotenant\":1,\"build\":\"{build}\",\"kind\":\"mcp\",\"profile\":\"bold\"}}\n"),
        format!("{{\"cotenant\":1,\"build\":\"{build}\",\"kind\":\"mcp\",\"tools\":[\"core\",\"all\"]}}\n"),
    ] {
        let said = say(&line);
        assert!(said.starts_with("{\"refusal\":{\"code\":\""), "{line}: {said}");
    }
    assert_eq!(say("half"), "");
    assert_eq!(say(&"x".repeat(100_000)), "");
    assert!(connect(&ground.place, &asking(Kind::Admin)).unwrap().is_some());
}
