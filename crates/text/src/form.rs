//! Text form: what a file's bytes are (encoding, BOM, line endings, final newline), decided without guessing.

use std::borrow::Cow;
use std::fmt;

use memchr::{memchr, memchr_iter, memmem};
use thiserror::Error;

/// How the characters of a file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, also plain ASCII.
    Utf8,
    /// UTF-16, little endian.
    Utf16Le,
    /// UTF-16, big endian.
    Utf16Be,
    /// UTF-32, little endian.
    Utf32Le,
    /// UTF-32, big endian.
    Utf32Be,
    /// A declared ASCII-compatible legacy encoding.
    Legacy(&'static encoding_rs::Encoding),
    /// Not UTF-8 and undeclared: ASCII can be edited, every other byte is kept as it is.
    UnknownAscii,
}

impl Encoding {
    /// The encoding of a label as written in `.editorconfig`, `cotenant.toml` or an argument (`latin1`, `utf-8-bom`, `shift_jis` …), in any case.
    /// `None` for an unknown label and for what cannot be edited byte by byte (`iso-2022-jp`, `x-user-defined`).
    pub fn from_label(label: &str) -> Option<Encoding> {
        match label.trim().to_ascii_lowercase().as_str() {
            "utf-8-bom" => return Some(Encoding::Utf8),
            "utf-32le" => return Some(Encoding::Utf32Le),
            "utf-32be" => return Some(Encoding::Utf32Be),
            "unknown-ascii" => return Some(Encoding::UnknownAscii),
            _ => {}
        }
        let found = encoding_rs::Encoding::for_label(label.trim().as_bytes())?;
        if found == encoding_rs::UTF_8 {
            Some(Encoding::Utf8)
        } else if found == encoding_rs::UTF_16LE {
            Some(Encoding::Utf16Le)
        } else if found == encoding_rs::UTF_16BE {
            Some(Encoding::Utf16Be)
        } else if found.is_ascii_compatible() && found != encoding_rs::X_USER_DEFINED {
            Some(Encoding::Legacy(found))
        } else {
            None
        }
    }

    /// The name on the wire: `utf-8`, `utf-16le`, `windows-1252`, `unknown-ascii` …
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16Le => "utf-16le",
            Encoding::Utf16Be => "utf-16be",
            Encoding::Utf32Le => "utf-32le",
            Encoding::Utf32Be => "utf-32be",
            Encoding::UnknownAscii => "unknown-ascii",
            Encoding::Legacy(e) => return Cow::Owned(e.name().to_ascii_lowercase()),
        })
    }

    /// Bytes of one code unit: 2 for UTF-16, 4 for UTF-32, else 1.
    pub fn unit(self) -> usize {
        match self {
            Encoding::Utf16Le | Encoding::Utf16Be => 2,
            Encoding::Utf32Le | Encoding::Utf32Be => 4,
            _ => 1,
        }
    }

    /// The byte order mark of this encoding; empty where there is none.
    pub fn bom(self) -> &'static [u8] {
        match self {
            Encoding::Utf8 | Encoding::UnknownAscii => b"\xef\xbb\xbf",
            Encoding::Utf16Le => b"\xff\xfe",
            Encoding::Utf16Be => b"\xfe\xff",
            Encoding::Utf32Le => b"\xff\xfe\x00\x00",
            Encoding::Utf32Be => b"\x00\x00\xfe\xff",
            Encoding::Legacy(_) => b"",
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// One line break. Nothing else breaks a line: a lone CR, form feed, NEL or U+2028 is content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Break {
    /// U+000A.
    Lf,
    /// U+000D U+000A.
    Crlf,
}

impl Break {
    /// The characters of this break.
    pub fn as_str(self) -> &'static str {
        match self {
            Break::Lf => "\n",
            Break::Crlf => "\r\n",
        }
    }
}

/// The line endings of a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eol {
    /// No line break at all.
    None,
    /// Only LF.
    Lf,
    /// Only CRLF.
    Crlf,
    /// Both; see [`Form::majority`].
    Mixed,
}

impl Eol {
    /// The name on the wire: `none`, `lf`, `crlf`, `mixed`.
    pub fn name(self) -> &'static str {
        match self {
            Eol::None => "none",
            Eol::Lf => "lf",
            Eol::Crlf => "crlf",
            Eol::Mixed => "mixed",
        }
    }

    /// The convention that a caller may ask for: `lf` or `crlf`, in any case.
    pub fn from_label(label: &str) -> Option<Eol> {
        match label.trim().to_ascii_lowercase().as_str() {
            "lf" => Some(Eol::Lf),
            "crlf" => Some(Eol::Crlf),
            _ => None,
        }
    }
}

/// What a file's bytes are. Callers print only what differs from [`Form::default`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// How characters are stored.
    pub encoding: Encoding,
    /// Whether the file starts with [`Encoding::bom`].
    pub bom: bool,
    /// The line endings.
    pub eol: Eol,
    /// The more frequent line ending; LF when equal or none.
    pub majority: Break,
    /// Whether the last line ends with a line break; true for an empty file, which lacks nothing.
    pub final_newline: bool,
}

impl Default for Form {
    /// UTF-8 without BOM, LF, a final newline.
    fn default() -> Form {
        Form { encoding: Encoding::Utf8, bom: false, eol: Eol::Lf, majority: Break::Lf, final_newline: true }
    }
}

impl Form {
    /// Bytes of the byte order mark that the file carries, 0 without one.
    pub fn bom_len(&self) -> usize {
        if self.bom { self.encoding.bom().len() } else { 0 }
    }
}

/// Why bytes are not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotText {
    /// A NUL character stands at this byte offset.
    #[error("binary: a NUL byte at offset {nul_at}")]
    Binary {
        /// Byte offset of the first NUL.
        nul_at: u64,
    },
    /// No NUL, but too many control characters for text; the first stands at this byte offset.
    #[error("binary: control bytes, the first at offset {at}")]
    Controls {
        /// Byte offset of the first control byte.
        at: u64,
    },
    /// The bytes are not what was declared.
    #[error("not {encoding}: bytes at offset {at} have no meaning in it")]
    Undecodable {
        /// The declared (or BOM-announced) encoding.
        encoding: Encoding,
        /// Byte offset of the first sequence without a meaning.
        at: u64,
    },
}

/// Decides the form of `bytes`. A BOM decides first, then `declared` (strictly: what does not decode is an error), then
/// validity as UTF-8. BOM-less UTF-16 and UTF-32 are only recognised when declared.
///
/// # Errors
/// [`NotText`] for binary content and for bytes that contradict the declaration.
pub fn detect(bytes: &[u8], declared: Option<Encoding>) -> Result<Form, NotText> {
    if let Some(encoding) = wide_bom(bytes) {
        return wide_form(bytes, encoding, true);
    }
    match declared {
        Some(e) if e.unit() > 1 => wide_form(bytes, e, false),
        Some(Encoding::Legacy(e)) if !bytes.starts_with(Encoding::Utf8.bom()) => legacy_form(bytes, e),
        _ => narrow_form(bytes),
    }
}

/// How far git looks for a NUL, in bytes.
const GIT_LOOKS: usize = 8000;

/// The form of what git calls text, though [`detect`] does not: it has no NUL among its first 8,000 bytes, so its diffs are
/// by lines. Good for patches, which replace whole lines that they state; whatever else stands there is kept as it is.
pub fn detect_as_git(bytes: &[u8]) -> Option<Form> {
    let head = bytes.get(..GIT_LOOKS).unwrap_or(bytes);
    if memchr::memchr(0, head).is_some() {
        return None;
    }
    let utf8 = std::str::from_utf8(bytes).is_ok();
    let encoding = if utf8 { Encoding::Utf8 } else { Encoding::UnknownAscii };
    let bom = bytes.starts_with(encoding.bom());
    Some(with_breaks(encoding, bom, count_breaks(bytes), bytes.is_empty(), bytes.ends_with(b"\n")))
}

/// The UTF-16 or UTF-32 encoding whose BOM opens `bytes`.
fn wide_bom(bytes: &[u8]) -> Option<Encoding> {
    // UTF-32 first: its little-endian BOM begins with that of UTF-16.
    if bytes.len().is_multiple_of(4) && bytes.starts_with(Encoding::Utf32Le.bom()) {
        return Some(Encoding::Utf32Le);
    }
    [Encoding::Utf32Be, Encoding::Utf16Le, Encoding::Utf16Be].into_iter().find(|e| bytes.starts_with(e.bom()))
}

fn narrow_form(bytes: &[u8]) -> Result<Form, NotText> {
    refuse_nul(bytes)?;
    let valid = std::str::from_utf8(bytes).is_ok();
    refuse_controls(bytes, valid)?;
    let encoding = if valid { Encoding::Utf8 } else { Encoding::UnknownAscii };
    Ok(with_breaks(
        encoding,
        bytes.starts_with(encoding.bom()),
        count_breaks(bytes),
        bytes.is_empty(),
        bytes.ends_with(b"\n"),
    ))
}

fn legacy_form(bytes: &[u8], encoding: &'static encoding_rs::Encoding) -> Result<Form, NotText> {
    refuse_nul(bytes)?;
    if let Some(at) = crate::codec::first_undecodable(bytes, encoding) {
        return Err(NotText::Undecodable { encoding: Encoding::Legacy(encoding), at });
    }
    Ok(with_breaks(
        Encoding::Legacy(encoding),
        false,
        count_breaks(bytes),
        bytes.is_empty(),
        bytes.ends_with(b"\n"),
    ))
}

fn wide_form(bytes: &[u8], encoding: Encoding, bom: bool) -> Result<Form, NotText> {
    let skip = if bom { encoding.bom().len() } else { 0 };
    let (mut lf, mut crlf, mut bad, mut units) = (0usize, 0usize, 0usize, 0usize);
    let (mut first_bad, mut last) = (None, None);
    let (mut previous, mut at) = (None, skip);
    for unit in crate::codec::wide_chars(&bytes[skip..], encoding) {
        units += 1;
        match unit.ch {
            Some('\0') => return Err(NotText::Binary { nul_at: at as u64 }),
            Some('\n') if previous == Some('\r') => crlf += 1,
            Some('\n') => lf += 1,
            Some(_) => {}
            None => {
                bad += 1;
                first_bad.get_or_insert(at);
            }
        }
        (previous, last) = (unit.ch, unit.ch);
        at += unit.len;
    }
    // A BOM announces text, so single damaged units are carried along; a declaration must hold for every byte.
    let allowed = if bom { (units / 50).max(2) } else { 0 };
    match first_bad {
        Some(at) if bad > allowed => Err(NotText::Undecodable { encoding, at: at as u64 }),
        _ => Ok(with_breaks(encoding, bom, (lf, crlf), units == 0, last == Some('\n'))),
    }
}

fn with_breaks(encoding: Encoding, bom: bool, (lf, crlf): (usize, usize), empty: bool, ends: bool) -> Form {
    let eol = match (lf, crlf) {
        (0, 0) => Eol::None,
        (_, 0) => Eol::Lf,
        (0, _) => Eol::Crlf,
        _ => Eol::Mixed,
    };
    let majority = if crlf > lf { Break::Crlf } else { Break::Lf };
    Form { encoding, bom, eol, majority, final_newline: ends || empty }
}

/// (LF without CR, CRLF) in bytes of an ASCII-compatible encoding.
fn count_breaks(bytes: &[u8]) -> (usize, usize) {
    let all = memchr_iter(b'\n', bytes).count();
    let crlf = if memchr(b'\r', bytes).is_some() { memmem::find_iter(bytes, b"\r\n").count() } else { 0 };
    (all - crlf, crlf)
}

fn refuse_nul(bytes: &[u8]) -> Result<(), NotText> {
    memchr(0, bytes).map_or(Ok(()), |at| Err(NotText::Binary { nul_at: at as u64 }))
}

/// Compressed or encrypted data without a NUL: invalid UTF-8 with over 5 % control bytes in the first 8 KiB, or valid with over 30 %.
fn refuse_controls(bytes: &[u8], valid: bool) -> Result<(), NotText> {
    let head = &bytes[..bytes.len().min(8192)];
    let control = |b: u8| {
        (b.wrapping_sub(0x01) < 7) | (b.wrapping_sub(0x0e) < 13) | (b.wrapping_sub(0x1c) < 4) | (b == 0x7f)
    };
    // In parts whose count fits into a byte, without a branch, so that many bytes are counted at once.
    let counted = |part: &[u8]| usize::from(part.iter().map(|b| u8::from(control(*b))).sum::<u8>());
    let count: usize = head.chunks(128).map(counted).sum();
    let limit = if valid { head.len() * 3 / 10 } else { head.len() / 20 };
    if count <= limit || count <= 3 {
        return Ok(());
    }
    let first = head.iter().position(|b| control(*b));
    first.map_or(Ok(()), |at| Err(NotText::Controls { at: at as u64 }))
}
