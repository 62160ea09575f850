//! The user's marks of verdicts: builds the mark of a thread's verdict, and keeps it. For every front end.

#[cfg(feature = "forum")]
mod forget;
#[cfg(feature = "forum")]
mod gold;
#[cfg(feature = "forum")]
mod import;
#[cfg(feature = "forum")]
mod list;
mod own;
mod promise;
#[cfg(feature = "forum")]
mod teach;

pub use own::check_own;
pub(crate) use own::note;
pub use promise::{FROM_RECORD, Promised, promised};

#[cfg(feature = "forum")]
pub use forget::{forget_all, forget_thread};
#[cfg(feature = "forum")]
pub use gold::{ByGold, Skipped, by_gold};
#[cfg(feature = "forum")]
pub use import::{Imported, import};
#[cfg(feature = "forum")]
pub use list::{Readable, all, check, current_project, shown_project, total};
#[cfg(feature = "forum")]
pub use teach::{Lesson, hinted, is_hint_due, lessons};

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::words::count;
use kd_core::Record;
use kd_core::clean::clean_line;
use kd_core::deliberation::report::Report;
use kd_core::deliberation::{self, Unjudged, judge, unmarked};
use kd_core::view::View;
use kd_eval::marks::Mark;
use kd_store::user_dirs::project_key;
use kd_store::{Layout, Thread, Verdicts, log};

/// Maximum characters of a name in a line.
const NAME_CHARS: usize = 80;

/// A mark that was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Marked {
    /// The mark.
    pub mark: Mark,
    /// The earlier mark of the same verdict, if any.
    pub before: Option<Mark>,
    /// Number of marks that the user has now.
    pub count: u64,
}

impl Marked {
    /// Describes the mark in one line.
    pub fn line(&self) -> String {
        let was = match &self.before {
            Some(old) if old.credit != self.mark.credit => format!(" (was {})", credit(old)),
            _ => String::new(),
        };
        format!(
            "{} is {}{was}; you have {}",
            place(&self.mark),
            credit(&self.mark),
            count(self.count, "mark")
        )
    }
}

/// Returns the place of a marked verdict: its thread and message.
pub fn place(mark: &Mark) -> String {
    clean_line(&format!("{} #{}", mark.thread, mark.message), NAME_CHARS)
}

/// Returns the judgment of a mark in words.
pub fn credit(mark: &Mark) -> String {
    match mark.credit {
        1.0 => "right".to_owned(),
        0.0 => "wrong".to_owned(),
        share => format!("{share} right"),
    }
}

/// Returns the records of a thread's last deliberation; `None` if it has none.
///
/// # Errors
/// The record cannot be read, or a newer `kd` wrote it.
pub fn records(thread: &Thread) -> Result<Option<Vec<Record>>, UserError> {
    let Some(records) = deliberation::last(log::read(thread)?.records) else {
        return Ok(None);
    };
    deliberation::check(&records).map_err(|newer| kd_store::Error::Newer {
        path: thread.path().to_path_buf(),
        newer,
    })?;
    Ok(Some(records))
}

/// Returns the newest verdict of a thread as a mark without a judgment, and its report. `None` without a deliberation,
/// or if it decided nothing.
///
/// `fell` has the verdicts of the project that the user's `kd` has reached.
///
/// # Errors
/// Those of [`records`] and [`check_own`].
pub fn verdict(
    layout: &Layout,
    thread: &Thread,
    fell: &Verdicts,
) -> Result<Option<(Mark, Report)>, UserError> {
    let Some(records) = records(thread)? else {
        return Ok(None);
    };
    let report = View::of(&records).report;
    let mark = unmarked(&report, &project_key(layout.root()));
    if let Some(mark) = &mark {
        check_own(thread, mark, fell)?;
    }
    Ok(mark.map(|mark| (mark, report)))
}

/// Returns the verdict in the records of a thread's deliberation as a mark without a judgment, and its report.
///
/// # Errors
/// If the deliberation decided nothing, and the errors of [`check_own`].
pub fn verdict_of(
    layout: &Layout,
    thread: &Thread,
    records: &[Record],
) -> Result<(Mark, Report), UserError> {
    let report = View::of(records).report;
    let mark = unmarked(&report, &project_key(layout.root())).ok_or_else(no_verdict)?;
    check_own(thread, &mark, &layout.verdicts()?)?;
    Ok((mark, report))
}

/// The error of a thread without a verdict.
pub fn no_verdict() -> UserError {
    UserError::new(
        ErrorKind::NoVerdict,
        "the deliberation decided nothing, so there is nothing to mark",
    )
    .next("`kd why` shows how it ended")
}

/// The error of a thread in which nothing was decided.
fn no_deliberation() -> UserError {
    UserError::new(
        ErrorKind::NoVerdict,
        "the thread has no deliberation, so there is nothing to mark",
    )
    .next("/deliberate in a chat, or `kd deliberate`, asks for a verdict")
}

/// Marks the newest verdict of a thread with a word of the user, as `kd mark` takes it. `live` is the report of a session
/// of the thread, which is ahead of the record on disk.
///
/// # Errors
/// There is no verdict, the word is not a mark of it, or the mark cannot be kept.
pub fn say(
    layout: &Layout,
    thread: &Thread,
    word: &str,
    live: Option<&Report>,
    env: &Env,
) -> Result<Marked, UserError> {
    let is_live = live.is_some_and(|report| report.plan.is_some());
    let live = live.and_then(|report| {
        let mark = unmarked(report, &project_key(layout.root()))?;
        Some((mark, report.clone()))
    });
    let found = match live {
        Some(found) => Some(found),
        None => verdict(layout, thread, &layout.verdicts()?)?,
    };
    let Some((mut mark, report)) = found else {
        let began = is_live || records(thread)?.is_some();
        return Err(if began {
            no_verdict()
        } else {
            no_deliberation()
        });
    };
    judge(&mut mark, word, &report).map_err(|why| unjudged(&why))?;
    keep(mark, env)
}

/// Returns the error of a word that is not a mark.
pub fn unjudged(why: &Unjudged) -> UserError {
    UserError::usage(clean_line(&why.to_string(), 4 * NAME_CHARS)).next(why.hint())
}

/// Keeps a mark, with the time.
///
/// # Errors
/// If the record of the verdict contradicts itself, or the file of marks cannot be written.
#[cfg(feature = "forum")]
pub fn keep(mut mark: Mark, env: &Env) -> Result<Marked, UserError> {
    mark.at = env.now()?;
    if let Some(why) = mark.fault() {
        return Err(
            UserError::usage("the verdict cannot be marked; nothing was changed")
                .because(why)
                .next("`kd show` shows the record of the thread"),
        );
    }
    mark.shorten();
    let mut marks = kd_sql::marks::Marks::open(&env.user_dirs())?;
    let before = marks.add(&mark)?;
    let count = marks.count()?;
    Ok(Marked {
        mark,
        before,
        count,
    })
}

/// Refuses: without databases no mark can be kept.
///
/// # Errors
/// Always.
#[cfg(not(feature = "forum"))]
pub fn keep(_mark: Mark, _env: &Env) -> Result<Marked, UserError> {
    Err(UserError::usage(
        "marks cannot be kept: this program was built without databases",
    ))
}

impl From<Unjudged> for UserError {
    fn from(why: Unjudged) -> Self {
        unjudged(&why)
    }
}
