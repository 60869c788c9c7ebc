//! Random numbers from a seed that is printed, so that a failing run can be repeated.

/// A small generator (splitmix64); not for secrets.
#[derive(Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// From `COTENANT_SEED`, else from the clock. The seed is printed: a failing test shows it.
    pub fn thrown() -> Dice {
        let seed =
            std::env::var("COTENANT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
                u64::try_from(now.as_nanos() & u128::from(u64::MAX)).unwrap()
            });
        eprintln!("COTENANT_SEED={seed}");
        Dice::seeded(seed)
    }

    /// From a given seed.
    pub fn seeded(seed: u64) -> Dice {
        Dice { state: seed }
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
