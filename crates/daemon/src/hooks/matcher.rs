//! Which tools a hook is about: a regular expression on the whole name, ours or what Claude Code calls the same.

use regex::{Regex, RegexBuilder};

/// A compiled matcher, in bytes.
const MATCHER: usize = 256 * 1024;

/// What Claude Code calls what our tools do.
const ALSO: &[(&str, &[&str])] = &[
    ("read_file", &["Read"]),
    ("list_directory", &["LS"]),
    ("search_files", &["Grep", "Glob"]),
    ("edit_file", &["Edit", "MultiEdit", "NotebookEdit"]),
    ("replace_text", &["Edit", "MultiEdit"]),
    ("apply_patch", &["Edit", "MultiEdit", "Write"]),
    ("write_file", &["Write"]),
    ("create_path", &["Write"]),
    ("run_command", &["Bash"]),
    ("exec_run", &["Bash"]),
    ("command_output", &["BashOutput"]),
    ("stop_command", &["KillShell", "KillBash"]),
];

/// What Claude Code writes before the name of a tool of this server.
const SERVER: &str = "mcp__cotenant__";

/// Other hosts' names of one of our tools.
pub(super) fn also(tool: &str) -> &'static [&'static str] {
    ALSO.iter().find(|(ours, _)| *ours == tool).map_or(&[], |(_, also)| also)
}

/// A matcher, compiled; the error says what is wrong with it.
pub(crate) fn compiled(matcher: &str) -> Result<Regex, String> {
    let compile = |pattern: &str| RegexBuilder::new(pattern).size_limit(MATCHER).build();
    // By itself first: a stray parenthesis must not close the one that is put around it.
    let error = |error: regex::Error| error.to_string().lines().last().unwrap_or_default().trim().to_owned();
    compile(matcher).map_err(error)?;
    compile(&format!(r"\A(?:{matcher})\z")).map_err(error)
}

/// Whether a matcher fits one of a tool's names.
pub(super) fn fits(matcher: &Regex, tool: &str) -> bool {
    matcher.is_match(tool)
        || matcher.is_match(&format!("{SERVER}{tool}"))
        || also(tool).iter().any(|name| matcher.is_match(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(matcher: &str, tool: &str) -> bool {
        fits(&compiled(matcher).unwrap(), tool)
    }

    #[test]
    fn the_whole_of_a_name_must_match() {
        assert!(fit("edit_file", "edit_file") && fit("edit_.*", "edit_file") && fit(".*", "whoami"));
        assert!(!fit("edit", "edit_file") && !fit("file", "edit_file") && !fit("Edi", "edit_file"));
        assert!(!fit("EDIT_FILE", "edit_file"));
        assert!(fit("edit_file|read_file", "read_file") && !fit("a|edit", "edit_file"));
    }

    #[test]
    fn other_hosts_names_are_names_too() {
        for (matcher, tools) in [
            ("Edit|Write", vec!["edit_file", "replace_text", "apply_patch", "write_file", "create_path"]),
            ("Read", vec!["read_file"]),
            ("Bash", vec!["run_command", "exec_run"]),
            ("Grep|Glob|LS", vec!["search_files", "list_directory"]),
            ("mcp__cotenant__.*", vec!["undo", "edit_file"]),
        ] {
            for tool in tools {
                assert!(fit(matcher, tool), "{matcher} {tool}");
            }
        }
        assert!(
            !fit("Edit|Write", "read_file") && !fit("Bash", "edit_file") && !fit("mcp__other__.*", "undo")
        );
    }

    #[test]
    fn what_is_no_expression_is_said() {
        for matcher in ["(", "a)|(b", "[z-a]", "(?<n>", r"\p{Foo}", "(?x) # comment"] {
            let compiled = compiled(matcher);
            assert!(compiled.is_err() || matcher == "(?x) # comment", "{matcher}");
            if let Err(error) = compiled {
                assert!(!error.is_empty() && !error.contains('\n'), "{error}");
            }
        }
        assert!(compiled("(?:a{1000}){1000}").is_err());
    }
}
