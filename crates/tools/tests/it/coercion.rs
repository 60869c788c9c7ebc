//! Arguments at random against a naive model of what may be taken for what.

use cotenant_tools::args::{Args, accepted, canonical, nearest, with_end_line};
use cotenant_tools::registry;
use cotenant_tools::tool::{Kind, Tool};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn tool(name: &str) -> &'static Tool {
    registry::find(name).unwrap()
}

fn decode(name: &str, args: &Value) -> Option<Value> {
    let raw = args.as_object().cloned().unwrap_or_default();
    Args::decode(tool(name), &with_end_line(tool(name), &raw)).ok().map(|args| args.map().clone().into())
}

/// What a value comes to as an argument of a kind; `None` where it is refused.
fn model(kind: Kind, value: &Value) -> Option<Value> {
    let whole = |number: f64| (number.fract() == 0.0 && number.abs() < 9e15).then(|| json!(number as i64));
    match (kind, value) {
        (Kind::Text | Kind::Path, Value::String(_)) | (Kind::Flag, Value::Bool(_)) => Some(value.clone()),
        (Kind::Text, Value::Number(number)) => Some(number.to_string().into()),
        (Kind::Flag, Value::Number(number)) => Some((number.as_f64() != Some(0.0)).into()),
        (Kind::Flag, Value::String(word)) => match word.to_lowercase().as_str() {
            "true" | "yes" | "1" => Some(true.into()),
            "false" | "no" | "0" | "" => Some(false.into()),
            _ => None,
        },
        (Kind::Number, Value::Number(number)) => whole(number.as_f64()?),
        (Kind::Number, Value::String(text)) => whole(text.trim().parse().ok()?),
        _ => None,
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-1000i64..1000).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_map(|number| json!(number))
            .prop_filter("null is no value", |value| !value.is_null()),
        (-100i64..100).prop_map(|number| json!(number as f64)),
        prop_oneof![
            Just("true"),
            Just("FALSE"),
            Just("Yes"),
            Just("no"),
            Just("1"),
            Just("0"),
            Just(""),
            Just(" 12 "),
            Just("-3"),
            Just("1e3"),
            Just("1.5"),
            Just("NaN"),
            Just("inf"),
            Just("x")
        ]
        .prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_scalar_is_taken_for_what_it_plainly_means(value in scalar(), which in 0usize..4) {
        let (name, argument, kind, base) = [
            ("read_file", "start", Kind::Number, json!({"path": "a"})),
            ("read_file", "line_numbers", Kind::Flag, json!({"path": "a"})),
            ("search_files", "glob", Kind::Text, json!({"pattern": "a", "content_search": true})),
            ("read_file", "path", Kind::Path, json!({})),
        ][which].clone();
        let mut args = base;
        args[argument] = value.clone();
        let got = decode(name, &args).and_then(|args| args.get(argument).cloned());
        prop_assert_eq!(got, model(kind, &value), "{} = {}", argument, value);
    }

    /// A range of lines, however it is written, is a start and a limit.
    #[test]
    fn every_way_to_name_a_range_is_the_same_range(first in 1i64..500, more in 0i64..500, text in any::<bool>()) {
        let last = first + more;
        let number = |number: i64| if text { json!(number.to_string()) } else { json!(number) };
        let wanted = Some(json!({"path": "a", "start": first, "limit": more + 1}));
        for args in [
            json!({"path": "a", "start": first, "limit": more + 1}),
            json!({"path": "a", "start_line": number(first), "end_line": number(last)}),
            json!({"path": "a", "startLine": number(first), "endLine": number(last)}),
            json!({"path": "a", "offset": number(first), "limit": number(more + 1)}),
            json!({"path": "a", "view_range": [first, last]}),
            json!({"path": "a", "view_range": format!("[{first}, {last}]")}),
        ] {
            prop_assert_eq!(decode("read_file", &args), wanted.clone(), "{}", args);
        }
    }

    #[test]
    fn any_range_at_all_is_answered(first in any::<i64>(), last in any::<i64>()) {
        for args in [
            json!({"path": "a", "start_line": first, "end_line": last}),
            json!({"path": "a", "view_range": [first, last]}),
            json!({"path": "a", "offset": first, "end_line": last.to_string()}),
            json!({"path": "a", "tail": first, "head": last}),
        ] {
            let _ = decode("read_file", &args);
        }
    }

    /// The order in which a client writes the arguments is of no account.
    #[test]
    fn the_order_of_arguments_does_not_matter(pairs in Just(vec![("filePath", json!("a")), ("oldString", json!("x")), ("new_str", json!("y")), ("allowMultiple", json!("yes")), ("explanation", json!("why"))]).prop_shuffle()) {
        let args: Map<String, Value> = pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        prop_assert_eq!(decode("edit_file", &args.into()), Some(json!({"path": "a", "old_text": "x", "new_text": "y", "replace_all": true})));
    }

    /// A slip of one letter is recognised as the argument it stands beside, and a long stranger is not.
    #[test]
    fn one_slip_is_near_and_a_stranger_is_not(index in 0usize..6, at in 0usize..20, slip in 0usize..3) {
        let names = ["path", "old_text", "new_text", "replace_all", "suggestion", "idempotency_key"];
        let mut given: Vec<char> = names[index].chars().collect();
        let at = at % given.len();
        match slip {
            0 => { given.remove(at); }
            1 => given.insert(at, 'q'),
            _ => given[at] = 'q',
        }
        let given: String = given.into_iter().collect();
        prop_assert_eq!(nearest(&given, names.into_iter()), Some(names[index]), "{}", given);
        prop_assert_eq!(nearest(&"zq".repeat(12 + at), names.into_iter()), None);
    }

    #[test]
    fn a_name_has_one_meaning(name in "[a-zA-Z_-]{0,12}") {
        for tool in registry::TOOLS {
            let meant = canonical(tool, &name);
            prop_assert_eq!(canonical(tool, &meant), meant.clone(), "{} of {}", name, tool.name);
        }
    }
}

#[test]
fn each_argument_is_itself_and_each_alias_another() {
    for tool in registry::TOOLS {
        for param in accepted(tool) {
            assert_eq!(canonical(tool, param.name), param.name, "{}", tool.name);
            let parts: Vec<&str> = param.name.split('_').collect();
            let camel: String = parts
                .iter()
                .enumerate()
                .map(
                    |(n, part)| {
                        if n == 0 { (*part).to_owned() } else { part[..1].to_uppercase() + &part[1..] }
                    },
                )
                .collect();
            assert_eq!(canonical(tool, &camel), param.name, "{} of {}", camel, tool.name);
            assert_eq!(canonical(tool, &param.name.replace('_', "-")), param.name, "{}", tool.name);
        }
    }
    for (name, alias, meant) in [
        ("read_file", "absolutePath", "path"),
        ("read_file", "offset", "start"),
        ("search_files", "offset", "offset"),
        ("read_more", "offset", "offset"),
        ("edit_file", "oldStr", "old_text"),
        ("write_file", "fileText", "content"),
        ("search_files", "headLimit", "limit"),
        ("list_directory", "directory", "path"),
        ("whoami", "path", "path"),
    ] {
        assert_eq!(canonical(tool(name), alias), meant, "{alias} of {name}");
    }
}

#[test]
fn lists_come_as_lists_texts_or_json() {
    for (value, meant) in [
        (json!(["a", "b"]), json!(["a", "b"])),
        (json!("a"), json!(["a"])),
        (json!("[\"a\",\"b\"]"), json!(["a", "b"])),
        (json!("a,b"), json!(["a,b"])),
    ] {
        assert_eq!(decode("undo", &json!({"paths": value})).unwrap()["paths"], meant);
    }
    for odd in [json!(3), json!(true), json!({"a": 1})] {
        assert_eq!(decode("undo", &json!({"paths": odd})), None, "{odd}");
    }
    assert_eq!(decode("retry", &json!({"token": "r1", "set": "{\"a\":1}"})).unwrap()["set"], json!({"a": 1}));
    assert_eq!(decode("retry", &json!({"token": "r1", "set": "nonsense"})), None);
    assert_eq!(decode("retry", &json!({"token": "r1", "set": [1]})), None);
}
