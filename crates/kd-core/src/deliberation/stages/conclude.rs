//! Conclude: the chair states consensus, support, dissent and recommendation, and cites its sources. Outcome,
//! confidence and dissenters come from the count, not from the chair.

use super::{Asking, Stage, StageInput, as_it_came, no_end, words_of};
use crate::SeatName;
use crate::deliberation::answer::AnswerKind;
use crate::deliberation::blind;
use crate::deliberation::board::{Answer, Board, Candidate, object_with};
use crate::deliberation::fact::{Counted, Fact};
use crate::deliberation::plan::Plan;
use crate::deliberation::reader::Run;
use crate::deliberation::verdict::Dissenter;
use crate::event::Purpose;
use crate::markdown::code_line;
use crate::roles::Duty;
use kd_reading::{Unread, json};
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

/// The chair's task.
const TASK: &str = "Conclude for the council; add no opinion of your own";

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
                .map_or(0, |counted| backers(counted, *c));
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
            blind::clip(&board.notes.join("\n"), bytes_max)
        ),
    };
    let text = |most: u32| json!({"type": "string", "maxLength": most});
    Some(Asking {
        material: format!(
            "Question:\n{}\n\n{}\n{result}{notes}",
            board.question,
            input.fenced_as(STAGE.name, &items)
        ),
        task: format!(
            "{TASK}. Reply with JSON: \"recommendation\" (what to do or believe, first), \"consensus\" (what the answers share), \"support\" (the strongest reasons), \"dissent\" (what the others hold, or \"none\"), \"cites\" (the labels it rests on, of {}).",
            labels.join(", ")
        ),
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

/// Counts the members that rank a candidate first.
fn backers(counted: &Counted, candidate: usize) -> usize {
    counted
        .firsts
        .iter()
        .filter(|f| f.candidate == Some(candidate))
        .count()
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
    let own = |text: &str| own_words(told.as_ref(), text);
    let of = |value: &Value, name: &str| own(&words_of(value, name));
    // A chair without a recommendation has not concluded. This includes JSON without one, and refusals.
    let said = said.filter(|(text, _)| match &object {
        Some(value) => !of(value, "recommendation").is_empty(),
        None if told_apart && concludes_nothing(plan, text) => false,
        None => !own(text).is_empty(),
    });
    let winner = board.winner();
    let keyed = winner.filter(|_| plan.answers.is_keyed());
    let words = said.map(|(text, _)| match &object {
        Some(value) => of(value, "recommendation"),
        None => own(text),
    });
    let differs = keyed.zip(words.as_deref()).is_some_and(|(winner, words)| {
        let key = super::opinions::answer(plan, &board.question, words);
        told_apart && key.is_ok_and(|(key, _)| key != winner.name)
    });
    let title = match differs {
        true => "Recommendation of the chair, against the count",
        false => "Recommendation",
    };
    let mut cited: Vec<usize> = Vec::new();
    let mut part = |title: &str, text: &str| {
        let bare = text.trim().trim_end_matches('.').to_lowercase();
        if !matches!(bare.as_str(), "" | "none" | "n/a") {
            out.push_str(&format!("\n**{title}.** {}\n", text.trim()));
        }
    };
    let first = decided(plan, board, winner).filter(|_| told_apart);
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
        part(
            "Confidence",
            &format!(
                "{:.2} – {} of {} by {}; agreement, no probability of being right",
                counted.agreement, counted.backers, counted.voters, counted.rule
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

/// Returns the decision and its title. Open answers have no name: the recommendation contains their text.
fn decided(plan: &Plan, board: &Board, winner: Option<&Candidate>) -> Option<(String, String)> {
    let winner = winner.filter(|_| !matches!(plan.answers, AnswerKind::Text))?;
    let title = match &board.untied {
        // The council did not choose what a lot or an arbiter chose.
        Some(tie) => format!("Tied, and taken by {}", tie.step),
        None => "Decided".to_owned(),
    };
    let words = (plan.writing > 1).then(|| in_their_words(plan, board, winner));
    Some((
        title,
        words.flatten().unwrap_or_else(|| winner.name.clone()),
    ))
}

/// Maximum length of an answer shown as the decision, in characters.
const DECIDED_MAX: usize = 60;

/// Returns a number, date or list as its supporters wrote it, if most wrote it on a line of its own: the key that is
/// counted (`--10-14` for 14 October) is not readable.
fn in_their_words(plan: &Plan, board: &Board, winner: &Candidate) -> Option<String> {
    if matches!(plan.answers, AnswerKind::Choice { .. }) {
        return None;
    }
    let backs = |a: &&Answer| a.key.as_ref() == Some(&winner.name);
    let lines = board.answers.iter().filter(backs).map(|a| a.text.trim());
    let lines: Vec<&str> = lines
        .filter(|line| !line.contains('\n') && line.chars().count() <= DECIDED_MAX)
        .collect();
    let often = |line: &str| lines.iter().filter(|other| **other == line).count();
    let best = lines.iter().enumerate().max_by_key(|(at, line)| {
        let (shorter, earlier) = (line.chars().count(), *at);
        (often(line), std::cmp::Reverse((shorter, earlier)))
    });
    best.map(|(_, line)| (*line).to_owned())
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

/// Removes parts that the chair copied from its instructions: fence markers, the task, its name and role, a lone label.
/// Small models do that.
fn own_words(told: Option<&Told>, text: &str) -> String {
    let lines = text.lines().filter(|line| !is_fence_line(told, line));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if let Some(told) = told {
        text = told.without_role(&text);
    }
    let instructions = [
        TASK,
        "Reply with JSON",
        "what to do or believe, first",
        "Between the lines marked",
    ];
    // Copied sentences come first, if at all.
    while let Some(rest) = instructions.iter().find_map(|ours| {
        let trimmed = text.trim_start_matches(|c: char| !c.is_alphanumeric());
        let begins = trimmed
            .get(..ours.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(ours));
        begins.then(|| after_sentence(&trimmed[ours.len()..]).to_owned())
    }) {
        text = rest;
    }
    let says_something = text
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| word.len() > 1 && !is_mark(told, word) && !word.eq_ignore_ascii_case("answer"));
    let is_number = text.trim().parse::<f64>().is_ok();
    match says_something || is_number {
        true => text.trim().to_owned(),
        false => String::new(),
    }
}

/// The members' names and roles as their prompts state them, as [`plain`] words. `None` for records made before
/// conclusions were compared with them.
struct Told {
    names: Vec<String>,
    roles: Vec<String>,
}

impl Told {
    fn of(plan: &Plan) -> Self {
        let seats = plan.seats.iter();
        Self {
            names: seats
                .clone()
                .map(|seat| plain(seat.name().as_str()))
                .collect(),
            roles: seats.map(|seat| plain(&seat.member.persona)).collect(),
        }
    }

    /// Returns whether a sentence tells a member its role.
    fn is_role(&self, sentence: &str) -> bool {
        let said = plain(sentence);
        let is_name = said.strip_prefix("you are ").is_some_and(|who| {
            let who = who.strip_prefix("the ").unwrap_or(who);
            let rest = self
                .names
                .iter()
                .filter_map(|name| who.strip_prefix(name.as_str()));
            rest.into_iter()
                .any(|rest| rest.is_empty() || rest.starts_with(' '))
        });
        is_name || said.split(' ').count() > 3 && self.roles.iter().any(|role| role.contains(&said))
    }

    /// Removes such sentences from the beginning of a text.
    fn without_role(&self, text: &str) -> String {
        let bare = |text: &str| text.find(char::is_alphanumeric).unwrap_or(text.len());
        let mut from = 0;
        loop {
            let start = from + bare(&text[from..]);
            let rest = &text[start..];
            let end = rest.find(['.', '!', '?', '\n', '。']).unwrap_or(rest.len());
            if rest.is_empty() || !self.is_role(&rest[..end]) {
                // The text before the first original sentence may be its list mark or emphasis.
                let before = if from == 0 { 0 } else { start };
                return text[before..].to_owned();
            }
            from = start + end;
        }
    }
}

/// Returns the words of a text in lower case, with single spaces.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join(" ")
}

/// Returns the text after the end of a sentence.
fn after_sentence(text: &str) -> &str {
    let end = text.find(['.', '!', '?', '\n', ':', ')']);
    end.map_or("", |at| &text[at + 1..])
}

/// Returns whether a line begins or ends a fence.
fn is_fence_line(told: Option<&Told>, line: &str) -> bool {
    let line = line.trim();
    let mark = line
        .strip_prefix("<<")
        .map(|l| l.split(' ').next().unwrap_or(l));
    mark.or(line.strip_suffix(">>"))
        .is_some_and(|mark| is_mark(told, mark))
}

/// Returns whether a word is a fence marker as made by [`blind::nonce`], or nearly.
fn is_mark(told: Option<&Told>, word: &str) -> bool {
    // Some models write it in capitals.
    let loud = told.is_some();
    (11..=14).contains(&word.len())
        && word.bytes().all(|b| {
            b.is_ascii_digit() || (b'a'..=b'f').contains(&b) || loud && (b'A'..=b'F').contains(&b)
        })
        && word.bytes().any(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Told {
        Told {
            names: vec!["m1 synthesizer".into(), "ann".into()],
            roles: vec!["join what others said into one answer and name what is open".into()],
        }
    }

    #[test]
    fn who_a_chair_is_told_to_be_is_no_conclusion() {
        for (said, own) in [
            ("You are m1-synthesizer.", ""),
            ("You are m1-synthesizer, a member of the council.", ""),
            ("You are the m1-synthesizer. Use SQLite.", "Use SQLite."),
            ("**You are ann.** Use SQLite.", "Use SQLite."),
            ("Join what others said into one answer.", ""),
            (
                "Join what others said into one answer and name what is open. Use **it**.",
                "Use **it**.",
            ),
            (
                "You are annoyed by locks: use SQLite.",
                "You are annoyed by locks: use SQLite.",
            ),
            (
                "You are right to ask. Use SQLite.",
                "You are right to ask. Use SQLite.",
            ),
            ("- Use SQLite.", "- Use SQLite."),
            ("ADAAB953EACB", ""),
            (
                "<<155003339AC5 Answer A\nUse SQLite.\n155003339AC5>>",
                "Use SQLite.",
            ),
            ("是的。", "是的。"),
        ] {
            assert_eq!(own_words(Some(&told()), said), own, "{said:?}");
        }
        // Records follow the rules of their time.
        assert_eq!(own_words(None, "You are ann."), "You are ann.");
    }

    #[test]
    fn what_a_chair_copied_from_its_instructions_is_no_conclusion() {
        for (said, own) in [
            ("adaab953eacbe", ""),
            ("155003339ac5", ""),
            (
                "<<155003339ac5 Answer A\nUse SQLite.\n155003339ac5>>",
                "Use SQLite.",
            ),
            ("A", ""),
            ("Answer B.", ""),
            ("Conclude for the council; add no opinion of your own.", ""),
            (
                "Conclude for the council; add no opinion of your own. Use SQLite.",
                "Use SQLite.",
            ),
            ("Reply with JSON: use SQLite.", "use SQLite."),
            (
                "Use commit 3f2a9c0d1e2f of the library.",
                "Use commit 3f2a9c0d1e2f of the library.",
            ),
            ("391", "391"),
            ("7", "7"),
            ("Use SQLite.", "Use SQLite."),
            ("Ja.", "Ja."),
            ("是的", "是的"),
        ] {
            assert_eq!(own_words(None, said), own, "{said:?}");
            assert_eq!(own_words(Some(&told()), said), own, "{said:?}");
        }
    }
}
