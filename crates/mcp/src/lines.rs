//! Cuts a byte stream into lines: a line has a bound, what exceeds it is scanned and dropped, memory is given back.

use std::io;

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::scan::Scan;

/// The longest message, in bytes, without its line end.
pub const MESSAGE_MAX: usize = 16 * 1024 * 1024;

/// What is held on to between messages, and read at a time, in bytes.
const KEPT: usize = 64 * 1024;

/// A byte stream that a session reads from.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// One line.
#[derive(Debug)]
pub enum Line {
    /// With its line end.
    Whole(Vec<u8>),
    /// It exceeded the bound; what could be learned of it while it passed.
    TooLong(Scan),
}

/// Cuts what it is given into lines. What is behind the last line end is no line: its sender did not finish it.
#[derive(Debug)]
pub struct Cutter {
    max: usize,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to here there is no line end.
    searched: usize,
    /// Set while a line that is too long passes by.
    passing: Option<Scan>,
}

impl Cutter {
    /// Lines may be `max` bytes long, their ends not counted.
    pub fn new(max: usize) -> Cutter {
        Cutter { max, buffer: Vec::with_capacity(KEPT), start: 0, searched: 0, passing: None }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.make_room();
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line out of what it was given.
    pub fn cut(&mut self) -> Option<Line> {
        let end = memchr(b'\n', &self.buffer[self.searched..]).map(|at| self.searched + at);
        if let Some(scan) = self.passing.take() {
            return self.pass(scan, end);
        }
        let length = end.unwrap_or(self.buffer.len()) - self.start;
        match end {
            _ if length > self.max => self.pass(Scan::default(), end),
            Some(end) => Some(Line::Whole(self.take(end + 1))),
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }

    /// Lets a line that is too long go by, up to its end.
    fn pass(&mut self, mut scan: Scan, end: Option<usize>) -> Option<Line> {
        scan.feed(&self.buffer[self.start..end.unwrap_or(self.buffer.len())]);
        self.start = end.map_or(self.buffer.len(), |end| end + 1);
        self.searched = self.start;
        if end.is_some() {
            return Some(Line::TooLong(scan));
        }
        self.make_room();
        self.passing = Some(scan);
        None
    }

    /// Takes the line that ends before `end`. A large one takes its memory along, so that it is not copied.
    fn take(&mut self, end: usize) -> Vec<u8> {
        let line = if self.start == 0 && end > KEPT {
            let rest = self.buffer.split_off(end);
            std::mem::replace(&mut self.buffer, rest)
        } else {
            let line = self.buffer[self.start..end].to_vec();
            self.start = end;
            self.searched = end;
            return line;
        };
        self.searched = 0;
        line
    }

    /// Drops what was taken, and memory that only a large line needed.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        if self.buffer.len() <= KEPT / 2 && self.buffer.capacity() > 2 * KEPT {
            self.buffer.shrink_to(KEPT);
        }
    }
}

/// The lines of a stream.
pub(crate) struct Lines {
    input: Reader,
    cutter: Cutter,
}

impl Lines {
    pub(crate) fn new(input: Reader) -> Lines {
        Lines { input, cutter: Cutter::new(MESSAGE_MAX) }
    }

    /// The next line; `None` at the end of the stream. May be dropped while it waits without losing anything.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.cutter.cut() {
                return Ok(Some(line));
            }
            self.cutter.make_room();
            self.cutter.buffer.reserve(KEPT / 2);
            if self.input.read_buf(&mut self.cutter.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of `bytes` given in chunks of `size`, those too long as their ids.
    fn lines(max: usize, bytes: &[u8], size: usize) -> Vec<String> {
        let mut cutter = Cutter::new(max);
        let mut lines = Vec::new();
        for chunk in bytes.chunks(size) {
            cutter.push(chunk);
            while let Some(line) = cutter.cut() {
                lines.push(match line {
                    Line::Whole(line) => String::from_utf8(line).unwrap(),
                    Line::TooLong(scan) => {
                        format!("long {}", String::from_utf8_lossy(scan.id().unwrap_or_default()))
                    }
                });
            }
        }
        lines
    }

    #[test]
    fn lines_are_cut_alike_in_chunks_of_any_size() {
        let long = format!("{{\"id\":7,\"x\":\"{}\"}}\n", "y".repeat(40));
        let bytes = format!("ab\n\n{long}c\r\n{long}äöü\nrest");
        for size in 1..bytes.len() {
            let got = lines(20, bytes.as_bytes(), size);
            assert_eq!(got, ["ab\n", "\n", "long 7", "c\r\n", "long 7", "äöü\n"], "{size}");
        }
        assert_eq!(lines(3, b"abc\nabcd\nab\n", 100), ["abc\n", "long ", "ab\n"]);
    }

    #[test]
    fn large_lines_leave_no_large_buffer() {
        let mut cutter = Cutter::new(MESSAGE_MAX);
        let large = vec![b'x'; 4 * 1024 * 1024];
        for _ in 0..3 {
            cutter.push(&large);
            cutter.push(b"\nnext\nha");
            assert!(matches!(cutter.cut(), Some(Line::Whole(line)) if line.len() == large.len() + 1));
            assert!(matches!(cutter.cut(), Some(Line::Whole(line)) if line.ends_with(b"next\n")));
            assert!(cutter.cut().is_none());
            cutter.push(b"lf\n");
            assert!(matches!(cutter.cut(), Some(Line::Whole(line)) if line == b"half\n"));
            assert!(cutter.buffer.capacity() <= 2 * KEPT, "{}", cutter.buffer.capacity());
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_never_held() {
        let mut cutter = Cutter::new(MESSAGE_MAX);
        cutter.push(b"{\"id\":3,\"s\":\"");
        let chunk = vec![b'x'; 1024 * 1024];
        for _ in 0..40 {
            cutter.push(&chunk);
            assert!(cutter.cut().is_none());
            assert!(cutter.buffer.capacity() <= 2 * MESSAGE_MAX + 2 * KEPT);
        }
        cutter.push(b"\"}\n");
        assert!(matches!(cutter.cut(), Some(Line::TooLong(scan)) if scan.id() == Some(b"3")));
        cutter.push(b"");
        assert!(cutter.buffer.capacity() <= 2 * KEPT);
    }
}
