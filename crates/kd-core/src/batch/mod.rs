//! A batch: many questions, asked in the same way. Input: a file of questions, and the view of each when its round is over.
//! Output: [`Question`]s, one [`Row`] for each, and what to do with a question that got no answer.

mod ending;
mod estimate;
mod fleet;
mod gold;
mod log;
mod overview;
mod questions;
mod row;
mod table;

pub use ending::{Ending, Next, ending};
pub use estimate::{ANSWER_TOKENS_HIGH, ANSWER_TOKENS_LOW, Estimate, Range};
pub use fleet::{FleetView, Refused, Worker, WorkerState};
pub use gold::{Gold, Of, read as read_gold};
pub use log::{LogEvent, LogLine};
pub use overview::{Dead, MemberFailures, Overview, Refusal};
pub use questions::{FILE_BYTES_MAX, Fields, Form, QUESTION_BYTES_MAX, Question, read};
pub use row::{Failed, Method, Row, Said, Spending, Status, Verdict};
pub use table::ReadError;
