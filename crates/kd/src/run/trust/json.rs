//! `kd trust --json`: what a folder asks for, and whether the user allowed it. The schema is
//! `docs/schemas/trust.schema.json`.

use crate::error::Error;
use kd_app::Env;
use kd_app::forum::foreign::ForeignForum;
use kd_app::threads::Layout;
use kd_app::trust::{
    self, Because, Foreign, Loaded, Programs, WantedSetting, place, project_texts,
};
use kd_core::config::effect;
use kd_core::formats::TRUSTED;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// The findings in a folder.
pub(super) struct Wanted<'a> {
    /// An owner that is not accepted yet.
    pub(super) foreign: Option<&'a Foreign>,
    pub(super) loaded: &'a Loaded,
    pub(super) layout: Option<&'a Layout>,
    pub(super) programs: Option<&'a Programs>,
    pub(super) programs_trusted: bool,
    /// A forum whose elections do not count yet.
    pub(super) forum: Option<&'a ForeignForum>,
}

impl Wanted<'_> {
    /// Returns it as JSON.
    pub(super) fn value(&self, env: &Env) -> Value {
        let consent = self.loaded.project.consent.as_ref();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let owners = self.foreign.map_or(Vec::new(), |foreign| {
            foreign.owners.iter().map(ToString::to_string).collect()
        });
        let settings = consent.map_or(Vec::new(), |consent| {
            let all = consent.settings.iter();
            all.map(|wanted| setting(wanted, &trust::remarks(wanted, &consent.root, env)))
                .collect()
        });
        let held = self.loaded.project.held.iter();
        let tracked = held.filter(|wanted| matches!(wanted.why, Because::Tracked(_)));
        let tracked: Vec<Value> = tracked.map(|wanted| setting(wanted, &[])).collect();
        let texts = self
            .layout
            .map(|layout| project_texts(self.loaded, layout))
            .unwrap_or_default();
        let programs = self.programs.map(|programs| {
            let files: Vec<String> = super::files_of(programs).map(|file| text(&file)).collect();
            json!({"folder": text(programs.top()), "files": files, "allowed": self.programs_trusted})
        });
        let forum = self.forum.map(|forum| {
            let (_, settings) = forum.listed();
            json!({"elected": settings, "allowed": false})
        });
        let allowed = |wanted: &Value| wanted["allowed"] == true;
        let trusted = self.foreign.is_none()
            && self.forum.is_none()
            && self.programs_trusted
            && settings.iter().all(allowed);
        let root = self.foreign.map(|foreign| foreign.root.as_path());
        let root = root.or(consent.map(|consent| consent.root.as_path()));
        let root = root.or(self.layout.map(Layout::root));
        json!({
            "v": TRUSTED.version,
            "folder": root.map(text),
            "trusted": trusted,
            "owners": owners,
            "settings": settings,
            "tracked": tracked,
            "texts": texts,
            "programs": programs,
            "forum": forum,
        })
    }
}

fn setting(wanted: &WantedSetting, remarks: &[String]) -> Value {
    json!({
        "key": wanted.path.to_string(),
        "value": wanted.value,
        "effect": effect(&wanted.path),
        "place": place(wanted),
        "allowed": wanted.allowed,
        "remarks": remarks,
    })
}

/// Notes that the user now allows everything that is listed.
pub(super) fn all_allowed(told: &mut Value) {
    told["trusted"] = true.into();
    let settings = told["settings"].as_array_mut().into_iter().flatten();
    settings.for_each(|setting| setting["allowed"] = true.into());
    for part in ["programs", "forum"] {
        if let Some(part) = told[part].as_object_mut() {
            part.insert("allowed".to_owned(), true.into());
        }
    }
}

/// Prints one object.
pub(super) fn print(value: &Value) -> Result<(), Error> {
    let text = kd_app::json::text(value, true)?;
    Ok(writeln!(crate::out::stdout(), "{text}")?)
}
