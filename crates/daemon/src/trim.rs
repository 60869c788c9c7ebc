//! Gives memory back to the system once a connection that moved much has become quiet.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use crate::sys;

/// Bytes after which giving back is worth its while: less stays below the allocator's own threshold.
const MUCH: usize = 1024 * 1024;

/// How long it must be quiet.
const QUIET: Duration = Duration::from_secs(1);

/// Counts what moves through it.
pub(crate) struct Counted<T> {
    inner: T,
    moved: usize,
    much: Arc<Notify>,
}

impl<T> Counted<T> {
    pub(crate) fn new(inner: T, much: Arc<Notify>) -> Counted<T> {
        Counted { inner, moved: 0, much }
    }

    fn count(&mut self, bytes: usize) {
        self.moved += bytes;
        if self.moved >= MUCH {
            self.moved = 0;
            self.much.notify_one();
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        self.count(read);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(context, bytes))?;
        self.count(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Trims after each busy stretch, for ever.
pub(crate) async fn trim_when_quiet(much: Arc<Notify>) {
    loop {
        much.notified().await;
        while tokio::time::timeout(QUIET, much.notified()).await.is_ok() {}
        sys::trim();
    }
}
