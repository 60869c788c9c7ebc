//! Ids as people and models read them: a letter or two and a number per workspace.

use std::fmt;
use std::str::FromStr;

/// A text that is not an id of the wanted kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadId {
    /// What was given.
    pub given: String,
    /// The kind's prefix, such as `c`.
    pub prefix: &'static str,
}

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not an id such as {}12", self.given, self.prefix)
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                text.trim()
                    .strip_prefix($prefix)
                    .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
                    .and_then(|digits| digits.parse().ok())
                    .map($name)
                    .ok_or_else(|| BadId { given: text.to_owned(), prefix: $prefix })
            }
        }
    };
}

id!(
    /// A sealed change in the ledger, `c118`.
    ChangeId, "c"
);
id!(
    /// One connection of an agent, `se9`.
    SessionId, "se"
);
id!(
    /// Something in the trash, `t5`.
    TrashId, "t"
);
id!(
    /// A question to the human, `a21`.
    ApprovalId, "a"
);
id!(
    /// A plan of plan mode, `p2`.
    PlanId, "p"
);
id!(
    /// A command that runs, or ran, `j4`; bound to its session.
    JobId, "j"
);
id!(
    /// A sandbox of `exec_open`, `x1`; bound to its session.
    ExecId, "x"
);
id!(
    /// A call that `retry` repeats, `r12`; bound to its session.
    RetryToken, "r"
);
id!(
    /// A proposal of a refusal, `s7`; bound to its session.
    SuggestionId, "s"
);
id!(
    /// The rest of a capped answer, `h31`; bound to its session.
    HandleId, "h"
);

/// An agent's name: who calls, over all its sessions.
pub type Agent = std::sync::Arc<str>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_the_wire() {
        assert_eq!(ChangeId(118).to_string(), "c118");
        assert_eq!("c118".parse(), Ok(ChangeId(118)));
        assert_eq!(" se9 ".parse(), Ok(SessionId(9)));
    }

    #[test]
    fn other_kinds_and_nonsense_are_refused() {
        for text in ["118", "a118", "c", "c-1", "c+1", "cc1", "c99999999999999999999"] {
            assert!(text.parse::<ChangeId>().is_err(), "{text}");
        }
    }
}
