//! The environment of a command: made anew from a list of names, never inherited.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// What is taken over from the daemon's own environment.
const TAKEN: &str = "
    PATH HOME LANG LANGUAGE TZ USER LOGNAME SHELL CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN GOROOT GOPATH
    GOMODCACHE GOFLAGS JAVA_HOME M2_HOME MAVEN_HOME GRADLE_HOME PYENV_ROOT VIRTUAL_ENV CONDA_PREFIX
    CONDA_DEFAULT_ENV NVM_DIR NVM_BIN VOLTA_HOME BUN_INSTALL PNPM_HOME DENO_DIR RBENV_ROOT GEM_HOME
    GEM_PATH DOTNET_ROOT SDKMAN_DIR ANDROID_HOME ANDROID_SDK_ROOT ASDF_DATA_DIR MISE_DATA_DIR NIX_PATH
    NIX_PROFILES SSL_CERT_FILE SSL_CERT_DIR PKG_CONFIG_PATH MANPATH XDG_DATA_DIRS";
/// And by how their names begin.
const TAKEN_PREFIXES: &[&str] = &["LC_"];

/// What is set whatever the daemon has, so that nothing waits for a human, and reading a repository writes nothing.
const SET: &str = "
    TERM=dumb PAGER=cat GIT_PAGER=cat MANPAGER=cat SYSTEMD_PAGER=cat EDITOR=true VISUAL=true
    GIT_EDITOR=true GIT_SEQUENCE_EDITOR=true GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 GIT_ASKPASS=true
    SSH_ASKPASS=true DEBIAN_FRONTEND=noninteractive PIP_NO_INPUT=1 NPM_CONFIG_UPDATE_NOTIFIER=false";

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Names and values for [`Request::env`](super::Request::env). `own` is the daemon's environment, `named` what the
/// settings add to the list of names, `given` what the call itself sets, which goes before everything. What is not
/// UTF-8, and what no shell could set, is left out.
pub fn environment(
    own: impl IntoIterator<Item = (OsString, OsString)>,
    named: &[String],
    given: &[(String, String)],
) -> Vec<(String, String)> {
    let taken = |name: &str| {
        TAKEN.split_ascii_whitespace().any(|taken| taken == name)
            || TAKEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || named.iter().any(|wanted| wanted == name)
    };
    let own = own
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut all: BTreeMap<String, String> = own.filter(|(name, _)| taken(name)).collect();
    all.entry("PATH".to_owned()).or_insert_with(|| PATH.to_owned());
    all.entry("LANG".to_owned()).or_insert_with(|| "C.UTF-8".to_owned());
    let set = SET.split_ascii_whitespace().filter_map(|pair| pair.split_once('='));
    all.extend(set.map(|(name, value)| (name.to_owned(), value.to_owned())));
    all.extend(given.iter().cloned());
    all.retain(|name, value| !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0'));
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn made(own: &[(&str, &str)], named: &[&str], given: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = own.iter().map(|(name, value)| (name.into(), value.into()));
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let given: Vec<_> = given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        environment(own, &named, &given).into_iter().collect()
    }

    #[test]
    fn only_listed_names_are_taken() {
        let own = [("HOME", "/h"), ("AWS_SECRET_ACCESS_KEY", "s"), ("SSH_AUTH_SOCK", "/s"), ("LC_ALL", "C")];
        let made = made(&own, &[], &[]);
        assert_eq!(made["HOME"], "/h");
        assert_eq!(made["LC_ALL"], "C");
        assert!(!made.contains_key("AWS_SECRET_ACCESS_KEY") && !made.contains_key("SSH_AUTH_SOCK"));
        assert_eq!((made["PAGER"].as_str(), made["TERM"].as_str()), ("cat", "dumb"));
        assert_eq!(made["PATH"], PATH);
    }

    #[test]
    fn settings_add_names_and_the_call_has_the_last_word() {
        let made = made(
            &[("API_URL", "u"), ("TERM", "xterm")],
            &["API_URL", "TERM"],
            &[("PAGER", "less"), ("X", "1")],
        );
        assert_eq!(made["API_URL"], "u");
        assert_eq!(made["TERM"], "dumb");
        assert_eq!((made["PAGER"].as_str(), made["X"].as_str()), ("less", "1"));
    }

    #[test]
    fn what_no_environment_can_hold_is_left_out() {
        let made = made(&[], &[], &[("", "x"), ("A=B", "x"), ("A\0", "x"), ("B", "x\0"), ("C", "")]);
        assert_eq!(made.keys().filter(|name| name.len() < 2).collect::<Vec<_>>(), ["C"]);
        let odd = (OsString::from("HOME"), OsString::from_vec(vec![0xff]));
        assert!(!environment([odd], &[], &[]).iter().any(|(name, _)| name == "HOME"));
    }
}
