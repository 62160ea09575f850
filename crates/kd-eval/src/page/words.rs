//! The text of the page.

use super::{Gain, Measured, Row, Study};
use crate::replay::Public;

/// The title of the page.
pub const TITLE: &str = "Do councils beat their best member?";

/// A part of the page. In [`Block::Text`] and [`Block::List`] parts between backquotes are code.
pub(super) enum Block {
    Title(String),
    Head(String),
    Text(String),
    List(Vec<String>),
    /// The head, and the rows.
    Table(Vec<String>, Vec<Vec<String>>),
    Code(String),
}

/// Returns the page.
#[expect(clippy::too_many_lines, reason = "the page, one block after the other")]
pub(super) fn blocks(study: &Study) -> Vec<Block> {
    let draw = study.draw;
    let mut out = vec![
        Block::Title(TITLE.into()),
        Block::Text(format!(
            "{} random councils of {} models from each of {}, compared with single models on the same questions. \
             The models' answers were recorded before; no model was asked for this page.",
            draw.councils,
            draw.size,
            match study.sets.len() {
                1 => "1 set".to_owned(),
                n => format!("{n} sets"),
            }
        )),
        Block::Head("Result".into()),
        Block::List(study.sets.iter().map(sentence).collect()),
        Block::Head("Beside the best member".into()),
        Block::Text(
            "The best member of a council is known only afterwards: it is the one with the most right answers on the \
             questions that are compared. No user could have picked it with certainty, so this comparison favors the \
             single model."
                .into(),
        ),
        table(study, |set| set.best, |row| row.over_best),
        Block::Head("Beside the member that a user would pick".into()),
        Block::Text(
            "This member had the most right answers on one half of the questions, and is compared on the other half, as \
             the weights of `weighted` and `auto` are."
                .into(),
        ),
        table(study, |set| set.picked, |row| row.over_picked),
        Block::Head("Method".into()),
    ];
    out.push(Block::List(method(study)));
    out.push(Block::Head("Data".into()));
    let head = [
        "set",
        "questions",
        "models",
        "source",
        "license",
        "models of",
        "SHA-256 of the file",
    ];
    out.push(Block::Table(
        cells(head),
        study.sets.iter().map(source).collect(),
    ));
    out.push(Block::Head("Limits".into()));
    out.push(Block::List(cells([
        "The models are from 2023 and 2024. Newer models may differ, and their errors may correlate more.",
        "Each model answered each question once. A council costs as many requests as members asked; the single member \
         costs one. Whether several samples of the best member would gain as much is not measured here.",
        "Councils of one set share models and questions, so they are not independent. The intervals hold for these councils \
         and for questions like these, not for all councils.",
        "Random councils are often unequal. A user who chooses members of similar strength gains more than the mean shows.",
        "Weights are learned on the other half of the same set, as by a user who marked hundreds of similar questions. With \
         fewer marks they are worse.",
        "Questions with one right answer, in English. Nothing follows for open questions.",
    ])));
    let files = study
        .sets
        .iter()
        .map(|set| Public::find(&set.sha256).map_or("FILE", |public| public.file));
    out.push(Block::Head("Reproduce".into()));
    out.push(Block::Code(format!(
        "$ kd eval --replay {} --page {} --seed {} --format md",
        files.collect::<Vec<_>>().join(" "),
        draw.councils,
        draw.seed
    )));
    out.push(Block::Text(
        "`--format html` prints this page as HTML; `--format eee` writes the results in the form of Every Eval Ever.".into(),
    ));
    out
}

fn cells<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

/// Returns the conclusion on a set, for the last row: what `kd` would decide.
fn sentence(set: &Measured) -> String {
    let Some(row) = set.rows.last() else {
        return String::new();
    };
    let beside = |gain: &Gain| format!("{} ({})", gain.word(), points(gain));
    format!(
        "{}: councils that decide by `{}`, beside their best member: {}; beside the member that a user would pick: {}.",
        set.name,
        row.way,
        beside(&row.over_best),
        beside(&row.over_picked)
    )
}

fn points(gain: &Gain) -> String {
    format!(
        "{:+.2} points, 95 % interval {:+.2} to {:+.2}",
        gain.mean * 100.0,
        gain.interval.low * 100.0,
        gain.interval.high * 100.0
    )
}

fn table(study: &Study, single: impl Fn(&Measured) -> f64, gain: impl Fn(&Row) -> Gain) -> Block {
    let head = [
        "set",
        "decided by",
        "right, %",
        "single member, %",
        "gain, points",
        "95 % interval",
        "conclusion",
        "councils better, not shown, worse",
        "members asked",
    ];
    let mut rows = Vec::new();
    for set in &study.sets {
        for row in &set.rows {
            let gain = gain(row);
            rows.push(vec![
                set.name.clone(),
                row.way.to_owned(),
                format!("{:.2}", row.right * 100.0),
                format!("{:.2}", single(set) * 100.0),
                format!("{:+.2}", gain.mean * 100.0),
                format!(
                    "{:+.2} to {:+.2}",
                    gain.interval.low * 100.0,
                    gain.interval.high * 100.0
                ),
                gain.word().to_owned(),
                format!("{}, {}, {}", gain.better, gain.not_shown, gain.worse),
                format!("{:.2}", row.asked),
            ]);
        }
    }
    Block::Table(cells(head), rows)
}

fn method(study: &Study) -> Vec<String> {
    vec![
        format!(
            "Councils are drawn at random by seed {}, without regard to strength. A question counts if all members of the \
             council were asked.",
            study.draw.seed
        ),
        "`plurality`: the most common answer; a tie counts as its share of right answers. `weighted`: votes weigh the odds \
         p / (1 − p) of their voters, from their share p of right answers on the other half. `auto`: what \
         `kd deliberate --protocol auto` decides for a user who has marked the other half."
            .into(),
        "Halves are drawn at random; each half is decided with what the other half teaches. No rule sees the right answers \
         of the questions that it decides."
            .into(),
        "A missing or unreadable answer abstains in a vote and counts as wrong for a single member.".into(),
        "Intervals: 10,000 bootstrap samples of the questions; the value of a question is its mean difference over the \
         councils, which all have the same weight. “Better” and “worse” are printed only if the interval does not contain 0."
            .into(),
        format!(
            "Single councils: McNemar's exact test, or a sign-flip test where ties give fractions; corrected for {} \
             councils by Holm's method, at a level of 5 %.",
            study.draw.councils
        ),
    ]
}

fn source(set: &Measured) -> Vec<String> {
    let public = Public::find(&set.sha256);
    let of = |field: fn(&Public) -> &'static str| public.map_or("unknown", field).to_owned();
    vec![
        set.name.clone(),
        set.questions.to_string(),
        set.models.to_string(),
        of(|public| public.source),
        of(|public| public.license),
        of(|public| public.years),
        set.sha256.clone(),
    ]
}
