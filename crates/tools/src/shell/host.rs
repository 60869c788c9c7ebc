//! What commands need of the machine, found out when the first one comes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cotenant_engine::Workspace;
use cotenant_model::{Code, FolderId, GitObjects, Refusal, Settings};
use cotenant_shell::edits::{Environment, Sed};
use cotenant_shell::git::Git;
use cotenant_shell::policy::Rules;
use cotenant_shell::run;
use cotenant_shell::sandbox::{Machine, Surroundings};

/// The machine as commands see it.
pub(crate) struct ShellHost {
    rules: Rules,
    /// Names of variables that commands get beside the usual ones.
    named: Vec<String>,
    machine: OnceLock<Result<Machine, String>>,
    sed: OnceLock<Option<Sed>>,
    git: OnceLock<Option<Arc<Git>>>,
}

impl ShellHost {
    /// With the rules of the settings; refused where an example of one does not hold.
    pub(crate) fn new(settings: &Settings) -> Result<ShellHost, Refusal> {
        let rules = Rules::new(&settings.commands.rules).map_err(|why| {
            Refusal::new(Code::BadInput, format!("cotenant.toml: {why}.")).next("cotenant config check")
        })?;
        Ok(ShellHost {
            rules,
            named: settings.commands.env.clone(),
            machine: OnceLock::new(),
            sed: OnceLock::new(),
            git: OnceLock::new(),
        })
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// What the kernel lets us do here; the error says why nothing can be run.
    pub(crate) fn machine(&self, ws: &Workspace) -> Result<&Machine, String> {
        let probed = self.machine.get_or_init(|| {
            let around = Surroundings {
                scratch: ws.scratch().to_owned(),
                hidden: ws.scratch().parent().map(PathBuf::from).into_iter().collect(),
                environment: own().collect(),
                user_namespaces: true,
            };
            Machine::probe(&around).map_err(|error| error.to_string())
        });
        probed.as_ref().map_err(Clone::clone)
    }

    /// The environment of a command.
    pub(crate) fn environment(&self, given: &[(String, String)]) -> Vec<(String, String)> {
        run::environment(own(), &self.named, given)
    }

    /// What of it decides how an edit is read that needs no shell.
    pub(crate) fn locale(&self) -> Environment {
        Environment::new(self.environment(&[]), run::umask())
    }

    /// The GNU sed of this machine.
    pub(crate) fn sed(&self) -> Option<&Sed> {
        self.sed.get_or_init(|| Sed::find(&path())).as_ref()
    }

    /// The git of this machine, to read objects with.
    pub(crate) fn git(&self, ws: &Workspace) -> Option<Arc<dyn GitObjects>> {
        let found = self.git.get_or_init(|| {
            let folders = ws.tree().folders().len();
            let numbers = (0..folders).filter_map(|index| u16::try_from(index).ok());
            let hosts = numbers.map(|index| ws.tree().host_path(FolderId(index)).to_owned()).collect();
            Git::find(path().as_ref(), hosts).map(Arc::new)
        });
        found.clone().map(|git| git as Arc<dyn GitObjects>)
    }
}

/// The daemon's own environment.
fn own() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

fn path() -> String {
    std::env::var("PATH").unwrap_or_default()
}
