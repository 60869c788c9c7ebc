//! History against a model that keeps everything in a list.

use cotenant_ledger::{Ledger, Query, Since, commit};
use cotenant_model::{
    Agent, Change, ChangeFile, ChangeId, ChangeKind, ChangeOp, Digest, Millis, Outcome, SessionId, WsPath,
};
use proptest::prelude::*;

use crate::{Folder, at, edit, in_folder, intent, land};

const PATHS: [&str; 8] = ["a", "a/b", "a/b/c", "a/bc", "a-b", "a0", "b/a", "b"];

fn place() -> impl Strategy<Value = WsPath> {
    (0_u16..2, prop::sample::select(PATHS.as_slice())).prop_map(|(folder, path)| in_folder(folder, path))
}

fn file() -> impl Strategy<Value = ChangeFile> {
    (place(), 0_u8..7, 0_u8..3, 0_u8..3, place()).prop_map(|(at, op, pre, post, from)| {
        let image = |number| (number > 0).then(|| Digest::of(&[number]));
        let ops =
            [ChangeOp::Create, ChangeOp::Edit, ChangeOp::Delete, ChangeOp::MakeDir, ChangeOp::RemoveDir];
        let op = ops.get(usize::from(op)).copied().unwrap_or(ChangeOp::Move);
        // A copy comes from somewhere, too, but nothing happens there.
        let comes = op == ChangeOp::Move || op == ChangeOp::Create && pre == 0;
        ChangeFile {
            at,
            op,
            pre: image(pre),
            post: image(post),
            pre_mode: 0o600 + u32::from(pre),
            post_mode: 0o100_644,
            from: comes.then_some(from),
        }
    })
}

fn a_change() -> impl Strategy<Value = Change> {
    (
        0_u64..50,
        prop::option::of(prop::sample::select(["codex", "claude"].as_slice())),
        prop::option::of(1_u64..3),
        0_u32..3,
        prop::collection::vec(file(), 0..4),
        prop::sample::select(
            [Outcome::Open, Outcome::Sealed, Outcome::Aborted, Outcome::Overtaken].as_slice(),
        ),
        any::<bool>(),
    )
        .prop_map(|(time, agent, session, turn, files, outcome, observed)| Change {
            id: ChangeId(0),
            time: Millis(time),
            kind: if observed { ChangeKind::Observed } else { ChangeKind::Planned },
            outcome: if observed && outcome == Outcome::Open { Outcome::Sealed } else { outcome },
            agent: agent.map(Agent::from),
            session: session.map(SessionId),
            task: agent.map(Agent::from),
            turn,
            tool: if observed { "".into() } else { "edit_file".into() },
            files,
            undoes: session.map(ChangeId),
        })
}

fn query() -> impl Strategy<Value = Query> {
    let since = prop_oneof![
        (0_u64..30).prop_map(|id| Since::Change(ChangeId(id))),
        (0_u64..50).prop_map(|time| Since::Time(Millis(time))),
    ];
    let path = prop_oneof![
        place(),
        (0_u16..3)
            .prop_map(|folder| WsPath { folder: cotenant_model::FolderId(folder), ..WsPath::default() })
    ];
    (
        prop::option::of(path),
        prop::option::of(prop::sample::select(["codex", "claude", "nobody"].as_slice())),
        prop::option::of(1_u64..3),
        prop::option::of(0_u32..3),
        prop::option::of(since),
        any::<bool>(),
        0_usize..6,
    )
        .prop_map(|(path, agent, session, turn, since, aborted, limit)| Query {
            path,
            agent: agent.map(str::to_owned),
            session: session.map(SessionId),
            turn,
            since,
            aborted,
            limit,
        })
}

/// What a query means, said once more without its code: by the text of paths.
fn meant(query: &Query, change: &Change) -> bool {
    let under = |at: &WsPath, top: &WsPath| {
        let (path, top_path) = (at.path.to_string(), top.path.to_string());
        at.folder == top.folder
            && (top.path.is_root() || path == top_path || path.starts_with(&format!("{top_path}/")))
    };
    let moved = |file: &ChangeFile, top: &WsPath| {
        file.op == ChangeOp::Move
            && file.from.iter().chain([&file.at]).any(|end| under(end, top) || under(top, end))
    };
    if let Some(top) = &query.path
        && !change.files.iter().any(|file| under(&file.at, top) || moved(file, top))
    {
        return false;
    }
    if query.agent.is_some() && query.agent.as_deref() != change.agent.as_deref() {
        return false;
    }
    if query.session.is_some() && query.session != change.session {
        return false;
    }
    if query.turn.is_some_and(|turn| turn != change.turn)
        || (!query.aborted && change.outcome == Outcome::Aborted)
    {
        return false;
    }
    match query.since {
        Some(Since::Change(id)) => change.id.0 > id.0,
        Some(Since::Time(time)) => change.time >= time,
        None => true,
    }
}

/// Writes a change and returns it as history should show it.
fn write(ledger: &Ledger, mut change: Change) -> Change {
    if change.kind == ChangeKind::Observed {
        change.id = commit::observe(ledger, change.clone()).unwrap();
        return change;
    }
    change.id = commit::next_change(ledger);
    let open = Change { outcome: Outcome::Open, ..change.clone() };
    commit::intend(ledger, intent(open)).wait().unwrap();
    if change.outcome != Outcome::Open {
        commit::seal(ledger, change.id, change.outcome, None);
    }
    change
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn history_is_what_a_plain_list_says(
        changes in prop::collection::vec(a_change(), 0..25),
        queries in prop::collection::vec(query(), 1..20),
        restart in any::<bool>(),
    ) {
        let folder = Folder::new();
        let (mut ledger, _) = folder.try_open(cotenant_model::Durability::Fast).unwrap();
        let list: Vec<Change> = changes.into_iter().map(|change| write(&ledger, change)).collect();
        if restart {
            drop(ledger);
            ledger = folder.try_open(cotenant_model::Durability::Fast).unwrap().0;
        }
        for query in queries {
            let mut expected: Vec<&Change> = list.iter().rev().filter(|change| meant(&query, change)).collect();
            if query.limit > 0 {
                expected.truncate(query.limit);
            }
            let found = ledger.history(&query).unwrap();
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{:?}", query);
        }
        for (folder, path) in (0..2).flat_map(|folder| PATHS.map(|path| (folder, path))) {
            let place = in_folder(folder, path);
            let stands = |change: &&Change| {
                matches!(change.outcome, Outcome::Sealed | Outcome::Overtaken)
                    && change.files.iter().any(|file| {
                        file.at == place || file.op == ChangeOp::Move && file.from.as_ref() == Some(&place)
                    })
            };
            let newest = ledger.newest(&place);
            prop_assert_eq!(newest.as_ref(), list.iter().rev().find(stands));
        }
        for change in &list {
            prop_assert_eq!(ledger.change(change.id).unwrap(), Some(change.clone()));
        }
    }
}

#[test]
fn a_directory_covers_what_lies_below_and_no_sibling() {
    let folder = Folder::new();
    let ledger = folder.open();
    let ids: Vec<ChangeId> = PATHS.iter().map(|path| land(&ledger, vec![edit(path, b"1", b"2")])).collect();
    let found = |path: &str| {
        let query = Query { path: Some(at(path)), ..Query::default() };
        let changes = ledger.history(&query).unwrap();
        changes
            .iter()
            .map(|change| PATHS[ids.iter().position(|id| *id == change.id).unwrap()])
            .collect::<Vec<_>>()
    };
    assert_eq!(found("a"), ["a/bc", "a/b/c", "a/b", "a"]);
    assert_eq!(found("a/b"), ["a/b/c", "a/b"]);
    assert_eq!(found("a/b/c"), ["a/b/c"]);
    assert_eq!(found("c"), [""; 0]);
}

#[test]
fn a_directory_with_very_many_changes_is_listed_like_one_with_few() {
    let folder = Folder::new();
    let (ledger, _) = folder.try_open(cotenant_model::Durability::Fast).unwrap();
    // Over the number from which a directory's changes are looked for from the newest backwards.
    let wide: Vec<ChangeFile> = (0..1100).map(|number| edit(&format!("d/f{number}"), b"1", b"2")).collect();
    let sibling = land(&ledger, vec![edit("d0", b"1", b"2")]);
    let first = land(&ledger, wide.clone());
    let second = land(&ledger, wide);
    let other = land(&ledger, vec![edit("e/f", b"1", b"2")]);
    let last = land(&ledger, vec![edit("d/f7", b"1", b"2")]);
    let found = |path: WsPath, limit: usize| {
        let query = Query { path: Some(path), limit, ..Query::default() };
        ledger.history(&query).unwrap().iter().map(|change| change.id).collect::<Vec<_>>()
    };
    assert_eq!(found(at("d"), 0), [last, second, first]);
    assert_eq!(found(at("d"), 2), [last, second]);
    assert_eq!(found(at("d/f7"), 0), [last, second, first]);
    assert_eq!(found(at("d/f8"), 1), [second]);
    assert_eq!(found(WsPath::default(), 0), [last, other, second, first, sibling]);
}

#[test]
fn the_code_and_the_query_agree_on_what_is_meant() {
    proptest!(ProptestConfig::with_cases(512), |(change in a_change(), query in query())| {
        prop_assert_eq!(query.admits(&change), meant(&query, &change));
    });
}
