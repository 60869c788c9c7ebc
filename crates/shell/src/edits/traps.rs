//! What a `sed` command says that its writer may not mean, and how to say it instead. Told whether the command is carried
//! out here or handed to a shell.

use super::COMMAND_MAX;
use super::environment::Environment;
use super::lex::{self, Simple};
use super::script;
use super::sed_call::is_options;

/// The traps in every `sed` of a command, however it is started, and a file that is emptied before it is read; each a
/// sentence or two for the model, none twice. Empty for a command over 64 KiB.
pub fn traps(command: &str, environment: &Environment) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    if command.len() > COMMAND_MAX {
        return told;
    }
    for words in segments(command) {
        let of_sed = words.iter().position(|word| word == "sed" || word.ends_with("/sed"));
        let said = of_sed.map(|at| of_arguments(&words[at + 1..], environment)).unwrap_or_default();
        for trap in said.into_iter().chain(emptied_first(&words)) {
            if !told.contains(&trap) {
                told.push(trap);
            }
        }
    }
    told
}

/// The words of each command, `>` being one before its target.
fn segments(command: &str) -> Vec<Vec<String>> {
    let Some(commands) = lex::lex(command) else { return loose(command) };
    let flat = |command: Simple| {
        let target =
            command.out.into_iter().filter(|out| !out.append).flat_map(|out| [">".to_owned(), out.to]);
        command.words.into_iter().chain(target).collect()
    };
    commands.into_iter().map(flat).collect()
}

/// Words by quotes and blanks alone, commands by operators: good enough to name a trap, never to decide anything.
fn loose(command: &str) -> Vec<Vec<String>> {
    let mut segments = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = command.chars().peekable();
    while let Some(ch) = chars.next() {
        match ch {
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|ch| *ch != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(ch) = chars.next().filter(|ch| *ch != '"') {
                    let escaped = chars.next_if(|next| ch == '\\' && matches!(next, '$' | '`' | '"' | '\\'));
                    word.push(escaped.unwrap_or(ch));
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next().filter(|ch| *ch != '\n')),
            ch => {
                let operator = matches!(ch, '\n' | ';' | '|' | '&' | '(' | ')' | '>' | '<');
                if !(operator || ch == ' ' || ch == '\t') {
                    word.get_or_insert_default().push(ch);
                    continue;
                }
                let Some(last) = segments.last_mut() else { continue };
                last.extend(word.take());
                match ch {
                    '>' if chars.peek() != Some(&'>') => last.push(">".to_owned()),
                    '>' => drop(chars.next()),
                    '\n' | ';' | '|' | '&' | '(' | ')' => segments.push(Vec::new()),
                    _ => {}
                }
            }
        }
    }
    if let Some(last) = segments.last_mut() {
        last.extend(word);
    }
    segments
}

/// `sed … f > f` and its like.
fn emptied_first(words: &[String]) -> Option<String> {
    let at = words.iter().position(|word| word == ">")?;
    let target = words.get(at + 1)?;
    let read = words[..at].iter().skip(1).any(|word| word == target);
    let reads = words.first().is_some_and(|name| !matches!(name.as_str(), "echo" | "printf" | "tee"));
    (read && reads).then(|| {
        format!("the shell empties {target} before the command reads it; write to another file and mv it, or use sed -i")
    })
}

/// What the words after `sed` say.
#[derive(Default)]
struct Said<'a> {
    in_place: bool,
    quiet: bool,
    extended: bool,
    null_data: bool,
    scripts: Vec<&'a str>,
    told: Vec<String>,
}

fn of_arguments(arguments: &[String], environment: &Environment) -> Vec<String> {
    let mut said = Said::default();
    let mut operands = Vec::new();
    let mut rest = arguments.iter().map(String::as_str).peekable();
    while let Some(word) = rest.next().filter(|word| *word != ">") {
        let in_place = said.in_place;
        match word.strip_prefix('-') {
            Some("-expression") => said.scripts.extend(rest.next()),
            Some(option) if option.starts_with('-') => said.long(option),
            Some(bundle) if !bundle.is_empty() => {
                if said.short(bundle) {
                    said.scripts.extend(rest.next());
                }
            }
            _ => operands.push(word),
        }
        if said.in_place && !in_place && rest.next_if_eq(&"").is_some() {
            said.told.push("`sed -i ''` is the BSD form: GNU sed takes '' for the script and the script for a file name; write `sed -i 'SCRIPT' FILE`".to_owned());
        }
    }
    if said.scripts.is_empty() {
        said.scripts.extend(operands.first());
    }
    let script = said.scripts.join("\n");
    said.of_script(&script, environment.is_c());
    said.told
}

impl<'a> Said<'a> {
    fn long(&mut self, option: &'a str) {
        match option.trim_start_matches('-').split_once('=') {
            Some(("expression", script)) => self.scripts.push(script),
            Some(("in-place", _)) => self.in_place = true,
            Some(_) => {}
            None => match option.trim_start_matches('-') {
                "in-place" => self.in_place = true,
                "quiet" | "silent" => self.quiet = true,
                "regexp-extended" => self.extended = true,
                "null-data" | "zero-terminated" => self.null_data = true,
                _ => {}
            },
        }
    }

    /// Reads a bundle of letters; whether the next word is a script.
    fn short(&mut self, bundle: &'a str) -> bool {
        for (at, letter) in bundle.char_indices() {
            let rest = &bundle[at + letter.len_utf8()..];
            match letter {
                'n' => self.quiet = true,
                'E' | 'r' => self.extended = true,
                'z' => self.null_data = true,
                'i' => {
                    self.in_place = true;
                    if is_options(rest) {
                        self.told.push(suffix_trap(rest));
                    }
                    return false;
                }
                'e' if rest.is_empty() => return true,
                'e' => {
                    self.scripts.push(rest);
                    return false;
                }
                _ => {}
            }
        }
        false
    }

    fn of_script(&mut self, text: &str, c_locale: bool) {
        let script = script::read(text);
        if let Some(script) = script.as_ref().filter(|_| self.in_place) {
            if self.quiet && !script.prints {
                self.tell(
                    "`-n` with `-i` and no `p` leaves the file empty; drop `-n`, or print what shall stay",
                );
            }
            if script.quits {
                self.tell("`q` with `-i` cuts the file off after that line; to change only up to a line, give an address such as `1,/re/s/…/…/`");
            }
        }
        // Where the script is not understood, all of it may be a pattern.
        let (patterns, replacements) = match &script {
            Some(script) => (script.patterns.clone(), script.replacements.clone()),
            None => (vec![text], vec![text]),
        };
        let any = |of: &[&str], part: &str| {
            of.iter().any(|text| escapes(text).any(|after| after.starts_with(part)))
        };
        if patterns.iter().any(|pattern| has_digit_class(pattern)) {
            self.tell(
                "`\\d` is no digit class in sed (`\\d065` is a character by its number); write `[0-9]`",
            );
        }
        if patterns
            .iter()
            .any(|pattern| [".*?", ".+?", "]*?", "]+?"].iter().any(|lazy| pattern.contains(lazy)))
        {
            self.tell("sed has no lazy `*?`: it takes the longest match, and without `-E` the `?` is a plain character; write `[^X]*X`");
        }
        if patterns
            .iter()
            .any(|pattern| ["(?:", "(?=", "(?!", "(?<"].iter().any(|group| pattern.contains(group)))
        {
            self.tell("sed knows no `(?:…)`, `(?=…)` or `(?!…)`; write `(…)` with `-E`, or `\\(…\\)`");
        }
        if c_locale && ["U", "L", "u", "l"].iter().any(|letter| any(&replacements, letter)) {
            self.tell("in the C locale `\\U` and `\\L` of GNU sed destroy characters outside ASCII; set LC_ALL=C.UTF-8");
        }
        let joins = self.null_data || script.as_ref().is_some_and(|script| script.carries);
        if !joins && script.is_some() && any(&patterns, "n") {
            self.tell("a line is matched without its end, so `\\n` in a pattern finds nothing; use `sed -z`, or `:a;N;$!ba;` before it");
        }
    }

    fn tell(&mut self, trap: &str) {
        self.told.push(trap.to_owned());
    }
}

fn suffix_trap(suffix: &str) -> String {
    format!(
        "`-i{suffix}` is not `-i -{suffix}`: it keeps a copy FILE{suffix} of each file and sets no option; write `sed -i -{suffix}`"
    )
}

/// What stands after each backslash that is not itself escaped.
fn escapes(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once('\\')?;
        let mut chars = after.chars();
        chars.next();
        rest = chars.as_str();
        Some(after)
    })
}

/// `\d` that is not followed by the three digits of a character's number.
fn has_digit_class(pattern: &str) -> bool {
    let numbered = |after: &str| after.len() >= 3 && after.bytes().take(3).all(|byte| byte.is_ascii_digit());
    escapes(pattern).any(|after| after.strip_prefix('d').is_some_and(|after| !numbered(after)))
}

/// What to add where nothing matched and a sign in a pattern, meant as an operator, is a plain character without `-E`.
pub(super) fn plain_signs(script: &str) -> Option<&'static str> {
    let signs = |pattern: &&str| pattern.contains(['+', '?', '|', '(', '{']) && !pattern.contains('\\');
    let script = script::read(script)?;
    script.patterns.iter().any(signs).then_some("without `-E`, `+ ? | ( ) { }` are plain characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(command: &str) -> Vec<String> {
        traps(command, &Environment::new([("LC_ALL", "C.UTF-8")], 0o022))
    }

    /// The list that the product promises: each trap, and a form of it that is right.
    #[test]
    fn the_twelve_traps_are_named_and_their_right_forms_are_not() {
        let c = Environment::new([("LC_ALL", "C")], 0o022);
        for (trap, says, right) in [
            ("sed -i '' 's/a/b/' f", "BSD form", "sed -i 's/a/b/' f"),
            ("sed -iE 's/a|b/c/' f", "`sed -i -E`", "sed -i -E 's/a|b/c/' f"),
            ("sed -ie 's/a/b/' f", "`sed -i -e`", "sed -i -e 's/a/b/' f"),
            ("sed -in 's/a/b/p' f", "`sed -i -n`", "sed -i -n 's/a/b/p' f"),
            ("sed -n -i 's/a/b/' f", "leaves the file empty", "sed -n -i 's/a/b/p' f"),
            ("sed -i '/a/q' f", "cuts the file off", "sed -n '/a/q' f"),
            (r"sed -i -E 's/\d+/N/' f", "`[0-9]`", r"sed -i -E 's/\d065|\\d/N/' f"),
            ("sed -i -E 's/\".*?\"/X/' f", "no lazy", "sed -i -E 's/\"[^\"]*\"/.*?/' f"),
            ("sed -i -E 's/(?:a|b)c/X/' f", "knows no", "sed -i -E 's/(a|b)c/(?:/' f"),
            (r"sed -i 's/.*/\U&/' f", "destroy characters", r"sed -i 's/\U/\\U/' f"),
            (r"sed -i 's/,\n/,/' f", "finds nothing", r"sed -i ':a;N;$!ba;s/,\n/,/g' f"),
            ("sed 's/a/b/' f > f", "empties f before", "sed 's/a/b/' f > g"),
        ] {
            let named = traps(trap, &c);
            assert_eq!(named.len(), 1, "{trap}: {named:?}");
            assert!(named[0].contains(says), "{trap}: {named:?}");
            assert_eq!(traps(right, &c), Vec::<String>::new(), "{right}");
        }
    }

    #[test]
    fn a_sed_is_found_wherever_it_stands() {
        for command in [
            "cd x && LC_ALL=C /usr/bin/sed -i -E \"s/\\\\d/$x/\" f | cat",
            "grep -rl x . | xargs sed -i -E 's/\\d/x/'",
            "find . -name '*.rs' -exec sed -i 's/\\d/x/' {} \\;",
            "for f in *; do sed --in-place --regexp-extended --expression='s/\\d/x/' \"$f\"; done",
        ] {
            assert_eq!(told(command).len(), 1, "{command}: {:?}", told(command));
        }
    }

    #[test]
    fn what_is_no_sed_says_nothing() {
        for command in [
            "",
            "cat > f <<'EOF'\nsed -i '' 's/a/b/' f\nEOF",
            "echo f > f",
            "cat f >> f",
            "ls '",
            "a \"b\\",
            "grep '\\d' f",
            "\\",
        ] {
            assert_eq!(told(command), Vec::<String>::new(), "{command}");
        }
        assert_eq!(told(&format!("sed -iE 's/a/b/' {}", "x".repeat(COMMAND_MAX))), Vec::<String>::new());
    }
}
