//! Idempotency keys: what was answered is answered again, for a day.

use cotenant_ledger::{IDEMPOTENCY_MS, Idempotency, Intent, Keep, Recalled, commit, prune};
use cotenant_model::{Change, Digest, Durability, Millis, Outcome};

use crate::{Folder, change, edit, intent};

const NOW: Millis = Millis(10 * IDEMPOTENCY_MS);

fn key(agent: &str, tool: &str, key: &str) -> Idempotency {
    Idempotency { agent: agent.into(), tool: tool.into(), key: key.to_owned(), args: Digest::of(b"args") }
}

#[test]
fn an_answer_is_kept_from_intent_to_seal_and_after() {
    let folder = Folder::new();
    let ledger = folder.open();
    let id = commit::next_change(&ledger);
    let key = key("codex", "edit_file", "k");
    let base = Change { time: NOW, ..change(id, vec![edit("a", b"1", b"2")]) };
    let keyed = Intent { idempotency: Some(key.clone()), ..intent(base) };
    assert_eq!(ledger.recall(&key, NOW), Ok(None));
    commit::intend(&ledger, keyed).wait().unwrap();
    let open = Recalled { args: key.args, answer: None, change: Some(id) };
    assert_eq!(ledger.recall(&key, NOW), Ok(Some(open.clone())));
    drop(ledger);

    let (ledger, unsealed) = folder.try_open(Durability::Full).unwrap();
    assert_eq!(unsealed[0].idempotency.as_ref(), Some(&key), "recovery can rebuild the answer");
    assert_eq!(ledger.recall(&key, NOW), Ok(Some(open.clone())));
    commit::seal(&ledger, id, Outcome::Sealed, Some(b"{\"ok\":true}".to_vec()));
    let sealed = Recalled { answer: Some(b"{\"ok\":true}".to_vec()), ..open };
    assert_eq!(ledger.recall(&key, NOW), Ok(Some(sealed.clone())));
    drop(ledger);

    let ledger = folder.open();
    assert_eq!(ledger.recall(&key, NOW.plus(IDEMPOTENCY_MS - 1)), Ok(Some(sealed)));
    assert_eq!(ledger.recall(&key, NOW.plus(IDEMPOTENCY_MS)), Ok(None), "after a day it is a new call");
}

#[test]
fn a_final_refusal_is_remembered_and_keys_do_not_meet() {
    let folder = Folder::new();
    let ledger = folder.open();
    let mine = key("codex", "edit_file", "k");
    commit::remember(&ledger, &mine, b"NOT_FOUND", NOW);
    for other in [key("claude", "edit_file", "k"), key("codex", "undo", "k"), key("codex", "edit_file", "K")]
    {
        assert_eq!(ledger.recall(&other, NOW), Ok(None), "{other:?}");
    }
    let other_args = Idempotency { args: Digest::of(b"other"), ..mine.clone() };
    let known = ledger.recall(&other_args, NOW).unwrap().unwrap();
    assert_eq!(known.args, mine.args, "the caller sees that the arguments differ");
    assert_eq!((known.answer.as_deref(), known.change), (Some(&b"NOT_FOUND"[..]), None));
}

#[test]
fn a_key_may_be_used_again_once_it_expired() {
    let folder = Folder::new();
    let ledger = folder.open();
    let key = key("codex", "edit_file", "k");
    commit::remember(&ledger, &key, b"first", NOW);
    let later = NOW.plus(2 * IDEMPOTENCY_MS);
    assert_eq!(ledger.recall(&key, later), Ok(None));
    commit::remember(&ledger, &key, b"second", later);
    assert_eq!(ledger.recall(&key, later).unwrap().unwrap().answer, Some(b"second".to_vec()));
}

#[test]
fn retention_forgets_keys_after_a_day() {
    let folder = Folder::new();
    let ledger = folder.open();
    let (old, young) = (key("codex", "edit_file", "old"), key("codex", "edit_file", "young"));
    commit::remember(&ledger, &old, b"1", NOW);
    commit::remember(&ledger, &young, b"2", NOW.plus(1000));
    prune(&ledger, NOW.plus(IDEMPOTENCY_MS + 1), Keep::default()).unwrap();
    // Asked as of then, so that only what is gone from the database is missing.
    assert_eq!(ledger.recall(&old, NOW), Ok(None));
    assert!(ledger.recall(&young, NOW).unwrap().is_some());
}
