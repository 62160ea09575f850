//! Forgetting threads in the databases of this crate, as a part of [`kd_store::forget`].

use crate::marks::Marks;
use kd_eval::marks::Mark;
use kd_store::Error;
use kd_store::forget::{Found, Holder, Job, Scope, Target};
use kd_store::user_dirs::project_key;
use std::path::{Path, PathBuf};

/// The user's marks of verdicts, by the path of their file.
#[derive(Clone, Debug)]
pub struct MarksFile(PathBuf);

impl MarksFile {
    /// Takes the path of the file, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Holder for MarksFile {
    /// Forgets the marks of the forgotten messages, and of verdicts that repeat them.
    fn forget(&self, job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        let project = project_key(job.layout().root());
        let mut marks = Marks::at(&self.0)?;
        let id = target.place.id.0.as_str();
        let gone = match &target.scope {
            Scope::Whole => marks.forget(&project, id, None, dry)?,
            Scope::Messages(numbers) => {
                let repeats = |mark: &&Mark| {
                    let own = mark.project == project && mark.thread == id;
                    let keys = mark
                        .members
                        .iter()
                        .filter_map(|member| member.key.as_deref());
                    let mut texts = keys
                        .chain(mark.winner.as_deref())
                        .chain(mark.answer.as_deref());
                    own && texts.any(|text| job.is_in(text))
                };
                let all = marks.all_readable()?.marks;
                let repeating = all.iter().filter(repeats).map(|mark| mark.message);
                let messages: Vec<u32> = numbers.iter().copied().chain(repeating).collect();
                marks.forget(&project, id, Some(&messages), dry)?
            }
        };
        let what = match gone {
            0 => return Ok(Vec::new()),
            1 => "1 mark of a verdict".to_owned(),
            n => format!("{n} marks of verdicts"),
        };
        Ok(vec![Found {
            path: self.0.clone(),
            what,
        }])
    }
}
