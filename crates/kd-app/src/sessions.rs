//! The sessions that agent programs would resume in a project.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use kd_core::SeatName;
use kd_store::session;

/// Returns the members of a project that have a session, all or only the named one.
///
/// # Errors
/// No member has this name, there is no project, or its files cannot be read.
pub fn kept(member: Option<&str>, env: &Env) -> Result<Vec<SeatName>, UserError> {
    let layout = env.layout()?;
    let mut seats = session::kept(&layout.sessions_folder())?;
    if let Some(name) = member {
        let config = env.settings(Some(&layout))?.config;
        let known = |seat: &&SeatName| seat.as_str() == name;
        let found = seats.iter().find(known).cloned();
        if found.is_none() && !config.agents.contains_key(name) {
            let mut names: Vec<String> = seats.iter().map(ToString::to_string).collect();
            names.extend(config.agents.keys().cloned());
            names.sort();
            names.dedup();
            let what = format!("no member is named {name}");
            return Err(UserError::new(ErrorKind::UnknownMember, what).next(
                match names.is_empty() {
                    true => "no member has a saved session here".to_owned(),
                    false => format!("members are: {}", names.join(", ")),
                },
            ));
        }
        seats = found.into_iter().collect();
    }
    let mut with_session = Vec::new();
    for seat in seats {
        if session::read(&layout, &seat)?.resume_id.is_some() {
            with_session.push(seat);
        }
    }
    Ok(with_session)
}

/// Forgets the sessions of members: their next answers begin new ones.
///
/// # Errors
/// A file cannot be written.
pub fn forget(seats: &[SeatName], env: &Env) -> Result<(), UserError> {
    let layout = env.layout()?;
    for seat in seats {
        session::update(&layout, seat, |state| state.resume_id = None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_members_with_a_session_are_named_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::of([("HOME", dir.path())]).in_folder(dir.path());
        let layout = env.make_layout().unwrap().layout;
        let [ada, bo] = ["ada", "bo"].map(|name| SeatName::new(name).unwrap());
        session::update(&layout, &ada, |state| state.resume_id = Some("s1".into())).unwrap();
        session::update(&layout, &bo, |state| state.resume_id = None).unwrap();
        assert_eq!(kept(None, &env).unwrap(), std::slice::from_ref(&ada));
        assert_eq!(kept(Some("bo"), &env).unwrap(), []);
        let error = kept(Some("cy"), &env).unwrap_err();
        assert_eq!(error.kind, ErrorKind::UnknownMember);
        assert_eq!(error.next.unwrap(), "members are: ada, bo");
        forget(&[ada], &env).unwrap();
        assert_eq!(kept(None, &env).unwrap(), []);
    }
}
