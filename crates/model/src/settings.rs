//! What a workspace is configured to be, with every default. The daemon reads `cotenant.toml` into these.

use std::collections::BTreeMap;

/// What may be done in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and, within the profile, changing.
    ReadWrite,
}

/// A further allowed folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderSpec {
    /// Its name before the colon of `NAME:path`; empty for the root.
    pub name: String,
    /// Host path, absolute.
    pub path: std::path::PathBuf,
    /// What may be done in it.
    pub access: Access,
}

/// Files that a generator owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedRule {
    /// Glob patterns of the generated files.
    pub paths: Vec<String>,
    /// Where they come from.
    pub from: Option<String>,
    /// The command that makes them.
    pub command: Option<String>,
}

/// How much is asked of the human.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// Refuses every change.
    ReadOnly,
    /// Asks for every change to what exists; creating is allowed. The default.
    Careful,
    /// Allows what can be undone.
    Trusting,
}

impl Profile {
    /// The word in `cotenant.toml` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::ReadOnly => "readonly",
            Profile::Careful => "careful",
            Profile::Trusting => "trusting",
        }
    }

    /// From that word.
    pub fn parse(word: &str) -> Option<Profile> {
        [Profile::ReadOnly, Profile::Careful, Profile::Trusting]
            .into_iter()
            .find(|profile| profile.name() == word)
    }
}

/// What survives what (R2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Synced before the answer, file by file. The default.
    Full,
    /// Synced before the answer, by one `syncfs` for many files.
    Batch,
    /// Survives the death of the process, not of the machine.
    Fast,
}

impl Durability {
    /// The word in `cotenant.toml` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Full => "full",
            Durability::Batch => "batch",
            Durability::Fast => "fast",
        }
    }

    /// From that word.
    pub fn parse(word: &str) -> Option<Durability> {
        [Durability::Full, Durability::Batch, Durability::Fast].into_iter().find(|mode| mode.name() == word)
    }
}

/// The answer of an approval rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// Not asked.
    Allow,
    /// Asked.
    Ask,
    /// Refused.
    Deny,
}

/// A line of `[approvals] rules`; of all that fit the strictest wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRule {
    /// The tool it is about; `None` for all.
    pub tool: Option<String>,
    /// Glob patterns of the paths it is about; empty for all.
    pub paths: Vec<String>,
    /// What it answers.
    pub answer: Answer,
}

/// What an edit on a file that changed since the read does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StalePolicy {
    /// Goes ahead where at least one unchanged line lies between. The default.
    Region,
    /// Is refused.
    Strict,
}

/// A line of `[commands] deny`, `ask` or `allow`; of all that fit the strictest wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRule {
    /// Words of a command; a last `*` stands for any further words.
    pub pattern: String,
    /// Commands that it must fit.
    pub matches: Vec<String>,
    /// Commands that it must not fit.
    pub not_matches: Vec<String>,
    /// Why, with what to do instead; may be empty. The model is told it.
    pub reason: String,
    /// What it answers.
    pub answer: Answer,
}

/// `[commands]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// The rules, in the order of the file: `deny`, then `ask`, then `allow`.
    pub rules: Vec<CommandRule>,
    /// Whether commands may use the network.
    pub network: bool,
    /// Names of environment variables that commands get from the daemon's own, beside the usual ones.
    pub env: Vec<String>,
    /// Directories outside that commands may write, such as the cache of a build tool; absolute.
    pub caches: Vec<std::path::PathBuf>,
}

/// A program that is asked before a call, or told after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// A regular expression that the tool's whole name must match; `None` for all tools.
    pub matcher: Option<String>,
    /// The command line, for the shell.
    pub command: String,
    /// It is ended after so many seconds, and then counts as a no.
    pub timeout_s: u64,
    /// What fails lets the call pass instead (`fail_open`).
    pub fail_open: bool,
}

/// `[hooks]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Asked before each call, in order.
    pub pre_tool_call: Vec<Hook>,
    /// Told of each answer, in order.
    pub post_tool_response: Vec<Hook>,
}

/// `[exec]`: what a sandbox of `exec_open` may use at most, and what every command may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecLimits {
    /// Memory of all its processes, in megabytes.
    pub memory_mb: u64,
    /// Processor time of each process, in seconds.
    pub cpu_s: u64,
    /// Processes at once.
    pub processes: u64,
    /// Bytes that it may leave on the disk, in megabytes.
    pub disk_mb: u64,
}

impl Default for ExecLimits {
    fn default() -> ExecLimits {
        ExecLimits { memory_mb: 8192, cpu_s: 3600, processes: 2048, disk_mb: 1024 }
    }
}

/// `[edits]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edits {
    /// Match levels that are applied without asking: `trailing-space`, `punctuation`, `indent`.
    pub tolerant: Vec<String>,
    /// What a stale edit does.
    pub stale: StalePolicy,
}

/// `[limits]`; every truncated answer says what was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A file is shown whole up to so many lines.
    pub read_lines: usize,
    /// And up to so many bytes.
    pub read_bytes: usize,
    /// An answer's bytes.
    pub answer_bytes: usize,
    /// The largest text file that is read as a whole, in bytes.
    pub text_bytes: u64,
    /// Entries of a listing.
    pub list: usize,
    /// Hits of a search by name.
    pub names: usize,
    /// Hits of a content search.
    pub matches: usize,
    /// Lines of context at most.
    pub context: usize,
    /// A compiled regular expression, in bytes.
    pub regex_bytes: usize,
    /// A command is ended after so many seconds, where the call says nothing else.
    pub command_s: u64,
    /// Bytes of a command's output that are shown where it succeeded.
    pub shown_ok_bytes: usize,
    /// And where it did not.
    pub shown_failed_bytes: usize,
}

/// Which tools a session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolSet {
    /// Files, search, undo.
    Core,
    /// Leases.
    Team,
    /// History and trash.
    History,
    /// Creating and renaming.
    Organise,
    /// Plan mode.
    Plan,
    /// Sandboxes.
    Exec,
}

impl ToolSet {
    /// Every set, in the order of the contract.
    pub const ALL: [ToolSet; 6] =
        [ToolSet::Core, ToolSet::Team, ToolSet::History, ToolSet::Organise, ToolSet::Plan, ToolSet::Exec];

    /// The word in `--tools`.
    pub fn name(self) -> &'static str {
        match self {
            ToolSet::Core => "core",
            ToolSet::Team => "team",
            ToolSet::History => "history",
            ToolSet::Organise => "organise",
            ToolSet::Plan => "plan",
            ToolSet::Exec => "exec",
        }
    }

    /// From that word.
    pub fn parse(word: &str) -> Option<ToolSet> {
        ToolSet::ALL.into_iter().find(|set| set.name() == word)
    }
}

/// `[agents.NAME]`: what holds for one agent; it narrows what holds for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentRule {
    /// The folders the agent has, by name (the root's is empty), with what it may do there; `None` for all.
    pub folders: Option<BTreeMap<String, Access>>,
    /// Its profile.
    pub profile: Option<Profile>,
    /// Its tool sets.
    pub tools: Option<Vec<ToolSet>>,
}

/// A workspace's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Further allowed folders.
    pub folders: Vec<FolderSpec>,
    /// Patterns added to what is protected.
    pub protected_add: Vec<String>,
    /// Patterns taken out of what is protected.
    pub protected_except: Vec<String>,
    /// Generated files.
    pub generated: Vec<GeneratedRule>,
    /// Where state lives instead of the user's state directory; absolute.
    pub state_dir: Option<std::path::PathBuf>,
    /// Limits.
    pub limits: Limits,
    /// The tool sets of a session that names none.
    pub tools: Vec<ToolSet>,
    /// Edits.
    pub edits: Edits,
    /// Durability.
    pub durability: Durability,
    /// The profile of a session that names none.
    pub profile: Profile,
    /// How long a call waits for a reviewer who is there, in seconds; at most 50.
    pub approval_wait_s: u64,
    /// Approval rules.
    pub approval_rules: Vec<ApprovalRule>,
    /// `[commands]`.
    pub commands: Commands,
    /// `[hooks]`.
    pub hooks: Hooks,
    /// `[exec]`.
    pub exec: ExecLimits,
    /// `[agents.NAME]` by name.
    pub agents: BTreeMap<String, AgentRule>,
    /// `[daemon] idle_s`: the daemon ends after so many seconds without connections, leases and jobs.
    pub idle_s: Option<u64>,
    /// `[http] tokens`: agent name by token.
    pub http_tokens: BTreeMap<String, String>,
    /// `[http] allowed_origins`.
    pub http_origins: Vec<String>,
    /// `[http] listen`, such as `127.0.0.1:0`.
    pub http_listen: Option<String>,
    /// `[retention]`: days that history is kept.
    pub retention_days: u64,
    /// `[retention]`: megabytes that history may take, the trash included.
    pub retention_megabytes: u64,
    /// `[retention]`: days that the trash is kept.
    pub trash_days: u64,
    /// `[retention]`: megabytes that the trash of each folder may take.
    pub trash_megabytes: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            folders: Vec::new(),
            protected_add: Vec::new(),
            protected_except: Vec::new(),
            generated: Vec::new(),
            state_dir: None,
            limits: Limits::default(),
            tools: vec![ToolSet::Core, ToolSet::Team, ToolSet::History, ToolSet::Organise],
            edits: Edits { tolerant: Vec::new(), stale: StalePolicy::Region },
            durability: Durability::Full,
            profile: Profile::Careful,
            approval_wait_s: 45,
            approval_rules: Vec::new(),
            commands: Commands::default(),
            hooks: Hooks::default(),
            exec: ExecLimits::default(),
            agents: BTreeMap::new(),
            idle_s: None,
            http_tokens: BTreeMap::new(),
            http_origins: Vec::new(),
            http_listen: None,
            retention_days: 90,
            retention_megabytes: 2048,
            trash_days: 30,
            trash_megabytes: 100,
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            read_lines: 600,
            read_bytes: 24 * 1024,
            answer_bytes: 32 * 1024,
            text_bytes: 10 * 1000 * 1000,
            list: 500,
            names: 100,
            matches: 50,
            context: 10,
            regex_bytes: 256 * 1024,
            command_s: 60,
            shown_ok_bytes: 4 * 1024,
            shown_failed_bytes: 24 * 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for profile in [Profile::ReadOnly, Profile::Careful, Profile::Trusting] {
            assert_eq!(Profile::parse(profile.name()), Some(profile));
        }
        for mode in [Durability::Full, Durability::Batch, Durability::Fast] {
            assert_eq!(Durability::parse(mode.name()), Some(mode));
        }
        for set in ToolSet::ALL {
            assert_eq!(ToolSet::parse(set.name()), Some(set));
        }
        assert_eq!(Profile::parse("Careful"), None);
    }

    #[test]
    fn the_strictest_answer_is_the_greatest() {
        assert!(Answer::Deny > Answer::Ask && Answer::Ask > Answer::Allow);
    }
}
