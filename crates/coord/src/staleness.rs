//! The three-way decision: whether a change may go ahead, given what its session was shown of the file.

use cotenant_model::{Digest, StalePolicy};
use cotenant_text::{Region, clear_of};

use crate::lines::{LineMap, LineSet};
use crate::receipts::Standing;

/// Unchanged lines that must lie between a foreign change and the edit's own lines.
const MARGIN: usize = 1;

/// Whether an edit goes ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditDecision {
    /// It does.
    Go {
        /// Some of the lines it touches were never shown to the session: the answer says `unseen=yes`.
        unseen: bool,
        /// The file changed since it was shown, elsewhere: the answer reports what changed.
        stale_regions: bool,
    },
    /// `EDIT_REQUIRES_PRIOR_READ`.
    NeedsRead,
    /// `FILE_CHANGED_SINCE_READ`.
    Changed,
}

/// Decides an edit whose target was found. `changed`: the regions changed between the version shown and the present
/// one (`None`: unknown, such as a version that is no longer kept); `spans`: the lines the edit touches in the present
/// version, inclusive, from 1, `last` before `first` for a mere insertion; `unique`: each target occurs once.
pub fn decide_edit(
    standing: &Standing,
    policy: StalePolicy,
    changed: Option<&[Region]>,
    spans: &[(usize, usize)],
    unique: bool,
) -> EditDecision {
    match standing {
        Standing::NeverShown => EditDecision::NeedsRead,
        Standing::Current { whole, ranges } => {
            EditDecision::Go { unseen: !whole && unseen(ranges, spans), stale_regions: false }
        }
        Standing::Stale { whole, ranges, .. } => {
            let Some(regions) = changed.filter(|_| policy == StalePolicy::Region && unique) else {
                return EditDecision::Changed;
            };
            if !spans.iter().all(|span| clear_of(regions, *span, MARGIN)) {
                return EditDecision::Changed;
            }
            let now = LineMap { regions: regions.to_vec(), total_lines: None, known: false }.carry(ranges);
            EditDecision::Go { unseen: !whole && unseen(&now, spans), stale_regions: true }
        }
    }
}

fn unseen(seen: &LineSet, spans: &[(usize, usize)]) -> bool {
    !spans.iter().all(|(first, last)| seen.covers(*first, *last))
}

/// Whether all of a file's bytes may be replaced or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverwriteDecision {
    /// They may.
    Go,
    /// `EDIT_REQUIRES_PRIOR_READ`: nothing of it was shown.
    NeedsRead,
    /// `EDIT_REQUIRES_PRIOR_READ`: only these lines of it were shown.
    NotWhole {
        /// The lines.
        seen: LineSet,
    },
    /// `FILE_CHANGED_SINCE_READ`: it is not the version that was shown, or not the one that `expected_digest` names.
    Changed,
}

/// Decides overwriting or deleting. `expected_digest`, where given, is what counts: the caller says which version it
/// means, whatever it was shown.
pub fn decide_overwrite(
    standing: &Standing,
    expected_digest: Option<&str>,
    current: Digest,
) -> OverwriteDecision {
    if let Some(expected) = expected_digest {
        return if current.matches(expected) { OverwriteDecision::Go } else { OverwriteDecision::Changed };
    }
    match standing {
        Standing::NeverShown => OverwriteDecision::NeedsRead,
        Standing::Current { whole: true, .. } => OverwriteDecision::Go,
        Standing::Current { whole: false, ranges } => OverwriteDecision::NotWhole { seen: ranges.clone() },
        Standing::Stale { .. } => OverwriteDecision::Changed,
    }
}
