//! A workspace made by a script and opened as a tree, with the questions that tests ask of it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use cotenant_model::{ClassRules, Code, Refusal, RelPath, WirePath, WsPath};
use cotenant_testkit::Scratch;
use cotenant_tree::{
    ContentHits, ContentQuery, EntryKind, Kind, ListOptions, Listing, NameHits, NameQuery, Output, Place,
    Tree, path_refusal,
};

/// A scratch directory and the tree over its `root`.
pub(crate) struct Ws {
    pub(crate) scratch: Scratch,
    pub(crate) tree: Tree,
}

/// A workspace in which `setup` (bash, `$W` and `$OUT` set) was run.
#[track_caller]
pub(crate) fn ws(setup: &str) -> Ws {
    ws_with(setup, ClassRules::default())
}

#[track_caller]
pub(crate) fn ws_with(setup: &str, rules: ClassRules) -> Ws {
    let scratch = Scratch::new("/bin/false");
    scratch.sh(setup);
    let tree = Tree::open(&scratch.root(), &[], rules).unwrap();
    Ws { scratch, tree }
}

pub(crate) fn root_path(path: &str) -> WsPath {
    WsPath::root(RelPath::parse(path).unwrap())
}

impl Ws {
    pub(crate) fn wire(&self, path: &str) -> WirePath {
        self.tree.folders().parse(path).unwrap()
    }

    pub(crate) fn locate(&self, path: &str) -> Result<Place, Refusal> {
        let wire = self.tree.folders().parse(path).map_err(|error| path_refusal(&error, path))?;
        self.tree.locate(&wire).map_err(|error| error.refusal(path))
    }

    #[track_caller]
    pub(crate) fn at(&self, path: &str) -> Place {
        self.locate(path).unwrap_or_else(|refusal| panic!("{path}: {refusal}"))
    }

    /// Where a path leads, with `link` where a link was followed and `absent` where nothing stands.
    #[track_caller]
    pub(crate) fn real(&self, path: &str) -> String {
        let place = self.at(path);
        let kind = match &place.kind {
            Kind::File(_) => "file".to_owned(),
            Kind::Dir => "dir".to_owned(),
            Kind::Link => "itself".to_owned(),
            Kind::Absent { missing } => format!("absent-{}", missing.len()),
        };
        let how = if place.through_link { " link" } else { "" };
        format!("{} {kind}{how}", place.real.path)
    }

    #[track_caller]
    pub(crate) fn refused(&self, path: &str) -> Code {
        self.refusal(path).code
    }

    #[track_caller]
    pub(crate) fn refusal(&self, path: &str) -> Refusal {
        match self.locate(path) {
            Ok(place) => panic!("{path} leads to {place:?}"),
            Err(refusal) => refusal,
        }
    }

    /// The text of a file, as `read_file` would get it.
    pub(crate) fn read(&self, path: &str) -> Result<String, Refusal> {
        let read = self.tree.read(&self.locate(path)?, 10_000_000).map_err(|error| error.refusal(path))?;
        Ok(String::from_utf8(read.bytes).unwrap())
    }

    #[track_caller]
    pub(crate) fn list(&self, path: &str, depth: Option<usize>) -> Listing {
        self.list_with(path, &ListOptions { depth, limit: 20_000, include_ignored: false })
    }

    #[track_caller]
    pub(crate) fn list_with(&self, path: &str, options: &ListOptions) -> Listing {
        self.tree.list(&self.at(path), options).unwrap()
    }

    #[track_caller]
    pub(crate) fn names(&self, pattern: &str) -> NameHits {
        self.names_in(".", pattern)
    }

    #[track_caller]
    pub(crate) fn names_in(&self, path: &str, pattern: &str) -> NameHits {
        let query = NameQuery { pattern: pattern.into(), limit: 100, offset: 0, include_ignored: false };
        self.tree.search_names(&self.at(path), &query).unwrap()
    }

    #[track_caller]
    pub(crate) fn grep(&self, path: &str, pattern: &str) -> ContentHits {
        self.grep_with(path, &query(pattern))
    }

    #[track_caller]
    pub(crate) fn grep_with(&self, path: &str, query: &ContentQuery) -> ContentHits {
        self.tree.search_content(&self.at(path), query).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// A content search as a client sends it that gives nothing but the pattern.
pub(crate) fn query(pattern: &str) -> ContentQuery {
    ContentQuery {
        pattern: pattern.to_owned(),
        regex: true,
        ignore_case: false,
        multiline: false,
        glob: None,
        output: Output::Content,
        context_lines: None,
        limit: 50,
        offset: 0,
        include_ignored: false,
        regex_bytes: 256 * 1024,
    }
}

/// The entries of a listing as a client sees them.
pub(crate) fn shown(listing: &Listing) -> Vec<String> {
    let mark = |kind| match kind {
        EntryKind::Dir => "/",
        EntryKind::Link => "@",
        EntryKind::Other => "?",
        EntryKind::File => "",
    };
    listing.entries.iter().map(|entry| format!("{}{}", entry.path.path, mark(entry.kind))).collect()
}

/// Paths as text.
pub(crate) fn texts(paths: &[WsPath]) -> Vec<String> {
    paths.iter().map(|path| path.path.to_string()).collect()
}

/// The files of a search as text.
pub(crate) fn files(hits: &ContentHits) -> Vec<String> {
    hits.files.iter().map(|file| file.path.path.to_string()).collect()
}

/// `path:42:text` for matches, `path-43-text` for context.
pub(crate) fn lines(hits: &ContentHits) -> Vec<String> {
    let mut lines = Vec::new();
    for file in &hits.files {
        for line in &file.lines {
            let mark = if line.is_match { ':' } else { '-' };
            let text = String::from_utf8_lossy(&line.text);
            lines.push(format!("{}{mark}{}{mark}{text}", file.path.path, line.number));
        }
    }
    lines
}

/// The count of one reason.
pub(crate) fn count(reasons: &[(&'static str, usize)], reason: &str) -> usize {
    reasons.iter().find(|(name, _)| *name == reason).map_or(0, |(_, count)| *count)
}

pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Tells other threads to stop when the test that they disturb ends, also by a failure.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
