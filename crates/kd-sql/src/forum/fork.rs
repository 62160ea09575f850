//! Compares the record with the state noted outside of the database, and handles forks: records that the owner accepted
//! although they differ.
//!
//! Input: the database and the noted state. Output: the difference, or a void cycle that records it permanently.

use super::cycles::{CycleRecord, Leader};
use super::db::{Db, args};
use super::error::ForumError;
use super::secrets::Secrets;
use super::{ForumStore, links, shortened};
use jiff::Timestamp;
use kd_core::clean::clean_line;
use kd_core::config::forum::Settings;
use kd_forum::chain::{Link, Origin};

/// Maximum characters of an owner's reason.
const REASON_MAX: usize = 200;

impl ForumStore {
    /// Compares the record with the newest seal and draw noted outside of the database.
    ///
    /// # Errors
    /// [`ForumError::Differs`] if the record was rolled back, replaced or wiped, or the noted state belongs to another
    /// forum.
    pub fn check_record(&mut self, leader: &Leader) -> Result<(), ForumError> {
        match difference(&mut self.db, &leader.forum, &leader.secrets)? {
            None => shortened::adopt(&mut self.db, leader),
            Some(why) => Err(ForumError::Differs {
                forum: leader.forum.clone(),
                why,
            }),
        }
    }

    /// Accepts, at the owner's request, a record that differs from the noted state: a void cycle records the difference
    /// and the reason. No earlier secret is used for a draw, and no number up to the noted one is reused.
    ///
    /// # Errors
    /// Nothing differs, there is no reason, or the database or the state folder fails.
    pub fn fork_record(
        &mut self,
        leader: &mut Leader,
        settings: &Settings,
        reason: &str,
        now: Timestamp,
    ) -> Result<CycleRecord, ForumError> {
        let forum = leader.forum.clone();
        let reason = clean_line(reason, REASON_MAX);
        if reason.trim().is_empty() {
            return Err(ForumError::Invalid("a fork needs a reason".into()));
        }
        let Some(why) = difference(&mut self.db, &forum, &leader.secrets)? else {
            return Err(ForumError::Invalid(
                "the record is the one noted in the state folder: there is no fork to accept"
                    .into(),
            ));
        };
        let noted = noted(&leader.secrets).map(|(chain, number)| (chain.to_owned(), number));
        while let Some(open) = self.open_cycle(&forum)? {
            self.void(leader, open.id, "the record was forked", now)?;
        }
        if links::chain_of(&mut self.db, &forum)?.is_none() {
            let (chain, _) = noted.clone().unwrap_or_default();
            links::begin(&mut self.db, leader, &chain)?;
        }
        let end = self.chain_end(leader)?;
        // After every number that was used, also by a link whose cycle is gone.
        let behind = noted
            .filter(|(chain, _)| *chain == end.chain)
            .map_or(0, |(_, number)| number);
        let cut_off = links::cut_off(&mut self.db, &end.chain)?.unwrap_or(0);
        let behind = behind.max(cut_off);
        let link = Link {
            number: end.number.max(behind.saturating_add(1)),
            void: Some(format!("fork: {why}; accepted: {reason}")),
            ..links::empty_link(&end, Origin::Forked)
        };
        self.record_empty(leader, settings, link, now)
    }
}

/// Returns the noted chain, and its highest number.
fn noted(secrets: &Secrets) -> Option<(&str, i64)> {
    let head = secrets
        .head()
        .map(|head| (head.chain.as_str(), head.number));
    let drawn = secrets.drawn();
    let drawn = drawn.map(|drawn| (drawn.chain.as_str(), drawn.number));
    match (head, drawn) {
        (Some(head), Some(drawn)) if head.0 == drawn.0 => Some((head.0, head.1.max(drawn.1))),
        (Some(one), _) | (None, Some(one)) => Some(one),
        (None, None) => None,
    }
}

/// Returns the difference between the record and the noted state; `None` if nothing is noted or nothing differs. A record
/// whose newest cycle was deleted differs from its own links, too. The
/// record may be ahead of the note, because a process may be killed between a seal and its note.
pub(super) fn difference(
    db: &mut Db,
    forum: &str,
    secrets: &Secrets,
) -> Result<Option<String>, ForumError> {
    let own = links::chain_of(db, forum)?;
    if let Some((here, ..)) = &own
        && let Some(link) = links::cut_off(db, here)?
    {
        return Ok(Some(format!(
            "the cycle of link {link} is gone, and its link is still there; its row was deleted"
        )));
    }
    let Some((chain, number)) = noted(secrets) else {
        return Ok(None);
    };
    let Some((here, ..)) = own else {
        return Ok(Some(format!(
            "the record has no links, and link {number} is noted; the database was wiped or replaced"
        )));
    };
    if here != chain {
        return Ok(Some(format!(
            "the noted state is that of another forum (chain {}, not {}); its file or the database was exchanged",
            short(chain),
            short(&here)
        )));
    }
    let Some(head) = secrets.head() else {
        return Ok(None);
    };
    let row = db.row(
        "SELECT l.seal FROM links l JOIN cycles c ON c.id = l.cycle_id WHERE l.chain = $1 AND l.number = $2 AND c.forum = $3",
        args![head.chain.as_str(), head.number, forum],
    )?;
    let last = links::last_of(db, chain)?.and_then(|last| last.link);
    let last = last.map_or(0, |link| link.number);
    Ok(match row {
        None if last < head.number => Some(format!(
            "the record ends at link {last}, and link {} is noted; an older copy of the database is in its place",
            head.number
        )),
        None => Some(format!("link {} is noted and missing", head.number)),
        Some(row) if row.text(0)? != head.seal => Some(format!(
            "link {} has another seal than the noted one; the record was changed or replaced",
            head.number
        )),
        Some(_) => None,
    })
}

/// Abbreviates a chain's id; the database may contain anything there.
fn short(chain: &str) -> String {
    clean_line(chain, 8)
}
