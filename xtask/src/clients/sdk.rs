//! The MCP SDK for Python, whose sessions are written in `xtask/clients/sdk.py`.

use super::fetch::Clients;
use super::scene::{Programs, Scene, TOKEN};
use super::{Seen, said};
use crate::{Failure, workspace};

/// Runs the sessions; what failed in them stands in their output.
pub(super) fn run(clients: &Clients, programs: &Programs, scene: &Scene) -> Result<Seen, Failure> {
    let mut python = clients.python();
    python.arg(workspace::root().join("xtask/clients/sdk.py")).arg(&programs.cotenant).arg(scene.root());
    let output = python.args([&scene.server.url, TOKEN]).envs(scene.places()).output()?;
    let (passed, all) = figures(&String::from_utf8_lossy(&output.stdout)).unwrap_or_default();
    let good = output.status.success() && passed == all;
    Ok(Seen {
        client: "Python SDK, stdio and HTTP, both eras".into(),
        passed,
        all,
        note: String::new(),
        wrong: if good { String::new() } else { said(&output) },
    })
}

/// `PASSED of ALL` in the last line.
fn figures(text: &str) -> Option<(usize, usize)> {
    let (passed, all) = text.trim_end().lines().last()?.split_once(" of ")?;
    Some((passed.parse().ok()?, all.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_the_last_line() {
        assert_eq!(figures("stdio: an edit lands: no\n52 of 53\n"), Some((52, 53)));
        assert_eq!(figures("Traceback\n"), None);
        assert_eq!(figures(""), None);
    }
}
