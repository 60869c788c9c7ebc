//! From text to syntax tree: the lexer's words, the brackets checked, then the grammar of brush-parser.

use std::sync::Arc;

use brush_parser::{ParserOptions, SourcePosition, SourceSpan, Token, ast};

use super::lex::{Lexeme, Unread, lexemes};

/// Brackets and compound commands in one another. The grammar tries some of them twice a level.
const NESTED: usize = 10;

/// Words that the grammar nests without a bracket: `!`, `&&` and `||` in `[[ … ]]`, and `coproc`.
const CHAINED: usize = 24;

/// Parses a script as `bash -c` reads it: no extended globs.
pub(super) fn parse(text: &str) -> Result<ast::Program, Unread> {
    let lexemes = lexemes(text)?;
    brackets(&lexemes)?;
    lexemes.iter().try_for_each(unusual)?;
    lexemes.windows(2).try_for_each(descriptor)?;
    let tokens: Vec<Token> = parted(lexemes).into_iter().map(token).collect();
    let options = ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() };
    brush_parser::parse_tokens(&tokens, &options).map_err(|_| "it does not parse as shell text")
}

/// Puts ends of lines where the grammar would go wrong without. Between two brackets that open subshells: it takes any two
/// for arithmetic; to bash they are that where they touch, and touch where they close. And between `esac` and a bracket,
/// which it takes for a pattern.
fn parted(lexemes: Vec<Lexeme>) -> Vec<Lexeme> {
    let closes = matching(&lexemes);
    let touch = |left: usize| lexemes.get(left + 1).is_some_and(|right| lexemes[left].end == right.start);
    let mut all = Vec::with_capacity(lexemes.len());
    let mut arithmetic = 0;
    for (at, lexeme) in lexemes.iter().enumerate() {
        if at < arithmetic && is_operator(lexeme, ";;") {
            // `for ((;;))`
            all.extend([";", ";"].map(|text| Lexeme { text: text.to_owned(), ..lexeme.clone() }));
            continue;
        }
        all.push(lexeme.clone());
        let two = is_operator(lexeme, "(") && lexemes.get(at + 1).is_some_and(|next| is_operator(next, "("));
        let end = closes.get(at + 1).copied().flatten();
        let esac = lexeme.text == "esac" && lexemes.get(at + 1).is_some_and(|next| is_operator(next, ")"));
        let line = || Lexeme { text: "\n".to_owned(), operator: true, start: lexeme.end, end: lexeme.end };
        if esac {
            all.push(line());
        }
        if at < arithmetic || !two {
        } else if let Some(end) = end.filter(|end| touch(at) && touch(*end) && closes[at] == Some(end + 1)) {
            arithmetic = end;
        } else {
            all.push(line());
        }
    }
    all
}

/// For each bracket that opens, the place of the one that closes it.
fn matching(lexemes: &[Lexeme]) -> Vec<Option<usize>> {
    let mut closes = vec![None; lexemes.len()];
    let mut open = Vec::new();
    for (at, lexeme) in lexemes.iter().enumerate() {
        if is_operator(lexeme, "(") {
            open.push(at);
        } else if is_operator(lexeme, ")") {
            open.pop().into_iter().for_each(|start: usize| closes[start] = Some(at));
        }
    }
    closes
}

fn is_operator(lexeme: &Lexeme, text: &str) -> bool {
    lexeme.operator && lexeme.text == text
}

fn token(lexeme: Lexeme) -> Token {
    let place = |index: usize| Arc::new(SourcePosition { index, line: 1, column: index + 1 });
    let span = SourceSpan { start: place(lexeme.start), end: place(lexeme.end) };
    if lexeme.operator { Token::Operator(lexeme.text, span) } else { Token::Word(lexeme.text, span) }
}

/// A descriptor before a redirection that is no number of one.
fn descriptor(pair: &[Lexeme]) -> Result<(), Unread> {
    let redirects = pair[1].operator && pair[1].text.starts_with(['<', '>']) && !pair[0].operator;
    let long = pair[0].text.len() > 9 && pair[0].text.bytes().all(|byte| byte.is_ascii_digit());
    if redirects && long { Err("it redirects a descriptor that cannot be") } else { Ok(()) }
}

/// An index, which ends at its bracket whatever stands in it: one that is not a single word, or that the grammar would
/// take long over.
fn unusual(lexeme: &Lexeme) -> Result<(), Unread> {
    let name = lexeme.text.trim_start_matches(|ch: char| ch.is_ascii_alphanumeric() || ch == '_');
    if lexeme.operator || name.len() == lexeme.text.len() || !name.starts_with('[') {
        return Ok(());
    }
    let Some((index, _)) = name.split_once(']') else { return Err("an index does not end in its word") };
    if index.matches(['[', '(', '{']).count() > 3 { Err("it has an index within an index") } else { Ok(()) }
}

/// What is open, and what closes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Paren,
    Brace,
    If,
    Loop,
    Case,
    Test,
}

/// Checks that brackets and compound commands close in order and are not nested too deeply.
fn brackets(lexemes: &[Lexeme]) -> Result<(), Unread> {
    let mut open: Vec<Open> = Vec::new();
    let mut chained = 0usize;
    // A reserved word here is one.
    let mut fresh = true;
    for (at, lexeme) in lexemes.iter().enumerate() {
        let inner = open.last().copied();
        match step(lexeme, fresh, inner) {
            Step::Opens(_) if open.len() == NESTED => return Err("it is nested too deeply"),
            Step::Opens(what) => open.push(what),
            Step::Closes(what) if inner == Some(what) => drop(open.pop()),
            // The bracket behind a pattern of `case`.
            Step::Closes(Open::Paren) if inner == Some(Open::Case) => {}
            Step::Closes(_) => return Err("a bracket or compound command is closed that is not open"),
            Step::Nothing => {
                let links = matches!(lexeme.text.as_str(), "!" | "&&" | "||") && open.contains(&Open::Test);
                chained += usize::from(links || lexeme.text == "coproc");
            }
        }
        fresh = leads(lexemes, at, fresh);
    }
    if chained > CHAINED {
        return Err("it is nested too deeply");
    }
    if open.is_empty() { Ok(()) } else { Err("a bracket or compound command is not closed") }
}

enum Step {
    Opens(Open),
    Closes(Open),
    Nothing,
}

/// What a lexeme opens or closes, `inner` being open; `fresh` where a command may begin.
fn step(lexeme: &Lexeme, fresh: bool, inner: Option<Open>) -> Step {
    match (lexeme.operator, lexeme.text.as_str()) {
        (true, "(") => Step::Opens(Open::Paren),
        (true, ")") => Step::Closes(Open::Paren),
        (true, _) => Step::Nothing,
        (false, "]]") if inner == Some(Open::Test) => Step::Closes(Open::Test),
        (false, _) if inner == Some(Open::Test) || !fresh => Step::Nothing,
        (false, "{") => Step::Opens(Open::Brace),
        (false, "}") => Step::Closes(Open::Brace),
        (false, "if") => Step::Opens(Open::If),
        (false, "fi") => Step::Closes(Open::If),
        (false, "for" | "while" | "until") => Step::Opens(Open::Loop),
        (false, "done") => Step::Closes(Open::Loop),
        (false, "case") => Step::Opens(Open::Case),
        (false, "esac") => Step::Closes(Open::Case),
        (false, "[[") => Step::Opens(Open::Test),
        _ => Step::Nothing,
    }
}

/// Whether a command may begin behind the lexeme at `at`, where one may begin before it or not (`fresh`).
fn leads(lexemes: &[Lexeme], at: usize, fresh: bool) -> bool {
    const LEADS: &[&str] = &[
        "then", "do", "else", "elif", "if", "while", "until", "!", "{", "}", "time", "fi", "done", "esac",
        "coproc",
    ];
    let lexeme = &lexemes[at];
    let text = lexeme.text.as_str();
    if lexeme.operator {
        return !text.starts_with(['<', '>']) && !text.starts_with("&>");
    }
    let before = at.checked_sub(1).map(|at| &lexemes[at]).filter(|before| !before.operator);
    let named = before.is_some_and(|before| before.text == "function");
    let empty = text == "in" && lexemes.get(at + 1).is_some_and(|next| next.text == "esac");
    (fresh && LEADS.contains(&text)) || named || empty
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_close_in_order() {
        for good in [
            "(a; (b))",
            "f() { a; }",
            "function f { a; }",
            "if a; then b; elif c; then d; fi",
            "for i in a b; do c; done > f",
            "for ((i = 0; i < 3; i++)); do a; done",
            "case x in a) b;; (c) d;; esac",
            "[[ -f a && (b == c) ]] && echo if for {",
            "echo } fi done",
            "{ a; } 2>&1 | while read x; do b; done",
            "case x in esac",
        ] {
            assert!(parse(good).is_ok(), "{good}: {:?}", parse(good));
        }
        for bad in ["(a", "a)", "{ (a }; )", "if a; then (b; fi)", "done", "[[ a", "f() { a"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_nested_without_end_is_an_error_at_once() {
        for piece in [
            "(",
            "((",
            "( (",
            "$(",
            "$((",
            "${a:-",
            "{ ",
            "`",
            "<(",
            "if ",
            "a[",
            "a[b=",
            "case a in (",
            "[[ (",
            "\"$(",
            "$[",
        ] {
            for times in [8, 12, 40, 2_000] {
                let text = piece.repeat(times);
                let _ = parse(&text);
                let _ = parse(&format!("echo {text}"));
                let _ = parse(&format!("{text} x"));
            }
        }
    }

    #[test]
    fn numbers_that_no_descriptor_has() {
        assert!(parse("99999999999999999999>f").is_err());
        assert!(parse("3>f").is_ok());
    }
}
