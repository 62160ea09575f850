//! Kinds of files by their names: which may hold code if a diff does not show their text.

use std::path::Path;

/// Extensions of binary formats that hold no source code.
const BINARY: &[&str] = &[
    "7z",
    "a",
    "apk",
    "avif",
    "avi",
    "bin",
    "blend",
    "bmp",
    "bz2",
    "class",
    "dat",
    "db",
    "deb",
    "dll",
    "dmg",
    "doc",
    "docx",
    "dylib",
    "ear",
    "eot",
    "epub",
    "exe",
    "fbx",
    "flac",
    "gguf",
    "gif",
    "glb",
    "gz",
    "h5",
    "heic",
    "icns",
    "ico",
    "iso",
    "jar",
    "jks",
    "jpeg",
    "jpg",
    "keystore",
    "lz4",
    "lzma",
    "mdb",
    "mkv",
    "mo",
    "mov",
    "mp3",
    "mp4",
    "mpeg",
    "mpg",
    "msi",
    "nib",
    "node",
    "npy",
    "npz",
    "o",
    "obj",
    "odp",
    "ods",
    "odt",
    "ogg",
    "onnx",
    "opus",
    "otf",
    "parquet",
    "pcap",
    "pdb",
    "pdf",
    "png",
    "ppt",
    "pptx",
    "psd",
    "pyc",
    "rar",
    "rpm",
    "safetensors",
    "so",
    "sqlite",
    "sqlite3",
    "tar",
    "tgz",
    "tif",
    "tiff",
    "ttf",
    "war",
    "wasm",
    "wav",
    "webm",
    "webp",
    "whl",
    "woff",
    "woff2",
    "xls",
    "xlsx",
    "xz",
    "zip",
    "zst",
];

/// Extensions of source code and of files that programs obey.
const SOURCE: &[&str] = &[
    "asm", "awk", "bash", "bat", "bzl", "c", "cc", "cfg", "clj", "cljs", "cmake", "cmd", "coffee",
    "cpp", "cs", "css", "cu", "cxx", "d", "dart", "ejs", "el", "elm", "erl", "ex", "exs", "f90",
    "fish", "fs", "gemspec", "go", "gradle", "graphql", "groovy", "h", "hcl", "hh", "hpp", "hrl",
    "hs", "html", "hxx", "ini", "java", "jl", "js", "json", "jsx", "kt", "kts", "lisp", "lua", "m",
    "mjs", "mk", "ml", "mli", "mm", "nim", "nix", "pas", "php", "pl", "pm", "proto", "ps1", "py",
    "pyi", "pyx", "r", "rake", "rb", "rs", "s", "scala", "scm", "scss", "sh", "sol", "sql", "sv",
    "svelte", "swift", "tcl", "tf", "toml", "ts", "tsx", "v", "vb", "vhd", "vhdl", "vim", "vue",
    "xml", "yaml", "yml", "zig", "zsh",
];

/// Names without a telling extension that are source code.
const SOURCE_NAMES: &[&str] = &[
    "BUILD",
    "CMakeLists.txt",
    "Dockerfile",
    "Gemfile",
    "Jenkinsfile",
    "Justfile",
    "Makefile",
    "Rakefile",
    "WORKSPACE",
    "justfile",
    "makefile",
];

fn has_extension(path: &str, list: &[&str]) -> bool {
    let extension = Path::new(path).extension().and_then(|e| e.to_str());
    extension.is_some_and(|one| list.contains(&one.to_ascii_lowercase().as_str()))
}

/// Returns whether a name ends as those of a binary format.
pub(super) fn is_binary(path: &str) -> bool {
    has_extension(path, BINARY)
}

/// Returns whether a name is one of source code.
pub(super) fn is_source(path: &str) -> bool {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    has_extension(path, SOURCE) || name.is_some_and(|name| SOURCE_NAMES.contains(&name))
}

/// Returns whether a name in the folder `.kd` is of a kind that `kd` itself lets git track: messages, settings, roles,
/// personas.
pub(super) fn is_of_kd(path: &str) -> bool {
    has_extension(path, &["md", "json", "yaml"]) || path.ends_with("/.gitignore")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_extension_is_in_two_lists() {
        for one in SOURCE {
            assert!(!BINARY.contains(one), "{one}");
            assert!(is_source(&format!("a/b.{one}")), "{one}");
            assert!(is_source(&format!("a/b.{}", one.to_uppercase())), "{one}");
        }
        for one in BINARY {
            assert!(is_binary(&format!("a.py/b.{one}")), "{one}");
        }
        assert!(is_source("x/Makefile") && !is_source("x/picture") && !is_binary("x/png"));
        assert!(
            is_of_kd(".kd/config.json") && is_of_kd(".kd/.gitignore") && !is_of_kd(".kd/evil.rs")
        );
    }
}
