//! Root without a user namespace: the overlay keeps its notes elsewhere, and the same holds.

use cotenant_model::ExecLimits;
use cotenant_shell::run::{How, Request};
use cotenant_shell::sandbox::{Grade, Network};

use super::rig::{Rig, direct, exists, rel, staged};

#[test]
fn what_is_staged_is_read_from_its_notes_too() {
    let Some(rig) = Rig::as_root("what_is_staged_is_read_from_its_notes_too") else { return };
    for path in ["changed", "gone", "dir/inside", "replaced/old", "target/old"] {
        rig.put(path, "before\n");
    }
    let script = "echo more >> changed; rm gone; mv changed moved; rm -r replaced; mkdir replaced; echo x > replaced/new; \
        chmod 700 dir; mkdir made; ln -s made link; echo built > target/new; chown 1234 moved";
    let through = vec![(0, rel("target"))];
    let ran = rig.run(rig.request(script, How::Staged { through, read_only: Vec::new() })).ok();
    let expected = [
        "changed gone",
        "dir dir",
        "gone gone",
        "link link made",
        "made dir new",
        "moved file copied",
        "replaced dir opaque",
        "replaced/new file new",
    ];
    assert_eq!(ran.changes(), expected);
    let walk = ran.upper().walk(0, 100).unwrap();
    let moved = walk.entries.iter().find(|entry| entry.path == rel("moved")).unwrap();
    assert_eq!(moved.attributes.owner.0, 1234, "an owner that was given is seen");
    assert!(moved.xattrs.is_empty());
    assert_eq!(rig.text("target/new"), "built\n");
    let tier = ran.ended.tier;
    assert_eq!((tier.grade(), tier.network, tier.own_processes), (Grade::G3, Network::Loopback, true));
}

#[test]
fn a_directory_rename_is_a_copy_and_never_a_note() {
    let Some(rig) = Rig::as_root("a_directory_rename_is_a_copy_and_never_a_note") else { return };
    rig.put("a/file", "content\n");
    let ran = rig.staged("mv a b; chmod 600 b/file").ok();
    assert_eq!(ran.changes(), ["a gone", "b dir new", "b/file file new"]);
    let file = std::fs::File::from(ran.upper().open(0, &rel("b/file")).unwrap());
    assert_eq!(std::io::read_to_string(file).unwrap(), "content\n", "its bytes are there");
}

#[test]
fn what_only_root_could_do_is_given_up() {
    let Some(rig) = Rig::as_root("what_only_root_could_do_is_given_up") else { return };
    rig.put("closed/file", "before\n");
    let script = "grep -h '^CapEff\\|^CapBnd\\|^NoNewPrivs' /proc/self/status; mknod node b 8 0; umount /proc; \
        mount -t tmpfs none /tmp; echo x > closed/file; [ -w /proc/sys/kernel/core_pattern ] && echo open";
    for how in [direct(&["closed"]), staged()] {
        let staged = matches!(how, How::Staged { .. });
        let ran = rig.run(rig.request(script, how));
        let lines: Vec<&str> = ran.said.lines().filter(|line| line.contains(":\t")).collect();
        assert_eq!(
            lines,
            ["CapEff:\t00000000000004fb", "CapBnd:\t00000000000004fb", "NoNewPrivs:\t1"],
            "{}",
            ran.said
        );
        assert!(!ran.said.contains("open\n"), "{}", ran.said);
        assert!(!exists(&rig.root().join("node")));
        assert_eq!(rig.text("closed/file"), "before\n", "staged {staged}");
    }
}

#[test]
fn its_processes_are_bounded_though_the_kernel_does_not_count_them_for_root() {
    let Some(rig) = Rig::as_root("its_processes_are_bounded") else { return };
    let script =
        "for i in $(seq 500); do sleep 20 & done 2>/dev/null; echo \"$(ls -d /proc/[0-9]* | wc -l)\"";
    let limits = ExecLimits { processes: 50, ..ExecLimits::default() };
    let ran = rig.run(Request { limits, ..rig.request(script, direct(&[])) });
    let most = ran.said.lines().last().and_then(|line| line.trim().parse::<u32>().ok());
    assert!(most.is_none_or(|most| most < 400), "{}", ran.said);
    assert!(ran.ended.left_running.len() <= 20);
}
