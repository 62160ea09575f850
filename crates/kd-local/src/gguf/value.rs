//! Metadata values: every type of the format, with arrays stored as compactly as in the file.

use super::bad;
use super::reader::Reader;
use crate::error::Error;

/// Deeper nested arrays are refused; real files use one level.
const MAX_NESTING: u32 = 4;

/// One metadata value. Numbers keep their width from the file.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the variants are the type names of the format")]
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
#[allow(missing_docs, reason = "the variants are the type names of the format")]
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

impl Value {
    /// Returns an integer of any width, if not negative.
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

    /// Returns a float of either width, rounded to `f32`.
    pub fn as_f32(&self) -> Option<f32> {
        match *self {
            Self::F32(x) => Some(x),
            #[allow(clippy::cast_possible_truncation)]
            Self::F64(x) => Some(x as f32),
            _ => None,
        }
    }

    /// Returns a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(s) => Some(s),
            _ => None,
        }
    }

    /// Returns a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(b) => Some(b),
            _ => None,
        }
    }

    /// Returns an array.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(a) => Some(a),
            _ => None,
        }
    }
}

impl Array {
    /// Returns the number of elements.
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

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the element at `index`, whatever its type; strings and inner arrays are copied.
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

    /// Returns the strings, if this is an array of strings.
    pub fn as_strings(&self) -> Option<&[Box<str>]> {
        match self {
            Self::String(v) => Some(v),
            _ => None,
        }
    }

    /// Returns the numbers, if this is an array of `i32`.
    pub fn as_i32s(&self) -> Option<&[i32]> {
        match self {
            Self::I32(v) => Some(v),
            _ => None,
        }
    }

    /// Returns the numbers, if this is an array of `f32`.
    pub fn as_f32s(&self) -> Option<&[f32]> {
        match self {
            Self::F32(v) => Some(v),
            _ => None,
        }
    }
}

/// Reads a value of the type with this id.
pub(super) fn read_value(r: &mut Reader<'_>, kind: u32, key: &str) -> Result<Value, Error> {
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
