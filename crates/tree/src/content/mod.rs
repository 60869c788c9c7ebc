//! Searching in files.

mod file;
mod matcher;
mod page;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use cotenant_model::{Code, Digest, Refusal, WsPath};

use crate::dir::Dir;
use crate::error::TreeError;
use crate::glob::PathGlob;
use crate::list::{EntryKind, ws_path};
use crate::place::{Kind, Place};
use crate::tree::Tree;
use crate::walk::{self, LeftOut};
use file::FileSearch;
use page::Page;

/// So many files are worth a second thread, and so many are taken at once by each.
const WORTH_A_THREAD: usize = 32;
const BATCH: usize = 8;

/// What a content search answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// The matching lines.
    #[default]
    Content,
    /// The files; `limit` and `offset` count files.
    Files,
    /// The files with their counts; `limit` and `offset` count files.
    Count,
}

/// A search in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentQuery {
    /// The expression, or the text itself.
    pub pattern: String,
    /// Whether `pattern` is a regular expression.
    pub regex: bool,
    /// Upper and lower case count the same.
    pub ignore_case: bool,
    /// The expression may match over line ends.
    pub multiline: bool,
    /// Only files that fit this glob, as in [`NameQuery`](crate::NameQuery); a leading `!` excludes.
    pub glob: Option<String>,
    /// What is wanted.
    pub output: Output,
    /// Lines of context; `None`: 3 up to 10 matches, 1 up to 25, else 0.
    pub context_lines: Option<usize>,
    /// How many matching lines (or files) at most.
    pub limit: usize,
    /// How many to pass over first.
    pub offset: usize,
    /// Also what ignore files exclude.
    pub include_ignored: bool,
    /// How large the compiled expression may be, in bytes.
    pub regex_bytes: usize,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HitLine {
    /// Its number, from 1.
    pub number: u64,
    /// Its bytes without the ending; of a long line a part around the match.
    pub text: Vec<u8>,
    /// Where `text` begins in the line, in bytes.
    pub at: usize,
    /// The length of the whole line without the ending, in bytes; more than `text` has where it was clipped.
    pub len: usize,
    /// A match, or only context.
    pub is_match: bool,
}

/// What was found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHits {
    /// The file.
    pub path: WsPath,
    /// The lines of this page with their context, ascending; a jump in the numbers is a gap.
    pub lines: Vec<HitLine>,
    /// Matching lines in the whole file.
    pub matches: usize,
    /// The digest of the bytes that were searched, for a receipt; only where they were in memory at once.
    pub digest: Option<Digest>,
}

/// What a content search found.
#[derive(Clone, Debug, Default)]
pub struct ContentHits {
    /// The files of this page, in byte order of their paths.
    pub files: Vec<FileHits>,
    /// Matching lines in all files.
    pub total_matches: usize,
    /// Files with a match.
    pub total_files: usize,
    /// Whether the totals are exact; otherwise there are at least as many.
    pub exact: bool,
    /// Whether matches (or files) remain after this page.
    pub more: bool,
    /// How many files were searched.
    pub searched: usize,
    /// What was passed over: (`ignored` | `protected` | `binary` | `links` | `unreadable` | `mounts` | `other`, how many).
    pub skipped: Vec<(&'static str, usize)>,
    /// Binary files in which the pattern occurs all the same, with their sizes in bytes; the first few.
    pub binary: Vec<(WsPath, u64)>,
    /// How many lines of this page were clipped.
    pub clipped_lines: usize,
}

/// The files that a search looks into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// In byte order.
    pub paths: Vec<WsPath>,
    /// What was passed over: (`ignored` | `protected` | `links` | `unreadable` | `mounts` | `other`, how many).
    pub skipped: Vec<(&'static str, usize)>,
}

/// Why nothing was searched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The expression or the glob does not parse.
    #[error("{reason}")]
    PatternInvalid {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The compiled expression is too large.
    #[error("the expression is over {limit} bytes when compiled")]
    PatternTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The place cannot be searched.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

impl SearchError {
    /// The answer to a client; `shown` is the searched path as it is shown.
    pub fn refusal(&self, shown: &str) -> Refusal {
        match self {
            SearchError::PatternInvalid { pattern, reason } => {
                Refusal::new(Code::PatternInvalid, reason.clone())
                    .fact("pattern", pattern.chars().take(200).collect::<String>())
                    .next("the same call with regex=false, or with the pattern corrected")
            }
            SearchError::PatternTooLarge { limit } => Refusal::new(
                Code::PatternTooLarge,
                format!("The expression takes more than {limit} bytes when compiled."),
            )
            .fact("limit", *limit)
            .next("the same call with fewer or smaller repetitions, or with regex=false"),
            SearchError::Tree(error) => error.refusal(shown),
        }
    }
}

impl Tree {
    /// Searches the files below `place`, or the file there. Totals are exact whatever the limit. A file with a NUL is
    /// binary and counted as skipped, unless it is UTF-16 by its mark; one over 16 MiB is searched in pieces.
    pub fn search_content(&self, place: &Place, query: &ContentQuery) -> Result<ContentHits, SearchError> {
        let (matcher, multiline) = matcher::build(query)?;
        let root = self.root_dir(place.real.folder).ok_or(TreeError::NotFound)?;
        let (files, left_out) = self.files_to_search(place, query.glob.as_deref(), query.include_ignored)?;
        let job = Job {
            root: &root,
            files,
            next: AtomicUsize::new(0),
            page: Mutex::new(Page::new(query, left_out)),
        };
        let context = page::context_while_searching(query);
        let search = || job.work(FileSearch::new(matcher.clone(), multiline, context));
        if job.files.len() < WORTH_A_THREAD {
            search();
        } else {
            std::thread::scope(|scope| {
                for _ in 1..walk::threads() {
                    scope.spawn(search);
                }
                search();
            });
        }
        Ok(job.page.into_inner().unwrap_or_else(PoisonError::into_inner).finish())
    }

    /// The files that a content search looks into: those below `place` that fit `glob`, or the file there, in byte order
    /// of their paths; and what was passed over, by reason.
    pub fn files(&self, place: &Place, glob: Option<&str>) -> Result<Files, SearchError> {
        let (paths, left_out) = self.files_to_search(place, glob, false)?;
        Ok(Files { paths, skipped: left_out.named() })
    }

    fn files_to_search(
        &self,
        place: &Place,
        glob: Option<&str>,
        include_ignored: bool,
    ) -> Result<(Vec<WsPath>, LeftOut), SearchError> {
        let glob = glob.map(PathGlob::new).transpose()?;
        match place.kind {
            Kind::Absent { .. } => return Err(TreeError::NotFound.into()),
            // A file that is named is searched, whatever the glob and the ignore files say.
            Kind::File(_) | Kind::Link => return Ok((vec![place.real.clone()], LeftOut::default())),
            Kind::Dir => {}
        }
        let walked = self.walk(&place.real, walk::Options { include_ignored, ..walk::Options::default() });
        let mut left_out = walked.left_out;
        let below = place.real.path.as_bytes().len();
        let mut files = Vec::new();
        walked.for_each(|path, kind| match kind {
            EntryKind::File if glob.as_ref().is_none_or(|glob| glob.fits(path, below)) => {
                files.extend(ws_path(&place.real, path));
            }
            EntryKind::File | EntryKind::Dir => {}
            EntryKind::Link => left_out.links += 1,
            EntryKind::Other => left_out.other += 1,
        });
        Ok((files, left_out))
    }
}

/// Files that the threads share out among them.
struct Job<'j> {
    root: &'j Dir,
    files: Vec<WsPath>,
    next: AtomicUsize,
    page: Mutex<Page<'j>>,
}

impl Job<'_> {
    fn work(&self, mut search: FileSearch) {
        loop {
            let from = self.next.fetch_add(BATCH, Ordering::Relaxed);
            let Some(batch) = self.files.get(from..(from + BATCH).min(self.files.len())) else { return };
            if batch.is_empty() {
                return;
            }
            for (index, path) in (from..).zip(batch) {
                let keep = self.page.lock().unwrap_or_else(PoisonError::into_inner).wanted();
                let found = search.search(self.root, path.path.as_bytes(), keep);
                self.page.lock().unwrap_or_else(PoisonError::into_inner).take(index, path.clone(), found);
            }
        }
    }
}
