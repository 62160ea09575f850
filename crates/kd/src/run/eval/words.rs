//! Measurements as text and tables.

use super::{Styles, grid};
use kd_app::words::count;
use kd_eval::calibration::Calibration;
use kd_eval::intervals::Interval;
use kd_eval::paired::{Comparison, Verdict};
use kd_eval::replay::{Council, Councils, Debate, Drifts, MemberReport, Promises, Report};
use kd_eval::simulate::Simulated;
use kd_records::{Dropped, Source};
use std::io::{self, Write};

/// Models of a file that are named.
const MODELS_SHOWN: usize = 4;

/// Formats a share as percent with two decimals.
fn pct(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

/// Formats a difference in percentage points, with its sign.
fn points(difference: f64) -> String {
    format!("{:+.2}", difference * 100.0)
}

fn range(i: Interval) -> String {
    format!("{}–{}", pct(i.low), pct(i.high))
}

/// Writes rows as a table; the first one is the head.
fn grid(out: &mut impl Write, rows: &[Vec<String>], styles: &Styles) -> io::Result<()> {
    let is_words = |at: usize, row: &[String]| {
        let head = rows[0][at].as_str();
        let is_last = at + 1 == row.len();
        at == 0 || head == "format" || (is_last && matches!(head, "verdict" | "models" | ""))
    };
    for (at, line) in grid::lines(rows, is_words).into_iter().enumerate() {
        let line = if at == 0 { styles.dim(&line) } else { line };
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.iter().map(|c| (*c).to_owned()).collect()
}

/// A replay.
/// Returns the length of the folder that all files are in.
fn shared_folder(sources: &[Source]) -> usize {
    let folder = |path: &str| path.rfind('/').map_or(0, |at| at + 1);
    let Some((first, rest)) = sources.split_first() else {
        return 0;
    };
    let mut shared = &first.path[..folder(&first.path)];
    while rest.iter().any(|source| !source.path.starts_with(shared)) {
        let above = shared.trim_end_matches('/');
        shared = &above[..folder(above)];
    }
    shared.len()
}

/// Prints what was joined, and what was dropped and why.
pub(super) fn sources(
    out: &mut impl Write,
    sources: &[Source],
    dropped: &[Dropped],
    styles: &Styles,
) -> io::Result<()> {
    if sources.is_empty() {
        return Ok(());
    }
    let shared = shared_folder(sources);
    let mut rows = vec![row(["file", "format", "answers", "models"])];
    for source in sources {
        let (first, rest) = source
            .models
            .split_at(MODELS_SHOWN.min(source.models.len()));
        let mut models = first
            .iter()
            .map(|name| clean(name))
            .collect::<Vec<_>>()
            .join(", ");
        if !rest.is_empty() {
            models.push_str(&format!(" and {} more", rest.len()));
        }
        rows.push(vec![
            clean(source.path.get(shared..).unwrap_or(&source.path)),
            source.format.to_owned(),
            source.answers.to_string(),
            models,
        ]);
    }
    grid(out, &rows, styles)?;
    for one in dropped {
        let Dropped { what, why, example } = one;
        writeln!(
            out,
            "  left out: {what}: {} (for example {})",
            clean(why),
            clean(example)
        )?;
    }
    writeln!(out)
}

pub(super) fn report(
    out: &mut impl Write,
    file: &str,
    r: &Report,
    styles: &Styles,
) -> io::Result<()> {
    let file = clean(file);
    let s = &r.setup;
    let dropped = match s.dropped {
        0 => String::new(),
        n => format!(" ({n} left out: a member was never asked)"),
    };
    let who = if r.members.is_empty() {
        "debates".to_owned()
    } else {
        count(r.members.len() as u64, "member")
    };
    writeln!(
        out,
        "{} · {}{dropped} · {who} · {} possible answers · seed {}",
        styles.bold(&file),
        count(s.questions as u64, "question"),
        s.options,
        s.seed
    )?;
    if !r.members.is_empty() {
        members(out, &r.members, r.council.as_ref(), styles)?;
    }
    writeln!(
        out,
        "\n{}",
        styles.bold("Decisions (percent right, 95 % intervals, paired differences in points)")
    )?;
    let mut rows = vec![row(["way", "right", "interval", "tied", "calls"])];
    for rule in &r.rules {
        rows.push(vec![
            rule.name.into(),
            pct(rule.right),
            range(rule.interval),
            pct(rule.ties),
            format!("{:.2}", rule.calls),
        ]);
    }
    grid(out, &rows, styles)?;
    let alone: Option<Vec<_>> = r
        .rules
        .iter()
        .map(|x| Some((x.name, x.against_best.as_ref()?)))
        .collect();
    if let (Some(pairs), Some(c)) = (alone, &r.council) {
        let best = r
            .members
            .get(c.best)
            .map_or(String::new(), |m| clean(&m.name));
        compared(
            out,
            &format!("Beside {best}, the best member"),
            &pairs,
            styles,
        )?;
    }
    let vote: Vec<_> = r.rules.iter().map(|x| (x.name, &x.against_vote)).collect();
    let title = if r.debate.is_some() {
        "Beside the vote before the debate"
    } else {
        "Beside plurality"
    };
    compared(out, title, &vote, styles)?;
    for rule in &r.rules {
        if let (Some(cost), Some(each)) = (rule.cost, rule.cost_of_right) {
            writeln!(
                out,
                "  {} cost {cost:.2}, {each:.4} for each right answer",
                rule.name
            )?;
        }
    }
    if let Some(d) = &r.debate {
        debate(out, d, styles)?;
    }
    if let Some(c) = &r.council {
        council(out, c, &r.members, styles)?;
    }
    Ok(())
}

/// Prints differences in percentage points, except of a column with itself.
fn compared(
    out: &mut impl Write,
    title: &str,
    pairs: &[(&str, &Comparison)],
    styles: &Styles,
) -> io::Result<()> {
    let mut rows = vec![row(["way", "points", "interval", "p", "verdict"])];
    for (name, c) in pairs.iter().filter(|(_, c)| c.won + c.lost > 0) {
        let seen = match c.verdict {
            Verdict::NotShown => format!(" (it would see {})", pct(c.detectable)),
            _ => String::new(),
        };
        rows.push(vec![
            (*name).into(),
            points(c.difference),
            format!("{} to {}", points(c.interval.low), points(c.interval.high)),
            if c.p < 0.0001 {
                "<.0001".into()
            } else {
                format!("{:.4}", c.p)
            },
            format!("{}{seen}", c.verdict.word()),
        ]);
    }
    if rows.len() > 1 {
        writeln!(out, "\n{}", styles.bold(title))?;
        grid(out, &rows, styles)?;
    }
    Ok(())
}

fn members(
    out: &mut impl Write,
    members: &[MemberReport],
    council: Option<&Council>,
    styles: &Styles,
) -> io::Result<()> {
    writeln!(
        out,
        "\n{}",
        styles.bold(
            "Members (percent right; what a plurality loses without each; its credit; its weight)"
        )
    )?;
    let mut rows = vec![row([
        "member",
        "right",
        "interval",
        "silent",
        "unlabelled",
        "without it",
        "credit",
        "weight",
        "",
    ])];
    for (at, m) in members.iter().enumerate() {
        let note = match (council.is_some_and(|c| c.best == at), m.dismiss) {
            (true, _) => "the best",
            (_, true) => "the council is better without it",
            _ => "",
        };
        rows.push(vec![
            clean(&m.name),
            pct(m.right),
            range(m.interval),
            m.silent.to_string(),
            pct(m.without_labels),
            points(m.leave_one_out),
            pct(m.shapley),
            format!("{:.2}", m.weight),
            note.into(),
        ]);
    }
    grid(out, &rows, styles)?;
    for m in members {
        if let Some(c) = &m.stated {
            writeln!(
                out,
                "  {} says how sure it is: {}",
                clean(&m.name),
                calibrated(c)
            )?;
        }
    }
    Ok(())
}

fn council(
    out: &mut impl Write,
    c: &Council,
    members: &[MemberReport],
    styles: &Styles,
) -> io::Result<()> {
    writeln!(out, "\n{}", styles.bold("The council"))?;
    let best = members
        .get(c.best)
        .map_or(String::new(), |m| clean(&m.name));
    let e = &c.errors;
    writeln!(
        out,
        "  best member {best} (known only afterwards) · mean member {} · oracle {}",
        pct(c.mean),
        pct(c.oracle)
    )?;
    if let Some(rho) = e.correlation {
        let same = e.same_wrong.map_or(String::new(), |s| {
            format!(" · two who are wrong agree in {:.1} %", s * 100.0)
        });
        let worth = match e.n_eff {
            Some(n) => format!(
                "errors correlate by {rho:.3}: {} members are worth {n:.2} independent ones",
                members.len()
            ),
            None => format!("errors do not correlate ({rho:.3})"),
        };
        writeln!(out, "  {worth}{same}")?;
    }
    let g = &c.gains;
    writeln!(
        out,
        "  gains in points: voting {} · ties to the best {} · fitted weights {} · left to the oracle {}",
        points(g.vote),
        points(g.tie_break),
        points(g.weights),
        points(g.oracle_gap)
    )?;
    let a = &c.agreement;
    let alpha = a
        .alpha
        .map_or(String::new(), |x| format!(" · Krippendorff's alpha {x:.3}"));
    writeln!(
        out,
        "  unanimous on {:.1} %, and right then in {} % · of wrong decisions {:.1} % had a member who knew{alpha}",
        a.unanimous * 100.0,
        pct(a.unanimous_right),
        a.minority_right * 100.0
    )?;
    const SHOWN: usize = 12;
    let mut rows = vec![row(["votes", "questions", "right"])];
    rows.extend(
        a.patterns
            .iter()
            .take(SHOWN)
            .map(|p| vec![p.votes.clone(), p.n.to_string(), pct(p.right)]),
    );
    grid(out, &rows, styles)?;
    if a.patterns.len() > SHOWN {
        writeln!(
            out,
            "  and {} patterns more (--json has all)",
            a.patterns.len() - SHOWN
        )?;
    }
    if let (Some(raw), Some(fitted)) = (&c.votes, &c.fitted) {
        writeln!(
            out,
            "  the share of votes as a probability: {}",
            calibrated(raw)
        )?;
        writeln!(
            out,
            "  fitted on the other half:            {}",
            calibrated(fitted)
        )?;
    }
    if let (Some(ds), Some(peer)) = (c.spearman_dawid_skene, c.spearman_peer) {
        writeln!(
            out,
            "  strength without labels ranks members as their accuracy does by {ds:.3} (Dawid-Skene), {peer:.3} (peer prediction)"
        )?;
    }
    Ok(())
}

fn calibrated(c: &Calibration) -> String {
    let auroc = c
        .auroc
        .map_or(String::new(), |a| format!(" · AUROC {a:.3}"));
    format!(
        "stated {}, actual {} · ECE {} · Brier {:.3}{auroc} · right among the surest 80 %: {}",
        pct(c.said),
        pct(c.came),
        pct(c.ece),
        c.brier,
        pct(c.selective[0])
    )
}

fn debate(out: &mut impl Write, d: &Debate, styles: &Styles) -> io::Result<()> {
    let of = |(part, all): (u64, u64)| {
        let share = if all == 0 {
            0.0
        } else {
            part as f64 / all as f64
        };
        format!("{part} of {all} ({} %)", pct(share))
    };
    writeln!(
        out,
        "\n{}",
        styles.bold("The debate, from the first round to the second")
    )?;
    writeln!(out, "  wrong answers made right: {}", of(d.corrected))?;
    writeln!(out, "  right answers made wrong: {}", of(d.subverted))?;
    writeln!(out, "  changes to the majority answer: {}", of(d.conformed))?;
    writeln!(
        out,
        "  vote before {} · vote after {} · {} points",
        pct(d.first_vote),
        pct(d.last_vote),
        points(d.last_vote - d.first_vote)
    )
}

/// Random councils.
pub(super) fn councils(
    out: &mut impl Write,
    file: &str,
    c: &Councils,
    styles: &Styles,
) -> io::Result<()> {
    writeln!(
        out,
        "{} · {} random councils of {} · seed {} · best member {} on average (known only afterwards)",
        styles.bold(&clean(file)),
        c.councils,
        c.size,
        c.seed,
        pct(c.best)
    )?;
    let mut rows = vec![row([
        "gain over it, points",
        "mean",
        "least",
        "greatest",
        "not behind it",
        "asked",
    ])];
    for g in &c.gains {
        rows.push(vec![
            g.name.into(),
            points(g.mean),
            points(g.least),
            points(g.greatest),
            format!("{} / {}", g.kept, c.councils),
            format!("{:.2}", g.asked),
        ]);
    }
    grid(out, &rows, styles)?;
    for gain in &c.gains {
        let Some(behind) = &gain.behind else { continue };
        writeln!(
            out,
            "  {} asks {:.2} of {} members and is {} points behind {} of all (one-sided 95 %: at most {})",
            gain.name,
            gain.asked,
            c.size,
            pct(behind.mean),
            behind.all,
            pct(behind.most),
        )?;
    }
    Ok(())
}

/// Prints whether promises are kept.
pub(super) fn promises(
    out: &mut impl Write,
    file: &str,
    p: &Promises,
    styles: &Styles,
) -> io::Result<()> {
    writeln!(
        out,
        "{} · {} · {} · {} % right · {} splits · seed {}",
        styles.bold(&clean(file)),
        count(p.questions as u64, "question"),
        count(p.members.len() as u64, "member"),
        pct(p.right),
        p.splits,
        p.seed
    )?;
    let mut rows = vec![row([
        "promise", "marks", "answered", "possible", "wrong", "broken", "interval", "refused",
    ])];
    for kept in &p.rows {
        let splits = p.splits.max(1) as f64;
        rows.push(vec![
            format!("{} %", (kept.promise * 1000.0).round() / 10.0),
            kept.marks.to_string(),
            pct(kept.answered),
            pct(kept.possible),
            kept.wrong.map_or_else(|| "–".to_owned(), pct),
            pct(kept.broken as f64 / splits),
            range(kept.broken_interval),
            pct(kept.refused as f64 / splits),
        ]);
    }
    grid(out, &rows, styles)?;
    writeln!(
        out,
        "  in percent; each promise takes a risk of {} % to be broken",
        (p.risk * 1000.0).round() / 10.0
    )?;
    writeln!(
        out,
        "\nCalibration error (ECE, points) on the other questions"
    )?;
    let mut rows = vec![row([
        "marks",
        "agreement",
        "probability",
        "if it were true",
    ])];
    for told in &p.calibration {
        let points = |ece: Option<f64>| ece.map_or_else(|| "–".to_owned(), pct);
        rows.push(vec![
            told.marks.to_string(),
            pct(told.agreement),
            points(told.probability),
            points(told.ideal),
        ]);
    }
    grid(out, &rows, styles)
}

/// Prints how soon broken promises are noticed.
pub(super) fn drifts(
    out: &mut impl Write,
    file: &str,
    d: &Drifts,
    styles: &Styles,
) -> io::Result<()> {
    writeln!(
        out,
        "{} · {} · {} · {} splits · seed {}",
        styles.bold(&clean(file)),
        count(d.questions as u64, "question"),
        count(d.members.len() as u64, "member"),
        d.splits,
        d.seed
    )?;
    let mut rows = vec![row([
        "promise",
        "marks",
        "change",
        "made",
        "given",
        "covered",
        "wrong",
        "gone",
        "withdrawn",
        "after",
        "90 %",
    ])];
    for seen in &d.rows {
        let promised = seen.promised as f64;
        let of_them = |n: usize| pct(n as f64 / promised.max(1.0));
        let delay = |at: Option<usize>| at.map_or_else(|| "–".to_owned(), |n| n.to_string());
        rows.push(vec![
            format!("{} %", (seen.promise * 1000.0).round() / 10.0),
            seen.marks.to_string(),
            seen.change.name().to_owned(),
            pct(promised / d.splits.max(1) as f64),
            format!("{:.0}", seen.looked),
            format!("{:.0}", seen.covered),
            seen.wrong.map_or_else(|| "–".to_owned(), pct),
            of_them(seen.gone),
            of_them(seen.withdrawn),
            delay(seen.delay.map(|(median, _)| median)),
            delay(seen.delay.map(|(_, most)| most)),
        ]);
    }
    grid(out, &rows, styles)?;
    let (best, weakest) = (clean(&d.swap.0), clean(&d.swap.1));
    writeln!(
        out,
        "  made: percent of splits; given, covered, wrong: marks after the change, those that the promise covers, and\n  percent of these that are wrong; gone: percent of the splits in which it was made; withdrawn: by the running test;\n  after: marks given until it went, median and nine tenths\n  swap: {weakest} answers in place of {best}; harder: only the harder half of the questions;\n  doubted: all verdicts with a dissent are marked, and one in five of the others"
    )
}

/// A simulation.
pub(super) fn simulated(out: &mut impl Write, s: &Simulated, styles: &Styles) -> io::Result<()> {
    writeln!(
        out,
        "{} · {} questions · {} answers each · errors correlate by {} · {} rounds · seed {}",
        styles.bold("simulated"),
        s.spec.questions,
        s.spec.options,
        s.spec.correlation,
        s.spec.rounds,
        s.spec.seed
    )?;
    const SHOWN: usize = 12;
    let mut names: Vec<String> = s
        .members
        .iter()
        .take(SHOWN)
        .map(|(n, right)| format!("{} {}", clean(n), pct(*right)))
        .collect();
    if s.members.len() > SHOWN {
        names.push(format!("and {} more", s.members.len() - SHOWN));
    }
    writeln!(out, "  first answers right: {}", names.join(" · "))?;
    if let Some(p) = s.expected_vote {
        writeln!(out, "  theory says of a vote: {:.3}", p * 100.0)?;
    }
    let mut rows = vec![row([
        "protocol", "right", "interval", "calls", "mended", "broken",
    ])];
    for p in &s.protocols {
        rows.push(vec![
            p.name.into(),
            pct(p.right),
            range(p.interval),
            format!("{:.2}", p.calls),
            pct(p.corrected),
            pct(p.subverted),
        ]);
    }
    grid(out, &rows, styles)?;
    let pairs: Vec<_> = s
        .protocols
        .iter()
        .map(|p| (p.name, &p.against_vote))
        .collect();
    compared(out, "Beside the blind vote", &pairs, styles)
}

/// Names come from a file: one line, no escape sequences.
fn clean(text: &str) -> String {
    crate::render::clean::line(text)
}
