//! How the council decided: the outcome as a sentence, who supports it and who does not, and each step of the count.

use crate::bar::bar;
use crate::facts::{Facts, plain};
use crate::markdown;
use kd_core::clean::clean_line;
use kd_core::deliberation::report::{Report, SeatState, StageReport};
use kd_core::deliberation::{AnswerKind, Counted, Robustness, Verdict, counted_by, rule_doc, why};
use maud::{Markup, html};

/// The title of the part of an answer that states the decision.
const DECIDED: &str = "**Decided.** ";
/// Maximum characters of a decision in one sentence.
const SENTENCE_CHARS: usize = 140;
/// Maximum characters of the beginning of an answer.
const BEGINNING_CHARS: usize = 120;

/// Renders the verdict at the top of the page.
pub(crate) fn outcome(facts: &Facts<'_>, verdict: &Verdict) -> Markup {
    html! {
        div.verdict {
            @let what = decided_for(facts, verdict);
            p.outcome {
                (plain(&verdict.heading))
                @if let Some(what) = &what { (between(verdict)) bdi { "“" (what.sentence) "”" } }
            }
            div.body dir="auto" { (markdown::render(&told_once(facts, verdict, what.is_some_and(|what| what.is_whole)))) }
            (agreement(facts))
            // The server's page adds buttons.
            @if facts.has_verdict() { p.facts data-mark="" hidden {} }
            @if let Some(seq) = verdict.message { p.facts { a href={ "#" (facts.anchor(seq)) } { "The whole text is message " (seq) "." } } }
            @if verdict.support.is_empty() && verdict.dissent.is_empty() {} @else { (sides(facts, verdict)) }
            @if let Some(sentence) = facts.robust.as_ref().and_then(Robustness::sentence) {
                p.facts.robust dir="auto" { (plain(&sentence)) "." }
            }
        }
    }
}

/// Returns the words that join the outcome and the decision in one sentence.
fn between(verdict: &Verdict) -> &'static str {
    match verdict.heading.starts_with("A majority") {
        true => " for ",
        false => ": ",
    }
}

/// A decision in one sentence.
struct Decision {
    sentence: String,
    /// Whether the sentence has everything that the answer states about the decision.
    is_whole: bool,
}

/// Returns the decision in one sentence: the answer that was chosen, or the first sentence of an open one. `None` if
/// there is none, or if it is a program.
fn decided_for(facts: &Facts<'_>, verdict: &Verdict) -> Option<Decision> {
    let winner = verdict.winner.as_deref()?;
    let plan = facts.report.as_ref()?.plan.as_ref()?;
    let (sentence, is_cut) = match plan.answers {
        AnswerKind::Code | AnswerKind::Json => return None,
        AnswerKind::Text | AnswerKind::Judged => (first_sentence(winner)?, false),
        // The key that was counted is not always readable; the answer has the members' own words. A full stop ends none
        // of them: `St. Gallen`, `14. Oktober`.
        _ => cut(&without_marks(
            decided_part(words(verdict)).map_or(winner, |(part, _)| part),
        )?),
    };
    Some(Decision {
        sentence,
        is_whole: !is_cut,
    })
}

/// Returns the words of the part of an answer that states the decision, and its position among the parts: the first
/// part below the notes.
fn decided_part(words: &str) -> Option<(&str, usize)> {
    let mut parts = words.split("\n\n").enumerate();
    let (at, part) = parts.find(|(_, part)| !part.starts_with("> "))?;
    Some((part.strip_prefix(DECIDED)?, at))
}

/// Returns the first line of a Markdown text that has words, outside of blocks of code, without its marks. `None` if
/// there is none.
fn without_marks(text: &str) -> Option<String> {
    let mut in_code = false;
    let line = text.lines().find(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !is_fence && !in_code && line.contains(char::is_alphanumeric)
    })?;
    let line = line.trim_start_matches(['#', '>', '-', ' ']);
    // The number of a list's item.
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = digits.strip_prefix(". ").or(digits.strip_prefix(") "));
    let is_item =
        digits.len() < line.len() && text.lines().filter(|l| !l.trim().is_empty()).count() > 1;
    let line = item.filter(|_| is_item).unwrap_or(line);
    let line = clean_line(line.replace(['*', '`'], "").trim(), usize::MAX);
    (!line.is_empty()).then_some(line)
}

/// Returns the first sentence of a Markdown text without its marks, cut between words if it is long. `None` if the text
/// begins with no word.
fn first_sentence(text: &str) -> Option<String> {
    let line = without_marks(text)?;
    let sentence = kd_core::first_sentence(&line).trim_end_matches('.');
    (!sentence.is_empty()).then(|| cut(sentence).0)
}

/// Cuts a line between words if it is long. Returns it, and whether it was cut.
fn cut(line: &str) -> (String, bool) {
    let line = line.trim_end_matches('.');
    let Some((end, _)) = line.char_indices().nth(SENTENCE_CHARS) else {
        return (line.to_owned(), false);
    };
    let head = &line[..end];
    let whole = head.rsplit_once(' ').map_or(head, |(whole, _)| whole);
    (format!("{whole} …"), true)
}

/// Returns the answer without the parts that are shown elsewhere at the top of the page: its heading, the decision if
/// the sentence has it, dissent and agreement.
fn told_once(facts: &Facts<'_>, verdict: &Verdict, has_decision: bool) -> String {
    let counted = facts.report.as_ref().and_then(|report| report.count());
    let agreement = counted
        .filter(|counted| counted.voters > 1)
        .map(|counted| counted.agreement);
    let against = verdict.dissent.first().map(|other| other.seat.as_str());
    without_parts(words(verdict), has_decision, agreement, against)
}

/// Leaves out the parts that this program wrote at the beginning and the end of an answer. Members and chairs write
/// such titles too; their text in between stays.
fn without_parts(
    words: &str,
    has_decision: bool,
    agreement: Option<f64>,
    against: Option<&str>,
) -> String {
    let mut parts: Vec<&str> = words.split("\n\n").collect();
    if let Some((_, at)) = decided_part(words).filter(|_| has_decision) {
        parts.remove(at);
    }
    // Below the words of the chair: dissent, agreement, the question to the user, what it rests on.
    let mut end = parts.len();
    for title in ["**Rests on.** ", "**The council asks you.** "] {
        let is_last = end > 0 && parts[end - 1].starts_with(title);
        end -= usize::from(is_last);
    }
    for title in [
        agreement.map(|agreement| format!("**Confidence.** {agreement:.2} – ")),
        against.map(|seat| format!("**Dissent.** {seat} for ")),
    ] {
        if title.is_some_and(|title| end > 0 && parts[end - 1].starts_with(&title)) {
            end -= 1;
            parts.remove(end);
        }
    }
    parts.join("\n\n")
}

/// Renders the agreement of the count, and the description of its rule.
fn agreement(facts: &Facts<'_>) -> Markup {
    let counted = facts.report.as_ref().and_then(|report| report.count());
    html! {
        @if let Some(counted) = counted.filter(|counted| !counted.is_one_voice()) {
            p.facts {
                span { "Agreement " (format!("{:.2}", counted.agreement)) ": not the probability of being right" }
                @if !counted.is_of_estimates() { span { "Counted by " (rule(&counted.rule)) } }
            }
        }
    }
}

/// Renders the name of a rule, with what it does as its description.
fn rule(name: &str) -> Markup {
    html! {
        @match rule_doc(name) {
            Some(doc) => abbr title=(doc) { (plain(name)) },
            None => (plain(name)),
        }
    }
}

/// Returns the answer without its heading.
fn words(verdict: &Verdict) -> &str {
    let rest = verdict
        .answer
        .strip_prefix(&verdict.heading)
        .map(str::trim_start);
    let below = verdict
        .answer
        .split_once('\n')
        .map(|(_, rest)| rest.trim_start());
    rest.or(below).unwrap_or(&verdict.answer)
}

/// Renders who supports the answer and who does not, at equal size.
fn sides(facts: &Facts<'_>, verdict: &Verdict) -> Markup {
    html! {
        div.sides {
            div {
                h2 { "For it (" (verdict.support.len()) ")" }
                ul.names { @for seat in &verdict.support { li { (seat_link(facts, seat.as_str())) } } }
            }
            div {
                h2 { "Against it (" (verdict.dissent.len()) ")" }
                @if verdict.dissent.is_empty() { p.faint { "Nobody." } }
                ul {
                    @for other in &verdict.dissent {
                        li {
                            (seat_link(facts, other.seat.as_str()))
                            " stands for " b dir="auto" { (candidate(facts, &other.stands_for)) }
                            @if !other.reason.is_empty() { ": " span dir="auto" { (plain(&other.reason)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Renders a member's name, linked to its message if that is in the page.
pub(crate) fn seat_link(facts: &Facts<'_>, name: &str) -> Markup {
    html! {
        @if let Some(seq) = facts.message_of(name) { a href={ "#" (facts.anchor(seq)) } { (facts.name(name)) } }
        @else { (facts.name(name)) }
    }
}

/// Renders a candidate. An open answer is named after its author: it is linked to the message.
fn candidate(facts: &Facts<'_>, name: &str) -> Markup {
    let message = author(name).and_then(|author| facts.message_of(author));
    html! {
        @match message {
            Some(seq) => a href={ "#" (facts.anchor(seq)) } { (plain(name)) },
            None => (plain(name)),
        }
    }
}

/// Returns the author of an open answer, from its name as a candidate.
pub(crate) fn author(candidate: &str) -> Option<&str> {
    candidate.strip_prefix("the answer of ")
}

/// Returns how an open answer begins.
fn beginning(facts: &Facts<'_>, candidate: &str) -> Option<String> {
    let seq = facts.message_of(author(candidate)?)?;
    let message = facts.shown.iter().find(|message| message.seq == seq)?;
    let mut lines = message.body.lines();
    let line = lines.find(|line| line.contains(char::is_alphanumeric))?;
    let words = line.replace(['*', '#', '`'], "");
    Some(clean_line(words.trim(), BEGINNING_CHARS))
}

pub(crate) fn body(facts: &Facts<'_>) -> Markup {
    let Some(report) = &facts.report else {
        return html! {};
    };
    html! {
        @if let Some(counted) = report.count().filter(|counted| !counted.is_one_voice()) { (count(facts, report, counted)) }
        @if let Some(robust) = &facts.robust { (would_be(facts, robust)) }
        @if let Some(plan) = &report.plan {
            details {
                summary {
                    "The plan: protocol " (plain(&plan.protocol))
                    @if let Some(by) = counted_by(plan) { ", rule " (rule(by)) }
                }
                p dir="auto" { (plain(&plan.meta.reasoning)) }
                div.wide tabindex="0" { table {
                    thead { tr { th { "Seat" } th { "Role" } th { "Persona" } th { "Weight" } th { "Model" } } }
                    tbody { @for seat in &plan.seats {
                        tr {
                            td { (facts.name(seat.name().as_str())) }
                            td { (plain(&seat.role)) }
                            td dir="auto" { (seat.persona.as_deref().map(plain).unwrap_or_default()) }
                            td { (seat.member.weight) }
                            td { (plain(&seat.member.backend)) @if let Some(model) = &seat.member.model { ": " (plain(model)) } }
                        }
                    } }
                } }
            }
        }
        @for stage in &report.stages { (self::stage(facts, stage)) }
        details open[report.stages.is_empty()] {
            summary { "Why, step by step" }
            ul { @for line in why(report) { li dir="auto" { (plain(&line)) } } }
        }
    }
}

fn count(facts: &Facts<'_>, report: &Report, counted: &Counted) -> Markup {
    let weight = |seat: &str| {
        let plan = report.plan.as_ref()?;
        let found = plan.seats.iter().find(|s| s.name().as_str() == seat)?;
        Some(found.member.weight)
    };
    let weights = counted
        .firsts
        .iter()
        .filter_map(|f| weight(f.seat.as_str()));
    let weighs = weights.into_iter().any(|w| w != 1.0);
    html! {
        p {
            @if !counted.is_of_estimates() {
                "Counted by " b { (rule(&counted.rule)) } ": " (counted.form.word()) ". "
            }
            (counted.voters) " of " (counted.electorate) " were counted. "
            @if let Some(doc) = counted.rule_doc().filter(|_| !counted.is_of_estimates()) { span.faint { "The rule: " (doc) "." } }
        }
        (standing(facts, counted))
        div.wide tabindex="0" { table {
            thead { tr {
                th { "Member" }
                @if weighs { th { "Weight" } }
                th { "First choice" } th { "Says it is sure" } th { "Reason" }
            } }
            tbody { @for first in &counted.firsts {
                tr {
                    td { (seat_link(facts, first.seat.as_str())) }
                    @if weighs { td { @if let Some(weight) = weight(first.seat.as_str()) { (weight) } } }
                    td dir="auto" {
                        @for (at, name) in first.all().filter_map(|c| counted.candidates.get(c)).enumerate() {
                            @if at > 0 { " = " }
                            (candidate(facts, name))
                        }
                        @if first.is_silent() { span.faint { "abstains" } }
                    }
                    td { @if let Some(sure) = first.confidence { (format!("{:.0} %", sure * 100.0)) } }
                    td dir="auto" { (plain(&first.reason)) }
                }
            } }
        } }
        (lines("Rounds of the count", &counted.rounds))
        (lines("How the tie was broken", &counted.tie_path))
        (lines("Not counted", &counted.abstained))
        (lines("Notes", &counted.notes))
    }
}

/// Renders what would have been decided otherwise, from the same ballots.
fn would_be(facts: &Facts<'_>, robust: &Robustness) -> Markup {
    let mut winners: Vec<(Option<&str>, Vec<&str>)> = vec![(robust.winner.as_deref(), Vec::new())];
    for by in &robust.rules {
        let winner = by.winner.as_deref();
        match winners.iter_mut().find(|(known, _)| *known == winner) {
            Some((_, rules)) => rules.push(by.rule),
            None => winners.push((winner, vec![by.rule])),
        }
    }
    let id = &facts.thread.id;
    html! {
        details.would-be {
            summary { "What would have been" }
            p { "Counted again from the same ballots; nobody was asked. " code { "kd replay " (id) " --all-rules" } }
            div.wide tabindex="0" { table {
                thead { tr { th { "Winner" } th { "Rules" } th { "Which" } } }
                tbody { @for (winner, rules) in winners.iter().filter(|(_, rules)| !rules.is_empty()) {
                    tr {
                        td dir="auto" { @match winner { Some(winner) => (plain(winner)), None => span.faint { "undecided" } } }
                        td { (rules.len()) }
                        td { @for (at, name) in rules.iter().enumerate() { @if at > 0 { ", " } (rule(name)) } }
                    }
                } }
            } }
            ul {
                @for seat in &robust.hangs_on {
                    li { "Hangs on " (seat_link(facts, seat.as_str())) ": " code { "kd replay " (id) " --without " (seat) } }
                }
                @if robust.hangs_on.is_empty() { li { "No single ballot decides it." } }
                @if let Some(margin) = &robust.margin {
                    li dir="auto" {
                        "Changing " @if !margin.exact { "at most " } (margin.ballots) " of " (margin.of) " ballots elects "
                        (plain(&margin.winner)) "."
                    }
                }
            }
        }
    }
}

/// Renders a bar per candidate: the rule's count or, where the rule has no numeric score, the number of first
/// preferences.
fn standing(facts: &Facts<'_>, counted: &Counted) -> Markup {
    let firsts = |at| counted.backers_of(at);
    let scores: Option<Vec<f64>> = counted
        .scores
        .iter()
        .map(|s| number(s.as_deref()?))
        .collect();
    let scores =
        scores.filter(|s| s.len() == counted.candidates.len() && s.iter().all(|n| *n >= 0.0));
    let (head, values): (_, Vec<f64>) = match &scores {
        Some(scores) => ("Counted by the rule", scores.clone()),
        None => (
            "Put first by",
            (0..counted.candidates.len())
                .map(|at| firsts(at) as f64)
                .collect(),
        ),
    };
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let shown = |at: usize| match (&scores, counted.scores.get(at)) {
        (Some(_), Some(Some(score))) => plain(score),
        _ => firsts(at).to_string(),
    };
    html! {
        @if !counted.candidates.is_empty() {
            div.wide tabindex="0" { table.standing {
                thead { tr { th { "Candidate" } th { (head) } } }
                tbody { @for (at, (name, value)) in counted.candidates.iter().zip(&values).enumerate() {
                    tr.won[counted.winner == Some(at)] {
                        td dir="auto" {
                            (candidate(facts, name)) @if counted.winner == Some(at) { " " span.tag { "won" } }
                            @if let Some(begins) = beginning(facts, name) { div.faint { (begins) } }
                        }
                        td { (bar(value / most, &shown(at))) }
                    }
                } }
            } }
        }
    }
}

/// Parses the number at the beginning of a score: `3`, `3.3`, `7/2`.
fn number(standing: &str) -> Option<f64> {
    let word = standing.split_whitespace().next()?;
    let number = match word.split_once('/') {
        Some((over, under)) => over.parse::<f64>().ok()? / under.parse::<f64>().ok()?,
        None => word.trim_end_matches('%').parse().ok()?,
    };
    number.is_finite().then_some(number)
}

fn lines(title: &str, lines: &[String]) -> Markup {
    html! {
        @if !lines.is_empty() {
            h3 { (title) }
            ol.lines { @for line in lines { li dir="auto" { (plain(line)) } } }
        }
    }
}

fn stage(facts: &Facts<'_>, stage: &StageReport) -> Markup {
    html! {
        details data-stage=(stage.name) {
            summary { (plain(&stage.heading())) }
            ul { @for seat in &stage.seats {
                li dir="auto" {
                    (facts.name(seat.seat.as_str())) ": "
                    @match seat.state {
                        SeatState::Replied if seat.what.is_empty() => "see its message",
                        SeatState::Replied => (plain(&seat.what)),
                        SeatState::Failed => { span.bad { "failed: " (plain(&seat.what)) } }
                        SeatState::Cut => { "not asked: " (plain(&seat.what)) }
                        SeatState::Asked | SeatState::Waiting => "no reply",
                    }
                    @for review in seat.reviews.iter().filter(|r| !r.weakness.is_empty()) {
                        div.faint { "on " (facts.name(review.seat.as_str())) " (" (review.rating) " of 10): " (plain(&review.weakness)) }
                    }
                }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{cut, first_sentence, number, without_marks, without_parts};

    #[test]
    fn a_decision_is_its_first_sentence_and_no_word_is_cut() {
        let long = "word ".repeat(60);
        for (text, wanted) in [
            ("tabs", Some("tabs")),
            (
                "**Put a queue between them.** The shop goes on.",
                Some("Put a queue between them"),
            ),
            ("# Use v1.2 now! Later more.\nx", Some("Use v1.2 now!")),
            ("---\n\n- `a`", Some("a")),
            ("```\n```", None),
            (
                "```python\nprint(1)\n```\nRun it. Then stop.",
                Some("Run it"),
            ),
            (
                "1. Put a queue between them.\n2. Measure.",
                Some("Put a queue between them"),
            ),
            (
                "Move to St. Gallen. It is cheap.",
                Some("Move to St. Gallen"),
            ),
            ("No. 5 is safer. Take it.", Some("No. 5 is safer")),
            ("", None),
        ] {
            assert_eq!(first_sentence(text).as_deref(), wanted, "{text}");
        }
        let cut = first_sentence(&long).expect("words");
        assert!(
            cut.ends_with("word …") && cut.chars().count() <= 142,
            "{cut}"
        );
    }

    #[test]
    fn an_answer_that_was_chosen_is_shown_whole() {
        for text in ["St. Gallen", "14. Oktober 2025", "Dr. No", "1.5", "3. Wahl"] {
            let line = without_marks(text).expect("words");
            assert_eq!(cut(&line), (text.to_owned(), false));
        }
        assert!(cut(&"word ".repeat(60)).1);
    }

    #[test]
    fn what_members_wrote_stays_whatever_its_title() {
        let own = "**Recommendation.** Move.\n\n**Decided.** by nobody yet.\n\n**Confidence.** Very low: do not sign.\n\n**Dissent.** bob for Bern";
        let whole = format!(
            "> a note\n\n**Decided.** Chur\n\n{own}\n\n**Dissent.** bob for Bern: rent\n\n**Confidence.** 0.67 – 2 of 3 by irv\n\n**Rests on.** ann (#2)"
        );
        let shown = without_parts(&whole, true, Some(2.0 / 3.0), Some("bob"));
        assert_eq!(
            shown,
            format!("> a note\n\n{own}\n\n**Rests on.** ann (#2)")
        );
        let shown = without_parts(own, true, None, None);
        assert_eq!(shown, own);
        assert_eq!(without_parts("", true, Some(1.0), Some("bob")), "");
    }

    #[test]
    fn a_standing_begins_with_its_number() {
        for (standing, wanted) in [
            ("3", Some(3.0)),
            ("3.3 points", Some(3.3)),
            ("7/2", Some(3.5)),
            ("1/0", None),
            ("none", None),
        ] {
            assert_eq!(number(standing), wanted, "{standing}");
        }
    }
}
