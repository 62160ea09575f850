//! Checks that the prices of all members are known if money is limited, before any member is asked.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use kd_core::Roster;
use kd_core::config::Config;
use kd_core::cost::Cost;

/// Fails if a money limit cannot be enforced. Warns about agent programs, which choose their own usage.
///
/// # Errors
/// If the price of a member is unknown.
pub fn check(config: &Config, env: &Env, roster: &Roster) -> Result<(), UserError> {
    if config.limits.usd.or(config.limits.usd_per_day).is_none() {
        return Ok(());
    }
    let mut programs = Vec::new();
    for member in roster.members().iter().chain(roster.chair()) {
        match Cost::of(config, member) {
            Cost::Known(_) | Cost::Budget => {}
            Cost::Program => programs.push(member.name.as_str()),
            Cost::Unknown => {
                let what = format!(
                    "the price of {} is unknown, so a cost limit cannot be enforced",
                    member.name
                );
                return Err(UserError::new(ErrorKind::NoPrice, what).next(format!(
                    "`kd prices` lists known prices; set `providers.{}.prices.<model>.input` and `.output`, or omit `--max-usd` (`limits.usd`, `limits.usd_per_day`)",
                    member.backend
                )));
            }
        }
    }
    if !programs.is_empty() {
        env.note(kd_core::cost::program_warning(&programs));
    }
    Ok(())
}
