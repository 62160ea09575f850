//! Features of a reply as a whole.

use super::tokens::Token;
use super::view::{END, Row, View, feature, stem, word};

/// Adds what the whole reply shows about a candidate.
pub(super) fn of_candidate(
    row: &mut Row,
    item: usize,
    candidates: usize,
    views: &[View],
    named: &[usize],
    sides: bool,
) {
    let mut counts = vec![(0usize, 0usize); candidates];
    let mut last = None;
    for (n, view) in views.iter().enumerate() {
        for mention in &view.sentence.mentions {
            if let Some((count, rejected)) = counts.get_mut(mention.item) {
                *count += 1;
                *rejected += usize::from(mention.rejected);
            }
            if mention.item == item {
                last = Some(n);
            }
        }
    }
    let full = views
        .iter()
        .flat_map(|v| &v.sentence.mentions)
        .any(|m| m.item == item && !m.hint);
    let distinct = number(counts.iter().filter(|(count, _)| *count > 0).count());
    let (count, rejected) = counts[item];
    let others = || {
        counts
            .iter()
            .enumerate()
            .filter(|(n, _)| *n != item)
            .map(|(_, c)| *c)
    };
    let ruled_out = match (count, rejected) {
        (0, _) => "not named",
        (_, 0) => "no",
        (all, some) if all == some => "always",
        _ => "partly",
    };
    let most = others().map(|(count, _)| count).max().unwrap_or(0);
    let often = match count.cmp(&most) {
        std::cmp::Ordering::Less => "less",
        std::cmp::Ordering::Equal => "equal",
        std::cmp::Ordering::Greater => "more",
    };
    let yes = |truth: bool| if truth { "yes" } else { "no" };
    let only_left = yes(others().all(|(count, rejected)| count > 0 && rejected == count));
    let others_out = yes(others().all(|(count, rejected)| count == 0 || rejected > 0));
    let after = named.iter().rev().take_while(|n| Some(**n) != last).count();
    let is_last = yes(last.is_some() && last.as_ref() == named.last());
    let state = |n: Option<&usize>| {
        n.and_then(|n| views.get(*n))
            .map_or("-", |v| state(v, item))
    };
    let opens = state(named.first());
    let ends = state(named.last());
    let before = state(named.iter().rev().nth(1));
    let end = named.last().map_or("-", |n| match views.len() - 1 - n {
        0 => "last",
        1 => "last but one",
        _ => "inside",
    });
    let at_once = yes(named.first() == Some(&0));
    let lead = if sides { "side" } else { "" };
    let mut add = |parts: &[&str]| {
        let mut all = vec![lead];
        all.extend_from_slice(parts);
        row.push(feature(&all));
    };
    add(&["ends", opens, ends]);
    add(&["ends 3", opens, before, ends]);
    add(&["ends at", opens, ends, end, at_once]);
    add(&["ends often", opens, ends, often, distinct]);
    add(&["count", number(count), distinct]);
    add(&["count ruled out", number(count), ruled_out, distinct]);
    add(&["only left", only_left, ruled_out]);
    add(&["others out", others_out, ruled_out, distinct]);
    add(&["often", often, distinct]);
    add(&["is last", is_last, often]);
    add(&["after", number(after)]);
    if !full && count > 0 {
        add(&["hints", number(count), often, is_last]);
        add(&["hints ends", opens, ends]);
    }
}

/// Adds the classes of what follows the last sentence with a mention: an answer in other words.
pub(super) fn of_tail(row: &mut Row, item: Option<usize>, views: &[View], named: &[usize]) {
    let Some(last) = named.last() else { return };
    let own = match item {
        None => "none",
        Some(item) if !names(views, item) => "unnamed",
        Some(item) => state(&views[*last], item),
    };
    let behind = &views[last + 1..];
    row.push(feature(&["tail", own, number(behind.len())]));
    let mut seen: Vec<&str> = behind
        .iter()
        .flat_map(|v| v.classes.iter().map(|(_, class)| *class))
        .collect();
    seen.sort_unstable();
    seen.dedup();
    for class in &seen {
        row.push(feature(&["tail class", own, class]));
    }
    for view in behind {
        for pair in view.classes.windows(2) {
            row.push(feature(&["tail classes", own, pair[0].1, pair[1].1]));
        }
        let [first, second] = [0, 1].map(|n| word(view.tokens, Some(n)));
        row.push(feature(&["tail opens", own, first]));
        row.push(feature(&["tail opens", own, first, second]));
    }
}

/// Returns whether a reply names a candidate.
fn names(views: &[View], item: usize) -> bool {
    let mut all = views.iter().flat_map(|v| &v.sentence.mentions);
    all.any(|m| m.item == item)
}

fn number(count: usize) -> &'static str {
    ["0", "1", "2", "3"].get(count).copied().unwrap_or("more")
}

/// Returns whether a sentence names a candidate, others, or both.
fn state(view: &View, item: usize) -> &'static str {
    let own = || view.sentence.mentions.iter().filter(|m| m.item == item);
    let other = view.sentence.mentions.iter().any(|m| m.item != item);
    match (own().next().is_some(), other, own().any(|m| m.rejected)) {
        (true, false, true) => "ruled out",
        (true, true, true) => "ruled out beside others",
        (true, false, false) => "alone",
        (true, true, false) => "beside others",
        _ => "others",
    }
}

/// Adds the words of the whole reply to "no answer"; for yes and no also to each side, which may not be named.
pub(super) fn of_reply(rows: &mut [Row], views: &[View], sides: bool) {
    let none = rows.len() - 1;
    let mut items: Vec<usize> = views
        .iter()
        .flat_map(|v| v.sentence.mentions.iter().map(|m| m.item))
        .collect();
    items.sort_unstable();
    items.dedup();
    let all = if items.len() == none && none > 1 {
        "all"
    } else {
        ""
    };
    for parts in [
        &["none"][..],
        &["none", "distinct", number(items.len())],
        &["none", "named", all],
        &["none", "sentences", number(views.len())],
    ] {
        rows[none].push(feature(parts));
    }
    let all: &[(usize, &str)] = match sides {
        true => &[(0, "yes"), (1, "no"), (2, "none")],
        false => &[(none, "none")],
    };
    for (row, name) in all {
        if let Some(row) = rows.get_mut(*row) {
            row.push(feature(&[name]));
            for view in views {
                of_sentence(row, name, view, sides);
            }
        }
    }
}

fn of_sentence(row: &mut Row, name: &str, view: &View, sides: bool) {
    let place = match view.place {
        "only" | "last" => "last",
        "first" => "first",
        _ => "",
    };
    let mut add = |parts: &[&str]| {
        let mut all = vec![name];
        all.extend_from_slice(parts);
        row.push(feature(&all));
        if !place.is_empty() {
            all.push(place);
            all.push("at");
            row.push(feature(&all));
        }
    };
    let shown = |token: &'_ Token| -> Option<&'static str> {
        let mention = view.sentence.mentions.get(token.mention?)?;
        Some(match (sides, mention.item) {
            (true, 0) => "# yes",
            (true, 1) => "# no",
            _ => "#",
        })
    };
    let word = |n: usize| match view.tokens.get(n) {
        None => END,
        Some(token) => shown(token).unwrap_or(&token.text),
    };
    let class = |n: usize| match view.classes.get(n) {
        None => END,
        Some((at, class)) => shown(&view.tokens[*at]).unwrap_or(class),
    };
    for n in 0..view.classes.len() {
        add(&["class", class(n)]);
        add(&["class 2", class(n), class(n + 1)]);
        add(&["class 3", class(n), class(n + 1), class(n + 2)]);
    }
    for n in 0..view.tokens.len() {
        add(&["word", word(n)]);
        if let Some(stem) = stem(word(n)) {
            add(&["word", stem, "…"]);
        }
        add(&["word 2", word(n), word(n + 1)]);
        if sides {
            add(&["word 3", word(n), word(n + 1), word(n + 2)]);
        }
    }
    add(&["opens", word(0)]);
    add(&["opens 2", word(0), word(1)]);
    if place == "last" {
        add(&["end", word(view.tokens.len().saturating_sub(1))]);
        add(&["length", view.length]);
    }
}
