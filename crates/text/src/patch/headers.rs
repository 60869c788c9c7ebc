//! The headers of one file in a unified diff: `diff --git` and what extends it, `---` and `+++`.

use crate::patch::blob_id::{self, BlobId};
use crate::patch::model::{Malformed, Mode};
use crate::patch::names::{self, Name};
use crate::patch::source::Source;
use crate::patch::unified::ACCEPTED;

/// What the headers of a section say.
#[derive(Debug, Default)]
pub(super) struct Headers {
    /// Both names of `diff --git`, not taken apart.
    pub(super) git: Option<Vec<u8>>,
    pub(super) old: Option<Name>,
    pub(super) new: Option<Name>,
    pub(super) old_mode: Option<Mode>,
    pub(super) new_mode: Option<Mode>,
    pub(super) created: bool,
    pub(super) deleted: bool,
    pub(super) rename: Option<(Vec<u8>, Vec<u8>)>,
    pub(super) copy: Option<(Vec<u8>, Vec<u8>)>,
    /// The full ids of old and new content.
    pub(super) ids: (Option<BlobId>, Option<BlobId>),
}

/// Whether a section begins at index `at`.
pub(super) fn begins(source: &Source<'_>, at: usize) -> bool {
    source.text(at).is_some_and(|text| text.starts_with(b"diff --git ")) || is_pair(source, at)
}

/// `--- X`, `+++ Y`, and then a hunk, or nothing that could still be one.
fn is_pair(source: &Source<'_>, at: usize) -> bool {
    let begins = |at: usize, mark: &[u8]| source.text(at).is_some_and(|text| text.starts_with(mark));
    begins(at, b"--- ") && begins(at + 1, b"+++ ") && {
        let after = source.trimmed(at + 2);
        after.is_empty()
            || after.starts_with(b"@@")
            || begins(at + 2, b"diff --git ")
            || begins(at + 2, b"--- ")
    }
}

impl Headers {
    /// The path, from the names that stand there.
    pub(super) fn path(&self, strip: Option<usize>) -> Option<Vec<u8>> {
        match (&self.old, &self.new) {
            (Some(Name::Path(old, _)), Some(Name::Path(new, _))) => names::agreed(old, new, strip),
            (Some(Name::Path(name, _)), _) => {
                self.git_path(strip).or_else(|| names::alone(name, b"a/", strip))
            }
            (_, Some(Name::Path(name, _))) => {
                self.git_path(strip).or_else(|| names::alone(name, b"b/", strip))
            }
            _ => self.git_path(strip),
        }
    }

    fn git_path(&self, strip: Option<usize>) -> Option<Vec<u8>> {
        names::git_pair(self.git.as_deref()?, strip)
    }
}

/// The headers of the section at index `at`, and the index after them.
pub(super) fn read(source: &Source<'_>, at: usize) -> Result<(Headers, usize), Malformed> {
    let mut headers = Headers::default();
    let mut next = at;
    if let Some(rest) = source.text(at).and_then(|text| text.strip_prefix(b"diff --git ")) {
        headers.git = Some(rest.to_vec());
        next += 1;
        let mut half = Halves::default();
        while let Some(text) = source.text(next) {
            if !headers.extend(source, next, text, &mut half)? {
                break;
            }
            next += 1;
        }
        headers.rename = both(source, at, half.rename)?;
        headers.copy = both(source, at, half.copy)?;
    }
    if is_pair(source, next) {
        let name = |at: usize| {
            let rest = source.text(at).and_then(|text| text.get(4..)).unwrap_or_default();
            names::header_name(rest)
                .ok_or_else(|| source.malformed(at, "a name that cannot be read", ACCEPTED))
        };
        headers.old = Some(name(next)?);
        headers.new = Some(name(next + 1)?);
        next += 2;
    }
    Ok((headers, next))
}

/// From and to of a rename or copy, while they are read.
#[derive(Default)]
struct Halves {
    rename: (Option<Vec<u8>>, Option<Vec<u8>>),
    copy: (Option<Vec<u8>>, Option<Vec<u8>>),
}

type Moved = Option<(Vec<u8>, Vec<u8>)>;

fn both(
    source: &Source<'_>,
    at: usize,
    half: (Option<Vec<u8>>, Option<Vec<u8>>),
) -> Result<Moved, Malformed> {
    match half {
        (Some(from), Some(to)) => Ok(Some((from, to))),
        (None, None) => Ok(None),
        _ => Err(source.malformed(at, "a rename or copy with one name only", ACCEPTED)),
    }
}

impl Headers {
    /// Takes up one extended header; false where the line is none.
    fn extend(
        &mut self,
        source: &Source<'_>,
        at: usize,
        text: &[u8],
        half: &mut Halves,
    ) -> Result<bool, Malformed> {
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let Some((key, value)) = KEYS.iter().find_map(|key| Some((*key, text.strip_prefix(key.as_bytes())?)))
        else {
            if text.starts_with(b"Binary files ") {
                let what = "the content of a binary file is not in this patch";
                return Err(source.malformed(at, what, "a diff made with `--binary`"));
            }
            return Ok(false);
        };
        let mode = || mode(source, at, value);
        match key {
            "old mode " => self.old_mode = Some(mode()?),
            "new mode " => self.new_mode = Some(mode()?),
            "new file mode " => (self.created, self.new_mode) = (true, Some(mode()?)),
            "deleted file mode " => (self.deleted, self.old_mode) = (true, Some(mode()?)),
            "rename from " => half.rename.0 = Some(name(source, at, value)?),
            "rename to " => half.rename.1 = Some(name(source, at, value)?),
            "copy from " => half.copy.0 = Some(name(source, at, value)?),
            "copy to " => half.copy.1 = Some(name(source, at, value)?),
            "index " => {
                self.ids = blob_id::pair(value);
                if let Some(at_space) = value.iter().position(|b| *b == b' ') {
                    let both = self::mode(source, at, &value[at_space + 1..])?;
                    self.old_mode.get_or_insert(both);
                    self.new_mode.get_or_insert(both);
                }
            }
            _ => {}
        }
        Ok(true)
    }
}

const KEYS: [&str; 11] = [
    "old mode ",
    "new mode ",
    "new file mode ",
    "deleted file mode ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "index ",
    "similarity index ",
    "dissimilarity index ",
];

fn name(source: &Source<'_>, at: usize, value: &[u8]) -> Result<Vec<u8>, Malformed> {
    let read = if value.starts_with(b"\"") {
        names::unquote(value).map(|(name, _)| name)
    } else {
        Some(value.to_vec())
    };
    read.filter(|name| !name.is_empty())
        .ok_or_else(|| source.malformed(at, "a name that cannot be read", ACCEPTED))
}

fn mode(source: &Source<'_>, at: usize, value: &[u8]) -> Result<Mode, Malformed> {
    let what = match value.trim_ascii() {
        [b'1', b'0', b'0', owner @ b'4'..=b'7', b'0'..=b'7', b'0'..=b'7'] => {
            return Ok(if (owner - b'0') & 1 == 1 { Mode::Executable } else { Mode::Regular });
        }
        b"120000" => return Ok(Mode::Link),
        b"160000" => "a submodule (mode 160000): what it points to is changed by git, not by a patch",
        _ => "a mode that no file has",
    };
    Err(source.malformed(at, what, "modes 100644, 100755 and 120000"))
}
