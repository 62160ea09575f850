//! The plan, the vote and the trend as text.

use super::map;
use crate::render::clean;
use crate::render::style::Styles;
use crate::render::wrap::{clip, fold, width};
use kd_app::words::grouped;
use kd_core::deliberation::report::Report;
use kd_core::deliberation::{Plan, compared_by, counted_by, forecast};
use kd_core::seating::LOCAL;
use kd_core::spending::money;
use kd_core::usage::Certainty;

/// The bars of a sparkline.
const BARS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Returns the kind of answer, as far as the plan has it.
fn kind(plan: &Plan) -> String {
    match &plan.guess {
        Some(guess) if *guess != plan.answers => {
            format!(
                "{} (or {}, depending on the answers)",
                plan.answers.words(),
                guess.words()
            )
        }
        _ => plan.answers.words(),
    }
}

/// Formats the plan for reading before it runs.
pub(crate) fn plan(plan: &Plan, styles: Styles) -> Vec<String> {
    let dot = styles.glyph("·", "-");
    let mut out = vec![styles.bold(&format!(
        "Plan {dot} {} {dot} {} {dot} {}",
        plan.protocol,
        kind(plan),
        counted_by(plan).map_or("no vote".to_owned(), |rule| format!("rule {rule}"))
    ))];
    out.push(format!("  why: {}", clean::line(&plan.meta.reasoning)));
    let rows: Vec<[String; 4]> = plan
        .seats
        .iter()
        .map(|seat| {
            let model = match (&seat.member.model, seat.member.backend.as_str()) {
                (Some(model), _) => model.clone(),
                (None, LOCAL) => "the built-in model".to_owned(),
                (None, _) => "its own model".to_owned(),
            };
            let price = match seat.price {
                Some(p) if p.input == 0 && p.output == 0 => "free".to_owned(),
                Some(p) => format!(
                    "${:.2} / ${:.2} per million tokens",
                    p.input as f64 / 1e6,
                    p.output as f64 / 1e6
                ),
                None => "price unknown".to_owned(),
            };
            let mut role = seat.role.clone();
            if let Some(persona) = &seat.persona {
                role.push_str(&format!(" ({persona})"));
            }
            if seat.no_vote {
                role.push_str(", no vote");
            }
            if seat.member.weight != 1.0 {
                role.push_str(&format!(", weight {}", seat.member.weight));
            }
            [
                seat.name().to_string(),
                clean::line(&role),
                format!("{}: {}", seat.member.backend, clean::line(&model)),
                price,
            ]
        })
        .collect();
    out.extend(columns(&rows));
    let judges = compared_by(plan);
    let calls = judges.len();
    let mut names: Vec<&str> = judges.iter().map(|seat| seat.as_str()).collect();
    names.dedup();
    if calls > 0 {
        out.push(format!(
            "  answers that differ in words are compared by {}, {calls} calls",
            names.join(" and "),
        ));
    }
    let cost = forecast(plan);
    let pass = if plan.iteration.enabled {
        " a pass"
    } else {
        ""
    };
    let mut line = format!(
        "  cost: at most {} calls{pass} if no member fails, about {} tokens",
        cost.calls,
        grouped(cost.tokens)
    );
    match cost.usd {
        Some(usd) if usd > 0.0 => line.push_str(&format!(", about ${usd:.4}")),
        Some(_) => line.push_str(", free"),
        None => line.push_str(", price unknown"),
    }
    out.push(line);
    let mut limits: Vec<String> = Vec::new();
    limits.extend(plan.limits.calls.map(|n| format!("{n} calls")));
    limits.extend(plan.limits.tokens.map(|n| format!("{} tokens", grouped(n))));
    limits.extend(
        plan.limits
            .micro_usd
            .map(|n| format!("${:.4}", n as f64 / 1e6)),
    );
    limits.extend(plan.limits.duration_ms.map(|n| format!("{} s", n / 1000)));
    let mut line = format!("  limits: {}", limits.join(", "));
    if let Some(usd) = cost.usd_max.filter(|usd| *usd > 0.0) {
        line.push_str(&format!("; at most {}", money(usd, Certainty::Exact)));
    }
    out.push(line);
    if plan.iteration.enabled {
        out.push(format!(
            "  iteration: {} passes at most, strategy {}, until agreement {}",
            plan.iteration.max_iterations,
            format!("{:?}", plan.iteration.strategy).to_lowercase(),
            plan.iteration.convergence_threshold
        ));
    }
    out
}

/// Formats everything below the answer.
pub(crate) fn all(report: &Report, columns: usize, styles: Styles) -> Vec<String> {
    let mut out = Vec::new();
    for part in [
        vote(report, columns, styles),
        map::lines(report, columns, styles),
        trend(report, styles),
    ] {
        if !part.is_empty() {
            out.push(String::new());
            out.extend(part);
        }
    }
    if let Some(verdict) = &report.verdict {
        let dot = styles.glyph("·", "-");
        let mut line = verdict.spent.words(&format!(" {dot} "));
        line.push_str(&format!(" {dot} stopped: {}", verdict.stopped_words()));
        out.push(String::new());
        out.push(styles.dim(&clip(&clean::line(&line), columns)));
    }
    out
}

/// Formats the votes of the members.
pub(crate) fn vote(report: &Report, columns_max: usize, styles: Styles) -> Vec<String> {
    // One voice is not a vote.
    let Some(counted) = report.count().filter(|counted| !counted.is_one_voice()) else {
        return Vec::new();
    };
    let mut out = vec![styles.bold(&counted.title())];
    let name = |c: usize| counted.candidates.get(c).map_or("", String::as_str);
    let rows: Vec<[String; 4]> = counted
        .firsts
        .iter()
        .map(|f| {
            let choice = match f.names(&counted.candidates) {
                Some(names) => clean::line(&names),
                None => "abstains".into(),
            };
            let sure = f
                .confidence
                .map_or(String::new(), |c| format!("says {:.0} %", c * 100.0));
            [
                f.seat.to_string(),
                clip(&choice, 40),
                sure,
                clean::line(&f.reason),
            ]
        })
        .collect();
    out.extend(columns(&rows).into_iter().map(|l| clip(&l, columns_max)));
    for (at, score) in counted.scores.iter().enumerate() {
        if let Some(score) = score {
            let mark = if counted.winner == Some(at) {
                styles.glyph("★", "*")
            } else {
                " "
            };
            out.push(clip(
                &format!("  {mark} {}  {score}", clean::line(name(at))),
                columns_max,
            ));
        }
    }
    // `kd why` shows the whole path.
    if let Some((last, before)) = counted.tie_path.split_last() {
        let vain: Vec<&str> = before.iter().filter_map(|s| s.split(':').next()).collect();
        let vain = match vain.is_empty() {
            true => String::new(),
            false => format!(" (not by {})", vain.join(", ")),
        };
        let line = format!("  tie broken by {}{vain}", clean::line(last));
        out.extend(fold(&line, columns_max, 4));
    }
    for note in counted.notes.iter().chain(&counted.abstained) {
        let line = format!("  note: {}", clean::line(note));
        out.extend(fold(&line, columns_max, 4));
    }
    out
}

/// Formats the agreement after each pass.
pub(crate) fn trend(report: &Report, styles: Styles) -> Vec<String> {
    let trend = report.trend();
    if trend.is_empty() || report.count().is_some_and(|counted| counted.is_one_voice()) {
        return Vec::new();
    }
    let bars: String = trend
        .iter()
        .map(|c| BARS[((c * 8.0) as usize).min(7)])
        .collect();
    let numbers: Vec<String> = trend.iter().map(|c| format!("{c:.2}")).collect();
    let shown = numbers.join(styles.glyph(" → ", " -> "));
    let bars = if styles.unicode {
        format!("{bars}  ")
    } else {
        String::new()
    };
    let mut out = vec![format!(
        "{} {bars}{shown}",
        styles.bold("Agreement by pass")
    )];
    let passes = report.decisions.iter().filter_map(|d| d.spent);
    let passes: Vec<String> = passes.map(|spent| spent.words(", ")).collect();
    if passes.len() > 1 {
        let shown = passes.join(styles.glyph(" → ", " -> "));
        out.push(format!("{} {shown}", styles.bold("Cost by pass")));
    }
    out
}

/// Aligns rows into columns as wide as their widest cell.
fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let widths: Vec<usize> = (0..N)
        .map(|c| rows.iter().map(|r| width(&r[c])).max().unwrap_or(0))
        .collect();
    rows.iter()
        .map(|row| {
            let mut line = String::from(" ");
            for (cell, w) in row.iter().zip(&widths) {
                line.push(' ');
                line.push_str(cell);
                line.push_str(&" ".repeat(w.saturating_sub(width(cell)) + 1));
            }
            line.trim_end().to_owned()
        })
        .collect()
}
