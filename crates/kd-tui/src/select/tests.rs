use super::*;
use crate::text::wrap::{Span, wrap_spans};

/// A card from column 4 and row 10 on, of which the lines 2 to 6 are visible.
fn areas() -> Vec<Area> {
    vec![
        Area {
            item: 1,
            x: 4,
            width: 20,
            y: 10,
            lines: 2..7,
        },
        Area {
            item: 2,
            x: 4,
            width: 20,
            y: 15,
            lines: 0..3,
        },
    ]
}

/// The selected text from one cell to another.
fn selected(from: (u16, u16), to: (u16, u16), lines: &[Line]) -> Option<String> {
    let mut selection = Selection::begin(&areas(), from)?;
    selection.follow(&areas(), to);
    selection.text(|at| lines.get(at).map(|line| (2, line)))
}

fn words(text: &str) -> Line {
    vec![Span::plain(text)]
}

#[test]
fn a_selection_stays_in_its_card() {
    let lines: Vec<Line> = (0..9).map(|n| words(&format!("line {n}"))).collect();
    assert_eq!(Selection::begin(&areas(), (3, 10)), None, "left of it");
    assert_eq!(Selection::begin(&areas(), (4, 9)), None, "above it");
    // Columns 2 of the card, where the text begins, to 8.
    assert_eq!(
        selected((6, 10), (11, 10), &lines).as_deref(),
        Some("line 2")
    );
    assert_eq!(
        selected((11, 11), (6, 11), &lines).as_deref(),
        Some("line 3")
    );
    let two = selected((11, 10), (7, 11), &lines);
    assert_eq!(two.as_deref(), Some("2\nli"));
    // The other card and the screen around are nothing of it.
    let rest = "line 4\nline 5\nline 6";
    assert_eq!(selected((4, 12), (79, 40), &lines).as_deref(), Some(rest));
    assert_eq!(selected((4, 17), (4, 17), &lines), None, "a click");
    assert_eq!(selected((4, 11), (5, 11), &lines), None, "the border");
}

#[test]
fn wrapped_paragraphs_become_whole_again_and_code_keeps_its_indent() {
    let mut lines = vec![Line::new(), Line::new()];
    lines.extend(wrap_spans(&words("see /a/long/path and more"), 9));
    lines.push(words("  let x;"));
    let shown: Vec<String> = lines.iter().map(|l| cut(l, &(0..99))).collect();
    assert_eq!(
        shown[2..],
        ["see", "/a/long/p", "ath and", "more", "  let x;"]
    );
    assert_eq!(
        selected((4, 10), (23, 14), &lines).as_deref(),
        Some("see /a/long/path and more\n  let x;")
    );
    assert_eq!(
        selected((4, 14), (23, 14), &lines).as_deref(),
        Some("  let x;")
    );
}

#[test]
fn a_wide_character_counts_where_it_begins() {
    let lines = vec![words("日本語 text"); 9];
    assert_eq!(selected((6, 10), (8, 10), &lines).as_deref(), Some("日本"));
    assert_eq!(selected((7, 10), (12, 10), &lines).as_deref(), Some("本語"));
}

#[test]
fn a_broken_line_of_code_keeps_its_spaces_and_loses_its_display_columns() {
    use crate::text::markdown;
    use crate::text::style::Styles;
    let styles = Styles {
        color: true,
        unicode: true,
    };
    // Room for 16 columns of code: the first line ends with the space.
    let code = "```sh\ncp aaaaaaaaaaaa /dest/dir --flag\n  next\n```";
    let mut lines = vec![Line::new(), Line::new()];
    lines.extend(markdown::lines(code, 20, styles));
    assert_eq!(cut(&lines[3], &(0..99)), "    cp aaaaaaaaaaaa ");
    for from in [4, 6, 10] {
        assert_eq!(
            selected((from, 11), (23, 14), &lines).as_deref(),
            Some("cp aaaaaaaaaaaa /dest/dir --flag\n  next"),
            "from column {from}"
        );
    }
}
