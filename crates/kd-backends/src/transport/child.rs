//! A process that leads a session of its own. Comes in: what to start. Goes out: its pipes, and how it exits.
//!
//! A session of its own is what the standard library can give a child by a fork only, and a fork copies the table of
//! all our memory, and each page again that is written to afterwards: 5 ms with 64 MB in use and 16 ms with 256, where
//! posix_spawn(3), which lends our memory until the other program runs, takes 0.4 ms (`cargo bench --bench start`).

use super::outlet::Outlet;
use rustix::process::{Pid, WaitOptions, waitpid};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What to start, and how.
pub(super) struct Start<'a> {
    /// The program, as a path.
    pub(super) program: &'a Path,
    pub(super) args: &'a [OsString],
    /// Its whole environment.
    pub(super) env: &'a [(String, String)],
    pub(super) folder: &'a Path,
    /// Whether there is something for it to read on stdin; else there is an end of file.
    pub(super) hears: bool,
}

/// Our ends of what it reads and prints.
pub(super) struct Pipes {
    pub(super) stdin: Option<pipe::Sender>,
    pub(super) stdout: Outlet,
    pub(super) stderr: pipe::Receiver,
}

/// Its ends.
struct Ends {
    /// Without one it reads an end of file.
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

/// A child that was started. Dropping it leaves it to itself, and to whoever reaps: see [`super::family`].
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    exit: Option<ExitStatus>,
    /// The system's word that this child has exited, where there is one.
    #[cfg(target_os = "linux")]
    gone: Option<platform::Watch>,
    /// Its word that some child of this process has changed.
    news: Signal,
}

impl Child {
    /// Starts it. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// Whatever the system says when the program cannot be started, or its folder not entered.
    pub(super) fn start(start: &Start<'_>) -> io::Result<(Self, Pipes)> {
        // All that can fail comes before there is a child; nor must its end be missed.
        let news = signal(SignalKind::child())?;
        let (pipes, ends) = Pipes::new(start.hears)?;
        let pid = platform::spawn(start, ends)?;
        let child = Self {
            pid,
            exit: None,
            #[cfg(target_os = "linux")]
            gone: platform::watch(pid),
            news,
        };
        Ok((child, pipes))
    }

    /// Its number.
    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// How it exited, if it has.
    ///
    /// # Errors
    /// When somebody else has reaped it.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.exit.is_none() {
            self.exit = waitpid(Some(self.pid), WaitOptions::NOHANG)?
                .map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
        }
        Ok(self.exit)
    }

    /// How it exited, when it has. May be dropped and called again.
    ///
    /// # Errors
    /// When somebody else has reaped it.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(exit) = self.try_wait()? {
                return Ok(exit);
            }
            #[cfg(target_os = "linux")]
            if let Some(gone) = &self.gone {
                let _ = gone.readable().await?;
                continue;
            }
            self.news.recv().await;
        }
    }
}

#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "posix_spawn has no safe form that starts a session and enters a folder"
)]
mod platform {
    use super::{Ends, Start};
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

    pub(super) fn spawn(start: &Start<'_>, ends: Ends) -> io::Result<Pid> {
        let program = c_string(start.program.as_os_str())?;
        let args: Vec<CString> = start
            .args
            .iter()
            .map(|a| c_string(a))
            .collect::<Result<_, _>>()?;
        // The last word on a variable counts.
        let env: BTreeMap<&str, &str> = start.env.iter().map(|(n, v)| (&**n, &**v)).collect();
        let env: Vec<CString> = env
            .into_iter()
            .map(|(name, value)| CString::new(format!("{name}={value}")))
            .collect::<Result<_, _>>()?;
        let argv = pointers(std::iter::once(&program).chain(&args));
        let envp = pointers(&env);

        let mut actions = Actions::new()?;
        match &ends.stdin {
            Some(stdin) => actions.put(stdin.as_fd(), libc::STDIN_FILENO)?,
            None => actions.put_nothing(libc::STDIN_FILENO)?,
        }
        actions.put(ends.stdout.as_fd(), libc::STDOUT_FILENO)?;
        actions.put(ends.stderr.as_fd(), libc::STDERR_FILENO)?;
        actions.enter(&c_string(start.folder.as_os_str())?)?;
        let manner = Manner::new()?;

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
        // SAFETY: an `OwnedFd` is one and the same open file for as long as it lives.
        unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.ok()
    }

    fn c_string(text: &OsStr) -> Result<CString, std::ffi::NulError> {
        CString::new(text.as_bytes())
    }

    /// As C has lists of texts: ended by null. They live no longer than the texts.
    fn pointers<'a>(texts: impl IntoIterator<Item = &'a CString>) -> Vec<*mut libc::c_char> {
        let pointers = texts.into_iter().map(|text| text.as_ptr().cast_mut());
        pointers.chain([ptr::null_mut()]).collect()
    }

    /// These functions answer with an error's number, or zero.
    fn told(answer: c_int) -> io::Result<()> {
        match answer {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// What the child does before it becomes the other program.
    struct Actions(posix_spawn_file_actions_t);

    impl Actions {
        fn new() -> io::Result<Self> {
            let mut actions = MaybeUninit::uninit();
            // SAFETY: it is initialised where the call succeeds, and used nowhere else.
            told(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
            // SAFETY: it succeeded.
            Ok(Self(unsafe { actions.assume_init() }))
        }

        /// This file under that number.
        fn put(&mut self, file: BorrowedFd<'_>, number: c_int) -> io::Result<()> {
            // SAFETY: the actions are initialised, and the numbers are only noted.
            told(unsafe {
                libc::posix_spawn_file_actions_adddup2(&raw mut self.0, file.as_raw_fd(), number)
            })
        }

        /// An end of file under that number.
        fn put_nothing(&mut self, number: c_int) -> io::Result<()> {
            const NOTHING: &CStr = c"/dev/null";
            // SAFETY: the actions are initialised, and the path is copied.
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
            // SAFETY: the actions are initialised, and the path is copied.
            told(unsafe {
                libc::posix_spawn_file_actions_addchdir_np(&raw mut self.0, folder.as_ptr())
            })
        }
    }

    impl Drop for Actions {
        fn drop(&mut self) {
            // SAFETY: they are initialised, and nobody uses them afterwards.
            unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
        }
    }

    /// How the child is set up: a session of its own, no signal blocked, and SIGPIPE as every program expects it (a Rust
    /// program ignores it, and what is ignored is inherited).
    struct Manner(posix_spawnattr_t);

    impl Manner {
        fn new() -> io::Result<Self> {
            let mut manner = MaybeUninit::uninit();
            // SAFETY: it is initialised where the call succeeds, and used nowhere else.
            told(unsafe { libc::posix_spawnattr_init(manner.as_mut_ptr()) })?;
            // SAFETY: it succeeded.
            let mut manner = Self(unsafe { manner.assume_init() });
            let attributes = &raw mut manner.0;
            let mut signals = MaybeUninit::uninit();
            // SAFETY: the attributes are initialised; so is the set of signals after the first call, and it is copied.
            unsafe {
                libc::sigemptyset(signals.as_mut_ptr());
                told(libc::posix_spawnattr_setsigmask(
                    attributes,
                    signals.as_ptr(),
                ))?;
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
            // SAFETY: the attributes are initialised.
            told(unsafe { libc::posix_spawnattr_setflags(attributes, flags) })?;
            Ok(manner)
        }
    }

    impl Drop for Manner {
        fn drop(&mut self) {
            // SAFETY: they are initialised, and nobody uses them afterwards.
            unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::{Ends, Start};
    use rustix::process::{Pid, setsid};
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[expect(
        unsafe_code,
        reason = "there is no safe way yet to start a process in a session of its own"
    )]
    pub(super) fn spawn(start: &Start<'_>, ends: Ends) -> io::Result<Pid> {
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
