//! What the disk adds to a path's class: bare repositories, and what `.gitattributes` calls generated.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use cotenant_model::{ClassHit, PathClass, RelPath, WsPath};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::dir::Stat;
use crate::ignores::as_path;
use crate::sys::{self, Flavour};
use crate::tree::Tree;

/// What git makes a directory a repository by; its `config` and hooks run commands.
const BARE: [&[u8]; 3] = [b"HEAD", b"objects", b"refs"];
/// So many parsed files are kept; a repository rarely has more than a handful.
const KEPT: usize = 1024;

/// Parsed `.gitattributes` files, each good for as long as its file is the same one.
#[derive(Debug, Default)]
pub(crate) struct AttributeCache(Mutex<HashMap<WsPath, (Stat, Arc<Gitignore>)>>);

impl Tree {
    /// The class of a resolved path, by its name and by what stands on the disk, whether it exists or not.
    pub fn class_of(&self, real: &WsPath) -> ClassHit {
        self.rules.classify(&real.path).max(self.class_on_disk(real))
    }

    /// The class that what stands on the disk gives to the resolved path `real`.
    pub(crate) fn class_on_disk(&self, real: &WsPath) -> ClassHit {
        let mut level = real.path.parent();
        let mut generated = None;
        while let Some(dir) = level {
            if self.is_bare_repository(real, &dir) {
                return ClassHit::of(PathClass::Sensitive, "bare repository")
                    .max(generated.unwrap_or_else(ClassHit::ordinary));
            }
            if generated.is_none() {
                generated = self.generated_by(real, &dir);
            }
            level = dir.parent();
        }
        generated.unwrap_or_else(ClassHit::ordinary)
    }

    fn is_bare_repository(&self, real: &WsPath, dir: &RelPath) -> bool {
        let Some(root) = self.root_dir(real.folder) else { return false };
        BARE.iter().all(|name| sys::stat_leaf(root.fd(), dir.join(name).as_bytes()).is_ok())
    }

    /// What `.gitattributes` in `dir` says of `real`; `None` where it says nothing.
    fn generated_by(&self, real: &WsPath, dir: &RelPath) -> Option<ClassHit> {
        let rules = self.attributes_in(&WsPath { folder: real.folder, path: dir.clone() })?;
        let below = real.path.as_bytes().get(dir.as_bytes().len()..)?;
        match rules.matched(as_path(below.strip_prefix(b"/").unwrap_or(below)), false) {
            Match::None => None,
            Match::Whitelist(_) => Some(ClassHit::ordinary()),
            Match::Ignore(glob) => {
                let rule = format!(".gitattributes: {} linguist-generated", glob.original());
                Some(ClassHit::of(PathClass::Generated, &rule))
            }
        }
    }

    fn attributes_in(&self, dir: &WsPath) -> Option<Arc<Gitignore>> {
        let root = self.root_dir(dir.folder)?;
        let path = dir.path.join(b".gitattributes");
        let meta = sys::stat_leaf(root.fd(), path.as_bytes()).ok()?;
        if meta.flavour != Flavour::File {
            return None;
        }
        let mut kept = self.attributes.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((stat, rules)) = kept.get(dir)
            && *stat == meta.stat
        {
            return Some(rules.clone());
        }
        let rules = Arc::new(parse(&self.read_meta_file(dir.folder, &path)?));
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(dir.clone(), (meta.stat, rules.clone()));
        Some(rules)
    }
}

/// The lines about `linguist-generated`, as ignore rules: what is generated is "ignored", what is said not to be is
/// "whitelisted", and the last line that fits decides, in both languages.
fn parse(text: &[u8]) -> Gitignore {
    let mut rules = GitignoreBuilder::new(Path::new(""));
    for line in String::from_utf8_lossy(text).lines() {
        let Some((pattern, attributes)) = split(line.trim()) else { continue };
        let said = attributes.split_whitespace().filter_map(verdict).next_back();
        let line = match said {
            Some(true) => pattern,
            Some(false) => format!("!{pattern}"),
            None => continue,
        };
        // A pattern that does not parse fits nothing, as for git.
        let _ = rules.add_line(None, &line);
    }
    rules.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Pattern and attributes of a line. A pattern may be quoted as in C; `#` begins a comment, `!` is not allowed.
fn split(line: &str) -> Option<(String, &str)> {
    if let Some(quoted) = line.strip_prefix('"') {
        let mut pattern = String::new();
        let mut escaped = false;
        for (at, ch) in quoted.char_indices() {
            match ch {
                '\\' if !escaped => escaped = true,
                '"' if !escaped => return Some((pattern, &quoted[at + 1..])),
                _ => {
                    pattern.push(ch);
                    escaped = false;
                }
            }
        }
        return None;
    }
    let (pattern, attributes) = line.split_once(char::is_whitespace)?;
    (!pattern.starts_with(['#', '!', '['])).then(|| (pattern.to_owned(), attributes))
}

/// Whether an attribute says that something is generated, or that it is not.
fn verdict(attribute: &str) -> Option<bool> {
    match attribute {
        "linguist-generated" | "linguist-generated=true" => Some(true),
        "-linguist-generated" | "!linguist-generated" | "linguist-generated=false" => Some(false),
        _ => None,
    }
}
