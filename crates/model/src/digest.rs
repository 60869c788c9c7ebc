//! Content identity: BLAKE3, 32 bytes in memory and in the ledger, 16 hex digits on the wire.

use std::fmt;

/// The BLAKE3 hash of a file's raw bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(*blake3::hash(bytes).as_bytes())
    }

    /// The digest of everything `feed` hands over, for content that is never in memory at once.
    pub fn stream<E>(feed: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<(), E>) -> Result<Digest, E> {
        let mut hasher = blake3::Hasher::new();
        feed(&mut |chunk| {
            hasher.update(chunk);
        })?;
        Ok(Digest(*hasher.finalize().as_bytes()))
    }

    /// The 32 bytes, as the ledger stores them.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// From 32 stored bytes; `None` for any other length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Digest> {
        bytes.try_into().ok().map(Digest)
    }

    /// All 64 hex digits: the name of a blob.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether `wire`, the 16 hex digits a client sends back (or more of them), names this digest.
    pub fn matches(&self, wire: &str) -> bool {
        wire.len() >= 16 && self.hex().starts_with(&wire.to_ascii_lowercase())
    }
}

/// The wire form: the first 16 hex digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_is_a_prefix_that_matches() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.hex(), "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
        assert_eq!(digest.to_string(), "6437b3ac38465133");
        assert!(digest.matches(&digest.to_string()));
        assert!(digest.matches(&digest.hex().to_uppercase()));
        assert!(!digest.matches("6437b3ac384651"), "fewer digits prove too little");
        assert!(!digest.matches("6437b3ac38465134"));
    }

    #[test]
    fn a_stream_has_the_digest_of_the_whole() {
        let whole = Digest::stream::<()>(|sink| {
            sink(b"a");
            sink(b"bc");
            Ok(())
        });
        assert_eq!(whole, Ok(Digest::of(b"abc")));
        assert_eq!(Digest::from_bytes(Digest::of(b"x").as_bytes()), Some(Digest::of(b"x")));
        assert_eq!(Digest::from_bytes(b"short"), None);
    }
}
