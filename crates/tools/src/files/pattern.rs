//! What `replace_text` looks for, and what it puts there: a text, or an expression with groups, in linear time.

use std::ops::Range;

use cotenant_model::{Code, Refusal};
use cotenant_text::{Swap, View};
use regex::bytes::{Captures, Regex, RegexBuilder};
use serde_json::json;

use super::replace_text::TOOL;
use crate::args::{Args, bad};
use crate::ctx::Ctx;

/// Bytes of a pattern that a refusal shows.
const SHOWN: usize = 200;

/// A pattern and its replacement.
pub struct Pattern {
    finder: Finder,
    new: Vec<Part>,
    shown: String,
}

enum Finder {
    /// The very text.
    Text(String),
    Regex(Regex),
}

/// A part of the replacement.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Group(usize),
}

/// Why the search ended early.
pub enum Stop {
    /// It fits nothing at all somewhere: that is everywhere.
    Empty,
    /// The result is larger than there is room for.
    Full,
    /// It took too long.
    Slow,
}

/// What a replacement may take.
pub struct Bounds<'b> {
    /// Bytes of all that is put in.
    pub room: usize,
    /// Whether there is still time.
    pub in_time: &'b dyn Fn() -> bool,
}

impl Pattern {
    /// The pattern of a call.
    pub fn of(ctx: &Ctx<'_>, args: &Args) -> Result<Pattern, Refusal> {
        let (pattern, is_regex) = (args.need("pattern"), args.flag("regex"));
        if pattern.is_empty() {
            return Err(bad(&TOOL, "pattern", "an empty pattern is everywhere; name the text to replace"));
        }
        // A view has LF for every line break.
        let pattern = pattern.replace("\r\n", "\n");
        let shown = pattern.chars().take(SHOWN).collect();
        let replacement = args.need("replacement");
        if !is_regex && !args.flag("ignore_case") {
            let new = vec![Part::Text(replacement.to_owned())];
            return Ok(Pattern { finder: Finder::Text(pattern), new, shown });
        }
        let text = if is_regex { pattern.clone() } else { regex::escape(&pattern) };
        let limit = ctx.limits().regex_bytes;
        let regex = compile(&text, args.flag("ignore_case"), limit)
            .map_err(|error| refused(ctx, &pattern, &error, limit))?;
        let new = match is_regex {
            true => template(replacement, &regex)?,
            false => vec![Part::Text(replacement.to_owned())],
        };
        Ok(Pattern { finder: Finder::Regex(regex), new, shown })
    }

    /// The pattern as a refusal shows it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What is to be replaced in a file, from left to right without overlap.
    pub fn swaps(&self, view: &View<'_>, bounds: &Bounds<'_>) -> Result<Vec<Swap>, Stop> {
        let mut list = List { swaps: Vec::new(), left: bounds.room, bounds };
        match &self.finder {
            Finder::Text(text) => {
                let new = self.fixed().unwrap_or_default();
                cotenant_text::occurrences(view, text).try_for_each(|at| list.add(at, new.clone()))?;
            }
            Finder::Regex(regex) => match self.fixed() {
                Some(new) => {
                    regex
                        .find_iter(view.as_bytes())
                        .try_for_each(|found| list.add(found.range(), new.clone()))?;
                }
                None => {
                    let all = |found: &Captures<'_>| found.get(0).map_or(0..0, |all| all.range());
                    let found = &mut regex.captures_iter(view.as_bytes());
                    found.try_for_each(|found| list.add(all(&found), self.expand(&found)))?;
                }
            },
        }
        Ok(list.swaps)
    }

    /// The replacement, where it is the same for every match.
    fn fixed(&self) -> Option<String> {
        self.new
            .iter()
            .map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
            .collect()
    }

    fn expand(&self, found: &Captures<'_>) -> String {
        let mut new = String::new();
        for part in &self.new {
            match part {
                Part::Text(text) => new.push_str(text),
                // The expression matches whole characters only, and so do its groups.
                Part::Group(group) => {
                    let text = found.get(*group).and_then(|group| std::str::from_utf8(group.as_bytes()).ok());
                    new.push_str(text.unwrap_or_default());
                }
            }
        }
        new
    }
}

/// The replacements so far.
struct List<'b> {
    swaps: Vec<Swap>,
    left: usize,
    bounds: &'b Bounds<'b>,
}

impl List<'_> {
    fn add(&mut self, at: Range<usize>, new: String) -> Result<(), Stop> {
        if at.is_empty() {
            return Err(Stop::Empty);
        }
        if !(self.bounds.in_time)() {
            return Err(Stop::Slow);
        }
        // The list itself takes room, too.
        self.left = self.left.checked_sub(new.len() + size_of::<Swap>()).ok_or(Stop::Full)?;
        self.swaps.push(Swap { at, new });
        Ok(())
    }
}

/// Compiles twice: an expression over text first, so that none can match a part of a character.
fn compile(text: &str, ignore_case: bool, limit: usize) -> Result<Regex, regex::Error> {
    regex::RegexBuilder::new(text)
        .multi_line(true)
        .case_insensitive(ignore_case)
        .size_limit(limit)
        .build()?;
    RegexBuilder::new(text).multi_line(true).case_insensitive(ignore_case).size_limit(limit).build()
}

fn refused(ctx: &Ctx<'_>, pattern: &str, error: &regex::Error, limit: usize) -> Refusal {
    let token = ctx.retry_token();
    let literal = ctx.call("retry", json!({"token": token, "set": {"regex": false}}));
    let next = format!("{literal} takes it literally; or send the pattern corrected");
    let shown: String = pattern.chars().take(SHOWN).collect();
    match error {
        regex::Error::CompiledTooBig(_) => {
            let why =
                format!("The expression takes more than {limit} bytes when compiled; nothing was written.");
            Refusal::new(Code::PatternTooLarge, why).fact("limit", limit).next(next)
        }
        error => {
            let text = error.to_string();
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let last: String = last.trim().trim_start_matches("error: ").chars().take(SHOWN).collect();
            let why = format!("The expression does not parse: {last}. Nothing was written.");
            Refusal::new(Code::PatternInvalid, why).fact("pattern", shown).next(next)
        }
    }
}

/// The parts of a replacement: `$1`, `${1}` and `${name}` are groups, `$$` is a `$`; a `$` before anything else is itself.
fn template(text: &str, regex: &Regex) -> Result<Vec<Part>, Refusal> {
    let mut parts = vec![Part::Text(String::new())];
    let mut rest = text;
    while let Some(at) = rest.find(['$', '\\']) {
        push(&mut parts, &rest[..at]);
        rest = &rest[at..];
        let taken = special(rest, regex)?;
        match taken {
            Special::Text(text, len) => {
                push(&mut parts, text);
                rest = &rest[len..];
            }
            Special::Group(group, len) => {
                parts.push(Part::Group(group));
                rest = &rest[len..];
            }
        }
    }
    push(&mut parts, rest);
    Ok(parts)
}

fn push(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Text(last)) => last.push_str(text),
        _ => parts.push(Part::Text(text.to_owned())),
    }
}

/// What begins with a `$` or a `\`, and how many bytes of the replacement it takes.
enum Special<'t> {
    Text(&'t str, usize),
    Group(usize, usize),
}

fn special<'t>(rest: &'t str, regex: &Regex) -> Result<Special<'t>, Refusal> {
    let after = &rest[1..];
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    if rest.starts_with('\\') {
        let group = number(&after[..digits.min(1)]).filter(|group| (1..regex.captures_len()).contains(group));
        return match group {
            Some(group) => Err(bad(
                &TOOL,
                "replacement",
                &format!("\\{group} would be put in as it stands: write ${group} for the group"),
            )),
            None => Ok(Special::Text(&rest[..1], 1)),
        };
    }
    if after.starts_with('$') {
        return Ok(Special::Text("$", 2));
    }
    if let Some(name) =
        after.strip_prefix('{').and_then(|braced| braced.split_once('}')).map(|(name, _)| name)
    {
        let group = number(name).filter(|group| *group < regex.captures_len());
        let group = group.or_else(|| regex.capture_names().position(|known| known == Some(name)));
        return group.map(|group| Special::Group(group, name.len() + 3)).ok_or_else(|| no_group(name));
    }
    if digits > 0 {
        // `$10` is group 1 and a 0 where there is no group 10.
        let fits = |len: &usize| number(&after[..*len]).is_some_and(|group| group < regex.captures_len());
        let len = (1..=digits).rev().find(fits).ok_or_else(|| no_group(&after[..digits]))?;
        return Ok(Special::Group(number(&after[..len]).unwrap_or_default(), 1 + len));
    }
    let word = after.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let name = &after[..word];
    if !name.is_empty() && regex.capture_names().flatten().any(|known| known == name) {
        let sentence =
            format!("${name} would be put in as it stands: write ${{{name}}} for the group, or $${name}");
        return Err(bad(&TOOL, "replacement", &sentence));
    }
    Ok(Special::Text("$", 1))
}

fn number(digits: &str) -> Option<usize> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

fn no_group(name: &str) -> Refusal {
    let shown: String = name.chars().take(60).collect();
    bad(&TOOL, "replacement", &format!("the pattern has no group {shown}; a $ itself is $$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, pattern: &str) -> Result<String, String> {
        let parts = template(text, &Regex::new(pattern).unwrap()).map_err(|refusal| refusal.message)?;
        let shown = |part: Part| match part {
            Part::Text(text) => text,
            Part::Group(group) => format!("<{group}>"),
        };
        Ok(parts.into_iter().map(shown).collect())
    }

    #[test]
    fn groups_are_told_from_text() {
        for (text, wanted) in [
            ("", ""),
            ("plain", "plain"),
            ("$1", "<1>"),
            ("a$1b", "a<1>b"),
            ("$1_x", "<1>_x"),
            ("$0$2", "<0><2>"),
            ("$10", "<1>0"),
            ("${1}0", "<1>0"),
            ("${word}s", "<2>s"),
            ("$$1 $$$1", "$1 $<1>"),
            ("cost: $", "cost: $"),
            ("$(x) $& $-", "$(x) $& $-"),
            ("$other", "$other"),
            ("a\\b \\n \\9", "a\\b \\n \\9"),
            ("é$1é", "é<1>é"),
        ] {
            assert_eq!(parts(text, "(a)(?P<word>b)").as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_would_be_put_in_by_mistake_is_refused() {
        for (text, why) in [
            ("$3", "no group 3"),
            ("${nope}", "no group nope"),
            ("${}", "no group "),
            ("$99999999999999999999999", "no group"),
            ("\\1", "write $1"),
            ("$word", "write ${word}"),
        ] {
            let refused = parts(text, "(?:a)(?P<word>b)").unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        assert_eq!(parts("\\1 ${", "a").as_deref(), Ok("\\1 ${"), "without groups a backslash is one");
    }
}
