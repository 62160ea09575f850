//! Writes small GGUF files for the tests.

#![allow(dead_code, reason = "each test binary uses its part")]

/// A GGUF version 3 under construction.
#[derive(Default, Clone)]
pub(crate) struct Writer {
    pairs: Vec<u8>,
    pair_count: u64,
    tensors: Vec<(String, Vec<u64>, u32, Vec<u8>)>,
}

pub(crate) fn text(s: &str) -> Vec<u8> {
    [&(s.len() as u64).to_le_bytes(), s.as_bytes()].concat()
}

impl Writer {
    /// Adds a value of any type, already encoded.
    pub(crate) fn raw(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.pairs.extend(text(key));
        self.pairs.extend(kind.to_le_bytes());
        self.pairs.extend(value);
        self.pair_count += 1;
        self
    }

    pub(crate) fn u32(self, key: &str, n: u32) -> Self {
        self.raw(key, 4, &n.to_le_bytes())
    }

    pub(crate) fn bool(self, key: &str, b: bool) -> Self {
        self.raw(key, 7, &[b.into()])
    }

    pub(crate) fn str(self, key: &str, s: &str) -> Self {
        self.raw(key, 8, &text(s))
    }

    pub(crate) fn strings<S: AsRef<str>>(self, key: &str, all: &[S]) -> Self {
        let mut value = [
            8u32.to_le_bytes().as_slice(),
            &(all.len() as u64).to_le_bytes(),
        ]
        .concat();
        for s in all {
            value.extend(text(s.as_ref()));
        }
        self.raw(key, 9, &value)
    }

    pub(crate) fn i32s(self, key: &str, all: &[i32]) -> Self {
        let mut value = [
            5u32.to_le_bytes().as_slice(),
            &(all.len() as u64).to_le_bytes(),
        ]
        .concat();
        value.extend(all.iter().flat_map(|n| n.to_le_bytes()));
        self.raw(key, 9, &value)
    }

    pub(crate) fn f32s(self, key: &str, all: &[f32]) -> Self {
        let mut value = [
            6u32.to_le_bytes().as_slice(),
            &(all.len() as u64).to_le_bytes(),
        ]
        .concat();
        value.extend(all.iter().flat_map(|n| n.to_le_bytes()));
        self.raw(key, 9, &value)
    }

    /// Adds a tensor. `dims` as in the file: the row length first. `kind` is the id of the tensor type.
    pub(crate) fn tensor(mut self, name: &str, dims: &[u64], kind: u32, bytes: Vec<u8>) -> Self {
        self.tensors.push((name.into(), dims.into(), kind, bytes));
        self
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend(self.pair_count.to_le_bytes());
        out.extend(&self.pairs);
        let mut data: Vec<u8> = Vec::new();
        for (name, dims, kind, bytes) in &self.tensors {
            out.extend(text(name));
            out.extend((dims.len() as u32).to_le_bytes());
            out.extend(dims.iter().flat_map(|d| d.to_le_bytes()));
            out.extend(kind.to_le_bytes());
            data.resize(data.len().next_multiple_of(32), 0);
            out.extend((data.len() as u64).to_le_bytes());
            data.extend(bytes);
        }
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(data);
        out
    }
}
