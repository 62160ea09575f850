//! Tools of the council for an agent in the sandbox: their server runs outside of it, and a bridge inside connects the
//! agent to it.
//!
//! Input: the program of a server, and the bytes of an agent. Output: the server's answers.
//!
//! The agent starts the bridge as its server of tools. The bridge finds the keeper among its parents and connects to an
//! abstract socket with the keeper's number in its name: no file, so no right to a file. The keeper lets in its own
//! descendants only, and starts one server for each. So the agent can call the tools and not touch the files behind
//! them; and the server ends with the agent, since it is a child of the keeper.

use super::keeper::is_keeper;
use super::proc;
use rustix::net::sockopt::socket_peercred;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The first argument of a bridge.
pub(crate) const BRIDGE: &str = "kd-tools-bridge";
/// Servers of one agent that may run at the same time.
const SERVERS_MAX: usize = 16;

fn address(keeper: i32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("kd-tools-{keeper}"))
}

/// The keeper's side.
pub(super) struct Tools {
    listener: UnixListener,
    words: Vec<String>,
    folder: PathBuf,
}

impl Tools {
    /// Listens for bridges below this keeper.
    pub(super) fn listen(words: &[String]) -> io::Result<Self> {
        Ok(Self {
            listener: UnixListener::bind_addr(&address(proc::own_pid())?)?,
            words: words.to_vec(),
            folder: std::env::current_dir()?,
        })
    }

    /// Starts a server for each bridge, until this process ends.
    pub(super) fn serve(&self) {
        loop {
            match self.listener.accept() {
                // A bridge whose server cannot be started reads an end of file.
                Ok((stream, _)) if is_welcome(&stream) => drop(self.start(stream)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn start(&self, stream: UnixStream) -> io::Result<()> {
        let (program, args) = self
            .words
            .split_first()
            .ok_or_else(|| io::Error::other("a server without a program"))?;
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(&self.folder)
            .stdin(OwnedFd::from(stream.try_clone()?))
            .stdout(OwnedFd::from(stream))
            .stderr(Stdio::null());
        super::keeper::take_signals(&mut command);
        // The keeper waits for all its children.
        command.spawn().map(drop)
    }
}

/// Whether a connection comes from below this keeper, which has room for one more server.
fn is_welcome(stream: &UnixStream) -> bool {
    let own = proc::own_pid();
    let children = proc::descendants(own);
    let children = children.iter().filter(|seen| seen.parent == own);
    let peer = peer(stream);
    children.count() <= SERVERS_MAX && peer.is_some_and(|peer| parents(peer).any(|p| p == own))
}

/// The process at the other end.
fn peer(stream: &UnixStream) -> Option<i32> {
    let credentials = socket_peercred(stream.as_fd()).ok()?;
    Some(credentials.pid.as_raw_nonzero().get())
}

/// The parents of a process, the nearest first.
fn parents(of: i32) -> impl Iterator<Item = i32> {
    let parent = |pid: &i32| Some(proc::stat(*pid)?.parent).filter(|parent| *parent > 0);
    std::iter::successors(parent(&of), parent)
}

/// The agent's side: connects stdin and stdout with a server of its keeper. Returns the exit code.
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
    let keeper = parents(proc::own_pid()).find(|pid| is_keeper(*pid));
    let keeper =
        keeper.ok_or_else(|| io::Error::other("started by `kd` for its agents, not by hand"))?;
    let stream = UnixStream::connect_addr(&address(keeper)?)?;
    // Anybody can take the name of a socket that has no file.
    match peer(&stream) == Some(keeper) {
        true => Ok(stream),
        false => Err(io::Error::other("the socket belongs to another process")),
    }
}

/// Carries bytes both ways until the server has no more.
fn carry(stream: &UnixStream) -> io::Result<()> {
    let up = stream.try_clone()?;
    std::thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut &up);
        let _ = up.shutdown(Shutdown::Write);
    })?;
    // Without a buffer: an answer need not end in a newline.
    let mut out = std::fs::File::from(rustix::stdio::stdout().try_clone_to_owned()?);
    io::copy(&mut &*stream, &mut out).map(drop)
}
