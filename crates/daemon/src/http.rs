//! The HTTP door: open while someone keeps it open, or always where the settings say where to listen.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cotenant_mcp::http::{Access, Doors, serve};
use cotenant_model::{Code, Refusal, Settings};
use cotenant_tools::host::Host;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

/// Where it listens unless told otherwise: on a port that is free.
const ANY_PORT: &str = "127.0.0.1:0";

/// How long requests may take to their end once it closes.
const FINISH: Duration = Duration::from_secs(52);

/// The agent of a token that was made for an opening.
const AGENT: &str = "http";

/// The door of one daemon.
pub(crate) struct Http {
    access: Access,
    listen: Option<String>,
    open: Mutex<Option<Open>>,
}

struct Open {
    address: SocketAddr,
    /// The token made for this opening, where the settings have none.
    token: Option<String>,
    keepers: usize,
    doors: Arc<Doors>,
    stop: watch::Sender<bool>,
    served: JoinHandle<()>,
}

impl Http {
    pub(crate) fn new(settings: &Settings) -> Http {
        let access = Access { tokens: settings.http_tokens.clone(), origins: settings.http_origins.clone() };
        Http { access, listen: settings.http_listen.clone(), open: Mutex::default() }
    }

    /// Opens it for good where the settings say where. That the port is taken is reported, not fatal: agents that
    /// come over the socket are served all the same.
    pub(crate) async fn open_configured(&self, host: &Arc<dyn Host>) {
        if self.listen.is_some()
            && let Err(refusal) = self.keep(host).await
        {
            crate::log(&refusal.to_string());
        }
    }

    /// Opens it, or keeps it open, until [`Http::release`].
    pub(crate) async fn keep(&self, host: &Arc<dyn Host>) -> Result<Value, Refusal> {
        let mut open = self.open.lock().await;
        let door = match open.take() {
            Some(door) => door,
            None => self.listen(host).await.map_err(|error| self.not_opened(&error))?,
        };
        let url = format!("http://{}/mcp", door.address);
        *open = Some(Open { keepers: door.keepers + 1, ..door });
        let token = open.as_ref().and_then(|door| door.token.clone());
        Ok(json!({ "url": url, "tokens": self.access.tokens.len(), "token": token }))
    }

    async fn listen(&self, host: &Arc<dyn Host>) -> io::Result<Open> {
        let listener = TcpListener::bind(self.listen.as_deref().unwrap_or(ANY_PORT)).await?;
        let address = listener.local_addr()?;
        let mut access = self.access.clone();
        // Without tokens in the settings nobody could come in: one is made, for as long as the door is open.
        let token = if access.tokens.is_empty() { Some(random_token()?) } else { None };
        access.tokens.extend(token.iter().map(|token| (token.clone(), AGENT.to_owned())));
        let stop = watch::Sender::new(false);
        let doors = Arc::new(Doors::new(Arc::clone(host)));
        let served = tokio::spawn(serve(listener, Arc::clone(&doors), access, stop.subscribe()));
        Ok(Open { address, token, keepers: 0, doors, stop, served })
    }

    fn not_opened(&self, error: &io::Error) -> Refusal {
        let listen = self.listen.as_deref().unwrap_or(ANY_PORT);
        Refusal::new(Code::NotAvailable, format!("HTTP cannot be served there: {error}."))
            .fact("listen", listen)
            .next("choose another [http] listen in cotenant.toml")
    }

    /// One keeper less; the last one closes it.
    pub(crate) async fn release(&self) {
        let mut open = self.open.lock().await;
        let last = open.as_mut().is_some_and(|door| {
            door.keepers -= 1;
            door.keepers == 0
        });
        let door = if last { open.take() } else { None };
        drop(open);
        shut(door).await;
    }

    /// Closes it, whoever keeps it, once the calls under way are answered.
    pub(crate) async fn close(&self) {
        let door = self.open.lock().await.take();
        shut(door).await;
    }

    /// Sessions of its tokens.
    pub(crate) async fn sessions(&self) -> usize {
        self.open.lock().await.as_ref().map_or(0, |door| door.doors.sessions())
    }

    /// The address, where it is open.
    pub(crate) async fn address(&self) -> Option<SocketAddr> {
        self.open.lock().await.as_ref().map(|door| door.address)
    }
}

/// 128 random bits as 32 hex digits.
fn random_token() -> io::Result<String> {
    let mut random = [0u8; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

async fn shut(door: Option<Open>) {
    if let Some(mut door) = door {
        door.stop.send_replace(true);
        // That it panicked changes nothing: it is over. A client that never finishes its request is cut off.
        if tokio::time::timeout(FINISH, &mut door.served).await.is_err() {
            door.served.abort();
        }
    }
}
