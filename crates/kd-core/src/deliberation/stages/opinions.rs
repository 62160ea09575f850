//! Opinions: each member answers the question without seeing the others.

use super::{Asking, Reply, Stage, StageInput, as_it_came, words_of};
use crate::deliberation::answer::{AnswerKind, confidence, confidence_in, marked};
use crate::deliberation::board::{Answer, Board, note, object_in, object_with};
use crate::deliberation::fact::Fact;
use crate::deliberation::labels::Labels;
use crate::deliberation::plan::{Plan, VOICED};
use crate::deliberation::protocols::{Asks, Protocol};
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use crate::ids::SeatName;
use crate::roles::Duty;
use kd_eval::enough::{Enough, Look, SURE};
use kd_reading::{Step, Unread, code};
use serde_json::{Value, json};

/// All members whose role gives opinions.
pub(in crate::deliberation) static STAGE: Stage = STAGE_BASE;

/// Maximum answers of one member, as in the settings: a record may state any number.
const SAMPLES_MAX: u32 = 40;

/// The strongest member, several times.
pub(in crate::deliberation) static SAMPLES: Stage = Stage {
    name: "samples",
    title: "answers of one member",
    seats: |plan, board| {
        let best = strongest(plan, board).into_iter().take(1);
        let samples = plan.samples.clamp(1, SAMPLES_MAX);
        best.flat_map(|s| vec![s; samples as usize]).collect()
    },
    ..STAGE_BASE
};

/// The strongest member, once.
pub(in crate::deliberation) static FIRST: Stage = Stage {
    name: "first",
    title: "one answer",
    seats: |plan, board| strongest(plan, board).into_iter().take(1).collect(),
    ..STAGE_BASE
};

/// The two cheapest members.
pub(in crate::deliberation) static PAIR: Stage = Stage {
    name: "pair",
    title: "the two cheapest",
    seats: |plan, board| cheapest(plan, board).into_iter().take(2).collect(),
    end: end_of_cascade,
    ..STAGE_BASE
};

/// The next member of a cascade while no two agree: one at a time, cheapest first.
pub(in crate::deliberation) static REST_UNLESS_AGREED: Stage = Stage {
    name: "next",
    title: "the next of the cascade",
    seats: |plan, board| {
        if board.two_agree() {
            return Vec::new();
        }
        let mut next = cheapest(plan, board);
        next.retain(|s| board.answer_of(*s).is_none() && !board.absent.answers.contains(s));
        next.into_iter().take(1).collect()
    },
    end: end_of_cascade,
    ..STAGE_BASE
};

/// The next member while the answers are not certain enough: one at a time, in the learned order.
pub(in crate::deliberation) static UNTIL_ENOUGH: Stage = Stage {
    name: "until-enough",
    title: "one member at a time",
    seats: |plan, board| next_of_enough(plan, board).into_iter().collect(),
    end: |board, plan| {
        let facts = end(board, plan);
        facts.into_iter().chain(asked_enough(plan, board)).collect()
    },
    ..STAGE_BASE
};

const STAGE_BASE: Stage = Stage {
    name: "opinions",
    title: "opinions, blind",
    purpose: Purpose::Answer,
    spoken: true,
    seats: |plan, board| opiners(plan, board),
    ask,
    read,
    end,
    body,
};

/// Returns the active members whose role gives opinions; all active members if there are none.
pub(in crate::deliberation) fn opiners(plan: &Plan, board: &Board) -> Vec<usize> {
    let with: Vec<usize> = board
        .seats
        .iter()
        .copied()
        .filter(|s| plan.seats[*s].has(Duty::Opine) || plan.seats[*s].has(Duty::Reserve))
        .collect();
    if with.is_empty() {
        return board.seats.clone();
    }
    with
}

/// Returns the members that give opinions, most reliable first; on a tie, in member order.
pub(super) fn strongest(plan: &Plan, board: &Board) -> Vec<usize> {
    let mut seats = opiners(plan, board);
    let strength =
        |s: &usize| plan.seats[*s].reliability.unwrap_or(0.0) + plan.seats[*s].member.weight * 1e-6;
    seats.sort_by(|a, b| strength(b).total_cmp(&strength(a)).then(a.cmp(b)));
    seats
}

/// Returns the members that give opinions, cheapest first; on a tie, in member order.
fn cheapest(plan: &Plan, board: &Board) -> Vec<usize> {
    let mut seats = opiners(plan, board);
    // Its agent answers in another seat.
    seats.retain(|s| !plan.seats[*s].no_vote);
    seats.sort_by_key(|s| {
        let price = plan.seats[*s].price.unwrap_or_default();
        (price.input + price.output, *s)
    });
    seats
}

/// Returns the rule of the plan, with the members it may ask, in order: the council, then reserves.
fn enough_of(plan: &Plan, board: &Board) -> (Enough, Vec<usize>) {
    let members = plan.with(Duty::Opine);
    let given = opiners(plan, board);
    let learned = plan.enough.as_ref().filter(|rule| {
        let mut order = rule.order.clone();
        order.sort_unstable();
        // A plan that was edited by hand may have other members than its rule.
        order.iter().copied().eq(0..members.len()) && rule.weights.len() == members.len()
    });
    match learned {
        Some(rule) if given.iter().all(|seat| members.contains(seat)) => (rule.clone(), members),
        _ => {
            let weights: Vec<f64> = given.iter().map(|s| plan.seats[*s].member.weight).collect();
            (
                Enough::unlearned((0..given.len()).collect(), &weights),
                given,
            )
        }
    }
}

/// The members asked so far, with their answers, and the state that this leads to.
fn look(rule: &Enough, members: &[usize], board: &Board) -> (Vec<usize>, Look) {
    let mut keys: Vec<&str> = Vec::new();
    let mut asked = Vec::new();
    for (at, seat) in members.iter().enumerate() {
        let answer = board.answer_of(*seat);
        if answer.is_none() && !board.absent.answers.contains(seat) {
            continue;
        }
        let key = answer.and_then(|answer| answer.key.as_deref());
        let key = key.map(|key| match keys.iter().position(|known| *known == key) {
            Some(at) => at,
            None => {
                keys.push(key);
                keys.len() - 1
            }
        });
        asked.push((at, key));
    }
    let look = rule.look(&asked);
    (asked.into_iter().map(|(at, _)| members[at]).collect(), look)
}

/// Returns the next member to ask; `None` once the answers are certain enough.
pub(in crate::deliberation) fn next_of_enough(plan: &Plan, board: &Board) -> Option<usize> {
    let (rule, members) = enough_of(plan, board);
    let (asked, state) = look(&rule, &members, board);
    if rule.is_enough(state) {
        return None;
    }
    let seats = rule.order.iter().map(|at| members[*at]);
    let mut left = seats.filter(|seat| !asked.contains(seat) && board.seats.contains(seat));
    left.next()
}

/// Returns the fact that the answers are certain enough, if somebody was spared.
fn asked_enough(plan: &Plan, board: &Board) -> Option<Fact> {
    let (rule, members) = enough_of(plan, board);
    let (asked, state) = look(&rule, &members, board);
    let names = |seats: Vec<usize>| -> Vec<SeatName> {
        seats
            .into_iter()
            .map(|s| plan.seats[s].name().clone())
            .collect()
    };
    let spared: Vec<usize> = members
        .iter()
        .copied()
        .filter(|s| !asked.contains(s))
        .collect();
    (rule.is_enough(state) && !spared.is_empty()).then(|| Fact::AskedEnough {
        asked: names(asked),
        spared: names(spared),
        chance: (state.chance > 0).then(|| f64::from(state.chance) / f64::from(SURE)),
        settled: state.is_settled,
    })
}

/// The task of a member that gives an opinion.
pub(in crate::deliberation) const TASK: &str = "Answer the question.";

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    Some(Asking {
        material: input.question(),
        task: task(&input.plan.answers, TASK),
        schema: schema(&input.plan.answers, &[]),
        ..Asking::default()
    })
}

/// Returns the writing instruction, the same in every stage that asks for an answer.
pub(super) fn task(kind: &AnswerKind, what: &str) -> String {
    match kind {
        AnswerKind::Text => format!(
            "{what} State your position first, then your strongest reasons. End with one line: \"Confidence: \" and a number from 0 to 1."
        ),
        kind => format!(
            "{what} Reply with JSON: \"reason\" (your reasons, in a few sentences), \"answer\" ({}), \"confidence\" (0 to 1).",
            kind.instruction()
        ),
    }
}

/// Returns the schema of a comparable answer; `None` for open text. `more` are fields before the answer.
pub(super) fn schema(kind: &AnswerKind, more: &[(&str, Value)]) -> Option<Value> {
    if matches!(kind, AnswerKind::Text) {
        return None;
    }
    let mut fields = serde_json::Map::new();
    fields.insert("reason".into(), json!({"type": "string", "maxLength": 600}));
    for (name, schema) in more {
        fields.insert((*name).into(), schema.clone());
    }
    fields.insert("answer".into(), kind.schema());
    fields.insert(
        "confidence".into(),
        json!({"type": "number", "minimum": 0, "maximum": 1}),
    );
    let names: Vec<&String> = fields.keys().collect();
    let required = json!(names);
    Some(
        json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false}),
    )
}

/// Formats a reply in JSON as text for readers.
pub(super) fn body(plan: &Run, text: &str) -> String {
    if matches!(plan.answers, AnswerKind::Text) {
        return as_it_came(plan, text);
    }
    let Some((value, _)) = object_with(plan, text, &["answer"]) else {
        return as_it_came(plan, text);
    };
    let mut out = words_of(&value, "reason");
    for (name, title) in [
        ("flaw", "Flaw in my earlier answer"),
        ("answer", "Answer"),
        ("confidence", "Confidence"),
    ] {
        let shown = match value.get(name) {
            Some(Value::String(s)) if !s.trim().is_empty() => {
                crate::clean::clean_text(s).trim().to_owned()
            }
            Some(value @ (Value::Number(_) | Value::Object(_) | Value::Array(_))) => {
                value.to_string()
            }
            _ => continue,
        };
        match plan.answers {
            AnswerKind::Code if name == "answer" && shown.contains('\n') => {
                let code = code::of(&shown).unwrap_or(shown);
                out.push_str(&format!("\n\n**{title}:**\n\n```\n{code}\n```"));
            }
            _ => out.push_str(&format!("\n\n**{title}:** {shown}")),
        }
    }
    out.trim_start().to_owned()
}

/// The reading of an answer: its key, its confidence, and a notice for the record.
pub(super) type Taken = (Option<String>, Option<f64>, Option<String>);

/// Reads an answer.
pub(super) fn answer_in(plan: &Run, reply: &Reply<'_>) -> Taken {
    if matches!(plan.answers, AnswerKind::Text) {
        return (None, confidence_in(reply.text), None);
    }
    if plan.reading == 0 {
        return first_reading(&plan.answers, reply.text);
    }
    let sure = object_with(plan, reply.text, &["confidence"])
        .and_then(|(value, _)| stated_confidence(&value))
        .or_else(|| confidence_in(reply.text));
    match answer(plan, &plan.question, reply.decisive()) {
        Ok((key, step)) => (Some(key), sure, reply.noted(note(step))),
        Err(why) => (None, sure, Some(format!("it abstains: {}", why.words()))),
    }
}

/// Returns the key of a reply to a question.
pub(super) fn answer(plan: &Run, question: &str, text: &str) -> Result<(String, Step), Unread> {
    let kind = serde_json::to_string(&plan.answers).unwrap_or_default();
    let asked = format!("{kind} {question}");
    plan.reader.read("answer", &asked, text, || {
        plan.answers.read_for(question, text)
    })
}

/// Returns why an answer cannot be read.
pub(super) fn unread(plan: &Run, text: &str) -> Option<Unread> {
    match plan.answers {
        AnswerKind::Text => None,
        _ => answer(plan, &plan.question, text).err(),
    }
}

/// Returns the format of a bare answer.
pub(super) fn bare(plan: &Plan) -> (String, Value) {
    let what = format!("\"answer\" ({})", plan.answers.instruction());
    let schema = json!({"type": "object", "properties": {"answer": plan.answers.schema()}, "required": ["answer"], "additionalProperties": false});
    (what, schema)
}

pub(super) fn stated_confidence(value: &Value) -> Option<f64> {
    match value.get("confidence")? {
        Value::Number(n) => n.as_f64().and_then(|c| confidence(&c.to_string())),
        Value::String(s) => confidence(s),
        _ => None,
    }
}

/// Reads an answer by the rules of records without a reading version.
fn first_reading(kind: &AnswerKind, text: &str) -> Taken {
    let object = object_in(text);
    let stated = object.as_ref().and_then(|(value, strict)| {
        let said = match value.get("answer")? {
            Value::String(said) => said.clone(),
            other => other.to_string(),
        };
        Some((kind.key(&said)?, *strict))
    });
    let sure = object
        .as_ref()
        .and_then(|(value, _)| stated_confidence(value))
        .or_else(|| confidence_in(text));
    match stated.or_else(|| kind.key_in(text)) {
        Some((key, true)) => (Some(key), sure, None),
        Some((key, false)) => {
            let notice = format!("its answer was not in the form asked for; read as `{key}`");
            (Some(key), sure, Some(notice))
        }
        None => {
            let notice = "no answer of the kind asked for was found: it abstains".to_owned();
            (None, sure, Some(notice))
        }
    }
}

/// Reads an answer and adds it to the board.
pub(super) fn read(board: &mut Board, plan: &Run, reply: &Reply<'_>) -> Vec<Fact> {
    put(board, plan, reply, answer_in(plan, reply), false)
}

/// Reads the answers on the board again, as another kind than requested.
pub(in crate::deliberation) fn read_again(board: &mut Board, plan: &Run) -> Vec<Fact> {
    let mut facts = Vec::new();
    for answer in &mut board.answers {
        let (key, notice) = match plan.answers {
            AnswerKind::Text => (None, None),
            _ => match self::answer(plan, &plan.question, &answer.reply) {
                Ok((key, step)) => (Some(key), note(step)),
                Err(why) => (None, Some(format!("it abstains: {}", why.words()))),
            },
        };
        answer.key.clone_from(&key);
        facts.push(Fact::AnswerRead {
            seat: plan.seats[answer.seat].name().clone(),
            round: board.round,
            key,
            confidence: answer.confidence,
            message: answer.message,
            notice,
        });
    }
    facts
}

/// Adds a reading to the board as the member's answer.
pub(super) fn put(
    board: &mut Board,
    plan: &Run,
    reply: &Reply<'_>,
    (key, confidence, notice): Taken,
    unjustified: bool,
) -> Vec<Fact> {
    let fact = Fact::AnswerRead {
        seat: plan.seats[reply.seat].name().clone(),
        round: board.round,
        key: key.clone(),
        confidence,
        message: reply.message,
        notice,
    };
    board.put(Answer {
        seat: reply.seat,
        sample: reply.sample,
        text: Labels::of_authors(plan, reply.items, &body(plan, reply.text)),
        reply: reply.decisive().to_owned(),
        key,
        confidence,
        message: reply.message,
        unjustified,
    });
    vec![fact]
}

fn end(board: &mut Board, plan: &Run) -> Vec<Fact> {
    board.settle(plan);
    Vec::new()
}

/// Returns the members that give opinions and have not been asked for one.
pub(in crate::deliberation) fn unasked(plan: &Plan, board: &Board) -> Vec<usize> {
    let mut seats = opiners(plan, board);
    seats.retain(|s| board.answer_of(*s).is_none() && !board.absent.answers.contains(s));
    seats
}

/// For protocols that may not ask all members: returns the members in the order of asking, and the number of members
/// that are always asked. Empty if it asks all.
pub(crate) fn asked_first(plan: &Plan, protocol: &Protocol) -> (Vec<usize>, usize) {
    let board = Board {
        seats: plan.at_the_table(),
        ..Board::default()
    };
    match protocol.asks {
        Asks::All => (Vec::new(), 0),
        Asks::One => (strongest(plan, &board), 1),
        Asks::UntilCertain if protocol.learns => {
            let (rule, members) = enough_of(plan, &board);
            (rule.order.iter().map(|at| members[*at]).collect(), 1)
        }
        Asks::UntilCertain => (cheapest(plan, &board), 2),
    }
}

/// Ends a stage of a cascade: reports the members that are not asked.
fn end_of_cascade(board: &mut Board, plan: &Run) -> Vec<Fact> {
    let mut facts = end(board, plan);
    let spared = unasked(plan, board);
    if plan.writing >= VOICED && board.two_agree() && !spared.is_empty() {
        let names: Vec<&str> = spared
            .iter()
            .map(|s| plan.seats[*s].name().as_str())
            .collect();
        facts.push(Fact::Noted {
            seat: None,
            stage: "cascade".into(),
            text: format!(
                "two members agree, so {} {} not asked",
                names.join(", "),
                is_or_are(names.len())
            ),
        });
    }
    facts
}

/// Returns the verb of a list of names.
pub(crate) fn is_or_are(names: usize) -> &'static str {
    match names {
        1 => "is",
        _ => "are",
    }
}

/// Returns the flaw that a later answer names in the earlier one, if any.
pub(super) fn flaw_in(plan: &Run, text: &str) -> Option<String> {
    let said = match object_with(plan, text, &["flaw"]) {
        Some((value, _)) => words_of(&value, "flaw"),
        None => marked(text, "flaw").unwrap_or_default(),
    };
    let bare = said.trim().trim_end_matches('.').to_lowercase();
    (!matches!(bare.as_str(), "" | "none" | "no" | "n/a" | "-")).then_some(said)
}
