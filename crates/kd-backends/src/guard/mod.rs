//! Guards around any backend: what every call needs whoever answers it.
//!
//! The order, from the outside: [`Total`] bounds the whole turn, [`Retry`] asks again, [`Shape`] checks the form of the
//! answer, [`Untouched`] watches the files of agents, [`Rate`] waits for its place,
//! [`Silence`] bounds the waiting for a sign of life of one attempt. So waiting in our own queue is not taken for the
//! provider's silence, and retries share one total limit.

mod deadline;
mod rate;
mod retry;
mod shape;
mod snapshot;
mod untouched;

pub use deadline::{Silence, Total};
pub use rate::{Limit, Rate};
pub use retry::{Backoff, Retry};
pub use shape::Shape;
pub use untouched::Untouched;
