//! The promise about a verdict. It is computed once, with the verdict, from the marks of the user who asks, and
//! recorded in the thread. Every front end shows the recorded promise.
//!
//! A record may be somebody else's: imported, cloned or shared. Front ends that open the thread later show
//! [`Standing::words_then`], which promises the reader nothing.

use crate::error::UserError;
use crate::kingdom::Kingdom;
use kd_core::Record;
use kd_core::event::Event;
use kd_core::view::View;
use kd_engine::Concluded;
use kd_eval::marks::Standing;
use kd_store::{Thread, log};
use serde::Serialize;
#[cfg(feature = "forum")]
use {crate::env::Env, kd_core::deliberation::report::Report, kd_engine::Answers};

/// Why a continued deliberation promises nothing.
pub const FROM_RECORD: &str = "no promise: answers come from a record";

/// A promise in a record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Promised {
    /// The number of the verdict's message.
    pub message: u32,
    /// The promise, or why there was none: by the marks of the person who asked.
    pub promise: Standing,
}

/// Returns what the record of a thread says was promised about its verdicts, in order. Statements that cannot be true
/// are left out.
///
/// # Errors
/// If the record cannot be read.
pub fn promised(thread: &Thread) -> Result<Vec<Promised>, UserError> {
    Ok(promised_in(&log::read(thread)?.records))
}

fn promised_in(records: &[Record]) -> Vec<Promised> {
    let mut view = View::default();
    let mut found = Vec::new();
    for record in records {
        // Only these events change what is promised.
        let Event::Promised { message, .. } = &record.event else {
            if matches!(record.event, Event::Deliberated { .. }) {
                view.fold_record(record);
            }
            continue;
        };
        view.fold_record(record);
        found.extend(view.report.promised.take().map(|promise| Promised {
            message: *message,
            promise: *promise,
        }));
    }
    found
}

impl Kingdom {
    /// Returns the promise of the user's marks about a new verdict; also without marks if a share is required.
    ///
    /// There are no promises for other machines or from workers of a fleet, because promises use the marks of the
    /// person who asks.
    #[cfg(feature = "forum")]
    pub(crate) fn promising(
        &self,
        required: Option<f64>,
    ) -> impl Fn(&Concluded<'_>) -> Option<Event> + use<> {
        let promises = !self.config().serves_others && !self.env().is_in_fleet();
        let env = promises.then(|| self.env().clone());
        move |concluded| promise(concluded.report, concluded.answers, env.as_ref()?, required)
    }

    /// Without databases there are no marks.
    #[cfg(not(feature = "forum"))]
    pub(crate) fn promising(
        &self,
        _required: Option<f64>,
    ) -> impl Fn(&Concluded<'_>) -> Option<Event> + use<> {
        |_| None
    }
}

/// Returns what the user's marks promise about the verdict of a report. `None` without a verdict, and also without marks
/// if nothing is required: users who do not mark verdicts are not bothered.
///
/// Answers of a record may be forged: about them nothing is promised, whatever names of models it states.
#[cfg(feature = "forum")]
fn promise(report: &Report, answers: Answers, env: &Env, required: Option<f64>) -> Option<Event> {
    if answers == Answers::Recorded {
        report.verdict.as_ref()?.winner.as_ref()?;
        let marks = kd_sql::marks::count(&env.user_dirs());
        let has_marks = !marks.is_ok_and(|count| count == 0);
        let text = FROM_RECORD.to_owned();
        return (has_marks || required.is_some()).then_some(Event::Noticed { text });
    }
    let layout = env.find_layout_accepting(&[]).ok().flatten()?;
    let project = kd_store::user_dirs::project_key(layout.root());
    let verdict = kd_core::deliberation::unmarked(report, &project)?;
    let like = |now| Ok(kd_sql::marks::like(&env.user_dirs(), &verdict, now)?);
    let Ok(evidence) = env.now().and_then(like) else {
        // The reason names files of the user, and would be recorded.
        let text = "your marks cannot be read, so nothing is promised: `kd marks` says why";
        return Some(Event::Noticed { text: text.into() });
    };
    if evidence.is_empty() && required.is_none() {
        return None;
    }
    Some(Event::Promised {
        message: verdict.message,
        promise: Box::new(kd_eval::marks::standing(&evidence, &verdict, required)),
    })
}
