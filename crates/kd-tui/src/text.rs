//! Converts text to terminal lines: sanitizing, widths, styles, Markdown. Pure functions of text and width.

pub use kd_core::display as clean;
pub mod growing;
pub mod highlight;
pub mod links;
pub mod markdown;
pub mod style;
pub mod table;
pub mod wrap;
