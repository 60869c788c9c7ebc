//! Carries the steps of a command out on private copies, one after the other, and tells what it would leave behind.

use cotenant_model::{Content, Digest, Effects, FileSource, Folders, Refusal, Seen, WsPath};

use super::Recognised;
use super::gnu::Sed;
use super::private::{FILE_MAX, Private, Spot, Stop, shell};
use super::program::Clock;
use super::sed_call::SedCall;
use super::step::Step;
use super::traps::{plain_signs, traps};

/// Where a command would run, and with what.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// Its working directory, resolved.
    pub cwd: &'a WsPath,
    /// The allowed folders: absolute paths below them are understood.
    pub folders: &'a Folders,
    /// What stands in them.
    pub files: &'a dyn FileSource,
    /// GNU sed, where there is one.
    pub sed: Option<&'a Sed>,
}

/// What became of a command that was to be carried out without a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Simulated {
    /// It would do this, and nothing else.
    Done(Outcome),
    /// It must run as an ordinary command, without a preview.
    Shell {
        /// Why, in a few words.
        why: String,
        /// For the model.
        notes: Vec<String>,
    },
    /// It may not be done, by a shell neither.
    Refused(Refusal),
    /// It is a patch, for the tool of that name.
    Patch {
        /// The patch.
        text: String,
        /// The directory that its paths begin at.
        cwd: WsPath,
    },
}

/// What a command that was carried out leaves and says. Its exit status is 0: a command that fails is left to the shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Every path that would be another.
    pub effects: Effects,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// For the model: traps, and what had no effect.
    pub notes: Vec<String>,
    /// The files it depended on, as they were. What `effects` replaces is among them.
    pub read: Vec<(WsPath, Digest)>,
}

/// Carries out `edit` on private copies. Nothing of the workspace is written.
pub fn simulate(edit: &Recognised, ground: &Ground<'_>) -> Simulated {
    let mut notes = traps(&edit.command, &edit.environment);
    let private = Private::new(ground.folders, ground.files, ground.cwd, edit.environment.umask());
    let mut run = Run { edit, sed: ground.sed, private, clock: None, stdout: Vec::new(), notes: Vec::new() };
    for step in &edit.steps {
        match run.step(step) {
            Ok(()) => {}
            Err(Stop::Shell(why)) => return Simulated::Shell { why, notes },
            Err(Stop::Refused(refusal)) => return Simulated::Refused(*refusal),
        }
        if let Step::Patch(text) = step {
            return Simulated::Patch { text: text.clone(), cwd: run.private.cwd };
        }
    }
    notes.append(&mut run.notes);
    let (effects, read) = run.private.end();
    Simulated::Done(Outcome { effects, stdout: run.stdout, notes, read })
}

struct Run<'a> {
    edit: &'a Recognised,
    sed: Option<&'a Sed>,
    private: Private<'a>,
    /// Started with the first `sed`.
    clock: Option<Clock>,
    stdout: Vec<u8>,
    notes: Vec<String>,
}

impl Run<'_> {
    fn step(&mut self, step: &Step) -> Result<(), Stop> {
        match step {
            Step::Enter(to) => self.enter(to),
            Step::Sed(call) => self.sed(call),
            Step::Write { to, append, text, shown } => {
                if *shown {
                    self.stdout.extend_from_slice(text.as_bytes());
                }
                to.iter().try_for_each(|path| self.write(path, *append, text))
            }
            Step::Say(text) => {
                self.stdout.extend_from_slice(text.as_bytes());
                Ok(())
            }
            Step::Remove { paths, forced } => paths.iter().try_for_each(|path| self.remove(path, *forced)),
            Step::Move(paths) => self.each_to_last(paths, Run::rename),
            Step::Copy(paths) => self.each_to_last(paths, Run::copy),
            Step::MakeDirs { paths, parents } => {
                paths.iter().try_for_each(|path| self.make_dirs(path, *parents))
            }
            Step::Touch(paths) => paths.iter().try_for_each(|path| self.touch(path)),
            Step::Truncate { size, paths } => paths.iter().try_for_each(|path| self.truncate(path, *size)),
            Step::Patch(_) => Ok(()),
        }
    }

    /// Bash remembers a path that led through a link: `..` after it is another directory. So none may be on the way.
    fn enter(&mut self, to: &str) -> Result<(), Stop> {
        for part in self.private.prefixes(to)? {
            let spot = self.private.spot(&part, false)?;
            if !spot.is_directory() {
                return shell(format!("cd {to}: {part} is not a directory"));
            }
        }
        self.private.cwd = self.private.spot(to, false)?.at;
        Ok(())
    }

    fn sed(&mut self, call: &SedCall) -> Result<(), Stop> {
        let Some(sed) = self.sed else { return shell("there is no GNU sed 4.3 or later") };
        if call.bsd {
            self.meant_as_bsd(call)?;
        }
        for path in &call.files {
            let spot = self.private.spot(path, true)?;
            let file = self.private.editable(path, &spot)?;
            let clock = self.clock.get_or_insert_with(Clock::start);
            let new = sed.edit(call, &file.content, &self.edit.environment, clock);
            let new = new.map_err(|error| Stop::Shell(format!("sed: {error}")))?;
            if let Some(suffix) = &call.backup {
                self.keep_old(path, suffix, &spot)?;
            }
            if new == *file.content {
                self.nothing_matched(call, &spot.at);
                if call.backup.is_none() {
                    continue;
                }
            }
            self.private.write(path, &spot, new.into())?;
        }
        Ok(())
    }

    /// `-i ''` is carried out as its writer meant it, unless the words name a file that GNU sed would edit.
    fn meant_as_bsd(&mut self, call: &SedCall) -> Result<(), Stop> {
        let script = call.scripts.first().filter(|_| call.script_operand);
        let names_file = |spot: Spot| spot.seen != Seen::Absent;
        if let Some(script) = script
            && self.private.spot(script, true).is_ok_and(names_file)
        {
            return shell(format!("`sed -i ''` takes {script} for a file, and there is one"));
        }
        self.notes.push("it was carried out as `sed -i`, without the ''".to_owned());
        Ok(())
    }

    /// `-i.bak`: the old file goes by another name, whatever stood there.
    fn keep_old(&mut self, path: &str, suffix: &str, spot: &Spot) -> Result<(), Stop> {
        if spot.linked {
            return shell(format!("{path} is a link, which -i{suffix} would rename"));
        }
        let backup = format!("{path}{suffix}");
        let kept = self.private.spot(&backup, false)?;
        if !matches!(kept.seen, Seen::Absent | Seen::File { .. } | Seen::Link(_)) {
            return shell(format!("{backup} is not a file"));
        }
        let origin = self.private.origin(&spot.at);
        self.private.put(kept.at, spot.seen.clone(), origin);
        Ok(())
    }

    fn nothing_matched(&mut self, call: &SedCall, at: &WsPath) {
        let mut note = format!("sed changed nothing in {}", self.private.show(at));
        if let Some(why) = plain_signs(&call.script()).filter(|_| !call.extended) {
            note = format!("{note}; {why}");
        }
        self.notes.push(note);
    }

    fn write(&mut self, path: &str, append: bool, text: &str) -> Result<(), Stop> {
        let spot = self.private.spot(path, true)?;
        let old = match (&spot.seen, append) {
            (Seen::Absent, _) => None,
            _ => Some(self.in_place(path, &spot)?).filter(|_| append),
        };
        let mut content = old.map(|old| old.to_vec()).unwrap_or_default();
        content.extend_from_slice(text.as_bytes());
        self.private.write(path, &spot, content.into())
    }

    /// The bytes of a file that would be written as it stands, through a descriptor: that asks for the right to, and
    /// takes set-id bits off.
    fn in_place(&self, path: &str, spot: &Spot) -> Result<Content, Stop> {
        let file = self.private.editable(path, spot)?;
        if file.mode & 0o200 == 0 || file.mode & 0o6000 != 0 {
            return shell(format!("{path} has mode {:04o}", file.mode));
        }
        Ok(file.content)
    }

    fn remove(&mut self, path: &str, forced: bool) -> Result<(), Stop> {
        let spot = self.private.spot(path, false)?;
        match spot.seen {
            Seen::File { .. } | Seen::Link(_) => self.private.put(spot.at, Seen::Absent, None),
            Seen::Absent if forced => self.notes.push(format!("there is no {path}")),
            Seen::Absent => return shell(format!("{path}: no such file")),
            _ => return shell(format!("{path} is not a file")),
        }
        Ok(())
    }

    /// `FROM… TO`: each to the last, into it where that is a directory.
    fn each_to_last(
        &mut self,
        paths: &[String],
        one: fn(&mut Self, &str, &str) -> Result<Spot, Stop>,
    ) -> Result<(), Stop> {
        let Some((last, sources)) = paths.split_last() else { return Ok(()) };
        let to = self.private.spot(last, true)?;
        if !to.is_directory() {
            if sources.len() > 1 || last.ends_with('/') {
                return shell(format!("{last} is not a directory"));
            }
            return sources.iter().try_for_each(|from| one(self, from, last).map(drop));
        }
        let mut made = Vec::new();
        for from in sources {
            let name = from.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let spot = one(self, from, &format!("{}/{name}", last.trim_end_matches('/')))?;
            if made.contains(&spot.at) {
                return shell(format!("two files would become {last}/{name}"));
            }
            made.push(spot.at);
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<Spot, Stop> {
        let old = self.private.spot(from, false)?;
        let new = self.private.spot(to, false)?;
        let movable = |seen: &Seen| matches!(seen, Seen::File { .. } | Seen::Link(_));
        if from.ends_with('/') || !movable(&old.seen) || !(movable(&new.seen) || new.seen == Seen::Absent) {
            return shell(format!("mv {from} {to} is not of one file to another"));
        }
        let many = |spot: &Spot| spot.file().is_some_and(|file| file.links > 1);
        // A link onto the file that it leads to, or the other way round.
        let same = self.private.spot(from, true)?.at == self.private.spot(to, true)?.at;
        if same || old.at.folder != new.at.folder || (many(&old) && many(&new)) {
            return shell(format!("{from} and {to} may be the same file, or lie on two file systems"));
        }
        let origin = self.private.origin(&old.at);
        self.private.put(new.at.clone(), old.seen, origin);
        self.private.put(old.at, Seen::Absent, None);
        Ok(new)
    }

    /// The copy of a file: into one that is there, or a new one with the mode less the umask.
    fn copy(&mut self, from: &str, to: &str) -> Result<Spot, Stop> {
        let old = self.private.spot(from, true)?;
        let new = self.private.spot(to, true)?;
        let Some(file) = old.file().filter(|file| file.content.len() <= FILE_MAX) else {
            return shell(format!("{from} is not a file, or over 10 MiB"));
        };
        if old.at == new.at {
            return shell(format!("{from} and {to} are the same file"));
        }
        match &new.seen {
            Seen::Absent if new.linked || file.mode & 0o7000 != 0 => {
                return shell(format!(
                    "{to} is a link that leads to nothing, or {from} has mode {:04o}",
                    file.mode
                ));
            }
            Seen::Absent => {
                let mode = self.private.masked(file.mode);
                let copy = Seen::File { content: file.content, mode, links: 1 };
                let origin = self.private.origin(&old.at);
                self.private.put(new.at.clone(), copy, origin);
            }
            _ => {
                self.in_place(to, &new)?;
                self.private.write(to, &new, file.content)?;
            }
        }
        Ok(new)
    }

    fn make_dirs(&mut self, path: &str, parents: bool) -> Result<(), Stop> {
        if self.edit.environment.umask() & 0o300 != 0 {
            return shell("the umask takes rights from the owner of a directory");
        }
        let mut steps = self.private.prefixes(path)?;
        if !parents {
            steps.drain(..steps.len().saturating_sub(1));
        }
        let mut made = false;
        for part in &steps {
            let spot = self.private.spot(part, true)?;
            match spot.seen {
                Seen::Directory { .. } => {}
                Seen::Absent if !spot.linked => {
                    let mode = self.private.masked(0o777);
                    self.private.put(spot.at, Seen::Directory { mode }, None);
                    made = true;
                }
                _ => return shell(format!("{part} is not a directory")),
            }
        }
        if made || parents { Ok(()) } else { shell(format!("{path} exists")) }
    }

    fn touch(&mut self, path: &str) -> Result<(), Stop> {
        let spot = self.private.spot(path, true)?;
        if spot.seen != Seen::Absent {
            return shell(format!("{path} exists, and only its times would change"));
        }
        self.private.write(path, &spot, Content::from([]))
    }

    fn truncate(&mut self, path: &str, size: usize) -> Result<(), Stop> {
        let spot = self.private.spot(path, true)?;
        let mut content = match spot.seen {
            Seen::Absent => Vec::new(),
            _ => self.in_place(path, &spot)?.to_vec(),
        };
        content.resize(size, 0);
        self.private.write(path, &spot, content.into())
    }
}
