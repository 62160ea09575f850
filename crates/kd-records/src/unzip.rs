//! Archives, decompressed within bounds.

use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use zip::{CompressionMethod, ZipArchive};

/// Maximum bytes of one decompressed entry.
pub(crate) const ENTRY_BYTES_MAX: u64 = 256 << 20;
/// Maximum memory for the window of one zstd stream.
const WINDOW_BYTES_MAX: u64 = 64 << 20;

/// Returns the names in an archive; `None` if the file is not an archive.
pub(crate) fn names(bytes: &[u8]) -> Option<BTreeSet<String>> {
    let archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
    let names = archive.file_names().filter_map(Result::ok);
    Some(names.map(std::borrow::Cow::into_owned).collect())
}

/// The reason why an entry was not decompressed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoEntry {
    /// The archive has no entry of this name.
    #[error("the archive has no {0}")]
    Missing(String),
    /// It is damaged, compressed in an unknown way, or longer than the maximum.
    #[error("{name} in the archive: {why}")]
    Unusable { name: String, why: String },
}

/// Decompresses an entry.
///
/// # Errors
/// If there is no entry of this name, it is damaged, compressed in an unknown way, or longer than the maximum.
pub(crate) fn entry(bytes: &[u8], name: &str, bytes_max: u64) -> Result<Vec<u8>, NoEntry> {
    let failed = |error: &dyn std::fmt::Display| NoEntry::Unusable {
        name: name.to_owned(),
        why: error.to_string(),
    };
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| failed(&e))?;
    let Some(at) = archive.index_for_name(name) else {
        return Err(NoEntry::Missing(name.to_owned()));
    };
    let raw = archive.by_index_raw(at).map_err(|e| failed(&e))?;
    let mut out = Vec::new();
    if raw.compression() == CompressionMethod::ZSTD {
        let stream =
            ruzstd::decoding::StreamingDecoder::new_with_max_window_size(raw, WINDOW_BYTES_MAX);
        let stream = stream.map_err(|e| failed(&e))?;
        take(stream, bytes_max, &mut out).map_err(|e| failed(&e))?;
    } else {
        drop(raw);
        let file = archive.by_index(at).map_err(|e| failed(&e))?;
        take(file, bytes_max, &mut out).map_err(|e| failed(&e))?;
    }
    Ok(out)
}

fn take(from: impl Read, bytes_max: u64, out: &mut Vec<u8>) -> std::io::Result<()> {
    from.take(bytes_max + 1).read_to_end(out)?;
    match out.len() as u64 > bytes_max {
        true => Err(std::io::Error::other(format!(
            "it is longer than {} MiB when decompressed",
            bytes_max >> 20
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    #[test]
    fn a_bomb_is_refused_before_it_fills_the_memory() {
        for method in [CompressionMethod::Deflated, CompressionMethod::Stored] {
            let mut out = ZipWriter::new(Cursor::new(Vec::new()));
            let options = SimpleFileOptions::default().compression_method(method);
            out.start_file("a", options).unwrap();
            out.write_all(&[0; 2 << 20]).unwrap();
            let bytes = out.finish().unwrap().into_inner();
            assert_eq!(entry(&bytes, "a", 2 << 20).unwrap().len(), 2 << 20);
            let error = entry(&bytes, "a", 1 << 20).unwrap_err().to_string();
            assert!(error.contains("longer than 1 MiB"), "{error}");
            let error = entry(&bytes, "b", 9).unwrap_err();
            assert!(matches!(error, NoEntry::Missing(name) if name == "b"));
        }
    }
}
