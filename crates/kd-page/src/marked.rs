//! Marks passages of a text while it is rendered, so that links can lead to them.

use pulldown_cmark::{Event, TagEnd};
use std::ops::Range;

/// Returns whether an element is within a line.
pub(crate) fn is_inline(tag: &TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image
    )
}

/// A piece of a text.
pub(crate) enum Piece<'a> {
    /// The features of the text.
    Event(Event<'a>),
    /// The beginning of a passage: its address, or `None` where it goes on after markup that it could not contain.
    Open(Option<String>),
    /// Its end.
    Close,
}

/// Passages by their position in the source, with their addresses. They are in order and do not overlap.
pub(crate) type Passages = [(Range<usize>, String)];

/// Puts the marks of passages between the events of a text.
pub(crate) fn mark<'a>(
    events: impl Iterator<Item = (Event<'a>, Range<usize>)>,
    passages: &Passages,
) -> Vec<Piece<'a>> {
    let mut marker = Marker {
        passages,
        open: None,
        begun: 0,
        depth: 0,
        out: Vec::new(),
    };
    for (event, range) in events {
        marker.take(event, range);
    }
    marker.close();
    marker.out
}

struct Marker<'a, 'p> {
    passages: &'p Passages,
    /// The passage that is open, and how many elements are around it.
    open: Option<(usize, usize)>,
    /// The number of passages that have begun.
    begun: usize,
    depth: usize,
    out: Vec<Piece<'a>>,
}

impl<'a> Marker<'a, '_> {
    fn take(&mut self, event: Event<'a>, range: Range<usize>) {
        match event {
            Event::Start(tag) => {
                // Markup that a passage contains whole is within its mark.
                let passage = self
                    .at(range.start)
                    .filter(|at| self.passages[*at].0.end >= range.end);
                if let Some(at) = passage.filter(|_| is_inline(&tag.to_end())) {
                    self.begin(at);
                }
                self.depth += 1;
                self.out.push(Piece::Event(Event::Start(tag)));
            }
            Event::End(tag) => {
                self.depth = self.depth.saturating_sub(1);
                if self.open.is_some_and(|(_, around)| around > self.depth) {
                    self.close();
                }
                self.out.push(Piece::Event(Event::End(tag)));
                self.end_by(range.end);
            }
            Event::Text(text) if text.len() == range.len() => self.text(&text, range.start),
            event => {
                if let Some(at) = self.at(range.start) {
                    self.begin(at);
                }
                self.out.push(Piece::Event(event));
                self.end_by(range.end);
            }
        }
    }

    /// Splits a text where passages begin and end.
    fn text(&mut self, text: &str, start: usize) {
        let mut at = 0;
        while at < text.len() {
            if let Some(passage) = self.at(start + at) {
                self.begin(passage);
            }
            let next = match self.open {
                Some((passage, _)) => self.passages[passage].0.end,
                None => self
                    .passages
                    .iter()
                    .map(|(range, _)| range.start)
                    .find(|begin| *begin > start + at)
                    .unwrap_or(usize::MAX),
            };
            let mut cut = next.saturating_sub(start).clamp(at, text.len());
            // Passages end between letters; whatever the source says, no letter is cut.
            while !text.is_char_boundary(cut) {
                cut += 1;
            }
            let cut = if cut == at { text.len() } else { cut };
            self.out
                .push(Piece::Event(Event::Text(text[at..cut].to_owned().into())));
            at = cut;
            self.end_by(start + at);
        }
    }

    /// Returns the passage that contains a place.
    fn at(&self, place: usize) -> Option<usize> {
        self.passages
            .iter()
            .position(|(range, _)| range.contains(&place))
    }

    fn begin(&mut self, at: usize) {
        if self.open.is_some_and(|(open, _)| open == at) {
            return;
        }
        self.close();
        let is_new = self.begun <= at;
        self.begun = self.begun.max(at + 1);
        self.open = Some((at, self.depth));
        self.out
            .push(Piece::Open(is_new.then(|| self.passages[at].1.clone())));
    }

    /// Ends the open passage if it ends here.
    fn end_by(&mut self, place: usize) {
        if self
            .open
            .is_some_and(|(at, around)| self.passages[at].0.end <= place && around == self.depth)
        {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.out.push(Piece::Close);
        }
    }
}
