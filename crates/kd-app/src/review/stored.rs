//! Stored reviews of a repository, and the user's marks of their findings.

use super::report::{Kept, VERSION};
use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::infile;
use kd_core::Timestamp;
use kd_core::clean::clean_line;
use kd_core::formats::{self, Newer};
use kd_core::review::{Reported, Severity};
use kd_store::git_command::GitCommand;
pub use kd_store::reviews::{Mark, Reviews, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Maximum bytes of a report file.
const REPORT_BYTES_MAX: u64 = 32 << 20;

/// Returns the reviews of the repository in the working folder: by the git folder shared by its worktrees, else by the
/// folder.
///
/// # Errors
/// If the working folder is unknown, or the user has no data folder.
pub fn reviews(env: &Env) -> Result<Reviews, UserError> {
    let folder = env.folder()?;
    let shared =
        GitCommand::new(folder).and_then(|git| git.read(&["rev-parse", "--git-common-dir"]));
    let repository = match shared {
        Ok(shared) => folder.join(PathBuf::from(shared.trim_end_matches(['\n', '\r']))),
        Err(_) => folder.to_path_buf(),
    };
    Ok(Reviews::of(&env.user_dirs(), &repository)?)
}

/// Returns the report of a thread, or the newest one, with the user's marks as they are now.
///
/// # Errors
/// If there is none, or it cannot be read.
pub fn find(reviews: &Reviews, thread: Option<&str>) -> Result<Kept, UserError> {
    let found = reviews.report(thread)?;
    let Some((_, value)) = found else {
        let what = match thread {
            Some(thread) => format!("there is no review `{}` here", line(thread)),
            None => "there are no reviews here yet".to_owned(),
        };
        let next = match thread {
            Some(_) => "kd review show (without an id) shows the newest one",
            None => "kd review",
        };
        return Err(UserError::new(ErrorKind::NoReview, what).next(next));
    };
    let mut kept: Kept = serde_json::from_value(value)
        .map_err(|e| UserError::new(ErrorKind::Store, "the report cannot be read").because(e))?;
    kept.dismiss(dismissed(&kept.report.findings, &reviews.marks()?));
    Ok(kept)
}

/// Returns the findings that the user has dismissed, by id. A mark holds for the same file, lines and claim, up to the
/// severity that it was given for.
pub(super) fn dismissed(findings: &[Reported], marks: &[Mark]) -> BTreeSet<String> {
    let marks = marks.iter().filter(|m| m.verdict == Verdict::Dismissed);
    let marks: BTreeMap<&str, Option<Severity>> = marks
        .map(|mark| (mark.id.as_str(), mark.severity))
        .collect();
    let is_dismissed = |finding: &&Reported| {
        let mark = marks.get(finding.id.as_str());
        mark.is_some_and(|most| most.is_none_or(|most| finding.severity() <= most))
    };
    let ids = findings.iter().filter(is_dismissed);
    ids.map(|finding| finding.id.clone()).collect()
}

/// Reads a report written by `kd review --format json`; `-` is stdin.
///
/// # Errors
/// If the file cannot be read, or is not a report of this version.
pub fn read(file: &Path) -> Result<Kept, UserError> {
    let named = line(&file.display().to_string());
    let failed = |why: &dyn Display| {
        UserError::usage(format!("{named} is not the report of a review"))
            .because(why)
            .next("kd review --format json -o FILE.json writes one")
    };
    let text = infile::read_text(file, REPORT_BYTES_MAX).map_err(|e| failed(&e))?;
    formats::REVIEWS
        .check(formats::stated(text.as_bytes(), "version"))
        .map_err(|newer| failed(&format!("it has {newer}")).next(Newer::HINT))?;
    let kept: Kept = serde_json::from_str(&text).map_err(|e| failed(&e))?;
    match kept.version {
        VERSION => Ok(kept),
        other => Err(failed(&format!("its version is {other}"))),
    }
}

/// Marks a finding, named by its id or a unique prefix, of a review, or of the newest one. Returns the finding's id and
/// its mark before.
///
/// # Errors
/// If there is no such review or finding, or the mark cannot be written.
pub fn mark(
    reviews: &Reviews,
    id: &str,
    verdict: Verdict,
    thread: Option<&str>,
) -> Result<(String, Option<Mark>), UserError> {
    let kept = find(reviews, thread)?;
    let found: Vec<_> = kept
        .report
        .findings
        .iter()
        .filter(|finding| finding.id == id || finding.id.starts_with(id))
        .collect();
    let exact = found.iter().position(|finding| finding.id == id);
    let finding = match (found.as_slice(), exact) {
        (_, Some(at)) => found[at],
        ([one], _) if !id.is_empty() => one,
        (found, _) => {
            let what = match found.len() {
                0 => format!("the review has no finding `{}`", line(id)),
                n => format!("`{}` could be {n} findings", line(id)),
            };
            return Err(UserError::new(ErrorKind::NoFinding, what)
                .next("kd review show --all lists the findings with their ids"));
        }
    };
    let old = reviews.mark(Mark {
        id: finding.id.clone(),
        verdict,
        agreeing: finding.independent(),
        of: kept.reviewers_of(finding),
        thread: kept.thread.clone(),
        at: Timestamp::now(),
        severity: Some(finding.severity()),
    })?;
    Ok((finding.id.clone(), old))
}

/// Returns the user's marks, by how many members agreed.
pub(super) fn marks_of(reviews: &Reviews) -> Result<kd_core::review::Marks, UserError> {
    let mut marks = kd_core::review::Marks::default();
    for mark in reviews.marks()? {
        let accepted = mark.verdict == Verdict::Accepted;
        marks.add(mark.agreeing, mark.of, accepted);
    }
    Ok(marks)
}

/// The user's input, on one line.
fn line(text: &str) -> String {
    clean_line(text, usize::MAX)
}
