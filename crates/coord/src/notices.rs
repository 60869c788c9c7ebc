//! What a session must be told in its next answer: lost leases, files to reload, answers of the human. Each once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cotenant_model::{ApprovalId, ChangeId, Folders, Millis, SessionId, WsPath};

/// Notices that wait per session; beyond it the oldest go.
const WAITING: usize = 100;

/// Delivered notices that `whoami` repeats.
const RECENT: usize = 20;

/// Who did what no session did.
const OUTSIDE: &str = "another program or a human";

/// The kind on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// A lease was lost.
    LostLease,
    /// A file that the session saw was changed by another.
    Reload,
    /// A proven write on a path that another holds.
    Strike,
    /// A question was answered.
    Approval,
    /// Anything else, such as a word from the human.
    Message,
}

impl NoticeKind {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            NoticeKind::LostLease => "lost_lease",
            NoticeKind::Reload => "reload",
            NoticeKind::Strike => "strike",
            NoticeKind::Approval => "approval",
            NoticeKind::Message => "message",
        }
    }
}

/// Something a session must be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Another changed a file that the session saw.
    Reload {
        /// The file.
        at: WsPath,
        /// Who; `None` where it was no session of ours.
        by: Option<Arc<str>>,
        /// With which change.
        change: ChangeId,
        /// The changed lines of the new version, inclusive, from 1; empty where they are not known.
        lines: Vec<(usize, usize)>,
        /// The file is gone.
        deleted: bool,
        /// When.
        time: Millis,
    },
    /// Another moved a file that the session saw, or a directory with such a file in it.
    Moved {
        /// Where it stood.
        at: WsPath,
        /// Where it stands now.
        to: WsPath,
        /// Who; `None` where it was no session of ours.
        by: Option<Arc<str>>,
        /// With which change.
        change: ChangeId,
        /// When.
        time: Millis,
    },
    /// A question of this session was answered.
    Approval {
        /// Which.
        id: ApprovalId,
        /// What came of it, such as `approved: landed as c162`.
        text: String,
    },
    /// Any other.
    Other {
        /// Its kind.
        kind: NoticeKind,
        /// The path it is about; its text holds it.
        at: Option<WsPath>,
        /// One sentence.
        text: String,
    },
}

impl Notice {
    /// Its kind on the wire.
    pub fn kind(&self) -> NoticeKind {
        match self {
            Notice::Reload { .. } | Notice::Moved { .. } => NoticeKind::Reload,
            Notice::Approval { .. } => NoticeKind::Approval,
            Notice::Other { kind, .. } => *kind,
        }
    }

    /// The path it is about.
    pub fn at(&self) -> Option<&WsPath> {
        match self {
            Notice::Reload { at, .. } | Notice::Moved { at, .. } => Some(at),
            Notice::Approval { .. } => None,
            Notice::Other { at, .. } => at.as_ref(),
        }
    }

    /// Its text, one line, without the leading `! `.
    pub fn text(&self, folders: &Folders, now: Millis) -> String {
        match self {
            Notice::Reload { at, by, change, lines, deleted, time } => {
                let by = by.as_deref().unwrap_or(OUTSIDE);
                let what = if *deleted { "deleted it".to_owned() } else { changed(lines) };
                let ago = Millis(now.since(*time));
                let then = if *deleted { "" } else { "; read it before you edit there" };
                one_line(&format!("reload {}: {by} {what} ({change}, {ago} ago){then}", folders.show(at)))
            }
            Notice::Moved { at, to, by, change, time } => {
                let by = by.as_deref().unwrap_or(OUTSIDE);
                let (at, to) = (folders.show(at), folders.show(to));
                let ago = Millis(now.since(*time));
                one_line(&format!(
                    "moved {at}: {by} moved it to {to} ({change}, {ago} ago); what you read of it holds there"
                ))
            }
            Notice::Approval { id, text } => one_line(&format!("{id} {text}")),
            Notice::Other { text, .. } => one_line(text),
        }
    }

    /// Whether `newer` says all that this one says.
    fn outdated_by(&self, newer: &Notice) -> bool {
        match (self, newer) {
            (Notice::Reload { at, .. }, Notice::Reload { at: other, .. }) => at == other,
            (Notice::Moved { at, to, .. }, Notice::Moved { at: from, to: other, .. }) => {
                at == from && to == other
            }
            (Notice::Approval { id, .. }, Notice::Approval { id: other, .. }) => id == other,
            _ => false,
        }
    }
}

/// `changed lines 40-52`, at most five ranges.
fn changed(lines: &[(usize, usize)]) -> String {
    const SHOWN: usize = 5;
    let range = |(first, last): &(usize, usize)| match first == last || last < first {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let shown: Vec<String> = lines.iter().take(SHOWN).map(range).collect();
    match lines {
        [] => "changed it".to_owned(),
        [(first, last)] if first == last => format!("changed line {first}"),
        _ if lines.len() > SHOWN => format!("changed lines {} and more", shown.join(",")),
        _ => format!("changed lines {}", shown.join(",")),
    }
}

/// Names and reasons are others' words: no line break or control character of theirs may end a notice's line.
fn one_line(text: &str) -> String {
    text.chars().map(|ch| if ch.is_control() { ' ' } else { ch }).collect()
}

/// The notices of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Notices(BTreeMap<SessionId, Mail>);

#[derive(Debug, Default)]
struct Mail {
    waiting: VecDeque<Notice>,
    recent: VecDeque<Notice>,
}

impl Notices {
    /// Puts it at the end; one that it outdates goes. The lines of two changes do not add up, for the later one moved
    /// those of the earlier: such a notice names none.
    pub(crate) fn push(&mut self, id: SessionId, mut notice: Notice) {
        let mail = self.0.entry(id).or_default();
        let waiting = mail.waiting.len();
        mail.waiting.retain(|old| !old.outdated_by(&notice));
        if let Notice::Reload { lines, .. } = &mut notice
            && mail.waiting.len() < waiting
        {
            lines.clear();
        }
        push_bounded(&mut mail.waiting, notice, WAITING);
    }

    /// What waits, in order; it is delivered now.
    pub(crate) fn take(&mut self, id: SessionId) -> Vec<Notice> {
        let Some(mail) = self.0.get_mut(&id) else { return Vec::new() };
        let taken: Vec<Notice> = mail.waiting.drain(..).collect();
        for notice in &taken {
            mail.recent.retain(|old| !old.outdated_by(notice));
            push_bounded(&mut mail.recent, notice.clone(), RECENT);
        }
        taken
    }

    /// Whether something waits.
    pub(crate) fn waits(&self, id: SessionId) -> bool {
        self.0.get(&id).is_some_and(|mail| !mail.waiting.is_empty())
    }

    /// What was delivered last, oldest first.
    pub(crate) fn recent(&self, id: SessionId) -> impl Iterator<Item = &Notice> {
        self.0.get(&id).into_iter().flat_map(|mail| &mail.recent)
    }

    /// Withdraws what no longer needs to be told or repeated.
    pub(crate) fn withdraw(&mut self, id: SessionId, gone: impl Fn(&Notice) -> bool) {
        if let Some(mail) = self.0.get_mut(&id) {
            mail.waiting.retain(|notice| !gone(notice));
            mail.recent.retain(|notice| !gone(notice));
        }
    }

    pub(crate) fn end(&mut self, id: SessionId) {
        self.0.remove(&id);
    }
}

fn push_bounded(queue: &mut VecDeque<Notice>, notice: Notice, limit: usize) {
    if queue.len() >= limit {
        queue.pop_front();
    }
    queue.push_back(notice);
}
