//! Refine: the same members improve the existing answers.

use super::Next;
use crate::clean::clean_line;
use crate::deliberation::blind;
use crate::deliberation::frame::Frame;
use crate::memory::sentences;

/// Maximum characters of the leading answer in the focus.
const LEADER_CHARS_MAX: usize = 200;

pub(super) fn frames(next: &Next<'_>) -> Vec<Frame> {
    let task = "Improve the leading answer: meet its open issues, or give a better one.";
    let focus = match leader(next) {
        Some(leader) => format!("{task} It is: “{leader}”."),
        None => task.to_owned(),
    };
    vec![next.pass(next.protocol.steps, &focus)]
}

/// Returns the answer with the most support, in one line, unless tied.
fn leader(next: &Next<'_>) -> Option<String> {
    if next.plan.reading == 0 {
        return None;
    }
    let counted = next.last.counted.as_ref()?;
    let backers = |c: &usize| counted.backers_of(*c);
    let most = (0..next.last.candidates.len()).map(|c| backers(&c)).max()?;
    let mut leaders = (0..next.last.candidates.len()).filter(|c| backers(c) == most);
    let leader = leaders
        .next()
        .filter(|_| most > 0 && leaders.next().is_none())?;
    let text = blind::anonymous(next.plan, &next.last.candidates[leader].text);
    let first = sentences(&text, 1).into_iter().next()?;
    Some(clean_line(&first, LEADER_CHARS_MAX))
}
