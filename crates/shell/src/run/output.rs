//! What a command writes, kept in bounded memory: the beginning, the end, and between them a file.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::request::OutputLimits;
use crate::sys::Deadline;

/// Which of its two streams a command wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

/// How much was written, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of standard output.
    pub output: u64,
    /// Bytes of standard error.
    pub errors: u64,
}

impl Counts {
    /// Both together.
    pub fn total(self) -> u64 {
        self.output + self.errors
    }
}

/// The beginning and the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes; empty where the head is everything.
    pub tail: Vec<u8>,
    /// Bytes between them.
    pub omitted: u64,
    /// How much there is in all, so far.
    pub counts: Counts,
}

/// Bytes of one stream, in the order of arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where in the whole they begin.
    pub offset: u64,
    /// The stream; `None` where the two alternated more often than is noted.
    pub stream: Option<Stream>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Changes of stream that are noted; a program that alternates more often is not told apart beyond them.
const NOTED: usize = 1 << 16;

/// A command's output, while it runs and afterwards. Both streams stand in one sequence, in the order in which they
/// arrived.
#[derive(Debug)]
pub struct Output {
    limits: OutputLimits,
    scratch: PathBuf,
    kept: Mutex<Kept>,
    grown: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    counts: Counts,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Everything up to `spilled` bytes, once the head is full.
    file: Option<File>,
    spilled: u64,
    /// No more goes to the disk: its limit is reached, or it failed.
    full: bool,
    /// Where a stretch of one stream begins.
    marks: Vec<(u64, Option<Stream>)>,
    closed: bool,
}

impl Output {
    pub(crate) fn new(limits: OutputLimits, scratch: PathBuf) -> Output {
        Output { limits, scratch, kept: Mutex::default(), grown: Condvar::new() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what has just arrived.
    pub(crate) fn push(&self, stream: Stream, bytes: &[u8]) {
        let mut kept = self.kept();
        let start = kept.counts.total();
        kept.mark(start, stream);
        match stream {
            Stream::Output => kept.counts.output += bytes.len() as u64,
            Stream::Errors => kept.counts.errors += bytes.len() as u64,
        }
        let room = self.limits.memory.saturating_sub(kept.head.len()).min(bytes.len());
        kept.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        if !rest.is_empty() {
            kept.spill(rest, self.limits.disk, &self.scratch);
            kept.keep_end(rest, self.limits.memory);
        }
        drop(kept);
        self.grown.notify_all();
    }

    /// Nothing more comes.
    pub(crate) fn close(&self) {
        self.kept().closed = true;
        self.grown.notify_all();
    }

    /// Bytes written so far.
    pub fn len(&self) -> u64 {
        self.kept().counts.total()
    }

    /// Whether nothing was written so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes written so far, by stream.
    pub fn counts(&self) -> Counts {
        self.kept().counts
    }

    /// At most `head` bytes of the beginning and `tail` bytes of the end; all of it where that is no more.
    pub fn snapshot(&self, head: usize, tail: usize) -> Snapshot {
        let kept = self.kept();
        let total = kept.counts.total();
        let whole = total <= (head as u64).saturating_add(tail as u64);
        let want_head = if whole { total } else { head as u64 };
        let begin = kept.read(0, usize::try_from(want_head).unwrap_or(usize::MAX));
        let left = total - begin.len() as u64;
        let from = total - left.min(tail as u64).min(kept.tail_or_file(total));
        let end = if left == 0 { Vec::new() } else { kept.read(from, tail) };
        let omitted = left - end.len() as u64;
        Snapshot { head: begin, tail: end, omitted, counts: kept.counts }
    }

    /// At most `length` bytes from `offset` on. Fewer, down to none, where there are no more, or where what follows was
    /// not kept ([`Output::gap`]).
    pub fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        self.kept().read(offset, length)
    }

    /// The same, told apart by stream.
    pub fn pieces(&self, offset: u64, length: usize) -> Vec<Piece> {
        let kept = self.kept();
        let bytes = kept.read(offset, length);
        let end = offset + bytes.len() as u64;
        let mut pieces = Vec::new();
        for (index, (start, stream)) in kept.marks.iter().enumerate() {
            let next = kept.marks.get(index + 1).map_or(u64::MAX, |mark| mark.0);
            let (from, to) = ((*start).max(offset), next.min(end));
            if from < to {
                let range = (from - offset) as usize..(to - offset) as usize;
                pieces.push(Piece { offset: from, stream: *stream, bytes: bytes[range].to_vec() });
            }
        }
        pieces
    }

    /// The stretch that was not kept: past the limit of the disk, before what memory holds of the end. `None` where
    /// everything is there.
    pub fn gap(&self) -> Option<(u64, u64)> {
        let kept = self.kept();
        let total = kept.counts.total();
        let (start, end) = (kept.spilled.max(kept.head.len() as u64), total - kept.tail.len() as u64);
        (start < end).then_some((start, end))
    }

    /// Waits until there is more than `offset` bytes, or nothing more comes; false where the time was up first.
    pub fn wait_beyond(&self, offset: u64, up_to: Duration) -> bool {
        let deadline = Deadline::after(up_to);
        let mut kept = self.kept();
        while kept.counts.total() <= offset && !kept.closed {
            let left = deadline.left();
            if left.is_zero() {
                return false;
            }
            kept = self.grown.wait_timeout(kept, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Kept {
    /// Notes that `stream` writes at `start`.
    fn mark(&mut self, start: u64, stream: Stream) {
        let last = self.marks.last().copied();
        if last.is_some_and(|(_, noted)| noted == Some(stream) || noted.is_none()) {
            return;
        }
        let stream = (self.marks.len() < NOTED).then_some(stream);
        self.marks.push((start, stream));
    }

    /// Writes to the file what is still within its limit; it begins with what memory holds already.
    fn spill(&mut self, bytes: &[u8], limit: u64, scratch: &std::path::Path) {
        if self.full {
            return;
        }
        if self.file.is_none() {
            self.file = unnamed(scratch).ok();
            let head = self.head.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
            let written = self.file.as_ref().map(|file| file.write_all_at(&self.head[..head], 0));
            self.full = !matches!(written, Some(Ok(())));
            self.spilled = if self.full { 0 } else { head as u64 };
        }
        let room = usize::try_from(limit.saturating_sub(self.spilled)).unwrap_or(usize::MAX).min(bytes.len());
        let Some(file) = self.file.as_ref().filter(|_| !self.full) else { return };
        match file.write_all_at(&bytes[..room], self.spilled) {
            Ok(()) => {
                self.spilled += room as u64;
                self.full = room < bytes.len();
            }
            // A full disk: what is there stays readable, the end is kept in memory.
            Err(_) => self.full = true,
        }
    }

    fn keep_end(&mut self, bytes: &[u8], limit: usize) {
        let last = &bytes[bytes.len().saturating_sub(limit)..];
        let excess = (self.tail.len() + last.len()).saturating_sub(limit);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(last);
    }

    /// How much of the end can be read without a gap.
    fn tail_or_file(&self, total: u64) -> u64 {
        let reached = self.spilled.max(self.head.len() as u64);
        if reached + self.tail.len() as u64 >= total { total } else { self.tail.len() as u64 }
    }

    /// Reads on from `offset` for as long as the bytes are there.
    fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let got = self.read_once(offset + bytes.len() as u64, length - bytes.len());
            if got.is_empty() {
                break;
            }
            bytes.extend_from_slice(&got);
        }
        bytes
    }

    /// From the first of the three places that has the byte at `offset`.
    fn read_once(&self, offset: u64, length: usize) -> Vec<u8> {
        let total = self.counts.total();
        if let Some(head) =
            usize::try_from(offset).ok().and_then(|at| self.head.get(at..)).filter(|h| !h.is_empty())
        {
            return head[..head.len().min(length)].to_vec();
        }
        let tail_at = total - self.tail.len() as u64;
        if offset >= tail_at && offset < total {
            let at = (offset - tail_at) as usize;
            return self.tail.range(at..).take(length).copied().collect();
        }
        if offset >= self.spilled {
            return Vec::new();
        }
        let here = usize::try_from(self.spilled - offset).unwrap_or(usize::MAX).min(length).min(1 << 20);
        let mut bytes = vec![0; here];
        let read = self.file.as_ref().map_or(0, |file| file.read_at(&mut bytes, offset).unwrap_or(0));
        bytes.truncate(read);
        bytes
    }
}

/// A file without a name, gone with its descriptor.
fn unnamed(scratch: &std::path::Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    if let Ok(fd) = rustix::fs::open(scratch, flags, Mode::from_raw_mode(0o600)) {
        return Ok(File::from(fd));
    }
    let name = scratch.join(format!("output-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&name)?;
    std::fs::remove_file(&name)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn output(memory: usize, disk: u64) -> Output {
        Output::new(OutputLimits { memory, disk }, std::env::temp_dir())
    }

    #[test]
    fn a_little_is_all_head() {
        let output = output(100, 1000);
        output.push(Stream::Output, b"one\n");
        output.push(Stream::Errors, b"two\n");
        let shown = output.snapshot(100, 100);
        assert_eq!((shown.head.as_slice(), shown.tail.as_slice()), (&b"one\ntwo\n"[..], &b""[..]));
        assert_eq!((shown.omitted, shown.counts), (0, Counts { output: 4, errors: 4 }));
    }

    #[test]
    fn streams_are_told_apart_in_the_order_of_arrival() {
        let output = output(4, 1000);
        for (stream, text) in
            [(Stream::Output, "aa"), (Stream::Errors, "bb"), (Stream::Errors, "cc"), (Stream::Output, "dd")]
        {
            output.push(stream, text.as_bytes());
        }
        let pieces = output.pieces(1, 100);
        let shown: Vec<_> =
            pieces.iter().map(|p| (p.offset, p.stream, std::str::from_utf8(&p.bytes).unwrap())).collect();
        let (out, err) = (Some(Stream::Output), Some(Stream::Errors));
        assert_eq!(shown, [(1, out, "a"), (2, err, "bbcc"), (6, out, "dd")]);
    }

    #[test]
    fn past_the_disk_only_the_end_is_kept_and_the_gap_is_named() {
        let output = output(4, 8);
        output.push(Stream::Output, b"0123456789abcdefghij");
        assert_eq!(output.gap(), Some((8, 16)));
        assert_eq!(output.read(0, 100), b"01234567");
        assert_eq!(output.read(8, 100), b"");
        assert_eq!(output.read(16, 100), b"ghij");
        let shown = output.snapshot(6, 6);
        assert_eq!((shown.head.as_slice(), shown.tail.as_slice()), (&b"012345"[..], &b"ghij"[..]));
        assert_eq!(shown.omitted, 10);
    }

    #[test]
    fn more_streams_than_are_noted_are_not_told_apart() {
        let output = output(16, 1 << 20);
        for _ in 0..NOTED {
            output.push(Stream::Output, b"o");
            output.push(Stream::Errors, b"e");
        }
        let noted = output.kept().marks.len();
        assert_eq!(noted, NOTED + 1);
        assert_eq!(output.pieces(2 * NOTED as u64 - 2, 9).last().unwrap().stream, None);
        assert_eq!(output.counts(), Counts { output: NOTED as u64, errors: NOTED as u64 });
    }

    #[test]
    fn a_disk_that_cannot_be_written_leaves_head_and_tail() {
        let output = Output::new(OutputLimits { memory: 4, disk: 100 }, "/nonexistent".into());
        output.push(Stream::Output, b"0123456789");
        assert_eq!(output.gap(), Some((4, 6)));
        assert_eq!((output.read(0, 9), output.read(6, 9)), (b"0123".to_vec(), b"6789".to_vec()));
    }

    #[test]
    fn waiting_ends_with_more_with_the_end_and_with_the_time() {
        let output = output(4, 8);
        assert!(!output.wait_beyond(0, Duration::ZERO));
        output.push(Stream::Output, b"x");
        assert!(output.wait_beyond(0, Duration::from_secs(60)));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| output.wait_beyond(1, Duration::from_secs(60)));
            output.close();
            assert!(waiting.join().unwrap());
        });
    }

    proptest! {
        #[test]
        fn what_can_be_read_is_what_was_written(
            chunks in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)), 0..20),
            memory in 0usize..30, disk in 0u64..60, offset in 0u64..200, length in 0usize..200,
            head in 0usize..50, tail in 0usize..50,
        ) {
            let output = output(memory, disk);
            let mut all = Vec::new();
            for (errors, bytes) in &chunks {
                output.push(if *errors { Stream::Errors } else { Stream::Output }, bytes);
                all.extend_from_slice(bytes);
            }
            prop_assert_eq!(output.len(), all.len() as u64);
            let read = output.read(offset, length);
            let from = (offset as usize).min(all.len());
            prop_assert!(all[from..].starts_with(&read));
            let joined: Vec<u8> = output.pieces(offset, length).into_iter().flat_map(|p| p.bytes).collect();
            prop_assert_eq!(&joined, &read);
            let in_gap = output.gap().is_some_and(|(start, end)| (start..end).contains(&offset));
            prop_assert_eq!(read.is_empty(), length == 0 || from == all.len() || in_gap);
            let shown = output.snapshot(head, tail);
            prop_assert!(all.starts_with(&shown.head) && all.ends_with(&shown.tail));
            prop_assert!(shown.head.len() + shown.tail.len() <= head + tail);
            prop_assert_eq!(shown.head.len() as u64 + shown.omitted + shown.tail.len() as u64, all.len() as u64);
        }
    }

    /// What is kept, kept plainly: every byte, and of each whether it is still there.
    struct Plain {
        all: Vec<(u8, Stream)>,
        kept: Vec<bool>,
    }

    impl Plain {
        fn new(chunks: &[(bool, Vec<u8>)], memory: usize, disk: usize) -> Plain {
            let stream = |errors: bool| if errors { Stream::Errors } else { Stream::Output };
            let all: Vec<(u8, Stream)> = chunks
                .iter()
                .flat_map(|(errors, bytes)| bytes.iter().map(|byte| (*byte, stream(*errors))))
                .collect();
            let total = all.len();
            // The head and as much of the end in memory, and the first on disk.
            let kept = (0..total).map(|at| at < memory.max(disk) || at + memory >= total).collect();
            Plain { all, kept }
        }

        fn read(&self, offset: usize, length: usize) -> Vec<u8> {
            let from = (offset.min(self.all.len()))..self.all.len();
            from.take(length).take_while(|at| self.kept[*at]).map(|at| self.all[at].0).collect()
        }

        fn gap(&self) -> Option<(u64, u64)> {
            let lost: Vec<u64> = (0..self.all.len() as u64).filter(|at| !self.kept[*at as usize]).collect();
            Some((*lost.first()?, *lost.last()? + 1))
        }

        fn pieces(&self, offset: usize, length: usize) -> Vec<Piece> {
            let mut pieces: Vec<Piece> = Vec::new();
            for at in offset..offset + self.read(offset, length).len() {
                let (byte, stream) = self.all[at];
                match pieces.last_mut().filter(|piece| piece.stream == Some(stream)) {
                    Some(piece) => piece.bytes.push(byte),
                    None => pieces.push(Piece { offset: at as u64, stream: Some(stream), bytes: vec![byte] }),
                }
            }
            pieces
        }

        fn snapshot(&self, head: usize, tail: usize) -> (Vec<u8>, Vec<u8>) {
            let total = self.all.len();
            let begin = self.read(0, if total <= head + tail { total } else { head });
            let room = tail.min(total - begin.len());
            let end = (0..total).rev().take(room).take_while(|at| self.kept[*at]).count();
            (begin, self.read(total - end, end))
        }
    }

    proptest! {
        #[test]
        fn it_keeps_what_a_plain_list_keeps(
            chunks in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 1..40)), 0..20),
            memory in 0usize..30, disk in 0usize..90, asked in prop::collection::vec((0usize..200, 0usize..200), 8),
        ) {
            let output = output(memory, disk as u64);
            for (errors, bytes) in &chunks {
                output.push(if *errors { Stream::Errors } else { Stream::Output }, bytes);
            }
            let plain = Plain::new(&chunks, memory, disk);
            prop_assert_eq!(output.gap(), plain.gap());
            let errors = plain.all.iter().filter(|(_, stream)| *stream == Stream::Errors).count() as u64;
            let counts = Counts { output: plain.all.len() as u64 - errors, errors };
            prop_assert_eq!(output.counts(), counts);
            for (one, other) in asked {
                prop_assert_eq!(output.read(one as u64, other), plain.read(one, other));
                prop_assert_eq!(output.pieces(one as u64, other), plain.pieces(one, other));
                let shown = output.snapshot(one % 60, other % 60);
                let (head, tail) = plain.snapshot(one % 60, other % 60);
                let omitted = (plain.all.len() - head.len() - tail.len()) as u64;
                prop_assert_eq!(shown, Snapshot { head, tail, omitted, counts });
            }
            let total = output.len();
            prop_assert!(!output.wait_beyond(total, Duration::ZERO));
            prop_assert!(total == 0 || output.wait_beyond(total - 1, Duration::from_secs(60)));
            output.close();
            prop_assert!(output.wait_beyond(total + 1, Duration::from_secs(60)));
        }
    }
}
