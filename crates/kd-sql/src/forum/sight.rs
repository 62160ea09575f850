//! The threads and posts that a viewer can see.

/// The posts that a viewer can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// People see hidden posts, marked as such.
    #[default]
    All,
    /// Agents do not see them.
    Public,
}

impl Sight {
    /// Returns the SQL condition for a table of threads or posts.
    pub(in crate::forum) fn of(self, table: &str) -> String {
        match self {
            Self::All => String::new(),
            Self::Public => format!(" AND {table}.hidden_at IS NULL"),
        }
    }
}
