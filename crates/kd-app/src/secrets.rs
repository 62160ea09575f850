//! Masks secrets in the user's words: well-known formats, and the keys named in the settings.

use crate::env::Env;
use crate::request::Question;
use kd_backends::keys::in_file;
use kd_core::config::Config;
use kd_core::secrets::{Masked, Secrets};

/// Returns the secrets to mask with these settings.
pub fn of(config: &Config, allow: bool, env: &Env) -> Secrets {
    let providers = config.providers.values().map(|p| &p.key_env);
    let remotes = config.forum.remotes.values().map(|r| &r.key_env);
    let servers = config.forum.servers.values().map(|s| &s.key_env);
    let names = providers.chain(remotes).chain(servers).flatten();
    let values = names.filter_map(|name| env.var(name));
    let process = env.of_backends(true);
    let services = config.providers.values().map(|p| &p.key_file);
    let files = services.chain(config.forum.remotes.values().map(|r| &r.key_file));
    let keys = files.flatten().filter_map(|path| in_file(path, &process));
    let values = values.chain(keys);
    let mut secrets = Secrets::new(values);
    secrets.allow = allow;
    secrets
}

/// Masks the secrets of a question and reports it.
pub fn mask(secrets: &Secrets, question: &mut Question, env: &Env) {
    let masked = secrets.mask_in_place(&mut question.text);
    secrets.mask_in_place(&mut question.asked);
    tell(&masked, env);
}

/// Reports the masked secrets.
pub fn tell(masked: &Masked, env: &Env) {
    if let Some(line) = masked.line() {
        env.note(line);
    }
}
