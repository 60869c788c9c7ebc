//! Bytes that are shared and never change: of a file, or of the text of a link's target.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::Digest;

/// The bytes of an image, shared between plan, approval, commit and store. Their digest is taken once, when it is first
/// asked for, and can be that of no other bytes.
#[derive(Clone, Default)]
pub struct Content(Arc<Shared>);

#[derive(Default)]
struct Shared {
    bytes: Vec<u8>,
    digest: OnceLock<Digest>,
}

impl Content {
    /// The digest of the bytes.
    pub fn digest(&self) -> Digest {
        *self.0.digest.get_or_init(|| Digest::of(&self.0.bytes))
    }
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<T: Into<Vec<u8>>> From<T> for Content {
    fn from(bytes: T) -> Content {
        Content(Arc::new(Shared { bytes: bytes.into(), digest: OnceLock::new() }))
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Content) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self[..] == other[..]
    }
}

impl Eq for Content {}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_bytes_however_they_came() {
        let came: [Content; 5] = [
            b"abc"[..].into(),
            b"abc".into(),
            "abc".into(),
            vec![b'a', b'b', b'c'].into(),
            "abc".to_owned().into(),
        ];
        for content in came {
            assert_eq!((content.digest(), &content[..]), (Digest::of(b"abc"), &b"abc"[..]));
            assert_eq!(content.clone().digest(), Digest::of(b"abc"));
        }
        assert_eq!(Content::default().digest(), Digest::of(b""));
    }

    #[test]
    fn equal_means_equal_bytes() {
        let one = Content::from("abc");
        assert_eq!(one, one.clone());
        assert_eq!(one, Content::from("abc"));
        assert_ne!(one, Content::from("abd"));
        assert_eq!(format!("{:?}", Content::from("a")), "[97]");
    }
}
