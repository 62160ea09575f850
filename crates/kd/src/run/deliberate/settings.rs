//! The settings of a deliberation: the folder's settings, changed by a plan and by options.

use super::super::here::Here;
use super::super::notices::notice_line;
use crate::args::deliberate::Deliberate;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::trust::Loaded;
use kd_app::{infile, secrets};
use kd_core::config::{Config, KeyPath, Problem, keep_limits};
use serde_json::{Map, Value, json as object};

/// Returns the members named in a plan.
fn named_in(plan: &Value) -> Vec<&str> {
    let at = |path: &str| plan.pointer(path);
    let seats = at("/council/members").and_then(Value::as_array);
    let seats = seats.into_iter().flatten();
    seats
        .filter_map(|seat| seat.get("model"))
        .chain(at("/meta/planner"))
        .filter_map(Value::as_str)
        .collect()
}

/// Returns whether a limit in the settings applies to a plan: only if it was set explicitly.
fn binds(path: &KeyPath, loaded: &Loaded) -> bool {
    let is_set = path.find(&loaded.value).is_some_and(|set| !set.is_null());
    let is_of_plan = path
        .segments()
        .first()
        .is_some_and(|first| first == "deliberation");
    is_of_plan && is_set
}

/// Returns the settings overridden by the flags and the `--plan` file, validated like any configuration.
pub(in super::super) fn settings(
    args: &Deliberate,
    loaded: &Loaded,
    here: &Here,
) -> Result<Config, Error> {
    let config = &loaded.config;
    let mut value = serde_json::to_value(config)
        .map_err(|e| Error::usage("the settings cannot be read").because(e))?;
    if let Some(path) = &args.plan {
        let text = infile::read_text(path, infile::PLAN_BYTES_MAX).map_err(|e| {
            Error::usage(format!("the plan {} cannot be read", path.display())).because(e)
        })?;
        let mut document: Value = serde_json::from_str(&text)
            .map_err(|e| Error::usage(format!("{} is not JSON", path.display())).because(e))?;
        let secrets = secrets::of(config, args.privacy.allow_secrets, here);
        if let Some(line) = secrets.mask_json(&mut document).line() {
            notice_line(&line);
        }
        kd_app::trust::check_named(&loaded.project, named_in(&document))?;
        let own = value.clone();
        value["deliberation"] = document;
        for path in keep_limits(&mut value, &own, |path| binds(path, loaded)) {
            notice_line(&format!(
                "the plan sets {path}; your stricter limit applies (a flag changes it for one run)"
            ));
        }
    }
    let flags = flags(args);
    if !value["deliberation"].is_object() {
        value["deliberation"] = Value::Object(Map::new());
    }
    for (path, _, flag) in &flags {
        let mut at = &mut value["deliberation"];
        for part in path.split('.') {
            at = &mut at[part];
        }
        *at = flag.clone();
    }
    let mut checked = Config::from_value(&value).map_err(|problems| {
        // Who typed an option knows no field.
        let as_typed = |problem: &Problem| {
            let field = problem.path.to_string();
            let typed = flags
                .iter()
                .find(|(path, ..)| field == format!("deliberation.{path}"));
            match typed {
                Some((_, option, _)) => problem.to_string().replace(&field, option),
                None => problem.to_string().replace("deliberation.", ""),
            }
        };
        let lines: Vec<String> = problems.iter().map(as_typed).collect();
        let what = match lines.len() {
            1 => lines[0].clone(),
            n => format!("the plan has {n} mistakes"),
        };
        let next = match flags.is_empty() {
            true => "`kd config schema` has every field; `kd deliberate --dry-run` shows the plan",
            false => {
                "`kd deliberate --help` has every option; `kd config schema` every field of a plan"
            }
        };
        let mut error = Error::new("plan", Exit::Usage, what).next(next);
        if lines.len() > 1 {
            error.why = Some(lines.join("\n"));
        }
        error
    })?;
    checked.local.offline |= args.offline;
    checked.council.private |= args.privacy.private;
    checked.surroundings_of(config);
    Ok(checked)
}

/// Returns the fields of a plan that options set: the path, the option and the value.
fn flags(args: &Deliberate) -> Vec<(&'static str, &'static str, Value)> {
    let iterates = args.iterate || args.strategy.is_some() || args.max_iterations.is_some();
    let text = |value: &Option<String>| value.as_ref().map(|value| object!(value));
    let all = [
        ("meta.planningMode", "--planning", text(&args.planning)),
        ("preset", "--preset", text(&args.preset)),
        ("council.size", "--size", args.size.map(|v| object!(v))),
        ("protocol", "--protocol", text(&args.protocol)),
        ("council.voting.method", "--rule", text(&args.rule)),
        ("answer", "--answer", text(&args.answer)),
        (
            "iteration.enabled",
            "--iterate",
            iterates.then(|| object!(true)),
        ),
        ("iteration.strategy", "--strategy", text(&args.strategy)),
        (
            "iteration.maxIterations",
            "--max-iterations",
            args.max_iterations.map(|v| object!(v)),
        ),
        (
            "askBack",
            "--ask-back",
            args.ask_back.then(|| object!(true)),
        ),
        (
            "certainty",
            "--certainty",
            args.certainty.map(|v| object!(v)),
        ),
        ("rounds", "--rounds", args.rounds.map(|v| object!(v))),
        (
            "iteration.maxTokens",
            "--max-total-tokens",
            args.max_total_tokens.map(|v| object!(v)),
        ),
        (
            "iteration.maxDurationMs",
            "--max-time",
            args.max_time.map(|v| object!(v.as_millis() as u64)),
        ),
        (
            "maxCalls",
            "--max-calls",
            args.max_calls.map(|v| object!(v)),
        ),
        ("maxUsd", "--max-usd", args.max_usd.map(|v| object!(v))),
        (
            "answerTokens",
            "--max-tokens",
            args.max_tokens.map(|v| object!(v)),
        ),
    ];
    let set = |(path, option, value): (_, _, Option<Value>)| Some((path, option, value?));
    all.into_iter().filter_map(set).collect()
}
