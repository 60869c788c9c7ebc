//! Commands that only edit files in place: carried out without a shell, as an ordinary plan with an ordinary diff.

use cotenant_engine::effects::{Settled, Shifted};
use cotenant_engine::{Idempotency, Submitted, Wish};
use cotenant_model::{
    Body, Code, Digest, Effects, EntryKind, FileSource, Plan, Refusal, Seen, State, WsPath,
};
use cotenant_shell::edits::{self, Ground, Simulated};
use cotenant_shell::policy::{Judgement, Verdict};
use cotenant_shell::run::plain;

use serde_json::{Map, json};

use super::effects;
use super::wanted::{Mode, Wanted};
use crate::args::Args;
use crate::calls::Heard;
use crate::ctx::Ctx;
use crate::planned::Planned;
use crate::questions::Then;
use crate::reply::Reply;
use crate::toolbox::Toolbox;

impl Toolbox {
    /// The answer of a command that needs no shell; `None` where it needs one.
    pub(super) fn without_shell(
        &self,
        ctx: &Ctx<'_>,
        heard: &Heard<'_>,
        wanted: &Wanted,
        judged: &Judgement,
        key: Option<&Idempotency>,
    ) -> Result<Option<Reply>, Refusal> {
        let asked = matches!(judged.verdict, Verdict::Ask { .. });
        if wanted.mode != Mode::Auto
            || wanted.exec.is_some()
            || wanted.background
            || asked
            || !wanted.env.is_empty()
        {
            return Ok(None);
        }
        let Some(edit) = edits::recognise(&wanted.command, &self.shell.locale()) else { return Ok(None) };
        let began = self.ws.clock().steady();
        let ground = Ground {
            cwd: &wanted.cwd,
            folders: self.ws.tree().folders(),
            files: &*self.ws,
            sed: self.shell.sed(),
        };
        let outcome = match edits::simulate(&edit, &ground) {
            Simulated::Shell { .. } => return Ok(None),
            Simulated::Refused(refusal) => return Err(refusal),
            Simulated::Patch { text, cwd } => {
                return self.patched(heard, &text, &ctx.show(&cwd), key).map(Some);
            }
            Simulated::Done(outcome) => outcome,
        };
        let ms = self.ws.clock().steady().since(began);
        let mut head = Reply::new().fact("exit", 0).fact("ms", ms).fact("mode", "simulated");
        head = outcome.notes.iter().fold(head, |head, note| head.notice(note.clone()));
        let settled = self.as_seen(ctx, outcome.effects, &outcome.read)?;
        let mut planned = effects::planned(ctx, settled, head.field("grade", "G4"))?;
        let printed = plain(&outcome.stdout);
        if !printed.is_empty() {
            planned.reply.content = format!("{}\n{}", planned.reply.content, printed.trim_end_matches('\n'));
            planned.reply.content = planned.reply.content.trim_start_matches('\n').to_owned();
        }
        if wanted.dry_run {
            return Ok(Some(crate::calls::dry(ctx, &heard.args, &planned)));
        }
        if planned.ops.is_empty() {
            return Ok(Some(planned.reply));
        }
        // What was shown is what lands, byte for byte, or nothing.
        let strict = self.is_strict(ctx.session, judged);
        self.land_or_ask(heard, planned, strict, Then::LandsAsShown, key).map(Some)
    }

    /// What stands where an edit would leave something else: what it saw, or it is refused.
    fn as_seen(
        &self,
        ctx: &Ctx<'_>,
        effects: Effects,
        read: &[(WsPath, Digest)],
    ) -> Result<Settled, Refusal> {
        let mut settled = Settled::default();
        for (at, becomes) in effects {
            let before = state(self.ws.see(&at));
            let now = before.entry().map(|body| body.entry().digest);
            if read.iter().any(|(path, digest)| *path == at && Some(*digest) != now) {
                let shown = ctx.show(&at);
                let why = format!("{shown} changed while its edit was made; nothing was written.");
                return Err(Refusal::new(Code::FileChangedSinceRead, why)
                    .fact("path", shown)
                    .next(ctx.call("retry", json!({"token": ctx.retry_token()}))));
            }
            settled.shifts.push(Shifted { at, before, after: becomes.state, from: becomes.from });
        }
        Ok(settled)
    }

    /// A patch in a here-document is the patch tool's.
    fn patched(
        &self,
        heard: &Heard<'_>,
        text: &str,
        cwd: &str,
        key: Option<&Idempotency>,
    ) -> Result<Reply, Refusal> {
        let mut raw = Map::new();
        raw.insert("patch".to_owned(), text.into());
        raw.insert("cwd".to_owned(), cwd.into());
        let tool = &crate::patch::TOOL;
        let args = Args::decode(tool, &raw)?;
        let asked = heard.asked.clone();
        self.run(&Heard { call: heard.call, tool, raw, args, asked, began: heard.began }, key)
    }

    /// Lands it, or asks, whatever it is where `strict`; `then` is what a yes brings about.
    pub(super) fn land_or_ask(
        &self,
        heard: &Heard<'_>,
        planned: Planned,
        strict: bool,
        then: Then,
        key: Option<&Idempotency>,
    ) -> Result<Reply, Refusal> {
        let asked = strict || heard.asked.is_some();
        let wish = Wish { asked, ..self.wish(heard.call.session, heard.tool, &planned, key) };
        match self.ws.submit(wish)? {
            Submitted::Landed(landed) => Ok(self.finish(heard.call.session, planned, &landed)),
            Submitted::Ask(plan) => {
                let diff = planned.diff(self.ws.tree().folders(), crate::calls::DIFF);
                self.ask(heard, Plan { diff, ..*plan }, planned, then, key)
            }
        }
    }
}

/// What is seen at a path, as a state.
fn state(seen: Seen) -> State {
    match seen {
        Seen::Absent | Seen::Other => State::Absent,
        Seen::Directory { mode } => State::Dir { mode: Some(mode) },
        Seen::Link(target) => State::Entry(Body::link(target)),
        Seen::File { content, mode, .. } => {
            State::Entry(Body { kind: EntryKind::File, content, mode: Some(mode) })
        }
    }
}
