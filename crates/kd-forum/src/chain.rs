//! The chain of draws: commitments, seeds and seals, which make draws unpredictable beforehand and immutable
//! afterwards.
//!
//! Each cycle has its own secret. Its commitment is recorded when the previous cycle is drawn; the secret is revealed
//! when the cycle has ended. The seed mixes the secret with the seal of the previous cycle and a digest of the posts
//! written since, so even someone who knows the secret does not know the seed before the draw. The seal covers the
//! whole record of a cycle and the previous seal.
//!
//! All hashes are SHA-256 over length-prefixed fields (8 bytes, big endian); the first field names the purpose.
//! `tests/forum/audit.py` computes them independently.

use super::cards::{Cards, Seed};
use super::cycle::Plan;
use super::words::Run;
use kd_core::hex::{hex, unhex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A hash.
pub type Hash = [u8; 32];

/// The source of a cycle's seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Drawn from a secret with an earlier commitment.
    Committed,
    /// Drawn from a number chosen by the user: anyone who knows it can predict the cycle.
    Seeded,
    /// The secret was lost before the draw; nothing was drawn.
    Lost,
    /// The owner accepted a record that differs from the one noted outside the database; nothing was drawn.
    Forked,
}

impl Origin {
    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Seeded => "seeded",
            Self::Lost => "lost",
            Self::Forked => "forked",
        }
    }

    /// Parses its word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Committed, Self::Seeded, Self::Lost, Self::Forked]
            .into_iter()
            .find(|origin| origin.word() == word)
    }
}

/// The link of a cycle in its forum's chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The forum's random id: 32 hexadecimal digits.
    pub chain: String,
    /// The position in the chain, from 1.
    pub number: i64,
    /// The source of the seed.
    pub origin: Origin,
    /// The earlier commitment to the secret; `None` for a seeded cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitment: Option<String>,
    /// Posts with higher numbers, up to `through_post`, are mixed into the seed.
    pub after_post: i64,
    /// The last post mixed into the seed.
    pub through_post: i64,
    /// Their digest.
    pub posts: String,
    /// The seal of the previous link; empty in the first.
    pub previous: String,
    /// The commitment to the next cycle's secret.
    pub next: String,
    /// The secret, revealed when the cycle has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The reason why the cycle is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// The commitment that replaced `next`, whose secret was lost with this cycle's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<String>,
    /// Covers all of this and the cycle's record; recorded at the end of the cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

impl Link {
    /// Returns the commitment that the next link must fulfil.
    pub fn pending(&self) -> &str {
        self.renewed.as_deref().unwrap_or(&self.next)
    }

    /// Returns the seed of the cycle, if its secret is revealed.
    pub fn seed(&self) -> Option<Seed> {
        let secret = unhex(self.secret.as_ref()?)?;
        Some(Seed::Mixed(seed(
            &self.chain,
            self.number,
            &secret,
            &self.previous,
            &self.posts,
        )))
    }
}

/// Hashes fields with SHA-256.
#[derive(Clone, Debug)]
pub struct Fields(Sha256);

impl Fields {
    /// Starts with the name of the purpose.
    pub fn of(name: &str) -> Self {
        Self(Sha256::new()).text(name)
    }

    /// Adds bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds a string as UTF-8.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Adds an integer in decimal digits.
    #[must_use]
    pub fn int(self, number: i128) -> Self {
        self.text(&number.to_string())
    }

    /// Adds a number with nine decimals, because JSON parsers may differ in the last bit of a float.
    #[must_use]
    pub fn real(self, number: f64) -> Self {
        self.text(&format!("{number:.9}"))
    }

    /// Adds an optional value: `0`, or `1` and the value.
    #[must_use]
    pub fn maybe<T>(self, value: Option<T>, put: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.int(0),
            Some(value) => put(self.int(1), value),
        }
    }

    /// Adds a list: its length and its items.
    #[must_use]
    pub fn list<T>(self, items: &[T], put: impl FnMut(Self, &T) -> Self) -> Self {
        let counted = self.int(items.len() as i128);
        items.iter().fold(counted, put)
    }

    /// Returns the hash.
    pub fn hash(self) -> Hash {
        self.0.finalize().into()
    }
}

/// Returns the commitment to a cycle's secret, recorded before the cycle.
pub fn commitment(chain: &str, number: i64, secret: &Hash) -> String {
    let fields = Fields::of("kd forum commitment 1").text(chain);
    hex(&fields.int(number.into()).bytes(secret).hash())
}

/// Returns the seed of a cycle.
pub fn seed(chain: &str, number: i64, secret: &Hash, previous: &str, posts: &str) -> Hash {
    let fields = Fields::of("kd forum seed 1").text(chain);
    let fields = fields.int(number.into()).bytes(secret);
    fields.text(previous).text(posts).hash()
}

/// A post as used in a draw.
#[derive(Clone, Copy, Debug)]
pub struct PostFacts<'a> {
    /// The author.
    pub author: &'a str,
    /// The text.
    pub body: &'a str,
    /// The creation time, in microseconds.
    pub created_us: i64,
    /// The creation time of its thread, in microseconds, and the thread's author.
    pub thread: (i64, &'a str),
    /// The creation time of the quoted post, in microseconds.
    pub quote_us: Option<i64>,
}

impl PostFacts<'_> {
    /// Returns the digest. It contains no database ids, so it survives an export.
    pub fn digest(&self) -> Hash {
        let fields = Fields::of("kd forum post 1").text(self.author);
        let fields = fields.text(self.body).int(self.created_us.into());
        let fields = fields.int(self.thread.0.into()).text(self.thread.1);
        fields
            .maybe(self.quote_us, |fields, us| fields.int(us.into()))
            .hash()
    }
}

/// Returns the digest of posts in order.
pub fn posts_digest(posts: &[Hash]) -> String {
    let fields = Fields::of("kd forum posts 1");
    hex(&fields.list(posts, |fields, post| fields.bytes(post)).hash())
}

/// The record of a cycle, for its seal.
#[derive(Clone, Copy, Debug)]
pub struct Sealed<'a> {
    /// Its place in the chain.
    pub link: &'a Link,
    /// The inputs of the draw.
    pub cards: &'a Cards,
    /// The result of the draw.
    pub plan: &'a Plan,
    /// The start and the end, in microseconds.
    pub times_us: (i64, i64),
    /// Milliseconds to the start of the next cycle.
    pub interval_ms: i64,
    /// Its runs, each with a digest of the subject of each action.
    pub runs: &'a [(Run, Vec<String>)],
}

/// Returns the seal of a cycle.
pub fn seal(record: &Sealed<'_>) -> String {
    let Link {
        chain,
        number,
        origin,
        commitment,
        after_post: _,
        through_post: _,
        posts,
        previous,
        next,
        secret,
        void,
        renewed,
        seal: _,
    } = record.link;
    let text = |fields: Fields, text: &String| fields.text(text);
    let fields = Fields::of("kd forum seal 1").text(chain);
    let fields = fields.int((*number).into()).text(origin.word());
    let fields = fields.maybe(commitment.as_ref(), text).text(posts);
    let fields = fields.text(previous).text(next);
    let fields = fields.maybe(secret.as_ref(), text);
    let fields = fields.maybe(void.as_ref(), text);
    let fields = fields.maybe(renewed.as_ref(), text);
    let fields = put_cards(fields, record.cards);
    let fields = put_plan(fields, record.plan);
    let fields = fields.int(record.times_us.0.into());
    let fields = fields.int(record.times_us.1.into());
    let fields = fields.int(record.interval_ms.into());
    hex(&fields
        .list(record.runs, |fields, (run, about)| {
            put_run(fields, run, about)
        })
        .hash())
}

fn put_cards(fields: Fields, cards: &Cards) -> Fields {
    let text = |fields: Fields, text: &String| fields.text(text);
    // A mixed seed follows from the link.
    let number = match cards.seed {
        Seed::Number(number) => Some(number),
        Seed::Mixed(_) | Seed::Hidden => None,
    };
    let fields = fields.maybe(number, |fields, number| fields.int(number.into()));
    let fields = fields.int(cards.index.into()).text(&cards.scheduler);
    let fields = fields.int(cards.skips_max.into());
    let fields = fields.real(cards.delays.0).real(cards.delays.1);
    let fields = fields.list(&cards.candidates, |fields, one| {
        let fields = fields.text(&one.name).real(one.skip_probability);
        let fields = fields.real(one.weight).real(one.energy);
        let fields = fields.int(one.tokens.into()).int(one.turns.into());
        let fields = fields.int(one.skipped.into());
        fields.maybe(one.delays, |fields, (least, most)| {
            fields.real(least).real(most)
        })
    });
    fields.maybe(cards.block.as_ref(), |fields, block| {
        let fields = fields.list(&block.first, text);
        fields.list(&block.used, |fields, row| fields.int((*row).into()))
    })
}

fn put_plan(fields: Fields, plan: &Plan) -> Fields {
    let fields = fields.list(&plan.order, |fields, name| fields.text(name));
    let fields = fields.list(&plan.turns, |fields, turn| {
        let fields = fields.text(&turn.agent).int(turn.delay_ms.into());
        fields.int(turn.due.into())
    });
    let fields = fields.list(&plan.sitting_out, |fields, one| {
        fields.text(&one.agent).real(one.chance)
    });
    fields.int(plan.redrawn.into())
}

fn put_run(fields: Fields, run: &Run, about: &[String]) -> Fields {
    let text = |fields: Fields, text: &String| fields.text(text);
    let us = |fields: Fields, at: jiff::Timestamp| fields.int(at.as_microsecond().into());
    let fields = fields.text(&run.agent);
    let fields = us(fields, run.started_at).maybe(run.ended_at, us);
    let fields = fields.text(run.outcome.word());
    let deeds: Vec<(&str, &str)> = run
        .deeds
        .iter()
        .zip(about)
        .map(|(deed, about)| (deed.tool.as_str(), about.as_str()))
        .collect();
    let fields = fields.list(&deeds, |fields, (tool, about)| {
        fields.text(tool).text(about)
    });
    let fields = fields.maybe(run.reason.as_ref(), text);
    let fields = fields.maybe(run.claim.as_ref(), text);
    let fields = fields.maybe(run.claim_agrees, |fields, agrees| fields.int(agrees.into()));
    fields.int(run.calls.into()).int(run.tokens.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commitment_and_a_seed_change_with_each_of_their_parts() {
        let secret = [7; 32];
        let all = [
            commitment("a", 1, &secret),
            commitment("b", 1, &secret),
            commitment("a", 2, &secret),
            commitment("a", 1, &[8; 32]),
            hex(&seed("a", 1, &secret, "", "")),
            hex(&seed("b", 1, &secret, "", "")),
            hex(&seed("a", 2, &secret, "", "")),
            hex(&seed("a", 1, &[8; 32], "", "")),
            hex(&seed("a", 1, &secret, "p", "")),
            hex(&seed("a", 1, &secret, "", "p")),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        // Recorded commitments must stay verifiable.
        assert_eq!(
            all[0],
            "f5e9f59fbb3f7b6157eb6995201fc7e54cd773c322936d89c06539f36430d981"
        );
    }

    #[test]
    fn fields_cannot_be_moved_from_one_to_the_next() {
        let hash = |one: &str, two: &str| Fields::of("x").text(one).text(two).hash();
        assert_ne!(hash("ab", "c"), hash("a", "bc"));
        assert_ne!(hash("", "a"), hash("a", ""));
    }
}
