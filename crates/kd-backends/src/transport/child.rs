//! An agent program, with a keeper where there is one.
//!
//! Input: what to start. Output: its pipes, and how it exits.
//!
//! The standard library can start a child in a new session only by a fork. A fork copies the page table, and later each
//! page that is written to: 5 ms with 64 MB in use and 16 ms with 256 MB, where posix_spawn(3), which shares our memory
//! until the other program runs, takes 0.4 ms (`cargo bench --bench start`).

#[cfg(target_os = "linux")]
use super::keeper::{self, Note, Plan};
use super::outlet::Outlet;
use super::rights::Rights;
#[cfg(target_os = "linux")]
use super::tools;
#[cfg(target_os = "linux")]
use rustix::process::WaitOptions;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, waitid};
use std::ffi::{OsStr, OsString};
use std::io;
#[cfg(target_os = "linux")]
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt;
#[cfg(target_os = "linux")]
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::net::unix::pipe;

/// The launch of a program: its arguments, environment, limits and rights.
pub(super) struct Start<'a> {
    /// The program, as a path.
    pub(super) program: &'a Path,
    pub(super) args: &'a [OsString],
    /// The complete environment.
    pub(super) env: &'a [(String, String)],
    pub(super) folder: &'a Path,
    /// Whether it gets input on stdin; otherwise it reads end of file.
    pub(super) hears: bool,
    /// The number of the signal that ends it gracefully.
    pub(super) gentle: i32,
    /// Time limit for it to exit after that signal.
    pub(super) grace: Duration,
    /// The paths it may access. Only a keeper can enforce this.
    pub(super) rights: Option<&'a Rights>,
    /// The folder for its temporary files, used with `rights`.
    pub(super) temporary: Option<&'a Path>,
    /// Command of a tool server that only a keeper can start.
    pub(super) tools: &'a [String],
}

/// Our ends of its pipes.
pub(super) struct Pipes {
    pub(super) stdin: Option<pipe::Sender>,
    pub(super) stdout: Outlet,
    pub(super) stderr: pipe::Receiver,
}

/// The child's ends of the pipes.
struct Ends {
    /// `None`: it reads end of file.
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Pipes {
    fn new(hears: bool) -> io::Result<(Self, Ends)> {
        let (stdin, words) = hears.then(io::pipe).transpose()?.unzip();
        let (stdout, printed) = io::pipe()?;
        let (stderr, complained) = io::pipe()?;
        let words = words.map(|words| pipe::Sender::from_owned_fd(words.into()));
        let ours = Self {
            stdin: words.transpose()?,
            stdout: Outlet::new(stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
        };
        let theirs = Ends {
            stdin: stdin.map(OwnedFd::from),
            stdout: printed.into(),
            stderr: complained.into(),
        };
        Ok((ours, theirs))
    }
}

/// A started program, or its keeper where there is one. Dropping it leaves it to [`super::family`], which stops and
/// reaps it.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    exit: Option<ExitStatus>,
    #[cfg(target_os = "linux")]
    keeper: Option<Keeper>,
    /// Reports that this child has exited, where the system can.
    #[cfg(target_os = "linux")]
    gone: Option<platform::Watch>,
    /// Delay before the next poll where the system does not report exits: a SIGCHLD handler would belong to the program
    /// that uses this library.
    pause: Duration,
}

/// The first and the longest delay between two polls of a child.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

impl Child {
    /// Starts the program. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The program cannot be started, or its folder not entered.
    pub(super) fn start(start: &Start<'_>) -> io::Result<(Self, Pipes)> {
        // Everything that can fail comes before the child exists.
        let (pipes, ends) = Pipes::new(start.hears)?;
        #[cfg(target_os = "linux")]
        if let Some(program) = keeper::identity::program() {
            let (keeper, pid) = Keeper::start(program, start, ends)?;
            let child = Self {
                pid,
                exit: None,
                keeper: Some(keeper),
                gone: None,
                pause: PAUSES.0,
            };
            return Ok((child, pipes));
        }
        let pid = platform::spawn(&plain(start), ends)?;
        let child = Self {
            pid,
            exit: None,
            #[cfg(target_os = "linux")]
            keeper: None,
            #[cfg(target_os = "linux")]
            gone: platform::watch(pid),
            pause: PAUSES.0,
        };
        Ok((child, pipes))
    }

    /// Returns the process id of the program or of its keeper.
    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Takes the socket of its keeper, if it has one.
    #[cfg(target_os = "linux")]
    pub(super) fn socket(&mut self) -> Option<UnixStream> {
        self.keeper.take().map(|keeper| keeper.socket)
    }

    /// Returns whether it has a keeper.
    pub(super) fn is_kept(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.keeper.is_some();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Returns why its keeper could not start it.
    pub(super) fn why(&self) -> Option<&str> {
        #[cfg(target_os = "linux")]
        return self.keeper.as_ref()?.why.as_deref();
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Returns its exit status, if it has exited.
    ///
    /// # Errors
    /// The child was reaped elsewhere.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.exit.is_none() {
            #[cfg(target_os = "linux")]
            if let Some(keeper) = &mut self.keeper {
                self.exit = keeper.told()?;
                return Ok(self.exit);
            }
            self.exit = exited(self.pid)?;
        }
        Ok(self.exit)
    }

    /// Waits until it exits. Cancel safe.
    ///
    /// # Errors
    /// The child was reaped elsewhere.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(exit) = self.try_wait()? {
                return Ok(exit);
            }
            #[cfg(target_os = "linux")]
            if let Some(keeper) = &mut self.keeper {
                keeper.news().await?;
                continue;
            }
            #[cfg(target_os = "linux")]
            if let Some(gone) = &self.gone {
                let _ = gone.readable().await?;
                continue;
            }
            tokio::time::sleep(self.pause).await;
            self.pause = (self.pause * 2).min(PAUSES.1);
        }
    }
}

/// Our side of a keeper.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Keeper {
    socket: UnixStream,
    /// The socket, registered with the runtime; `None` while no task waits for it.
    news: Option<tokio::net::UnixStream>,
    /// The beginning of an incomplete note.
    begun: Vec<u8>,
    /// The reason why the program was not started.
    why: Option<String>,
}

/// Returns the error message for a keeper that could not restrict the agent's access.
#[cfg(target_os = "linux")]
fn unheld(error: i32) -> String {
    let error = match error {
        0 => "unknown reason".to_owned(),
        error => io::Error::from_raw_os_error(error).to_string(),
    };
    format!("the sandbox could not be set up: {error}")
}

#[cfg(target_os = "linux")]
impl Keeper {
    /// Starts a keeper that starts the program.
    fn start(keeper: &Path, start: &Start<'_>, ends: Ends) -> io::Result<(Self, Pid)> {
        let certain = startable(start.program, start.folder)?;
        let plan = Plan {
            gentle: start.gentle,
            grace: u64::try_from(start.grace.as_millis()).unwrap_or(u64::MAX),
            rights: start.rights.cloned(),
            temporary: start.temporary.map(Path::to_path_buf),
            tools: start.tools.to_vec(),
        };
        let plan = plan.bytes()?;
        let (socket, theirs) = UnixStream::pair()?;
        let socket_name = match start.tools {
            [] => String::new(),
            _ => tools::name(),
        };
        let first = [socket_name.into(), start.program.as_os_str().to_owned()];
        let args: Vec<OsString> = first.into_iter().chain(start.args.to_vec()).collect();
        let kept = Spawn {
            program: keeper,
            name: keeper::NAME.as_ref(),
            args: &args,
            socket: Some(theirs.into()),
            ..plain(start)
        };
        let pid = platform::spawn(&kept, ends)?;
        drop(kept);
        let mut keeper = Self {
            socket,
            news: None,
            begun: Vec::new(),
            why: None,
        };
        match keeper.begin(&plan, certain) {
            Ok(()) => Ok((keeper, pid)),
            Err(error) => {
                // A keeper exits when it failed or its socket is closed.
                drop(keeper);
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
                Err(error)
            }
        }
    }

    /// Sends the plan to the running keeper, since it may exceed the socket's buffer. Waits until the program has
    /// started, unless `certain`.
    fn begin(&mut self, plan: &[u8], certain: bool) -> io::Result<()> {
        self.socket.write_all(plan)?;
        // If uncertain, only the system knows whether it can run the file.
        let note = if certain { None } else { self.wait_for_note()? };
        match note {
            Some(Note::Failed(error)) => Err(io::Error::from_raw_os_error(error)),
            Some(Note::Unheld(error)) => Err(io::Error::other(unheld(error))),
            _ => self.socket.set_nonblocking(true),
        }
    }

    /// Waits for the first note.
    fn wait_for_note(&mut self) -> io::Result<Option<Note>> {
        let mut note = [0; Note::LENGTH];
        self.socket.read_exact(&mut note)?;
        Ok(Note::of(note))
    }

    /// Returns the program's exit status, if it has exited. If the keeper is gone, the program was killed with it.
    fn told(&mut self) -> io::Result<Option<ExitStatus>> {
        loop {
            let mut room = [0; Note::LENGTH];
            let room = &mut room[..Note::LENGTH - self.begun.len()];
            match self.socket.read(room) {
                Ok(0) => return Ok(Some(ExitStatus::from_raw(libc::SIGKILL))),
                Ok(length) => self.begun.extend(&room[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            let Ok(note) = <[u8; Note::LENGTH]>::try_from(self.begun.as_slice()) else {
                continue;
            };
            self.begun.clear();
            match Note::of(note) {
                Some(Note::Exited(status)) => return Ok(Some(ExitStatus::from_raw(status))),
                Some(Note::Unheld(error)) => self.why = Some(unheld(error)),
                // The exit code that shells use for a program that cannot be run.
                Some(Note::Failed(error)) => {
                    let error = io::Error::from_raw_os_error(error);
                    let why = || format!("the program could not be started: {error}");
                    self.why.get_or_insert_with(why);
                    return Ok(Some(ExitStatus::from_raw(126 << 8)));
                }
                _ => {}
            }
        }
    }

    /// Waits until there may be a note.
    async fn news(&mut self) -> io::Result<()> {
        let news = match &mut self.news {
            Some(news) => news,
            none => none.insert(tokio::net::UnixStream::from_std(self.socket.try_clone()?)?),
        };
        loop {
            news.readable().await?;
            // The runtime considers the socket readable until a read through it finds nothing.
            match news.try_io(tokio::io::Interest::READABLE, || look(&self.socket)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => return Ok(()),
            }
        }
    }
}

/// Checks whether there is something to read; an error if not.
#[cfg(target_os = "linux")]
fn look(socket: &UnixStream) -> io::Result<()> {
    let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
    let mut one = [0_u8; 1];
    rustix::net::recv(socket, &mut one, flags)?;
    Ok(())
}

/// Fails like the system if a program cannot be started; returns whether it certainly can.
#[cfg(target_os = "linux")]
fn startable(program: &Path, folder: &Path) -> io::Result<bool> {
    if !std::fs::metadata(folder)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let program = folder.join(program);
    may_run(&program)?;
    let mut head = Vec::new();
    let Ok(file) = std::fs::File::open(&program) else {
        // It may be executable but not readable.
        return Ok(false);
    };
    file.take(256).read_to_end(&mut head)?;
    if head.starts_with(b"\x7fELF") {
        return Ok(true);
    }
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(line) = line.strip_prefix(b"#!") else {
        return Ok(false);
    };
    let interpreter = line.trim_ascii().split(u8::is_ascii_whitespace).next();
    let interpreter = OsStr::from_bytes(interpreter.unwrap_or_default());
    may_run(&folder.join(interpreter)).map(|()| true)
}

#[cfg(target_os = "linux")]
fn may_run(program: &Path) -> io::Result<()> {
    rustix::fs::access(program, rustix::fs::Access::EXEC_OK)?;
    match std::fs::metadata(program)?.is_file() {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Arguments for starting a process.
struct Spawn<'a> {
    program: &'a Path,
    /// Its `argv[0]`.
    name: &'a OsStr,
    args: &'a [OsString],
    env: &'a [(String, String)],
    folder: &'a Path,
    /// The socket of a keeper; with one, every signal is blocked.
    #[cfg(target_os = "linux")]
    socket: Option<OwnedFd>,
}

/// Prepares to start the program itself, without a keeper.
fn plain<'a>(start: &Start<'a>) -> Spawn<'a> {
    Spawn {
        program: start.program,
        name: start.program.as_os_str(),
        args: start.args,
        env: start.env,
        folder: start.folder,
        #[cfg(target_os = "linux")]
        socket: None,
    }
}

/// Returns the exit status of a child, if it has exited. Does not reap the process, so that its process id and the
/// ids of its group and session are not reused before [`super::family`] has stopped all of them.
fn exited(pid: Pid) -> io::Result<Option<ExitStatus>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(pid), options)?;
    let raw = |status: WaitIdStatus| match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code << 8,
        (None, signal) => signal.unwrap_or_default(),
    };
    Ok(status.map(|status| ExitStatus::from_raw(raw(status))))
}

#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "posix_spawn has no safe form that starts a session and enters a folder"
)]
mod platform {
    use super::super::keeper::CONTROL;
    use super::{Ends, Spawn};
    use libc::{posix_spawn_file_actions_t, posix_spawnattr_t};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use std::collections::BTreeMap;
    use std::ffi::{CStr, CString, OsStr, c_int};
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::ptr;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    pub(super) fn spawn(start: &Spawn<'_>, ends: Ends) -> io::Result<Pid> {
        let program = c_string(start.program.as_os_str())?;
        let name = c_string(start.name)?;
        let args: Vec<CString> = start
            .args
            .iter()
            .map(|a| c_string(a))
            .collect::<Result<_, _>>()?;
        // The last value of a variable wins.
        let env: BTreeMap<&str, &str> = start.env.iter().map(|(n, v)| (&**n, &**v)).collect();
        let env: Vec<CString> = env
            .into_iter()
            .map(|(name, value)| CString::new(format!("{name}={value}")))
            .collect::<Result<_, _>>()?;
        let argv = pointers(std::iter::once(&name).chain(&args));
        let envp = pointers(&env);

        let mut actions = Actions::new()?;
        match &ends.stdin {
            Some(stdin) => actions.put(stdin.as_fd(), libc::STDIN_FILENO)?,
            None => actions.put_nothing(libc::STDIN_FILENO)?,
        }
        actions.put(ends.stdout.as_fd(), libc::STDOUT_FILENO)?;
        actions.put(ends.stderr.as_fd(), libc::STDERR_FILENO)?;
        if let Some(socket) = &start.socket {
            actions.put(socket.as_fd(), CONTROL)?;
        }
        actions.enter(&c_string(start.folder.as_os_str())?)?;
        let manner = Manner::new(start.socket.is_some())?;

        let mut pid = 0;
        // SAFETY: all pointers are to values that live until the end of this function; both lists end with null.
        told(unsafe {
            libc::posix_spawn(
                &raw mut pid,
                program.as_ptr(),
                &raw const actions.0,
                &raw const manner.0,
                argv.as_ptr(),
                envp.as_ptr(),
            )
        })?;
        Pid::from_raw(pid).ok_or_else(|| io::Error::other("a child without a number"))
    }

    /// Readable once the process has exited.
    pub(super) type Watch = AsyncFd<OwnedFd>;

    /// Watches a child that nobody has waited for yet.
    pub(super) fn watch(pid: Pid) -> Option<Watch> {
        let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // SAFETY: an `OwnedFd` refers to the same open file for as long as it lives.
        unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.ok()
    }

    fn c_string(text: &OsStr) -> Result<CString, std::ffi::NulError> {
        CString::new(text.as_bytes())
    }

    /// Builds a null-terminated C array of strings, valid as long as the strings.
    fn pointers<'a>(texts: impl IntoIterator<Item = &'a CString>) -> Vec<*mut libc::c_char> {
        let pointers = texts.into_iter().map(|text| text.as_ptr().cast_mut());
        pointers.chain([ptr::null_mut()]).collect()
    }

    /// Converts the result of these functions: an error number, or zero.
    fn told(answer: c_int) -> io::Result<()> {
        match answer {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// The file actions of the child before it executes the program.
    struct Actions(posix_spawn_file_actions_t);

    impl Actions {
        fn new() -> io::Result<Self> {
            let mut actions = MaybeUninit::uninit();
            // SAFETY: it is initialized if the call succeeds, and used nowhere else.
            told(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
            // SAFETY: it succeeded.
            Ok(Self(unsafe { actions.assume_init() }))
        }

        /// Duplicates a file to this descriptor number.
        fn put(&mut self, file: BorrowedFd<'_>, number: c_int) -> io::Result<()> {
            // SAFETY: the actions are initialized, and the numbers are only recorded.
            told(unsafe {
                libc::posix_spawn_file_actions_adddup2(&raw mut self.0, file.as_raw_fd(), number)
            })
        }

        /// Opens `/dev/null` under this descriptor number.
        fn put_nothing(&mut self, number: c_int) -> io::Result<()> {
            const NOTHING: &CStr = c"/dev/null";
            // SAFETY: the actions are initialized, and the path is copied.
            told(unsafe {
                libc::posix_spawn_file_actions_addopen(
                    &raw mut self.0,
                    number,
                    NOTHING.as_ptr(),
                    libc::O_RDONLY,
                    0,
                )
            })
        }

        fn enter(&mut self, folder: &CStr) -> io::Result<()> {
            // SAFETY: the actions are initialized, and the path is copied.
            told(unsafe {
                libc::posix_spawn_file_actions_addchdir_np(&raw mut self.0, folder.as_ptr())
            })
        }
    }

    impl Drop for Actions {
        fn drop(&mut self) {
            // SAFETY: they are initialized, and never used afterwards.
            unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
        }
    }

    /// Attributes of the child: a new session, no signal blocked (every signal for a keeper), and the default SIGPIPE
    /// action (Rust programs ignore it, and children inherit that).
    struct Manner(posix_spawnattr_t);

    impl Manner {
        fn new(blocked: bool) -> io::Result<Self> {
            let mut manner = MaybeUninit::uninit();
            // SAFETY: it is initialized if the call succeeds, and used nowhere else.
            told(unsafe { libc::posix_spawnattr_init(manner.as_mut_ptr()) })?;
            // SAFETY: it succeeded.
            let mut manner = Self(unsafe { manner.assume_init() });
            let attributes = &raw mut manner.0;
            let mut signals = MaybeUninit::uninit();
            // SAFETY: the attributes are initialized; so is the signal set after the first call, and it is copied.
            unsafe {
                if blocked {
                    libc::sigfillset(signals.as_mut_ptr());
                } else {
                    libc::sigemptyset(signals.as_mut_ptr());
                }
                told(libc::posix_spawnattr_setsigmask(
                    attributes,
                    signals.as_ptr(),
                ))?;
                libc::sigemptyset(signals.as_mut_ptr());
                libc::sigaddset(signals.as_mut_ptr(), libc::SIGPIPE);
                told(libc::posix_spawnattr_setsigdefault(
                    attributes,
                    signals.as_ptr(),
                ))?;
            }
            let flags = [
                libc::POSIX_SPAWN_SETSIGMASK as libc::c_short,
                libc::POSIX_SPAWN_SETSIGDEF as libc::c_short,
                libc::POSIX_SPAWN_SETSID,
            ];
            let flags = flags.into_iter().fold(0, |all, flag| all | flag);
            // SAFETY: the attributes are initialized.
            told(unsafe { libc::posix_spawnattr_setflags(attributes, flags) })?;
            Ok(manner)
        }
    }

    impl Drop for Manner {
        fn drop(&mut self) {
            // SAFETY: they are initialized, and never used afterwards.
            unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::{Ends, Spawn};
    use rustix::process::{Pid, setsid};
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[expect(
        unsafe_code,
        reason = "std has no safe way to start a process in a new session"
    )]
    pub(super) fn spawn(start: &Spawn<'_>, ends: Ends) -> io::Result<Pid> {
        let mut command = Command::new(start.program);
        command
            .args(start.args)
            .env_clear()
            .envs(start.env.iter().map(|(name, value)| (name, value)))
            .current_dir(start.folder)
            .stdin(ends.stdin.map_or_else(Stdio::null, Stdio::from))
            .stdout(ends.stdout)
            .stderr(ends.stderr);
        // SAFETY: the closure runs between fork and exec, where only async-signal-safe functions may be called and
        // nothing may be allocated; setsid(2) is such a function, and nothing else is called.
        unsafe {
            command.pre_exec(|| setsid().map(drop).map_err(io::Error::from));
        }
        let pid = i32::try_from(command.spawn()?.id()).ok();
        pid.and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("a child without a number"))
    }
}
