//! What of a shell's environment decides how a command is read and what it leaves behind.

/// The variables and the mask that matter to the commands of this module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `LANG`, `LC_…` and `POSIXLY_CORRECT`, handed on to `sed`.
    handed_on: Vec<(String, String)>,
    /// `CDPATH` is set: `cd` may go elsewhere than it says.
    cdpath: bool,
    /// The bits that new files and directories do not get.
    umask: u32,
}

impl Environment {
    /// From the variables that the shell would be started with, and its umask (`0o022`).
    pub fn new<K: AsRef<str>, V: AsRef<str>>(
        variables: impl IntoIterator<Item = (K, V)>,
        umask: u32,
    ) -> Environment {
        let mut environment = Environment { umask, ..Environment::default() };
        for (name, value) in variables {
            let (name, value) = (name.as_ref(), value.as_ref());
            if name == "LANG" || name == "POSIXLY_CORRECT" || name.starts_with("LC_") {
                environment.handed_on.push((name.to_owned(), value.to_owned()));
            }
            environment.cdpath |= name == "CDPATH" && !value.is_empty();
        }
        environment
    }

    pub(super) fn handed_on(&self) -> &[(String, String)] {
        &self.handed_on
    }

    pub(super) fn has_cdpath(&self) -> bool {
        self.cdpath
    }

    pub(super) fn umask(&self) -> u32 {
        self.umask
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.handed_on.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Options end at the first operand.
    pub(super) fn is_posixly_correct(&self) -> bool {
        self.get("POSIXLY_CORRECT").is_some()
    }

    /// The locale that says what a character is.
    fn characters(&self) -> &str {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"];
        names.iter().find_map(|name| self.get(name).filter(|value| !value.is_empty())).unwrap_or("C")
    }

    /// Characters are bytes: only ASCII is known.
    pub(super) fn is_c(&self) -> bool {
        matches!(self.characters(), "C" | "POSIX")
    }

    /// No byte of a longer character can be taken for an ASCII one: true of UTF-8 and of the C locale.
    pub(super) fn is_ascii_safe(&self) -> bool {
        let name = self.characters().split('@').next().unwrap_or_default().to_ascii_lowercase();
        self.is_c() || name.ends_with(".utf-8") || name.ends_with(".utf8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_says_something_names_the_characters() {
        let of = |pairs: &[(&str, &str)]| Environment::new(pairs.iter().copied(), 0o022);
        assert!(of(&[]).is_c());
        assert!(of(&[("LC_ALL", ""), ("LC_CTYPE", "POSIX"), ("LANG", "de_DE.UTF-8")]).is_c());
        assert!(!of(&[("LANG", "de_DE.UTF-8")]).is_c());
        assert!(of(&[("LANG", "de_DE.utf8@euro")]).is_ascii_safe());
        assert!(!of(&[("LANG", "zh_CN.GBK")]).is_ascii_safe());
        assert!(of(&[("POSIXLY_CORRECT", "")]).is_posixly_correct());
        assert!(of(&[("CDPATH", "/srv")]).has_cdpath() && !of(&[("CDPATH", "")]).has_cdpath());
        assert_eq!(
            of(&[("HOME", "/h"), ("LC_COLLATE", "C")]).handed_on(),
            [("LC_COLLATE".to_owned(), "C".to_owned())]
        );
    }
}
