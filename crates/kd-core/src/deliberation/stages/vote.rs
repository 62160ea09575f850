//! Vote: each member marks a ballot in the format of the rule ([`ballot`](super::ballot)). An unreadable ballot is an
//! abstention, never a vote. Judges are asked in both orders.

use super::ballot::{self, foretells, form, lenient_mark, strict_mark};
use super::opinions::stated_confidence;
use super::{Asking, Reply, Stage, StageInput, as_it_came, labels, no_end, peer, words_of};
use crate::deliberation::answer::{AnswerKind, confidence_in};
use crate::deliberation::blind;
use crate::deliberation::board::{Board, Cast, note, object_in, object_with};
use crate::deliberation::fact::Fact;
use crate::deliberation::labels::Labels;
use crate::deliberation::plan::Plan;
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use crate::roles::Duty;
use kd_reading::Unread;
use kd_vote::{Mark, Nano, Reads, Voters, nanos};
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

/// The vote if answers are not ballots: open text, and rules that need more than one choice.
pub(in crate::deliberation) static OPEN: Stage = Stage {
    name: "open-vote",
    title: "vote on the answers",
    purpose: Purpose::Vote,
    spoken: false,
    seats: |plan, board| match needs_ballots(plan) {
        true => seats(plan, board),
        false => Vec::new(),
    },
    ask,
    read,
    end: no_end,
    body: as_it_came,
};

/// Returns whether a plan's rule cannot count answers directly.
pub(in crate::deliberation) fn needs_ballots(plan: &Plan) -> bool {
    matches!(plan.answers, AnswerKind::Text) || form(plan) != Reads::Choice || foretells(plan)
}

fn seats(plan: &Plan, board: &Board) -> Vec<usize> {
    // With one candidate there is no choice: the answers of its supporters are counted.
    if board.candidates.len() < 2 {
        return Vec::new();
    }
    match form(plan) {
        // A judge is asked in both orders.
        Reads::Orders => judges(plan, &board.seats)
            .into_iter()
            .flat_map(|seat| [seat, seat])
            .collect(),
        _ => voters(plan, &board.seats),
    }
}

/// Returns the active members that vote.
fn voters(plan: &Plan, at_the_table: &[usize]) -> Vec<usize> {
    let votes = |s: &&usize| {
        let seat = &plan.seats[**s];
        seat.has(Duty::Vote) || seat.has(Duty::Reserve) && !seat.no_vote
    };
    at_the_table.iter().filter(votes).copied().collect()
}

/// Returns the judges: the arbiter, or the chair if there is no arbiter, for a rule with one voter; all voters for a
/// jury.
fn judges(plan: &Plan, at_the_table: &[usize]) -> Vec<usize> {
    let rule = kd_vote::find(&plan.voting.method);
    match rule.map(|rule| rule.voters) {
        Some(Voters::One) => {
            let arbiters = plan.with(Duty::Arbitrate);
            arbiters.into_iter().chain(plan.chair()).take(1).collect()
        }
        _ => voters(plan, at_the_table),
    }
}

/// Returns the maximum calls of one vote.
pub(in crate::deliberation) fn calls(plan: &Plan) -> u64 {
    let at_the_table = plan.at_the_table();
    match form(plan) {
        Reads::Orders => 2 * judges(plan, &at_the_table).len() as u64,
        _ => voters(plan, &at_the_table).len() as u64,
    }
}

/// Returns the candidates that a member may vote for: all, except its own if each answer is its own proposal.
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

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    // The second request is the first with the order reversed.
    let first = StageInput {
        sample: 0,
        ..*input
    };
    let mut items = first.deal(STAGE.name, &choices(input.plan, input.board, input.seat));
    if input.sample > 0 {
        items.reverse();
    }
    let texts: Vec<String> = items
        .iter()
        .map(|c| shown(input.plan, input.board, *c))
        .collect();
    let names = labels(items.len());
    let (what, name, field) = ballot::field(form(input.plan), &names);
    let mut fields = vec![
        ("reason", json!({"type": "string", "maxLength": 200})),
        (name, field),
    ];
    let mut asked = format!("\"reason\" (one sentence), \"{name}\" ({what}), ");
    if foretells(input.plan) {
        fields.push(("forecast", ballot::forecast_field(&names)));
        asked.push_str(
            "\"forecast\" (for each label the percentage of the members that will choose it), ",
        );
    }
    fields.push((
        "confidence",
        json!({"type": "number", "minimum": 0, "maximum": 1}),
    ));
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let mut properties = Map::new();
    for (name, field) in &fields {
        properties.insert((*name).into(), field.clone());
    }
    Some(Asking {
        material: format!(
            "{}\n\n{}",
            input.question(),
            input.fenced(STAGE.name, &texts)
        ),
        task: format!(
            "Vote. Weigh the answers by their reasons, not by their length or order. Reply with JSON: {asked}\"confidence\" (0 to 1)."
        ),
        schema: Some(
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
        ),
        items,
        tokens: None,
    })
}

/// Formats the beginnings of the answers on a ballot, with their labels, for a repair turn.
pub(super) fn shown_again(board: &Board, plan: &Run, reply: &Reply<'_>) -> String {
    let texts = reply.items.iter().filter_map(|c| board.candidates.get(*c));
    let texts: Vec<&str> = texts.map(|c| c.text.as_str()).collect();
    beginnings(plan, reply, "ballot again", &texts)
}

/// Formats the beginnings of the answers behind labels, without their authors.
pub(super) fn beginnings(plan: &Run, reply: &Reply<'_>, place: &str, texts: &[&str]) -> String {
    let texts = texts.iter();
    let texts: Vec<String> = texts
        .map(|text| blind::clip(&blind::anonymous(plan, text), AGAIN_BYTES_MAX))
        .collect();
    let items: Vec<(String, String)> = labels(texts.len())
        .into_iter()
        .map(|label| format!("Answer {label}"))
        .zip(texts.iter().cloned())
        .collect();
    let all: Vec<&str> = texts.iter().map(String::as_str).collect();
    let place = format!("{place}/{}", plan.seats[reply.seat].name());
    blind::fence(&blind::nonce(plan.seed, &place, &all), &items)
}

/// Maximum bytes of an answer in a repair turn.
const AGAIN_BYTES_MAX: usize = 400;

/// Formats a candidate for voters: its text, and the main weakness named by reviewers.
fn shown(plan: &Run, board: &Board, candidate: usize) -> String {
    let candidate = &board.candidates[candidate];
    let mut out = String::new();
    if plan.answers.is_keyed() || matches!(plan.answers, AnswerKind::Judged) {
        out.push_str(&format!(
            "The answer {}. One who gave it said:\n",
            blind::hidden(plan, &candidate.name)
        ));
    }
    out.push_str(&peer(plan, &candidate.text));
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
    // Findings of the roles that look for them, whatever their ratings.
    for (role, title) in [
        ("fact-checker", "Its claims, checked"),
        ("devil-advocate", "The case against it"),
    ] {
        let by_role = board
            .reviews
            .iter()
            .filter(|r| plan.seats[r.seat].role == role);
        let about = by_role
            .flat_map(|r| &r.ratings)
            .find(|(author, _, words)| candidate.authors.contains(author) && !words.is_empty());
        if let Some((.., words)) = about {
            let words = blind::clip(&blind::anonymous(plan, words), WORK_BYTES_MAX);
            if !out.contains(&words) {
                out.push_str(&format!("\n{title}: {words}"));
            }
        }
    }
    out
}

/// Maximum bytes of the findings of a fact checker or devil's advocate on one answer.
const WORK_BYTES_MAX: usize = 1000;

/// The content of a ballot.
struct Content {
    mark: Mark,
    sure: Option<f64>,
    reason: String,
    predicted: Vec<Nano>,
    notice: Option<String>,
}

/// Reads a ballot in any form.
fn ballot_in(board: &Board, plan: &Run, reply: &Reply<'_>) -> Content {
    let (_, name, _) = ballot::field(form(plan), &labels(reply.items.len()));
    let object = object_with(plan, reply.text, &[name, "reason", "confidence"]);
    let value = object.map(|(value, _)| value).unwrap_or_default();
    let read = ballot::read(board, plan, reply);
    Content {
        notice: read
            .as_ref()
            .map_or(None, |(_, step)| reply.noted(note(*step))),
        mark: match read {
            Ok((mark, _)) => mark,
            Err(why) => Mark::Unreadable(why.words().to_owned()),
        },
        sure: stated_confidence(&value).or_else(|| confidence_in(reply.text)),
        reason: reason_in(board, plan, reply, &value),
        predicted: predicted(board, plan, reply, &value),
    }
}

/// Returns the reason on a ballot, with the names of the answers for its labels.
pub(super) fn reason_in(board: &Board, plan: &Plan, reply: &Reply<'_>, ballot: &Value) -> String {
    let reason = words_of(ballot, "reason");
    match Labels::of_candidates(plan, board, reply.items) {
        Some(labels) => labels.named(&reason),
        None => reason,
    }
}

/// Reads a ballot by the rules of records without a reading version.
fn first_reading(board: &Board, plan: &Run, reply: &Reply<'_>) -> Content {
    let Some((value, strict)) = object_in(reply.text) else {
        return Content {
            mark: lenient_mark(form(plan), reply.text, reply.items),
            sure: confidence_in(reply.text),
            reason: String::new(),
            predicted: Vec::new(),
            notice: Some("its ballot is not in the form asked for".to_owned()),
        };
    };
    Content {
        mark: strict_mark(form(plan), &value, reply.items, board.candidates.len()),
        sure: stated_confidence(&value),
        reason: words_of(&value, "reason"),
        predicted: predicted(board, plan, reply, &value),
        notice: (!strict).then(|| "its ballot stood among other words".to_owned()),
    }
}

/// Returns the prediction on a ballot, if the rule asks for one and the ballot has one.
fn predicted(board: &Board, plan: &Plan, reply: &Reply<'_>, value: &Value) -> Vec<Nano> {
    let shares = match foretells(plan) {
        true => ballot::foretold(value, reply.items, board.candidates.len()),
        false => None,
    };
    shares.into_iter().flatten().map(nanos).collect()
}

/// Returns why a ballot cannot be read.
pub(super) fn unread(board: &Board, plan: &Run, reply: &Reply<'_>) -> Option<Unread> {
    ballot::read(board, plan, reply).err()
}

/// Returns the format of a bare ballot.
pub(super) fn bare(board: &Board, plan: &Run, reply: &Reply<'_>) -> (String, Value) {
    let names = labels(reply.items.len());
    let (what, name, field) = ballot::field(form(plan), &names);
    let mut fields = Map::new();
    fields.insert(name.into(), field);
    let mut asked = format!("\"{name}\" ({what})");
    // Names of open answers would reveal their authors.
    if plan.answers.is_keyed() {
        let known: Vec<String> = names
            .iter()
            .zip(reply.items)
            .map(|(label, c)| {
                let name = blind::hidden(plan, &board.candidates[*c].name);
                format!("{label} is {name}")
            })
            .collect();
        asked.push_str(&format!("; {}", known.join(", ")));
    }
    let schema = json!({"type": "object", "properties": fields, "required": [name], "additionalProperties": false});
    (asked, schema)
}

fn read(board: &mut Board, plan: &Run, reply: &Reply<'_>) -> Vec<Fact> {
    let Content {
        mark,
        sure,
        reason,
        predicted,
        mut notice,
    } = match plan.reading {
        0 => first_reading(board, plan, reply),
        _ => ballot_in(board, plan, reply),
    };
    if let Mark::Unreadable(why) = &mark {
        notice = Some(format!("it abstains: {why}"));
    }
    let mark = match form(plan) {
        Reads::Orders => in_both_orders(board, reply, mark),
        _ => mark,
    };
    if (notice.is_none() || plan.reading > 0)
        && let Mark::Trail(orders) = &mark
        && let [Some(a), Some(b)] = orders.as_slice()
        && a != b
    {
        notice = Some("its verdict turns with the order: it abstains".to_owned());
    }
    let fact = Fact::BallotRead {
        seat: plan.seats[reply.seat].name().clone(),
        marks: ballot::names(board, &mark),
        confidence: sure,
        reason: reason.clone(),
        notice,
    };
    board.ballots.retain(|b| b.seat != reply.seat);
    let mut ballot = kd_vote::Ballot::new(mark);
    ballot.confidence = sure.map(nanos);
    ballot.predicted = predicted;
    board.ballots.push(Cast {
        seat: reply.seat,
        ballot,
        reason,
    });
    board.ballots.sort_by_key(|b| b.seat);
    vec![fact]
}

/// Combines a judge's choice with its choice in the other order.
fn in_both_orders(board: &Board, reply: &Reply<'_>, mark: Mark) -> Mark {
    let earlier = board.ballots.iter().find(|b| b.seat == reply.seat);
    let mut orders = match earlier.map(|cast| &cast.ballot.mark) {
        Some(Mark::Trail(orders)) => orders.clone(),
        _ => vec![None, None],
    };
    if let (Mark::Choice(c), Some(slot)) = (&mark, orders.get_mut(reply.sample as usize)) {
        *slot = Some(*c);
    }
    match orders.iter().all(Option::is_none) {
        true => mark,
        false => Mark::Trail(orders),
    }
}
