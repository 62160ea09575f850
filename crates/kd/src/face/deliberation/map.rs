//! The map as text: claims by members' positions, or answers where no comparison was made.

use crate::render::clean;
use crate::render::style::Styles;
use crate::render::wrap::{clip, width, wrap};
use kd_core::deliberation::fact::same_answers;
use kd_core::deliberation::map::{Map, Rows, Stance, Standing};
use kd_core::deliberation::report::Report;

/// Maximum columns of an answer's name.
const NAME_COLUMNS_MAX: usize = 40;

/// Returns the title of the map.
pub(crate) fn title(map: &Map) -> &'static str {
    match map.of {
        Rows::Claims => "Claims",
        Rows::Answers => "Answers",
    }
}

/// Formats the map; empty if there is nothing to compare.
pub(crate) fn lines(report: &Report, columns_max: usize, styles: Styles) -> Vec<String> {
    let map = report.map();
    if map.is_empty() {
        return Vec::new();
    }
    let mut out = match map.of {
        Rows::Claims => claims(&map, columns_max, styles),
        Rows::Answers => answers(&map, columns_max, styles),
    };
    if !map.groups.is_empty() {
        let groups = same_answers(map.groups.iter().map(Vec::as_slice));
        let by = match map.by.is_empty() {
            true => "nobody".to_owned(),
            false => names(&map.by, " and "),
        };
        let line = format!("{groups}; compared by {by}");
        out.extend(hanging("  ", &line, columns_max));
    }
    let members: Vec<String> = map
        .members
        .iter()
        .enumerate()
        .map(|(at, member)| format!("{} {member}", at + 1))
        .collect();
    let line = format!("  columns: {}", members.join(", "));
    out.push(styles.dim(&clip(&line, columns_max)));
    out
}

/// Formats a text after its head, with a hanging indent.
fn hanging(head: &str, text: &str, columns_max: usize) -> Vec<String> {
    let indent = width(head);
    let lines = wrap(text, columns_max.saturating_sub(indent).max(1));
    let line = |(at, line): (usize, String)| match at {
        0 => format!("{head}{line}"),
        _ => format!("{}{line}", " ".repeat(indent)),
    };
    lines.into_iter().enumerate().map(line).collect()
}

fn names(seats: &[kd_core::SeatName], between: &str) -> String {
    let names: Vec<&str> = seats.iter().map(|seat| seat.as_str()).collect();
    names.join(between)
}

fn mark(stance: Stance, styles: Styles) -> &'static str {
    match stance {
        Stance::Holds => styles.glyph("●", "+"),
        Stance::Opposes => styles.glyph("○", "-"),
        Stance::Silent => styles.glyph("·", "."),
    }
}

fn claims(map: &Map, columns_max: usize, styles: Styles) -> Vec<String> {
    let head = format!(
        "Claims ({} says, {} contradicts, {} silent)",
        mark(Stance::Holds, styles),
        mark(Stance::Opposes, styles),
        mark(Stance::Silent, styles)
    );
    let mut out = vec![styles.bold(&clip(&head, columns_max))];
    for standing in Standing::ALL {
        let mut rows = map
            .claims
            .iter()
            .filter(|row| row.standing == Some(standing))
            .peekable();
        if rows.peek().is_some() {
            out.push(format!("  {}", standing.words()));
        }
        for row in rows {
            let marks: Vec<&str> = row.stances.iter().map(|(_, s)| mark(*s, styles)).collect();
            let marks = marks.join(" ");
            let text = clean::line(&row.claim);
            out.extend(hanging(&format!("    {marks}  "), &text, columns_max));
        }
    }
    if !map.missing.is_empty() {
        out.push("  not covered".to_owned());
    }
    for line in &map.missing {
        out.extend(hanging("    ", &clean::line(line), columns_max));
    }
    out
}

fn answers(map: &Map, columns_max: usize, styles: Styles) -> Vec<String> {
    let widths = map.claims.iter().map(|row| width(&row.claim));
    let longest = widths.max().unwrap_or(0).min(NAME_COLUMNS_MAX);
    let mut out = vec![styles.bold(&format!(
        "Answers ({} holds, {} opposes, {} silent)",
        mark(Stance::Holds, styles),
        mark(Stance::Opposes, styles),
        mark(Stance::Silent, styles)
    ))];
    for row in &map.claims {
        let text = clip(&clean::line(&row.claim), longest);
        let pad = " ".repeat(longest.saturating_sub(width(&text)));
        let marks: Vec<&str> = row.stances.iter().map(|(_, s)| mark(*s, styles)).collect();
        let line = format!("  {text}{pad}  {}", marks.join(" "));
        out.push(clip(&line, columns_max));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::Event;
    use kd_core::SeatName;
    use kd_core::deliberation::Fact;
    use kd_core::deliberation::fact::{Claimed, Group, Grouping};
    use kd_core::view::View;

    fn seats(names: &[&str]) -> Vec<SeatName> {
        names
            .iter()
            .map(|name| SeatName::new(*name).unwrap())
            .collect()
    }

    /// Creates a report of three members: a claim of each class, one of them long, and a hostile one.
    fn report() -> Report {
        let row = |claim: &str, says: &[&str], denies: &[&str]| Claimed {
            claim: claim.into(),
            says: seats(says),
            denies: seats(denies),
        };
        let grouped = Fact::Grouped(Grouping {
            pass: 1,
            by: seats(&["eve", "ann"]),
            groups: vec![
                Group {
                    name: "the answer of ann".into(),
                    seats: seats(&["ann", "cyd"]),
                },
                Group {
                    name: "the answer of bob".into(),
                    seats: seats(&["bob"]),
                },
            ],
            claims: vec![
                row("It is simpler.", &["bob"], &[]),
                row("A queue is needed.", &["ann", "cyd"], &["bob"]),
                row(&"many words ".repeat(14), &["ann", "cyd"], &[]),
                row("Calls may fail.", &["ann", "bob", "cyd"], &[]),
                row("\u{1b}]0;x\u{7}\u{202e}evil", &["cyd"], &[]),
            ],
            missing: vec!["How to roll back".into()],
            notices: Vec::new(),
        });
        let mut view = View::default();
        view.fold(&Event::Deliberated {
            fact: Box::new(grouped),
        });
        view.report
    }

    #[test]
    fn claims_fit_the_terminal_and_lose_no_word() {
        for columns in [40, 80, 200] {
            let shown = lines(&report(), columns, Styles::NONE);
            assert!(shown.iter().all(|l| width(l) <= columns), "{shown:#?}");
            let text = shown.join(" ");
            assert_eq!(text.matches("many").count(), 14, "{shown:#?}");
            assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
        }
        let shown = lines(&report(), 80, Styles::NONE);
        let heads: Vec<&String> = shown
            .iter()
            .filter(|line| Standing::ALL.iter().any(|s| line.trim() == s.words()))
            .collect();
        assert_eq!(
            heads,
            ["  consensus", "  contradiction", "  several", "  only one"]
        );
        assert!(
            shown.contains(&"    ● ● ○  A queue is needed.".to_owned()),
            "{shown:#?}"
        );
        assert!(shown.contains(&"  not covered".to_owned()));
        assert!(
            shown.contains(&"  same answers: ann = cyd, bob; compared by eve and ann".to_owned())
        );
    }

    #[test]
    fn answers_that_all_differ_are_not_listed_as_the_same() {
        let mut report = report();
        for (group, seat) in report.groupings[0].groups.iter_mut().zip(["ann", "bob"]) {
            group.seats = seats(&[seat]);
        }
        let wanted = "  no two answers are the same; compared by eve and ann".to_owned();
        assert!(lines(&report, 80, Styles::NONE).contains(&wanted));
    }

    #[test]
    fn the_map_tells_claims_from_answers() {
        let claims = report();
        assert_eq!(title(&claims.map()), "Claims");
        assert!(lines(&claims, 80, Styles::NONE)[0].starts_with("Claims"));
        assert_eq!(title(&Report::default().map()), "Answers");
        assert!(lines(&Report::default(), 80, Styles::NONE).is_empty());
    }
}
