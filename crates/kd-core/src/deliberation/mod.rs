//! Deliberation: a council that plans itself, gives opinions, reviews, votes, concludes, and repeats if that helps.
//!
//! Input: a [`Plan`] and the members' replies. Output: [`Fact`]s, one for each request, reply and decision, and a final
//! [`Verdict`]. The same plan and replies give the same facts.

pub mod answer;
mod asked;
pub(crate) mod blind;
pub mod board;
pub(crate) mod count;
mod course;
pub mod fact;
mod forecast;
mod frame;
pub(crate) mod hide;
mod iteration;
mod judge;
mod labels;
mod ledger;
mod machine;
pub mod map;
mod markless;
pub mod plan;
pub mod protocols;
mod reader;
mod replay;
pub mod report;
mod resume;
mod robust;
pub mod settling;
mod spoken;
pub mod stages;
mod standins;
mod strategies;
mod turn;
mod unmarked;
mod verdict;
mod whatif;
mod why;

pub use answer::AnswerKind;
pub(crate) use asked::{StageTask, stage_task};
pub use fact::{Counted, Fact, rule_doc};
pub use forecast::{Forecast, compared_by, counted_by, forecast, with_answers};
pub use iteration::{Action, Decision};
pub use judge::{Unjudged, can_be_right, judge, judge_by_value};
pub use ledger::{Cut, Price, Spent};
pub(crate) use ledger::{json_bytes, request_bytes, wire_bytes};
pub use machine::{COUNCIL, Deliberation};
pub(crate) use markless::STRENGTHS;
pub use markless::without_marks;
pub use plan::{AskBack, MemberCounts, Plan, READING, SPENDING, Seat, WRITING};
pub use reader::{Reading, Reread, Run};
pub use replay::{Replayed, changed_messages, check, last, replay};
pub use resume::{CannotResume, Resumed, resumable, resume, unfinished};
pub use robust::{ByRule, Margin, Robustness};
pub use unmarked::{model_of, unmarked};
pub use verdict::{Dissenter, Verdict};
pub use whatif::{BadChange, Change, Decided, WhatIf, robustness, what_if, without_weights};
pub use why::why;
