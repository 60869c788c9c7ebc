//! Durations: how long a command has run, and when its time is up.

use std::time::{Duration, Instant};

use rustix::event::Timespec;

/// A point in time that later ones are measured from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(Instant);

impl Moment {
    /// Now.
    pub(crate) fn now() -> Moment {
        Moment(Instant::now())
    }

    /// Time since then.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Milliseconds since then.
    pub(crate) fn ms(self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A point in time that is waited for; one too far away to be counted never comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// So long from now.
    pub(crate) fn after(time: Duration) -> Deadline {
        Deadline(Instant::now().checked_add(time))
    }

    /// Time left; zero once it has come.
    pub(crate) fn left(self) -> Duration {
        self.0.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether it has come.
    pub(crate) fn passed(self) -> bool {
        self.left().is_zero()
    }

    /// The time left as `poll` takes it; at most a day, after which the caller looks again.
    pub(crate) fn timespec(self) -> Timespec {
        let left = self.left().min(Duration::from_secs(86_400));
        Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(0), tv_nsec: left.subsec_nanos().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_comes_once_and_one_beyond_counting_never() {
        assert!(Deadline::after(Duration::ZERO).passed());
        assert!(!Deadline::after(Duration::from_secs(3600)).passed());
        let never = Deadline::after(Duration::MAX);
        assert!(!never.passed());
        assert_eq!(never.timespec().tv_sec, 86_400);
    }

    #[test]
    fn time_does_not_run_backwards() {
        let start = Moment::now();
        assert!(start.elapsed() <= start.elapsed());
        assert!(start.ms() <= start.ms());
    }
}
