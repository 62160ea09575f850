//! Helpers for this crate's tests: a new project, drafts, names.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses its own part, and a helper may panic as a test may"
)]

use kd_core::config::Layer;
use kd_core::ids::SeatName;
use kd_core::message::{Address, Draft, Provenance, Status};
use kd_store::TrustStore;
use kd_store::config::ConfigPaths;
use kd_store::layout::Layout;
use kd_store::thread::{Durability, Thread};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A home directory and a project, with their configuration files.
pub(crate) struct Project {
    pub(crate) dir: TempDir,
    pub(crate) paths: ConfigPaths,
}

impl Project {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let kd = dir.path().join("repo/.kd");
        fs::create_dir_all(&kd).unwrap();
        let paths = ConfigPaths {
            user: Some(dir.path().join("home/kd/config.json")),
            project: Some(kd.join("config.json")),
            local: Some(kd.join("config.local.json")),
            personas: Some(kd.join("forum/agents")),
            trust: Some(TrustStore::at(&dir.path().join("state"))),
            home: None,
        };
        Self { dir, paths }
    }

    /// Returns the file of a layer.
    pub(crate) fn file(&self, layer: Layer) -> PathBuf {
        self.paths.file(layer).unwrap()
    }

    /// Sets a layer's file to this text.
    pub(crate) fn has(self, layer: Layer, text: impl AsRef<[u8]>) -> Self {
        let file = self.file(layer);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    /// Returns the folder of the project.
    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }
}

/// Runs git in a folder, without the tester's own settings.
pub(crate) fn git(folder: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
}

/// Returns the layout of a project in a folder, with an empty environment.
pub(crate) fn layout(root: &Path) -> Layout {
    Layout::find_or_create(root, &|_| None).unwrap().layout
}

/// Creates a thread in a folder's project; unsynced, because power failures are not tested.
pub(crate) fn thread(root: &Path, members: &[&str]) -> Thread {
    Thread::create(&layout(root), &seats(members))
        .unwrap()
        .with_durability(Durability::Buffered)
}

/// A message to everyone.
pub(crate) fn draft(from: &str, body: &str) -> Draft {
    Draft {
        turn: None,
        from: from.into(),
        to: Address::All,
        at: "2026-11-21T07:57:55.9Z".parse().unwrap(),
        status: (from != "king").then_some(Status::Complete),
        refs: Vec::new(),
        provenance: Provenance::default(),
        extra: BTreeMap::new(),
        body: body.into(),
    }
}

pub(crate) fn seats(names: &[&str]) -> Vec<SeatName> {
    names.iter().map(|n| SeatName::new(*n).unwrap()).collect()
}
