//! A session of a page: its command lines, run one after another in one home.

use super::page::root;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time limit of a command line, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A proxy that is not there: nothing leaves this machine.
const NOWHERE: &str = "http://127.0.0.1:9";

/// Restores folder, variables and `$?` before a command line, and saves them after it.
const AROUND: &str = r#"
. "$KD_DOCS/variables"
cd "$(cat "$KD_DOCS/folder")" || exit 99
(exit "$KD_DOCS_LAST")
COMMAND
KD_DOCS_LAST=$?
export KD_DOCS_LAST
export -p > "$KD_DOCS/variables"
pwd > "$KD_DOCS/folder"
exit "$KD_DOCS_LAST"
"#;

/// Returns the folder of the scripts that prepare sessions.
fn setup() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/docs/setup")
}

/// Returns the script that prepares a page, or a section of it, if there is one.
pub(crate) fn script(page: &str, section: Option<&str>) -> Option<PathBuf> {
    let page = page
        .trim_end_matches(".md")
        .replace('/', "-")
        .to_lowercase();
    let page = page.trim_start_matches("docs-");
    let name = match section {
        None => format!("{page}.sh"),
        Some(section) => {
            let word = |c: char| if c.is_alphanumeric() { c } else { '-' };
            let section: String = section.to_lowercase().chars().map(word).collect();
            format!("{page}--{section}.sh")
        }
    };
    Some(setup().join(name)).filter(|script| script.exists())
}

/// Returns the script for pages that have none.
pub(crate) fn any_script() -> PathBuf {
    setup().join("any.sh")
}

/// A home with a working folder.
pub(crate) struct Session {
    home: tempfile::TempDir,
    // Removed after the home.
    state: tempfile::TempDir,
}

/// The result of a command line.
pub(crate) struct Ran {
    pub(crate) out: String,
    pub(crate) err: String,
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
}

/// Collects an output while it is written.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<u8>>>);

impl Collected {
    fn from(mut pipe: impl Read + Send + 'static) -> (Self, std::thread::JoinHandle<()>) {
        let collected = Self::default();
        let to = collected.clone();
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut piece) {
                to.0.lock().unwrap().extend_from_slice(&piece[..read]);
            }
        });
        (collected, reader)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Session {
    /// Opens a session in an empty home, and prepares it with this script of `setup/`.
    pub(crate) fn open(script: &Path) -> Self {
        let session = Self {
            home: tempfile::tempdir().unwrap(),
            state: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(session.work()).unwrap();
        std::fs::write(session.state.path().join("variables"), "").unwrap();
        let work = session.work().display().to_string();
        std::fs::write(session.state.path().join("folder"), work).unwrap();
        let prepare = format!(
            "ROOT='{}'\nset -e\n. '{}'\n. '{}'\nset +e",
            root().display(),
            setup().join("lib.sh").display(),
            script.display()
        );
        let ran = session.run(&prepare, |_| false);
        assert_eq!(ran.code, Some(0), "{script:?}: {}{}", ran.out, ran.err);
        session
    }

    /// Returns the folder where the session starts.
    pub(crate) fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    /// Returns the home's path.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Returns the newest thread.
    pub(crate) fn newest_thread(&self) -> Option<String> {
        let mut newest = None;
        for branch in std::fs::read_dir(self.work().join(".kd/branches")).ok()? {
            for thread in std::fs::read_dir(branch.ok()?.path().join("threads")).ok()? {
                let thread = thread.ok()?;
                let changed = thread.metadata().and_then(|data| data.modified()).ok()?;
                newest = newest.max(Some((changed, thread.file_name())));
            }
        }
        newest?.1.into_string().ok()
    }

    /// Runs a command line, in a pipe as wide as a terminal of 80 columns. Interrupts it when `enough` of its output
    /// has come.
    pub(crate) fn run(&self, line: &str, enough: impl Fn(&str) -> bool) -> Ran {
        let program = Path::new(env!("CARGO_BIN_EXE_kd")).parent().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", &AROUND.replace("COMMAND", line)])
            .current_dir(self.work())
            .env_clear()
            .env("HOME", self.home.path())
            .env("KD_DOCS", self.state.path())
            .env("KD_DOCS_LAST", "0")
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("COLUMNS", "80")
            // Nothing is downloaded.
            .env("KD_OFFLINE", "1")
            .env("HTTP_PROXY", NOWHERE)
            .env("HTTPS_PROXY", NOWHERE)
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PATH", format!("{}:/usr/bin:/bin", program.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let (out, out_reader) = Collected::from(child.stdout.take().unwrap());
        let (err, err_reader) = Collected::from(child.stderr.take().unwrap());
        let group = Pid::from_child(&child);
        // It may have ended.
        let signal = |signal| {
            let _ = kill_process_group(group, signal);
        };
        let end = Instant::now() + PATIENCE;
        let mut interrupted = false;
        let status: ExitStatus = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if !interrupted && enough(&(out.text() + &err.text())) {
                interrupted = true;
                signal(Signal::INT);
            }
            if Instant::now() > end {
                signal(Signal::KILL);
                break child.wait().unwrap();
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        out_reader.join().unwrap();
        err_reader.join().unwrap();
        Ran {
            out: out.text(),
            err: err.text(),
            code: status.code(),
        }
    }
}
