//! Commands: run so that what they change is seen before it lands, followed as jobs, ended.

mod approved;
pub(crate) mod effects;
pub(crate) mod exec;
mod finish;
mod floor;
mod flow;
pub(crate) mod host;
pub mod jobs;
mod output;
pub(crate) mod request;
mod show;
mod simulated;
mod tasks;
mod upper;
pub(crate) mod wanted;

pub use floor::Floor;
pub(crate) use show::from;

use cotenant_model::ToolSet;

use cotenant_engine::Idempotency;
use cotenant_model::Refusal;

use crate::calls::Heard;
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool, Verb};
use crate::toolbox::Toolbox;

/// The entry of `run_command`.
pub const RUN: Tool = Tool {
    name: "run_command",
    title: "Run command",
    set: ToolSet::Core,
    about: "Run a shell command: build, test, git, scripts. Not for reading, searching or editing: the file tools are cheaper. What it changes is one change that undo takes back. No network unless allowed; loopback works. Each call is a new shell. Answers within 50 s; what runs longer goes on as a job for command_output. For servers set background.",
    params: &[
        Param::required("command", Kind::Command, ""),
        Param::new("cwd", Kind::Path, "."),
        Param::new("timeout_s", Kind::Number, "Kill after; 60, at most 3600"),
        Param::new("background", Kind::Flag, "Answer at once with a job id"),
        Param::new("mode", Kind::Choice(&["auto", "staged", "direct"]), ""),
        Param::hidden("env", Kind::Object),
    ],
    destructive: true,
    run: Run::Shell(Verb::Run),
};

/// The entry of `command_output`.
pub const OUTPUT: Tool = Tool {
    name: "command_output",
    title: "Job output",
    set: ToolSet::Core,
    about: "New output of a job, or wait for its end.",
    params: &[
        Param::required("id", Kind::Text, ""),
        Param::new("offset", Kind::Number, ""),
        Param::new("wait_s", Kind::Number, "0 to 50; 0"),
    ],
    destructive: false,
    run: Run::Shell(Verb::Output),
};

/// The entry of `stop_command`.
pub const STOP: Tool = Tool {
    name: "stop_command",
    title: "Stop job",
    set: ToolSet::Core,
    about: "Stop a job and all its processes.",
    params: &[Param::required("id", Kind::Text, "")],
    destructive: false,
    run: Run::Shell(Verb::Stop),
};

/// The entry of `exec_open`.
pub const EXEC_OPEN: Tool = Tool {
    name: "exec_open",
    title: "Open sandbox",
    set: ToolSet::Exec,
    about: "A private copy-on-write view of the workspace for trying things: install, break, rerun. Every file tool and run_command's cwd take `ID:path` inside it. Nothing lands before exec_promote.",
    params: &[
        Param::new("name", Kind::Text, ""),
        Param::new("network", Kind::Flag, "May need approval"),
        Param::new("memory_mb", Kind::Number, ""),
        Param::new("cpu_s", Kind::Number, ""),
    ],
    destructive: false,
    run: Run::Shell(Verb::ExecOpen),
};

/// The entry of `exec_run`.
pub const EXEC_RUN: Tool = Tool {
    name: "exec_run",
    title: "Run in sandbox",
    set: ToolSet::Exec,
    about: "Like run_command, in the sandbox. task finds the project's own runner.",
    params: &[
        Param::required("exec", Kind::Text, ""),
        Param::new("command", Kind::Command, ""),
        Param::new("task", Kind::Choice(&["test", "build", "install"]), ""),
        Param::new("timeout_s", Kind::Number, ""),
    ],
    destructive: false,
    run: Run::Shell(Verb::ExecRun),
};

/// The entry of `exec_promote`.
pub const EXEC_PROMOTE: Tool = Tool {
    name: "exec_promote",
    title: "Promote",
    set: ToolSet::Exec,
    about: "Bring its changes, or those under paths, into the workspace as one change.",
    params: &[
        Param::required("exec", Kind::Text, ""),
        Param::new("paths", Kind::List, ""),
        Param::new("dry_run", Kind::Flag, ""),
    ],
    destructive: true,
    run: Run::Shell(Verb::ExecPromote),
};

/// The entry of `exec_close`.
pub const EXEC_CLOSE: Tool = Tool {
    name: "exec_close",
    title: "Close sandbox",
    set: ToolSet::Exec,
    about: "Discard it.",
    params: &[Param::required("exec", Kind::Text, "")],
    destructive: false,
    run: Run::Shell(Verb::ExecClose),
};

impl Toolbox {
    /// A call that has to do with commands.
    pub(crate) fn shell_call(
        &self,
        verb: Verb,
        heard: &Heard<'_>,
        key: Option<&Idempotency>,
    ) -> Result<Reply, Refusal> {
        match verb {
            Verb::Run => self.command(heard, key),
            Verb::Output => self.job_output(heard),
            Verb::Stop => self.job_stop(heard),
            Verb::ExecOpen => self.exec_open(heard, key),
            Verb::ExecRun => self.exec_run(heard, key),
            Verb::ExecPromote => self.exec_promote(heard, key),
            Verb::ExecClose => self.exec_close(heard),
        }
    }
}
