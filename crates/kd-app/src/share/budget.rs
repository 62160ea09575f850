//! The budget of a day for `eval.share`: one for the user, whatever the project and however many processes share.
//!
//! Input: the maximum cost of a question before it is asked, and its real cost afterwards. Output: whether it may be
//! asked. The maximum cost is booked under a lock and counts in full until the question is settled; if its process
//! dies, it counts forever.

use crate::env::Env;
use crate::error::UserError;
use kd_core::spending::pico;
use kd_store::lock::{Lock, WAIT, lock_path};
use kd_store::private;
use kd_store::user_dirs::make_private;
use std::path::{Path, PathBuf};

/// The file in the user's state folder.
const NAME: &str = "eval-share-spent";
/// Maximum bytes of it.
const BYTES_MAX: u64 = 256;
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// Money booked before it is spent.
#[derive(Debug)]
pub struct Reserved {
    file: PathBuf,
    day: i64,
    pico_usd: u64,
}

/// The content of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Book {
    /// Days since 1970-01-01 (UTC).
    day: i64,
    /// Spent and reserved, in pico-dollars.
    booked: u64,
    /// The day of the last notice that nothing is asked.
    told: i64,
}

impl Book {
    /// Reads it as it was written; `None` if nothing was ever booked.
    fn read(file: &Path) -> Result<Option<Self>, UserError> {
        let Some(bytes) = private::read(file, BYTES_MAX)? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut numbers = text.split_whitespace();
        let mut next = || numbers.next().unwrap_or_default();
        let found = (next().parse(), next().parse(), next().parse());
        let (Ok(day), Ok(booked), Ok(told)) = found else {
            let what = format!("{} does not tell what was spent today", file.display());
            return Err(
                UserError::usage(what).next("remove it tomorrow: until then nothing is asked")
            );
        };
        Ok(Some(Self { day, booked, told }))
    }

    /// Reads it as of a day; empty if nothing was booked on that day. A day after that was never valid: the clock was wrong.
    /// Its bookings count for today, so that setting the clock back frees no money, and not for longer.
    fn of_day(file: &Path, today: i64) -> Result<Self, UserError> {
        let book = Self::read(file)?.unwrap_or_default();
        let book = Self {
            day: today,
            booked: if book.day < today { 0 } else { book.booked },
            told: book.told,
        };
        Ok(book)
    }

    fn write(self, file: &Path) -> Result<(), UserError> {
        let text = format!("{} {} {}\n", self.day, self.booked, self.told);
        Ok(private::replace_synced(file, text.as_bytes())?)
    }
}

fn file(env: &Env) -> Result<PathBuf, UserError> {
    let dirs = env.user_dirs();
    let folder = dirs.state()?;
    make_private(folder)?;
    Ok(folder.join(NAME))
}

fn today(env: &Env) -> Result<i64, UserError> {
    Ok(env.now()?.as_second().div_euclid(DAY_SECONDS))
}

/// Books as much as is left of `budget` US dollars a day, from `least` to `most`. `None` if less than `least`
/// is left, or nothing.
///
/// # Errors
/// If the user's state folder cannot be read or written.
pub(super) fn reserve(
    env: &Env,
    budget: f64,
    (least, most): (f64, f64),
) -> Result<Option<Reserved>, UserError> {
    book(
        file(env)?,
        today(env)?,
        pico(budget),
        (pico(least), pico(most)),
    )
}

fn book(
    file: PathBuf,
    today: i64,
    budget: u64,
    (least, most): (u64, u64),
) -> Result<Option<Reserved>, UserError> {
    let _lock = Lock::take(&lock_path(&file), WAIT)?;
    let mut book = Book::of_day(&file, today)?;
    let left = budget.saturating_sub(book.booked);
    if left == 0 || left < least {
        // A day in the future must not stay in the file.
        book.write(&file)?;
        return Ok(None);
    }
    let pico_usd = most.min(left);
    book.booked = book.booked.saturating_add(pico_usd);
    book.write(&file)?;
    Ok(Some(Reserved {
        file,
        day: book.day,
        pico_usd,
    }))
}

impl Reserved {
    /// Returns the amount in US dollars.
    pub fn usd(&self) -> f64 {
        self.pico_usd as f64 / 1e12
    }

    /// Returns the unspent amount to the budget.
    ///
    /// # Errors
    /// If the user's state folder cannot be read or written: then all of it counts as spent.
    pub fn settle(self, spent: f64) -> Result<(), UserError> {
        let _lock = Lock::take(&lock_path(&self.file), WAIT)?;
        // Bookings of another day no longer count.
        if let Some(mut book) = Book::read(&self.file)?.filter(|book| book.day == self.day) {
            let less = book.booked.saturating_sub(self.pico_usd);
            book.booked = less.saturating_add(pico(spent));
            book.write(&self.file)?;
        }
        Ok(())
    }
}

/// Returns whether to tell the user that nothing is asked today. True only the first time.
///
/// # Errors
/// If the user's state folder cannot be read or written.
pub fn is_news(env: &Env) -> Result<bool, UserError> {
    let (file, today) = (file(env)?, today(env)?);
    let _lock = Lock::take(&lock_path(&file), WAIT)?;
    let mut book = Book::of_day(&file, today)?;
    let is_news = book.told != today;
    if is_news {
        book.told = today;
        book.write(&file)?;
    }
    Ok(is_news)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    #[test]
    fn what_is_reserved_cannot_be_spent_twice_and_counts_if_it_is_never_settled() {
        let folder = folder();
        let take =
            |today, range| book(folder.path().join(NAME), today, 100, range).expect("booked");
        let first = take(7, (30, 60)).expect("all is left");
        assert_eq!(first.pico_usd, 60);
        let second = take(7, (30, 60)).expect("some is left");
        assert_eq!(second.pico_usd, 40);
        assert!(take(7, (1, 1)).is_none() && take(7, (0, 0)).is_none());
        // The first process died; the second spent little.
        drop(first);
        second.settle(10e-12).expect("settled");
        assert!(take(7, (31, 31)).is_none());
        assert_eq!(take(7, (30, 90)).expect("thirty are left").pico_usd, 30);
        // The next day everything is left, and what is settled late changes nothing.
        let late = take(8, (1, 50)).expect("a new day");
        assert!(take(9, (100, 100)).is_some());
        late.settle(0.0).expect("settled");
        assert!(take(9, (1, 1)).is_none());
        // If the clock is set back, nothing is spent on that day, and later days are not blocked.
        assert!(take(8, (1, 1)).is_none());
        assert!(take(9, (100, 100)).is_some());
        assert!(take(4000, (100, 100)).is_some(), "a clock far ahead");
        assert!(take(10, (1, 1)).is_none());
        let after = take(11, (100, 100)).expect("a new day");
        take(4000, (100, 100))
            .expect("ahead again")
            .settle(0.0)
            .expect("settled");
        // Settled while the file has a day in the future: that one stays as it is.
        after.settle(0.0).expect("settled");
        assert_eq!(take(4000, (100, 100)).expect("all is left").pico_usd, 100);
    }

    #[test]
    fn processes_at_once_share_one_budget() {
        let folder = folder();
        let booked: usize = std::thread::scope(|scope| {
            let one = || {
                (0..5)
                    .filter(|_| {
                        let file = folder.path().join(NAME);
                        book(file, 7, 1000, (100, 100)).expect("booked").is_some()
                    })
                    .count()
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter()
                .map(|one| one.join().expect("it ends"))
                .sum()
        });
        assert_eq!(booked, 10);
    }

    #[test]
    fn nothing_is_asked_if_the_book_cannot_be_read() {
        let folder = folder();
        let file = folder.path().join(NAME);
        private::replace_synced(&file, b"who knows\n").expect("written");
        assert!(book(file, 7, 100, (1, 1)).is_err());
    }
}
