//! Settings: reading a single file, changing one setting, and the members that cannot answer with them.

use crate::env::Env;
use crate::error::UserError;
use kd_backends::Backends;
use kd_backends::providers::{KNOWN, is_usable};
use kd_core::config::{Config, KEYS, KeyPath, Layer, Origin, parse_text};
use kd_core::seating::{self, SeatRequest};
use kd_core::{Failure, SeatName};
use kd_store::config::{self as files, ConfigError, ConfigPaths, Loaded};
pub use kd_store::config::{Setting, Written};
use serde_json::Value;
use std::path::Path;

/// Reads a file of settings alone, as the user's own. A missing file sets nothing.
///
/// # Errors
/// It cannot be read or has mistakes.
pub fn of_file(file: &Path) -> Result<Loaded, UserError> {
    let alone = ConfigPaths {
        user: Some(file.to_path_buf()),
        ..ConfigPaths::default()
    };
    Ok(files::load(&alone, [], &[])?)
}

/// Returns every effective setting, with its origin: also the addresses of services that no file names, but a variable
/// such as `OPENAI_BASE_URL`.
pub fn effective(loaded: &Loaded, env: &Env) -> Vec<Setting> {
    let mut settings = loaded.settings();
    let variables = env.of_backends(false);
    for service in KNOWN {
        let path = KeyPath::new(["providers", service.name, "base_url"]);
        let is_set = path
            .find(&loaded.value)
            .is_some_and(|value| !value.is_null());
        let used = loaded.config.providers.get(service.name);
        let used = used.and_then(|used| used.base_url.as_ref());
        let named = service.named_address(&variables);
        let (Some((variable, address)), Some(used), false) = (named, used, is_set) else {
            continue;
        };
        let key = KEYS.iter().find(|key| key.matches(path.segments()));
        let Some(key) = key.filter(|_| address == *used) else {
            continue;
        };
        let value = match is_usable(&address) {
            true => Value::String(address),
            // It may hold a password.
            false => Value::String("(no usable address)".to_owned()),
        };
        let origin = Origin {
            layer: Layer::Env,
            source: variable.to_owned(),
            line: None,
        };
        let setting = Setting {
            path,
            value,
            origin,
            key,
        };
        match settings.iter_mut().find(|old| old.path == setting.path) {
            Some(old) => *old = setting,
            None => settings.push(setting),
        }
    }
    settings
}

/// Returns the members that lack their program, key or model, as far as this shows without a call.
pub fn cannot_answer(config: &Config, env: &Env) -> Vec<(SeatName, Failure)> {
    let Ok(seated) = seating::seat(config, &SeatRequest::default()) else {
        return Vec::new();
    };
    let backends = Backends::new(config, env.backend_options());
    let members = seated.roster.members().iter();
    let lacking = members.filter_map(|member| {
        let failure = backends.missing(member)?;
        Some((member.name.clone(), failure))
    });
    lacking.collect()
}

/// Sets one setting in a layer's file, by a value as it is typed.
///
/// # Errors
/// The value does not fit, or new problems that the change would cause; then nothing is written.
pub fn set_text(path: &KeyPath, text: &str, layer: Layer, env: &Env) -> Result<Written, UserError> {
    let value = parse_text(path, text).map_err(ConfigError::from)?;
    set(path, value, layer, env)
}

/// Sets one setting in a layer's file. Creates `.kd` for a file of the project.
///
/// # Errors
/// New problems that the change would cause; then nothing is written.
pub fn set(path: &KeyPath, value: Value, layer: Layer, env: &Env) -> Result<Written, UserError> {
    Ok(files::set(&paths(layer, env)?, layer, path, value)?)
}

/// Removes one setting from a layer's file.
///
/// # Errors
/// Those of [`set`]; also if the setting is not in the file.
pub fn unset(path: &KeyPath, layer: Layer, env: &Env) -> Result<Written, UserError> {
    files::unset(&paths(layer, env)?, layer, path).map_err(|error| {
        let error = UserError::from(error);
        match set_in(path, env).filter(|other| *other != layer) {
            Some(other) => error.next(format!("kd config unset --layer {} {path}", other.word())),
            None => error,
        }
    })
}

/// Returns the file that sets a setting in force; `None` if no file does.
fn set_in(path: &KeyPath, env: &Env) -> Option<Layer> {
    let layout = env.find_layout().ok()?;
    let loaded = env.settings(layout.as_ref()).ok()?;
    let mut settings = loaded.settings().into_iter();
    let layer = settings.find(|set| set.path == *path)?.origin.layer;
    matches!(layer, Layer::User | Layer::Project | Layer::Local).then_some(layer)
}

/// Returns the paths of the files; creates `.kd` if a file of the project is to be changed.
fn paths(layer: Layer, env: &Env) -> Result<ConfigPaths, UserError> {
    let layout = match layer {
        Layer::Project | Layer::Local => Some(env.make_layout()?.layout),
        _ => env.find_layout()?,
    };
    Ok(env.config_paths(layout.as_ref()))
}
