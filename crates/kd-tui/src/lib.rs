//! The chat screen: draws a thread and turns keys into ops. It decides nothing; it folds the engine's records into
//! panels and sends the king's wishes back.

pub mod editor;
pub mod keys;
pub mod paint;
pub mod text;
pub mod theme;
