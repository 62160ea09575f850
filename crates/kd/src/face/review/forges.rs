//! A report in the formats of two large code hosts' comment APIs. `kd` does not post; the user's own tool does.

use super::markdown;
use kd_app::review::report::{Kept, Place};
use kd_app::words::count;
use kd_core::review::{Finding, Reported};
use serde_json::{Value, json};

/// Maximum bytes of a text: GitHub refuses more than 65,536 characters, and with it the whole review.
const BODY_BYTES_MAX: usize = 60_000;

/// Builds the body of `POST /repos/OWNER/REPO/pulls/N/reviews`: a comment at each finding whose lines the diff shows,
/// the others in the text above. It neither approves nor requests changes.
pub(super) fn github(kept: &Kept, all: bool) -> Value {
    let mut comments = Vec::new();
    let mut others = Vec::new();
    for (finding, about) in findings(kept, all) {
        let Some((_, first, last)) = shown(kept, about) else {
            others.push(elsewhere(kept, finding, about));
            continue;
        };
        let mut comment = json!({
            "path": about.file,
            "line": last,
            "side": "RIGHT",
            "body": markdown::comment(kept, finding, about),
        });
        if first < last {
            comment["start_line"] = json!(first);
            comment["start_side"] = json!("RIGHT");
        }
        comments.push(comment);
    }
    let mut review = json!({
        "event": "COMMENT",
        "body": body(kept, &others),
        "comments": comments,
    });
    if let Some(commit) = &kept.head_commit {
        review["commit_id"] = json!(commit);
    }
    review
}

/// Builds the bodies of `POST /projects/ID/merge_requests/N/discussions`: the summary, then one per finding. A finding
/// has a position if the diff shows its last line and both commits are known.
pub(super) fn gitlab(kept: &Kept, all: bool) -> Value {
    let mut discussions = Vec::new();
    let mut others = Vec::new();
    for (finding, about) in findings(kept, all) {
        let at = shown(kept, about).zip(kept.base_commit.as_ref().zip(kept.head_commit.as_ref()));
        let Some(((place, _, last), (base, head))) = at else {
            others.push(elsewhere(kept, finding, about));
            continue;
        };
        let mut position = json!({
            "position_type": "text",
            "base_sha": base,
            "start_sha": base,
            "head_sha": head,
            "old_path": place.old,
            "new_path": place.file,
            "new_line": last,
        });
        if let Some(Some(old)) = place.find(last) {
            position["old_line"] = json!(old);
        }
        discussions
            .push(json!({"body": markdown::comment(kept, finding, about), "position": position}));
    }
    discussions.insert(0, json!({"body": body(kept, &others)}));
    Value::Array(discussions)
}

fn findings(kept: &Kept, all: bool) -> impl Iterator<Item = (&Reported, &Finding)> {
    let (shown, alone) = kept.folded();
    let all = shown
        .into_iter()
        .chain(alone.into_iter().filter(move |_| all));
    all.filter_map(|finding| Some((finding, finding.finding()?)))
}

/// Returns the lines of a finding that the diff shows: the last one, and the first of the unbroken run that ends there.
fn shown<'k>(kept: &'k Kept, about: &Finding) -> Option<(&'k Place, u32, u32)> {
    let place = kept.places.iter().find(|place| place.file == about.file)?;
    let lines = about.lines.first..=about.lines.last;
    let last = lines
        .clone()
        .rev()
        .take(1000)
        .find(|line| place.find(*line).is_some())?;
    let together = (about.lines.first..=last).rev().take(1000);
    let first = together
        .take_while(|line| place.find(*line).is_some())
        .last()?;
    Some((place, first, last))
}

fn elsewhere(kept: &Kept, finding: &Reported, about: &Finding) -> String {
    let place = markdown::code(&super::place(about));
    format!("{place}: {}", markdown::comment(kept, finding, about))
}

fn body(kept: &Kept, others: &[String]) -> String {
    let (shown, alone) = kept.folded();
    let mut body = format!("`kd review`: {}; {}.", kept.found(&shown), kept.reviewers());
    if !alone.is_empty() {
        body += &format!(
            " Only one member saw {} more.",
            count(alone.len() as u64, "finding")
        );
    }
    let mut left = others.len();
    for other in others {
        if body.len() + other.len() > BODY_BYTES_MAX {
            break;
        }
        body += &format!("\n\n{other}");
        left -= 1;
    }
    if left > 0 {
        let left = count(left as u64, "finding");
        body += &format!("\n\nLeft out for their length: {left}. `kd review show` prints all.");
    }
    let room = (BODY_BYTES_MAX + BODY_BYTES_MAX / 16).saturating_sub(body.len());
    body + &markdown::notes(kept, room)
}
