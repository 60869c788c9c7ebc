//! The globs of `.editorconfig`: `*`, `**`, `?`, `[…]`, `{a,b}`, `{1..9}`. Other globs of cotenant are not this dialect.

/// Steps after which a match is given up: an expression that needs more is made to burn time.
const STEPS: usize = 200_000;

/// The longest pattern in bytes that is looked at; the dialect promises no more than 1,024 characters.
const LONGEST: usize = 1024;

/// Whether `pattern` matches `path` (relative to the directory of the pattern's file). A pattern without `/` matches at any depth.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    if pattern.len() > LONGEST {
        return false;
    }
    let anchored = if pattern.contains('/') {
        format!("/{}", pattern.trim_start_matches('/'))
    } else {
        format!("/**/{pattern}")
    };
    let chars: Vec<char> = anchored.chars().collect();
    let tokens = Parser { rest: &chars, choices: balanced(&chars) }.sequence(false);
    let text: Vec<char> = std::iter::once('/').chain(path.chars()).collect();
    Matcher { steps: 0 }.run(&tokens, None, &text)
}

/// Whether every brace has its partner; if not, all of them are literal.
fn balanced(pattern: &[char]) -> bool {
    let (mut depth, mut escaped) = (0usize, false);
    for c in pattern {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' if depth == 0 => return false,
            '}' => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

#[derive(Debug)]
enum Token {
    Char(char),
    /// One character but `/`.
    One,
    /// Any characters but `/`.
    Part,
    /// Any characters.
    Any,
    /// `/**/`: directories, or none.
    Dirs,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
    Either(Vec<Vec<Token>>),
    Number(i64, i64),
}

struct Parser<'p> {
    rest: &'p [char],
    /// Whether braces mean choices.
    choices: bool,
}

impl Parser<'_> {
    /// Tokens up to the end, or in braces up to `,` or `}` (which stay).
    fn sequence(&mut self, in_braces: bool) -> Vec<Token> {
        let mut out = Vec::new();
        while let Some((first, rest)) = self.rest.split_first() {
            if in_braces && matches!(first, ',' | '}') {
                break;
            }
            if let ['/', '*', '*', '/', ..] = self.rest {
                out.push(Token::Dirs);
                self.rest = &self.rest[4..];
                continue;
            }
            self.rest = rest;
            out.push(self.token(*first));
        }
        out
    }

    fn token(&mut self, first: char) -> Token {
        match first {
            '?' => Token::One,
            '*' if self.rest.first() == Some(&'*') => {
                self.rest = &self.rest[1..];
                Token::Any
            }
            '*' => Token::Part,
            '\\' => match self.rest.split_first() {
                Some((escaped, rest)) => {
                    self.rest = rest;
                    Token::Char(*escaped)
                }
                None => Token::Char('\\'),
            },
            '[' => self.class().unwrap_or(Token::Char('[')),
            '{' if self.choices => self.braces(),
            other => Token::Char(other),
        }
    }

    /// A class; `None` (nothing taken) where the bracket never closes or would hold a `/`.
    fn class(&mut self) -> Option<Token> {
        let end = self.rest.iter().skip(1).position(|c| *c == ']')? + 1;
        let (mut inside, rest) = (&self.rest[..end], &self.rest[end + 1..]);
        if inside.contains(&'/') {
            return None;
        }
        let negated = matches!(inside.first(), Some('!' | '^')) && inside.len() > 1;
        if negated {
            inside = &inside[1..];
        }
        let mut ranges = Vec::new();
        while let Some((low, after)) = inside.split_first() {
            match after {
                ['-', high, more @ ..] => {
                    ranges.push((*low, *high));
                    inside = more;
                }
                _ => {
                    ranges.push((*low, *low));
                    inside = after;
                }
            }
        }
        self.rest = rest;
        Some(Token::Class { negated, ranges })
    }

    /// A choice or a range of numbers. Braces around neither are literal.
    fn braces(&mut self) -> Token {
        let before = self.rest;
        let mut choices = vec![self.sequence(true)];
        while let [',', rest @ ..] = self.rest {
            self.rest = rest;
            choices.push(self.sequence(true));
        }
        let inside: String = before[..before.len() - self.rest.len()].iter().collect();
        self.rest = self.rest.get(1..).unwrap_or_default();
        if choices.len() > 1 {
            return Token::Either(choices);
        }
        let range = inside
            .split_once("..")
            .and_then(|(low, high)| Some((low.parse::<i64>().ok()?, high.parse::<i64>().ok()?)));
        if let Some((low, high)) = range {
            return Token::Number(low.min(high), low.max(high));
        }
        let inner = choices.into_iter().flatten();
        Token::Either(vec![
            std::iter::once(Token::Char('{')).chain(inner).chain([Token::Char('}')]).collect(),
        ])
    }
}

/// What has to match after the tokens at hand.
struct Then<'t> {
    tokens: &'t [Token],
    next: Option<&'t Then<'t>>,
}

struct Matcher {
    steps: usize,
}

impl Matcher {
    fn run(&mut self, tokens: &[Token], then: Option<&Then<'_>>, text: &[char]) -> bool {
        self.steps += 1;
        if self.steps > STEPS {
            return false;
        }
        let Some((token, rest)) = tokens.split_first() else {
            return match then {
                Some(then) => self.run(then.tokens, then.next, text),
                None => text.is_empty(),
            };
        };
        match token {
            Token::Any => (0..=text.len()).any(|n| self.run(rest, then, &text[n..])),
            Token::Part => {
                let most = text.iter().position(|c| *c == '/').unwrap_or(text.len());
                (0..=most).any(|n| self.run(rest, then, &text[n..]))
            }
            Token::Dirs => {
                text.first() == Some(&'/')
                    && (0..text.len()).any(|n| text[n] == '/' && self.run(rest, then, &text[n + 1..]))
            }
            Token::Either(choices) => {
                let after = Then { tokens: rest, next: then };
                choices.iter().any(|choice| self.run(choice, Some(&after), text))
            }
            Token::Number(low, high) => {
                let sign = usize::from(matches!(text.first(), Some('-' | '+')));
                let digits = text[sign..].iter().take_while(|c| c.is_ascii_digit()).count();
                let number: String = text[..sign + digits].iter().collect();
                let inside = number.parse::<i64>().is_ok_and(|n| (*low..=*high).contains(&n));
                inside && self.run(rest, then, &text[sign + digits..])
            }
            single => text.first().is_some_and(|c| single.takes(*c)) && self.run(rest, then, &text[1..]),
        }
    }
}

impl Token {
    /// Whether a token for one character takes this one.
    fn takes(&self, c: char) -> bool {
        match self {
            Token::Char(wanted) => *wanted == c,
            Token::One => c != '/',
            Token::Class { negated, ranges } => {
                c != '/' && ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
            _ => false,
        }
    }
}
