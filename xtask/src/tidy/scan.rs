//! A Rust file as tidy's rules see it: its tokens in one flat row, what in it is a test, and the paths it names.
//!
//! Tokens rather than a syntax tree: macros are looked into like everything else, and nothing depends on
//! which syntax the parser of the day knows.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::str::FromStr;

/// Keywords that may stand before a path that begins with `::`, and are no part of it.
const BEFORE_A_PATH: &[&str] = &[
    "as", "break", "dyn", "else", "for", "if", "impl", "in", "let", "match", "move", "mut", "ref", "return",
    "use", "where", "while", "yield",
];

/// Whom a file serves, which decides the rules that bind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Ships: all rules.
    Product,
    /// `testkit` and `xtask`: only file length and header.
    Support,
    /// Tests: as `Support`.
    Test,
}

/// One token. Brackets stand as two tokens, `Open` and `Close`.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// As written; the bracket itself for `Open` and `Close`.
    pub(crate) text: String,
    /// Counted from 1; of a token over several lines the last.
    pub(crate) line: usize,
    /// Inside an item that only tests compile.
    pub(crate) test: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    Sign,
    Literal,
    Open,
    Close,
}

/// A path such as `std::fs::File`; `use std::{fs, io}` yields `std::fs` and `std::io`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    pub(crate) test: bool,
    /// Given another name by `as`.
    pub(crate) renamed: bool,
}

impl Named {
    /// Whether `words` stand in the path in this order, side by side.
    pub(crate) fn has(&self, words: &[&str]) -> bool {
        self.segments.windows(words.len()).any(|part| part.iter().eq(words))
    }

    /// Whether the path begins with `words`.
    pub(crate) fn begins(&self, words: &[&str]) -> bool {
        self.segments.len() >= words.len() && self.segments.iter().zip(words).all(|(have, want)| have == want)
    }
}

/// One Rust file, read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Relative to the root of the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) role: Role,
    pub(crate) text: String,
    pub(crate) tokens: Vec<Token>,
}

impl Source {
    /// Reads a file. The error is the tokenizer's sentence.
    pub(crate) fn new(path: &str, text: &str) -> Result<Self, String> {
        let stream = TokenStream::from_str(text).map_err(|error| format!("does not tokenize: {error}"))?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        mark_tests(&mut tokens);
        Ok(Self { path: path.to_owned(), role: role_of(path), text: text.to_owned(), tokens })
    }

    /// The crate's folder name: `tree` for `crates/tree/src/open.rs`, `xtask` for its own files.
    pub(crate) fn krate(&self) -> &str {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates") => parts.next().unwrap_or_default(),
            first => first.unwrap_or_default(),
        }
    }

    /// The path within the crate's source: `open.rs` for `crates/tree/src/open.rs`.
    pub(crate) fn module(&self) -> &str {
        self.path.split_once("/src/").map_or("", |(_, rest)| rest)
    }

    /// The file, or one of its folders, is the crate's `sys` module.
    pub(crate) fn is_sys(&self) -> bool {
        self.module().split('/').any(|part| part == "sys" || part == "sys.rs")
    }

    /// Tokens that ship.
    pub(crate) fn shipped(&self) -> impl Iterator<Item = (usize, &Token)> {
        let product = self.role == Role::Product;
        self.tokens.iter().enumerate().filter(move |(_, token)| product && !token.test)
    }

    /// Every path the file names, use-trees taken apart.
    pub(crate) fn paths(&self) -> Vec<Named> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            at = match self.tokens[at].kind {
                Kind::Word if !BEFORE_A_PATH.contains(&self.tokens[at].text.as_str()) => {
                    self.path_from(at, &[], &mut found)
                }
                _ => at + 1,
            };
        }
        found
    }

    /// Paths in what ships, of two segments or more.
    pub(crate) fn shipped_paths(&self) -> Vec<Named> {
        if self.role != Role::Product {
            return Vec::new();
        }
        self.paths().into_iter().filter(|path| !path.test && path.segments.len() > 1).collect()
    }

    /// The token `offset` places after `at` reads `text`.
    pub(crate) fn is(&self, at: usize, text: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.text == text && token.kind != Kind::Literal)
    }

    /// The `Close` that belongs to the `Open` at `open`, or the last token.
    pub(crate) fn close_of(&self, open: usize) -> usize {
        close_of(&self.tokens, open)
    }

    fn path_from(&self, start: usize, prefix: &[String], found: &mut Vec<Named>) -> usize {
        let first = &self.tokens[start];
        let mut segments = prefix.to_vec();
        if first.text != "self" || prefix.is_empty() {
            segments.push(first.text.clone());
        }
        let mut at = start + 1;
        while self.is(at, ":") && self.is(at + 1, ":") {
            match self.tokens.get(at + 2) {
                Some(next) if next.kind == Kind::Word => segments.push(next.text.clone()),
                Some(next) if next.text == "*" => segments.push("*".to_owned()),
                Some(next) if next.text == "{" => return self.use_tree(at + 2, &segments, found),
                _ => break,
            }
            at += 3;
        }
        let renamed = self.is(at, "as");
        found.push(Named { segments, line: first.line, test: first.test, renamed });
        at
    }

    fn use_tree(&self, open: usize, prefix: &[String], found: &mut Vec<Named>) -> usize {
        let end = self.close_of(open);
        let mut at = open + 1;
        while at < end {
            at = match self.tokens[at].kind {
                // `x as y`: y is a new name, not a path below the prefix.
                Kind::Word if self.tokens[at].text == "as" => at + 2,
                Kind::Word => self.path_from(at, prefix, found),
                Kind::Sign if self.tokens[at].text == "*" => {
                    let segments = prefix.iter().cloned().chain(["*".to_owned()]).collect();
                    let Token { line, test, .. } = self.tokens[at];
                    found.push(Named { segments, line, test, renamed: false });
                    at + 1
                }
                _ => at + 1,
            };
        }
        end + 1
    }
}

/// Files, relative and without `.rs`, that are modules declared under `#[cfg(test)]` in another file.
pub(crate) fn test_modules(source: &Source) -> Vec<String> {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = file.trim_end_matches(".rs");
    let base = match stem {
        "lib" | "main" | "mod" => folder.to_owned(),
        _ => format!("{folder}/{stem}"),
    };
    let tokens = &source.tokens;
    let declared = |at: usize| tokens[at].test && source.is(at, "mod") && source.is(at + 2, ";");
    (0..tokens.len()).filter(|at| declared(*at)).map(|at| format!("{base}/{}", tokens[at + 1].text)).collect()
}

fn role_of(path: &str) -> Role {
    let inner = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/'));
    match inner {
        None | Some(("testkit", _)) => Role::Support,
        Some((_, rest)) if rest.starts_with("src/") => Role::Product,
        Some(_) => Role::Test,
    }
}

fn flatten(stream: TokenStream, row: &mut Vec<Token>) {
    let push =
        |row: &mut Vec<Token>, kind, text: String, line| row.push(Token { kind, text, line, test: false });
    for tree in stream {
        let line = tree.span().end().line;
        match tree {
            TokenTree::Ident(word) => push(row, Kind::Word, word.to_string(), line),
            TokenTree::Punct(sign) => push(row, Kind::Sign, sign.as_char().to_string(), line),
            TokenTree::Literal(literal) => push(row, Kind::Literal, literal.to_string(), line),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(row, Kind::Open, open.to_owned(), group.span_open().start().line);
                flatten(group.stream(), row);
                push(row, Kind::Close, close.to_owned(), group.span_close().end().line);
            }
        }
    }
}

fn close_of(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len().saturating_sub(1)
}

/// Marks each item under `#[test]` or a `#[cfg(…)]` that asks for `test`, and whole files under `#![cfg(test)]`.
fn mark_tests(tokens: &mut [Token]) {
    let text = |tokens: &[Token], at: usize| tokens.get(at).map_or(String::new(), |token| token.text.clone());
    let mut at = 0;
    while at < tokens.len() {
        let inner = usize::from(text(tokens, at + 1) == "!");
        let open = at + 1 + inner;
        if text(tokens, at) != "#" || text(tokens, open) != "[" {
            at += 1;
            continue;
        }
        let close = close_of(tokens, open);
        if !asks_for_test(&tokens[open + 1..close]) {
            at = close + 1;
            continue;
        }
        let end = if inner == 1 { tokens.len() - 1 } else { end_of_item(tokens, close + 1) };
        tokens[at..=end].iter_mut().for_each(|token| token.test = true);
        at = end + 1;
    }
}

fn asks_for_test(attribute: &[Token]) -> bool {
    let words: Vec<&str> =
        attribute.iter().filter(|t| t.kind == Kind::Word).map(|t| t.text.as_str()).collect();
    match words.as_slice() {
        ["test"] => true,
        ["cfg", rest @ ..] => rest.contains(&"test") && !rest.contains(&"not"),
        _ => false,
    }
}

/// The last token of the item at `from`: its body's closing brace, its semicolon, or the end of what holds it.
fn end_of_item(tokens: &[Token], from: usize) -> usize {
    let mut at = from;
    while at < tokens.len() {
        let token = &tokens[at];
        if token.kind == Kind::Close {
            // A field or an arm: it ends with what surrounds it.
            return at - 1;
        }
        if token.kind == Kind::Open {
            at = close_of(tokens, at);
            if token.text == "{" {
                return at;
            }
        } else if token.text == ";" {
            return at;
        }
        at += 1;
    }
    tokens.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("crates/tree/src/open.rs", text).unwrap()
    }

    fn joined(source: &Source) -> Vec<String> {
        source
            .paths()
            .iter()
            .map(|path| path.segments.join("::"))
            .filter(|path| path.contains("::"))
            .collect()
    }

    #[test]
    fn use_trees_are_taken_apart() {
        let source =
            source("use std::{fs::{self, File as Handle}, io, process::*};\nfn f() { a::b(c::d::<u8>()) }");
        let expected = ["std::fs", "std::fs::File", "std::io", "std::process::*", "a::b", "c::d"];
        assert_eq!(joined(&source), expected);
        assert!(
            source.paths().iter().any(|path| path.segments.ends_with(&["File".to_owned()]) && path.renamed)
        );
    }

    #[test]
    fn paths_inside_macros_are_seen_and_those_in_comments_and_strings_are_not() {
        let source =
            source("//! std::fs is not used\nfn f() { println!(\"std::fs {}\", std::env::temp_dir()) }");
        assert_eq!(joined(&source), ["std::env::temp_dir"]);
    }

    #[test]
    fn a_path_is_matched_by_whole_segments() {
        let source = source("fn f() { std::os::unix::fs::chown(); std::fs::read(); std::fsx::read() }");
        let hits: Vec<bool> = source
            .paths()
            .iter()
            .filter(|p| p.segments[0] == "std")
            .map(|p| p.begins(&["std", "fs"]))
            .collect();
        assert_eq!(hits, [false, true, false]);
    }

    #[test]
    fn only_items_for_tests_are_marked() {
        let text = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests { fn b() {} }\n#[cfg(not(test))]\nfn c() {}\n#[test]\nfn d() {}\nfn e() {}\n#[cfg(test)]\nuse x::y;\nfn g() {}";
        let source = source(text);
        let named = |test: bool| -> Vec<&str> {
            let fns =
                (0..source.tokens.len()).filter(|at| source.is(*at, "fn") && source.tokens[*at].test == test);
            fns.map(|at| source.tokens[at + 1].text.as_str()).collect()
        };
        assert_eq!(named(true), ["b", "d"]);
        assert_eq!(named(false), ["a", "c", "e", "g"]);
    }

    #[test]
    fn a_file_under_an_inner_cfg_is_a_test() {
        let source = source("//! x\n#![cfg(test)]\nfn a() {}");
        assert!(source.tokens.iter().filter(|token| token.text == "a").all(|token| token.test));
    }

    #[test]
    fn declared_test_modules_are_found_beside_their_parent() {
        let text = "#[cfg(test)]\nmod tests;\nmod other;\n#[cfg(test)]\nmod inline {}";
        assert_eq!(test_modules(&source(text)), ["crates/tree/src/open/tests"]);
        let lib = Source::new("crates/tree/src/lib.rs", text).unwrap();
        assert_eq!(test_modules(&lib), ["crates/tree/src/tests"]);
    }

    #[test]
    fn the_role_comes_from_the_place() {
        assert_eq!(role_of("crates/tree/src/lib.rs"), Role::Product);
        assert_eq!(role_of("crates/tree/tests/it/main.rs"), Role::Test);
        assert_eq!(role_of("crates/testkit/src/lib.rs"), Role::Support);
        assert_eq!(role_of("xtask/src/main.rs"), Role::Support);
    }

    #[test]
    fn broken_text_is_an_error() {
        assert!(Source::new("crates/tree/src/open.rs", "fn a( {").unwrap_err().contains("tokenize"));
    }
}
