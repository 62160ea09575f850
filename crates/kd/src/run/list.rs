//! `kd council list`: lists the threads of this branch. The JSON has the same keys as kingdom-cli's.

use super::here::Here;
use crate::args::council::List;
use crate::error::Error;
use crate::face::json;
use crate::render::clean;
use crate::render::wrap::{clip, width};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kd_app::threads::LeftOut;
use kd_core::{SeatName, ThreadId};
use kd_store::fork::{self, Lineage};
use kd_store::seal::Origin;
use kd_store::{Layout, Place, Thread};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::Write;

/// Maximum characters of a topic: the beginning of the first question.
const TOPIC_CHARS: usize = 60;

#[derive(Serialize)]
struct Row {
    id: String,
    created_at: Option<Timestamp>,
    message_count: usize,
    topic: String,
    current: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    members: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fork: Option<Lineage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<Origin>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    private: bool,
    /// Number of listed forks above it.
    #[serde(skip)]
    depth: usize,
    #[serde(skip)]
    states: Vec<(SeatName, kd_app::threads::State)>,
}

/// Returns the threads of a batch of this project, or of those that a batch of a database has brought here.
fn of_batch(layout: &Layout, batch: &str, here: &Here) -> Result<Vec<Place>, Error> {
    let error = match kd_app::batch::find(kd_app::batch::of(here)?.as_ref(), Some(batch)) {
        Ok(found) => return Ok(layout.in_batch(&found.about.id).threads()?),
        Err(error) => error,
    };
    let mut places = layout.batch_threads()?;
    let whole = format!("batch-{batch}");
    places.retain(|place| place.branch.starts_with(batch) || place.branch.starts_with(&whole));
    let first = places.first().map(|place| place.branch.clone());
    let is_one = first.is_some_and(|first| places.iter().all(|place| place.branch == first));
    match is_one && !batch.is_empty() {
        true => Ok(places),
        false => Err(error.into()),
    }
}

pub(super) fn run(args: &List, here: &Here) -> Result<(), Error> {
    let mut rows = Vec::new();
    let mut left_out = LeftOut::default();
    if let Some(layout) = here.find_layout()? {
        let current = layout.current_thread()?.map(|p| p.id);
        let places = if let Some(batch) = &args.batch {
            of_batch(&layout, batch, here)?
        } else if args.all {
            layout.all_threads(true)?
        } else {
            layout.threads()?
        };
        for place in places {
            let Some(open) = left_out.open(&place)? else {
                continue;
            };
            if open.meta().is_council() {
                rows.push(row(
                    &place,
                    &open,
                    current.as_ref() == Some(&place.id),
                    args.all,
                )?);
            }
        }
    }
    left_out.tell(here);
    rows.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    let rows = as_tree(rows);
    let mut out = crate::out::stdout().lock();
    if args.json {
        writeln!(out, "{}", json::text(&rows, true)?)?;
    } else if rows.is_empty() {
        writeln!(
            crate::out::stderr(),
            "no threads here yet: `kd ask \"…\"` starts the first"
        )?;
    } else {
        out.write_all(page(&rows, here).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Sorts forks below the threads they came from.
fn as_tree(rows: Vec<Row>) -> Vec<Row> {
    let threads: Vec<_> = rows
        .iter()
        .map(|row| (ThreadId(row.id.clone()), row.fork.clone()))
        .collect();
    let mut rows: Vec<Option<Row>> = rows.into_iter().map(Some).collect();
    fork::tree(&threads)
        .into_iter()
        .filter_map(|(depth, at)| {
            Some(Row {
                depth,
                ..rows[at].take()?
            })
        })
        .collect()
}

fn row(place: &Place, open: &Thread, current: bool, branch: bool) -> Result<Row, Error> {
    let first = open.head(1)?;
    let newest = kd_app::threads::newest(open, 1)?;
    let states = match kd_app::threads::turns(&newest.messages).last() {
        Some(turn) => kd_app::threads::states_now(open, turn)?,
        None => Vec::new(),
    };
    let topic = first
        .messages
        .first()
        .map(|m| m.body.as_str())
        .unwrap_or_default();
    let topic = clean::line(
        topic
            .lines()
            .find(|l| !l.trim().is_empty())
            .unwrap_or_default(),
    );
    Ok(Row {
        id: place.id.0.clone(),
        created_at: open
            .meta()
            .created()
            .or_else(|| first.messages.first().map(|m| m.at)),
        message_count: open.count_readable()?,
        topic: topic.chars().take(TOPIC_CHARS).collect(),
        current,
        branch: branch.then(|| place.branch.clone()),
        members: states
            .iter()
            .map(|(seat, state)| (seat.to_string(), state.word().into()))
            .collect(),
        fork: open.meta().lineage(),
        imported: open.meta().origin(),
        private: open.meta().is_private(),
        depth: 0,
        states,
    })
}

fn page(rows: &[Row], here: &Here) -> String {
    let styles = here.out_styles();
    let columns = here.columns().min(100);
    let zone = TimeZone::system();
    let dot = styles.glyph(" · ", " - ");
    let mut text = String::new();
    for row in rows {
        let created = row
            .created_at
            .map(|at| {
                at.to_zoned(zone.clone())
                    .strftime("%Y-%m-%d %H:%M")
                    .to_string()
            })
            .unwrap_or_default();
        let mut facts = vec![
            created,
            kd_app::words::count(row.message_count as u64, "message"),
        ];
        facts.extend(row.branch.clone());
        if row.current {
            facts.push("current".into());
        }
        if row.private {
            facts.push("private".into());
        }
        // A deep tree keeps half of the width for text.
        let shift = (2 * row.depth).min(columns / 2);
        let mark = match row.depth {
            0 => String::new(),
            _ => format!(
                "{}{}",
                " ".repeat(shift.saturating_sub(2)),
                styles.glyph("└ ", "+ ")
            ),
        };
        let room = columns.saturating_sub(shift);
        let indent = " ".repeat(shift + 2);
        let facts = clip(
            &clean::line(&facts.join(dot)),
            room.saturating_sub(row.id.len() + 2),
        );
        text.push_str(&format!(
            "{mark}{}  {}\n",
            styles.bold(&clean::line(&row.id)),
            styles.dim(&facts)
        ));
        let fork = row.fork.as_ref().map(|fork| forked(fork, row.depth));
        let imported = row.imported.as_ref().map(super::seal::origin);
        for origin in fork.into_iter().chain(imported) {
            let origin = clip(&clean::line(&origin), room.saturating_sub(3));
            text.push_str(&format!("{indent}{}\n", styles.dim(&origin)));
        }
        text.push_str(&format!(
            "{indent}{}\n",
            clip(&row.topic, room.saturating_sub(3))
        ));
        let states = row.states.iter();
        let states = states.map(|(seat, state)| format!("{} {seat}", state.mark(styles.unicode)));
        for line in filled(states, room.saturating_sub(3)) {
            text.push_str(&format!("{indent}{line}\n"));
        }
        text.push('\n');
    }
    let legend = [
        "✓ answered",
        "○ answering",
        "✗ failed",
        "⧖ out of time",
        "… open",
    ];
    if styles.unicode {
        for line in filled(legend.map(str::to_owned), columns.saturating_sub(1)) {
            text.push_str(&format!("{}\n", styles.dim(&line)));
        }
    }
    text
}

/// Fills lines of at most `columns` with items, none of which is split.
fn filled(items: impl IntoIterator<Item = String>, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if width(line) + 2 + width(&item) <= columns => {
                line.push_str("  ");
                line.push_str(&item);
            }
            _ => lines.push(clip(&item, columns)),
        }
    }
    lines
}

/// Describes where a fork left its source; names the source if that is not listed.
fn forked(fork: &Lineage, depth: usize) -> String {
    match depth {
        0 => format!("fork of {}", super::fork::origin(fork)),
        _ => format!("fork {}", fork.words()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stays_with_its_name() {
        let names = ["✓ opinion-giver", "✓ skeptic", "… cyd-fact-checker"];
        for columns in 1..60 {
            let lines = filled(names.map(str::to_owned), columns);
            assert!(lines.iter().all(|line| width(line) <= columns), "{lines:?}");
            if columns >= 18 {
                let items: Vec<&str> = lines.iter().flat_map(|line| line.split("  ")).collect();
                assert_eq!(items, names, "{columns}");
            }
        }
    }
}
