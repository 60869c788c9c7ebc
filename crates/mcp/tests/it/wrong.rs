//! Clients that speak wrongly: each line gets its answer, and the next right one is served.

use serde_json::{Value, json};

use crate::fake::Fake;
use crate::{Client, call, run, text};

/// Sends a line, returns the error that answers it, and checks that a good call still works.
async fn error(client: &mut Client, line: &str) -> (i64, Value) {
    client.raw(format!("{line}\n")).await;
    let answer = client.answer().await;
    assert_eq!(answer["jsonrpc"], "2.0");
    assert!(answer.as_object().unwrap().contains_key("id"), "{answer}");
    assert_eq!(text(&client.ask(call("after", "echo", json!({ "text": "ok" }))).await), "ok");
    (answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}")), answer["id"].clone())
}

#[test]
fn what_is_no_json_or_no_request_is_answered() {
    run(async {
        let mut client = Client::new(&Fake::new());
        for (line, code, id) in [
            ("{\"jsonrpc\":\"2.0\",\"id\":1,", -32700, Value::Null),
            ("nonsense", -32700, Value::Null),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} x", -32700, Value::Null),
            ("\u{0}", -32700, Value::Null),
            ("[]", -32600, Value::Null),
            ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600, Value::Null),
            ("7", -32600, Value::Null),
            ("{}", -32600, Value::Null),
            ("{\"jsonrpc\":\"2.0\",\"id\":2}", -32600, json!(2)),
            ("{\"jsonrpc\":\"1.0\",\"id\":3,\"method\":\"ping\"}", -32600, json!(3)),
            ("{\"id\":3,\"method\":\"ping\"}", -32600, json!(3)),
            ("{\"jsonrpc\":\"2.0\",\"id\":4.5,\"method\":\"ping\"}", -32600, Value::Null),
            ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600, Value::Null),
            ("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}", -32600, json!(5)),
            ("{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"no/such\"}", -32601, json!(6)),
            ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"prompts/list\"}", -32601, json!(7)),
            ("{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\"}", -32602, json!(8)),
            ("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":[1]}", -32602, json!(9)),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"tools/call\",\"params\":{\"name\":5}}",
                -32602,
                json!(10),
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":\"x\"}}",
                -32602,
                json!(11),
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"initialize\",\"params\":{\"x\":1}}",
                -32602,
                json!(12),
            ),
            ("{\"jsonrpc\":\"2.0\",\"id\":13,\"method\":\"initialize\"}", -32602, json!(13)),
        ] {
            assert_eq!(error(&mut client, line).await, (code, id), "{line}");
        }
    });
}

#[test]
fn bytes_that_are_no_utf8_are_no_json() {
    run(async {
        let mut client = Client::new(&Fake::new());
        client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}\n").await;
        assert_eq!(client.answer().await["error"]["code"], -32700);
    });
}

#[test]
fn what_nobody_waits_for_gets_no_answer() {
    run(async {
        let mut client = Client::new(&Fake::new());
        for line in [
            "",
            "   ",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":99}}",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":5}",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/of/no/kind\",\"params\":{}}",
            "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}",
            "{\"jsonrpc\":\"2.0\",\"id\":77,\"error\":{\"code\":1,\"message\":\"m\"}}",
        ] {
            client.raw(format!("{line}\n")).await;
            assert_eq!(text(&client.ask(call(1, "echo", json!({ "text": "ok" }))).await), "ok", "{line}");
        }
        assert_eq!(client.finish().await, "");
    });
}

#[test]
fn a_message_over_16_mib_is_answered_by_its_id_and_the_next_one_served() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        let long = "x".repeat(17 * 1024 * 1024);
        for (line, id) in [
            (
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":\"L\",\"method\":\"tools/call\",\"params\":{{\"t\":\"{long}\"}}}}"
                ),
                json!("L"),
            ),
            (
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{{\"id\":4,\"t\":\"{long}\"}},\"id\":12}}"
                ),
                json!(12),
            ),
            (long.clone(), Value::Null),
        ] {
            assert_eq!(error(&mut client, &line).await, (-32600, id));
        }
        // An answer that is too long is nobody's request.
        client.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"t\":\"{long}\"}}}}\n")).await;
        assert_eq!(text(&client.ask(call(1, "echo", json!({ "text": "ok" }))).await), "ok");
        // One that just fits is served.
        let fits = "y".repeat(15 * 1024 * 1024);
        assert_eq!(text(&client.ask(call(2, "echo", json!({ "text": fits }))).await).len(), fits.len());
    });
}

#[test]
fn half_a_message_and_the_end_is_an_end() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        client
            .raw("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"")
            .await;
        assert_eq!(client.finish().await, "");
        host.with(|state| assert!(state.arrived.is_empty()));
    });
}

#[test]
fn an_id_that_is_under_way_is_refused() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        client.send(call(1, "gate", json!({}))).await;
        let answer = client.ask(call(1, "echo", json!({ "text": "b" }))).await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!(1)));
        host.open_gate();
        assert_eq!(text(&client.answer().await), "passed");
        assert_eq!(text(&client.ask(call(1, "echo", json!({ "text": "b" }))).await), "b");
    });
}

#[test]
fn a_fault_in_the_host_is_a_tool_error_and_the_server_lives() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        let answer = client.ask(call(1, "fault", json!({}))).await;
        assert_eq!(answer["result"]["isError"], true);
        assert!(text(&answer).starts_with("IO_ERROR\n"), "{answer}");
        assert_eq!(answer["result"]["_meta"]["cotenant/refusal"]["code"], "IO_ERROR");
        host.with(|state| assert_eq!(state.forgone, [0]));
        assert_eq!(text(&client.ask(call(2, "echo", json!({ "text": "on" }))).await), "on");
    });
}

#[test]
fn a_fault_in_the_list_is_an_error_and_not_a_silence() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        host.with(|state| state.faulty = true);
        for id in 0..20 {
            let answer = client.ask(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" })).await;
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)));
        }
        assert_eq!(client.initialize("2025-06-18").await["error"]["code"], -32603);
        host.with(|state| state.faulty = false);
        assert_eq!(client.initialize("2025-06-18").await["result"]["protocolVersion"], "2025-06-18");
    });
}

#[test]
fn depth_is_bounded_and_costs_no_stack() {
    run(async {
        let mut client = Client::new(&Fake::new());
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let line = |method: &str, depth: usize| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"deep\",\"x\":{}}}}}}}\n",
                nested(depth)
            )
        };
        client.raw(line("tools/call", 100)).await;
        assert_eq!(text(&client.answer().await), "deep");
        for (method, code) in [("tools/call", -32602), ("tools/list", -32600), ("no/such", -32600)] {
            for depth in [200, 100_000] {
                let (got, id) = error(&mut client, line(method, depth).trim_end()).await;
                assert_eq!((got, id), (code, json!(1)), "{method} {depth}");
            }
        }
    });
}
