//! From what the files hold to the page asked for: results are settled in path order, whatever order they come in.

use std::collections::BTreeMap;

use cotenant_model::WsPath;

use super::file::Searched;
use super::{ContentHits, ContentQuery, FileHits, HitLine, Output};
use crate::walk::LeftOut;

/// Context at most, in lines.
pub(super) const MAX_CONTEXT: usize = 10;
/// Context with few matches: (up to so many matches, so many lines).
const FEW: [(usize, usize); 2] = [(10, 3), (25, 1)];
/// So many binary files with the pattern in them are named.
const BINARY_NAMED: usize = 5;

/// Collects what is found.
pub(super) struct Page<'q> {
    query: &'q ContentQuery,
    /// Found, but a file before it is still being searched.
    early: BTreeMap<usize, (WsPath, Searched)>,
    next: usize,
    hits: ContentHits,
    left_out: LeftOut,
}

impl<'q> Page<'q> {
    pub(super) fn new(query: &'q ContentQuery, left_out: LeftOut) -> Page<'q> {
        Page { query, early: BTreeMap::new(), next: 0, hits: ContentHits::default(), left_out }
    }

    /// How many matching lines of a file searched from now on can still be on the page.
    pub(super) fn wanted(&self) -> usize {
        match self.query.output {
            Output::Content => self.end().saturating_sub(self.hits.total_matches),
            Output::Files | Output::Count => 0,
        }
    }

    fn end(&self) -> usize {
        self.query.offset.saturating_add(self.query.limit)
    }

    /// Takes the result of the file with the number `index`.
    pub(super) fn take(&mut self, index: usize, path: WsPath, searched: Searched) {
        self.early.insert(index, (path, searched));
        while let Some((path, searched)) = self.early.remove(&self.next) {
            self.next += 1;
            self.settle(path, searched);
        }
    }

    fn settle(&mut self, path: WsPath, searched: Searched) {
        match searched {
            Searched::Text { matches, lines, digest } => {
                self.hits.searched += 1;
                if matches > 0 {
                    self.settle_hits(FileHits { path, lines, matches, digest });
                }
            }
            Searched::Binary { occurs, size } => {
                self.left_out.binary += 1;
                if occurs && self.hits.binary.len() < BINARY_NAMED {
                    self.hits.binary.push((path, size));
                }
            }
            Searched::Other => self.left_out.other += 1,
            Searched::Unreadable => self.left_out.unreadable += 1,
            Searched::Mount => self.left_out.mounts += 1,
        }
    }

    fn settle_hits(&mut self, mut file: FileHits) {
        let (seen_matches, seen_files) = (self.hits.total_matches, self.hits.total_files);
        self.hits.total_matches += file.matches;
        self.hits.total_files += 1;
        let on_page = match self.query.output {
            Output::Files | Output::Count => (self.query.offset..self.end()).contains(&seen_files),
            Output::Content => {
                let skip = self.query.offset.saturating_sub(seen_matches);
                demote(&mut file.lines, skip, self.end().saturating_sub(seen_matches));
                file.lines.iter().any(|line| line.is_match)
            }
        };
        if on_page {
            self.hits.files.push(file);
        }
    }

    /// The page, once every file is settled.
    pub(super) fn finish(mut self) -> ContentHits {
        let total = match self.query.output {
            Output::Content => self.hits.total_matches,
            Output::Files | Output::Count => self.hits.total_files,
        };
        let context = context_for(self.query, self.hits.total_matches);
        for file in &mut self.hits.files {
            trim(&mut file.lines, context);
            self.hits.clipped_lines += file.lines.iter().filter(|line| line.text.len() < line.len).count();
        }
        self.hits.more = total > self.end();
        self.hits.exact = true;
        self.hits.skipped = self.left_out.named();
        self.hits
    }
}

/// How many lines of context are kept while searching.
pub(super) fn context_while_searching(query: &ContentQuery) -> usize {
    query.context_lines.map_or(FEW[0].1, |lines| lines.min(MAX_CONTEXT))
}

/// How many lines of context are shown, `matches` being all there are.
fn context_for(query: &ContentQuery, matches: usize) -> usize {
    let by_count = || FEW.iter().find(|(most, _)| matches <= *most).map_or(0, |(_, lines)| *lines);
    query.context_lines.map_or_else(by_count, |lines| lines.min(MAX_CONTEXT))
}

/// Leaves `is_match` to the matching lines from `skip` up to `end`, which are on the page; others beside them are context.
fn demote(lines: &mut [HitLine], skip: usize, end: usize) {
    for (nth, line) in lines.iter_mut().filter(|line| line.is_match).enumerate() {
        line.is_match = (skip..end).contains(&nth);
    }
}

/// Drops context that is more than `context` lines from a match.
fn trim(lines: &mut Vec<HitLine>, context: usize) {
    let matches: Vec<u64> = lines.iter().filter(|line| line.is_match).map(|line| line.number).collect();
    let near = |number: u64| {
        let after = matches.partition_point(|at| *at < number);
        let close = |at: Option<&u64>| at.is_some_and(|at| at.abs_diff(number) <= context as u64);
        close(matches.get(after)) || after.checked_sub(1).is_some_and(|before| close(matches.get(before)))
    };
    lines.retain(|line| near(line.number));
}
