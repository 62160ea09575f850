//! What a council is worth: statistics, and what follows from them for the choice of a protocol.
//!
//! Pure functions, one file for each subject. Comes in: answers that were given, and which of them are right. Goes out:
//! numbers with their uncertainty, and weights.

pub mod auto;
pub mod calibration;
pub mod contribution;
pub mod correlation;
pub mod deciders;
pub mod intervals;
pub mod jury;
pub mod paired;
pub mod reliability;
pub mod replay;
pub mod simulate;
pub mod weights;
