//! The reference pages, made from the registry and the tables: what is not there does not exist.

use cotenant_model::{Code, PROTECTED, SENSITIVE, ToolSet};

use crate::registry;
use crate::tool::{Kind, Param, Tool};

/// `docs/tools.md`.
pub fn tools_page() -> String {
    let mut page = String::from(
        "# Tools\n\nMade from the registry; every tool is an MCP tool, a sub-command (`cotenant read-file PATH …`, `--json` for every field) \
         and a Rust function. Every mutating tool also takes `idempotency_key` and `dry_run`, every reading one `max_bytes`.\n",
    );
    for set in ToolSet::ALL {
        let entries: String = registry::in_sets(&[set]).map(entry).collect();
        if !entries.is_empty() {
            page.push_str(&format!("\n## {}\n{entries}", set.name()));
        }
    }
    page
}

fn entry(tool: &Tool) -> String {
    let kind = if tool.mutates() { "changes the workspace" } else { "only looks" };
    let mut text = format!("\n### {}\n\n{} ({kind})\n", tool.name, tool.about);
    if !tool.params.is_empty() {
        text.push_str("\n| argument | type | |\n|---|---|---|\n");
    }
    for param in tool.params {
        text.push_str(&row(param));
    }
    text
}

fn row(param: &Param) -> String {
    let kind = match param.kind {
        Kind::Text => "text".to_owned(),
        Kind::Path => "path".to_owned(),
        Kind::Choice(words) => words.join(" or "),
        Kind::Flag => "true or false".to_owned(),
        Kind::Number => "whole number".to_owned(),
        Kind::List => "texts".to_owned(),
        Kind::Edits => "`[{old_text, new_text, replace_all}]`".to_owned(),
        Kind::Object => "object".to_owned(),
        Kind::Command => "text, or an array of words".to_owned(),
    };
    let mut about = param.about.replace('|', "\\|");
    if param.required {
        about = format!("required. {about}");
    }
    if !param.listed {
        about = "accepted, not listed in the schema".to_owned();
    }
    format!("| `{}` | {kind} | {} |\n", param.name, about.trim())
}

/// `docs/paths.md`: what is protected and what is asked about.
pub fn paths_page() -> String {
    let list = |table: &[&str]| table.iter().map(|entry| format!("`{entry}`")).collect::<Vec<_>>().join(" ");
    format!(
        "# Path classes\n\nMade from the table in `crates/model`. Names are compared at any depth, case folded, on the path as asked and as resolved, \
         whether it exists or not, and in the spellings that other systems take for the same name (zero-width characters, final dots and spaces, \
         `git~1`, `::$DATA`, `\\` as a separator). An entry covers everything below it; `*` stands for any rest or any start.\n\n\
         ## Protected\n\nNeither read nor written by the file tools (`PATH_PROTECTED`); git itself and the human go on writing them. \
         `[workspace] protected = {{ add = [], except = [] }}` in `cotenant.toml` changes the list.\n\n{}\n\n\
         ## Sensitive\n\nRead freely; every write is asked about, creation too, in every profile but `readonly`. A bare repository's files \
         (a directory with `HEAD`, `objects` and `refs`) are sensitive as well.\n\n{}\n\n\
         ## Generated\n\nRead-only (`PATH_READ_ONLY`), by `[workspace] generated` in `cotenant.toml` and by `linguist-generated` in `.gitattributes`.\n",
        list(PROTECTED),
        list(SENSITIVE)
    )
}

/// The head of `docs/refusals.md`; the examples follow in the order of the codes.
pub fn refusals_head() -> String {
    let codes: Vec<String> = Code::ALL.iter().map(|code| format!("`{code}`")).collect();
    format!(
        "# Refusals\n\nA refusal is a tool result: its code and facts, one or two sentences, and the next call to make. These texts come from \
         real calls and are compared by a test. All codes of the contract, in its order: {}. A code without an example below is raised by \
         a tool that does not exist yet, or by a machine's fault (`OUT_OF_SPACE`, `IO_ERROR`, `BUSY`), which the tests of crate `engine` cause.\n",
        codes.join(" ")
    )
}
