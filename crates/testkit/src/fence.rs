//! A second fence around what attacks: a throw-away user, everything but one directory read-only, no network, processes
//! of its own. A sandbox under test stands inside it; what gets out of the sandbox gets nowhere.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::process::{PATIENCE, wait_exit};
use crate::scratch::fresh_directory;

/// Said by what runs inside a fence: the directory that may be written.
const INSIDE: &str = "COTENANT_FENCE";

/// What runs inside: mounts read-only, a `/proc` for the new processes, then the program as another user. The marks of
/// `mountinfo` are decoded by `printf`.
const SCRIPT: &str = r#"
set -e
mount --make-rprivate /
mount --bind "$COTENANT_FENCE" "$COTENANT_FENCE"
cd "$COTENANT_FENCE"
cut -d' ' -f5 /proc/self/mountinfo | while read -r point; do
    point=$(printf '%b' "$point")
    [ "$point" = "$COTENANT_FENCE" ] || mount -o remount,bind,ro "$point" 2>/dev/null || true
done
mount -t proc proc /proc
ulimit -u 4096
if touch /cotenant-fence 2>/dev/null; then echo 'the fence has a hole' >&2; exit 97; fi
[ "$COTENANT_FENCE_USER" = 0 ] && exec "$@"
exec setpriv --reuid "$COTENANT_FENCE_USER" --regid "$COTENANT_FENCE_USER" --clear-groups "$@"
"#;

/// What a fenced program said.
#[derive(Clone, Debug)]
pub struct Fenced {
    /// Its exit status; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output and standard error.
    pub said: String,
}

/// The directory that may be written, where this process runs inside a fence.
pub fn inside_fence() -> Option<std::path::PathBuf> {
    std::env::var_os(INSIDE).map(Into::into)
}

/// Runs a program as the user of this number behind a fence. `Err` says why there can be none here: it needs root, and the
/// programs `unshare`, `mount` and `setpriv`.
pub fn fence(user: u32, program: &Path, arguments: &[&str]) -> Result<Fenced, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("a fence needs root".to_owned());
    }
    for tool in ["unshare", "mount", "setpriv"] {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            return Err(format!("no {tool}"));
        }
    }
    let scratch = fresh_directory(&std::env::temp_dir().canonicalize().unwrap(), "fence");
    std::os::unix::fs::chown(&scratch, Some(user), Some(user)).unwrap();
    let home = scratch.join("home");
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(user), Some(user)).unwrap();
    let fenced = run(user, &scratch, program, arguments);
    std::fs::set_permissions(&scratch, PermissionsExt::from_mode(0o700)).unwrap();
    let _ = std::fs::remove_dir_all(&scratch);
    fenced
}

fn run(user: u32, scratch: &Path, program: &Path, arguments: &[&str]) -> Result<Fenced, String> {
    let said = std::fs::File::create_new(scratch.with_extension("said")).unwrap();
    let name = scratch.with_extension("said");
    let mut command = Command::new("unshare");
    let words =
        ["--mount", "--net", "--pid", "--fork", "--kill-child", "--ipc", "--", "bash", "-c", SCRIPT, "fence"];
    command
        .args(words.map(OsStr::new))
        .arg(program)
        .args(arguments.iter().map(OsString::from))
        .env(INSIDE, scratch)
        .env("COTENANT_FENCE_USER", user.to_string())
        .env("TMPDIR", scratch)
        .env("HOME", scratch.join("home"))
        .current_dir(scratch)
        .stdin(Stdio::null())
        .stdout(said.try_clone().unwrap())
        .stderr(said);
    let mut child = command.spawn().map_err(|error| format!("unshare: {error}"))?;
    let status = wait_exit(&mut child, 4 * PATIENCE);
    if status.is_none() {
        // With it goes, by --kill-child, all that it started.
        let _ = child.kill();
        let _ = child.wait();
    }
    let said = String::from_utf8_lossy(&std::fs::read(&name).unwrap()).into_owned();
    std::fs::remove_file(&name).unwrap();
    let status = status.unwrap_or_else(|| panic!("{program:?} did not end: {said}"));
    Ok(Fenced { code: status.code(), said })
}

/// Runs a test of the calling test binary again, behind a fence, and fails with it. `name` is the test's whole name, as
/// the binary lists it. False, with a line that says SKIP, where there can be no fence.
#[track_caller]
pub fn fenced_test(user: u32, name: &str) -> bool {
    let program = std::env::current_exe().unwrap();
    match fence(user, &program, &[name, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"]) {
        Err(why) => {
            eprintln!("SKIP {name}: {why}");
            false
        }
        Ok(fenced) => {
            assert_eq!(fenced.code, Some(0), "{}", fenced.said);
            assert!(fenced.said.contains("1 passed"), "{}", fenced.said);
            eprintln!("{}", fenced.said);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(user: u32, script: &str) -> Option<Fenced> {
        match fence(user, Path::new("/bin/sh"), &["-c", script]) {
            Ok(fenced) => Some(fenced),
            Err(why) => {
                eprintln!("SKIP fence: {why}");
                None
            }
        }
    }

    #[test]
    fn inside_a_fence_only_its_directory_can_be_written() {
        let outside = fresh_directory(&std::env::temp_dir(), "outside");
        std::fs::set_permissions(&outside, PermissionsExt::from_mode(0o777)).unwrap();
        for user in [0, 54_321] {
            let script =
                format!("id -u; touch ok && echo wrote; touch {}/bad || echo refused", outside.display());
            let Some(fenced) = sh(user, &script) else { return };
            assert_eq!(fenced.code, Some(0), "{}", fenced.said);
            assert!(fenced.said.starts_with(&format!("{user}\nwrote\n")), "{}", fenced.said);
            assert!(fenced.said.ends_with("refused\n"), "{}", fenced.said);
        }
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
        std::fs::remove_dir(outside).unwrap();
    }

    #[test]
    fn a_fence_has_no_network_and_its_own_processes() {
        let Some(fenced) = sh(54_321, "ls /proc | grep -c '^[0-9]'; cat /proc/net/dev | tail -n +3") else {
            return;
        };
        let mut lines = fenced.said.lines();
        assert!(lines.next().unwrap().trim().parse::<u32>().unwrap() < 8, "{}", fenced.said);
        assert!(lines.all(|line| line.trim_start().starts_with("lo:")), "{}", fenced.said);
        assert_eq!(sh(54_321, "exit 7").unwrap().code, Some(7));
    }
}
