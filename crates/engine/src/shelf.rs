//! The bytes that sessions were shown, by digest and within a bound: what an edit on a changed file is compared with.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use cotenant_model::{Content, Digest};

/// A cache of file contents, the oldest out first. An image that is gone costs a re-read, never correctness: without it
/// a changed file counts as changed everywhere.
#[derive(Debug)]
pub struct Shelf {
    /// Bytes at most, over all images.
    room: usize,
    /// The largest image that is kept.
    largest: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    images: HashMap<Digest, Content>,
    order: VecDeque<Digest>,
    bytes: usize,
}

impl Shelf {
    /// A shelf of `room` bytes; an image may take a quarter of it.
    pub fn new(room: usize) -> Shelf {
        Shelf { room, largest: room / 4, kept: Mutex::default() }
    }

    /// Keeps an image, and lets the oldest go until it fits.
    pub fn put(&self, digest: Digest, bytes: &Content) {
        if bytes.len() > self.largest {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.images.contains_key(&digest) {
            return;
        }
        while kept.bytes + bytes.len() > self.room {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some(gone) = kept.images.remove(&oldest) {
                kept.bytes -= gone.len();
            }
        }
        kept.bytes += bytes.len();
        kept.order.push_back(digest);
        kept.images.insert(digest, bytes.clone());
    }

    /// The image of that digest, if it is still here.
    pub fn get(&self, digest: Digest) -> Option<Content> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).images.get(&digest).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(byte: u8, len: usize) -> (Digest, Content) {
        let bytes = Content::from(vec![byte; len]);
        (bytes.digest(), bytes)
    }

    #[test]
    fn the_oldest_goes_when_room_is_short() {
        let shelf = Shelf::new(100);
        let images: Vec<_> = (0..5).map(|byte| image(byte, 25)).collect();
        for (digest, bytes) in &images {
            shelf.put(*digest, bytes);
            shelf.put(*digest, bytes);
        }
        assert_eq!(shelf.get(images[0].0), None);
        assert!(images[1..].iter().all(|(digest, bytes)| shelf.get(*digest).as_ref() == Some(bytes)));
    }

    #[test]
    fn an_image_too_large_displaces_nothing() {
        let shelf = Shelf::new(100);
        let (small, bytes) = image(1, 10);
        shelf.put(small, &bytes);
        let (large, huge) = image(2, 26);
        shelf.put(large, &huge);
        assert_eq!(shelf.get(large), None);
        assert!(shelf.get(small).is_some());
    }
}
