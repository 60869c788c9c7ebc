//! The rules of our own, which are asked before any configured hook, and about everything that a hook rewrites.

use cotenant_engine::Workspace;
use cotenant_model::{Refusal, Settings};
use cotenant_tools::gate::Asked;
use cotenant_tools::shell::Floor;

/// Judges a call with the arguments that it would run with; `Some` ends it.
pub(super) type Judge = Box<dyn Fn(&Workspace, &Asked<'_>) -> Option<Refusal> + Send + Sync>;

/// A rule about some tools.
pub(super) struct Rule {
    /// The tools it is about, by our names.
    pub(super) tools: &'static [&'static str],
    /// What it says of a call.
    pub(super) judge: Judge,
}

/// The rules that hold in a workspace. None where no hook could come before them: a command meets them on its own way.
pub(super) fn rules(settings: &Settings) -> Result<Vec<Rule>, String> {
    if settings.hooks == cotenant_model::Hooks::default() {
        return Ok(Vec::new());
    }
    let floor = Floor::new(settings)?;
    let judge: Judge = Box::new(move |ws, asked| floor.refusal(ws, asked.tool.name, asked.args));
    Ok(vec![Rule { tools: &["run_command", "exec_run"], judge }])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cotenant_engine::{Clock, Options};
    use cotenant_model::{Code, Hook, Millis};
    use cotenant_tools::Toolbox;
    use cotenant_tools::gate::hook_denied;
    use cotenant_tools::host::{Answer, Call, Hello, Host};
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::hooks::Hooks;

    struct Still;

    impl Clock for Still {
        fn wall(&self) -> Millis {
            Millis(1)
        }
        fn steady(&self) -> Millis {
            Millis(1)
        }
    }

    /// Whoever writes `rm` is refused.
    fn no_rm() -> Rule {
        let judge = |_: &Workspace, asked: &Asked<'_>| {
            let bad = asked.args.get("content").and_then(Value::as_str) == Some("rm");
            bad.then(|| hook_denied("own", asked.tool.name, "Our own rule.").next("whoami {}"))
        };
        Rule { tools: &["write_file"], judge: Box::new(judge) }
    }

    /// The answer to a write, with our own rule and one hook, in a folder whose file `asked` says that the hook was.
    fn written(content: &str, script: &str) -> (Answer, bool) {
        let folder = cotenant_testkit::fresh_directory(&std::env::temp_dir(), "hooks");
        let root = folder.join("root");
        std::fs::create_dir(&root).unwrap();
        let mut settings = Settings::default();
        let command = format!("touch asked; {script}");
        settings.hooks.pre_tool_call = vec![Hook { matcher: None, command, timeout_s: 10, fail_open: false }];
        let hooks = Hooks::with(vec![no_rm()], &settings).unwrap().unwrap();
        let options =
            Options { root: root.clone(), state: folder.join("state"), settings, clock: Arc::new(Still) };
        let toolbox = Toolbox::behind(Arc::new(Workspace::open(options).unwrap()), Box::new(hooks)).unwrap();
        let session = toolbox.open(&Hello::default()).unwrap();
        let args = json!({"path": "a.txt", "contents": content}).as_object().unwrap().clone();
        let ticket = toolbox.arrive(session, "write_file", &args);
        let call = Call { session, tool: "write_file".to_owned(), args, meta: Map::new(), ticket };
        let answer = toolbox.call(call);
        let asked = root.join("asked").exists();
        toolbox.workspace().settle();
        std::fs::remove_dir_all(&folder).unwrap();
        (answer, asked)
    }

    #[test]
    fn our_own_rules_come_first_and_again_after_a_rewrite() {
        let (refused, asked) = written("rm", "exit 0");
        assert!(
            refused.text.starts_with("HOOK_DENIED hook=own tool=write_file\nOur own rule."),
            "{}",
            refused.text
        );
        assert!(!asked);
        let (passed, asked) = written("ls", "exit 0");
        assert!(!passed.is_error && asked, "{}", passed.text);
        let rewrite = json!({"hookSpecificOutput": {"tool_input": {"content": "rm"}}});
        let (refused, asked) = written("ls", &format!("echo '{rewrite}'"));
        assert!(refused.text.starts_with("HOOK_DENIED hook=own"), "{}", refused.text);
        assert!(asked);
    }

    #[test]
    fn where_nothing_is_configured_there_is_no_gate() {
        assert!(Hooks::new(&Settings::default()).unwrap().is_none());
        let mut settings = Settings::default();
        let matcher = Some("(".to_owned());
        settings.hooks.pre_tool_call =
            vec![Hook { matcher, command: "x".into(), timeout_s: 1, fail_open: false }];
        assert_eq!(Hooks::new(&settings).err().unwrap().code, Code::BadInput);
    }
}
