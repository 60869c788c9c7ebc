//! A refusal: a stable code, one or two sentences, the facts, and the next call to make.

use std::borrow::Cow;
use std::fmt;

macro_rules! codes {
    ($($name:ident = $wire:literal,)*) => {
        /// The stable code of a refusal; the words of the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each variant is documented by its wire name in the contract")]
        pub enum Code { $($name,)* }

        impl Code {
            /// Every code, in the order of the contract.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The word on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Code::$name => $wire,)* }
            }
        }
    };
}

codes! {
    BadInput = "BAD_INPUT",
    PathOutside = "PATH_OUTSIDE",
    PathProtected = "PATH_PROTECTED",
    PathReadOnly = "PATH_READ_ONLY",
    NotFound = "NOT_FOUND",
    AlreadyExists = "ALREADY_EXISTS",
    NotAFile = "NOT_A_FILE",
    NotADirectory = "NOT_A_DIRECTORY",
    NotText = "NOT_TEXT",
    TooLarge = "TOO_LARGE",
    NotEncodable = "NOT_ENCODABLE",
    HardLinked = "HARD_LINKED",
    CrossDevice = "CROSS_DEVICE",
    TextNotFound = "TEXT_NOT_FOUND",
    TextAmbiguous = "TEXT_AMBIGUOUS",
    NothingToChange = "NOTHING_TO_CHANGE",
    AlreadyApplied = "ALREADY_APPLIED",
    EditRequiresPriorRead = "EDIT_REQUIRES_PRIOR_READ",
    FileChangedSinceRead = "FILE_CHANGED_SINCE_READ",
    PatternInvalid = "PATTERN_INVALID",
    PatternTooLarge = "PATTERN_TOO_LARGE",
    PatchMalformed = "PATCH_MALFORMED",
    PatchConflict = "PATCH_CONFLICT",
    LeaseHeld = "LEASE_HELD",
    LeaseSuperseded = "LEASE_SUPERSEDED",
    WaitCycle = "WAIT_CYCLE",
    ApprovalPending = "APPROVAL_PENDING",
    ApprovalDenied = "APPROVAL_DENIED",
    ApprovalStale = "APPROVAL_STALE",
    ProfileReadOnly = "PROFILE_READ_ONLY",
    PlanMode = "PLAN_MODE",
    CommandDenied = "COMMAND_DENIED",
    HookDenied = "HOOK_DENIED",
    LabelBlocked = "LABEL_BLOCKED",
    Stopped = "STOPPED",
    SessionEnded = "SESSION_ENDED",
    UndoConflict = "UNDO_CONFLICT",
    NotRestorable = "NOT_RESTORABLE",
    HandleExpired = "HANDLE_EXPIRED",
    LimitReached = "LIMIT_REACHED",
    NotAvailable = "NOT_AVAILABLE",
    PermissionDenied = "PERMISSION_DENIED",
    OutOfSpace = "OUT_OF_SPACE",
    IoError = "IO_ERROR",
    Busy = "BUSY",
}

impl Code {
    /// `APPROVAL_PENDING` is an answer, everything else sets `isError`.
    pub fn is_error(self) -> bool {
        self != Code::ApprovalPending
    }

    /// Whether the same call may succeed later by itself: such an answer is never stored under an idempotency key (R16).
    pub fn is_passing(self) -> bool {
        matches!(
            self,
            Code::Busy
                | Code::LeaseHeld
                | Code::ApprovalPending
                | Code::OutOfSpace
                | Code::IoError
                | Code::Stopped
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The value of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactValue {
    /// A text; printed bare, or as a JSON string where it has a space, a quote or a control character.
    Text(String),
    /// A number.
    Number(i64),
    /// `yes` or `no` on line 1, true or false in JSON.
    Flag(bool),
    /// Comma-separated on line 1, an array in JSON.
    List(Vec<String>),
}

impl From<&str> for FactValue {
    fn from(text: &str) -> Self {
        FactValue::Text(text.to_owned())
    }
}
impl From<String> for FactValue {
    fn from(text: String) -> Self {
        FactValue::Text(text)
    }
}
impl From<bool> for FactValue {
    fn from(flag: bool) -> Self {
        FactValue::Flag(flag)
    }
}
macro_rules! number {
    ($($kind:ty),*) => {$(
        impl From<$kind> for FactValue {
            fn from(number: $kind) -> Self {
                FactValue::Number(i64::try_from(number).unwrap_or(i64::MAX))
            }
        }
    )*};
}
number!(u16, u32, u64, usize, i32, i64);
impl From<Vec<String>> for FactValue {
    fn from(list: Vec<String>) -> Self {
        FactValue::List(list)
    }
}

/// The form on line 1.
impl fmt::Display for FactValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FactValue::Text(text) => quoted(text, false, f),
            FactValue::Number(number) => write!(f, "{number}"),
            FactValue::Flag(flag) => f.write_str(if *flag { "yes" } else { "no" }),
            FactValue::List(list) => list.iter().enumerate().try_for_each(|(index, item)| {
                if index > 0 {
                    f.write_str(",")?;
                }
                quoted(item, true, f)
            }),
        }
    }
}

/// `text` bare, or as a JSON string where it has a space, a quote, a backslash, in a list a comma, a control character
/// or one that reorders or hides text.
fn quoted(text: &str, listed: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let splits = |ch: char| ch.is_whitespace() || ch == '"' || ch == '\\' || (listed && ch == ',');
    let plain = |ch: char| !(splits(ch) || needs_escape(ch));
    if !text.is_empty() && text.chars().all(plain) {
        return f.write_str(text);
    }
    f.write_str("\"")?;
    for ch in text.chars() {
        match ch {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            _ if needs_escape(ch) => {
                let mut units = [0; 2];
                ch.encode_utf16(&mut units).iter().try_for_each(|unit| write!(f, "\\u{unit:04x}"))?;
            }
            _ => write!(f, "{ch}")?,
        }
    }
    f.write_str("\"")
}

/// Characters that could end a line, or reorder or hide what stands around them: control characters, the separators of
/// lines and paragraphs, bidi controls, zero-width characters, the BOM, annotations and tags.
pub fn needs_escape(ch: char) -> bool {
    ch.is_control()
        || matches!(ch,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A named fact of a header line or a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Its name, the field's name in JSON.
    pub name: Cow<'static, str>,
    /// Its value.
    pub value: FactValue,
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// Why a call was not carried out. It is a tool result: the session goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The stable code.
    pub code: Code,
    /// The facts of line 1, in order.
    pub facts: Vec<Fact>,
    /// One or two sentences.
    pub message: String,
    /// A diff or fresh content, below the message. Empty for none.
    pub block: String,
    /// A call that works verbatim, or what to do; without the leading `next: `.
    pub next: String,
}

impl Refusal {
    /// A refusal with a code and a sentence; facts and the next step are added by the builders.
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal {
            code,
            facts: Vec::new(),
            message: message.into(),
            block: String::new(),
            next: String::new(),
        }
    }

    /// Adds a fact to line 1.
    #[must_use]
    pub fn fact(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<FactValue>) -> Refusal {
        self.facts.push(Fact { name: name.into(), value: value.into() });
        self
    }

    /// Sets the block.
    #[must_use]
    pub fn block(mut self, block: impl Into<String>) -> Refusal {
        self.block = block.into();
        self
    }

    /// Sets the next step.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Refusal {
        self.next = next.into();
        self
    }

    /// The fact of that name.
    pub fn get(&self, name: &str) -> Option<&FactValue> {
        self.facts.iter().find(|fact| fact.name == name).map(|fact| &fact.value)
    }
}

/// The text of ANSWERS.md: line 1, message, block, `next: `.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.name())?;
        self.facts.iter().try_for_each(|fact| write!(f, " {fact}"))?;
        for part in [&self.message, &self.block] {
            if !part.is_empty() {
                write!(f, "\n{}", part.trim_end_matches('\n'))?;
            }
        }
        if !self.next.is_empty() {
            write!(f, "\nnext: {}", self.next)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_form_of_the_contract() {
        let refusal = Refusal::new(Code::NotFound, "There is no a b.")
            .fact("path", "a b")
            .fact("tries", 3u32)
            .fact("seen", false)
            .fact("near", vec!["x".to_owned(), "y".to_owned()])
            .block("1|x\n")
            .next("read_file {\"path\":\"x\"}");
        assert_eq!(
            refusal.to_string(),
            "NOT_FOUND path=\"a b\" tries=3 seen=no near=x,y\nThere is no a b.\n1|x\nnext: read_file {\"path\":\"x\"}"
        );
        assert_eq!(refusal.get("tries"), Some(&FactValue::Number(3)));
    }

    #[test]
    fn values_that_could_break_or_fake_a_line_are_quoted() {
        for (value, text) in [
            ("plain/path.rs", "plain/path.rs"),
            ("", "\"\""),
            ("a\nb=c", "\"a\\nb=c\""),
            ("q\"\\", "\"q\\\"\\\\\""),
            ("\u{202e}txt.a", "\"\\u202etxt.a\""),
            ("\u{1b}[2K", "\"\\u001b[2K\""),
        ] {
            assert_eq!(FactValue::from(value).to_string(), text);
        }
    }

    #[test]
    fn codes_are_unique_and_pending_is_no_error() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
        assert!(!Code::ApprovalPending.is_error());
        assert!(Code::ApprovalPending.is_passing() && !Code::TextNotFound.is_passing());
    }
}
