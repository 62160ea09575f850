//! An agent program as a child of ours. Comes in: what to start, and the prompt. Goes out: its stdout as bytes, and how
//! it ended. Dropping it ends it, with all that it started (see [`super::family`]).
//!
//! The child leads a session of its own, gets the environment that it is given and no other, the prompt on stdin (or an
//! end of file at once), and its stderr is read all the time, so that it can never block on a full pipe.

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

/// Bytes of stderr that are kept, its end.
const STDERR_MAX: usize = 64 * 1024;
/// Bytes read from stdout at once.
const CHUNK: usize = 64 * 1024;
/// How long the last output may take after the program is gone, if others hold its pipes.
const DRAIN: Duration = Duration::from_millis(300);
/// Words that come within a frame are taken together: see [`Running::rest`]. 30 frames a second look like a stream.
const FRAME: Duration = Duration::from_millis(32);
/// Who says more than this at once is not waited for.
const FEW: usize = 4 * 1024;
/// How long a program may take to exit after it closed its stdout.
const EXIT: Duration = Duration::from_secs(2);

/// What to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// For whom it answers: see [`living`].
    pub label: String,
    /// The program, as a path.
    pub program: PathBuf,
    /// Its arguments. Never the prompt, where the program can do without.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// The folder it works in.
    pub folder: PathBuf,
    /// What it reads on stdin, until the end of file. None is an end of file at once.
    pub input: Option<Vec<u8>>,
    /// What it may reach of the file system, held by the system where it can: see [`super::rights`]. None is everything.
    pub rights: Option<Rights>,
    /// A server of tools that its keeper starts for it, outside of what `rights` hold: the path of a program, and its
    /// arguments. What connects to it below the agent is [`super::tools`]. Empty is none.
    pub tools: Vec<String>,
    /// The signal that it ends well on.
    pub gentle: Gentle,
    /// How long it may take to obey that signal.
    pub grace: Duration,
}

/// The signal that a program ends well on.
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
    /// What is still to be written to its stdin; gone when nothing more will be.
    words: Option<mpsc::UnboundedSender<Vec<u8>>>,
    /// Gone only while it is dropped.
    stdout: Option<Outlet>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    drained: Option<JoinHandle<()>>,
    chunk: Vec<u8>,
    /// Bytes that came last, and before when nothing more is read.
    came: usize,
    rest_until: Option<Instant>,
    exit: Option<ExitStatus>,
    birth: Birth,
    ending: Ending,
}

impl Running {
    /// Starts it.
    ///
    /// # Errors
    /// Whatever the system says when the program cannot be started.
    pub fn start(spec: Spec) -> io::Result<Self> {
        Self::begin(spec, false)
    }

    /// Starts it with a stdin that stays open for more: see [`Running::say`].
    ///
    /// # Errors
    /// Whatever the system says when the program cannot be started.
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
            // A key that others hold can be used through it.
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
                // Nobody took the other end yet.
                let _ = sender.send(input);
            }
            // Written beside what is read, or both sides could wait for each other.
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

    /// By what it can be found again when this process is gone.
    pub fn birth(&self) -> &Birth {
        &self.birth
    }

    /// Writes to its stdin, in the order of the calls, without waiting. What it does not want to hear is lost: its answer
    /// decides.
    pub fn say(&self, bytes: Vec<u8>) {
        if let Some(words) = &self.words {
            let _ = words.send(bytes);
        }
    }

    /// Whether something that it started since this moment still runs.
    pub fn left_behind(&self, since: Moment) -> bool {
        family::younger(&self.birth, self.child.is_kept(), since)
    }

    /// Whether it has exited.
    pub fn gone(&mut self) -> bool {
        if self.exit.is_none() {
            self.exit = self.child.try_wait().ok().flatten();
        }
        self.exit.is_some()
    }

    /// What came last were words of an answer: the next are read a frame later, with whatever has come by then. A program
    /// that streams 200 words a second would else wake us, and all who listen, for each of them. The first words of an
    /// answer never wait, and a flood is read as fast as it comes.
    pub fn rest(&mut self) {
        if self.came <= FEW {
            self.rest_until = Some(Instant::now() + FRAME);
            if let Some(stdout) = &mut self.stdout {
                stdout.rest();
            }
        }
    }

    /// The next bytes of its stdout; nothing when there are no more. May be dropped and called again.
    ///
    /// # Errors
    /// When the pipe breaks.
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
                // Something that it started may hold the pipe open for ever.
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

    /// How it ended, once its stdout did. A program that stays is reported as unseen.
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

    /// The end of what it has printed on stderr so far.
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

    /// How long it may take to end by itself once it is dropped, before it is signalled.
    pub fn wait_for(&mut self, patience: Duration) {
        self.ending.patience = patience;
    }

    /// Lets it end by itself, within this time: its turn is over, and its stdin ends. It is still ended when it does not,
    /// and with it whatever it leaves behind.
    pub fn retire(mut self, patience: Duration) {
        self.words = None;
        self.ending.patience = patience;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let keeper = self.take_keeper();
        if keeper.is_none() && self.ending.patience.is_zero() && self.exit.is_none() {
            // At once, even if this process is about to end.
            family::signal_group(&self.birth, self.ending.gentle);
        }
        // A program whose last words cannot be written takes its time to end: Claude Code 2 s.
        let open = self.stdout.take().map(Outlet::into_pipe);
        family::end(self.birth.clone(), self.ending, open, keeper);
    }
}

impl Running {
    /// The socket of the keeper, which is told at once to end the agent: it does so even if this process is about to
    /// end.
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

/// A mark that no other family has, in this process or another.
fn mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (us, started) = family::this_run();
    format!("{us}.{started}.{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A path for the temporary files of one agent, which its keeper makes and removes. Nobody can guess it.
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

/// Writes whatever comes, until nothing more will or the program hears no more.
async fn write(mut stdin: pipe::Sender, mut words: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(bytes) = words.recv().await {
        if stdin.write_all(&bytes).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
    // Dropped, it is the end of the file.
}

/// Reads stderr to its end and keeps the last of it.
async fn drain(mut from: impl AsyncRead + Unpin, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut chunk = vec![0; 8 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&chunk[..length]);
        let over = kept.len().saturating_sub(STDERR_MAX);
        kept.drain(..over);
    }
}
