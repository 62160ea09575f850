//! The keeper of one agent: a small process between us and the agent that ends everything the agent started.
//!
//! Input: the agent's program and pipes, by inheritance, and a socket to us. Output: how the agent exited, and in the end
//! no process of it.
//!
//! A keeper adopts the orphans of its agent (`PR_SET_CHILD_SUBREAPER`), so all that the agent ever starts stays below
//! the keeper, whatever it does with its environment, its session or its parents; and nothing else is there. It ends
//! them when it is told to, or when the socket closes: however we end, by `kill -9` too. It exits when it has no child
//! left, which proves that nobody is left. The process that uses this library adopts nobody and has no signal handler
//! of ours.
//!
//! A keeper is a program of its own, so that it is small and does not share our memory. `kd` starts itself for this: a
//! program that uses this library calls [`enter`] first in its `main`, or names another program with [`use_program`].
//! Without either, and elsewhere than on Linux, agents are started without a keeper: see
//! `docs/adr/0011-a-keeper-for-each-agent.md` for what holds then.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The name that a keeper is started under: its `argv[0]`.
pub const NAME: &str = "kd-keeper";

/// The program that can be a keeper.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Call this first in `main`. A process that was started as a keeper does its work here and never returns; any other
/// returns at once, and starts itself as the keeper of its agents from now on.
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

/// Names a program whose `main` calls [`enter`], for a process whose own `main` cannot. The first word counts.
pub fn use_program(program: impl Into<PathBuf>) {
    let _ = PROGRAM.set(program.into());
}

/// The program of a bridge to a server of tools, started with the word [`tools::BRIDGE`]: the same as that of a keeper, by
/// a path that every process understands.
#[cfg(target_os = "linux")]
pub(crate) fn bridge() -> Option<PathBuf> {
    let program = program()?;
    let own = Path::new(OWN_PROGRAM);
    match program == own {
        true => std::env::current_exe().ok(),
        false => Some(program.to_path_buf()),
    }
}

/// This program, whatever became of its file.
#[cfg(target_os = "linux")]
const OWN_PROGRAM: &str = "/proc/self/exe";

/// How many keepers are above this process: agents of `kd`, one inside the other, that it runs below.
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

/// Parents that are looked at. Who has more hides something.
#[cfg(target_os = "linux")]
const PARENTS_MAX: usize = 10_000;

/// Whether a process was started as a keeper: by its `argv[0]`. Another that takes this name is counted, too, which only
/// makes what is below it stricter.
#[cfg(target_os = "linux")]
pub(super) fn is_keeper(pid: i32) -> bool {
    word(pid, 0).is_some_and(|word| word == NAME.as_bytes())
}

/// The name of the socket of a keeper's server of tools: its first argument.
#[cfg(target_os = "linux")]
pub(super) fn socket_of(keeper: i32) -> Option<Vec<u8>> {
    word(keeper, 1).filter(|name| !name.is_empty())
}

/// A word of the command line of a process.
#[cfg(target_os = "linux")]
fn word(pid: i32, at: usize) -> Option<Vec<u8>> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    words.split(|byte| *byte == 0).nth(at).map(<[u8]>::to_vec)
}

#[cfg(target_os = "linux")]
use super::tools;

/// The program to start as a keeper, if there is one.
pub(super) fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

#[cfg(target_os = "linux")]
pub(super) use platform::{CONTROL, End, Note, Plan, order, take_signals};

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

    /// The number under which a keeper finds its socket.
    pub(in super::super) const CONTROL: i32 = 3;
    /// The largest plan that is read.
    const PLAN_MAX: u32 = 4 * 1024 * 1024;
    /// How long the agent may take to obey a signal when nobody is left to say how long.
    const ALONE: Duration = Duration::from_secs(1);
    /// How long killed processes may take to be gone before they are looked for again.
    const ROUND: Duration = Duration::from_millis(200);
    /// How often that is done: a process that the kernel holds cannot be killed.
    const ROUNDS_MAX: usize = 50;
    /// How often we look for processes that were started while others were being stopped.
    const LOOKS_MAX: usize = 16;

    /// What a keeper must know before it starts the agent.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub(in super::super) struct Plan {
        /// The number of the signal that the agent ends well on.
        pub(in super::super) gentle: i32,
        /// How long it may take to obey, in milliseconds.
        pub(in super::super) grace: u64,
        /// What it may reach; none is everything.
        pub(in super::super) rights: Option<Rights>,
        /// The folder for its temporary files, made at the start and removed at the end.
        pub(in super::super) temporary: Option<PathBuf>,
        /// A server of tools for the agent, which is started here and has none of its limits: program and arguments.
        pub(in super::super) tools: Vec<String>,
    }

    impl Plan {
        /// The bytes to write into the socket first.
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

    /// What a keeper tells.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) enum Note {
        /// The agent runs.
        Started,
        /// It could not be started, for this reason of the system's.
        Failed(i32),
        /// Its rights could not be taken away, for this reason of the system's; 0 is none. `Failed` follows.
        Unheld(i32),
        /// It exited; the status is that of wait(2).
        Exited(i32),
    }

    impl Note {
        /// Bytes of a note.
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

        /// Reads one; nothing if these are no note.
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

    /// How a keeper is told to end the agent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) struct End {
        /// How long the agent may take to end by itself, in milliseconds.
        pub(in super::super) patience: u32,
        /// The signal it is then asked with.
        pub(in super::super) gentle: i32,
        /// How long it may take to obey, in milliseconds.
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

    /// Tells a keeper to end its agent. It never waits: the socket has room for it.
    pub(in super::super) fn order(mut socket: &UnixStream, end: End) {
        // A keeper that is gone needs no order.
        let _ = socket.write_all(&end.bytes());
    }

    /// The life of a keeper. Returns its exit code: 0 when nobody is left.
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
            // Without a thread the agent has no tools, and says so.
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

    /// Listens for bridges to the server of tools, if there is one.
    fn listen(plan: &Plan) -> io::Result<Option<Tools>> {
        if plan.tools.is_empty() {
            return Ok(None);
        }
        let name = std::env::args().nth(1).unwrap_or_default();
        Tools::listen(&name, &plan.tools).map(Some)
    }

    fn tidy(temporary: Option<&Path>) {
        if let Some(temporary) = temporary {
            // It may never have been made.
            let _ = std::fs::remove_dir_all(temporary);
        }
    }

    fn tell(mut control: &UnixStream, note: Note) {
        // Nobody may be there to hear it.
        let _ = control.write_all(&note.bytes());
    }

    fn failed(control: &UnixStream, error: i32) -> i32 {
        tell(control, Note::Failed(error));
        0
    }

    /// Starts the agent, in a session of its own. Our own death is its death, too.
    fn start(plan: &Plan, control: &UnixStream) -> io::Result<i32> {
        let mut args = std::env::args_os().skip(2);
        let program = args.next().ok_or_else(|| io::Error::other("no program"))?;
        // The command is only what forks: it becomes the agent in the end of `become_after`, which runs no shell for a
        // script that names none.
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
        // Nobody has waited for it yet, so the number is its own.
        i32::try_from(command.spawn()?.id()).map_err(io::Error::other)
    }

    /// The system's number for an error, which may be below others; 0 is none.
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

    /// The domain that the agent enters, with a folder for its temporary files.
    fn domain(rights: &Rights, plan: &Plan) -> io::Result<RulesetCreated> {
        let mut rights = rights.clone();
        if let Some(temporary) = &plan.temporary {
            DirBuilder::new().mode(0o700).create(temporary)?;
            rights.write.push(temporary.clone());
        }
        ruleset(&rights)
    }

    /// Lets go of the agent's pipes and folder, which end or can be removed when the agent lets go of them.
    fn let_go() {
        let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        if let Ok(nothing) = nothing {
            let _ = rustix::stdio::dup2_stdin(&nothing);
            let _ = rustix::stdio::dup2_stdout(&nothing);
            let _ = rustix::stdio::dup2_stderr(&nothing);
        }
        let _ = rustix::process::chdir("/");
    }

    /// Waits for every child, adopted ones too, and tells how the agent itself exited. No child is left in the end, and
    /// so no descendant: an orphan would be a child.
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

    /// Waits for the word to end the agent, for the end of whoever started us, or for a signal, and ends the agent.
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
        // Somebody cannot be killed. Its owner is told by our exit code.
        std::process::exit(1);
    }

    /// Ends the agent and its descendants. When they are gone the other thread ends this process.
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
                // They are dead and only wait to be reaped.
                std::thread::sleep(Duration::from_millis(10));
            }
            wait(&handles, ROUND);
        }
    }

    /// Waits for the agent's own end, at most so long, and no longer than somebody is there who wants it.
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

    /// Everybody below us who lives, after all of them were stopped: who is stopped starts nobody else.
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

        /// The socket; none when this process was started by something else.
        pub(super) fn control() -> Option<UnixStream> {
            // SAFETY: the borrow lasts for this call only, and a number that is not open is refused by it.
            let is_open = fcntl_setfd(unsafe { BorrowedFd::borrow_raw(CONTROL) }, FdFlags::CLOEXEC);
            is_open.ok()?;
            // SAFETY: it is open, and nothing else in this process, which has only begun, uses this number.
            let fd = unsafe { OwnedFd::from_raw_fd(CONTROL) };
            Some(fd.into())
        }

        /// Readable when a signal came that asks us to end. All are blocked by who started us.
        pub(super) fn signals() -> Option<OwnedFd> {
            let mut set = MaybeUninit::uninit();
            // SAFETY: the set is initialised by the first call and only read by the others.
            let fd = unsafe {
                libc::sigemptyset(set.as_mut_ptr());
                for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
                    libc::sigaddset(set.as_mut_ptr(), signal);
                }
                libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC)
            };
            // SAFETY: the descriptor is new and ours.
            (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
        }

        /// Has the child of a keeper take signals, which are all blocked here.
        pub(in super::super::super) fn take_signals(command: &mut Command) {
            // SAFETY: only functions are called that may be called after a fork, and nothing is allocated.
            unsafe {
                command.pre_exec(|| {
                    let mut none = MaybeUninit::uninit();
                    libc::sigemptyset(none.as_mut_ptr());
                    libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
                    Ok(())
                });
            }
        }

        /// Has the child do this, take signals again, and become the program that these words call.
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
                // SAFETY: the set is initialised by the first call; the words live until the program is another, and
                // their list ends with null.
                unsafe {
                    libc::sigemptyset(none.as_mut_ptr());
                    libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
                    libc::execv(program, argv.as_ptr());
                }
                Err(io::Error::last_os_error())
            };
            // SAFETY: this process has one thread until the agent was started, so that the child is a whole copy of it:
            // no lock is held by a thread that is not there.
            unsafe { command.pre_exec(become_it) };
            Ok(())
        }
    }
    pub(in super::super) use raw::take_signals;
    use raw::{become_after, control, signals};
}
