//! Hooks as an agent meets them: real scripts around real calls, over the socket, over HTTP and from the command line.

mod after;
mod before;
mod page;
mod surfaces;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cotenant_testkit::Reply;
use cotenant_tools::host::Hello;
use serde_json::{Map, Value, json};

use crate::{Ground, Piped, call};

/// Lets changes land that can be undone.
pub(super) const TRUSTING: &str = "[approvals]\nprofile = \"trusting\"\n";

/// A workspace with scripts beside it, and one agent.
pub(super) struct Scene {
    pub(super) ground: Ground,
    agent: Option<Piped>,
    calls: u64,
}

impl Scene {
    /// `hooks` are the lines below `[hooks]`; `$S` in them is the folder of the scripts.
    pub(super) fn new(hooks: &str, scripts: &[(&str, &str)]) -> Scene {
        Scene::with(TRUSTING, hooks, scripts)
    }

    pub(super) fn with(settings: &str, hooks: &str, scripts: &[(&str, &str)]) -> Scene {
        let ground = Ground::real("");
        let folder = ground.folder.join("scripts");
        fs::create_dir(&folder).unwrap();
        for (name, text) in scripts {
            let path = folder.join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let hooks = hooks.replace("$S", &folder.display().to_string());
        fs::write(ground.place.root.join("cotenant.toml"), format!("{settings}[hooks]\n{hooks}\n")).unwrap();
        Scene { ground, agent: None, calls: 0 }
    }

    /// One hook before every call.
    pub(super) fn before(script: &str) -> Scene {
        Scene::new("pre_tool_call = [{ command = \"$S/hook\" }]", &[("hook", script)])
    }

    /// One hook after every call.
    pub(super) fn after(script: &str) -> Scene {
        Scene::new("post_tool_response = [{ command = \"$S/hook\" }]", &[("hook", script)])
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        fs::write(self.ground.place.root.join(path), text).unwrap();
    }

    /// A file's text; `None` where there is none.
    pub(super) fn get(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.ground.place.root.join(path)).ok()
    }

    /// What a script wrote beside itself.
    pub(super) fn noted(&self, name: &str) -> String {
        fs::read_to_string(self.ground.folder.join("scripts").join(name)).unwrap_or_default()
    }

    /// The JSON objects that a script wrote beside itself, one a line.
    pub(super) fn asked(&self) -> Vec<Value> {
        self.noted("asked").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(super) fn call(&mut self, tool: &str, args: Value) -> Reply {
        self.call_with(tool, args, json!({}))
    }

    pub(super) fn call_with(&mut self, tool: &str, args: Value, meta: Value) -> Reply {
        self.calls += 1;
        let mut message = call(self.calls, tool, args);
        message["params"]["_meta"] = meta;
        let agent = self.agent.get_or_insert_with(|| {
            let hello =
                Hello { agent: Some("ada".to_owned()), task: Some("sums".to_owned()), ..Hello::default() };
            let mut agent = self.ground.bridge_as(hello);
            agent.initialize();
            agent
        });
        Reply::read(&agent.ask(message)["result"])
    }

    /// Journal entries of hooks: event, name, decision and reason of each.
    pub(super) fn journal(&self) -> Vec<[String; 4]> {
        let entries = self.ground.admin().ask("journal", Map::new()).unwrap();
        let bodies = entries["entries"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "hook");
        let of = |entry: &Value| {
            let body: Value = serde_json::from_str(entry["body"].as_str().unwrap()).unwrap();
            assert!(body["ms"].is_u64() && body["session"].as_str().unwrap().starts_with("se"), "{body}");
            ["event", "hook", "decision", "reason"].map(|name| body[name].as_str().unwrap().to_owned())
        };
        bodies.map(of).collect()
    }

    pub(super) fn pending(&self) -> Vec<Value> {
        let pending = self.ground.admin().ask("pending", Map::new()).unwrap();
        pending["pending"].as_array().unwrap().clone()
    }
}

/// A script that notes what it reads, one line each, and then does what `rest` says.
pub(super) fn noting(rest: &str) -> String {
    format!("cat >> \"${{0%/*}}/asked\"; echo >> \"${{0%/*}}/asked\"\n{rest}")
}

/// A script that says this JSON.
pub(super) fn saying(json: Value) -> String {
    format!("cat > /dev/null\ncat <<'END'\n{json}\nEND")
}
