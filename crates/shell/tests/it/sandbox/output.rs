//! What commands write: order, counts, floods.

use std::time::Duration;

use cotenant_shell::run::{OutputLimits, Stream, plain};

use super::rig::{Rig, direct};

#[test]
fn both_streams_stand_in_order_of_arrival_and_apart() {
    let rig = Rig::new();
    let script = "for i in 1 2 3; do echo out$i; sleep 0.05; echo err$i >&2; sleep 0.05; done";
    let ran = rig.direct(script).ok();
    assert_eq!(ran.said, "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
    let errors: Vec<u8> = ran
        .job
        .output()
        .pieces(0, 1000)
        .into_iter()
        .filter(|piece| piece.stream == Some(Stream::Errors))
        .flat_map(|piece| piece.bytes)
        .collect();
    assert_eq!(errors, b"err1\nerr2\nerr3\n");
    let counts = ran.job.output().counts();
    assert_eq!((counts.output, counts.errors, counts.total()), (15, 15, 30));
}

#[test]
fn c124_a_flood_is_counted_to_the_byte_and_kept_at_both_ends() {
    let rig = Rig::new();
    let mut request =
        rig.request("echo first; head -c 300000000 /dev/zero | tr '\\0' a; echo last", direct(&[]));
    request.output = OutputLimits { memory: 1000, disk: 1 << 20 };
    let before = resident();
    let ran = rig.run(request).ok();
    let output = ran.job.output();
    assert!(resident() < before + (64 << 20), "memory does not grow with what is written");
    assert_eq!(output.len(), 300_000_000 + 11);
    let shown = output.snapshot(10, 10);
    assert!(shown.head.starts_with(b"first\na") && shown.tail.ends_with(b"alast\n"));
    assert_eq!(shown.omitted, 300_000_011 - 20);
    assert_eq!(output.gap(), Some((1 << 20, 300_000_011 - 1000)));
    assert_eq!(output.read((1 << 20) - 3, 10), b"aaa");
}

/// Bytes of this process in memory, at least: a page may be larger.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn c124_a_flood_does_not_hold_the_clock() {
    let rig = Rig::new();
    let mut request = rig.request("yes & yes >&2 & yes", direct(&[]));
    request.timeout = Duration::from_millis(500);
    request.output = OutputLimits { memory: 1 << 16, disk: 1 << 20 };
    let ran = rig.run(request);
    assert!(ran.ended.timed_out);
    assert!(ran.job.output().len() > 1 << 20);
}

#[test]
fn output_can_be_followed_while_it_comes() {
    let rig = Rig::new();
    let job = rig.start(rig.request("echo one; read x < wait; echo two", direct(&[]))).unwrap();
    let fifo = rig.root().join("wait");
    assert!(job.output().wait_beyond(3, cotenant_testkit::PATIENCE));
    assert_eq!(&job.output().read(0, 4), b"one\n");
    std::fs::write(&fifo, "go\n").unwrap();
    job.stop();
    let ended = rig.finish(job);
    assert!(ended.said.starts_with("one\n"));
    assert!(ended.job.output().wait_beyond(1 << 40, Duration::from_secs(60)), "its end wakes whoever waits");
}

#[test]
fn bytes_are_kept_raw_and_shown_plain() {
    let rig = Rig::new();
    let ran = rig.direct("printf '\\033[31mred\\033[0m \\377 10%%\\r100%%\\n'").ok();
    let raw = ran.job.output().read(0, 100);
    assert_eq!(raw, b"\x1b[31mred\x1b[0m \xff 10%\r100%\n");
    assert_eq!(plain(&raw), "100%\n");
    assert_eq!(plain(&raw[..12]), "red");
}

#[test]
fn exclamation_marks_and_quotes_arrive_as_they_were_written() {
    let rig = Rig::new();
    let ran = rig.direct("printf '%s' '!a' \"b!\"; cat <<'E'\nc!\nE\ntest 1 != 2 && echo ok").ok();
    assert_eq!(ran.said, "!ab!c!\nok\n");
}
