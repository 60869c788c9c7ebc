//! The path attacks of the shared cases, each as it is written, and the ones that need a mount.

use cotenant_model::{Code, PathClass, Refusal};
use cotenant_testkit::records;
use cotenant_tree::Kind;

use crate::fixture::{Ws, count, query, ws};

/// What came of an attack, in the words of the cases.
fn outcome(ws: &Ws, kind: &str, input: &str) -> Result<&'static str, Refusal> {
    match kind {
        "path-read" => ws.read(input).map(|_| "allow"),
        "path-list" => ws.locate(input).map(|_| "allow"),
        "path-write" => {
            let place = ws.locate(input)?;
            Ok(match place.kind {
                // What the commit refuses as HARD_LINKED.
                Kind::File(stat) if stat.nlink > 1 => "refuse",
                _ if place.class.class == PathClass::Sensitive => "ask",
                _ => "allow",
            })
        }
        other => panic!("unknown kind {other}"),
    }
}

/// Where the README of the cases decides otherwise than the case.
fn decided(id: &str, expect: &str) -> String {
    match id {
        "P004" | "P071" => "refuse".to_owned(),
        "P072" => "allow".to_owned(),
        _ => expect.to_owned(),
    }
}

#[test]
fn every_path_attack_ends_as_its_case_says() {
    let mut ran = 0;
    let Some(cases) = records("cases/attacks.jsonl") else { return };
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
        let (id, kind, setup) = (text("id"), text("kind"), text("setup"));
        let is_path = ["path-read", "path-write", "path-list"].contains(&kind.as_str());
        // A search, tested below; a bind mount, tested in its own mount namespace below.
        if !is_path || id == "P080" {
            continue;
        }
        ran += 1;
        let ws = ws(&setup);
        let input = text("input")
            .replace("OUTDIR", "out")
            .replace("WSNAME", "root")
            .replace("ABSW", ws.scratch.root().to_str().unwrap());
        let outcome = outcome(&ws, &kind, &input);
        let got = outcome.as_ref().map_or("refuse", |outcome| *outcome);
        assert_eq!(got, decided(&id, &text("expect")), "{id} {input:?}: {outcome:?}");
        if let Err(refusal) = outcome {
            assert_eq!(refusal.code, expected_code(&id, &input), "{id} {input:?}: {refusal}");
        }
        assert!(!ws.scratch.out().join("new.txt").exists(), "{id}");
    }
    eprintln!("{ran} path attacks");
}

/// The code that an attack gets, from what makes it one.
fn expected_code(id: &str, input: &str) -> Code {
    match id {
        "P013" => Code::BadInput,
        "P017" => Code::NotADirectory,
        "P073" | "P075" | "P077" => Code::NotAFile,
        "P079" => Code::TooLarge,
        "P115" | "P116" | "P117" | "P118" => Code::PathProtected,
        // Ordinary names that do not exist: nothing is expanded, decoded or normalised.
        "P020" | "P021" | "P023" | "P024" | "P025" | "P031" | "P032" | "P033" | "P035" | "P036" => {
            Code::NotFound
        }
        _ if id.starts_with('P') && (82..=112).contains(&id[1..].parse::<u32>().unwrap()) => {
            Code::PathProtected
        }
        _ => {
            assert!(!input.is_empty(), "{id}");
            Code::PathOutside
        }
    }
}

#[test]
fn p070_a_search_does_not_follow_links_out() {
    let ws = ws("mkdir -p src && echo in > src/a.txt && echo secret > $OUT/secret.txt && ln -s \"$OUT\" nd");
    let hits = ws.grep(".", "secret");
    assert_eq!((hits.total_matches, count(&hits.skipped, "links")), (0, 1));
}

#[test]
fn c073_nothing_in_a_pattern_or_a_path_is_an_option() {
    let ws = ws(
        "printf '#!/bin/sh\\ntouch pwned\\ncat \"$1\"\\n' > pre.sh; chmod +x pre.sh; printf 'hello\\n' > f.txt",
    );
    assert_eq!(ws.grep(".", "--pre=./pre.sh").total_matches, 0);
    let filtered = ws.grep_with(
        ".",
        &cotenant_tree::ContentQuery { glob: Some("--pre=./pre.sh".into()), ..query("hello") },
    );
    assert_eq!(filtered.searched, 0);
    assert!(ws.tree.search_content(&ws.at("--pre=./pre.sh"), &query("hello")).is_err());
    assert!(!ws.scratch.path("pwned").exists());
}

/// Runs a test that is `#[ignore]`d otherwise in a mount namespace of its own.
fn in_own_mounts(test: &str) {
    let me = std::env::current_exe().unwrap();
    let mut unshare = std::process::Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private"]).arg(me);
    let output = unshare.args(["--exact", test, "--ignored", "--nocapture"]).output();
    match output {
        Ok(output) if output.status.success() => {
            assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
        }
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains("unshare failed") => {
            eprintln!("SKIP {test}: no mount namespace may be made here");
        }
        Err(error) => eprintln!("SKIP {test}: no unshare here ({error})"),
        Ok(output) => panic!("{output:?}"),
    }
}

#[test]
fn p080_what_is_mounted_inside_does_not_belong_to_it() {
    in_own_mounts("attacks::p080_inside");
}

#[test]
#[ignore = "only in a mount namespace of its own, by p080"]
fn p080_inside() {
    let ws = ws("mkdir m d && echo hidden > m/f && echo own > file && echo other > d/other && ln -s m l \
                 && mount --bind /etc m && mount --bind d/other file");
    for path in ["m/passwd", "m", "file", "m/new", "l/passwd", "l"] {
        let refusal = ws.refusal(path);
        assert_eq!(refusal.code, Code::PathOutside, "{path}: {refusal}");
        assert!(refusal.get("mount").is_some(), "{path}: {refusal}");
    }
    let listing = ws.list(".", None);
    assert_eq!(count(&listing.omitted, "mounts"), 1, "{listing:?}");
    assert!(listing.entries.iter().all(|entry| !entry.path.path.to_string().starts_with("m/")));
    let hits = ws.grep(".", "other|root:");
    assert_eq!((hits.total_files, count(&hits.skipped, "mounts")), (1, 2), "{hits:?}");
    assert_eq!(hits.files[0].path.path.to_string(), "d/other");
}
