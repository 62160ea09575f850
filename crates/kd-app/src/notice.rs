//! Messages from the library to the host program while it works.

use kd_backends::delivery::Progress;
use kd_backends::delivery::catalog::KnownModel;
use std::path::PathBuf;
use std::time::Duration;

/// Something that the user may want to know. Nothing is printed by this library: a host decides what to show.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Notice {
    /// A remark that a quiet program leaves out.
    Note(String),
    /// A remark that the user should see in any case.
    Warning(String),
    /// The download of a model.
    Download(Download),
}

/// A step of a download.
#[derive(Clone, Debug)]
pub enum Download {
    /// It begins.
    Begun {
        /// The model.
        model: Box<KnownModel>,
        /// The folder that will contain it.
        folder: PathBuf,
    },
    /// It proceeds.
    Progress(Progress),
    /// It ended.
    Ended {
        /// The model.
        model: Box<KnownModel>,
        /// The duration of the download; `None` if it failed.
        took: Option<Duration>,
    },
}
