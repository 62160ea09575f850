//! Finds the owner of a folder and the users who can write to it, to decide whether its content is the user's own.
//!
//! Input: a folder, and the accounts of this machine. Output: nothing, or a [`Distrust`] that names the owner. The
//! rules are the same as in git (`safe.directory`) and ssh (`StrictModes`): see `docs/threads.md`.

use crate::private::read_small;
use std::cell::OnceCell;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Larger account files are not read: then names are shown as numbers, and no group is private.
const ACCOUNTS_BYTES_MAX: u64 = 8 << 20;
const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// The reason why a folder is not trusted as the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// It is a link; `KD_BASE` would follow it.
    Link,
    /// The folder, or one on the way to it, belongs to another user.
    Owner(Owner),
    /// Other users can write to the folder, or to a folder on the way to it.
    Writable {
        /// The folder.
        folder: PathBuf,
        /// The group with write access; `None` is everyone.
        group: Option<String>,
    },
}

/// The owner of a folder, who is not the user and not root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The folder.
    pub folder: PathBuf,
    /// Its owner's user id.
    pub uid: u32,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (folder, owner) = (self.folder.display(), user_name(self.uid));
        write!(f, "{folder} belongs to {owner}")
    }
}

/// Describes a user by name, if known, and id.
pub fn user_name(uid: u32) -> String {
    match account_name("/etc/passwd", uid) {
        Some(name) => format!("{name} (user id {uid})"),
        None => format!("user id {uid}"),
    }
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distrust::Link => write!(f, "it is a link"),
            Distrust::Owner(owner) => write!(f, "{owner}"),
            Distrust::Writable { folder, group } => {
                let who = match group {
                    Some(group) => format!("the group {group}"),
                    None => "everyone".to_owned(),
                };
                write!(f, "{} can be written to by {who}", folder.display())
            }
        }
    }
}

/// The user that this process acts for.
pub(crate) struct User {
    uid: u32,
    /// The group with no other member, looked up on demand.
    private_group: OnceCell<Option<u32>>,
}

impl User {
    /// Returns the effective user. Under `sudo` this is root, not the calling user, who could not use files that root
    /// creates in their folder.
    pub(crate) fn current() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            private_group: OnceCell::new(),
        }
    }

    /// Returns whether the user owns a file.
    pub(crate) fn owns(&self, meta: &std::fs::Metadata) -> bool {
        meta.uid() == self.uid
    }

    /// Checks that only the user, root and `allowed` owners can replace the content of a folder and, unless it is only
    /// on the `way` to another, add to it. Allowing an owner allows no group, nor everyone.
    pub(crate) fn relies_on(
        &self,
        folder: &Path,
        meta: &std::fs::Metadata,
        way: bool,
        allowed: &dyn Fn(u32) -> bool,
    ) -> Result<(), Distrust> {
        let (uid, mode) = (meta.uid(), meta.mode());
        if uid != self.uid && uid != 0 && !allowed(uid) {
            let folder = folder.to_path_buf();
            return Err(Distrust::Owner(Owner { folder, uid }));
        }
        // In a sticky folder such as `/tmp`, others can add files but not replace the user's.
        if way && mode & STICKY != 0 {
            return Ok(());
        }
        let group = if mode & OTHERS_WRITE != 0 {
            None
        } else if mode & GROUP_WRITE != 0 && !self.is_alone_in(meta.gid(), folder) {
            let name = account_name("/etc/group", meta.gid());
            Some(name.unwrap_or_else(|| meta.gid().to_string()))
        } else {
            return Ok(());
        };
        let folder = folder.to_path_buf();
        Err(Distrust::Writable { folder, group })
    }

    /// Returns whether a group with write access to a folder is the user's private one, as with a umask of 002.
    fn is_alone_in(&self, group: u32, folder: &Path) -> bool {
        let private = self.private_group.get_or_init(|| {
            private_group(
                &accounts("/etc/passwd")?,
                &accounts("/etc/group")?,
                self.uid,
            )
        });
        // With an access control list, the group bits are a mask, and the list may name anyone.
        *private == Some(group) && !has_acl(folder)
    }
}

#[cfg(target_os = "linux")]
fn has_acl(folder: &Path) -> bool {
    use rustix::io::Errno;
    let found = rustix::fs::getxattr(folder, "system.posix_acl_access", &mut [0u8; 0][..]);
    !matches!(found, Err(Errno::NODATA | Errno::NOTSUP))
}

#[cfg(not(target_os = "linux"))]
fn has_acl(_: &Path) -> bool {
    false
}

/// Returns the user's primary group, if it has their name and no other member.
fn private_group(passwd: &str, group: &str, uid: u32) -> Option<u32> {
    let fields = |line: &str| -> Vec<String> { line.split(':').map(str::to_owned).collect() };
    let users: Vec<Vec<String>> = passwd.lines().map(fields).collect();
    let number = |fields: &[String], at: usize| fields.get(at)?.parse::<u32>().ok();
    let user = users.iter().find(|user| number(user, 2) == Some(uid))?;
    let (name, gid) = (user.first()?, number(user, 3)?);
    let others = users
        .iter()
        .any(|other| number(other, 3) == Some(gid) && number(other, 2) != Some(uid));
    let groups: Vec<Vec<String>> = group.lines().map(fields).collect();
    let mut named = groups.iter().filter(|group| number(group, 2) == Some(gid));
    let alone = named.all(|group| {
        let members = group.get(3).map_or("", String::as_str);
        group.first() == Some(name) && members.split(',').all(|m| m.is_empty() || m == name)
    });
    let known = groups.iter().any(|group| number(group, 2) == Some(gid));
    (known && alone && !others).then_some(gid)
}

/// Returns the name of an id in `passwd` or `group`.
fn account_name(file: &str, id: u32) -> Option<String> {
    let text = accounts(file)?;
    let mut lines = text.lines();
    let line = lines.find(|line| line.split(':').nth(2) == Some(&id.to_string()))?;
    let name = line.split(':').next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-$".contains(c);
    (!name.is_empty() && name.len() <= 64 && name.chars().all(plain)).then(|| name.to_owned())
}

fn accounts(file: &str) -> Option<String> {
    read_small(Path::new(file), ACCOUNTS_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    const PASSWD: &str = "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n\
                          bob:x:1001:100::/home/bob:/bin/sh\neve:x:1002:1002::/:/bin/sh\nsam:x:1003:1002::/:/bin/sh\n";

    #[test]
    fn a_private_group_bears_the_users_name_and_has_no_other_member() {
        let cases = [
            ("ada:x:1000:", 1000, Some(1000)),
            ("ada:x:1000:ada", 1000, Some(1000)),
            ("ada:x:1000:bob", 1000, None),
            ("ada:x:1000:ada,bob", 1000, None),
            ("staff:x:1000:", 1000, None),
            ("ada:x:1000:\nstaff:x:1000:bob", 1000, None),
            ("users:x:100:", 1001, None),
            // Another user has it as the primary group.
            ("eve:x:1002:", 1002, None),
            ("", 1000, None),
            ("ada:x:1000:", 4242, None),
        ];
        for (group, uid, private) in cases {
            assert_eq!(private_group(PASSWD, group, uid), private, "{group} {uid}");
        }
    }

    #[test]
    fn what_others_can_write_is_not_relied_on_but_for_sticky_folders() {
        let top = tempfile::tempdir().unwrap();
        let user = User {
            uid: rustix::process::geteuid().as_raw(),
            private_group: OnceCell::from(None),
        };
        let folder = top.path().join("x");
        fs::create_dir(&folder).unwrap();
        let none: &dyn Fn(u32) -> bool = &|_| false;
        for (mode, relied_on) in [
            (0o700, true),
            (0o755, true),
            (0o775, false),
            (0o757, false),
            (0o777, false),
            (0o1777, true),
        ] {
            fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            let meta = fs::metadata(&folder).unwrap();
            let found = user.relies_on(&folder, &meta, true, none);
            assert_eq!(found.is_ok(), relied_on, "{mode:o}: {found:?}");
            let accepted = user.relies_on(&folder, &meta, true, &|_| true);
            assert_eq!(accepted.is_ok(), relied_on, "{mode:o}: an accepted owner");
            let strict = relied_on && mode != 0o1777;
            assert_eq!(user.relies_on(&folder, &meta, false, none).is_ok(), strict);
        }
        fs::set_permissions(&folder, Permissions::from_mode(0o775)).unwrap();
        let meta = fs::metadata(&folder).unwrap();
        let alone = User {
            uid: user.uid,
            private_group: OnceCell::from(Some(meta.gid())),
        };
        assert!(alone.relies_on(&folder, &meta, false, none).is_ok());
        let stranger = User {
            uid: user.uid.wrapping_add(77),
            private_group: OnceCell::from(None),
        };
        // Root's folders are trusted by everyone.
        if user.uid != 0 {
            let why = stranger.relies_on(&folder, &meta, true, none).unwrap_err();
            assert!(matches!(why, Distrust::Owner(owner) if owner.uid == user.uid));
        }
    }
}
