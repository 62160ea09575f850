//! Files that hold secrets: read only if nobody except their owner can read or replace them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Whether a secret may be behind a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The link is followed; its target must be private.
    Follow,
    /// A link is refused.
    Refuse,
}

/// The reason why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// An I/O error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a symbolic link.
    #[error("it is a link")]
    Link,
    /// It is a folder, a pipe or a device.
    #[error("it is not a regular file")]
    Irregular,
    /// It belongs to another user.
    #[error("it belongs to another user")]
    Foreign,
    /// Its mode lets other users read or write it.
    #[error("others can read or write it (mode {0:03o})")]
    Loose(u32),
    /// It is too long for a secret.
    #[error("it is longer than {0} bytes")]
    Long(u64),
}

impl Refused {
    /// Suggests what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Refused::Io(_) => "check its path and permissions",
            Refused::Link => "name the file itself",
            Refused::Irregular | Refused::Long(_) => "name the file that holds the secret",
            Refused::Foreign => "use a file of your own",
            Refused::Loose(_) => "run `chmod 600` on it, then try again",
        }
    }
}

/// Reads a secret file of at most `max` bytes.
///
/// # Errors
/// If the file cannot be read, is not a regular UTF-8 file of the user or root, can be accessed by others, is larger
/// than `max`, or is a link and `links` refuses those.
pub fn read(path: &Path, max: u64, links: Links) -> Result<String, Refused> {
    let file = open(path, links)?;
    private(&file)?;
    let mut text = String::new();
    file.take(max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > max {
        return Err(Refused::Long(max));
    }
    Ok(text)
}

#[cfg(unix)]
fn open(path: &Path, links: Links) -> Result<File, Refused> {
    use std::os::unix::fs::OpenOptionsExt;
    // Opening a pipe must not block.
    let no_link = match links {
        Links::Follow => 0,
        Links::Refuse => libc::O_NOFOLLOW,
    };
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | no_link)
        .open(path);
    opened.map_err(|e| match e.raw_os_error() {
        Some(libc::ELOOP) => Refused::Link,
        _ => Refused::Io(e),
    })
}

#[cfg(not(unix))]
fn open(path: &Path, _: Links) -> Result<File, Refused> {
    Ok(File::open(path)?)
}

#[cfg(unix)]
fn private(file: &File) -> Result<(), Refused> {
    use std::os::unix::fs::MetadataExt;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Refused::Irregular);
    }
    if meta.mode() & 0o077 != 0 {
        return Err(Refused::Loose(meta.mode() & 0o777));
    }
    if meta.uid() != 0 && meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(Refused::Foreign);
    }
    Ok(())
}

#[cfg(not(unix))]
fn private(file: &File) -> Result<(), Refused> {
    match file.metadata()?.is_file() {
        true => Ok(()),
        false => Err(Refused::Irregular),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn only_a_private_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let file = |name: &str, mode: u32| {
            std::fs::write(at(name), "secret").unwrap();
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for mode in 0..=0o777u32 {
            if mode & 0o400 == 0 {
                continue;
            }
            file("file", mode);
            let read = read(&at("file"), 100, Links::Refuse);
            assert_eq!(read.is_ok(), mode & 0o077 == 0, "{mode:o}: {read:?}");
        }
        file("good", 0o600);
        symlink(at("good"), at("link")).unwrap();
        assert!(matches!(
            read(&at("link"), 100, Links::Refuse),
            Err(Refused::Link)
        ));
        assert_eq!(read(&at("link"), 100, Links::Follow).unwrap(), "secret");
        assert!(matches!(
            read(&at("good"), 5, Links::Refuse),
            Err(Refused::Long(5))
        ));
        assert_eq!(read(&at("good"), 6, Links::Refuse).unwrap(), "secret");
        assert!(matches!(
            read(folder.path(), 9, Links::Refuse),
            Err(Refused::Irregular)
        ));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(matches!(
            read(&at("pipe"), 9, Links::Refuse),
            Err(Refused::Irregular)
        ));
        assert!(matches!(
            read(&at("none"), 9, Links::Refuse),
            Err(Refused::Io(_))
        ));
        // Only root can change a file's owner.
        if chown(at("good"), Some(65534), None).is_ok() {
            assert!(matches!(
                read(&at("good"), 100, Links::Refuse),
                Err(Refused::Foreign)
            ));
        }
    }
}
