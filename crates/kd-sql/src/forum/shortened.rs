//! Cycles whose seals cannot be computed again, because the owner erased a text that they cover. The seals of the
//! remaining posts are recorded in the user's state folder, so a change that pretends to be an erasure is detected.
//!
//! Input: the database and the notes. Output: whether an erasure explains that a cycle's seal differs.

use super::cycles::{self, CycleRecord, Leader};
use super::db::{Db, args, first_text};
use super::error::ForumError;
use super::secrets::{self, Head};
use super::{Place, links, runs};
use kd_core::formats::FORUM_SECRETS;
use kd_forum::words::Run;
use kd_store::error::Error;
use kd_store::forget::TOMBSTONE;
use kd_store::private;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The seals of a hundred thousand cycles.
const BYTES_MAX: u64 = 32 << 20;

/// Why the seal of a cycle is not the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The record was changed.
    Changed,
    /// An erasure is recorded, but not noted outside of the database.
    Unnoted,
    /// The owner erased a text that it covers.
    Erased,
}

/// The noted seals of a forum's shortened cycles.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// `None` without a state folder: nothing is noted then.
    path: Option<PathBuf>,
    kept: Kept,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    #[serde(default)]
    version: u32,
    seals: Vec<Head>,
}

impl Noted {
    /// Opens a forum's file. A malformed file counts as empty.
    pub(super) fn open(
        place: &Place,
        forum: &str,
        state: Option<&Path>,
    ) -> Result<Self, ForumError> {
        let Some(state) = state else {
            return Ok(Self::default());
        };
        Self::at(secrets::file(state, place, forum).with_extension("erased.json"))
    }

    /// Opens the file of a leader's forum.
    fn of(leader: &Leader) -> Result<Self, ForumError> {
        match leader.secrets.path() {
            Some(path) => Self::at(path.with_extension("erased.json")),
            None => Ok(Self::default()),
        }
    }

    fn at(path: PathBuf) -> Result<Self, ForumError> {
        let kept = secrets::stored(&path, BYTES_MAX)?;
        Ok(Self {
            path: Some(path),
            kept,
        })
    }

    fn has(&self, head: &Head) -> bool {
        self.kept.seals.contains(head)
    }

    /// Adds seals. Earlier ones of the same cycles stay, because a process may be killed before it records the erasure.
    fn add(&mut self, heads: impl Iterator<Item = Head>) -> Result<(), ForumError> {
        let before = self.kept.seals.len();
        for head in heads {
            if !self.has(&head) {
                self.kept.seals.push(head);
            }
        }
        let Some(path) = self
            .path
            .as_ref()
            .filter(|_| self.kept.seals.len() > before)
        else {
            return Ok(());
        };
        self.kept.version = FORUM_SECRETS.version;
        let bytes = serde_json::to_vec(&self.kept).map_err(|source| Error::Json {
            path: path.clone(),
            source,
        });
        let written = bytes.and_then(|bytes| private::replace_synced(path, &bytes));
        written.map_err(|e| secrets::failed(path, &e))
    }
}

/// The cycles that an erasure changes.
pub(super) struct Covered<'a> {
    place: &'a Place,
    state: Option<&'a Path>,
    /// By id: whether the record fitted before the change, so that the erasure does not hide an earlier one.
    cycles: BTreeMap<i64, bool>,
}

impl<'a> Covered<'a> {
    pub(super) fn new(place: &'a Place, state: Option<&'a Path>) -> Self {
        Self {
            place,
            state,
            cycles: BTreeMap::new(),
        }
    }

    /// Adds the cycles whose seals cover a text; before the text is erased.
    pub(super) fn add(&mut self, db: &mut Db, what: &str, item: i64) -> Result<(), ForumError> {
        for id in covering(db, what, item)? {
            if self.cycles.contains_key(&id) {
                continue;
            }
            let cycle = cycles::find(db, id)?;
            let is_fit = match head(db, &cycle)? {
                Some(head) if is_recorded(&cycle, &head) => true,
                Some(head) => Noted::open(self.place, &cycle.forum, self.state)?.has(&head),
                None => false,
            };
            self.cycles.insert(id, is_fit);
        }
        Ok(())
    }

    /// Returns the numbers of the sealed cycles.
    pub(super) fn numbers(&self, db: &mut Db) -> Result<Vec<i64>, ForumError> {
        let mut numbers = Vec::new();
        for id in self.cycles.keys() {
            let cycle = cycles::find(db, *id)?;
            if head(db, &cycle)?.is_some() {
                numbers.push(cycle.number);
            }
        }
        Ok(numbers)
    }

    /// Records the seals of the remaining posts, before the erasure is committed.
    pub(super) fn note(&self, db: &mut Db) -> Result<(), ForumError> {
        let mut heads: BTreeMap<String, Vec<Head>> = BTreeMap::new();
        for id in self
            .cycles
            .iter()
            .filter(|(_, fit)| **fit)
            .map(|(id, _)| id)
        {
            let cycle = cycles::find(db, *id)?;
            let head = head(db, &cycle)?.filter(|head| !is_recorded(&cycle, head));
            heads.entry(cycle.forum).or_default().extend(head);
        }
        for (forum, heads) in heads {
            Noted::open(self.place, &forum, self.state)?.add(heads.into_iter())?;
        }
        Ok(())
    }
}

/// Returns the cycles whose seals cover a text.
fn covering(db: &mut Db, what: &str, item: i64) -> Result<Vec<i64>, ForumError> {
    let (sql, values) = match what {
        "cycle" => return Ok(vec![item]),
        "run" => (
            "SELECT cycle_id, deeds FROM runs WHERE id = $1 AND cycle_id IS NOT NULL",
            args![item],
        ),
        "motion" => (
            "SELECT cycle_id, deeds FROM runs WHERE deeds LIKE $1 AND cycle_id IS NOT NULL",
            args![format!("%\"motion_id\":{item}%").as_str()],
        ),
        _ => return Ok(Vec::new()),
    };
    let rows = db.rows(sql, values)?;
    rows.iter().map(|row| row.int(0)).collect()
}

/// Computes the seal of a cycle that is sealed.
fn head(db: &mut Db, cycle: &CycleRecord) -> Result<Option<Head>, ForumError> {
    let Some(link) = &cycle.link else {
        return Ok(None);
    };
    if cycle.ended_at.is_none() && link.seal.is_none() {
        return Ok(None);
    }
    let seal = links::seal_of(db, cycle)?;
    Ok(seal.map(|seal| Head {
        chain: link.chain.clone(),
        number: link.number,
        seal,
    }))
}

fn is_recorded(cycle: &CycleRecord, head: &Head) -> bool {
    let link = cycle.link.as_ref();
    link.is_some_and(|link| link.seal.as_ref() == Some(&head.seal))
}

/// Compares a cycle with its seal; `None` if it fits. If no seal of the forum is recorded on this machine, an erasure
/// in the database is accepted.
pub(super) fn look(
    db: &mut Db,
    cycle: &CycleRecord,
    runs: &[Run],
    noted: Option<&Noted>,
) -> Result<Option<Look>, ForumError> {
    let Some(head) = head(db, cycle)?.filter(|head| !is_recorded(cycle, head)) else {
        return Ok(None);
    };
    Ok(Some(match noted {
        _ if !is_stated(db, cycle, runs)? => Look::Changed,
        Some(noted) if !noted.has(&head) => Look::Unnoted,
        _ => Look::Erased,
    }))
}

/// Returns whether the database states an erasure of a text that the seal of a cycle covers, and that text is gone.
fn is_stated(db: &mut Db, cycle: &CycleRecord, runs: &[Run]) -> Result<bool, ForumError> {
    let mut items = Vec::new();
    if cycle.void() == Some(TOMBSTONE) {
        items.push(("cycle", cycle.id));
    }
    for run in runs {
        if [&run.reason, &run.claim]
            .iter()
            .any(|text| text.as_deref() == Some(TOMBSTONE))
        {
            items.push(("run", run.id));
        }
        for motion in run.deeds.iter().filter_map(|deed| deed.motion_id) {
            let row = db.row("SELECT title FROM motions WHERE id = $1", args![motion])?;
            if first_text(row)?.as_deref() == Some(TOMBSTONE) {
                items.push(("motion", motion));
            }
        }
    }
    for (what, item) in items {
        let row = db.row(
            "SELECT 1 FROM erasures WHERE forum = $1 AND what = $2 AND item = $3 LIMIT 1",
            args![cycle.forum.as_str(), what, item],
        )?;
        if row.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Records the erasures from before the first seal on this machine, for example if the record was moved here.
pub(super) fn adopt(db: &mut Db, leader: &Leader) -> Result<(), ForumError> {
    if leader.secrets.head().is_some() {
        return Ok(());
    }
    let rows = db.rows(
        "SELECT what, item FROM erasures WHERE forum = $1 ORDER BY id",
        args![leader.forum.as_str()],
    )?;
    let mut heads = Vec::new();
    for row in rows {
        for id in covering(db, &row.line(0)?, row.int(1)?)? {
            let cycle = cycles::find(db, id)?;
            let runs = runs::of_cycle(db, id)?;
            if look(db, &cycle, &runs, None)? == Some(Look::Erased) {
                heads.extend(head(db, &cycle)?);
            }
        }
    }
    Noted::of(leader)?.add(heads.into_iter())
}
