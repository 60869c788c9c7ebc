//! Short ways to make what the tests are about.

use std::sync::Arc;

use cotenant_coord::{Coord, Lines, NewSession, Retry, Shown};
use cotenant_model::{
    ApprovalId, Author, Body, Digest, Entry, FileOp, FolderId, Folders, Millis, Op, Plan, Profile, RelPath,
    RetryToken, SessionId, WsPath,
};

/// Two sessions of two agents, open since time 0 in every [`pair`].
pub(crate) const A: SessionId = SessionId(1);
pub(crate) const B: SessionId = SessionId(2);

pub(crate) fn at(path: &str) -> WsPath {
    WsPath::root(RelPath::parse(path).unwrap())
}

pub(crate) fn docs(path: &str) -> WsPath {
    WsPath { folder: FolderId(1), path: RelPath::parse(path).unwrap() }
}

/// The root and the folder `docs`.
pub(crate) fn folders() -> Folders {
    let mut folders = Folders::default();
    folders.add("", vec![b"/w".to_vec()]);
    folders.add("docs", vec![b"/d".to_vec()]);
    folders
}

pub(crate) fn who(agent: &str) -> NewSession {
    NewSession {
        agent: agent.into(),
        task: Some("work".into()),
        profile: Profile::Careful,
        pid: Some(100),
        ttl_ms: None,
        plan_mode: false,
        within: None,
    }
}

pub(crate) fn pair() -> Coord {
    let mut coord = Coord::new();
    coord.open_session(A, who("agent-a"), Millis(0));
    coord.open_session(B, who("agent-b"), Millis(0));
    coord
}

pub(crate) fn digest(content: &str) -> Digest {
    Digest::of(content.as_bytes())
}

pub(crate) fn all(content: &str, total: usize) -> Shown {
    Shown { digest: digest(content), total_lines: Some(total), lines: Lines::All }
}

pub(crate) fn some(content: &str, total: usize, ranges: &[(usize, usize)]) -> Shown {
    Shown { digest: digest(content), total_lines: Some(total), lines: Lines::Ranges(ranges.to_vec()) }
}

pub(crate) fn create(content: &str) -> Op {
    Op::Create { new: Body::file(content.as_bytes()), like: None }
}

pub(crate) fn replace(pre: &str, content: &str) -> Op {
    Op::Replace { old: Entry::file(digest(pre)), new: Body::file(content.as_bytes()) }
}

pub(crate) fn delete(pre: &str) -> Op {
    Op::Delete { old: Entry::file(digest(pre)) }
}

/// A plan of session A.
pub(crate) fn plan(tool: &str, ops: Vec<(WsPath, Op)>) -> Plan {
    Plan {
        author: Author { agent: "agent-a".into(), session: A, task: Some("work".into()), turn: 1 },
        tool: tool.into(),
        ops: ops.into_iter().map(|(at, op)| FileOp { at, op }).collect(),
        diff: String::new(),
        undoes: None,
        command: None,
    }
}

pub(crate) fn edit(path: &str, pre: &str, content: &str) -> Plan {
    plan("edit_file", vec![(at(path), replace(pre, content))])
}

pub(crate) fn call(tool: &str, bytes: usize, approval: Option<ApprovalId>) -> Retry {
    Retry { tool: tool.into(), args: Arc::from(vec![b'x'; bytes]), approval }
}

/// Asks the human about `plan` as the engine does; the digest on the wire and the retry token.
pub(crate) fn ask(coord: &mut Coord, id: u64, plan: Plan, now: Millis) -> (String, RetryToken) {
    let id = ApprovalId(id);
    let token = coord.keep_retry(A, call(&plan.tool.clone(), 1, Some(id)), now);
    let wire = plan.digest().to_string();
    coord.ask(id, plan, A, token, now);
    (wire, token)
}
