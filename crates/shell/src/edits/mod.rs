//! Commands that only edit files in place, carried out without a shell.
