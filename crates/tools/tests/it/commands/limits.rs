//! What a command may use at most, and whom it can talk to: floods, bombs and whispers, through the toolbox.

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;

use cotenant_model::{ExecLimits, Profile, Settings};
use cotenant_testkit::{fenced_test, inside_fence};
use serde_json::json;

use super::ground::{approve_all, base};
use super::{run, run_with};
use crate::fixture::{Fixture, fact};

/// A user that owns nothing else.
const NOBODY: u32 = 54_321;

/// A workspace whose commands get little of everything.
fn frugal() -> Fixture {
    let exec = ExecLimits { memory_mb: 256, cpu_s: 60, processes: 64, disk_mb: 16 };
    Fixture::with(Settings { profile: Profile::Trusting, exec, ..Settings::default() })
}

#[test]
fn what_takes_all_of_something_takes_its_share() {
    fenced_test(NOBODY, "commands::limits::all_of_something");
}

#[test]
#[ignore = "run behind a fence"]
fn all_of_something() {
    assert!(inside_fence().is_some(), "only behind a fence");
    let fixture = frugal();
    // The bomb that the floor knows is refused; those that it cannot know are bounded.
    fixture.no("COMMAND_DENIED", "run_command", json!({"command": ":(){ :|:& };:"}));
    let bombs = [
        "python3 -c \"import os\nwhile True:\n  try: os.fork()\n  except OSError: pass\"",
        "printf 'sh b.sh & sh b.sh & wait' > b.sh; sh b.sh 2>/dev/null; sleep 100",
    ];
    for mode in ["staged", "direct"] {
        for bomb in bombs {
            let said = run_with(&fixture, bomb, json!({"timeout_s": 2, "mode": mode}));
            assert!(!said.contains("exit=0") || said.contains("was ended"), "{mode} {bomb}: {said}");
            assert!(processes() < 40, "{mode} {bomb}: {} processes are left", processes());
        }
        let hungry = "python3 -c \"x=bytearray(64<<30); print(len(x))\"";
        let said = run_with(&fixture, hungry, json!({"timeout_s": 20, "mode": mode}));
        assert_ne!(fact(&said, "exit").as_deref(), Some("0"), "{mode}: {said}");
        // 256 processes, each of them small, that hold what they took until they are ended.
        let many = "python3 -c \"import os\nfor i in range(8): os.fork()\nx=bytearray(100<<20)\nimport signal; signal.pause()\"";
        let said = run_with(&fixture, many, json!({"timeout_s": 5, "mode": mode}));
        assert_ne!(fact(&said, "exit").as_deref(), Some("0"), "{mode}: {said}");
    }
    let full = "dd if=/dev/zero of=big bs=1M count=100000 2>/dev/null";
    let said = run_with(&fixture, full, json!({"timeout_s": 20, "mode": "staged"}));
    assert_ne!(fact(&said, "exit").as_deref(), Some("0"), "{said}");
    let left = std::fs::metadata(fixture.path("big")).map_or(0, |meta| meta.len());
    assert!(left <= 16 << 20, "{left} bytes are left");
    assert_eq!(fact(&run(&fixture, "echo on"), "exit").as_deref(), Some("0"), "the session goes on");
}

/// Processes of this fence.
fn processes() -> usize {
    let number = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
    std::fs::read_dir("/proc").unwrap().filter(|entry| number(&entry.as_ref().unwrap().file_name())).count()
}

#[test]
fn nobody_outside_hears_of_a_command() {
    let fixture = Fixture::careful();
    let stream = TcpListener::bind("127.0.0.1:0").unwrap();
    let packet = UdpSocket::bind("127.0.0.1:0").unwrap();
    let socket = base(&fixture).join("socket");
    let local = UnixListener::bind(&socket).unwrap();
    let (tcp, udp) = (stream.local_addr().unwrap().port(), packet.local_addr().unwrap().port());
    stream.set_nonblocking(true).unwrap();
    packet.set_nonblocking(true).unwrap();
    local.set_nonblocking(true).unwrap();
    fixture.put("secret.txt", "hunter2\n");
    let connect = format!(
        "python3 -c \"import socket as s; c=s.socket(s.AF_UNIX); c.connect('{}'); c.send(b'x')\"",
        socket.display()
    );
    let commands = [
        format!("curl -s -m 2 http://127.0.0.1:{tcp}/"),
        format!("cat secret.txt > /dev/tcp/127.0.0.1/{tcp}"),
        format!("cat secret.txt > /dev/udp/127.0.0.1/{udp}"),
        format!("python3 -c \"import socket as s; s.create_connection(('127.0.0.1', {tcp}), 2)\""),
        format!(
            "python3 -c \"import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp}))\""
        ),
        format!("git ls-remote git://127.0.0.1:{tcp}/x"),
        connect,
    ];
    for command in &commands {
        for mode in ["auto", "direct"] {
            let said =
                fixture.call("run_command", json!({"command": command, "mode": mode, "timeout_s": 20}));
            let last = approve_all(&fixture, &said.text);
            let silent = |heard: std::io::Error| heard.kind() == ErrorKind::WouldBlock;
            assert!(stream.accept().is_err_and(silent), "{mode} {command}: {last}");
            assert!(packet.recv(&mut [0; 16]).is_err_and(silent), "{mode} {command}: {last}");
            assert!(local.accept().is_err_and(silent), "{mode} {command}: {last}");
        }
    }
}

#[test]
fn what_asks_for_input_does_not_wait() {
    let fixture = Fixture::new();
    super::sh(
        &fixture,
        "git init -q .; git config user.email t@e.st; git config user.name t; echo a > a; git add a",
    );
    for command in ["read x", "cat", "git commit", "python3 -c 'input()'", "rm -i a", "bash -i -c 'read x'"] {
        for mode in ["auto", "direct"] {
            let said = run_with(&fixture, command, json!({"timeout_s": 30, "mode": mode}));
            assert_eq!(fact(&said, "timed_out"), None, "{mode} {command}: {said}");
        }
    }
}
