//! How deep councils stand in one another: an agent that answers in a council may ask a council itself, once.
//!
//! Every agent program is told how deep it stands, and what it starts inherits that. Without an end, a member that passes
//! its own prompt to `kd ask` would start itself for ever, and each round costs money.

use crate::Env;
use kd_core::{Failure, FailureKind};

/// The variable that tells an agent how deep it stands: 1 for a member of the user's own council.
pub const VARIABLE: &str = "KD_DEPTH";
/// The depth at which nobody is asked any more.
pub const MAX: u32 = 2;

/// How deep this process stands; 0 where no agent started it. What is no number counts as too deep.
pub fn of(env: &Env) -> u32 {
    env.get(VARIABLE)
        .map_or(0, |depth| depth.trim().parse().unwrap_or(MAX))
}

/// Whether members may be asked here.
///
/// # Errors
/// At depth [`MAX`], with what to do instead.
pub fn check(env: &Env) -> Result<(), Failure> {
    if of(env) < MAX {
        return Ok(());
    }
    let said = "this council stands inside another one's council, and no deeper one is asked";
    Err(Failure::new(FailureKind::Refused, said)
        .advise("answer in your own words; a user who set KD_DEPTH unsets it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_council_may_stand_in_a_council_and_no_deeper() {
        for (depth, asks) in [
            ("", true),
            ("0", true),
            ("1", true),
            ("2", false),
            ("3", false),
            ("4294967296", false),
            ("-1", false),
            ("one", false),
        ] {
            let env = Env::of([(VARIABLE, depth)]);
            assert_eq!(check(&env).is_ok(), asks, "{depth:?}");
        }
        assert_eq!(of(&Env::of([("A", "1")])), 0);
    }
}
