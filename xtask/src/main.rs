//! The project's chores: `cargo xtask tidy` keeps the house's rules, `cargo xtask ci` runs every check,
//! `cargo xtask bench` measures what is promised.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this program is for")]

mod bench;
mod ci;
mod clients;
mod licences;
mod long;
mod packages;
mod tidy;
mod workspace;

use std::process::ExitCode;

/// What a command of this program can fail with: one line for whoever started it.
type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "\
usage: cargo xtask COMMAND
  ci [--long]   every check, in the order of their cost; --long adds what takes more than its share
  bench [NAME…] the promised figures, each against a named peer; --list names them
  replay DIR…   the newest commits of git repositories (COTENANT_REPLAY_COMMITS, 2000), each applied by apply_patch and
                compared with the commit's tree
  mutate [DIR…] edits of real files (COTENANT_MUTATE_EACH of a language, 1), spoiled by what models get wrong, through every
                format and, where installed, other tools (COTENANT_CODEX names the envelope's own); 0 wrong bytes or it fails
  fuzz-sed [--pairs N] [--seed S]
                generated commands that edit in place (1000000), carried out here and by the real bash and sed; words of
                100,000 lines beside bash's; 0 differences or it fails
  clients       clients that others wrote, against what was built here
  tidy          the house's rules alone
  licences      the licences of what is locked, against deny.toml";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["ci"] => ci::run(ci::Reach::Usual),
        ["ci", "--long"] => ci::run(ci::Reach::Long),
        ["bench", rest @ ..] => bench::run(rest),
        ["replay", first, rest @ ..] => long::replay(first, rest),
        ["mutate", rest @ ..] => long::mutate(rest),
        ["fuzz-sed", rest @ ..] => long::fuzz_sed(rest),
        ["clients"] => clients::run(),
        ["tidy"] => tidy::run(),
        ["licences"] => licences::run(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
