//! Splits a streamed reply into the text for the user and the text for the other member.
//!
//! Input: pieces of a reply, cut anywhere. Output: the text outside `<council>` tags as soon as it is certain, and at
//! the end the messages inside them. The cuts do not affect either text. `docs/think.md` specifies unclosed, nested,
//! capitalized, escaped tags, tags with attributes, and tags in code; a test reads that table.
//!
//! Based on the original debate in tags, which removed tags only after the text had been shown.

use kd_reading::THINKING_TAGS;

/// The name of the tag around messages to the other member, ignoring case. Text inside [`THINKING_TAGS`] is discarded.
const MESSAGE: &str = "council";
/// Maximum length of a tag in bytes. A longer tag counts as ended, so that attributes cannot hide a message.
const TAG_BYTES_MAX: usize = 256;
/// Maximum spaces between the brackets and the name.
const BLANKS_MAX: usize = 8;
/// Minimum letters of the name in a tag cut off by the end of a reply, to tell it from text such as `a<c`.
const LETTERS_MIN: usize = 2;
/// Maximum number of unclosed tags of thinking that are given back as text; after that all are text.
const GIVEN_BACK_MAX: u32 = 8;

/// A reply being split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Splitter {
    /// Number of open tags; 0 is outside. All have the name of the first.
    depth: u32,
    name: &'static str,
    /// A `<` and the text after it while it may be a tag.
    held: String,
    /// A complete tag right after a backtick; one right after it makes it code.
    ticked: bool,
    /// The message in the open tag so far; for thinking also the tags, since it is text if it is never closed.
    inside: String,
    /// Whether any text other than blanks is outside tags.
    begun: bool,
    /// The number of unclosed tags of thinking that were given back as text.
    given_back: u32,
    /// Whether the rules of before the other names of thinking apply: only `think`, private to the end if unclosed.
    older: bool,
    /// Messages whose tags are closed.
    council: Vec<String>,
    /// The last character of the current text, and the number of backslashes at its end.
    last: Option<char>,
    backslashes: u32,
    line: Line,
    /// The code fence open outside tags: its character and its length.
    fence: Option<(char, u32)>,
    /// The text of the open fence from its first tag on. If the fence is closed it is code; otherwise its tags count.
    fenced: Option<String>,
    /// Treats code fences as text.
    fences_are_text: bool,
}

/// The meaning of a `<` and the characters after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Partial,
    Text,
    Open,
    Close,
    /// Opened and closed at once.
    Empty,
}

impl Splitter {
    /// Creates a splitter by the rules of older records.
    pub(crate) fn older() -> Self {
        Self {
            older: true,
            ..Self::default()
        }
    }

    /// Adds a piece; returns the text outside the tags that is now certain.
    pub fn push(&mut self, piece: &str) -> String {
        let mut spoken = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.take(c, &mut spoken);
        }
        spoken
    }

    /// Ends the reply; returns the rest of the text outside, and all non-blank messages inside.
    pub fn finish(mut self) -> (String, Vec<String>) {
        let mut spoken = String::new();
        if let Some(fenced) = self.fenced.take() {
            if std::mem::take(&mut self.line)
                .fence_after(self.fence)
                .is_none()
            {
                return (fenced, self.council);
            }
            let mut rest = Self {
                fences_are_text: true,
                council: self.council,
                begun: true,
                given_back: self.given_back,
                older: self.older,
                ..Self::default()
            };
            spoken = rest.push(&fenced);
            let (end, council) = rest.finish();
            return (spoken + &end, council);
        }
        if self.ticked {
            self.tag(self.classify(), &mut spoken);
        } else if !self.held.is_empty() && !self.hides_cut_tag() {
            self.give_up_held(&mut spoken);
        }
        if self.is_unclosed_thinking() {
            let thought = std::mem::take(&mut self.inside) + &self.held;
            let mut rest = Self {
                line: self.line,
                fences_are_text: self.fences_are_text,
                council: self.council,
                begun: true,
                given_back: self.given_back + 1,
                ..Self::default()
            };
            let mut letters = thought.chars();
            if let Some(first) = letters.next() {
                rest.text(first, &mut spoken);
            }
            spoken += &rest.push(letters.as_str());
            let (end, council) = rest.finish();
            return (spoken + &end, council);
        }
        if self.depth > 0 {
            self.keep_message();
        }
        (spoken, self.council)
    }

    /// Returns whether a reply that ends here is inside a tag of thinking that is text: only thinking begins a reply
    /// without being closed, and a closing tag that is cut off closes.
    fn is_unclosed_thinking(&self) -> bool {
        let closes = head(&self.held).is_some_and(|(_, closing, _)| closing);
        self.depth > 0 && self.name != MESSAGE && self.begun && !self.older && !closes
    }

    /// Returns whether the text held back at the end is the beginning of a private tag.
    fn hides_cut_tag(&self) -> bool {
        let closes = head(&self.held).is_some_and(|(_, closing, _)| closing);
        let is_text = self.depth == 0 && self.begun && !self.older && !closes;
        is_cut_tag(&self.held) && !(is_text && self.classify().0 != MESSAGE)
    }

    /// Classifies the text held back, as far as it is known.
    fn classify(&self) -> (&'static str, Verdict) {
        let thinking = match (self.older, self.given_back > GIVEN_BACK_MAX) {
            (_, true) => &[],
            (true, false) => &THINKING_TAGS[..1],
            (false, false) => &THINKING_TAGS[..],
        };
        let names = thinking.iter().copied().chain([MESSAGE]);
        names
            .map(|name| (name, classify_as(&self.held, name)))
            .find(|(_, verdict)| *verdict != Verdict::Text)
            .unwrap_or((MESSAGE, Verdict::Text))
    }

    /// Returns whether the reply is currently inside a tag.
    pub fn is_inside(&self) -> bool {
        self.depth > 0
    }

    fn take(&mut self, c: char, spoken: &mut String) {
        if self.fenced.is_some() {
            return self.hold(c, spoken);
        }
        if self.ticked {
            self.ticked = false;
            if c == '`' {
                let code = std::mem::take(&mut self.held);
                code.chars().for_each(|c| self.text(c, spoken));
                return self.text(c, spoken);
            }
            self.tag(self.classify(), spoken);
            return self.take(c, spoken);
        }
        if self.held.is_empty() {
            if c == '<' && (self.backslashes.is_multiple_of(2) || self.fence.is_some()) {
                self.held.push(c);
            } else {
                self.text(c, spoken);
            }
            return;
        }
        self.held.push(c);
        match self.classify() {
            (_, Verdict::Partial) => {}
            (_, Verdict::Text) => self.give_up_held(spoken),
            _ if self.fence.is_some() => {
                self.fenced = Some(String::new());
                let held = std::mem::take(&mut self.held);
                held.chars().for_each(|c| self.take(c, spoken));
            }
            _ if self.last == Some('`') && c == '>' => self.ticked = true,
            named => {
                if c == '<' {
                    self.held.pop();
                }
                self.tag(named, spoken);
                if c == '<' {
                    // It cut off the tag, and may begin another.
                    self.take(c, spoken);
                }
            }
        }
    }

    /// Treats the `<` as text; the text after it may still begin a tag.
    fn give_up_held(&mut self, spoken: &mut String) {
        let held = std::mem::take(&mut self.held);
        let mut rest = held.chars();
        if let Some(first) = rest.next() {
            self.text(first, spoken);
        }
        rest.for_each(|c| self.take(c, spoken));
    }

    /// Processes a character of a fence that contains a tag.
    fn hold(&mut self, c: char, spoken: &mut String) {
        if let Some(fenced) = &mut self.fenced {
            fenced.push(c);
        }
        if c != '\n' {
            return self.line.push(c);
        }
        self.fence = std::mem::take(&mut self.line).fence_after(self.fence);
        if self.fence.is_none() {
            spoken.push_str(&self.fenced.take().unwrap_or_default());
            (self.last, self.backslashes) = (Some(c), 0);
        }
    }

    /// Processes a character outside any tag.
    fn text(&mut self, c: char, spoken: &mut String) {
        self.last = Some(c);
        self.backslashes = if c == '\\' { self.backslashes + 1 } else { 0 };
        if self.depth > 0 {
            self.inside.push(c);
            return;
        }
        spoken.push(c);
        self.begun |= !c.is_whitespace();
        if c == '\n' {
            let fence = std::mem::take(&mut self.line).fence_after(self.fence);
            self.fence = fence.filter(|_| !self.fences_are_text);
        } else {
            self.line.push(c);
        }
    }

    fn tag(&mut self, (name, verdict): (&'static str, Verdict), spoken: &mut String) {
        if self.depth > 0 && name != self.name {
            // A tag of another name is part of the private text.
            let held = std::mem::take(&mut self.held);
            return held.chars().for_each(|c| self.text(c, spoken));
        }
        self.name = name;
        let held = std::mem::take(&mut self.held);
        if name != MESSAGE && (self.depth > 0 || verdict == Verdict::Open) {
            self.inside.push_str(&held);
        }
        self.last = None;
        self.backslashes = 0;
        match verdict {
            Verdict::Open => self.depth = self.depth.saturating_add(1),
            Verdict::Close if self.depth == 1 => {
                self.depth = 0;
                self.keep_message();
            }
            // A closing tag without an opening one is discarded.
            Verdict::Close => self.depth = self.depth.saturating_sub(1),
            Verdict::Empty | Verdict::Partial | Verdict::Text => {}
        }
    }

    fn keep_message(&mut self) {
        let message = std::mem::take(&mut self.inside);
        let message = message.trim();
        if !message.is_empty() && self.name == MESSAGE {
            self.council.push(message.to_owned());
        }
    }
}

/// Classifies a text that begins with `<`, assuming this tag name.
fn classify_as(held: &str, tag: &str) -> Verdict {
    let Some((blanks, closing, name)) = head(held) else {
        return Verdict::Text;
    };
    let Some(rest) = after_name(name, tag) else {
        return Verdict::Text;
    };
    let Some(rest) = rest else {
        return Verdict::Partial;
    };
    let done = |empty| match (closing, empty) {
        (true, _) => Verdict::Close,
        (false, true) => Verdict::Empty,
        (false, false) => Verdict::Open,
    };
    match rest.chars().next() {
        None => return Verdict::Partial,
        Some('>') => return done(false),
        Some(c) if c == '/' || c.is_whitespace() => {}
        Some(_) => return Verdict::Text,
    }
    // `< council` followed by words is a comparison, not a tag.
    if blanks > 0 && !closing && !rest.trim_start().is_empty() && rest.trim_start() != ">" {
        return Verdict::Text;
    }
    let mut quote = None;
    let mut before = ' ';
    for c in rest.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') && before == '=' => quote = Some(c),
            None if c == '>' => return done(before == '/'),
            // A tag within a tag: the outer one was never completed.
            None if c == '<' => return done(false),
            None => {}
        }
        before = c;
    }
    if held.len() >= TAG_BYTES_MAX {
        return done(false);
    }
    Verdict::Partial
}

/// Returns the spaces before the name, whether the tag closes, and the rest; `None` if no tag looks like this.
fn head(held: &str) -> Option<(usize, bool, &str)> {
    let blank = char::is_whitespace;
    let rest = held.strip_prefix('<')?;
    let name = rest.trim_start_matches(blank);
    let before = rest.len() - name.len();
    let (closing, name) = match name.strip_prefix('/') {
        Some(name) => (true, name),
        None => (false, name),
    };
    let bare = name.trim_start_matches(blank);
    let between = name.len() - bare.len();
    (before <= BLANKS_MAX && between <= BLANKS_MAX && (closing || between == 0)).then_some((
        before + between,
        closing,
        bare,
    ))
}

/// The text after the name: `None` if this is another name, `Some(None)` if it is incomplete.
#[expect(
    clippy::option_option,
    reason = "another name, a name in the making, a name"
)]
fn after_name<'t>(text: &'t str, name: &str) -> Option<Option<&'t str>> {
    let letters = text.len().min(name.len());
    let begun = text.get(..letters)?;
    if !name.get(..letters)?.eq_ignore_ascii_case(begun) {
        return None;
    }
    Some((letters == name.len()).then(|| &text[letters..]))
}

/// Returns whether a text cut off by the end of a reply was the beginning of a tag.
fn is_cut_tag(held: &str) -> bool {
    head(held)
        .is_some_and(|(_, closing, name)| name.len() >= LETTERS_MIN || closing && !name.is_empty())
}

/// The current line of the visible text, for code fences (CommonMark 4.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line {
    indent: u32,
    /// The fence character at the beginning of the line.
    mark: Option<char>,
    run: u32,
    /// The state of the text after the run: whether it has begun, has words, or has a backtick.
    ended: bool,
    words: bool,
    ticks: bool,
}

impl Line {
    fn push(&mut self, c: char) {
        if self.mark.is_none() && !self.words {
            match c {
                ' ' => return self.indent += 1,
                '\t' => return self.indent += 4,
                '`' | '~' => self.mark = Some(c),
                _ => self.words = true,
            }
        }
        if Some(c) == self.mark && !self.ended {
            self.run += 1;
        } else {
            self.ended = true;
            self.words |= !c.is_whitespace();
            self.ticks |= c == '`';
        }
    }

    /// Returns the fence that is open after this line.
    fn fence_after(self, open: Option<(char, u32)>) -> Option<(char, u32)> {
        match (open, self.mark) {
            (Some((c, length)), Some(mark)) if mark == c && self.run >= length && !self.words => {
                None
            }
            (None, Some(mark)) if self.run >= 3 && self.indent <= 3 => {
                (mark == '~' || !self.ticks).then_some((mark, self.run))
            }
            _ => open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, Vec<String>) {
        let mut splitter = Splitter::default();
        let mut spoken: String = pieces.into_iter().map(|p| splitter.push(p)).collect();
        let (rest, council) = splitter.finish();
        spoken.push_str(&rest);
        (spoken, council)
    }

    /// Returns the rows of the table in the manual: description, reply, text for the user, text for the other member.
    /// In the manual, `↵` is a line end and `∅` is nothing.
    fn manual() -> Vec<[String; 4]> {
        let page = include_str!("../../../../docs/think.md");
        let (_, table) = page.split_once("<!-- tags -->").expect("the table begins");
        let (table, _) = table.split_once("<!-- /tags -->").expect("the table ends");
        let cell = |cell: &str| {
            let cell = cell.trim();
            let code = cell.strip_prefix("`` ").and_then(|c| c.strip_suffix(" ``"));
            let code = code.or_else(|| cell.strip_prefix('`').and_then(|c| c.strip_suffix('`')));
            code.unwrap_or(cell).replace('↵', "\n").replace('∅', "")
        };
        let rows: Vec<[String; 4]> = table
            .lines()
            .filter(|l| l.starts_with("| ") && !l.starts_with("| what"))
            .map(|l| {
                let cells: Vec<String> = l.trim_matches('|').split(" | ").map(cell).collect();
                cells
                    .try_into()
                    .unwrap_or_else(|_| panic!("four cells: {l}"))
            })
            .collect();
        assert!(rows.len() >= 20, "{} rows", rows.len());
        rows
    }

    #[test]
    fn the_manual_tells_the_truth() {
        for [what, reply, king, other] in manual() {
            let (spoken, council) = split([reply.as_str()]);
            assert_eq!(spoken, king, "{what}: {reply:?}");
            assert_eq!(council.join(" + "), other, "{what}: {reply:?}");
        }
    }

    #[test]
    fn every_split_of_the_short_samples_is_the_same() {
        for sample in [
            "<council>a</",
            "a<CoUnCiL x>",
            "\\<council>`b",
            "~~~\n<council",
            "~~~\n<council>\n~~~",
            "<\ncouncil>a",
            "<think>a</think>",
            "<thinking>a",
            "a<thought>b<",
            "`<council>`é",
        ] {
            let cuts: Vec<usize> = sample.char_indices().map(|(i, _)| i).skip(1).collect();
            let whole = split([sample]);
            for mask in 0u32..1 << cuts.len() {
                let chosen = cuts
                    .iter()
                    .enumerate()
                    .filter(|(bit, _)| mask >> bit & 1 == 1);
                let ends: Vec<usize> = [0]
                    .into_iter()
                    .chain(chosen.map(|(_, cut)| *cut))
                    .chain([sample.len()])
                    .collect();
                let pieces = ends.windows(2).map(|w| &sample[w[0]..w[1]]);
                assert_eq!(split(pieces), whole, "{sample:?} {mask:b}");
            }
        }
    }

    /// From the state before any character, any piece leads to the same state and text as its characters one by one. By
    /// induction, so does every one of the 2^(n-1) splits of the sample.
    #[test]
    fn every_split_of_every_row_of_the_manual_is_the_same() {
        for [_, sample, ..] in manual() {
            let ends: Vec<usize> = sample
                .char_indices()
                .map(|(i, _)| i)
                .chain([sample.len()])
                .collect();
            let mut states = vec![(Splitter::default(), String::new())];
            for w in ends.windows(2) {
                let (mut splitter, mut spoken) = states[states.len() - 1].clone();
                spoken += &splitter.push(&sample[w[0]..w[1]]);
                states.push((splitter, spoken));
            }
            for (i, (splitter, spoken)) in states.iter().enumerate() {
                for (j, state) in states.iter().enumerate().skip(i) {
                    let mut splitter = splitter.clone();
                    let spoken = spoken.clone() + &splitter.push(&sample[ends[i]..ends[j]]);
                    assert_eq!(&(splitter, spoken), state, "{sample:?} from {i} to {j}");
                }
            }
        }
    }

    #[test]
    fn every_tag_of_thinking_is_private_and_text_in_code() {
        for name in THINKING_TAGS {
            for (reply, shown) in [
                (format!("<{name}>SECRET</{name}>Yes."), "Yes.".to_owned()),
                (format!("\n<{} x>SECRET", name.to_uppercase()), "\n".into()),
                // Without an end it is text, and no answer is lost.
                (
                    format!("Yes.<{} x>No.", name.to_uppercase()),
                    format!("Yes.<{} x>No.", name.to_uppercase()),
                ),
                (
                    format!("Use <{name}>.<{name}>SECRET</{name}>Then stop.<council>x"),
                    format!("Use <{name}>.Then stop."),
                ),
                (format!("Yes.<{name}>SECRET</{name}"), "Yes.".into()),
                (format!("Yes <{name}"), format!("Yes <{name}")),
                (format!("Write `<{name}>`."), format!("Write `<{name}>`.")),
                (
                    format!("```\n<{name}>\n```\nYes."),
                    format!("```\n<{name}>\n```\nYes."),
                ),
                (format!("<{name}er>Yes."), format!("<{name}er>Yes.")),
            ] {
                let (spoken, council) = split([reply.as_str()]);
                assert_eq!(spoken, shown, "{reply}");
                assert!(!council.concat().contains("SECRET"), "{reply}");
            }
        }
    }

    #[test]
    fn what_is_certain_is_given_at_once() {
        let mut splitter = Splitter::default();
        assert_eq!(splitter.push("Hello, a < b"), "Hello, a < b");
        assert_eq!(splitter.push(" <"), " ");
        assert_eq!(splitter.push("coun"), "");
        assert_eq!(splitter.push("ter>"), "<counter>");
        assert_eq!(splitter.push("<council>s"), "");
        assert!(splitter.is_inside());
        assert_eq!(splitter.push("</council>x"), "x");
    }

    #[test]
    fn a_tag_that_never_ends_hides_what_follows_and_costs_little() {
        let long = format!("a<council {}", "x".repeat(1 << 20));
        let (spoken, council) = split([long.as_str()]);
        assert_eq!(spoken, "a");
        assert_eq!(council.len(), 1);
        let (spoken, council) = split([format!("a<council {}", "x".repeat(99)).as_str()]);
        assert_eq!((spoken.as_str(), council.len()), ("a", 0));
        let thoughts = format!("a{}", "<think>".repeat(1 << 10));
        assert_eq!(split([thoughts.as_str()]).0, thoughts);
        let brackets = "<".repeat(1 << 20);
        assert_eq!(split([brackets.as_str()]).0, brackets);
    }

    /// Generates replies with many relevant characters.
    fn reply() -> impl Strategy<Value = String> {
        let bits = [
            "<council>",
            "</council>",
            "<COUNCIL>",
            "</Council >",
            "<council to=\"a>b\">",
            "<council/>",
            "< council >",
            "< council of",
            "<counc",
            "</coun",
            "<",
            ">",
            "/",
            "\\",
            "`",
            "``",
            "```",
            "<council ",
            "</council ",
            "```\n",
            "~~~",
            "\n",
            "\n\n",
            "    ",
            " ",
            "x",
            "é",
            "👑",
            "council",
            "\"",
            "=",
            "'",
            "SECRET",
            "<think>",
            "</think>",
            "<Thinking>",
            "</thinking>",
            "<thin",
            "<\n",
        ];
        proptest::collection::vec(proptest::sample::select(bits.to_vec()), 0..24)
            .prop_map(|bits| bits.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn cuts_do_not_show(reply in reply(), cuts in proptest::collection::vec(0usize..200, 0..8)) {
            let mut ends: Vec<usize> = cuts
                .into_iter()
                .filter_map(|n| reply.char_indices().nth(n).map(|(i, _)| i))
                .chain([0, reply.len()])
                .collect();
            ends.sort_unstable();
            let pieces = ends.windows(2).map(|w| &reply[w[0]..w[1]]);
            prop_assert_eq!(split(pieces), split([reply.as_str()]));
        }

        #[test]
        fn one_character_at_a_time_does_not_show(reply in reply()) {
            let ends: Vec<usize> = reply.char_indices().map(|(i, _)| i).chain([reply.len()]).collect();
            prop_assert_eq!(split(ends.windows(2).map(|w| &reply[w[0]..w[1]])), split([reply.as_str()]));
        }

        /// Outside code and escapes, nothing that looks like a tag is shown, and no word between two tags.
        #[test]
        fn nothing_of_a_tag_or_its_content_is_shown(
            before in "[a-z \n]{0,12}", attributes in "( [a-z]{1,5}=\"[a-z<>/ ]{0,8}\"){0,3}", secret in "[a-z<>/\n\\\\]{0,20}", after in "[a-z \n]{0,12}",
        ) {
            let reply = format!("{before}<cOuncil{attributes}>{secret} SECRET</COUNCIL>{after}");
            let (spoken, council) = split([reply.as_str()]);
            prop_assert!(council.concat().contains("SECRET"));
            prop_assert_eq!(spoken, format!("{before}{after}"));
        }

        /// No text is invented, and none is lost outside tags: a text without `<` is unchanged.
        #[test]
        fn text_without_brackets_is_untouched(text in "[^<]{0,60}") {
            prop_assert_eq!(split([text.as_str()]), (text.clone(), vec![]));
        }
    }
}
