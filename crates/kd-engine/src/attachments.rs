//! Pictures and documents of a session: from the front end to the thread's folder, and from there into requests.

use kd_core::media::{self, Attachment, MEDIA_BYTES_MAX, MEDIA_MAX, Named};
use kd_core::{Prompt, Request};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Maximum number of files that wait for their message. Files of messages that were never sent are dropped.
const WAITING_MAX: usize = 4 * MEDIA_MAX;

/// Files whose message is not sent yet, by the names of their copies.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<BTreeMap<String, Attachment>>);

impl Waiting {
    /// Adds the files of a message that will be sent.
    pub(crate) fn add(&self, files: Vec<Attachment>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() + files.len() > WAITING_MAX {
            waiting.clear();
        }
        waiting.extend(files.into_iter().map(|file| (file.copy.to_string(), file)));
    }

    /// Takes the files that a message names.
    pub(crate) fn take(&self, body: &str) -> Vec<Attachment> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_empty() {
            return Vec::new();
        }
        let named = media::named(body).into_iter();
        named
            .filter_map(|named| waiting.remove(&*named.copy))
            .collect()
    }
}

/// Returns whether a prompt names copies.
pub(crate) fn are_named(prompt: &Prompt) -> bool {
    parts(prompt)
        .iter()
        .any(|part| !media::named(part).is_empty())
}

fn parts(prompt: &Prompt) -> [&str; 4] {
    [
        &prompt.rules,
        &prompt.persona,
        &prompt.history,
        &prompt.turn,
    ]
}

/// Adds the files that its prompt names to a request, the newest first if there are too many. Returns the names of
/// the files that cannot be sent.
pub(crate) fn load(request: &mut Request, folder: &Path) -> Vec<String> {
    let mut found: Vec<Named> = Vec::new();
    for part in parts(&request.prompt) {
        for named in media::named(part) {
            // A file that is shown again is as new as its last mention.
            found.retain(|other| other.copy != named.copy);
            found.push(named);
        }
    }
    let (mut lost, mut bytes) = (Vec::new(), 0);
    for named in found.iter().rev() {
        let file = match request.attachments.len() < MEDIA_MAX {
            true => kd_store::attachments::read(folder, named),
            false => None,
        };
        match file {
            Some(file) if bytes + file.bytes.len() as u64 <= MEDIA_BYTES_MAX => {
                bytes += file.bytes.len() as u64;
                request.attachments.push(file);
            }
            _ => lost.push(named.name.clone()),
        }
    }
    request.attachments.reverse();
    lost.reverse();
    lost
}
