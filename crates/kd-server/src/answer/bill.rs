//! The usage of a consultation: of the turn with the answer, of each member, and of all together.

use super::Answer;
use kd_core::event::Purpose;
use kd_core::usage::Certainty;
use kd_core::view::{State, Turn};
use kd_core::{SeatName, Usage};
use serde_json::json;
use std::collections::BTreeMap;

impl Answer {
    /// Returns the usage of the turn whose text is the answer, or the sum if no single turn is. A lower bound of 0 if
    /// it was not reported; the usage of other members is no substitute.
    pub(crate) fn usage(&self) -> Usage {
        let mut turns = self.view.turns.iter().filter(|t| t.state == State::Done);
        // The text is the value in the schema.
        if self.formats && matches!(self.view.output(), Some(Ok(_))) {
            let value = turns.rfind(|turn| turn.purpose == Purpose::Format);
            return value.map_or_else(|| self.total(), reported);
        }
        let main = self.main().map(|main| main.seq);
        let of = |seq| move |turn: &&Turn| turn.message.as_ref().is_some_and(|m| m.seq == seq);
        match main.and_then(|seq| turns.find(of(seq))) {
            Some(turn) => reported(turn),
            None => self.total(),
        }
    }

    /// Returns the usage of all members together; a lower bound if some of it was not reported.
    pub(super) fn total(&self) -> Usage {
        let usage = self.ended().map(|(_, usage)| usage).unwrap_or_default();
        bound(
            usage,
            self.spent().values().any(|(_, uncounted)| *uncounted),
        )
    }

    /// Returns headers with the outcome and the usage of all members together.
    pub(crate) fn sums(&self) -> Vec<(&'static str, String)> {
        let Some((outcome, _)) = self.ended() else {
            return Vec::new();
        };
        let usage = self.total();
        let sign = usage.certainty.sign().trim();
        // A header is plain ASCII.
        let sign = match sign {
            "\u{2264}" => "<=",
            "\u{2265}" => ">=",
            "" => "",
            _ => "~",
        };
        let outcome = json!(outcome).as_str().unwrap_or_default().to_owned();
        let mut sums = vec![
            ("x-kd-outcome", outcome),
            ("x-kd-input-tokens", format!("{sign}{}", usage.input_tokens)),
            (
                "x-kd-output-tokens",
                format!("{sign}{}", usage.output_tokens),
            ),
        ];
        let cost = usage.cost_usd.map(|usd| format!("{sign}{usd}"));
        sums.extend(cost.map(|cost| ("x-kd-cost-usd", cost)));
        sums
    }

    /// Returns the usage of each member, and whether some of it was not reported.
    pub(crate) fn spent(&self) -> BTreeMap<&SeatName, (Usage, bool)> {
        let mut spent: BTreeMap<&SeatName, (Usage, bool)> = BTreeMap::new();
        for turn in self.view.turns.iter().filter(|turn| turn.is_over()) {
            let spent = spent.entry(&turn.seat).or_default();
            // A turn that failed may have reported what it used; one that was never sent used nothing.
            match turn.failure() {
                None => match turn.usage {
                    Some(usage) => spent.0.add(&usage),
                    None => spent.1 = true,
                },
                Some(failure) => match &failure.used {
                    Some(used) => {
                        spent.0.add(&used.usage);
                        spent.1 |= !used.usage.certainty.is_exact() && !used.usage.counts_tokens();
                    }
                    None => spent.1 |= failure.is_uncounted(),
                },
            }
        }
        spent
    }
}

/// Returns the usage of a turn; a lower bound of 0 if it was not reported.
fn reported(turn: &Turn) -> Usage {
    bound(turn.usage.unwrap_or_default(), turn.usage.is_none())
}

/// Marks an amount as a lower bound if some turn did not report its usage, also an amount of 0: tokens
/// that were not reported may still have been used.
pub(super) fn bound(mut usage: Usage, uncounted: bool) -> Usage {
    if uncounted {
        usage.certainty = usage.certainty.and(Certainty::AtLeast);
    }
    usage
}
