//! What is masked in the user's words: well-known shapes, and the keys that the settings name.

use super::ask::notice_line;
use super::here;
use super::question::Question;
use kd_core::config::Config;
use kd_core::secrets::{Masked, Secrets};

/// The secrets that are masked with these settings.
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

/// Masks the secrets of a question and says so.
pub(super) fn mask(secrets: &Secrets, question: &mut Question, quiet: bool) {
    let masked = secrets.mask_in_place(&mut question.text);
    secrets.mask_in_place(&mut question.asked);
    tell(&masked, quiet);
}

/// Says what was masked.
pub(super) fn tell(masked: &Masked, quiet: bool) {
    if let Some(line) = masked.line().filter(|_| !quiet) {
        notice_line(&line);
    }
}
