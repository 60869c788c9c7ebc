//! Order, bounds and ends of a stream.

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::fake::Fake;
use crate::{Client, call, run, text};

#[test]
fn calls_that_are_sent_at_once_run_in_the_order_of_their_arrival() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        let lines: String = (0..200).map(|id| format!("{}\n", call(id, "ordered", json!({})))).collect();
        let Client { mut output, input, served, stop } = client;
        let writer = tokio::spawn(async move {
            output.write_all(lines.as_bytes()).await.unwrap();
            output
        });
        client = Client { output: tokio::io::split(tokio::io::duplex(1).0).1, input, served, stop };
        let mut seen = vec![];
        for _ in 0..200 {
            let answer = client.answer().await;
            // The place in the order is that of the line, whenever its answer comes.
            assert_eq!(answer["id"].to_string(), text(&answer));
            seen.push(answer["id"].as_u64().unwrap());
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..200).collect::<Vec<_>>());
        host.with(|state| assert_eq!(state.ran, (0..200).collect::<Vec<_>>()));
        drop(writer.await.unwrap());
    });
}

#[test]
fn what_can_be_answered_at_once_is_and_what_cannot_keeps_its_place() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        for id in 0..9 {
            let tool = ["quick", "quick but not now", "ordered"][id % 3];
            let answer = client.ask(call(id, tool, json!({}))).await;
            assert_eq!(
                (answer["id"].to_string(), text(&answer)),
                (id.to_string(), &*id.to_string()),
                "{tool}"
            );
        }
        let fault = client.ask(call(9, "quick fault", json!({}))).await;
        assert_eq!(fault["result"]["isError"], true, "{fault}");
        host.with(|state| {
            assert_eq!((&state.ran[..], &state.forgone[..]), (&[0, 1, 2, 3, 4, 5, 6, 7, 8][..], &[9][..]))
        });
    });
}

#[test]
fn calls_behind_one_that_needs_a_thread_after_all_get_theirs_later() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        let tool = |id| if id % 2 == 0 { "quick but not now" } else { "ordered" };
        let lines: String = (0..100).map(|id| format!("{}\n", call(id, tool(id), json!({})))).collect();
        let Client { mut output, input, served, stop } = client;
        let writer = tokio::spawn(async move {
            output.write_all(lines.as_bytes()).await.unwrap();
            output
        });
        client = Client { output: tokio::io::split(tokio::io::duplex(1).0).1, input, served, stop };
        for _ in 0..100 {
            let answer = client.answer().await;
            assert_eq!(answer["id"].to_string(), text(&answer));
        }
        host.with(|state| assert_eq!(state.ran, (0..100).collect::<Vec<_>>()));
        drop(writer.await.unwrap());
    });
}

#[test]
fn a_client_that_does_not_read_is_not_read() {
    run(async {
        let host = Fake::new();
        let client = Client::new(&host);
        let Client { mut output, mut input, served, stop: _stop } = client;
        let total = 3000;
        let writer = tokio::spawn(async move {
            for id in 0..total {
                let line = format!("{}\n", call(id, "big", json!({ "bytes": 10_000 })));
                output.write_all(line.as_bytes()).await.unwrap();
            }
            output.shutdown().await.unwrap();
        });
        // All places are taken, the stream is full: the host has seen no more than that.
        host.wait_for(|state| state.ran.len() >= 16);
        let seen = host.with(|state| state.arrived.len());
        assert!(seen < 64, "{seen} calls were taken from a client that reads nothing");
        assert!(!writer.is_finished());
        let mut answers = 0;
        let mut line = String::new();
        use tokio::io::AsyncBufReadExt;
        while {
            line.clear();
            input.read_line(&mut line).await.unwrap()
        } > 0
        {
            answers += 1;
        }
        assert_eq!(answers, total);
        writer.await.unwrap();
        served.await.unwrap();
        host.with(|state| assert!(state.most_running <= 16));
    });
}

#[test]
fn a_cancelled_call_is_not_answered_and_gives_its_place_back() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        // More calls are cancelled over time than there are places: not one of them may be lost.
        for round in 0..4 {
            host.with(|state| state.gate_open = false);
            let ids = round * 100..round * 100 + 15;
            for id in ids.clone() {
                client.send(call(id, "gate", json!({}))).await;
            }
            host.wait_for(|state| state.running == 15);
            for id in ids {
                let params = json!({ "requestId": id });
                let cancel =
                    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
                client.send(cancel).await;
            }
            // The answer to what is sent after them says that they were taken.
            let last = format!("last {round}");
            let answer = client.ask(json!({ "jsonrpc": "2.0", "id": last, "method": "ping" })).await;
            assert_eq!(answer["id"], last);
            host.open_gate();
            host.wait_for(|state| state.running == 0);
        }
        assert_eq!(client.finish().await, "");
    });
}

#[test]
fn characters_that_are_split_between_reads_stay_whole() {
    // C016
    run(async {
        let mut client = Client::new(&Fake::new());
        let han = "\u{5f20}".repeat(3000);
        let line = format!("{}\n", call(1, "echo", json!({ "text": han })));
        for chunk in line.as_bytes().chunks(7) {
            client.raw(chunk).await;
        }
        assert_eq!(text(&client.answer().await), han);
    });
}

#[test]
fn the_end_of_input_lets_calls_finish_and_answers_arrive() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        client.send(call(1, "gate", json!({}))).await;
        host.wait_for(|state| state.running == 1);
        let host_too = host.clone();
        client.output.shutdown().await.unwrap();
        tokio::task::spawn_blocking(move || host_too.open_gate()).await.unwrap();
        assert_eq!(text(&client.answer().await), "passed");
        assert_eq!(client.line().await, "");
        client.served.await.unwrap();
    });
}

#[test]
fn a_stop_answers_what_is_under_way_and_takes_nothing_new() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        client.send(call(1, "gate", json!({}))).await;
        host.wait_for(|state| state.running == 1);
        client.stop.send_replace(true);
        client.send(call(2, "echo", json!({ "text": "late" }))).await;
        host.open_gate();
        assert_eq!(client.answer().await["id"], 1);
        assert_eq!(client.line().await, "");
        host.with(|state| assert_eq!(state.arrived.len(), 1));
    });
}

#[test]
fn a_client_that_vanishes_ends_its_service() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        for id in 0..8 {
            client.send(call(id, "big", json!({ "bytes": 200_000 }))).await;
        }
        host.wait_for(|state| state.running > 0 || !state.ran.is_empty());
        let Client { output, input, served, .. } = client;
        drop((output, input));
        served.await.unwrap();
    });
}

#[test]
fn what_the_request_says_beside_its_arguments_reaches_the_host() {
    run(async {
        let mut client = Client::new(&Fake::new());
        let mut request = call(1, "meta", json!({ "a": 1 }));
        request["params"]["_meta"] = json!({ "cotenant/idempotency": "k1", "progressToken": 5 });
        let answer = client.ask(request).await;
        let meta: serde_json::Value = serde_json::from_str(text(&answer)).unwrap();
        assert_eq!(meta["cotenant/idempotency"], "k1");
    });
}
