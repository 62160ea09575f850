//! A forum file not created by the user's `kd`: the changes by its elections, and whether the user accepts them.

use crate::env::Env;
use crate::error::UserError;
use kd_core::clean::clean_line;
use kd_core::config::Config;
use kd_forum::MAIN;
use kd_sql::forum::{ForumStore, Place};
use kd_store::Layout;

/// Maximum characters shown of a forum's name.
const FORUM_CHARS_MAX: usize = 40;

/// A foreign forum whose elected settings are held back.
pub struct ForeignForum {
    store: ForumStore,
    held: Vec<Elected>,
}

/// The elected settings of one forum of the store.
struct Elected {
    forum: String,
    settings: Vec<(&'static str, String)>,
}

impl ForeignForum {
    /// Finds a project's forum, if it is foreign; creates nothing.
    ///
    /// # Errors
    /// If the forum cannot be opened.
    pub fn find(layout: &Layout, config: &Config, env: &Env) -> Result<Option<Self>, UserError> {
        let place = super::place(None, config, layout, env)?;
        match &place {
            Place::File(path) if path.symlink_metadata().is_ok() => {}
            _ => return Ok(None),
        }
        let mut store = super::open(&place, env)?;
        let mut held = Vec::new();
        for forum in store.elected_forums()? {
            let settings = store.held_back(&forum, &config.forum.settings)?;
            if !settings.is_empty() {
                held.push(Elected { forum, settings });
            }
        }
        Ok((!held.is_empty()).then_some(Self { store, held }))
    }

    /// Returns a heading and its elected settings, one string each.
    pub fn listed(&self) -> (String, Vec<String>) {
        let place = self.store.place().shown();
        let heading = format!("a forum that your kd did not make has elected ({place}):");
        let mut settings = Vec::new();
        for Elected {
            forum,
            settings: held,
        } in &self.held
        {
            let forum = clean_line(forum, FORUM_CHARS_MAX);
            let each = held.iter();
            settings.extend(each.map(|(key, value)| match forum.as_str() {
                MAIN => format!("forum.{key} = {value}"),
                _ => format!("forum.{key} = {value} (in {forum})"),
            }));
        }
        (heading, settings)
    }

    /// Accepts its elections.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn accept(mut self, env: &Env) -> Result<(), UserError> {
        Ok(self.store.accept(env.user_dirs().state().ok())?)
    }
}

/// Returns one line that lists elected settings held back; `None` if there are none.
pub fn held_line(held: &[(&'static str, String)]) -> Option<String> {
    let named: Vec<String> = held.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    (!named.is_empty()).then(|| {
        format!(
            "held back: {} elected in a forum that your kd did not make; `kd trust` shows and allows it",
            named.join(", ")
        )
    })
}
