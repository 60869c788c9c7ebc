//! A command in, what it leaves out: one line for each, and real bash leaves the same.

use std::process::{Command, Stdio};

use cotenant_model::{Effects, EntryKind, State};
use cotenant_shell::edits::{Simulated, recognise};

use super::tree::{Item, Tree};
use super::{carried, utf8};

fn workspace() -> Tree {
    Tree::from([
        ("a", Item::file("one\ntwo\n")),
        ("b c", Item::file("spaced\n")),
        ("d", Item::Dir(0o755)),
        ("d/e", Item::file("deep\n")),
        ("d/sub", Item::Dir(0o755)),
        ("run", Item::file("#!/bin/sh\n").with_mode(0o755)),
        ("l", Item::Link("a".to_owned())),
        ("ld", Item::Link("d".to_owned())),
        ("gone", Item::Link("nowhere".to_owned())),
        ("empty", Item::file("")),
        ("bare", Item::file("no end")),
    ])
}

/// `path=text`, `path -`, `path/`, `path>target`, with a mode where one is said.
fn words(effects: &Effects) -> String {
    let word = |(at, becomes): (&_, &cotenant_model::Becomes)| {
        let at: &cotenant_model::WsPath = at;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\n', "|");
        match &becomes.state {
            State::Absent => format!("{} -", at.path),
            State::Dir { .. } => format!("{}/", at.path),
            State::Entry(body) if body.kind == EntryKind::Link => {
                format!("{}>{}", at.path, text(&body.content))
            }
            State::Entry(body) => {
                let mode = body.mode.map(|mode| format!(" {mode:o}")).unwrap_or_default();
                format!("{}={}{mode}", at.path, text(&body.content))
            }
        }
    };
    effects.iter().map(word).collect::<Vec<_>>().join("; ")
}

#[rustfmt::skip]
const TABLE: &[(&str, &str)] = &[
    // Here-documents.
    ("cat > n <<'E'\nx $y `z`\nE", "n=x $y `z`|"),
    ("cat > n <<\"E\"\n\\n\nE", "n=\\n|"),
    ("cat <<'E' > n\nx\nE", "n=x|"),
    ("cat >> a <<'E'\nthree\nE", "a=one|two|three|"),
    ("cat > a <<'E'\nE", "a="),
    ("cat > 'b c' <<'EOF'\n\ttab\nEOF", "b c=\ttab|"),
    ("cat > n <<-'E'\n\tx\n\t\ty\n\tE", "n=x|y|"),
    ("cat >> n <<'E'\nnew\nE", "n=new|"),
    ("cat >> bare <<'E'\nx\nE", "bare=no endx|"),
    ("cat > n <<'E' && cat > m <<'F'\n1\nE\n2\nF", "m=2|; n=1|"),
    // Redirections of nothing, and of a line.
    ("> n", "n="), (": > a", "a="), ("true > n", "n="), (">> n", "n="),
    ("echo x > n", "n=x|"), ("echo > n", "n=|"), ("echo x y  z > n", "n=x y z|"), ("echo 'x  y' >> a", "a=one|two|x  y|"),
    ("echo \"it's\" > n", "n=it's|"), ("echo x >> n; echo y >> n", "n=x|y|"), ("echo x > l", "a=x|"),
    ("echo x > ld/n", "d/n=x|"), ("echo x > run", "run=x|"), ("echo x > \"b c\"", "b c=x|"), ("echo x > d/./n", "d/n=x|"),
    // tee.
    ("tee n <<'E'\nx\nE", "n=x|"), ("tee n m > /dev/null <<'E'\nx\nE", "m=x|; n=x|"), ("tee -a a <<'E'\nx\nE", "a=one|two|x|"),
    ("tee --append a n <<'E'\nx\nE", "a=one|two|x|; n=x|"),
    // truncate and touch.
    ("truncate -s 0 a", "a="), ("truncate -s 3 a", "a=one"), ("truncate -s3 n", "n=\0\0\0"), ("truncate --size=0 a empty", "a="),
    ("truncate --size 1 a", "a=o"), ("touch n", "n="), ("touch n m d/k", "d/k=; m=; n="), ("touch -- -n", "-n="), ("touch nowhere; rm nowhere", ""),
    // mkdir.
    ("mkdir n", "n/"), ("mkdir -p n/m/k", "n/; n/m/; n/m/k/"), ("mkdir -p d", ""), ("mkdir -p d/sub/n d/x", "d/sub/n/; d/x/"),
    ("mkdir n n/m", "n/; n/m/"), ("mkdir -p ld/n", "d/n/"), ("mkdir --parents n && echo x > n/m", "n/; n/m=x|"),
    // rm.
    ("rm a", "a -"), ("rm -f a zzz", "a -"), ("rm l", "l -"), ("rm gone", "gone -"), ("rm d/e ld", "d/e -; ld -"), ("rm 'b c'", "b c -"),
    ("rm -- a", "a -"), ("rm --force zzz", ""), ("rm ld/e", "d/e -"),
    // mv.
    ("mv a n", "a -; n=one|two| 644"), ("mv a d", "a -; d/a=one|two| 644"), ("mv a run d/", "a -; d/a=one|two| 644; d/run=#!/bin/sh| 755; run -"),
    ("mv -f a empty", "a -; empty=one|two|"), ("mv run a", "a=#!/bin/sh| 755; run -"), ("mv l m", "l -; m>a"), ("mv d/e .", "d/e -; e=deep| 644"),
    ("mv a n && mv n a", ""), ("mv a ld", "a -; d/a=one|two| 644"), ("mv gone n", "gone -; n>nowhere"), ("mv a l2 && rm l", "a -; l -; l2=one|two| 644"),
    ("mv -- a n && mv empty a", "a=; empty -; n=one|two| 644"), ("mv a 'b c'", "a -; b c=one|two|"),
    // cp.
    ("cp a n", "n=one|two| 644"), ("cp run n", "n=#!/bin/sh| 755"), ("cp a run", "run=one|two|"), ("cp l n", "n=one|two| 644"),
    ("cp a empty d", "d/a=one|two| 644; d/empty= 644"), ("cp -f a d/e", "d/e=one|two|"), ("cp a ld/n", "d/n=one|two| 644"), ("cp bare a && rm bare", "a=no end; bare -"),
    // sed.
    ("sed -i s/one/1/ a", "a=1|two|"), ("sed -i '/two/d' a", "a=one|"), ("sed -i -e 1d -e 's/t/T/' a", "a=Two|"), ("sed -i 's/x/y/' a", ""),
    ("sed -i '$a x' bare", "bare=no end|x|"), ("sed -i.o 1d a", "a=two|; a.o=one|two| 644"), ("sed -i 's/e/E/g' a 'b c'", "a=onE|two|; b c=spacEd|"),
    // Chains.
    ("cd d && echo x > n", "d/n=x|"), ("cd d; rm e; cd sub && touch k", "d/e -; d/sub/k="), ("cd d && cd .. && touch n", "?"),
    ("mkdir n && cd n && cp ../a k", "?"), ("echo x > n && rm n", ""), ("touch n && mv n m && echo y > m", "m=y|"),
    ("cp a n && sed -i 1d n && mv n a", "a=two|"), ("rm a && echo new > a", "a=new|"), ("echo 1 > n; echo 2 > n; echo 3 >> n", "n=2|3|"),
    ("rm a && mkdir a && touch a/n", "a/; a/n="), ("mkdir n; touch n/m; rm n/m", "n/"), ("mv a n\nmv empty a\nmv n empty", "a=; empty=one|two|"),
];

/// What bash leaves of the same tree.
fn by_bash(command: &str) -> Tree {
    let directory = cotenant_testkit::fresh_directory(&std::env::temp_dir(), "table");
    let root = directory.join("root");
    std::fs::create_dir(&root).unwrap();
    workspace().put(&root);
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("umask 022; {command}")]).current_dir(&root).env("LC_ALL", "C.UTF-8");
    let output = bash.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let left = Tree::read(&root);
    std::fs::remove_dir_all(directory).unwrap();
    left
}

#[test]
fn each_command_leaves_what_the_table_says_and_what_bash_leaves() {
    let mut wrong = Vec::new();
    for (command, expected) in TABLE {
        let found = match carried(command, &workspace()) {
            Simulated::Done(outcome) => {
                assert_eq!(workspace().after(&outcome.effects, 0o022), by_bash(command), "{command}");
                words(&outcome.effects)
            }
            // `?`: to leave it to the shell is as right.
            Simulated::Shell { .. } => "?".to_owned(),
            other => panic!("{command}: {other:?}"),
        };
        if found != *expected {
            wrong.push(format!("{command}: {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_form_next_to_it_is_left_to_the_shell_by_its_words_alone() {
    #[rustfmt::skip]
    let lines = [
        // Expansions, and documents in which something is expanded.
        "cat > n <<E\n$x\nE", "cat > n <<E\n`x`\nE", "echo $x > n", "echo \"$(x)\" > n", "echo * > n", "echo ~ > n", "echo {a,b} > n", "echo x > $n", "echo x > *",
        // Options that change what is done or said.
        "rm -r d", "rm -rf d", "rm -i a", "rm -v a", "rm -d d", "rm a -f", "mv -n a b", "mv -t d a", "mv -u a b", "mv -b a b", "mv -v a b", "mv -T a b",
        "cp -r d n", "cp -a a n", "cp -p a n", "cp -l a n", "cp -s a n", "cp -n a n", "cp -t d a", "cp -u a n", "cp a", "mv a",
        "mkdir -m 700 n", "mkdir -pv n", "mkdir -v n", "mkdir", "touch -d now a", "touch -c a", "touch -r a n", "touch -t 01010101 n", "touch",
        "truncate -s +1 a", "truncate -s -1 a", "truncate -s 1K a", "truncate -s %2 a", "truncate -r a n", "truncate -c -s 0 a", "truncate a", "truncate -s 99999999999999999999 a", "truncate -s 20000000 a",
        "tee -i n <<'E'\nE", "tee <<'E'\nE", "tee n < a", "echo x | tee n", "tee n > m <<'E'\nE", "tee - <<'E'\nE",
        "echo -n x > n", "echo -e x > n", "echo 'a\\nb' > n", "printf x > n", "cat a > n", "cat a b > n", "cat - > n <<'E'\nE",
        // sed that does more than edit.
        "sed -i 's/a/b/w x' a", "sed -i 'e ls' a", "sed -i 's/a/b/e' a", "sed -i 'r x' a", "sed -i -f x a", "sed -i --follow-symlinks 1d a", "sed 1d a", "sed -n p a > n", "sed -i 1d", "sed -i 'F' a", "sed -i 'l' a",
        // Other redirections and joints.
        "echo x 2> n", "echo x &> n", "echo x >| n", "echo x > n 2>&1", "echo x > n > m", "echo x <> n", "cat > n < a", "cat > n <<< x", "rm a || true", "rm a | cat", "rm a &", "! rm a", "(rm a)", "{ rm a; }",
        "X=1 rm a", "X=1", "if rm a; then touch n; fi", "for i in a; do rm a; done", "command rm a", "/bin/rm a", "sudo rm a", "env rm a", "time rm a", "exec rm a", "eval 'rm a'", "cd", "cd -", "cd a b", "cd -P d",
        // Nothing is written.
        "cd d", "echo x", "true", ":", "", "  ", "# rm a", "ls", "pwd",
        // Read in two ways, or not at all.
        "rm 'a", "rm \"a", "rm a\\", "cat > n <<'E'\nx", "rm a;; rm b", "rm a && ", "&& rm a", "rm a\r", "rm a\0b", "rm a\u{a0}b\u{202e}\0",
    ];
    let taken: Vec<&str> = lines.into_iter().filter(|line| recognise(line, &utf8()).is_some()).collect();
    assert_eq!(taken, Vec::<&str>::new());
}
