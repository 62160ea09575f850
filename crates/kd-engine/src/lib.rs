//! Runs one machine for each thread: executes commands, feeds inputs back, publishes events.
