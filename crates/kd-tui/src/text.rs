//! From text to lines on a terminal: cleaning, widths, styles, Markdown. Pure: text and a width come in, text goes out.

pub mod clean;
pub mod growing;
pub mod highlight;
pub mod markdown;
pub mod style;
pub mod table;
pub mod wrap;
