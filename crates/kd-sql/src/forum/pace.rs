//! Rate limits for accounts outside of visits: the table `pace`, with the actions of each account in its last minute
//! and day. All guests of a forum share one row, because anyone can take any guest's name.

use super::db::{Db, args};
use super::error::ForumError;
use jiff::Timestamp;
use kd_core::config::forum::Settings;
use kd_core::names::READER;
use kd_forum::account::{Account, Role};

const MINUTE: i64 = 60_000_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// A period and the number of actions in it.
struct Window {
    began: i64,
    count: i64,
}

impl Window {
    /// Returns the window that contains `now`: this one, or a new one. A clock that was set back starts a new one too.
    fn at(self, now: i64, length: i64) -> Self {
        if (0..length).contains(&now.saturating_sub(self.began)) {
            self
        } else {
            Self {
                began: now,
                count: 0,
            }
        }
    }
}

/// Counts another action of an account.
///
/// # Errors
/// The account did too much recently; nothing is counted then.
pub(super) fn count(
    db: &mut Db,
    account: &Account,
    settings: &Settings,
    now: Timestamp,
) -> Result<(), ForumError> {
    let forum = account.forum.as_str();
    let (key, who) = match account.role {
        Role::Guest => (READER, "guests together"),
        _ => (account.name.as_str(), account.name.as_str()),
    };
    let row = db.row(
        "SELECT minute_at, in_minute, day_at, in_day FROM pace WHERE forum = $1 AND account = $2",
        args![forum, key],
    )?;
    let at = now.as_microsecond();
    let window = |column: usize| {
        Ok::<_, ForumError>(match &row {
            Some(row) => Window {
                began: row.int(column)?,
                count: row.int(column + 1)?,
            },
            None => Window {
                began: at,
                count: 0,
            },
        })
    };
    let (minute, day) = (window(0)?.at(at, MINUTE), window(2)?.at(at, DAY));
    for (window, length, limit, setting, name) in [
        (
            &minute,
            MINUTE,
            settings.posts_per_minute,
            "posts_per_minute",
            "minute",
        ),
        (&day, DAY, settings.posts_per_day, "posts_per_day", "day"),
    ] {
        if window.count >= i64::from(limit) {
            let wait = (window.began + length - at) / 1_000_000 + 1;
            return Err(ForumError::Forbidden(format!(
                "too fast: {who} may act {limit} times a {name} (`forum.{setting}`); try again in {wait} s"
            )));
        }
    }
    db.run(
        "INSERT INTO pace (forum, account, minute_at, in_minute, day_at, in_day) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (forum, account) DO UPDATE SET minute_at = excluded.minute_at, in_minute = excluded.in_minute, \
         day_at = excluded.day_at, in_day = excluded.in_day",
        args![forum, key, minute.began, minute.count + 1, day.began, day.count + 1],
    )?;
    Ok(())
}
