//! Guards that wrap any backend.
//!
//! The order, from the outside in:
//!
//! - HTTP services: [`Total`], for members that may read the folder [`Reads`], for small models on this machine [`Redraw`], [`Retry`], [`Room`], [`Rate`] or, in a
//!   fleet, [`Gated`], [`Silence`], the service. Each request is reserved where it is sent.
//! - Agent programs: [`Total`], [`Room`], [`Silence`], [`Untouched`], [`Paid`], the program.
//! - The built-in model and scripts: [`Total`], for models [`Redraw`], [`Room`], [`Silence`], [`Paid`], the model.
//!
//! [`Total`] limits the whole turn, retries and waiting included. [`Silence`] limits how long one attempt may stay
//! silent; it is inside [`Rate`], so that waiting in our own queue does not count as the provider's silence. The
//! content of an answer is parsed in `kd_reading`: no guard judges its form. [`Redraw`] compares words only.

mod deadline;
mod gate;
mod paid;
mod rate;
mod reads;
mod redraw;
mod retry;
mod room;
mod snapshot;
mod untouched;

pub use deadline::{Silence, Total};
pub use gate::{Gate, Gated, GatedService};
pub use paid::Paid;
pub use rate::{Limit, Rate};
pub use reads::ROUNDS_MAX;
pub(crate) use reads::{Folder, Reads};
pub use redraw::{Model, Redraw};
pub use retry::{Backoff, Retry};
pub use room::Room;
pub use untouched::Untouched;
