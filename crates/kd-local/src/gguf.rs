//! Reads GGUF, the file format of llama.cpp: metadata and where each tensor's bytes lie.
//!
//! In: a path (mapped, not copied) or bytes. Out: typed metadata and bounds-checked tensor slices.
//! The law of this file: no input makes it panic, overflow, recurse deeply or allocate more than a
//! small multiple of the input's length. Every count is checked against the bytes that are left
//! before anything is reserved, and every error names what was expected and at which offset.
//!
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>, versions 2 and 3, little endian.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

use crate::error::Error;

/// Arrays of arrays deeper than this are refused; real files use one level.
const MAX_NESTING: u32 = 4;
/// The most dimensions a tensor has in this format.
const MAX_DIMS: u32 = 4;
/// The alignment of tensor data where the file names none.
const DEFAULT_ALIGNMENT: u64 = 32;

/// An opened model file: its metadata, and its tensors by name.
pub struct Gguf {
    source: Source,
    version: u32,
    meta: HashMap<String, Value>,
    tensors: Vec<Info>,
    by_name: HashMap<String, usize>,
}

/// One tensor, its bytes still packed as they stand in the file.
#[derive(Debug, Clone)]
pub struct Tensor<'a> {
    /// Its name, such as `blk.0.attn_q.weight`.
    pub name: &'a str,
    /// Sizes, fastest first: `dims[0]` is the length of a row, the product of the others the number of rows.
    pub dims: Vec<usize>,
    /// How the values are packed.
    pub kind: GgmlType,
    /// Exactly `rows() * kind.row_bytes(row_len())` bytes.
    pub bytes: &'a [u8],
}

/// One metadata value. Numbers keep the width that the file gave them.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    missing_docs,
    reason = "the variants are the format's own names of its types"
)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(Box<str>),
    Array(Array),
}

/// A metadata array: all elements have one type, stored as compactly as in the file.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    missing_docs,
    reason = "the variants are the format's own names of its types"
)]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    String(Vec<Box<str>>),
    Array(Vec<Array>),
}

/// How a tensor's values are packed: blocks of [`block_len`](GgmlType::block_len) values that take
/// [`block_bytes`](GgmlType::block_bytes) bytes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types, missing_docs, reason = "the format's own names")]
pub enum GgmlType {
    F32,
    F16,
    BF16,
    F64,
    I8,
    I16,
    I32,
    I64,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q8_1,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    Q8_K,
    IQ2_XXS,
    IQ2_XS,
    IQ2_S,
    IQ3_XXS,
    IQ3_S,
    IQ1_S,
    IQ1_M,
    IQ4_NL,
    IQ4_XS,
    TQ1_0,
    TQ2_0,
    MXFP4,
}

enum Source {
    Map(Mmap),
    Bytes(Vec<u8>),
}

struct Info {
    name: String,
    dims: Vec<usize>,
    kind: GgmlType,
    /// Where its bytes lie in the whole file; checked against the file's length.
    range: Range<usize>,
}

impl Gguf {
    /// Maps the file at `path` and reads its head. The tensors' pages are read from disk when first touched.
    ///
    /// The file must not be shortened while it is open: the system would end the process on the
    /// next access. `kd` writes model files under another name and renames them when complete.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened, [`Error::Gguf`] if it is damaged or something else,
    /// [`Error::Unsupported`] if it is a GGUF of a kind that this reader does not know.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let io = |e| Error::io(path, e);
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() == 0 {
            // Mapping nothing is an error on some systems; the parser says it better.
            return Self::from_bytes(Vec::new());
        }
        // SAFETY: the map is private and read-only; that the file is not shortened meanwhile is the
        // documented condition above, which no program can check.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        Self::parse(Source::Map(map))
    }

    /// Reads a file that is already in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open), without `Io`.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        Self::parse(Source::Bytes(bytes))
    }

    /// The format's version: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The metadata value of `key`, such as `general.architecture`.
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.meta.get(key)
    }

    /// All metadata keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.meta.keys().map(String::as_str)
    }

    /// Whether there is a tensor of this name.
    pub fn has_tensor(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The tensor of this name.
    ///
    /// # Errors
    /// [`Error::Gguf`] if there is none.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>, Error> {
        match self.by_name.get(name) {
            Some(&at) => Ok(self.view(&self.tensors[at])),
            None => Err(bad(format!("the file has no tensor named `{name}`"))),
        }
    }

    /// All tensors, in the file's order.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor<'_>> {
        self.tensors.iter().map(|info| self.view(info))
    }

    /// The length of the whole file in bytes.
    pub fn file_len(&self) -> usize {
        self.source.bytes().len()
    }

    /// Tells the system that the mapped pages are not needed for now, so that they stop counting
    /// as this process's memory. Nothing is lost: a later access reads the page from the file again.
    /// Does nothing for bytes in memory and on systems without such a call.
    pub fn release(&self) {
        #[cfg(unix)]
        if let Source::Map(map) = &self.source {
            // SAFETY: the map is file-backed and never written through, so a dropped page comes back
            // with the same content; slices of it stay valid.
            #[allow(unsafe_code)]
            let advised = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
            // Only a hint: where the system refuses it, memory stays as it was.
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
                    "the metadata key `{key}` stands twice; the second is at offset {at}"
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
                    "the tensor `{}` stands twice; the second is at offset {}",
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
    /// The length of a row in values: `dims[0]`.
    pub fn row_len(&self) -> usize {
        self.dims[0]
    }

    /// The number of rows: the product of all sizes but the first.
    pub fn rows(&self) -> usize {
        self.dims[1..].iter().product()
    }
}

impl Value {
    /// A whole number of any width, if not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(n) => Some(n.into()),
            Self::U16(n) => Some(n.into()),
            Self::U32(n) => Some(n.into()),
            Self::U64(n) => Some(n),
            Self::I8(n) => n.try_into().ok(),
            Self::I16(n) => n.try_into().ok(),
            Self::I32(n) => n.try_into().ok(),
            Self::I64(n) => n.try_into().ok(),
            _ => None,
        }
    }

    /// A fraction of either width, rounded to `f32`.
    pub fn as_f32(&self) -> Option<f32> {
        match *self {
            Self::F32(x) => Some(x),
            #[allow(clippy::cast_possible_truncation)]
            Self::F64(x) => Some(x as f32),
            _ => None,
        }
    }

    /// A text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(s) => Some(s),
            _ => None,
        }
    }

    /// A truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(b) => Some(b),
            _ => None,
        }
    }

    /// An array.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(a) => Some(a),
            _ => None,
        }
    }
}

impl Array {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(v) => v.len(),
            Self::I8(v) => v.len(),
            Self::U16(v) => v.len(),
            Self::I16(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::I32(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::String(v) => v.len(),
            Self::Array(v) => v.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`, whatever its type; a text or inner array is copied.
    pub fn get(&self, index: usize) -> Option<Value> {
        Some(match self {
            Self::U8(v) => Value::U8(*v.get(index)?),
            Self::I8(v) => Value::I8(*v.get(index)?),
            Self::U16(v) => Value::U16(*v.get(index)?),
            Self::I16(v) => Value::I16(*v.get(index)?),
            Self::U32(v) => Value::U32(*v.get(index)?),
            Self::I32(v) => Value::I32(*v.get(index)?),
            Self::U64(v) => Value::U64(*v.get(index)?),
            Self::I64(v) => Value::I64(*v.get(index)?),
            Self::F32(v) => Value::F32(*v.get(index)?),
            Self::F64(v) => Value::F64(*v.get(index)?),
            Self::Bool(v) => Value::Bool(*v.get(index)?),
            Self::String(v) => Value::String(v.get(index)?.clone()),
            Self::Array(v) => Value::Array(v.get(index)?.clone()),
        })
    }

    /// The texts, if it is an array of texts.
    pub fn as_strings(&self) -> Option<&[Box<str>]> {
        match self {
            Self::String(v) => Some(v),
            _ => None,
        }
    }

    /// The numbers, if it is an array of `i32`.
    pub fn as_i32s(&self) -> Option<&[i32]> {
        match self {
            Self::I32(v) => Some(v),
            _ => None,
        }
    }

    /// The numbers, if it is an array of `f32`.
    pub fn as_f32s(&self) -> Option<&[f32]> {
        match self {
            Self::F32(v) => Some(v),
            _ => None,
        }
    }
}

impl GgmlType {
    /// The type of this number in a file; `None` for numbers never given or retired.
    pub fn from_id(id: u32) -> Option<Self> {
        Some(match id {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            9 => Self::Q8_1,
            10 => Self::Q2_K,
            11 => Self::Q3_K,
            12 => Self::Q4_K,
            13 => Self::Q5_K,
            14 => Self::Q6_K,
            15 => Self::Q8_K,
            16 => Self::IQ2_XXS,
            17 => Self::IQ2_XS,
            18 => Self::IQ3_XXS,
            19 => Self::IQ1_S,
            20 => Self::IQ4_NL,
            21 => Self::IQ3_S,
            22 => Self::IQ2_S,
            23 => Self::IQ4_XS,
            24 => Self::I8,
            25 => Self::I16,
            26 => Self::I32,
            27 => Self::I64,
            28 => Self::F64,
            29 => Self::IQ1_M,
            30 => Self::BF16,
            34 => Self::TQ1_0,
            35 => Self::TQ2_0,
            39 => Self::MXFP4,
            _ => return None,
        })
    }

    /// How many values one block holds. A row's length is always a multiple of it.
    pub fn block_len(self) -> usize {
        self.block().0
    }

    /// How many bytes one block takes.
    pub fn block_bytes(self) -> usize {
        self.block().1
    }

    /// How many bytes a row of `len` values takes; `None` if `len` is no multiple of the block or too large.
    pub fn row_bytes(self, len: usize) -> Option<usize> {
        let (values, bytes) = self.block();
        if len.is_multiple_of(values) {
            (len / values).checked_mul(bytes)
        } else {
            None
        }
    }

    /// Values and bytes of a block, from the block structures of ggml (`ggml-common.h`).
    fn block(self) -> (usize, usize) {
        match self {
            Self::F32 | Self::I32 => (1, 4),
            Self::F16 | Self::BF16 | Self::I16 => (1, 2),
            Self::F64 | Self::I64 => (1, 8),
            Self::I8 => (1, 1),
            Self::Q4_0 | Self::IQ4_NL => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q8_0 => (32, 34),
            Self::Q8_1 => (32, 36),
            Self::MXFP4 => (32, 17),
            Self::Q2_K => (256, 84),
            Self::Q3_K | Self::IQ3_S => (256, 110),
            Self::Q4_K => (256, 144),
            Self::Q5_K => (256, 176),
            Self::Q6_K => (256, 210),
            Self::Q8_K => (256, 292),
            Self::IQ2_XXS | Self::TQ2_0 => (256, 66),
            Self::IQ2_XS => (256, 74),
            Self::IQ2_S => (256, 82),
            Self::IQ3_XXS => (256, 98),
            Self::IQ1_S => (256, 50),
            Self::IQ1_M => (256, 56),
            Self::IQ4_XS => (256, 136),
            Self::TQ1_0 => (256, 54),
        }
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

/// A tensor's entry in the head of the file, before its bytes are found.
struct Head {
    at: usize,
    name: String,
    dims: Vec<usize>,
    kind: GgmlType,
    bytes: u64,
    offset: u64,
}

impl Head {
    /// Finds the bytes in a file of `len` bytes whose tensor data starts at `data`.
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
                // Both fit: they are at most the length of something in memory.
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

fn read_value(r: &mut Reader<'_>, kind: u32, key: &str) -> Result<Value, Error> {
    let what = "a metadata value";
    Ok(match kind {
        0 => Value::U8(r.array::<1>(what)?[0]),
        1 => Value::I8(i8::from_le_bytes(r.array(what)?)),
        2 => Value::U16(u16::from_le_bytes(r.array(what)?)),
        3 => Value::I16(i16::from_le_bytes(r.array(what)?)),
        4 => Value::U32(r.u32(what)?),
        5 => Value::I32(i32::from_le_bytes(r.array(what)?)),
        6 => Value::F32(f32::from_le_bytes(r.array(what)?)),
        7 => Value::Bool(r.array::<1>(what)?[0] != 0),
        8 => Value::String(r.lossy(what)?),
        9 => Value::Array(read_array(r, key, MAX_NESTING)?),
        10 => Value::U64(r.u64(what)?),
        11 => Value::I64(i64::from_le_bytes(r.array(what)?)),
        12 => Value::F64(f64::from_le_bytes(r.array(what)?)),
        _ => return Err(unknown_type(r, kind, key)),
    })
}

fn read_array(r: &mut Reader<'_>, key: &str, levels: u32) -> Result<Array, Error> {
    let kind = r.u32("an array's type")?;
    let what = "an array's length";
    Ok(match kind {
        0 => Array::U8(r.numbers(what, u8::from_le_bytes)?),
        1 => Array::I8(r.numbers(what, i8::from_le_bytes)?),
        2 => Array::U16(r.numbers(what, u16::from_le_bytes)?),
        3 => Array::I16(r.numbers(what, i16::from_le_bytes)?),
        4 => Array::U32(r.numbers(what, u32::from_le_bytes)?),
        5 => Array::I32(r.numbers(what, i32::from_le_bytes)?),
        6 => Array::F32(r.numbers(what, f32::from_le_bytes)?),
        7 => Array::Bool(r.numbers(what, |[b]: [u8; 1]| b != 0)?),
        8 => {
            let count = r.count(what, 8)?;
            (0..count)
                .map(|_| r.lossy("an array's text"))
                .collect::<Result<_, _>>()
                .map(Array::String)?
        }
        9 => {
            if levels == 0 {
                return Err(bad(format!(
                    "the arrays of `{key}` are nested more than {MAX_NESTING} deep at offset {}",
                    r.at
                )));
            }
            let count = r.count(what, 4 + 8)?;
            (0..count)
                .map(|_| read_array(r, key, levels - 1))
                .collect::<Result<_, _>>()
                .map(Array::Array)?
        }
        10 => Array::U64(r.numbers(what, u64::from_le_bytes)?),
        11 => Array::I64(r.numbers(what, i64::from_le_bytes)?),
        12 => Array::F64(r.numbers(what, f64::from_le_bytes)?),
        _ => return Err(unknown_type(r, kind, key)),
    })
}

fn unknown_type(r: &Reader<'_>, kind: u32, key: &str) -> Error {
    bad(format!(
        "expected a type from 0 to 12 for `{key}` before offset {}, found {kind}",
        r.at
    ))
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

/// A place in the bytes. Every step forward is checked.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8], Error> {
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

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, what)?);
        Ok(out)
    }

    fn u32(&mut self, what: &str) -> Result<u32, Error> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64, Error> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A count of things that take at least `least` bytes each: refused if they cannot all be there.
    fn count(&mut self, what: &str, least: usize) -> Result<usize, Error> {
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

    fn numbers<const N: usize, T>(
        &mut self,
        what: &str,
        convert: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, Error> {
        let count = self.count(what, N)?;
        let bytes = self.take(count * N, what)?;
        let (chunks, _) = bytes.as_chunks::<N>();
        Ok(chunks.iter().map(|&chunk| convert(chunk)).collect())
    }

    fn raw_text(&mut self, what: &str) -> Result<&'a [u8], Error> {
        let count = self.count(what, 1)?;
        self.take(count, what)
    }

    /// A name: must be UTF-8, since it is compared.
    fn text(&mut self, what: &str) -> Result<&'a str, Error> {
        let at = self.at;
        std::str::from_utf8(self.raw_text(what)?).map_err(|_| {
            bad(format!(
                "expected {what} in UTF-8 at offset {at}, found other bytes"
            ))
        })
    }

    /// A value: a stray byte in some description must not make a model unreadable.
    fn lossy(&mut self, what: &str) -> Result<Box<str>, Error> {
        Ok(String::from_utf8_lossy(self.raw_text(what)?)
            .into_owned()
            .into_boxed_str())
    }
}

fn bad(what: String) -> Error {
    Error::Gguf { what }
}
