//! Decides which verdicts are the user's own: the verdicts that this user's `kd` has reached. It notes a digest of
//! each outside of the project. Whether git tracks the record, or where the folder came from, then makes no
//! difference.

use super::NAME_CHARS;
use crate::error::UserError;
use kd_core::clean::clean_line;
use kd_core::deliberation::unmarked;
use kd_core::event::Event;
use kd_core::hex::hex;
use kd_core::{ThreadId, Timestamp};
use kd_engine::{Answers, Concluded};
use kd_eval::marks::{By, Mark};
use kd_store::error::Error;
use kd_store::{Layout, Thread, Verdicts, log};
use sha2::{Digest, Sha256};

/// Bytes of a digest: nobody can make another verdict with the same one.
const DIGEST_BYTES: usize = 16;

/// Returns the digest of what a mark would teach, whatever the user says about the verdict: members with their models and
/// answers, the outcome, and how it was reached.
fn digest(mark: &Mark) -> String {
    let told = Mark {
        // The notes say of which project and thread.
        project: String::new(),
        thread: String::new(),
        at: Timestamp::UNIX_EPOCH,
        by: By::User,
        credit: 0.0,
        answer: None,
        // The last requests may end after the verdict fell.
        calls: 0,
        usd: 0.0,
        ..mark.clone()
    };
    // Marks hold no map and no value that JSON has no form for.
    let text = serde_json::to_vec(&told).unwrap_or_default();
    hex(&Sha256::digest(text)[..DIGEST_BYTES])
}

/// Records a new verdict, unless its answers come from a record, because anybody may have written that. Returns a
/// notice if that fails: the verdict cannot be marked then.
pub(crate) fn note(layout: &Layout, concluded: &Concluded<'_>) -> Option<Event> {
    if concluded.answers == Answers::Recorded {
        return None;
    }
    let mark = unmarked(concluded.report, "")?;
    let noted = layout.note_verdict(&ThreadId(mark.thread.clone()), &digest(&mark));
    let text = unnoted(&noted.err()?);
    Some(Event::Noticed { text })
}

/// Says why a verdict could not be noted, and what helps. It is recorded, so it names no file of the user.
fn unnoted(error: &Error) -> String {
    let (why, next) = match error {
        Error::Unsafe { why, .. } => (
            format!("verdicts.jsonl in your state folder is not used: {why}"),
            "`kd mark right` names the file and what to do",
        ),
        Error::Io { action, source, .. } => (
            format!(
                "cannot {action} verdicts.jsonl in your state folder: {}",
                source.kind()
            ),
            "free space, or make the folder writable",
        ),
        Error::NoHome { variable } => (
            format!("you have no state folder: neither HOME nor {variable} is set"),
            "set one of them",
        ),
        Error::LockBusy { .. } => (
            "another program holds the lock of verdicts.jsonl in your state folder".to_owned(),
            "wait for it to end, or stop it",
        ),
        _ => (
            "verdicts.jsonl in your state folder cannot be used".to_owned(),
            "`kd mark right` names the file and what to do",
        ),
    };
    format!(
        "this verdict was not noted as your own, so it cannot be marked later: {why}; {next}, then ask again"
    )
}

/// Refuses a verdict that this user's `kd` has not reached. What its members are called comes from somebody else's file
/// then, and a mark would count for the user's models of these names.
///
/// # Errors
/// If it is such a verdict.
pub fn check_own(thread: &Thread, mark: &Mark, fell: &Verdicts) -> Result<(), UserError> {
    if fell.holds(thread.id(), &digest(mark)) {
        return Ok(());
    }
    let id = clean_line(&thread.id().0, NAME_CHARS);
    let why = if thread.meta().origin().is_some() {
        format!("{id} was imported")
    } else if thread.meta().lineage().is_some_and(|fork| fork.foreign) {
        format!("{id} is a fork of a thread that may be somebody else's")
    } else if !log::is_own(thread) {
        format!(
            "the record of {id} is tracked by git or belongs to another user, and differs from what kd saw here"
        )
    } else {
        format!("kd did not see the verdict of {id} fall here")
    };
    Err(UserError::usage(format!("{why}; nothing was marked"))
        .because("its members may be named by somebody else's file, and marks are about your own")
        .next("`kd deliberate \"…\"` asks your own members: mark that verdict"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_eval::marks::{Member, VERSION};

    fn mark() -> Mark {
        Mark {
            v: VERSION,
            project: "p-1".into(),
            thread: "council-a94d".into(),
            message: 6,
            at: Timestamp::UNIX_EPOCH,
            by: By::User,
            kind: "number".into(),
            protocol: "vote".into(),
            members: vec![Member {
                name: "ann".into(),
                model: "vendor/m-1".into(),
                key: Some("391".into()),
                backs: true,
                confidence: Some(0.9),
            }],
            unasked: Vec::new(),
            stopping: None,
            winner: Some("391".into()),
            credit: 0.0,
            answer: None,
            calls: 3,
            usd: 0.01,
        }
    }

    #[test]
    fn a_verdict_that_cannot_be_noted_says_why_and_names_no_file() {
        let path = || std::path::PathBuf::from("/home/somebody/state");
        let io = |kind: std::io::ErrorKind| Error::Io {
            action: "write",
            path: path(),
            source: kind.into(),
        };
        let busy = Error::LockBusy {
            path: path(),
            holder: " by process 7".into(),
            waited: std::time::Duration::from_secs(20),
        };
        let variable = "XDG_STATE_HOME";
        let why = "others can write it";
        for (error, parts) in [
            (
                Error::Unsafe { path: path(), why },
                ["others can write it", "`kd mark right` names the file"],
            ),
            (
                io(std::io::ErrorKind::StorageFull),
                ["cannot write verdicts.jsonl", "no storage space"],
            ),
            (
                io(std::io::ErrorKind::PermissionDenied),
                ["permission denied", "make the folder writable"],
            ),
            (busy, ["holds the lock", "wait for it"]),
            (Error::NoHome { variable }, ["neither HOME", "set one"]),
        ] {
            let text = unnoted(&error);
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
            assert!(text.ends_with(", then ask again"), "{text}");
            assert!(!text.contains("somebody"), "{text}");
        }
    }

    #[test]
    fn a_digest_tells_what_a_mark_would_teach_and_not_what_the_user_says() {
        let own = digest(&mark());
        type Change = fn(&mut Mark);
        let taught: [Change; 8] = [
            |m| m.message = 7,
            |m| m.kind = "exact".into(),
            |m| m.members[0].model = "vendor/m-2".into(),
            |m| m.members[0].name = "bob".into(),
            |m| m.members[0].key = None,
            |m| m.unasked = vec!["vendor/m-3".into()],
            |m| m.winner = Some("392".into()),
            |m| m.stopping = Some("margin".into()),
        ];
        for change in taught {
            let mut other = mark();
            change(&mut other);
            assert_ne!(digest(&other), own, "{other:?}");
        }
        let said: [Change; 4] = [
            |m| m.credit = 1.0,
            |m| m.answer = Some("391".into()),
            |m| m.usd = 0.02,
            |m| m.project = "p-2".into(),
        ];
        for change in said {
            let mut other = mark();
            change(&mut other);
            assert_eq!(digest(&other), own, "{other:?}");
        }
    }
}
