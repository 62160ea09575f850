//! What the tests of this crate share: a fresh project, drafts, names.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses its own part, and a helper may panic as a test may"
)]

use kd_core::ids::SeatName;
use kd_core::message::{Address, Draft, Provenance, Status};
use kd_store::layout::Layout;
use kd_store::thread::{Durability, Thread};
use std::collections::BTreeMap;
use std::path::Path;

/// A project in a folder, without any environment.
pub(crate) fn layout(root: &Path) -> Layout {
    Layout::find_or_create(root, &|_| None).unwrap().layout
}

/// A new thread in a folder's project; unsynced, because a power cut is not tested.
pub(crate) fn thread(root: &Path, members: &[&str]) -> Thread {
    Thread::create(&layout(root), &seats(members))
        .unwrap()
        .with_durability(Durability::Buffered)
}

/// A message to everybody.
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
