//! Erases posts of a forum, and texts that repeat them in its store and its log.

use super::site::Site;
use super::{Place, SERVER_KEEPS};
use crate::error::UserError;
use kd_core::Timestamp;
use kd_core::names::KING;
use kd_sql::forum::{self, Posts};
pub use kd_sql::forum::{Erased, numbers};
pub use kd_store::forget::{Found, Pieces};
use std::path::PathBuf;

/// The posts that were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPosts {
    /// The posts and the texts that repeat them.
    pub done: Erased,
    /// The same by file, with the lines of the log.
    pub removed: Vec<Found>,
}

impl Site {
    /// Returns the parts that identify the texts of posts, and the titles of the threads that they open.
    ///
    /// # Errors
    /// There is no such post, or the store fails.
    pub fn texts_of(&mut self, posts: &[i64]) -> Result<Pieces, UserError> {
        let mut pieces = Pieces::default();
        for id in posts {
            let post = self.store.post(*id)?;
            pieces.add(&post.body);
            let (thread, opening) = self.store.thread(post.thread_id, 0, 1)?;
            if opening.first().is_some_and(|first| first.id == *id) {
                pieces.add(&thread.title);
            }
        }
        Ok(pieces)
    }

    /// Erases posts and all texts that repeat them; with `dry` it only finds them.
    ///
    /// # Errors
    /// The log or the store cannot be read or changed.
    pub fn erase(
        &mut self,
        posts: &[i64],
        texts: &Pieces,
        dry: bool,
    ) -> Result<FoundPosts, UserError> {
        let repeats = |text: &str| texts.are_quoted_in(text);
        let posts = Posts::These(&self.forum, posts);
        // The posts last: without their text a repeated command would not find the lines of the log.
        let lines = forum::forget_log(&self.logs, &repeats, dry)?;
        let now = Timestamp::now();
        let done = self.store.erase(posts, &repeats, KING, now, dry)?;
        let path = PathBuf::from(self.store.place().shown());
        let mut removed = forum::erased(&done, &path);
        removed.extend(lines);
        Ok(FoundPosts { done, removed })
    }

    /// Returns what the store keeps of erased texts for a while; `None` if nothing.
    pub fn keeps(&self) -> Option<&'static str> {
        matches!(self.store.place(), Place::Server(_)).then_some(SERVER_KEEPS)
    }
}
