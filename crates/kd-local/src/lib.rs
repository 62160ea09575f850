//! Runs a small language model inside the process: load, batch, constrain to a schema, stream tokens.
