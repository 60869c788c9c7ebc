//! The bytes of a new file, or of an overwrite that keeps the old file's form.

use crate::codec;
use crate::edit::{EditError, line_and_column, to_lf};
use crate::form::{Break, Encoding, Eol, Form};

/// What the caller (an argument, `.editorconfig`) asks for; `None` = keep the old file's, else the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// Line endings; [`Eol::None`] and [`Eol::Mixed`] ask for nothing.
    pub eol: Option<Eol>,
    /// The encoding. Default: the old file's, else UTF-8.
    pub encoding: Option<Encoding>,
    /// A byte order mark. Default: the old file's; in a new file only for UTF-16 and UTF-32, or where the content brings one.
    pub bom: Option<bool>,
    /// Whether a last line without a break gets one; nothing is ever taken off. Default: unless the old file had none.
    pub final_newline: Option<bool>,
}

/// The bytes of a file with this content. `keep` is the form of the file that is overwritten. In an old file with line breaks
/// (or when asked) every LF and CRLF becomes that file's ending, the more frequent one if mixed; else content is stored as sent.
///
/// # Errors
/// [`EditError::NotEncodable`] (item 0) when the encoding lacks a character of the content.
pub fn compose(content: &str, keep: Option<&Form>, want: &Want) -> Result<Vec<u8>, EditError> {
    let body = content.strip_prefix('\u{feff}').unwrap_or(content);
    let encoding = want.encoding.or(keep.map(|k| k.encoding)).unwrap_or(Encoding::Utf8);
    let bom = want.bom.or(keep.map(|k| k.bom)).unwrap_or(encoding.unit() > 1 || body.len() < content.len());
    let eol = wanted_break(want.eol).or(keep.filter(|k| k.eol != Eol::None).map(|k| k.majority));
    let mut text = match eol {
        None => body.to_owned(),
        Some(Break::Lf) => to_lf(body).into_owned(),
        Some(Break::Crlf) => to_lf(body).replace('\n', "\r\n"),
    };
    let complete = want.final_newline.or(keep.map(|k| k.final_newline)).unwrap_or(true);
    if complete && !text.is_empty() && !text.ends_with('\n') {
        text.push_str(eol.unwrap_or_else(|| own_break(body)).as_str());
    }
    let encoded = codec::encode(&text, encoding).map_err(|bad| {
        let (line, column) = line_and_column(&text, bad.at);
        EditError::NotEncodable { item: 0, ch: bad.ch, encoding, line, column }
    })?;
    let mut bytes = if bom { encoding.bom().to_vec() } else { Vec::new() };
    bytes.extend(encoded);
    Ok(bytes)
}

fn wanted_break(eol: Option<Eol>) -> Option<Break> {
    match eol {
        Some(Eol::Lf) => Some(Break::Lf),
        Some(Eol::Crlf) => Some(Break::Crlf),
        _ => None,
    }
}

/// The break that content uses most; LF when equal or none.
fn own_break(content: &str) -> Break {
    let (all, crlf) = (content.matches('\n').count(), content.matches("\r\n").count());
    if crlf * 2 > all { Break::Crlf } else { Break::Lf }
}
