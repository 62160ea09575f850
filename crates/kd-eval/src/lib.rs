//! Measures what a council is worth: statistics, and their consequences for the choice of a protocol.
//!
//! Pure functions, one file per subject. Input: recorded answers, and which of them are right. Output: numbers with
//! their uncertainty, and weights.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]
#![warn(missing_docs)]

pub mod auto;
pub mod calibration;
pub mod contribution;
pub mod correlation;
pub mod deciders;
pub mod enough;
mod hex;
pub mod intervals;
pub mod jury;
pub mod live;
pub mod marks;
pub mod names;
pub mod page;
pub mod paired;
pub mod reliability;
pub mod replay;
pub mod simulate;
pub mod weights;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
