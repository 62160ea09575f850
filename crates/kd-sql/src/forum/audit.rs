//! The audit: draws every cycle again from its record, recomputes every commitment, seed and seal, and compares the
//! runs with the draw.
//!
//! Input: the database, and the newest seal noted in the user's state folder. Output: faults, each as a sentence.

use super::cycles::{self, CycleRecord};
use super::db::{Db, args, first_int};
use super::erase::{self, ErasedOn};
use super::error::ForumError;
use super::secrets::Secrets;
use super::shortened::{self, Look, Noted};
use super::{ForumStore, fork, links, runs};
use kd_core::hex::unhex;
use kd_forum::cards::Seed;
use kd_forum::chain::{self, Link, Origin};
use kd_forum::cycle::{Plan, draw};
use kd_forum::words::Run;
use serde::Serialize;
use std::collections::BTreeMap;

/// Cycles per page.
const PAGE: i64 = 200;

/// A checked cycle.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// The cycle.
    pub cycle: CycleRecord,
    /// Its runs.
    pub runs: Vec<Run>,
    /// Its faults.
    pub faults: Vec<String>,
    /// Whether its seal cannot be computed again, because the owner erased a text that it covers. Posts do not count
    /// as such texts, because their digests stay.
    pub is_shortened: bool,
}

/// Whether the record contains the newest seal noted outside of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// It is.
    Found,
    /// It does not: the record was replaced, or truncated.
    Differs,
    /// None was noted on this machine.
    None,
}

/// The result for the whole record.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Audited {
    /// The number of cycles.
    pub cycles: usize,
    /// Cycles drawn from a committed secret.
    pub committed: usize,
    /// Cycles drawn from a seed that a person chose.
    pub seeded: usize,
    /// Cycles recorded by an older version.
    pub old: usize,
    /// Imported cycles: they are not checked and do not count.
    pub imported: usize,
    /// Void cycles.
    pub void: usize,
    /// Records that the owner accepted although they differed from the noted state: cycle number and reason.
    pub forks: Vec<(i64, String)>,
    /// Cycle number and fault.
    pub faults: Vec<(i64, String)>,
    /// The erased posts and other texts: who erased how many on which day.
    pub erased: Vec<ErasedOn>,
    /// Cycles whose seals cannot be computed again, because the owner erased a reason, a claim or a title in them.
    pub shortened: Vec<i64>,
    /// The result for the seal outside of the database.
    pub anchor: Option<Anchor>,
    /// The commitment to the next cycle's secret.
    pub next: Option<String>,
}

impl ForumStore {
    /// Checks the whole record of a forum. Calls `each` for every cycle, the oldest first.
    ///
    /// # Errors
    /// If the database fails or is damaged, or the file of secrets cannot be read. A fault in the record is part of the
    /// result, not an error.
    pub fn audit(
        &mut self,
        forum: &str,
        each: &mut dyn FnMut(&Checked),
    ) -> Result<Audited, ForumError> {
        let mut all = Audited::default();
        let mut last: BTreeMap<String, CycleRecord> = BTreeMap::new();
        let mut number = 0;
        let head = Secrets::open(&self.place, forum, self.state.as_deref())?;
        let noted = self.noted(forum, &head)?;
        loop {
            let page = cycles::page(&mut self.db, forum, number, PAGE)?;
            let Some(end) = page.last() else { break };
            let before = number;
            number = end.number;
            for (cycle, expected) in page.into_iter().zip(before + 1..) {
                let chain = cycle.link.as_ref().map(|link| link.chain.clone());
                let earlier = chain.as_ref().and_then(|chain| last.get(chain));
                let mut checked = check(&mut self.db, cycle, earlier, noted.as_ref())?;
                // Once a forum has a chain, every cycle belongs to it.
                if checked.cycle.link.is_none() && !last.is_empty() {
                    checked
                        .faults
                        .push("it has no link, and a cycle before it has one".to_owned());
                }
                if checked.cycle.number != expected && all.faults.is_empty() {
                    checked
                        .faults
                        .push(format!("cycle {expected} is missing before it"));
                }
                all.count(&checked);
                each(&checked);
                last.extend(chain.map(|chain| (chain, checked.cycle)));
            }
        }
        let row = self.db.row(
            "SELECT COUNT(*) FROM cycles WHERE forum = $1 AND number < 1",
            args![forum],
        )?;
        all.imported = first_int(row)?.unwrap_or(0) as usize;
        let differs = fork::difference(&mut self.db, forum, &head)?;
        all.anchor = Some(match (&differs, head.head()) {
            (Some(_), _) => Anchor::Differs,
            (None, Some(_)) => Anchor::Found,
            (None, None) => Anchor::None,
        });
        if let Some(why) = differs {
            let why = match head.head() {
                Some(_) => {
                    format!("the record is not the one noted outside of the database: {why}")
                }
                None => why,
            };
            all.faults.push((number, why));
        }
        all.erased = erase::by_day(&mut self.db, forum)?;
        all.next = self.next_commitment(forum)?.map(|(_, next)| next);
        Ok(all)
    }

    /// Checks one cycle by its number in the forum.
    ///
    /// # Errors
    /// [`ForumError::Missing`] if there is no such cycle; also if the database fails or is damaged.
    pub fn audit_cycle(&mut self, forum: &str, number: i64) -> Result<Checked, ForumError> {
        let cycle = self.cycle(forum, number)?;
        let earlier = match &cycle.link {
            Some(link) => links::before(&mut self.db, link)?,
            None => None,
        };
        let head = Secrets::open(&self.place, forum, self.state.as_deref())?;
        let noted = self.noted(forum, &head)?;
        check(&mut self.db, cycle, earlier.as_ref(), noted.as_ref())
    }

    /// Returns the noted erasures; `None` if no seal of the forum is noted on this machine.
    fn noted(&self, forum: &str, head: &Secrets) -> Result<Option<Noted>, ForumError> {
        let open = |_| Noted::open(&self.place, forum, self.state.as_deref());
        head.head().map(open).transpose()
    }
}

impl Audited {
    fn count(&mut self, checked: &Checked) {
        self.cycles += 1;
        let cycle = &checked.cycle;
        self.void += usize::from(cycle.void().is_some());
        match cycle.link.as_ref().map(|link| link.origin) {
            None => self.old += 1,
            Some(Origin::Seeded) => self.seeded += 1,
            Some(Origin::Committed) => self.committed += 1,
            Some(Origin::Lost | Origin::Forked) => {}
        }
        if checked.is_shortened {
            self.shortened.push(cycle.number);
        }
        if cycle.is_fork() {
            let why = cycle.void().unwrap_or_default();
            self.forks.push((cycle.number, why.to_owned()));
        }
        let faults = checked.faults.iter();
        self.faults
            .extend(faults.map(|fault| (cycle.number, fault.clone())));
    }
}

fn check(
    db: &mut Db,
    cycle: CycleRecord,
    earlier: Option<&CycleRecord>,
    noted: Option<&Noted>,
) -> Result<Checked, ForumError> {
    let mut faults = Vec::new();
    let runs = runs::of_cycle(db, cycle.id)?;
    let mut is_shortened = false;
    if let Some(link) = &cycle.link {
        check_link(db, &cycle, link, earlier, &mut faults)?;
        match shortened::look(db, &cycle, &runs, noted)? {
            None => {}
            Some(Look::Erased) => is_shortened = true,
            Some(Look::Changed) => faults.push("its record does not fit its seal".to_owned()),
            Some(Look::Unnoted) => faults.push(
                "its record does not fit its seal: the erasure that it states was not made on this machine, or the \
                 record was changed besides"
                    .to_owned(),
            ),
        }
    }
    if cycle.number > 0 && cycle.link.is_none() && cycle.cards.seed == Seed::Hidden {
        faults.push("its link is gone".to_owned());
    }
    if cycle.link.is_some() {
        check_texts(db, &cycle, &runs, &mut faults)?;
    }
    check_plan(&cycle, earlier, &mut faults);
    check_turns(&cycle, &runs, &mut faults);
    for run in &runs {
        check_deeds(db, run, &mut faults)?;
    }
    Ok(Checked {
        cycle,
        runs,
        faults,
        is_shortened,
    })
}

/// Checks the commitment and the posts.
fn check_link(
    db: &mut Db,
    cycle: &CycleRecord,
    link: &Link,
    earlier: Option<&CycleRecord>,
    faults: &mut Vec<String>,
) -> Result<(), ForumError> {
    let mut fault = |is: bool, what: &str| {
        if is {
            faults.push(what.to_owned());
        }
    };
    let before = earlier.and_then(|earlier| earlier.link.as_ref());
    match before {
        None => {
            fault(
                link.number != 1 && link.origin != Origin::Forked,
                "the link before it is missing",
            );
            if let Some((first, after)) = links::beginning(db, &link.chain)? {
                fault(
                    link.commitment.as_ref() != Some(&first)
                        && !matches!(link.origin, Origin::Seeded | Origin::Forked),
                    "its commitment is not the one recorded before",
                );
                fault(
                    link.after_post != after,
                    "its posts do not begin where the chain begins",
                );
            }
        }
        Some(before) => {
            let follows = match link.origin {
                // The numbers of deleted links stay used.
                Origin::Forked => link.number > before.number,
                _ => link.number == before.number + 1,
            };
            fault(!follows, "the link before it is missing");
            fault(
                before.seal.as_ref() != Some(&link.previous),
                "it does not follow the seal of the cycle before",
            );
            fault(
                link.commitment
                    .as_ref()
                    .is_some_and(|commitment| commitment != before.pending()),
                "its commitment is not the one recorded before",
            );
            fault(
                link.after_post != before.through_post,
                "its posts do not begin where those of the cycle before end",
            );
        }
    }
    fault(
        link.origin == Origin::Committed && link.commitment.is_none(),
        "it has no commitment",
    );
    let secret = link.secret.as_deref().map(unhex);
    match (secret, &link.commitment) {
        (Some(Some(secret)), Some(commitment)) => fault(
            chain::commitment(&link.chain, link.number, &secret) != *commitment,
            "its secret does not fulfil its commitment",
        ),
        (Some(_), _) => fault(true, "its secret cannot be read"),
        (None, _) => fault(
            cycle.ended_at.is_some() && link.void.is_none() && link.origin == Origin::Committed,
            "it ended and its secret was not revealed",
        ),
    }
    let posts = links::posts_digest(db, &cycle.forum, link.after_post, link.through_post)?;
    fault(
        posts != link.posts,
        "the posts that its seed mixes in were changed",
    );
    Ok(())
}

/// The seal covers the parsed values, so they must be all that is stored: no unknown field, no other spelling, no
/// decimals beyond those that are sealed.
fn check_texts(
    db: &mut Db,
    cycle: &CycleRecord,
    runs: &[Run],
    faults: &mut Vec<String>,
) -> Result<(), ForumError> {
    let row = db.row(
        "SELECT cards, plan FROM cycles WHERE id = $1",
        args![cycle.id],
    )?;
    let written = match &row {
        Some(row) => (Some(row.raw(0)?), Some(row.raw(1)?)),
        None => (None, None),
    };
    let cards = serde_json::to_string(&cycle.cards.clone().rounded()).ok();
    let plan = serde_json::to_string(&cycle.plan).ok();
    if written != (cards, plan) {
        faults.push("its draw is not written as kd writes it".to_owned());
    }
    let rows = db.rows(
        "SELECT deeds FROM runs WHERE cycle_id = $1 ORDER BY id",
        args![cycle.id],
    )?;
    let written: Vec<String> = rows
        .iter()
        .map(|row| row.raw(0))
        .collect::<Result<_, _>>()?;
    let deeds = runs.iter().map(|run| serde_json::to_string(&run.deeds));
    if !deeds.map(Result::ok).eq(written.into_iter().map(Some)) {
        faults.push("its deeds are not written as kd writes them".to_owned());
    }
    Ok(())
}

/// Repeats the draw.
fn check_plan(cycle: &CycleRecord, earlier: Option<&CycleRecord>, faults: &mut Vec<String>) {
    let Some(cards) = cycle.revealed() else {
        // The draw is hidden until the end of the cycle; if the cycle is void, forever.
        return;
    };
    if draw(&cards) != cycle.plan {
        faults.push("the recorded order is not what its seed and candidates give".to_owned());
    }
    if cycle.link.is_some() {
        let earlier = earlier.filter(|earlier| earlier.void().is_none());
        let block = cards
            .clone()
            .after(earlier.map(|earlier| (&earlier.cards, &earlier.plan)))
            .block;
        if block != cards.block {
            faults.push("it does not continue the block of the cycle before".to_owned());
        }
        let seeded = cycle.foreseeable().is_some();
        if seeded != matches!(cycle.cards.seed, Seed::Number(_)) {
            faults.push("its seed is not of the kind that it says".to_owned());
        }
    }
}

/// Compares the runs with the draw.
fn check_turns(cycle: &CycleRecord, runs: &[Run], faults: &mut Vec<String>) {
    let ran: Vec<&str> = runs.iter().map(|run| run.agent.as_str()).collect();
    let planned: Vec<&str> = cycle.plan.turns.iter().map(|t| t.agent.as_str()).collect();
    // The plan of a running cycle is not recorded yet, and that of a void one may never be.
    let unknown = cycle.revealed().is_none() && cycle.plan == Plan::default();
    let candidates = &cycle.cards.candidates;
    let stranger = ran
        .iter()
        .find(|agent| !candidates.iter().any(|c| c.name == **agent));
    if let (true, Some(agent)) = (unknown, stranger) {
        faults.push(format!("{agent} ran and could not be drawn"));
    }
    if !unknown && !planned.starts_with(&ran) {
        faults.push(format!(
            "planned were {}, and {} ran",
            planned.join(", "),
            ran.join(", ")
        ));
    }
    if runs.iter().any(|run| run.forum != cycle.forum) {
        faults.push("a turn of it is recorded in another forum".to_owned());
    }
    let complete = cycle.ended_at.is_some() && cycle.void().is_none();
    if complete && ran.len() < planned.len() {
        faults.push("the cycle ended before every agent had a turn".to_owned());
    }
}

/// Checks that each post of a run is among its deeds, and each deed's post exists.
fn check_deeds(db: &mut Db, run: &Run, faults: &mut Vec<String>) -> Result<(), ForumError> {
    let mut wrote: Vec<i64> = Vec::new();
    // The opening of a motion's thread belongs to the motion.
    let mut proposed: Vec<i64> = Vec::new();
    for deed in &run.deeds {
        let Some(post) = deed.post_id else {
            proposed.extend(deed.thread_id.filter(|_| deed.tool == "propose"));
            continue;
        };
        let row = db.row(
            "SELECT thread_id, author, run_id FROM posts WHERE id = $1",
            args![post],
        )?;
        let Some(row) = row else {
            faults.push(format!("post {post} by {} is gone", run.agent));
            continue;
        };
        if Some(row.int(0)?) != deed.thread_id || row.line(1)? != run.agent {
            faults.push(format!("post {post} is not where {} wrote it", run.agent));
        }
        // Other deeds change a post of an earlier turn.
        if matches!(deed.tool.as_str(), "create_thread" | "reply_to_thread") {
            wrote.push(post);
        }
    }
    wrote.sort_unstable();
    wrote.dedup();
    let rows = db.rows(
        "SELECT id, thread_id FROM posts WHERE run_id = $1 ORDER BY id",
        args![run.id],
    )?;
    let posts = rows.iter().map(|row| Ok((row.int(0)?, row.int(1)?)));
    let posts = posts.collect::<Result<Vec<_>, ForumError>>()?;
    if let Some(thread) = proposed
        .iter()
        .find(|proposed| !posts.iter().any(|(_, thread)| thread == *proposed))
    {
        faults.push(format!(
            "the post that opens thread {thread} is not of the turn of {}",
            run.agent
        ));
    }
    // An agent may also reply in the thread of a motion that it proposed.
    let of_motion =
        |(post, thread): &&(i64, i64)| !proposed.contains(thread) || wrote.contains(post);
    let there = posts.iter().filter(of_motion).map(|(post, _)| *post);
    let there: Vec<i64> = there.collect();
    if there != wrote {
        faults.push(format!(
            "posts {there:?} are of the turn of {}, whose record names {wrote:?}",
            run.agent
        ));
    }
    Ok(())
}
