//! The record as one HTML page: no scripts, nothing fetched; charts are bars of CSS, as wide as the
//! screen allows. Every word of a model is escaped.

use kd_core::deliberation::Counted;
use kd_core::deliberation::map::{Rows, Stance};
use kd_core::deliberation::report::{Report, SeatState};
use kd_core::deliberation::why;
use kd_core::{Message, SeatName};
use std::fmt::Write as _;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--faint:#767676;--line:#ddd;--hold:#2a7d4f;--oppose:#b3402e;--bar:#3566a8}
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#161616;--faint:#9a9a9a;--line:#383838;--hold:#5bc48a;--oppose:#e5806d;--bar:#7ba7e0}}
body{font:16px/1.55 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid var(--line)}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;margin:.4rem 0}details{margin:.4rem 0}summary{cursor:pointer}
.wide{overflow-x:auto}td,h1,h2,li,p,summary{overflow-wrap:anywhere}.wide td{min-width:5rem}
.bar{display:flex;gap:.5rem;align-items:center;margin:.1rem 0 .5rem}.bar i{height:1rem;background:var(--bar)}.bar b{font-weight:normal;white-space:nowrap}
.faint{color:var(--faint)}.holds{color:var(--hold)}.opposes{color:var(--oppose)}";

pub(super) fn page(report: &Report, messages: &[Message]) -> String {
    let mut out = String::from(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n",
    );
    let question = report
        .plan
        .as_ref()
        .map(|p| p.question.as_str())
        .unwrap_or_default();
    let _ = write!(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>A deliberation</title><style>{STYLE}</style></head><body>\n"
    );
    let _ = writeln!(
        out,
        "<h1>A deliberation</h1><pre>{}</pre>",
        escape(question)
    );
    if let Some(verdict) = &report.verdict {
        let _ = writeln!(
            out,
            "<h2>{}</h2><pre>{}</pre>",
            escape(&verdict.heading),
            rich(body_of(&verdict.answer))
        );
    }
    vote(report, &mut out);
    map(report, &mut out);
    trend(report, &mut out);
    plan(report, &mut out);
    stages(report, &mut out);
    out.push_str("<h2>Why</h2><ul>\n");
    for line in why(report) {
        let _ = writeln!(out, "<li>{}</li>", escape(&line));
    }
    out.push_str("</ul><h2>Messages</h2>\n");
    for message in messages {
        let _ = writeln!(
            out,
            "<details id=\"m{}\"><summary>#{} {}</summary><pre>{}</pre></details>",
            message.seq,
            message.seq,
            escape(&message.from),
            rich(&message.body)
        );
    }
    out.push_str("</body></html>\n");
    out
}

/// The answer below its own heading.
fn body_of(answer: &str) -> &str {
    answer
        .split_once('\n')
        .map_or(answer, |(_, rest)| rest.trim_start())
}

fn vote(report: &Report, out: &mut String) {
    let Some(counted) = report.count() else {
        return;
    };
    let _ = writeln!(
        out,
        "<h2>Vote by {}: {}</h2>",
        escape(&counted.rule),
        counted.form.word()
    );
    standing(counted, out);
    let weight = |seat: &str| {
        let plan = report.plan.as_ref()?;
        let found = plan.seats.iter().find(|s| s.name().as_str() == seat)?;
        Some(found.member.weight)
    };
    let weights = counted.firsts.iter();
    let weighted = weights
        .flat_map(|f| weight(f.seat.as_str()))
        .any(|w| w != 1.0);
    let head = if weighted { "<th>Weight</th>" } else { "" };
    let _ = writeln!(
        out,
        "<div class=\"wide\"><table><tr><th>Member</th>{head}<th>First choice</th><th>Says</th><th>Reason</th></tr>"
    );
    for first in &counted.firsts {
        let choice = first.candidate.and_then(|c| counted.candidates.get(c));
        let _ = writeln!(
            out,
            "<tr><td>{}</td>{}<td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(first.seat.as_str()),
            match weight(first.seat.as_str()).filter(|_| weighted) {
                Some(weight) => format!("<td>{weight}</td>"),
                None if weighted => "<td></td>".to_owned(),
                None => String::new(),
            },
            choice.map_or("<span class=\"faint\">abstains</span>".to_owned(), |c| {
                escape(c)
            }),
            first
                .confidence
                .map_or(String::new(), |c| format!("{:.0} %", c * 100.0)),
            rich(&first.reason)
        );
    }
    out.push_str("</table></div>\n");
    for line in counted
        .rounds
        .iter()
        .chain(&counted.tie_path)
        .chain(&counted.abstained)
        .chain(&counted.notes)
    {
        let _ = writeln!(out, "<p class=\"faint\">{}</p>", escape(line));
    }
}

/// A bar for each candidate: what the rule counted, or, where the rule has no standing, how many put it first.
fn standing(counted: &Counted, out: &mut String) {
    let scores: Option<Vec<f64>> = counted
        .scores
        .iter()
        .map(|s| number(s.as_deref()?))
        .collect();
    let scores =
        scores.filter(|s| s.len() == counted.candidates.len() && s.iter().all(|n| *n >= 0.0));
    let heads = |c| {
        counted
            .firsts
            .iter()
            .filter(|f| f.candidate == Some(c))
            .count()
    };
    let (values, what): (Vec<f64>, _) = match &scores {
        Some(scores) => (scores.clone(), "the standing that the rule counted"),
        None => (
            (0..counted.candidates.len())
                .map(|c| heads(c) as f64)
                .collect(),
            "how many put it first",
        ),
    };
    let most = values
        .iter()
        .copied()
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let _ = writeln!(out, "<p class=\"faint\">Bars: {what}.</p>");
    for (at, (name, value)) in counted.candidates.iter().zip(&values).enumerate() {
        let shown = match (&scores, counted.scores.get(at)) {
            (Some(_), Some(Some(score))) => escape(score),
            _ => value.to_string(),
        };
        let _ = writeln!(
            out,
            "<div>{}</div>{}",
            rich(name),
            bar(value / most, &shown)
        );
    }
}

/// A bar of this share of the width, and what stands beside it.
fn bar(share: f64, shown: &str) -> String {
    let wide = (share * 75.0).clamp(0.0, 75.0);
    format!("<div class=\"bar\"><i style=\"width:{wide:.1}%\"></i><b>{shown}</b></div>")
}

/// The number at the beginning of a standing: `3`, `3.3`, `7/2`.
fn number(standing: &str) -> Option<f64> {
    let word = standing.split_whitespace().next()?;
    let number = match word.split_once('/') {
        Some((over, under)) => over.parse::<f64>().ok()? / under.parse::<f64>().ok()?,
        None => word.trim_end_matches('%').parse().ok()?,
    };
    number.is_finite().then_some(number)
}

fn map(report: &Report, out: &mut String) {
    let map = report.map();
    if map.claims.is_empty() && map.missing.is_empty() {
        return;
    }
    let (title, head, holds, opposes) = match map.of {
        Rows::Claims => ("Claims and members", "Claim", "● says", "○ contradicts"),
        Rows::Answers => ("Answers and members", "Answer", "● holds", "○ opposes"),
    };
    let _ = write!(
        out,
        "<h2>{title}</h2><div class=\"wide\"><table><tr><th>{head}</th>"
    );
    for member in &map.members {
        let _ = write!(out, "<th>{}</th>", escape(member.as_str()));
    }
    out.push_str("</tr>\n");
    let mut standing = None;
    for claim in &map.claims {
        if let Some(now) = claim.standing.filter(|now| Some(*now) != standing) {
            standing = Some(now);
            let columns = map.members.len() + 1;
            let words = now.words();
            let _ = writeln!(
                out,
                "<tr><th colspan=\"{columns}\" class=\"faint\">{words}</th></tr>"
            );
        }
        let _ = write!(out, "<tr><td>{}</td>", rich(&claim.claim));
        for (_, stance) in &claim.stances {
            let (class, word) = match stance {
                Stance::Holds => ("holds", holds),
                Stance::Opposes => ("opposes", opposes),
                Stance::Silent => ("faint", "· silent"),
            };
            let _ = write!(out, "<td class=\"{class}\">{word}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
    for line in &map.missing {
        let _ = writeln!(out, "<p>Not covered: {}</p>", escape(line));
    }
    if !map.groups.is_empty() {
        let names = |seats: &[SeatName], between: &str| {
            let names: Vec<&str> = seats.iter().map(|seat| seat.as_str()).collect();
            names.join(between)
        };
        let groups: Vec<String> = map.groups.iter().map(|g| names(g, " = ")).collect();
        let _ = writeln!(
            out,
            "<p class=\"faint\">Same answers: {}; compared by {}</p>",
            escape(&groups.join(", ")),
            match map.by.is_empty() {
                true => "nobody".to_owned(),
                false => escape(&names(&map.by, " and ")),
            }
        );
    }
}

fn trend(report: &Report, out: &mut String) {
    let trend = report.trend();
    if trend.is_empty() {
        return;
    }
    out.push_str("<h2>Agreement by pass</h2>\n");
    for (at, agreement) in trend.iter().enumerate() {
        let shown = format!("pass {}: {agreement:.2}", at + 1);
        let _ = writeln!(out, "{}", bar(*agreement, &shown));
    }
}

fn plan(report: &Report, out: &mut String) {
    let Some(plan) = &report.plan else { return };
    let _ = writeln!(
        out,
        "<h2>The plan</h2><p>Protocol {}, rule {}, {}. {}</p><div class=\"wide\"><table><tr><th>Seat</th><th>Role</th><th>Persona</th><th>Weight</th><th>Model</th></tr>",
        escape(&plan.protocol),
        escape(&plan.voting.method),
        escape(
            &report
                .settled
                .as_ref()
                .map_or(&plan.answers, |(kind, _)| kind)
                .words()
        ),
        escape(&plan.meta.reasoning)
    );
    for seat in &plan.seats {
        let model = seat.member.model.as_deref().unwrap_or("its own");
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}: {}</td></tr>",
            escape(seat.name().as_str()),
            escape(&seat.role),
            escape(seat.persona.as_deref().unwrap_or_default()),
            seat.member.weight,
            escape(&seat.member.backend),
            escape(model)
        );
    }
    out.push_str("</table></div>\n");
}

fn stages(report: &Report, out: &mut String) {
    out.push_str("<h2>What happened</h2>\n");
    for stage in &report.stages {
        let _ = writeln!(
            out,
            "<details><summary>{}</summary><ul>",
            escape(&stage.heading())
        );
        for seat in &stage.seats {
            let state = match seat.state {
                // A conclusion or a summary is a message, and stands below.
                SeatState::Replied if seat.what.is_empty() => "see its message".into(),
                SeatState::Replied => seat.what.clone(),
                SeatState::Failed => format!("failed: {}", seat.what),
                SeatState::Cut => format!("not asked: {}", seat.what),
                SeatState::Asked | SeatState::Waiting => "no reply".into(),
            };
            let _ = writeln!(
                out,
                "<li>{}: {}</li>",
                escape(seat.seat.as_str()),
                rich(&state)
            );
            let said = seat.reviews.iter().filter(|r| !r.weakness.is_empty());
            for review in said {
                let about = escape(review.seat.as_str());
                let _ = writeln!(
                    out,
                    "<li class=\"faint\">{} on {about} ({} of 10): {}</li>",
                    escape(seat.seat.as_str()),
                    review.rating,
                    rich(&review.weakness)
                );
            }
        }
        out.push_str("</ul></details>\n");
    }
}

/// Escaped text whose `**bold**` words are bold. The tags are the only markup that is added.
fn rich(text: &str) -> String {
    let line = |line: &str| {
        let parts: Vec<&str> = line.split("**").collect();
        // An odd mark is no mark.
        if parts.len().is_multiple_of(2)
            || parts.iter().skip(1).step_by(2).any(|p| p.trim().is_empty())
        {
            return line.to_owned();
        }
        let bold = |(at, part): (usize, &&str)| match at % 2 {
            0 => (*part).to_owned(),
            _ => format!("<b>{part}</b>"),
        };
        parts.iter().enumerate().map(bold).collect()
    };
    let lines: Vec<String> = escape(text).split('\n').map(line).collect();
    lines.join("\n")
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in crate::render::clean::text(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_becomes_markup() {
        assert_eq!(
            escape("<b a='x'>&\"\u{1b}[31m"),
            "&lt;b a=&#39;x&#39;&gt;&amp;&quot;"
        );
        assert_eq!(
            rich("**Do <it>.** 2 ** 3\n**now**"),
            "**Do &lt;it&gt;.** 2 ** 3\n<b>now</b>"
        );
        for (standing, wanted) in [
            ("3", Some(3.0)),
            ("3.3 points", Some(3.3)),
            ("7/2", Some(3.5)),
            ("1/0", None),
            ("none", None),
        ] {
            assert_eq!(number(standing), wanted, "{standing}");
        }
        let page = page(&Report::default(), &[]);
        assert!(
            !page.contains("<script") && !page.contains("http://") && !page.contains("https://")
        );
    }
}
