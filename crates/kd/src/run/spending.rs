//! Checks that the prices of all members are known if money is limited, before any member is asked.

use super::ask::notice_line;
use crate::error::Error;
use crate::exit::Exit;
use kd_core::Roster;
use kd_core::config::Config;
use kd_core::cost::Cost;

/// Fails if a money limit cannot be enforced. Warns about agent programs, which choose their own usage.
pub(super) fn check(config: &Config, quiet: bool, roster: &Roster) -> Result<(), Error> {
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
                return Err(Error::new("no_price", Exit::Usage, what).next(format!(
                    "`kd prices` lists known prices; set `providers.{}.prices.<model>.input` and `.output`, or omit `--max-usd` (`limits.usd`, `limits.usd_per_day`)",
                    member.backend
                )));
            }
        }
    }
    if !programs.is_empty() && !quiet {
        notice_line(&kd_core::cost::program_warning(&programs));
    }
    Ok(())
}
