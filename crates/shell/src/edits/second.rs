//! A second opinion on a command line: the same commands, from the tokens and words that a reader of the whole shell
//! language finds. It can only take back what the strict reader said.

use std::iter::Peekable;
use std::vec::IntoIter;

use brush_parser::word::{WordPiece, WordPieceWithSource};
use brush_parser::{ParserOptions, Token, TokenizerOptions};

use super::lex::{Redirect, Simple, is_safe};

/// The commands of `text`, as far as they are of the kinds that the strict reader knows.
pub(super) fn read(text: &str) -> Option<Vec<Simple>> {
    let tokens = brush_parser::uncached_tokenize_str(text, &TokenizerOptions::default()).ok()?;
    let mut tokens = tokens.into_iter().peekable();
    let mut commands = Vec::new();
    while let Some(token) = tokens.peek() {
        if separates(token) {
            tokens.next();
        } else {
            commands.push(simple(&mut tokens)?);
        }
    }
    Some(commands)
}

type Tokens = Peekable<IntoIter<Token>>;

fn separates(token: &Token) -> bool {
    matches!(token, Token::Operator(sign, _) if matches!(sign.as_str(), "&&" | ";" | "\n"))
}

/// One command, up to what separates it from the next.
fn simple(tokens: &mut Tokens) -> Option<Simple> {
    let mut command = Simple::default();
    while let Some(token) = tokens.next_if(|token| !separates(token)) {
        let once = match token {
            Token::Word(word, _) => {
                command.words.push(literal(&word)?);
                true
            }
            Token::Operator(sign, _) => match sign.as_str() {
                ">" | ">>" => {
                    let to = literal(&word(tokens)?)?;
                    command.out.replace(Redirect { append: sign == ">>", to }).is_none()
                }
                "<<" | "<<-" => command.document.replace(document(tokens)?).is_none(),
                _ => false,
            },
        };
        once.then_some(())?;
    }
    Some(command)
}

fn word(tokens: &mut Tokens) -> Option<String> {
    match tokens.next()? {
        Token::Word(word, _) => Some(word),
        Token::Operator(..) => None,
    }
}

/// A here-document: its end as it was announced, its text, its end again.
fn document(tokens: &mut Tokens) -> Option<String> {
    let (end, text, _) = (word(tokens)?, word(tokens)?, word(tokens)?);
    let literal = end.contains(['\'', '"', '\\']);
    (literal || !text.contains(['$', '`', '\\'])).then_some(text)
}

/// The text of a word that has nothing to expand.
fn literal(word: &str) -> Option<String> {
    if word.chars().all(is_safe) {
        return Some(word.to_owned());
    }
    let pieces = brush_parser::word::parse(word, &ParserOptions::default()).ok()?;
    let mut text = String::new();
    gather(&pieces, &mut text)?;
    Some(text)
}

fn gather(pieces: &[WordPieceWithSource], text: &mut String) -> Option<()> {
    for piece in pieces {
        match &piece.piece {
            WordPiece::Text(plain) | WordPiece::SingleQuotedText(plain) => text.push_str(plain),
            WordPiece::EscapeSequence(escape) => {
                let escaped = escape.strip_prefix('\\')?;
                if escaped != "\n" {
                    text.push_str(escaped);
                }
            }
            WordPiece::DoubleQuotedSequence(inside) => gather(inside, text)?,
            _ => return None,
        }
    }
    Some(())
}
