//! The floor: what is refused whatever the rules say, with the rule and the next step; and its neighbours that are not.

use cotenant_shell::policy::Verdict;

use super::{all, judged};

/// Asserts that the floor refuses each line under this rule.
#[track_caller]
fn refused(name: &str, lines: &[&str]) {
    let mut wrong = Vec::new();
    for line in lines {
        match judged(line).verdict {
            Verdict::Deny { rule, why, next, part } if rule == format!("floor: {name}") => {
                assert!(!next.is_empty() && !why.is_empty() && !part.is_empty(), "{line}");
            }
            other => wrong.push(format!("{line}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "not {name}:\n{}", wrong.join("\n"));
}

#[test]
fn deletes_of_what_holds_the_workspace() {
    refused(
        "nothing that holds the workspace",
        &[
            "rm -rf /",
            "rm -fr //",
            "/bin/rm -r -f /",
            "rm --recursive --force /",
            "\\rm -rf /",
            "'rm' -rf /",
            "$'\\x72m' -rf /",
            "rm -rf /home",
            "rm -rf ~",
            "rm -rf ~/",
            "rm -rf \"$HOME\"",
            "rm -rf ${HOME}",
            "rm -rf ..",
            "cd .. && rm -rf .",
            "a=rm; $a -rf /",
            "d=/; rm -rf $d",
            "chmod -R 777 /",
            "chown -R me /",
            "true && (rm -rf /)",
            "ls | xargs rm -rf /",
            "find . -exec rm -rf / \\;",
            "eval 'rm -rf /'",
            "eval rm -rf /",
            "env -S 'rm -rf /'",
            "bash <<E\nrm -rf /\nE",
            "bash <<< 'rm -rf /'",
            "echo $(rm -rf /)",
            "echo \"${x:-`rm -rf /`}\"",
            "cat <<E\n$(rm -rf /)\nE",
            "a[$(rm -rf /)]=1",
            "echo $((1 + $(rm -rf /)))",
            "[[ -n $(rm -rf /) ]]",
            "case $(rm -rf /) in x) ;; esac",
            "for i in $(rm -rf /); do :; done",
            "x=(a $(rm -rf /))",
            "f() { rm -rf /; }; f",
            "coproc rm -rf /",
            "time rm -rf /",
            "! rm -rf /",
            "trap 'rm -rf /' EXIT",
        ],
    );
    refused(
        "not the whole workspace",
        &["rm -rf .", "rm -rf /home/dev/project", "rm -rf /home/dev/project/", "cd src && rm -rf ../"],
    );
    all(
        "ordinary",
        &[
            "rm -rf target",
            "rm -rf ./*",
            "rm -rf src/*",
            "rm -rf /tmp/x",
            "rm -rf \"$PWD/target\"",
            "rm -rf node_modules dist",
        ],
    );
}

#[test]
fn deletes_below_a_variable_that_may_be_empty() {
    refused(
        "nothing below a variable that may be empty",
        &[
            "rm -rf $UNSET/*",
            "rm -rf \"$UNSET\"/x",
            "rm -rf ${BUILD}/out",
            "rm -rf -- $A/",
            "chmod -R u+w $X/y",
            "rm -rf $1/x",
        ],
    );
    all("ask", &["rm -rf \"$W\"", "rm -r $DIR"]);
    all(
        "ordinary",
        &[
            "rm -rf ${BUILD:?}/out",
            "BUILD=out; rm -rf $BUILD/x",
            "for d in a b; do rm -rf \"$d/target\"; done",
            "tmp=$(mktemp -d); ls > \"$tmp/x\"; rm -rf \"$tmp\"",
            "find . -name x | while read -r d; do rm -rf \"$d/y\"; done",
            "rm -f $X/y",
            "clear() { rm -rf \"$1/target\"; }; clear a",
            "rm -rf \"$TMPDIR/x\"",
            "export OUT=dist && rm -rf $OUT/js",
        ],
    );
}

#[test]
fn other_users_disks_shutdown_and_every_process() {
    refused(
        "no other user",
        &[
            "sudo ls",
            "/usr/bin/sudo -n true",
            "su -c ls",
            "doas ls",
            "pkexec ls",
            "echo x | sudo tee f",
            "sh -c 'sudo ls'",
            "nohup sudo ls",
        ],
    );
    refused(
        "no disks",
        &[
            "mkfs /dev/sda",
            "mkfs.ext4 x.img",
            "fdisk -l",
            "parted x",
            "wipefs -a /dev/sda",
            "dd if=/dev/zero of=/dev/sda",
            "dd of=/dev/nvme0n1 if=x",
            "echo x > /dev/sda",
            "cat x >> /dev/sdb1",
            "cp x /dev/sda",
            "tee /dev/mem < x",
        ],
    );
    refused(
        "no shutdown",
        &["shutdown -h now", "reboot", "halt", "poweroff", "init 0", "systemctl poweroff"],
    );
    refused("not every process", &["kill -9 -1", "kill -1", "kill -s TERM -1", "kill -- -1"]);
    all(
        "ordinary",
        &[
            "kill 1234",
            "kill -9 $PID",
            "kill %1",
            "kill -1 1234",
            "dd if=/dev/zero of=big bs=1M count=1",
            "dd if=a of=/dev/null",
            "systemctl status x",
            "make init",
            "pkill -f vite",
        ],
    );
}

#[test]
fn functions_that_start_themselves_again_and_again() {
    refused(
        "fork bomb",
        &[":(){ :|:& };:", "f() { f | f & }; f", "function b { b & b; }; b", "bomb() { bomb | cat; }"],
    );
    all("ordinary", &["f() { g | h; }; f", "walk() { for d in *; do walk; done; }; walk", "f() { ls & }; f"]);
}

#[test]
fn writes_outside() {
    refused(
        "nothing outside",
        &[
            "echo x > /etc/hosts",
            "echo x >> ~/.profile",
            "echo x > ../sibling/f",
            "echo x > /home/dev/project-evil/f",
            "echo x &> /etc/x",
            "echo x >& /etc/x",
            "echo x >| /etc/x",
            ": <> /etc/x",
            "exec 3>/etc/x",
            "{ ls; } > /etc/x",
            "for i in a; do echo; done >> /etc/x",
            "touch ../x",
            "cp a /etc/x",
            "cp -t /etc a",
            "cp --target-directory=/etc a b; cp --target-directory /etc a",
            "mv a /opt/",
            "mv ../a .",
            "ls | tee /etc/x",
            "ln -s a /usr/local/bin/a",
            "install -m 755 a /usr/local/bin",
            "install -d /opt/x",
            "mkdir -p /opt/a/b",
            "rm ../x",
            "truncate -s 0 /var/log/x",
            "sort -o /etc/x a",
            "tar -xf a.tar -C /opt",
            "tar xzf a.tgz -C /opt",
            "tar -czf ../a.tgz .",
            "curl -o /etc/x http://x",
            "sed -i s/a/b/ /etc/hosts",
            "chmod 644 /etc/x",
            "mkfifo /var/x",
            "find / -delete",
            "find /etc -name x -delete",
            "cd /etc && touch x",
            "(cd ..; : > x)",
            "pushd /etc; echo > x",
            "cd src/../.. && touch x",
            "X=/etc; touch $X/y",
            "bash -c 'echo x > /etc/x'",
            "cd /home/dev/outside && touch mark",
        ],
    );
    all(
        "ordinary",
        &[
            "echo x > out.txt",
            "echo x > /tmp/x",
            "mkdir -p /tmp/a && cp f /tmp/a/",
            "cp /etc/hostname .",
            "cp ../other/f .",
            "ln -s /usr/bin/python3 py",
            "ls > /dev/null; make 2> /dev/null",
            "touch /home/dev/.cache/tool/x",
            "tar -C .. -cf a.tar x",
            "tar -tf ../a.tar | tee list",
            "cd ../.. ; make",
            "cd $X && touch y",
            "cd src && touch ../x",
            "curl -o - http://x > y",
            "echo x > /dev/tcp/127.0.0.1/9",
            "ls /etc > list",
            "cp -r /usr/share/x vendor",
            "mv a b",
            "make > log 2>&1",
        ],
    );
}

#[test]
fn writes_to_protected_paths() {
    refused(
        "no protected paths",
        &[
            "echo x > .git/hooks/pre-commit",
            "mv .git .old && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
            "mkdir -p .git/hooks",
            "cd .claude && echo x > settings.json",
            "cd .git/hooks; cat > pre-commit",
            "cp x .GIT/config",
            "touch .env.local",
            "rm -rf .git",
            "rm .git/index.lock",
            "chmod +x .git/hooks/pre-commit",
            "sed -i s/a/b/ .git/config",
            "tee .vscode/settings.json < x",
            "ls > sub/.git/config",
            "rm -rf .git/hooks/*",
            "ln -s x .husky",
            "git init && touch .git/x",
        ],
    );
    all(
        "ordinary",
        &[
            "rm -rf .venv",
            "python3 -m venv .venv",
            "touch .venv/x",
            "git init",
            "echo x > .gitignore",
            "echo x > AGENTS.md",
        ],
    );
}

#[test]
fn settings_of_the_whole_machine() {
    refused(
        "no settings of the whole machine",
        &[
            "git config --global alias.x \"!sh\"",
            "git config --system core.editor vi",
            "git config --global --unset user.name",
            "git config set --global a.b c",
            "git config --global --edit",
        ],
    );
    all(
        "read-only",
        &["git config --global --get user.name", "git config --global --list", "git config user.email"],
    );
    all("ordinary", &["git config user.email a@b.c"]);
}

#[test]
fn the_floor_holds_over_fifty_commands_and_over_ten_thousand_bytes() {
    let many = "ls; ".repeat(60);
    all("deny", &[&format!("{many}sudo ls"), &format!("sudo ls; {many}")]);
    all("deny", &[&format!("echo {}; rm -rf /", "x".repeat(11_000))]);
    all("ask", &[&many, &format!("echo {}", "x".repeat(11_000)), &"ls; ".repeat(51)]);
    all("read-only", &[&"ls; ".repeat(50)]);
}
