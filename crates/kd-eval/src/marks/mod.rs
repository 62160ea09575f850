//! Learns from the user's marks of verdicts: how strong members are, how certain a verdict is, what can be promised
//! about it, and whether the promise still holds.
//!
//! Pure functions. `kd deliberate` and `kd eval` call the same ones, so the evaluation measures the code that runs.

pub mod bound;
mod drift;
mod evidence;
mod learned;
mod limits;
mod mark;
pub mod published;
mod score;
mod standing;
mod strength;
mod teach;
mod warranty;
mod words;

pub use drift::{PEACE, Watch};
pub use evidence::{Evidence, RECENT, Sum, Sums};
pub use learned::{JOINT_QUESTIONS, Learned, Row};
pub use limits::{ANSWER_BYTES_MAX, BadLine, MARK_BYTES_MAX, is_shortened, shortened};
pub use mark::{By, Mark, Member, VERSION, family};
pub use published::Published;
pub use score::score;
pub use standing::{Basis, LEVELS, PROBABILITY_MARKS, Standing, State, standing};
pub use strength::{PULL, Source, sources, strengths};
pub use teach::teaching;
pub use warranty::{Promise, Scored, Warranty, fit};
pub use words::KINDS;
