//! Strips the parts of a reply that are not its answer: thoughts in tags, and quoted answers between our prompt
//! markers.

/// Removes the text of other members between our prompt markers: from `<<1f2e Answer A` to `1f2e>>`.
pub(super) fn without_fenced_words(text: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in text.split('\n') {
        let bare = line.trim();
        inside |= bare.starts_with("<<")
            || bare
                .rsplit_once("<<")
                .is_some_and(|(_, tail)| tail.contains("Answer"));
        if !inside {
            out.push(line);
        }
        inside &= !bare.ends_with(">>");
    }
    // A marker that is never closed does not count.
    match inside {
        true => text.to_owned(),
        false => out.join("\n"),
    }
}

/// The names of the tags into which models write their thinking. Text between them is shown to nobody.
pub const THINKING_TAGS: [&str; 5] = ["think", "thinking", "thought", "reasoning", "scratchpad"];

/// Tags whose opening tag some services leave out: all text before the closing tag is thinking.
const BEGUN_BY_SERVICES: [&str; 2] = ["</think>", "</thinking>"];

/// Returns the text after thinking whose first tag is missing. A tag in code is text, and so is the end of any other tag:
/// a reply that shows a template must not lose the text before it.
pub fn after_thinking(text: &str) -> &str {
    let lower = text.to_ascii_lowercase();
    let first = THINKING_TAGS
        .iter()
        .filter_map(|name| lower.find(&format!("<{name}")));
    let begin = first.min().unwrap_or(lower.len());
    let mut at = 0;
    let mut fence: Option<&str> = None;
    for line in lower.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if start >= begin {
            break;
        }
        let bare = line.trim();
        match fence {
            Some(mark) => {
                if bare.starts_with(mark) && bare.trim_start_matches(&mark[..1]).is_empty() {
                    fence = None;
                }
                continue;
            }
            None => {
                fence = ["```", "~~~"]
                    .into_iter()
                    .find(|mark| bare.starts_with(mark))
            }
        }
        let ends = BEGUN_BY_SERVICES.iter().filter_map(|end| {
            let places = line.match_indices(end).map(|(place, _)| place);
            let mut outside = places.filter(|place| !is_in_span(line, *place));
            outside.next().map(|place| start + place + end.len())
        });
        if let Some(end) = ends.min().filter(|end| fence.is_none() && *end <= begin) {
            return &text[end..];
        }
    }
    text
}

/// Returns whether a place of a line is between two runs of backticks of the same length.
fn is_in_span(line: &str, place: usize) -> bool {
    let mut rest = line;
    let mut at = 0;
    while let Some(open) = rest.find('`') {
        let inside = rest[open..].trim_start_matches('`');
        let run = rest.len() - open - inside.len();
        let from = at + open + run;
        let closing = runs(inside).find(|(_, length)| *length == run);
        let to = closing.map(|(place, _)| from + place);
        if to.is_some_and(|to| (from..to).contains(&place)) {
            return true;
        }
        at = to.map_or(from, |to| to + run);
        rest = &line[at..];
    }
    false
}

/// Returns the runs of backticks in a text: where each begins, and its length.
fn runs(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let begin = at + text[at..].find('`')?;
        let after = text[begin..].trim_start_matches('`');
        at = text.len() - after.len();
        Some((begin, at - begin))
    })
}

/// Removes the text between two tags. A first tag that is not closed is text, unless the reply begins with it.
fn without_pairs(text: &str, open: &str, close: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    for count in 0.. {
        let Some(start) = rest.find(open) else { break };
        let after = &rest[start..];
        let end = match count < THOUGHTS_MAX {
            true => after.find(close),
            false => after.rfind(close),
        };
        let Some(end) = end else {
            if out.trim().is_empty() && rest[..start].trim().is_empty() {
                return out;
            }
            break;
        };
        out.push_str(&rest[..start]);
        rest = &after[end + close.len()..];
    }
    // The end of a thought that never began.
    out + &rest.replace(close, "\n")
}

/// Removes thoughts: text in thinking tags, or before a closing tag whose first one a service left out.
pub fn without_thoughts(text: &str) -> String {
    // Text between these is not an answer, but may be meant for the user.
    const FURTHER: &[(&str, &str)] = &[
        ("<reflection>", "</reflection>"),
        ("<analysis>", "</analysis>"),
        ("[THINK]", "[/THINK]"),
        ("◁think▷", "◁/think▷"),
        ("<|channel|>analysis", "<|channel|>final"),
        ("<seed:think>", "</seed:think>"),
    ];
    let mut text = without_fenced_words(text);
    text = after_thinking(&text).to_owned();
    for name in THINKING_TAGS {
        text = without_pairs(&text, &format!("<{name}>"), &format!("</{name}>"));
    }
    for (open, close) in FURTHER {
        for _ in 0..THOUGHTS_MAX {
            let Some(end) = text.find(close) else { break };
            let start = text.get(..end).and_then(|t| t.find(open)).unwrap_or(0);
            text.replace_range(start..end + close.len(), "");
        }
        if let Some(last) = text.rfind(close) {
            text.replace_range(..last + close.len(), "");
        }
        if let Some(start) = text.find(open) {
            text.truncate(start);
        }
    }
    for mark in [
        "<|message|>",
        "<|im_end|>",
        "<|end|>",
        "<|eot_id|>",
        "</s>",
        "<|return|>",
        "<answer>",
        "</answer>",
        "<final>",
        "</final>",
    ] {
        if mark.starts_with("<answer") || mark.starts_with("<final") {
            text = text.replace(mark, "\nFinal answer: ");
        } else {
            text = text.replace(mark, "\n");
        }
    }
    text
}

/// Maximum number of thoughts of one kind in a reply. All text after that counts as one thought.
pub(super) const THOUGHTS_MAX: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_removed_and_tags_that_are_shown_are_not() {
        for (reply, read) in [
            ("<think>Hm.</think>Yes.", "Yes."),
            ("<think>Hm", ""),
            ("a<reasoning>b</reasoning>c<thought>d</thought>e", "ace"),
            (
                "Wrap it in <reasoning>. Then call.",
                "Wrap it in <reasoning>. Then call.",
            ),
            ("I wonder.</think>Yes.", "Yes."),
            (
                "A ```fence``` first.\n```\nx\n```\nSo.\n</thinking>\nYes.",
                "\nYes.",
            ),
        ] {
            assert_eq!(without_thoughts(reply), read, "{reply}");
        }
        for reply in [
            "```xml\n<x>\n</think>\n```\nIt works.",
            "~~~\n```\n</thinking>\n~~~\nIt works.",
            "Close it with `</think>` or ``a ` </think>``. Yes.",
            "Close it with </reasoning>. Yes.",
            "Begin with <thought>, not with </think>.",
        ] {
            assert_eq!(after_thinking(reply), reply);
        }
    }

    #[test]
    fn thoughts_beyond_the_maximum_are_one() {
        let many = "a<think>b</think>".repeat(THOUGHTS_MAX + 5);
        assert_eq!(without_thoughts(&many), "a".repeat(THOUGHTS_MAX + 1));
    }
}
