//! Names that are swapped while a call is under way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cotenant_testkit::{Client, Scratch, exchange, long, snapshot};
use serde_json::json;

use super::Attack;

pub(super) const IDS: &[&str] = &["R125", "R127", "R128", "R129", "R131"];

/// Swaps the directory `d` with the link `l`, which leads out, all the while that `work` runs.
fn while_swapping(scratch: &Scratch, work: impl FnOnce()) {
    let (directory, link, stop) = (scratch.path("d"), scratch.path("l"), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                exchange(&directory, &link);
            }
        });
        // The swapper must end even where the work fails.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
}

/// How many clients call at once, and for how long.
fn extent() -> (usize, Duration) {
    if long() { (4, Duration::from_secs(60)) } else { (1, Duration::from_secs(3)) }
}

/// Calls from each client until the time is up; returns how many calls were carried out.
fn storm(attack: &Attack, call: impl Fn(&mut Client, u64) -> bool + Sync) -> u64 {
    let (clients, time) = extent();
    let mut sum = 0;
    while_swapping(attack, || {
        let until = Instant::now() + time;
        sum = thread::scope(|scope| {
            let callers: Vec<_> = (0..clients)
                .map(|_| {
                    scope.spawn(|| {
                        let mut client = attack.mcp().start();
                        (0..)
                            .take_while(|_| Instant::now() < until)
                            .filter(|&turn| call(&mut client, turn))
                            .count()
                    })
                })
                .collect();
            callers.into_iter().map(|caller| caller.join().unwrap() as u64).sum()
        });
    });
    sum
}

#[test]
fn r125_serial_a_read_never_escapes() {
    let Some(attack) = Attack::open("R125") else { return };
    let read = storm(&attack, |client, _| {
        let reply = client.call("read_file", json!({"path": "d/f"}));
        reply.never_says("secret");
        reply.code().is_none()
    });
    assert!(read > 0, "no read got through: nothing was tried");
}

/// What is deleted, moved or replaced is what stands inside, whatever the name leads to a moment later.
#[test]
fn r127_serial_a_deletion_never_escapes() {
    let Some(attack) = Attack::open("R127") else { return };
    let outside = snapshot(&attack.out());
    let digest = attack.mcp().start().read("d/f").get("digest");
    let gone = storm(&attack, |client, turn| {
        let deleted = match turn % 3 {
            0 => client.call("delete_file", json!({"path": "d/f", "expected_digest": digest})),
            1 => client.call("move_path", json!({"from": "d/f", "to": format!("kept/{turn}")})),
            _ => client.call("replace_text", json!({"path": "d/f", "pattern": "in", "replacement": "in"})),
        };
        deleted.never_says("secret");
        let there = client.call("write_file", json!({"path": "d/f", "content": "in\n"}));
        there.never_says("secret");
        deleted.code().is_none()
    });
    assert_eq!(snapshot(&attack.out()), outside, "something was taken from outside");
    assert!(gone > 0, "nothing got through: nothing was tried");
}

#[test]
fn r128_serial_a_creation_never_escapes() {
    let Some(attack) = Attack::open("R128") else { return };
    let outside = snapshot(&attack.out());
    let process = std::process::id();
    let made = storm(&attack, |client, turn| {
        let thread = format!("{:?}", thread::current().id()).replace(|ch: char| !ch.is_ascii_digit(), "");
        let path = format!("d/new{process}-{thread}-{turn}/x");
        client.write(&path, "x\n").code().is_none()
    });
    assert_eq!(snapshot(&attack.out()), outside, "something was made outside");
    assert!(made > 0, "no creation got through: nothing was tried");
    let there = attack.sh("find d l -path '*/new*/x' 2>/dev/null | wc -l").stdout;
    assert_eq!(there.trim(), made.to_string(), "what was answered is not what is there");
}

#[test]
fn r128_serial_an_edit_never_escapes() {
    let Some(attack) = Attack::open("R128") else { return };
    let outside = snapshot(&attack.out());
    let edited = storm(&attack, |client, turn| {
        let read = client.call("read_file", json!({"path": "d/f"}));
        let Some((_, line)) = read.numbered().first().copied() else { return false };
        assert!(!line.contains("secret"), "{}", read.text);
        let new = format!("in {turn}");
        client.edit("d/f", line, &new).code().is_none()
    });
    assert_eq!(snapshot(&attack.out()), outside, "something was changed outside");
    assert!(edited > 0, "no edit got through: nothing was tried");
    attack.run(&["stop"]).ok();
    attack.sh("! find . -name '.cotenant-*' | grep .");
}

#[test]
fn r129_what_was_approved_is_not_written_elsewhere() {
    let Some(attack) = Attack::open("R129") else { return };
    let outside = snapshot(&attack.out());
    let mut agent = attack.mcp().profile("careful").start();
    agent.read("d/f");
    let asked = agent.edit("d/f", "in", "changed");
    let id = asked.refused("APPROVAL_PENDING").get("id");
    let digest = asked.meta["cotenant/refusal"]["facts"]["digest"].as_str().expect("a digest").to_owned();
    exchange(&attack.path("d"), &attack.path("l"));
    let approved = attack.run(&["approve", &id, "--digest", &digest]);
    assert_eq!(approved.code, 1, "{approved:?}");
    assert_eq!(snapshot(&attack.out()), outside);
    assert_eq!(attack.text("l/f"), "in\n");
    agent.call("retry", json!({"token": asked.offered("token")})).refused_as(&[]);
}

#[test]
fn r131_a_renamed_root_is_followed() {
    let Some(attack) = Attack::open("R131") else { return };
    let mut agent = attack.mcp().start();
    agent.read("src/a.txt");
    let moved = attack.base().join("moved");
    std::fs::rename(attack.root(), &moved).unwrap();
    let edited = agent.edit("src/a.txt", "in", "changed");
    let now = std::fs::read_to_string(moved.join("src/a.txt")).unwrap();
    assert_eq!(now, if edited.code().is_none() { "changed\n" } else { "in\n" }, "{}", edited.text);
    assert!(!attack.root().exists(), "the old place was made again");
    std::fs::rename(&moved, attack.root()).unwrap();
    agent.read("src/a.txt");
}

/// Not an entry of its own: a root that is removed and made again is another directory, and is served as such.
#[test]
fn a_root_that_was_made_again_is_served_anew() {
    let scratch = crate::support::scratch();
    scratch.put("old.txt", "old\n");
    let mut before = scratch.mcp().start();
    before.read("old.txt");
    std::fs::remove_dir_all(scratch.root()).unwrap();
    std::fs::create_dir(scratch.root()).unwrap();
    scratch.put("new.txt", "one\ntwo\n");
    let mut after = scratch.mcp().start();
    after.read("new.txt").says("1|one");
    after.call("read_file", json!({"path": "old.txt"})).refused("NOT_FOUND");
    after.edit("new.txt", "one", "1").ok();
    after.write("more.txt", "x\n").ok();
    assert_eq!(
        (scratch.text("new.txt"), scratch.text("more.txt")),
        ("1\ntwo\n".to_owned(), "x\n".to_owned())
    );
    // What the earlier session had read is void.
    before.edit("new.txt", "two", "2").refused_as(&["EDIT_REQUIRES_PRIOR_READ", "SESSION_ENDED"]);
}
