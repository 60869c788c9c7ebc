//! Any bytes, as they are and behind the beginning of a patch of this grammar (envelope): every one is answered.
#![no_main]

use cotenant_text::patch::parse_bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let behind = [b"*** Begin Patch\n*** Update File: f\n".as_slice(), input].concat();
    for patch in [input, &behind] {
        if let Err(refused) = parse_bytes(patch, &Default::default()) {
            assert!(refused.line > 0 && refused.seen.len() <= 80);
        }
    }
});
