//! Points in time, there and back, and against a calendar that counts day by day.

use cotenant_model::Millis;
use proptest::prelude::*;

/// The end of the year 9999, in seconds.
const LAST: u64 = 253_402_300_799;

fn leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn month_len(year: u64, month: u64) -> u64 {
    match month {
        2 if leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[test]
fn each_day_of_four_centuries_follows_the_one_before() {
    let (mut year, mut month, mut day) = (1970, 1, 1);
    for number in 0..146_097u64 {
        let text = format!("{year:04}-{month:02}-{day:02}");
        let time = Millis(number * 86_400_000);
        assert_eq!(time.rfc3339(), format!("{text}T00:00:00Z"));
        assert_eq!(Millis::parse_rfc3339(&text), Some(time), "{text}");
        day += 1;
        if day > month_len(year, month) {
            (day, month) = (1, month + 1);
        }
        if month > 12 {
            (month, year) = (1, year + 1);
        }
    }
    assert_eq!((year, month, day), (2370, 1, 1), "the calendar repeats itself");
}

#[test]
fn a_day_that_its_month_has_not_is_no_day() {
    for text in [
        "2026-02-29",
        "2026-02-30",
        "2024-02-30",
        "2100-02-29",
        "2026-04-31",
        "2026-00-10",
        "2026-01-00",
        "2026-06-31T10:00:00Z",
    ] {
        assert_eq!(Millis::parse_rfc3339(text), None, "{text}");
    }
    for text in ["2024-02-29", "2000-02-29", "2026-12-31"] {
        assert!(Millis::parse_rfc3339(text).is_some(), "{text}");
    }
}

#[test]
fn what_is_no_time_is_none() {
    for text in [
        "2026-11-30T12:00:00+24:00",
        "2026-11-30T12:00:00+01:60",
        "2026-11-30T12:00:00+1:00",
        "2026-11-30T12:00:00++1:00",
        "2026-11-30T12:00:00+01000",
        "2026-11-30T12:00:00Zz",
        "2026-11-30T12:00:00.5",
        "2026-11-30T12:00:00.Z",
        "2026-11-30T12:00:00..5Z",
        "2026-11-30T12:00:005Z",
        "2026-11-30T12:60:00Z",
        "2026-11-30T12:00:61Z",
        "2026/11/30",
        "2026-11-3",
        "+026-11-30",
        "2026-+1-30",
        "2026-11-30T+2:00:00Z",
        "1969-12-31",
        "1970-01-01T00:00:00+00:01",
        " 2026-11-30",
        "2026-11-30 ",
        "２０２６-11-30",
    ] {
        assert_eq!(Millis::parse_rfc3339(text), None, "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn there_and_back(seconds in 0..=LAST, ms in 0u64..1000) {
        let time = Millis(seconds * 1000 + ms);
        let text = time.rfc3339();
        prop_assert_eq!(text.len(), 20);
        prop_assert_eq!(Millis::parse_rfc3339(&text), Some(Millis(seconds * 1000)), "{}", text);
    }

    /// A zone moves the clock, not the moment.
    #[test]
    fn a_zone_is_taken_off(seconds in 100_000..LAST - 100_000, hours in 0i64..24, minutes in 0i64..60, east in any::<bool>(), colon in any::<bool>(), fraction in "(\\.[0-9]{1,9})?") {
        let offset = (hours * 3600 + minutes * 60) * if east { 1 } else { -1 };
        let local = Millis(seconds.checked_add_signed(offset).unwrap() * 1000).rfc3339();
        let sign = if east { '+' } else { '-' };
        let between = if colon { ":" } else { "" };
        let text = format!("{}{fraction}{sign}{hours:02}{between}{minutes:02}", local.trim_end_matches('Z'));
        prop_assert_eq!(Millis::parse_rfc3339(&text), Some(Millis(seconds * 1000)), "{}", text);
    }

    #[test]
    fn later_is_greater(a in 0..LAST, b in 0..LAST) {
        let text = |seconds: u64| Millis(seconds * 1000).rfc3339();
        prop_assert_eq!(a.cmp(&b), text(a).cmp(&text(b)), "the text sorts as the time does");
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,30}") {
        let _ = Millis::parse_rfc3339(&text);
    }

    #[test]
    fn spans_are_never_said_longer_than_they_are(ms in any::<u64>()) {
        let said = Millis(ms).to_string();
        let (number, unit) = said.split_once(' ').unwrap();
        let second = match unit {
            "s" => 1,
            "min" => 60,
            "h" => 3600,
            "days" => 86_400,
            other => return Err(TestCaseError::fail(other.to_owned())),
        };
        let least = number.parse::<u64>().unwrap() * second;
        prop_assert!(least <= ms / 1000 && ms / 1000 < least + second, "{} of {} ms", said, ms);
        prop_assert!(number != "1" || unit == "s", "never one of something: {}", said);
    }

    #[test]
    fn sums_and_differences_agree(from in any::<u64>(), ms in any::<u64>()) {
        let later = Millis(from).plus(ms);
        prop_assert_eq!(later.since(Millis(from)), ms.min(u64::MAX - from));
        prop_assert_eq!(Millis(from).since(later), 0);
    }
}
