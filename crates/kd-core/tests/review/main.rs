//! `kd review`: recorded reviews replayed, merging compared with checked pairs, and whole reviews with scripted
//! members.

// Tests may write the table that they check, and print the figures of `docs/review-precision.md`.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

mod budget;
mod council;
mod hostile;
mod names;
mod pairs;
mod recorded;
mod replay;
mod room;
mod runs;
