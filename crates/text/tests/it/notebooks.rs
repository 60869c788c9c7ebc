//! Notebooks: cells read and changed, every other byte as it was.

use cotenant_text::notebook::{Cell, Kind, NotebookError, cells, delete, insert, with_kind, with_source};
use proptest::prelude::*;
use serde_json::{Value, json};

/// As Jupyter writes it: one space an indent, keys sorted, a final newline.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "a1",
   "metadata": {},
   "source": [
    "# Title\n",
    "Überschrift"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "b2",
   "metadata": {"tags": [ "x" ]},
   "outputs": [
    {"name": "stdout", "text": ["\u001b[31mred\n"], "output_type": "stream"}
   ],
   "source": [
    "import os\n",
    "\n",
    "print(\"hi\\n\")"
   ]
  },
  {
   "cell_type": "raw",
   "id": "c3",
   "metadata": {},
   "source": []
  }
 ],
 "metadata": {
  "kernelspec": {"name": "python3", "zz": 1, "aa": 2}
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn read(raw: &str) -> Vec<Cell> {
    cells(raw.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{raw}"))
}

fn source(raw: &str, index: usize, source: &str) -> String {
    text(with_source(raw.as_bytes(), index, source).unwrap())
}

/// `from` with one part replaced, which it must hold exactly once.
fn but(from: &str, old: &str, new: &str) -> String {
    assert_eq!(from.matches(old).count(), 1, "{old}");
    from.replace(old, new)
}

#[test]
fn cells_are_read_in_order() {
    let found = read(NOTEBOOK);
    let what: Vec<_> =
        found.iter().map(|c| (c.index, c.id.as_deref(), c.kind.name(), c.source.as_str())).collect();
    assert_eq!(
        what,
        [
            (0, Some("a1"), "markdown", "# Title\nÜberschrift"),
            (1, Some("b2"), "code", "import os\n\nprint(\"hi\\n\")"),
            (2, Some("c3"), "raw", ""),
        ]
    );
    assert!(
        NOTEBOOK[found[1].span.clone()].starts_with("{\n   \"cell_type\": \"code\"")
            && NOTEBOOK[found[1].span.clone()].ends_with("]\n  }")
    );
}

#[test]
fn the_same_text_changes_no_byte() {
    for cell in read(NOTEBOOK) {
        assert_eq!(source(NOTEBOOK, cell.index, &cell.source), NOTEBOOK);
    }
}

#[test]
fn only_the_lines_that_change_are_written_anew() {
    let wanted = but(NOTEBOOK, r#"    "import os\n","#, "    \"import sys\\n\",\n    \"import re\\n\",");
    assert_eq!(source(NOTEBOOK, 1, "import sys\nimport re\n\nprint(\"hi\\n\")"), wanted);
    let wanted = but(NOTEBOOK, "    \"import os\\n\",\n    \"\\n\",\n", "");
    assert_eq!(source(NOTEBOOK, 1, "print(\"hi\\n\")"), wanted);
    assert_eq!(
        source(NOTEBOOK, 2, "a\nb"),
        but(NOTEBOOK, "\"source\": []", "\"source\": [\n    \"a\\n\",\n    \"b\"\n   ]")
    );
    let emptied = source(NOTEBOOK, 0, "");
    assert_eq!(emptied, but(NOTEBOOK, "[\n    \"# Title\\n\",\n    \"Überschrift\"\n   ]", "[]"));
    assert_eq!(read(&emptied)[0].source, "");
}

#[test]
fn lines_that_stay_keep_their_very_escapes() {
    let raw = NOTEBOOK.replace("\"import os\\n\"", "\"import \\u006fs\\n\"");
    let changed = source(&raw, 1, "import os\n\nprint(2)");
    assert_eq!(changed, but(&raw, r#""print(\"hi\\n\")""#, "\"print(2)\""));
}

#[test]
fn a_text_that_is_a_string_stays_one() {
    let raw = r#"{"cells":[{"cell_type":"code","source":"a\nb","metadata":{},"outputs":[],"execution_count":null}],"nbformat":4,"nbformat_minor":2,"metadata":{}}"#;
    assert_eq!(source(raw, 0, "a\nc\t\"\u{1}"), but(raw, r#""a\nb""#, r#""a\nc\t\"\u0001""#));
    assert_eq!(read(raw)[0].id, None);
}

#[test]
fn characters_beyond_ascii_are_written_as_the_notebook_writes_them() {
    assert!(source(NOTEBOOK, 1, "é").contains("\"é\""), "as they are");
    let escaped = but(NOTEBOOK, "Überschrift", "\\u00dcberschrift");
    assert!(source(&escaped, 0, "# é 😀").contains(r##""# \u00e9 \ud83d\ude00""##), "as the cell's own");
    assert!(source(&escaped, 1, "é").contains(r#""\u00e9""#), "as another cell's");
    let upper = but(NOTEBOOK, "Überschrift", "\\u00DCberschrift");
    assert!(source(&upper, 0, "ê").contains(r#""\u00EA""#));
    let plain = but(NOTEBOOK, "Überschrift", "heading");
    assert!(source(&plain, 0, "é").contains("\"é\""), "a control character's escape says nothing");
    let both = but(NOTEBOOK, "import os", "\\u00e9");
    assert!(source(&both, 1, "è").contains(r#""\u00e8""#), "the cell goes before the file");
}

#[test]
fn cells_are_put_in_anywhere() {
    let cell = "  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"ID\",\n   \"metadata\": {},\n   \"source\": [\n    \"new\"\n   ]\n  }";
    let put = |at: usize| {
        let raw = text(insert(NOTEBOOK.as_bytes(), at, Kind::Markdown, "new").unwrap());
        let found = read(&raw);
        assert_eq!((found.len(), found[at].source.as_str(), found[at].kind), (4, "new", Kind::Markdown));
        let id = found[at].id.clone().unwrap();
        assert!(id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
        raw.replace(&id, "ID")
    };
    assert_eq!(put(0), but(NOTEBOOK, "\"cells\": [\n", &format!("\"cells\": [\n{cell},\n")));
    assert_eq!(put(3), but(NOTEBOOK, "\"source\": []\n  }\n", &format!("\"source\": []\n  }},\n{cell}\n")));
    let missing = insert(NOTEBOOK.as_bytes(), 4, Kind::Raw, "").unwrap_err();
    assert_eq!(missing, NotebookError::NoSuchCell { index: 4, count: 3 });
    assert_eq!(missing.to_string(), "no cell 4: there are 3, counted from 0");
}

#[test]
fn a_new_code_cell_has_what_a_code_cell_needs() {
    let raw = text(insert(NOTEBOOK.as_bytes(), 1, Kind::Code, "x = 1\ny = 2\n").unwrap());
    let value: Value = serde_json::from_str(&raw).unwrap();
    let mut cell = value["cells"][1].clone();
    cell["id"] = json!("ID");
    assert_eq!(
        cell,
        json!({"cell_type": "code", "execution_count": null, "id": "ID", "metadata": {}, "outputs": [], "source": ["x = 1\n", "y = 2\n"]})
    );
}

#[test]
fn ids_are_new_the_same_in_every_run_and_only_where_the_format_has_them() {
    let twice = |_| {
        let one = insert(NOTEBOOK.as_bytes(), 0, Kind::Raw, "same").unwrap();
        text(insert(&one, 0, Kind::Raw, "same").unwrap())
    };
    assert_eq!(twice(0), twice(1));
    let ids: Vec<_> = read(&twice(0)).into_iter().filter_map(|cell| cell.id).collect();
    assert!(ids.len() == 5 && ids[0] != ids[1], "{ids:?}");
    let old = NOTEBOOK.replace("\"nbformat_minor\": 5", "\"nbformat_minor\": 4");
    assert_eq!(read(&text(insert(old.as_bytes(), 0, Kind::Raw, "x").unwrap()))[0].id, None);
}

#[test]
fn a_notebook_without_cells_takes_the_first() {
    let pretty = "{\n  \"cells\": [],\n  \"nbformat\": 4,\n  \"nbformat_minor\": 2\n}";
    assert_eq!(
        text(insert(pretty.as_bytes(), 0, Kind::Raw, "a").unwrap()),
        "{\n  \"cells\": [\n    {\n      \"cell_type\": \"raw\",\n      \"metadata\": {},\n      \"source\": [\n        \"a\"\n      ]\n    }\n  ],\n  \"nbformat\": 4,\n  \"nbformat_minor\": 2\n}"
    );
    let compact = r#"{"cells":[],"nbformat":4,"nbformat_minor":2}"#;
    assert_eq!(
        text(insert(compact.as_bytes(), 0, Kind::Raw, "a\nb").unwrap()),
        r#"{"cells":[{"cell_type":"raw","metadata":{},"source":["a\n","b"]}],"nbformat":4,"nbformat_minor":2}"#
    );
    let spaced = r#"{"cells": [], "nbformat": 4, "nbformat_minor": 2}"#;
    assert_eq!(
        text(insert(spaced.as_bytes(), 0, Kind::Raw, "").unwrap()),
        r#"{"cells": [{"cell_type": "raw", "metadata": {}, "source": []}], "nbformat": 4, "nbformat_minor": 2}"#
    );
    let crlf = pretty.replace('\n', "\r\n");
    let put = text(insert(crlf.as_bytes(), 0, Kind::Raw, "a").unwrap());
    assert_eq!(put.matches('\n').count(), put.matches("\r\n").count());
}

#[test]
fn cells_are_taken_out_with_one_comma() {
    for index in 0..3 {
        let raw = text(delete(NOTEBOOK.as_bytes(), index).unwrap());
        let left: Vec<_> = read(&raw).into_iter().map(|cell| cell.id.unwrap()).collect();
        let wanted: Vec<_> = ["a1", "b2", "c3"]
            .into_iter()
            .enumerate()
            .filter(|(n, _)| *n != index)
            .map(|(_, id)| id)
            .collect();
        assert_eq!(left, wanted);
        assert_eq!(
            raw.lines().count(),
            NOTEBOOK.lines().count() - NOTEBOOK[read(NOTEBOOK)[index].span.clone()].lines().count()
        );
    }
    let last = (0..3).fold(NOTEBOOK.to_owned(), |raw, _| text(delete(raw.as_bytes(), 0).unwrap()));
    assert!(last.starts_with("{\n \"cells\": [],\n"), "{last}");
    assert!(matches!(delete(last.as_bytes(), 0), Err(NotebookError::NoSuchCell { index: 0, count: 0 })));
}

#[test]
fn a_kind_brings_and_takes_what_belongs_to_it() {
    let as_code = text(with_kind(NOTEBOOK.as_bytes(), 0, Kind::Code).unwrap());
    let head = "   \"cell_type\": \"markdown\",\n";
    assert_eq!(
        as_code,
        but(
            NOTEBOOK,
            head,
            "   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"outputs\": [],\n"
        )
    );
    assert_eq!(text(with_kind(as_code.as_bytes(), 0, Kind::Markdown).unwrap()), NOTEBOOK, "and back");
    let as_raw = text(with_kind(NOTEBOOK.as_bytes(), 1, Kind::Raw).unwrap());
    let value: Value = serde_json::from_str(&as_raw).unwrap();
    let keys: Vec<&String> = value["cells"][1].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["cell_type", "id", "metadata", "source"]);
    assert_eq!(
        text(with_kind(NOTEBOOK.as_bytes(), 1, Kind::Code).unwrap()),
        NOTEBOOK,
        "code is code already"
    );
    let attached =
        but(NOTEBOOK, "   \"id\": \"a1\",\n", "   \"attachments\": {\"p.png\": {}},\n   \"id\": \"a1\",\n");
    assert_eq!(
        with_kind(attached.as_bytes(), 0, Kind::Code).unwrap_err(),
        NotebookError::Attachments { index: 0 }
    );
    assert!(with_kind(attached.as_bytes(), 0, Kind::Raw).is_ok());
}

#[test]
fn outputs_that_stand_last_are_taken_out_too() {
    let raw = r#"{"cells":[{"execution_count":1,"source":"a","cell_type":"code","metadata":{},"outputs":[{}]}],"nbformat":4,"nbformat_minor":0}"#;
    assert_eq!(
        text(with_kind(raw.as_bytes(), 0, Kind::Markdown).unwrap()),
        r#"{"cells":[{"source":"a","cell_type":"markdown","metadata":{}}],"nbformat":4,"nbformat_minor":0}"#
    );
}

#[test]
fn what_is_no_notebook_is_refused_by_name() {
    let what = |raw: &str| cells(raw.as_bytes()).unwrap_err().what;
    assert!(what("").starts_with("not JSON"));
    assert!(what("{\"cells\": [}").starts_with("not JSON"));
    assert!(what("{\"cells\": []} x").starts_with("not JSON"));
    assert_eq!(what("[]"), "no object");
    assert_eq!(what("{\"cells\": []}"), "`nbformat` is not 4 or later");
    assert_eq!(what("{\"nbformat\": 3, \"worksheets\": []}"), "`nbformat` is not 4 or later");
    assert_eq!(what("{\"nbformat\": 4, \"cells\": 1}"), "`cells` is no list");
    assert_eq!(what("{\"nbformat\": 4}"), "`cells` is no list");
    assert_eq!(what("{\"nbformat\": 4, \"cells\": [1]}"), "cell 0 is no object");
    assert_eq!(
        what("{\"nbformat\": 4, \"cells\": [{\"cell_type\": \"heading\"}]}"),
        "cell 0 has no `cell_type` code, markdown or raw"
    );
    assert_eq!(
        what("{\"nbformat\": 4, \"cells\": [{\"cell_type\": \"raw\", \"source\": [1]}]}"),
        "cell 0 has no `source` of text"
    );
    assert!(cells(b"{\"nbformat\": 4, \"cells\": [\xff]}").unwrap_err().what.starts_with("not JSON"));
    let deep = format!("{{\"nbformat\": 4, \"cells\": {}{}}}", "[".repeat(5000), "]".repeat(5000));
    assert!(cells(deep.as_bytes()).is_err(), "and no stack is lost on it");
}

#[test]
fn a_byte_order_mark_and_keys_given_twice_do_no_harm() {
    let marked = format!("\u{feff}{NOTEBOOK}");
    assert_eq!(source(&marked, 2, "x"), format!("\u{feff}{}", source(NOTEBOOK, 2, "x")));
    let twice = r#"{"nbformat":4,"nbformat_minor":0,"cells":[{"cell_type":"raw","source":"old","source":"new","metadata":{}}]}"#;
    assert_eq!(read(twice)[0].source, "new");
    assert_eq!(source(twice, 0, "x"), but(twice, "\"new\"", "\"x\""));
}

/// A notebook of these texts, in one of the ways in which programs write JSON.
fn written(texts: &[String], style: u8, as_list: bool) -> String {
    let cells: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let source = if as_list { json!(lines) } else { json!(text) };
            json!({"cell_type": "raw", "id": format!("id{n}"), "metadata": {"n": n}, "source": source})
        })
        .collect();
    let value =
        json!({"cells": cells, "metadata": {"z": [1, 2], "a": {}}, "nbformat": 4, "nbformat_minor": 5});
    match style {
        0 => serde_json::to_string(&value).unwrap(),
        1 => serde_json::to_string_pretty(&value).unwrap() + "\n",
        2 => serde_json::to_string_pretty(&value).unwrap().replace('\n', "\r\n"),
        _ => ascii(&serde_json::to_string_pretty(&value).unwrap()),
    }
}

/// Characters beyond ASCII as escapes.
fn ascii(text: &str) -> String {
    let escape =
        |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
    text.chars().map(|c| if c.is_ascii() { c.to_string() } else { escape(c) }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn one_text_changes_and_nothing_else(
        texts in prop::collection::vec("(a|b|é|😀|\n|\"|\\\\|\t|\r|\u{1}){0,8}", 1..5),
        at in any::<prop::sample::Index>(),
        new in "(a|b|ü|😀|\n|\"|\\\\|\u{7f}){0,8}",
        style in 0u8..4,
        as_list in any::<bool>(),
    ) {
        let at = at.index(texts.len());
        let raw = written(&texts, style, as_list);
        let changed = source(&raw, at, &new);
        let mut wanted: Value = serde_json::from_str(&raw).unwrap();
        let lines: Vec<&str> = new.split_inclusive('\n').collect();
        wanted["cells"][at]["source"] = if as_list { json!(lines) } else { json!(new) };
        prop_assert_eq!(serde_json::from_str::<Value>(&changed).unwrap(), wanted);
        let span = read(&raw)[at].span.clone();
        prop_assert!(changed.starts_with(&raw[..span.start]) && changed.ends_with(&raw[span.end..]));
        // What a notebook that has lost its last escape wrote before, nobody can tell.
        let shows = |text: &str| ["\\u00e9", "\\u00fc", "\\ud83d"].iter().any(|escape| text.contains(escape));
        prop_assert!(style != 3 || !shows(&raw) || changed.is_ascii(), "{}", changed);
        if style != 3 || shows(&changed) {
            prop_assert_eq!(source(&changed, at, &texts[at]), raw, "and back again");
        }
    }

    #[test]
    fn what_is_put_in_can_be_taken_out(
        texts in prop::collection::vec("(a|\n|é){0,4}", 0..4),
        at in any::<prop::sample::Index>(),
        new in "(a|b|\n){0,6}",
        style in 0u8..4,
    ) {
        let at = at.index(texts.len() + 1);
        let raw = written(&texts, style, true);
        let put = text(insert(raw.as_bytes(), at, Kind::Code, &new).unwrap());
        let found = read(&put);
        prop_assert_eq!((found.len(), &found[at].source, found[at].kind), (texts.len() + 1, &new, Kind::Code));
        prop_assert_eq!(text(delete(put.as_bytes(), at).unwrap()), raw);
    }

    #[test]
    fn any_bytes_are_answered(raw in prop::collection::vec(any::<u8>(), 0..60), cut in 0usize..NOTEBOOK.len(), byte in any::<u8>()) {
        let _ = cells(&raw);
        let mut broken = NOTEBOOK.as_bytes().to_vec();
        broken[cut] = byte;
        for index in 0..3 {
            let _ = (with_source(&broken, index, "x\ny"), insert(&broken, index, Kind::Raw, "x"), delete(&broken, index), with_kind(&broken, index, Kind::Code));
        }
    }
}
