//! What is read from rows, and how one row is found by its number: for every file that needs it.

pub(super) mod links;
pub(super) mod motions;
pub(super) mod posts;
pub(super) mod threads;
