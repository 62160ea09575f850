//! The reason why the threads of a project are not in its folder.

use crate::layout::KD;
use crate::owner::Distrust;
use std::fmt;
use std::path::PathBuf;

/// The reason why threads are stored in the user's data folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// A `.kd` there would apply to every project below.
    TooWide(PathBuf),
    /// The folder is not under the user's sole control.
    Distrust(PathBuf, Distrust),
    /// The `.kd` there was skipped.
    PassedOver(PathBuf),
    /// The folder is not writable.
    Refused(PathBuf),
    /// An earlier thread of the project is there.
    Earlier(PathBuf),
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elsewhere::TooWide(root) => write!(
                f,
                "kd creates no .kd in {}, because every project below would share it",
                root.display()
            ),
            Elsewhere::Distrust(_, why) => write!(f, "{why}"),
            Elsewhere::PassedOver(root) => {
                write!(f, "{} is not used", root.join(KD).display())
            }
            Elsewhere::Refused(root) => write!(f, "{} cannot be written", root.display()),
            Elsewhere::Earlier(root) => write!(
                f,
                "{} could not be used when the first thread was opened",
                root.display()
            ),
        }
    }
}
