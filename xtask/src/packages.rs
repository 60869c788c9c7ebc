//! Programs of the system that the tests run: installs what is missing from Debian's packages where it may.

use crate::{Failure, workspace};
use std::path::Path;
use std::process::{Command, Stdio};

/// (program, Debian's package): what tests run, and why.
const NEEDED: &[(&str, &str)] = &[
    // Repositories to serve, and `git` as one of the foreign writers.
    ("git", "git"),
    // The oracle of content search.
    ("rg", "ripgrep"),
    // Foreign writers and raw clients.
    ("python3", "python3"),
    // Real clients: the conformance suite, the Inspector.
    ("npm", "npm"),
    // Mounts and namespaces for full disks, read-only disks and other users.
    ("unshare", "util-linux"),
    ("mount", "mount"),
    // Immutable files, ACLs and extended attributes.
    ("chattr", "e2fsprogs"),
    ("setfacl", "acl"),
    ("setfattr", "attr"),
];

/// Makes sure that every needed program is there; the error names what is missing.
pub(crate) fn ensure() -> Result<(), Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let there = |program: &str| folders.iter().any(|folder| folder.join(program).is_file());
    let missing = missing(&there);
    if missing.is_empty() {
        let names: Vec<&str> = NEEDED.iter().map(|(program, _)| *program).collect();
        println!("all there: {}", names.join(" "));
        return Ok(());
    }
    if !is_root() || !there("apt-get") {
        return Err(format!("missing, install by hand: {}", missing.join(" ")).into());
    }
    println!("installing from Debian's packages: {}", missing.join(" "));
    apt_get(&["update", "-qq"])?;
    apt_get(&[&["install", "-y", "-qq", "--no-install-recommends"], missing.as_slice()].concat())
}

/// The packages of the programs that are not there, each once.
fn missing(there: &dyn Fn(&str) -> bool) -> Vec<&'static str> {
    let mut packages: Vec<&str> =
        NEEDED.iter().filter(|(program, _)| !there(program)).map(|(_, package)| *package).collect();
    packages.dedup();
    packages
}

/// The process runs as root, by the owner of its own entry in `/proc`.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    Path::new("/proc/self").metadata().is_ok_and(|own| own.uid() == 0)
}

fn apt_get(words: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("apt-get");
    command.args(words).current_dir(workspace::root()).env("DEBIAN_FRONTEND", "noninteractive");
    // Hundreds of lines of progress; what goes wrong stands on the other stream.
    command.stdout(Stdio::null());
    let status = command.status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("apt-get {}: {status}", words.join(" ")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_installed() {
        assert_eq!(missing(&|_| true), [""; 0]);
        assert_eq!(missing(&|program| program != "rg"), ["ripgrep"]);
        assert_eq!(missing(&|_| false).len(), NEEDED.len());
    }
}
