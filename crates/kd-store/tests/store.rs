//! Files below `.kd`, written and read again: one test program, so that it is linked once. The four that look at the
//! processes of this machine are programs of their own.

mod common;
mod config;
mod disk;
mod export;
mod find;
mod fork;
mod frontmatter;
mod fsck;
mod git_command;
mod layout;
mod log;
mod memory;
mod queue;
mod seal;
mod session;
mod stream;
mod thread;
mod trust;
mod versions;
