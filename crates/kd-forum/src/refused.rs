//! Refusals: what a forum does not accept, and why.

/// The reason why the forum refuses a call, an order or a motion. Each text says what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The caller may not do this here, however it is written.
    #[error("{0}")]
    Forbidden(String),
    /// The request is not valid: the caller can correct it.
    #[error("{0}")]
    Invalid(String),
}

impl Refused {
    pub(crate) fn forbidden(why: impl Into<String>) -> Self {
        Self::Forbidden(why.into())
    }

    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid(why.into())
    }
}
