//! Masks secrets in the user's words: well-known formats, and the keys named in the settings.

use super::ask::notice_line;
use super::here;
use super::question::Question;
use kd_core::config::Config;
use kd_core::secrets::{Masked, Secrets};

/// Returns the secrets to mask with these settings.
pub(super) fn of(config: &Config, allow: bool) -> Secrets {
    let providers = config.providers.values().map(|p| &p.key_env);
    let remotes = config.forum.remotes.values().map(|r| &r.key_env);
    let servers = config.forum.servers.values().map(|s| &s.key_env);
    let names = providers.chain(remotes).chain(servers).flatten();
    let values = names.filter_map(|name| here::os_var(name)?.into_string().ok());
    let mut secrets = Secrets::new(values);
    secrets.allow = allow;
    secrets
}

/// Masks the secrets of a question and reports it.
pub(super) fn mask(secrets: &Secrets, question: &mut Question, quiet: bool) {
    let masked = secrets.mask_in_place(&mut question.text);
    secrets.mask_in_place(&mut question.asked);
    tell(&masked, quiet);
}

/// Reports what was masked.
pub(super) fn tell(masked: &Masked, quiet: bool) {
    if let Some(line) = masked.line().filter(|_| !quiet) {
        notice_line(&line);
    }
}
