//! From text to lines on a terminal: cleaning, widths, styles, Markdown. Pure: text and a width come in, text goes out.

pub(crate) mod clean;
pub(crate) mod markdown;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod wrap;
