//! `edit_file` with `cell`: what a notebook holds beside the change stays, byte for byte.

use serde_json::{Value, json};

use crate::fixture::{Fixture, fact};

/// As Jupyter writes them, but for the order of the keys, a tab and an escape that a rewrite would lose.
const NOTEBOOK: &str = r##"{
 "nbformat_minor": 5,
 "cells": [
  {
   "cell_type": "markdown",
   "id": "title",
   "metadata": {},
   "source": [
    "# T\u00eftle\n",
    "text"
   ]
  },
  {
   "id": "load",
   "cell_type": "code",
   "execution_count": 3,
   "metadata": {	"tags": ["keep"]},
   "outputs": [
    {"output_type": "stream", "name": "stdout", "text": ["x = 1\n"]}
   ],
   "source": [
    "x = 1\n",
    "y = 2\n",
    "print(x, y)"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4
}
"##;

fn read(f: &Fixture) {
    f.put("n.ipynb", NOTEBOOK);
    f.ok("read_file", json!({"path": "n.ipynb"}));
}

fn source(f: &Fixture, cell: usize) -> String {
    let notebook: Value = serde_json::from_str(&f.get("n.ipynb")).unwrap();
    let lines = notebook["cells"][cell]["source"].as_array().unwrap();
    lines.iter().map(|line| line.as_str().unwrap()).collect()
}

#[test]
fn a_text_in_a_cell_is_replaced_and_nothing_else() {
    let f = Fixture::new();
    for cell in [json!("load"), json!(1), json!("cell-1")] {
        read(&f);
        let args = json!({"path": "n.ipynb", "cell": cell, "old_text": "y = 2", "new_text": "y = \"ä\""});
        let done = f.ok("edit_file", args);
        assert!(done.starts_with("path=n.ipynb cell=1 edited="), "{done}");
        assert_eq!(fact(&done, "match").as_deref(), Some("exact"));
        let expected = NOTEBOOK.replace(r#""y = 2\n""#, r#""y = \"ä\"\n""#);
        let escaped = NOTEBOOK.replace(r#""y = 2\n""#, r#""y = \"\u00e4\"\n""#);
        assert!(f.get("n.ipynb") == expected || f.get("n.ipynb") == escaped, "{}", f.get("n.ipynb"));
        f.ok("undo", json!({}));
        assert_eq!(f.get("n.ipynb"), NOTEBOOK);
    }
}

/// What stands in an output too is not what is meant.
#[test]
fn only_the_cells_own_text_is_looked_at() {
    let f = Fixture::new();
    read(&f);
    f.ok("edit_file", json!({"path": "n.ipynb", "cell": "load", "old_text": "x = 1", "new_text": "x = 10"}));
    assert_eq!(f.get("n.ipynb"), NOTEBOOK.replacen(r#"    "x = 1\n","#, r#"    "x = 10\n","#, 1));
    let missed = json!({"path": "n.ipynb", "cell": 0, "old_text": "x = 1", "new_text": "z"});
    let refused = f.no("TEXT_NOT_FOUND path=n.ipynb cell=0", "edit_file", missed);
    assert!(refused.contains("# Tïtle") && refused.contains("next: copy old_text"), "{refused}");
}

#[test]
fn whole_cells_are_replaced_put_in_and_taken_out() {
    let f = Fixture::new();
    read(&f);
    f.ok("edit_file", json!({"path": "n.ipynb", "cell_id": "title", "new_source": "# New\n\nmore"}));
    assert_eq!(source(&f, 0), "# New\n\nmore");
    let insert = json!({"path": "n.ipynb", "cell": "title", "edit_mode": "insert", "cell_type": "markdown", "new_source": "between"});
    f.ok("edit_file", insert);
    assert_eq!((source(&f, 1), source(&f, 2).starts_with("x = 1")), ("between".to_owned(), true));
    f.ok(
        "edit_file",
        json!({"path": "n.ipynb", "cell": "start", "cell_op": "insert", "new_text": "first()"}),
    );
    assert_eq!((source(&f, 0), source(&f, 1)), ("first()".to_owned(), "# New\n\nmore".to_owned()));
    f.ok("edit_file", json!({"path": "n.ipynb", "cell": 0, "cell_op": "delete"}));
    f.ok("edit_file", json!({"path": "n.ipynb", "cell": 1, "cell_op": "delete"}));
    f.ok("edit_file", json!({"path": "n.ipynb", "cell": 0, "new_text": "# T\u{ef}tle\ntext"}));
    let now: Value = serde_json::from_str(&f.get("n.ipynb")).unwrap();
    assert_eq!(now, serde_json::from_str::<Value>(NOTEBOOK).unwrap());
    assert!(
        f.get("n.ipynb").contains("\"metadata\": {\t\"tags\": [\"keep\"]}"),
        "other cells keep their bytes"
    );
}

#[test]
fn what_was_not_seen_or_is_none_is_refused() {
    let f = Fixture::new();
    f.put("n.ipynb", NOTEBOOK);
    let edit = json!({"path": "n.ipynb", "cell": 1, "old_text": "y = 2", "new_text": "y = 3"});
    let unseen = f.no("EDIT_REQUIRES_PRIOR_READ", "edit_file", edit);
    assert!(!f.retry(&unseen).is_error);
    let none = f.no("NOT_FOUND", "edit_file", json!({"path": "n.ipynb", "cell": 7, "new_text": "x"}));
    assert!(
        none.contains("0 markdown id=title: # Tïtle") && none.contains("1 code id=load: x = 1"),
        "{none}"
    );
    f.no(
        "NOTHING_TO_CHANGE",
        "edit_file",
        json!({"path": "n.ipynb", "cell": 0, "old_text": "text", "new_text": "text"}),
    );
    f.no("BAD_INPUT", "edit_file", json!({"path": "n.ipynb", "cell": 0}));
    f.no(
        "BAD_INPUT",
        "edit_file",
        json!({"path": "n.ipynb", "cell": 0, "new_text": "x", "cell_type": "song", "cell_op": "insert"}),
    );
    f.put("no.ipynb", "{\"cells\": 1}");
    f.no("BAD_INPUT", "edit_file", json!({"path": "no.ipynb", "cell": 0, "new_text": "x"}));
    f.no("NOT_FOUND", "edit_file", json!({"path": "gone.ipynb", "cell": 0, "new_text": "x"}));
}

#[test]
fn of_several_places_in_a_cell_one_is_chosen_by_its_line() {
    let f = Fixture::new();
    f.put("n.ipynb", NOTEBOOK.replace("y = 2", "x = 1"));
    f.ok("read_file", json!({"path": "n.ipynb"}));
    let edit = json!({"path": "n.ipynb", "cell": "load", "old_text": "x = 1", "new_text": "z"});
    let refused = f.no("TEXT_AMBIGUOUS path=n.ipynb cell=1 count=2 lines=1,2", "edit_file", edit);
    assert!(!f.retry(&refused).is_error);
    assert_eq!(source(&f, 1), "z\nx = 1\nprint(x, y)");
}
