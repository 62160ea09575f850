//! Review: each member judges the answers of the others, without authors and without its own; labels and order are
//! shuffled for each reviewer.

use super::{
    Asking, Reply, Stage, StageInput, as_it_came, labels, no_end, peer, said, vote, words_of,
};
use crate::deliberation::blind;
use crate::deliberation::board::{Board, Review, note, object_with};
use crate::deliberation::fact::{Fact, Rated};
use crate::deliberation::labels::Labels;
use crate::deliberation::plan::{LENIENT, Plan};
use crate::deliberation::protocols;
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use crate::roles::Duty;
use kd_reading::{Options, Step, Unread};
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
        .map(|a| peer(input.plan, &a.text))
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
    fields.insert("ranking".into(), order(&names));
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

/// The ratings with the words about each answer, and the ranking as a list of labels.
type Judged = (Vec<Option<(f64, String)>>, Vec<usize>);

/// Reads a review in any form: as JSON, however wrapped or named, otherwise in lines.
fn judged(plan: &Run, text: &str, count: usize) -> Result<(Judged, Step), Unread> {
    let asked = count.to_string();
    let possible = |read: &Result<(Judged, Step), Unread>| match read {
        Ok(((rated, ranking), _)) => {
            let mut seen = vec![false; count];
            let is_new = |place: &usize| {
                let seen = seen.get_mut(*place);
                seen.is_some_and(|seen| !std::mem::replace(seen, true))
            };
            rated.len() == count && ranking.iter().all(is_new)
        }
        Err(_) => true,
    };
    plan.reader
        .read_that("review", &asked, text, possible, || find(text, count))
}

fn find(text: &str, count: usize) -> Result<(Judged, Step), Unread> {
    if text.trim().is_empty() {
        return Err(Unread::Empty);
    }
    if kd_reading::declines(text) {
        return Err(Unread::Refused);
    }
    let names = labels(count);
    let options = Options::labelled(&names, &names);
    let text = kd_reading::without_thoughts(text);
    let fits = |value: &Value| {
        let of_label = |name: &String| options.stated(name).is_some();
        said::field_of(value, said::ORDERS).is_some()
            || said::field_of(value, RATINGS).is_some()
            || value
                .as_object()
                .is_some_and(|fields| fields.keys().any(of_label))
    };
    let table = |value: &Value| said::table(value, &options, count, RATING_MAX);
    let (rated, ranking, step) = if let Some(list) = said::list_in(&text) {
        match table(&list) {
            // Ratings, in the order of the labels.
            Some(rated) => (Some(rated), None, Step::Embedded),
            None => (None, said::order(&list, &options, count), Step::Embedded),
        }
    } else {
        match kd_reading::object(&text, fits) {
            Ok((value, step)) => {
                let rated = table(&value).or_else(|| table(said::field_of(&value, RATINGS)?));
                let ranking = said::field_of(&value, said::ORDERS);
                let ranking = ranking.and_then(|said| said::order(said, &options, count));
                (rated, ranking, step)
            }
            Err(Unread::Ambiguous) => return Err(Unread::Ambiguous),
            Err(_) => {
                let rated = said::lines(&text, &options, count, RATING_MAX);
                (rated, options.ranked(&text), Step::Words)
            }
        }
    };
    let within = |said: &said::Said| (1.0..=RATING_MAX).contains(&said.number);
    let rated: Vec<Option<(f64, String)>> = rated
        .unwrap_or_else(|| vec![None; count])
        .into_iter()
        .map(|said| said.filter(within).map(|said| (said.number, said.words)))
        .collect();
    let ranking = ranking.or_else(|| by_ratings(&rated)).unwrap_or_default();
    match rated.iter().all(Option::is_none) && ranking.is_empty() {
        true => Err(Unread::Missing),
        false => Ok(((rated, ranking), step)),
    }
}

/// Returns the ranking that ratings imply; `None` if a rating is missing, or two are equal.
fn by_ratings(rated: &[Option<(f64, String)>]) -> Option<Vec<usize>> {
    let rated: Option<Vec<f64>> = rated.iter().map(|r| Some(r.as_ref()?.0)).collect();
    let rated = rated?;
    let mut order: Vec<usize> = (0..rated.len()).collect();
    order.sort_by(|a, b| rated[*b].total_cmp(&rated[*a]));
    let distinct = order.windows(2).all(|two| rated[two[0]] != rated[two[1]]);
    distinct.then_some(order)
}

/// The best rating.
const RATING_MAX: f64 = 10.0;
/// Fields of ratings that are not named by label.
const RATINGS: &[&str] = &["ratings", "scores", "reviews", "answers", "review"];

/// Returns why a review that is a ballot cannot be read.
pub(super) fn unread(plan: &Run, reply: &Reply<'_>) -> Option<Unread> {
    if plan.reading < LENIENT || !protocols::counts_rankings(&plan.protocol) {
        return None;
    }
    match judged(plan, reply.decisive(), reply.items.len()) {
        Ok(((_, ranking), _)) => ranking.is_empty().then_some(Unread::Missing),
        Err(why) => Some(why),
    }
}

/// Returns the format of a bare ranking.
pub(super) fn bare(reply: &Reply<'_>) -> (String, Value) {
    let names = labels(reply.items.len());
    let schema = json!({"type": "object", "properties": {"ranking": order(&names)}, "required": ["ranking"], "additionalProperties": false});
    let asked = "\"ranking\" (all labels from best to worst, each once)";
    (asked.to_owned(), schema)
}

/// Formats the beginnings of the reviewed answers, for a repair turn.
pub(super) fn shown_again(board: &Board, plan: &Run, reply: &Reply<'_>) -> String {
    let texts = reply.items.iter().filter_map(|s| board.answer_of(*s));
    let texts: Vec<&str> = texts.map(|a| a.text.as_str()).collect();
    vote::beginnings(plan, reply, "review again", &texts)
}

/// Returns the schema of a ranking.
fn order(names: &[String]) -> Value {
    json!({"type": "array", "items": {"type": "string", "enum": names}, "minItems": names.len(), "maxItems": names.len()})
}

/// The content of a review.
#[derive(Default)]
struct Opinion {
    ratings: Vec<(usize, u8, String)>,
    ranking: Vec<usize>,
    notices: Vec<String>,
}

/// Reads a review in any form; the bare ranking replaces an unreadable one.
fn opinion_in(plan: &Run, reply: &Reply<'_>) -> Opinion {
    let count = reply.items.len();
    let mut out = Opinion::default();
    let first = judged(plan, reply.text, count);
    let again = reply.repair.map(|text| judged(plan, text, count));
    if let Ok(((rated, _), _)) = &first {
        for (place, rated) in rated.iter().enumerate() {
            match rated {
                Some((rating, words)) => out.ratings.push((
                    reply.items[place],
                    rating.round() as u8,
                    crate::clean::clean_text(words).trim().to_owned(),
                )),
                None => out.notices.push(format!(
                    "it does not rate {} from 1 to {RATING_MAX}",
                    blind::label(place)
                )),
            }
        }
    }
    match again.as_ref().unwrap_or(&first) {
        Ok(((_, ranking), step)) => {
            out.ranking = ranking.iter().map(|p| reply.items[*p]).collect();
            out.notices.extend(reply.noted(note(*step)));
            if ranking.is_empty() {
                out.notices.push("it ranks nothing".to_owned());
            }
        }
        Err(why) => {
            let why = why.words();
            out.notices = vec![format!("its review counts for nothing: {why}")];
        }
    }
    out
}

/// Reads a review by the rules of records before reviews were read like ballots.
fn first_reading(plan: &Run, reply: &Reply<'_>) -> Opinion {
    let Opinion {
        mut ratings,
        mut ranking,
        mut notices,
    } = Opinion::default();
    let names = labels(reply.items.len());
    let named = |text: &str| Labels::of_authors(plan, reply.items, text);
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
                        ratings.push((*author, rating as u8, named(&words_of(about, "weakness"))));
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
    Opinion {
        ratings,
        ranking,
        notices,
    }
}

fn read(board: &mut Board, plan: &Run, reply: &Reply<'_>) -> Vec<Fact> {
    let name = |seat: usize| plan.seats[seat].name().clone();
    let Opinion {
        ratings,
        ranking,
        notices,
    } = match plan.reading {
        LENIENT.. => opinion_in(plan, reply),
        _ => first_reading(plan, reply),
    };
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
