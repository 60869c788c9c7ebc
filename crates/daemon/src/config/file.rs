//! The form of `cotenant.toml`, section by section. What a later part of cotenant will use is held to its form already.
#![allow(
    dead_code,
    reason = "fields that are checked for their form, and not used before their part is built"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Sections {
    pub(super) workspace: Workspace,
    pub(super) limits: Limits,
    pub(super) tools: Tools,
    pub(super) edits: Edits,
    pub(super) durability: Durability,
    pub(super) approvals: Approvals,
    pub(super) agents: BTreeMap<String, Agent>,
    pub(super) commands: Commands,
    pub(super) hooks: Hooks,
    pub(super) leases: Leases,
    pub(super) strikes: toml::Table,
    pub(super) watch: toml::Table,
    pub(super) index: toml::Table,
    pub(super) exec: Exec,
    pub(super) labels: Labels,
    pub(super) retention: Retention,
    pub(super) daemon: Daemon,
    pub(super) http: Http,
    pub(super) telemetry: toml::Table,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Workspace {
    pub(super) folders: Vec<Folder>,
    pub(super) protected: Protected,
    pub(super) generated: Vec<Generated>,
    pub(super) state_dir: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Folder {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) access: Access,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Access {
    Read,
    ReadWrite,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Protected {
    pub(super) add: Vec<String>,
    pub(super) except: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Generated {
    pub(super) paths: Vec<String>,
    pub(super) from: Option<String>,
    pub(super) command: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    pub(super) read_lines: Option<usize>,
    pub(super) read_bytes: Option<usize>,
    pub(super) answer_bytes: Option<usize>,
    pub(super) text_bytes: Option<u64>,
    pub(super) list: Option<usize>,
    pub(super) names: Option<usize>,
    pub(super) matches: Option<usize>,
    pub(super) context: Option<usize>,
    pub(super) regex_bytes: Option<usize>,
    pub(super) command_s: Option<u64>,
    pub(super) shown_ok_bytes: Option<usize>,
    pub(super) shown_failed_bytes: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tools {
    pub(super) sets: Option<Vec<Set>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Set {
    Core,
    Team,
    History,
    Organise,
    Plan,
    Exec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Edits {
    pub(super) tolerant: Vec<Tolerance>,
    pub(super) stale: Option<Stale>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Tolerance {
    TrailingSpace,
    Punctuation,
    Indent,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stale {
    Region,
    Strict,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Durability {
    pub(super) mode: Option<Mode>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    Full,
    Batch,
    Fast,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Approvals {
    pub(super) profile: Option<Profile>,
    pub(super) wait_s: Option<u64>,
    pub(super) rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Profile {
    Careful,
    Trusting,
    Readonly,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    #[serde(default)]
    pub(super) tool: Option<String>,
    #[serde(default)]
    pub(super) paths: Vec<String>,
    pub(super) answer: Answer,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Agent {
    pub(super) folders: Option<Vec<AgentFolder>>,
    pub(super) profile: Option<Profile>,
    pub(super) tools: Option<Vec<Set>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentFolder {
    pub(super) name: String,
    pub(super) access: Access,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Commands {
    pub(super) deny: Vec<CommandRule>,
    pub(super) ask: Vec<CommandRule>,
    pub(super) allow: Vec<CommandRule>,
    pub(super) network: Option<bool>,
    pub(super) env: Vec<String>,
    pub(super) caches: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandRule {
    pub(super) pattern: String,
    #[serde(rename = "match", default)]
    pub(super) fits: Vec<String>,
    #[serde(default)]
    pub(super) not_match: Vec<String>,
    #[serde(default)]
    pub(super) reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Hooks {
    pub(super) pre_tool_call: Vec<HookEntry>,
    pub(super) post_tool_response: Vec<HookEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HookEntry {
    pub(super) matcher: Option<String>,
    pub(super) command: Option<String>,
    pub(super) timeout_s: Option<u64>,
    pub(super) fail_open: Option<bool>,
    pub(super) hooks: Option<Vec<ClaudeHook>>,
}

/// As in the settings of Claude Code. What is no command of theirs cannot be asked from here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaudeHook {
    #[serde(rename = "type")]
    pub(super) kind: ClaudeKind,
    pub(super) command: String,
    pub(super) timeout: Option<u64>,
    pub(super) fail_open: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ClaudeKind {
    Command,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Exec {
    pub(super) memory_mb: Option<u64>,
    pub(super) cpu_s: Option<u64>,
    pub(super) processes: Option<u64>,
    pub(super) disk_mb: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Leases {
    pub(super) ttl_s: Option<u64>,
    pub(super) auto_claim: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Labels {
    pub(super) rules: Vec<toml::Table>,
    pub(super) default: Option<toml::Table>,
    pub(super) ceilings: Vec<toml::Table>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Retention {
    pub(super) days: Option<u64>,
    pub(super) megabytes: Option<u64>,
    pub(super) trash_days: Option<u64>,
    pub(super) trash_megabytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Daemon {
    pub(super) idle_s: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Http {
    pub(super) listen: Option<String>,
    pub(super) tokens: Vec<Token>,
    pub(super) allowed_origins: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Token {
    pub(super) name: String,
    pub(super) token: String,
}
