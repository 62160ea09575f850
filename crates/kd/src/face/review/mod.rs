//! Review reports in every format. Input: a [`Kept`] report. Output: text. Members' text is data in each of them: it
//! never becomes an escape sequence, link, mention, image or markup.

mod forges;
mod markdown;
mod sarif;
mod terminal;

pub(crate) use terminal::{hung, terminal};

use crate::args::review::Format;
use crate::error::Error;
use crate::face::json;
use kd_app::review::report::Kept;
use kd_core::review::{Chance, Reported, Severity, Source, Vote, percent};

/// Renders a report for a file or a program; `all` includes what only one member found.
pub(crate) fn document(kept: &Kept, format: Format, all: bool) -> Result<String, Error> {
    let value = match format {
        Format::Terminal | Format::Markdown => return Ok(markdown::document(kept, all)),
        Format::Sarif => sarif::log(kept, all),
        Format::Json => return Ok(json::text(kept, true)? + "\n"),
        Format::JsonlEvents => return Ok(json::text(kept, false)? + "\n"),
        Format::Github => forges::github(kept, all),
        Format::Gitlab => forges::gitlab(kept, all),
    };
    Ok(json::text(&value, true)? + "\n")
}

/// Formats the probability that a finding is real, with its interval: `54 % (40–67 %)`.
pub(crate) fn chance(chance: &Chance) -> String {
    format!(
        "{} % ({}–{} %)",
        chance.percent(),
        percent(chance.low),
        percent(chance.high)
    )
}

/// Describes where the figure comes from.
pub(crate) fn source(chance: &Chance) -> String {
    match chance.source {
        Source::Published { agreeing, of } => {
            format!("published table, found by {agreeing} of {of}")
        }
        Source::Marks { marks } => match marks {
            1 => "published table and 1 mark".to_owned(),
            marks => format!("published table and {marks} marks"),
        },
    }
}

/// The note on figures of the published table.
const LIMITS: &str = "P(real) comes from recorded reviews of other projects, as a lower bound; your marks correct it \
                      (kd help review)";

/// Returns the limits of the figures shown, if any is from the published table.
fn limits<'r>(shown: impl IntoIterator<Item = &'r Reported>) -> Option<&'static str> {
    let published = |finding: &Reported| matches!(finding.chance.source, Source::Published { .. });
    shown.into_iter().any(published).then_some(LIMITS)
}

/// Formats the other members' votes: `bob real, cyd cannot tell`.
fn votes(finding: &Reported) -> String {
    let votes = finding.votes.iter();
    let words: Vec<String> = votes
        .map(|(name, vote)| format!("{name} {}", Vote::word(*vote)))
        .collect();
    words.join(", ")
}

/// Formats the names of the members whose vote is missing.
fn unvoted(finding: &Reported) -> Option<String> {
    let names = &finding.missing_votes;
    (!names.is_empty()).then(|| names.join(", "))
}

/// Says that members of one model count once.
fn alike(finding: &Reported) -> Option<String> {
    let models = finding.independent?;
    let found = finding.agreeing();
    Some(match models {
        1 => format!("its {found} finders are of one model or vendor, and count once"),
        models => {
            format!("its {found} finders are of {models} models or vendors, and count as {models}")
        }
    })
}

/// What is said of a finding that the user has dismissed.
const DISMISSED: &str = "marked by you";

/// What is said of a finding that nobody has confirmed, and that not everybody could confirm.
const UNCONFIRMED: &str = "only one member found it, and votes on it are missing";

/// Formats the severities that the members named, if they differ: `blocker cyd · nit ann, bob`.
fn severities(finding: &Reported) -> Option<String> {
    let named = finding.cluster.severities();
    let groups = Severity::ALL.iter().filter_map(|severity| {
        let of = named.iter().filter(|(_, one)| one == severity);
        let names: Vec<&str> = of.map(|(name, _)| *name).collect();
        (!names.is_empty()).then(|| format!("{} {}", severity.word(), names.join(", ")))
    });
    let groups: Vec<String> = groups.collect();
    (groups.len() > 1).then(|| groups.join(" · "))
}

/// Formats the place of a finding: `src/a.rs:3-5`.
fn place(finding: &kd_core::review::Finding) -> String {
    let lines = finding.lines;
    match lines.first == lines.last {
        true => format!("{}:{}", finding.file, lines.first),
        false => format!("{}:{}-{}", finding.file, lines.first, lines.last),
    }
}

#[cfg(test)]
mod tests;
