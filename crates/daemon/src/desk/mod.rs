//! What the command line asks of a workspace: tool calls, questions and their answers, counts, the journal.

mod journal;
mod questions;
mod sessions;
mod stats;

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use cotenant_engine::{Clock, Options, Workspace};
use cotenant_model::{Code, FolderId, Millis, Refusal, SessionId};
use cotenant_tools::Toolbox;
use cotenant_tools::host::{Call, Host};
use serde_json::{Map, Value, json};

pub use journal::verify_lines;

use crate::hooks::{self, Hooks};
use crate::{Admin, Opened, Opening, Peer, clock};

/// The daemon's clocks, as the engine wants them.
struct Clocks;

impl Clock for Clocks {
    fn wall(&self) -> Millis {
        clock::now()
    }
    fn steady(&self) -> Millis {
        clock::monotonic()
    }
}

/// What is kept is looked through at least so often.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Answers the command line.
pub struct Desk {
    pub(crate) toolbox: Arc<Toolbox>,
    sessions: sessions::Terminals,
    reviewers: questions::Reviewers,
}

/// Opens the workspace, with all recovery, for [`crate::run`].
pub fn open(opening: Opening) -> Result<Opened, Refusal> {
    let mut settings = opening.settings;
    settings.protected_add.extend(hooks::scripts(&settings.hooks, &opening.place.root));
    let options = Options {
        root: opening.place.root.clone(),
        state: opening.place.state.join("ledger"),
        settings,
        clock: Arc::new(Clocks),
    };
    let gate = Hooks::new(&options.settings)?;
    let workspace = Arc::new(Workspace::open(options)?);
    let toolbox = match gate {
        Some(gate) => Toolbox::behind(workspace, Box::new(gate))?,
        None => Toolbox::new(workspace)?,
    };
    keep_house(toolbox.workspace());
    let desk = Desk::new(Arc::clone(&toolbox));
    Ok((toolbox, Arc::new(desk)))
}

/// Looks through what is kept (R23): at the start, at each session's first destructive change, and daily; beside the
/// calls, and as long as the workspace is open.
fn keep_house(workspace: &Arc<Workspace>) {
    let destructions = workspace.destructions();
    let workspace = Arc::downgrade(workspace);
    let kept = std::thread::Builder::new().name("retention".to_owned()).spawn(move || {
        while let Some(workspace) = workspace.upgrade() {
            if let Err(refusal) = workspace.keep_house() {
                crate::log(&format!("retention: {refusal}"));
            }
            // Not kept open from here.
            drop(workspace);
            if destructions.recv_timeout(DAY) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
            // Several sessions at once are one reason.
            destructions.try_iter().for_each(drop);
        }
    });
    if let Err(error) = kept {
        crate::log(&format!("retention: {error}"));
    }
}

impl Desk {
    /// A desk in front of a toolbox.
    pub fn new(toolbox: Arc<Toolbox>) -> Desk {
        Desk { toolbox, sessions: sessions::Terminals::default(), reviewers: questions::Reviewers::default() }
    }

    fn workspace(&self) -> &Workspace {
        self.toolbox.workspace()
    }

    /// `tool`: a tool call from the command line, in the session that the terminal or `COTENANT_SESSION` stands for.
    fn tool(&self, args: &Map<String, Value>, peer: &Peer) -> Result<Value, Refusal> {
        // Below an agent nobody is a human.
        let by_human = args.get("human") == Some(&json!(true)) && self.only_a_human(peer).is_ok();
        let session = match by_human {
            true => self.sessions.human(&self.toolbox)?,
            false => self.sessions.session(&self.toolbox, args, peer)?,
        };
        let tool = text(args, "tool").unwrap_or_default().to_owned();
        let arguments = args.get("args").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut meta = Map::new();
        meta.insert("cotenant/structured".to_owned(), true.into());
        let ticket = self.toolbox.arrive(session, &tool, &arguments);
        let answer = self.toolbox.call(Call { session, tool, args: arguments, meta, ticket });
        let pending = answer.text.starts_with(Code::ApprovalPending.name());
        Ok(json!({
            "text": answer.text,
            "fields": answer.structured,
            "refused": answer.is_error || pending,
            "session": session.to_string(),
        }))
    }

    fn status(&self) -> Value {
        let workspace = self.workspace();
        let look_at: Vec<Value> = workspace
            .questions()
            .iter()
            .map(|question| json!({"path": workspace.tree().folders().show(&question.at), "why": question.why}))
            .collect();
        let coord = workspace.coord();
        let sessions: Vec<Value> = coord
            .sessions()
            .map(|session| {
                json!({
                    "session": session.id.to_string(),
                    "agent": &*session.agent,
                    "task": session.task.as_deref(),
                    "turn": session.turn,
                    "profile": session.profile.name(),
                    "mode": if session.plan_mode { "plan" } else { "normal" },
                })
            })
            .collect();
        let folders = workspace.tree().folders();
        let further: Vec<&str> = (1..folders.len())
            .filter_map(|index| Some(folders.name(FolderId(u16::try_from(index).ok()?))))
            .collect();
        json!({
            "root": workspace.tree().host_path(FolderId::ROOT).display().to_string(),
            "root_state": format!("{:?}", workspace.tree().root_state()).to_lowercase(),
            "profile": workspace.settings().profile.name(),
            "durability": workspace.durability(None).name(),
            "folders": further,
            "agents": sessions,
            "pending": coord.pending().count(),
            "reviewers": coord.reviewers(),
            "watcher": {"ready": false},
            "look_at": look_at,
            "recovered": workspace.recovered().changes.len(),
        })
    }
}

impl Admin for Desk {
    fn admin(&self, op: &str, args: &Map<String, Value>, peer: &Peer) -> Result<Value, Refusal> {
        match op {
            "status" => Ok(self.status()),
            "tool" => self.tool(args, peer),
            "pending" => Ok(self.pending()),
            "review" => Ok(self.reviewer_came(peer)),
            "approve" => self.approve(args, peer),
            "deny" => self.deny(args, peer),
            "wait" => Ok(self.wait_for_question(args)),
            "stats" => Ok(self.stats()),
            "journal" => self.journal(args),
            "journal_verify" => self.journal_verify(),
            other => Err(Refusal::new(Code::BadInput, format!("The daemon knows no {other:?}."))
                .next("cotenant --help")),
        }
    }

    fn busy(&self) -> bool {
        self.workspace().coord().pending().next().is_some() || self.toolbox.is_running()
    }

    fn gone(&self, peer: &Peer) {
        self.reviewer_went(peer);
    }
}

/// A text among the arguments.
fn text<'a>(args: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    args.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// The session a caller names.
fn named_session(args: &Map<String, Value>) -> Result<Option<SessionId>, Refusal> {
    let Some(name) = text(args, "session") else { return Ok(None) };
    name.parse().map(Some).map_err(|error| {
        Refusal::new(Code::BadInput, format!("COTENANT_SESSION: {error}.")).next("unset COTENANT_SESSION")
    })
}
