//! The address of the database of a fleet.

use crate::connect;
use std::sync::Arc;

/// The address of a database. It is never shown with its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Store {
    url: Arc<str>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Store {
    /// Parses an address; `None` if it is not an address of a PostgreSQL server.
    pub fn parse(text: &str) -> Option<Self> {
        connect::is_address(text).then(|| Self { url: text.into() })
    }

    /// Returns the address for display: without a password.
    pub fn shown(&self) -> String {
        connect::shown(&self.url)
    }

    /// Returns the user and the database that it names.
    pub(super) fn names(&self) -> (Option<String>, Option<String>) {
        connect::names(&self.url)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}
