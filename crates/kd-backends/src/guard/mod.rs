//! Guards around any backend: what every call needs whoever answers it.
//!
//! The order, from the outside in:
//!
//! - HTTP services: [`Total`], [`Retry`], [`Rate`], [`Silence`], the service. Each request is reserved where it is sent.
//! - Agent programs: [`Total`], [`Silence`], [`Untouched`], [`Paid`], the program.
//! - The built-in model and scripts: [`Total`], [`Silence`], [`Paid`], the model.
//!
//! [`Total`] bounds the whole turn, retries and waiting included. [`Silence`] bounds the wait for a sign of life of one
//! attempt; it is inside [`Rate`], so that waiting in our own queue is not taken for the provider's silence. What an
//! answer says is read in `kd_core::reading`: no guard judges its form.

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
