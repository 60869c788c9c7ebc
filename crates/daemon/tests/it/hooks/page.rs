//! The pages about hooks and settings: their examples do what they say.

use std::path::Path;

use cotenant_daemon::config;
use cotenant_model::{ExecLimits, Limits};
use serde_json::{Value, json};

use super::{Scene, TRUSTING};

/// The blocks of a page in that language, in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let start = format!("```{language}\n");
    text.split(&start).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_example_of_the_page_works_as_it_stands() {
    let [toml] = &blocks("hooks.md", "toml")[..] else { panic!("one block") };
    let [changelog, redact] = &blocks("hooks.md", "sh")[..] else { panic!("two blocks") };
    let mut scene = Scene::with(TRUSTING, toml.strip_prefix("[hooks]\n").unwrap(), &[]);
    std::fs::create_dir(scene.ground.place.root.join(".hooks")).unwrap();
    scene.put(".hooks/changelog.sh", changelog);
    scene.put(".hooks/redact.sh", redact);
    scene.put("a.txt", "KEY-0123456789abcdef\nKEY-\n");
    scene.call("read_file", json!({"path": "a.txt"})).ok().says("1|[redacted]\n2|KEY-").never_says("0123");
    let pending = scene.call("write_file", json!({"path": "./CHANGELOG.md", "content": "x"}));
    pending.refused("APPROVAL_PENDING").says("\"the changelog is written by hand\"");
    scene.call("write_file", json!({"path": "b.txt", "content": "x"})).ok();
    scene.call("write_file", json!({"path": ".hooks/redact.sh", "content": "x"})).refused("PATH_PROTECTED");
}

#[test]
fn what_the_page_shows_is_what_a_hook_reads() {
    let [shown] = &blocks("hooks.md", "json")[..] else { panic!("one block") };
    let shown: Value = serde_json::from_str(shown).unwrap();
    let mut scene = Scene::before(&super::noting(""));
    std::fs::create_dir(scene.ground.place.root.join("src")).unwrap();
    scene.put("src/a.rs", "one\n");
    scene.call("read_file", json!({"path": "src/a.rs"})).ok();
    scene.call("edit_file", json!({"path": "src/a.rs", "old_text": "one", "new_text": "1"})).ok();
    let mut read = scene.asked().remove(1);
    let root = scene.ground.place.root.display().to_string();
    let session = read["session_id"].as_str().unwrap().to_owned();
    let text =
        read.to_string().replace(&root, "/home/ada/project").replace(&format!("\"{session}\""), "\"se9\"");
    read = serde_json::from_str(&text).unwrap();
    assert_eq!(read, shown);
}

#[test]
fn the_settings_of_commands_are_the_defaults_but_for_the_rules() {
    let [toml] = &blocks("settings.md", "toml")[..] else { panic!("one block") };
    let settings = config::parse(toml, Path::new("/srv/w")).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!((settings.exec, settings.limits), (ExecLimits::default(), Limits::default()));
    assert_eq!(settings.commands.rules.len(), 3);
    assert!(
        !settings.commands.network && settings.commands.env.is_empty() && settings.commands.caches.is_empty()
    );
}
