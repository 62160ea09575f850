//! Reads a program's output when its reader is ready for more.
//!
//! A pipe registered with the runtime wakes it at each write of the program, even when nothing reads: 200 times a
//! second for 200 words. So this registers the pipe only while a reader waits and no data is available.

use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe::Receiver;

/// The read end of a program's output.
#[derive(Debug)]
pub(super) struct Outlet {
    pipe: OwnedFd,
    /// The pipe, registered with the runtime; `None` while no task waits for it.
    news: Option<Receiver>,
}

impl Outlet {
    /// Takes ownership of the pipe.
    ///
    /// # Errors
    /// The pipe cannot be made non-blocking.
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe, news: None })
    }

    /// Reads the next bytes, at most `room.len()`; 0 at the end. Cancel safe.
    ///
    /// # Errors
    /// The pipe breaks, or the runtime cannot watch it.
    pub(super) async fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        // A program that prints without a pause must not starve other tasks.
        tokio::task::coop::consume_budget().await;
        let news = match &mut self.news {
            Some(news) => news,
            none => match look(&self.pipe, room)? {
                Some(length) => return Ok(length),
                None => none.insert(Receiver::from_owned_fd(self.pipe.try_clone()?)?),
            },
        };
        loop {
            match news.try_read(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => news.readable().await?,
                read => return read,
            }
        }
    }

    /// Unregisters the pipe: nothing waits for its bytes now.
    pub(super) fn rest(&mut self) {
        self.news = None;
    }

    /// Returns the pipe.
    pub(super) fn into_pipe(self) -> OwnedFd {
        self.pipe
    }
}

/// Reads what is available; `None` if nothing is.
fn look(pipe: &OwnedFd, room: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match rustix::io::read(pipe, &mut *room) {
            Ok(length) => return Ok(Some(length)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
