//! Fingerprints of the settings and files about which the user decides.

use kd_core::hex::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The SHA-256 of the settings or files about which the user decides, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fingerprint(pub(crate) String);

impl Fingerprint {
    /// Returns the fingerprint of a JSON value, independent of the order of its keys.
    pub fn of(value: &serde_json::Value) -> Self {
        let hash = Sha256::digest(crate::json::to_text(value).as_bytes());
        Self(hex(&hash))
    }
}
