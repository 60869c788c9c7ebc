//! A human at the command line takes back, restores and looks, without being asked; what an agent starts is no human.

use serde_json::json;

use crate::support::scratch;

#[test]
fn a_human_takes_back_anybodys_change_and_is_not_asked() {
    let scratch = scratch();
    scratch.put("a.txt", "one\ntwo\nthree\n");
    let mut ada = scratch.mcp().flags(&["--agent", "ada"]).start();
    let mut bob = scratch.mcp().flags(&["--agent", "bob"]).start();
    ada.read("a.txt");
    let first = ada.edit("a.txt", "one", "ONE").ok().get("change");
    bob.read("a.txt");
    bob.edit("a.txt", "three", "THREE").ok();
    let undone = scratch.run(&["undo", &first]);
    assert!(undone.ok().stdout.starts_with("undone=c1 change=c3 paths=1 kept=c2"), "{undone:?}");
    assert_eq!(scratch.text("a.txt"), "one\ntwo\nTHREE\n");
    // Both agents hear of it, and whose it is.
    assert!(ada.call("whoami", json!({})).notices().iter().any(|notice| notice.contains("human")));
    // Without a name it is the newest change that stands, whoever made it.
    scratch.run(&["undo"]).ok();
    assert_eq!(scratch.text("a.txt"), "one\ntwo\nthree\n");
    let history = scratch.run(&["history", "--json"]).ok().json();
    let newest = &history["changes"][0];
    assert_eq!((&newest["id"], &newest["tool"], newest.get("agent")), (&json!("c4"), &json!("undo"), None));
    // No agent undoes what a human did without asking.
    ada.call("undo", json!({"change": "c3"})).refused("APPROVAL_PENDING");
}

#[test]
fn a_human_rewinds_an_agent_from_a_change_on_and_sees_it_first() {
    let scratch = scratch();
    scratch.put("a.txt", "1\n");
    let mut ada = scratch.mcp().flags(&["--agent", "ada"]).start();
    ada.read("a.txt");
    ada.edit("a.txt", "1", "2").ok();
    ada.write("d/new.txt", "x").ok();
    let shown = scratch.run(&["rewind", "c1", "--dry-run"]);
    assert!(shown.ok().stdout.contains("-2") && scratch.text("a.txt") == "2\n", "{shown:?}");
    let refused = scratch.run(&["rewind", "--turn", "1"]);
    assert!(refused.code == 1 && refused.stdout.contains("whose"), "{refused:?}");
    let done = scratch.run(&["rewind", "c1", "--json"]).ok().json();
    assert_eq!((&done["rewound"], &done["since"], &done["change"]), (&json!(2), &json!("c1"), &json!("c3")));
    assert_eq!(scratch.text("a.txt"), "1\n");
    assert!(!scratch.path("d").exists());
    scratch.run(&["undo", "c3", "--paths", "d"]).ok();
    assert_eq!((scratch.text("a.txt").as_str(), scratch.text("d/new.txt").as_str()), ("1\n", "x\n"));
}

#[test]
fn the_trash_is_there_after_a_restart_and_gives_back_by_position() {
    let scratch = scratch();
    let mut ada = scratch.mcp().flags(&["--agent", "ada"]).start();
    for name in ["notes/to do.md", "__x__"] {
        ada.write(name, "text").ok();
        ada.call("delete_file", json!({"path": name})).ok();
    }
    drop(ada);
    scratch.run(&["stop"]).ok();
    let listed = scratch.run(&["trash"]);
    let lines: Vec<&str> = listed.ok().stdout.lines().collect();
    assert!(
        lines[1].starts_with("t2 path=__x__ deleted=") && lines[1].ends_with("by=ada change=c4"),
        "{lines:?}"
    );
    assert!(lines[2].starts_with("t1 path=\"notes/to do.md\" deleted="), "{lines:?}");
    let fields = scratch.run(&["trash", "--json", "--path", "notes"]).ok().json();
    let item = &fields["items"][0];
    assert_eq!(
        (&item["item"], &item["path"], &item["by"], &item["change"]),
        (&json!("t1"), &json!("notes/to do.md"), &json!("ada"), &json!("c2"))
    );
    assert!(item["deleted"].as_str().unwrap().ends_with('Z'));
    scratch.run(&["restore-file", "t1"]).ok();
    scratch.run(&["restore-file", "t2", "elsewhere/x"]).ok();
    assert_eq!(
        (scratch.text("notes/to do.md").as_str(), scratch.text("elsewhere/x").as_str()),
        ("text\n", "text\n")
    );
    assert_eq!(scratch.run(&["restore-file", "t1"]).code, 1);
}

#[test]
fn an_agent_that_runs_the_command_line_is_asked_like_any_agent() {
    let scratch = scratch();
    scratch.put("a.txt", "1\n");
    let mut ada = scratch.mcp().flags(&["--agent", "ada"]).start();
    ada.read("a.txt");
    ada.edit("a.txt", "1", "2").ok();
    // A human's session has no name that another could take.
    scratch.run(&["undo", "c1", "--dry-run"]).ok();
    for session in 1..6 {
        let mut command = scratch.cotenant(&["undo", "c1"]);
        command.env("COTENANT_SESSION", format!("se{session}"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let own = said.contains("undone=c1");
        assert!(!own || session == 1, "se{session} took it back: {said}");
        if own {
            scratch.run(&["undo", "c2"]).ok();
        }
    }
    let asked = scratch.run(&["undo", "c1", "--as", "mallory"]);
    assert!(asked.code == 1 && asked.stdout.contains("APPROVAL_PENDING"), "{asked:?}");
    // Nor does an agent get the human's name.
    let mut fake = scratch.mcp().flags(&["--agent", "human"]).start();
    let name = fake.call("whoami", json!({})).get("agent");
    assert_ne!(name, "human");
    fake.call("undo", json!({"change": "c1"})).refused("APPROVAL_PENDING");
}
