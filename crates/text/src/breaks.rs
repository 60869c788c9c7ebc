//! Line breaks in raw bytes of any encoding: where lines begin, without decoding them.

use memchr::{memchr, memchr_iter, memrchr};

use crate::form::{Encoding, Form};

/// How an LF is stored: one byte, or one aligned unit of UTF-16 or UTF-32. All offsets count from the end of the BOM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Breaks {
    lf: &'static [u8],
}

impl Breaks {
    pub(crate) fn of(form: &Form) -> Breaks {
        let lf: &[u8] = match form.encoding {
            Encoding::Utf16Le => b"\n\0",
            Encoding::Utf16Be => b"\0\n",
            Encoding::Utf32Le => b"\n\0\0\0",
            Encoding::Utf32Be => b"\0\0\0\n",
            Encoding::Utf8 | Encoding::UnknownAscii | Encoding::Legacy(_) => b"\n",
        };
        Breaks { lf }
    }

    /// The start of the line that holds offset `at`.
    pub(crate) fn start_of_line(self, bytes: &[u8], at: usize) -> usize {
        let unit = self.lf.len();
        if unit == 1 {
            return memrchr(b'\n', &bytes[..at]).map_or(0, |lf| lf + 1);
        }
        let whole = at - at % unit;
        bytes[..whole]
            .rchunks_exact(unit)
            .position(|part| part == self.lf)
            .map_or(0, |back| whole - back * unit)
    }

    /// The start of the first line that begins after offset `at` (at least one break later); the end if there is none.
    pub(crate) fn next_line(self, bytes: &[u8], at: usize) -> usize {
        let unit = self.lf.len();
        if unit == 1 {
            return memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |lf| at + lf + 1);
        }
        let whole = at.next_multiple_of(unit).min(bytes.len());
        bytes[whole..]
            .chunks_exact(unit)
            .position(|part| part == self.lf)
            .map_or(bytes.len(), |n| whole + (n + 1) * unit)
    }

    /// Number of breaks.
    pub(crate) fn count(self, bytes: &[u8]) -> usize {
        match self.lf.len() {
            1 => memchr_iter(b'\n', bytes).count(),
            unit => bytes.chunks_exact(unit).filter(|part| *part == self.lf).count(),
        }
    }

    /// The lines with their breaks; joined they are `bytes` again.
    pub(crate) fn split(self, bytes: &[u8]) -> Vec<&[u8]> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let next = self.next_line(bytes, at);
            out.push(&bytes[at..next]);
            at = next;
        }
        out
    }
}
