//! How a command ends: 0 done, 1 refused, 2 usage, 3 not available.

use std::process::ExitCode;

use cotenant_model::{Code, Refusal};

/// The four ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It was done.
    Done,
    /// It was refused.
    Refused,
    /// It was not understood.
    Usage,
    /// This machine lacks what it needs.
    NotAvailable,
}

impl Exit {
    /// The end that a refusal stands for.
    pub(crate) fn of(refusal: &Refusal) -> Exit {
        match refusal.code {
            Code::NotAvailable => Exit::NotAvailable,
            _ => Exit::Refused,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Usage => 2,
            Exit::NotAvailable => 3,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_lacks_is_told_apart_from_what_was_refused() {
        let end = |code| Exit::of(&Refusal::new(code, "no"));
        assert_eq!(end(Code::NotAvailable), Exit::NotAvailable);
        for code in Code::ALL.iter().filter(|code| **code != Code::NotAvailable) {
            assert_eq!(end(*code), Exit::Refused, "{code}");
        }
    }
}
