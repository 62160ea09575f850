//! The memory of a project across deliberations.

use crate::env::Env;
use crate::error::UserError;
use kd_core::memory::LongTerm;
use kd_store::memory;

/// The name of the domain among the preferences.
const DOMAIN: &str = "domain";

/// Returns the memory; empty without a project.
///
/// # Errors
/// The file cannot be read.
pub fn read(env: &Env) -> Result<LongTerm, UserError> {
    match env.find_layout()? {
        Some(layout) => Ok(memory::read(&layout)?),
        None => Ok(LongTerm::default()),
    }
}

/// Remembers a preference, or the `domain`. Creates `.kd` if it is missing.
///
/// # Errors
/// The file cannot be written.
pub fn set(name: &str, value: &str, env: &Env) -> Result<(), UserError> {
    let layout = env.make_layout()?.layout;
    memory::update(&layout, |kept| match name {
        DOMAIN => value.clone_into(&mut kept.domain),
        name => {
            kept.preferences.insert(name.to_owned(), value.to_owned());
        }
    })?;
    Ok(())
}

/// Forgets a preference, the `domain` or a thread by its name; without a name, everything. Returns whether there was
/// something.
///
/// # Errors
/// There is no project, or the file cannot be written.
pub fn forget(name: Option<&str>, env: &Env) -> Result<bool, UserError> {
    let layout = env.layout()?;
    let has_changed = memory::update(&layout, |kept| {
        let before = kept.clone();
        match name {
            None => *kept = LongTerm::default(),
            Some(DOMAIN) => kept.domain.clear(),
            Some(name) => {
                kept.preferences.remove(name);
                kept.sessions
                    .retain(|s| s.thread.0 != name && s.thread.0 != format!("council-{name}"));
            }
        }
        *kept != before
    })?;
    Ok(has_changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preference_is_remembered_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::of([("HOME", dir.path())]).in_folder(dir.path());
        assert!(read(&env).unwrap().is_empty());
        set("tone", "short", &env).unwrap();
        set("domain", "sailing", &env).unwrap();
        let kept = read(&env).unwrap();
        assert_eq!(kept.preferences.get("tone").unwrap(), "short");
        assert_eq!(kept.domain, "sailing");
        assert!(!forget(Some("color"), &env).unwrap());
        assert!(forget(Some("domain"), &env).unwrap());
        assert!(forget(Some("tone"), &env).unwrap());
        assert!(read(&env).unwrap().is_empty());
        assert!(!forget(None, &env).unwrap());
    }
}
