//! What commands print: answers on standard output, refusals and slips on standard error.

use std::io::Write;

use cotenant_model::Refusal;
use cotenant_tools::reply::refusal_json;
use serde_json::Value;

use crate::exit::Exit;

/// A line, or several, on standard output. A reader that went away is no error.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
}

/// A value on one line of standard output.
pub(crate) fn json(value: &Value) {
    line(&value.to_string());
}

/// Text on standard output without a line's end, at once: a prompt.
pub(crate) fn prompt(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A refusal: on standard error, or as JSON where that was asked for.
pub(crate) fn refusal(refusal: &Refusal, as_json: bool) -> Exit {
    if as_json {
        json(&refusal_json(refusal).into());
    } else {
        let _ = writeln!(std::io::stderr(), "{refusal}");
    }
    Exit::of(refusal)
}

/// A slip of the caller's.
pub(crate) fn usage(why: &str) -> Exit {
    let _ = writeln!(std::io::stderr(), "cotenant: {why}");
    Exit::Usage
}

/// `text` with every control and every hiding character visible, so that nothing shown can move the cursor, colour
/// or reorder what stands around it. Line ends and tabs stay.
pub(crate) fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for ch in text.chars() {
        if cotenant_model::needs_escape(ch) && ch != '\n' && ch != '\t' {
            safe.push_str(&format!("<U+{:04X}>", ch as u32));
        } else {
            safe.push(ch);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn nothing_shown_can_drive_the_terminal() {
        assert_eq!(safe("\u{1b}]0;x\u{7}a\tb\n"), "<U+001B>]0;x<U+0007>a\tb\n");
        assert_eq!(safe("\u{202e}txt.a\r"), "<U+202E>txt.a<U+000D>");
        assert_eq!(safe("é ü 漢"), "é ü 漢");
    }
}
