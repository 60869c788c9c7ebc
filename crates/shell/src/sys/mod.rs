//! What is needed of the system that no safe library offers, and this crate's only clock.
//!
//! A command is started by a fork of a process with many threads. From there to `execve` nothing may be allocated and
//! no lock taken, so all that a child does is a list of [`Step`]s, made beforehand and only carried out there.
#![allow(unsafe_code, reason = "the only module of this crate that may")]

mod calls;
mod child;
mod clock;
mod hold;
mod step;

pub(crate) use calls::landlock_abi;
pub(crate) use child::{Command, Launch, Phase, Report, Stdio, launch, set_up_failure};
pub(crate) use clock::{Deadline, Moment};
pub(crate) use hold::{Held, hold, quiet_thread};
pub(crate) use step::{Filter, Flavour, Ident, NamespaceKind, Spot, Step, Task};
