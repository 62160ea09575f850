//! The questions that reviews ask git.

use crate::error::{ErrorKind, UserError};
use kd_store::git_command::GitCommand;

/// The advice without git.
pub(super) const NO_GIT: &str = "install git, or go to a folder of a git repository";
/// Default base branches.
const USUAL_BASES: [&str; 3] = ["main", "master", "trunk"];

/// Returns the base branch: origin's default branch; if that is unknown, the first of the default names that exists.
pub(super) fn usual_base(git: &GitCommand) -> Result<String, UserError> {
    let origin = [
        "symbolic-ref",
        "--quiet",
        "--short",
        "refs/remotes/origin/HEAD",
    ];
    if let Ok(name) = git.read(&origin) {
        return Ok(name.trim().to_owned());
    }
    let there = |name: &&&str| {
        let name = format!("refs/heads/{name}");
        let args = ["rev-parse", "--verify", "--quiet", &name];
        git.read(&args).is_ok()
    };
    USUAL_BASES
        .iter()
        .find(there)
        .map(|name| (*name).to_owned())
        .ok_or_else(|| {
            UserError::usage("there is no branch to compare with")
                .next("name one: kd review --branch REV")
        })
}

/// Returns git's output.
pub(super) fn read(git: &GitCommand, args: &[&str]) -> Result<String, UserError> {
    git.read(args).map_err(|error| failed(&error))
}

pub(super) fn failed(error: &kd_store::Error) -> UserError {
    UserError::new(ErrorKind::Git, "git cannot read the change").because(error)
}
