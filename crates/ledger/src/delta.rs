//! An image said by what another one has of it: pieces copied from the base, and bytes in between.
//!
//! A format of our own, because an edit leaves nearly all of a file as it was and this says so in a few bytes, where a
//! compressor would keep a third of it; and because a hundred lines that are read backwards without trust are less to
//! weigh than a library in C.
//!
//! ```text
//! delta  = length of the image, pieces
//! piece  = length × 2, offset in the base     a copy
//!        | length × 2 + 1, that many bytes    an insertion
//! ```
//!
//! Numbers stand in groups of seven bits, the lowest first, the top bit set where more follow.

/// Bytes of a block: what is not this long in both images is never found to be common, but at their ends.
const BLOCK: usize = 32;
/// Blocks of a base that are remembered at most; of a larger one, every second, third, …
const BLOCKS: usize = 1 << 17;
/// What a byte that goes on counts in the rolling sum of a block.
const FACTOR: u32 = 0x01_00_01_93;

/// `image` as a delta on `base`, if that takes at most `most` bytes.
pub(crate) fn encode(base: &[u8], image: &[u8], most: usize) -> Option<Vec<u8>> {
    let head = common(base.iter(), image.iter());
    let (base_rest, rest) = (&base[head..], &image[head..]);
    let tail = common(base_rest.iter().rev(), rest.iter().rev());
    let mut delta = Delta { bytes: Vec::new(), most };
    delta.number(image.len());
    delta.copy(0, head);
    delta.middle(base, &rest[..rest.len() - tail])?;
    delta.copy(base.len() - tail, tail);
    (delta.bytes.len() <= most).then_some(delta.bytes)
}

/// How many bytes two runs have in common from their beginning.
fn common<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// The length of the image that a delta makes.
pub(crate) fn length(delta: &[u8]) -> Option<u64> {
    take_number(&mut &*delta).and_then(|length| u64::try_from(length).ok())
}

/// The image that `delta` makes of `base`; `None` where it is damaged or makes more than `most` bytes.
pub(crate) fn decode(base: &[u8], delta: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut rest = delta;
    let length = take_number(&mut rest).filter(|length| *length <= most)?;
    let mut image = Vec::with_capacity(length);
    while !rest.is_empty() {
        let piece = take_number(&mut rest)?;
        let bytes = if piece % 2 == 0 {
            let from = take_number(&mut rest)?;
            base.get(from..from.checked_add(piece / 2)?)?
        } else {
            let (bytes, more) = rest.split_at_checked(piece / 2)?;
            rest = more;
            bytes
        };
        if bytes.len() > length - image.len() {
            return None;
        }
        image.extend_from_slice(bytes);
    }
    (image.len() == length).then_some(image)
}

fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let mut number: usize = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        let group = usize::from(byte & 0x7f);
        // What would be shifted out is no number of ours.
        number |= group.checked_shl(shift).filter(|shifted| shifted >> shift == group)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A delta that is being written.
struct Delta {
    bytes: Vec<u8>,
    most: usize,
}

impl Delta {
    fn number(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn copy(&mut self, from: usize, length: usize) {
        if length > 0 {
            self.number(length * 2);
            self.number(from);
        }
    }

    /// `None` where it has become too long.
    fn insert(&mut self, bytes: &[u8]) -> Option<()> {
        if bytes.len() + self.bytes.len() > self.most {
            return None;
        }
        if !bytes.is_empty() {
            self.number(bytes.len() * 2 + 1);
            self.bytes.extend_from_slice(bytes);
        }
        Some(())
    }

    /// What stands between the common ends, with what is found of it anywhere in the base.
    fn middle(&mut self, base: &[u8], image: &[u8]) -> Option<()> {
        if image.len() < BLOCK {
            return self.insert(image);
        }
        let index = Index::of(base);
        let mut pending = 0;
        let mut at = 0;
        let mut sum = Sum::of(&image[..BLOCK]);
        loop {
            if at - pending > self.most {
                return None;
            }
            if let Some(found) = index.find(base, &image[at..at + BLOCK], sum) {
                let back = common(base[..found].iter().rev(), image[pending..at].iter().rev());
                let length = back + common(base[found..].iter(), image[at..].iter());
                self.insert(&image[pending..at - back])?;
                self.copy(found - back, length);
                at = at - back + length;
                pending = at;
                let Some(next) = image.get(at..at + BLOCK) else { break };
                sum = Sum::of(next);
                continue;
            }
            let Some(next) = image.get(at + BLOCK) else { break };
            sum = sum.roll(image[at], *next);
            at += 1;
        }
        self.insert(&image[pending..])
    }
}

/// A sum over a block that can be moved on by a byte.
#[derive(Clone, Copy)]
struct Sum(u32);

impl Sum {
    /// What the first byte of a block counts.
    const FIRST: u32 = FACTOR.wrapping_pow(BLOCK as u32 - 1);

    fn of(block: &[u8]) -> Sum {
        Sum(block.iter().fold(0, |sum: u32, byte| sum.wrapping_mul(FACTOR).wrapping_add(u32::from(*byte))))
    }

    fn roll(self, out: u8, next: u8) -> Sum {
        let rest = self.0.wrapping_sub(u32::from(out).wrapping_mul(Sum::FIRST));
        Sum(rest.wrapping_mul(FACTOR).wrapping_add(u32::from(next)))
    }
}

/// Where the blocks of a base stand, by their sums.
struct Index {
    /// Offsets + 1, 0 for none; a power of two of them.
    slots: Vec<u32>,
}

impl Index {
    fn of(base: &[u8]) -> Index {
        let blocks = base.len() / BLOCK;
        let step = blocks.div_ceil(BLOCKS).max(1);
        let mut index = Index { slots: vec![0; (blocks / step * 2).next_power_of_two().max(2)] };
        // From the end, so that of equal blocks the first is found: it has most behind it.
        for (number, block) in
            base.chunks_exact(BLOCK).enumerate().rev().filter(|(number, _)| number % step == 0)
        {
            let slot = index.slot(Sum::of(block));
            if let (Some(slot), Ok(offset)) = (index.slots.get_mut(slot), u32::try_from(number * BLOCK + 1)) {
                *slot = offset;
            }
        }
        index
    }

    fn slot(&self, sum: Sum) -> usize {
        // The upper bits of a product mix all of the sum.
        let mixed = u64::from(sum.0.wrapping_mul(0x9e37_79b1));
        ((mixed * self.slots.len() as u64) >> 32) as usize
    }

    fn find(&self, base: &[u8], block: &[u8], sum: Sum) -> Option<usize> {
        let offset = (*self.slots.get(self.slot(sum))? as usize).checked_sub(1)?;
        (base.get(offset..offset + BLOCK) == Some(block)).then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn there_and_back(base: &[u8], image: &[u8]) -> usize {
        let delta = encode(base, image, usize::MAX).unwrap();
        assert_eq!(decode(base, &delta, image.len()).as_deref(), Some(image));
        assert_eq!(length(&delta), Some(image.len() as u64));
        delta.len()
    }

    /// Bytes that repeat nowhere.
    fn noise(seed: u32, length: usize) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn a_small_edit_of_a_large_file_takes_a_few_bytes() {
        let base = noise(1, 1_000_000);
        let mut image = base.clone();
        image.splice(500_000..500_005, *b"ten bytes!");
        assert!(there_and_back(&base, &image) < 40);
        image.splice(10..20, []);
        image.extend_from_slice(b"at the end");
        assert!(there_and_back(&base, &image) < 80, "three places");
    }

    #[test]
    fn what_was_moved_is_found() {
        let base = noise(1, 100_000);
        let moved = [&base[60_000..], b"between", &base[..60_000]].concat();
        assert!(there_and_back(&base, &moved) < 100);
    }

    #[test]
    fn ends_and_extremes() {
        let some = noise(1, 1000);
        for (base, image) in [
            (&b""[..], &b""[..]),
            (b"", &some),
            (&some, b""),
            (&some, &some),
            (b"a", b"b"),
            (&some, &some[1..]),
        ] {
            there_and_back(base, image);
        }
        assert!(there_and_back(&[0; 100_000], &[0; 150_000]) < 40, "runs");
    }

    #[test]
    fn what_would_be_too_long_is_none() {
        let (base, image) = (noise(1, 50_000), noise(2, 50_000));
        assert_eq!(encode(&base, &image, 40_000), None);
        let whole = encode(&base, &image, 60_000).unwrap();
        assert_eq!(encode(&base, &image, whole.len()), Some(whole.clone()));
        assert_eq!(encode(&base, &image, whole.len() - 1), None);
    }

    #[test]
    fn a_damaged_delta_makes_nothing_rather_than_too_much() {
        // Lengths that overflow, copies from behind the end, too many bytes, too few, an endless number.
        for damaged in [
            &[][..],
            &[0x80],
            &[5, 10, 200, 1],
            &[2, 7, b'a', b'b', b'c'],
            &[4, 7, b'a', b'b', b'c'],
            &[1, 200],
            &[0xff; 12],
            &[3, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1],
        ] {
            assert_eq!(decode(b"base", damaged, 1000), None, "{damaged:?}");
        }
        let delta = encode(b"", &[1; 100], 1000).unwrap();
        assert_eq!(decode(b"", &delta, 99), None);
    }

    /// An image made of pieces of a base and of new bytes.
    fn related() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let piece = prop_oneof![
            4 => (any::<prop::sample::Index>(), 0_usize..400).prop_map(|(from, length)| Ok((from, length))),
            1 => prop::collection::vec(any::<u8>(), 0..60).prop_map(Err),
        ];
        (prop::collection::vec(0_u8..4, 0..3000), prop::collection::vec(piece, 0..12)).prop_map(
            |(base, pieces)| {
                let mut image = Vec::new();
                for piece in pieces {
                    match piece {
                        Ok((from, length)) if !base.is_empty() => {
                            let from = from.index(base.len());
                            image.extend_from_slice(&base[from..(from + length).min(base.len())]);
                        }
                        Ok(_) => {}
                        Err(bytes) => image.extend(bytes),
                    }
                }
                (base, image)
            },
        )
    }

    proptest! {
        #[test]
        fn every_image_comes_back((base, image) in related()) {
            let delta = encode(&base, &image, usize::MAX).unwrap();
            prop_assert_eq!(decode(&base, &delta, image.len()), Some(image.clone()));
            prop_assert!(delta.len() <= image.len() + 40);
        }

        #[test]
        fn no_bytes_are_a_delta_that_ends_the_process(
            base in prop::collection::vec(any::<u8>(), 0..100),
            delta in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            if let Some(image) = decode(&base, &delta, 5000) {
                prop_assert_eq!(length(&delta), Some(image.len() as u64));
            }
        }
    }
}
