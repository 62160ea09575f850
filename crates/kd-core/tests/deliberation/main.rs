//! Whole deliberations with scripted seats: the machine and nothing else.

mod budget;
mod families;
mod faults;
mod kinds;
mod mixed;
mod noted;
mod passes;
mod project;
mod protocols;
mod room;
mod sameness;
mod seal;
mod versions;
mod whatif;
mod wording;
