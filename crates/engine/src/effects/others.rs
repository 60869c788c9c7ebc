//! What others did meanwhile through the pipeline, so that it is not taken for the command's work.
//!
//! Between two looks a path goes from one state to the next: some steps are changes that the ledger knows, what lies
//! between them is the command's. The last of these is what it did.

use std::collections::{BTreeMap, BTreeSet};

use cotenant_ledger::{Ledger, LedgerError, Query, Since};
use cotenant_model::{Change, ChangeFile, ChangeId, ChangeKind, ChangeOp, Entry, EntryKind, Outcome, WsPath};

use super::stand::{Stand, Turn};

/// Ids that a commit may have taken and not yet written down: those among so many before the newest.
const UNDER_WAY: u64 = 64;

/// What had landed at some moment. A change may have a smaller id than another and land after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    newest: u64,
    /// Of the ids shortly before the newest, those of changes that had ended.
    ended: BTreeSet<u64>,
    /// Older ones that had not.
    open: BTreeSet<u64>,
}

impl Mark {
    /// The moment of this call.
    pub fn now(ledger: &Ledger) -> Result<Mark, LedgerError> {
        // First what is open: what ends meanwhile counts as open rather than not at all.
        let open: BTreeSet<u64> = ledger.unsealed()?.into_iter().map(|id| id.0).collect();
        let limit = usize::try_from(UNDER_WAY).unwrap_or(usize::MAX);
        let recent = ledger.history(&Query { aborted: true, limit, ..Query::default() })?;
        let newest = recent.first().map_or(0, |change| change.id.0);
        let ended = recent.iter().map(|change| change.id.0).filter(|id| !open.contains(id)).collect();
        Ok(Mark { newest, ended, open })
    }

    /// Whether a change had landed by then.
    pub(super) fn saw(&self, id: ChangeId) -> bool {
        let settled = id.0 + UNDER_WAY <= self.newest || self.ended.contains(&id.0);
        settled && !self.open.contains(&id.0)
    }

    /// Every change that had not landed has a larger id.
    fn floor(&self) -> ChangeId {
        let oldest = self.newest.saturating_sub(UNDER_WAY);
        ChangeId(self.open.first().map_or(oldest, |open| oldest.min(open.saturating_sub(1))))
    }
}

/// A change of a path that the ledger knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) change: ChangeId,
    pub(super) was: Stand,
    pub(super) is: Stand,
    /// It may not have happened yet.
    open: bool,
    /// It was found by a look of its own, so its id does not tell when it happened.
    found: bool,
}

/// Everything that the ledger knows of since a change.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// By path, oldest first.
    steps: BTreeMap<WsPath, Vec<Step>>,
    /// Directories with all that was in them: from, to.
    turned: Vec<(ChangeId, WsPath, WsPath)>,
}

/// What is left of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    /// The step that no change explains, if there is one.
    pub(super) step: Option<(Stand, Stand)>,
    /// Others changed the path as well.
    pub(super) overlapped: bool,
}

impl Others {
    pub(super) fn since(ledger: &Ledger, mark: &Mark) -> Result<Others, LedgerError> {
        let query = Query { since: Some(Since::Change(mark.floor())), ..Query::default() };
        let changes = ledger.history(&query)?.into_iter().filter(|change| !mark.saw(change.id));
        // One that ended during the look is told twice, first as it was: the last word counts.
        let changes: BTreeMap<u64, Change> = changes.map(|change| (change.id.0, change)).collect();
        let mut others = Others::default();
        changes.values().for_each(|change| others.add(change));
        Ok(others)
    }

    /// The change that moved a directory which a path lies in, or lay in.
    pub(super) fn turned(&self, at: &WsPath) -> Option<ChangeId> {
        let found = self.turned.iter().find(|(_, from, to)| at.is_within(from) || at.is_within(to));
        found.map(|(change, ..)| *change)
    }

    fn add(&mut self, change: &Change) {
        let (open, found) = (change.outcome == Outcome::Open, change.kind == ChangeKind::Observed);
        for file in &change.files {
            let mut step = |at: &WsPath, was, is| {
                let step = Step { change: change.id, was, is, open, found };
                self.steps.entry(at.clone()).or_default().push(step);
            };
            let (was, is) = ends(file);
            step(&file.at, was, is);
            if let Some(from) = file.from.as_ref().filter(|_| file.op == ChangeOp::Move) {
                step(from, is, Stand::Absent);
                if file.post.is_none() {
                    self.turned.push((change.id, from.clone(), file.at.clone()));
                }
            }
        }
    }

    /// The steps of a path, oldest first.
    pub(super) fn steps(&self, at: &WsPath) -> &[Step] {
        self.steps.get(at).map(Vec::as_slice).unwrap_or_default()
    }

    /// What of a turn no change explains. `held`: the path was as it is after all of these changes; else some of them may
    /// have come later.
    pub(super) fn own(&self, at: &WsPath, was: Stand, is: Stand, held: bool) -> Own {
        let (found, made): (Vec<Step>, Vec<Step>) = self.steps(at).iter().partition(|step| step.found);
        // What had happened by the first look.
        let seen = made.iter().rposition(|step| step.is.is_as(was)).map_or(0, |index| index + 1);
        let made = until(made.get(seen..).unwrap_or_default(), was, is, held);
        let step = gaps(made, found.clone(), was, is).into_iter().rev().find(|(was, is)| !was.is_as(*is));
        Own { step, overlapped: !made.is_empty() || !found.is_empty() }
    }

    /// Takes out what only moved along with a directory that others moved.
    pub(super) fn without_moved_along(&self, turns: Vec<Turn>) -> Vec<Turn> {
        let came: BTreeMap<&WsPath, &Turn> =
            turns.iter().filter(|turn| turn.was == Stand::Absent).map(|turn| (&turn.at, turn)).collect();
        let mut along: BTreeSet<WsPath> = BTreeSet::new();
        for turn in turns.iter().filter(|turn| turn.is == Stand::Absent) {
            for (_, from, to) in &self.turned {
                let there = turn.at.moved(from, to).and_then(|to| came.get(&to));
                let same = |there: &&&Turn| match (turn.was, there.is) {
                    (Stand::Unknown, _) => turn.old == there.new,
                    (was, is) => was.is_as(is),
                };
                if let Some(there) = there.filter(same) {
                    along.extend([turn.at.clone(), there.at.clone()]);
                }
            }
        }
        turns.into_iter().filter(|turn| !along.contains(&turn.at)).collect()
    }
}

/// The steps without those that came after the last look.
fn until(steps: &[Step], was: Stand, is: Stand, held: bool) -> &[Step] {
    if !held {
        let last = steps.iter().rposition(|step| step.is.is_as(is)).map(|index| index + 1);
        let last = last.or(was.is_as(is).then_some(0)).unwrap_or(steps.len());
        return steps.get(..last).unwrap_or_default();
    }
    let mut steps = steps;
    while let [rest @ .., last] = steps
        && last.open
        && last.was.is_as(is)
    {
        steps = rest;
    }
    steps
}

/// What lies between the steps. Those that were only found stand where they fit.
fn gaps(made: &[Step], mut found: Vec<Step>, was: Stand, is: Stand) -> Vec<(Stand, Stand)> {
    let mut gaps = Vec::with_capacity(made.len() + 1);
    let mut from = was;
    for to in made.iter().map(|step| Some(*step)).chain([None]) {
        let next = to.map_or(is, |step| step.was);
        while !from.is_as(next)
            && let Some(index) = found.iter().position(|step| step.was.is_as(from))
        {
            from = found.remove(index).is;
        }
        gaps.push((from, next));
        from = to.map_or(is, |step| step.is);
    }
    gaps
}

/// What stood at a path before a change and after it.
pub(super) fn ends(file: &ChangeFile) -> (Stand, Stand) {
    let stand = |entry: Option<Entry>, mode: u32, dir: bool| match entry {
        Some(entry) => Stand::Entry(entry, mode),
        None if dir => Stand::Dir(mode),
        None => Stand::Absent,
    };
    let is_dir = |mode: u32| EntryKind::of_mode(mode).is_none();
    let was_dir = file.op == ChangeOp::RemoveDir || (file.op == ChangeOp::Edit && is_dir(file.pre_mode));
    let comes = matches!(file.op, ChangeOp::MakeDir) || file.op == ChangeOp::Move && file.post.is_none();
    let is_a_dir = comes || (file.op == ChangeOp::Edit && is_dir(file.post_mode));
    (stand(file.before(), file.pre_mode, was_dir), stand(file.after(), file.post_mode, is_a_dir))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cotenant_model::{Digest, Millis, RelPath};

    use super::*;

    fn at(path: &str) -> WsPath {
        WsPath::root(RelPath::parse(path).unwrap())
    }

    fn file(bytes: &str) -> Stand {
        Stand::Entry(Entry::file(Digest::of(bytes.as_bytes())), 0o100_644)
    }

    /// A change that took `f` from one state to the next.
    fn edit(id: u64, was: Stand, is: Stand, outcome: Outcome) -> Change {
        let digest = |stand: Stand| stand.entry().map(|entry| entry.digest);
        let op = match (was, is) {
            (Stand::Absent, _) => ChangeOp::Create,
            (_, Stand::Absent) => ChangeOp::Delete,
            _ => ChangeOp::Edit,
        };
        let (pre, post, pre_mode, post_mode) = (digest(was), digest(is), was.mode(), is.mode());
        change(id, outcome, ChangeFile { at: at("f"), op, pre, post, pre_mode, post_mode, from: None })
    }

    fn change(id: u64, outcome: Outcome, file: ChangeFile) -> Change {
        Change {
            id: ChangeId(id),
            time: Millis(0),
            kind: ChangeKind::Planned,
            outcome,
            agent: Some(Arc::from("b")),
            session: None,
            task: None,
            turn: 1,
            tool: "edit_file".into(),
            files: vec![file],
            undoes: None,
        }
    }

    fn own(changes: &[Change], was: Stand, is: Stand) -> Own {
        let mut others = Others::default();
        changes.iter().for_each(|change| others.add(change));
        others.own(&at("f"), was, is, true)
    }

    #[test]
    fn what_had_landed_is_known_whatever_the_order_of_ids() {
        let ids = |ids: &[u64]| ids.iter().copied().collect::<BTreeSet<u64>>();
        let mark = Mark { newest: 200, ended: ids(&[198, 200]), open: ids(&[40, 199]) };
        for (id, saw) in [
            (1, true),
            (39, true),
            (40, false),
            (136, true),
            (137, false),
            (198, true),
            (199, false),
            (200, true),
            (201, false),
        ] {
            assert_eq!(mark.saw(ChangeId(id)), saw, "{id}");
        }
        assert_eq!(mark.floor(), ChangeId(39));
        assert_eq!(Mark::default().floor(), ChangeId(0));
        assert!(!Mark::default().saw(ChangeId(1)));
    }

    #[test]
    fn what_lies_between_the_changes_is_the_commands() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(file);
        let sealed = |id, was, is| edit(id, was, is, Outcome::Sealed);
        type Case<'c> = (&'c [Change], Stand, Stand, Option<(Stand, Stand)>, bool);
        let cases: [Case<'_>; 10] = [
            (&[], a, b, Some((a, b)), false),
            (&[], a, a, None, false),
            // Theirs alone.
            (&[sealed(1, a, b)], a, b, None, true),
            (&[sealed(1, a, b), sealed(2, b, c)], a, c, None, true),
            // The command wrote after them, before them, in between.
            (&[sealed(1, a, b)], a, c, Some((b, c)), true),
            (&[sealed(1, b, c)], a, c, Some((a, b)), true),
            (&[sealed(1, a, b), sealed(2, c, d)], a, d, Some((b, c)), true),
            // What came before the first look is not looked at.
            (&[sealed(1, a, b)], b, c, Some((b, c)), false),
            (&[sealed(1, d, a), sealed(2, a, b)], a, b, None, true),
            // Creations and deletions are steps as well.
            (
                &[sealed(1, Stand::Absent, a), sealed(2, a, Stand::Absent)],
                Stand::Absent,
                b,
                Some((Stand::Absent, b)),
                false,
            ),
        ];
        for (changes, was, is, step, overlapped) in cases {
            assert_eq!(own(changes, was, is), Own { step, overlapped }, "{changes:?} {was:?} {is:?}");
        }
    }

    #[test]
    fn what_is_under_way_counts_when_it_has_happened() {
        let [a, b, c] = ["a", "b", "c"].map(file);
        let open = edit(1, a, b, Outcome::Open);
        assert_eq!(own(std::slice::from_ref(&open), a, b), Own { step: None, overlapped: true });
        assert_eq!(own(std::slice::from_ref(&open), c, a), Own { step: Some((c, a)), overlapped: false });
        assert_eq!(own(&[open], a, c), Own { step: Some((b, c)), overlapped: true });
    }

    #[test]
    fn what_was_found_by_another_look_stands_where_it_fits() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(file);
        let sealed = |id, was, is| edit(id, was, is, Outcome::Sealed);
        let found = |id, was, is| Change { kind: ChangeKind::Observed, ..sealed(id, was, is) };
        let none = Own { step: None, overlapped: true };
        assert_eq!(own(&[sealed(1, b, c), found(2, a, b)], a, c), none);
        assert_eq!(own(&[found(2, a, b), found(3, b, c)], a, c), none);
        let before = Own { step: Some((a, d)), overlapped: true };
        assert_eq!(
            own(&[sealed(1, b, c), found(2, d, b)], a, c).step,
            Some((a, b)),
            "it does not begin there"
        );
        assert_eq!(own(&[found(1, d, b)], a, d), before);
    }

    #[test]
    fn what_came_after_the_look_does_not_count() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(file);
        let mut others = Others::default();
        for (id, was, is) in [(1, a, b), (2, b, c), (3, c, d)] {
            others.add(&edit(id, was, is, Outcome::Sealed));
        }
        let own = |is, held| others.own(&at("f"), a, is, held).step;
        assert_eq!((own(b, false), own(c, false), own(d, false), own(a, false)), (None, None, None, None));
        assert_eq!(
            (own(b, true), own(a, true)),
            (Some((d, b)), Some((d, a))),
            "it was put back to what it was"
        );
        assert_eq!(own(file("e"), false), Some((d, file("e"))));
    }

    #[test]
    fn unknown_modes_do_not_make_another_version() {
        let known = file("a");
        let unknown = Stand::Entry(known.entry().unwrap(), 0);
        assert!(known.is_as(unknown) && unknown.is_as(known));
        let other = Stand::Entry(known.entry().unwrap(), 0o100_755);
        assert!(!known.is_as(other));
        assert!(!Stand::Unknown.is_as(Stand::Unknown), "nothing is known of it");
        assert!(Stand::Dir(0o40_755).is_as(Stand::Dir(0)));
    }

    #[test]
    fn a_directory_that_others_moved_takes_along_what_is_in_it() {
        let moved = ChangeFile {
            at: at("new"),
            op: ChangeOp::Move,
            from: Some(at("old")),
            pre_mode: 0,
            post_mode: 0o40_755,
            ..ChangeFile::default()
        };
        let mut others = Others::default();
        others.add(&change(1, Outcome::Sealed, moved));
        let dir = Stand::Dir(0o40_755);
        assert_eq!(others.own(&at("old"), dir, Stand::Absent, true).step, None);
        assert_eq!(others.own(&at("new"), Stand::Absent, dir, true).step, None);
        let turn = |path: &str, was, is| Turn { at: at(path), was, is, old: None, new: None };
        let turns = vec![
            turn("old/x", file("x"), Stand::Absent),
            turn("old/y", file("y"), Stand::Absent),
            turn("new/x", Stand::Absent, file("x")),
            turn("new/y", Stand::Absent, file("changed")),
        ];
        let left: Vec<WsPath> = others.without_moved_along(turns).into_iter().map(|turn| turn.at).collect();
        assert_eq!(left, [at("old/y"), at("new/y")]);
    }
}
