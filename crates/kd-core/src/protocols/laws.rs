//! What every protocol must hold to, whatever row it is.
