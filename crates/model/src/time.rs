//! Points in time as values: nothing below the daemon reads a clock.

use std::fmt;

/// Milliseconds. On the wall-clock scale it counts from the Unix epoch; for deadlines it counts from any fixed
/// origin. Which of the two a field uses is said where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Millis {
    /// `self + ms`, saturating.
    pub fn plus(self, ms: u64) -> Millis {
        Millis(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to `self`; 0 if `earlier` is later.
    pub fn since(self, earlier: Millis) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// RFC 3339 in UTC with whole seconds (`2026-11-30T15:44:02Z`), `self` being on the wall-clock scale.
    pub fn rfc3339(self) -> String {
        let seconds = self.0 / 1000;
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = civil(days);
        format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
    }
}

/// A span of milliseconds as people say it: `12 s`, `6 min`, `3 h`, `2 days`.
impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1000;
        match seconds {
            0..120 => write!(f, "{seconds} s"),
            120..7200 => write!(f, "{} min", seconds / 60),
            7200..172_800 => write!(f, "{} h", seconds / 3600),
            _ => write!(f, "{} days", seconds / 86_400),
        }
    }
}

/// Days since 1970-01-01 to (year, month, day) of the proleptic Gregorian calendar; the shift to years that begin in
/// March is H. Hinnant's `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_at_the_edges_of_months_and_leap_years() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_796_053_442, "2026-11-30T15:44:02Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Millis(seconds * 1000).rfc3339(), text);
        }
    }

    #[test]
    fn spans_are_said_in_one_unit() {
        for (ms, text) in
            [(0, "0 s"), (119_000, "119 s"), (120_000, "2 min"), (7_200_000, "2 h"), (259_200_000, "3 days")]
        {
            assert_eq!(Millis(ms).to_string(), text);
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Millis(u64::MAX).plus(1), Millis(u64::MAX));
        assert_eq!(Millis(1).since(Millis(2)), 0);
    }
}
