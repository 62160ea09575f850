//! Seals: a thread as a single file that can be verified anywhere.
//!
//! Input: the files of a thread as text, random salts, optionally a signing key. Output: one JSON document in canonical
//! form (RFC 8785), whose entries form a chain of SHA-256 hashes. Also verifies such documents from untrusted sources.
//!
//! An entry commits to its content by a salted hash, so contents can be erased while the rest of the chain, its head
//! and the signature stay valid. `docs/record.md` describes the format.

mod key;

pub use key::{KeyError, PublicKey, SecretKey};

use crate::formats::{self, Newer};
use crate::hex::{hex, unhex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The version of the format.
pub const VERSION: u32 = crate::formats::SEAL.version;
/// The name of the format.
const FORMAT: &str = "kd-seal";
/// Bytes of a salt: enough to prevent guessing a short content from its hash.
pub const SALT_BYTES: usize = 16;
/// Maximum bytes of a sealed file.
pub const BYTES_MAX: u64 = 128 << 20;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `thread.json`.
    Thread,
    /// A message file.
    Message,
    /// A line of the event log, without its line break.
    Event,
}

/// One content to seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its kind.
    pub kind: Kind,
    /// The file name.
    pub name: String,
    /// The text of the file, or of the line.
    pub text: String,
    /// Random bytes.
    pub salt: [u8; SALT_BYTES],
}

/// Describes the sealed thread: the first link of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Always `kd-seal`.
    pub format: String,
    /// [`VERSION`].
    pub v: u32,
    /// The id of the thread.
    pub thread: String,
    /// The time of sealing, by the clock of the sealing machine.
    pub sealed_at: String,
    /// Number of messages among the entries.
    pub messages: u64,
    /// Number of events among the entries.
    pub events: u64,
}

/// A content and the salt of its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// 16 random bytes, hexadecimal.
    pub salt: String,
    /// The content.
    pub text: String,
}

/// A link of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its index, from 0.
    pub index: u64,
    /// Its kind.
    pub kind: Kind,
    /// The file name.
    pub name: String,
    /// SHA-256 of `{"salt": …, "text": …}` in canonical form.
    pub content: String,
    /// The hash of the previous entry; for the first entry, of the header.
    pub previous: String,
    /// SHA-256 of the canonical form of `content`, `index`, `kind`, `name` and `previous`.
    pub hash: String,
    /// The content; `None` if it was erased.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub opened: Option<Opened>,
}

/// A signature of the head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// Always `ed25519`.
    pub algorithm: String,
    /// The public key, in 64 hexadecimal digits.
    pub key: String,
    /// The signature, in 128 hexadecimal digits.
    pub signature: String,
}

/// A sealed thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// The header.
    pub header: Header,
    /// The chain.
    pub entries: Vec<Entry>,
    /// The hash of the last entry; without entries, of the header.
    pub head: String,
    /// The signature of the head; `None` if unsigned.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub signature: Option<Signed>,
}

/// Deserializes a field that must have a value if present: `null` is not accepted as absent.
fn present<'d, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'d>,
    T: Deserialize<'d>,
{
    T::deserialize(from).map(Some)
}

/// The reason why a file is not a valid, unchanged seal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Not a document of this format.
    #[error("it is not a sealed thread: {0}")]
    Malformed(String),
    /// Written by a later version.
    #[error("it has {0}")]
    TooNew(Newer),
    /// Equivalent to a seal, but with different bytes.
    #[error("byte {0} differs from the canonical form")]
    NotCanonical(usize),
    /// A header value is wrong.
    #[error("the header says {0}")]
    Header(String),
    /// An entry does not fit into the chain.
    #[error("entry {index} ({name}): {what}")]
    Entry {
        /// Its index.
        index: usize,
        /// Its stated name.
        name: String,
        /// The reason it is invalid.
        what: &'static str,
    },
    /// The head does not match the chain.
    #[error("the head is not the hash of the last entry")]
    Head,
    /// The signature is invalid.
    #[error("the signature does not match: {0}")]
    Signature(&'static str),
}

/// Serializes a value as canonical JSON (RFC 8785).
///
/// # Errors
/// If it cannot be JSON: a key that is not a string, or a number that is not finite.
pub fn canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, SealError> {
    serde_jcs::to_vec(value).map_err(|error| SealError::Malformed(error.to_string()))
}

fn sha256<T: Serialize>(value: &T) -> Result<String, SealError> {
    Ok(hex(&Sha256::digest(canonical(value)?)))
}

/// Returns whether a text has the form of a head: a SHA-256 hash in lowercase hexadecimal digits.
pub fn is_head(text: &str) -> bool {
    unhex::<32>(text).is_some()
}

/// The part of an entry covered by its hash.
#[derive(Serialize)]
struct Link<'e> {
    content: &'e str,
    index: u64,
    kind: Kind,
    name: &'e str,
    previous: &'e str,
}

impl Entry {
    fn link(&self) -> Result<String, SealError> {
        sha256(&Link {
            content: &self.content,
            index: self.index,
            kind: self.kind,
            name: &self.name,
            previous: &self.previous,
        })
    }
}

impl Seal {
    /// Seals the pieces of a thread in order.
    ///
    /// # Errors
    /// None in practice: strings can always be serialized as JSON.
    pub fn new(
        thread: &str,
        sealed_at: &str,
        pieces: impl IntoIterator<Item = Piece>,
    ) -> Result<Self, SealError> {
        let pieces: Vec<Piece> = pieces.into_iter().collect();
        let count = |kind| pieces.iter().filter(|piece| piece.kind == kind).count() as u64;
        let header = Header {
            format: FORMAT.to_owned(),
            v: VERSION,
            thread: thread.to_owned(),
            sealed_at: sealed_at.to_owned(),
            messages: count(Kind::Message),
            events: count(Kind::Event),
        };
        let mut head = sha256(&header)?;
        let mut entries = Vec::with_capacity(pieces.len());
        for (index, piece) in pieces.into_iter().enumerate() {
            let opened = Opened {
                salt: hex(&piece.salt),
                text: piece.text,
            };
            let mut entry = Entry {
                index: index as u64,
                kind: piece.kind,
                name: piece.name,
                content: sha256(&opened)?,
                previous: head,
                hash: String::new(),
                opened: Some(opened),
            };
            entry.hash = entry.link()?;
            head = entry.hash.clone();
            entries.push(entry);
        }
        Ok(Self {
            header,
            entries,
            head,
            signature: None,
        })
    }

    /// Signs the head; replaces an existing signature.
    ///
    /// # Errors
    /// None in practice.
    pub fn sign(&mut self, key: &SecretKey) -> Result<(), SealError> {
        self.signature = Some(Signed {
            algorithm: key::ALGORITHM.to_owned(),
            key: key.public().to_string(),
            signature: key.sign(&signed_bytes(&self.head)?),
        });
        Ok(())
    }

    /// Erases all contents and their salts. The head and the signature stay valid.
    pub fn erase(&mut self) {
        self.entries
            .iter_mut()
            .for_each(|entry| entry.opened = None);
    }

    /// Returns the bytes of the file: canonical JSON and a line break.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SealError> {
        let mut bytes = canonical(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Parses and verifies a file. In the result every hash, the head, and any signature are valid, and the result
    /// determines every byte of the file.
    ///
    /// # Errors
    /// If anything in it was changed after sealing, or it is not a seal.
    pub fn read(bytes: &[u8]) -> Result<Self, SealError> {
        let seal: Self = serde_json::from_slice(bytes).map_err(|error| too_new(bytes, &error))?;
        seal.check()?;
        let canonical = seal.to_bytes()?;
        if canonical != bytes {
            let same = canonical.iter().zip(bytes).take_while(|(a, b)| a == b);
            return Err(SealError::NotCanonical(same.count()));
        }
        Ok(seal)
    }

    /// Counts the contents present and the contents erased.
    pub fn contents(&self) -> (usize, usize) {
        let there = self.entries.iter().filter(|entry| entry.opened.is_some());
        let there = there.count();
        (there, self.entries.len() - there)
    }

    /// Returns the key that signed it. The file cannot prove whose key it is.
    pub fn signer(&self) -> Option<PublicKey> {
        PublicKey::parse(&self.signature.as_ref()?.key).ok()
    }

    fn check(&self) -> Result<(), SealError> {
        let header = &self.header;
        if header.format != FORMAT {
            return Err(SealError::Malformed(format!("no `{FORMAT}`")));
        }
        formats::SEAL
            .check(Some(header.v.into()))
            .map_err(SealError::TooNew)?;
        if header.v != VERSION {
            return Err(SealError::Header(format!("version {}", header.v)));
        }
        let mut head = sha256(header)?;
        for (index, entry) in self.entries.iter().enumerate() {
            entry.check(index, &head).map_err(|what| SealError::Entry {
                index,
                name: entry.name.clone(),
                what,
            })?;
            head.clone_from(&entry.hash);
        }
        let count = |kind| self.entries.iter().filter(|e| e.kind == kind).count() as u64;
        for (kind, said, word) in [
            (Kind::Message, header.messages, "messages"),
            (Kind::Event, header.events, "events"),
        ] {
            if count(kind) != said {
                let there = count(kind);
                return Err(SealError::Header(format!(
                    "{said} {word}, and {there} are there"
                )));
            }
        }
        if head != self.head {
            return Err(SealError::Head);
        }
        match &self.signature {
            Some(signed) => signed.check(&self.head),
            None => Ok(()),
        }
    }
}

impl Entry {
    fn check(&self, index: usize, previous: &str) -> Result<(), &'static str> {
        const BROKEN: &str = "it cannot be hashed";
        if self.index != index as u64 {
            return Err("it has another index");
        }
        if self.previous != previous {
            return Err("it does not follow the entry before it");
        }
        if unhex::<32>(&self.content).is_none() {
            return Err("the hash of its content is not SHA-256");
        }
        if self.link().map_err(|_| BROKEN)? != self.hash {
            return Err("its hash differs");
        }
        let Some(opened) = &self.opened else {
            return Ok(());
        };
        if unhex::<SALT_BYTES>(&opened.salt).is_none() {
            return Err("its salt is not 16 bytes");
        }
        match sha256(opened).map_err(|_| BROKEN)? == self.content {
            true => Ok(()),
            false => Err("its content was changed"),
        }
    }
}

impl Signed {
    fn check(&self, head: &str) -> Result<(), SealError> {
        if self.algorithm != key::ALGORITHM {
            return Err(SealError::Signature("unknown algorithm"));
        }
        let key = PublicKey::parse(&self.key)
            .map_err(|_| SealError::Signature("the key is not a public key"))?;
        match key.verifies(&signed_bytes(head)?, &self.signature) {
            true => Ok(()),
            false => Err(SealError::Signature("it is not by this key of this head")),
        }
    }
}

/// Returns the bytes to sign. They include the purpose, so that the signature is valid for nothing else.
fn signed_bytes(head: &str) -> Result<Vec<u8>, SealError> {
    #[derive(Serialize)]
    struct Statement<'h> {
        head: &'h str,
        purpose: &'static str,
    }
    canonical(&Statement {
        head,
        purpose: "kd-seal v1",
    })
}

/// Returns the error of a document that cannot be parsed: a later version may have other fields.
fn too_new(bytes: &[u8], error: &serde_json::Error) -> SealError {
    #[derive(Deserialize)]
    struct Versioned {
        header: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        format: String,
        v: u64,
    }
    let malformed = || SealError::Malformed(error.to_string());
    match serde_json::from_slice::<Versioned>(bytes) {
        Ok(Versioned { header }) if header.format == FORMAT => formats::SEAL
            .check(Some(header.v))
            .map_or_else(SealError::TooNew, |()| malformed()),
        _ => malformed(),
    }
}

#[cfg(test)]
mod tests;
