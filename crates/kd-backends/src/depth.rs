//! Nesting depth of councils: an agent that answers in a council may ask a council itself, once.
//!
//! Every agent program gets its depth in a variable, and its children inherit it. Without a limit, a member that passes
//! its own prompt to `kd ask` would start itself forever, and each round costs money. A variable can be cleared, so on
//! Linux the keepers above this process are counted too: everything an agent starts stays below its keeper
//! ([`crate::transport::keeper`]).

use crate::Env;
use kd_core::{Failure, FailureKind};

/// The variable with an agent's depth: 1 for a member of the user's own council.
pub const VARIABLE: &str = "KD_DEPTH";
/// The depth at which no members are asked.
pub const MAX: u32 = 2;

/// Returns the depth of this process; 0 if no agent started it. A value that is not a number counts as too deep.
pub fn of(env: &Env) -> u32 {
    let told = env
        .get(VARIABLE)
        .map_or(0, |depth| depth.trim().parse().unwrap_or(MAX));
    told.max(kept())
}

/// Counts the keepers above this process. The count never changes: a process whose parent dies is adopted by its
/// keeper.
#[cfg(target_os = "linux")]
fn kept() -> u32 {
    static KEPT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *KEPT.get_or_init(crate::transport::keeper::above)
}

#[cfg(not(target_os = "linux"))]
fn kept() -> u32 {
    0
}

/// Checks whether members may be asked at this depth.
///
/// # Errors
/// At depth [`MAX`], with what to do instead.
pub fn check(env: &Env) -> Result<(), Failure> {
    if of(env) < MAX {
        return Ok(());
    }
    let said = "this council is inside another one's council, and no deeper one is asked";
    let advice = match kept() >= MAX {
        true => "answer in your own words",
        false => "answer in your own words; a user who set KD_DEPTH unsets it",
    };
    Err(Failure::new(FailureKind::Refused, said).advise(advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_council_may_ask_a_council_and_no_deeper() {
        // The tests themselves may run below an agent.
        let above = kept();
        for (depth, told) in [
            ("", 0),
            ("0", 0),
            ("1", 1),
            ("2", 2),
            ("3", 3),
            ("4294967296", MAX),
            ("-1", MAX),
            ("one", MAX),
        ] {
            let env = Env::of([(VARIABLE, depth)]);
            assert_eq!(of(&env), told.max(above), "{depth:?}");
            assert_eq!(check(&env).is_ok(), told.max(above) < MAX, "{depth:?}");
        }
        assert_eq!(of(&Env::of([("A", "1")])), above);
    }
}
