//! Vote: everybody marks a ballot. What a ballot looks like follows from the rule; a strict reader and one lenient
//! fallback read it; what neither can read is an abstention, never a vote.

use super::{Asking, Desk, Reply, Stage, as_it_came, labels, no_end, words_of};
use crate::deliberation::answer::{AnswerKind, confidence, confidence_in, marked};
use crate::deliberation::blind;
use crate::deliberation::board::{Board, Cast, Marked, object_in};
use crate::deliberation::fact::Fact;
use crate::deliberation::plan::Plan;
use crate::event::Purpose;
use crate::roles::Duty;
use crate::voting::{self, Reads};
use serde_json::{Map, Value, json};

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "vote",
    title: "vote, anonymous",
    purpose: Purpose::Vote,
    spoken: false,
    seats,
    ask,
    read,
    end: no_end,
    body: as_it_came,
};

/// The same, where answers are no ballots by themselves: open text only.
pub(in crate::deliberation) static OPEN: Stage = Stage {
    name: "open-vote",
    title: "vote on open answers",
    purpose: Purpose::Vote,
    spoken: false,
    seats: |plan, board| match plan.answers {
        AnswerKind::Text => seats(plan, board),
        _ => Vec::new(),
    },
    ask,
    read,
    end: no_end,
    body: as_it_came,
};

/// The best score on a ballot of scores.
const SCORE_MAX: u32 = 5;

fn seats(plan: &Plan, board: &Board) -> Vec<usize> {
    // One candidate is no choice: its supporters are counted as they answered.
    if board.candidates.len() < 2 {
        return Vec::new();
    }
    voters(plan, board)
}

pub(super) fn voters(plan: &Plan, board: &Board) -> Vec<usize> {
    board
        .seats
        .iter()
        .copied()
        .filter(|s| plan.seats[*s].has(Duty::Vote) || plan.seats[*s].has(Duty::Reserve))
        .collect()
}

/// What ballots of the plan's rule look like.
fn form(plan: &Plan) -> Reads {
    match voting::find(&plan.voting.method).map(|rule| rule.reads) {
        Some(Reads::Paper) => Reads::Ranking,
        // Judges are asked twice, by a stage of their own; trails come from the rounds.
        Some(Reads::Rounds | Reads::Orders) | None => Reads::Choice,
        Some(form) => form,
    }
}

/// For whom a seat may vote: everybody, but not for itself where each answer is a proposal of its own.
fn choices(plan: &Plan, board: &Board, seat: usize) -> Vec<usize> {
    let all: Vec<usize> = (0..board.candidates.len()).collect();
    let open = matches!(plan.answers, AnswerKind::Text);
    let others: Vec<usize> = all
        .iter()
        .copied()
        .filter(|c| board.candidates[*c].authors != [seat])
        .collect();
    if open && others.len() >= 2 {
        others
    } else {
        all
    }
}

fn ask(desk: &Desk<'_>) -> Option<Asking> {
    let items = desk.deal(STAGE.name, &choices(desk.plan, desk.board, desk.seat));
    let texts: Vec<String> = items
        .iter()
        .map(|c| shown(desk.plan, desk.board, *c))
        .collect();
    let names = labels(items.len());
    let one = json!({"type": "string", "enum": names});
    let (what, name, field) = match form(desk.plan) {
        Reads::Ranking | Reads::Paper => (
            "all labels from best to worst".to_owned(),
            "ranking",
            json!({"type": "array", "items": one, "minItems": names.len(), "maxItems": names.len()}),
        ),
        Reads::Scores | Reads::Points => {
            let mut points = Map::new();
            for name in &names {
                points.insert(
                    name.clone(),
                    json!({"type": "integer", "minimum": 0, "maximum": SCORE_MAX}),
                );
            }
            (
                format!("for each label points from 0 to {SCORE_MAX}"),
                "scores",
                json!({"type": "object", "properties": points, "required": names, "additionalProperties": false}),
            )
        }
        Reads::Approvals => {
            let most = names.len().div_ceil(2);
            (
                format!("the labels that would do, at most {most}"),
                "approve",
                json!({"type": "array", "items": one, "minItems": 1, "maxItems": most}),
            )
        }
        _ => ("the label of the best answer".to_owned(), "choice", one),
    };
    let schema = json!({"type": "object", "properties": {
        "reason": {"type": "string", "maxLength": 200},
        name: field,
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    }, "required": ["reason", name, "confidence"], "additionalProperties": false});
    Some(Asking {
        material: format!("{}\n\n{}", desk.question(), desk.fenced(STAGE.name, &texts)),
        task: format!(
            "Vote. Weigh the answers by their reasons, not by their length or order. Reply with JSON: \"reason\" (one sentence), \"{name}\" ({what}), \"confidence\" (0 to 1)."
        ),
        schema: Some(schema),
        items,
        tokens: None,
    })
}

/// A candidate as voters see it: its words, and the main weakness that reviewers named.
fn shown(plan: &Plan, board: &Board, candidate: usize) -> String {
    let candidate = &board.candidates[candidate];
    let mut out = String::new();
    if plan.answers.is_keyed() || matches!(plan.answers, AnswerKind::Judged) {
        out.push_str(&format!(
            "The answer {}. One who gave it said:\n",
            candidate.name
        ));
    }
    out.push_str(&blind::anonymous(plan, &candidate.text));
    let mut ratings: Vec<(u8, &str)> = board
        .reviews
        .iter()
        .flat_map(|r| &r.ratings)
        .filter(|(author, ..)| candidate.authors.contains(author))
        .map(|(_, rating, weakness)| (*rating, weakness.as_str()))
        .collect();
    ratings.sort_unstable();
    if let Some((_, weakness)) = ratings.iter().find(|(_, w)| !w.is_empty()) {
        out.push_str(&format!(
            "\nA reviewer's main objection: {}",
            blind::anonymous(plan, weakness)
        ));
    }
    out
}

fn read(board: &mut Board, plan: &Plan, reply: &Reply<'_>) -> Vec<Fact> {
    let mut notice = None;
    let (mark, sure, reason) = match object_in(reply.text) {
        Some((value, strict)) => {
            if !strict {
                notice = Some("its ballot stood among other words".to_owned());
            }
            let mark = strict_mark(form(plan), &value, reply.items, board.candidates.len());
            let sure = match value.get("confidence") {
                Some(Value::Number(n)) => n.as_f64().and_then(|c| confidence(&c.to_string())),
                Some(Value::String(s)) => confidence(s),
                _ => None,
            };
            (mark, sure, words_of(&value, "reason"))
        }
        None => {
            notice = Some("its ballot is not in the form asked for".to_owned());
            (
                lenient_mark(form(plan), reply.text, reply.items),
                confidence_in(reply.text),
                String::new(),
            )
        }
    };
    if let Err(why) = &mark {
        notice = Some(format!("it abstains: {why}"));
    }
    let marks: Vec<String> = match &mark {
        Ok(mark) => names(board, mark),
        Err(_) => Vec::new(),
    };
    let fact = Fact::BallotRead {
        seat: plan.seats[reply.seat].name().clone(),
        marks,
        confidence: sure,
        reason: reason.clone(),
        notice,
    };
    board.ballots.retain(|b| b.seat != reply.seat);
    board.ballots.push(Cast {
        seat: reply.seat,
        mark,
        confidence: sure,
        reason,
    });
    board.ballots.sort_by_key(|b| b.seat);
    vec![fact]
}

/// What a mark says, in the names of candidates.
pub(super) fn names(board: &Board, mark: &Marked) -> Vec<String> {
    let name = |c: &usize| board.candidates[*c].name.clone();
    match mark {
        Marked::Choice(c) => vec![name(c)],
        Marked::Ranking(order) => order.iter().map(name).collect(),
        Marked::Approvals(set) => set.iter().map(name).collect(),
        Marked::Scores(points) => points
            .iter()
            .enumerate()
            .filter_map(|(c, p)| Some(format!("{}: {}", name(&c), (*p)?)))
            .collect(),
        Marked::Orders(orders) => orders
            .iter()
            .map(|c| c.as_ref().map_or_else(|| "-".to_owned(), name))
            .collect(),
    }
}

fn strict_mark(
    form: Reads,
    value: &Value,
    items: &[usize],
    candidates: usize,
) -> Result<Marked, String> {
    let place = |label: &Value| blind::place_of(label.as_str()?, items.len()).map(|p| items[p]);
    let list = |name: &str| -> Result<Vec<usize>, String> {
        let listed = value
            .get(name)
            .and_then(Value::as_array)
            .ok_or(format!("it has no \"{name}\""))?;
        let mut places = Vec::new();
        for label in listed {
            let Some(candidate) = place(label) else {
                return Err(format!("{label} is none of the labels"));
            };
            // A label that stands twice counts where it stands first.
            if !places.contains(&candidate) {
                places.push(candidate);
            }
        }
        match places.is_empty() {
            true => Err("it marks nothing".into()),
            false => Ok(places),
        }
    };
    match form {
        Reads::Ranking | Reads::Paper => list("ranking").map(Marked::Ranking),
        Reads::Approvals => list("approve").map(Marked::Approvals),
        Reads::Scores | Reads::Points => {
            let points = value.get("scores").ok_or("it has no \"scores\"")?;
            let mut scores = vec![None; candidates];
            for (at, candidate) in items.iter().enumerate() {
                let said = points.get(blind::label(at)).and_then(Value::as_f64);
                scores[*candidate] = said.filter(|p| (0.0..=f64::from(SCORE_MAX)).contains(p));
            }
            match scores.iter().all(Option::is_none) {
                true => Err("it gives no points".into()),
                false => Ok(Marked::Scores(scores)),
            }
        }
        _ => match value.get("choice") {
            Some(label) => place(label)
                .map(Marked::Choice)
                .ok_or(format!("{label} is none of the labels")),
            None => Err("it has no \"choice\"".into()),
        },
    }
}

/// The one fallback: a line `Choice: B`, or a reply that names exactly one label.
fn lenient_mark(form: Reads, text: &str, items: &[usize]) -> Result<Marked, String> {
    if !matches!(form, Reads::Choice) {
        return Err("its ballot cannot be read".into());
    }
    for word in ["choice", "vote", "answer", "position"] {
        if let Some(at) = marked(text, word).and_then(|said| blind::place_of(&said, items.len())) {
            return Ok(Marked::Choice(items[at]));
        }
    }
    let mut named: Vec<usize> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| {
            w.chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        })
        .filter_map(|w| blind::place_of(w, items.len()))
        .collect();
    named.sort_unstable();
    named.dedup();
    match named.as_slice() {
        [one] if text.trim().len() <= 40 => Ok(Marked::Choice(items[*one])),
        _ => Err("its ballot cannot be read".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ballot_is_read_strictly_or_by_one_fallback_or_not_at_all() {
        let items = [2, 0, 1];
        let strict =
            |form, text: &str| strict_mark(form, &serde_json::from_str(text).unwrap(), &items, 3);
        assert_eq!(
            strict(Reads::Choice, r#"{"choice":"A"}"#),
            Ok(Marked::Choice(2))
        );
        assert_eq!(
            strict(Reads::Ranking, r#"{"ranking":["B","B","A"]}"#),
            Ok(Marked::Ranking(vec![0, 2]))
        );
        assert_eq!(
            strict(Reads::Scores, r#"{"scores":{"A":5,"B":9}}"#),
            Ok(Marked::Scores(vec![None, None, Some(5.0)]))
        );
        for bad in [
            r#"{"choice":"Z"}"#,
            r#"{"choice":""}"#,
            r#"{}"#,
            r#"{"choice":["A"]}"#,
        ] {
            assert!(strict(Reads::Choice, bad).is_err(), "{bad}");
        }
        let lenient = |text| lenient_mark(Reads::Choice, text, &items);
        assert_eq!(
            lenient("I thought a lot.\n**Choice:** Answer B"),
            Ok(Marked::Choice(0))
        );
        assert_eq!(lenient("C."), Ok(Marked::Choice(1)));
        assert!(lenient("A or B").is_err());
        assert!(lenient("").is_err());
        assert!(lenient("A man walks into a bar and asks which of them is the best one").is_err());
    }
}
