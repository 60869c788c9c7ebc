//! What is kept, and who is told that it is time to look.

use cotenant_ledger::{Restorable, TrashQuery};
use cotenant_model::{Profile, Settings};
use serde_json::json;

use crate::fixture::Fixture;

const DAY: u64 = 24 * 3600 * 1000;

#[test]
fn the_trash_goes_after_its_days_and_says_when() {
    let f = Fixture::with(Settings { profile: Profile::Trusting, trash_days: 3, ..Settings::default() });
    let workspace = f.toolbox.workspace();
    f.put("a__b c.txt", "kept for a while\n");
    f.ok("read_file", json!({"path": "a__b c.txt"}));
    f.ok("delete_file", json!({"path": "a__b c.txt"}));
    workspace.settle();
    let item = workspace.ledger().trash(&TrashQuery::default()).unwrap().remove(0);
    assert_eq!((item.at.path.to_string(), item.expired), ("a__b c.txt".to_owned(), None));
    assert_eq!((item.by.as_deref(), &*item.tool, item.size), (Some("agent-a"), "delete_file", Some(17)));
    f.pass(2 * DAY);
    assert_eq!(workspace.keep_house().unwrap().expired, 0);
    f.pass(2 * DAY);
    assert_eq!(workspace.keep_house().unwrap().expired, 1);
    let change = workspace.ledger().change(item.change).unwrap().unwrap();
    let since = workspace.clock().wall();
    assert_eq!(workspace.ledger().restorable(&change), Ok(Restorable::Expired { since }));
    assert_eq!(workspace.ledger().trash_item(item.id).unwrap().unwrap().expired, Some(since));
    assert_eq!(workspace.ledger().blob(item.digest), Ok(None));
    assert_eq!(workspace.ledger().trash(&TrashQuery::default()), Ok(Vec::new()));
}

#[test]
fn each_session_that_takes_something_away_is_told_of_once() {
    let f = Fixture::new();
    let told = f.toolbox.workspace().destructions();
    f.ok("write_file", json!({"path": "a.txt", "content": "one\n"}));
    assert!(told.try_recv().is_err(), "a new file takes nothing away");
    f.ok("edit_file", json!({"path": "a.txt", "old_text": "one", "new_text": "two"}));
    f.ok("delete_file", json!({"path": "a.txt"}));
    assert_eq!(told.try_iter().count(), 1);
    let other = f.session("agent-b");
    f.ok_as(other, "write_file", json!({"path": "b.txt", "content": "one\n"}));
    f.ok_as(other, "delete_file", json!({"path": "b.txt"}));
    assert_eq!(told.try_iter().count(), 1);
    drop(f);
    assert!(told.recv().is_err(), "it ends with the workspace");
}
