//! Options marked in a table or a list: the one row or line with a tick, a medal or a verdict. Input: a reply and the
//! options. Output: the marked option, if exactly one is.

use super::answer_labels::{Taken, is_label};
use super::clauses::begins;
use super::cues;
use super::options::Options;

/// Marks of the chosen option.
const TICKS: [&str; 10] = ["✔", "✅", "✓", "☑", "🏆", "👑", "🥇", "⭐", "[x]", "(x)"];

/// Words of a verdict that are alone in a table cell.
const VERDICTS: &[&str] = &[
    "recommended",
    "recommend",
    "chosen",
    "selected",
    "winner",
    "my pick",
    "my choice",
    "my vote",
    "pick this",
    "choose this",
    "empfohlen",
    "empfehlung",
    "gewählt",
    "ausgewählt",
    "sieger",
    "meine wahl",
    "recommandé*",
    "choisi*",
    "retenu*",
    "gagnant*",
    "mon choix",
    "recomendad*",
    "elegid*",
    "ganador*",
    "mi elección",
    "推荐",
    "首选",
    "胜出",
    "选中",
    "我的选择",
];

/// Words that negate a mark or a verdict.
const NOT: &[&str] = &[
    "not",
    "never",
    "reject*",
    "deprecated",
    "exclude*",
    "risk*",
    "problem*",
    "nicht",
    "kein*",
    "ausgeschlossen",
    "risiko",
    "pas",
    "non",
    "exclu*",
    "écart*",
    "risque*",
    "no",
    "descartad*",
    "riesgo*",
    "excluid*",
    "不",
    "排除",
    "风险",
    "淘汰",
];

/// Titles of a verdict column.
const TITLES: &[&str] = &[
    "verdict",
    "recommend*",
    "decision",
    "choice",
    "chosen",
    "choose",
    "pick",
    "vote",
    "selected",
    "selection",
    "winner",
    "best",
    "answer",
    "final",
    "urteil",
    "empfehl*",
    "entscheidung",
    "wahl",
    "gewählt",
    "stimme",
    "sieger",
    "antwort",
    "choix",
    "décision",
    "recommand*",
    "gagnant",
    "réponse",
    "retenu",
    "veredicto",
    "recomend*",
    "decisión",
    "elección",
    "voto",
    "ganador",
    "respuesta",
    "结论",
    "推荐",
    "选择",
    "投票",
    "最终",
    "答案",
];

/// Returns the option marked in a table or a list.
pub(super) fn marked(text: &str, options: &Options) -> Taken<usize> {
    if options.is_yes_no() {
        return Taken::None;
    }
    if let Some(item) = in_bold_row(text, options) {
        return Taken::One(item);
    }
    let rows: Vec<Vec<String>> = text.lines().filter_map(cells).collect();
    let found = match rows.len() >= 2 {
        true => in_rows(&rows, options),
        false => in_lines(text, options),
    };
    match found.as_slice() {
        [] => Taken::None,
        [one] => Taken::One(*one),
        _ => Taken::Several,
    }
}

/// Returns the cells of a table row, without emphasis marks.
pub(super) fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?;
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let clean = |cell: &str| {
        let plain = cell.replace("**", "");
        plain.trim().trim_matches(['*', '_', '`']).trim().to_owned()
    };
    let cells: Vec<String> = inner.split('|').map(clean).collect();
    (cells.len() >= 2).then_some(cells)
}

/// Returns the option at the end of the only table row that is in bold as a whole: `| **Priority** | **P2** |`.
fn in_bold_row(text: &str, options: &Options) -> Option<usize> {
    let is_bold = |cell: &str| cell.len() > 4 && cell.starts_with("**") && cell.ends_with("**");
    let bold = |line: &&str| {
        let inner = line.trim().trim_matches('|');
        let mut cells = inner.split('|').map(str::trim);
        inner.contains('|') && cells.all(is_bold)
    };
    // The first row holds the titles.
    let rows = text.lines().filter(|line| line.trim().starts_with('|'));
    let mut found = rows.skip(1).filter(bold);
    let row = found.next().filter(|_| found.next().is_none())?;
    options.stated(cells(row)?.last()?)
}

/// Returns the options whose row is marked.
fn in_rows(rows: &[Vec<String>], options: &Options) -> Vec<usize> {
    let titles = &rows[0];
    let mut named = 0;
    let mut found = Vec::new();
    for row in &rows[1..] {
        let mut items: Vec<usize> = options.mentions(&row[0]).iter().map(|m| m.item).collect();
        items.dedup();
        let own = options.stated(&row[0]).or(match items.as_slice() {
            [one] => Some(*one),
            _ => None,
        });
        let Some(item) = own else { continue };
        named += 1;
        let cells = row.iter().enumerate().skip(1);
        let is_taken = cells.into_iter().any(|(at, cell)| {
            let title = titles.get(at).map_or("", String::as_str).to_lowercase();
            let lower = cell.to_lowercase();
            let judges = (title.is_empty() || cues::has(&title, TITLES)) && !cues::has(&title, NOT);
            let ticked = has_tick(&lower) && judges;
            let said = cues::has(&lower, VERDICTS) && lower.split_whitespace().count() <= 4;
            (ticked || said) && !cues::has(&lower, NOT)
        });
        if is_taken && !found.contains(&item) {
            found.push(item);
        }
    }
    if named < 2 {
        found.clear();
    }
    found
}

/// Returns the options whose line is marked, if every line is an option or introduces them.
fn in_lines(text: &str, options: &Options) -> Vec<usize> {
    let mut found = Vec::new();
    let mut others = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let lower = line.trim().to_lowercase();
        let mut items: Vec<usize> = options.mentions(line).iter().map(|m| m.item).collect();
        items.dedup();
        match items.as_slice() {
            [one] if is_ticked(&lower) => found.push(*one),
            [_] if line.split_whitespace().count() <= 8 => others += 1,
            [] if !is_ticked(&lower) => {}
            _ => return Vec::new(),
        }
    }
    if others == 0 {
        found.clear();
    }
    found.dedup();
    found
}

fn has_tick(lower: &str) -> bool {
    TICKS.iter().any(|tick| lower.contains(tick))
}

/// Returns whether a line begins or ends with a tick, or ends with `yes` after the option.
fn is_ticked(lower: &str) -> bool {
    const YES: [&str; 8] = ["yes", "ja", "oui", "sí", "si", "是", "选", "对"];
    let bare = lower.trim_start_matches(['-', '*', '•', ' ']);
    let edge =
        |tick: &str| bare.starts_with(tick) || bare.trim_end_matches('\u{fe0f}').ends_with(tick);
    let last = bare
        .rsplit([':', '：', '–', '—', '-', '→'])
        .next()
        .filter(|tail| tail.len() < bare.len())
        .map(|tail| tail.trim_matches([' ', '.', '*', '!']));
    TICKS.iter().any(|tick| edge(tick)) || last.is_some_and(|tail| YES.contains(&tail))
}

/// Returns the statement of a table row whose first cell is a label: `| Final answer | rwlock |`.
pub(super) fn labelled_row(line: &str) -> Option<String> {
    let cells = cells(line)?;
    let said: Vec<&String> = cells[1..].iter().filter(|cell| !cell.is_empty()).collect();
    let [one] = said.as_slice() else { return None };
    let title = cells[0].to_lowercase();
    let confides = super::plain::is_about_confidence(&title);
    (is_label(&cells[0]) && !confides && !begins(&title, "total")).then(|| (*one).clone())
}
