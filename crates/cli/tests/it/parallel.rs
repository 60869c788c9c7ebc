//! Many clients, one file: every edit lands, or its caller is told that it did not.

use std::thread;

use cotenant_testkit::{Client, Scratch, long};
use serde_json::json;

use crate::support::scratch;

const CLIENTS: usize = 8;
const EDITS: usize = 8;

/// What a client may be told where others were quicker.
const LOUD: [&str; 3] = ["BUSY", "FILE_CHANGED_SINCE_READ", "TEXT_NOT_FOUND"];

/// A file of slots, with lines between them, so that neighbours are not overlaps.
fn slots(scratch: &Scratch) {
    let slot = |number: usize| format!("slot {number:02} empty\n\n-\n\n");
    scratch.put("slots.txt", (0..CLIENTS * EDITS).map(slot).collect::<String>());
}

/// One client's share, all sent before the first answer; returns the slots that were answered as filled.
fn fill(client: &mut Client, who: usize) -> Vec<usize> {
    let mine: Vec<usize> = (0..EDITS).map(|turn| turn * CLIENTS + who).collect();
    let ids: Vec<u64> = mine
        .iter()
        .map(|slot| {
            let (old, new) = (format!("slot {slot:02} empty"), format!("slot {slot:02} filled by {who}"));
            client.post_call("edit_file", json!({"path": "slots.txt", "old_text": old, "new_text": new}))
        })
        .collect();
    let replies: Vec<_> = ids.into_iter().map(|id| client.reply(id)).collect();
    let landed = replies.iter().map(|reply| reply.refused_as_or_ok(&LOUD).code().is_none());
    mine.iter().zip(landed).filter(|(_, landed)| *landed).map(|(slot, _)| *slot).collect()
}

#[test]
fn sixty_four_edits_of_one_file_from_eight_clients_serial_lose_nothing() {
    let scratch = scratch();
    let name = |number: usize| format!("agent-{number}");
    let mut clients: Vec<Client> =
        (0..CLIENTS).map(|number| scratch.mcp().flags(&["--agent", &name(number)]).start()).collect();
    for round in 0..if long() { 100 } else { 4 } {
        slots(&scratch);
        clients.iter_mut().for_each(|client| drop(client.read("slots.txt")));
        let answered: Vec<Vec<usize>> = thread::scope(|scope| {
            let fills: Vec<_> = clients
                .iter_mut()
                .enumerate()
                .map(|(who, client)| scope.spawn(move || fill(client, who)))
                .collect();
            fills.into_iter().map(|fill| fill.join().unwrap()).collect()
        });
        let text = scratch.text("slots.txt");
        assert_eq!(text.lines().count(), CLIENTS * EDITS * 4, "round {round}: lines were lost");
        for slot in 0..CLIENTS * EDITS {
            let who = slot % CLIENTS;
            let filled = text.contains(&format!("slot {slot:02} filled by {who}\n"));
            let said = answered[who].contains(&slot);
            assert_eq!(filled, said, "round {round}, slot {slot}: in the file {filled}, answered {said}");
        }
        assert!(answered.iter().any(|slots| !slots.is_empty()), "round {round}: nobody got anything done");
    }
}

#[test]
fn calls_of_one_session_keep_their_order() {
    let scratch = scratch();
    scratch.put("n.txt", "n=0\n");
    let mut client = scratch.mcp().start();
    client.read("n.txt");
    let ids: Vec<u64> = (0..30)
        .map(|turn| {
            let (old, new) = (format!("n={turn}\n"), format!("n={}\n", turn + 1));
            client.post_call("edit_file", json!({"path": "n.txt", "old_text": old, "new_text": new}))
        })
        .collect();
    for id in ids {
        client.reply(id).ok();
    }
    assert_eq!(scratch.text("n.txt"), "n=30\n");
}

#[test]
fn a_flood_of_calls_is_answered_in_full() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n".repeat(500));
    let mut client = scratch.mcp().start();
    let ids: Vec<u64> = (0..2000).map(|_| client.post_call("read_file", json!({"path": "f.txt"}))).collect();
    for id in ids {
        client.reply(id).ok();
    }
}
