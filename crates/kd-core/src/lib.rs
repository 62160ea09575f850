//! Decides who speaks, what they are told, when to stop and what was decided. Pure: no files, network, processes or clocks.
