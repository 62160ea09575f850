//! Estimate: each member gives a number; all see the median and quartiles and estimate again (Delphi). The result is
//! the trimmed mean, or the median of fewer than five; members within the quartiles support it.

use super::opinions::{body, opiners, read, schema, task};
use super::{Asking, Stage, StageInput};
use crate::deliberation::board::{Answer, Board, Candidate};
use crate::deliberation::count::{TRIM_PERCENT, TRIMMED_MIN};
use crate::deliberation::fact::Fact;
use crate::deliberation::plan::{LENIENT, Plan};
use crate::deliberation::reader::Run;
use crate::event::Purpose;

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "estimate",
    title: "estimates",
    purpose: Purpose::Answer,
    spoken: true,
    seats: |plan, board| opiners(plan, board),
    ask,
    read,
    end,
    body,
};

/// Returns whether the estimates differ, so that another round can change them.
pub(in crate::deliberation) fn differ(plan: &Plan, board: &Board) -> bool {
    if plan.reading < LENIENT {
        return board.candidates.len() > 1;
    }
    let mut keys = board.answers.iter().filter_map(|a| a.key.as_deref());
    let first = keys.next();
    keys.any(|key| Some(key) != first)
}

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let feedback = match input.board.feedback.is_empty() {
        true => String::new(),
        false => format!("\n\n{}", input.board.feedback),
    };
    let own = match input.board.answer_of(input.seat) {
        Some(Answer { key: Some(key), .. }) => format!("\nYour own earlier estimate: {key}"),
        _ => String::new(),
    };
    Some(Asking {
        material: format!("{}{feedback}{own}", input.question()),
        task: task(&input.plan.answers, "Give your estimate as one number."),
        schema: schema(&input.plan.answers, &[]),
        ..Asking::default()
    })
}

fn end(board: &mut Board, plan: &Run) -> Vec<Fact> {
    board.settle(plan);
    let mut values: Vec<(f64, usize)> = board
        .answers
        .iter()
        .filter_map(|a| {
            Some((
                a.key
                    .as_ref()?
                    .parse::<f64>()
                    .ok()
                    .filter(|v| v.is_finite())?,
                a.seat,
            ))
        })
        .collect();
    if values.is_empty() {
        return Vec::new();
    }
    values.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let numbers: Vec<f64> = values.iter().map(|(v, _)| *v).collect();
    let (low, median, high) = (
        quantile(&numbers, 1),
        quantile(&numbers, 2),
        quantile(&numbers, 3),
    );
    board.feedback = format!(
        "Estimates of all in the round before: median {}, middle half from {} to {}.",
        shown(median),
        shown(low),
        shown(high)
    );
    let few = plan.reading >= LENIENT && numbers.len() < TRIMMED_MIN;
    let (mean, word) = match few {
        true => (shown(median), "median"),
        false => (shown(trimmed(&numbers)), "trimmed mean"),
    };
    let inside: Vec<usize> = values
        .iter()
        .filter(|(v, _)| (low..=high).contains(v))
        .map(|(_, seat)| *seat)
        .collect();
    let mut candidates = vec![Candidate {
        name: mean.clone(),
        text: format!(
            "The {word} of {} estimates is {mean}. {}",
            numbers.len(),
            board.feedback
        ),
        messages: board
            .answers
            .iter()
            .filter(|a| inside.contains(&a.seat))
            .filter_map(|a| a.message)
            .collect(),
        authors: inside.clone(),
        given: Vec::new(),
    }];
    for candidate in &board.candidates {
        let authors: Vec<usize> = candidate
            .authors
            .iter()
            .copied()
            .filter(|a| !inside.contains(a))
            .collect();
        if !authors.is_empty() && candidate.name != mean {
            candidates.push(Candidate {
                authors,
                ..candidate.clone()
            });
        }
    }
    board.candidates = candidates;
    vec![Fact::Noted {
        seat: None,
        stage: STAGE.name.into(),
        text: board.feedback.clone(),
    }]
}

/// Returns a quartile of sorted numbers, by linear interpolation.
fn quantile(sorted: &[f64], quarter: usize) -> f64 {
    let place = (sorted.len() - 1) as f64 * quarter as f64 / 4.0;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64)
}

/// Returns the mean without the ends.
fn trimmed(sorted: &[f64]) -> f64 {
    let cut = sorted.len() * TRIM_PERCENT / 100;
    let kept = &sorted[cut..sorted.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// Formats with at most six significant digits.
fn shown(value: f64) -> String {
    let digits = 5 - (value.abs().max(1e-9).log10().floor() as i32).clamp(-6, 5);
    let text = format!("{value:.*}", digits.clamp(0, 9) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_move_neither_quartiles_nor_mean_much() {
        let numbers = [1.0, 10.0, 11.0, 12.0, 1000.0];
        assert_eq!(quantile(&numbers, 2), 11.0);
        assert_eq!(trimmed(&numbers), 11.0);
        assert_eq!(trimmed(&[3.0]), 3.0);
        assert_eq!(shown(11.0), "11");
        assert_eq!(shown(0.125), "0.125");
        assert_eq!(shown(1234567.0), "1234567");
    }
}
