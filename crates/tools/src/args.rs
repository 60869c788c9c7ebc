//! Arguments from the wire: aliases, folded names, coerced types, and refusals that name what is accepted.

use cotenant_model::{Code, Refusal};
use serde_json::{Map, Value};

use crate::tool::{Kind, Param, Tool};

/// A tool's arguments by their own names, of the right types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Args {
    map: Map<String, Value>,
    /// Unknown arguments of a reading tool, which are named in its answer.
    pub ignored: Vec<String>,
}

/// Names that clients use for ours. An alias never hides an argument that the tool itself has.
const ALIASES: &[(&str, &str)] = &[
    ("file_path", "path"),
    ("absolute_path", "path"),
    ("filename", "path"),
    ("directory", "path"),
    ("old_string", "old_text"),
    ("old_str", "old_text"),
    ("new_string", "new_text"),
    ("new_str", "new_text"),
    ("new_source", "new_text"),
    ("cell_id", "cell"),
    ("cell_number", "cell"),
    ("edit_mode", "cell_op"),
    ("allow_multiple", "replace_all"),
    ("contents", "content"),
    ("file_text", "content"),
    ("offset", "start"),
    ("start_line", "start"),
    ("query", "pattern"),
    ("type", "glob"),
    ("include", "glob"),
    ("head_limit", "limit"),
    ("max_results", "limit"),
    ("output_mode", "output"),
    ("-i", "ignore_case"),
    ("i", "ignore_case"),
    ("-C", "context_lines"),
    ("-A", "context_lines"),
    ("-B", "context_lines"),
    ("cmd", "command"),
    ("workdir", "cwd"),
    ("run_in_background", "background"),
    ("is_background", "background"),
    ("bash_id", "id"),
    ("shell_id", "id"),
    ("task_id", "id"),
    ("source", "from"),
    ("source_path", "from"),
    ("destination", "to"),
    ("destination_path", "to"),
    ("input", "patch"),
    ("diff", "patch"),
];

/// Words that clients add for their own log.
const COMMENTS: &[&str] = &["description", "explanation", "instruction"];

/// Accepted by every mutating tool, not listed.
const MUTATING: &[Param] =
    &[Param::hidden("idempotency_key", Kind::Text), Param::hidden("dry_run", Kind::Flag)];
/// Accepted by every reading tool, not listed.
const READING: &[Param] = &[Param::hidden("max_bytes", Kind::Number)];

/// Every argument the tool takes, the unlisted ones too.
pub fn accepted(tool: &Tool) -> impl Iterator<Item = &'static Param> {
    let own = |name: &str| tool.params.iter().any(|param| param.name == name);
    let common = if tool.mutates() { MUTATING } else { READING };
    tool.params.iter().chain(common.iter().filter(move |param| !own(param.name)))
}

impl Args {
    /// Decodes `raw` for `tool`. A refusal is `BAD_INPUT` and says what the tool takes.
    pub fn decode(tool: &Tool, raw: &Map<String, Value>) -> Result<Args, Refusal> {
        let mut args = Args::default();
        for (name, value) in raw {
            if value.is_null() {
                continue;
            }
            for (name, value) in expand(tool, name, value) {
                args.take(tool, &name, value)?;
            }
        }
        match tool
            .params
            .iter()
            .find(|param| param.required && param.kind != Kind::Flag && !args.map.contains_key(param.name))
        {
            Some(missing) => Err(bad(tool, missing.name, &format!("{} needs {}", tool.name, missing.name))),
            None => Ok(args),
        }
    }

    fn take(&mut self, tool: &Tool, name: &str, value: Value) -> Result<(), Refusal> {
        let Some(param) = param(tool, name) else {
            if COMMENTS.contains(&snake(name).as_str()) {
                return Ok(());
            }
            if !tool.mutates() {
                self.ignored.push(name.to_owned());
                return Ok(());
            }
            return Err(unknown(tool, name));
        };
        let value = coerce(tool, param, value)?;
        match self.map.get(param.name) {
            Some(earlier) if *earlier != value => {
                Err(bad(tool, name, &format!("{} was given twice with different values", param.name)))
            }
            _ => {
                self.map.insert(param.name.to_owned(), value);
                Ok(())
            }
        }
    }

    /// A text argument.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.map.get(name)?.as_str()
    }

    /// A required text argument; [`Args::decode`] has seen to it.
    pub fn need(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    /// A flag, false if absent.
    pub fn flag(&self, name: &str) -> bool {
        self.map.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A flag, if given.
    pub fn flag_given(&self, name: &str) -> Option<bool> {
        self.map.get(name).and_then(Value::as_bool)
    }

    /// A number, if given.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.map.get(name)?.as_i64()
    }

    /// A number that counts, if given; below 0 is 0.
    pub fn count(&self, name: &str) -> Option<usize> {
        self.number(name).map(|number| usize::try_from(number).unwrap_or(0))
    }

    /// A list of texts.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        self.map.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Any argument as it is.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.map.get(name)
    }

    /// All arguments, by their own names.
    pub fn map(&self) -> &Map<String, Value> {
        &self.map
    }
}

/// Aliases that stand for two arguments or change a value are spelled out here; all others come through as they are.
fn expand(tool: &Tool, name: &str, value: &Value) -> Vec<(String, Value)> {
    let own = |name: &str| accepted(tool).any(|param| param.name == name);
    let name = snake(name);
    if own(&name) {
        return vec![(name, value.clone())];
    }
    let parsed =
        value.as_str().filter(|text| text.starts_with('[')).and_then(|text| serde_json::from_str(text).ok());
    let value = parsed.as_ref().filter(|_| name == "view_range").unwrap_or(value);
    let number = || number(value);
    match (name.as_str(), value) {
        // [first, last], 1-based, last = -1 is the end
        ("view_range", Value::Array(range)) if own("start") => {
            let first = range.first().and_then(Value::as_i64).unwrap_or(1);
            let mut pairs = vec![("start".to_owned(), first.max(1).into())];
            if let Some(last) = range.get(1).and_then(Value::as_i64).filter(|last| *last >= first) {
                pairs.push(("limit".to_owned(), last.saturating_sub(first.max(1)).saturating_add(1).into()));
            }
            pairs
        }
        ("head", _) if own("start") => vec![("limit".to_owned(), value.clone())],
        ("tail", _) if own("start") => match number() {
            Some(lines) => {
                vec![("start".to_owned(), lines.saturating_neg().into()), ("limit".to_owned(), lines.into())]
            }
            None => vec![(name, value.clone())],
        },
        // 0 is what clients that count from 0 send for the first line
        ("offset" | "start_line", _) if own("start") => {
            vec![("start".to_owned(), number().map_or_else(|| value.clone(), |line| line.max(1).into()))]
        }
        ("timeout" | "timeout_ms", _) if own("timeout_s") => match number() {
            Some(time) if time >= 1000 => vec![("timeout_s".to_owned(), (time / 1000).into())],
            _ => vec![("timeout_s".to_owned(), value.clone())],
        },
        ("output_mode", Value::String(mode)) if own("output") => {
            let mode = if mode == "files_with_matches" { "files" } else { mode };
            vec![("output".to_owned(), mode.into())]
        }
        ("type", Value::String(kind)) if own("glob") => vec![("glob".to_owned(), format!("*.{kind}").into())],
        _ => vec![(name, value.clone())],
    }
}

/// `end_line` needs the start, so it is turned into a limit once all arguments are there.
pub fn with_end_line(tool: &Tool, raw: &Map<String, Value>) -> Map<String, Value> {
    let mut raw = raw.clone();
    let takes = |name: &str| tool.params.iter().any(|param| param.name == name);
    if !takes("start") || takes("end_line") {
        return raw;
    }
    for name in ["end_line", "endLine"] {
        let Some(last) = raw.get(name).and_then(number) else { continue };
        let start =
            ["start", "offset", "start_line", "startLine"].iter().find_map(|name| number(raw.get(*name)?));
        raw.remove(name);
        // -1 is the end
        if last >= 0 {
            let limit = last.saturating_sub(start.unwrap_or(1).max(1)).saturating_add(1);
            raw.insert("limit".to_owned(), limit.max(1).into());
        }
    }
    raw
}

/// A whole number, as such or as a text.
fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn param(tool: &Tool, name: &str) -> Option<&'static Param> {
    let own = |wanted: &str| accepted(tool).find(|param| param.name == wanted);
    own(name).or_else(|| {
        let (_, ours) = ALIASES.iter().find(|(alias, _)| *alias == name)?;
        own(ours)
    })
}

/// The argument that `name` stands for: its own name where the tool has it by any, else `name`.
pub fn canonical(tool: &Tool, name: &str) -> String {
    let name = snake(name);
    param(tool, &name).map_or(name, |param| param.name.to_owned())
}

/// `filePath` and `file-path` are `file_path`; `-i` stays.
fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    for (index, ch) in name.chars().enumerate() {
        match ch {
            'A'..='Z' if index > 0 && !name.starts_with('-') => {
                out.push('_');
                out.push(ch.to_ascii_lowercase());
            }
            '-' if index > 0 => out.push('_'),
            _ => out.push(ch),
        }
    }
    out
}

fn coerce(tool: &Tool, param: &Param, value: Value) -> Result<Value, Refusal> {
    let wrong = |wanted: &str| {
        let shown: String = value.to_string().chars().take(60).collect();
        bad(tool, param.name, &format!("{} must be {wanted}, not {shown}", param.name))
    };
    match (param.kind, &value) {
        (Kind::Text | Kind::Path | Kind::Command, Value::String(_)) | (Kind::Flag, Value::Bool(_)) => {
            Ok(value)
        }
        (Kind::Command, Value::Array(words)) => {
            command_line(words).map(Value::from).ok_or_else(|| wrong("a text, or an array of texts"))
        }
        (Kind::Text, Value::Number(number)) => Ok(number.to_string().into()),
        (Kind::Text | Kind::Path | Kind::Command, _) => Err(wrong("a text")),
        (Kind::Choice(words), Value::String(word)) if words.contains(&word.as_str()) => Ok(value),
        (Kind::Choice(words), _) => Err(wrong(&format!("one of {}", words.join(", ")))),
        (Kind::Flag, Value::String(word)) => match word.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Ok(true.into()),
            "false" | "no" | "0" | "" => Ok(false.into()),
            _ => Err(wrong("true or false")),
        },
        (Kind::Flag, Value::Number(number)) => Ok((number.as_f64() != Some(0.0)).into()),
        (Kind::Flag, _) => Err(wrong("true or false")),
        (Kind::Number, Value::Number(number)) => {
            whole(number.as_f64()).ok_or_else(|| wrong("a whole number"))
        }
        (Kind::Number, Value::String(text)) => {
            whole(text.trim().parse().ok()).ok_or_else(|| wrong("a whole number"))
        }
        (Kind::Number, _) => Err(wrong("a whole number")),
        (Kind::List | Kind::Edits, Value::Array(_)) | (Kind::Object, Value::Object(_)) => Ok(value),
        (Kind::List | Kind::Edits | Kind::Object, Value::String(text)) => match serde_json::from_str(text) {
            Ok(parsed @ (Value::Array(_) | Value::Object(_))) => coerce(tool, param, parsed),
            _ if param.kind == Kind::List => Ok(vec![text.clone()].into()),
            _ => Err(wrong("JSON")),
        },
        (Kind::Edits, Value::Object(_)) => Ok(Value::Array(vec![value])),
        (Kind::List | Kind::Edits, _) => Err(wrong("an array")),
        (Kind::Object, _) => Err(wrong("an object")),
    }
}

/// A command that came as words: the script of a `bash -lc SCRIPT`, else the words, quoted where they need it.
fn command_line(words: &[Value]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
    match &words[..] {
        [] => None,
        [shell, flags, script] if is_shell(shell) && matches!(*flags, "-c" | "-lc" | "-cl") => {
            Some((*script).to_owned())
        }
        words => Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
    }
}

fn is_shell(word: &str) -> bool {
    matches!(word.rsplit('/').next(), Some("bash" | "sh"))
}

/// A word as the shell reads it back unchanged.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |ch: char| ch.is_ascii_alphanumeric() || "_./:,=@%+-".contains(ch);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A whole number within what JSON carries exactly.
fn whole(number: Option<f64>) -> Option<Value> {
    let number = number.filter(|number| number.fract() == 0.0 && number.abs() < 9e15)?;
    #[allow(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
    Some((number as i64).into())
}

/// `BAD_INPUT` about one argument.
pub fn bad(tool: &Tool, argument: &str, sentence: &str) -> Refusal {
    let takes: Vec<&str> = accepted(tool).map(|param| param.name).collect();
    let required = tool.params.iter().filter(|param| param.required);
    let form: Map<String, Value> = required.map(|param| (param.name.to_owned(), "…".into())).collect();
    let next = crate::reply::call_text(tool.name, &form.into());
    Refusal::new(Code::BadInput, format!("{sentence}; nothing was done. It takes: {}.", takes.join(", ")))
        .fact("tool", tool.name)
        .fact("argument", argument)
        .next(next)
}

fn unknown(tool: &Tool, name: &str) -> Refusal {
    let near = nearest(&snake(name), accepted(tool).map(|param| param.name));
    let hint = near.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    let mut refusal = bad(tool, name, &format!("{} has no argument {name}", tool.name));
    refusal.message = refusal.message.replace(" It takes:", &format!("{hint} It takes:"));
    if let Some(near) = near {
        refusal = refusal.fact("nearest", near);
    }
    refusal
}

/// The name at the smallest edit distance, if that is small enough to be a slip.
pub fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let flat = |text: &str| text.replace(['_', '-'], "").to_ascii_lowercase();
    let given = flat(given);
    names
        .map(|name| (distance(&given, &flat(name)), name))
        .min()
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3))
        .map(|(_, name)| name)
}

/// Levenshtein distance over bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
