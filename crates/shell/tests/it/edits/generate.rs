//! Command lines and workspaces by a grammar: what agents write, and what is next to it.
//!
//! Every path is relative and inside the workspace; nothing that is generated reaches further.

use cotenant_testkit::Dice;

use super::tree::{Item, Tree};

/// A workspace and a command for it.
pub(super) struct Pair {
    pub(super) tree: Tree,
    pub(super) command: String,
}

pub(super) fn pair(dice: &mut Dice) -> Pair {
    Pair { tree: tree(dice), command: line(dice) }
}

pub(super) fn pick<'a, T: ?Sized>(dice: &mut Dice, of: &[&'a T]) -> &'a T {
    of[usize::try_from(dice.below(of.len() as u64)).unwrap()]
}

fn one_in(dice: &mut Dice, chances: u64) -> bool {
    dice.below(chances) == 0
}

fn tree(dice: &mut Dice) -> Tree {
    let mode = |dice: &mut Dice| {
        [0o644, 0o600, 0o755, 0o664, 0o444, 0o4755][usize::try_from(dice.below(6)).unwrap()]
    };
    let plain = |dice: &mut Dice| if one_in(dice, 4) { mode(dice) } else { 0o644 };
    let mut tree =
        Tree::from([("d", Item::Dir(0o755)), ("sub", Item::Dir(0o755)), ("ln", Item::Link("f".to_owned()))]);
    for path in ["f", "g", "a b", "é", "sub/h", "sub/f", "sub/a b"] {
        if !one_in(dice, 30) {
            let item = Item::file(content(dice)).with_mode(plain(dice));
            tree.0.insert(path.to_owned(), item);
        }
    }
    if one_in(dice, 8) {
        let twin = Item::File { bytes: content(dice), mode: 0o644, links: 2 };
        tree.0.extend([("h1".to_owned(), twin.clone()), ("h2".to_owned(), twin)]);
    }
    tree
}

fn content(dice: &mut Dice) -> Vec<u8> {
    let pieces: [&[u8]; 20] = [
        b"foo",
        b"bar",
        b"a",
        b"b",
        b"ab",
        b"l1",
        b"l2",
        b"x=1",
        b" ",
        b"  ",
        b"\t",
        b".",
        b"/",
        b"\\",
        "é".as_bytes(),
        "€".as_bytes(),
        "😀".as_bytes(),
        b"\xff",
        b"\xc3",
        b"\0",
    ];
    let mut bytes = Vec::new();
    if one_in(dice, 20) {
        bytes.extend_from_slice("\u{feff}".as_bytes());
    }
    let most = if one_in(dice, 10) { 40 } else { 6 };
    let crlf = one_in(dice, 8);
    for _ in 0..dice.below(most + 1) {
        for _ in 0..dice.below(6) {
            // Bytes that are no text are rare.
            let kinds = if one_in(dice, 6) { 20 } else { 15 };
            bytes.extend_from_slice(pieces[usize::try_from(dice.below(kinds)).unwrap()]);
        }
        bytes.extend_from_slice(if crlf { b"\r\n" } else { b"\n" });
    }
    if one_in(dice, 4) {
        bytes.pop();
    }
    bytes
}

/// One to four commands.
fn line(dice: &mut Dice) -> String {
    let mut line = String::new();
    if one_in(dice, 20) {
        line.push_str("# change it\n");
    }
    if one_in(dice, 5) {
        let usual = ["cd sub && ", "cd . && ", "cd ./sub; ", "cd sub\n"];
        line.push_str(mostly(
            dice,
            10,
            &usual,
            &["cd d && ", "cd nowhere && ", "mkdir -p d/n && cd d/n && "],
        ));
    }
    let count = if one_in(dice, 3) { 1 + dice.below(3) } else { 1 };
    // Here-documents end their line, so what they belong to comes last on it.
    for left in (0..count).rev() {
        let command = command(dice);
        let document = command.contains('\n') && command.contains("<<");
        line.push_str(&command);
        if left > 0 {
            line.push_str(if document {
                "\n"
            } else {
                pick(dice, &[" && ", "&&", " && ", "; ", "\n", " &&\n  ", " \\\n && "])
            });
        }
    }
    if one_in(dice, 10) && !line.ends_with('\n') && !line.contains("<<") {
        line.push_str(pick(dice, &["\n", "  ", ";", " # done", " ;\n"]));
    }
    line
}

fn command(dice: &mut Dice) -> String {
    match dice.below(20) {
        0..=10 => sed(dice),
        11..=12 => document(dice),
        13 => echo(dice),
        14 => format!("{}> {}", pick(dice, &[": ", "", "true ", ":"]), target(dice)),
        15 => format!("rm {}{}", pick(dice, &["", "-f ", "-f -- ", "-- "]), files(dice, 1)),
        16 => format!(
            "{} {}",
            mostly(dice, 12, &["mv", "cp", "mv -f", "cp"], &["cp -p", "mv -n"]),
            files(dice, 2)
        ),
        17 => format!(
            "mkdir {}",
            mostly(
                dice,
                6,
                &["-p d/x/y", "n", "-p n sub", "-p ./n//m/", "'n m'"],
                &["d", "-p f/x", "n/m", "-p ln"]
            )
        ),
        18 => {
            format!("touch {}", mostly(dice, 8, &["n", "./n", "n1 n2", "é2"], &["f", "nodir/n", "d/", "n/n"]))
        }
        _ => format!(
            "truncate -s {} {}",
            mostly(dice, 10, &["0", "5", "100", "007"], &["1K", "+1"]),
            target(dice)
        ),
    }
}

fn target(dice: &mut Dice) -> &'static str {
    let awkward = ["d", "nodir/n", "h1", "ln", "sub", "d/"];
    let usual = ["f", "f", "g", "n", "sub/h", "sub/n", "'a b'", "a\\ b", "é", "./f", "\"n\""];
    mostly(dice, 12, &usual, &awkward)
}

/// One of `usual`, and one time in `chances` one of `awkward`.
fn mostly<'a>(dice: &mut Dice, chances: u64, usual: &[&'a str], awkward: &[&'a str]) -> &'a str {
    if one_in(dice, chances) { pick(dice, awkward) } else { pick(dice, usual) }
}

fn files(dice: &mut Dice, least: u64) -> String {
    let count = least + if one_in(dice, 5) { dice.below(2) } else { 0 };
    let names: Vec<&str> = (0..count).map(|_| target(dice)).collect();
    names.join(" ")
}

fn echo(dice: &mut Dice) -> String {
    let usual = ["x", "'x  y'", "\"it's\" a", "", "é €", "a \"\" b", "\"$\" x", "done,  now", "'*' \"?\""];
    let text = mostly(dice, 10, &usual, &["-n x", "'a\\nb'", "-e x"]);
    match dice.below(5) {
        0 => format!("echo {text}"),
        at => format!("echo {text} {} {}", if at == 1 { ">>" } else { ">" }, target(dice)),
    }
}

fn document(dice: &mut Dice) -> String {
    let body = pick(
        dice,
        &[
            "a line\n",
            "",
            "two\nlines\n",
            "\ttab\n\t\ttwo\n",
            "it's \"q\" # c\n\n",
            "é\n EOF\nEOFx\n",
            "* ? [a] {b} ~ !\n",
        ],
    );
    let body = if one_in(dice, 10) { "a $x `y` \\n\n" } else { body };
    let (open, close) = *pick(
        dice,
        &[
            &("<<'EOF'", "EOF"),
            &("<< \"EOF\"", "EOF"),
            &("<<EOF", "EOF"),
            &("<<-'EOF'", "\tEOF"),
            &("<<\\END", "END"),
            &("<<-EOF", "EOF"),
        ],
    );
    let at = target(dice);
    let head = match dice.below(8) {
        0 => format!("cat {open} > {at}"),
        1 => format!("cat >> {at} {open}"),
        2 => format!("tee {at} {open}"),
        3 => format!("tee {at} g >/dev/null {open}"),
        4 => format!("tee -a {at} > /dev/null {open}"),
        5 => format!("cat >{at} {open} && echo written"),
        _ => format!("cat > {at} {open}"),
    };
    format!("{head}\n{body}{close}\n")
}

fn sed(dice: &mut Dice) -> String {
    let extended = one_in(dice, 3);
    let flags = if extended {
        pick(dice, &["-i -E", "-E -i", "-i -r", "-Ei", "--in-place --regexp-extended", "-i.bak -E"])
    } else {
        let usual =
            ["-i", "-i", "-i", "--in-place", "-i.bak", "-i -s", "-u -i", "-n -i", "-z -i", "'--in-place=~'"];
        mostly(dice, 30, &usual, &["-iE", "-i --posix", "-in", "-i -l 3"])
    };
    let script = script(dice, extended);
    let script = match dice.below(6) {
        0 => format!("-e {}", quoted(dice, &script)),
        1 => {
            let (one, two) = (quoted(dice, &script), quoted(dice, "s/a/b/"));
            format!("-e {one} {}{two}", pick(dice, &["-e ", "-e", "--expression="]))
        }
        2 => format!("--expression={}", quoted(dice, &script)),
        _ => quoted(dice, &script),
    };
    let files = match dice.below(8) {
        0 => mostly(dice, 6, &["f g", "f ./é", "'a b' f", "f f"], &["f nowhere", "h1 f"]),
        _ => mostly(
            dice,
            20,
            &["f", "f", "g", "'a b'", "a\\ b", "é", "./f", "-- f"],
            &["d", "h1", "nowhere", "sub/h"],
        ),
    };
    format!("sed {flags} {script} {files}")
}

/// A script as an agent would quote it.
fn quoted(dice: &mut Dice, script: &str) -> String {
    let single = format!("'{}'", script.replace('\'', "'\\''"));
    if one_in(dice, 4) && !script.contains(['!', '`']) {
        let escaped = script
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('$', if one_in(dice, 8) { "$" } else { "\\$" });
        return format!("\"{escaped}\"");
    }
    let safe = |ch: char| ch.is_ascii_alphanumeric() || "/.,:=+-@%_".contains(ch);
    if one_in(dice, 4) && script.chars().all(safe) { script.to_owned() } else { single }
}

fn script(dice: &mut Dice, extended: bool) -> String {
    let mut parts = Vec::new();
    for _ in 0..=(if one_in(dice, 4) { dice.below(3) } else { 0 }) {
        parts.push(part(dice, extended));
    }
    if one_in(dice, 15) {
        let idiom = pick(
            dice,
            &[
                ":a;N;$!ba;s/\\n/,/g",
                "$!N;P;D",
                "n;d",
                "G",
                "$!{h;d};x;G",
                "1h;2x",
                "2q",
                "=",
                "/a/{n;s/b/c/}",
                "x;1d;p",
            ],
        );
        return idiom.to_owned();
    }
    parts.join(pick(dice, &[";", "\n", " ; "]))
}

fn part(dice: &mut Dice, extended: bool) -> String {
    let address = if one_in(dice, 2) { String::new() } else { address(dice, extended) };
    let bang = if !address.is_empty() && one_in(dice, 8) { "!" } else { "" };
    let command = match dice.below(14) {
        0 => "d".to_owned(),
        1 => "p".to_owned(),
        2 => {
            let usual = ["a new", "a\\  new", "i before; p", "c\\\nchanged\\\ntwo", "i\\\\tx"];
            mostly(dice, 10, &usual, &["a\\", "$ a x", "a"]).to_owned()
        }
        3 => mostly(dice, 8, &["y/abc/xyz/", "y/a\\/b/x-y/", "y,a\\,b,x-y,"], &["y/é/e/", "y/ab/c/"])
            .to_owned(),
        4 => format!("{{{};{}}}", substitute(dice, extended), pick(dice, &["d", "p", "s/a/b/", "{p}"])),
        5 if one_in(dice, 6) => pick(dice, &["e date", "w out", "F", "l", "k", "r f", "q5"]).to_owned(),
        _ => substitute(dice, extended),
    };
    format!("{address}{bang}{command}")
}

fn address(dice: &mut Dice, extended: bool) -> String {
    let one = |dice: &mut Dice| match dice.below(5) {
        0 => format!("/{}/{}", pattern(dice, extended, '/'), pick(dice, &["", "", "I"])),
        1 => format!("\\,{},", pattern(dice, extended, ',')),
        2 => pick(dice, &["$", "1~2", "2~0", "0~3", "99"]).to_owned(),
        _ => (1 + dice.below(4)).to_string(),
    };
    let first = one(dice);
    match dice.below(5) {
        0 => format!("{first},{}", one(dice)),
        1 => format!("{first}{}", pick(dice, &[",+1", ",~2", ", $", ",$", " "])),
        2 if one_in(dice, 4) => format!("0,/{}/", pattern(dice, extended, '/')),
        _ => first,
    }
}

fn substitute(dice: &mut Dice, extended: bool) -> String {
    let delimiter = *pick(dice, &[&'/', &'/', &'/', &'|', &',', &'#', &'.']);
    let pattern = pattern(dice, extended, delimiter);
    let replacement = replacement(dice, delimiter, pattern.contains('('));
    let usual = ["", "", "g", "g", "2", "2g", "I", "gI", "p", "gp", "3", "2 g"];
    let flags = mostly(dice, 40, &usual, &["M", "gg", "w o", "e", "0"]);
    format!("s{delimiter}{pattern}{delimiter}{replacement}{delimiter}{flags}")
}

fn pattern(dice: &mut Dice, extended: bool, delimiter: char) -> String {
    let atoms = [
        "a",
        "b",
        "foo",
        "bar",
        ".",
        "[ab]",
        "[^a]",
        "[a-z]",
        "[[:space:]]",
        "[[:alpha:]]",
        "[]a]",
        "[\\n\\t]",
        "é",
        "€",
        "\\t",
        "\\.",
        "\\w",
        "\\W",
        "\\s",
        "\\bf",
        "\\<b",
        "o\\>",
        "x=",
        "\\n",
        "[.]",
        "\\x41",
        "\\d065",
        "\"",
        "'",
        " ",
        "\\\\",
    ];
    let mut text = String::new();
    if one_in(dice, 5) {
        text.push('^');
    }
    for _ in 0..=dice.below(3) {
        let atom = match dice.below(12) {
            0 if extended => format!("({}|{})", pick(dice, &atoms), pick(dice, &atoms)),
            0 => format!("\\({}\\)", pick(dice, &atoms)),
            1 => format!("\\{delimiter}"),
            2 if one_in(dice, 3) => format!("[{delimiter}]"),
            _ => pick(dice, &atoms).to_owned(),
        };
        text.push_str(&atom.replace(if atom.starts_with(['\\', '[']) { '\0' } else { delimiter }, ""));
        if one_in(dice, 3) {
            let signs: &[&str] = if extended {
                &["*", "+", "?", "{1,2}", "{2}", "*?"]
            } else {
                &["*", "\\+", "\\?", "\\{1,2\\}", "+"]
            };
            text.push_str(pick(dice, signs));
        }
    }
    if one_in(dice, 6) {
        text.push('$');
    }
    if one_in(dice, 80) { String::new() } else { text }
}

fn replacement(dice: &mut Dice, delimiter: char, groups: bool) -> String {
    let pieces = [
        "X", "yy", "&", "[&]", "\\&", "\\1", "\\n", "\\t", "\\U&", "\\u&", "\\L&\\E!", "é", "$x", "a b",
        "\\\n", "\\x26", "'", "\"", "\\q",
    ];
    let mut text = String::new();
    for _ in 0..dice.below(3) {
        let piece = pick(dice, &pieces);
        text.push_str(if piece == "\\1" && !groups && !one_in(dice, 10) { "1" } else { piece });
    }
    if one_in(dice, 10) {
        text.push('\\');
        text.push(delimiter);
    }
    text
}
