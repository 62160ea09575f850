//! A cursor over bytes. Every advance is checked, and every error says what was expected and where.

use super::bad;
use crate::error::Error;

/// A bounds-checked cursor.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8], Error> {
        let rest = &self.bytes[self.at..];
        match rest.get(..n) {
            Some(taken) => {
                self.at += n;
                Ok(taken)
            }
            None => Err(bad(format!(
                "expected {what} ({n} bytes) at offset {}, but the file ends at {}; it is probably cut short",
                self.at,
                self.bytes.len()
            ))),
        }
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, what)?);
        Ok(out)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, Error> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, Error> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Reads a count of items of at least `least` bytes each; refuses it if the remaining bytes cannot hold them.
    pub(super) fn count(&mut self, what: &str, least: usize) -> Result<usize, Error> {
        let at = self.at;
        let count = self.u64(what)?;
        let left = self.bytes.len() - self.at;
        match usize::try_from(count) {
            Ok(n) if n <= left / least => Ok(n),
            _ => Err(bad(format!(
                "expected {what} at offset {at}, found {count}, but only {left} bytes follow ({least} each at least)"
            ))),
        }
    }

    pub(super) fn numbers<const N: usize, T>(
        &mut self,
        what: &str,
        convert: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, Error> {
        let count = self.count(what, N)?;
        let bytes = self.take(count * N, what)?;
        let (chunks, _) = bytes.as_chunks::<N>();
        Ok(chunks.iter().map(|&chunk| convert(chunk)).collect())
    }

    pub(super) fn raw_text(&mut self, what: &str) -> Result<&'a [u8], Error> {
        let count = self.count(what, 1)?;
        self.take(count, what)
    }

    /// Reads a name: must be UTF-8, because names are compared.
    pub(super) fn text(&mut self, what: &str) -> Result<&'a str, Error> {
        let at = self.at;
        std::str::from_utf8(self.raw_text(what)?).map_err(|_| {
            bad(format!(
                "expected {what} in UTF-8 at offset {at}, found other bytes"
            ))
        })
    }

    /// Reads a value: an invalid byte in a description must not make a model unreadable.
    pub(super) fn lossy(&mut self, what: &str) -> Result<Box<str>, Error> {
        Ok(String::from_utf8_lossy(self.raw_text(what)?)
            .into_owned()
            .into_boxed_str())
    }
}
