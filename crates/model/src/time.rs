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

    /// From RFC 3339 with a zone (`2026-11-30T15:44:02Z`, `…+01:00`), a fraction of a second ignored, or a bare date
    /// (midnight UTC); `None` for anything else and for years before 1970.
    pub fn parse_rfc3339(text: &str) -> Option<Millis> {
        // `parse` alone would take a sign.
        let number = |range: std::ops::Range<usize>| {
            text.get(range)
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?
                .parse::<u64>()
                .ok()
        };
        let shape = |at: usize, ch: &[u8]| text.as_bytes().get(at).is_some_and(|byte| ch.contains(byte));
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        if !shape(4, b"-")
            || !shape(7, b"-")
            || year < 1970
            || !(1..=12).contains(&month)
            || !(1..=31).contains(&day)
        {
            return None;
        }
        let number_of_day = days(year, month, day);
        if civil(number_of_day) != (year, month, day) {
            return None;
        }
        let midnight = number_of_day * 86_400;
        if text.len() == 10 {
            return Some(Millis(midnight * 1000));
        }
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        if !shape(10, b"Tt ")
            || !shape(13, b":")
            || !shape(16, b":")
            || hour > 23
            || minute > 59
            || second > 60
        {
            return None;
        }
        let mut zone = text.get(19..)?;
        if let Some(fraction) = zone.strip_prefix('.') {
            zone = fraction.trim_start_matches(|ch: char| ch.is_ascii_digit());
            if zone.len() == fraction.len() {
                return None;
            }
        }
        let seconds = (midnight + hour * 3600 + minute * 60 + second).checked_add_signed(-offset(zone)?)?;
        Some(Millis(seconds * 1000))
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

/// (year, month, day) to days since 1970-01-01: the inverse of [`civil`], H. Hinnant's `days_from_civil`.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Seconds east of UTC of `Z`, `+01:00`, `-0130`.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = zone.split_at_checked(1)?;
    let sign = match sign {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let digits: String = rest.chars().filter(|ch| *ch != ':').collect();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = (digits.get(..2)?.parse::<i64>().ok()?, digits.get(2..4)?.parse::<i64>().ok()?);
    (digits.len() == 4 && hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
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
    fn times_are_read_back_and_nonsense_is_not() {
        for seconds in (0..5_000_000_000u64).step_by(7_654_321) {
            let time = Millis(seconds * 1000);
            assert_eq!(Millis::parse_rfc3339(&time.rfc3339()), Some(time));
        }
        let noon = Millis::parse_rfc3339("2026-11-30T12:00:00Z");
        for same in ["2026-11-30T13:00:00+01:00", "2026-11-30t10:30:00.123-0130", "2026-11-30 12:00:00z"] {
            assert_eq!(Millis::parse_rfc3339(same), noon, "{same}");
        }
        assert_eq!(Millis::parse_rfc3339("1970-01-02"), Some(Millis(86_400_000)));
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-11-30T25:00:00Z",
            "2026-11-30T12:00",
            "2026-11-30T12:00:00",
            "é026-11-30",
        ] {
            assert_eq!(Millis::parse_rfc3339(text), None, "{text}");
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
