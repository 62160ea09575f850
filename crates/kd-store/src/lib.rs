//! Keeps threads and configuration on disk.
