//! What a program prints, read when its reader is ready for more. Comes in: the read end of a pipe. Goes out: its bytes.
//!
//! A pipe that is registered with the runtime wakes it at each write of the program, whether anybody wants to read or
//! not: 200 times a second for 200 words. Here it is registered only while somebody waits and nothing is there.

use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe::Receiver;

/// The read end of a program's output.
#[derive(Debug)]
pub(super) struct Outlet {
    pipe: OwnedFd,
    /// The same pipe, registered. None while nobody waits.
    news: Option<Receiver>,
}

impl Outlet {
    /// Takes the pipe over.
    ///
    /// # Errors
    /// When the system will not make it one that never blocks.
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe, news: None })
    }

    /// The next bytes, at most as many as there is room for; none at the end. May be dropped and called again.
    ///
    /// # Errors
    /// When the pipe breaks, or the runtime cannot tell of it.
    pub(super) async fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        // Whoever prints without a pause must not keep the others from their turn.
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

    /// Nobody waits for its bytes now.
    pub(super) fn rest(&mut self) {
        self.news = None;
    }

    /// The pipe itself.
    pub(super) fn into_pipe(self) -> OwnedFd {
        self.pipe
    }
}

/// Reads what is there. None when nothing is.
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
