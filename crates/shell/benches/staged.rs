//! What a staged command costs: `cargo bench -p cotenant-shell -- DIR [ROUNDS]`, where nothing
//! else works on the machine. Rounds of a bare spawn and of staged ones alternate, so that both see the same machine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement, not a product"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cotenant_shell::run::{Folder, How, OutputLimits, Request, environment, start};
use cotenant_shell::sandbox::{Machine, Session, Surroundings};

fn main() {
    let mut arguments = std::env::args().skip(1);
    // `cargo test` and `cargo bench` say `--bench` of themselves.
    let Some(base) = arguments.find(|word| word != "--bench") else { return };
    let base = PathBuf::from(base).canonicalize().unwrap();
    let rounds: usize = arguments.next().map_or(200, |rounds| rounds.parse().unwrap());
    let root = base.join("tree");
    grow(&root, 20_000);
    let around = Surroundings {
        scratch: base.join("scratch"),
        hidden: Vec::new(),
        environment: std::env::vars_os().collect(),
        user_namespaces: true,
    };
    let machine = Machine::probe(&around).unwrap();
    for ability in machine.report() {
        println!("{:<12}{:?}", ability.name, ability.state);
    }
    let session = Session::open(&machine).unwrap();
    let request = |script: &str| {
        let folder = Folder { host: root.clone(), dir: None, writable: true };
        let how = How::Staged { through: Vec::new(), read_only: Vec::new() };
        let mut request = Request::new(script, vec![folder], how);
        request.env = environment(std::env::vars_os(), &[], &[]);
        request.timeout = Duration::from_secs(600);
        request
    };
    let staged = |script: &str| {
        let begun = Instant::now();
        let job = start(&machine, &session, request(script)).unwrap();
        let ended = job.wait(Duration::from_secs(600)).unwrap();
        let ran = begun.elapsed();
        let walk = job.upper().unwrap().walk(0, 1 << 20).unwrap();
        (ran, begun.elapsed() - ran, walk.entries.len(), ended, job)
    };
    trivial(&root, rounds, || {
        let (ran, walked, ..) = staged("true");
        ran + walked
    });
    let (ran, walked, entries, ..) =
        staged("for d in d*; do for f in $d/*; do [ $((n++)) -lt 5000 ] && echo x >> $f; done; done");
    println!("5,000 changed: command {ran:?}, walk of {entries} entries {walked:?}");
    flood(|limits| {
        let mut request = request("head -c 10737418240 /dev/zero");
        request.output = limits;
        let begun = Instant::now();
        let job = start(&machine, &session, request).unwrap();
        while job.wait(Duration::from_millis(200)).is_none() {
            resident();
        }
        println!(
            "10 GiB of output: {:?}, {} bytes counted, {} MiB resident at most",
            begun.elapsed(),
            job.output().len(),
            resident()
        );
    });
}

/// A tree of so many small files.
fn grow(root: &Path, files: usize) {
    if root.exists() {
        return;
    }
    for at in 0..files {
        let dir = root.join(format!("d{}", at / 100));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("f{at}")), format!("file {at}\n")).unwrap();
    }
}

fn trivial(root: &Path, rounds: usize, staged: impl Fn() -> Duration) {
    let (mut bare, mut held) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let begun = Instant::now();
        let mut command = Command::new("bash");
        command.args(["-c", "true"]).current_dir(root).stdin(Stdio::null());
        assert!(command.output().unwrap().status.success());
        bare.push(begun.elapsed());
        held.push(staged());
    }
    let at = |times: &mut Vec<Duration>, percent: usize| {
        times.sort();
        times[(times.len() * percent / 100).min(times.len() - 1)]
    };
    for percent in [50, 95, 99] {
        let (bare, held) = (at(&mut bare, percent), at(&mut held, percent));
        println!("p{percent}: bare {bare:?}, staged {held:?}, more by {:?}", held.saturating_sub(bare));
    }
}

fn flood(run: impl Fn(OutputLimits)) {
    run(OutputLimits { memory: 1 << 18, disk: 1 << 28 });
}

/// The most that this process had in memory, in MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}
