//! A command that runs: its process, its output, its end, and what it left behind.
