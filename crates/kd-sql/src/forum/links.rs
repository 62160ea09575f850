//! The chain of draws in the database: each cycle's link, from the commitment to the seal.
//!
//! Input: the leader, who holds the secrets, and the candidates of a cycle. Output: the cycle as drawn and recorded.

use super::cycles::{self, CycleRecord, Leader};
use super::db::{self, Db, Row, args, first_int, first_text};
use super::error::ForumError;
use super::secrets::{self, Head, Mark};
use super::{ForumStore, runs};
use jiff::Timestamp;
use kd_core::config::forum::Settings;
use kd_core::hex::{hex, unhex};
use kd_forum::cards::{Candidate, Cards, Seed};
use kd_forum::chain::{self, Fields, Hash, Link, Origin, PostFacts, Sealed};
use kd_forum::cycle::{Plan, draw};
use kd_forum::words::{Deed, Run};

/// Posts digested at a time.
const PAGE: i64 = 500;
/// The reason why a cycle without its secret is void.
const LOST: &str = "the file with its secret is lost";
/// The reason why a cycle is void whose secret was used for another draw.
const DRAWN: &str = "another order was drawn from its secret, and the record does not hold it";

/// A drawn cycle.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The cycle, with its plan, which the database gets only at the cycle's end.
    pub record: CycleRecord,
    /// The previous cycle, void because its secret was lost before the draw.
    pub lost: Option<CycleRecord>,
}

/// The end of the chain, where the next link is added.
pub(super) struct End {
    pub(super) chain: String,
    /// The number of the next link.
    pub(super) number: i64,
    /// The commitment that it must fulfill.
    pending: String,
    pub(super) previous: String,
    pub(super) after_post: i64,
    last: Option<CycleRecord>,
}

impl ForumStore {
    /// Draws the next cycle and records it before any agent runs. A given seed was chosen by a person, and the cycle is
    /// recorded as predictable; otherwise the randomness comes from the committed secret.
    ///
    /// # Errors
    /// [`ForumError::Differs`] if the record differs from the noted state, [`ForumError::TooSoon`] if a rule of the
    /// forum allows no cycle yet; also if the database or the state folder fails.
    pub fn draw_cycle(
        &mut self,
        leader: &mut Leader,
        settings: &Settings,
        candidates: Vec<Candidate>,
        seed: Option<u64>,
        now: Timestamp,
    ) -> Result<Drawn, ForumError> {
        self.check_record(leader)?;
        if let Some(soon) = self.too_soon(&leader.forum, now)? {
            return Err(soon);
        }
        let end = self.chain_end(leader)?;
        if seed.is_some() || leader.secrets.find(&end.pending).is_some() {
            let drawn = self.draw_from(leader, settings, &candidates, seed, end, now)?;
            if let Some(record) = drawn {
                return Ok(Drawn { record, lost: None });
            }
        }
        let end = self.chain_end(leader)?;
        let why = match leader.secrets.find(&end.pending) {
            Some(_) => DRAWN,
            None => LOST,
        };
        let lost = Some(self.record_lost(leader, settings, &end, why, now)?);
        let end = self.chain_end(leader)?;
        let record = self.draw_from(leader, settings, &candidates, seed, end, now)?;
        let record = record.ok_or_else(|| ForumError::Invalid(DRAWN.into()))?;
        Ok(Drawn { record, lost })
    }

    /// Draws and records; `None` if the secret was used for another draw before.
    fn draw_from(
        &mut self,
        leader: &mut Leader,
        settings: &Settings,
        candidates: &[Candidate],
        seed: Option<u64>,
        end: End,
        now: Timestamp,
    ) -> Result<Option<CycleRecord>, ForumError> {
        let next = leader
            .secrets
            .make(&end.chain, end.number + 1, Some(&end.pending))?;
        let secret = leader.secrets.find(&end.pending);
        let (forum, noted) = (leader.forum.as_str(), &mut leader.secrets);
        self.db.whole(|db| {
            // No post with an earlier number may appear between the digest and the draw.
            db::lock(db, forum)?;
            let through_post = last_post(db, forum)?.max(end.after_post);
            let posts = posts_digest(db, forum, end.after_post, through_post)?;
            let index = cycles::last_number(db, forum)?.max(0) as u64;
            let drawn_from = match (seed, secret) {
                (Some(number), _) => Seed::Number(number),
                (None, Some(secret)) => Seed::Mixed(chain::seed(
                    &end.chain,
                    end.number,
                    &secret,
                    &end.previous,
                    &posts,
                )),
                (None, None) => return Err(ForumError::Invalid(LOST.into())),
            };
            let last = end.last.as_ref().filter(|last| last.void().is_none());
            let mut cards = Cards::new(settings, drawn_from, index, candidates.to_vec())
                .after(last.map(|last| (&last.cards, &last.plan)));
            let plan = draw(&cards);
            if seed.is_none() {
                cards.seed = Seed::Hidden;
                let mark = mark(&end, &plan)?;
                // A process killed before it recorded this draw repeats the same one.
                if noted.drawn().is_some_and(|noted| {
                    (&noted.chain, noted.number) == (&mark.chain, mark.number) && *noted != mark
                }) {
                    return Ok(None);
                }
                noted.note_draw(mark)?;
            }
            // Readers of the database must not know who is next.
            let unknown = Plan::default();
            let kept = if seed.is_none() { &unknown } else { &plan };
            let id = cycles::insert(db, forum, &cards, kept, now)?;
            let link = Link {
                chain: end.chain,
                number: end.number,
                origin: match seed {
                    None => Origin::Committed,
                    Some(_) => Origin::Seeded,
                },
                commitment: seed.is_none().then_some(end.pending),
                after_post: end.after_post,
                through_post,
                posts,
                previous: end.previous,
                next,
                secret: None,
                void: None,
                renewed: None,
                seal: None,
            };
            insert(db, id, &link)?;
            Ok(Some(CycleRecord {
                plan,
                ..cycles::find(db, id)?
            }))
        })
    }

    /// Returns whether the secret of an open cycle still exists, so that it can be revealed at its end.
    pub fn can_reveal(leader: &Leader, cycle: &CycleRecord) -> bool {
        let commitment = cycle.link.as_ref().and_then(|l| l.commitment.as_ref());
        commitment.is_none_or(|commitment| leader.secrets.find(commitment).is_some())
    }

    /// Returns the plan of a cycle. The plan of a running cycle follows from its secret, which only the leader has.
    pub fn plan(leader: &Leader, cycle: &CycleRecord) -> Plan {
        if cycle.plan != Plan::default() {
            return cycle.plan.clone();
        }
        let seed = cycle.link.as_ref().and_then(|link| {
            let secret = leader.secrets.find(link.commitment.as_ref()?)?;
            let secret = Some(hex(&secret));
            Link {
                secret,
                ..link.clone()
            }
            .seed()
        });
        let mut cards = cycle.cards.clone();
        cards.seed = seed.unwrap_or(cards.seed);
        draw(&cards)
    }

    /// Ends a cycle: reveals its secret and its order, records its effect on each candidate and seals its record. A
    /// cycle without its secret becomes void.
    ///
    /// # Errors
    /// [`ForumError::Missing`] if there is no such cycle, [`ForumError::Differs`] if the record differs from the noted
    /// state; also if the database or the state folder fails.
    pub fn finish_cycle(
        &mut self,
        leader: &mut Leader,
        id: i64,
        interval_ms: u64,
        now: Timestamp,
    ) -> Result<CycleRecord, ForumError> {
        self.check_record(leader)?;
        let record = self.db.whole(|db| cycles::find(db, id))?;
        if !Self::can_reveal(leader, &record) {
            return self.void_cycle(leader, id, LOST, now);
        }
        let commitment = record.link.as_ref().and_then(|l| l.commitment.as_ref());
        let secret = commitment.and_then(|commitment| leader.secrets.find(commitment));
        let plan = Self::plan(leader, &record);
        let record = self.db.whole(|db| {
            let changed = cycles::end(db, id, interval_ms, now)?;
            if changed && record.link.is_some() {
                cycles::set_plan(db, id, &plan)?;
                db.run(
                    "UPDATE links SET secret = $1 WHERE cycle_id = $2",
                    args![secret.map(|secret| hex(&secret)), id],
                )?;
                write_seal(db, id)?;
            }
            cycles::find(db, id)
        })?;
        note(leader, &record)?;
        Ok(record)
    }

    /// Makes an open cycle void; turns already taken stay. The next cycle is drawn again.
    ///
    /// # Errors
    /// Those of [`Self::finish_cycle`].
    pub fn void_cycle(
        &mut self,
        leader: &mut Leader,
        id: i64,
        why: &str,
        now: Timestamp,
    ) -> Result<CycleRecord, ForumError> {
        self.check_record(leader)?;
        let record = self.void(leader, id, why, now)?;
        note(leader, &record)?;
        Ok(record)
    }

    /// Makes an open cycle void without checking the noted state.
    pub(super) fn void(
        &mut self,
        leader: &mut Leader,
        id: i64,
        why: &str,
        now: Timestamp,
    ) -> Result<CycleRecord, ForumError> {
        let record = self.db.whole(|db| cycles::find(db, id))?;
        let renewed = match &record.link {
            Some(link) if leader.secrets.find(&link.next).is_none() => {
                Some(leader.secrets.make(&link.chain, link.number + 1, None)?)
            }
            _ => None,
        };
        let record = self.db.whole(|db| {
            if record.link.is_some() && record.ended_at.is_none() {
                db.run(
                    "UPDATE links SET void = $1, renewed = $2 WHERE cycle_id = $3",
                    args![why, renewed, id],
                )?;
            }
            if cycles::end(db, id, 0, now)? && record.link.is_some() {
                write_seal(db, id)?;
            }
            cycles::find(db, id)
        })?;
        Ok(record)
    }

    /// Returns the number of the next cycle's link, and the commitment to its secret.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn next_commitment(&mut self, forum: &str) -> Result<Option<(i64, String)>, ForumError> {
        let Some((chain, first, _)) = chain_of(&mut self.db, forum)? else {
            return Ok(None);
        };
        let last = last_of(&mut self.db, &chain)?;
        let link = last.and_then(|last| last.link);
        Ok(Some(link.map_or((1, first), |link| {
            (link.number + 1, link.pending().to_owned())
        })))
    }

    pub(super) fn chain_end(&mut self, leader: &mut Leader) -> Result<End, ForumError> {
        let forum = leader.forum.clone();
        let (chain, first, after_post) = match chain_of(&mut self.db, &forum)? {
            Some(found) => found,
            None => {
                let chain = hex(&secrets::random::<16>()?);
                let (first, after) = begin(&mut self.db, leader, &chain)?;
                (chain, first, after)
            }
        };
        let last = last_of(&mut self.db, &chain)?;
        let Some((last, link)) = last.and_then(|last| Some((last.clone(), last.link?))) else {
            return Ok(End {
                chain,
                number: 1,
                pending: first,
                previous: String::new(),
                after_post,
                last: None,
            });
        };
        Ok(End {
            chain,
            number: link.number + 1,
            pending: link.pending().to_owned(),
            previous: link.seal.clone().unwrap_or_default(),
            after_post: link.through_post,
            last: Some(last),
        })
    }

    /// Records that the secret of the next cycle is lost: a void cycle without turns, and a new commitment.
    fn record_lost(
        &mut self,
        leader: &mut Leader,
        settings: &Settings,
        end: &End,
        why: &str,
        now: Timestamp,
    ) -> Result<CycleRecord, ForumError> {
        let link = Link {
            void: Some(why.to_owned()),
            commitment: Some(end.pending.clone()),
            ..empty_link(end, Origin::Lost)
        };
        self.record_empty(leader, settings, link, now)
    }

    /// Records a void cycle without turns, with a new commitment to the secret of the next.
    pub(super) fn record_empty(
        &mut self,
        leader: &mut Leader,
        settings: &Settings,
        link: Link,
        now: Timestamp,
    ) -> Result<CycleRecord, ForumError> {
        let next = leader.secrets.make(&link.chain, link.number + 1, None)?;
        let link = Link { next, ..link };
        let forum = leader.forum.as_str();
        let record = self.db.whole(|db| {
            let index = cycles::last_number(db, forum)?.max(0) as u64;
            let cards = Cards::new(settings, Seed::Hidden, index, Vec::new());
            let id = cycles::insert(db, forum, &cards, &Plan::default(), now)?;
            insert(db, id, &link)?;
            cycles::end(db, id, 0, now)?;
            write_seal(db, id)?;
            cycles::find(db, id)
        })?;
        note(leader, &record)?;
        Ok(record)
    }
}

/// Builds the link of a void cycle without turns.
pub(super) fn empty_link(end: &End, origin: Origin) -> Link {
    Link {
        chain: end.chain.clone(),
        number: end.number,
        origin,
        commitment: None,
        after_post: end.after_post,
        through_post: end.after_post,
        posts: chain::posts_digest(&[]),
        previous: end.previous.clone(),
        next: String::new(),
        secret: None,
        void: None,
        renewed: None,
        seal: None,
    }
}

/// Builds the mark of a draw.
fn mark(end: &End, plan: &Plan) -> Result<Mark, ForumError> {
    let plan = serde_json::to_string(plan).map_err(|e| ForumError::Invalid(e.to_string()))?;
    Ok(Mark {
        chain: end.chain.clone(),
        number: end.number,
        digest: hex(&Fields::of("kd forum draw 1").text(&plan).hash()),
    })
}

/// Notes a sealed link outside of the database.
fn note(leader: &mut Leader, record: &CycleRecord) -> Result<(), ForumError> {
    let Some(Link {
        chain,
        number,
        seal: Some(seal),
        ..
    }) = &record.link
    else {
        return Ok(());
    };
    leader.secrets.note(Head {
        chain: chain.clone(),
        number: *number,
        seal: seal.clone(),
    })
}

/// Begins a chain: its first commitment, and the post after which it begins.
pub(super) fn begin(
    db: &mut Db,
    leader: &mut Leader,
    chain: &str,
) -> Result<(String, i64), ForumError> {
    let first = leader.secrets.make(chain, 1, None)?;
    let after = last_post(db, &leader.forum)?;
    db.run(
        "INSERT INTO chains (forum, chain, commitment, after_post) VALUES ($1, $2, $3, $4)",
        args![leader.forum.as_str(), chain, first.as_str(), after],
    )?;
    Ok((first, after))
}

/// Returns a forum's own chain: its id, its first commitment, and the post after which it begins.
pub(super) fn chain_of(
    db: &mut Db,
    forum: &str,
) -> Result<Option<(String, String, i64)>, ForumError> {
    let row = db.row(
        "SELECT chain, commitment, after_post FROM chains WHERE forum = $1",
        args![forum],
    )?;
    let row = row.map(|row| Ok((row.text(0)?, row.text(1)?, row.int(2)?)));
    row.transpose()
}

/// Returns the cycle of the last link. A link whose cycle is gone does not count: [`cut_off`] reports it.
pub(super) fn last_of(db: &mut Db, chain: &str) -> Result<Option<CycleRecord>, ForumError> {
    let row = db.row(
        "SELECT c.id FROM links l JOIN cycles c ON c.id = l.cycle_id WHERE l.chain = $1 ORDER BY l.number DESC LIMIT 1",
        args![chain],
    )?;
    row.map(|row| cycles::find(db, row.int(0)?)).transpose()
}

/// Returns the number of the last link of a chain, if its cycle is gone.
pub(super) fn cut_off(db: &mut Db, chain: &str) -> Result<Option<i64>, ForumError> {
    let row = db.row(
        "SELECT l.number, c.id FROM links l LEFT JOIN cycles c ON c.id = l.cycle_id WHERE l.chain = $1 \
         ORDER BY l.number DESC LIMIT 1",
        args![chain],
    )?;
    let Some(row) = row else { return Ok(None) };
    let number = row.int(0)?;
    Ok(row.maybe_int(1)?.is_none().then_some(number))
}

/// Returns the cycle of the previous link.
pub(super) fn before(db: &mut Db, link: &Link) -> Result<Option<CycleRecord>, ForumError> {
    let row = db.row(
        "SELECT c.id FROM links l JOIN cycles c ON c.id = l.cycle_id WHERE l.chain = $1 AND l.number = $2",
        args![link.chain.as_str(), link.number - 1],
    )?;
    row.map(|row| cycles::find(db, row.int(0)?)).transpose()
}

/// Returns the first commitment of a chain that began in this store, and the post after which it begins.
pub(super) fn beginning(db: &mut Db, chain: &str) -> Result<Option<(String, i64)>, ForumError> {
    let row = db.row(
        "SELECT commitment, after_post FROM chains WHERE chain = $1",
        args![chain],
    )?;
    row.map(|row| Ok((row.text(0)?, row.int(1)?))).transpose()
}

/// Inserts a link, unless it exists.
pub(super) fn insert(db: &mut Db, cycle: i64, link: &Link) -> Result<(), ForumError> {
    db.run(
        "INSERT INTO links (cycle_id, chain, number, origin, commitment, after_post, through_post, posts, previous, next, secret, \
         void, renewed, seal) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT DO NOTHING",
        args![
            cycle,
            link.chain.as_str(),
            link.number,
            link.origin.word(),
            link.commitment.as_deref(),
            link.after_post,
            link.through_post,
            link.posts.as_str(),
            link.previous.as_str(),
            link.next.as_str(),
            link.secret.as_deref(),
            link.void.as_deref(),
            link.renewed.as_deref(),
            link.seal.as_deref()
        ],
    )?;
    Ok(())
}

/// Returns the number of the last post of a forum.
fn last_post(db: &mut Db, forum: &str) -> Result<i64, ForumError> {
    // Threads store their last post, so that posts do not have to be scanned.
    let row = db.row(
        "SELECT MAX(last_post_id) FROM threads WHERE forum = $1",
        args![forum],
    )?;
    Ok(first_int(row)?.unwrap_or(0))
}

const POST: &str = "SELECT p.id, p.author, p.body, p.created_at, t.created_at, t.author, q.created_at, f.digest, p.edited_at, \
     p.deleted_at FROM posts p JOIN threads t ON t.id = p.thread_id LEFT JOIN posts q ON q.id = p.quote_post_id \
     LEFT JOIN first_words f ON f.post_id = p.id";

/// Returns the digest of a post as it was first sealed.
fn digest(row: &Row) -> Result<Hash, ForumError> {
    let changed = row.maybe_int(8)?.or(row.maybe_int(9)?).is_some();
    // Only a post marked as edited was changed.
    if let Some(kept) = row
        .maybe_text(7)?
        .filter(|_| changed)
        .as_deref()
        .and_then(unhex)
    {
        return Ok(kept);
    }
    let (author, body, opener) = (row.line(1)?, row.text(2)?, row.line(5)?);
    let facts = PostFacts {
        author: &author,
        body: &body,
        created_us: row.int(3)?,
        thread: (row.int(4)?, &opener),
        quote_us: row.maybe_int(6)?,
    };
    Ok(facts.digest())
}

/// Stores the digest of a post before its first change.
pub(super) fn keep_digest(db: &mut Db, post: i64) -> Result<(), ForumError> {
    let row = db.row(&format!("{POST} WHERE p.id = $1"), args![post])?;
    if let Some(row) = row {
        db.run(
            "INSERT INTO first_words (post_id, digest) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            args![post, hex(&digest(&row)?)],
        )?;
    }
    Ok(())
}

/// Computes the digest of a forum's posts in a range.
pub(super) fn posts_digest(
    db: &mut Db,
    forum: &str,
    after: i64,
    through: i64,
) -> Result<String, ForumError> {
    let mut digests = Vec::new();
    let mut behind = after;
    while behind < through {
        let rows = db.rows(
            &format!(
                "{POST} WHERE t.forum = $1 AND p.id > $2 AND p.id <= $3 ORDER BY p.id LIMIT $4"
            ),
            args![forum, behind, through, PAGE],
        )?;
        let Some(last) = rows.last() else { break };
        behind = last.int(0)?;
        for row in &rows {
            digests.push(digest(row)?);
        }
    }
    Ok(chain::posts_digest(&digests))
}

fn write_seal(db: &mut Db, cycle: i64) -> Result<(), ForumError> {
    let record = cycles::find(db, cycle)?;
    if let Some(seal) = seal_of(db, &record)? {
        db.run(
            "UPDATE links SET seal = $1 WHERE cycle_id = $2",
            args![seal, cycle],
        )?;
    }
    Ok(())
}

/// Computes the seal that a cycle's record must have.
pub(super) fn seal_of(db: &mut Db, record: &CycleRecord) -> Result<Option<String>, ForumError> {
    let Some(link) = &record.link else {
        return Ok(None);
    };
    let mut all: Vec<(Run, Vec<String>)> = Vec::new();
    for run in runs::of_cycle(db, record.id)? {
        let about = run.deeds.iter().map(|deed| about(db, deed));
        let about = about.collect::<Result<_, _>>()?;
        all.push((run, about));
    }
    Ok(Some(chain::seal(&Sealed {
        link,
        cards: &record.cards,
        plan: &record.plan,
        times_us: (
            record.started_at.as_microsecond(),
            record.ended_at.map_or(0, Timestamp::as_microsecond),
        ),
        interval_ms: record.interval_ms.unwrap_or(0) as i64,
        runs: &all,
    })))
}

/// Describes what a deed was about, in a form that survives an export.
fn about(db: &mut Db, deed: &Deed) -> Result<String, ForumError> {
    if let Some(post) = deed.post_id {
        let row = db.row(&format!("{POST} WHERE p.id = $1"), args![post])?;
        return row.map_or_else(|| Ok(String::new()), |row| Ok(hex(&digest(&row)?)));
    }
    if let Some(motion) = deed.motion_id {
        let row = db.row("SELECT title FROM motions WHERE id = $1", args![motion])?;
        return Ok(first_text(row)?.unwrap_or_default());
    }
    Ok(String::new())
}
