//! Reviews of changes.

pub mod report;
