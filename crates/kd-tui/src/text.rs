//! From text to terminal lines: sanitizing, widths, styles, Markdown. Pure functions of text and width.

pub mod clean;
pub mod growing;
pub mod highlight;
pub mod markdown;
pub mod style;
pub mod table;
pub mod wrap;
