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
