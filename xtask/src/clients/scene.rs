//! What the clients talk to: a served folder that is thrown away afterwards, and servers that end with their scene.

use crate::Failure;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// The token that every client over HTTP bears; it opens a door of this run only.
pub(super) const TOKEN: &str = "token-of-the-clients";

/// What was built.
pub(super) struct Programs {
    pub(super) cotenant: PathBuf,
    pub(super) fixture: PathBuf,
}

impl Programs {
    /// The programs in cargo's folder of a profile.
    pub(super) fn within(profile: PathBuf) -> Programs {
        Programs { cotenant: profile.join("cotenant"), fixture: profile.join("examples/conformance") }
    }
}

/// A server that says its address, and is ended with this.
pub(super) struct Server {
    child: Child,
    /// The fixture ends when this does.
    _stdin: Option<ChildStdin>,
    pub(super) url: String,
}

impl Server {
    /// Starts `command` and waits for an address of MCP among what it prints.
    pub(super) fn start(command: &mut Command) -> Result<Server, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut server = Server { child, _stdin: stdin, url: String::new() };
        for line in BufReader::new(stdout.ok_or("no pipe")?).lines() {
            if let Some(url) = address(&line?) {
                server.url = url;
                return Ok(server);
            }
        }
        Err("the server ended, or closed its output, before it said where it listens".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is to be gone; where it already is there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address of MCP over HTTP in a line.
fn address(line: &str) -> Option<String> {
    line.split_whitespace()
        .find(|word| word.starts_with("http://") && word.ends_with("/mcp"))
        .map(str::to_owned)
}

/// A folder that is served, over HTTP too, with the profile `trusting`.
pub(super) struct Scene {
    base: PathBuf,
    cotenant: PathBuf,
    pub(super) server: Server,
}

impl Scene {
    /// Makes the folder and serves it.
    pub(super) fn open(programs: &Programs) -> Result<Scene, Failure> {
        // Short, because a socket's path may have about a hundred bytes.
        let base = std::env::temp_dir().join(format!("cotenant-clients-{}", std::process::id()));
        for folder in ["root", "state", "run"] {
            fs::create_dir_all(base.join(folder))?;
        }
        let settings = format!(
            "[approvals]\nprofile = \"trusting\"\n\n[http]\ntokens = [{{ name = \"client\", token = \"{TOKEN}\" }}]\n"
        );
        fs::write(base.join("root/cotenant.toml"), settings)?;
        let cotenant = programs.cotenant.clone();
        let mut serve = Command::new(&cotenant);
        serve.arg("serve").arg("--root").arg(base.join("root")).envs(places(&base));
        Ok(Scene { server: Server::start(&mut serve)?, base, cotenant })
    }

    pub(super) fn root(&self) -> PathBuf {
        self.base.join("root")
    }

    /// The environment in which cotenant finds this scene's daemon, and programs no home of a user's.
    pub(super) fn places(&self) -> [(&'static str, PathBuf); 3] {
        places(&self.base)
    }
}

fn places(base: &Path) -> [(&'static str, PathBuf); 3] {
    [
        ("XDG_STATE_HOME", base.join("state")),
        ("XDG_RUNTIME_DIR", base.join("run")),
        ("HOME", base.to_path_buf()),
    ]
}

impl Drop for Scene {
    fn drop(&mut self) {
        let mut stop = Command::new(&self.cotenant);
        stop.arg("stop").arg("--root").arg(self.root()).envs(self.places());
        // A daemon that stays ends by itself when idle; a folder that stays is in the system's temporary one.
        let _ = stop.stdout(Stdio::null()).status();
        let _ = fs::remove_dir_all(&self.base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_among_other_words() {
        let line = "over HTTP     http://127.0.0.1:8080/mcp  with a bearer token";
        assert_eq!(address(line).as_deref(), Some("http://127.0.0.1:8080/mcp"));
        assert_eq!(address("see http://127.0.0.1:8080/ and /mcp"), None);
    }

    #[test]
    fn a_server_that_says_nothing_is_an_error_and_one_that_speaks_is_ended() {
        assert!(Server::start(&mut Command::new("true")).is_err());
        let mut speaks = Command::new("sh");
        let server = Server::start(speaks.args(["-c", "echo http://h/mcp; exec sleep 600"])).unwrap();
        let process = format!("/proc/{}", server.child.id());
        drop(server);
        assert!(!Path::new(&process).exists());
    }
}
