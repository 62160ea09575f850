//! The keeper of one agent: a small process between us and the agent that stops everything the agent started.
//!
//! Input: the agent's program and pipes, by inheritance, and a socket to us. Output: how the agent exited, and in the
//! end no process of it.
//!
//! A keeper adopts the orphans of its agent (`PR_SET_CHILD_SUBREAPER`), so everything the agent starts stays below the
//! keeper, whatever it does with its environment, session or parents; and nothing else is there. The keeper stops these
//! processes on request, or when the socket closes: however we exit, even by `kill -9`. It exits when it has no child
//! left, which proves that no process is left. The process that uses this library adopts no orphans and gets no signal
//! handler.
//!
//! A keeper is a separate program, so that it is small and does not share our memory. `kd` starts itself for this: a
//! program that uses this library calls [`enter`] first in its `main`, or names another program with [`use_program`].
//! Without either, and on systems other than Linux, agents are started without a keeper: see
//! `docs/adr/0011-a-keeper-for-each-agent.md` for what holds then.

pub(super) mod identity;

pub use identity::NAME;

#[cfg(target_os = "linux")]
use identity::is_keeper;
use identity::{PROGRAM, program};
use std::path::{Path, PathBuf};

/// Runs as a keeper if this process was started as one; call this first in `main`. A keeper never returns from here;
/// any other process returns at once, and starts itself as the keeper of its agents from now on.
pub fn enter() {
    #[cfg(target_os = "linux")]
    {
        let name = std::env::args_os().next();
        if name.is_some_and(|name| name == NAME) {
            std::process::exit(platform::keep());
        }
        if std::env::args_os()
            .nth(1)
            .is_some_and(|word| word == tools::BRIDGE)
        {
            std::process::exit(tools::bridge());
        }
        let _ = PROGRAM.set(OWN_PROGRAM.into());
    }
}

/// Sets a program whose `main` calls [`enter`], for a process whose own `main` cannot. Only the first call counts.
pub fn use_program(program: impl Into<PathBuf>) {
    let _ = PROGRAM.set(program.into());
}

/// Returns the program of a bridge to a tool server, to be started with the argument [`tools::BRIDGE`]: the keeper's
/// program, by a path that is valid in every process.
#[cfg(target_os = "linux")]
pub(crate) fn bridge() -> Option<PathBuf> {
    let program = program()?;
    let own = Path::new(OWN_PROGRAM);
    match program == own {
        true => std::env::current_exe().ok(),
        false => Some(program.to_path_buf()),
    }
}

/// This program, even if its file was replaced or removed.
#[cfg(target_os = "linux")]
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Counts the keepers above this process: one for each agent of `kd` that it is nested in.
#[cfg(target_os = "linux")]
pub fn above() -> u32 {
    use super::proc;
    let mut count = 0;
    let mut at = proc::own_pid();
    for _ in 0..PARENTS_MAX {
        match proc::stat(at) {
            Some(seen) if seen.parent > 0 => at = seen.parent,
            _ => return count,
        }
        count += u32::from(is_keeper(at));
    }
    u32::MAX
}

/// Maximum number of ancestors examined. A longer chain is suspicious.
#[cfg(target_os = "linux")]
const PARENTS_MAX: usize = 10_000;

#[cfg(target_os = "linux")]
use super::tools;

#[cfg(target_os = "linux")]
pub(super) use platform::{CONTROL, End, Note, Plan, order};

#[cfg(target_os = "linux")]
mod platform {
    use super::super::proc::{self, Seen, handle, strike, wait};
    use super::super::rights::{Rights, ruleset};
    use super::super::tools::Tools;
    use landlock::RulesetCreated;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{Mode, OFlags};
    use rustix::io::{Errno, FdFlags, fcntl_setfd};
    use rustix::process::{
        Signal, WaitOptions, getpid, getppid, set_child_subreaper, set_parent_process_death_signal,
        setsid,
    };
    use serde::{Deserialize, Serialize};
    use std::ffi::OsString;
    use std::fs::DirBuilder;
    use std::io::{self, Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::DirBuilderExt;
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::{Duration, Instant};

    /// The file descriptor of a keeper's socket.
    pub(in super::super) const CONTROL: i32 = 3;
    /// Maximum size of a plan.
    const PLAN_MAX: u32 = 4 * 1024 * 1024;
    /// Time limit for the agent to exit after a signal if the parent is gone and cannot set one.
    const ALONE: Duration = Duration::from_secs(1);
    /// Pause after killing processes before the keeper looks for them again.
    const ROUND: Duration = Duration::from_millis(200);
    /// Maximum number of such rounds: a process stuck in the kernel cannot be killed.
    const ROUNDS_MAX: usize = 50;
    /// Maximum number of scans for processes that started while others were being stopped.
    const LOOKS_MAX: usize = 16;

    /// The data that a keeper needs before it starts the agent.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub(in super::super) struct Plan {
        /// The number of the signal that ends the agent gracefully.
        pub(in super::super) gentle: i32,
        /// Time limit for the agent to exit after that signal, in milliseconds.
        pub(in super::super) grace: u64,
        /// The paths it may access; `None` is everything.
        pub(in super::super) rights: Option<Rights>,
        /// The folder for its temporary files, created at the start and removed at the end.
        pub(in super::super) temporary: Option<PathBuf>,
        /// Program and arguments of a tool server for the agent, started by the keeper, outside of the agent's limits.
        pub(in super::super) tools: Vec<String>,
    }

    impl Plan {
        /// Returns the bytes to write to the socket first.
        pub(in super::super) fn bytes(&self) -> io::Result<Vec<u8>> {
            let text = serde_json::to_vec(self)?;
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
            if length > PLAN_MAX {
                return Err(io::Error::other(format!(
                    "the paths that it may use take {} KiB, more than {} KiB: start it in a folder with fewer files, or set `council.sandbox` to false",
                    text.len() / 1024,
                    PLAN_MAX / 1024
                )));
            }
            Ok([&length.to_le_bytes()[..], &text].concat())
        }

        fn read(mut from: &UnixStream) -> io::Result<Self> {
            let mut length = [0; 4];
            from.read_exact(&mut length)?;
            let length = u32::from_le_bytes(length);
            if length > PLAN_MAX {
                return Err(io::Error::other("a plan that is too large"));
            }
            let mut text = Vec::new();
            from.take(length.into()).read_to_end(&mut text)?;
            Ok(serde_json::from_slice(&text)?)
        }
    }

    /// A message from the keeper.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) enum Note {
        /// The agent runs.
        Started,
        /// The agent could not be started; the system's error number.
        Failed(i32),
        /// The agent's access could not be restricted; the system's error number, or 0. `Failed` follows.
        Unheld(i32),
        /// It exited, with this status of wait(2).
        Exited(i32),
    }

    impl Note {
        /// Length of a note in bytes.
        pub(in super::super) const LENGTH: usize = 5;

        fn bytes(self) -> [u8; Self::LENGTH] {
            let (kind, value) = match self {
                Note::Started => (b's', 0),
                Note::Failed(error) => (b'f', error),
                Note::Unheld(error) => (b'u', error),
                Note::Exited(status) => (b'x', status),
            };
            let [a, b, c, d] = i32::to_le_bytes(value);
            [kind, a, b, c, d]
        }

        /// Parses a note; `None` if the bytes are not one.
        pub(in super::super) fn of(bytes: [u8; Self::LENGTH]) -> Option<Self> {
            let [kind, value @ ..] = bytes;
            let value = i32::from_le_bytes(value);
            match kind {
                b's' => Some(Note::Started),
                b'f' => Some(Note::Failed(value)),
                b'u' => Some(Note::Unheld(value)),
                b'x' => Some(Note::Exited(value)),
                _ => None,
            }
        }
    }

    /// Tells a keeper how to stop the agent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) struct End {
        /// Time limit for the agent to exit without a signal, in milliseconds.
        pub(in super::super) patience: u32,
        /// The signal that then asks it to exit.
        pub(in super::super) gentle: i32,
        /// Time limit for it to exit after that signal, in milliseconds.
        pub(in super::super) grace: u32,
    }

    impl End {
        const LENGTH: usize = 12;

        fn bytes(self) -> [u8; Self::LENGTH] {
            let mut bytes = [0; Self::LENGTH];
            bytes[..4].copy_from_slice(&self.patience.to_le_bytes());
            bytes[4..8].copy_from_slice(&self.gentle.to_le_bytes());
            bytes[8..].copy_from_slice(&self.grace.to_le_bytes());
            bytes
        }

        fn read(mut from: &UnixStream) -> io::Result<Self> {
            let mut bytes = [0; Self::LENGTH];
            from.read_exact(&mut bytes)?;
            let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
            Ok(Self {
                patience: u32::from_le_bytes([a, b, c, d]),
                gentle: i32::from_le_bytes([e, f, g, h]),
                grace: u32::from_le_bytes([i, j, k, l]),
            })
        }
    }

    /// Tells a keeper to stop its agent. Never blocks: the message fits the socket's buffer.
    pub(in super::super) fn order(mut socket: &UnixStream, end: End) {
        // A keeper that is gone needs no order.
        let _ = socket.write_all(&end.bytes());
    }

    /// Runs the keeper. Returns its exit code: 0 when no process is left.
    pub(super) fn keep() -> i32 {
        let Some(control) = control() else {
            let words = format!(
                "{}: started by `kd` for its agents, not by hand\n",
                super::NAME
            );
            let _ = io::stderr().write_all(words.as_bytes());
            return 2;
        };
        // From here on every process that the agent starts stays below this one.
        if let Err(error) = set_child_subreaper(Some(getpid())) {
            return failed(&control, error.raw_os_error());
        }
        let plan = match Plan::read(&control) {
            Ok(plan) => plan,
            Err(error) => return failed(&control, error.raw_os_error().unwrap_or(0)),
        };
        let tools = match listen(&plan) {
            Ok(tools) => tools,
            Err(error) => return failed(&control, error.raw_os_error().unwrap_or(0)),
        };
        let root = match start(&plan, &control) {
            Ok(root) => root,
            Err(error) => {
                tidy(plan.temporary.as_deref());
                return failed(&control, error.raw_os_error().unwrap_or(0));
            }
        };
        let temporary = plan.temporary.clone();
        tell(&control, Note::Started);
        if let Some(tools) = tools {
            // If no thread can be started, the agent has no tools, and says so.
            let _ = std::thread::Builder::new().spawn(move || tools.serve());
        }
        let_go();
        if let Ok(listener) = control.try_clone() {
            let agent = proc::stat(root);
            let work = move || obey(&listener, &plan, agent.as_ref());
            if std::thread::Builder::new().spawn(work).is_err() {
                obey(&control, &Plan::default(), agent.as_ref());
            }
        }
        let code = reap(&control, root);
        tidy(temporary.as_deref());
        code
    }

    /// Listens for bridges to the tool server, if there is one.
    fn listen(plan: &Plan) -> io::Result<Option<Tools>> {
        if plan.tools.is_empty() {
            return Ok(None);
        }
        let name = std::env::args().nth(1).unwrap_or_default();
        Tools::listen(&name, &plan.tools).map(Some)
    }

    fn tidy(temporary: Option<&Path>) {
        if let Some(temporary) = temporary {
            // The folder may never have been created.
            let _ = std::fs::remove_dir_all(temporary);
        }
    }

    fn tell(mut control: &UnixStream, note: Note) {
        // The other end may be closed.
        let _ = control.write_all(&note.bytes());
    }

    fn failed(control: &UnixStream, error: i32) -> i32 {
        tell(control, Note::Failed(error));
        0
    }

    /// Starts the agent in a new session. It dies if the keeper dies.
    fn start(plan: &Plan, control: &UnixStream) -> io::Result<i32> {
        let mut args = std::env::args_os().skip(2);
        let program = args.next().ok_or_else(|| io::Error::other("no program"))?;
        // The command only forks: the child becomes the agent in `become_after`, which runs no shell for a script
        // without a `#!` line.
        let mut command = Command::new(&program);
        let argv: Vec<OsString> = std::iter::once(program).chain(args).collect();
        let keeper = getpid();
        let unheld = |error: io::Error, control: &UnixStream| {
            tell(control, Note::Unheld(number_of(&error)));
            error
        };
        let domain = plan.rights.as_ref().map(|r| domain(r, plan)).transpose();
        let mut domain = domain.map_err(|error| unheld(error, control))?;
        let control = control.try_clone()?;
        become_after(&mut command, &argv, move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(keeper) {
                return Err(Errno::SRCH.into());
            }
            setsid()?;
            if let Some(domain) = domain.take() {
                let held = domain.restrict_self().map_err(io::Error::other);
                held.map_err(|error| unheld(error, &control))?;
            }
            Ok(())
        })?;
        // The child is not reaped yet, so the id is still its own.
        i32::try_from(command.spawn()?.id()).map_err(io::Error::other)
    }

    /// Returns the system's number for an error, which may be wrapped in others; 0 if there is none.
    fn number_of(error: &io::Error) -> i32 {
        let mut at: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = at {
            let number = error.downcast_ref().and_then(io::Error::raw_os_error);
            if let Some(number) = number {
                return number;
            }
            at = error.source();
        }
        0
    }

    /// Returns the Landlock domain for the agent, including the folder for its temporary files.
    fn domain(rights: &Rights, plan: &Plan) -> io::Result<RulesetCreated> {
        let mut rights = rights.clone();
        if let Some(temporary) = &plan.temporary {
            DirBuilder::new().mode(0o700).create(temporary)?;
            rights.write.push(temporary.clone());
        }
        ruleset(&rights)
    }

    /// Releases the agent's pipes and working folder, so that they close or can be removed once the agent releases
    /// them.
    fn let_go() {
        let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        if let Ok(nothing) = nothing {
            let _ = rustix::stdio::dup2_stdin(&nothing);
            let _ = rustix::stdio::dup2_stdout(&nothing);
            let _ = rustix::stdio::dup2_stderr(&nothing);
        }
        let _ = rustix::process::chdir("/");
    }

    /// Waits for every child, adopted ones too, and returns how the agent itself exited. In the end no child is left,
    /// and so no descendant: an orphan would be a child.
    fn reap(control: &UnixStream, agent: i32) -> i32 {
        loop {
            match rustix::process::wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == agent => {
                    tell(control, Note::Exited(status.as_raw()));
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return 0,
            }
        }
    }

    /// Waits for the order to stop the agent, for the parent's end, or for a signal; then stops the agent.
    fn obey(control: &UnixStream, plan: &Plan, root: Option<&Seen>) {
        let alone = End {
            patience: 0,
            gentle: plan.gentle,
            grace: u32::try_from(plan.grace)
                .unwrap_or(u32::MAX)
                .min(u32::try_from(ALONE.as_millis()).unwrap_or(u32::MAX)),
        };
        let signals = signals();
        let mut waited = vec![PollFd::new(control, PollFlags::IN)];
        waited.extend(signals.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        while let Err(Errno::INTR) = poll(&mut waited, None) {}
        let told = !waited[0].revents().is_empty();
        let end = if told { End::read(control).ok() } else { None };
        finish(control, end.unwrap_or(alone), root);
        tidy(plan.temporary.as_deref());
        // A process cannot be killed. The exit code tells the parent.
        std::process::exit(1);
    }

    /// Stops the agent and its descendants. When they are gone, the other thread ends this process.
    fn finish(control: &UnixStream, end: End, root: Option<&Seen>) {
        let agent = root.and_then(handle);
        let gone = agent.as_ref().is_none_or(|agent| {
            let patience = Duration::from_millis(end.patience.into());
            !patience.is_zero() && ends_by_itself(control, agent, patience)
        });
        if let (false, Some(root)) = (gone, root) {
            if let Some(signal) = Signal::from_named_raw(end.gentle) {
                let family = proc::descendants(proc::own_pid());
                let group = family.iter().filter(|seen| seen.group == root.pid);
                group.for_each(|seen| strike(seen, signal));
            }
            wait(&[agent], Duration::from_millis(end.grace.into()));
        }
        for _ in 0..ROUNDS_MAX {
            let left = stopped();
            let handles: Vec<Option<OwnedFd>> = left.iter().map(handle).collect();
            left.iter().for_each(|seen| strike(seen, Signal::KILL));
            if left.is_empty() {
                // They are dead and only have to be reaped.
                std::thread::sleep(Duration::from_millis(10));
            }
            wait(&handles, ROUND);
        }
    }

    /// Waits up to `patience` for the agent to exit on its own, and only while the parent is there.
    fn ends_by_itself(control: &UnixStream, agent: &OwnedFd, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(left) = Timespec::try_from(left) else {
                return false;
            };
            let mut waited = [
                PollFd::new(agent, PollFlags::IN),
                PollFd::new(control, PollFlags::IN),
            ];
            match poll(&mut waited, Some(&left)) {
                Err(Errno::INTR) => {}
                _ => return !waited[0].revents().is_empty(),
            }
        }
    }

    /// Stops every process below the keeper (SIGSTOP), so that none can start another, and returns the living ones.
    fn stopped() -> Vec<Seen> {
        let mut known: Vec<Seen> = Vec::new();
        for _ in 0..LOOKS_MAX {
            let living = proc::descendants(proc::own_pid());
            let is_known = |seen: &Seen| {
                known
                    .iter()
                    .any(|k| (k.pid, k.started) == (seen.pid, seen.started))
            };
            let fresh: Vec<Seen> = living.iter().filter(|s| !is_known(s)).copied().collect();
            fresh.iter().for_each(|seen| strike(seen, Signal::STOP));
            known = living;
            if fresh.is_empty() {
                break;
            }
        }
        known
    }

    #[expect(
        unsafe_code,
        reason = "the socket is inherited by its number, and signals are blocked and read as data"
    )]
    mod raw {
        use super::{CONTROL, FdFlags, OwnedFd, UnixStream, fcntl_setfd};
        use std::ffi::{CString, OsString};
        use std::io;
        use std::mem::MaybeUninit;
        use std::os::fd::{BorrowedFd, FromRawFd};
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::process::CommandExt;
        use std::process::Command;
        use std::ptr;

        /// Returns the socket; `None` if this process was not started by `kd`.
        pub(super) fn control() -> Option<UnixStream> {
            // SAFETY: the borrow lasts for this call only, which rejects a number that is not open.
            let is_open = fcntl_setfd(unsafe { BorrowedFd::borrow_raw(CONTROL) }, FdFlags::CLOEXEC);
            is_open.ok()?;
            // SAFETY: it is open, and nothing else in this process, which has just started, uses this number.
            let fd = unsafe { OwnedFd::from_raw_fd(CONTROL) };
            Some(fd.into())
        }

        /// Returns a descriptor that is readable when a signal asks the keeper to end. The parent blocked all of them.
        pub(super) fn signals() -> Option<OwnedFd> {
            let mut set = MaybeUninit::uninit();
            // SAFETY: the set is initialized by the first call and only read by the others.
            let fd = unsafe {
                libc::sigemptyset(set.as_mut_ptr());
                for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
                    libc::sigaddset(set.as_mut_ptr(), signal);
                }
                libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC)
            };
            // SAFETY: the descriptor is new and owned by us.
            (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
        }

        /// Makes the child run this, unblock signals, and execute the given command line.
        pub(super) fn become_after(
            command: &mut Command,
            words: &[OsString],
            mut work: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
        ) -> io::Result<()> {
            let words: Result<Vec<CString>, _> = words
                .iter()
                .map(|word| CString::new(word.as_bytes()))
                .collect();
            let words = words?;
            let become_it = move || {
                work()?;
                let argv = words.iter().map(|word| word.as_ptr());
                let argv: Vec<_> = argv.chain([ptr::null()]).collect();
                let program = words.first().map_or(ptr::null(), |word| word.as_ptr());
                let mut none = MaybeUninit::uninit();
                // SAFETY: the set is initialized by the first call; the words live until the program is replaced, and
                // their list ends with null.
                unsafe {
                    libc::sigemptyset(none.as_mut_ptr());
                    libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
                    libc::execv(program, argv.as_ptr());
                }
                Err(io::Error::last_os_error())
            };
            // SAFETY: this process has one thread until the agent is started, so the child is a complete copy of it: no
            // lock is held by a thread that does not exist in the child.
            unsafe { command.pre_exec(become_it) };
            Ok(())
        }
    }
    use raw::{become_after, control, signals};
}
