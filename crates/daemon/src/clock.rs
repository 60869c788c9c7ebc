//! The two clocks. Everything below the daemon is given their values.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cotenant_model::Millis;

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The wall clock, in milliseconds since the Unix epoch.
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A clock that nobody can set, for deadlines: milliseconds since this process first asked.
pub fn monotonic() -> Millis {
    Millis(u64::try_from(ORIGIN.elapsed().as_millis()).unwrap_or(u64::MAX))
}
