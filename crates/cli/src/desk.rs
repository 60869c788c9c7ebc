//! The command line's connection to the daemon of its root.

use std::path::Path;

use cotenant_daemon::{Asking, Client, Homes, Kind, Place, Starter, connect_or_start};
use cotenant_model::Refusal;
use cotenant_tools::host::Hello;
use serde_json::{Map, Value};

/// An open connection.
pub(crate) struct Desk(Client);

impl Desk {
    /// Connects, and starts the daemon where there is none.
    pub(crate) fn open(root: &Path) -> Result<Desk, Refusal> {
        let place = Place::of(root, &Homes::of_user()?)?;
        let asking = Asking { kind: Kind::Admin, hello: Hello::default(), any_build: false };
        connect_or_start(&place, &Starter::default(), &asking).map(Desk)
    }

    /// Asks for an operation.
    pub(crate) fn ask(&mut self, op: &str, args: Map<String, Value>) -> Result<Value, Refusal> {
        self.0.ask(op, args)
    }

    /// Waits until the daemon ends.
    pub(crate) fn wait_end(self) {
        self.0.wait_end();
    }

    /// Asks for an operation without arguments.
    pub(crate) fn plain(&mut self, op: &str) -> Result<Value, Refusal> {
        self.ask(op, Map::new())
    }
}
