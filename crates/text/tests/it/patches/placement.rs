//! The rule of placement against a naive model, and spoiled patches that may be refused but never be wrong.

use cotenant_text::patch::{Cause, apply, parse_bytes};
use cotenant_text::{Form, unified};
use proptest::prelude::*;

use super::generated::{hunks, patch_of};
use crate::kit::form;

/// Where a block stands among lines, from 1.
fn places(lines: &[&str], block: &[&str]) -> Vec<usize> {
    (0..=lines.len().saturating_sub(block.len()))
        .filter(|at| lines[*at..].starts_with(block))
        .map(|at| at + 1)
        .collect()
}

/// What the rule says of a block at a stated line.
fn ruled(places: &[usize], stated: usize) -> Result<usize, usize> {
    match places {
        [only] => Ok(*only),
        several if several.contains(&stated) => Ok(stated),
        several => Err(several.len()),
    }
}

const WORDS: [&str; 3] = ["a", "b", ""];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_hunk_goes_where_the_model_says(
        lines in prop::collection::vec(0usize..3, 1..14),
        block in prop::collection::vec(0usize..3, 1..4),
        stated in 0usize..16,
        ends in any::<bool>(),
    ) {
        let lines: Vec<&str> = lines.into_iter().map(|n| WORDS[n]).collect();
        let block: Vec<&str> = block.into_iter().map(|n| WORDS[n]).collect();
        // A last line without text and break is no line.
        let ends = ends || lines.last() == Some(&"");
        let raw = lines.join("\n") + if ends { "\n" } else { "" };
        let body: String = block.iter().map(|line| format!("-{line}\n")).collect();
        let patch = format!("--- a/f\n+++ b/f\n@@ -{stated},{} +{stated},1 @@\n{body}+NEW\n", block.len());
        let found = apply(raw.as_bytes(), &form(raw.as_bytes()), &hunks(patch.as_bytes()), &[]);
        match (ruled(&places(&lines, &block), stated), found) {
            (Ok(line), Ok(applied)) => {
                let mut wanted = lines.clone();
                wanted.splice(line - 1..line - 1 + block.len(), ["NEW"]);
                let wanted = wanted.join("\n") + if ends { "\n" } else { "" };
                prop_assert_eq!(String::from_utf8(applied.bytes).unwrap(), wanted);
                prop_assert_eq!(applied.landed[0].old, (line, block.len()));
            }
            (Err(0), Err(misfit)) => prop_assert!(matches!(misfit.misses[0].cause, Cause::Text(_)), "{:?}", misfit),
            (Err(count), Err(misfit)) => {
                prop_assert_eq!(misfit.misses[0].cause, Cause::Ambiguous);
                prop_assert_eq!(misfit.misses[0].candidates.len(), count);
            }
            (wanted, found) => prop_assert!(false, "{:?} but {:?}", wanted, found),
        }
    }
}

/// What is done to the lines of a patch; none of it changes what is meant.
#[derive(Clone, Copy, Debug)]
enum Spoil {
    Numbers,
    Counts,
    NoNumbers,
    DropContext,
    DoubleContext,
    AlterContext,
    AlterOld,
    Spaces,
    Tabs,
    TrailingSpace,
    LostSign,
    NoLastBreak,
    Crlf,
    EmptyLines,
}

const SPOILS: [Spoil; 14] = [
    Spoil::Numbers,
    Spoil::Counts,
    Spoil::NoNumbers,
    Spoil::DropContext,
    Spoil::DoubleContext,
    Spoil::AlterContext,
    Spoil::AlterOld,
    Spoil::Spaces,
    Spoil::Tabs,
    Spoil::TrailingSpace,
    Spoil::LostSign,
    Spoil::NoLastBreak,
    Spoil::Crlf,
    Spoil::EmptyLines,
];

/// Changes one line of those that begin with one of `signs`.
fn one_line(lines: &mut [String], signs: &str, pick: usize, change: impl Fn(&str) -> String) {
    let mut found: Vec<&mut String> =
        lines.iter_mut().skip(3).filter(|line| line.starts_with(|c| signs.contains(c))).collect();
    let count = found.len().max(1);
    if let Some(line) = found.get_mut(pick % count) {
        **line = change(line);
    }
}

fn spoiled(patch: &str, spoil: Spoil, pick: usize) -> String {
    let mut lines: Vec<String> = patch.lines().map(str::to_owned).collect();
    let contexts: Vec<usize> = (3..lines.len()).filter(|n| lines[*n].starts_with(' ')).collect();
    let context = contexts.get(pick % contexts.len().max(1)).copied();
    match spoil {
        Spoil::Numbers => lines[2] = format!("@@ -{pick},3 +{pick},3 @@"),
        Spoil::Counts => lines[2] = lines[2].replace(',', ",1"),
        Spoil::NoNumbers => lines[2] = "@@ @@".to_owned(),
        // The line beside an insertion says where it belongs, so only one further off is dropped.
        Spoil::DropContext => {
            if lines[3..].iter().take_while(|line| line.starts_with(' ')).count() > 1 {
                lines.remove(3);
            }
        }
        Spoil::DoubleContext => context.into_iter().for_each(|at| lines.insert(at, lines[at].clone())),
        Spoil::AlterContext => one_line(&mut lines, " ", pick, |line| line.replace("line", "lime")),
        Spoil::AlterOld => one_line(&mut lines, "-", pick, |line| line.replace("line", "lime")),
        Spoil::Spaces => lines.iter_mut().skip(3).for_each(|line| *line = line.replace('\t', "    ")),
        Spoil::Tabs => lines.iter_mut().skip(3).for_each(|line| {
            let (sign, text) = line.split_at(1);
            *line = format!("{sign}{}", text.replace("    ", "\t"));
        }),
        Spoil::TrailingSpace => one_line(&mut lines, " -", pick, |line| format!("{line}  ")),
        Spoil::LostSign => one_line(&mut lines, " ", pick, |line| line[1..].to_owned()),
        Spoil::NoLastBreak => return patch.trim_end_matches('\n').to_owned(),
        Spoil::Crlf => return patch.replace('\n', "\r\n"),
        Spoil::EmptyLines => lines.extend(["".to_owned(), "".to_owned()]),
    }
    lines.join("\n") + "\n"
}

/// Lines of which no two are alike, indented with tabs or spaces throughout.
fn distinct(count: usize, tabs: bool) -> Vec<String> {
    let indent = |n: usize| [["", "\t", "\t\t"], ["", "    ", "        "]][usize::from(!tabs)][n % 3];
    (0..count).map(|n| format!("{}line {n} of many;", indent(n))).collect()
}

fn bytes(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_spoiled_patch_is_right_or_refused_and_what_is_offered_is_right(
        count in 4usize..20,
        at in any::<prop::sample::Index>(),
        kind in 0u8..3,
        spoil in 0usize..SPOILS.len(),
        pick in 0usize..40,
        tabs in any::<bool>(),
        context in 1usize..4,
    ) {
        let old = distinct(count, tabs);
        let mut new = old.clone();
        let at = at.index(count);
        match kind {
            0 => new.insert(at, format!("{}added;", ["", if tabs { "\t" } else { "    " }][at % 2])),
            1 => new[at] = new[at].replace("of many", "changed"),
            _ => { new.remove(at); }
        }
        let (old, new) = (bytes(&old), bytes(&new));
        let patch = String::from_utf8(patch_of(&unified(&old, &form(&old), &new, &form(&new), context))).unwrap();
        let patch = spoiled(&patch, SPOILS[spoil], pick);
        match apply(&old, &form(&old), &hunks(patch.as_bytes()), &[]) {
            Ok(applied) => prop_assert_eq!(applied.bytes, new, "{}", patch),
            Err(misfit) => {
                for offered in misfit.misses.iter().filter_map(|miss| miss.suggestion.clone()) {
                    let taken = apply(&old, &form(&old), &[offered.hunk], &[]).map(|applied| applied.bytes);
                    prop_assert_eq!(taken.map_err(|m| m.to_string()), Ok(new.clone()), "{:?} {}", SPOILS[spoil], patch);
                }
            }
        }
    }

    #[test]
    fn a_stale_patch_leaves_what_others_changed(
        count in 6usize..20,
        mine in any::<prop::sample::Index>(),
        theirs in any::<prop::sample::Index>(),
        kind in 0u8..3,
        context in 1usize..4,
    ) {
        let base = distinct(count, true);
        let (mine, theirs) = (mine.index(count), theirs.index(count));
        let mut new = base.clone();
        new[mine] = "mine;".to_owned();
        let mut now = base.clone();
        match kind {
            0 => now.insert(theirs, "theirs;".to_owned()),
            1 => now[theirs] = "theirs;".to_owned(),
            _ => { now.remove(theirs); }
        }
        let (old, new, now_bytes) = (bytes(&base), bytes(&new), bytes(&now));
        let patch = patch_of(&unified(&old, &form(&old), &new, &form(&new), context));
        if let Ok(applied) = apply(&now_bytes, &form(&now_bytes), &hunks(&patch), &[]) {
            let wanted: Vec<String> =
                now.iter().map(|line| if *line == base[mine] { "mine;".to_owned() } else { line.clone() }).collect();
            prop_assert_eq!(applied.bytes, bytes(&wanted));
        }
    }
}

/// Lines of which patches are made, in every grammar.
const TOKENS: [&str; 46] = [
    "--- a/f",
    "+++ b/f",
    "--- /dev/null",
    "+++ /dev/null",
    "diff --git a/f b/f",
    "diff --git \"a/\\303\" b/g",
    "index 1..2 100644",
    "new file mode 100644",
    "deleted file mode 120000",
    "old mode 100644",
    "new mode 100755",
    "rename from f",
    "rename to g",
    "copy from f",
    "copy to h",
    "similarity index 50%",
    "@@ -1,2 +1,2 @@",
    "@@ -0,0 +1 @@",
    "@@ -18446744073709551615 +1 @@",
    "@@",
    "@@ def f",
    " a",
    "-a",
    "+b",
    "",
    " ",
    "\\ No newline at end of file",
    "GIT binary patch",
    "literal 3",
    "delta 9",
    "Kcmbr0",
    "*** Begin Patch",
    "*** End Patch",
    "*** Add File: x",
    "*** Update File: f",
    "*** Delete File: f",
    "*** Move to: g",
    "*** End of File",
    "f",
    "<<<<<<< SEARCH",
    "=======",
    ">>>>>>> REPLACE",
    "```",
    "apply_patch <<'EOF'",
    "EOF",
    ":start_line:3",
];

/// Everything that can be asked of a patch is asked; whatever it answers is fine.
pub(crate) fn ask(patch: &[u8], raw: &[u8]) {
    match parse_bytes(patch, &Default::default()) {
        Err(refused) => {
            assert!(refused.line > 0 && refused.seen.len() <= 80 && !refused.to_string().is_empty())
        }
        Ok(patch) => {
            for file in &patch.files {
                let _ = (file.content(), file.source(), file.is_link());
                let known = cotenant_text::detect(raw, None).unwrap_or_else(|_| Form::default());
                match apply(raw, &known, &file.hunks, &[]) {
                    Ok(applied) => assert_eq!(applied.landed.len(), file.hunks.len()),
                    Err(misfit) => {
                        assert!(misfit.misses.len() + misfit.fit == file.hunks.len(), "{misfit:?}")
                    }
                }
                let _ = cotenant_text::patch::check_deleted(raw, &known, &file.hunks);
                if let Some(binary) = &file.binary {
                    let _ = cotenant_text::patch::apply_binary(Some(raw), binary);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn lines_of_patches_in_any_order_are_answered(
        tokens in prop::collection::vec((0usize..TOKENS.len(), any::<bool>()), 0..24),
        raw in "(a|b|f|x|def f|\n|\r|\r\n| |\u{feff}){0,12}",
    ) {
        let text: String = tokens.iter().map(|(n, crlf)| format!("{}{}", TOKENS[*n], if *crlf && *n % 5 == 0 { "\r\n" } else { "\n" })).collect();
        ask(text.as_bytes(), raw.as_bytes());
    }

    #[test]
    fn any_bytes_are_answered(patch in prop::collection::vec(any::<u8>(), 0..120), raw in prop::collection::vec(any::<u8>(), 0..40)) {
        ask(&patch, &raw);
    }

    #[test]
    fn a_patch_with_bytes_changed_is_answered(
        grammar in 0usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..8),
        raw in "(a|b|c|\n|\r\n){0,12}",
    ) {
        let mut patch = [
            b"diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@ f\n a\n-b\n+B\n c\n\\ No newline at end of file\n".to_vec(),
            b"*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@ a\n a\n-b\n+B\n*** End of File\n*** End Patch\n".to_vec(),
            b"f\n```\n<<<<<<< SEARCH\n:start_line:1\n-------\na\nb\n=======\nB\n>>>>>>> REPLACE\n```\n".to_vec(),
        ][grammar].clone();
        for (at, byte, kind) in changes {
            let at = at.index(patch.len().max(1)).min(patch.len().saturating_sub(1));
            match kind {
                _ if patch.is_empty() => {}
                0 => patch[at] = byte,
                1 => { patch.remove(at); }
                _ => patch.insert(at, byte),
            }
        }
        ask(&patch, raw.as_bytes());
    }
}
