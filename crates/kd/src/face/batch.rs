//! Batches as text and JSON: the estimate, the progress, the end, lists. Pure.

use crate::render::clean;
use crate::render::style::Styles;
use crate::render::wrap::{clip, wrap};
use jiff::tz::TimeZone;
use kd_app::batch::{Batch, Counts, Dead, MemberFailures, Retried};
use kd_app::batch::{Progress, Told, Waiting, Why};
use kd_app::words::{count, grouped};
use kd_core::batch::Estimate;
use kd_core::formats::BATCH;
use kd_core::spending::{Spent, money};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Maximum time between two lines of progress.
const LINE: Duration = Duration::from_secs(30);
/// Cells of the bar.
const BAR: usize = 24;
/// Members that failed in answered questions and are shown.
pub(crate) const MEMBERS_SHOWN: usize = 20;

/// The time of a run, and of its last line.
pub(crate) struct Clock {
    began: Instant,
    told: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            told: now,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns whether a line is due.
    pub(crate) fn is_due(&self) -> bool {
        self.told.elapsed() >= LINE
    }

    pub(crate) fn tell(&mut self) {
        self.told = Instant::now();
    }
}

/// Returns an id without its prefix, for commands to type.
pub(crate) fn short(id: &str) -> &str {
    id.strip_prefix("batch-").unwrap_or(id)
}

/// Returns the line of `--dry-run`. `every` is the time from one question to the next, if it is limited.
pub(crate) fn estimate(estimate: &Estimate, every: Option<Duration>) -> String {
    let range = |low: u64, high: u64, noun: &str| match low == high {
        true => format!("{} {noun}{}", grouped(low), if low == 1 { "" } else { "s" }),
        false => format!("{} to {} {noun}s", grouped(low), grouped(high)),
    };
    let usd = match estimate.usd {
        Some(usd) if usd.high == 0.0 => "$0.00".to_owned(),
        Some(usd) => format!("${:.2} to ${:.2}", usd.low, usd.high),
        None => "price unknown".to_owned(),
    };
    // The first question is asked at once.
    let pauses = estimate.asked.saturating_sub(1);
    let time = match every {
        Some(every) if pauses > 0 => {
            format!(", at least {}", about(every.as_secs_f64() * pauses as f64))
        }
        _ => String::new(),
    };
    format!(
        "{}, {} to ask: {}, {}, {usd}{time}",
        count(estimate.questions, "question"),
        grouped(estimate.asked),
        range(estimate.calls.low, estimate.calls.high, "call"),
        range(estimate.tokens.low, estimate.tokens.high, "token"),
    )
}

/// Returns the first line of a run.
pub(crate) fn begins(
    id: &str,
    goes_on: bool,
    source: &str,
    how: &str,
    progress: &Progress,
) -> String {
    let Counts { total, .. } = progress.counts;
    match goes_on {
        true => {
            let left = total.saturating_sub(progress.counts.ended());
            format!(
                "{id} goes on: {} of {} are left",
                grouped(left),
                count(total, "question")
            )
        }
        false => {
            let known = match progress.counts.cached {
                0 => String::new(),
                n => format!(", {} answered before", grouped(n)),
            };
            format!(
                "{id}: {} from {source}, {how}{known}",
                count(total, "question")
            )
        }
    }
}

/// Returns the parts of a line of progress besides the count.
fn parts(progress: &Progress, elapsed: Duration) -> Vec<String> {
    let counts = &progress.counts;
    let mut parts = Vec::new();
    let seconds = elapsed.as_secs_f64();
    if progress.ended > 0 && seconds > 0.0 {
        let rate = progress.ended as f64 / seconds;
        parts.push(pace(rate));
        parts.extend(spent(&progress.spent));
        let left = counts.total.saturating_sub(counts.ended());
        if left > 0 {
            parts.push(format!("{} left", about(left as f64 / rate)));
        }
    } else {
        parts.extend(spent(&progress.spent));
    }
    if let Some(waiting) = progress.at_providers.filter(|waiting| waiting.parcels > 0) {
        parts.push(format!(
            "{} at providers",
            count(waiting.requests, "request")
        ));
    }
    if counts.failed > 0 {
        parts.push(format!("{} failed", grouped(counts.failed)));
    }
    if progress.again > 0 {
        parts.push(format!("{} asked again", grouped(progress.again)));
    }
    if counts.cached > 0 {
        parts.push(format!("{} answered before", grouped(counts.cached)));
    }
    parts
}

/// Returns the money, or the tokens where nothing has a price.
fn spent(spent: &Spent) -> Option<String> {
    match (spent.pico_usd, spent.tokens) {
        (0, 0) => None,
        (0, tokens) => Some(format!(
            "{}{} tokens",
            spent.certainty.sign(),
            grouped(tokens)
        )),
        _ => Some(money(spent.usd(), spent.certainty)),
    }
}

fn pace(rate: f64) -> String {
    match rate {
        rate if rate >= 1.0 => format!("{rate:.1}/s"),
        rate if rate * 60.0 >= 1.0 => format!("{:.1}/min", rate * 60.0),
        rate => format!("{:.1}/h", rate * 3600.0),
    }
}

/// Returns a time to come, as exact as it can be known.
fn about(seconds: f64) -> String {
    let seconds = seconds.ceil().max(1.0) as u64;
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

fn percent(counts: &Counts) -> u64 {
    counts.ended() * 100 / counts.total.max(1)
}

/// Returns the progress as one line, for a pipe.
pub(crate) fn line(progress: &Progress, elapsed: Duration) -> String {
    let counts = &progress.counts;
    let mut line = format!(
        "{} of {} ({} %)",
        grouped(counts.ended()),
        grouped(counts.total),
        percent(counts)
    );
    for part in parts(progress, elapsed) {
        line.push_str(", ");
        line.push_str(&part);
    }
    line
}

/// Returns the progress as a region that is repainted.
///
/// Without a `hint` the run is ending, and the line has no time and no keys.
pub(crate) fn region(
    progress: &Progress,
    elapsed: Duration,
    (columns, hint): (usize, bool),
    styles: Styles,
) -> Vec<String> {
    let columns = columns.saturating_sub(1).max(8);
    let counts = &progress.counts;
    let full = (counts.ended() as usize * BAR) / (counts.total.max(1) as usize);
    let bar = styles.glyph("█", "#").repeat(full.min(BAR));
    let rest = styles.glyph("░", ".").repeat(BAR - full.min(BAR));
    let dot = styles.glyph(" · ", " - ");
    let head = format!(
        "{} of {}{dot}{} %{dot}{} running",
        grouped(counts.ended()),
        grouped(counts.total),
        percent(counts),
        grouped(counts.running)
    );
    let first = match columns > BAR + 24 {
        true => format!("{bar}{rest}  {}", clip(&head, columns - BAR - 2)),
        false => clip(&head, columns),
    };
    let mut lines = vec![first];
    let mut parts = parts(progress, elapsed);
    if hint {
        lines.extend(wrap(&parts.join(dot), columns));
        let hint = "Ctrl+C finishes the running questions; the same command goes on";
        lines.push(styles.dim(&clip(hint, columns)));
    } else {
        parts.retain(|part| !part.ends_with(" left"));
        lines.extend(wrap(&parts.join(dot), columns));
    }
    lines
}

/// Returns the notice for a user who stops a run.
pub(crate) fn stopping(open: u64, stops: u32, asks: bool) -> String {
    match (stops, open) {
        _ if !asks => "stopping; workers go on".to_owned(),
        (1, 0) => "stopping".to_owned(),
        (1, open) => format!(
            "finishing {}; Ctrl+C again stops at once",
            count(open, "question")
        ),
        _ => "stopping at once; their questions are asked again by the next run".to_owned(),
    }
}

/// Returns the notice for a user who stops a run with provider batches.
pub(crate) fn leaving(waiting: Waiting, stops: u32) -> String {
    match (stops, waiting.parcels) {
        (1, 0) => "stopping; the same command goes on".to_owned(),
        (1, _) => format!(
            "stopping; {} at providers go on there, and the same command collects the answers",
            count(waiting.requests, "request")
        ),
        _ => "stopping".to_owned(),
    }
}

/// Returns a line about a provider batch.
pub(crate) fn told(told: &Told) -> String {
    clean::line(&told.to_string())
}

/// Returns the state of a batch, in words.
fn standing(counts: &Counts) -> String {
    let mut text = format!(
        "{} of {} answered",
        grouped(counts.answered),
        grouped(counts.total)
    );
    for (n, word) in [
        (counts.cached, "answered before"),
        (counts.failed, "failed"),
        (counts.cancelled, "cancelled"),
    ] {
        if n > 0 {
            text.push_str(&format!(", {} {word}", grouped(n)));
        }
    }
    text
}

/// Returns what a batch has spent, and its time.
fn costs(batch: &Batch) -> String {
    let spent = &batch.spent;
    let mut text = count(spent.calls, "call");
    text.push_str(&format!(
        ", {}{} tokens",
        spent.certainty.sign(),
        grouped(spent.tokens)
    ));
    if spent.pico_usd > 0 {
        text.push_str(&format!(", {}", money(spent.usd(), spent.certainty)));
    }
    format!("{text}, {}", super::words::seconds(batch.time))
}

/// Returns a line for each member that failed in answered questions.
fn members(counts: &Counts, failures: &[MemberFailures]) -> impl Iterator<Item = String> {
    failures.iter().map(|one| {
        format!(
            "{} failed in {} of {}: {}",
            clean::line(&one.member),
            grouped(one.questions),
            count(counts.answered, "answered question"),
            clean::line(&one.reason)
        )
    })
}

/// Returns the lines at the end of a run.
pub(crate) fn closing(
    batch: &Batch,
    failures: &[MemberFailures],
    why: Why,
    stopped: bool,
    output: Option<&str>,
    columns: usize,
) -> Vec<String> {
    let id = &batch.about.id;
    let counts = &batch.counts;
    let mut lines = vec![format!("{id}: {}, {}", standing(counts), costs(batch))];
    match output {
        Some(output) => lines.push(format!("results: {output}")),
        None => lines.push(format!("results: kd batch results {}", short(id))),
    }
    if counts.failed > 0 {
        let short = short(id);
        lines.push(format!(
            "failed:  `kd batch status {short}` says why, `kd batch retry {short}` asks again"
        ));
    }
    lines.extend(members(counts, failures).map(|line| format!("members: {line}")));
    match why {
        Why::Limit => lines
            .push("go on:   a limit is reached; run the same command with a higher one".to_owned()),
        _ if stopped && !counts.is_over() => {
            lines.push("go on:   run the same command again".to_owned());
        }
        _ if counts.cancelled > 0 => lines.push(format!("go on:   kd batch retry {}", short(id))),
        _ => {}
    }
    let room = columns.saturating_sub(1);
    lines
        .iter()
        .flat_map(|line| wrap(&clean::line(line), room))
        .collect()
}

/// Returns what `kd batch retry` has done, and what to type next.
pub(crate) fn retried(batch: &Batch, retried: Retried) -> String {
    let Retried { asked, answered } = retried;
    let id = &batch.about.id;
    let answers = match answered {
        0 => String::new(),
        n => format!("{} has the answer of an equal one", count(n, "question")),
    };
    match (asked, answered) {
        (0, 0) => return format!("{id}: no question failed\n"),
        (0, _) => return format!("{id}: {answers}\nresults: kd batch results {}\n", short(id)),
        _ => {}
    }
    let mut text = format!("{id}: {} will be asked again", count(asked, "question"));
    if answered > 0 {
        text.push_str(&format!(", {answers}"));
    }
    format!("{text}\ngo on: {}\n", clean::line(&batch.about.command))
}

fn created(batch: &Batch) -> String {
    let at = batch.created.to_zoned(TimeZone::system());
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

fn head(batch: &Batch, columns: usize, styles: Styles) -> String {
    let about = &batch.about;
    let rest = format!(
        "  {}  {}  {}",
        created(batch),
        about.method,
        clean::line(&about.source)
    );
    let room = columns.saturating_sub(about.id.len() + 1);
    format!(
        "{}{}\n",
        styles.bold(&about.id),
        styles.dim(&clip(&rest, room))
    )
}

/// Returns a batch in a list.
pub(crate) fn row(batch: &Batch, columns: usize, styles: Styles) -> String {
    let mut text = head(batch, columns, styles);
    let open = match batch.counts.is_over() {
        true => "",
        false => ", not finished",
    };
    let line = format!("{}{open}, {}", standing(&batch.counts), costs(batch));
    for line in wrap(&line, columns.saturating_sub(3)) {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

/// The state of a batch, apart from its questions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Now {
    pub(crate) is_running: bool,
    /// Whether a limit has stopped it.
    pub(crate) is_limited: bool,
    /// Whether its command is one that runs a batch.
    pub(crate) can_be_typed: bool,
}

/// Returns the state of a batch, with the first failures.
pub(crate) fn status(
    batch: &Batch,
    dead: &[Dead],
    failures: &[MemberFailures],
    now: Now,
    columns: usize,
    styles: Styles,
) -> String {
    let mut text = head(batch, columns, styles);
    let counts = &batch.counts;
    let mut lines = vec![standing(counts), costs(batch)];
    if now.is_limited {
        lines.push("stopped by a limit: the same command with a higher one goes on".to_owned());
    }
    if now.is_running {
        lines.push(format!(
            "running: {} asked now",
            count(counts.running, "question")
        ));
    } else if !counts.is_over() {
        let left = counts.waiting + counts.running;
        let command = clean::line(&batch.about.command);
        if now.can_be_typed {
            lines.push(format!("{} left; go on with:", grouped(left)));
            lines.push(command);
        } else {
            lines.push(format!("{} left; was run as: {command}", grouped(left)));
        }
    }
    if let Some(output) = &batch.about.output {
        lines.push(format!("results: {}", clean::line(output)));
    }
    for one in dead {
        let times = count(one.attempts.into(), "attempt");
        lines.push(format!(
            "failed after {times}: {}: {}",
            clean::line(&one.id),
            clean::line(&one.reason)
        ));
    }
    let more = counts.failed.saturating_sub(dead.len() as u64);
    if more > 0 {
        lines.push(format!(
            "and {} more: kd batch results {}",
            grouped(more),
            short(&batch.about.id)
        ));
    }
    lines.extend(members(counts, failures));
    for line in lines {
        // A command stays on one line, so that it can be copied.
        let pieces = match line.starts_with("kd ") {
            true => vec![line],
            false => wrap(&line, columns.saturating_sub(3)),
        };
        for piece in pieces {
            text.push_str(&format!("  {piece}\n"));
        }
    }
    text
}

/// Returns a batch as an object; its schema is `docs/schemas/batch.schema.json`.
pub(crate) fn object(batch: &Batch, dead: &[Dead]) -> Value {
    let Batch {
        about,
        created,
        cancelled,
        time,
        spent,
        counts,
    } = batch;
    let failures: Vec<Value> = dead
        .iter()
        .map(
            |one| json!({"id": one.id, "n": one.n, "attempts": one.attempts, "reason": one.reason}),
        )
        .collect();
    json!({
        "v": BATCH.version,
        "id": about.id,
        "as": about.method,
        "questions": about.source,
        "results": about.output,
        "command": about.command,
        "fresh": about.fresh,
        "created_at": created,
        "cancelled": cancelled,
        "counts": {
            "total": counts.total,
            "waiting": counts.waiting,
            "running": counts.running,
            "answered": counts.answered,
            "cached": counts.cached,
            "failed": counts.failed,
            "cancelled": counts.cancelled,
        },
        "spent": {
            "calls": spent.calls,
            "tokens": spent.tokens,
            "usd": spent.usd(),
            "certainty": spent.certainty,
        },
        "seconds": time.as_millis() as f64 / 1e3,
        "failures": failures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::wrap::width;
    use kd_app::batch::NewBatch;
    use kd_core::usage::Certainty;

    fn progress() -> Progress {
        let mut progress = Progress::of(&Batch {
            counts: Counts {
                total: 12_000,
                waiting: 6_800,
                running: 32,
                answered: 5_126,
                cached: 310,
                failed: 42,
                cancelled: 0,
            },
            spent: Spent {
                calls: 15_001,
                tokens: 9_123_456,
                pico_usd: 12_345_600_000_000,
                certainty: Certainty::AtMost,
            },
            ..batch()
        });
        progress.ended = 4_000;
        progress.again = 17;
        progress
    }

    fn batch() -> Batch {
        Batch {
            about: NewBatch {
                id: "batch-3f1c90ab".into(),
                method: "deliberate".into(),
                source: "questions.jsonl".into(),
                output: Some("/home/u/results.jsonl".into()),
                command: "kd batch run questions.jsonl -o results.jsonl".into(),
                ..NewBatch::default()
            },
            counts: Counts {
                total: 200,
                answered: 197,
                cached: 2,
                failed: 3,
                ..Counts::default()
            },
            time: Duration::from_secs(64),
            ..Batch::default()
        }
    }

    #[test]
    fn the_progress_at_three_widths() {
        let mut text = String::new();
        for columns in [30, 80, 200] {
            text.push_str(&format!("-- {columns}\n"));
            let lines = region(
                &progress(),
                Duration::from_secs(1250),
                (columns, true),
                Styles::NONE,
            );
            for line in lines {
                assert!(width(&line) < columns, "{columns}: {line}");
                text.push_str(&line);
                text.push('\n');
            }
        }
        text.push_str(&line(&progress(), Duration::from_secs(1250)));
        let time = Duration::from_secs(1250);
        let ending = region(&progress(), time, (80, false), Styles::NONE).join("\n");
        assert!(
            !ending.contains("left") && !ending.contains("Ctrl+C"),
            "{ending}"
        );
        insta::assert_snapshot!("batch-progress", text);
    }

    #[test]
    fn the_end_and_the_status_say_what_to_type_next() {
        let dead = Dead {
            id: "q117".into(),
            n: 117,
            attempts: 3,
            reason: "ada: the service is overloaded\u{1b}[2J".into(),
        };
        let absent = [MemberFailures {
            member: "eve".into(),
            questions: 197,
            reason: "the service refused the key (HTTP 401)\u{1b}[2J".into(),
        }];
        let mut text = closing(
            &batch(),
            &absent,
            Why::Over,
            false,
            Some("results.jsonl"),
            80,
        )
        .join("\n");
        text.push_str("\n--\n");
        text.push_str(&status(
            &batch(),
            &[dead],
            &absent,
            Now::default(),
            80,
            Styles::NONE,
        ));
        text.push_str("--\n");
        let mut open = batch();
        open.counts.waiting = 90;
        open.counts.answered = 107;
        let now = Now {
            can_be_typed: true,
            ..Now::default()
        };
        text.push_str(&status(&open, &[], &[], now, 80, Styles::NONE));
        let limited = Now {
            is_limited: true,
            ..Now::default()
        };
        let text_of_limited = status(&open, &[], &[], limited, 80, Styles::NONE);
        for part in ["stopped by a limit", "left; was run as: "] {
            assert!(text_of_limited.contains(part), "{text_of_limited}");
        }
        text.push_str(&closing(&open, &[], Why::Limit, false, None, 80).join("\n"));
        assert!(!text.contains('\u{1b}'));
        let day = created(&batch());
        insta::assert_snapshot!("batch-end", text.replace(&day, "(created)"));
    }
}
