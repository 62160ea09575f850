//! A hostile repository, read by `GitCommand`: nothing that its settings name is run.
#![allow(clippy::unwrap_used)]

use kd_store::git_command::{DIFF, GitCommand};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Settings that name a program, written as `RUN`; each in a separate repository.
const HOSTILE: [(&str, &str); 16] = [
    ("clean", "[filter \"x\"]\n clean = RUN\n"),
    (
        "required clean",
        "[filter \"x\"]\n clean = RUN\n required = true\n",
    ),
    ("smudge", "[filter \"x\"]\n smudge = RUN\n"),
    (
        "process",
        "[filter \"x\"]\n process = RUN\n required = true\n",
    ),
    ("upper case", "[FILTER \"x\"]\n CLEAN = RUN\n"),
    ("included", "[include]\n path = ../included\n"),
    ("fsmonitor", "[core]\n fsmonitor = RUN\n"),
    ("hooks", "[core]\n hooksPath = hooks\n"),
    ("external diff", "[diff]\n external = RUN\n"),
    ("driver", "[diff \"x\"]\n command = RUN\n"),
    ("textconv", "[diff \"x\"]\n textconv = RUN\n"),
    (
        "pager",
        "[core]\n pager = RUN\n[pager]\n diff = RUN\n status = RUN\n",
    ),
    ("ssh", "[core]\n sshCommand = RUN\n"),
    ("alias", "[alias]\n diff = !RUN\n status = !RUN\n"),
    ("credentials", "[credential]\n helper = !RUN\n"),
    (
        "gpg",
        "[log]\n showSignature = true\n[gpg]\n program = RUN\n",
    ),
];

/// The commands that `kd` and its agents run on a repository.
fn questions() -> Vec<Vec<&'static str>> {
    let diff = |more: &[&'static str]| [&["diff"], &DIFF[..], more].concat();
    vec![
        vec!["rev-parse", "--show-toplevel"],
        vec!["status", "--porcelain=v1", "-z", "--untracked-files=all"],
        vec!["ls-files", "--others", "--exclude-standard"],
        diff(&["--stat=100", "HEAD"]),
        diff(&["HEAD"]),
    ]
}

struct Repository {
    folder: TempDir,
}

impl Repository {
    /// Creates one commit, one changed file that is marked for filters and drivers, and these settings.
    fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repository = Self { folder };
        let top = repository.top();
        fs::create_dir_all(top.join("hooks")).unwrap();
        plain(&top, &["init", "-q", "."]);
        fs::write(top.join("file.x"), "one\n").unwrap();
        fs::write(top.join(".gitattributes"), "*.x filter=x diff=x\n").unwrap();
        plain(&top, &["add", "."]);
        let who = ["-c", "user.name=a", "-c", "user.email=a@b.example"];
        plain(&top, &[&who[..], &["commit", "-qm", "one"]].concat());
        fs::write(top.join("file.x"), "other\n").unwrap();
        let program = repository.folder.path().join("run.sh");
        let mark = repository.mark();
        // Passes its input through, as a filter must.
        let script = format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\ncat\n", mark.display());
        for path in [program.clone(), top.join("hooks/post-index-change")] {
            fs::write(&path, &script).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&path, mode).unwrap();
        }
        let program = program.to_str().unwrap();
        fs::write(
            top.join("included"),
            format!("[filter \"x\"]\n clean = {program}\n"),
        )
        .unwrap();
        let config = top.join(".git/config");
        let before = fs::read_to_string(&config).unwrap();
        fs::write(config, before + &settings.replace("RUN", program)).unwrap();
        repository
    }

    fn top(&self) -> PathBuf {
        self.folder.path().join("r")
    }

    fn mark(&self) -> PathBuf {
        self.folder.path().join("ran")
    }

    fn ran(&self) -> Option<String> {
        fs::read_to_string(self.mark()).ok()
    }
}

fn plain(folder: &Path, args: &[&str]) -> bool {
    fs::create_dir_all(folder).unwrap();
    let mut git = Command::new("git");
    git.args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1");
    git.output().unwrap().status.success()
}

#[test]
fn no_program_that_a_repository_names_is_run() {
    for (name, settings) in HOSTILE {
        let repository = Repository::new(settings);
        let git = GitCommand::new(&repository.top()).unwrap();
        for question in questions() {
            let said = git.read(&question);
            assert!(said.is_ok(), "{name}: {question:?}: {said:?}");
            assert_eq!(repository.ran(), None, "{name}: {question:?}");
        }
        let change = git
            .read(&[&["diff"], &DIFF[..], &["HEAD"]].concat())
            .unwrap();
        assert!(change.contains("+other"), "{name}: {change}");
    }
}

/// The table can fail: a plain git runs most of it.
#[test]
fn a_plain_git_would_run_them() {
    let run = |settings: &str| {
        let repository = Repository::new(settings);
        plain(&repository.top(), &["status", "--porcelain"]);
        plain(&repository.top(), &["diff", "HEAD"]);
        repository.ran().is_some()
    };
    let ran = HOSTILE
        .iter()
        .filter(|(_, settings)| run(settings))
        .map(|(name, _)| *name);
    let ran: Vec<&str> = ran.collect();
    for name in [
        "clean",
        "process",
        "included",
        "fsmonitor",
        "external diff",
        "textconv",
    ] {
        assert!(ran.contains(&name), "{name} does not run: {ran:?}");
    }
}

#[test]
fn variables_of_git_do_not_reach_it() {
    let repository = Repository::new("");
    let git = GitCommand::new(&repository.top()).unwrap();
    let command = git.command(&["status"]);
    let set: Vec<String> = command
        .get_envs()
        .filter(|(_, value)| value.is_some())
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    let wanted = [
        "GIT_ALLOW_PROTOCOL",
        "GIT_NO_LAZY_FETCH",
        "GIT_OPTIONAL_LOCKS",
        "GIT_PAGER",
        "GIT_TERMINAL_PROMPT",
        // Without its relative entries.
        "PATH",
    ];
    assert_eq!(set, wanted);
}

#[test]
fn a_filter_that_cannot_be_switched_off_is_an_error() {
    let repository = Repository::new("[filter \"a=b\"]\n clean = RUN\n");
    let error = GitCommand::new(&repository.top()).unwrap_err().to_string();
    assert!(error.contains("a=b"), "{error}");
    assert_eq!(repository.ran(), None);
}

#[test]
fn more_filters_than_can_be_switched_off_are_an_error() {
    let filters = |count: usize| -> String {
        let one = |n| format!("[filter \"x{n}\"]\n clean = RUN\n");
        (0..count).map(one).collect()
    };
    let repository = Repository::new(&filters(257));
    let error = GitCommand::new(&repository.top()).unwrap_err().to_string();
    assert!(error.contains("257 filters"), "{error}");
    assert_eq!(repository.ran(), None);
    assert!(GitCommand::new(&Repository::new(&filters(256)).top()).is_ok());
}

#[test]
fn another_working_tree_is_refused() {
    let elsewhere = tempfile::tempdir().unwrap();
    let at = elsewhere.path().display();
    let repository = Repository::new(&format!("[core]\n worktree = {at}\n"));
    let error = GitCommand::new(&repository.top())
        .unwrap()
        .top()
        .unwrap_err();
    assert!(error.to_string().contains("core.worktree"), "{error}");
    let above = Repository::new("[core]\n worktree = ../..\n");
    assert!(GitCommand::new(&above.top()).unwrap().top().is_err());
    let good = Repository::new("");
    let sub = good.top().join("hooks");
    let top = GitCommand::new(&sub).unwrap().top().unwrap();
    assert_eq!(
        top.canonicalize().unwrap(),
        good.top().canonicalize().unwrap()
    );
}

#[test]
fn settings_that_include_a_pipe_hold_nobody_up() {
    let repository = Repository::new("[include]\n path = pipe\n");
    let pipe = repository.top().join(".git/pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let limit = std::time::Duration::from_millis(300);
    let error = GitCommand::within(&repository.top(), limit).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("git took longer than 0.3 s"), "{told}");
}
