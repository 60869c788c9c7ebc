//! Figures against the bare sequence, interleaved pair by pair. Printed, never asserted: disks and neighbours vary.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cotenant_engine::pipeline::Unwatched;
use cotenant_model::Durability;

use crate::rig::*;

/// Temp, fsync, exchange, fsync directory, unlink.
fn bare(dir: &Path, bytes: &[u8]) -> Duration {
    let started = Instant::now();
    let (target, temp) = (dir.join("bare"), dir.join("bare.tmp"));
    let mut file = File::create(&temp).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
    let cwd = rustix::fs::CWD;
    rustix::fs::renameat_with(cwd, &target, cwd, &temp, rustix::fs::RenameFlags::EXCHANGE).unwrap();
    File::open(dir).unwrap().sync_all().unwrap();
    fs::remove_file(&temp).unwrap();
    started.elapsed()
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap())
}

fn middle(mut times: Vec<Duration>, per_cent: usize) -> Duration {
    times.sort();
    times[(times.len() - 1) * per_cent / 100]
}

#[test]
#[ignore = "figures: run by hand, on a quiet machine and optimised"]
fn full_and_fast_against_the_bare_sequence() {
    for (durability, size) in [
        (Durability::Full, 8 << 10),
        (Durability::Full, 1 << 20),
        (Durability::Fast, 8 << 10),
        (Durability::Fast, 1 << 20),
    ] {
        let place = Place::new();
        let rig =
            Rig::watched(place.tree.path(), place.state.path(), durability, Arc::new(Unwatched)).unwrap();
        let image = |number: usize| {
            let mut bytes = vec![b'x'; size];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            bytes
        };
        rig.write("f", &image(0));
        rig.write("bare", &image(0));
        let (mut ours, mut theirs, mut busy) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..120 {
            let (before, after) = (image(number), image(number + 1));
            let plan = vec![replace("f", &before, &after)];
            let (started, worked) = (Instant::now(), thread_time());
            rig.commit(plan).unwrap();
            ours.push(started.elapsed());
            busy.push(thread_time() - worked);
            rig.pipeline.idle();
            theirs.push(bare(place.tree.path(), &after));
        }
        println!(
            "{durability:?} {size}: ours p50 {:?} p99 {:?} (processor {:?}), bare p50 {:?}, ratio {:.2}",
            middle(ours.clone(), 50),
            middle(ours.clone(), 99),
            middle(busy, 50),
            middle(theirs.clone(), 50),
            middle(ours, 50).as_secs_f64() / middle(theirs, 50).as_secs_f64()
        );
    }
}
