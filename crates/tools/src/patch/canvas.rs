//! The files of a patch as they are while it is put into them, one file section after the other.

use std::collections::{BTreeMap, BTreeSet};

use cotenant_model::{Body, Code, Content, EntryKind, PathClass, Refusal, RelPath, WirePath, WsPath};
use cotenant_text::patch::{self, Applied, FilePatch, Grammar, Hunk, Misfit, Mode, Op};
use cotenant_text::{Form, Want};
use cotenant_tree::{Kind as Found, Place};

use super::Wishes;
use super::conflicts::{Conflict, Why};
use crate::ctx::{Ctx, Loaded};
use crate::files::write_file;
use crate::states::{Shift, Shifts, State};

/// The files that a patch names.
pub(super) struct Canvas<'a> {
    ctx: &'a Ctx<'a>,
    wishes: &'a Wishes,
    grammar: Grammar,
    sheets: BTreeMap<WsPath, Sheet>,
    /// The files that a section changed where they stand.
    updated: BTreeSet<WsPath>,
}

/// One file: what stood there, and what stands there after the sections so far.
pub(super) struct Sheet {
    pub(super) place: Place,
    pub(super) before: State,
    pub(super) after: State,
    /// The file that it is a renamed or copied version of.
    pub(super) from: Option<WsPath>,
    /// The form of what stood there; `None` where it is no text.
    form: Option<Form>,
    why_not_text: String,
}

/// A file section that fits.
pub(super) struct Done {
    /// The file, or where it went.
    pub(super) at: WsPath,
    pub(super) what: What,
    /// Where each hunk landed.
    pub(super) applied: Option<Applied>,
    /// Lines that came and went; `None` for what is no text.
    pub(super) counts: Option<(usize, usize)>,
    /// The permission bits before and after, where they change.
    pub(super) modes: Option<(u32, u32)>,
}

/// What a section does, for the answer.
pub(super) enum What {
    Added,
    Changed,
    Deleted,
    Renamed(WsPath),
    Copied(WsPath),
}

/// What became of a section.
pub(super) enum Put {
    Done(Done),
    Skipped,
    Conflict(Conflict),
}

/// A file with the hunks of a section: what it is then, where they landed, and the lines that came and went.
type Changed = (Body, Option<Applied>, Option<(usize, usize)>);

/// A section that does not fit, or a refusal that ends the call.
enum Stop {
    Conflict(Box<Why>),
    Refused(Refusal),
}

impl Stop {
    fn of(why: Why) -> Stop {
        Stop::Conflict(Box::new(why))
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

impl<'a> Canvas<'a> {
    pub(super) fn new(ctx: &'a Ctx<'a>, wishes: &'a Wishes, grammar: Grammar) -> Canvas<'a> {
        Canvas { ctx, wishes, grammar, sheets: BTreeMap::new(), updated: BTreeSet::new() }
    }

    /// Puts one section in. A refusal is one that no other spelling of the patch could avoid.
    pub(super) fn put(&mut self, file: &FilePatch) -> Result<Put, Refusal> {
        let label = label(file);
        let Some(skip) = self.wishes.skipped(&label) else { return Ok(Put::Skipped) };
        let put = match &file.op {
            Op::Add => self.add(file),
            Op::Delete => self.delete(file),
            Op::Update => self.update(file, &label, &skip),
            Op::Rename { from } | Op::Copy { from } => self.transfer(file, from, &label, &skip),
        };
        match put {
            Ok(done) => Ok(Put::Done(done)),
            Err(Stop::Refused(refusal)) => Err(refusal),
            Err(Stop::Conflict(why)) => {
                let wanted = || file.hunks.iter().filter(|hunk| !skip.contains(&hunk.ordinal));
                let old = wanted().next().map(old_text).unwrap_or_default();
                let hunks = wanted().count();
                Ok(Put::Conflict(Conflict { label, line: file.line, hunks, old, why: *why }))
            }
        }
    }

    /// What becomes of all paths, with the directories that are missing above what comes to be.
    pub(super) fn shifts(&self) -> Shifts {
        let mut shifts = Shifts::default();
        for (at, sheet) in &self.sheets {
            let (before, mut after) = (sheet.before.clone(), sheet.after.clone());
            // What keeps its mode is not given one; but a new name for what can be run says so.
            let origin = sheet.from.as_ref().and_then(|from| self.sheets.get(from)).unwrap_or(sheet);
            if let State::Entry(body) = &mut after {
                let was = origin.before.entry().and_then(|old| old.mode);
                let runs = |mode: u32| mode & 0o111 != 0 && !before.stands();
                body.mode = body.mode.filter(|mode| Some(*mode) != was || runs(*mode));
            }
            if after.stands() {
                shifts.dirs(write_file::missing_dirs(&sheet.place).into_iter().map(|op| op.at));
            }
            let class = sheet.place.class.clone();
            shifts.set(at.clone(), Shift { before, after, from: sheet.from.clone(), class });
        }
        shifts
    }

    pub(super) fn sheets(&self) -> &BTreeMap<WsPath, Sheet> {
        &self.sheets
    }

    fn add(&mut self, file: &FilePatch) -> Result<Done, Stop> {
        let link = file.new_mode == Some(Mode::Link);
        // A link that stands there is in the way, wherever it leads; one that an earlier section deleted is not.
        let at = self.sheet(&file.path, true)?;
        let body = self.added(file, &at, link)?;
        let sheet = self.at(&at)?;
        if let Some(there) = sheet.after.entry() {
            let same = there.entry() == body.entry();
            return Err(Stop::of(if same { Why::Applied } else { Why::Exists(sheet.place.clone()) }));
        }
        if sheet.after.stands() {
            return Err(Stop::of(Why::Exists(sheet.place.clone())));
        }
        let counts = file.binary.is_none().then(|| (file.hunks.iter().map(|hunk| hunk.lines.len()).sum(), 0));
        sheet.after = State::Entry(body);
        sheet.from = None;
        Ok(Done { at, what: What::Added, applied: None, counts, modes: None })
    }

    /// The new file: its bytes exactly as a diff states them; those of the other grammars, which models write, in the
    /// form that `.editorconfig` asks for.
    fn added(&self, file: &FilePatch, at: &WsPath, link: bool) -> Result<Body, Stop> {
        let content: Content = match &file.binary {
            Some(binary) => {
                patch::apply_binary(None, binary).map_err(|miss| Stop::of(Why::Binary(miss)))?.into()
            }
            None => file.content().into(),
        };
        if link {
            self.stays_inside(at, &content)?;
            return Ok(Body::link(content));
        }
        let content = match std::str::from_utf8(&content) {
            Ok(text) if self.grammar != Grammar::Unified => self.shaped(text, at)?,
            _ => content,
        };
        let body = Body::file(content);
        Ok(if file.new_mode == Some(Mode::Executable) { body.with_mode(0o755) } else { body })
    }

    /// Refuses a link that leads out of the folder, or to what is protected.
    fn stays_inside(&self, at: &WsPath, target: &[u8]) -> Result<(), Refusal> {
        let shown = self.ctx.show(at);
        let out = || {
            let target = cotenant_text::shown(target).into_owned();
            Refusal::new(
                Code::PathOutside,
                format!("The link {shown} would lead out of the folder, to {target}; nothing was written."),
            )
            .fact("path", shown.as_str())
            .fact("target", target)
            .next("link to a path inside, relative to the link")
        };
        let mut leads = at.dir();
        if target.starts_with(b"/") {
            return Err(out());
        }
        for name in target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")) {
            leads = match name {
                b".." if leads.path.is_root() => return Err(out()),
                b".." => leads.dir(),
                name => leads.join(name),
            };
        }
        let class = self.ctx.ws.tree().class_of(&leads);
        if class.class == PathClass::Protected {
            return Err(cotenant_coord::protected(&self.ctx.show(&leads), &class));
        }
        Ok(())
    }

    /// `PATCH_MALFORMED` of a path with two sections.
    fn twice(&self, file: &FilePatch, label: &str) -> Refusal {
        let why = format!(
            "Line {} of the patch begins a second section of {label}. Nothing was written.",
            file.line
        );
        Refusal::new(Code::PatchMalformed, why)
            .fact("line", file.line)
            .fact("path", label)
            .next("put all hunks of a file into one section, each against the file as it stands now")
    }

    fn shaped(&self, text: &str, at: &WsPath) -> Result<Content, Stop> {
        let rules = self.ctx.editorconfig(at);
        // The patch says every line itself, the last one's ending too.
        let want = Want {
            eol: rules.end_of_line,
            encoding: rules.charset,
            bom: rules.bom,
            final_newline: Some(text.ends_with('\n')),
        };
        let composed = cotenant_text::compose(text, None, &want);
        composed.map(Content::from).map_err(|error| Stop::of(Why::NotEncodable(error.to_string())))
    }

    fn delete(&mut self, file: &FilePatch) -> Result<Done, Stop> {
        let at = self.sheet(&file.path, true)?;
        let sheet = self.at(&at)?;
        let body = sheet.present()?;
        if file.states_content {
            match &file.binary {
                Some(binary) => {
                    let left = patch::apply_binary(Some(&body.content), binary);
                    left.map_err(|miss| Stop::of(Why::Binary(miss)))?;
                }
                None => {
                    let form = sheet.text(&body)?;
                    patch::check_deleted(&body.content, &form, &file.hunks)
                        .map_err(|misfit| Stop::of(Why::Misfit(sheet.place.clone(), misfit)))?;
                }
            }
        }
        let lines = sheet.form.map(|_| Loaded::fresh_or_binary(body.content.clone()).line_count());
        sheet.after = State::Absent;
        Ok(Done {
            at,
            what: What::Deleted,
            applied: None,
            counts: lines.map(|lines| (0, lines)),
            modes: None,
        })
    }

    fn update(&mut self, file: &FilePatch, label: &str, skip: &[usize]) -> Result<Done, Stop> {
        let at = self.sheet(&file.path, file.is_link())?;
        // Blocks come one by one; of two sections of a diff nothing says whether the second knows of the first.
        if !self.updated.insert(at.clone()) && self.grammar != Grammar::Blocks {
            return Err(Stop::Refused(self.twice(file, label)));
        }
        let (body, applied, counts) = self.changed(&at, file, label, skip)?;
        if body.kind == EntryKind::Link {
            self.stays_inside(&at, &body.content)?;
        }
        let sheet = self.at(&at)?;
        let modes =
            sheet.after.entry().and_then(|old| old.mode).zip(body.mode).filter(|(old, new)| old != new);
        sheet.after = State::Entry(body);
        Ok(Done { at, what: What::Changed, applied, counts, modes })
    }

    fn transfer(&mut self, file: &FilePatch, from: &[u8], label: &str, skip: &[usize]) -> Result<Done, Stop> {
        let source = self.sheet(from, true)?;
        let to = self.sheet(&file.path, true)?;
        if self.at(&to)?.after.stands() && source != to {
            let applied = !self.at(&source)?.after.stands();
            let place = self.at(&to)?.place.clone();
            return Err(Stop::of(if applied { Why::Applied } else { Why::Exists(place) }));
        }
        let (body, applied, counts) = self.changed(&source, file, label, skip)?;
        let moved = matches!(file.op, Op::Rename { .. });
        let origin = self.at(&source)?.from.clone().filter(|_| moved).unwrap_or_else(|| source.clone());
        if moved {
            self.at(&source)?.after = State::Absent;
        }
        let sheet = self.at(&to)?;
        sheet.after = State::Entry(body);
        sheet.from = Some(origin);
        let what = if moved { What::Renamed(source) } else { What::Copied(source) };
        Ok(Done { at: to, what, applied, counts, modes: None })
    }

    /// A file with the hunks of a section, and its mode.
    fn changed(
        &mut self,
        at: &WsPath,
        file: &FilePatch,
        label: &str,
        skip: &[usize],
    ) -> Result<Changed, Stop> {
        let wishes = self.wishes;
        let sheet = self.at(at)?;
        let body = sheet.present()?;
        let mode = file.new_mode.and_then(|new| with_bits(body.mode, new));
        let mode = mode.or(body.mode);
        if let Some(binary) = &file.binary {
            let new = patch::apply_binary(Some(&body.content), binary);
            let new = new.map_err(|miss| Stop::of(Why::Binary(miss)))?;
            return Ok((Body { content: new.into(), mode, ..body }, None, None));
        }
        let hunks = || file.hunks.iter().filter(|hunk| !skip.contains(&hunk.ordinal));
        if hunks().next().is_none() {
            return Ok((Body { mode, ..body }, None, Some((0, 0))));
        }
        let form = sheet.text(&body)?;
        let applied = fitted(&body.content, &form, file, label, wishes, skip)
            .map_err(|misfit| Stop::of(Why::Misfit(sheet.place.clone(), misfit)))?;
        let count = |tag| hunks().flat_map(|hunk| &hunk.lines).filter(|line| line.tag == tag).count();
        let counts = (count(cotenant_text::Tag::New), count(cotenant_text::Tag::Old));
        let content = Content::from(applied.bytes.as_slice());
        Ok((Body { content, mode, ..body }, Some(applied), Some(counts)))
    }

    fn at(&mut self, at: &WsPath) -> Result<&mut Sheet, Stop> {
        // Every path goes through `sheet` first.
        self.sheets.get_mut(at).ok_or_else(|| Stop::of(Why::Missing(at.clone())))
    }

    /// The sheet of a path as the patch writes it. `itself`: a link in the last place is not followed.
    fn sheet(&mut self, path: &[u8], itself: bool) -> Result<WsPath, Stop> {
        let wire = self.wire(path)?;
        let found = if itself { self.ctx.entry_at(&wire) } else { self.ctx.place_at(&wire) };
        let place = found.map_err(|refusal| match refusal.code {
            Code::NotFound => Stop::of(Why::Missing(wire.at.clone())),
            _ => Stop::Refused(refusal),
        })?;
        let at = place.real.clone();
        if !self.sheets.contains_key(&at) {
            self.ctx.writable(&place)?;
            let sheet = Sheet::of(self.ctx, place)?;
            self.sheets.insert(at.clone(), sheet);
        }
        Ok(at)
    }

    fn wire(&self, path: &[u8]) -> Result<WirePath, Refusal> {
        let Ok(text) = std::str::from_utf8(path) else {
            // A name that is no text can only be meant as it is.
            let base = self.ctx.wire(if self.wishes.base.is_empty() { "." } else { &self.wishes.base })?.at;
            let path = RelPath::from_bytes(path)
                .map_err(|error| cotenant_tree::path_refusal(&error, &String::from_utf8_lossy(path)))?;
            let at = path.components().fold(base, |at, name| at.join(name));
            return Ok(WirePath { at, dir_only: false });
        };
        match self.wishes.paths.get(text) {
            Some(meant) => self.ctx.wire(meant),
            None => self.ctx.wire(&super::joined(&self.wishes.base, text)),
        }
    }
}

impl Sheet {
    fn of(ctx: &Ctx<'_>, place: Place) -> Result<Sheet, Refusal> {
        let (mut form, mut why_not_text) = (None, String::new());
        let before = match &place.kind {
            Found::Absent { .. } => State::Absent,
            Found::Dir => State::Dir { mode: None },
            Found::Link => State::Entry(Body::link(ctx.link(&place)?.content)),
            Found::File(stat) => {
                let mode = stat.mode & 0o7777;
                let loaded = ctx.load_any(&place)?;
                form = match loaded.text {
                    true => Some(loaded.form),
                    false => cotenant_text::detect_as_git(&loaded.bytes),
                };
                why_not_text = loaded.why_not_text;
                State::Entry(Body::file(loaded.bytes).with_mode(mode))
            }
        };
        Ok(Sheet { place, after: before.clone(), before, from: None, form, why_not_text })
    }

    /// The file or link that stands there after the sections so far.
    fn present(&self) -> Result<Body, Stop> {
        match &self.after {
            State::Entry(body) => Ok(body.clone()),
            State::Absent => Err(Stop::of(Why::Missing(self.place.asked.clone()))),
            State::Dir { .. } => Err(Stop::of(Why::Directory)),
        }
    }

    /// The text form of what stands there: as it was, or as it came to be by an earlier section.
    fn text(&self, body: &Body) -> Result<Form, Stop> {
        if body.kind == EntryKind::File && self.before.entry().is_some_and(|old| old.kind == EntryKind::File)
        {
            let form = self.form.ok_or_else(|| Stop::of(Why::NotText(self.why_not_text.clone())))?;
            return Ok(Loaded::known(body.content.clone(), &form).form);
        }
        let loaded = Loaded::fresh_or_binary(body.content.clone());
        if loaded.text { Ok(loaded.form) } else { Err(Stop::of(Why::NotText(loaded.why_not_text))) }
    }
}

/// The hunks of a section put in, those that a refusal proposed otherwise as it proposed.
pub(super) fn fitted(
    raw: &[u8],
    form: &Form,
    file: &FilePatch,
    label: &str,
    wishes: &Wishes,
    skip: &[usize],
) -> Result<Applied, Misfit> {
    let misfit = match patch::apply(raw, form, &file.hunks, skip) {
        Err(misfit) if !wishes.accept.is_empty() => misfit,
        other => return other,
    };
    let mut hunks = file.hunks.clone();
    for miss in &misfit.misses {
        let Some(proposed) = &miss.suggestion else { continue };
        if wishes.accepts(label, miss.hunk, proposed.line)
            && let Some(hunk) = hunks.iter_mut().find(|hunk| hunk.ordinal == miss.hunk)
        {
            *hunk = proposed.hunk.clone();
        }
    }
    patch::apply(raw, form, &hunks, skip)
}

/// The old lines of a hunk as text.
fn old_text(hunk: &Hunk) -> String {
    let lines: Vec<_> = hunk.old_lines().map(|line| String::from_utf8_lossy(&line.text)).collect();
    lines.join("\n")
}

/// The permission bits that a stated mode leaves: a patch speaks of the execute bits alone.
fn with_bits(now: Option<u32>, new: Mode) -> Option<u32> {
    let now = now.unwrap_or(0o644);
    match new {
        Mode::Executable => Some(now | (now & 0o444) >> 2),
        Mode::Regular => Some(now & !0o111),
        Mode::Link => None,
    }
}

/// A section's name in `skip`, `accept` and answers: the path as the patch writes it.
pub(super) fn label(file: &FilePatch) -> String {
    String::from_utf8_lossy(&file.path).into_owned()
}
