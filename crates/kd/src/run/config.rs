//! `kd config …`: shows, checks and changes settings.

use super::here::Here;
use super::notices::notice_line;
use super::trust;
use crate::args::config::{Check, Config, File, Path, Set, Show, Unset};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use crate::render::wrap::width;
use kd_app::settings::{self, Setting, Written};
use kd_core::config::{KEYS, KeyPath, Layer, Reader, schema};
use serde_json::{Value, json};
use std::io::Write;

pub(super) fn run(args: &Config, here: &Here) -> Result<Exit, Error> {
    match args {
        Config::Show(args) => show(args, here)?,
        Config::Check(args) => check(args, here)?,
        Config::Schema => writeln!(crate::out::stdout(), "{}", json::text(&schema(), true)?)?,
        Config::Set(args) => set(args, here)?,
        Config::Unset(args) => unset(args, here)?,
        Config::Path(args) => path(args, here)?,
    }
    Ok(Exit::Done)
}

fn show(args: &Show, here: &Here) -> Result<(), Error> {
    let layout = here.find_layout()?;
    let loaded = here.settings(layout.as_ref())?;
    for notice in &loaded.notices {
        notice_line(notice);
    }
    if loaded.project.holds_back() {
        notice_line(&kd_app::trust::held_line(&loaded.project));
    }
    let mut settings = settings::effective(&loaded, here);
    if let Some(key) = &args.key {
        settings.retain(|s| is_below(&s.path.to_string(), key));
        if settings.is_empty() && is_section(key) {
            if args.json {
                writeln!(crate::out::stdout(), "[]")?;
            } else {
                notice_line(&format!("nothing is set below {}", clean::line(key)));
            }
            return Ok(());
        }
        if settings.is_empty() {
            return Err(
                Error::usage(format!("no setting starts with `{}`", clean::line(key)))
                    .next("kd config show"),
            );
        }
    } else if !args.json {
        settings.retain(|s| !is_blank(s));
    }
    let mut out = crate::out::lines(args.json);
    if args.json {
        let held = loaded.project.held.iter().filter(|_| args.origin);
        let held = held.filter(|s| {
            let path = s.path.to_string();
            args.key.as_ref().is_none_or(|key| is_below(&path, key))
        });
        let held = held.map(|s| {
            json!({"key": s.path.to_string(), "value": s.value, "origin": s.origin, "held_back": s.why.words()})
        });
        let rows: Vec<Value> = settings
            .iter()
            .map(|s| {
                let mut row = json!({"key": s.path.to_string(), "value": s.value});
                if args.origin {
                    row["origin"] = json!(s.origin);
                }
                row
            })
            .chain(held)
            .collect();
        writeln!(out, "{}", json::text(&rows, true)?)?;
        return Ok(());
    }
    let styles = here.out_styles();
    let longest = settings
        .iter()
        .map(|s| width(&s.path.to_string()))
        .max()
        .unwrap_or(0);
    for setting in &settings {
        let key = setting.path.to_string();
        let pad = " ".repeat(longest - width(&key));
        let mut line = format!("{key}{pad}  {}", value(&setting.value));
        if args.origin {
            line.push_str(
                &styles.dim(&format!("  ({})", clean::line(&setting.origin.to_string()))),
            );
        }
        writeln!(out, "{line}{}", styles.dim(idle(setting)))?;
    }
    let wanted = |path: &str| args.key.as_ref().is_none_or(|key| is_below(path, key));
    let held = loaded.project.held.iter().filter(|_| args.origin);
    for held in held.filter(|held| wanted(&held.path.to_string())) {
        let why = format!("(held back: {}; {})", held.why.words(), held.origin);
        writeln!(
            out,
            "{} = {}  {}",
            held.path,
            trust::shown(&held.value),
            styles.dim(&clean::line(&why))
        )?;
    }
    Ok(())
}

/// Returns whether settings below `key` have names that the user chooses; there may be none: `chat.keys`, `agents`.
fn is_section(key: &str) -> bool {
    let key = key.trim_end_matches('.');
    let mut known = KEYS.iter().filter_map(|known| known.path.split_once(".<"));
    known.any(|(section, _)| section == key)
}

/// Returns whether a path is `key` or below it.
fn is_below(path: &str, key: &str) -> bool {
    path.strip_prefix(key.trim_end_matches('.'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns whether a setting of a single agent or service is a default: listing these would hide the ones the user set.
fn is_blank(setting: &Setting) -> bool {
    let single = setting
        .path
        .segments()
        .first()
        .is_some_and(|s| s == "agents" || s == "providers");
    single && setting.origin.layer == Layer::Builtin
}

/// Formats a value as it could be typed after `kd config set KEY`.
fn value(value: &Value) -> String {
    match value {
        Value::String(text) => clean::line(&format!("{text:?}")),
        Value::Null => "-".to_owned(),
        other => clean::line(&other.to_string()),
    }
}

/// Notes that only other programs use a setting.
fn idle(setting: &Setting) -> &'static str {
    if setting.key.reader == Reader::Kd {
        ""
    } else {
        "  (read by kingdom-cli only)"
    }
}

fn check(args: &Check, here: &Here) -> Result<(), Error> {
    let loaded = match &args.file {
        Some(file) => {
            // A missing layer sets nothing, but a file given explicitly must exist.
            std::fs::metadata(file).map_err(|e| {
                Error::new(
                    "config",
                    Exit::Error,
                    format!("{} cannot be read", file.display()),
                )
                .because(e)
                .next("name a configuration file, or omit the name to check all layers")
            })?;
            settings::of_file(file)?
        }
        None => here.settings(here.find_layout()?.as_ref())?,
    };
    // Other programs have no use for them: only the screen of the chat knows them.
    let (_, keys) = kd_tui::keymap::Keymap::new(&loaded.config.chat.keys);
    if !keys.is_empty() {
        let what = match keys.as_slice() {
            [one] => one.clone(),
            _ => format!("chat.keys has {} mistakes", keys.len()),
        };
        let error = Error::new("config", Exit::Usage, what);
        let error = match keys.as_slice() {
            [_] => error,
            all => error.because(all.join("\n")),
        };
        return Err(error.next("/keys in `kd chat` lists the actions and their keys"));
    }
    let held = &loaded.project;
    let held = held.holds_back().then(|| kd_app::trust::held_line(held));
    let unable = match args.file {
        Some(_) => Vec::new(),
        None => settings::cannot_answer(&loaded.config, here),
    };
    if args.json {
        let files = loaded.files.iter();
        let files: Vec<_> = files.map(|(_, file)| file.to_string_lossy()).collect();
        let unable = unable.iter().map(|(name, failure)| {
            json!({"member": name, "message": failure.message, "hint": failure.hint()})
        });
        let checked = json!({
            "v": kd_core::formats::CONFIG_CHECK.version,
            "files": files,
            "notices": loaded.notices.iter().chain(&held).collect::<Vec<_>>(),
            "cannot_answer": unable.collect::<Vec<_>>(),
        });
        writeln!(crate::out::stdout(), "{}", json::text(&checked, true)?)?;
        return Ok(());
    }
    let told = loaded.notices.iter().chain(&held);
    told.for_each(|notice| notice_line(notice));
    let read = match loaded.files.len() {
        0 => "no configuration file: the built-in settings apply".to_owned(),
        _ => {
            let names: Vec<String> = loaded
                .files
                .iter()
                .map(|(_, f)| f.display().to_string())
                .collect();
            format!("no mistakes in {}", names.join(" and "))
        }
    };
    notice_line(&read);
    for (name, failure) in unable {
        let (what, next) = (&failure.message, failure.hint());
        notice_line(&format!("{name} cannot answer: {what}; {next}"));
    }
    Ok(())
}

fn set(args: &Set, here: &Here) -> Result<(), Error> {
    let path = key(&args.key)?;
    let layer = args.layer.layer.into();
    let written = settings::set_text(&path, &args.value, layer, here)?;
    told(&written, "is set in");
    Ok(())
}

/// Sets one setting in the user's own file, and prints its path.
pub(super) fn set_for_user(key_text: &str, value: &str, here: &Here) -> Result<(), Error> {
    let path = key(key_text)?;
    let written = settings::set(&path, value.into(), Layer::User, here)?;
    told(&written, "is set in");
    Ok(())
}

fn unset(args: &Unset, here: &Here) -> Result<(), Error> {
    let path = key(&args.key)?;
    let written = settings::unset(&path, args.layer.layer.into(), here)?;
    told(&written, "is removed from");
    Ok(())
}

fn key(text: &str) -> Result<KeyPath, Error> {
    text.parse().map_err(|e: kd_core::config::BadKeyPath| {
        Error::usage(e.to_string())
            .next("write it as in `kd config show`, for example council.timeout")
    })
}

fn told(written: &Written, done: &str) {
    notice_line(&format!(
        "{} {done} {}",
        written.path,
        written.file.display()
    ));
    written
        .notices
        .iter()
        .for_each(|notice| notice_line(notice));
}

fn path(args: &Path, here: &Here) -> Result<(), Error> {
    let layout = here.find_layout()?;
    let paths = here.config_paths(layout.as_ref());
    let layers = [Layer::User, Layer::Project, Layer::Local];
    let files = layers
        .into_iter()
        .filter_map(|layer| Some((layer.word(), paths.file(layer)?)));
    let mut out = crate::out::lines(args.json);
    if args.json {
        let files = files.map(|(layer, file)| {
            json!({"layer": layer, "file": file.to_string_lossy(), "exists": file.exists()})
        });
        writeln!(out, "{}", json::text(&files.collect::<Vec<Value>>(), true)?)?;
        return Ok(());
    }
    for (layer, file) in files {
        let there = if file.exists() { "" } else { "  (absent)" };
        writeln!(out, "{layer:8} {}{there}", file.display())?;
    }
    Ok(())
}

impl From<File> for Layer {
    fn from(file: File) -> Self {
        match file {
            File::User => Layer::User,
            File::Project => Layer::Project,
            File::Local => Layer::Local,
        }
    }
}
