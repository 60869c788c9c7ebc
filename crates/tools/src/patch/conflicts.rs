//! What `apply_patch` says when sections do not fit: which, why, what stands there, and a call that works.

use cotenant_model::{Code, Refusal, WsPath};
use cotenant_text::Cause as TextCause;
use cotenant_text::patch::{BinaryMiss, Cause, Misfit, Miss};
use cotenant_tree::Place;
use serde_json::{Map, Value, json};

use super::canvas::Done;
use super::{Wishes, accepted};
use crate::ctx::Ctx;
use crate::files::overwrite;

/// Bytes of all that is said of the conflicts.
const BLOCK: usize = 2000;
/// Lines around a difference that count as read.
const AROUND: usize = 3;

/// A section that does not fit.
pub(super) struct Conflict {
    /// The path as the patch writes it.
    pub(super) label: String,
    /// The line of the patch on which the section begins.
    pub(super) line: usize,
    /// Its hunks that were wanted.
    pub(super) hunks: usize,
    /// The old lines of the first of them.
    pub(super) old: String,
    pub(super) why: Why,
}

/// Why it does not fit.
pub(super) enum Why {
    /// Some of its hunks do not.
    Misfit(Place, Misfit),
    /// There is no such file.
    Missing(WsPath),
    /// What it would create stands there already, with other content.
    Exists(Place),
    /// What it would do is done.
    Applied,
    Binary(BinaryMiss),
    NotText(String),
    NotEncodable(String),
    /// A directory stands there.
    Directory,
}

/// All sections that do not fit.
#[derive(Default)]
pub(super) struct Conflicts(Vec<Conflict>);

/// What a conflict offers to the next call.
#[derive(Default)]
struct Offers {
    /// Proposals to accept; one for each hunk that does not fit, or the offer is void.
    accept: Vec<String>,
    /// Names and what they would mean.
    paths: Map<String, Value>,
    /// What could be left out.
    skip: Vec<String>,
    /// Hunks and sections that do not fit, and those for which `accept` or `paths` has an answer.
    failed: usize,
    answered: usize,
    /// A place to look at: path and line.
    look: Option<(String, usize)>,
}

impl Conflicts {
    pub(super) fn add(&mut self, conflict: Conflict) {
        self.0.push(conflict);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn refusal(&self, ctx: &Ctx<'_>, wishes: &Wishes, files: usize, done: &[Done]) -> Refusal {
        if done.is_empty() && self.0.iter().all(Conflict::is_applied) {
            return applied(ctx, &self.0);
        }
        if let Some(refusal) = self.own_code(ctx, files) {
            return refusal;
        }
        let mut offers = Offers::default();
        let mut block = String::new();
        for (index, conflict) in self.0.iter().enumerate() {
            let told = conflict.told(ctx, wishes, &mut offers);
            if index > 0 && block.len() + told.len() > BLOCK {
                block.push_str(&format!("and {} more files that do not fit\n", self.0.len() - index));
                break;
            }
            block.push_str(&told);
        }
        let fit = done
            .iter()
            .map(|one| one.applied.as_ref().map_or(1, |applied| applied.landed.len()))
            .sum::<usize>()
            + self.0.iter().map(Conflict::fit).sum::<usize>();
        let refusal = Refusal::new(Code::PatchConflict, "The patch does not fit; nothing of it was written.")
            .fact("files", files)
            .fact("hunks", fit + offers.failed)
            .fact("fit", fit)
            .fact("failed", offers.failed)
            .fact("written", 0usize)
            .block(block.trim_end());
        let next = offers.next(ctx, wishes, fit);
        refusal.next(next)
    }

    /// The refusal of a patch of one file whose trouble has a code of its own.
    fn own_code(&self, ctx: &Ctx<'_>, files: usize) -> Option<Refusal> {
        let [Conflict { label, why, .. }] = &self.0[..] else { return None };
        if files > 1 {
            return None;
        }
        let refusal = |code, text: String| Refusal::new(code, text).fact("path", label.as_str());
        match why {
            Why::Exists(place) if place.stat().is_some() => {
                Some(overwrite::already_exists(ctx, place, "the patch would create it"))
            }
            Why::Exists(_) => Some(
                refusal(Code::AlreadyExists, format!("{label} exists; nothing was written."))
                    .next(ctx.call("list_directory", json!({}))),
            ),
            Why::Misfit(_, misfit) if misfit.misses.iter().all(|miss| miss.cause == Cause::NotEncodable) => {
                let details: Vec<&str> = misfit.misses.iter().map(|miss| miss.detail.as_str()).collect();
                let text = format!("{label}: {}. Nothing was written.", details.join("; "));
                Some(refusal(Code::NotEncodable, text).next("write it with characters of that encoding"))
            }
            Why::NotText(text) => Some(
                refusal(Code::NotText, format!("{label} is not text: {text}. Nothing was written."))
                    .next("send a git binary patch, or write_file the whole file"),
            ),
            Why::NotEncodable(text) => Some(
                refusal(Code::NotEncodable, format!("{label}: {text}. Nothing was written."))
                    .next("write it with characters of that encoding"),
            ),
            Why::Directory => Some(
                refusal(Code::NotAFile, format!("{label} is a directory; nothing was written."))
                    .next(ctx.call("list_directory", json!({"path": label}))),
            ),
            _ => None,
        }
    }
}

/// `ALREADY_APPLIED`.
fn applied(ctx: &Ctx<'_>, conflicts: &[Conflict]) -> Refusal {
    let hunks = conflicts.iter().map(|conflict| conflict.hunks.max(1)).sum::<usize>();
    let first = conflicts.first().map(|conflict| conflict.label.clone()).unwrap_or_default();
    Refusal::new(
        Code::AlreadyApplied,
        "All that this patch does is in the files already; nothing was written.",
    )
    .fact("files", conflicts.len())
    .fact("hunks", hunks)
    .next(format!("go on; {} shows it", ctx.call("read_file", json!({"path": first}))))
}

impl Conflict {
    fn is_applied(&self) -> bool {
        match &self.why {
            Why::Applied | Why::Binary(BinaryMiss::AlreadyApplied) => true,
            Why::Misfit(_, misfit) => misfit.is_applied(),
            _ => false,
        }
    }

    fn fit(&self) -> usize {
        match &self.why {
            Why::Misfit(_, misfit) => misfit.fit,
            _ => 0,
        }
    }

    /// What is said of it; what it offers is added to `offers`.
    fn told(&self, ctx: &Ctx<'_>, wishes: &Wishes, offers: &mut Offers) -> String {
        let label = &self.label;
        if let Why::Misfit(place, misfit) = &self.why {
            return self.misfit(ctx, place, misfit, offers);
        }
        offers.failed += self.hunks.max(1);
        offers.skip.push(label.clone());
        let why = match &self.why {
            Why::Missing(at) => return self.missing(ctx, wishes, at, offers),
            Why::Exists(_) => "it exists already, and a patch never overwrites".to_owned(),
            Why::Applied => "all of it is done already".to_owned(),
            Why::Binary(miss) => miss.to_string(),
            Why::NotText(why) => format!("it is not text: {why}"),
            Why::NotEncodable(why) => why.clone(),
            Why::Directory => "a directory stands there".to_owned(),
            Why::Misfit(..) => String::new(),
        };
        format!("{label} (line {} of the patch): {why}\n", self.line)
    }

    fn missing(&self, ctx: &Ctx<'_>, wishes: &Wishes, at: &WsPath, offers: &mut Offers) -> String {
        let near: Vec<String> = ctx.ws.tree().near(at).iter().map(|near| ctx.show(near)).collect();
        let mut text = format!("{} (line {} of the patch): there is no such file", self.label, self.line);
        let named = super::joined(&wishes.base, &self.label);
        // The prefix of a diff, left on a name in another grammar.
        let bare = named.split_once('/').map(|(_, rest)| rest.to_owned());
        let stands = |path: &String| {
            let place = ctx.wire(path).and_then(|wire| ctx.place_at(&wire));
            place.is_ok_and(|place| place.stat().is_some())
        };
        let meant = bare.filter(stands).or_else(|| near.first().cloned());
        if let Some(meant) = meant {
            offers.paths.insert(self.label.clone(), meant.as_str().into());
            offers.answered += self.hunks.max(1);
            text.push_str(&format!("; nearest: {}", if near.is_empty() { meant } else { near.join(", ") }));
        }
        text + "\n"
    }

    fn misfit(&self, ctx: &Ctx<'_>, place: &Place, misfit: &Misfit, offers: &mut Offers) -> String {
        let mut text = String::new();
        for miss in &misfit.misses {
            text.push_str(&format!("{} hunk {}: {}\n", self.label, miss.hunk, miss.detail));
            if let Some(differs) = &miss.differs {
                let (line, file) = (differs.line, differs.file.as_deref().unwrap_or("(the file ends)"));
                text.push_str(&format!("{line} file:  {file}\n{line} patch: {}\n", differs.patch));
            } else if let Some(near) = miss.nearest.first() {
                text.push_str(&format!("{}\n", near.text.trim_end()));
            }
            self.offer(ctx, place, miss, offers, &mut text);
        }
        self.elsewhere(ctx, place, misfit, offers, &mut text);
        if misfit.misses.iter().any(|miss| matches!(miss.cause, Cause::Text(_)))
            && ctx.newest_change(&place.real).is_some()
        {
            text.push_str(&format!("last changed by {}\n", ctx.who_changed(&place.real)));
        }
        self.saw(ctx, place, misfit);
        text
    }

    fn offer(&self, ctx: &Ctx<'_>, place: &Place, miss: &Miss, offers: &mut Offers, text: &mut String) {
        offers.failed += 1;
        offers.skip.push(format!("{}#{}", self.label, miss.hunk));
        let line = miss.differs.as_ref().map(|differs| differs.line).or(miss.candidates.first().copied());
        if offers.look.is_none() {
            offers.look = line.map(|line| (ctx.show(&place.asked), line));
        }
        if let Some(proposed) = &miss.suggestion {
            text.push_str(&format!("it would fit at line {}: {}\n", proposed.line, proposed.why));
            offers.accept.push(accepted(&self.label, miss.hunk, proposed.line));
            offers.answered += 1;
        } else if !miss.candidates.is_empty() && miss.cause == Cause::Ambiguous {
            let lines: Vec<String> = miss.candidates.iter().map(usize::to_string).collect();
            text.push_str(&format!("its lines stand at {}\n", lines.join(", ")));
        }
    }

    /// Nothing of the section is like this file, but its first lines stand once in another.
    fn elsewhere(
        &self,
        ctx: &Ctx<'_>,
        place: &Place,
        misfit: &Misfit,
        offers: &mut Offers,
        text: &mut String,
    ) {
        let strange =
            |miss: &Miss| miss.suggestion.is_none() && matches!(miss.cause, Cause::Text(TextCause::Unknown));
        if misfit.fit > 0 || !misfit.misses.iter().all(strange) {
            return;
        }
        let Some((other, line)) = ctx.find_elsewhere(&self.old, &place.real) else { return };
        let other = ctx.show(&other);
        text.push_str(&format!("its first lines stand in {other}:{line}\n"));
        offers.paths.insert(self.label.clone(), other.into());
        offers.answered += misfit.misses.len();
    }

    /// What the refusal shows counts as read.
    fn saw(&self, ctx: &Ctx<'_>, place: &Place, misfit: &Misfit) {
        let Ok(loaded) = ctx.load_any(place) else { return };
        if !loaded.text {
            return;
        }
        let last = loaded.line_count();
        let around = |line: usize| (line.saturating_sub(AROUND).max(1), (line + AROUND).min(last));
        let lines = misfit.misses.iter().flat_map(|miss| {
            let differs = miss.differs.as_ref().map(|differs| around(differs.line));
            let near = miss.nearest.first().map(|near| near.lines);
            differs.into_iter().chain(near)
        });
        let lines: Vec<(usize, usize)> = lines.filter(|(first, last)| first <= last).collect();
        ctx.saw(place, &loaded, &lines, false);
    }
}

impl Offers {
    /// The call that gets furthest: all of the patch as proposed, else what fits of it.
    fn next(self, ctx: &Ctx<'_>, wishes: &Wishes, fit: usize) -> String {
        let look = self.look.map(|(path, line)| {
            let start = line.saturating_sub(5).max(1);
            ctx.call("read_file", json!({"path": path, "start": start, "limit": 20}))
        });
        if self.answered == self.failed {
            let mut set = Map::new();
            if !self.accept.is_empty() {
                set.insert("accept".to_owned(), [&wishes.accept[..], &self.accept].concat().into());
            }
            if !self.paths.is_empty() {
                let mut paths: Map<String, Value> =
                    wishes.paths.iter().map(|(from, to)| (from.clone(), to.as_str().into())).collect();
                paths.extend(self.paths);
                set.insert("paths".to_owned(), paths.into());
            }
            return format!("{} applies the patch so, all of it", ctx.again(set));
        }
        if fit > 0 {
            let set = Map::from_iter([("skip".to_owned(), [&wishes.skip[..], &self.skip].concat().into())]);
            let rest = look.map(|look| format!("; then {look} and edit_file there")).unwrap_or_default();
            return format!("{} applies the other {fit}{rest}", ctx.again(set));
        }
        match look {
            Some(look) => format!("{look}, and send the patch again with the lines as they stand there"),
            None => {
                "read_file the files, and send the patch again with the lines as they stand there".to_owned()
            }
        }
    }
}
