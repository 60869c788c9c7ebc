//! Git's sub-commands that only show, and their options.

use super::tools::named;
use super::{Options, operands};
use crate::policy::Surroundings;
use crate::policy::git::{call, leads_outside, reads};
use crate::policy::part::Part;

/// Options of `log`, `diff`, `show` and their like; none of them writes a file or runs a program.
const SHOWING: Options = Options {
    flags: "psuabRwzcmqvgitrEFPhn#DBMCOX0",
    valued: "nSGLU",
    long: "oneline stat? numstat shortstat dirstat? summary name-only name-status patch no-patch patch-with-stat raw graph all \
           branches? tags? remotes? decorate? no-decorate format= pretty? abbrev-commit no-abbrev-commit abbrev? author= \
           committer= grep= since= until= after= before= max-count= skip= merges no-merges first-parent reverse follow \
           no-renames find-renames? find-copies? diff-filter= cached staged merge-base color? no-color word-diff? color-words? \
           unified= minimal patience histogram diff-algorithm= ignore-space-change ignore-all-space ignore-blank-lines \
           ignore-space-at-eol check full-index binary exit-code quiet no-ext-diff no-textconv text relative? no-prefix date= \
           topo-order date-order left-right cherry-pick cherry-mark no-index src-prefix= dst-prefix= inter-hunk-context= \
           function-context stdin not left-only right-only boundary simplify-by-decoration full-history count ancestry-path? \
           show-signature notes? no-notes porcelain? short branch show-stash long untracked-files? ignored? ignore-submodules? \
           column? no-column ahead-behind no-ahead-behind renames no-optional-locks",
};

/// Options of the other sub-commands.
const OTHERS: Options = Options {
    flags: "adlvrtsznqwbpeicLkoumCMfhHIFEPUW#S",
    valued: "nxXABmL",
    long: "abbrev-ref? show-toplevel show-prefix show-cdup git-dir absolute-git-dir is-inside-work-tree is-bare-repository verify \
           short? symbolic-full-name quiet is-shallow-repository git-path= show-current list all remotes contains? \
           no-contains? merged? no-merged? points-at? sort= format= color? column? verbose cached deleted modified others ignored \
           stage unmerged killed directory exclude= exclude-standard exclude-from= full-name error-unmatch name-only name-status \
           name-rev tags always dirty? long abbrev= match= exact-match first-parent candidates= count heads tags refs get get-all \
           get-regexp global local system show-origin show-scope worktree porcelain? line-porcelain root incremental show-email \
           show-name show-number date= since= before= after= until= author= max-count= reverse no-merges merges left-right \
           is-ancestor octopus independent fork-point fixed-strings extended-regexp perl-regexp basic-regexp ignore-case \
           word-regexp invert-match line-number files-with-matches count files-without-match untracked no-index heading break \
           context= after-context= before-context= show-function function-context and or not max-depth= no-recursive recursive \
           only-matching no-color text summary numbered email oneline objects exists hash dereference stdin non-matching \
           no-index batch? batch-check? ignore-other-worktrees type= bool int path default= null object-only",
};

const SHOWING_VERBS: &str =
    "status log diff show diff-tree diff-index diff-files whatchanged range-diff reflog stash";

const OTHER_VERBS: &str = "rev-parse ls-files ls-tree cat-file blame annotate grep shortlog describe rev-list merge-base \
    name-rev for-each-ref show-ref count-objects cherry check-ignore check-attr version branch tag \
    remote config worktree show-branch var";

/// Whether a call of git changes nothing and runs nothing that its words name.
pub(super) fn is_read_only(part: &Part, around: &Surroundings<'_>) -> bool {
    let Some(call) = call(part).filter(|call| !call.bent && !part.more && part.assigns.is_empty()) else {
        return false;
    };
    if leads_outside(part, around) {
        return false;
    }
    let Some(verb) = call.verb else { return part.has(&["--version"]) };
    let Some(name) = verb.literal() else { return false };
    let options = match name {
        _ if !reads(name, call.rest) => return false,
        _ if named(SHOWING_VERBS, name) => &SHOWING,
        _ if named(OTHER_VERBS, name) => &OTHERS,
        _ => return false,
    };
    // `git grep -O` opens a pager, `git diff -O` takes a file of orders.
    let pager = name == "grep" && call.rest.iter().any(|arg| arg.text().starts_with("-O"));
    // Of a remote, only what is known here; the rest asks the network.
    let remote = name == "remote" && call.rest.iter().any(|arg| arg.text() == "show");
    !pager && !remote && operands(call.rest, options).is_some()
}
