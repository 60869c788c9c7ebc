//! Paths as values: validated, relative to an allowed folder, never a host path that could be opened by name.

use std::fmt;

/// The longest name of one component, in bytes (Linux `NAME_MAX`).
pub const NAME_MAX: usize = 255;
/// The longest path, in bytes (Linux `PATH_MAX`, with its final NUL).
pub const PATH_MAX: usize = 4096;

/// A path relative to an allowed folder: no NUL, no `..`, not absolute; `.` and doubled `/` dropped. Empty is the
/// folder itself. Bytes, because file names need not be UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RelPath(Box<[u8]>);

/// Why a text is not a path that may be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The empty text; it must not mean the root.
    Empty,
    /// A NUL byte.
    Nul,
    /// A `..` component; `cleaned` is the path without it, where it would stay inside.
    DotDot {
        /// What the path comes to lexically, if that is inside.
        cleaned: Option<String>,
    },
    /// An absolute path outside every allowed folder.
    Absolute,
    /// A component over [`NAME_MAX`] bytes.
    NameTooLong,
    /// Over [`PATH_MAX`] bytes.
    PathTooLong,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathError::Empty => f.write_str("the path is empty; the root is `.`"),
            PathError::Nul => f.write_str("the path has a NUL byte"),
            PathError::DotDot { .. } => f.write_str("the path has a `..`, which is never followed"),
            PathError::Absolute => f.write_str("the path is absolute and in none of the allowed folders"),
            PathError::NameTooLong => write!(f, "a name in the path is over {NAME_MAX} bytes"),
            PathError::PathTooLong => write!(f, "the path is over {PATH_MAX} bytes"),
        }
    }
}

impl RelPath {
    /// The folder itself.
    pub fn root() -> RelPath {
        RelPath::default()
    }

    /// From a relative path in text. `.` is the folder itself; the empty text is an error.
    pub fn parse(text: &str) -> Result<RelPath, PathError> {
        RelPath::from_bytes(text.as_bytes())
    }

    /// From the bytes of a relative path, by the rules of [`RelPath::parse`].
    pub fn from_bytes(bytes: &[u8]) -> Result<RelPath, PathError> {
        if bytes.is_empty() {
            return Err(PathError::Empty);
        }
        if bytes.contains(&0) {
            return Err(PathError::Nul);
        }
        if bytes.starts_with(b"/") {
            return Err(PathError::Absolute);
        }
        if bytes.len() >= PATH_MAX {
            return Err(PathError::PathTooLong);
        }
        let parts = || bytes.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
        if parts().any(|part| part == b"..") {
            return Err(PathError::DotDot { cleaned: cleaned(parts()) });
        }
        if parts().any(|part| part.len() > NAME_MAX) {
            return Err(PathError::NameTooLong);
        }
        Ok(RelPath(parts().collect::<Vec<_>>().join(&b'/').into()))
    }

    /// The bytes, components joined by `/`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is the folder itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The components, outermost first.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/').filter(|part| !part.is_empty())
    }

    /// The last component; `None` for the folder itself.
    pub fn leaf(&self) -> Option<&[u8]> {
        self.components().next_back()
    }

    /// The path without its last component; `None` for the folder itself.
    pub fn parent(&self) -> Option<RelPath> {
        let leaf = self.leaf()?.len();
        Some(RelPath(self.0[..(self.0.len() - leaf).saturating_sub(1)].into()))
    }

    /// `self/name`, `name` being one component of a directory listing.
    pub fn join(&self, name: &[u8]) -> RelPath {
        debug_assert!(!name.is_empty() && !name.contains(&b'/'), "one component");
        let mut joined = self.0.to_vec();
        if !joined.is_empty() {
            joined.push(b'/');
        }
        joined.extend_from_slice(name);
        RelPath(joined.into())
    }

    /// Whether `self` is `ancestor` or lies below it, by components.
    pub fn is_within(&self, ancestor: &RelPath) -> bool {
        ancestor.is_root()
            || self.0.strip_prefix(&*ancestor.0).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// The path as text, where it is UTF-8.
    pub fn to_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

/// What `parts` come to when `..` is taken lexically; `None` when that leaves the folder.
fn cleaned<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in parts {
        if part == b".." {
            kept.pop()?;
        } else {
            kept.push(part);
        }
    }
    let text = String::from_utf8(kept.join(&b'/')).ok()?;
    Some(if text.is_empty() { ".".to_owned() } else { text })
}

/// For people and models: `.` for the folder itself, bytes that are not UTF-8 as `\xNN`.
impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str(".");
        }
        self.0.utf8_chunks().try_for_each(|chunk| {
            f.write_str(chunk.valid())?;
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))
        })
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Which allowed folder: 0 is the served root, further ones follow in the order of the settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FolderId(pub u16);

impl FolderId {
    /// The served root.
    pub const ROOT: FolderId = FolderId(0);
}

/// A path in the workspace: folder and relative path. The order (folder, bytes) is the order of path locks (R11).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WsPath {
    /// The folder.
    pub folder: FolderId,
    /// The path below it.
    pub path: RelPath,
}

impl WsPath {
    /// A path below the served root.
    pub fn root(path: RelPath) -> WsPath {
        WsPath { folder: FolderId::ROOT, path }
    }

    /// `self/name`.
    pub fn join(&self, name: &[u8]) -> WsPath {
        WsPath { folder: self.folder, path: self.path.join(name) }
    }

    /// The directory it stands in; `None` for a folder itself.
    pub fn parent(&self) -> Option<WsPath> {
        Some(WsPath { folder: self.folder, path: self.path.parent()? })
    }

    /// The directory it stands in; the folder itself for that.
    pub fn dir(&self) -> WsPath {
        self.parent().unwrap_or_else(|| WsPath { folder: self.folder, ..WsPath::default() })
    }

    /// Whether `self` is `ancestor` or lies below it.
    pub fn is_within(&self, ancestor: &WsPath) -> bool {
        self.folder == ancestor.folder && self.path.is_within(&ancestor.path)
    }

    /// What it is called once `from`, at or above it, has become `to`; `None` where it does not lie there.
    pub fn moved(&self, from: &WsPath, to: &WsPath) -> Option<WsPath> {
        let depth = from.path.components().count();
        self.is_within(from)
            .then(|| self.path.components().skip(depth).fold(to.clone(), |at, name| at.join(name)))
    }
}

/// A path as a client wrote it, parsed against the allowed folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WirePath {
    /// Where it points, before any link is followed.
    pub at: WsPath,
    /// It ended in `/`: only a directory will do.
    pub dir_only: bool,
}

/// The names and host paths of the allowed folders: turns what a client writes into a [`WsPath`] and back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folders {
    /// Per folder: its name (empty for the root) and the host paths it is known by (as given and resolved), absolute.
    entries: Vec<(String, Vec<Vec<u8>>)>,
}

impl Folders {
    /// Adds a folder and returns its id; the first is the root, whose name is not used.
    pub fn add(&mut self, name: &str, host_paths: Vec<Vec<u8>>) -> FolderId {
        self.entries.push((name.to_owned(), host_paths));
        FolderId(u16::try_from(self.entries.len() - 1).unwrap_or(u16::MAX))
    }

    /// The folder's name; empty for the root of a workspace.
    pub fn name(&self, folder: FolderId) -> &str {
        self.entries.get(usize::from(folder.0)).map_or("", |entry| entry.0.as_str())
    }

    /// The id of the folder of that name. A root has none, but for a sandbox's.
    pub fn by_name(&self, name: &str) -> Option<FolderId> {
        let index = self.entries.iter().position(|entry| !entry.0.is_empty() && entry.0 == name)?;
        u16::try_from(index).ok().map(FolderId)
    }

    /// How many folders there are, the root included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no folder at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Parses `text`: relative to the root, `NAME:path`, or absolute inside an allowed folder (by components).
    pub fn parse(&self, text: &str) -> Result<WirePath, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.len() >= PATH_MAX {
            return Err(PathError::PathTooLong);
        }
        let (folder, rest) = self.split(text)?;
        let path = if rest.is_empty() { RelPath::root() } else { RelPath::from_bytes(rest.as_bytes())? };
        Ok(WirePath { at: WsPath { folder, path }, dir_only: text.ends_with('/') })
    }

    /// The folder that `text` names, and the rest relative to it.
    fn split<'a>(&self, text: &'a str) -> Result<(FolderId, &'a str), PathError> {
        if text.starts_with('/') {
            return self.split_absolute(text);
        }
        if let Some((name, rest)) = text.split_once(':')
            && let Some(folder) = self.by_name(name)
        {
            // `docs:/x` means the same as `docs:x`: a client that adds the slash still names the folder.
            return Ok((folder, rest.trim_start_matches('/')));
        }
        Ok((FolderId::ROOT, text))
    }

    fn split_absolute<'a>(&self, text: &'a str) -> Result<(FolderId, &'a str), PathError> {
        if text.contains('\0') {
            return Err(PathError::Nul);
        }
        let mut best: Option<(usize, FolderId, &str)> = None;
        for (index, (_, hosts)) in self.entries.iter().enumerate() {
            for host in hosts {
                let Some(rest) = below(text, host) else { continue };
                let folder = FolderId(u16::try_from(index).unwrap_or(u16::MAX));
                if best.is_none_or(|(longest, ..)| host.len() > longest) {
                    best = Some((host.len(), folder, rest));
                }
            }
        }
        best.map(|(_, folder, rest)| (folder, rest)).ok_or(PathError::Absolute)
    }

    /// What a client is told: `path`, or `NAME:path` in a further folder.
    pub fn show(&self, at: &WsPath) -> String {
        match self.name(at.folder) {
            "" => at.path.to_string(),
            name => format!("{name}:{}", at.path),
        }
    }
}

/// `text` relative to the host path, component by component, so that a sibling with the same prefix is not inside.
fn below<'a>(text: &'a str, host: &[u8]) -> Option<&'a str> {
    let mut rest = text;
    for part in host.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        rest = rest.trim_start_matches('/');
        rest = rest.strip_prefix(std::str::from_utf8(part).ok()?)?;
        if !(rest.is_empty() || rest.starts_with('/')) {
            return None;
        }
    }
    Some(rest.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, PathError> {
        RelPath::parse(text).map(|path| path.to_string())
    }

    #[test]
    fn dots_and_doubled_slashes_are_dropped() {
        for (text, path) in [("src//a.txt", "src/a.txt"), ("./src/./a", "src/a"), (".", "."), ("a/", "a")] {
            assert_eq!(parsed(text).as_deref(), Ok(path), "{text}");
        }
    }

    #[test]
    fn what_could_leave_is_refused() {
        assert_eq!(parsed(""), Err(PathError::Empty));
        assert_eq!(parsed("a\0b"), Err(PathError::Nul));
        assert_eq!(parsed("/etc/passwd"), Err(PathError::Absolute));
        assert_eq!(parsed(&"n".repeat(256)), Err(PathError::NameTooLong));
        assert_eq!(parsed(&"a/".repeat(2048)), Err(PathError::PathTooLong));
        for (text, clean) in [
            ("src/../src/a.txt", Some("src/a.txt")),
            ("a/..", Some(".")),
            ("../x", None),
            ("a/../../x", None),
        ] {
            assert_eq!(parsed(text), Err(PathError::DotDot { cleaned: clean.map(str::to_owned) }), "{text}");
        }
    }

    #[test]
    fn what_only_looks_special_is_an_ordinary_name() {
        for text in ["~/secret", "$HOME/x", "..%2fx", "....", "..\\x", "a ", "a.", "CON"] {
            assert_eq!(parsed(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn parents_leaves_and_containment_go_by_components() {
        let path = RelPath::parse("a/b/c").unwrap();
        assert_eq!(path.leaf(), Some(&b"c"[..]));
        assert_eq!(path.parent().unwrap().to_string(), "a/b");
        assert_eq!(RelPath::parse("a").unwrap().parent(), Some(RelPath::root()));
        assert_eq!(RelPath::root().parent(), None);
        assert!(path.is_within(&RelPath::parse("a/b").unwrap()));
        assert!(!RelPath::parse("a/bc").unwrap().is_within(&RelPath::parse("a/b").unwrap()));
        assert!(path.is_within(&RelPath::root()));
        assert_eq!(RelPath::root().join(b"x").to_string(), "x");
    }

    #[test]
    fn names_that_are_not_utf8_are_shown_escaped() {
        assert_eq!(RelPath::from_bytes(b"a\xffb").unwrap().to_string(), "a\\xffb");
    }

    fn folders() -> Folders {
        let mut folders = Folders::default();
        folders.add("", vec![b"/home/u/proj".to_vec(), b"/home/u/alias".to_vec()]);
        folders.add("docs", vec![b"/srv/docs".to_vec()]);
        folders
    }

    #[test]
    fn absolute_paths_count_only_below_a_folder() {
        let folders = folders();
        for (text, shown) in [
            ("/home/u/proj/src/a", "src/a"),
            ("/home/u//proj", "."),
            ("/home/u/alias/f", "f"),
            ("/srv/docs/x", "docs:x"),
            ("docs:x/y", "docs:x/y"),
            ("docs:", "docs:."),
            ("other:x", "other:x"),
        ] {
            let parsed = folders.parse(text).unwrap();
            assert_eq!(folders.show(&parsed.at), shown, "{text}");
        }
        for text in ["/home/u/proj-evil/f", "/home/u", "//etc/passwd", "/srv/docsx"] {
            assert_eq!(folders.parse(text), Err(PathError::Absolute), "{text}");
        }
        assert!(matches!(folders.parse("/home/u/proj/../x"), Err(PathError::DotDot { .. })));
    }

    #[test]
    fn a_final_slash_is_remembered() {
        assert!(folders().parse("src/").unwrap().dir_only);
        assert!(!folders().parse("src").unwrap().dir_only);
    }
}
