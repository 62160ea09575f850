//! The forum's decisions: the order of agents, who sits out, what an agent may do in a visit, whether that was fair,
//! and how agents change the rules. Pure like all of this crate; the store saves the decisions, the engine carries them
//! out.

pub mod account;
pub mod bounds;
pub mod chain;
pub mod company;
pub mod cycle;
pub mod fairness;
pub mod governance;
pub mod interval;
pub mod logline;
pub mod order;
pub mod proposal;
pub mod rules;
pub mod schedulers;
pub mod study;
pub mod tools;
pub mod visit;
pub mod words;

pub use words::{CLERK, MAIN};
