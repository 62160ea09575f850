//! Identifies HTTP callers: each token belongs to a name or is anonymous.

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HeaderName};
use kd_core::ids::{BadSeatName, SeatName};
use kd_forum::account::Proof;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use sha2::{Digest, Sha256};

/// Minimum characters of a token.
const TOKEN_CHARS_MIN: usize = 16;

/// The headers in which Anthropic's clients and Azure's send the token.
const KEYS: [HeaderName; 2] = [
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
];

/// The accepted tokens.
#[derive(Clone, Default)]
pub struct Tokens {
    /// Digests, so that comparison time reveals nothing about a token, with the owners' names.
    known: Vec<([u8; 32], Option<String>)>,
}

/// Why tokens could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BadTokens {
    /// A line that is neither `token` nor `name token`.
    #[error("line {0} is neither a token nor a name and a token")]
    Line(usize),
    /// A name that is not allowed.
    #[error("line {0}: {1}")]
    Name(usize, BadSeatName),
    /// A token short enough to guess.
    #[error("line {0}: a token has at least 16 characters")]
    Short(usize),
    /// The file contains no token.
    #[error("there is no token in it")]
    Empty,
}

impl Tokens {
    /// Parses tokens: one per line, optionally preceded by its owner's name. Skips empty lines and lines starting with
    /// `#`.
    ///
    /// # Errors
    /// If there is no token, a line has more than two words, a name is invalid, or a token is too short. The error
    /// names the line.
    pub fn parse(text: &str) -> Result<Self, BadTokens> {
        let mut known = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, token) = match words[..] {
                [token] => (None, token),
                [name, token] => {
                    let name = SeatName::new(name).map_err(|e| BadTokens::Name(at + 1, e))?;
                    (Some(name.into()), token)
                }
                _ => return Err(BadTokens::Line(at + 1)),
            };
            if token.chars().count() < TOKEN_CHARS_MIN {
                return Err(BadTokens::Short(at + 1));
            }
            known.push((Sha256::digest(token).into(), name));
        }
        if known.is_empty() {
            return Err(BadTokens::Empty);
        }
        Ok(Self { known })
    }

    /// Returns the owners' names.
    pub fn names(&self) -> Vec<String> {
        let names = self.known.iter().filter_map(|(_, name)| name.clone());
        names.collect()
    }

    /// Returns whose token these headers contain, in `Authorization`, or in `x-api-key` or `api-key`. `None` if the caller
    /// is not admitted.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Option<Identity> {
        let value = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = value(AUTHORIZATION).and_then(|header| header.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let bearer = bearer.and_then(|(_, token)| self.owner(token));
        let mut keys = KEYS.into_iter().filter_map(value);
        bearer.or_else(|| keys.find_map(|key| self.owner(key)))
    }

    /// Returns the owner of a token.
    pub(crate) fn owner(&self, token: &str) -> Option<Identity> {
        let digest: [u8; 32] = Sha256::digest(token.trim()).into();
        let mut found = None;
        for (known, name) in &self.known {
            if *known == digest {
                found = Some(Identity {
                    name: name.clone(),
                    token: digest,
                });
            }
        }
        found
    }
}

/// Generates a token: 256 random bits as 64 hex digits.
///
/// # Errors
/// If the system has no randomness.
pub fn generate() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| std::io::Error::other(e.to_string()))?;
    Ok(kd_core::hex::hex(&bytes))
}

/// An admitted caller: its token, and its name if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    name: Option<String>,
    /// Its digest.
    token: [u8; 32],
}

impl Identity {
    /// Returns a key that distinguishes it from other callers.
    pub(crate) fn print(&self) -> &[u8; 32] {
        &self.token
    }

    /// Returns whether the token belongs to somebody with a name, who is not the user that runs the server.
    pub(crate) fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// Returns the caller of a request; `None` over stdio.
    pub(crate) fn whole(context: &RequestContext<RoleServer>) -> Option<Identity> {
        let parts = context.extensions.get::<axum::http::request::Parts>()?;
        parts.extensions.get::<Identity>().cloned()
    }

    /// Returns the name that belongs to a request's token.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Option<Caller> {
        let name = Self::whole(context)?.name?;
        Some(Caller {
            name,
            proof: Proof::Token,
        })
    }
}

/// A caller with a known name, and how it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) proof: Proof,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_let_in_under_its_name() {
        let tokens = Tokens::parse("# ours\nada 0123456789abcdef0\n\nfedcba98765432100\n").unwrap();
        let sent = |name: HeaderName, value: &str| {
            let headers = HeaderMap::from_iter([(name, value.parse().unwrap())]);
            tokens.caller(&headers)
        };
        let caller = |header: &str| sent(AUTHORIZATION, header);
        let name = |header: &str| caller(header).map(|identity| identity.name);
        assert_eq!(name("Bearer 0123456789abcdef0"), Some(Some("ada".into())));
        assert_eq!(name("bearer fedcba98765432100"), Some(None));
        assert_eq!(tokens.names(), ["ada"]);
        for bad in [
            "Bearer 0123456789abcdef",
            "Basic 0123456789abcdef0",
            "0123456789abcdef0",
            "Bearer ",
        ] {
            assert_eq!(caller(bad), None, "{bad}");
        }
        assert_eq!(tokens.caller(&HeaderMap::new()), None);
        for key in KEYS {
            assert!(sent(key, "0123456789abcdef0").is_some());
        }
        for bad in ["0123456789abcdef", "Bearer 0123456789abcdef0", ""] {
            assert_eq!(sent(KEYS[0].clone(), bad), None, "{bad}");
        }
        for bad in [
            "short",
            "a b c",
            "",
            "# only",
            "king 0123456789abcdef0",
            "Council 0123456789abcdef0",
            "a/b 0123456789abcdef0",
        ] {
            assert!(Tokens::parse(bad).is_err(), "{bad:?}");
        }
        assert_ne!(generate().unwrap(), generate().unwrap());
    }
}
