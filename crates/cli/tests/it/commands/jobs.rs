//! What runs longer than a call: jobs, their output, their end, and whose they are. Nothing of them outlives its session.

use std::time::Duration;

use cotenant_testkit::{PATIENCE, Reply};
use serde_json::json;

use super::{all_gone, asleep, both, marked, marker, no_strays, wake};
use crate::support::scratch;

#[test]
fn a_job_is_waited_for_and_its_output_told_once() {
    both("trusting", |scratch, mut agent| {
        let marker = marker();
        let command = format!("echo begun; sleep {marker}; echo over; echo x > made");
        let started = agent.run_with(&command, json!({"background": true, "timeout_s": 900}));
        let job = started.ok().get("job");
        assert!(started.text.starts_with("running job="), "{}", started.text);
        let sleeper = asleep(&marker);
        agent.call("whoami", json!({})).ok().says(&job);
        // What was said so far is told once; told again from the beginning where that is asked for.
        let mut so_far = started.content().to_owned();
        while !so_far.contains("begun") {
            so_far = agent.call("command_output", json!({"id": job})).ok().content().to_owned();
        }
        agent.call("command_output", json!({"id": job})).ok().never_says("begun");
        agent.call("command_output", json!({"id": job, "offset": 0})).ok().says("begun");
        assert!(!scratch.path("made").exists(), "it lands at the end");
        wake(sleeper);
        let ended = agent.call("command_output", json!({"id": job, "wait_s": 40}));
        assert_eq!(ended.ok().number("exit"), 0);
        ended.says("over").says("A made").never_says("begun");
        assert_eq!(scratch.text("made"), "x\n");
        agent.call("undo", json!({})).ok();
        assert!(!scratch.path("made").exists());
        all_gone(&marker);
    });
}

#[test]
fn stopping_a_job_ends_all_its_processes_and_drops_what_it_did() {
    both("trusting", |scratch, mut agent| {
        let marker = marker();
        let escapes = format!(
            "echo begun > made; trap '' TERM HUP INT; (setsid sleep {marker} &) ; (sleep {marker} & disown); sleep {marker}"
        );
        let started = agent.run_with(&escapes, json!({"background": true, "timeout_s": 900}));
        let job = started.ok().get("job");
        asleep(&marker);
        let stopped = agent.call("stop_command", json!({"id": job}));
        assert_eq!(stopped.ok().get("stopped"), "yes");
        stopped.says("dropped");
        all_gone(&marker);
        assert!(!scratch.path("made").exists());
        // Stopped twice is stopped; it is still there to be looked at.
        assert_eq!(agent.call("stop_command", json!({"id": job})).ok().get("stopped"), "yes");
        agent.call("command_output", json!({"id": job})).ok();
        agent.call("command_output", json!({"id": "j999999"})).refused("NOT_FOUND").says(&job);
        agent.call("stop_command", json!({"id": "../../etc"})).refused("NOT_FOUND");
    });
}

#[test]
fn a_direct_job_that_is_stopped_says_what_it_changed() {
    both("trusting", |scratch, mut agent| {
        let marker = marker();
        let command = format!("echo half > made; sleep {marker}; echo whole > made");
        let more = json!({"background": true, "timeout_s": 900, "mode": "direct"});
        let job = agent.run_with(&command, more).ok().get("job");
        asleep(&marker);
        let stopped = agent.call("stop_command", json!({"id": job}));
        assert_eq!((stopped.ok().get("mode"), stopped.number("changed")), ("direct".to_owned(), 1));
        all_gone(&marker);
        assert_eq!(scratch.text("made"), "half\n", "what ran in the workspace stays, and is on record");
        agent.call("undo", json!({"change": stopped.get("change")})).ok();
        assert!(!scratch.path("made").exists());
    });
}

#[test]
fn a_time_limit_ends_a_job_with_all_its_processes() {
    both("trusting", |scratch, mut agent| {
        let marker = marker();
        let command = format!("echo x > made; (setsid sleep {marker} &); sleep {marker}");
        let job = agent.run_with(&command, json!({"background": true, "timeout_s": 2})).ok().get("job");
        let ended = agent.call("command_output", json!({"id": job, "wait_s": 40}));
        assert_eq!(ended.ok().get("timed_out"), "yes");
        all_gone(&marker);
        assert!(!scratch.path("made").exists());
    });
}

#[test]
fn a_client_that_vanishes_takes_its_jobs_with_it() {
    for mode in ["staged", "direct"] {
        both("trusting", |scratch, mut agent| {
            let marker = marker();
            let command = format!("(setsid sleep {marker} &); sleep {marker}; echo x > made");
            let more = json!({"background": true, "timeout_s": 900, "mode": mode});
            if agent.run_with(&command, more).refused_as_or_ok(&["NOT_AVAILABLE"]).code().is_some() {
                return;
            }
            asleep(&marker);
            agent.vanish();
            all_gone(&marker);
            assert!(!scratch.path("made").exists(), "{mode}");
        });
    }
}

#[test]
fn the_end_of_input_finishes_a_call_and_ends_the_jobs() {
    let scratch = scratch();
    let mut client = scratch.mcp().start();
    let marker = marker();
    let job = format!("sleep {marker}; echo x > late");
    client.call("run_command", json!({"command": job, "background": true, "timeout_s": 900})).ok();
    asleep(&marker);
    let id = client.post_call("run_command", json!({"command": "perl -e 1; echo x > made"}));
    client.close_stdin();
    client.reply(id).ok().says("A made");
    assert!(client.wait_exit(PATIENCE).expect("it ends").success());
    all_gone(&marker);
    assert_eq!(scratch.text("made"), "x\n");
    assert!(!scratch.path("late").exists());
}

#[test]
fn a_bridge_killed_during_a_call_ends_its_command() {
    let scratch = scratch();
    let mut client = scratch.mcp().start();
    let marker = marker();
    let command = format!("echo x > made; sleep {marker}; echo y >> made");
    client.post_call("run_command", json!({"command": command, "timeout_s": 900}));
    asleep(&marker);
    client.kill();
    all_gone(&marker);
    assert!(!scratch.path("made").exists());
    let mut next = scratch.mcp().start();
    assert_eq!(next.call("run_command", json!({"command": "echo alive"})).ok().number("exit"), 0);
    assert_eq!(next.call("history", json!({})).number("changes"), 0);
}

#[test]
fn jobs_belong_to_their_session() {
    let scratch = scratch();
    let [mut one, mut other] = ["one", "other"].map(|name| scratch.mcp().flags(&["--agent", name]).start());
    let marker = marker();
    let command = format!("echo secret-{marker}; sleep {marker}");
    let started = one.call("run_command", json!({"command": command, "background": true, "timeout_s": 900}));
    let job = started.ok().get("job");
    asleep(&marker);
    for tool in ["command_output", "stop_command"] {
        other.call(tool, json!({"id": job})).refused("NOT_FOUND").never_says("secret");
    }
    let long = one.call("run_command", json!({"command": "seq 1 30000"})).ok().get("handle");
    other.call("read_more", json!({"handle": long})).refused("HANDLE_EXPIRED");
    assert!(!marked(&marker).is_empty(), "nobody else ends it");
    one.call("stop_command", json!({"id": job})).ok();
    all_gone(&marker);
}

#[test]
fn a_session_goes_on_working_while_its_job_runs() {
    both("trusting", |scratch, mut agent| {
        scratch.put("a.txt", "one\n");
        let marker = marker();
        let job = agent
            .run_with(&format!("sleep {marker}"), json!({"background": true, "timeout_s": 900}))
            .ok()
            .get("job");
        asleep(&marker);
        agent.call("read_file", json!({"path": "a.txt"})).ok();
        agent.call("edit_file", json!({"path": "a.txt", "old_text": "one", "new_text": "1"})).ok();
        agent.run("perl -pi -e 's/1/2/' a.txt").ok();
        assert_eq!(scratch.text("a.txt"), "2\n");
        agent.call("stop_command", json!({"id": job})).ok();
    });
}

#[test]
fn asked_to_stop_the_daemon_sees_calls_to_their_end_and_ends_jobs() {
    let scratch = scratch();
    let mut client = scratch.mcp().start();
    let [job, call] = [marker(), marker()];
    let late = format!("sleep {job}; echo x > late");
    client.call("run_command", json!({"command": late, "background": true, "timeout_s": 900})).ok();
    asleep(&job);
    let id = client.post_call("run_command", json!({"command": format!("sleep {call}; echo x > made")}));
    let sleeper = asleep(&call);
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| scratch.run(&["stop"]));
        // The call is let on only when the stop has been heard: the socket is gone by then.
        let until = std::time::Instant::now() + PATIENCE;
        while scratch.run(&["status"]).code == 0 && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        wake(sleeper);
        let answer = client.answer_within(id, PATIENCE).expect("an answer");
        let reply = Reply::read(&answer["result"]);
        assert_eq!(reply.ok().number("changed"), 1, "{}", reply.text);
        stopping.join().unwrap().ok();
    });
    all_gone(&job);
    all_gone(&call);
    assert_eq!(scratch.text("made"), "x\n");
    assert!(!scratch.path("late").exists());
    // Another daemon takes over for the same client.
    assert_eq!(client.call("run_command", json!({"command": "cat made"})).ok().content(), "x");
    client.close_stdin();
    assert!(client.wait_exit(Duration::from_secs(30)).is_some());
    no_strays(&scratch);
}

#[test]
fn a_call_that_is_cancelled_leaves_a_session_that_works_and_nothing_behind() {
    let scratch = scratch();
    let mut client = scratch.mcp().start();
    let marker = marker();
    let id = client.post_call("run_command", json!({"command": format!("sleep {marker}"), "timeout_s": 900}));
    asleep(&marker);
    client.notify("notifications/cancelled", json!({"requestId": id, "reason": "enough"}));
    client.call("write_file", json!({"path": "a.txt", "content": "x\n"})).ok();
    assert_eq!(scratch.text("a.txt"), "x\n");
    client.kill();
    all_gone(&marker);
}

/// No call is answered later than 50 s: what runs longer goes on as a job.
#[test]
fn what_runs_longer_than_a_call_goes_on_as_a_job() {
    if !cotenant_testkit::long() {
        eprintln!("SKIP: takes 50 s; COTENANT_LONG=1 runs it");
        return;
    }
    both("trusting", |scratch, mut agent| {
        let marker = marker();
        let command = format!("echo begun; sleep {marker}; echo x > made");
        let running = agent.run_with(&command, json!({"timeout_s": 900}));
        assert!(running.text.starts_with("running job="), "{}", running.text);
        running.ok().says("begun").says("command_output");
        wake(asleep(&marker));
        let job = running.get("job");
        agent.call("command_output", json!({"id": job, "wait_s": 40})).ok().says("A made");
        assert_eq!(scratch.text("made"), "x\n");
    });
}
