//! What a command sees of the machine: the system's directories for reading, the toolchains of the user's home, a home
//! and a `/tmp` of its session's own, and its folders. Nothing else is there, so nothing else can be read or spoken to.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use super::points;

/// Directories at the top that are shown whole, for reading.
const SYSTEM: &[&str] =
    &["usr", "lib", "lib32", "lib64", "libx32", "bin", "sbin", "etc", "opt", "nix", "snap", "gnu", "sys"];
/// Parts of `/var` that ordinary tools read.
const VAR: &[&str] = &[
    "/var/lib/dpkg",
    "/var/lib/gems",
    "/var/lib/ghc",
    "/var/lib/pacman",
    "/var/lib/rpm",
    "/var/cache/fontconfig",
];
/// Device nodes that are there.
pub(crate) const NODES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// What is shown of a home, for reading: toolchains and what they have downloaded, and git's settings. An allow list:
/// keys, tokens and histories have too many names.
const OF_HOME: &str = "
    .asdf .bun .cabal/bin .cabal/packages .cabal/store .cargo/bin .cargo/config .cargo/config.toml
    .cargo/env .cargo/git .cargo/registry .deno .dotnet .fnm .fzf .gem/ruby .ghcup .gitconfig
    .config/git/config .config/git/ignore .config/git/attributes .gradle/caches .gradle/wrapper .jdks
    .juliaup .julia .local/bin .local/lib .local/pipx .local/share/fnm .local/share/mise .local/share/pipx
    .local/share/pnpm .local/share/rtx .local/share/uv .m2/repository .m2/wrapper .mix .nix-profile
    .npm/_cacache .npm-global .nvm .opam .pyenv .rbenv .rustup .rvm .sdkman .stack .swiftly .volta
    .yarn/berry/cache .cache/ms-playwright .cache/pip .cache/pnpm .cache/uv .cache/yarn anaconda3 go/bin
    go/pkg miniconda3 miniforge3 mambaforge";

/// What is never shown, where a served folder itself holds the home.
const SECRETS: &str = "
    .ssh .aws .azure .gnupg .kube .docker .netrc .npmrc .pypirc .git-credentials .config/gh .config/gcloud
    .config/git/credentials .config/op .config/hub .cargo/credentials .cargo/credentials.toml
    .gem/credentials .gradle/gradle.properties .m2/settings.xml .pgpass .my.cnf .password-store
    .local/share/keyrings .mozilla .config/google-chrome .config/chromium .terraform.d .vault-token
    .bash_history .zsh_history .python_history";

/// Environment variables that name a toolchain's directory.
const TOOL_HOMES: &str = "
    RUSTUP_HOME GOROOT GOPATH GOMODCACHE JAVA_HOME PYENV_ROOT VIRTUAL_ENV NVM_DIR CONDA_PREFIX SDKMAN_DIR
    VOLTA_HOME BUN_INSTALL DENO_DIR RBENV_ROOT DOTNET_ROOT ANDROID_HOME ANDROID_SDK_ROOT M2_HOME
    GRADLE_HOME PNPM_HOME ASDF_DATA_DIR MISE_DATA_DIR";

/// What a directory shows at a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shown {
    /// Where the command sees it; absolute.
    pub(crate) to: PathBuf,
    /// What is there; absolute, and no link.
    pub(crate) from: PathBuf,
    /// Whether it is no directory.
    pub(crate) file: bool,
}

/// The view that all commands of a daemon share; each adds its session's directories and its folders.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The directory that becomes the command's root. Nobody but the daemon writes it.
    pub(crate) root: PathBuf,
    /// The user's home, resolved.
    pub(crate) home: PathBuf,
    /// Shown for reading, outermost first.
    pub(crate) readable: Vec<Shown>,
    /// State that no command may see, wherever it lies.
    pub(crate) hidden: Vec<PathBuf>,
}

impl View {
    /// Looks at the machine and builds the root in `root`. `environment` is the daemon's own.
    pub(crate) fn build(
        root: PathBuf,
        hidden: Vec<PathBuf>,
        environment: &[(OsString, OsString)],
    ) -> io::Result<View> {
        points::private_dir(&root)?;
        let home = home(environment);
        let mut readable = top_level(&root)?;
        readable.extend(VAR.iter().filter_map(|path| shown(Path::new(path))));
        readable.extend(words(OF_HOME).filter_map(|path| shown(&home.join(path))));
        readable.extend(toolchains(environment, &home, &readable));
        readable.extend(resolver());
        readable.sort();
        readable.dedup();
        let mut view = View { root, home, readable, hidden };
        view.readable.retain(|shown| !view.hidden.iter().any(|hidden| shown.from.starts_with(hidden)));
        view.furnish()?;
        Ok(view)
    }

    /// Makes the places to mount on that lie in no other mount.
    fn furnish(&mut self) -> io::Result<()> {
        for dir in ["proc", "dev/pts", "dev/shm", "tmp", "var/tmp", "run"] {
            points::private_dir(&self.root.join(dir))?;
        }
        let top = points::open_dir(&self.root)?;
        for node in NODES {
            points::file_beneath(&top, &Path::new("dev").join(node))?;
        }
        let links = [
            ("dev/fd", "/proc/self/fd"),
            ("dev/stdin", "/proc/self/fd/0"),
            ("dev/stdout", "/proc/self/fd/1"),
            ("dev/stderr", "/proc/self/fd/2"),
            ("dev/ptmx", "pts/ptmx"),
            ("var/run", "/run"),
        ];
        for (at, target) in links {
            link(target, &self.root.join(at))?;
        }
        let mut readable = std::mem::take(&mut self.readable);
        let all = readable.clone();
        // What lies inside another has its place there; what no place can be made for is not shown.
        readable.retain(|shown| {
            all.iter().any(|other| other.to != shown.to && shown.to.starts_with(&other.to))
                || self.place(&shown.to, shown.file).is_ok()
        });
        self.readable = readable;
        self.place(&self.home, false)
    }

    /// Makes a place to mount on in the root itself.
    pub(crate) fn place(&self, to: &Path, file: bool) -> io::Result<()> {
        let top = points::open_dir(&self.root)?;
        match file {
            true => points::file_beneath(top, inside(to)),
            false => points::dir_beneath(top, inside(to)),
        }
    }

    /// What of the home is secret, where a folder at `folder` would show it. The state of the daemon is among it.
    pub(crate) fn secrets_in(&self, folder: &Path) -> Vec<Shown> {
        let of_home = words(SECRETS).map(|name| self.home.join(name));
        let all: Vec<PathBuf> =
            of_home.chain(self.hidden.iter().cloned()).filter(|path| path.starts_with(folder)).collect();
        // What lies in another of them is covered with it.
        let outermost = |path: &&PathBuf| !all.iter().any(|other| other != *path && path.starts_with(other));
        all.iter().filter(outermost).filter_map(|path| shown(path)).collect()
    }
}

/// The names of a list.
fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split_ascii_whitespace()
}

/// A path below the command's root.
pub(crate) fn inside(absolute: &Path) -> &Path {
    absolute.strip_prefix("/").unwrap_or(absolute)
}

fn home(environment: &[(OsString, OsString)]) -> PathBuf {
    let named = environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| PathBuf::from(value));
    let usable = named.filter(|home| home.is_absolute() && home.parent().is_some());
    let home = usable.unwrap_or_else(|| PathBuf::from("/nonexistent"));
    home.canonicalize().unwrap_or(home)
}

/// The top of the file system: links as they are, the system's directories.
fn top_level(root: &Path) -> io::Result<Vec<Shown>> {
    let mut readable = Vec::new();
    for name in SYSTEM {
        let path = Path::new("/").join(name);
        match std::fs::read_link(&path) {
            Ok(target) => link(target, &root.join(name))?,
            Err(_) => readable.extend(shown(&path)),
        }
    }
    Ok(readable)
}

/// Makes a link; one that is there already is left.
fn link(target: impl AsRef<Path>, at: &Path) -> io::Result<()> {
    match symlink(target, at) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The path as it is shown, where it is there and no special file.
fn shown(path: &Path) -> Option<Shown> {
    let from = path.canonicalize().ok()?;
    let kind = std::fs::metadata(&from).ok()?;
    (kind.is_dir() || kind.is_file()).then(|| Shown { to: path.to_owned(), from, file: !kind.is_dir() })
}

/// The file that says who is asked for names of the network, where `/etc` only has a link to it. Of what stands beside
/// it, sockets perhaps, nothing is shown.
fn resolver() -> Option<Shown> {
    let file = Path::new("/etc/resolv.conf").canonicalize().ok()?;
    if SYSTEM.iter().any(|name| file.starts_with(Path::new("/").join(name))) {
        return None;
    }
    shown(&file)
}

/// Directories of `PATH` and of toolchains that are not shown yet.
fn toolchains(environment: &[(OsString, OsString)], home: &Path, known: &[Shown]) -> BTreeSet<Shown> {
    let mut found = BTreeSet::new();
    let value = |wanted: &str| environment.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let path = value("PATH").into_iter().flat_map(std::env::split_paths);
    let named = words(TOOL_HOMES).filter_map(value).map(PathBuf::from);
    let cargo = value("CARGO_HOME").map(PathBuf::from);
    let of_cargo = ["bin", "config.toml", "config", "env", "git", "registry"];
    let cargo = cargo.iter().flat_map(|dir| of_cargo.iter().map(|part| dir.join(part)));
    for dir in path.chain(named).chain(cargo) {
        // Of a directory that holds the home, or is it, too much would be shown.
        let plain = dir.is_absolute() && dir.components().all(|part| part != Component::ParentDir);
        let resolved = dir.canonicalize().unwrap_or_default();
        if !plain || home.starts_with(&resolved) || resolved.parent().is_none() {
            continue;
        }
        // The system's own directories are shown as they are, links among them.
        if SYSTEM.iter().any(|name| dir.starts_with(Path::new("/").join(name))) {
            continue;
        }
        if words(SECRETS).any(|secret| resolved.starts_with(home.join(secret))) {
            continue;
        }
        if !known.iter().any(|known| dir.starts_with(&known.to)) {
            found.extend(shown(&dir));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(base: &Path, paths: &[&str]) {
        for path in paths {
            let path = base.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
    }

    fn built(environment: &[(&str, &Path)], hidden: &[PathBuf]) -> (PathBuf, View) {
        let base = cotenant_testkit::fresh_directory(&std::env::temp_dir().canonicalize().unwrap(), "view");
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| (name.into(), base.join(value).into())).collect();
        let hidden = hidden.iter().map(|path| base.join(path)).collect();
        made(&base, &["home/.ssh/id", "home/.cargo/bin/cargo", "home/.cargo/credentials.toml"]);
        made(&base, &["home/.gitconfig", "home/.netrc", "home/tools/bin/x", "state/secret", "sdk/bin/x"]);
        let view = View::build(base.join("view"), hidden, &environment).unwrap();
        (base, view)
    }

    fn sees(view: &View, path: &Path) -> bool {
        view.readable.iter().any(|shown| path.starts_with(&shown.to))
    }

    #[test]
    fn of_a_home_toolchains_are_shown_and_secrets_are_not() {
        let (base, view) = built(&[("HOME", Path::new("home"))], &[]);
        let home = base.join("home");
        assert!(sees(&view, &home.join(".cargo/bin/cargo")) && sees(&view, &home.join(".gitconfig")));
        for secret in [".ssh/id", ".netrc", ".cargo/credentials.toml", "tools/bin/x"] {
            assert!(!sees(&view, &home.join(secret)), "{secret}");
        }
        assert!(sees(&view, Path::new("/usr/bin/env")));
        points::remove(&base);
    }

    #[test]
    fn what_the_path_names_is_shown_but_never_a_home_or_a_key_directory() {
        let (base, view) = built(&[("HOME", Path::new("home")), ("PATH", Path::new("home/tools/bin"))], &[]);
        assert!(sees(&view, &base.join("home/tools/bin/x")));
        points::remove(&base);
        for bad in ["home", "home/.ssh", "."] {
            let (base, view) = built(&[("HOME", Path::new("home")), ("PATH", Path::new(bad))], &[]);
            assert!(!sees(&view, &base.join("home/.ssh/id")), "{bad}");
            points::remove(&base);
        }
    }

    #[test]
    fn a_toolchain_elsewhere_is_shown_and_hidden_state_is_not() {
        let hidden = [PathBuf::from("state")];
        let environment =
            [("HOME", Path::new("home")), ("JAVA_HOME", Path::new("sdk")), ("GOROOT", Path::new("state"))];
        let (base, view) = built(&environment, &hidden);
        assert!(sees(&view, &base.join("sdk/bin/x")));
        assert!(!sees(&view, &base.join("state/secret")));
        points::remove(&base);
    }

    #[test]
    fn a_folder_that_holds_the_home_has_its_secrets_covered() {
        let (base, view) = built(&[("HOME", Path::new("home"))], &[PathBuf::from("home/.ssh")]);
        let covered: Vec<_> = view.secrets_in(&base).into_iter().map(|shown| shown.to).collect();
        assert!(covered.contains(&base.join("home/.ssh")) && covered.contains(&base.join("home/.netrc")));
        assert_eq!(view.secrets_in(&base.join("sdk")), []);
        points::remove(&base);
    }

    #[test]
    fn a_view_is_built_again_over_itself() {
        let (base, view) = built(&[("HOME", Path::new("home"))], &[]);
        let again = View::build(view.root.clone(), Vec::new(), &[]).unwrap();
        assert_eq!(again.home, Path::new("/nonexistent"));
        points::remove(&base);
    }
}
