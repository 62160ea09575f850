//! Reads GGUF, the file format of llama.cpp: metadata and the location of each tensor's bytes.
//!
//! Input: a path (mapped, not copied) or bytes. Output: typed metadata and bounds-checked tensor slices. No input makes
//! this module panic, overflow, recurse deeply or allocate more than a small multiple of the input's length. Every
//! count is checked against the remaining bytes before anything is reserved, and every error names what was expected
//! and at which offset.
//!
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>, versions 2 and 3, little endian.

mod kind;
mod reader;
mod value;

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

pub use self::kind::GgmlType;
use self::reader::Reader;
use self::value::read_value;
pub use self::value::{Array, Value};
use crate::error::Error;

/// Maximum dimensions of a tensor in this format.
const MAX_DIMS: u32 = 4;
/// The alignment of tensor data if the file does not specify one.
const DEFAULT_ALIGNMENT: u64 = 32;

/// An opened model file: its metadata, and its tensors by name.
pub struct Gguf {
    source: Source,
    version: u32,
    meta: HashMap<String, Value>,
    tensors: Vec<Info>,
    by_name: HashMap<String, usize>,
}

/// One tensor, with its bytes packed as in the file.
#[derive(Debug, Clone)]
pub struct Tensor<'a> {
    /// Its name, such as `blk.0.attn_q.weight`.
    pub name: &'a str,
    /// Sizes, fastest-varying first: `dims[0]` is the row length, the product of the others the number of rows.
    pub dims: Vec<usize>,
    /// The packing of the values.
    pub kind: GgmlType,
    /// Exactly `rows() * kind.row_bytes(row_len())` bytes.
    pub bytes: &'a [u8],
}

enum Source {
    Map(Mmap),
    Bytes(Vec<u8>),
}

struct Info {
    name: String,
    dims: Vec<usize>,
    kind: GgmlType,
    /// The byte range in the whole file; checked against the file's length.
    range: Range<usize>,
}

impl Gguf {
    /// Maps the file at `path` and reads its header. The tensors' pages are read from disk on first access.
    ///
    /// The file must not be truncated while it is open: the system would kill the process on the next access. `kd`
    /// writes model files under another name and renames them when complete.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened, [`Error::Gguf`] if it is damaged or another format, [`Error::Unsupported`]
    /// if this reader does not support the GGUF version or byte order.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let io = |e| Error::io(path, e);
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() == 0 {
            // Mapping an empty file is an error on some systems; the parser's message is clearer.
            return Self::from_bytes(Vec::new());
        }
        // SAFETY: the map is private and read-only; that the file is not truncated meanwhile is the documented
        // condition above, which no program can check.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        Self::parse(Source::Map(map))
    }

    /// Parses a file that is already in memory.
    ///
    /// # Errors
    /// As for [`open`](Self::open), except `Io`.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        Self::parse(Source::Bytes(bytes))
    }

    /// Returns the format version: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the metadata value of `key`, such as `general.architecture`.
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.meta.get(key)
    }

    /// Iterates over all metadata keys, in arbitrary order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.meta.keys().map(String::as_str)
    }

    /// Returns whether there is a tensor of this name.
    pub fn has_tensor(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns the tensor of this name.
    ///
    /// # Errors
    /// [`Error::Gguf`] if there is none.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>, Error> {
        match self.by_name.get(name) {
            Some(&at) => Ok(self.view(&self.tensors[at])),
            None => Err(bad(format!("the file has no tensor named `{name}`"))),
        }
    }

    /// Iterates over all tensors, in file order.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor<'_>> {
        self.tensors.iter().map(|info| self.view(info))
    }

    /// Returns the length of the whole file in bytes.
    pub fn file_len(&self) -> usize {
        self.source.bytes().len()
    }

    /// Tells the system that the mapped pages are not needed for now, so that they no longer count as this process's
    /// memory. Nothing is lost: a later access reads the page from the file again. Does nothing for bytes in memory and
    /// on systems without such a call.
    pub fn release(&self) {
        #[cfg(unix)]
        if let Source::Map(map) = &self.source {
            // SAFETY: the map is file-backed and never written through, so a dropped page comes back with the same
            // content; slices of it stay valid.
            #[allow(unsafe_code)]
            let advised = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
            // Only a hint: if the system refuses it, memory usage does not change.
            drop(advised);
        }
    }

    fn view<'a>(&'a self, info: &'a Info) -> Tensor<'a> {
        Tensor {
            name: &info.name,
            dims: info.dims.clone(),
            kind: info.kind,
            bytes: &self.source.bytes()[info.range.clone()],
        }
    }

    fn parse(source: Source) -> Result<Self, Error> {
        let bytes = source.bytes();
        let mut r = Reader { bytes, at: 0 };
        let version = read_head(&mut r)?;
        // The shortest tensor entry: empty name, one size, type, offset. The shortest pair: empty key, type, one byte.
        let tensor_count = r.count("the number of tensors", 8 + 4 + 8 + 4 + 8)?;
        let meta_count = r.count("the number of metadata pairs", 8 + 4 + 1)?;

        let mut meta = HashMap::with_capacity(meta_count);
        for _ in 0..meta_count {
            let at = r.at;
            let key = r.text("a metadata key")?.to_owned();
            let kind = r.u32("a metadata type")?;
            let value = read_value(&mut r, kind, &key)?;
            if meta.contains_key(&key) {
                return Err(bad(format!(
                    "the metadata key `{key}` is listed twice; the second is at offset {at}"
                )));
            }
            meta.insert(key, value);
        }
        refuse_split(&meta)?;

        let alignment = match meta.get("general.alignment") {
            None => DEFAULT_ALIGNMENT,
            Some(value) => match value.as_u64() {
                Some(n) if n > 0 && n % 8 == 0 && n <= u64::from(u32::MAX) => n,
                _ => {
                    return Err(bad(format!(
                        "`general.alignment` must be a positive multiple of 8, but is {value:?}"
                    )));
                }
            },
        };

        let mut heads = Vec::with_capacity(tensor_count);
        let mut by_name = HashMap::with_capacity(tensor_count);
        for nth in 0..tensor_count {
            let head = read_tensor_head(&mut r)?;
            if by_name.insert(head.name.clone(), nth).is_some() {
                return Err(bad(format!(
                    "the tensor `{}` is listed twice; the second is at offset {}",
                    head.name, head.at
                )));
            }
            heads.push(head);
        }
        let data = (r.at as u64).next_multiple_of(alignment);
        let tensors = heads
            .into_iter()
            .map(|head| head.place(data, alignment, bytes.len()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            version,
            meta,
            tensors,
            by_name,
            source,
        })
    }
}

impl std::fmt::Debug for Gguf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gguf")
            .field("version", &self.version)
            .field("bytes", &self.file_len())
            .field("metadata", &self.meta.len())
            .field("tensors", &self.tensors.len())
            .finish()
    }
}

impl Tensor<'_> {
    /// Returns the number of values in a row: `dims[0]`.
    pub fn row_len(&self) -> usize {
        self.dims[0]
    }

    /// Returns the number of rows: the product of all sizes except the first.
    pub fn rows(&self) -> usize {
        self.dims[1..].iter().product()
    }
}

impl Source {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Map(map) => map,
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// A tensor's entry in the file header, before its bytes are located.
struct Head {
    at: usize,
    name: String,
    dims: Vec<usize>,
    kind: GgmlType,
    bytes: u64,
    offset: u64,
}

impl Head {
    /// Locates the bytes in a file of `len` bytes whose tensor data starts at `data`.
    fn place(self, data: u64, alignment: u64, len: usize) -> Result<Info, Error> {
        let Self {
            at,
            name,
            dims,
            kind,
            bytes,
            offset,
        } = self;
        if !offset.is_multiple_of(alignment) {
            return Err(bad(format!(
                "the tensor `{name}` (described at offset {at}) must start at a multiple of {alignment}, but starts at {offset}"
            )));
        }
        let range = data
            .checked_add(offset)
            .and_then(|start| Some((start, start.checked_add(bytes)?)));
        match range {
            Some((start, end)) if end <= len as u64 => {
                // Both fit in `usize`: they are at most the length of a buffer in memory.
                Ok(Info {
                    name,
                    dims,
                    kind,
                    range: start as usize..end as usize,
                })
            }
            _ => Err(bad(format!(
                "the tensor `{name}` (described at offset {at}) needs {bytes} bytes from {data} + {offset}, but the file ends at {len}; \
                 it is probably cut short"
            ))),
        }
    }
}

fn read_head(r: &mut Reader<'_>) -> Result<u32, Error> {
    let magic = r.array::<4>("the letters GGUF")?;
    if &magic != b"GGUF" {
        return Err(bad(format!(
            "expected the letters GGUF at offset 0, found `{}`: this is not a GGUF file",
            magic.escape_ascii()
        )));
    }
    match r.u32("the format's version")? {
        version @ (2 | 3) => Ok(version),
        1 => Err(Error::Unsupported {
            what: "GGUF version 1 (of 2023); versions 2 and 3 are read".into(),
        }),
        n if n.swap_bytes() <= 0xffff => Err(Error::Unsupported {
            what: "a big-endian GGUF file".into(),
        }),
        n => Err(Error::Unsupported {
            what: format!("GGUF version {n}; versions 2 and 3 are read"),
        }),
    }
}

fn refuse_split(meta: &HashMap<String, Value>) -> Result<(), Error> {
    match meta.get("split.count").and_then(Value::as_u64) {
        Some(parts) if parts > 1 => Err(Error::Unsupported {
            what: format!(
                "a GGUF split into {parts} files; join them with `llama-gguf-split --merge` first"
            ),
        }),
        _ => Ok(()),
    }
}

fn read_tensor_head(r: &mut Reader<'_>) -> Result<Head, Error> {
    let at = r.at;
    let name = r.text("a tensor's name")?.to_owned();
    let count = r.u32("a tensor's number of dimensions")?;
    if !(1..=MAX_DIMS).contains(&count) {
        return Err(bad(format!(
            "expected 1 to {MAX_DIMS} dimensions for the tensor `{name}` before offset {}, found {count}",
            r.at
        )));
    }
    let mut dims = Vec::with_capacity(MAX_DIMS as usize);
    for _ in 0..count {
        let size = r.u64("a tensor's size")?;
        match usize::try_from(size) {
            Ok(size) if size > 0 => dims.push(size),
            _ => {
                return Err(bad(format!(
                    "expected a positive size for the tensor `{name}` before offset {}, found {size}",
                    r.at
                )));
            }
        }
    }
    let id = r.u32("a tensor's type")?;
    let Some(kind) = GgmlType::from_id(id) else {
        return Err(Error::Unsupported {
            what: format!("tensor type {id} (of `{name}`, before offset {})", r.at),
        });
    };
    let row = kind.row_bytes(dims[0]);
    let bytes = row.and_then(|row| dims[1..].iter().try_fold(row, |n, &d| n.checked_mul(d)));
    let Some(bytes) = bytes else {
        return Err(bad(format!(
            "the tensor `{name}` (described at offset {at}) has impossible sizes {dims:?} for {kind:?}: rows are multiples of {}",
            kind.block_len()
        )));
    };
    let offset = r.u64("a tensor's place")?;
    Ok(Head {
        at,
        name,
        dims,
        kind,
        bytes: bytes as u64,
        offset,
    })
}

fn bad(what: String) -> Error {
    Error::Gguf { what }
}
