//! A file and a patch, parted by the first NUL byte: whatever lands changes nothing outside of the lines that it reports.
#![no_main]

use cotenant_text::patch::{apply, parse_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let at = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let (raw, patch) = (&input[..at], input.get(at + 1..).unwrap_or_default());
    let (Ok(form), Ok(patch)) = (cotenant_text::detect(raw, None), parse_bytes(patch, &Default::default())) else {
        return;
    };
    for file in &patch.files {
        match apply(raw, &form, &file.hunks, &[]) {
            Ok(applied) => {
                let first = applied.landed.iter().map(|landed| landed.old.0).min().unwrap_or(1);
                let kept: Vec<u8> = raw.split_inclusive(|b| *b == b'\n').take(first - 1).collect::<Vec<_>>().concat();
                let lone = raw.iter().zip(raw.iter().skip(1)).any(|(a, b)| *a == b'\r' && *b != b'\n');
                assert!(lone || raw.ends_with(b"\r") || !raw.ends_with(b"\n") || applied.bytes.starts_with(&kept));
            }
            Err(misfit) => assert_eq!(misfit.misses.len() + misfit.fit, file.hunks.len()),
        }
    }
});
