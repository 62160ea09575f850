//! Prepares the record of a forum for the fairness verdict.
//!
//! Input: cycles, runs and posts. Output: the table of [`kd_forum::fairness`].

use super::cycles::{self, CycleRecord};
use super::db::{Db, args};
use super::error::ForumError;
use super::{ForumStore, runs};
use jiff::Timestamp;
use kd_forum::fairness::{Judge, Look, Sample, Table, Turn};
use kd_forum::words::Run;
use std::collections::HashMap;

/// Cycles or posts read at a time.
const PAGE: i64 = 500;

/// Numbers of posts, words and threads.
#[derive(Clone, Copy, Default)]
struct Wrote {
    posts: u64,
    words: u64,
    threads: u64,
}

impl Wrote {
    fn add(&mut self, words: u64, opens: bool) {
        self.posts += 1;
        self.words += words;
        self.threads += u64::from(opens);
    }
}

/// The authors and word counts of posts since the first judged cycle, by visit.
#[derive(Default)]
struct Writing {
    by_run: HashMap<i64, Wrote>,
    /// Posts written outside of turns, oldest first: time, author, number of words, whether the post opens a thread.
    outside: Vec<(Timestamp, String, u64, bool)>,
}

impl ForumStore {
    /// Measures the fairness of the `last` newest cycles of a forum; of all cycles if it is `None`.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn fairness(
        &mut self,
        forum: &str,
        last: Option<i64>,
        look: Look,
    ) -> Result<Table, ForumError> {
        let newest = cycles::last_number(&mut self.db, forum)?;
        let mut after = last.map_or(0, |last| newest.saturating_sub(last.max(0)).max(0));
        let mut judge = Judge::default();
        let first = cycles::page(&mut self.db, forum, after, 1)?;
        let Some(first) = first.first() else {
            return Ok(judge.table(look));
        };
        let writing = writing(&mut self.db, forum, first.started_at)?;
        let mut outside = writing.outside.iter().peekable();
        let mut page = cycles::page(&mut self.db, forum, after, PAGE)?;
        while let Some(end) = page.last() {
            after = end.number;
            let next = cycles::page(&mut self.db, forum, after, PAGE)?;
            for (at, cycle) in page.iter().enumerate() {
                let until = page.get(at + 1).or(next.first()).map(|c| c.started_at);
                let mut written: HashMap<&str, Wrote> = HashMap::new();
                while let Some((_, who, words, opens)) =
                    outside.next_if(|(at, ..)| until.is_none_or(|until| *at < until))
                {
                    written.entry(who).or_default().add(*words, *opens);
                }
                let runs = runs::of_cycle(&mut self.db, cycle.id)?;
                judge.add(&sample(cycle, &runs, &writing.by_run, &written));
            }
            page = next;
        }
        let since = match last {
            Some(_) => first.started_at,
            None => Timestamp::MIN,
        };
        for (from, to) in self.answers(forum, since)? {
            judge.answered(&from, &to);
        }
        Ok(judge.table(look))
    }
}

fn sample<'a>(
    cycle: &'a CycleRecord,
    runs: &'a [Run],
    by_run: &HashMap<i64, Wrote>,
    outside: &HashMap<&'a str, Wrote>,
) -> Sample<'a> {
    let turn = |agent: &'a str, wrote: Wrote| Turn {
        agent,
        posts: wrote.posts,
        words: wrote.words,
        threads: wrote.threads,
        ..Turn::default()
    };
    let turns = runs.iter().map(|run| Turn {
        tokens: run.tokens.max(0) as u64,
        at_secs: Some(run.started_at.as_microsecond() as f64 / 1e6),
        ..turn(&run.agent, by_run.get(&run.id).copied().unwrap_or_default())
    });
    Sample {
        turns: turns.collect(),
        outside: outside
            .iter()
            .map(|(who, wrote)| turn(who, *wrote))
            .collect(),
        // An open cycle still has turns to come.
        void: cycle.void().is_some() || cycle.ended_at.is_none(),
        foreseeable: cycle.foreseeable().is_some(),
        ..Sample::of(&cycle.cards, &cycle.plan)
    }
}

fn writing(db: &mut Db, forum: &str, since: Timestamp) -> Result<Writing, ForumError> {
    let mut all = Writing::default();
    let mut after = 0;
    loop {
        let rows = db.rows(
            "SELECT p.id, p.author, p.body, p.created_at, p.run_id, \
             p.id = (SELECT MIN(o.id) FROM posts o WHERE o.thread_id = p.thread_id) FROM posts p JOIN threads t ON t.id = p.thread_id \
             WHERE t.forum = $1 AND p.id > $2 AND p.created_at >= $3 ORDER BY p.id LIMIT $4",
            args![forum, after, since, PAGE],
        )?;
        let Some(last) = rows.last() else { break };
        after = last.int(0)?;
        for row in &rows {
            let words = row.text(2)?.split_whitespace().count() as u64;
            let opens = row.int(5)? != 0;
            match row.maybe_int(4)? {
                Some(run) => all.by_run.entry(run).or_default().add(words, opens),
                None => all.outside.push((row.time(3)?, row.line(1)?, words, opens)),
            }
        }
    }
    all.outside.sort_by_key(|(at, ..)| *at);
    Ok(all)
}
