//! The secrets of future draws, in the user's state folder: readable only by the user, never in the database. Copying
//! or reading the database does not reveal a cycle in advance. Only the process that runs cycles opens them.
//!
//! Input: a forum's place. Output: the secret of a commitment, and the newest seal, which the audit compares.

use super::Place;
use super::error::ForumError;
use kd_core::formats::{self, FORUM_SECRETS};
use kd_core::hex::{hex, unhex};
use kd_forum::chain::{self, Fields, Hash};
use kd_store::error::Error;
use kd_store::private;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Far above two secrets and a seal.
const BYTES_MAX: u64 = 64 << 10;

/// The stored state of a forum.
#[derive(Default)]
pub(super) struct Secrets {
    /// `None` without a state folder: then the secrets are lost when the process ends.
    path: Option<PathBuf>,
    kept: Kept,
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    #[serde(default)]
    version: u32,
    secrets: Vec<Secret>,
    head: Option<Head>,
    #[serde(default)]
    drawn: Option<Mark>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Secret {
    chain: String,
    number: i64,
    secret: String,
}

/// A draw from a secret, noted before it is recorded. A link has only one draw: another order for the same link
/// requires another secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) chain: String,
    pub(super) number: i64,
    /// Digest of the result.
    pub(super) digest: String,
}

/// The newest link that was sealed here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) chain: String,
    pub(super) number: i64,
    pub(super) seal: String,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Opens a forum's file. A malformed file counts as empty.
    pub(super) fn open(
        place: &Place,
        forum: &str,
        state: Option<&Path>,
    ) -> Result<Self, ForumError> {
        let Some(path) = state.map(|state| file(state, place, forum)) else {
            return Ok(Self::default());
        };
        let kept = stored(&path, BYTES_MAX)?;
        Ok(Self {
            path: Some(path),
            kept,
        })
    }

    /// Returns the file.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the secret of a commitment.
    pub(super) fn find(&self, commitment: &str) -> Option<Hash> {
        self.kept.secrets.iter().find_map(|kept| {
            let secret = unhex(&kept.secret)?;
            (chain::commitment(&kept.chain, kept.number, &secret) == commitment).then_some(secret)
        })
    }

    /// Creates the secret of a link and writes it before anyone sees its commitment, which is returned. Of the other
    /// secrets, only the secret of `beside` is kept.
    pub(super) fn make(
        &mut self,
        chain: &str,
        number: i64,
        beside: Option<&str>,
    ) -> Result<String, ForumError> {
        let beside = beside.and_then(|commitment| self.find(commitment));
        let beside = beside.map(|secret| hex(&secret));
        let secret: Hash = random()?;
        self.kept
            .secrets
            .retain(|kept| Some(&kept.secret) == beside.as_ref());
        self.kept.secrets.push(Secret {
            chain: chain.to_owned(),
            number,
            secret: hex(&secret),
        });
        self.save()?;
        Ok(chain::commitment(chain, number, &secret))
    }

    /// Returns the newest noted seal.
    pub(super) fn head(&self) -> Option<&Head> {
        self.kept.head.as_ref()
    }

    /// Returns the newest noted draw.
    pub(super) fn drawn(&self) -> Option<&Mark> {
        self.kept.drawn.as_ref()
    }

    /// Notes a draw before it is recorded.
    pub(super) fn note_draw(&mut self, mark: Mark) -> Result<(), ForumError> {
        if self.kept.drawn.as_ref() == Some(&mark) {
            return Ok(());
        }
        self.kept.drawn = Some(mark);
        self.save()
    }

    /// Notes the newest seal and deletes the secrets up to it, so that none is used again.
    pub(super) fn note(&mut self, head: Head) -> Result<(), ForumError> {
        self.kept
            .secrets
            .retain(|kept| kept.chain == head.chain && kept.number > head.number);
        self.kept.head = Some(head);
        self.save()
    }

    fn save(&mut self) -> Result<(), ForumError> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        self.kept.version = FORUM_SECRETS.version;
        let bytes = serde_json::to_vec(&self.kept).map_err(|source| Error::Json {
            path: path.clone(),
            source,
        });
        let written = bytes.and_then(|bytes| private::replace_synced(path, &bytes));
        written.map_err(|e| failed(path, &e))
    }
}

/// Returns random bytes from the system.
pub(super) fn random<const N: usize>() -> Result<[u8; N], ForumError> {
    let mut bytes = [0; N];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|e| ForumError::Invalid(format!("the system has no random numbers: {e}")))?;
    Ok(bytes)
}

/// Returns the file for a forum's place. A copy of a forum is at another place, so it has no secrets.
pub(super) fn file(state: &Path, place: &Place, forum: &str) -> PathBuf {
    let at = match place {
        Place::File(path) => {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            real.to_string_lossy().into_owned()
        }
        Place::Server(_) => place.shown(),
    };
    let key = Fields::of("kd forum place 1").text(&at).text(forum).hash();
    state
        .join("forums")
        .join(format!("{}.json", hex(&key[..16])))
}

/// Reads one of a forum's files in the state folder. A missing or malformed file counts as empty.
///
/// # Errors
/// It cannot be read, or has a newer version.
pub(super) fn stored<T: Default + DeserializeOwned>(
    path: &Path,
    bytes_max: u64,
) -> Result<T, ForumError> {
    let Some(bytes) = private::read(path, bytes_max).map_err(|e| failed(path, &e))? else {
        return Ok(T::default());
    };
    FORUM_SECRETS
        .check(formats::stated(&bytes, "version"))
        .map_err(|newer| ForumError::Newer {
            place: path.display().to_string(),
            newer,
        })?;
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

pub(super) fn failed(path: &Path, error: &Error) -> ForumError {
    ForumError::File {
        path: path.to_path_buf(),
        why: kd_store::thread::told(error),
    }
}
