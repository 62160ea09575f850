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

/// Removes thoughts: text in thinking tags, or before a closing tag without an opening one.
pub fn without_thoughts(text: &str) -> String {
    // Text between these is no answer, but may be meant for the user.
    const FURTHER: &[(&str, &str)] = &[
        ("<reflection>", "</reflection>"),
        ("<analysis>", "</analysis>"),
        ("[THINK]", "[/THINK]"),
        ("◁think▷", "◁/think▷"),
        ("<|channel|>analysis", "<|channel|>final"),
        ("<seed:think>", "</seed:think>"),
    ];
    let mut text = without_fenced_words(text);
    let thinking = THINKING_TAGS.map(|name| (format!("<{name}>"), format!("</{name}>")));
    let thinking = thinking.iter().map(|(open, close)| (&**open, &**close));
    for (open, close) in thinking.chain(FURTHER.iter().copied()) {
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

/// Maximum number of thoughts of one kind in a reply; the text after that is one thought.
pub(super) const THOUGHTS_MAX: usize = 50;
