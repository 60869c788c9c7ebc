//! GNU sed, found where the shell would find it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::environment::Environment;
use super::program::{Clock, FilterError, filter};
use super::sed_call::SedCall;

/// The first version that knows `--sandbox`.
const OLDEST: (u32, u32) = (4, 3);

/// A GNU sed of at least 4.3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sed {
    path: PathBuf,
    version: (u32, u32),
}

/// A binary as it was when it was asked for its version: another inode or time of change is another binary.
type Binary = (PathBuf, u64, i64, i64);

/// What each binary said.
static KNOWN: Mutex<BTreeMap<Binary, Option<(u32, u32)>>> = Mutex::new(BTreeMap::new());

impl Sed {
    /// The `sed` that `PATH` names first, if it is one that can be used. Each binary is asked once.
    ///
    /// A relative entry before it hides it: what that names depends on where the shell stands.
    pub fn find(path: &str) -> Option<Sed> {
        for directory in path.split(':') {
            if !directory.starts_with('/') {
                return None;
            }
            let path = Path::new(directory).join("sed");
            let Some(metadata) = fs::metadata(&path).ok().filter(|metadata| metadata.is_file()) else {
                continue;
            };
            if metadata.mode() & 0o111 == 0 {
                continue;
            }
            let binary = (path.clone(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
            let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&binary).copied();
            let version = known.unwrap_or_else(|| {
                let version = ask(&path);
                KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(binary, version);
                version
            });
            return Some(Sed { path, version: version.filter(|version| *version >= OLDEST)? });
        }
        None
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its version: major and minor number.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// What a file with these bytes becomes.
    pub(super) fn edit(
        &self,
        call: &SedCall,
        old: &[u8],
        environment: &Environment,
        clock: &mut Clock,
    ) -> Result<Vec<u8>, FilterError> {
        let mut arguments = vec!["--sandbox", "-s"];
        for (given, option) in [(call.quiet, "-n"), (call.extended, "-E"), (call.null_data, "-z")] {
            if given {
                arguments.push(option);
            }
        }
        for script in &call.scripts {
            arguments.extend(["-e", script]);
        }
        filter(&self.path, &arguments, environment.handed_on(), old, clock)
    }
}

/// The version that a binary says it is of; `None` for another sed.
fn ask(path: &Path) -> Option<(u32, u32)> {
    let said = filter(path, &["--version"], &[], &[], &mut Clock::start()).ok()?;
    parse_version(&String::from_utf8_lossy(&said))
}

/// From a line such as `sed (GNU sed) 4.9`.
fn parse_version(said: &str) -> Option<(u32, u32)> {
    let line = said.lines().next()?;
    let (_, version) = line.split_once("(GNU sed) ")?;
    let number = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    let (major, minor) = version.split_once('.')?;
    Some((number(major)?, number(minor)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_other_seds_are_not() {
        assert_eq!(parse_version("sed (GNU sed) 4.9\nCopyright"), Some((4, 9)));
        assert_eq!(parse_version("/bin/sed (GNU sed) 4.8.12-dirty"), Some((4, 8)));
        assert_eq!(parse_version("This is not GNU sed version 4.0"), None);
        assert_eq!(parse_version(""), None);
    }

    #[test]
    fn a_relative_entry_hides_what_comes_after_it() {
        for path in ["", ".:/usr/bin", "bin:/usr/bin:/bin", "/nonexistent"] {
            assert_eq!(Sed::find(path), None, "{path}");
        }
    }
}
