//! From a syntax tree to parts: every command in a script, in order, with the directory and the variables it would see.

use brush_parser::ast::{
    self, AndOr, AndOrList, Assignment, AssignmentName, AssignmentValue, Command,
    CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList, IoFileRedirectKind as Io,
    IoFileRedirectTarget as Target, IoRedirect, Pipeline, SeparatorOperator, SimpleCommand, SubshellCommand,
};

use super::lex::Unread;
use super::part::{Arg, Flow, Kind, Part, Redirect, State};
use super::word::{Piece, Word};
use super::{builtin, script, test, wrap};

/// Parts after which reading stops.
const PARTS: usize = 1_000;

/// Scripts within scripts.
const SCRIPTS: usize = 8;

/// A pipeline of the outermost script, for what it shows.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Lists of `&&` are counted up; a new one begins at `;`.
    pub(super) item: usize,
    /// It is made of simple commands, one part each, and its exit status is that of the last.
    pub(super) plain: bool,
    /// It runs whether or not another fails, or only where all before it in its list succeeded.
    pub(super) certain: bool,
    /// The parts.
    pub(super) parts: std::ops::Range<usize>,
}

/// The parts that were found, and what was found out on the way.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) parts: Vec<Part>,
    pub(super) lines: Vec<Line>,
    /// A function that calls itself twice over: the definition's name.
    pub(super) bomb: Option<String>,
    /// Some text will run that cannot be read here.
    pub(super) unseen: bool,
    /// What wrappers start is left out.
    pub(super) flat: bool,
    depth: usize,
    /// Compound commands that are being read.
    inner: usize,
    /// Wrappers that are being unwrapped.
    pub(super) wrapped: usize,
}

impl Walk {
    /// Reads a script, its commands following those before.
    pub(super) fn script(&mut self, text: &str, state: &mut State) -> Result<(), Unread> {
        if self.depth >= SCRIPTS {
            return Err("it is nested too deeply");
        }
        let program = script::parse(text)?;
        self.depth += 1;
        let done = program.complete_commands.iter().try_for_each(|list| self.list(list, state));
        self.depth -= 1;
        done
    }

    /// A script whose changes of directory and variables do not come back.
    pub(super) fn apart(&mut self, text: &str, state: &State) -> Result<(), Unread> {
        self.script(text, &mut state.clone())
    }

    /// Adds a part, unless there are too many.
    pub(super) fn push(&mut self, part: Part) -> Result<(), Unread> {
        if self.parts.len() >= PARTS {
            return Err("it has too many commands");
        }
        self.parts.push(part);
        Ok(())
    }

    fn list(&mut self, list: &CompoundList, state: &mut State) -> Result<(), Unread> {
        for ast::CompoundListItem(and_or, separator) in &list.0 {
            match separator {
                SeparatorOperator::Sequence => self.and_or(and_or, state, true)?,
                SeparatorOperator::Async => {
                    self.note_bomb(&and_or.first, state);
                    self.and_or(and_or, &mut state.clone(), false)?;
                }
            }
        }
        Ok(())
    }

    fn and_or(&mut self, list: &AndOrList, state: &mut State, waits: bool) -> Result<(), Unread> {
        let item = self.lines.last().map_or(0, |line| line.item + 1);
        let certain = waits && list.additional.iter().all(|next| matches!(next, AndOr::And(_)));
        let outermost = self.depth == 1 && self.inner == 0;
        let mut pipelines = vec![(&list.first, false)];
        pipelines.extend(list.additional.iter().map(|next| match next {
            AndOr::And(pipeline) => (pipeline, false),
            AndOr::Or(pipeline) => (pipeline, true),
        }));
        for (pipeline, or) in pipelines {
            let start = self.parts.len();
            if or {
                let mut other = state.clone();
                self.pipeline(pipeline, &mut other)?;
                state.doubt(&other);
            } else {
                self.pipeline(pipeline, state)?;
            }
            let parts = start..self.parts.len();
            let simple = pipeline.seq.iter().all(|command| matches!(command, Command::Simple(_)));
            let plain = simple && !pipeline.bang && parts.len() == pipeline.seq.len();
            if outermost {
                self.lines.push(Line { item, plain, certain, parts });
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline, state: &mut State) -> Result<(), Unread> {
        match pipeline.seq.as_slice() {
            [command] => self.command(command, state),
            several => {
                self.note_bomb(pipeline, state);
                several.iter().try_for_each(|command| self.command(command, &mut state.clone()))
            }
        }
    }

    /// A function that starts itself in a pipe or in the background.
    fn note_bomb(&mut self, pipeline: &Pipeline, state: &State) {
        let Some(function) = state.function.as_deref() else { return };
        let calls = |command: &Command| match command {
            Command::Simple(simple) => {
                simple.word_or_name.as_ref().is_some_and(|word| word.value == function)
            }
            _ => false,
        };
        if pipeline.seq.iter().any(calls) {
            self.bomb.get_or_insert_with(|| function.to_owned());
        }
    }

    fn command(&mut self, command: &Command, state: &mut State) -> Result<(), Unread> {
        match command {
            Command::Simple(simple) => self.simple(simple, state),
            Command::Compound(compound, redirects) => {
                self.compound(compound, state)?;
                self.redirected(redirects.as_ref(), state)
            }
            Command::Function(function) => {
                state.functions.push(function.fname.value.clone());
                let shown = format!("{}()", function.fname.value);
                self.push(Part { kind: Kind::Bare(false), ..bare(shown, state) })?;
                let mut inner = state.clone();
                inner.function = Some(function.fname.value.clone());
                self.compound(&function.body.0, &mut inner)?;
                self.redirected(function.body.1.as_ref(), state)
            }
            Command::ExtendedTest(expression, redirects) => {
                let safe = self.test(&expression.expr, state)?;
                let shown = format!("[[ {} ]]", expression.expr);
                self.push(Part { kind: Kind::Test(safe), ..bare(shown, state) })?;
                self.redirected(redirects.as_ref(), state)
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, state: &mut State) -> Result<(), Unread> {
        self.inner += 1;
        let done = self.within(compound, state);
        self.inner -= 1;
        done
    }

    fn within(&mut self, compound: &CompoundCommand, state: &mut State) -> Result<(), Unread> {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list, state),
            CompoundCommand::Subshell(shell) => self.list(&shell.list, &mut state.clone()),
            CompoundCommand::Coprocess(process) => self.command(&process.body, &mut state.clone()),
            CompoundCommand::Arithmetic(sum) => self.sums([Some(&sum.expr)], state),
            CompoundCommand::ArithmeticForClause(clause) => {
                let sums = [clause.initializer.as_ref(), clause.condition.as_ref(), clause.updater.as_ref()];
                self.sums(sums, state)?;
                self.maybe(&[&clause.body.list], state)
            }
            CompoundCommand::ForClause(clause) => {
                for word in clause.values.iter().flatten() {
                    self.word(&word.value, state)?;
                }
                state.vars.insert(clause.variable_name.clone(), None);
                self.maybe(&[&clause.body.list], state)
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.maybe(&[&clause.0, &clause.1.list], state)
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value.value, state)?;
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.word(&pattern.value, state)?;
                    }
                    self.maybe(&case.cmd.iter().collect::<Vec<_>>(), state)?;
                }
                Ok(())
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, state)?;
                self.maybe(&[&clause.then], state)?;
                for other in clause.elses.iter().flatten() {
                    let lists: Vec<_> = other.condition.iter().chain([&other.body]).collect();
                    self.maybe(&lists, state)?;
                }
                Ok(())
            }
        }
    }

    /// Lists that run or do not, or many times.
    fn maybe(&mut self, lists: &[&CompoundList], state: &mut State) -> Result<(), Unread> {
        let mut other = state.clone();
        lists.iter().try_for_each(|list| self.list(list, &mut other))?;
        state.doubt(&other);
        Ok(())
    }

    /// `((…))` and its like.
    fn sums<'e>(
        &mut self,
        sums: impl IntoIterator<Item = Option<&'e ast::UnexpandedArithmeticExpr>>,
        state: &State,
    ) -> Result<(), Unread> {
        for sum in sums.into_iter().flatten() {
            for word in Word::of_body(&sum.value)?.runs() {
                self.apart(word, state)?;
            }
            self.push(Part { kind: Kind::Test(false), ..bare(format!("(({}))", sum.value), state) })?;
        }
        Ok(())
    }

    /// Whether `[[ … ]]` runs nothing, its words read.
    fn test(&mut self, expression: &ast::ExtendedTestExpr, state: &State) -> Result<bool, Unread> {
        let mut safe = true;
        for (word, evaluated) in test::words(expression) {
            let arg = self.word(&word.value, state)?;
            let number = arg.literal().is_some_and(|text| text.parse::<i64>().is_ok());
            safe &= if evaluated { number } else { arg.word.is_tame() };
        }
        Ok(safe)
    }

    /// The redirections of a compound command, as a part of their own.
    fn redirected(&mut self, redirects: Option<&ast::RedirectList>, state: &State) -> Result<(), Unread> {
        let Some(list) = redirects else { return Ok(()) };
        let mut part = Part { kind: Kind::Bare(true), ..bare(String::new(), state) };
        for redirect in &list.0 {
            self.redirect(redirect, &mut part, state)?;
        }
        self.push(part)
    }

    /// Reads a word; the commands in it become parts.
    fn word(&mut self, raw: &str, state: &State) -> Result<Arg, Unread> {
        let word = Word::read(raw)?;
        for run in word.runs() {
            self.apart(run, state)?;
        }
        Ok(Arg::new(word, state))
    }

    fn simple(&mut self, simple: &SimpleCommand, state: &mut State) -> Result<(), Unread> {
        let before = self.parts.len();
        let mut part = bare(String::new(), state);
        let mut assigned: Vec<(String, Option<String>, bool)> = Vec::new();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::AssignmentWord(assignment, word) => {
                    let (value, plain) = self.assignment(assignment, state)?;
                    let name = match &assignment.name {
                        AssignmentName::VariableName(name) | AssignmentName::ArrayElementName(name, _) => {
                            name
                        }
                    };
                    part.show(&word.value);
                    assigned.push((name.clone(), value, plain));
                }
                other => self.item(other, &mut part, state)?,
            }
        }
        if let Some(name) = &simple.word_or_name {
            let arg = self.word(&name.value, state)?;
            part.show(&name.value);
            part.args.push(arg);
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut part, state)?;
        }
        part.substitutes = self.parts.len() > before;
        self.finished(part, assigned, state)
    }

    /// A simple command whose words are read: its part, what it starts, and what it changes.
    fn finished(
        &mut self,
        mut part: Part,
        assigned: Vec<(String, Option<String>, bool)>,
        state: &mut State,
    ) -> Result<(), Unread> {
        if part.args.is_empty() {
            // Lower-case names mean nothing to the shell or to programs.
            let own = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            part.kind = Kind::Bare(assigned.iter().all(|(name, _, plain)| *plain && own(name)));
            part.assigns = assigned.iter().map(|(name, value, _)| (name.clone(), value.clone())).collect();
            state.vars.extend(part.assigns.iter().cloned());
            return self.push(part);
        }
        part.assigns = assigned.into_iter().map(|(name, value, _)| (name, value)).collect();
        part.is_function =
            part.program().is_some_and(|name| state.functions.iter().any(|function| function == name));
        builtin::apply(&part, state);
        wrap::push(self, part, state)
    }

    /// The value of an assignment, where it is known, and whether making it sets nothing else.
    fn assignment(
        &mut self,
        assignment: &Assignment,
        state: &State,
    ) -> Result<(Option<String>, bool), Unread> {
        let mut plain = true;
        if let AssignmentName::ArrayElementName(_, index) = &assignment.name {
            plain = false;
            for run in Word::of_body(index)?.runs() {
                self.apart(run, state)?;
            }
        }
        match &assignment.value {
            AssignmentValue::Scalar(word) => {
                let arg = self.word(&word.value, state)?;
                // The value is not split, and no pattern is expanded in it.
                plain &= arg.word.is_tame();
                Ok((arg.known.filter(|_| !assignment.append && plain), plain))
            }
            AssignmentValue::Array(elements) => {
                for (key, element) in elements {
                    if let Some(key) = key {
                        for run in Word::of_body(&key.value)?.runs() {
                            self.apart(run, state)?;
                        }
                    }
                    self.word(&element.value, state)?;
                }
                Ok((None, false))
            }
        }
    }

    /// A word, a redirection or a process substitution of a command.
    fn item(&mut self, item: &Item, part: &mut Part, state: &State) -> Result<(), Unread> {
        match item {
            Item::IoRedirect(redirect) => self.redirect(redirect, part, state),
            Item::Word(word) => {
                part.show(&word.value);
                part.args.push(self.word(&word.value, state)?);
                Ok(())
            }
            Item::AssignmentWord(assignment, word) => {
                part.show(&word.value);
                let arg = match &assignment.value {
                    AssignmentValue::Scalar(_) => self.word(&word.value, state)?,
                    AssignmentValue::Array(_) => {
                        self.assignment(assignment, state)?;
                        hidden(&word.value, state)
                    }
                };
                part.args.push(arg);
                Ok(())
            }
            Item::ProcessSubstitution(kind, shell) => {
                let shown = format!("{kind}(…)");
                part.show(&shown);
                part.args.push(hidden(&shown, state));
                self.process(shell, state)
            }
        }
    }

    fn process(&mut self, shell: &SubshellCommand, state: &State) -> Result<(), Unread> {
        self.inner += 1;
        let done = self.list(&shell.list, &mut state.clone());
        self.inner -= 1;
        done
    }

    fn redirect(&mut self, redirect: &IoRedirect, part: &mut Part, state: &State) -> Result<(), Unread> {
        let (flow, sign, output, target) = match redirect {
            IoRedirect::OutputAndError(word, append) => {
                let sign = if *append { "&>>" } else { "&>" };
                (Flow::To, sign.to_owned(), true, self.word(&word.value, state)?)
            }
            IoRedirect::HereString(_, word) => {
                (Flow::Text, "<<<".to_owned(), false, self.word(&word.value, state)?)
            }
            IoRedirect::HereDocument(_, document) => {
                let arg = self.here_document(document, state)?;
                (Flow::Text, format!("<<{}", document.here_end.value), false, arg)
            }
            IoRedirect::File(fd, kind, target) => {
                let number = fd.map(|fd| fd.to_string()).unwrap_or_default();
                let output = fd.is_none_or(|fd| fd == 1) && !matches!(kind, Io::Read | Io::DuplicateInput);
                let (arg, flow) = self.file(kind, target, state)?;
                (flow, format!("{number}{kind}"), output, arg)
            }
        };
        let shown = if sign.starts_with("<<") && sign != "<<<" {
            sign
        } else {
            format!("{sign} {}", target.word.raw)
        };
        part.show(&shown);
        part.redirects.push(Redirect { flow, target, output });
        Ok(())
    }

    /// The target of a redirection, and what it does in the end.
    fn file(&mut self, kind: &Io, target: &Target, state: &State) -> Result<(Arg, Flow), Unread> {
        let flow = flow(kind);
        Ok(match target {
            Target::Filename(word) => (self.word(&word.value, state)?, flow),
            Target::Fd(fd) => (Arg::new(Word::exactly(&fd.to_string()), state), Flow::Copy),
            Target::ProcessSubstitution(kind, shell) => {
                self.process(shell, state)?;
                (hidden(&format!("{kind}(…)"), state), flow)
            }
            Target::Duplicate(word) => {
                let arg = self.word(&word.value, state)?;
                let descriptor = |text: &str| {
                    let digits = text.strip_suffix('-').unwrap_or(text);
                    digits.bytes().all(|byte| byte.is_ascii_digit())
                };
                // `>&file` writes the file.
                let copies = matches!(kind, Io::DuplicateInput) || arg.literal().is_some_and(descriptor);
                (arg, if copies { Flow::Copy } else { Flow::To })
            }
        })
    }

    /// The body of a here-document, as one word.
    fn here_document(&mut self, document: &ast::IoHereDocument, state: &State) -> Result<Arg, Unread> {
        let word = if document.requires_expansion {
            Word::of_body(&document.doc.value)?
        } else {
            Word::exactly(&document.doc.value)
        };
        for run in word.runs() {
            self.apart(run, state)?;
        }
        Ok(Arg::new(word, state))
    }
}

/// What an operator does with a file of that name.
fn flow(kind: &Io) -> Flow {
    match kind {
        Io::Read => Flow::From,
        Io::Write | Io::Append | Io::ReadAndWrite | Io::Clobber => Flow::To,
        Io::DuplicateInput | Io::DuplicateOutput => Flow::Copy,
    }
}

/// A part without words.
fn bare(shown: String, state: &State) -> Part {
    Part {
        shown,
        kind: Kind::Command,
        assigns: Vec::new(),
        args: Vec::new(),
        redirects: Vec::new(),
        more: false,
        cwd: state.cwd.clone(),
        is_function: false,
        substitutes: false,
    }
}

/// A word that nobody can know.
fn hidden(raw: &str, state: &State) -> Arg {
    Arg::new(Word { raw: raw.to_owned(), pieces: vec![Piece::Braces] }, state)
}
