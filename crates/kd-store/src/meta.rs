//! `thread.json`: the metadata of a thread.

use crate::beneath::Folder;
use crate::bounds;
use crate::error::Error;
use crate::json;
use crate::layout::THREAD_FILE;
use jiff::Timestamp;
use kd_core::formats::THREAD;
use kd_core::ids::{SeatName, ThreadId};
use kd_core::names::KING;
use kd_core::roles::{CHAIR, OTHER_CHAIR};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The key of the version, which files of version 1 lack.
pub(crate) const VERSION: &str = "kd_version";

/// The pattern of council threads; others belong to other programs.
pub const COUNCIL: &str = "council";

/// The name with which lines of the program begin.
const PROGRAM: &str = "kd";

/// The key that marks a thread as private.
pub(crate) const PRIVATE: &str = "private";

/// The content of `thread.json`. Unknown keys are kept in `extra`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The folder's name.
    pub id: ThreadId,
    /// `king`, then the members.
    #[serde(default)]
    pub members: Vec<String>,
    /// `council`, `work` or `direct`.
    #[serde(default = "direct")]
    pub pattern: String,
    /// `council` or `review`.
    #[serde(default = "council")]
    pub phase: String,
    /// The time when it was opened, as the file states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn direct() -> String {
    "direct".into()
}

fn council() -> String {
    COUNCIL.into()
}

impl Meta {
    /// Creates the metadata of a new council thread.
    pub(crate) fn new(
        id: ThreadId,
        members: impl IntoIterator<Item = String>,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            members: std::iter::once(KING.to_owned()).chain(members).collect(),
            pattern: council(),
            phase: council(),
            created_at: Some(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            extra: Map::new(),
        }
    }

    /// Reads the file; `None` if there is none (it is not committed, so a clone lacks it).
    pub(crate) fn read(thread: &Folder) -> Result<Option<Self>, Error> {
        let Some(bytes) = thread.read(THREAD_FILE, bounds::META)? else {
            return Ok(None);
        };
        let path = || thread.path().join(THREAD_FILE);
        json::check_version(&bytes, &THREAD, VERSION, path)?;
        let meta = serde_json::from_slice(&bytes);
        meta.map(Some).map_err(|source| Error::Json {
            path: path(),
            source,
        })
    }

    /// Reconstructs the metadata from the senders alone, in the order of their first messages. Who concludes, signs or
    /// visits is not a member.
    pub(crate) fn rebuilt(id: ThreadId, senders: impl IntoIterator<Item = String>) -> Self {
        let mut spoke: Vec<String> = Vec::new();
        for sender in senders {
            if !spoke.contains(&sender) {
                spoke.push(sender);
            }
        }
        // The chair has the other name only where a member has the first.
        let other = spoke.iter().any(|sender| sender == OTHER_CHAIR);
        let chair = if other { OTHER_CHAIR } else { CHAIR };
        spoke
            .retain(|sender| sender != chair && sender != PROGRAM && SeatName::new(sender).is_ok());
        let members = std::iter::once(KING.to_owned()).chain(spoke).collect();
        Self {
            id,
            members,
            pattern: council(),
            phase: council(),
            created_at: None,
            extra: Map::new(),
        }
    }

    /// Returns the members, without the king. Omits names that cannot be members.
    pub(crate) fn seats(&self) -> Vec<SeatName> {
        let seats = self.members.iter().map(|name| SeatName::new(name.as_str()));
        seats.filter_map(Result::ok).collect()
    }

    /// Returns when the thread was opened, if that can be parsed; without a zone it is UTC.
    pub fn created(&self) -> Option<Timestamp> {
        crate::frontmatter::timestamp(self.created_at.as_deref()?)
    }

    /// Returns whether only members that run on this machine may be asked.
    pub fn is_private(&self) -> bool {
        // Any other value, in a file of somebody else, counts as the mark.
        !matches!(
            self.extra.get(PRIVATE),
            None | Some(Value::Null | Value::Bool(false))
        )
    }

    /// Returns whether this is a council thread.
    pub fn is_council(&self) -> bool {
        self.pattern == COUNCIL
    }
}

/// The key of an import in `thread.json`.
pub(crate) const IMPORTED: &str = "imported";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_who_spoke_as_a_member_is_one() {
        for (senders, members) in [
            (
                &[
                    "king", "cyd", "ann", "chair", "council", "kd", "cyd", "guest-1",
                ][..],
                &["king", "cyd", "ann"][..],
            ),
            // A member named like the chair: the chair has another name there.
            (&["ann", "chair", "the-chair"], &["king", "ann", "chair"]),
        ] {
            let senders = senders.iter().map(|name| (*name).to_owned());
            let meta = Meta::rebuilt(ThreadId("council-1".into()), senders);
            assert_eq!(meta.members, members);
        }
    }

    #[test]
    fn an_unclear_mark_counts_as_private() {
        for (mark, private) in [
            (json!(true), true),
            (json!("yes"), true),
            (json!(1), true),
            (json!({}), true),
            (json!(false), false),
            (json!(null), false),
        ] {
            let meta = json!({"id": "council-1", "private": mark});
            let meta: Meta = serde_json::from_value(meta).unwrap();
            assert_eq!(meta.is_private(), private, "{mark}");
        }
    }
}
