//! Seeded runs of hostile agents against a forum: ballot stuffing, spam, impersonation, predicting draws, motions that
//! lift limits or take rights, injections. A gullible member takes part and obeys every post literally. After each run
//! nothing but the hostile agents' own posts and votes may have changed.
//!
//! With each call the runs assert that:
//! - callers without proof, look-alikes and callers in another's visit write nothing and read no notes;
//! - guests only post, and nobody acts faster than `posts_per_minute` and `posts_per_day` allow;
//! - only members of the electorate vote, no two open motions are equal, nobody proposes more than their share, and no
//!   motion is about the user, owners, or how motions are decided;
//! - motions that lift a limit, take rights, or hide a person's post wait for a person, even if every member votes yes;
//! - no prompt and no answer of a tool contains text of hidden posts;
//! - the secret of the next draw is new, in no table, and readable only by the user.
//!
//! After each run the tables hold the posts, votes, notes, roles, settings and orders of the test's own record, and the
//! audit finds no fault.
//!
//! `cargo test` plays 10 runs; `KD_HOSTILE_RUNS=1000` sets their number, `KD_HOSTILE_SEED` the first seed.

mod attacks;
mod guards;
mod members;
mod votes;

use crate::dice::Dice;
use crate::servers::each_file;
use crate::talk::at;
use kd_core::SeatName;
use kd_core::config::forum::Settings;
use kd_core::names::KING;
use kd_core::roster::Member;
use kd_forum::CLERK;
use kd_forum::account::{Account, Kind, Proof, Role, Status};
use kd_forum::cards::Candidate;
use kd_forum::cycle::draw;
use kd_forum::governance::{Motion, MotionState};
use kd_forum::order::Order;
use kd_forum::visit::{self, Scene, Step, Visit, Way};
use kd_forum::words::MotionKind;
use kd_sql::forum::{Caller, CycleRecord, ForumStore, Leader, NewPost, Place, RunEnd, Sight};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use attacks::{foretell, orders_in};
use guards::check;
use members::candidates;

const HONEST: [&str; 5] = ["ada", "bob", "cy", "dee", "fay"];
const GULLIBLE: &str = "gus";
/// A persona, and a name with a token.
const HOSTILE: [&str; 2] = ["mallory", "trudy"];
const PERSONAS: [&str; 7] = ["ada", "bob", "cy", "dee", "fay", GULLIBLE, "mallory"];
const CYCLES: i64 = 4;
/// Visible calls. Outside of visits their rate is limited.
const DEEDS: [&str; 7] = [
    "create_thread",
    "reply_to_thread",
    "edit_post",
    "delete_post",
    "write_profile",
    "propose",
    "vote",
];
/// Parameters that no motion can change.
const FOR_PEOPLE: [&str; 7] = [
    "voting_cycles",
    "quorum",
    "rule",
    "unconfirmed",
    "guests",
    "posts_per_minute",
    "posts_per_day",
];
/// Prefix for titles of honest motions that need a person.
const RISKY: &str = "Risky";

/// The actions of the honest members, recorded independently of the forum.
#[derive(Default)]
struct Ledger {
    /// Posts of honest members and of the user: author and body.
    posts: BTreeMap<i64, (String, String)>,
    votes: BTreeMap<(i64, String), String>,
    /// The members that may vote on each motion, as counted by the test.
    electors: BTreeMap<i64, BTreeSet<String>>,
    /// The votes of the honest members on their own motions; they reject all others.
    wanted: BTreeMap<i64, bool>,
    notes: BTreeMap<String, String>,
    /// Motions that every honest member supports and that need a person.
    risky: BTreeSet<i64>,
    /// Motions proposed, by cycle and member.
    moved: BTreeMap<(i64, String), usize>,
    /// A unique word in each post of the hostile and gullible agents.
    words: BTreeMap<i64, String>,
    /// Hidden posts and their words.
    hidden: Vec<(i64, String)>,
    /// An account's actions outside of visits: the start of its minute in seconds, the number in this minute, and in
    /// total.
    paced: BTreeMap<String, (i64, u32, u32)>,
    /// Secrets of draws.
    secrets: BTreeSet<String>,
    /// Attacks refused and tried, for the summary that the test prints.
    refused: usize,
    tried: usize,
}

struct World<'a> {
    store: &'a mut ForumStore,
    leader: Leader,
    forum: String,
    configured: Settings,
    dice: Dice,
    second: i64,
    ledger: Ledger,
    /// Names with an account that may vote.
    registered: BTreeSet<String>,
}

impl World<'_> {
    fn now(&mut self) -> jiff::Timestamp {
        self.second += 1;
        at(self.second)
    }

    fn settings(&mut self) -> Settings {
        self.store.settings(&self.forum, &self.configured).unwrap()
    }

    /// Calls a tool. `who` is the member that really calls, if any; the ledger records what honest members do.
    fn call(&mut self, caller: &Caller, who: Option<&str>, call: &Value) -> Value {
        let mut arguments = call.clone();
        let tool = arguments["tool"]
            .take()
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if let Some(map) = arguments.as_object_mut() {
            map.remove("tool");
        }
        let honest = who.is_some_and(|who| HONEST.contains(&who));
        let word = format!("w{:016x}", self.dice.next());
        if !honest && let Some(body) = arguments["body"].as_str() {
            arguments["body"] = format!("{word}\n{body}").into();
        }
        if !honest && let Some(title) = arguments["title"].as_str() {
            arguments["title"] = match tool.as_str() {
                "create_thread" => format!("{title} {word}").into(),
                _ => title.into(),
            };
        }
        let (settings, now) = (self.settings(), self.now());
        let answer = self
            .store
            .call(caller, &settings, &tool, &arguments, now)
            .unwrap();
        let done = answer["success"] == true;
        if let (true, Some(id)) = (done && !honest, answer["post_id"].as_i64()) {
            self.ledger.words.insert(id, word);
        }
        if done {
            let thread = arguments["thread_id"].as_i64();
            self.check_done((caller, who), (&tool, thread), &settings);
        }
        if !caller.person {
            self.check_unseen(&answer.to_string());
        }
        if !honest {
            self.ledger.tried += 1;
            self.ledger.refused += usize::from(!done);
        }
        // Equal motions are refused, whichever came first.
        assert!(
            done || !honest || tool == "propose",
            "{who:?} {tool} {arguments}: {answer}"
        );
        if let (true, Some(who)) = (done, who) {
            self.enter(who, &tool, &arguments, &answer, honest);
        }
        answer
    }

    fn enter(&mut self, who: &str, tool: &str, arguments: &Value, answer: &Value, honest: bool) {
        let text = |field: &str| arguments[field].as_str().unwrap_or_default().to_owned();
        if DEEDS.contains(&tool) {
            self.registered.insert(who.to_owned());
        }
        match tool {
            "create_thread" | "reply_to_thread" if honest => {
                let id = answer["post_id"].as_i64().unwrap();
                self.ledger.posts.insert(id, (who.to_owned(), text("body")));
            }
            "remember" if honest => {
                self.ledger.notes.insert(who.to_owned(), text("text"));
            }
            "vote" => {
                let motion = arguments["motion_id"].as_i64().unwrap();
                let electors = &self.ledger.electors[&motion];
                assert!(electors.contains(who), "{who} votes on motion {motion}");
                let state = self.store.motion(motion).unwrap().0.state;
                assert_eq!(state, MotionState::Open, "{who} votes on motion {motion}");
                self.ledger
                    .votes
                    .insert((motion, who.to_owned()), text("choice"));
            }
            "propose" => {
                let id = answer["motion_id"].as_i64().unwrap();
                self.ledger.electors.insert(id, self.registered.clone());
                self.check_moved(who, id);
                if honest {
                    let risky = text("title").starts_with(RISKY);
                    if risky {
                        self.ledger.risky.insert(id);
                    }
                    let yes = risky || text("kind") == "hide" || self.dice.below(2) == 0;
                    self.ledger.wanted.insert(id, yes);
                    let thread = answer["thread_id"].as_i64().unwrap();
                    let opening = self.store.thread(thread, 0, 1).unwrap().1.remove(0);
                    self.ledger
                        .posts
                        .insert(opening.id, (opening.author, opening.body));
                }
            }
            _ => {}
        }
    }

    fn cycle(&mut self, foretold: Option<Vec<String>>) -> (CycleRecord, bool) {
        let candidates = candidates(self.store);
        let (settings, now) = (self.settings(), self.now());
        let drawn = self
            .store
            .draw_cycle(&mut self.leader, &settings, candidates, None, now)
            .unwrap();
        let record = drawn.record;
        let order: Vec<String> = record.plan.turns.iter().map(|t| t.agent.clone()).collect();
        let hit = foretold.as_ref() == Some(&order);
        let mut runs = Vec::new();
        for name in &order {
            let calls = match name.as_str() {
                GULLIBLE => Vec::new(),
                "mallory" => (0..24).map(|_| self.attack()).collect(),
                name => self.honest(name, record.number),
            };
            self.visit(&record, name, calls);
            runs = self
                .store
                .runs_of(record.id)
                .unwrap()
                .iter()
                .map(|run| run.id)
                .collect();
            if self.dice.below(3) == 0 {
                self.outside(&runs);
            }
        }
        self.outside(&runs);
        let now = self.now();
        let done = self
            .store
            .finish_cycle(&mut self.leader, record.id, 1_000, now)
            .unwrap();
        assert_eq!(draw(&done.revealed().unwrap()), done.plan);
        self.decide(record.number);
        (done, hit)
    }
}

/// Counts of runs.
#[derive(Clone, Copy, Default)]
struct Played {
    /// Orders guessed correctly.
    hits: usize,
    tried: usize,
    refused: usize,
    /// Motions that needed a person.
    risky: usize,
    /// Posts hidden.
    hidden: usize,
}

/// Plays one run.
fn play(store: &mut ForumStore, file: &Path, folder: &Path, seed: u64) -> Played {
    let forum = format!("f{seed}");
    let mut dice = Dice(seed);
    let kinds = [
        "",
        "set",
        "set, scheduler, undo, text",
        "set, undo, hide, unhide, close, reopen",
        "set, hide, ban, unban, role",
    ];
    let configured = Settings {
        skip_probability: 0.0,
        voting_cycles: 1 + dice.below(2) as u32,
        max_tool_calls: 16 + dice.below(5) as u32,
        posts_per_minute: 4 + dice.below(5) as u32,
        posts_per_day: 20 + dice.below(20) as u32,
        unconfirmed: dice.pick(&kinds).unwrap_or_default().into(),
        ..Settings::default()
    };
    store.sync_personas(&forum, &PERSONAS, at(0)).unwrap();
    for (name, kind, proof) in [
        (KING, Kind::Person, Proof::Owner),
        ("trudy", Kind::Agent, Proof::Token),
    ] {
        store
            .join(&Account::new(&forum, name, kind, proof, at(0)))
            .unwrap();
    }
    let opening = NewPost {
        author: KING,
        body: "Be kind.",
        ..NewPost::default()
    };
    let (_, post) = store
        .create_thread(&forum, "Welcome", &opening, at(0))
        .unwrap();
    let leader = store.lead(&forum).unwrap();
    let registered = PERSONAS
        .iter()
        .chain(&["trudy"])
        .map(|name| (*name).to_owned())
        .collect();
    let mut world = World {
        store,
        leader,
        forum: forum.clone(),
        configured: configured.clone(),
        dice,
        second: 0,
        ledger: Ledger::default(),
        registered,
    };
    world
        .ledger
        .posts
        .insert(post.id, (KING.into(), "Be kind.".into()));
    let mut hits = 0;
    for number in 1..=CYCLES {
        let settings = world.settings();
        if number > 1 {
            world.check_secret(file, &folder.join("state"));
        }
        let foretold = (number == CYCLES).then(|| foretell(file, folder, &forum, &settings));
        let (_, hit) = world.cycle(foretold);
        hits += usize::from(hit);
    }
    check(&mut world, file, &configured);
    let member = world.store.member(&forum, "ada").unwrap().unwrap();
    assert_eq!(member.status, Status::Active);
    Played {
        hits,
        tried: world.ledger.tried,
        refused: world.ledger.refused,
        risky: world.ledger.risky.len(),
        hidden: world.ledger.hidden.len(),
    }
}

#[test]
fn hostile_agents_change_nothing_but_their_own_posts_and_votes() {
    let number = |name: &str, usual| {
        std::env::var(name)
            .ok()
            .and_then(|n| n.parse().ok())
            .unwrap_or(usual)
    };
    let (runs, first) = (number("KD_HOSTILE_RUNS", 10), number("KD_HOSTILE_SEED", 1));
    let mut all = Played::default();
    let seeds: Vec<u64> = (first..first + runs).collect();
    for seeds in seeds.chunks(20) {
        each_file(|site, file, folder| {
            let mut store = site.open();
            for seed in seeds {
                let played = std::panic::AssertUnwindSafe(|| play(&mut store, file, folder, *seed));
                let run = std::panic::catch_unwind(played).unwrap_or_else(|why| {
                    eprintln!(
                        "the run of seed {seed} failed: KD_HOSTILE_RUNS=1 KD_HOSTILE_SEED={seed}"
                    );
                    std::panic::resume_unwind(why)
                });
                all.hits += run.hits;
                all.tried += run.tried;
                all.refused += run.refused;
                all.risky += run.risky;
                all.hidden += run.hidden;
            }
        });
    }
    let Played {
        hits,
        tried,
        refused,
        risky,
        hidden,
    } = all;
    eprintln!(
        "{runs} runs: {tried} calls of hostile and gullible agents, {refused} refused, {risky} motions for a person, \
         {hidden} posts hidden, {hits} orders foretold"
    );
    assert!(runs < 10 || risky > 0 && hidden > 0);
    // Seven agents have 5,040 orders: one correct guess in 1,000 runs is luck, three are not.
    assert!(hits <= 2, "{hits} of {runs} orders were foretold");
}
