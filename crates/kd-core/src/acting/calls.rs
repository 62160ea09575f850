//! Checks the calls of an answer, so that calls of tools that a client did not offer never reach the client.

use super::talk::Talk;
use crate::request::{Said, ToolCall, ToolChoice};
use std::collections::BTreeSet;

/// Maximum characters of an id, as the services accept it.
const ID_CHARS_MAX: usize = 64;
/// The result of a call that was held back.
const HELD: &str = "Not run yet: the council gives advice first, below. Then make the call again, changed or not, or do something else.";

/// Whether an answer's calls can be passed on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Possible,
    /// The reason, for users.
    Impossible(String),
}

/// Checks calls, and gives each an id that no other call of the conversation has. If the client takes one call at a
/// time, the first stays. `is_cut`: the answer was cut, so that its last call may be incomplete.
pub(super) fn check(talk: &Talk, calls: &mut Vec<ToolCall>, is_cut: bool) -> Verdict {
    if is_cut {
        // A client would run what is left of it.
        calls.retain(|call| call.arguments.is_object());
    }
    if talk.parallel == Some(false) {
        calls.truncate(1);
    }
    let bad = calls.iter().find_map(|call| fault(talk, call));
    if let Some(why) = bad {
        return Verdict::Impossible(why);
    }
    let before = talk.ids();
    let mut taken: BTreeSet<String> = before.into_iter().map(str::to_owned).collect();
    for call in calls {
        if !is_sound(&call.id) || taken.contains(&call.id) {
            call.id = fresh(&taken);
        }
        taken.insert(call.id.clone());
    }
    Verdict::Possible
}

/// Returns why a call is not possible.
fn fault(talk: &Talk, call: &ToolCall) -> Option<String> {
    let name = &call.name;
    match &talk.choice {
        ToolChoice::None => {
            return Some("a tool was called, and the client allows none now".into());
        }
        ToolChoice::Named(only) if only != name => {
            return Some(format!(
                "`{name}` was called, and the client allows only `{only}` now"
            ));
        }
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::Named(_) => {}
    }
    if !talk.offers(name) {
        return Some(format!(
            "`{name}` was called, a tool that the client does not offer"
        ));
    }
    (!call.arguments.is_object()).then(|| format!("the arguments of `{name}` were no JSON object"))
}

/// Returns the message to the acting member about an impossible call.
pub(super) fn told(why: &str, talk: &Talk) -> String {
    let names: Vec<&str> = talk.tools.iter().map(|tool| tool.name.as_str()).collect();
    let next = match talk.choice {
        ToolChoice::None => "Answer in text.".to_owned(),
        _ => format!(
            "The tools are: {}. Arguments are one JSON object.",
            names.join(", ")
        ),
    };
    format!("Nothing of this was done: {why}. {next} Go on.")
}

/// Returns the result of a call that waits for advice.
pub(super) fn held(call: &ToolCall) -> Said {
    Said::Tool {
        id: call.id.clone(),
        name: call.name.clone(),
        result: HELD.to_owned(),
        failed: false,
    }
}

/// Returns whether services accept an id.
fn is_sound(id: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !id.is_empty() && id.len() <= ID_CHARS_MAX && id.chars().all(known)
}

/// Returns an id that is not taken.
fn fresh(taken: &BTreeSet<String>) -> String {
    let mut number = taken.len();
    loop {
        let id = format!("call_kd_{number}");
        if !taken.contains(&id) {
            return id;
        }
        number += 1;
    }
}
