//! The forum's store, the same on SQLite and on PostgreSQL.

mod governance;
mod runs;
mod servers;
mod talk;
mod together;
