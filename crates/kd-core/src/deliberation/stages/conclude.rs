//! Conclude: the chair states consensus, support, dissent and recommendation, and cites its sources. Outcome,
//! confidence and dissenters come from the count, not from the chair.

use super::echo::{FIELDS, TASK, Told, own_words};
use super::{Asking, Stage, StageInput, as_it_came, no_end, words_of};
use crate::SeatName;
use crate::clean::clean_line;
use crate::deliberation::answer::{AnswerKind, marked};
use crate::deliberation::blind;
use crate::deliberation::board::{Answer, Board, Candidate, object_with};
use crate::deliberation::fact::{Counted, Fact};
use crate::deliberation::labels::Labels;
use crate::deliberation::plan::{DRAWN, MEANT, Plan, STATED, VOICED};
use crate::deliberation::reader::Run;
use crate::deliberation::verdict::Dissenter;
use crate::event::Purpose;
use crate::markdown::code_line;
use crate::roles::Duty;
use kd_reading::{Unread, json, sameness};
use kd_vote::Outcome;
use serde_json::{Value, json};

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "conclude",
    title: "conclusion",
    purpose: Purpose::Conclude,
    spoken: true,
    seats: |plan, _| chairs(plan),
    ask,
    read: |_, _, _| Vec::<Fact>::new(),
    end: no_end,
    body: as_it_came,
};

/// Maximum bytes of one candidate in the chair's prompt; this bounds the prompt, so that it can be reserved.
const CANDIDATE_BYTES_MAX: usize = 1500;
/// Maximum number of candidates that the chair reads in full.
const CANDIDATES_MAX: usize = 6;

/// Maximum number of candidates that the chair reads if a limit is low.
const CANDIDATES_MAX_IF_LOW: usize = 4;

/// Returns the maximum bytes of one candidate, and the maximum number of candidates, in the chair's prompt.
fn candidates_max(plan: &Plan) -> (usize, usize) {
    match plan.limits.peer_bytes {
        None => (CANDIDATE_BYTES_MAX, CANDIDATES_MAX),
        Some(bytes) => (
            CANDIDATE_BYTES_MAX.min(bytes as usize),
            CANDIDATES_MAX_IF_LOW,
        ),
    }
}

/// Returns the maximum bytes of the material that the chair reads besides the question.
pub(in crate::deliberation) fn material_bytes_max(plan: &Plan) -> usize {
    let (bytes, count) = candidates_max(plan);
    (count + 1) * (bytes + 200) + 1000
}

/// Returns the possible chairs in order of preference: the chair, then the members with opinions.
pub(in crate::deliberation) fn chairs(plan: &Plan) -> Vec<usize> {
    let mut seats = plan.with(Duty::Conclude);
    for seat in plan.with(Duty::Opine) {
        if !seats.contains(&seat) {
            seats.push(seat);
        }
    }
    seats
}

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let board = input.board;
    let mut order: Vec<usize> = (0..board.candidates.len()).collect();
    let winner = board.counted.as_ref().and_then(|c| c.winner);
    let (bytes_max, count_max) = candidates_max(input.plan);
    order.sort_by_key(|c| (Some(*c) != winner, *c));
    order.truncate(count_max);
    let items: Vec<(String, String)> = order
        .iter()
        .enumerate()
        .map(|(place, c)| {
            let candidate = &board.candidates[*c];
            let backers = board
                .counted
                .as_ref()
                .map_or(0, |counted| counted.backers_of(*c));
            let text = blind::anonymous(input.plan, &candidate.text);
            (
                format!("Answer {}, {backers} votes", blind::label(place)),
                blind::clip(&text, bytes_max),
            )
        })
        .collect();
    let labels: Vec<String> = (0..order.len()).map(blind::label).collect();
    let result = match (&board.counted, winner) {
        (Some(counted), Some(_)) => format!(
            "The council voted: {} of {} put answer A first ({}).",
            counted.backers,
            counted.voters,
            counted.form.word()
        ),
        (Some(_), None) => "The council voted and is undecided.".to_owned(),
        (None, _) => "No vote was held.".to_owned(),
    };
    let notes = match board.notes.is_empty() {
        true => String::new(),
        false => format!(
            "\n\nNoted on the way:\n{}",
            blind::clip(
                &blind::hidden(input.plan, &board.notes.join("\n")),
                bytes_max
            )
        ),
    };
    let text = |most: u32| json!({"type": "string", "maxLength": most});
    Some(Asking {
        material: format!(
            "Question:\n{}\n\n{}\n{result}{notes}",
            board.question,
            input.fenced_as(STAGE.name, &items)
        ),
        task: {
            let fields = FIELDS.map(|(name, what)| format!("\"{name}\" ({what}"));
            let fields = fields.join("), ");
            format!("{TASK}. Reply with JSON: {fields} {}).", labels.join(", "))
        },
        schema: Some(json!({"type": "object", "properties": {
            "recommendation": text(700),
            "consensus": text(400),
            "support": text(400),
            "dissent": text(400),
            "cites": {"type": "array", "items": {"type": "string", "enum": labels}, "minItems": 1, "maxItems": labels.len().max(1)},
        }, "required": ["recommendation", "consensus", "support", "dissent", "cites"], "additionalProperties": false}))
        .filter(|_| !labels.is_empty()),
        items: order,
        tokens: None,
    })
}

/// Returns whether a text of the chair is a bare number, though the question asks for none and no answer has it: very small
/// models fill in forms like this.
fn is_idle_number(plan: &Plan, board: &Board, text: &str) -> bool {
    let text = text.trim();
    if text.parse::<f64>().is_err() || matches!(plan.answers, AnswerKind::Number | AnswerKind::Date)
    {
        return false;
    }
    let says = |answer: &str| {
        let mut words = answer.split(|c: char| !c.is_alphanumeric() && c != '.' && c != '-');
        words.any(|word| word.trim_end_matches('.') == text)
    };
    // A confidence is not an answer.
    let answers = |text: &str| {
        let mut lines = text.lines();
        lines.any(|line| marked(line, "confidence").is_none() && says(line))
    };
    !board
        .candidates
        .iter()
        .any(|c| says(&c.name) || answers(&c.text))
}

/// Returns whether a field of the chair repeats the fields in which members answer.
fn is_members_form(text: &str) -> bool {
    let plain = text.replace(['*', '_', '`', '"'], "").to_lowercase();
    let is_number = |said: &str| said.trim_start().starts_with(|c: char| c.is_ascii_digit());
    plain.contains("answer:") && plain.split("confidence:").skip(1).any(is_number)
}

/// The parts of a conclusion besides the chair's text.
pub(crate) struct Conclusion<'a> {
    /// The plan.
    pub plan: &'a Run,
    /// The board of the best pass.
    pub board: &'a Board,
    /// The heading.
    pub heading: &'a str,
    /// The outcome of the deliberation.
    pub outcome: Outcome,
    /// The members that do not support the winner.
    pub dissent: &'a [Dissenter],
    /// Notes above the text: a replaced chair, a limit that cut.
    pub above: &'a [String],
    /// The chair that wrote the text.
    pub by: Option<&'a SeatName>,
    /// The question to the user whose answer would decide, and the member that worded it.
    pub asks_back: Option<&'a (SeatName, String)>,
}

/// Composes the final answer and returns the messages it cites. `said` is the chair's reply and the meaning of its
/// labels; without one, the answer is composed from the messages.
pub(crate) fn compose(
    about: &Conclusion<'_>,
    said: Option<(&str, &[usize])>,
) -> (String, Vec<u32>) {
    let Conclusion {
        plan,
        board,
        heading,
        outcome,
        dissent,
        above,
        by,
        asks_back,
    } = about;
    // Older records keep their format.
    let told_apart = plan.writing > 0;
    let mut out = format!("## {heading}\n");
    for line in *above {
        out.push_str(&format!("\n> {line}\n"));
    }
    let object = said
        .and_then(|(text, _)| object_with(plan, text, &["recommendation"]).map(|(value, _)| value));
    let told = (plan.writing > 1).then(|| Told::of(plan));
    let labels = said.and_then(|(_, items)| Labels::of_candidates(plan, board, items));
    let own = |text: &str| match (&labels, own_words(told.as_ref(), text)) {
        (_, own) if plan.writing >= MEANT && is_idle_number(plan, board, &own) => String::new(),
        (Some(labels), own) => labels.named(&own),
        (None, own) => own,
    };
    let of = |value: &Value, name: &str| match words_of(value, name) {
        text if plan.writing >= MEANT && is_members_form(&text) => String::new(),
        text => own(&text),
    };
    // A chair without a recommendation has not concluded. This includes JSON without one, and refusals.
    let said = said.filter(|(text, _)| match &object {
        Some(value) => !of(value, "recommendation").is_empty(),
        None if told_apart && concludes_nothing(plan, text) => false,
        None => !own(text).is_empty(),
    });
    let winner = board.winner();
    let words = said.map(|(text, _)| match &object {
        Some(value) => of(value, "recommendation"),
        None => own(text),
    });
    let against = match (winner, words.as_deref()) {
        (Some(winner), Some(words)) if told_apart => goes_against(plan, board, winner, words),
        _ => Some(false),
    };
    let drawn = board.counted.as_ref().is_some_and(Counted::is_drawn);
    let is_drawn = drawn && plan.writing >= DRAWN;
    let title = match (against, by) {
        (Some(true), _) if is_drawn => "Recommendation of the chair, against the lot",
        (Some(true), _) => "Recommendation of the chair, against the count",
        (None, Some(by)) => &format!("Recommendation in the words of {by}"),
        _ => "Recommendation",
    };
    let mut cited: Vec<usize> = Vec::new();
    let mut part = |title: &str, text: &str| {
        let bare = text.trim().trim_end_matches('.').to_lowercase();
        if !matches!(bare.as_str(), "" | "none" | "n/a") {
            out.push_str(&format!("\n**{title}.** {}\n", text.trim()));
        }
    };
    let first = decided(plan, board, winner).filter(|_| told_apart);
    let first = first.or_else(|| decided_open(plan, board, winner, said.is_some()));
    if let Some((title, name)) = &first {
        // The count decides; the chair explains.
        part(title, name);
    }
    match (&object, said) {
        (Some(value), Some((_, items))) => {
            part(title, &of(value, "recommendation"));
            part("Consensus", &of(value, "consensus"));
            part("Support", &of(value, "support"));
            let listed = value.get("cites").and_then(Value::as_array);
            cited.extend(
                listed
                    .into_iter()
                    .flatten()
                    .filter_map(|l| Some(items[blind::place_of(l.as_str()?, items.len())?])),
            );
            // If votes were counted, the count gives the dissenters.
            if board.counted.is_none() {
                part("Dissent", &of(value, "dissent"));
            }
        }
        // Text without the requested format is still an answer.
        (None, Some((text, _))) => part(title, &own(text)),
        (_, None) => match winner {
            Some(winner) => part(
                "Recommendation",
                &format!("(in the words of the winning answer)\n\n{}", winner.text),
            ),
            None => {
                for candidate in &board.candidates {
                    part("One answer", &candidate.text);
                }
                // Answers that do not count are still shown to the user, who paid for them.
                for answer in board.answers.iter().filter(|_| board.candidates.is_empty()) {
                    let text = blind::clip(&answer.text, CANDIDATE_BYTES_MAX);
                    part(&format!("{} said", plan.seats[answer.seat].name()), &text);
                }
            }
        },
    }
    if let Some(winner) = winner {
        if let Some((title, name)) = decided(plan, board, Some(winner)).filter(|_| !told_apart) {
            part(&title, &name);
        }
        let at = board.candidates.iter().position(|c| c.name == winner.name);
        cited.splice(0..0, at);
    }
    // Without a decision, there is no dissent.
    let undecided = told_apart && *outcome == Outcome::NoQuorum;
    if !dissent.is_empty() && !undecided {
        let lines: Vec<String> = dissent
            .iter()
            .map(|d| match d.reason.is_empty() {
                true => format!("{} for {}", d.seat, d.stands_for),
                false => format!("{} for {}: {}", d.seat, d.stands_for, d.reason),
            })
            .collect();
        part("Dissent", &lines.join("; "));
    }
    if let Some(counted) = board
        .counted
        .as_ref()
        .filter(|c| c.voters > 1 && !undecided)
    {
        let (backers, voters) = (counted.backers, counted.voters);
        let whose = match (counted.is_of_estimates() && plan.writing >= VOICED, backers) {
            (true, 0) => String::new(),
            (true, _) => format!(" – {backers} of {voters} in the middle half"),
            (false, _) => format!(" – {backers} of {voters} by {}", counted.rule),
        };
        part(
            "Confidence",
            &format!(
                "{:.2}{whose}; agreement, {} probability of being right",
                counted.agreement,
                if plan.writing < DRAWN { "no" } else { "not a" }
            ),
        );
    }
    if let Some((by, question)) = asks_back {
        let question = code_line(question);
        part(
            "The council asks you",
            &format!("{question} (in words of {by})"),
        );
    }
    let mut seen = Vec::new();
    cited.retain(|c| {
        let new = !seen.contains(c);
        seen.push(*c);
        new
    });
    let mut messages: Vec<u32> = Vec::new();
    let mut whose: Vec<String> = Vec::new();
    for candidate in cited.iter().filter_map(|c| board.candidates.get(*c)) {
        whose.extend(candidate.authors.iter().map(|author| {
            let of = |a: &&Answer| a.seat == *author;
            let numbers: Vec<String> = board
                .answers
                .iter()
                .filter(of)
                .filter_map(|a| a.message.filter(|m| candidate.messages.contains(m)))
                .map(|m| format!("#{m}"))
                .collect();
            let name = plan.seats[*author].name();
            match numbers.is_empty() {
                true => name.to_string(),
                false => format!("{name} ({})", numbers.join(", ")),
            }
        }));
        messages.extend(&candidate.messages);
    }
    messages.sort_unstable();
    messages.dedup();
    if !whose.is_empty() {
        part("Rests on", &whose.join(", "));
    }
    (out.trim_end().to_owned(), messages)
}

/// Returns the decision between comparable answers and its title.
fn decided(plan: &Plan, board: &Board, winner: Option<&Candidate>) -> Option<(String, String)> {
    let winner = winner.filter(|_| !matches!(plan.answers, AnswerKind::Text))?;
    let title = decided_by(board);
    let words = (plan.writing > 1).then(|| in_their_words(plan, board, winner));
    Some((
        title,
        words.flatten().unwrap_or_else(|| winner.name.clone()),
    ))
}

/// Returns whether the chair's words name another answer than the winner. `None` if they cannot be compared.
fn goes_against(plan: &Run, board: &Board, winner: &Candidate, words: &str) -> Option<bool> {
    let states = plan.writing >= STATED;
    if plan.answers.is_keyed() {
        let key = super::opinions::answer(plan, &board.question, words);
        let against = key.ok().map(|(key, _)| key != winner.name);
        return against.or((!states).then_some(false));
    }
    if !states {
        return Some(false);
    }
    let key = |text: &str| plan.reader.read("words", "", text, || sameness::key(text));
    let said = key(words);
    let mut same = board.candidates.iter().filter(|c| key(&c.text) == said);
    same.next().map(|candidate| candidate.name != winner.name)
}

/// Maximum length of the beginning of an open answer, in characters.
const BEGINNING_MAX: usize = 200;

/// Returns the decision between open answers and its title: the beginning of the winning answer, its author and its
/// message. Without a chair's text, the whole answer follows, so a short one is not repeated.
fn decided_open(
    plan: &Plan,
    board: &Board,
    winner: Option<&Candidate>,
    chaired: bool,
) -> Option<(String, String)> {
    let winner = winner.filter(|_| matches!(plan.answers, AnswerKind::Text))?;
    let voters = board
        .counted
        .as_ref()
        .map_or(0, |counted| counted.electorate);
    if plan.writing < STATED || voters < 2 {
        return None;
    }
    let lines = winner
        .text
        .lines()
        .map(|line| line.trim_start_matches(['#', '>', ' ']));
    let lines: Vec<&str> = lines
        .filter(|line| marked(line, "confidence").is_none())
        .collect();
    // Marks whose end is cut off would change the rest of the text.
    let plain = lines.join("\n").replace(['*', '`'], "");
    let beginning = clean_line(&plain, BEGINNING_MAX);
    if beginning.is_empty() || !chaired && !beginning.ends_with('…') {
        return None;
    }
    let of = |a: &&Answer| winner.given.first() == Some(&(a.seat, a.sample));
    let answer = board.answers.iter().find(of);
    let message = answer.and_then(|a| a.message.or(winner.messages.first().copied()));
    let author = plan.seats.get(*winner.authors.first()?)?.name();
    let whose = match message {
        Some(message) => format!("{author}, #{message}"),
        None => author.to_string(),
    };
    Some((decided_by(board), format!("{beginning} ({whose})")))
}

/// Returns the title of a decision.
fn decided_by(board: &Board) -> String {
    match &board.untied {
        // The council did not choose what a lot or an arbiter chose.
        Some(tie) => format!("Tied, and taken by {}", tie.step),
        None => "Decided".to_owned(),
    }
}

/// Maximum length of an answer shown as the decision, in characters.
const DECIDED_MAX: usize = 60;

/// Returns a number, date or list as its supporters wrote it, if most wrote it on a separate line: the normalized key
/// that is counted (`--10-14` for 14 October) is hard to read.
fn in_their_words(plan: &Plan, board: &Board, winner: &Candidate) -> Option<String> {
    if matches!(plan.answers, AnswerKind::Choice { .. }) {
        return None;
    }
    let backs = |a: &&Answer| a.key.as_ref() == Some(&winner.name);
    let lines = board.answers.iter().filter(backs).map(|a| a.text.trim());
    let is_value = |line: &&str| {
        plan.writing < STATED || plan.answers != AnswerKind::Number || is_one_number(line)
    };
    let lines: Vec<&str> = lines
        .filter(|line| !line.contains('\n') && line.chars().count() <= DECIDED_MAX)
        .filter(is_value)
        .collect();
    let often = |line: &str| lines.iter().filter(|other| **other == line).count();
    let best = lines.iter().enumerate().max_by_key(|(at, line)| {
        let (shorter, earlier) = (line.chars().count(), *at);
        (often(line), std::cmp::Reverse((shorter, earlier)))
    });
    best.map(|(_, line)| (*line).to_owned())
}

/// Returns whether a line is one number, perhaps with its unit: a calculation is not the value.
fn is_one_number(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let with_digit = |word: &&&str| word.contains(|c: char| c.is_ascii_digit());
    let sign = |c: char| "=+*/×÷^".contains(c);
    words.len() <= 3 && words.iter().filter(with_digit).count() == 1 && !line.contains(sign)
}

/// Returns whether a reply is JSON, in a fence or with little text around it.
fn is_json(text: &str) -> bool {
    let json: usize = json::objects(text).iter().map(|f| f.end - f.start).sum();
    json * 2 > text.trim().len()
}

/// Returns whether the chair gave JSON without a recommendation, or declined.
fn concludes_nothing(plan: &Run, text: &str) -> bool {
    let kind = serde_json::to_string(&plan.answers).unwrap_or_default();
    let find = || is_json(text) || is_refusal(plan, text);
    plan.reader.read("no conclusion", &kind, text, find)
}

/// Returns whether the chair declines to conclude.
fn is_refusal(plan: &Run, text: &str) -> bool {
    plan.answers.read(text) == Err(Unread::Refused)
}
