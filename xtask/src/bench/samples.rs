//! Measurements of one thing, and what is quoted of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Measurements in order of size; the unit is the owner's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn new(mut values: Vec<f64>) -> Samples {
        values.sort_by(f64::total_cmp);
        Samples(values)
    }

    /// The value that `part` of all measurements do not exceed; not a number where there are none.
    fn quantile(&self, part: f64) -> f64 {
        let at = (self.0.len() as f64 * part) as usize;
        self.0.get(at.min(self.0.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn p50(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn p99(&self) -> f64 {
        self.quantile(0.99)
    }
}

/// Measurements by case and side, read from lines `CASE SIDE VALUE`; other lines are passed over.
pub(crate) fn read(text: &str) -> BTreeMap<(String, String), Samples> {
    let mut values: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for line in text.lines() {
        if let [case, side, value] = line.split(' ').collect::<Vec<_>>()[..]
            && let Ok(value) = value.parse()
        {
            values.entry((case.to_owned(), side.to_owned())).or_default().push(value);
        }
    }
    values.into_iter().map(|(key, values)| (key, Samples::new(values))).collect()
}

/// Runs the sides in turn, a different one first each time, `rounds` times, and gives the milliseconds of each.
pub(crate) fn in_turn<const N: usize>(
    rounds: usize,
    sides: [&mut dyn FnMut(usize) -> Duration; N],
) -> [Samples; N] {
    let mut taken: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0..=rounds {
        for turn in 0..N {
            let side = (round + turn) % N;
            let took = sides[side](round);
            // The first round warms caches.
            if round > 0 {
                taken[side].push(took.as_secs_f64() * 1e3);
            }
        }
    }
    taken.map(Samples::new)
}

/// How long something takes.
pub(crate) fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let result = act();
    (result, begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_end_are_found() {
        let samples = Samples::new((0..100).rev().map(f64::from).collect());
        assert_eq!((samples.p50(), samples.p99()), (50.0, 99.0));
        let one = Samples::new(vec![7.0]);
        assert_eq!((one.p50(), one.p99()), (7.0, 7.0));
        assert!(Samples::default().p50().is_nan());
    }

    #[test]
    fn lines_are_read_by_case_and_side() {
        let read = read("a ours 3\nnoise\na ours 1\na bare 9\na ours 2\nb ours x\n");
        assert_eq!(read.len(), 2);
        assert_eq!(read[&("a".to_owned(), "ours".to_owned())].p50(), 2.0);
    }

    #[test]
    fn every_side_takes_its_turn_and_the_first_round_does_not_count() {
        let (mut order, mut other) = (Vec::new(), 0);
        let [first, second] = in_turn(
            3,
            [
                &mut |round| {
                    order.push(round);
                    Duration::from_millis(2)
                },
                &mut |_| {
                    other += 1;
                    Duration::from_millis(4)
                },
            ],
        );
        assert_eq!((order.as_slice(), other), (&[0, 1, 2, 3][..], 4));
        assert_eq!((first.0.len(), first.p50(), second.p50()), (3, 2.0, 4.0));
    }
}
