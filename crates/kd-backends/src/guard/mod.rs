//! Guards around any backend: what every call needs whoever answers it.
//!
//! The order, from the outside: [`Total`] bounds the whole turn, [`Retry`] asks again, [`Untouched`] watches the files of agents, [`Rate`] waits for its place,
//! [`Paid`] reserves what a question to a program or to the built-in model may use (HTTP services reserve each request
//! where it is sent), [`Silence`] bounds the waiting for a sign of life of one attempt. So waiting in our own queue is not taken for the
//! provider's silence, and retries share one total limit. What an answer says is read in `kd_core::reading`: no guard
//! judges its form.

mod deadline;
mod paid;
mod rate;
mod retry;
mod snapshot;
mod untouched;

pub use deadline::{Silence, Total};
pub use paid::Paid;
pub use rate::{Limit, Rate};
pub use retry::{Backoff, Retry};
pub use untouched::Untouched;
