//! The command entries of the shared attacks, with `$OUT` and `$W` as they stand, and with what they would be.

use super::{OUT, ROOT, judged, verdict};

/// Those marked `refuse` that no text shows: the target is a link in the workspace, which the kernel's binds hold.
const BY_THE_KERNEL: &[&str] = &["X059"];

/// Those marked `contain` that the floor refuses all the same; nothing happens outside in either case.
const BY_THE_FLOOR: &[&str] = &["X037"];

#[test]
fn none_that_is_to_be_asked_about_is_automatic_and_none_to_be_refused_runs() {
    let Some(records) = cotenant_testkit::records("cases/attacks.jsonl") else { return };
    let (mut seen, mut wrong) = (0, Vec::new());
    for record in records.iter().filter(|record| record["kind"] == "command") {
        let (id, input) = (record["id"].as_str().unwrap(), record["input"].as_str().unwrap());
        let expect = record["expect"].as_str().unwrap();
        let real = input.replace("$OUT", OUT).replace("$W", ROOT).replace("ABSW", ROOT);
        for line in [input.to_owned(), real] {
            let judgement = judged(&line);
            let found = verdict(&judgement);
            let right = match expect {
                "allow" => found == "read-only",
                "refuse" if BY_THE_KERNEL.contains(&id) => found == "ordinary",
                // `rm -rf "$W"` as it stands deletes what nobody can know.
                "refuse" => found == "deny" || (id == "X003" && found == "ask" && line.contains("$W")),
                "contain" if BY_THE_FLOOR.contains(&id) => found == "deny",
                "contain" => found != "deny",
                "ask" => found == "ask" || found == "ordinary" || (found == "deny" && line.contains(OUT)),
                _ => !matches!(found, "read-only" | "allowed"),
            };
            seen += 1;
            if !right {
                wrong.push(format!("{id} {expect}: {found}: {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 290, "{seen}");
}

#[test]
fn what_the_floor_refuses_of_those_to_be_contained_is_a_write_outside_or_to_protected_paths() {
    let Some(records) = cotenant_testkit::records("cases/attacks.jsonl") else { return };
    for record in
        records.iter().filter(|record| record["kind"] == "command" && record["expect"] == "ask+contain")
    {
        let line = record["input"].as_str().unwrap().replace("$OUT", OUT);
        if let cotenant_shell::policy::Verdict::Deny { rule, why, .. } = judged(&line).verdict {
            let outside = rule == "floor: nothing outside" && why.contains(OUT);
            // One plants its wrapper in `.cargo`, which is protected.
            let protected = rule == "floor: no protected paths" && why.starts_with(".cargo");
            assert!(outside || protected, "{line}: {rule}: {why}");
        }
    }
}
