//! What holds of every answer: one block, announced notices, bounded refusals, a next call that works.

use cotenant_model::{Code, SessionId};
use cotenant_tools::host::Answer;
use cotenant_tools::registry;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::fixture::{Fixture, fact, next_calls, notices};
use crate::pages::{cases, workspace};

/// A refusal weighs so much, and one block of fresh content or a diff beside it.
const MOST: usize = 1200;
const BLOCK: usize = 2048;

/// The laws of the form; the panic's text is the answer.
fn lawful(answer: &Answer) {
    let text = &answer.text;
    assert!(!text.is_empty(), "an answer says something");
    let announced: usize = fact(text, "notices").map_or(0, |count| count.parse().unwrap());
    let told = text.lines().skip(1).take_while(|line| line.starts_with("! ")).count();
    assert!(told >= announced, "notices={announced}: {text}");
    // Content may begin with the mark, too; a refusal's message does not.
    assert!(!answer.is_error || told == announced, "notices={announced}, {told} told: {text}");
    assert_eq!(notices(text).len(), announced);
    let listed = answer.meta.get("cotenant/notices").and_then(Value::as_array).map_or(0, Vec::len);
    assert!(announced >= usize::from(listed > 0), "what programs are told, models are told: {text}");
    let code = text.split([' ', '\n']).next().unwrap_or_default();
    let code = Code::ALL.iter().find(|known| known.name() == code);
    assert_eq!(answer.is_error, code.is_some_and(|code| code.is_error()), "{text}");
    let Some(code) = code else {
        assert!(answer.meta.contains_key("cotenant/facts"), "{text}");
        return;
    };
    let refusal = &answer.meta["cotenant/refusal"];
    assert_eq!(refusal["code"], json!(code.name()));
    assert!(refusal["message"].as_str().is_some_and(|message| !message.is_empty()), "{text}");
    let (rest, next) = text.rsplit_once("\nnext: ").unwrap_or_else(|| panic!("no next step: {text}"));
    assert!(!next.trim().is_empty() && !next.contains('\n'), "{text}");
    assert_eq!(refusal["next"], json!(next));
    let spoken: usize = notices(text).iter().map(|notice| notice.len() + 1).sum();
    assert!(text.len() <= MOST + BLOCK + spoken, "{} bytes: {text}", text.len());
    let message = refusal["message"].as_str().unwrap_or_default();
    let first = rest.lines().next().unwrap_or_default();
    assert!(first.len() + message.len() + next.len() <= MOST, "{text}");
    next_calls(text).iter().for_each(|(tool, args)| {
        assert!(registry::find(tool).is_some() && args.is_object(), "{text}");
    });
}

/// A call that can be sent as it stands: it has no `…` to fill in.
fn literal(args: &Value) -> bool {
    !args.to_string().contains('…')
}

#[test]
fn the_next_step_of_every_refusal_works_as_written() {
    let count = cases().len();
    for index in 0..count {
        // Each on a workspace of its own: what one step does is not the next one's ground.
        let f = workspace();
        let (code, title, tool, args) = cases().swap_remove(index);
        let refusal = f.call(tool, args.clone());
        lawful(&refusal);
        let calls = next_calls(&refusal.text);
        let Some((tool, args)) = calls.first().filter(|(_, args)| literal(args)) else {
            assert!(
                [
                    "PATH_PROTECTED",
                    "PATH_OUTSIDE",
                    "PATH_READ_ONLY",
                    "NOT_ENCODABLE",
                    "NOTHING_TO_CHANGE",
                    "HANDLE_EXPIRED",
                    "NOT_TEXT",
                    "FILE_CHANGED_SINCE_READ",
                    "TEXT_NOT_FOUND"
                ]
                .contains(&code),
                "{title} names no call: {}",
                refusal.text
            );
            continue;
        };
        let next = f.call(tool, args.clone());
        lawful(&next);
        let progress = !next.is_error || !next.text.starts_with(code);
        assert!(progress, "{title}: {}\n\n{tool} {args} answers\n\n{}", refusal.text, next.text);
    }
}

#[test]
fn a_step_taken_again_and_again_leads_to_the_goal() {
    // Edits that a client would send blindly, each followed by whatever `next` says, end in the wanted file.
    for (before, old, new, after) in [
        ("a\nb\n", "b", "c", "a\nc\n"),
        ("f {\n\tone\n\ttwo\n}\n", "    one\n    two", "    three", "f {\n\tthree\n}\n"),
        ("x\ny\n", "x  \ny", "z", "z\n"),
        ("say \u{201c}hi\u{201d}\n", "say \"hi\"", "say bye", "say bye\n"),
        ("a b\n", "a\u{a0}b", "c", "c\n"),
    ] {
        let f = Fixture::new();
        f.put("t", before);
        let mut answer = f.call("edit_file", json!({"path": "t", "old_text": old, "new_text": new}));
        for _ in 0..3 {
            lawful(&answer);
            if !answer.is_error {
                break;
            }
            answer = f.follow(&answer.text);
        }
        assert!(!answer.is_error, "{}", answer.text);
        assert_eq!(f.get("t"), after, "{}", answer.text);
    }
}

#[test]
fn what_a_client_sends_is_never_quoted_at_length() {
    let f = Fixture::new();
    f.put("a", "x\n");
    f.ok("read_file", json!({"path": "a"}));
    let long = "é\u{202e}\n! fake\nnext: ".repeat(4000);
    for tool in registry::TOOLS {
        for param in cotenant_tools::args::accepted(tool) {
            let mut args = json!({"path": "a", "content": "x", "pattern": "x", "content_search": true, "change": "c1", "token": "r1", "handle": "h1"});
            args[param.name] = long.as_str().into();
            let own: Map<String, Value> = args
                .as_object()
                .unwrap()
                .iter()
                .filter(|(name, _)| cotenant_tools::args::accepted(tool).any(|param| param.name == *name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            let answer = f.call(tool.name, own.into());
            lawful(&answer);
            assert!(answer.text.len() < 40_000, "{} {}: {} bytes", tool.name, param.name, answer.text.len());
        }
        lawful(&f.call(tool.name, json!({long.as_str(): 1})));
    }
    lawful(&f.call(&long, json!({})));
}

#[test]
fn names_with_spaces_quotes_and_worse_work_in_the_next_call() {
    let f = Fixture::new();
    for name in [
        "two words.txt",
        "quo\"te.txt",
        "back\\slash.txt",
        "new\nline.txt",
        "ünï\u{202e}.txt",
        "{\"a\":1}.txt",
    ] {
        f.put(name, "one\ntwo\n");
        let refusal =
            f.no("EDIT_REQUIRES", "edit_file", json!({"path": name, "old_text": "one", "new_text": "1"}));
        let done = f.follow(&refusal);
        assert!(!done.is_error, "{name:?}: {}", done.text);
        let exists = f.no("ALREADY_EXISTS", "create_path", json!({"path": name}));
        assert!(f.follow(&exists).text.contains("1|1\n2|two"), "{name:?}: {exists}");
        assert_eq!(refusal.lines().filter(|line| line.starts_with("next: ")).count(), 1, "{refusal}");
        let first = f.ok("read_file", json!({"path": name}));
        assert!(first.lines().next().unwrap().contains("lines=1-2"), "a name ends no line: {first}");
        std::fs::remove_file(f.path(name)).unwrap();
    }
}

/// What two sessions may do to a few files.
fn step() -> impl Strategy<Value = (bool, String, Value)> {
    let path = prop_oneof![
        Just("a"),
        Just("b"),
        Just("d/c"),
        Just("nowhere/x"),
        Just(".env"),
        Just("../up"),
        Just("d")
    ];
    let word = prop_oneof![Just("one"), Just("two"), Just("three"), Just("")];
    (any::<bool>(), 0usize..12, path, word.clone(), word).prop_map(|(who, tool, path, old, new)| {
        let (tool, args) = match tool {
            0 | 1 => ("read_file", json!({"path": path})),
            2..=4 => ("edit_file", json!({"path": path, "old_text": old, "new_text": new})),
            5 => {
                ("write_file", json!({"path": path, "content": format!("{new}\n{old}\n"), "overwrite": true}))
            }
            6 => ("search_files", json!({"pattern": old, "content_search": true})),
            7 => ("undo", json!({})),
            8 => ("list_directory", json!({"path": path})),
            9 => ("history", json!({"path": path})),
            10 => ("create_path", json!({"path": path, "content": old})),
            _ => ("whoami", json!({})),
        };
        (who, tool.to_owned(), args)
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "\\PC{0,12}".prop_map(Value::from),
        prop_oneof![
            Just("a"),
            Just("c1"),
            Just("r1"),
            Just("s1"),
            Just("h1"),
            Just("[1,2]"),
            Just("{}"),
            Just("\0"),
            Just("me"),
            Just("1h"),
            Just("(")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("[a-z_]{1,8}", inner), 0..4)
                .prop_map(|pairs| pairs.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn argument() -> impl Strategy<Value = String> {
    let known: Vec<&str> = registry::TOOLS
        .iter()
        .flat_map(|tool| cotenant_tools::args::accepted(tool))
        .map(|param| param.name)
        .collect();
    let aliases = vec![
        "file_path",
        "filePath",
        "view_range",
        "tail",
        "head",
        "end_line",
        "endLine",
        "offset",
        "type",
        "-A",
        "output_mode",
        "description",
    ];
    prop_oneof![
        6 => proptest::sample::select(known).prop_map(str::to_owned),
        2 => proptest::sample::select(aliases).prop_map(str::to_owned),
        1 => "\\PC{0,8}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_sessions_at_random_get_lawful_answers_and_each_notice_once(steps in proptest::collection::vec(step(), 1..30)) {
        let f = Fixture::new();
        let other = f.session("agent-b");
        f.put("a", "one\ntwo\nthree\nfour\nfive\n");
        f.put(".env", "K=1\n");
        let mut told: Vec<(SessionId, String)> = Vec::new();
        for (who, tool, args) in steps {
            let session = if who { f.session } else { other };
            let answer = f.call_as(session, &tool, args);
            lawful(&answer);
            let news = notices(&answer.text).into_iter().filter(|line| line.starts_with("! reload"));
            for line in news {
                prop_assert!(!told.contains(&(session, line.clone())), "twice: {}", line);
                told.push((session, line));
            }
        }
        prop_assert_eq!(f.get(".env"), "K=1\n");
        prop_assert!(!f.has("../up"));
        // Nothing is lost: all the changes that stand are in the history, and the ids rise.
        let ids: Vec<u64> = f.changes().iter().map(|id| id[1..].parse().unwrap()).collect();
        prop_assert!(ids.windows(2).all(|pair| pair[0] > pair[1]));
    }

    #[test]
    fn any_tool_with_any_arguments_is_answered(calls in proptest::collection::vec(
        (0usize..14, proptest::collection::vec((argument(), value()), 0..6)), 1..12,
    )) {
        let f = Fixture::new();
        f.put("a", "one\ntwo\n");
        f.ok("read_file", json!({"path": "a"}));
        f.ok("write_file", json!({"path": "b", "content": "x\n"}));
        for (tool, args) in calls {
            let name = registry::TOOLS.get(tool).map_or("no_such_tool", |tool| tool.name);
            let mut map: Map<String, Value> = args.into_iter().collect();
            if let Some(tool) = registry::TOOLS.get(tool) {
                for param in tool.params.iter().filter(|param| param.required) {
                    map.entry(param.name).or_insert_with(|| "a".into());
                }
            }
            lawful(&f.call(name, map.into()));
        }
    }
}
