//! The personas of a forum's agents: files in a folder.

use crate::error::{ErrorKind, UserError};
use crate::trust::Project;
use kd_core::SeatName;
use kd_core::clean::clean_line;
use kd_core::config::{BACKENDS, Config, KeyPath};
use kd_core::persona::Persona;
use kd_store::beneath::{self, Folder};
use kd_store::bounds;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Loads all personas of a folder, by name. For the project's folder, uses the texts that were checked for consent.
/// Reports all mistakes of all files at once.
///
/// # Errors
/// If a file cannot be read, is not a persona, or changed after its text was checked.
pub fn load(
    folder: &Path,
    judged: Option<&BTreeMap<OsString, String>>,
) -> Result<Vec<Persona>, UserError> {
    let items = match Folder::find(folder)? {
        Some(folder) => folder.items()?,
        None => Vec::new(),
    };
    let mut files: Vec<_> = items.iter().map(|item| folder.join(&item.name)).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "yaml" || e == "yml"));
    files.sort();
    let mut personas: Vec<Persona> = Vec::new();
    let mut wrong = Vec::new();
    for file in files {
        let known = judged.map(|texts| texts.get(file.file_name().unwrap_or_default()));
        let text = match known {
            Some(Some(text)) => text.clone(),
            unjudged => match beneath::read_text(&file, bounds::PERSONA)? {
                Some(_) if unjudged.is_some() => {
                    wrong.push(format!("{}: it changed just now", file.display()));
                    continue;
                }
                Some(text) => text,
                None => continue,
            },
        };
        match Persona::parse(&text) {
            Ok(persona) => match personas.iter().any(|p| p.name == persona.name) {
                true => wrong.push(format!(
                    "{}: `{}` is in another file too",
                    file.display(),
                    persona.name
                )),
                false => personas.push(persona),
            },
            Err(bad) if bad.line > 0 => {
                wrong.push(format!("{}:{}: {}", file.display(), bad.line, bad.why))
            }
            Err(bad) => wrong.push(format!("{}: {bad}", file.display())),
        }
    }
    if !wrong.is_empty() {
        let what = match wrong.as_slice() {
            [one] => one.clone(),
            many => format!("{} mistakes in personas", many.len()),
        };
        let error = UserError::new(ErrorKind::Persona, what)
            .next("fix the file; `kd forum agent new` writes a valid one");
        return Err(if wrong.len() > 1 {
            error.because(wrong.join("\n"))
        } else {
            error
        });
    }
    personas.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(personas)
}

/// Returns the file of a persona.
fn file_of(folder: &Path, name: &SeatName) -> PathBuf {
    folder.join(format!("{name}.yaml"))
}

fn taken(file: &Path) -> UserError {
    UserError::usage(format!("{} already exists", file.display()))
        .next("choose another name, or edit the file")
}

/// Checks that a folder has no persona of this name.
///
/// # Errors
/// If it has one.
pub fn is_free(folder: &Path, name: &SeatName) -> Result<(), UserError> {
    let file = file_of(folder, name);
    match file.symlink_metadata() {
        Ok(_) => Err(taken(&file)),
        Err(_) => Ok(()),
    }
}

/// Writes a new persona, and returns its file.
///
/// # Errors
/// If the text is not a persona, there is one of this name, or the file cannot be written.
pub fn create(folder: &Path, name: &SeatName, text: &str) -> Result<PathBuf, UserError> {
    Persona::parse(text).map_err(|e| UserError::usage(e.to_string()))?;
    let file = file_of(folder, name);
    match beneath::create(&file, text.as_bytes())? {
        true => Ok(file),
        false => Err(taken(&file)),
    }
}

/// Extends the user's consent to what the project sets by a persona that the user has created: `before` and `after`
/// are its earlier and current settings. Returns `false` if there was no consent to extend.
///
/// # Errors
/// If the consent cannot be written.
pub fn allow(name: &SeatName, before: &Project, after: &Project) -> Result<bool, UserError> {
    let path = KeyPath::new([
        "forum".to_owned(),
        "agents".to_owned(),
        format!("{name}.yaml"),
    ]);
    Ok(after.allow_change(before, |at, _| at.is_within(&path))?)
}

/// Rejects a backend that is neither built in nor configured.
///
/// # Errors
/// If it is neither.
pub fn check_backend(backend: &str, config: &Config) -> Result<(), UserError> {
    if BACKENDS.contains(&backend) || config.providers.contains_key(backend) {
        return Ok(());
    }
    let own = config.providers.keys().map(String::as_str);
    let known: Vec<&str> = BACKENDS.iter().copied().chain(own).collect();
    Err(UserError::usage(format!(
        "`{}` is neither a backend nor a provider",
        clean_line(backend, usize::MAX)
    ))
    .next(format!("--backend NAME, one of: {}", known.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn persona(name: &str, backend: &str) -> String {
        format!("name: {name}\nbackend: {backend}\nsystem_prompt: You are {name}.\n")
    }

    #[test]
    fn a_persona_is_used_as_it_was_judged() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join(".kd/forum/agents");
        std::fs::create_dir_all(&folder).expect("made");
        let write = |name: &str, backend: &str| {
            let file = folder.join(format!("{name}.yaml"));
            std::fs::write(file, persona(name, backend)).expect("written");
        };
        // The file has changed since.
        write("ada", "codex");
        let judged = BTreeMap::from([(OsString::from("ada.yaml"), persona("ada", "local"))]);
        let loaded = load(&folder, Some(&judged)).expect("personas");
        assert_eq!(loaded[0].backend, "local");
        assert_eq!(load(&folder, None).expect("personas")[0].backend, "codex");
        // A file not checked for consent.
        write("eve", "codex");
        let error = load(&folder, Some(&judged)).expect_err("a new file");
        assert!(
            error.what.contains("eve.yaml: it changed"),
            "{}",
            error.what
        );
    }
}
