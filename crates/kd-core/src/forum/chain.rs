//! The chain of draws: commitments, seeds and seals, so that a draw can be neither foretold nor changed afterwards.
//!
//! Each cycle has a secret of its own. Its commitment is recorded while the cycle before is drawn; the secret is revealed
//! when the cycle has ended. The seed mixes the secret with the seal of the cycle before and with a digest of the posts
//! written since, so that whoever knows the secret does not know the seed before the draw. The seal covers the whole
//! record of a cycle and the seal before it.
//!
//! All hashes are SHA-256 over fields, each with its length in front (8 bytes, big endian); the first field names the
//! use. `tests/forum/audit.py` computes them independently.

use super::cycle::{Cards, Plan, Seed, hex, unhex};
use super::words::Run;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A hash.
pub type Hash = [u8; 32];

/// How the seed of a cycle came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// From a secret that was committed to before.
    Committed,
    /// From a number that a person chose: whoever knows it can foretell the cycle.
    Seeded,
    /// The secret was lost before the draw: nothing was drawn.
    Lost,
    /// The owner accepted a record that differs from the one noted outside of the database: nothing was drawn.
    Forked,
}

impl Origin {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Seeded => "seeded",
            Self::Lost => "lost",
            Self::Forked => "forked",
        }
    }

    /// From its word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Committed, Self::Seeded, Self::Lost, Self::Forked]
            .into_iter()
            .find(|origin| origin.word() == word)
    }
}

/// The place of a cycle in its forum's chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The forum's own number: 32 random hexadecimal digits.
    pub chain: String,
    /// The place in the chain, from 1.
    pub number: i64,
    /// How the seed came about.
    pub origin: Origin,
    /// The commitment to the secret, recorded before; `None` for a seeded cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitment: Option<String>,
    /// Posts behind this number, up to `through_post`, are mixed into the seed.
    pub after_post: i64,
    /// The last of them.
    pub through_post: i64,
    /// Their digest.
    pub posts: String,
    /// The seal of the link before; empty in the first.
    pub previous: String,
    /// The commitment to the next cycle's secret.
    pub next: String,
    /// The secret, revealed when the cycle had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Why the cycle is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// The commitment that took the place of `next`, whose secret was lost with this cycle's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<String>,
    /// Covers all of this and the cycle's record; recorded when it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

impl Link {
    /// The commitment that the next link must fulfil.
    pub fn pending(&self) -> &str {
        self.renewed.as_deref().unwrap_or(&self.next)
    }

    /// The seed of the cycle, if its secret is revealed.
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

/// Feeds fields to SHA-256.
#[derive(Clone, Debug)]
pub struct Fields(Sha256);

impl Fields {
    /// Begins with the name of the use.
    pub fn of(name: &str) -> Self {
        Self(Sha256::new()).text(name)
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Text as UTF-8.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// A whole number in decimal digits.
    #[must_use]
    pub fn int(self, number: i128) -> Self {
        self.text(&number.to_string())
    }

    /// A number with nine decimals: readers of JSON differ in the last bit of a floating-point number.
    #[must_use]
    pub fn real(self, number: f64) -> Self {
        self.text(&format!("{number:.9}"))
    }

    /// Something that may be missing: `0`, or `1` and the value.
    #[must_use]
    pub fn maybe<T>(self, value: Option<T>, put: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.int(0),
            Some(value) => put(self.int(1), value),
        }
    }

    /// A list: its length and its items.
    #[must_use]
    pub fn list<T>(self, items: &[T], put: impl FnMut(Self, &T) -> Self) -> Self {
        let counted = self.int(items.len() as i128);
        items.iter().fold(counted, put)
    }

    /// The hash.
    pub fn hash(self) -> Hash {
        self.0.finalize().into()
    }
}

/// What is recorded before a cycle of its secret.
pub fn commitment(chain: &str, number: i64, secret: &Hash) -> String {
    let fields = Fields::of("kd forum commitment 1").text(chain);
    hex(&fields.int(number.into()).bytes(secret).hash())
}

/// The seed of a cycle.
pub fn seed(chain: &str, number: i64, secret: &Hash, previous: &str, posts: &str) -> Hash {
    let fields = Fields::of("kd forum seed 1").text(chain);
    let fields = fields.int(number.into()).bytes(secret);
    fields.text(previous).text(posts).hash()
}

/// A post as it was drawn from.
#[derive(Clone, Copy, Debug)]
pub struct PostFacts<'a> {
    /// Who wrote it.
    pub author: &'a str,
    /// The words.
    pub body: &'a str,
    /// When, in microseconds.
    pub created_us: i64,
    /// When its thread was opened, in microseconds, and by whom.
    pub thread: (i64, &'a str),
    /// When the post that it quotes was written, in microseconds.
    pub quote_us: Option<i64>,
}

impl PostFacts<'_> {
    /// The digest. It holds no number of the database, so that it survives an export.
    pub fn digest(&self) -> Hash {
        let fields = Fields::of("kd forum post 1").text(self.author);
        let fields = fields.text(self.body).int(self.created_us.into());
        let fields = fields.int(self.thread.0.into()).text(self.thread.1);
        fields
            .maybe(self.quote_us, |fields, us| fields.int(us.into()))
            .hash()
    }
}

/// The digest of posts in their order.
pub fn posts_digest(posts: &[Hash]) -> String {
    let fields = Fields::of("kd forum posts 1");
    hex(&fields.list(posts, |fields, post| fields.bytes(post)).hash())
}

/// The record of a cycle, for its seal.
#[derive(Clone, Copy, Debug)]
pub struct Sealed<'a> {
    /// Its place in the chain.
    pub link: &'a Link,
    /// What it was drawn from.
    pub cards: &'a Cards,
    /// What was drawn.
    pub plan: &'a Plan,
    /// When it began and ended, in microseconds.
    pub times_us: (i64, i64),
    /// Milliseconds to the start of the next.
    pub interval_ms: i64,
    /// Its runs, each with a digest of what each of its deeds was about.
    pub runs: &'a [(Run, Vec<String>)],
}

/// The seal of a cycle.
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
    // A seed that was mixed follows from the link.
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
