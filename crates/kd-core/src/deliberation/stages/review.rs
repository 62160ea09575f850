//! Review: each member judges the answers of the others, without authors and without its own; labels and order are
//! shuffled for each reviewer.

use super::{Asking, Reply, Stage, StageInput, as_it_came, labels, no_end, words_of};
use crate::deliberation::blind;
use crate::deliberation::board::{Board, Review, object_with};
use crate::deliberation::fact::{Fact, Rated};
use crate::deliberation::plan::Plan;
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use crate::roles::Duty;
use serde_json::{Map, Value, json};

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "review",
    title: "review, anonymous",
    purpose: Purpose::Review,
    spoken: false,
    seats,
    ask,
    read,
    end: no_end,
    body: as_it_came,
};

fn seats(plan: &Plan, board: &Board) -> Vec<usize> {
    board
        .seats
        .iter()
        .copied()
        .filter(|s| plan.seats[*s].has(Duty::Review) && !others(board, *s).is_empty())
        .collect()
}

/// Returns the members whose answers a member reviews: all except itself.
fn others(board: &Board, seat: usize) -> Vec<usize> {
    let mut authors: Vec<usize> = board
        .answers
        .iter()
        .map(|a| a.seat)
        .filter(|s| *s != seat)
        .collect();
    authors.dedup();
    authors
}

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let items = input.deal(STAGE.name, &others(input.board, input.seat));
    if items.is_empty() {
        return None;
    }
    let texts: Vec<String> = items
        .iter()
        .filter_map(|s| input.board.answer_of(*s))
        .map(|a| blind::anonymous(input.plan, &a.text))
        .collect();
    let names = labels(items.len());
    let work = work(&input.plan.seats[input.seat].role);
    let mut fields = Map::new();
    for name in &names {
        fields.insert(
            name.clone(),
            json!({"type": "object", "properties": {
                "rating": {"type": "integer", "minimum": 1, "maximum": 10},
                "weakness": {"type": "string", "maxLength": work.chars_max},
            }, "required": ["rating", "weakness"], "additionalProperties": false}),
        );
    }
    fields.insert(
        "ranking".into(),
        json!({"type": "array", "items": {"type": "string", "enum": names}, "minItems": names.len(), "maxItems": names.len()}),
    );
    let required: Vec<&String> = fields.keys().collect();
    let schema = json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false});
    Some(Asking {
        material: format!(
            "{}\n\n{}",
            input.question(),
            input.fenced(STAGE.name, &texts)
        ),
        task: format!(
            "{} Reply with JSON: for each of {} a \"rating\" from 1 (useless) to 10 (excellent) and {}; then \"ranking\", all labels from best to worst.",
            work.task,
            names.join(", "),
            work.weakness
        ),
        schema: Some(schema),
        items,
        tokens: None,
    })
}

/// The task of a role in a review.
struct Work {
    task: &'static str,
    /// The content of the field `weakness`.
    weakness: &'static str,
    chars_max: u32,
}

/// Returns the task of a role: fact checkers list claims, the devil's advocate argues the opposite, others judge.
fn work(role: &str) -> Work {
    match role {
        "fact-checker" => Work {
            task: "Check the factual claims of each answer.",
            weakness: "in \"weakness\" its claims, each on a line that begins with VERIFIED (and why), QUESTIONABLE (and the concern) or OPINION",
            chars_max: 600,
        },
        "devil-advocate" => Work {
            task: "Make the strongest case against each answer, also against the one that most will agree with.",
            weakness: "in \"weakness\" that case: what would make the answer fail, what it costs, and how one could check that",
            chars_max: 600,
        },
        _ => Work {
            task: "Judge each answer by its logic, its evidence and what it assumes.",
            weakness: "its main \"weakness\"",
            chars_max: 160,
        },
    }
}

fn read(board: &mut Board, plan: &Run, reply: &Reply<'_>) -> Vec<Fact> {
    let name = |seat: usize| plan.seats[seat].name().clone();
    let mut notices = Vec::new();
    let mut ratings: Vec<(usize, u8, String)> = Vec::new();
    let mut ranking: Vec<usize> = Vec::new();
    let names = labels(reply.items.len());
    let fields: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .chain(["ranking"])
        .collect();
    match object_with(plan, reply.text, &fields) {
        None => notices.push("its review could not be read and counts for nothing".to_owned()),
        Some((value, note)) => {
            notices.extend(note.map(|note| match plan.reading {
                0 => "its review stood among other words".to_owned(),
                _ => note,
            }));
            for (place, author) in reply.items.iter().enumerate() {
                let about = value.get(blind::label(place)).unwrap_or(&Value::Null);
                match about.get("rating").or(Some(about)).and_then(Value::as_i64) {
                    Some(rating @ 1..=10) => {
                        ratings.push((*author, rating as u8, words_of(about, "weakness")));
                    }
                    _ => notices.push(format!(
                        "it does not rate {} from 1 to 10",
                        blind::label(place)
                    )),
                }
            }
            let listed = value.get("ranking").and_then(Value::as_array);
            let places: Vec<usize> = listed
                .into_iter()
                .flatten()
                .filter_map(|l| blind::place_of(l.as_str()?, reply.items.len()))
                .collect();
            let mut sorted = places.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() == reply.items.len() && places.len() == sorted.len() {
                ranking = places.iter().map(|p| reply.items[*p]).collect();
            } else if ratings.len() == reply.items.len() {
                // A ranking with a duplicate is less reliable than the ratings.
                let mut by_rating = ratings.clone();
                by_rating.sort_by_key(|(author, rating, _)| (std::cmp::Reverse(*rating), *author));
                ranking = by_rating.iter().map(|(author, ..)| *author).collect();
                notices.push("its ranking is not one; it is taken from its ratings".to_owned());
            }
        }
    }
    let fact = Fact::ReviewRead {
        seat: name(reply.seat),
        ratings: ratings
            .iter()
            .map(|(author, rating, weakness)| Rated {
                seat: name(*author),
                rating: *rating,
                weakness: weakness.clone(),
            })
            .collect(),
        ranking: ranking.iter().map(|s| name(*s)).collect(),
        notice: (!notices.is_empty()).then(|| notices.join("; ")),
    };
    board.reviews.retain(|r| r.seat != reply.seat);
    board.reviews.push(Review {
        seat: reply.seat,
        ratings,
        ranking,
    });
    board.reviews.sort_by_key(|r| r.seat);
    vec![fact]
}
