//! Writes a result into a file: whole, or not at all.

use crate::error::Error;
use crate::exit::Exit;
use kd_store::beneath;
use std::io::Write;
use std::path::Path;

/// Writes a file in one step: readers see the old one or the new one. Devices such as `/dev/stdout` are written through,
/// and so are links, but not below `.kd`.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_with(path, |out| Ok(out.write_all(bytes)?))
}

/// The same, for what is written piece by piece.
pub(super) fn write_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
) -> Result<(), Error> {
    let failed = |e: std::io::Error| {
        Error::new(
            "output",
            Exit::Error,
            format!("{} could not be written", path.display()),
        )
        .because(e)
        .next("give -o a name in a folder that exists and can be written")
    };
    // Below `.kd` a repository chooses what links point to.
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if beneath::is_below_kd(&whole) {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        return Ok(beneath::replace(&whole, &bytes)?);
    }
    let device = std::fs::metadata(path).is_ok_and(|m| !m.is_file());
    if device {
        let mut file = std::fs::File::create(path).map_err(failed)?;
        return write(&mut file);
    }
    // A link stays a link: what it points to is replaced.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = target
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".kd-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The usual rights of a new file; the umask takes its share.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder).map_err(failed)?;
    let mut out = std::io::BufWriter::new(file.as_file_mut());
    write(&mut out)?;
    out.flush().map_err(failed)?;
    drop(out);
    file.persist(&target).map_err(|e| failed(e.error))?;
    Ok(())
}

/// Whether a file name asks for JSON.
pub(super) fn is_json(path: &Path) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_link_stays() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("answer.md");
        std::fs::write(&file, "old").expect("written");
        let link = dir.path().join("link.md");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        write(&link, b"new").expect("written");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "new");
        assert!(
            link.symlink_metadata()
                .expect("there")
                .file_type()
                .is_symlink()
        );
        assert_eq!(
            std::fs::read_dir(dir.path()).expect("read").count(),
            2,
            "nothing is left over"
        );
        let kd = dir.path().join(".kd");
        std::fs::create_dir(&kd).expect("made");
        std::os::unix::fs::symlink(&file, kd.join("out.md")).expect("linked");
        write(&kd.join("out.md"), b"below").expect("written");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "new");
        std::os::unix::fs::symlink(dir.path(), kd.join("logs")).expect("linked");
        let error = write(&kd.join("logs/answer.md"), b"below").expect_err("a link");
        assert!(error.what.contains("is a link"), "{}", error.what);
        std::fs::remove_dir_all(&kd).expect("removed");
        let error = write(&dir.path().join("no/such/folder.md"), b"x").expect_err("no folder");
        assert_eq!(error.exit, Exit::Error);
    }
}
