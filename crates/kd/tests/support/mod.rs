//! Helpers shared by tests of the program from outside: a hermetic home, the real binary, and its files.
#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod council;
pub(crate) mod pty;
pub(crate) mod served;

use kd_core::{Event, Message, Record};
use kd_store::config::ConfigPaths;
use kd_store::{Thread, TrustStore};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The variable that controls the sandbox of agents. A test of the sandbox removes it.
pub(crate) const SANDBOX: &str = "KD_COUNCIL_SANDBOX";

/// Time limit for an event that must happen, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Polls until something is available.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what} never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A home with a working folder, isolated from the developer's environment.
pub(crate) struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    /// Creates a home with this user configuration and a working folder.
    pub(crate) fn new(config: &Value) -> Self {
        let home = Self {
            dir: tempfile::tempdir().expect("a folder"),
        };
        std::fs::create_dir_all(home.work().join(".kd")).expect("made");
        std::fs::write(home.config_file(), config.to_string()).expect("written");
        home
    }

    /// Creates a home whose members play scripts.
    pub(crate) fn scripted(members: &[(&str, Value)]) -> Self {
        let home = Self::new(&json!({}));
        let mut agents = serde_json::Map::new();
        for (name, script) in members {
            let file = home.path().join(format!("{name}.json"));
            std::fs::write(&file, script.to_string()).expect("written");
            agents.insert(
                (*name).into(),
                json!({"backend": "scripted", "model": file}),
            );
        }
        let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
        let config = json!({"council": {"members": names, "conclude": false}, "agents": agents});
        std::fs::write(home.config_file(), config.to_string()).expect("written");
        home
    }

    /// Allows what the folder asks for, like `kd trust --yes`.
    pub(crate) fn trust(&self) {
        let kd = self.work().join(".kd");
        let paths = ConfigPaths {
            user: Some(self.config_file()),
            project: Some(kd.join("config.json")),
            local: Some(kd.join("config.local.json")),
            personas: Some(kd.join("forum/agents")),
            trust: Some(TrustStore::at(&self.path().join(".local/state/kd"))),
            home: None,
        };
        let loaded = kd_store::config::load(&paths, [], &[]).expect("settings");
        if let Some(consent) = loaded.project.consent {
            consent.allow().expect("kept");
        }
    }

    /// Returns the user's configuration file; creates its folder.
    pub(crate) fn config_file(&self) -> PathBuf {
        let folder = self.path().join(".config/kd");
        std::fs::create_dir_all(&folder).expect("made");
        folder.join("config.json")
    }

    /// Returns the home's path.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the working folder.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Prepares the program with these arguments.
    pub(crate) fn kd(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kd"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.path())
            .env("TZ", "UTC")
            .env("PATH", "/usr/bin:/bin")
            // Fake agents write down what they see, wherever their script says.
            .env(SANDBOX, "false")
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        Said::of(self.kd(args).output().expect("it runs"))
    }

    /// Returns the folders of all threads.
    pub(crate) fn threads(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let Ok(branches) = std::fs::read_dir(self.work().join(".kd/branches")) else {
            return found;
        };
        for branch in branches {
            let Ok(threads) = std::fs::read_dir(branch.expect("entry").path().join("threads"))
            else {
                continue;
            };
            found.extend(threads.map(|t| t.expect("entry").path()));
        }
        found.sort();
        found
    }
}

/// Makes a folder the top of a new repository, so that folders above it, in the machine's temporary folder, do not
/// matter.
pub(crate) fn checkout(folder: &Path) {
    let made = Command::new("git")
        .arg("init")
        .arg("-q")
        .arg(folder)
        .status();
    assert!(made.expect("git can be run").success());
}

/// Runs git in a home's folder, without the developer's settings.
pub(crate) fn git(home: &Home, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(["-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(home.work())
        .env("HOME", home.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(done.status.success(), "{args:?}: {done:?}");
}

/// The output and exit code of a run.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn of(output: Output) -> Self {
        let said = Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        };
        // A test that mistypes a command would otherwise miss what it looks for.
        for what in ["unexpected argument", "there is no command `kd "] {
            let line = format!("error: {what}");
            assert!(!said.err.starts_with(&line), "no command: {}", said.err);
        }
        said
    }

    /// Runs a command with this input. It may exit without reading all of it.
    pub(crate) fn fed(mut command: Command, input: &str) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        let input = input.to_owned();
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(input.as_bytes());
        });
        let said = Self::of(child.wait_with_output().expect("it ends"));
        writer.join().expect("written");
        said
    }

    /// Parses the single object of `--json`.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|e| panic!("{e}: {}\n{}", self.out, self.err))
    }
}

/// Returns the messages announced by `--jsonl` lines. Ignores an incomplete last line; every other must be complete.
pub(crate) fn announced(lines: &[u8]) -> Vec<Message> {
    let whole = lines
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let text = std::str::from_utf8(&lines[..whole]).expect("text");
    text.lines()
        .map(|line| serde_json::from_str::<Record>(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .filter_map(|record| match record.event {
            Event::MessageAdded { message, .. } => Some(message),
            _ => None,
        })
        .collect()
}

/// Returns the numbers of a thread's messages, in order.
fn numbers(thread: &Path) -> Vec<u32> {
    let mut numbers: Vec<u32> = std::fs::read_dir(thread)
        .expect("a thread")
        .filter_map(|item| {
            let name = item
                .expect("entry")
                .file_name()
                .into_string()
                .expect("text");
            let (number, _) = name.strip_suffix(".md")?.split_once('-')?;
            Some(number.parse().expect("a number"))
        })
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Returns all messages of a thread by number, and checks its invariants: each file is complete, and numbers are unique
/// and without gaps. If the thread grows while it is read, it is read again.
pub(crate) fn whole(thread: &Path) -> BTreeMap<u32, Message> {
    let (numbers, read) = loop {
        let before = numbers(thread);
        let read = Thread::open_folder(thread)
            .and_then(|thread| thread.messages())
            .expect("the thread reads");
        if numbers(thread) == before {
            break (before, read);
        }
    };
    let count = u32::try_from(numbers.len()).expect("few");
    assert_eq!(
        numbers,
        (1..=count).collect::<Vec<_>>(),
        "each number once, none missing"
    );
    assert_eq!(read.problems, [], "every file is a message");
    let messages: BTreeMap<u32, Message> = read.messages.into_iter().map(|m| (m.seq, m)).collect();
    assert_eq!(messages.len(), numbers.len(), "no file is passed over");
    messages
}

/// A random number generator (SplitMix64); the same seed gives the same numbers.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}
