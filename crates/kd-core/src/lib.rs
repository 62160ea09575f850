//! The logic of Kingdom: decides who speaks, which prompts they get, when to stop, and what was decided.
//!
//! Everything here is pure: no files, network, processes, clocks or global randomness. A [`Machine`] receives
//! [`Input`]s and returns [`Command`]s and [`Event`]s; it never waits and never fails. Its driver (the engine, a
//! simulator, a test) executes the commands and returns the results as new inputs.

pub mod acting;
pub mod attached;
pub mod batch;
pub mod build_log;
pub mod clean;
pub mod config;
pub mod conversation;
pub mod cost;
pub mod council;
pub mod deliberation;
pub mod delivery;
pub mod diff;
pub mod display;
mod draft;
pub mod duet;
pub mod echo;
pub mod event;
pub mod failure;
pub mod fork;
pub mod formats;
pub mod fuzzy;
pub mod hearing;
pub mod hex;
pub mod ids;
pub mod last_round;
pub mod ledger;
pub mod looks;
pub mod machine;
pub mod markdown;
pub mod memory;
pub mod mention;
pub mod message;
pub mod models;
pub mod names;
pub mod op;
pub mod persona;
pub mod planner;
pub mod prices;
pub mod prompt;
pub mod protocols;
pub mod redact;
pub mod request;
pub mod review;
pub mod roles;
pub mod roster;
pub mod seal;
pub mod search_path;
pub mod seating;
pub mod secrets;
pub mod slash;
pub mod speech;
pub mod spending;
pub mod text;
pub mod usage;
pub mod view;

pub use acting::{Acting, OpenActing};
pub use conversation::{Aside, Conversation};
pub use council::{Budget, Council, OpenCouncil};
pub use delivery::Delivery;
pub use duet::{Duet, OpenDuet};
pub use event::{Event, Record};
pub use failure::{Failure, FailureKind};
pub use ids::{MachineId, SeatName, ThreadId, TimerId, TurnId};
pub use jiff::Timestamp;
pub use last_round::LastRound;
pub use machine::{Command, Effects, Input, Machine};
pub use message::{Address, Draft, Message, Status};
pub use op::Op;
pub use request::{Delta, Finish, Prompt, Request, Sampling};
pub use review::{OpenReview, Review};
pub use roster::{Launch, Member, Roster};
pub use usage::Usage;
