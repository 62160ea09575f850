//! Turns a request into a stream of deltas, for HTTP APIs, agent programs and the built-in model.
