//! Reads lines out of a byte stream: a line has a bound, what exceeds it is scanned and dropped, memory is given back.

use std::io;

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::scan::Scan;

/// The longest message, in bytes, without its line end.
pub const MESSAGE_MAX: usize = 16 * 1024 * 1024;

/// What the buffer holds on to between messages, in bytes.
const KEPT: usize = 64 * 1024;

/// A byte stream that a session reads from.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// One line.
#[derive(Debug)]
pub(crate) enum Line {
    /// Without its line end.
    Whole(Vec<u8>),
    /// It exceeded the bound; what could be learned of it while it passed.
    TooLong(Scan),
}

/// The lines of a stream. A last line without a line end is no line: its sender did not finish it.
pub(crate) struct Lines {
    input: Reader,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are known to hold no line end.
    searched: usize,
    /// Set while a line that is too long passes by.
    passing: Option<Scan>,
}

impl Lines {
    pub(crate) fn new(input: Reader) -> Lines {
        Lines { input, buffer: Vec::with_capacity(KEPT), searched: 0, passing: None }
    }

    /// The next line; `None` at the end of the stream. May be dropped while it waits without losing anything.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.buffered() {
                return Ok(Some(line));
            }
            self.buffer.reserve(KEPT / 2);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// The next line out of what was read.
    fn buffered(&mut self) -> Option<Line> {
        let end = memchr(b'\n', &self.buffer[self.searched..]).map(|at| self.searched + at);
        if let Some(mut scan) = self.passing.take() {
            scan.feed(&self.buffer[..end.unwrap_or(self.buffer.len())]);
            self.searched = 0;
            match end {
                Some(end) => {
                    self.buffer.drain(..=end);
                    return Some(Line::TooLong(scan));
                }
                None => self.buffer.clear(),
            }
            self.passing = Some(scan);
            return None;
        }
        match end {
            Some(end) if end <= MESSAGE_MAX => Some(Line::Whole(self.take(end))),
            None if self.buffer.len() <= MESSAGE_MAX => {
                self.searched = self.buffer.len();
                None
            }
            _ => {
                self.passing = Some(Scan::default());
                self.searched = 0;
                let line = self.buffered();
                self.buffer.shrink_to(KEPT);
                line
            }
        }
    }

    /// Takes the first `end` bytes and the line end behind them.
    fn take(&mut self, end: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        self.searched = 0;
        line.truncate(end);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        line
    }
}
