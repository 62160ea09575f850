//! Seals: a thread as one file that can be checked anywhere.
//!
//! Input: the files of a thread as texts, random salts, maybe a signing key. Output: one JSON document in canonical form
//! (RFC 8785), whose entries form a chain of SHA-256 hashes; and the check of such a document, which may come from anybody.
//!
//! An entry commits to its content by a salted hash. So contents can be erased, and the rest of the chain, its head and
//! the signature still hold. `docs/record.md` has the format.

mod key;

pub use key::{KeyError, PublicKey, SecretKey};

use crate::formats::{self, Newer};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The version of the format.
pub const VERSION: u32 = crate::formats::SEAL.version;
/// The name of the format.
const FORMAT: &str = "kd-seal";
/// Bytes of a salt: nobody can try all of them for a short content.
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
    /// A line of the log of events, without its line break.
    Event,
}

/// A content to be sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: Kind,
    /// The name of its file.
    pub name: String,
    /// The text of the file, or of the line.
    pub text: String,
    /// Random bytes.
    pub salt: [u8; SALT_BYTES],
}

/// What is sealed: the first link of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Always `kd-seal`.
    pub format: String,
    /// [`VERSION`].
    pub v: u32,
    /// The id of the thread.
    pub thread: String,
    /// When it was sealed, by the clock of the sealing machine.
    pub sealed_at: String,
    /// How many entries are messages.
    pub messages: u64,
    /// How many entries are events.
    pub events: u64,
}

/// A content and the salt of its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// 16 random bytes in hexadecimal digits.
    pub salt: String,
    /// The content.
    pub text: String,
}

/// A link of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its place, from 0.
    pub index: u64,
    /// What it is.
    pub kind: Kind,
    /// The name of its file.
    pub name: String,
    /// SHA-256 of `{"salt": …, "text": …}` in canonical form.
    pub content: String,
    /// The hash of the entry before; of the header for the first.
    pub previous: String,
    /// SHA-256 of the canonical form of `content`, `index`, `kind`, `name` and `previous`.
    pub hash: String,
    /// The content; `None` where it was erased.
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
    /// What is sealed.
    pub header: Header,
    /// The chain.
    pub entries: Vec<Entry>,
    /// The hash of the last entry; of the header where there is none.
    pub head: String,
    /// The signature of the head; `None` where nobody signed.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub signature: Option<Signed>,
}

/// A field that is there has a value: `null` is not another way to leave it out.
fn present<'d, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'d>,
    T: Deserialize<'d>,
{
    T::deserialize(from).map(Some)
}

/// Why a file is not an unchanged seal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It is no document of this format.
    #[error("it is not a sealed thread: {0}")]
    Malformed(String),
    /// A later version made it.
    #[error("it has {0}")]
    TooNew(Newer),
    /// It means the same as a seal, in other bytes.
    #[error("byte {0} differs from the canonical form")]
    NotCanonical(usize),
    /// A value of the header is wrong.
    #[error("the header says {0}")]
    Header(String),
    /// An entry does not fit into the chain.
    #[error("entry {index} ({name}): {what}")]
    Entry {
        /// Its place.
        index: usize,
        /// The name it has.
        name: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The head is not that of the chain.
    #[error("the head is not the hash of the last entry")]
    Head,
    /// The signature does not fit.
    #[error("the signature does not fit: {0}")]
    Signature(&'static str),
}

/// Returns a value as canonical JSON (RFC 8785).
///
/// # Errors
/// If it cannot be JSON: a key that is no text, or a number that is not finite.
pub fn canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, SealError> {
    serde_jcs::to_vec(value).map_err(|error| SealError::Malformed(error.to_string()))
}

fn sha256<T: Serialize>(value: &T) -> Result<String, SealError> {
    Ok(hex(&Sha256::digest(canonical(value)?)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads lowercase hexadecimal digits of exactly `N` bytes.
fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// The part of an entry that its hash covers.
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
    /// Seals the pieces of a thread in their order.
    ///
    /// # Errors
    /// None in practice: texts can always be JSON.
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

    /// Signs the head; replaces a signature that is there.
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

    /// The bytes of the file: canonical JSON and a line break.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SealError> {
        let mut bytes = canonical(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads and checks a file. Every hash, the head, and the signature if there is one hold in the result, and the file
    /// has no byte that the result does not determine.
    ///
    /// # Errors
    /// If anything in it was changed since it was sealed, or it is no seal.
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

    /// How many contents are there and how many were erased.
    pub fn contents(&self) -> (usize, usize) {
        let there = self.entries.iter().filter(|entry| entry.opened.is_some());
        let there = there.count();
        (there, self.entries.len() - there)
    }

    /// The key that signed it. Whose key that is, the file cannot say.
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
            return Err("the hash of its content is no SHA-256");
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

/// The bytes that are signed. The purpose keeps the signature from being one of anything else.
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

/// The error of a document that cannot be parsed: a later version may have other fields.
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
