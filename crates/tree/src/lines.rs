//! Reading some lines of a file of any size, in bounded memory.

use std::fs::File;
use std::os::unix::fs::FileExt;

use memchr::{memchr, memchr_iter, memrchr_iter};

use crate::dir::Stat;
use crate::error::TreeError;
use crate::place::Place;
use crate::read::{MAX_REREADS, io_error, is_same, open};
use crate::tree::Tree;
use crate::walk::threads;

/// Bytes read at once.
const CHUNK: usize = 256 * 1024;
/// Bytes kept of a long line.
const LINE_KEPT: usize = 16 * 1024;
/// How far the end of a long line is looked for, in bytes.
const LINE_SCANNED: u64 = 16 * 1024 * 1024;
/// How far a line is looked for by its number, in bytes: under a second from memory.
const SCANNED: u64 = 2 * 1024 * 1024 * 1024;
/// How far a line is looked for from the end, in bytes.
const SCANNED_BACK: u64 = 256 * 1024 * 1024;
/// Bytes that one thread passes over at a time, looking for a line far into a file.
const STRIDE: u64 = 8 * 1024 * 1024;
/// The lines of a file of so many bytes are counted; a matter of milliseconds.
const COUNTED: u64 = 64 * 1024 * 1024;

/// A line as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawLine {
    /// Its bytes with its ending; of a long line only the first ones (16 KiB).
    pub bytes: Vec<u8>,
    /// Its length in bytes with its ending; where `bytes` is shorter, it was clipped. `None`: it goes on for more than
    /// 16 MiB, and where it ends was not looked for.
    pub len: Option<u64>,
}

/// Some consecutive lines of a file.
#[derive(Clone, Debug)]
pub struct LineWindow {
    /// The file.
    pub stat: Stat,
    /// The number of the first line: from 1; or negative, counted from the end, where the file is too large to count.
    pub first: i64,
    /// The lines; none where `start` is past the end.
    pub lines: Vec<RawLine>,
    /// Whether the file goes on after them.
    pub more: bool,
    /// How many lines the file has, where that came to light: always up to 64 MiB, and where the end was reached.
    pub total: Option<u64>,
    /// The file changed meanwhile: no receipt (R18).
    pub unstable: bool,
}

impl Tree {
    /// Reads up to `limit` lines from line `start` (from 1; negative from the end, -1 being the last), stopping before
    /// `max_bytes` kept bytes are exceeded, though not before the first line. Memory is bounded whatever the file; a line
    /// more than 2 GiB into the file, or 256 MiB before its end, is not looked for (`TooLarge`).
    pub fn read_lines(
        &self,
        place: &Place,
        start: i64,
        limit: usize,
        max_bytes: usize,
    ) -> Result<LineWindow, TreeError> {
        let mut rereads = 0;
        loop {
            let (file, stat) = open(place)?;
            let mut window = Scan::new(&file, 0).window(stat, start, limit, max_bytes)?;
            window.unstable = !is_same(place, &stat);
            if !window.unstable || rereads == MAX_REREADS {
                return Ok(window);
            }
            rereads += 1;
        }
    }
}

/// A forward pass over a file.
struct Scan<'f> {
    file: &'f File,
    buffer: Vec<u8>,
    /// Where the unread part of `buffer` begins.
    at: usize,
    /// How much of `buffer` is filled.
    filled: usize,
    /// The offset in the file behind `buffer`.
    offset: u64,
}

impl<'f> Scan<'f> {
    fn new(file: &'f File, offset: u64) -> Scan<'f> {
        Scan { file, buffer: vec![0; CHUNK], at: 0, filled: 0, offset }
    }

    fn window(
        mut self,
        stat: Stat,
        start: i64,
        limit: usize,
        max_bytes: usize,
    ) -> Result<LineWindow, TreeError> {
        let mut total = None;
        let mut first = start.max(1);
        if stat.size <= COUNTED {
            total = Some(count(self.file)?);
        }
        if start < 0 {
            let back = start.unsigned_abs();
            match total {
                Some(total) => first = signed(total.saturating_sub(back) + 1),
                None => match offset_from_end(self.file, stat.size, back)? {
                    Some(offset) => {
                        first = start;
                        self.offset = offset;
                    }
                    None => first = 1,
                },
            }
        }
        let wanted = u64::try_from(first - 1).unwrap_or(0);
        let skipped = self.skip(wanted, stat.size)?;
        let mut lines = Vec::new();
        let mut kept = 0;
        let mut open_end = false;
        while lines.len() < limit && !open_end {
            let before = (self.at, self.filled, self.offset);
            let Some(line) = self.line()? else { break };
            if kept + line.bytes.len() > max_bytes && !lines.is_empty() {
                self.back_to(before);
                break;
            }
            kept += line.bytes.len();
            open_end = line.len.is_none();
            lines.push(line);
        }
        let more = open_end || self.fill()?;
        if !more && total.is_none() && first > 0 {
            total = Some(skipped + lines.len() as u64);
        }
        Ok(LineWindow { stat, first, lines, more, total, unstable: false })
    }

    /// Makes sure that there is something unread; `false` at the end of the file.
    fn fill(&mut self) -> Result<bool, TreeError> {
        if self.at == self.filled {
            self.filled =
                self.file.read_at(&mut self.buffer, self.offset).map_err(|error| io_error(&error))?;
            self.offset += self.filled as u64;
            self.at = 0;
        }
        Ok(self.at < self.filled)
    }

    /// Goes back to an earlier state. What was read since is read again, unless it is still there.
    fn back_to(&mut self, (at, filled, offset): (usize, usize, u64)) {
        if offset == self.offset {
            self.at = at;
        } else {
            self.offset = offset - (filled - at) as u64;
            (self.at, self.filled) = (0, 0);
        }
    }

    /// Passes over `lines` lines; how many there were, fewer only at the end of the file.
    fn skip(&mut self, lines: u64, size: u64) -> Result<u64, TreeError> {
        let mut left = lines - self.stride(lines, size)?;
        let mut unended = false;
        while left > 0 && self.fill()? {
            if self.offset > SCANNED {
                return Err(TreeError::TooLarge { size, limit: SCANNED });
            }
            let unread = &self.buffer[self.at..self.filled];
            let ends = memchr_iter(b'\n', unread).count() as u64;
            if ends < left {
                unended = unread.last() != Some(&b'\n');
                self.at = self.filled;
                left -= ends;
            } else {
                let nth = usize::try_from(left - 1).unwrap_or(usize::MAX);
                let end = memchr_iter(b'\n', unread).nth(nth).unwrap_or(unread.len() - 1);
                self.at += end + 1;
                left = 0;
            }
        }
        Ok(lines - left + u64::from(left > 0 && unended))
    }

    /// Passes over large parts of the file, several at once, up to the one that holds the end of the `lines`th line or
    /// of the file; how many lines ended in them.
    fn stride(&mut self, lines: u64, size: u64) -> Result<u64, TreeError> {
        let together = threads() as u64;
        let mut passed = 0;
        while passed < lines && self.offset + together * STRIDE < size.min(SCANNED) {
            let file = self.file;
            let starts = (0..together).map(|nth| self.offset + nth * STRIDE);
            let counted: Vec<_> = std::thread::scope(|scope| {
                let others: Vec<_> = starts.map(|from| scope.spawn(move || ends_in(file, from))).collect();
                others.into_iter().map(|other| other.join().unwrap_or(Ok(None))).collect()
            });
            for ends in counted {
                match ends? {
                    Some(ends) if passed + ends < lines => passed += ends,
                    _ => return Ok(passed),
                }
                self.offset += STRIDE;
            }
        }
        Ok(passed)
    }

    /// The next line; `None` at the end of the file.
    fn line(&mut self) -> Result<Option<RawLine>, TreeError> {
        let mut line = RawLine { bytes: Vec::new(), len: Some(0) };
        let mut len = 0;
        while self.fill()? {
            let unread = &self.buffer[self.at..self.filled];
            let end = memchr(b'\n', unread);
            let part = &unread[..end.map_or(unread.len(), |end| end + 1)];
            let room = LINE_KEPT.saturating_sub(line.bytes.len());
            line.bytes.extend_from_slice(&part[..part.len().min(room)]);
            len += part.len() as u64;
            self.at += part.len();
            if end.is_some() {
                break;
            }
            if len > LINE_SCANNED {
                return Ok(Some(RawLine { len: None, ..line }));
            }
        }
        line.len = Some(len);
        Ok((len > 0).then_some(line))
    }
}

/// How many lines end in the stride from `from` on; `None` where the file ends before it does.
fn ends_in(file: &File, from: u64) -> Result<Option<u64>, TreeError> {
    let mut scan = Scan::new(file, from);
    let mut ends = 0;
    while scan.offset < from + STRIDE {
        if !scan.fill()? {
            return Ok(None);
        }
        // What was read beyond the stride is the next one's.
        let beyond = usize::try_from(scan.offset.saturating_sub(from + STRIDE)).unwrap_or(scan.filled);
        ends += memchr_iter(b'\n', &scan.buffer[..scan.filled - beyond]).count() as u64;
        scan.at = scan.filled;
    }
    Ok(Some(ends))
}

/// How many lines a file has; the last one need not be ended.
fn count(file: &File) -> Result<u64, TreeError> {
    let mut scan = Scan::new(file, 0);
    let mut ends = 0;
    let mut unended = false;
    while scan.fill()? {
        let part = &scan.buffer[..scan.filled];
        ends += memchr_iter(b'\n', part).count() as u64;
        unended = part.last() != Some(&b'\n');
        scan.at = scan.filled;
    }
    Ok(ends + u64::from(unended))
}

/// Where the `back`th line from the end begins; `None` where the file has no more lines than that.
fn offset_from_end(file: &File, size: u64, back: u64) -> Result<Option<u64>, TreeError> {
    let mut buffer = vec![0; CHUNK];
    // The ending of the last line is none that a line begins after.
    let mut end = size.saturating_sub(1);
    let mut left = back;
    while end > 0 {
        if size - end > SCANNED_BACK {
            return Err(TreeError::TooLarge { size, limit: SCANNED_BACK });
        }
        let begin = end.saturating_sub(CHUNK as u64);
        let part = &mut buffer[..usize::try_from(end - begin).unwrap_or(CHUNK)];
        file.read_exact_at(part, begin).map_err(|error| io_error(&error))?;
        for at in memrchr_iter(b'\n', part) {
            left -= 1;
            if left == 0 {
                return Ok(Some(begin + at as u64 + 1));
            }
        }
        end = begin;
    }
    Ok(None)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
