//! The record as one HTML page: no scripts, nothing fetched; the charts are SVG. Every word of a model is escaped.

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
.faint{color:var(--faint)}.holds{color:var(--hold)}.opposes{color:var(--oppose)}svg{max-width:100%;height:auto}text{fill:var(--ink);font:12px system-ui,sans-serif}";

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
    let votes: Vec<usize> = (0..counted.candidates.len())
        .map(|c| {
            counted
                .firsts
                .iter()
                .filter(|f| f.candidate == Some(c))
                .count()
        })
        .collect();
    let most = votes.iter().copied().max().unwrap_or(0).max(1);
    let height = 26 * votes.len() + 6;
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 640 {height}\" role=\"img\" aria-label=\"votes for each answer\">"
    );
    for (at, (name, n)) in counted.candidates.iter().zip(&votes).enumerate() {
        let y = 26 * at;
        let wide = 300 * n / most;
        let short: String = name.chars().take(38).collect();
        let _ = writeln!(
            out,
            "<text x=\"0\" y=\"{}\">{}</text><rect x=\"290\" y=\"{}\" width=\"{wide}\" height=\"16\" fill=\"var(--bar)\"/><text x=\"{}\" y=\"{}\">{n}</text>",
            y + 16,
            escape(&short),
            y + 4,
            296 + wide,
            y + 16
        );
    }
    out.push_str("</svg>\n<table><tr><th>Member</th><th>First choice</th><th>Says</th><th>Reason</th></tr>\n");
    for first in &counted.firsts {
        let choice = first.candidate.and_then(|c| counted.candidates.get(c));
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(first.seat.as_str()),
            choice.map_or("<span class=\"faint\">abstains</span>".to_owned(), |c| {
                escape(c)
            }),
            first
                .confidence
                .map_or(String::new(), |c| format!("{:.0} %", c * 100.0)),
            escape(&first.reason)
        );
    }
    out.push_str("</table>\n");
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

fn map(report: &Report, out: &mut String) {
    let map = report.map();
    if map.claims.is_empty() && map.missing.is_empty() {
        return;
    }
    let (title, head, holds, opposes) = match map.of {
        Rows::Claims => ("Claims and members", "Claim", "● says", "○ contradicts"),
        Rows::Answers => ("Answers and members", "Answer", "● holds", "○ opposes"),
    };
    let _ = write!(out, "<h2>{title}</h2><table><tr><th>{head}</th>");
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
        let _ = write!(out, "<tr><td>{}</td>", escape(&claim.claim));
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
    out.push_str("</table>\n");
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
    let x = |at: usize| 40.0 + 560.0 * at as f64 / (trend.len().max(2) - 1) as f64;
    let y = |c: f64| 110.0 - 100.0 * c;
    let points: Vec<String> = trend
        .iter()
        .enumerate()
        .map(|(at, c)| format!("{:.1},{:.1}", x(at), y(*c)))
        .collect();
    let _ = writeln!(
        out,
        "<h2>Agreement by pass</h2><svg viewBox=\"0 0 640 140\" role=\"img\" aria-label=\"agreement by pass\">\
         <line x1=\"40\" y1=\"110\" x2=\"620\" y2=\"110\" stroke=\"var(--line)\"/><line x1=\"40\" y1=\"10\" x2=\"40\" y2=\"110\" stroke=\"var(--line)\"/>\
         <text x=\"12\" y=\"16\">1.0</text><text x=\"12\" y=\"114\">0.0</text>\
         <polyline points=\"{}\" fill=\"none\" stroke=\"var(--bar)\" stroke-width=\"2\"/>",
        points.join(" ")
    );
    for (at, c) in trend.iter().enumerate() {
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"var(--bar)\"/><text x=\"{:.1}\" y=\"130\">pass {}: {c:.2}</text>",
            x(at),
            y(*c),
            x(at).min(560.0),
            at + 1
        );
    }
    out.push_str("</svg>\n");
}

fn plan(report: &Report, out: &mut String) {
    let Some(plan) = &report.plan else { return };
    let _ = writeln!(
        out,
        "<h2>The plan</h2><p>Protocol {}, rule {}, {}. {}</p><table><tr><th>Seat</th><th>Role</th><th>Model</th></tr>",
        escape(&plan.protocol),
        escape(&plan.voting.method),
        escape(&plan.answers.words()),
        escape(&plan.meta.reasoning)
    );
    for seat in &plan.seats {
        let model = seat.member.model.as_deref().unwrap_or("its own");
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}: {}</td></tr>",
            escape(seat.name().as_str()),
            escape(&seat.role),
            escape(&seat.member.backend),
            escape(model)
        );
    }
    out.push_str("</table>\n");
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
                SeatState::Replied => seat.what.clone(),
                SeatState::Failed => format!("failed: {}", seat.what),
                SeatState::Cut => format!("not asked: {}", seat.what),
                SeatState::Asked | SeatState::Waiting => "no reply".into(),
            };
            let _ = writeln!(
                out,
                "<li>{}: {}</li>",
                escape(seat.seat.as_str()),
                escape(&state)
            );
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
        let page = page(&Report::default(), &[]);
        assert!(
            !page.contains("<script") && !page.contains("http://") && !page.contains("https://")
        );
    }
}
