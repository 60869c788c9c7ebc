//! Between stored bytes and UTF-8: decoding piece by piece (so that every piece knows its raw length) and strict encoding.

use encoding_rs::{Decoder, DecoderResult, EncoderResult};

use crate::form::Encoding;

/// A character that the file's encoding cannot store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unmappable {
    /// The character.
    pub(crate) ch: char,
    /// Its byte offset in the text that was to be stored.
    pub(crate) at: usize,
}

/// One decoded unit of UTF-16 or UTF-32.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WideChar {
    /// The character; `None` for a lone surrogate, a number beyond Unicode or a cut unit at the end.
    pub(crate) ch: Option<char>,
    /// The lone surrogate, where it is one.
    pub(crate) surrogate: Option<u16>,
    /// Raw bytes it takes.
    pub(crate) len: usize,
}

/// The characters of UTF-16 or UTF-32 bytes, BOM excluded.
pub(crate) fn wide_chars(bytes: &[u8], encoding: Encoding) -> impl Iterator<Item = WideChar> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|r| !r.is_empty())?;
        let found =
            if encoding.unit() == 2 { next_utf16(rest, encoding) } else { next_utf32(rest, encoding) };
        at += found.len;
        Some(found)
    })
}

fn next_utf16(rest: &[u8], encoding: Encoding) -> WideChar {
    let unit = |at: usize| {
        let pair = [*rest.get(at)?, *rest.get(at + 1)?];
        Some(if encoding == Encoding::Utf16Le { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) })
    };
    let Some(first) = unit(0) else {
        return WideChar { ch: None, surrogate: None, len: rest.len() };
    };
    if let Some(ch) = char::from_u32(u32::from(first)) {
        return WideChar { ch: Some(ch), surrogate: None, len: 2 };
    }
    match (first, unit(2)) {
        (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
            let number = 0x10000 + ((u32::from(first) - 0xd800) << 10) + (u32::from(low) - 0xdc00);
            WideChar { ch: char::from_u32(number), surrogate: None, len: 4 }
        }
        _ => WideChar { ch: None, surrogate: Some(first), len: 2 },
    }
}

fn next_utf32(rest: &[u8], encoding: Encoding) -> WideChar {
    let Some(quad) = rest.first_chunk::<4>() else {
        return WideChar { ch: None, surrogate: None, len: rest.len() };
    };
    let number =
        if encoding == Encoding::Utf32Le { u32::from_le_bytes(*quad) } else { u32::from_be_bytes(*quad) };
    let surrogate = u16::try_from(number).ok().filter(|n| (0xd800..0xe000).contains(n));
    WideChar { ch: char::from_u32(number), surrogate, len: 4 }
}

/// Byte offset of the first sequence of `bytes` that has no meaning in `encoding`.
pub(crate) fn first_undecodable(bytes: &[u8], encoding: &'static encoding_rs::Encoding) -> Option<u64> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut sink = [0u8; 4096];
    let mut read = 0;
    loop {
        let (result, taken, _) = decoder.decode_to_utf8_without_replacement(&bytes[read..], &mut sink, true);
        read += taken;
        match result {
            DecoderResult::InputEmpty => return None,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(bad, after) => {
                return Some(read.saturating_sub(usize::from(bad) + usize::from(after)) as u64);
            }
        }
    }
}

/// Decodes a legacy encoding one character at a time.
pub(crate) struct Legacy {
    decoder: Decoder,
    sink: [u8; 32],
}

impl Legacy {
    pub(crate) fn new(encoding: &'static encoding_rs::Encoding) -> Legacy {
        Legacy { decoder: encoding.new_decoder_without_bom_handling(), sink: [0; 32] }
    }

    /// The UTF-8 of the character at the start of `bytes` and its raw length; `None` where there is none. Must begin at a character.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Option<(&[u8], usize)> {
        for (index, byte) in bytes.iter().take(4).enumerate() {
            let (result, _, written) =
                self.decoder.decode_to_utf8_without_replacement(&[*byte], &mut self.sink, false);
            match result {
                DecoderResult::Malformed(..) | DecoderResult::OutputFull => break,
                DecoderResult::InputEmpty if written > 0 => return Some((&self.sink[..written], index + 1)),
                DecoderResult::InputEmpty => {}
            }
        }
        self.decoder = self.decoder.encoding().new_decoder_without_bom_handling();
        None
    }
}

/// The bytes of `text` in `encoding`, without BOM. Strict: what would not read back as the same character is refused.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Result<Vec<u8>, Unmappable> {
    match encoding {
        Encoding::Utf8 => Ok(text.as_bytes().to_vec()),
        Encoding::UnknownAscii => match text.char_indices().find(|(_, c)| !c.is_ascii()) {
            Some((at, ch)) => Err(Unmappable { ch, at }),
            None => Ok(text.as_bytes().to_vec()),
        },
        Encoding::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        Encoding::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        Encoding::Utf32Le => Ok(text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect()),
        Encoding::Utf32Be => Ok(text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect()),
        Encoding::Legacy(e) => encode_legacy(text, e),
    }
}

fn encode_legacy(text: &str, encoding: &'static encoding_rs::Encoding) -> Result<Vec<u8>, Unmappable> {
    let mut out = Vec::with_capacity(text.len());
    let mut utf8 = [0u8; 4];
    let mut legacy = [0u8; 16];
    for (at, ch) in text.char_indices() {
        if ch.is_ascii() {
            out.push(ch as u8);
            continue;
        }
        let source: &str = ch.encode_utf8(&mut utf8);
        let (result, _, written) =
            encoding.new_encoder().encode_from_utf8_without_replacement(source, &mut legacy, true);
        let stored = &legacy[..written];
        // Some encoders map look-alikes (a yen sign to a backslash); that would be a silent change of the text.
        let same = || {
            encoding
                .decode_without_bom_handling_and_without_replacement(stored)
                .is_some_and(|back| back == source)
        };
        if result != EncoderResult::InputEmpty || !same() {
            return Err(Unmappable { ch, at });
        }
        out.extend_from_slice(stored);
    }
    Ok(out)
}
