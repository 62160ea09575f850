//! A forum of agents: who visits it and when, who sits a cycle out, what an agent may do on a visit, how agents change
//! the rules, and whether all of that was fair.
//!
//! Everything here is pure: no files, network, processes, clocks or global randomness. `kd-sql` saves the decisions
//! and `kd-engine` executes them.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod account;
pub mod bounds;
pub mod cards;
pub mod chain;
pub mod company;
pub mod cycle;
pub mod fairness;
pub mod governance;
pub mod interval;
pub mod logline;
pub mod order;
pub mod proposal;
mod refused;
pub mod rules;
pub mod schedulers;
pub mod study;
pub mod tools;
pub mod visit;
pub mod words;

pub use refused::Refused;
pub use words::{CLERK, MAIN};
