//! Measures whether the turns were fair. Input: what each cycle was drawn from, the drawn order, and what happened.
//! Output: a table that compares each agent with its entitlement.
//!
//! An agent's entitlement follows from the inputs of each cycle: its own preferences, its weight, who else could take
//! part, whether it was due. So an agent that joins late, skips often or is in only one group is judged by its own
//! standard, and cycles with different agents add up.
//!
//! There are two kinds of tests: [`Look::Once`] tests once, at the end, and fails a fair run at most once in a hundred
//! runs over all rows together; [`Look::Running`] may be evaluated after every cycle and fails a fair run at most once
//! in a hundred runs over all evaluations together, for which it needs more cycles.

mod entitled;
mod tails;

use super::cards::Cards;
use super::cycle::Plan;
use entitled::{Due, Entitlements};
use serde::Serialize;
use std::collections::BTreeMap;
use tails::{Trials, normal_two_sided, p_of_bets};

/// Maximum use of an agent per turn, relative to the others, before the row fails.
pub const USE_MAX: f64 = 2.0;

/// The times at which the table is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// Once, at the end.
    Once,
    /// Any number of times.
    Running,
}

/// One drawn cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The inputs of the draw.
    pub cards: &'a Cards,
    /// All candidates, in the drawn order.
    pub order: &'a [String],
    /// The actions of each agent, in order of turns.
    pub turns: Vec<Turn<'a>>,
    /// The posts that candidates wrote outside a turn before the next cycle.
    pub outside: Vec<Turn<'a>>,
    /// Whether it is void: its order was drawn, but its turns do not count.
    pub void: bool,
    /// Whether the draw was predictable.
    pub foreseeable: bool,
}

/// The actions of one agent in its turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn<'a> {
    /// The agent.
    pub agent: &'a str,
    /// Tokens used.
    pub tokens: u64,
    /// Posts written.
    pub posts: u64,
    /// Words in them.
    pub words: u64,
    /// Threads opened.
    pub threads: u64,
    /// The time when it began, in seconds on any clock.
    pub at_secs: Option<f64>,
}

impl<'a> Sample<'a> {
    /// Creates a cycle from its draw alone, as if every drawn turn was taken.
    pub fn of(cards: &'a Cards, plan: &'a Plan) -> Self {
        let turns = plan.turns.iter().map(|turn| Turn {
            agent: &turn.agent,
            ..Turn::default()
        });
        Self {
            cards,
            order: &plan.order,
            turns: turns.collect(),
            outside: Vec::new(),
            void: false,
            foreseeable: false,
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name in JSON.
    pub key: &'static str,
    /// The name of the measured quantity.
    pub name: &'static str,
    /// The agent farthest from its entitlement, or a pair of agents.
    pub agent: Option<String>,
    /// Its value.
    pub value: Option<f64>,
    /// Its entitlement.
    pub entitled: Option<f64>,
    /// The probability that a fair rule produces a deviation this large for any agent.
    pub p: Option<f64>,
    /// The row fails below this probability; `None` if the value is only reported.
    pub line: Option<f64>,
    /// Whether it passes; `None` without a threshold or without data.
    pub pass: Option<bool>,
    /// The smallest excess that would be detected in 95 of 100 runs, as a share.
    pub visible: Option<f64>,
}

/// The share that one agent received, compared with its entitlement.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Its name.
    pub agent: String,
    /// Cycles in which it could take part.
    pub cycles: u64,
    /// Turns taken; `turns_entitled` is the number expected from its preferences.
    pub turns: u64,
    /// See `turns`.
    pub turns_entitled: f64,
    /// The mean of its drawn positions, from 1.
    pub place: f64,
    /// See `place`.
    pub place_entitled: f64,
    /// Cycles in which it spoke first.
    pub first_words: u64,
    /// See `first_words`.
    pub first_words_entitled: f64,
    /// Cycles in which it spoke last.
    pub last_words: u64,
    /// See `last_words`.
    pub last_words_entitled: f64,
    /// Posts written.
    pub posts: u64,
    /// Words in them.
    pub words: u64,
    /// Tokens used.
    pub tokens: u64,
    /// Threads opened.
    pub threads: u64,
    /// Its share of the posts in the cycles in which it could take part.
    pub posts_share: f64,
    /// The share of the posts, words, tokens and threads in these cycles that its turns entitle it to.
    pub use_entitled: f64,
    /// Maximum consecutive cycles without a turn.
    pub longest_silence: u64,
    /// Number of times it was drawn for each position.
    pub places: Vec<u64>,
    /// Number of answers by others to its posts.
    pub answered: u64,
}

/// The whole table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// The times at which the table may be evaluated.
    pub look: Look,
    /// Cycles that were judged.
    pub cycles: usize,
    /// Void cycles among them.
    pub void: usize,
    /// Predictable cycles among them.
    pub foreseeable: usize,
    /// Cycles whose agents had different weights, which are judged only by mean position and first position.
    pub weighted: usize,
    /// The rows.
    pub rows: Vec<Row>,
    /// The agents, by name.
    pub agents: Vec<Share>,
}

impl Table {
    /// Returns whether no row fails.
    pub fn passes(&self) -> bool {
        self.rows.iter().all(|row| row.pass != Some(false))
    }

    /// Returns the row with this key.
    pub fn row(&self, key: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.key == key)
    }
}

/// The significance levels of the rows: in total less than one in a hundred.
mod level {
    pub(super) const PLACE: f64 = 0.004;
    pub(super) const PLACES: f64 = 0.000_75;
    pub(super) const NEIGHBORS: f64 = 0.0015;
    pub(super) const TURNS: f64 = 0.001;
    pub(super) const WORDS: f64 = 0.0005;
    pub(super) const USE: f64 = 0.000_25;
    #[cfg(test)]
    pub(super) const ALL: f64 = PLACE + 2.0 * PLACES + NEIGHBORS + TURNS + 2.0 * WORDS + 4.0 * USE;
}

/// Sums of positions compared with their means.
#[derive(Clone, Debug, Default)]
struct Places {
    cycles: u64,
    sum: f64,
    off: f64,
    variance: f64,
    /// Cycles by the number of agents, separately for equal and unequal weights.
    sizes: BTreeMap<(usize, bool), u64>,
}

impl Places {
    fn p(&self) -> f64 {
        if self.variance <= 0.0 {
            return 1.0;
        }
        // Continuity correction: positions are integers.
        let off = (self.off.abs() - 0.5).max(0.0);
        normal_two_sided(off / self.variance.sqrt())
    }

    fn p_anytime(&self) -> f64 {
        let greatest = self.sizes.keys().map(|(n, _)| *n).max().unwrap_or(1) as f64;
        p_of_bets(|bet| {
            let bet = bet / greatest;
            let cost = self.sizes.iter().map(|((n, alike), cycles)| {
                let n = *n as f64;
                let log = match alike {
                    // Equally likely positions around their mean.
                    true => ((n * bet / 2.0).sinh() / (n * (bet / 2.0).sinh())).ln(),
                    // Holds for any distribution on n positions (Hoeffding, 1963).
                    false => bet * bet * (n - 1.0).powi(2) / 8.0,
                };
                log * *cycles as f64
            });
            bet * self.off - cost.sum::<f64>()
        })
    }
}

/// The usage of one agent, compared with [`USE_MAX`] times the usage that its turns entitle it to.
#[derive(Clone, Debug, Default)]
struct Used {
    own: u64,
    entitled: f64,
    all: u64,
    over: f64,
    squares: f64,
}

impl Used {
    fn add(&mut self, own: u64, entitled: f64, all: u64) {
        self.own += own;
        self.all += all;
        self.entitled += entitled * all as f64;
        let over = own as f64 - USE_MAX * entitled * all as f64;
        self.over += over;
        self.squares += over * over;
    }

    /// Returns the probability of sums this large if no agent exceeds the bound: by self-normalized sums.
    fn p(&self, look: Look) -> f64 {
        if self.over <= 0.0 || self.squares <= 0.0 {
            return 1.0;
        }
        match look {
            Look::Once => (-self.over * self.over / (2.0 * self.squares)).exp(),
            Look::Running => {
                // A mixture of bets with a scale of ten cycles.
                let scale = self.squares / 10.0;
                let log = 0.5 * (scale / (self.squares + scale)).ln()
                    + self.over * self.over / (2.0 * (self.squares + scale));
                (-log).exp().min(1.0)
            }
        }
    }
}

/// The counts of one agent.
#[derive(Clone, Debug, Default)]
struct Counted {
    places: Places,
    first_place: Trials,
    turns: Trials,
    first: Trials,
    last: Trials,
    used: [Used; 4],
    silence: u64,
}

/// Counts cycles and compares the counts with entitlements.
#[derive(Default)]
pub struct Judge {
    entitlements: Entitlements,
    names: Vec<String>,
    places_of: BTreeMap<String, usize>,
    shares: Vec<Share>,
    counted: Vec<Counted>,
    /// Counts of each agent in each position, and of each agent directly after each other.
    cells: BTreeMap<(usize, usize), u64>,
    pairs: BTreeMap<(usize, usize), u64>,
    /// Cycles with equal weights, by who could take part.
    sets: BTreeMap<Vec<usize>, u64>,
    given: BTreeMap<(usize, usize), u64>,
    cycles: usize,
    void: usize,
    foreseeable: usize,
    weighted: usize,
    left_out: u64,
    waits: Vec<f64>,
    since: BTreeMap<usize, f64>,
}

impl Judge {
    /// Counts a cycle. Cycles must be added in order.
    pub fn add(&mut self, sample: &Sample<'_>) {
        self.cycles += 1;
        self.void += usize::from(sample.void);
        self.foreseeable += usize::from(sample.foreseeable);
        // The order of a running cycle is not known yet; the order of a void cycle may never be known.
        if sample.cards.candidates.is_empty() || sample.order.is_empty() {
            return;
        }
        let (dues, alike) = self.entitlements.of(sample.cards);
        let candidates = sample.cards.candidates.iter();
        let present: Vec<(usize, &Due)> = candidates
            .zip(&dues)
            .map(|(c, due)| (self.enter(&c.name), due))
            .collect();
        let order: Vec<usize> = sample.order.iter().filter_map(|n| self.who(n)).collect();
        self.add_places(&order, &present, alike);
        if !sample.void {
            self.add_turns(sample, &present);
        }
    }

    /// Counts an answer by one agent to another.
    pub fn answered(&mut self, from: &str, to: &str) {
        if let (Some(from), Some(to)) = (self.who(from), self.who(to))
            && from != to
        {
            self.shares[to].answered += 1;
            *self.given.entry((from, to)).or_default() += 1;
        }
    }

    /// Returns the table of the counts so far.
    pub fn table(&self, look: Look) -> Table {
        let mut rows = self.rows(look);
        rows.extend(self.reports());
        Table {
            look,
            cycles: self.cycles,
            void: self.void,
            foreseeable: self.foreseeable,
            weighted: self.weighted,
            rows,
            agents: self.agents(),
        }
    }

    fn who(&self, name: &str) -> Option<usize> {
        self.places_of.get(name).copied()
    }

    fn enter(&mut self, name: &str) -> usize {
        if let Some(who) = self.who(name) {
            return who;
        }
        self.names.push(name.to_owned());
        self.places_of.insert(name.to_owned(), self.names.len() - 1);
        self.counted.push(Counted::default());
        self.shares.push(Share {
            agent: name.to_owned(),
            ..Share::default()
        });
        self.names.len() - 1
    }

    fn add_places(&mut self, order: &[usize], present: &[(usize, &Due)], alike: bool) {
        let n = present.len();
        for (who, due) in present {
            let place = order.iter().position(|o| o == who).unwrap_or(0);
            let counted = &mut self.counted[*who];
            counted.places.cycles += 1;
            counted.places.sum += place as f64 + 1.0;
            counted.places.off += place as f64 + 1.0 - due.place;
            counted.places.variance += due.variance;
            *counted.places.sizes.entry((n, alike)).or_default() += 1;
            counted.first_place.add(due.first_place, place == 0);
            let share = &mut self.shares[*who];
            share.cycles += 1;
            share.place_entitled += due.place;
            if share.places.len() < n {
                share.places.resize(n, 0);
            }
            share.places[place.min(n - 1)] += 1;
        }
        if !alike {
            self.weighted += 1;
            return;
        }
        for (place, who) in order.iter().enumerate() {
            *self.cells.entry((*who, place)).or_default() += 1;
        }
        for pair in order.windows(2) {
            *self.pairs.entry((pair[0], pair[1])).or_default() += 1;
        }
        let set = present.iter().map(|(who, _)| *who).collect();
        *self.sets.entry(set).or_default() += 1;
    }

    fn add_turns(&mut self, sample: &Sample<'_>, present: &[(usize, &Due)]) {
        let took: Vec<(usize, &Turn)> = sample
            .turns
            .iter()
            .filter_map(|turn| Some((self.who(turn.agent)?, turn)))
            .collect();
        let (first, last) = (took.first().map(|t| t.0), took.last().map(|t| t.0));
        let drawn: f64 = present.iter().map(|(_, due)| due.turn).sum();
        let acts: Vec<(usize, &Turn<'_>)> = sample
            .turns
            .iter()
            .chain(&sample.outside)
            .filter_map(|turn| Some((self.who(turn.agent)?, turn)))
            .collect();
        let of = |pick: Use| acts.iter().map(|(_, turn)| pick(turn)).sum::<u64>();
        let uses: [Use; 4] = [|t| t.posts, |t| t.words, |t| t.tokens, |t| t.threads];
        let all = uses.map(of);
        for (candidate, (who, due)) in sample.cards.candidates.iter().zip(present) {
            let turn = took.iter().find(|(other, _)| other == who).map(|t| t.1);
            let counted = &mut self.counted[*who];
            counted.turns.add(due.turn, turn.is_some());
            counted.first.add(due.first, first == Some(*who));
            counted.last.add(due.last, last == Some(*who));
            let entitled = due.turn / drawn;
            for ((used, pick), all) in counted.used.iter_mut().zip(uses).zip(all) {
                let own = acts.iter().filter(|(other, _)| other == who);
                used.add(own.map(|(_, turn)| pick(turn)).sum(), entitled, all);
            }
            let share = &mut self.shares[*who];
            share.turns_entitled += due.turn;
            share.first_words_entitled += due.first;
            share.last_words_entitled += due.last;
            share.first_words += u64::from(first == Some(*who));
            share.last_words += u64::from(last == Some(*who));
            share.use_entitled += entitled;
            counted.silence += 1;
            if turn.is_some() {
                share.turns += 1;
                counted.silence = 0;
            } else if candidate.skipped >= sample.cards.skips_max {
                self.left_out += 1;
            }
            share.longest_silence = share.longest_silence.max(counted.silence);
            if let Some(at) = turn.and_then(|turn| turn.at_secs) {
                let before = self.since.insert(*who, at);
                self.waits.extend(before.map(|before| at - before));
            }
        }
    }

    /// Returns the rows that have a threshold.
    #[expect(
        clippy::too_many_lines,
        reason = "one row after the other, in the order of the table"
    )]
    fn rows(&self, look: Look) -> Vec<Row> {
        let p_of = |trials: &Trials| match look {
            Look::Once => trials.p(),
            Look::Running => trials.p_anytime(),
        };
        let mut rows = vec![row(
            "mean_place",
            "mean place",
            level::PLACE,
            self.counted
                .iter()
                .zip(&self.names)
                .filter_map(|(c, name)| {
                    let places = &c.places;
                    let p = match look {
                        Look::Once => places.p(),
                        Look::Running => places.p_anytime(),
                    };
                    let n = places.cycles as f64;
                    let mean = places.sum / n;
                    (places.variance > 0.0).then(|| Found {
                        agent: name.clone(),
                        value: mean,
                        entitled: mean - places.off / n,
                        p,
                        visible: None,
                    })
                }),
        )];
        rows.push(row(
            "places",
            "each place",
            level::PLACES,
            self.places(&p_of),
        ));
        let of = |pick: fn(&Counted) -> &Trials, visible: f64| {
            let level = visible / self.names.len().max(1) as f64;
            let found = self.counted.iter().zip(&self.names).map(move |(c, name)| {
                let trials = pick(c);
                (name.clone(), trials, level)
            });
            found.filter_map(|(name, trials, level)| Found::of(name, trials, &p_of, level))
        };
        rows.push(row(
            "first_places",
            "first places",
            level::PLACES,
            of(|c| &c.first_place, level::PLACES),
        ));
        rows.push(row(
            "neighbors",
            "neighbors",
            level::NEIGHBORS,
            self.neighbors(&p_of),
        ));
        for (key, name, line, pick) in [
            (
                "turns",
                "turns",
                level::TURNS,
                (|c| &c.turns) as fn(&Counted) -> &Trials,
            ),
            ("first_words", "first words", level::WORDS, |c| &c.first),
            ("last_words", "last words", level::WORDS, |c| &c.last),
        ] {
            rows.push(row(key, name, line, of(pick, line)));
        }
        for (at, key, name) in [
            (0, "posts", "posts"),
            (1, "words", "words"),
            (2, "tokens", "tokens"),
            (3, "threads", "threads opened"),
        ] {
            rows.push(self.use_row(at, key, name, look));
        }
        rows.push(self.silence_row());
        rows
    }

    /// Compares each agent in each position. First positions have their own row and share its level.
    fn places(&self, p_of: &impl Fn(&Trials) -> f64) -> Vec<Found> {
        let mut found = Vec::new();
        let mut sizes_of: BTreeMap<usize, BTreeMap<usize, u64>> = BTreeMap::new();
        for (set, cycles) in &self.sets {
            for who in set {
                let sizes = sizes_of.entry(*who).or_default();
                *sizes.entry(set.len()).or_default() += cycles;
            }
        }
        for (who, sizes) in sizes_of {
            let name = &self.names[who];
            let most = sizes.keys().copied().max().unwrap_or(0);
            for place in 0..most {
                let mut trials = Trials::default();
                for (n, cycles) in sizes.range(place + 1..) {
                    trials.add_many(1.0 / *n as f64, *cycles, 0);
                }
                if trials.count() > 0 {
                    trials.hits = self.cells.get(&(who, place)).copied().unwrap_or(0);
                }
                let label = format!("{name} in place {}", place + 1);
                found.extend(Found::of(label, &trials, p_of, 0.0));
            }
        }
        found
    }

    /// Compares how often each agent came right after each other.
    fn neighbors(&self, p_of: &impl Fn(&Trials) -> f64) -> Vec<Found> {
        let mut found = Vec::new();
        let mut together: BTreeMap<(usize, usize), Trials> = BTreeMap::new();
        for (set, cycles) in &self.sets {
            for one in set {
                for other in set.iter().filter(|other| *other != one) {
                    let trials = together.entry((*one, *other)).or_default();
                    trials.add_many(1.0 / set.len() as f64, *cycles, 0);
                }
            }
        }
        for ((one, other), mut trials) in together {
            trials.hits = self.pairs.get(&(one, other)).copied().unwrap_or(0);
            let label = format!("{} after {}", self.names[other], self.names[one]);
            found.extend(Found::of(label, &trials, p_of, 0.0));
        }
        // Among equal pairs, the first by name is shown.
        found.sort_by(|a, b| a.agent.cmp(&b.agent));
        found
    }

    fn use_row(&self, at: usize, key: &'static str, name: &'static str, look: Look) -> Row {
        let used = self.counted.iter().zip(&self.names);
        let mut row = row(
            key,
            name,
            level::USE,
            used.filter_map(|(c, name)| {
                let used = &c.used[at];
                let all = used.all as f64;
                (used.all > 0).then(|| Found {
                    agent: name.clone(),
                    value: used.own as f64 / all,
                    entitled: used.entitled / all,
                    p: used.p(look),
                    visible: None,
                })
            }),
        );
        if row.p == Some(1.0) {
            // If no agent exceeds the bound, the one with the highest use relative to its share is shown.
            let ratio = |c: &Counted| c.used[at].own as f64 / c.used[at].entitled.max(1e-9);
            let most = self.counted.iter().zip(&self.names);
            let most = most
                .filter(|(c, _)| c.used[at].all > 0)
                .max_by(|a, b| ratio(a.0).total_cmp(&ratio(b.0)));
            if let Some((c, name)) = most {
                let used = &c.used[at];
                row.agent = Some(name.clone());
                row.value = Some(used.own as f64 / used.all as f64);
                row.entitled = Some(used.entitled / used.all as f64);
            }
        }
        row
    }

    fn silence_row(&self) -> Row {
        let longest = self.shares.iter().max_by_key(|s| s.longest_silence);
        Row {
            key: "longest_silence",
            name: "longest silence, in cycles",
            agent: longest.map(|s| s.agent.clone()),
            value: longest.map(|s| s.longest_silence as f64),
            entitled: None,
            p: None,
            line: None,
            pass: longest.map(|_| self.left_out == 0),
            visible: None,
        }
    }

    /// Returns the rows that are only reported.
    fn reports(&self) -> Vec<Row> {
        let given = &self.given;
        let report = |key, name, value: Option<f64>| Row {
            key,
            name,
            agent: None,
            value,
            entitled: None,
            p: None,
            line: None,
            pass: None,
            visible: None,
        };
        let mut waits = self.waits.clone();
        waits.sort_by(f64::total_cmp);
        let last = waits.len().saturating_sub(1);
        let p95 = waits.get((last as f64 * 0.95).round() as usize);
        let total: u64 = given.values().sum();
        let both: u64 = given
            .iter()
            .map(|((a, b), n)| (*n).min(given.get(&(*b, *a)).copied().unwrap_or(0)))
            .sum();
        let most = self.shares.iter().map(|s| s.answered).max().unwrap_or(0);
        let of_all = |n: u64| (total > 0).then(|| n as f64 / total as f64);
        vec![
            report("wait_p95_secs", "wait, 95 of 100 turns, in s", p95.copied()),
            report("reciprocity", "answers that were returned", of_all(both)),
            report(
                "influence_max",
                "answers to the most answered",
                of_all(most),
            ),
        ]
    }

    fn agents(&self) -> Vec<Share> {
        let mut shares = self.shares.clone();
        for (share, counted) in shares.iter_mut().zip(&self.counted) {
            let n = share.cycles.max(1) as f64;
            share.place = counted.places.sum / n;
            [share.posts, share.words, share.tokens, share.threads] =
                [0, 1, 2, 3].map(|at| counted.used[at].own);
            share.place_entitled /= n;
            let posts = &counted.used[0];
            share.posts_share = posts.own as f64 / posts.all.max(1) as f64;
            share.use_entitled = match counted.used[0].all {
                0 => share.use_entitled / n,
                all => counted.used[0].entitled / all as f64,
            };
        }
        shares.sort_by(|a, b| a.agent.cmp(&b.agent));
        shares
    }
}

/// Returns the usage of an agent in a turn.
type Use = fn(&Turn<'_>) -> u64;

/// One comparison of a row.
struct Found {
    agent: String,
    value: f64,
    entitled: f64,
    p: f64,
    visible: Option<f64>,
}

impl Found {
    /// Creates a comparison from a count as a share of its trials. `level` is the level of this comparison alone, if
    /// the smallest detectable excess is wanted.
    fn of(
        agent: String,
        trials: &Trials,
        p_of: &impl Fn(&Trials) -> f64,
        level: f64,
    ) -> Option<Self> {
        let n = trials.count() as f64;
        (n > 0.0).then(|| Self {
            agent,
            value: trials.hits as f64 / n,
            entitled: trials.expected() / n,
            p: p_of(trials),
            visible: (level > 0.0).then(|| trials.visible(level)).flatten(),
        })
    }
}

/// Builds a row from its comparisons: the most extreme one, with the level divided among all (Bonferroni).
fn row(
    key: &'static str,
    name: &'static str,
    line: f64,
    found: impl IntoIterator<Item = Found>,
) -> Row {
    let (mut count, mut visible, mut strangest) = (0_u32, None::<f64>, None::<Found>);
    for one in found {
        count += 1;
        visible = match (visible, one.visible) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        if strangest.as_ref().is_none_or(|known| one.p < known.p) {
            strangest = Some(one);
        }
    }
    let p = strangest
        .as_ref()
        .map(|one| (one.p * f64::from(count)).min(1.0));
    Row {
        key,
        name,
        value: strangest.as_ref().map(|one| one.value),
        entitled: strangest.as_ref().map(|one| one.entitled),
        agent: strangest.map(|one| one.agent),
        p,
        line: Some(line),
        pass: p.map(|p| p >= line),
        visible,
    }
}

#[cfg(test)]
mod laws;
