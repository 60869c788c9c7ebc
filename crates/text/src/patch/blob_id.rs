//! The id that git gives a content: SHA-1 over a header and the bytes. It is only used to recognise a version, as git does,
//! never as protection against somebody who forges one.

/// A git object id.
pub type BlobId = [u8; 20];

/// The id of a content that does not exist.
const NOTHING: BlobId = [0; 20];

/// The id of a file with this content.
pub(crate) fn of(content: &[u8]) -> BlobId {
    let header = format!("blob {}\0", content.len());
    let mut hash = Sha1::default();
    hash.update(header.as_bytes());
    hash.update(content);
    hash.finish()
}

/// Both ids of an `index` header, where they are given in full; all zeros stand for no file.
pub(super) fn pair(value: &[u8]) -> (Option<BlobId>, Option<BlobId>) {
    let ids = value.split(|b| *b == b' ').next().unwrap_or_default();
    let Some(dots) = memchr::memmem::find(ids, b"..") else {
        return (None, None);
    };
    let known = |text: &[u8]| parse(text).filter(|id| *id != NOTHING);
    (known(&ids[..dots]), known(&ids[dots + 2..]))
}

fn parse(text: &[u8]) -> Option<BlobId> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes: Option<Vec<u8>> =
        text.chunks(2).map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect();
    bytes?.try_into().ok()
}

/// SHA-1 (FIPS 180-4) over bytes that come piece by piece.
struct Sha1 {
    state: [u32; 5],
    block: Vec<u8>,
    length: u64,
}

impl Default for Sha1 {
    fn default() -> Sha1 {
        let state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
        Sha1 { state, block: Vec::with_capacity(64), length: 0 }
    }
}

impl Sha1 {
    fn update(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if !self.block.is_empty() {
            let (head, rest) = bytes.split_at(bytes.len().min(64 - self.block.len()));
            self.block.extend_from_slice(head);
            bytes = rest;
            if self.block.len() < 64 {
                return;
            }
            let block = std::mem::take(&mut self.block);
            self.mix(&block);
        }
        let mut blocks = bytes.chunks_exact(64);
        blocks.by_ref().for_each(|block| self.mix(block));
        self.block.extend_from_slice(blocks.remainder());
    }

    fn finish(mut self) -> BlobId {
        let bits = self.length * 8;
        let zeros = 63 - (self.block.len() + 8) % 64;
        let mut tail = vec![0x80];
        tail.resize(1 + zeros, 0);
        tail.extend(bits.to_be_bytes());
        self.update(&tail);
        let mut id = NOTHING;
        id.chunks_exact_mut(4)
            .zip(self.state)
            .for_each(|(part, word)| part.copy_from_slice(&word.to_be_bytes()));
        id
    }

    /// Takes up one block of 64 bytes.
    fn mix(&mut self, block: &[u8]) {
        let mut words = [0u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        }
        for at in 16..80 {
            words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = self.state;
        for (at, word) in words.into_iter().enumerate() {
            let (f, k) = match at {
                0..20 => ((b & c) | (!b & d), 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let next = [a.rotate_left(5), f, e, k, word].into_iter().fold(0u32, u32::wrapping_add);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (sum, word) in self.state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Sha1, of, pair};

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn known_digests() {
        let digest = |text: &[u8]| {
            let mut hash = Sha1::default();
            hash.update(text);
            hex(&hash.finish())
        };
        assert_eq!(digest(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(digest(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(digest(long), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(digest(&vec![b'a'; 1_000_000]), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }

    #[test]
    fn pieces_of_any_length_give_the_same() {
        let text: Vec<u8> = (0..300u32).map(|n| n.to_le_bytes()[0]).collect();
        let mut whole = Sha1::default();
        whole.update(&text);
        let whole = hex(&whole.finish());
        for length in 1..130 {
            let mut hash = Sha1::default();
            text.chunks(length).for_each(|piece| hash.update(piece));
            assert_eq!(hex(&hash.finish()), whole, "{length}");
        }
    }

    #[test]
    fn ids_are_those_of_git() {
        assert_eq!(hex(&of(b"")), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(hex(&of(b"hello\n")), "ce013625030ba8dba906f756967f9e9ca394464a");
    }

    #[test]
    fn only_full_ids_of_files_are_read() {
        let (empty, zeros) = ("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "0".repeat(40));
        let read = |text: String| pair(text.as_bytes());
        assert_eq!(read(format!("{zeros}..{empty} 100644")), (None, Some(of(b""))));
        assert_eq!(read(format!("{empty}..{zeros}")), (Some(of(b"")), None));
        for other in [
            format!("{}..{}", &empty[..7], &empty[..9]),
            "x".to_owned(),
            format!("{empty}0..{empty}g"),
            "..".to_owned(),
        ] {
            assert_eq!(read(other.clone()), (None, None), "{other}");
        }
    }
}
