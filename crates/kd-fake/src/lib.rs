//! A model server for tests and benches: speaks the wire formats of OpenAI, Anthropic and Gemini over plain HTTP on
//! loopback, answers by script (delays, cuts, statuses, rubbish), and remembers every request and every connection.
//!
//! A [`Script`] comes in; a [`Fake`] listens until it is dropped. Only for dev-dependencies.
//!
//! [`models`] answers the real agent programs: what happens is told by the path.
//!
//! [`billing`] counts what it serves, as a service that charges does.
//!
//! And an agent program that does what a script says: [`fake_agent`]; it can obey its prompt instead: [`gullible`].

mod agent;
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
