//! The chat screen: draws a thread and turns keys into ops. It makes no decisions; it folds the engine's records into
//! panels and sends the user's requests back.
//!
//! ```text
//! keys ─▶ keys.rs ─▶ app.rs (state) ─▶ effects ─▶ run.rs ─▶ engine, host, clipboard
//! records ──────────▶   │
//!                       ▼
//!                    draw.rs ─▶ cells ─▶ paint.rs ─▶ bytes ─▶ terminal.rs
//! ```

pub mod app;
pub mod clipboard;
pub mod compare;
pub mod complete;
pub mod draw;
pub mod editor;
pub mod forum;
pub mod inline;
pub mod keymap;
pub mod keys;
pub mod log;
pub mod merge;
pub mod notify;
pub mod paint;
pub mod panels;
pub mod picker;
mod run;
pub mod select;
pub mod signals;
pub mod terminal;
pub mod text;
pub mod theme;

pub use app::{App, Settings};
pub use run::{Ended, Start, run};
