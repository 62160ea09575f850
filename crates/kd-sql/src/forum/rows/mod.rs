//! Reads values from rows, and finds one row by its number. Shared by every file that needs it.

pub(super) mod links;
pub(super) mod motions;
pub(super) mod posts;
pub(super) mod threads;
