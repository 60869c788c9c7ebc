//! The tables of the ordinary tools.

use super::{Options, operands};
use crate::policy::part::Arg;

/// Programs and builtins that have no option and no operand that writes, runs or evaluates anything.
pub(super) const TAME: &str = "cat tac rev ls dir head tail wc cut tr nl paste comm join cmp stat du df basename dirname realpath \
    readlink seq echo true false : grep egrep fgrep fold fmt expand unexpand md5sum sha1sum sha256sum \
    sha512sum b2sum cksum sum od hexdump uname id whoami groups nproc arch tty pwd which type sleep \
    printenv strings numfmt tsort factor expr diff column base64 base32 free ps uptime locale \
    logname users exit return break continue wait cd shasum pgrep lscpu lsblk readelf";

/// Programs that show what is in the files they are given.
pub(super) const SHOWS: &str = "cat tac rev head tail cut nl paste comm join grep egrep fgrep rg fold fmt expand od hexdump xxd \
    strings diff base64 base32 sed awk gawk mawk less more sort uniq jq bat batcat cp mv";

/// Whether a list of names, separated by blanks, has this one.
pub(super) fn named(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

const NONE: Options = Options { flags: "", valued: "", long: "" };

/// Tools with options that write or run: the ones that do not.
const TOOLS: &[(&str, Options)] = &[
    (
        "sort",
        Options {
            flags: "bdfghiMnRrVcCsuzm",
            valued: "ktS",
            long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort ignore-nonprinting \
                   month-sort numeric-sort random-sort reverse version-sort check? stable unique zero-terminated merge key= \
                   field-separator= buffer-size= parallel= sort= debug help version",
        },
    ),
    (
        "file",
        Options {
            flags: "bhikLNnprsSz0E",
            valued: "FP",
            long: "brief mime mime-type mime-encoding dereference no-dereference keep-going raw separator= help version",
        },
    ),
    (
        "tree",
        Options {
            flags: "adflxpsughDFqNQrtcUvAiSnCJX#",
            valued: "LPI",
            long: "dirsfirst filesfirst noreport gitignore prune charset= filelimit= du si inodes sort? matchdirs help version",
        },
    ),
    (
        "date",
        Options {
            flags: "uRI",
            valued: "dr",
            long: "utc iso-8601? rfc-3339= rfc-email date= reference= help version",
        },
    ),
    (
        "jq",
        Options {
            flags: "ncCMaSserRje1",
            valued: "",
            long: "null-input raw-input slurp compact-output raw-output join-output ascii-output sort-keys color-output \
                   monochrome-output tab exit-status seq stream arg= argjson= args jsonargs help version",
        },
    ),
    ("iconv", Options { flags: "lcs", valued: "ft", long: "list from-code= to-code= help version" }),
    ("xxd", Options { flags: "abCeEiupd", valued: "cglos", long: "" }),
    (
        "hostname",
        Options { flags: "fsidIyA", valued: "", long: "fqdn short ip-address domain all-ip-addresses" },
    ),
    ("printf", NONE),
    (
        "uniq",
        Options {
            flags: "cdDiuz",
            valued: "fsw",
            long: "count repeated all-repeated? skip-fields= ignore-case skip-chars= unique zero-terminated check-chars= group? help version",
        },
    ),
    (
        "bat",
        Options {
            flags: "npAuf",
            valued: "rlH",
            long: "line-range= language= plain number style= color= decorations= show-all",
        },
    ),
    ("tokei", Options { flags: "fC", valued: "est", long: "files exclude= sort= types= compact" }),
];

/// Programs that say their version, their help or their state, and the sub-commands that only show.
const VERBS: &[(&str, &str)] = &[
    ("cargo", "check metadata tree pkgid locate-project verify-project read-manifest help version"),
    ("go", "list version env vet doc help"),
    ("npm", "ls list ll view info show outdated root prefix bin explain why help"),
    ("pip", "list show freeze check help"),
    ("pip3", "list show freeze check help"),
    ("dotnet", "--info --list-sdks --list-runtimes"),
];

/// Options of those sub-commands.
const VERB_OPTIONS: Options = Options {
    flags: "vqajlgpe",
    valued: "Fmfidn",
    long: "verbose quiet all all-targets workspace release offline locked frozen json long depth= lib bins bin= tests test= examples \
           example= benches bench= package= exclude= features= all-features no-default-features profile= target= \
           message-format= keep-going jobs= color= no-deps format-version= filter-platform= edges= invert= duplicates prefix= \
           charset= format= global prod dev production parseable deps test find compiled tree latest outdated",
};

/// Programs whose `--version` does nothing else. Not here: what first runs something of the project (`yarn`, `mvn`, `pytest`).
const VERSIONED: &str = "python python3 node npm npx bun deno rustc cargo rustfmt clippy-driver gcc g++ clang cc \
    make cmake ninja java javac go gofmt ruby gem perl php pip pip3 uv poetry \
    ruff black mypy prettier tsc docker kubectl helm terraform git rg fd jq sed awk gawk bash zsh \
    curl wget tar ssh psql sqlite3 dotnet swift protoc buf just rustup";

/// Whether a tool of the tables changes nothing with these words.
pub(super) fn is_read_only(name: &str, rest: &[Arg]) -> bool {
    if let [arg] = rest {
        let asks = matches!(arg.literal(), Some("--version" | "-V" | "--help" | "version"))
            || (arg.literal() == Some("-v") && matches!(name, "node" | "npm" | "ruby"));
        if asks && named(VERSIONED, name) {
            return true;
        }
    }
    if let Some((_, verbs)) = VERBS.iter().find(|(tool, _)| *tool == name) {
        return verb(name, verbs, rest);
    }
    match name {
        "command" => rest.first().is_some_and(|arg| matches!(arg.literal(), Some("-v" | "-V"))),
        "env" => rest.is_empty(),
        "set" => set(rest),
        "printf" => printf(rest),
        "sed" | "awk" => false,
        _ => {
            let Some((_, options)) = TOOLS.iter().find(|(tool, _)| *tool == name) else { return false };
            let Some(found) = operands(rest, options) else { return false };
            match name {
                // The second operand of these is written; a pattern may be two.
                "uniq" | "xxd" => found.len() <= 1 && found.iter().all(|arg| !arg.globbed),
                // What is not a format sets the clock, a name the host's.
                "date" => found.iter().all(|arg| arg.text().starts_with('+')),
                "hostname" => found.is_empty(),
                _ => true,
            }
        }
    }
}

/// A sub-command of the table with harmless options.
fn verb(name: &str, verbs: &str, rest: &[Arg]) -> bool {
    // `cargo +nightly check`
    let toolchain = rest.first().is_some_and(|arg| name == "cargo" && arg.text().starts_with('+'));
    let rest = &rest[usize::from(toolchain)..];
    let Some((first, rest)) = rest.split_first() else { return false };
    let Some(verb) = first.literal().filter(|verb| named(verbs, verb)) else { return false };
    // `go env -w` writes; `npm config` and the like are not in the table.
    let writes = (name, verb) == ("go", "env") && !rest.iter().all(|arg| !arg.word.start().starts_with('-'));
    !writes && operands(rest, &VERB_OPTIONS).is_some()
}

/// `set -euo pipefail` and the like.
fn set(rest: &[Arg]) -> bool {
    let known = |text: &str| {
        text == "pipefail"
            || text.strip_prefix(['-', '+']).is_some_and(|letters| {
                !letters.is_empty() && letters.chars().all(|letter| "euxo".contains(letter))
            })
    };
    !rest.is_empty() && rest.iter().all(|arg| arg.literal().is_some_and(known))
}

/// `printf` without `-v`, which evaluates the name it is given.
fn printf(rest: &[Arg]) -> bool {
    let format = rest.first().is_some_and(|arg| {
        arg.literal().is_some_and(|text| text == "--" || !text.starts_with('-')) || arg.word.is_operand()
    });
    format && rest.iter().all(|arg| arg.word.is_tame())
}

/// `awk` whose program neither runs nor writes nor reads commands; a comparison with `>` counts as a write.
pub(super) fn awk(rest: &[Arg]) -> bool {
    let options = Options { flags: "", valued: "Fv", long: "field-separator= assign= version help" };
    let Some(found) = operands(rest, &options) else { return false };
    let Some((program, files)) = found.split_first() else { return false };
    let Some(text) = program.literal() else { return false };
    let bare = text.replace("||", " ");
    let risky = ["system", "getline", "close", "fflush"].iter().any(|word| bare.contains(word))
        || bare.contains(['|', '>', '@', '`']);
    !risky && files.iter().all(|arg| arg.word.is_tame())
}
