//! The modes of an ACP session: which one to choose for a read-only or a writable turn.
//!
//! Input: the response to `session/new`. Output: a [`Step`]. Agents list their modes under `modes`, as a configuration
//! option of the category `mode`, or both. A mode is identified by its id alone: names are free text, and one agent
//! calls its `auto` mode "Default".

use serde_json::Value;

/// Modes for a read-only turn, the best first. In the last two the agent asks before each change, and is refused.
const READ_ONLY: [&str; 5] = ["readonly", "ask", "plan", "default", "manual"];
/// Modes in which nothing can be changed, even with permission: a writable turn must leave them.
const LOCKED: [&str; 3] = ["readonly", "ask", "plan"];
/// Modes for a writable turn that starts in a locked one.
const WRITABLE: [&str; 7] = [
    "auto",
    "agent",
    "default",
    "manual",
    "workspacewrite",
    "build",
    "code",
];

/// The step that prepares a new session for the question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its mode is right, or it has none.
    Keep,
    /// `session/set_mode` with this id.
    Mode(String),
    /// `session/set_config_option` with this option and value.
    Option { id: String, value: String },
    /// There is no read-only mode; these exist.
    Refuse(Vec<String>),
}

/// The modes that a session offers.
#[derive(Debug, Default)]
struct Offered {
    current: Option<String>,
    ids: Vec<String>,
    /// The configuration option that holds the mode, if `session/set_mode` is not supported.
    option: Option<String>,
}

impl Offered {
    fn of(session: &Value) -> Self {
        let modes = &session["modes"];
        let mut offered = Self {
            current: modes["currentModeId"].as_str().map(str::to_owned),
            ids: ids(&modes["availableModes"]),
            option: None,
        };
        if offered.ids.is_empty()
            && let Some(option) = mode_option(&session["configOptions"])
        {
            offered.ids = ids(&option["options"]);
            offered.option = option["id"].as_str().map(str::to_owned);
            offered.current = current(option).or(offered.current);
        }
        offered
    }

    fn choose(&self, wanted: &[&str]) -> Option<&String> {
        let is = |word: &&str| self.ids.iter().find(|id| plain(id) == **word);
        wanted.iter().find_map(is)
    }

    fn step(&self, id: &str) -> Step {
        if self.current.as_deref() == Some(id) {
            return Step::Keep;
        }
        match &self.option {
            Some(option) => Step::Option {
                id: option.clone(),
                value: id.to_owned(),
            },
            None => Step::Mode(id.to_owned()),
        }
    }
}

/// Chooses the mode of a session. `checked` is a mode in which this very program was observed to write nothing; without
/// it the first of [`READ_ONLY`] is used. An agent without modes is accepted: it asks before it writes, and is refused.
pub(super) fn choose(session: &Value, writable: bool, checked: Option<&str>) -> Step {
    let offered = Offered::of(session);
    let current = offered.current.as_deref().map(plain);
    let holds = |set: &[&str]| current.as_deref().is_some_and(|mode| set.contains(&mode));
    if writable {
        return match offered.choose(&WRITABLE) {
            Some(id) if holds(&LOCKED) => offered.step(id),
            _ => Step::Keep,
        };
    }
    let checked = checked.and_then(|mode| offered.choose(&[mode]));
    if let Some(id) = checked.or_else(|| offered.choose(&READ_ONLY)) {
        return offered.step(id);
    }
    if offered.ids.is_empty() && (current.is_none() || holds(&READ_ONLY)) {
        return Step::Keep;
    }
    let mut there = offered.ids;
    there.extend(offered.current.filter(|_| there.is_empty()));
    Step::Refuse(there)
}

/// Returns the mode that a `session/update`, or the response to a configuration option, reports as current.
pub(super) fn now_in_force(said: &Value) -> Option<String> {
    let mode = said["currentModeId"].as_str().map(str::to_owned);
    mode.or_else(|| current(mode_option(&said["configOptions"])?))
}

/// Returns whether a read-only turn may go on in this mode.
pub(super) fn reads_only(mode: &str) -> bool {
    READ_ONLY.contains(&plain(mode).as_str())
}

/// Returns the option of the category `mode`; if there is none, the option with the id `mode`.
fn mode_option(options: &Value) -> Option<&Value> {
    let options = options.as_array()?;
    let by = |key: &'static str| options.iter().find(move |option| option[key] == "mode");
    by("category").or_else(|| by("id"))
}

fn current(option: &Value) -> Option<String> {
    option["currentValue"].as_str().map(str::to_owned)
}

/// Returns the ids in a list of modes or values, which may be grouped.
fn ids(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.flat_map(|entry| {
        let id = entry["id"].as_str().or(entry["value"].as_str());
        match id.or(entry.as_str()) {
            Some(id) => vec![id.to_owned()],
            None => ids(&entry["options"]),
        }
    })
    .collect()
}

/// Normalizes an id: `https://…/session-modes#plan`, `read_only` and `Plan` become `plan`, `readonly` and `plan`.
fn plain(id: &str) -> String {
    let word = id.rsplit(['#', '/', ':']).next().unwrap_or(id);
    let letters = word.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session(current: &str, ids: &[&str]) -> Value {
        let modes: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        json!({"modes": {"currentModeId": current, "availableModes": modes}})
    }

    fn options(current: &str, values: &[&str]) -> Value {
        let values: Vec<Value> = values.iter().map(|v| json!({"value": v})).collect();
        json!({"configOptions": [
            {"id": "collaboration_mode", "category": "collaboration_mode", "currentValue": "default",
             "options": [{"value": "default"}, {"value": "plan"}]},
            {"id": "m", "category": "mode", "currentValue": current, "options": values}]})
    }

    fn mode(id: &str) -> Step {
        Step::Mode(id.to_owned())
    }

    #[test]
    fn a_read_only_turn_runs_in_the_safest_mode_or_not_at_all() {
        let qwen = ["plan", "default", "auto-edit", "auto", "yolo"];
        let copilot = [
            "https://a.example/modes#agent",
            "https://a.example/modes#plan",
        ];
        let codex = ["read-only", "workspace-write", "agent", "agent-full-access"];
        for (session, wanted) in [
            (session("auto", &qwen), mode("plan")),
            (session("plan", &qwen), Step::Keep),
            (session("default", &qwen), mode("plan")),
            (session("auto", &qwen[1..]), mode("default")),
            (session("default", &qwen[1..]), Step::Keep),
            (session(copilot[0], &copilot), mode(copilot[1])),
            (session("agent", &codex), mode("read-only")),
            (session("Code", &["Code", "Read_Only"]), mode("Read_Only")),
            // A list without a current mode, whose ids are plain strings.
            (
                json!({"modes": {"availableModes": ["yolo", "plan"]}}),
                mode("plan"),
            ),
            // An agent without modes asks before it writes.
            (json!({}), Step::Keep),
            (json!({"modes": null, "configOptions": []}), Step::Keep),
            (session("plan", &[]), Step::Keep),
        ] {
            assert_eq!(choose(&session, false, None), wanted, "{session}");
        }
        for (unsafe_one, there) in [
            (session("auto", &["auto", "yolo"]), vec!["auto", "yolo"]),
            (session("bypassPermissions", &[]), vec!["bypassPermissions"]),
            (session("agent", &["agent"]), vec!["agent"]),
            (
                options("build", &["build", "autopilot"]),
                vec!["build", "autopilot"],
            ),
            (
                json!({"modes": {"availableModes": [{"name": "Plan", "id": "x"}]}}),
                vec!["x"],
            ),
        ] {
            let refused = Step::Refuse(there.into_iter().map(str::to_owned).collect());
            assert_eq!(choose(&unsafe_one, false, None), refused, "{unsafe_one}");
        }
    }

    #[test]
    fn modes_that_are_options_are_set_as_options() {
        let set = |value: &str| Step::Option {
            id: "m".into(),
            value: value.into(),
        };
        assert_eq!(
            choose(&options("build", &["build", "plan"]), false, None),
            set("plan")
        );
        assert_eq!(
            choose(&options("plan", &["build", "plan"]), false, None),
            Step::Keep
        );
        assert_eq!(
            choose(&options("plan", &["build", "plan"]), true, None),
            set("build")
        );
        let grouped = json!({"configOptions": [{"id": "mode", "currentValue": "code", "options":
            [{"group": "g", "options": [{"value": "code"}, {"value": "ask"}]}]}]});
        let ask = Step::Option {
            id: "mode".into(),
            value: "ask".into(),
        };
        assert_eq!(choose(&grouped, false, None), ask);
        // If both are supported, `session/set_mode` is used.
        let mut both = options("build", &["build", "plan"]);
        both["modes"] = session("build", &["build", "plan"])["modes"].clone();
        assert_eq!(choose(&both, false, None), mode("plan"));
    }

    #[test]
    fn a_checked_mode_goes_first_and_a_writable_turn_leaves_a_locked_one() {
        let gemini = ["default", "autoEdit", "yolo", "plan"];
        let checked = |current: &str| choose(&session(current, &gemini), false, Some("default"));
        assert_eq!(checked("default"), Step::Keep);
        assert_eq!(checked("yolo"), mode("default"));
        assert_eq!(
            choose(&session("a", &["a", "plan"]), false, Some("default")),
            mode("plan")
        );
        for (current, wanted) in [
            ("default", Step::Keep),
            ("yolo", Step::Keep),
            ("plan", mode("default")),
        ] {
            assert_eq!(
                choose(&session(current, &gemini), true, None),
                wanted,
                "{current}"
            );
        }
        assert_eq!(
            choose(&session("read-only", &["read-only", "auto"]), true, None),
            mode("auto")
        );
    }

    #[test]
    fn the_mode_in_force_is_read_from_every_form_of_an_update() {
        let read = |said: Value| now_in_force(&said);
        let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": "yolo"});
        assert_eq!(read(update).as_deref(), Some("yolo"));
        assert_eq!(
            read(options("auto", &["auto", "plan"])).as_deref(),
            Some("auto")
        );
        assert_eq!(read(json!({"sessionUpdate": "agent_message_chunk"})), None);
        for (mode, reads) in [
            ("plan", true),
            ("READ_ONLY", true),
            ("auto", false),
            ("autoplan", false),
            ("", false),
        ] {
            assert_eq!(reads_only(mode), reads, "{mode}");
        }
    }
}
