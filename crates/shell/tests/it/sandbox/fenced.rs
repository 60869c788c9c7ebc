//! The same behind a fence: as a user without any rights, and with what must never run outside of one.

use cotenant_model::ExecLimits;
use cotenant_shell::run::{How, Request};
use cotenant_testkit::{fenced_test, inside_fence};

use super::rig::{Rig, direct, exists, staged};

/// A user that owns nothing else.
const NOBODY: u32 = 54_321;

/// Runs a test of this file again, as that user and as root.
#[track_caller]
fn behind_a_fence(name: &str) {
    for user in [NOBODY, 0] {
        fenced_test(user, &format!("sandbox::fenced::{name}"));
    }
}

/// Runs tests of this binary again, as that user.
#[track_caller]
fn without_rights(tests: &[&str]) {
    for test in tests {
        if !fenced_test(NOBODY, &format!("sandbox::{test}")) {
            return;
        }
    }
}

#[test]
fn staged_commands_need_no_rights() {
    without_rights(&[
        "staged::every_kind_of_change_is_found_and_none_lands",
        "staged::a_foreign_owner_is_named",
        "staged::an_entry_says_what_a_plan_needs",
        "staged::ignored_directories_are_written_for_real",
        "staged::what_a_build_left_is_moved_with_its_times",
        "staged::folders_are_over_laid_each_for_itself_and_one_for_reading_is_not_written",
    ]);
}

#[test]
fn direct_commands_need_no_rights() {
    without_rights(&[
        "direct::protected_paths_are_not_written_moved_or_taken_the_place_of",
        "direct::git_writes_its_own_and_neither_config_nor_hooks",
        "direct::limits_hold",
    ]);
}

#[test]
fn commands_end_without_rights() {
    without_rights(&[
        "endings::c117_a_process_that_keeps_the_output_open_does_not_keep_the_answer",
        "endings::c123_nothing_outlives_its_time",
    ]);
}

#[test]
fn what_is_confined_is_so_without_rights() {
    without_rights(&[
        "confined::secrets_of_home_state_and_environment_are_not_there",
        "confined::the_machine_itself_is_out_of_reach",
        "confined::calls_that_leave_a_sandbox_are_refused_and_kill_nothing",
        "confined::ordinary_programs_work",
        "confined::commands_of_a_session_share_one_loopback",
    ]);
}

#[test]
fn an_overlay_stays_open_without_rights() {
    without_rights(&[
        "open::what_one_command_writes_the_next_one_reads_and_the_folder_does_not_change",
        "open::the_daemon_works_in_it_too",
    ]);
}

#[test]
fn destruction_stays_in_the_layer() {
    behind_a_fence("rm_rf_of_everything");
}

#[test]
#[ignore = "run behind a fence by destruction_stays_in_the_layer"]
fn rm_rf_of_everything() {
    assert!(inside_fence().is_some(), "only behind a fence");
    let rig = Rig::new();
    rig.put("precious", "kept\n");
    std::fs::write(rig.base.join("out/precious"), "kept\n").unwrap();
    std::fs::write(rig.base.join("home/precious"), "kept\n").unwrap();
    for how in [staged(), direct(&["precious"])] {
        let direct = matches!(how, How::Direct { .. });
        for attack in [
            "rm -rf ~ $OUT $OUT/../home /tmp/* /etc /home /opt /root /srv /var 2>/dev/null",
            "rm -rf * .* $W $OUT/.. 2>/dev/null",
            "kill -9 -1; chmod -R 000 ~ $OUT /tmp 2>/dev/null",
        ] {
            // Its own folder it may close; what would be read of it then?
            let attack = if direct { attack.replace("chmod -R 000", "echo") } else { attack.to_owned() };
            rig.run(rig.request(&attack, how.clone()));
            assert_eq!(rig.text("precious"), "kept\n", "{attack}");
            for outside in ["out/precious", "home/precious"] {
                assert!(exists(&rig.base.join(outside)), "{attack}");
            }
        }
    }
}

#[test]
fn a_fork_bomb_is_bounded() {
    behind_a_fence("fork_bomb");
}

#[test]
#[ignore = "run behind a fence by a_fork_bomb_is_bounded"]
fn fork_bomb() {
    assert!(inside_fence().is_some(), "only behind a fence");
    let rig = Rig::new();
    for how in [staged(), direct(&[])] {
        let mut request = rig.request(":(){ :|:& };: ; sleep 0.5; echo over", how);
        request.limits = ExecLimits { processes: 100, ..ExecLimits::default() };
        request.timeout = std::time::Duration::from_secs(3);
        let started = rig.start(request).unwrap();
        // Others are served meanwhile.
        let other = rig.start(Request {
            timeout: std::time::Duration::from_secs(20),
            ..rig.request("echo served", direct(&[]))
        });
        let ran = rig.finish(started);
        assert!(ran.ended.ms < 60_000, "{:?}", ran.ended);
        if rustix::process::geteuid().is_root() {
            assert_eq!(rig.finish(other.unwrap()).ok().said, "served\n");
        }
        let alive = std::fs::read_dir("/proc").unwrap().flatten();
        let alive = alive.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit()).count();
        assert!(alive < 20, "{alive} processes are left");
    }
}
