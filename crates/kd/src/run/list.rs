//! `kd list`: lists the threads of this branch. The JSON has the same keys as kingdom-cli's.

use super::here::Here;
use crate::args::council::List;
use crate::error::Error;
use crate::face::json;
use crate::render::clean;
use crate::render::wrap::{clip, width};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kd_app::threads::{Lineage, Listed, Origin, list};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::Write;

/// A row of the JSON.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    created_at: Option<Timestamp>,
    message_count: usize,
    topic: &'a str,
    current: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
    members: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fork: Option<&'a Lineage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<&'a Origin>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    private: bool,
}

impl<'a> Row<'a> {
    fn of(listed: &'a Listed, with_branch: bool) -> Self {
        let members = listed.states.iter();
        Self {
            id: &listed.id.0,
            created_at: listed.created_at,
            message_count: listed.message_count,
            topic: &listed.topic,
            current: listed.is_current,
            branch: with_branch.then_some(&listed.branch),
            members: members
                .map(|(seat, state)| (seat.to_string(), state.word().into()))
                .collect(),
            fork: listed.fork.as_ref(),
            imported: listed.imported.as_ref(),
            private: listed.is_private,
        }
    }
}

pub(super) fn run(args: &List, here: &Here) -> Result<(), Error> {
    let rows = match here.find_layout()? {
        Some(layout) => {
            let places = match &args.batch {
                Some(batch) => kd_app::batch::threads(&layout, batch, here)?,
                None if args.all => layout.all_threads(true)?,
                None => layout.threads()?,
            };
            list(&layout, &places, here)?
        }
        None => Vec::new(),
    };
    let usual = if args.json { usize::MAX } else { LIMIT };
    let limit = args.limit.map_or(usual, |limit| limit as usize);
    let (older, rows) = rows.split_at(older(&rows, limit));
    let mut out = crate::out::stdout().lock();
    if args.json {
        let rows = rows.iter().map(|row| Row::of(row, args.all));
        let rows: Vec<Row<'_>> = rows.collect();
        writeln!(out, "{}", json::text(&rows, true)?)?;
    } else if rows.is_empty() {
        writeln!(
            crate::out::stderr(),
            "no threads here yet: `kd ask \"…\"` starts the first"
        )?;
    } else {
        if !older.is_empty() {
            let count = kd_app::words::count(older.len() as u64, "older thread");
            let all = older.len() + rows.len();
            writeln!(
                crate::out::stderr(),
                "{count} left out: kd list --limit {all}"
            )?;
        }
        out.write_all(page(rows, args.all, here).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Threads that are listed for people unless they ask for more.
const LIMIT: usize = 20;

/// Returns the number of threads to leave out at the beginning. Forks stay with their source.
fn older(rows: &[Listed], limit: usize) -> usize {
    let from = rows.len().saturating_sub(limit);
    let mut roots = rows.iter().take(from + 1);
    roots.rposition(|row| row.depth == 0).unwrap_or(0)
}

fn page(rows: &[Listed], with_branch: bool, here: &Here) -> String {
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
        if with_branch {
            facts.push(row.branch.clone());
        }
        if row.is_current {
            facts.push("current".into());
        }
        if row.is_private {
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
            room.saturating_sub(row.id.0.len() + 2),
        );
        text.push_str(&format!(
            "{mark}{}  {}\n",
            styles.bold(&clean::line(&row.id.0)),
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
        "⊘ interrupted",
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
