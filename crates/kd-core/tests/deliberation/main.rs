//! Whole deliberations with scripted members: only the state machine runs.

mod budget;
mod damaged;
mod estimates;
mod families;
mod faults;
mod headings;
mod kinds;
mod laboratory;
mod marks;
mod mixed;
mod noted;
mod passes;
mod project;
mod protocols;
mod resume;
mod room;
mod sameness;

mod seal;
mod seats;
mod shapes;
mod shown;
mod strengths;
mod versions;
mod whatif;
mod wording;
