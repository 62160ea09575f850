//! Council tools for an agent in the sandbox: their server runs outside of it, and a bridge inside connects the agent
//! to it.
//!
//! Input: the program of a server, and the agent's bytes. Output: the server's answers.
//!
//! The agent starts the bridge as its MCP server. The bridge finds the keeper among its ancestors and connects to an
//! abstract socket, which is not a file and so needs no file access. The socket's name is in the keeper's command line,
//! because agents pass a server few variables, and is random, because any process can take a name that it can guess.
//! The keeper accepts only its own descendants, and starts one server for each. So the agent can call the tools but not
//! touch the files behind them; and the server ends with the agent, since it is a child of the keeper.

use super::keeper::identity;
use super::proc;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The first argument of a bridge.
pub(crate) const BRIDGE: &str = "kd-tools-bridge";
/// Maximum number of concurrent servers per agent.
const SERVERS_MAX: usize = 16;
/// Delay before the next connection when the limit is reached.
const PAUSE: Duration = Duration::from_millis(100);

/// Bytes copied at once.
const CHUNK: usize = 64 * 1024;

/// Generates a name for the socket of a keeper.
pub(super) fn name() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("kd-tools-{:016x}{:016x}", random(), random())
}

/// The keeper's side.
pub(super) struct Tools {
    listener: UnixListener,
    words: Vec<String>,
    folder: PathBuf,
}

impl Tools {
    /// Listens under this name for bridges below this keeper.
    pub(super) fn listen(name: &str, words: &[String]) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(name)?;
        Ok(Self {
            listener: UnixListener::bind_addr(&address)?,
            words: words.to_vec(),
            folder: std::env::current_dir()?,
        })
    }

    /// Starts a server for each bridge, until this process ends.
    pub(super) fn serve(&self) {
        loop {
            match self.listener.accept() {
                // A bridge whose server cannot be started reads end of file.
                Ok((stream, _)) if is_welcome(&stream) => drop(self.start(stream)),
                Ok(_) => {}
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR | Errno::CONNABORTED) => {}
                    // Resources may be freed when another server ends.
                    Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                        std::thread::sleep(PAUSE);
                    }
                    _ => return,
                },
            }
        }
    }

    fn start(&self, stream: UnixStream) -> io::Result<()> {
        let (program, args) = self
            .words
            .split_first()
            .ok_or_else(|| io::Error::other("a server without a program"))?;
        // A failed spawn waits for its child, which the keeper may already have reaped.
        access(program, Access::EXEC_OK)?;
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(&self.folder)
            // The agent can put links into its folder for temporary files.
            .env_remove("TMPDIR")
            .stdin(OwnedFd::from(stream.try_clone()?))
            .stdout(OwnedFd::from(stream))
            .stderr(Stdio::null());
        super::signals::take_signals(&mut command);
        // The keeper waits for all its children.
        command.spawn().map(drop)
    }
}

/// Returns whether a connection comes from below this keeper, and another server is allowed.
fn is_welcome(stream: &UnixStream) -> bool {
    let own = proc::own_pid();
    let children = proc::descendants(own);
    let children = children.iter().filter(|seen| seen.parent == own);
    let peer = peer(stream);
    children.count() <= SERVERS_MAX && peer.is_some_and(|peer| parents(peer).any(|p| p == own))
}

/// Returns the process at the other end.
fn peer(stream: &UnixStream) -> Option<i32> {
    let credentials = socket_peercred(stream.as_fd()).ok()?;
    Some(credentials.pid.as_raw_nonzero().get())
}

/// Iterates over the ancestors of a process, nearest first.
fn parents(of: i32) -> impl Iterator<Item = i32> {
    let parent = |pid: &i32| Some(proc::stat(*pid)?.parent).filter(|parent| *parent > 0);
    std::iter::successors(parent(&of), parent)
}

/// Runs the agent's side: connects stdin and stdout with a server of its keeper. Returns the exit code.
pub(super) fn bridge() -> i32 {
    match connect().and_then(|stream| carry(&stream)) {
        Ok(()) => 0,
        Err(error) => {
            let words = format!("{BRIDGE}: no tools: {error}\n");
            let _ = io::stderr().write_all(words.as_bytes());
            1
        }
    }
}

fn connect() -> io::Result<UnixStream> {
    let unkept = || io::Error::other("started by `kd` for its agents, not by hand");
    let keeper = parents(proc::own_pid()).find(|pid| identity::is_keeper(*pid));
    let keeper = keeper.ok_or_else(unkept)?;
    let name = identity::socket_of(keeper).ok_or_else(unkept)?;
    let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    // Another process may have taken the name before the keeper.
    match peer(&stream) == Some(keeper) {
        true => Ok(stream),
        false => Err(io::Error::other("the socket belongs to another process")),
    }
}

/// Copies bytes both ways until the server has no more.
fn carry(stream: &UnixStream) -> io::Result<()> {
    let up = stream.try_clone()?;
    std::thread::Builder::new().spawn(move || {
        // The server reads end of file, whatever ended the agent's input.
        let _ = pump(rustix::stdio::stdin(), up.as_fd());
        let _ = up.shutdown(Shutdown::Write);
    })?;
    pump(stream.as_fd(), rustix::stdio::stdout())
}

/// Copies bytes from one to the other, as soon as they arrive, until the end.
///
/// Uses read(2) and write(2): `io::copy` uses splice(2), which holds the lock of the pipe that it writes to while it
/// waits for the socket, so that the agent cannot read what is already in the pipe.
fn pump(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
    let mut room = vec![0; CHUNK];
    loop {
        let length = when(from, PollFlags::IN, || {
            rustix::io::read(from, &mut room[..])
        })?;
        let mut rest = &room[..length];
        if rest.is_empty() {
            return Ok(());
        }
        while !rest.is_empty() {
            let written = when(to, PollFlags::OUT, || rustix::io::write(to, rest))?;
            rest = &rest[written..];
        }
    }
}

/// Retries the call after a signal, and waits where the parent made the file non-blocking.
fn when(
    file: BorrowedFd<'_>,
    ready: PollFlags,
    mut work: impl FnMut() -> rustix::io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match work() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => match poll(&mut [PollFd::from_borrowed_fd(file, ready)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            },
            done => return Ok(done?),
        }
    }
}
