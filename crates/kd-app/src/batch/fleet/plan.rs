//! The plan of a batch: the settings of deliberations that the process which created it has read from a file. To a worker it
//! is data like members and numbers: it is checked as settings are, names only agents, services and models that the user's own
//! configuration lists, loosens no limit that the user has set, and reads no memory that the user's own settings leave out.

use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use kd_core::clean::clean_line;
use kd_core::config::{Config, DeliberationConfig, KeyPath, keep_limits};
use serde_json::Value;

/// Maximum bytes of a plan.
const BYTES_MAX: usize = 256 << 10;
/// Maximum characters of a reason.
const REASON_CHARS: usize = 200;

/// Returns the members that a plan names, and its planner.
pub(super) fn named(plan: &DeliberationConfig) -> impl Iterator<Item = &String> {
    let members = plan.council.members.iter().flatten();
    let models = members.map(|member| &member.model);
    models
        .chain(&plan.meta.planner)
        .filter(|name| !name.is_empty())
}

/// Lays a plan of the database over the settings of this machine.
///
/// # Errors
/// Why this machine does not follow it.
pub(super) fn accept(kingdom: &mut Kingdom, plan: &Value) -> Result<(), UserError> {
    let refused = |why: &str| {
        let why = clean_line(why, REASON_CHARS);
        UserError::new(
            ErrorKind::Config,
            format!("its plan is not followed: {why}"),
        )
        .next("`kd config schema` has every field of a plan")
    };
    if !plan.is_object() || plan.to_string().len() > BYTES_MAX {
        return Err(refused("it is no plan, or too long"));
    }
    let config = kingdom.config();
    let own = serde_json::to_value(config).map_err(|error| refused(&error.to_string()))?;
    let mut value = own.clone();
    value["deliberation"] = plan.clone();
    let set = &kingdom.loaded().value;
    let is_own = |path: &KeyPath| {
        let first = path.segments().first();
        first.is_some_and(|first| first == "deliberation")
            && path.find(set).is_some_and(|set| !set.is_null())
    };
    if let Some(path) = keep_limits(&mut value, &own, is_own).into_iter().next() {
        return Err(refused(&format!("this machine has a stricter {path}")));
    }
    let checked = Config::from_value(&value).map_err(|problems| {
        let first = problems.first().map(ToString::to_string);
        refused(&first.unwrap_or_default())
    })?;
    let plan = checked.deliberation;
    if plan.memory.long_term && !config.deliberation.memory.long_term {
        return Err(refused(
            "it reads long-term memory, which this machine's settings do not (deliberation.memory.longTerm)",
        ));
    }
    kingdom.configure(|config| config.deliberation = plan);
    Ok(())
}
