//! Any sequence of calls, restarts and reopenings among them, against a model that is a few maps.

use std::collections::BTreeMap;

use cotenant_ledger::{Idempotency, Intent, Ledger, Recalled, Restorable, commit};
use cotenant_model::{Change, ChangeFile, ChangeId, ChangeOp, Digest, Durability, Millis, Outcome};
use proptest::prelude::*;

use crate::{Folder, at, change, intent};

/// One call; numbers choose among what is there.
#[derive(Clone, Debug)]
enum Call {
    Intend { path: u8, pre: u8, post: u8, key: Option<u8>, inline: bool },
    Seal { which: usize, outcome: Outcome, answer: Option<u8> },
    MadeDir { which: usize, ino: u64 },
    Swept { which: usize },
    Observe { path: u8, pre: u8, post: u8 },
    Store { image: u8, large: bool },
    Remember { key: u8, answer: u8 },
    Journal { body: u8 },
    NextId { approval: bool },
    Restart,
    Reopen,
}

fn call() -> impl Strategy<Value = Call> {
    const ENDED: [Outcome; 3] = [Outcome::Sealed, Outcome::Aborted, Outcome::Overtaken];
    prop_oneof![
        4 => (0_u8..4, 0_u8..4, 0_u8..4, prop::option::of(0_u8..3), any::<bool>())
            .prop_map(|(path, pre, post, key, inline)| Call::Intend { path, pre, post, key, inline }),
        4 => (any::<usize>(), prop::sample::select(ENDED.as_slice()), prop::option::of(any::<u8>()))
            .prop_map(|(which, outcome, answer)| Call::Seal { which, outcome, answer }),
        1 => (any::<usize>(), any::<u64>()).prop_map(|(which, ino)| Call::MadeDir { which, ino }),
        1 => any::<usize>().prop_map(|which| Call::Swept { which }),
        1 => (0_u8..4, 0_u8..4, 0_u8..4).prop_map(|(path, pre, post)| Call::Observe { path, pre, post }),
        1 => (0_u8..6, any::<bool>()).prop_map(|(image, large)| Call::Store { image, large }),
        1 => (0_u8..3, any::<u8>()).prop_map(|(key, answer)| Call::Remember { key, answer }),
        2 => any::<u8>().prop_map(|body| Call::Journal { body }),
        1 => any::<bool>().prop_map(|approval| Call::NextId { approval }),
        1 => Just(Call::Restart),
        1 => Just(Call::Reopen),
    ]
}

fn image(number: u8, large: bool) -> Vec<u8> {
    vec![number; if large { 20_000 } else { 20 }]
}

fn key(number: u8) -> Idempotency {
    let args = Digest::of(&[number]);
    Idempotency { agent: "codex".into(), tool: "edit_file".into(), key: format!("k{number}"), args }
}

const NOW: Millis = Millis(1_000_000);

/// What the ledger should hold.
#[derive(Default)]
struct Model {
    open: BTreeMap<ChangeId, Intent>,
    done: BTreeMap<ChangeId, Change>,
    /// Paths of sealed changes whose names were not swept.
    unswept: BTreeMap<ChangeId, Intent>,
    images: BTreeMap<Digest, Vec<u8>>,
    answers: BTreeMap<String, Recalled>,
    journal: Vec<u8>,
    ids: [u64; 2],
    last: u64,
}

impl Model {
    fn pick(&self, which: usize) -> Option<ChangeId> {
        self.open.keys().nth(which % self.open.len().max(1)).copied()
    }

    fn apply(&mut self, ledger: &Ledger, call: Call) {
        match call {
            Call::Intend { path, pre, post, key: number, inline } => {
                self.intend(ledger, &file(path, pre, post), number, inline.then_some(pre));
            }
            Call::Seal { which, outcome, answer } => self.seal(ledger, which, outcome, answer),
            Call::MadeDir { which, ino } => {
                let Some(id) = self.pick(which) else { return };
                commit::note_made_dir(ledger, id, 0, ino);
                self.open.get_mut(&id).unwrap().paths[0].made_ino = Some(ino);
            }
            Call::Swept { which } => {
                let Some(id) = self.unswept.keys().nth(which % self.unswept.len().max(1)).copied() else {
                    return;
                };
                commit::swept(ledger, id);
                self.unswept.remove(&id);
            }
            Call::Observe { path, pre, post } => {
                let mut found = change(ChangeId(0), vec![file(path, pre, post)]);
                found.id = commit::observe(ledger, found.clone()).unwrap();
                found.kind = cotenant_model::ChangeKind::Observed;
                found.outcome = Outcome::Sealed;
                self.rises(found.id);
                self.done.insert(found.id, found);
            }
            Call::Store { image: number, large } => {
                let bytes = image(number, large);
                self.images.insert(commit::store(ledger, &bytes).unwrap(), bytes);
            }
            Call::Remember { key: number, answer } => {
                commit::remember(ledger, &key(number), &[answer], NOW);
                let args = key(number).args;
                self.answers
                    .insert(key(number).key, Recalled { args, answer: Some(vec![answer]), change: None });
            }
            Call::Journal { body } => {
                commit::journal(ledger, Millis(7), "call", &[body]);
                self.journal.push(body);
            }
            Call::NextId { approval } => {
                let id = ledger.next_id(if approval { "approval" } else { "session" });
                assert!(id > self.ids[usize::from(approval)], "ids rise");
                self.ids[usize::from(approval)] = id;
            }
            Call::Restart | Call::Reopen => {}
        }
    }

    fn rises(&mut self, id: ChangeId) {
        assert!(id.0 > self.last, "change ids rise");
        self.last = id.0;
    }

    fn intend(&mut self, ledger: &Ledger, file: &ChangeFile, number: Option<u8>, inline: Option<u8>) {
        let id = commit::next_change(ledger);
        self.rises(id);
        let mut intended = intent(Change { time: NOW, ..change(id, vec![file.clone()]) });
        if let Some(number) = inline {
            intended.paths[0].inline_pre = Some(image(number, false));
            self.images.insert(file.pre.unwrap(), image(number, false));
        }
        // A key that has an answer is answered by the engine and never intended again.
        intended.idempotency = number.map(key).filter(|key| !self.answers.contains_key(&key.key));
        if let Some(key) = &intended.idempotency {
            self.answers.insert(key.key.clone(), Recalled { args: key.args, answer: None, change: Some(id) });
        }
        commit::intend(ledger, intended.clone()).wait().unwrap();
        self.open.insert(id, intended);
    }

    fn seal(&mut self, ledger: &Ledger, which: usize, outcome: Outcome, answer: Option<u8>) {
        let Some(id) = self.pick(which) else { return };
        let answer = answer.map(|byte| vec![byte]);
        commit::seal(ledger, id, outcome, answer.clone());
        let mut intent = self.open.remove(&id).unwrap();
        if let Some(key) = intent.idempotency.take() {
            self.answers.insert(key.key, Recalled { args: key.args, answer, change: Some(id) });
        }
        intent.change.outcome = outcome;
        intent.paths.iter_mut().for_each(|path| path.inline_pre = None);
        self.done.insert(id, intent.change.clone());
        self.unswept.insert(id, intent);
    }

    fn check(&self, ledger: &Ledger) {
        for (id, change) in self.open.iter().map(|(id, intent)| (id, &intent.change)).chain(&self.done) {
            assert_eq!(ledger.change(*id).unwrap().as_ref(), Some(change));
            assert_eq!(ledger.restorable(change), Ok(Restorable::Yes));
        }
        for (digest, bytes) in &self.images {
            assert_eq!(ledger.blob(*digest).unwrap().as_ref(), Some(bytes));
            assert!(commit::has(ledger, *digest));
        }
        for number in 0..3 {
            let known = self.answers.get(&key(number).key);
            assert_eq!(ledger.recall(&key(number), NOW).unwrap().as_ref(), known, "key {number}");
        }
        let journal = ledger.journal_entries(0, usize::MAX).unwrap();
        assert_eq!(journal.iter().flat_map(|entry| entry.body.clone()).collect::<Vec<_>>(), self.journal);
        assert_eq!(ledger.verify_journal().unwrap().broken_at, None);
        let unswept = commit::unswept(ledger).unwrap();
        assert_eq!(unswept.iter().collect::<Vec<_>>(), self.unswept.values().collect::<Vec<_>>());
    }
}

fn file(path: u8, pre: u8, post: u8) -> ChangeFile {
    ChangeFile {
        at: at(&format!("f{path}")),
        op: ChangeOp::Edit,
        pre: Some(Digest::of(&image(pre, false))),
        post: Some(Digest::of(&image(post, false))),
        pre_mode: 0o600,
        ..ChangeFile::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_sequence_of_calls_is_remembered(calls in prop::collection::vec(call(), 0..60)) {
        let folder = Folder::new();
        let (mut ledger, _) = folder.try_open(Durability::Fast).unwrap();
        let mut model = Model::default();
        for call in calls {
            let unsealed = match call {
                Call::Restart => {
                    drop(ledger);
                    let (again, unsealed) = folder.try_open(Durability::Fast).unwrap();
                    ledger = again;
                    unsealed
                }
                Call::Reopen => ledger.reopen().unwrap(),
                other => {
                    model.apply(&ledger, other);
                    continue;
                }
            };
            prop_assert_eq!(unsealed.iter().collect::<Vec<_>>(), model.open.values().collect::<Vec<_>>());
            model.check(&ledger);
        }
        model.check(&ledger);
    }
}
