//! The keys that sign seals: Ed25519 (RFC 8032).

use crate::hex::{hex, unhex};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use std::fmt;

pub(super) const ALGORITHM: &str = "ed25519";

/// The reason why a text is not a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It has another form.
    #[error("a key has 64 hexadecimal digits in lower case")]
    Digits,
    /// The digits are not a key, or a weak key for which anybody can sign.
    #[error("the digits are no Ed25519 public key")]
    NoKey,
}

/// A signing key. Never printed.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// Creates a key from 32 random bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(bytes))
    }

    /// Parses the content of a key file.
    ///
    /// # Errors
    /// If it is not a key.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let bytes = unhex::<32>(text.trim_end()).ok_or(KeyError::Digits)?;
        Ok(Self::from_bytes(&bytes))
    }

    /// Returns the content of a key file.
    pub fn to_file(&self) -> String {
        hex(self.0.as_bytes()) + "\n"
    }

    /// Returns the key that verifies its signatures.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> String {
        hex(&self.0.sign(bytes).to_bytes())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// A public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Parses 64 hexadecimal digits.
    ///
    /// # Errors
    /// If they are not a key, or a weak one for which anybody can sign.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let bytes = unhex::<32>(text).ok_or(KeyError::Digits)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| KeyError::NoKey)?;
        let is_one_form = !key.is_weak() && hex(key.as_bytes()) == text;
        is_one_form.then_some(Self(key)).ok_or(KeyError::NoKey)
    }

    pub(super) fn verifies(&self, bytes: &[u8], signature: &str) -> bool {
        let Some(signature) = unhex::<64>(signature) else {
            return false;
        };
        let signature = Signature::from_bytes(&signature);
        self.0.verify_strict(bytes, &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(self.0.as_bytes()))
    }
}
