//! How strongly a command was held, in words that go into its result.

use std::fmt;

/// Where its writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Into an upper layer; the folders are as they were.
    Staged,
    /// Into the folders.
    Direct,
    /// Into an overlay that stays open.
    Exec,
}

/// What the sandbox promises, as in the table of enforcement grades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Nothing is prevented in the folders; what happened is seen afterwards.
    G1,
    /// Writes to protected paths that exist fail.
    G2,
    /// Nothing lands before it has been looked at.
    G3,
}

/// What of the network a command reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Everything the machine does.
    Host,
    /// The loopback that all commands of the session share.
    Loopback,
    /// Nothing: no socket of the internet families can be made.
    Nothing,
}

/// How a command was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Where its writes went.
    pub mode: Mode,
    /// It had a root of its own, in which only what it may see is there; protected paths were mounted read-only.
    pub own_root: bool,
    /// It had process ids of its own: nothing of it can outlive it.
    pub own_processes: bool,
    /// The Landlock ABI that held; `None` where there was none.
    pub landlock: Option<u32>,
    /// The seccomp filter held.
    pub seccomp: bool,
    /// Memory is bounded for all processes together once the command has run 0.3 s, not only for each.
    pub memory_together: bool,
    /// What of the network it reached.
    pub network: Network,
}

impl Tier {
    /// The grade that this comes to.
    pub fn grade(&self) -> Grade {
        let filtered = self.own_root && self.seccomp;
        match self.mode {
            Mode::Staged | Mode::Exec if filtered => Grade::G3,
            Mode::Direct if filtered => Grade::G2,
            _ => Grade::G1,
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Staged => "staged",
            Mode::Direct => "direct",
            Mode::Exec => "exec",
        })
    }
}

/// `direct G2 (root, processes, landlock 7, seccomp, loopback)`.
impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (", self.mode, self.grade())?;
        let landlock = self.landlock.map(|abi| format!("landlock {abi}"));
        let parts = [
            self.own_root.then_some("root"),
            self.own_processes.then_some("processes"),
            landlock.as_deref(),
            self.seccomp.then_some("seccomp"),
        ];
        for part in parts.into_iter().flatten() {
            write!(f, "{part}, ")?;
        }
        f.write_str(match self.network {
            Network::Host => "network)",
            Network::Loopback => "loopback)",
            Network::Nothing => "no network)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Tier = Tier {
        mode: Mode::Staged,
        own_root: true,
        own_processes: true,
        landlock: Some(7),
        seccomp: true,
        memory_together: true,
        network: Network::Loopback,
    };

    #[test]
    fn a_tier_says_what_held() {
        assert_eq!(WHOLE.to_string(), "staged G3 (root, processes, landlock 7, seccomp, loopback)");
        let direct = Tier { mode: Mode::Direct, landlock: None, network: Network::Host, ..WHOLE };
        assert_eq!(direct.to_string(), "direct G2 (root, processes, seccomp, network)");
    }

    #[test]
    fn without_a_root_of_its_own_or_a_filter_it_is_no_more_than_watched() {
        let bare = Tier { mode: Mode::Direct, own_root: false, network: Network::Nothing, ..WHOLE };
        assert_eq!(bare.grade(), Grade::G1);
        assert_eq!(Tier { seccomp: false, ..WHOLE }.grade(), Grade::G1);
        assert_eq!(Tier { mode: Mode::Exec, ..WHOLE }.grade(), Grade::G3);
        assert_eq!(bare.to_string(), "direct G1 (processes, landlock 7, seccomp, no network)");
    }
}
