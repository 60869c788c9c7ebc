//! How long the recogniser takes with lines of up to 4 KiB: `cargo run --release -p cotenant-shell --example recogniser`.
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

use cotenant_shell::edits::{Environment, recognise};
use rustix::time::{ClockId, clock_gettime};

/// The processor time of this thread, in nanoseconds: what else runs on the machine does not count.
fn spent() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// How often each line is read.
const ROUNDS: usize = 2_000;
/// The longest line, in bytes.
const LINE: usize = 4 << 10;

fn main() {
    let environment = Environment::new([("LC_ALL", "C.UTF-8")], 0o022);
    let file = "fn a(x: &str) -> NNN { \"it's\" }\n".repeat(LINE / 34);
    let script = "s/old_name/new_NNN/g;".repeat(LINE / 23);
    let lines = [
        ("a short sed", "cd src && sed -i 's/old/NNN/g' main.rs".to_owned()),
        ("a file in a here-document", format!("cat > a.rs <<'EOF'\n{file}EOF\n")),
        ("a long script", format!("sed -i '{script}' f")),
        ("many escapes", format!("sed -i \"{}\" f", "s/\\\\.a\\$/\\\"NNN/;".repeat(40))),
        (
            "many commands",
            "sed -i 's/a/NNN/' directory/of/this/file && rm -f some/other/directory/NNN && ".repeat(14)
                + "rm g",
        ),
        ("many words", format!("rm -f {}", "a/directory/of/some/length/NNN.txt ".repeat(112))),
        ("left to the shell at its end", format!("cat > a <<'EOF'\n{file}EOF\nls | cat")),
    ];
    let mut all = Vec::new();
    for (name, line) in &lines {
        let mut times: Vec<i64> = (0..ROUNDS)
            .map(|round| {
                // A line that was never seen: nothing that is kept between calls helps.
                let line = line.replace("NNN", &round.to_string());
                let begin = spent();
                std::hint::black_box(recognise(&line, &environment));
                spent() - begin
            })
            .collect();
        all.extend_from_slice(&times);
        println!("{name} ({} bytes): {}", line.len(), figures(&mut times));
    }
    println!("all: {}", figures(&mut all));
}

fn figures(times: &mut [i64]) -> String {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)] / 1_000;
    format!("p50 {} µs, p99 {} µs", at(50), at(99))
}
