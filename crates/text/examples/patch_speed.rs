//! How long patches take: `cargo run --release -p cotenant-text --example patch_speed`.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints figures")]

use std::time::Instant;

use cotenant_text::detect;
use cotenant_text::patch::{Options, apply, parse};

/// The best of five runs, in milliseconds.
fn best(mut run: impl FnMut()) -> f64 {
    let mut least = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed().as_secs_f64() * 1000.0);
    }
    least
}

fn line(n: usize) -> String {
    format!("    let value_{n} = compute({}, \"name of {n}\"); // of many\n", n * 7 % 1000)
}

fn main() {
    let file: String = (0..200_000).map(line).collect();
    let raw = file.as_bytes();
    let form = detect(raw, None).unwrap();
    let hunk = |at: usize, old: &str| {
        format!(
            "--- a/f\n+++ b/f\n@@ -{at},3 +{at},3 @@\n {}-{old}+    changed();\n {}",
            line(at),
            line(at + 2)
        )
    };
    println!("file: {} lines, {} bytes", 200_000, raw.len());
    let cases = [
        ("a hunk that fits", hunk(150_000, &line(150_001))),
        ("a miss by its indent", hunk(150_000, &line(150_001)).replace("    let", "  let")),
        ("a stale old line", hunk(150_000, "    let other = 1;\n")),
        (
            "a miss like nothing else",
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n fn unheard_of() {\n-    todo\n+    done\n".to_owned(),
        ),
        (
            "eight misses",
            (1..9)
                .map(|n| format!("@@ -{n} +{n} @@\n-    let other_{n} = 1;\n+x\n"))
                .fold("--- a/f\n+++ b/f\n".to_owned(), |all, one| all + &one),
        ),
    ];
    for (name, text) in cases {
        let patch = parse(&text, &Options::default()).unwrap();
        let taken = best(|| {
            let _ = apply(raw, &form, &patch.files[0].hunks, &[]);
        });
        println!("{name}: {taken:.1} ms");
    }
    for count in [1_000, 4_000] {
        let section = |n: usize| {
            format!(
                "diff --git a/f{n} b/f{n}\nindex 1..2 100644\n--- a/f{n}\n+++ b/f{n}\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
            )
        };
        let text: String = (0..count).map(section).collect();
        println!(
            "reading {count} files ({} bytes): {:.1} ms",
            text.len(),
            best(|| drop(parse(&text, &Options::default()).unwrap()))
        );
    }
    let many: String = (0..1_000)
        .map(|n| format!("@@ -{},1 +{},1 @@\n-{}+    changed();\n", n * 200 + 1, n * 200 + 1, line(n * 200)))
        .collect();
    let patch = parse(&format!("--- a/f\n+++ b/f\n{many}"), &Options::default()).unwrap();
    println!(
        "1000 hunks in one file: {:.1} ms",
        best(|| drop(apply(raw, &form, &patch.files[0].hunks, &[]).unwrap()))
    );
}
