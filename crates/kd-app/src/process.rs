//! Functions that affect the whole process, for programs that are only a front end. A library inside another program
//! calls none of them.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::words;
use kd_backends::depth;
use kd_backends::transport::{self, keeper};
use kd_engine::agents;
use kd_store::Layout;
use std::time::Duration;

/// Carries out the work of a keeper, if this process was started as one: agent programs are children of such a process,
/// which ends them when the program that started it ends in any way. Call it first in `main`. Without this call agents are
/// ended only if the program ends in order.
pub fn enter() {
    keeper::enter();
}

/// Keeps a record of the agents of this process in the user's runtime folder, so that a later run can stop them if this one
/// is killed. Call it once, before members are asked.
pub fn keep_record(env: &Env) {
    agents::keep_record(env.user_dirs());
}

/// Stops agents left by killed runs, in any project of the user. In this project, updates the states of members and
/// removes the threads left by killed workers.
pub fn sweep(env: &Env, layout: &Layout) {
    match agents::end_left_over(&env.user_dirs()) {
        Ok(0) => {}
        Ok(count) => env.note(format!(
            "stopped {} left by a killed run",
            words::count(count as u64, "agent")
        )),
        // The next run tries again; nothing depends on it.
        Err(error) => env.warn(format!(
            "cannot look for agents left by killed runs: {error}"
        )),
    }
    // States are only for display, so a state that cannot be written does not stop the run. Neither does a folder
    // that cannot be removed.
    let _ = agents::tidy(layout);
    let _ = kd_store::passing::sweep(layout);
}

/// Waits until agents that were stopped have ended, at most this long.
pub fn settle(at_most: Duration) {
    transport::process::settle(at_most);
}

/// Refuses to ask members in a council that is too deep inside other councils.
///
/// # Errors
/// If this process was started by an agent that was itself started by an agent.
pub fn check_depth(env: &Env) -> Result<(), UserError> {
    depth::check(&env.of_backends(false)).map_err(|failure| {
        UserError::new(ErrorKind::TooDeep, "no member was asked")
            .because(failure.message)
            .next(failure.advice.unwrap_or_default())
    })
}
