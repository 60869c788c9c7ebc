//! Random (file, edit) pairs over encodings, BOMs, endings and final newlines, against a model that is too simple to be wrong.
//! `COTENANT_EDIT_PAIRS` sets how many (default 2,000); `COTENANT_EDIT_SEED` repeats a run, the seed of a failure is printed.

use std::env;

use cotenant_text::{
    Cause, EditError, EditSpec, Encoding, Eol, Form, Tolerance, View, apply, changed_regions, clip, compose,
    detect, merge3, properties, shown, unified, visible, window,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::kit::assert_outside_untouched;

/// Runs `check` on values of `strategy`; a failure prints the seed.
pub(crate) fn for_all<S: Strategy>(
    strategy: S,
    share: u32,
    check: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = u32::try_from(number("COTENANT_EDIT_PAIRS").unwrap_or(2000)).unwrap() / share;
    let seed = number("COTENANT_EDIT_SEED").unwrap_or_else(|| u64::from(std::process::id()) * 7919);
    println!("COTENANT_EDIT_SEED={seed} cases={cases}");
    let config =
        Config { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
    if let Err(failure) = TestRunner::new(config).run(&strategy, check) {
        panic!("COTENANT_EDIT_SEED={seed}: {failure}");
    }
}

/// Label (empty: undeclared UTF-8 with bytes that are no text), BOM or not, the characters of its files.
const KINDS: [(&str, bool, &str); 15] = [
    ("utf-8", false, "ab \t{}é“✓𝄞\r"),
    ("utf-8", true, "ab \té\r"),
    ("utf-16le", true, "ab \té中𝄞\r"),
    ("utf-16be", true, "ab é中𝄞"),
    ("utf-16le", false, "ab é中𝄞"),
    ("utf-16be", false, "ab\u{a0a}\u{a00}\u{a0d}"),
    ("utf-32le", true, "ab é𝄞\r"),
    ("utf-32be", false, "ab é𝄞"),
    ("gbk", false, "ab\\|中文乗"),
    ("gb18030", false, "ab09中文é𝄞"),
    ("shift_jis", false, "ab\\|表ソｱ能"),
    ("euc-kr", false, "ab한글\r"),
    ("big5", false, "ab\\|中功許"),
    ("windows-1252", false, "ab é€ß\r"),
    ("", false, "ab \u{e000}\u{e043}\u{e069}\u{e07f}é"),
];

/// A file and an edit as the model sees them: units are characters, or a CRLF.
#[derive(Debug, Clone)]
struct Pair {
    kind: usize,
    units: Vec<String>,
    start: usize,
    len: usize,
    new: String,
}

fn pair() -> impl Strategy<Value = Pair> {
    let unit = prop_oneof![6 => (0usize..16).prop_map(Some), 2 => Just(None)];
    (
        0..KINDS.len(),
        0..3u8,
        prop::collection::vec((unit.clone(), any::<bool>()), 1..24),
        0..24usize,
        1..8usize,
        prop::collection::vec(unit, 0..8),
    )
        .prop_map(|(kind, endings, units, start, len, new)| {
            let pool: Vec<char> = KINDS[kind].2.chars().collect();
            let ending = |flip: bool| match endings {
                0 => "\n",
                1 => "\r\n",
                _ if flip => "\n",
                _ => "\r\n",
            };
            let text: String = units
                .iter()
                .map(|(unit, flip)| {
                    unit.map_or(ending(*flip).to_owned(), |n| pool[n % pool.len()].to_string())
                })
                .collect();
            let plain = |ch: &char| !KINDS[kind].0.is_empty() || ch.is_ascii();
            let own: Vec<char> = pool.iter().copied().filter(plain).chain("x".chars()).collect();
            let new = new.iter().map(|unit| unit.map_or('\n', |n| own[n % own.len()])).collect();
            let units = units_of(&text);
            let start = start % units.len();
            Pair { kind, len: len.min(units.len() - start), units, start, new }
        })
}

fn units_of(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for ch in text.chars() {
        match out.last_mut() {
            Some(last) if ch == '\n' && last == "\r" => last.push(ch),
            _ => out.push(ch.to_string()),
        }
    }
    out
}

/// The stored bytes of a text: by the crates' own tables where there are any, else by hand.
fn store(kind: usize, text: &str) -> Vec<u8> {
    match KINDS[kind].0 {
        "" => text
            .chars()
            .flat_map(|ch| match u32::from(ch) {
                odd @ 0xe000..0xe080 => vec![0x80 + (odd - 0xe000) as u8],
                _ => ch.to_string().into_bytes(),
            })
            .collect(),
        "utf-8" => text.as_bytes().to_vec(),
        "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        "utf-32le" => text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect(),
        "utf-32be" => text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect(),
        label => {
            let (bytes, _, lossy) = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap().encode(text);
            assert!(!lossy, "{label} has all of {text:?}");
            bytes.into_owned()
        }
    }
}

impl Pair {
    /// What opens the file: the BOM, or (where encoding is unknown) a byte that is never text.
    fn opening(&self) -> Vec<u8> {
        let (label, bom, _) = KINDS[self.kind];
        match label {
            "" => b"\xff#".to_vec(),
            _ if bom => Encoding::from_label(label).unwrap().bom().to_vec(),
            _ => Vec::new(),
        }
    }

    fn raw(&self) -> Vec<u8> {
        [self.opening(), store(self.kind, &self.units.concat())].concat()
    }

    fn form(&self, raw: &[u8]) -> Form {
        let label = KINDS[self.kind].0;
        let declared = if matches!(label, "" | "utf-8") { None } else { Encoding::from_label(label) };
        detect(raw, declared).expect("text")
    }

    /// Raw bytes before and after the target.
    fn around(&self) -> (Vec<u8>, Vec<u8>) {
        let before = store(self.kind, &self.units[..self.start].concat());
        ([self.opening(), before].concat(), store(self.kind, &self.units[self.start + self.len..].concat()))
    }

    fn old(&self) -> String {
        self.units[self.start..self.start + self.len]
            .iter()
            .map(|u| if u == "\r\n" { "\n" } else { u.as_str() })
            .collect()
    }

    /// Old text that cannot be sent as such: a stored byte without a character, or a lone CR before a break.
    fn is_unsendable(&self) -> bool {
        let odd =
            |text: &str| text.contains("\r\n") || text.chars().any(|c| ('\u{e000}'..'\u{e080}').contains(&c));
        odd(&self.old()) || odd(&self.new) || self.old() == self.new
    }

    /// Places where old text stands, overlapping ones too, by units.
    fn occurrences(&self) -> usize {
        let bytes = |units: &[String]| -> Vec<u8> {
            let text: String = units.iter().map(|u| if u == "\r\n" { "\n" } else { u.as_str() }).collect();
            if KINDS[self.kind].0.is_empty() { store(self.kind, &text) } else { text.into_bytes() }
        };
        let (all, old) = (bytes(&self.units), bytes(&self.units[self.start..self.start + self.len]));
        (0..all.len()).filter(|at| all[*at..].starts_with(&old)).count()
    }
}

fn to_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Decodes what was stored between two offsets, with LF breaks.
fn read(raw: &[u8], form: &Form) -> String {
    let bare = Form { bom: false, ..*form };
    String::from_utf8(View::new(raw, &bare).as_bytes().to_vec()).expect("characters")
}

#[test]
fn an_edit_changes_nothing_outside_its_span() {
    for_all(pair(), 1, |pair| {
        if pair.is_unsendable() {
            return Ok(());
        }
        let raw = pair.raw();
        let form = pair.form(&raw);
        let (old, new) = (pair.old(), pair.new.clone());
        let spec = EditSpec { old: &old, new: &new, replace_all: false, line: None };
        match (apply(&raw, &form, &[spec], &Tolerance::default()), pair.occurrences()) {
            (Ok(edited), 1) => {
                assert_outside_untouched(&raw, &edited);
                let (before, after) = pair.around();
                prop_assert!(edited.bytes.starts_with(&before), "before");
                prop_assert!(edited.bytes.ends_with(&after), "after");
                let middle = &edited.bytes[before.len()..edited.bytes.len() - after.len()];
                prop_assert_eq!(read(middle, &form), to_lf(&new));
                prop_assert!(breaks_fit(&read_raw(middle, &form), &form), "{:?} in {:?}", middle, form);
            }
            (Err(EditError::Ambiguous { .. }), 2..) => {}
            (Err(EditError::NotFound { miss, .. }), _) => {
                // Only the doubt of an unknown encoding may refuse what stands there.
                let (before, _) = pair.around();
                prop_assert!(KINDS[pair.kind].0.is_empty() && miss.cause == Cause::Encoding, "{:?}", miss);
                prop_assert!(pair.occurrences() > 0 && before.last().is_some_and(|b| *b >= 0x80));
            }
            (other, count) => return Err(TestCaseError::fail(format!("{count} occurrences, {other:?}"))),
        }
        Ok(())
    });
}

/// The text with its breaks as stored.
fn read_raw(raw: &[u8], form: &Form) -> String {
    let view = View::new(raw, &Form { bom: false, ..*form });
    (1..=view.line_count())
        .map(|n| format!("{}{}", shown(view.line(n).unwrap()), view.ending(n).map_or("", |b| b.as_str())))
        .collect()
}

/// In a file of one kind of break, new breaks are of that kind.
fn breaks_fit(text: &str, form: &Form) -> bool {
    let (all, crlf) = (text.matches('\n').count(), text.matches("\r\n").count());
    match form.eol {
        Eol::None | Eol::Lf => {
            crlf == 0 || text.contains("\r\r") || form.majority == cotenant_text::Break::Crlf
        }
        Eol::Crlf => crlf == all,
        Eol::Mixed => true,
    }
}

#[test]
fn several_edits_and_replace_all_equal_plain_string_replacement() {
    for_all((pair(), "[ab]{1,2}", "[abx\n]{0,3}", any::<bool>()), 3, |(pair, from, to, all)| {
        let raw = pair.raw();
        let form = pair.form(&raw);
        let text = pair.units.concat();
        if KINDS[pair.kind].0.is_empty() || text.contains("\r\r\n") || pair.is_unsendable() || from == to {
            return Ok(());
        }
        let old = pair.old();
        let first = EditSpec { old: &old, new: &pair.new, replace_all: false, line: None };
        let second = EditSpec { old: &from, new: &to, replace_all: all, line: None };
        let step = to_lf(&text).replacen(&old, &pair.new, 1);
        let count = step.matches(&from).count();
        match apply(&raw, &form, &[first, second], &Tolerance::default()) {
            Ok(edited) => {
                assert_outside_untouched(&raw, &edited);
                // A lone CR of new text may meet a break of the file; then both readings are right.
                let expected = step.replace(&from, &to);
                if !step.contains("\r\n") && !expected.contains("\r\n") {
                    let end = read(&edited.bytes[form.bom_len()..], &form);
                    prop_assert_eq!(end, expected);
                    prop_assert_eq!(edited.counts, vec![1, count]);
                }
            }
            Err(EditError::Ambiguous { item: 0, .. }) => prop_assert!(pair.occurrences() > 1),
            Err(EditError::Ambiguous { item: 1, .. }) => prop_assert!(!all && step.contains(&from)),
            Err(EditError::NotFound { item: 1, .. }) => prop_assert!(count == 0 || step.contains("\r\n")),
            Err(EditError::Same { .. }) => {}
            Err(other) => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
        Ok(())
    });
}

#[test]
fn view_offsets_lead_to_raw_offsets_and_back() {
    for_all(pair(), 3, |pair| {
        let raw = pair.raw();
        let form = pair.form(&raw);
        let view = View::new(&raw, &form);
        let mut last = None;
        for at in 0..=view.as_bytes().len() {
            let Some(offset) = view.raw_at(at) else { continue };
            prop_assert!(last < Some(offset), "rising");
            prop_assert_eq!(view.view_at(offset), at);
            last = Some(offset);
        }
        prop_assert_eq!(last, Some(raw.len()));
        let text = read_raw(&raw[form.bom_len()..], &form);
        if !KINDS[pair.kind].0.is_empty() {
            prop_assert_eq!(text, pair.units.concat());
        }
        Ok(())
    });
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::collection::vec(
        prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), Just(b'\t'), 0x20u8..0x7f, any::<u8>()],
        0..60,
    );
    let mark = prop_oneof![4 => Just(&b""[..]), 1 => Just(&b"\xef\xbb\xbf"[..]), 1 => Just(&b"\xff\xfe"[..]), 1 => Just(&b"\xfe\xff"[..]), 1 => Just(&b"\xff\xfe\0\0"[..])];
    (mark, text).prop_map(|(mark, text)| [mark, &text].concat())
}

#[test]
fn no_bytes_make_it_panic() {
    let labels = [
        "",
        "utf-8",
        "utf-16le",
        "utf-32be",
        "gbk",
        "gb18030",
        "shift_jis",
        "big5",
        "euc-jp",
        "windows-1252",
    ];
    let texts = (bytes(), bytes(), bytes(), "\\PC{0,12}", "[ -~\t\n|]{0,12}", 0..labels.len());
    for_all(texts, 3, |(a, b, c, old, new, label)| {
        let declared = Encoding::from_label(labels[label]);
        let (Ok(form), Ok(other)) = (detect(&a, declared), detect(&b, declared)) else { return Ok(()) };
        let view = View::new(&a, &form);
        let _ = (
            window(&view, 1, 9, 50),
            clip(&a, 7),
            visible(&a),
            compose(&old, Some(&form), &Default::default()),
        );
        let part = view.line(2).map(|line| shown(line).into_owned()).unwrap_or_default();
        let tolerance = Tolerance { trailing_space: true, punctuation: true, indent: true };
        for old in [&old, &new, &part, &format!("  {part}\n"), &part.replace('\t', "    ")] {
            for line in [None, Some(2)] {
                let spec = EditSpec { old, new: &new, replace_all: false, line };
                if let Ok(edited) = apply(&a, &form, &[spec], &tolerance) {
                    assert_outside_untouched(&a, &edited);
                }
            }
        }
        let diff = unified(&a, &form, &b, &other, 2);
        prop_assert!(diff.render(300, true).len() <= 700, "one long line at most");
        prop_assert!(a != b || diff.hunks.is_empty());
        let _ = (changed_regions(&a, &form, &b, &other), merge3(&a, &b, &c));
        let _ = properties(&[("", &shown(&a))], &old);
        Ok(())
    });
}

#[test]
fn a_diff_leads_from_the_old_lines_to_the_new() {
    let file = || {
        prop::collection::vec(
            prop_oneof![Just("a\n"), Just("b\n"), Just("b\r\n"), Just("é\n"), Just("\n")],
            0..30,
        )
    };
    for_all((file(), file(), any::<bool>(), 0..4usize), 3, |(old, new, ends, context)| {
        let old = old.concat().into_bytes();
        let new = format!("{}{}", new.concat(), if ends { "" } else { "end" }).into_bytes();
        let (old_form, new_form) = (detect(&old, None).unwrap(), detect(&new, None).unwrap());
        let diff = unified(&old, &old_form, &new, &new_form, context);
        prop_assert_eq!(patched(&old, &diff), new.clone());
        let regions = changed_regions(&old, &old_form, &new, &new_form);
        prop_assert_eq!(regions.is_empty(), old == new);
        let (added, removed) = diff.stat();
        prop_assert_eq!(regions.iter().map(|r| r.new.len()).sum::<usize>(), added);
        prop_assert_eq!(regions.iter().map(|r| r.old.len()).sum::<usize>(), removed);
        Ok(())
    });
}

/// The old lines with the hunks applied, by their numbers alone.
fn patched(old: &[u8], diff: &cotenant_text::Diff) -> Vec<u8> {
    let lines: Vec<&[u8]> = old.split_inclusive(|b| *b == b'\n').collect();
    let (mut out, mut at) = (Vec::new(), 0);
    for hunk in &diff.hunks {
        let start = if hunk.old_len == 0 { hunk.old_start } else { hunk.old_start - 1 };
        out.extend(lines[at..start].concat());
        assert_eq!(
            hunk.new_start,
            out.split_inclusive(|b| *b == b'\n').count() + usize::from(hunk.new_len > 0)
        );
        for line in hunk.lines.iter().filter(|line| line.tag != cotenant_text::Tag::Old) {
            out.extend_from_slice(&line.text);
            out.extend_from_slice(line.ending.map_or("", |b| b.as_str()).as_bytes());
        }
        at = start + hunk.old_len;
    }
    out.extend(lines[at..].concat());
    out
}

#[test]
fn a_merge_takes_what_each_side_did_apart() {
    // Per line of the base: 0 and 3 untouched, 1 changed by us, 2 by them; each change is one line or a deletion or two lines.
    let plan = prop::collection::vec((0..8u8, 0..3usize), 1..20);
    for_all(plan, 3, |plan| {
        let base: Vec<String> = (0..plan.len()).map(|n| format!("line {n}\n")).collect();
        let side = |who: u8| -> Vec<String> {
            let changed = |n: usize, lines: usize| -> String {
                (0..lines).map(|k| format!("{who} {n} {k}\n")).collect()
            };
            plan.iter()
                .enumerate()
                .map(|(n, (by, lines))| if *by == who { changed(n, *lines) } else { base[n].clone() })
                .collect()
        };
        let (ours, theirs) = (side(1), side(2));
        let expected: String =
            (0..base.len()).map(|n| if ours[n] != base[n] { &*ours[n] } else { &*theirs[n] }).collect();
        let touching = plan.windows(2).any(|pair| matches!((pair[0].0, pair[1].0), (1, 2) | (2, 1)));
        match merge3(base.concat().as_bytes(), ours.concat().as_bytes(), theirs.concat().as_bytes()) {
            Ok(merged) => prop_assert_eq!(String::from_utf8(merged).unwrap(), expected),
            Err(conflict) => {
                prop_assert!(touching, "{:?}", conflict);
                let clash = &conflict.clashes[0];
                prop_assert_eq!(
                    ours.concat().split_inclusive('\n').collect::<Vec<_>>()
                        [clash.ours.start - 1..clash.ours.end - 1]
                        .concat()
                        .into_bytes(),
                    clash.our_bytes.clone()
                );
            }
        }
        if !touching {
            prop_assert!(
                merge3(base.concat().as_bytes(), ours.concat().as_bytes(), theirs.concat().as_bytes())
                    .is_ok()
            );
        }
        Ok(())
    });
}
