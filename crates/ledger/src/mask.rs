//! Secrets in what goes to the journal, found by their shape and replaced. One pass, linear time.
//!
//! A mask is a courtesy, not a proof: what has no known shape and no telling name passes.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

/// What stands for a secret.
const MASK: &[u8] = b"[masked]";

/// Alternatives in order of precedence. The group `keep`, where there is one, stays in front of the mask.
const SHAPES: &[&str] = &[
    // A private key, to its end, line breaks escaped or not; or, without an end, as far as it looks like one.
    concat!(
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:",
        r"(?:[A-Za-z0-9+/=\s:,.-]|\\+[nrt])*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----",
        r"|(?:[A-Za-z0-9+/=\s]|\\+[nrt])*)",
    ),
    // Tokens that say what they are.
    r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA)[A-Z0-9]{16}\b",
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})",
    r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\bxapp-[A-Za-z0-9-]{10,}",
    r"\b(?:npm_|pypi-|hf_|dckr_pat_|dop_v1_|shpat_|SG\.)[A-Za-z0-9_.-]{16,}",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    // The password of a URL.
    r#"(?<keep1>\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"']*:)[^\s/@"']+(?<after>@)"#,
    // The header of a request.
    r"(?i)(?<keep2>\bbearer\s+)[A-Za-z0-9+/=._~-]{16,}",
    // A telling name in quotes with its value, as in JSON, once more quoted inside JSON too. A number is none. The
    // value's quotes are of the name's kind, or `'`: any other `"` may be the one that closes a string of JSON.
    concat!(
        r#"(?i)(?<keep3>NAME"\s*(?:=>|[:=])\s*)"#,
        r#"(?:"(?:[^"\\]|\\.)*|'[^'"\\\n]*|[A-Za-z_][^\s"'\\,;&<>(){}\[\]]*)"#,
    ),
    concat!(
        r#"(?i)(?<keep6>NAME(?:\\"|')\s*(?:=>|[:=])\s*)"#,
        r#"(?:\\"(?:[^"\\]|\\[^"])*|"(?:[^"\\,:}\]\s]|\\.)(?:[^"\\]|\\.)*|'[^'"\\\n]*"#,
        r#"|[A-Za-z_][^\s"'\\,;&<>(){}\[\]]*)"#,
    ),
    // A telling name with a value: `password=…`, `api_key: "…"`. A quote that closes a string of JSON opens no value.
    concat!(
        r#"(?i)(?<keep4>NAME\s*(?::=|=>|[:=])\s*(?:(?:bearer|basic|token)\s+)?)"#,
        r#"(?:\\"[^"\\,:}\]\s](?:[^"\\]|\\[^"])*|"(?:[^"\\,:}\]\s]|\\.)(?:[^"\\]|\\.)*|'[^'"\\\n]*"#,
        r#"|[^\s"'\\,;&<>(){}\[\]]+)"#,
    ),
    r#"(?i)(?<keep5>--?(?:password|passwd|token|secret|api-key)\s+)[^\s"'\\,;&-][^\s"'\\,;&]*"#,
];

/// The names that tell of a secret.
const NAME: &str = "(?:passwo?r?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|\
                    client[_-]?secret|credentials?|authorization)[0-9]*(?:[_-][a-z0-9_-]*)?";

static SECRET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let shapes: Vec<String> = SHAPES.iter().map(|shape| format!("(?:{shape})")).collect();
    Regex::new(&format!("(?-u){}", shapes.join("|").replace("NAME", NAME))).ok()
});

/// `text` with what looks like a secret replaced by `[masked]`.
pub fn mask(text: &str) -> String {
    String::from_utf8_lossy(&mask_bytes(text.as_bytes())).into_owned()
}

/// The same for bytes. What is valid JSON stays valid: neither a quote nor an escape is cut in two.
pub(crate) fn mask_bytes(text: &[u8]) -> Cow<'_, [u8]> {
    // A table that does not compile (a test would have failed) must not let secrets through.
    let Some(secret) = &*SECRET else { return Cow::Borrowed(MASK) };
    secret.replace_all(text, |found: &Captures<'_>| replacement(found))
}

fn replacement(found: &Captures<'_>) -> Vec<u8> {
    let kept =
        ["keep1", "keep2", "keep3", "keep4", "keep5", "keep6"].iter().find_map(|name| found.name(name));
    let Some(kept) = kept else { return MASK.to_vec() };
    let value = &found[0][kept.as_bytes().len()..];
    // The value's opening quote stays, so that its closing one still has a partner.
    let quote: &[u8] = if value.starts_with(br#"\""#) {
        br#"\""#
    } else if value.starts_with(b"\"") || value.starts_with(b"'") {
        &value[..1]
    } else {
        b""
    };
    if matches!(&value[quote.len()..], b"" | b"null" | b"true" | b"false") {
        return found[0].to_vec();
    }
    let after = found.name("after").map_or(&b""[..], |after| after.as_bytes());
    [kept.as_bytes(), quote, MASK, after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_compiles() {
        assert!(SECRET.is_some());
    }

    #[test]
    fn secrets_by_shape_and_by_name() {
        for (text, masked) in [
            ("key AKIAIOSFODNN7EXAMPLE.", "key [masked]."),
            ("use ghp_0123456789abcdefghij0123456789abcdef now", "use [masked] now"),
            ("sk-ant-api03-abcdefghijklmnopqrstuvwxyz", "[masked]"),
            ("sk-0123456789abcdefghijABCDEFGHIJ", "[masked]"),
            ("xoxb-1234567890-abcdefghij", "[masked]"),
            ("password=hunter2&user=me", "password=[masked]&user=me"),
            ("DB_PASSWORD: 'a b c'", "DB_PASSWORD: '[masked]'"),
            ("export API_KEY=abc", "export API_KEY=[masked]"),
            (r#"{"password":"a\"b","x":1}"#, r#"{"password":"[masked]","x":1}"#),
            (
                r#"{"text":"{\"token\": \"abc\", \"x\": 1}"}"#,
                r#"{"text":"{\"token\": \"[masked]\", \"x\": 1}"}"#,
            ),
            (r#"{'password': "ab c", 'n': 1}"#, r#"{'password': "[masked]", 'n': 1}"#),
            ("postgres://me:s3cr3t@host/db", "postgres://me:[masked]@host/db"),
            ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer [masked]"),
            ("curl -H 'X: Bearer abcdefgh12345678'", "curl -H 'X: Bearer [masked]'"),
            ("tool --token abcdef -v", "tool --token [masked] -v"),
            ("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb", "a\n[masked]\nb"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn", "[masked]"),
            (
                r#"{"a":"-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\n","b":1}"#,
                r#"{"a":"[masked]\n","b":1}"#,
            ),
            (r#"{"a":"-----BEGIN PRIVATE KEY-----\nMHcC","b":1}"#, r#"{"a":"[masked]","b":1}"#),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
    }

    #[test]
    fn what_only_resembles_stays() {
        for text in [
            "a task-list and a risk-free, desk-bound word",
            "the tokenizer counts tokens",
            r#"{"password":null,"token":"","max_tokens":4096,"token":17}"#,
            r#"{"a":"password=","b":"token:"}"#,
            // The quote after the sign closes the string that the name stands in.
            r#"{"a":"password\"=","c":"p","b":1}"#,
            r#"{"a":"password'=","c":"p","b":1}"#,
            r#"{"a":"password\": ","c":"p","b":1}"#,
            "a basic understanding, max_tokens=4096, the bearer of news",
            "http://localhost:8080/x",
            "fn secret() -> Token",
            "",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
