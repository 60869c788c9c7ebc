//! Git's index and objects, read by the real git and by nothing that a repository may name: its configuration chooses no
//! program here.
//!
//! Only commands that compare no work tree and change nothing are used: `ls-files`, `for-each-ref` and `cat-file`. What
//! they could start all the same (a file system monitor, a pager, a transport for objects that are missing) is switched
//! off; hooks and filters, which they never run, are too.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use cotenant_model::{GitObjects, GitStamp, RelPath, Tracked, WsPath};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// So long git may be silent, in seconds: one that waits for something (a FIFO in place of a file) is ended.
const SILENCE_S: i64 = 10;
/// Bytes of a line that git may say.
const LINE: u64 = 64 * 1024;

/// Settings that win over those of the repository and the user.
const SETTINGS: [&str; 13] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=false",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.alternateRefsCommand=false",
    "credential.helper=",
    "diff.external=",
    "protocol.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
];

/// Variables of our own environment that git gets: where it is and whose settings hold.
const INHERITED: [&str; 3] = ["PATH", "HOME", "XDG_CONFIG_HOME"];

/// Variables that it gets besides.
const ENVIRONMENT: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ASKPASS", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_ALLOW_PROTOCOL", ""),
];

/// Files that git takes in and puts out as they stand, but for line ends: those change the length.
const AS_THEY_STAND: &str = ":(attr:!filter !working-tree-encoding !ident)";

/// The git of this machine, for the repositories of a workspace.
#[derive(Clone, Debug)]
pub struct Git {
    program: PathBuf,
    /// The host path of each allowed folder, by its number.
    folders: Vec<PathBuf>,
}

impl Git {
    /// The first `git` of `path` (as in `PATH`) that does not lie in one of the folders, which are given by their host
    /// paths in the order of their numbers; `None` where there is none.
    pub fn find(path: &OsStr, folders: Vec<PathBuf>) -> Option<Git> {
        let ours = |dir: &PathBuf| !dir.is_absolute() || folders.iter().any(|folder| dir.starts_with(folder));
        let runs = |file: &PathBuf| {
            file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        let mut dirs = std::env::split_paths(path).filter(|dir| !ours(dir));
        let program = dirs.find_map(|dir| Some(dir.join("git")).filter(runs))?;
        Some(Git { program, folders })
    }

    fn host(&self, at: &WsPath) -> Option<PathBuf> {
        let folder = self.folders.get(usize::from(at.folder.0))?;
        Some(if at.path.is_root() {
            folder.clone()
        } else {
            folder.join(OsStr::from_bytes(at.path.as_bytes()))
        })
    }

    /// Starts git in a repository's work tree.
    fn start(&self, repository: &WsPath, arguments: &[&str], input: Vec<u8>) -> Option<Running> {
        let dir = self.host(repository)?;
        let mut command = Command::new(&self.program);
        command.current_dir(&dir).env_clear().envs(environment(&dir));
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(["--no-pager", "--no-optional-locks"]).args(arguments);
        let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let running = Running { child, answer: BufReader::new(Patient { stdout: stdout? }) };
        if let Some(mut stdin) = stdin {
            // Git answers while it is asked. Where it ends early the pipe breaks, and with it the thread.
            std::thread::Builder::new().name("git".to_owned()).spawn(move || stdin.write_all(&input)).ok()?;
        }
        Some(running)
    }

    /// Whether git shows other bytes under an object's name than those it names.
    fn replaces(&self, repository: &WsPath) -> Option<bool> {
        let mut git = self.start(repository, &["for-each-ref", "--count=1", "refs/replace/"], Vec::new())?;
        let mut told = Vec::new();
        (&mut git.answer).take(LINE).read_to_end(&mut told).ok()?;
        git.done().then_some(!told.is_empty())
    }

    /// The bytes of each object; `None` for what is none, or no file's.
    fn sizes(&self, repository: &WsPath, objects: &[&str]) -> Option<Vec<Option<u64>>> {
        let mut sizes = Vec::with_capacity(objects.len());
        let mut git = self.start(repository, &["cat-file", "--batch-check", "--buffer"], lines(objects))?;
        for _ in objects {
            sizes.push(head(&git.line()?));
        }
        git.done().then_some(sizes)
    }
}

impl GitObjects for Git {
    fn tracked(&self, repository: &WsPath) -> Option<Vec<Tracked>> {
        if self.replaces(repository)? {
            return None;
        }
        let arguments = ["ls-files", "-z", "--stage", "--debug", "--", AS_THEY_STAND];
        let mut git = self.start(repository, &arguments, Vec::new())?;
        let mut tracked = Vec::new();
        while let Some(entry) = entry(&mut git.answer, repository).ok()? {
            tracked.extend(entry);
        }
        if !git.done() {
            return None;
        }
        let objects: Vec<&str> = tracked.iter().map(|entry| &*entry.object).collect();
        let sizes = if objects.is_empty() { Vec::new() } else { self.sizes(repository, &objects)? };
        let sized = tracked
            .into_iter()
            .zip(sizes)
            .filter_map(|(entry, bytes)| Some(Tracked { bytes: bytes?, ..entry }));
        Some(sized.collect())
    }

    fn contents(&self, repository: &WsPath, objects: &[&str], each: &mut dyn FnMut(usize, Vec<u8>)) -> bool {
        if objects.is_empty() {
            return true;
        }
        let Some(mut git) = self.start(repository, &["cat-file", "--batch"], lines(objects)) else {
            return false;
        };
        for index in 0..objects.len() {
            let Some(line) = git.line() else { return false };
            // A missing one is one line and no more.
            if line.ends_with(b" missing") {
                continue;
            }
            let Some(bytes) = length(&line).and_then(|bytes| git.exactly(bytes)) else { return false };
            if head(&line).is_some() {
                each(index, bytes);
            }
        }
        git.done()
    }
}

/// The environment that git gets for the repository in `dir`: nothing above is taken for one.
fn environment(dir: &Path) -> Vec<(OsString, OsString)> {
    let inherited = INHERITED.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let ours = ENVIRONMENT.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let ceiling = dir.parent().map(|above| (OsString::from("GIT_CEILING_DIRECTORIES"), above.into()));
    inherited.chain(ours).chain(ceiling).collect()
}

fn lines(objects: &[&str]) -> Vec<u8> {
    objects.iter().flat_map(|object| [object.as_bytes(), b"\n"].concat()).collect()
}

/// The length in a line `NAME TYPE BYTES`.
fn length(line: &[u8]) -> Option<u64> {
    std::str::from_utf8(line.rsplit(|byte| *byte == b' ').next()?).ok()?.parse().ok()
}

/// The length of a file's object.
fn head(line: &[u8]) -> Option<u64> {
    let mut words = line.split(|byte| *byte == b' ').skip(1);
    (words.next() == Some(b"blob")).then(|| length(line)).flatten()
}

/// A git that runs. It is ended when this goes.
struct Running {
    child: Child,
    answer: BufReader<Patient>,
}

impl Running {
    /// The next line.
    fn line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        (&mut self.answer).take(LINE).read_until(b'\n', &mut line).ok()?;
        (line.pop() == Some(b'\n')).then_some(line)
    }

    /// So many bytes and the end of their line.
    fn exactly(&mut self, bytes: u64) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        let all = bytes.checked_add(1)?;
        let read = (&mut self.answer).take(all).read_to_end(&mut content).ok()?;
        (read as u64 == all && content.pop() == Some(b'\n')).then_some(content)
    }

    /// Whether it has said everything and went well.
    fn done(mut self) -> bool {
        let silent = self.answer.fill_buf().is_ok_and(<[u8]>::is_empty);
        silent && self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that ended is only reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What git says, as long as it says something.
struct Patient {
    stdout: ChildStdout,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = Timespec { tv_sec: SILENCE_S, tv_nsec: 0 };
        let mut fds = [PollFd::from_borrowed_fd(self.stdout.as_fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&limit)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => self.stdout.read(buffer),
            Err(error) => Err(error.into()),
        }
    }
}

/// The next entry of `ls-files -z --stage --debug`: `MODE OBJECT STAGE\tPATH`, a 0, and five lines about its stat. At the
/// end `None`; `Some(None)` for what is no plain file. An error where it reads otherwise.
fn entry(answer: &mut impl BufRead, repository: &WsPath) -> io::Result<Option<Option<Tracked>>> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    let mut name = Vec::new();
    if answer.take(LINE).read_until(0, &mut name)? == 0 {
        return Ok(None);
    }
    if name.pop() != Some(0) {
        return Err(wrong());
    }
    let mut seen = GitStamp::default();
    for wanted in ["ctime: ", "mtime: ", "dev: ", "uid: ", "size: "] {
        let mut line = String::new();
        answer.take(LINE).read_line(&mut line)?;
        let rest = line.trim().strip_prefix(wanted).ok_or_else(wrong)?;
        match wanted {
            "ctime: " => seen.ctime_ns = time(rest).ok_or_else(wrong)?,
            "mtime: " => seen.mtime_ns = time(rest).ok_or_else(wrong)?,
            "dev: " => seen.ino = number(rest.split("ino: ").nth(1)).ok_or_else(wrong)?,
            "size: " => seen.size = number(Some(rest)).ok_or_else(wrong)?,
            _ => {}
        }
    }
    let tab = name.iter().position(|byte| *byte == b'\t').ok_or_else(wrong)?;
    let facts = std::str::from_utf8(&name[..tab]).map_err(|_| wrong())?;
    let facts: Vec<&str> = facts.split(' ').collect();
    let [mode, object, stage] = facts[..] else { return Err(wrong()) };
    let mut path = repository.path.as_bytes().to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(&name[tab + 1..]);
    let plain = matches!(mode, "100644" | "100755") && stage == "0";
    let hex = object.len() >= 40 && object.bytes().all(|byte| byte.is_ascii_hexdigit());
    let tracked = RelPath::from_bytes(&path).ok().filter(|_| plain && hex).map(|path| Tracked {
        at: WsPath { folder: repository.folder, path },
        object: object.into(),
        bytes: 0,
        seen,
    });
    Ok(Some(tracked))
}

/// Seconds and nanoseconds, with a colon between them, as nanoseconds.
fn time(text: &str) -> Option<i128> {
    let (seconds, nanos) = text.split_once(':')?;
    Some(seconds.parse::<i128>().ok()? * 1_000_000_000 + nanos.parse::<i128>().ok()?)
}

/// The number that a text begins with.
fn number(text: Option<&str>) -> Option<u32> {
    text?.split(['\t', ' ']).next()?.parse().ok()
}
