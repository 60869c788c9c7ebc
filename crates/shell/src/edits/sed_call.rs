//! The arguments of `sed -i`, in the forms that are carried out without a shell.

use super::script;

/// How many files one command may name.
const FILES: usize = 32;

/// A `sed` that edits files in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SedCall {
    /// `-n`.
    pub(super) quiet: bool,
    /// `-E` or `-r`.
    pub(super) extended: bool,
    /// `-z`.
    pub(super) null_data: bool,
    /// What every `-e`, or the operand, says.
    pub(super) scripts: Vec<String>,
    /// The suffix that the old file is kept under.
    pub(super) backup: Option<String>,
    /// The files, as written.
    pub(super) files: Vec<String>,
    /// An empty word stood after `-i`, as BSD's sed wants it.
    pub(super) bsd: bool,
    /// The script was an operand: with `bsd`, GNU sed would take it for a file.
    pub(super) script_operand: bool,
}

impl SedCall {
    /// All of the script.
    pub(super) fn script(&self) -> String {
        self.scripts.join("\n")
    }
}

/// Reads what stands after `sed`. `None` without `-i`, and for options, scripts or numbers of files that are left to the
/// shell. `stop_at_operand`: the first operand ends the options (`POSIXLY_CORRECT`).
pub(super) fn parse(arguments: &[String], stop_at_operand: bool) -> Option<SedCall> {
    let mut reading = Reading { call: SedCall::default(), rest: arguments, in_place: false };
    let mut operands = Vec::new();
    let mut ended = false;
    while let Some((word, rest)) = reading.rest.split_first() {
        reading.rest = rest;
        match word.strip_prefix('-').filter(|option| !ended && !option.is_empty()) {
            None => {
                operands.push(word.clone());
                ended |= stop_at_operand;
            }
            Some("-") => ended = true,
            Some(option) => match option.strip_prefix('-') {
                Some(long) => reading.long(long)?,
                None => reading.short(option)?,
            },
        }
    }
    let Reading { mut call, in_place, .. } = reading;
    if call.scripts.is_empty() {
        (!operands.is_empty()).then_some(())?;
        call.scripts.push(operands.remove(0));
        call.script_operand = true;
    }
    call.files = operands;
    let whole = call.script();
    let script = script::read(&whole)?;
    let alone = !script.carries || call.files.len() == 1;
    let files = (1..=FILES).contains(&call.files.len())
        && call.files.iter().all(|file| !matches!(file.as_str(), "" | "-"));
    (in_place && alone && files && !whole.is_empty()).then_some(call)
}

struct Reading<'a> {
    call: SedCall,
    rest: &'a [String],
    in_place: bool,
}

impl Reading<'_> {
    fn long(&mut self, option: &str) -> Option<()> {
        match option.split_once('=') {
            None => match option {
                "in-place" => self.in_place(""),
                "regexp-extended" => self.flag('E'),
                "quiet" | "silent" => self.flag('n'),
                "separate" => self.flag('s'),
                "unbuffered" => self.flag('u'),
                "null-data" | "zero-terminated" => self.flag('z'),
                "expression" => self.next_script(),
                _ => None,
            },
            // Without a suffix after `=` there is none, and an empty word after it is one.
            Some(("in-place", "")) => {
                self.in_place = true;
                Some(())
            }
            Some(("in-place", suffix)) => self.in_place(suffix),
            Some(("expression", script)) => {
                self.call.scripts.push(script.to_owned());
                Some(())
            }
            Some(_) => None,
        }
    }

    /// A bundle of letters; `i` and `e` take what is left of it.
    fn short(&mut self, bundle: &str) -> Option<()> {
        for (at, letter) in bundle.char_indices() {
            let rest = &bundle[at + letter.len_utf8()..];
            match letter {
                'i' => return self.in_place(rest),
                'e' if rest.is_empty() => return self.next_script(),
                'e' => {
                    self.call.scripts.push(rest.to_owned());
                    return Some(());
                }
                _ => self.flag(letter)?,
            }
        }
        Some(())
    }

    fn flag(&mut self, letter: char) -> Option<()> {
        match letter {
            'n' => self.call.quiet = true,
            'E' | 'r' => self.call.extended = true,
            'z' => self.call.null_data = true,
            // Files are separate with -i, and when output is flushed does not matter.
            's' | 'u' => {}
            _ => return None,
        }
        Some(())
    }

    fn next_script(&mut self) -> Option<()> {
        let (script, rest) = self.rest.split_first()?;
        self.rest = rest;
        self.call.scripts.push(script.clone());
        Some(())
    }

    fn in_place(&mut self, suffix: &str) -> Option<()> {
        self.in_place = true;
        if suffix.is_empty() {
            if let Some((_, rest)) = self.rest.split_first().filter(|(word, _)| word.is_empty()) {
                self.call.bsd = true;
                self.rest = rest;
            }
            return Some(());
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-');
        let usual = suffix.bytes().all(plain) && !is_options(suffix);
        self.call.backup = usual.then(|| suffix.to_owned());
        usual.then_some(())
    }
}

/// Whether a suffix looks like options that were meant to stand on their own: `-iE` is not `-i -E`.
pub(super) fn is_options(suffix: &str) -> bool {
    !suffix.is_empty() && suffix.bytes().all(|byte| b"Eernsuz".contains(&byte))
}
