//! Binary patches as git writes them: base85 lines of deflated data, either the content itself or a delta.

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use thiserror::Error;

use crate::patch::blob_id::{self, BlobId};
use crate::patch::model::{Binary, BinaryHunk, Malformed};
use crate::patch::source::Source;

const ACCEPTED: &str = "`literal SIZE` or `delta SIZE`, then base85 lines as `git diff --binary` writes them";

/// The largest content that is unpacked, in bytes.
const MOST: usize = 100 << 20;

/// What follows `GIT binary patch`, from index `at` on: forward, and reverse where it is there. The index after it.
pub(super) fn read(
    source: &Source<'_>,
    at: usize,
    ids: (Option<BlobId>, Option<BlobId>),
) -> Result<(Binary, usize), Malformed> {
    let Some((forward, next)) = read_one(source, at)? else {
        return Err(source.malformed(at, "a binary patch without data", ACCEPTED));
    };
    let (reverse, next) = match read_one(source, next)? {
        Some((reverse, next)) => (Some(reverse), next),
        None => (None, next),
    };
    Ok((Binary { forward, reverse, old_id: ids.0, new_id: ids.1 }, next))
}

fn read_one(source: &Source<'_>, at: usize) -> Result<Option<(BinaryHunk, usize)>, Malformed> {
    let text = source.trimmed(at);
    let (is_literal, size) = match (text.strip_prefix(b"literal "), text.strip_prefix(b"delta ")) {
        (Some(size), _) => (true, size),
        (_, Some(size)) => (false, size),
        _ => return Ok(None),
    };
    let size: Option<usize> = std::str::from_utf8(size).ok().and_then(|size| size.parse().ok());
    let Some(size) = size.filter(|size| *size <= MOST) else {
        return Err(source.malformed(at, "a size that is no number, or over 100 MiB", ACCEPTED));
    };
    let mut packed = Vec::new();
    let mut next = at + 1;
    while !source.trimmed(next).is_empty() {
        let line = source.trimmed(next);
        packed.extend(base85(line).ok_or_else(|| source.malformed(next, "no base85 line", ACCEPTED))?);
        next += 1;
    }
    let data = decompress_to_vec_zlib_with_limit(&packed, size).ok().filter(|data| data.len() == size);
    let data =
        data.ok_or_else(|| source.malformed(at, "the data do not unpack to the stated size", ACCEPTED))?;
    let hunk = if is_literal { BinaryHunk::Literal(data) } else { BinaryHunk::Delta(data) };
    Ok(Some((hunk, next + usize::from(next < source.len()))))
}

/// The bytes of one line: its length as a letter, then groups of five digits for four bytes.
fn base85(line: &[u8]) -> Option<Vec<u8>> {
    let (first, digits) = line.split_first()?;
    let length = match first {
        b'A'..=b'Z' => first - b'A' + 1,
        b'a'..=b'z' => first - b'a' + 27,
        _ => return None,
    };
    let length = usize::from(length);
    if digits.len() != length.div_ceil(4) * 5 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len());
    for group in digits.chunks_exact(5) {
        let value =
            group.iter().try_fold(0u32, |sum, digit| sum.checked_mul(85)?.checked_add(digit_of(*digit)?))?;
        out.extend(value.to_be_bytes());
    }
    out.truncate(length);
    Some(out)
}

fn digit_of(byte: u8) -> Option<u32> {
    const REST: &[u8] = b"!#$%&()*+-;<=>?@^_`{|}~";
    let digit = match byte {
        b'0'..=b'9' => usize::from(byte - b'0'),
        b'A'..=b'Z' => usize::from(byte - b'A') + 10,
        b'a'..=b'z' => usize::from(byte - b'a') + 36,
        _ => REST.iter().position(|known| *known == byte)? + 62,
    };
    u32::try_from(digit).ok()
}

/// Why a binary patch does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BinaryMiss {
    /// The present content is not what the patch was made for.
    #[error("the file is not the one that this binary patch was made for")]
    OtherContent,
    /// The present content is already what the patch leads to.
    #[error("the file already is what this binary patch makes of it")]
    AlreadyApplied,
    /// The patch says in no way what the present content must be.
    #[error(
        "this binary patch does not prove what it replaces: it has neither full `index` ids nor the old content"
    )]
    Unverifiable,
    /// The instructions contradict themselves, or lead to something else than the patch says.
    #[error("the data of this binary patch are damaged")]
    Damaged,
}

/// The new content. `present` is the present content, `None` for a file that is created. A deletion gives empty content.
///
/// # Errors
/// [`BinaryMiss`] where `present` is not proven to be exactly what the patch was made for: by git's id, or by a reverse half
/// that holds the old content itself. A delta alone proves nothing, since it copies most bytes without looking at them.
pub fn apply_binary(present: Option<&[u8]>, binary: &Binary) -> Result<Vec<u8>, BinaryMiss> {
    if let Some(present) = present {
        if is(present, binary.new_id, Some(&binary.forward)) == Some(true) {
            return Err(BinaryMiss::AlreadyApplied);
        }
        match is(present, binary.old_id, binary.reverse.as_ref()) {
            Some(true) => {}
            Some(false) => return Err(BinaryMiss::OtherContent),
            None => return Err(BinaryMiss::Unverifiable),
        }
    }
    let new = binary.forward.of(present.unwrap_or_default())?;
    match binary.new_id {
        Some(id) if blob_id::of(&new) != id => Err(BinaryMiss::Damaged),
        _ => Ok(new),
    }
}

/// Whether `content` is the version with this id, or else the one that a half of the patch holds; `None` where neither tells.
fn is(content: &[u8], id: Option<BlobId>, half: Option<&BinaryHunk>) -> Option<bool> {
    match (id, half) {
        (Some(id), _) => Some(blob_id::of(content) == id),
        (None, Some(BinaryHunk::Literal(whole))) => Some(content == whole),
        (None, _) => None,
    }
}

impl BinaryHunk {
    /// The content that this half makes of the other side's.
    fn of(&self, base: &[u8]) -> Result<Vec<u8>, BinaryMiss> {
        match self {
            BinaryHunk::Literal(data) => Ok(data.clone()),
            BinaryHunk::Delta(data) => Delta { data }.of(base),
        }
    }
}

/// Instructions that are read from the front.
struct Delta<'d> {
    data: &'d [u8],
}

impl Delta<'_> {
    fn of(mut self, base: &[u8]) -> Result<Vec<u8>, BinaryMiss> {
        let (from, to) = self.size().zip(self.size()).ok_or(BinaryMiss::Damaged)?;
        if from != base.len() {
            return Err(BinaryMiss::OtherContent);
        }
        if to > MOST {
            return Err(BinaryMiss::Damaged);
        }
        let mut out = Vec::with_capacity(to);
        while let Some(code) = self.byte() {
            self.step(code, base, &mut out).filter(|()| out.len() <= to).ok_or(BinaryMiss::Damaged)?;
        }
        if out.len() == to { Ok(out) } else { Err(BinaryMiss::Damaged) }
    }

    /// One instruction: a copy from the base, or bytes that follow.
    fn step(&mut self, code: u8, base: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if code & 0x80 == 0 {
            let (given, rest) = self.data.split_at_checked(usize::from(code))?;
            if given.is_empty() {
                return None;
            }
            self.data = rest;
            out.extend_from_slice(given);
            return Some(());
        }
        let mut operand = |bits: std::ops::Range<u32>| {
            let start = bits.start;
            bits.filter(|bit| code >> bit & 1 == 1)
                .try_fold(0usize, |sum, bit| Some(sum | usize::from(self.byte()?) << (8 * (bit - start))))
        };
        let (offset, length) = (operand(0..4)?, operand(4..7)?);
        let length = if length == 0 { 0x10000 } else { length };
        out.extend_from_slice(base.get(offset..offset.checked_add(length)?)?);
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.data.split_first()?;
        self.data = rest;
        Some(*first)
    }

    /// A size in groups of seven bits, the lowest first.
    fn size(&mut self) -> Option<usize> {
        let mut size = 0usize;
        for group in 0..8 {
            let byte = self.byte()?;
            size |= usize::from(byte & 0x7f) << (7 * group);
            if byte & 0x80 == 0 {
                return Some(size);
            }
        }
        None
    }
}
