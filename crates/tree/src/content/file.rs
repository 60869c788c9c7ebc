//! Searching one file.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use cotenant_model::Digest;
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};

use super::HitLine;
use crate::dir::Dir;
use crate::sys::{self, Flavour};

/// A file up to so many bytes is read as a whole; a larger one goes through in pieces.
const WHOLE: u64 = 16 * 1024 * 1024;
/// The longest line (or, with `multiline`, the largest file) beyond that, in bytes.
const HEAP: usize = 32 * 1024 * 1024;
/// A buffer that a large file made larger than this is given back, in bytes.
const BUFFER_KEPT: usize = 1024 * 1024;
/// Bytes shown of a long line, and how many of them before the match.
const SHOWN: usize = 480;
const SHOWN_BEFORE: usize = 120;

/// What a search of one file comes to.
#[derive(Debug)]
pub(super) enum Searched {
    /// It was searched; there may be nothing in it.
    Text { matches: usize, lines: Vec<HitLine>, digest: Option<Digest> },
    /// It has a NUL byte; whether the pattern occurs in it all the same, and its size in bytes.
    Binary { occurs: bool, size: u64 },
    /// It is no regular file any more.
    Other,
    /// It cannot be opened or read, or has a line beyond all bounds.
    Unreadable,
    /// It is mounted over.
    Mount,
}

/// Searches files one after the other, with its own buffers; each thread has one.
pub(super) struct FileSearch {
    matcher: RegexMatcher,
    with_lines: Searcher,
    counting: Searcher,
    buffer: Vec<u8>,
}

impl FileSearch {
    /// `context`: how many lines around a match are kept.
    pub(super) fn new(matcher: RegexMatcher, multiline: bool, context: usize) -> FileSearch {
        let searcher = |context: usize, numbers: bool| {
            SearcherBuilder::new()
                .line_terminator(LineTerminator::crlf())
                .multi_line(multiline)
                .line_number(numbers)
                .before_context(context)
                .after_context(context)
                .heap_limit(Some(HEAP))
                .binary_detection(BinaryDetection::none())
                .build()
        };
        FileSearch {
            matcher,
            with_lines: searcher(context, true),
            counting: searcher(0, false),
            buffer: Vec::new(),
        }
    }

    /// Searches the file `path` beneath `root`, keeping the lines of its first `keep` matches.
    pub(super) fn search(&mut self, root: &Dir, path: &[u8], keep: usize) -> Searched {
        let opened = sys::open_file(root.fd(), path).and_then(|fd| Ok((sys::stat_beneath(fd.as_fd())?, fd)));
        let (meta, fd) = match opened {
            Ok(opened) => opened,
            Err(rustix::io::Errno::XDEV) => return Searched::Mount,
            Err(_) => return Searched::Unreadable,
        };
        if meta.flavour != Flavour::File {
            return Searched::Other;
        }
        let file = File::from(fd);
        let size = meta.stat.size;
        let found = match size <= WHOLE {
            true => self.whole(&file, size, keep),
            false => self.in_pieces(&file, size, keep),
        };
        found.unwrap_or(Searched::Unreadable)
    }

    fn whole(&mut self, file: &File, size: u64, keep: usize) -> io::Result<Searched> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.reserve(usize::try_from(size).unwrap_or(0) + 1);
        let read = file.take(WHOLE + 1).read_to_end(&mut buffer);
        let found = read.and_then(|_| self.bytes(&buffer, keep));
        if buffer.capacity() <= BUFFER_KEPT {
            self.buffer = buffer;
        }
        found
    }

    fn bytes(&mut self, bytes: &[u8], keep: usize) -> io::Result<Searched> {
        if memchr::memchr(0, bytes).is_some() && !is_utf16(bytes) {
            let occurs = self.matcher.is_match(bytes).unwrap_or(false);
            return Ok(Searched::Binary { occurs, size: bytes.len() as u64 });
        }
        let mut sink = Lines::new(&self.matcher, keep, self.with_lines.after_context());
        let searcher = if keep > 0 { &mut self.with_lines } else { &mut self.counting };
        searcher.search_slice(&self.matcher, bytes, &mut sink)?;
        let digest = (!sink.lines.is_empty()).then(|| Digest::of(bytes));
        Ok(Searched::Text { matches: sink.matches, lines: sink.lines, digest })
    }

    fn in_pieces(&mut self, file: &File, size: u64, keep: usize) -> io::Result<Searched> {
        let mut sink = Lines::new(&self.matcher, keep, self.with_lines.after_context());
        let searcher = if keep > 0 { &mut self.with_lines } else { &mut self.counting };
        searcher.set_binary_detection(BinaryDetection::quit(0));
        let searched = searcher.search_reader(&self.matcher, file, &mut sink);
        searcher.set_binary_detection(BinaryDetection::none());
        searched?;
        Ok(match sink.binary {
            true => Searched::Binary { occurs: sink.matches > 0, size },
            false => Searched::Text { matches: sink.matches, lines: sink.lines, digest: None },
        })
    }
}

/// Whether a byte order mark says UTF-16, in which NULs are ordinary. (UTF-32 begins with the same mark and a NUL.)
fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xfe\xff") || (bytes.starts_with(b"\xff\xfe") && !bytes.starts_with(b"\xff\xfe\0\0"))
}

/// Counts matching lines and keeps the first ones with their context.
struct Lines<'m> {
    matcher: &'m RegexMatcher,
    keep: usize,
    /// Lines around a match that are kept.
    context: u64,
    matches: usize,
    /// The number of the last match that was kept for its own sake.
    last: u64,
    lines: Vec<HitLine>,
    binary: bool,
}

impl<'m> Lines<'m> {
    fn new(matcher: &'m RegexMatcher, keep: usize, context: usize) -> Lines<'m> {
        Lines {
            matcher,
            keep,
            context: context as u64,
            matches: 0,
            last: 0,
            lines: Vec::new(),
            binary: false,
        }
    }

    /// Whether a line is still wanted: before the last match to keep, or as its context.
    fn wants(&self, number: u64) -> bool {
        self.matches < self.keep || (self.keep > 0 && number <= self.last + self.context)
    }

    fn push(&mut self, number: u64, line: &[u8], is_match: bool) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (at, end) = match line.len() <= SHOWN {
            true => (0, line.len()),
            false => self.window(line, is_match),
        };
        self.lines.push(HitLine { number, text: line[at..end].to_vec(), at, len: line.len(), is_match });
    }

    /// The part of a long line that is shown: around the match, cut between characters.
    fn window(&self, line: &[u8], is_match: bool) -> (usize, usize) {
        let found = if is_match { self.matcher.find(line).ok().flatten() } else { None };
        let from = found.map_or(0, |found| found.start().saturating_sub(SHOWN_BEFORE));
        let from = from.min(line.len() - SHOWN);
        let boundary = |mut at: usize| {
            while at > 0 && at < line.len() && line[at] & 0xc0 == 0x80 {
                at -= 1;
            }
            at
        };
        (boundary(from), boundary(from + SHOWN))
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        for (number, line) in (found.line_number().unwrap_or(0)..).zip(found.lines()) {
            if self.wants(number) {
                self.push(number, line, true);
            }
            if self.matches < self.keep {
                self.last = number;
            }
            self.matches += 1;
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let number = context.line_number().unwrap_or(0);
        if self.wants(number) {
            self.push(number, context.bytes(), false);
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}
