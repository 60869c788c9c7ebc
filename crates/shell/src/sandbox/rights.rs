//! What a command may read and write, as a Landlock ruleset. It says again what the mounts say, and stands alone where
//! there are none.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};

/// The Landlock of this kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Landlock {
    abi: ABI,
    number: u32,
}

impl Landlock {
    /// `None` before the second version, which could not even move a file to another directory.
    pub(crate) fn of_kernel(number: u32) -> Option<Landlock> {
        let abi = match number {
            0 | 1 => return None,
            2 => ABI::V2,
            3 => ABI::V3,
            4 => ABI::V4,
            5 => ABI::V5,
            6 => ABI::V6,
            7 => ABI::V7,
            8 => ABI::V8,
            9 => ABI::V9,
            _ => ABI::V10,
        };
        Some(Landlock { abi, number })
    }

    /// The kernel's own number for it.
    pub(crate) fn number(self) -> u32 {
        self.number
    }

    /// Rights to read and run what is there.
    pub(crate) fn read(self) -> BitFlags<AccessFs> {
        AccessFs::from_read(self.abi)
    }

    /// All rights but making device nodes.
    pub(crate) fn write(self) -> BitFlags<AccessFs> {
        AccessFs::from_all(self.abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
    }

    /// Rights to use device nodes.
    pub(crate) fn use_nodes(self) -> BitFlags<AccessFs> {
        let use_them = AccessFs::ReadFile
            | AccessFs::WriteFile
            | AccessFs::ReadDir
            | AccessFs::IoctlDev
            | AccessFs::Truncate;
        use_them & AccessFs::from_all(self.abi)
    }

    /// A ruleset that allows these paths, those that are there; the child adds what exists only for it. With `no_tcp`
    /// connecting and listening are refused as well, where the kernel can.
    pub(crate) fn ruleset(self, rules: &Rules, no_tcp: bool) -> Result<OwnedFd, String> {
        let error = |error: landlock::RulesetError| format!("Landlock: {error}");
        let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(self.abi)).map_err(error)?;
        ruleset = ruleset.scope(Scope::from_all(self.abi)).map_err(error)?;
        if no_tcp {
            ruleset = ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp).map_err(error)?;
        }
        let mut created = ruleset.create().map_err(error)?;
        let sets =
            [(&rules.read, self.read()), (&rules.write, self.write()), (&rules.nodes, self.use_nodes())];
        for (paths, access) in sets {
            for path in paths {
                let Ok(fd) = PathFd::new(path) else { continue };
                let access = if path.is_dir() { access } else { access & AccessFs::from_file(self.abi) };
                created = created.add_rule(PathBeneath::new(fd, access)).map_err(error)?;
            }
        }
        Option::<OwnedFd>::from(created).ok_or_else(|| "Landlock: no ruleset".to_owned())
    }
}

/// Paths by what may be done there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Read and run.
    pub(crate) read: Vec<PathBuf>,
    /// Anything.
    pub(crate) write: Vec<PathBuf>,
    /// Device nodes to use.
    pub(crate) nodes: Vec<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_cannot_move_files_under_rules_has_none() {
        assert!(Landlock::of_kernel(0).is_none());
        assert!(Landlock::of_kernel(1).is_none());
        for number in 2..20 {
            let landlock = Landlock::of_kernel(number).unwrap();
            assert_eq!(landlock.number(), number);
            assert!(landlock.write().contains(AccessFs::Refer));
        }
    }

    #[test]
    fn writing_includes_reading_and_never_making_devices() {
        let landlock = Landlock::of_kernel(7).unwrap();
        assert!(landlock.write().contains(landlock.read()));
        assert!(!landlock.write().intersects(AccessFs::MakeBlock | AccessFs::MakeChar));
        assert!(!landlock.use_nodes().contains(AccessFs::MakeReg));
    }
}
