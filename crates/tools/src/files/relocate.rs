//! From one name to another: what `move_path` and `rename_path` share. Nothing is copied, and nothing goes unasked.

use cotenant_model::{ClassHit, Code, Entry, FileOp, Moved, Op, Refusal, WsPath};
use cotenant_tree::{Below, Kind, Place};
use serde_json::json;

use super::overwrite;
use super::write_file::missing_dirs;
use crate::ctx::Ctx;
use crate::planned::Planned;
use crate::reply::Reply;

/// A move that is wanted, both ends looked up; a link at an end is the link itself.
pub struct Relocation<'a> {
    /// This call.
    pub ctx: &'a Ctx<'a>,
    /// What is moved.
    pub from: &'a Place,
    /// Where it will stand.
    pub to: &'a Place,
    /// Whether what stands there may go.
    pub overwrite: bool,
    /// The digest that it must have.
    pub expected: Option<&'a str>,
}

/// What goes from one end to the other.
struct Load {
    what: Moved,
    class: ClassHit,
    /// The paths below a directory, at both ends.
    below: Vec<WsPath>,
    reply: Reply,
}

impl Relocation<'_> {
    /// The plan, if nothing stands against it.
    pub fn plan(&self) -> Result<Planned, Refusal> {
        let ctx = self.ctx;
        self.movable()?;
        ctx.writable(self.from)?;
        ctx.writable(self.to)?;
        let (over, before, reply) = self.over()?;
        let load = self.load(reply)?;
        let dirs = missing_dirs(self.to);
        let mut planned = Planned {
            classes: vec![ClassHit::ordinary(); dirs.len()],
            before: vec![None; dirs.len()],
            ops: dirs,
            also: load.below,
            back: Some("moves it back"),
            ..Planned::default()
        };
        let made = planned.ops.len();
        let op = Op::Move { to: self.to.real.clone(), what: load.what, over };
        planned.ops.push(FileOp { at: self.from.real.clone(), op });
        planned.classes.push(load.class);
        planned.before.push(before);
        planned.reply = load.reply.fact_if("directories", (made > 0).then_some(made));
        planned.change_at = planned.reply.facts.len();
        Ok(planned)
    }

    fn shown(&self) -> (String, String) {
        (self.ctx.show(&self.from.asked), self.ctx.show(&self.to.asked))
    }

    fn refuse(&self, code: Code, why: &str) -> Refusal {
        let (from, to) = self.shown();
        Refusal::new(code, format!("{why} Nothing was moved.")).fact("from", from).fact("to", to)
    }

    /// Refuses what no move can do.
    fn movable(&self) -> Result<(), Refusal> {
        let (from, to) = self.shown();
        let list = self.ctx.call("list_directory", json!({"path": from}));
        if self.from.is_absent() {
            return Err(self.ctx.not_found(self.from));
        }
        if self.from.real.path.is_root() {
            let why = format!("{from} is an allowed folder itself, which stays where it is.");
            return Err(self.refuse(Code::BadInput, &why).next(format!("{list} shows what can be moved")));
        }
        if self.from.real == self.to.real {
            let why = format!("{from} stands there already.");
            return Err(self.refuse(Code::NothingToChange, &why).next("go on; the path is as you want it"));
        }
        if self.from.kind == Kind::Dir && self.to.real.is_within(&self.from.real) {
            let why = format!("{to} lies in {from}: a directory cannot be moved into itself.");
            return Err(self
                .refuse(Code::BadInput, &why)
                .next(format!("{list}, then move what is in it one by one")));
        }
        let (here, there) = (self.from.parent.ident(), self.to.parent.ident());
        if self.from.real.folder != self.to.real.folder
            || (here.dev, here.mount_id) != (there.dev, there.mount_id)
        {
            return Err(
                self.cross_device(&format!("{from} and {to} lie in different folders or file systems."))
            );
        }
        Ok(())
    }

    fn cross_device(&self, why: &str) -> Refusal {
        let next = "leave it where it is, or write_file a new file there and delete_file the old one; it is never \
                    copied behind your back";
        self.refuse(Code::CrossDevice, why).next(next)
    }

    /// What stands at the goal and may go, its bytes, and the answer so far.
    fn over(&self) -> Result<(Option<Entry>, Option<cotenant_model::Content>, Reply), Refusal> {
        let ctx = self.ctx;
        let (from, to) = self.shown();
        let reply = Reply::new().fact("path", to.as_str()).fact("from", from.as_str());
        match &self.to.kind {
            Kind::Absent { .. } => Ok((None, None, reply)),
            _ if self.is_same_name() => Ok((None, None, reply)),
            Kind::Dir => {
                let why = format!("{to} is a directory, which is never replaced.");
                let into = ctx.call("list_directory", json!({"path": to}));
                Err(self.refuse(Code::AlreadyExists, &why).next(format!("choose another name; {into}")))
            }
            _ if self.from.kind == Kind::Dir => {
                let why = format!("{to} exists and is no directory; a directory never replaces a file.");
                Err(self.refuse(Code::AlreadyExists, &why).next(format!(
                    "choose another name, or {} first",
                    ctx.call("delete_file", json!({"path": to}))
                )))
            }
            Kind::Link => self.over_link(reply),
            Kind::File(_) => self.over_file(reply),
        }
    }

    fn over_file(
        &self,
        reply: Reply,
    ) -> Result<(Option<Entry>, Option<cotenant_model::Content>, Reply), Refusal> {
        let (from, to) = self.shown();
        if let (Some(here), Some(there)) = (self.from.stat(), self.to.stat())
            && (here.dev, here.ino) == (there.dev, there.ino)
        {
            let why = format!("{from} and {to} are two names of one file (hard links).");
            let delete = self.ctx.call("delete_file", json!({"path": from}));
            return Err(self.refuse(Code::HardLinked, &why).next(format!("{delete} leaves the other name")));
        }
        if !self.overwrite {
            return Err(overwrite::already_exists(self.ctx, self.to, "overwrite is false"));
        }
        let old = self.ctx.weigh(self.to)?;
        overwrite::may_go(self.ctx, self.to, &old, self.expected, "overwriting replaces")?;
        let reply = reply.fact("overwritten", old.digest.to_string());
        Ok((Some(Entry::file(old.digest)), old.content(), reply))
    }

    fn over_link(
        &self,
        reply: Reply,
    ) -> Result<(Option<Entry>, Option<cotenant_model::Content>, Reply), Refusal> {
        let (_, to) = self.shown();
        let link = self.ctx.link(self.to)?;
        let target = self.ctx.told(&link);
        let followed =
            self.ctx.place_at(&cotenant_model::WirePath { at: self.to.asked.clone(), dir_only: false });
        if followed.is_ok_and(|place| place.real == self.from.real) {
            let why = format!("{to} is a link to it.");
            return Err(self.refuse(Code::NothingToChange, &why).next(format!(
                "{} first, if the link shall go",
                self.ctx.call("delete_file", json!({"path": to}))
            )));
        }
        if !self.overwrite {
            let set = json!({"token": self.ctx.retry_token(), "set": {"overwrite": true}});
            let over = self.ctx.call("retry", set);
            let why = format!("{to} exists: a link to {target}.");
            return Err(self
                .refuse(Code::AlreadyExists, &why)
                .next(format!("to replace the link itself, {over}")));
        }
        Ok((
            Some(link.entry()),
            Some(link.content.clone()),
            reply.fact("overwritten", format!("link:{target}")),
        ))
    }

    /// Whether the goal is the source itself, under the name that a directory without letter case takes for the same.
    fn is_same_name(&self) -> bool {
        let (from, to) = (&self.from.real, &self.to.real);
        let folded = |at: &WsPath| at.path.leaf().map(|leaf| String::from_utf8_lossy(leaf).to_lowercase());
        from.parent() == to.parent() && folded(from) == folded(to) && !self.ctx.is_listed(to)
    }

    fn load(&self, reply: Reply) -> Result<Load, Refusal> {
        let ctx = self.ctx;
        let class = self.from.class.clone().max(self.to.class.clone());
        if self.from.kind == Kind::Dir {
            let below = ctx.tree(|tree| tree.below(self.from), &self.from.asked)?;
            let reply = reply.fact("kind", "directory").fact("entries", below.entries.len());
            let (class, paths) = self.below(&below, class)?;
            return Ok(Load { what: Moved::Directory { listing: below.digest }, class, below: paths, reply });
        }
        let entry = match self.from.kind {
            Kind::Link => ctx.link(self.from)?.entry(),
            _ => Entry::file(ctx.tree(|tree| tree.digest(self.from), &self.from.asked)?),
        };
        let reply = match self.from.kind {
            Kind::Link => reply.fact("kind", "link"),
            _ => reply.fact("digest", entry.digest.to_string()),
        };
        Ok(Load { what: Moved::Entry(entry), class, below: Vec::new(), reply })
    }

    /// Looks at everything that goes along with a directory: what it is called now and what it would be called.
    fn below(&self, below: &Below, class: ClassHit) -> Result<(ClassHit, Vec<WsPath>), Refusal> {
        let ctx = self.ctx;
        if let Some(mount) = below.mounts.first() {
            let mount = ctx.show(mount);
            return Err(self.cross_device(&format!("{mount} is a mount point.")).fact("mount", mount));
        }
        ctx.along(below, &self.from.real, &self.to.real, class)
    }
}
