//! What a file is beside its bytes: owner, mode, ACL, attributes, label; carried over to the file that replaces it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Gid, Mode, Uid, XattrFlags};
use rustix::io::Errno;

/// Owner, mode and extended attributes of a file. ACLs and labels are among the attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    uid: u32,
    gid: u32,
    mode: u32,
    extended: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// An attribute that the new file cannot be given.
#[derive(Debug, thiserror::Error)]
#[error("{what} cannot be reproduced{}", .cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default())]
pub struct Unlike {
    /// `owner`, `mode`, or the name of the extended attribute.
    pub what: String,
    /// What the system said, if it said anything.
    pub cause: Option<io::Error>,
}

impl Unlike {
    fn new(what: impl Into<String>, cause: impl Into<io::Error>) -> Unlike {
        Unlike { what: what.into(), cause: Some(cause.into()) }
    }
}

impl Attributes {
    /// Reads them.
    pub fn of(fd: BorrowedFd<'_>) -> Result<Attributes, Unlike> {
        let stat = rustix::fs::fstat(fd).map_err(|errno| Unlike::new("owner", errno))?;
        Ok(Attributes {
            uid: stat.st_uid,
            gid: stat.st_gid,
            mode: stat.st_mode & 0o7777,
            extended: extended(fd)?,
        })
    }

    /// The same with other permission bits.
    pub fn with_mode(self, mode: Option<u32>) -> Attributes {
        Attributes { mode: mode.map_or(self.mode, |mode| mode & 0o7777), ..self }
    }

    /// Gives them to a file and reads them back: what the system silently left out is an error, too.
    pub(super) fn give(&self, to: BorrowedFd<'_>) -> Result<(), Unlike> {
        let has = Attributes::of(to)?;
        if (has.uid, has.gid) != (self.uid, self.gid) {
            let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
            rustix::fs::fchown(to, Some(uid), Some(gid)).map_err(|errno| Unlike::new("owner", errno))?;
        }
        // A directory's default ACL may have given the new file attributes that the old one lacks.
        for name in has.extended.keys().filter(|name| !self.extended.contains_key(*name)) {
            rustix::fs::fremovexattr(to, &name[..]).map_err(|errno| Unlike::new(shown(name), errno))?;
        }
        for (name, value) in &self.extended {
            if has.extended.get(name) != Some(value) {
                rustix::fs::fsetxattr(to, &name[..], value, XattrFlags::empty())
                    .map_err(|errno| Unlike::new(shown(name), errno))?;
            }
        }
        // Last, because changing the owner clears the set-id bits and an ACL carries its mask in the mode.
        rustix::fs::fchmod(to, Mode::from_raw_mode(self.mode)).map_err(|errno| Unlike::new("mode", errno))?;
        match Attributes::of(to)?.first_difference(self) {
            None => Ok(()),
            Some(what) => Err(Unlike { what, cause: None }),
        }
    }

    fn first_difference(&self, other: &Attributes) -> Option<String> {
        if (self.uid, self.gid) != (other.uid, other.gid) {
            return Some("owner".to_owned());
        }
        if self.mode != other.mode {
            return Some("mode".to_owned());
        }
        let names = self.extended.keys().chain(other.extended.keys());
        names
            .into_iter()
            .find(|name| self.extended.get(*name) != other.extended.get(*name))
            .map(|name| shown(name))
    }
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// The longest list of names, and the longest value, that Linux allows.
const XATTR_MAX: usize = 64 * 1024;

/// Every extended attribute that this user can see.
fn extended(fd: BorrowedFd<'_>) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Unlike> {
    let unlisted = |errno| Unlike::new("extended attributes", errno);
    match rustix::fs::flistxattr_query(fd) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(BTreeMap::new()),
        other => other.map_err(unlisted)?,
    };
    let mut names = vec![0; XATTR_MAX];
    let length = rustix::fs::flistxattr(fd, &mut names[..]).map_err(unlisted)?;
    names.truncate(length);
    let mut value = vec![0; XATTR_MAX];
    let mut found = BTreeMap::new();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let length = rustix::fs::fgetxattr(fd, name, &mut value[..])
            .map_err(|errno| Unlike::new(shown(name), errno))?;
        found.insert(name.to_vec(), value[..length].to_vec());
    }
    Ok(found)
}
