//! A model server for tests and benches: speaks the wire formats of OpenAI, Anthropic and Gemini over plain HTTP on
//! loopback, answers by script (delays, cuts, statuses, garbage), and records every request and every connection.
//!
//! Input: a [`Script`]; a [`Fake`] listens until it is dropped. Only for dev-dependencies.
//!
//! [`models`] answers real agent programs: the path selects what happens.
//!
//! [`batches`] takes batches of requests.
//!
//! [`billing`] counts what it serves, like a service that charges.
//!
//! [`fake_agent`] is an agent program that follows a script; it can obey its prompt instead: [`gullible`].

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod agent;
pub mod batches;
pub mod billing;
pub mod gullible;
pub mod models;
mod reply;
mod server;
mod wire;

pub use agent::fake_agent;
pub use reply::{Reply, Script, Step};
pub use server::{Fake, Seen};
pub use wire::Wire;
