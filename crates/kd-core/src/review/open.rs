//! The opening of a review: the change, the members and the settings.

use super::Marks;
use crate::ids::SeatName;
use crate::roster::Member;
use crate::spending::{Ceiling, Price};
use std::collections::BTreeMap;

/// The inputs of a review.
#[derive(Clone, Debug, Default)]
pub struct OpenReview {
    /// The base that the change is compared with.
    pub base: String,
    /// The reviewed side.
    pub head: String,
    /// The text that the thread shows as the user's message.
    pub title: String,
    /// The members, in order.
    pub members: Vec<Member>,
    /// The change as members see it. Each member is asked about each part.
    pub parts: Vec<String>,
    /// The reviewed side of the changed files, by path.
    pub files: BTreeMap<String, String>,
    /// The first words of every prompt.
    pub preamble: String,
    /// The user's instructions for the review. Never taken from the reviewed change.
    pub guidance: String,
    /// Whether members decide about unclear pairs of others' findings; else the rules do.
    pub judged: bool,
    /// The spending limit of all requests.
    pub ceiling: Ceiling,
    /// Prices of the members' models, as far as they are known.
    pub prices: BTreeMap<SeatName, Price>,
    /// Marks of earlier findings in this repository.
    pub marks: Marks,
    /// Random seed for the order of the findings that voters see.
    pub seed: u64,
    /// Number of messages in the thread.
    pub messages: u32,
    /// Notices known in advance; repeated in the report.
    pub notices: Vec<String>,
}
