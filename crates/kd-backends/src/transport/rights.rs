//! File access of a read-only agent, enforced by the system in addition to the agent's own flags.
//!
//! Input: the paths that an agent may read or write. Output: a Landlock domain that its process enters before it
//! becomes the agent. To the agent everything else does not exist.
//!
//! Needs Linux 5.13 or newer with Landlock enabled. Older versions of Landlock do not prevent an agent from truncating
//! files (before Linux 6.2) or signaling other processes (before 6.12): only the agent's flags do. docs/agents.md,
//! "Sandbox", lists the actions that no version of Landlock prevents.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The paths that an agent may use. Folders include everything below them; a path that does not exist is skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// Read and run.
    pub read: Vec<PathBuf>,
    /// Read, run and write.
    pub write: Vec<PathBuf>,
}

/// The system's paths that every program needs: programs, libraries, settings, host names, certificates.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/snap",
    "/home/linuxbrew/.linuxbrew",
    "/proc",
    "/sys",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/nscd",
    "/run/current-system",
    "/run/wrappers",
    "/run/opengl-driver",
    "/mnt/wsl/resolv.conf",
    "/var/lib/ca-certificates",
];

/// Returns the version of Landlock on this system.
pub fn landlock() -> Option<i32> {
    #[cfg(target_os = "linux")]
    return platform::version();
    #[cfg(not(target_os = "linux"))]
    None
}

/// Returns the version of Landlock that restricts the programs this process starts; `None` without a keeper, which
/// enters the domain for them.
pub fn held() -> Option<i32> {
    super::keeper::identity::program().and_then(|_| landlock())
}

/// Returns the folders of programs, libraries and settings that every program needs.
pub(crate) fn system() -> impl Iterator<Item = PathBuf> {
    let folders = SYSTEM.iter().map(PathBuf::from);
    folders.filter(|at| !at.starts_with("/proc") && !at.starts_with("/sys"))
}

#[cfg(target_os = "linux")]
pub(super) use platform::ruleset;

#[cfg(target_os = "linux")]
mod platform {
    use super::{Rights, SYSTEM};
    use landlock::{
        ABI, Access, AccessFs, BitFlags, LandlockStatus, Ruleset, RulesetAttr, RulesetCreated,
        RulesetCreatedAttr, Scope, path_beneath_rules,
    };
    use std::io;
    use std::sync::OnceLock;

    /// The newest version whose rights are requested.
    const ABI_ASKED: ABI = ABI::V6;

    /// Shared devices. Not all of `/dev`: it contains the user's terminals, shared memory, and disks.
    const DEVICES: &[&str] = &[
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
    ];

    pub(super) fn version() -> Option<i32> {
        static VERSION: OnceLock<Option<i32>> = OnceLock::new();
        // Only a thread that enters a domain learns the version, and only that thread is in it.
        let enter = || match ruleset(&Rights::default())
            .ok()?
            .restrict_self()
            .ok()?
            .landlock
        {
            LandlockStatus::Available {
                effective_abi,
                kernel_abi,
            } => Some(kernel_abi.unwrap_or(effective_abi as i32)),
            _ => None,
        };
        *VERSION.get_or_init(|| std::thread::spawn(enter).join().ok().flatten())
    }

    /// Creates a domain with these rights, without entering it.
    ///
    /// # Errors
    /// The system refuses to create one. On a system without Landlock the domain enforces nothing.
    pub(in super::super) fn ruleset(rights: &Rights) -> io::Result<RulesetCreated> {
        let read = AccessFs::from_read(ABI_ASKED);
        let all = AccessFs::from_all(ABI_ASKED);
        let made = || {
            let rules: RulesetCreated = Ruleset::default()
                .handle_access(all)?
                .scope(Scope::Signal)?
                .create()?
                .add_rules(path_beneath_rules(SYSTEM, read))?
                .add_rules(path_beneath_rules(&rights.read, read))?
                .add_rules(path_beneath_rules(&rights.write, all))?;
            rules.add_rules(path_beneath_rules(DEVICES, device()))
        };
        made().map_err(io::Error::other)
    }

    /// Returns the access allowed to devices.
    fn device() -> BitFlags<AccessFs> {
        AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
    }
}
