//! The files of the workspace that hooks run: protected like `cotenant.toml` itself. Whoever could write one would decide
//! for the hook, and with the rights of the user.

use std::path::Path;

use cotenant_model::{Hooks, RelPath};

/// Programs that run the file they are given.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "fish", "env", "exec", "python", "python3", "node", "deno", "bun", "ruby",
    "perl",
];

/// Words in whose place stands the workspace.
const ROOTS: &[&str] = &["$CLAUDE_PROJECT_DIR/", "${CLAUDE_PROJECT_DIR}/", "$PWD/", "./"];

/// Patterns for `[workspace] protected` that cover the scripts of the hooks, as far as their command lines begin with
/// them, whether they exist or not.
pub(crate) fn scripts(hooks: &Hooks, root: &Path) -> Vec<String> {
    let all = hooks.pre_tool_call.iter().chain(&hooks.post_tool_response);
    all.filter_map(|hook| script(&hook.command, root)).collect()
}

fn script(command: &str, root: &Path) -> Option<String> {
    let bare = |word: &str| word.replace(['"', '\''], "");
    let named = |word: &String| {
        let name = word.rsplit('/').next().unwrap_or_default();
        INTERPRETERS.contains(&name) || word.starts_with('-') || word.contains('=')
    };
    let mut words = command.split_whitespace().map(bare);
    let first = words.next()?;
    let word = if named(&first) { words.find(|word| !named(word))? } else { first.clone() };
    // A bare name that begins a command is looked for in PATH.
    if word == first && !word.contains('/') {
        return None;
    }
    let stripped = ROOTS.iter().find_map(|start| word.strip_prefix(start)).unwrap_or(&word);
    let inside = match stripped.strip_prefix('/') {
        Some(_) => Path::new(stripped).strip_prefix(root).ok()?.to_str()?.to_owned(),
        None => stripped.to_owned(),
    };
    let path = RelPath::parse(&inside).ok().filter(|path| !path.is_root())?;
    // What would be a sign of a pattern fits itself, and a little more.
    Some(path.to_string().replace(['*', '[', ']', '{', '}', '!', '\\', ','], "?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_line_runs_is_found() {
        for (command, wanted) in [
            ("hooks/check.sh", Some("hooks/check.sh")),
            ("./hooks/check.sh --strict src/lib.rs", Some("hooks/check.sh")),
            ("\"$CLAUDE_PROJECT_DIR\"/hooks/check.sh", Some("hooks/check.sh")),
            ("${CLAUDE_PROJECT_DIR}/check.sh", Some("check.sh")),
            ("/srv/w/check.sh", Some("check.sh")),
            ("/srv/w/sub//check.sh", Some("sub/check.sh")),
            ("python3 -u hooks/check.py src/lib.rs", Some("hooks/check.py")),
            ("sh check.sh", Some("check.sh")),
            ("/usr/bin/env python3 check.py", Some("check.py")),
            ("MODE=1 exec ./a[1].sh", Some("a?1?.sh")),
            ("jq .tool_input src/lib.rs", None),
            ("cargo fmt --check", None),
            ("/usr/local/bin/guard", None),
            ("/workspace/check.sh", None),
            ("../check.sh", None),
            ("sh", None),
            ("", None),
        ] {
            assert_eq!(script(command, Path::new("/srv/w")).as_deref(), wanted, "{command}");
        }
    }
}
