//! From a pattern to something that finds it in linear time.

use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};

use super::{ContentQuery, SearchError};

/// The lazily built automaton may take this many times the compiled size: it is a cache, and a small one only makes the
/// search slow, not wrong.
const CACHE_FACTOR: usize = 8;

/// Builds the matcher of a query. Whether it may match over line ends is the second value.
pub(super) fn build(query: &ContentQuery) -> Result<(RegexMatcher, bool), SearchError> {
    let has_newline = query.pattern.contains('\n');
    // A text with a line end in it can only be meant so.
    let multiline = query.multiline || (!query.regex && has_newline);
    let pattern = if query.regex { query.pattern.clone() } else { literal(&query.pattern) };
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .case_insensitive(query.ignore_case)
        .size_limit(query.regex_bytes)
        .dfa_size_limit(query.regex_bytes.saturating_mul(CACHE_FACTOR))
        .crlf(true);
    if multiline {
        builder.line_terminator(None);
    }
    let matcher = builder.build(&pattern).map_err(|error| refused(&error, query))?;
    Ok((matcher, multiline))
}

/// The expression for a text as it stands; a line end in it fits either kind of ending.
fn literal(text: &str) -> String {
    let lines: Vec<String> =
        text.split('\n').map(|line| escape(line.strip_suffix('\r').unwrap_or(line))).collect();
    lines.join("\\r?\\n")
}

/// `text` with every character that an expression gives a meaning escaped; of `<` and `>`, that one has it which is escaped.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for ch in text.chars() {
        if ch.is_ascii_punctuation() && !matches!(ch, '<' | '>') {
            escaped.push('\\');
        }
        escaped.push(ch);
    }
    escaped
}

fn refused(error: &grep_regex::Error, query: &ContentQuery) -> SearchError {
    let invalid = |reason: String| SearchError::PatternInvalid { pattern: query.pattern.clone(), reason };
    match error.kind() {
        ErrorKind::Regex(text) if text.contains("size limit") => {
            SearchError::PatternTooLarge { limit: query.regex_bytes }
        }
        ErrorKind::NotAllowed(_) => invalid(
            "The expression has a line end in it, which one line never has; set multiline=true.".to_owned(),
        ),
        other => invalid(format!("The expression does not parse: {}.", last_line(&other_text(other)))),
    }
}

fn other_text(kind: &ErrorKind) -> String {
    match kind {
        ErrorKind::Regex(text) => text.clone(),
        ErrorKind::Banned(byte) => format!("the byte {byte} cannot be matched"),
        _ => "it cannot be compiled".to_owned(),
    }
}

/// What the parser says is wrong stands in its last line, below a drawing of the place.
fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(text);
    line.trim().trim_start_matches("error: ").to_owned()
}
