//! What follows a verdict, whichever way the council was asked: a note that it is the user's own, the promise about it, and
//! long-term memory.

use crate::kingdom::Kingdom;
use crate::marks;
use kd_core::config::Config;
use kd_core::event::Event;
use kd_core::memory::Session;
use kd_engine::{Concluded, Engine};
use kd_store::{Layout, Thread, memory};

/// Recorded if a verdict could not be saved in long-term memory. The reason names files of the user, so it is left out.
const NOT_SAVED: &str =
    "the verdict could not be saved in long-term memory: `kd memory show` tests the file";

impl Kingdom {
    /// Returns the engine that notes each verdict as the user's own, promises something about it, and saves it in long-term
    /// memory if these settings say so.
    ///
    /// Never saved are verdicts on questions of other machines, of batches and fleets (a question must not change the
    /// answers to the questions after it), and of private threads.
    pub(crate) fn concluding(
        &self,
        engine: Engine,
        config: &Config,
        layout: &Layout,
        required: Option<f64>,
    ) -> Engine {
        let promise = self.promising(required);
        let saves = config.deliberation.memory.long_term
            && !self.config().serves_others
            && !self.env().is_in_batch();
        let noted = layout;
        let layout = saves.then(|| layout.clone());
        // A worker of a fleet has no marks.
        let notes = (!self.env().is_in_fleet()).then(|| noted.clone());
        engine.concluding(move |concluded| {
            let noted = notes.as_ref();
            let unnoted = noted.and_then(|layout| marks::note(layout, concluded));
            let saved = layout.as_ref().and_then(|layout| save(layout, concluded));
            promise(concluded)
                .into_iter()
                .chain(unnoted)
                .chain(saved)
                .collect()
        })
    }
}

/// Saves a verdict in long-term memory. Returns a notice if that fails.
fn save(layout: &Layout, concluded: &Concluded<'_>) -> Option<Event> {
    let session = concluded.report.remembered()?;
    let save = |session: Session| {
        // The thread may have become private, or been deleted, while the council deliberated.
        if Thread::open_folder(concluded.thread)?.meta().is_private() {
            return Ok(());
        }
        memory::update(layout, |memory| memory.remember(session))
    };
    save(session).is_err().then(|| Event::Noticed {
        text: NOT_SAVED.to_owned(),
    })
}
