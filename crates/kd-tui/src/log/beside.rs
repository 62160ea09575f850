//! Answers side by side: on a wide screen, the answers that members gave at the same time stand in columns, as one
//! block of the log.
//!
//! Answers belong together if they follow each other in the log, are of different members, and every one was asked
//! before any of the others ended. Answers for which this is not known (a thread without its log) stay one below the
//! other.

use super::{Item, Log};
use crate::panels::{COLUMNS_MAX, Shown};
use kd_core::Timestamp;
use kd_core::view::Content;
use std::collections::BTreeSet;
use std::ops::Range;

/// Minimum columns of the screen for answers side by side.
pub const WIDE_FROM: usize = 160;
/// Minimum columns of each answer.
const COLUMN_MIN: usize = 50;

/// A card of a block: its item, and its place inside the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) item: Item,
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Place {
    /// Moves a card that is shorter than its row down, into the visible lines of the block, as far as the row allows. Its
    /// beginning stays visible until its text fills the window, then its end does: an answer that still grows is not
    /// hidden by longer ones beside it. `lines` is the number of lines that it needs.
    pub(super) fn kept_in_view(self, lines: usize, visible: Range<usize>) -> Self {
        let above = visible.start.saturating_sub(self.y);
        let end = visible.end.min(self.y + self.height);
        let down = above.min(end.saturating_sub(self.y + lines));
        Self {
            y: self.y + down,
            height: self.height - down,
            ..self
        }
    }
}

/// An answer: its member and when it was asked and ended.
struct Asked<'a> {
    from: &'a str,
    /// `None` for an answer that replaces a failed one: it was asked later.
    span: Option<(Timestamp, Option<Timestamp>)>,
}

/// Returns how many columns answers get, and the columns of each.
pub(super) fn shape(answers: usize, wide: usize) -> (usize, usize) {
    let columns = answers.min(wide / COLUMN_MIN).max(1);
    (columns, (wide / columns).min(COLUMNS_MAX))
}

/// Arranges cards of these heights in columns; cards of a row are equally high.
pub(super) fn arrange(heights: &[(Item, usize)], (columns, width): (usize, usize)) -> Vec<Place> {
    let mut places = Vec::with_capacity(heights.len());
    let mut y = 0;
    for row in heights.chunks(columns) {
        let height = row.iter().map(|(_, height)| *height).max().unwrap_or(0);
        places.extend(row.iter().enumerate().map(|(at, (item, _))| Place {
            item: *item,
            x: at * width,
            y,
            width,
            height,
        }));
        y += height;
    }
    places
}

impl Log {
    /// Returns the items of the block that an item belongs to: usually only the item.
    pub(super) fn block(&self, item: Item) -> Range<Item> {
        let alone = item..item + 1;
        if self.wide < WIDE_FROM || self.focus.is_some() || self.asked(item).is_none() {
            return alone;
        }
        let mut start = item;
        while start > self.first() && self.asked(start - 1).is_some() {
            start -= 1;
        }
        loop {
            let end = self.together(start);
            if end > item {
                return start..end;
            }
            start = end;
        }
    }

    /// Returns the end of the block that begins with an answer.
    fn together(&self, start: Item) -> Item {
        let mut names = BTreeSet::new();
        let mut first_end: Option<Timestamp> = None;
        let (mut end, mut timed) = (start, 0);
        while let Some(asked) = self.asked(end) {
            if let Some((from, to)) = asked.span {
                if first_end.is_some_and(|ended| from >= ended) {
                    break;
                }
                first_end = first_end.into_iter().chain(to).min();
                timed += 1;
            }
            if !names.insert(asked.from) {
                break;
            }
            end += 1;
        }
        if timed < 2 { start + 1 } else { end }
    }

    fn asked(&self, item: Item) -> Option<Asked<'_>> {
        match self.shown(item)? {
            Shown::Turn(turn) => Some(Asked {
                from: turn.seat.as_str(),
                span: match turn.replaces {
                    Some(_) => None,
                    None => Some((turn.span?.0, turn.ended)),
                },
            }),
            Shown::Panel(Content::Message { message, trace, .. })
                if !message.is_king() && !message.is_pass() =>
            {
                let (from, to) = trace.as_deref()?.span?;
                Some(Asked {
                    from: &message.from,
                    span: message.replaces().is_none().then_some((from, Some(to))),
                })
            }
            Shown::Panel(_) | Shown::Coming(..) | Shown::Queued(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_get_as_many_columns_as_fit() {
        assert_eq!(shape(3, 160), (3, 53));
        assert_eq!(shape(2, 160), (2, 80));
        assert_eq!(shape(8, 200), (4, 50));
        assert_eq!(
            shape(2, 300),
            (2, COLUMNS_MAX),
            "no wider than prose can be read"
        );
    }

    #[test]
    fn a_short_card_of_a_tall_row_stays_in_the_window() {
        let place = Place {
            item: 1,
            x: 50,
            y: 10,
            width: 50,
            height: 100,
        };
        let kept = |lines, visible| {
            let kept = place.kept_in_view(lines, visible);
            assert_eq!(kept.y + kept.height, place.y + place.height);
            kept.y
        };
        assert_eq!(kept(5, 0..40), 10, "its beginning is visible");
        assert_eq!(kept(5, 60..100), 60, "it fits into the window");
        assert_eq!(kept(60, 60..100), 40, "its end is at the end of the window");
        assert_eq!(kept(60, 30..70), 10, "its end is not needed to see text");
        assert_eq!(kept(100, 60..110), 10, "it is as high as the row");
        assert_eq!(kept(5, 105..120), 105, "no lower than the row");
        assert_eq!(kept(5, 110..120), 105);
    }

    #[test]
    fn the_rest_stands_below_and_rows_are_equally_high() {
        let places = arrange(&[(4, 3), (5, 9), (6, 5)], (2, 80));
        let place = |item, x, y, height| Place {
            item,
            x,
            y,
            width: 80,
            height,
        };
        assert_eq!(
            places,
            [place(4, 0, 0, 9), place(5, 80, 0, 9), place(6, 0, 9, 5)]
        );
    }
}
