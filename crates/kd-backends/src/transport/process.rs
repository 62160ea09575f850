//! An agent program as a child process.
//!
//! Input: what to start, and the prompt. Output: its stdout as bytes, and how it exited. Dropping it stops it and
//! everything it started (see [`super::family`]).
//!
//! The child leads its own session, gets exactly the given environment, and the prompt on stdin (or end of file at
//! once). Its stderr is read all the time, so that it never blocks on a full pipe.

use super::child::{Child, Start};
use super::family::{self, Ending, MARK};
#[cfg(target_os = "linux")]
use super::keeper;
use super::outlet::Outlet;
use super::rights::{self, Rights};
use crate::dialects::{Exit, ExitSeen};
use rustix::process::Signal;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

pub use super::family::{
    Birth, Moment, alive, end_left_over, is_running, living, on_change, run_of, settle, this_run,
};

/// Number of bytes that are kept from the end of stderr.
const STDERR_MAX: usize = 64 * 1024;
/// Bytes per read from stdout.
const CHUNK: usize = 64 * 1024;
/// Time limit for the last output after the program exited, if other processes hold its pipes.
const DRAIN: Duration = Duration::from_millis(300);
/// Output within one frame is read together: see [`Running::rest`]. 30 frames a second look like a stream.
const FRAME: Duration = Duration::from_millis(32);
/// More output than this at once is read without delay.
const FEW: usize = 4 * 1024;
/// Time limit for a program to exit after it closed its stdout.
const EXIT: Duration = Duration::from_secs(2);

/// The program to start, with its arguments, environment and time limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Identifies the agent: see [`living`].
    pub label: String,
    /// The program, as a path.
    pub program: PathBuf,
    /// Its arguments; without the prompt, where possible.
    pub args: Vec<OsString>,
    /// The complete environment.
    pub env: Vec<(String, String)>,
    /// Its working folder.
    pub folder: PathBuf,
    /// Its input on stdin; `None` is end of file at once.
    pub input: Option<Vec<u8>>,
    /// The paths it may access, enforced by the system where possible: see [`super::rights`]. `None` is everything.
    pub rights: Option<Rights>,
    /// Command of a tool server that its keeper starts, outside of the limits in `rights`: a program and its arguments,
    /// or empty. [`super::tools`] connects the agent to it.
    pub tools: Vec<String>,
    /// The signal that ends it gracefully.
    pub gentle: Gentle,
    /// Time limit for it to exit after that signal.
    pub grace: Duration,
}

/// The signal that ends a program gracefully.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gentle {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Gentle {
    fn signal(self) -> Signal {
        match self {
            Gentle::Interrupt => Signal::INT,
            Gentle::Terminate => Signal::TERM,
        }
    }
}

/// A running agent program.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Queue of input for its stdin; `None` once stdin is to be closed.
    words: Option<mpsc::UnboundedSender<Vec<u8>>>,
    /// `None` only during drop.
    stdout: Option<Outlet>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    drained: Option<JoinHandle<()>>,
    chunk: Vec<u8>,
    /// Bytes of the last read.
    came: usize,
    rest_until: Option<Instant>,
    exit: Option<ExitStatus>,
    birth: Birth,
    ending: Ending,
}

impl Running {
    /// Starts the program.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(spec: Spec) -> io::Result<Self> {
        Self::begin(spec, false)
    }

    /// Starts the program with a stdin that stays open: see [`Running::say`].
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn converse(spec: Spec) -> io::Result<Self> {
        Self::begin(spec, true)
    }

    fn begin(spec: Spec, open: bool) -> io::Result<Self> {
        let mark = mark();
        let mut env = spec.env;
        env.push((MARK.to_owned(), mark.clone()));
        let rights = spec.rights.as_ref().filter(|_| rights::held().is_some());
        let temporary = rights.map(|_| temporary(&env, &mark));
        if let Some(temporary) = &temporary {
            let path = temporary.to_string_lossy().into_owned();
            env.push(("TMPDIR".to_owned(), path));
            // Gives access to keys of the user.
            env.retain(|(name, _)| name != "SSH_AUTH_SOCK");
        }
        let start = Start {
            program: &spec.program,
            args: &spec.args,
            env: &env,
            folder: &spec.folder,
            hears: open || spec.input.is_some(),
            gentle: spec.gentle.signal().as_raw(),
            grace: spec.grace,
            rights,
            temporary: temporary.as_deref(),
            tools: &spec.tools,
        };
        let (child, pipes) = Child::start(&start)?;
        let pid = child.pid();
        let birth = Birth {
            pid,
            started: family::started(pid).unwrap_or(0),
            mark,
        };
        family::in_use(spec.label, &birth);
        let mut words = None;
        if let Some(stdin) = pipes.stdin {
            let (sender, receiver) = mpsc::unbounded_channel();
            if let Some(input) = spec.input {
                // The receiver still exists.
                let _ = sender.send(input);
            }
            // Runs concurrently with reading, or both sides could deadlock.
            tokio::spawn(write(stdin, receiver));
            words = open.then_some(sender);
        }
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let drained = Some(tokio::spawn(drain(pipes.stderr, Arc::clone(&stderr))));
        let ending = Ending {
            patience: Duration::ZERO,
            gentle: spec.gentle.signal(),
            grace: spec.grace,
        };
        Ok(Self {
            child,
            words,
            stdout: Some(pipes.stdout),
            stderr,
            drained,
            chunk: vec![0; CHUNK],
            came: 0,
            rest_until: None,
            exit: None,
            birth,
            ending,
        })
    }

    /// Identifies the process after this one is gone.
    pub fn birth(&self) -> &Birth {
        &self.birth
    }

    /// Writes to its stdin, in the order of the calls, without waiting. Input that it does not read is lost; its output
    /// decides.
    pub fn say(&self, bytes: Vec<u8>) {
        if let Some(words) = &self.words {
            let _ = words.send(bytes);
        }
    }

    /// Returns whether something that it started since this time is still running.
    pub fn left_behind(&self, since: Moment) -> bool {
        family::younger(&self.birth, self.child.is_kept(), since)
    }

    /// Returns whether it has exited.
    pub fn gone(&mut self) -> bool {
        if self.exit.is_none() {
            self.exit = self.child.try_wait().ok().flatten();
        }
        self.exit.is_some()
    }

    /// Delays the next read by one frame, and reads what has arrived by then; call it after text of an answer.
    /// Otherwise a program that streams 200 words a second would wake us and all listeners for each one. The first
    /// words of an answer are never delayed, and large output is read at full speed.
    pub fn rest(&mut self) {
        if self.came <= FEW {
            self.rest_until = Some(Instant::now() + FRAME);
            if let Some(stdout) = &mut self.stdout {
                stdout.rest();
            }
        }
    }

    /// Reads the next bytes of its stdout; empty at the end. Cancel safe.
    ///
    /// # Errors
    /// The pipe breaks.
    pub async fn read(&mut self) -> io::Result<&[u8]> {
        let Some(stdout) = &mut self.stdout else {
            return Ok(&[]);
        };
        if let Some(until) = self.rest_until {
            sleep_until(until).await;
            self.rest_until = None;
        }
        loop {
            let length = if self.exit.is_some() {
                // A process that it started may hold the pipe open forever.
                match timeout(DRAIN, stdout.read(&mut self.chunk)).await {
                    Ok(length) => length?,
                    Err(_) => 0,
                }
            } else {
                tokio::select! {
                    biased;
                    length = stdout.read(&mut self.chunk) => length?,
                    exit = self.child.wait() => {
                        self.exit = Some(exit?);
                        continue;
                    }
                }
            };
            self.came = length;
            return Ok(&self.chunk[..length]);
        }
    }

    /// Waits until the program exits, after its stdout has ended. If it keeps running, the result says that no exit was seen.
    pub async fn exit(&mut self) -> ExitSeen {
        if self.exit.is_none() {
            self.exit = timeout(EXIT, self.child.wait())
                .await
                .ok()
                .and_then(Result::ok);
        }
        if let Some(drained) = self.drained.take() {
            let _ = timeout(DRAIN, drained).await;
        }
        ExitSeen {
            how: self.exit.map_or(Exit::Unseen, how),
            stderr: self
                .child
                .why()
                .map_or_else(|| self.stderr(), str::to_owned),
        }
    }

    /// Returns the end of its stderr output so far.
    pub fn stderr(&self) -> String {
        let kept: Vec<u8> = self
            .stderr
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .copied()
            .collect();
        String::from_utf8_lossy(&kept).into_owned()
    }

    /// Sets how long it may take to exit on its own after being dropped, before it is signaled.
    pub fn wait_for(&mut self, patience: Duration) {
        self.ending.patience = patience;
    }

    /// Lets it exit on its own within this time: its turn is over, and its stdin is closed. After that it is stopped,
    /// with everything it left behind.
    pub fn retire(mut self, patience: Duration) {
        self.words = None;
        self.ending.patience = patience;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let keeper = self.take_keeper();
        if keeper.is_none() && self.ending.patience.is_zero() && self.exit.is_none() {
            // At once, even if this process is about to exit.
            family::signal_group(&self.birth, self.ending.gentle);
        }
        // A program whose last output cannot be written takes longer to exit: Claude Code 2 s.
        let open = self.stdout.take().map(Outlet::into_pipe);
        family::end(self.birth.clone(), self.ending, open, keeper);
    }
}

impl Running {
    /// Takes the socket of the keeper, after telling it to stop the agent: the keeper does so even if this process is
    /// about to exit.
    #[cfg(target_os = "linux")]
    fn take_keeper(&mut self) -> Option<family::Socket> {
        let socket = self.child.socket()?;
        let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let end = keeper::End {
            patience: millis(self.ending.patience),
            gentle: self.ending.gentle.as_raw(),
            grace: millis(self.ending.grace),
        };
        keeper::order(&socket, end);
        Some(socket)
    }

    #[cfg(not(target_os = "linux"))]
    fn take_keeper(&mut self) -> Option<family::Socket> {
        None
    }
}

/// Returns a mark that no other family has, in this process or another.
fn mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (us, started) = family::this_run();
    format!("{us}.{started}.{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns an unguessable path for one agent's temporary files; its keeper creates and removes the folder.
fn temporary(env: &[(String, String)], mark: &str) -> PathBuf {
    use std::hash::{BuildHasher, Hasher};
    let set = env.iter().rev().find(|(name, _)| name == "TMPDIR");
    let top = set.map_or_else(std::env::temp_dir, |(_, path)| path.into());
    let random = std::hash::RandomState::new().build_hasher().finish();
    top.join(format!("kd-{mark}-{random:016x}"))
}

fn how(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unseen,
    }
}

/// Writes queued input until there is no more or the program stops reading.
async fn write(mut stdin: pipe::Sender, mut words: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(bytes) = words.recv().await {
        if stdin.write_all(&bytes).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
    // Dropping stdin signals end of file.
}

/// Reads stderr to its end and keeps the last part.
async fn drain(mut from: impl AsyncRead + Unpin, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut chunk = vec![0; 8 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&chunk[..length]);
        let over = kept.len().saturating_sub(STDERR_MAX);
        kept.drain(..over);
    }
}
