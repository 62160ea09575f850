//! The council, heard and seen from outside: inputs in, commands and events out.

mod bench;
mod conclusion;
mod failures;
mod modes;
mod road;
