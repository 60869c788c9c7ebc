//! Time as the engine gets it: from the daemon in the product, from a test's hand in tests.

use cotenant_model::Millis;

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// Wall clock, since the Unix epoch: for records that people read.
    fn wall(&self) -> Millis;
    /// A clock that never steps and counts suspend: for deadlines. Its origin means nothing.
    fn steady(&self) -> Millis;
}
