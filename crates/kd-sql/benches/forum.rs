//! Measures a forum with a million posts and ten thousand agents: what is new to an agent, a post, a search.
//!
//! `cargo bench -p kd-sql --bench forum` fills an SQLite file and, if `KD_TEST_POSTGRES_URL` names a server, a schema
//! there (`-- postgres`: only there); `KD_BENCH_POSTS=20000` makes it small. Each figure is printed beside a lower
//! bound from the same run: reading one row by its number (of a row that does not exist, so nothing is built from it).
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench has no readers of its interface, and may panic as a test may"
)]

use jiff::Timestamp;
use kd_forum::MAIN;
use kd_forum::words::{Post, SearchIn, Thread};
use kd_sql::forum::{ForumStore, Governance, NewPost, Place, Record, Repeat};
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::time::{Duration, Instant};

const AGENTS: u64 = 10_000;
/// Posts per thread.
const DEPTH: u64 = 20;
/// Number of timed calls.
const CALLS: usize = 2_000;
const WRITES: usize = 1_000;

/// SplitMix64: the same forum in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// The forum as lines of an export, generated while they are read.
struct Lines {
    posts: u64,
    at: u64,
    agents: u64,
    dice: Dice,
    ready: VecDeque<u8>,
    first: bool,
}

impl Lines {
    fn new(posts: u64) -> Self {
        Self {
            posts,
            at: 0,
            agents: 0,
            dice: Dice(1),
            ready: VecDeque::new(),
            first: true,
        }
    }

    fn put(&mut self, record: &Record) {
        let text = serde_json::to_vec(record).unwrap();
        self.ready.extend(text);
        self.ready.push_back(b'\n');
    }

    fn more(&mut self) {
        if std::mem::take(&mut self.first) {
            self.put(&Record::Forum { version: 1 });
        }
        if self.at < self.posts {
            let id = self.at + 1;
            let thread_id = (self.at / DEPTH + 1) as i64;
            let at = Timestamp::from_second(1_700_000_000 + id as i64).unwrap();
            let author = format!("agent-{}", self.dice.below(AGENTS));
            if self.at.is_multiple_of(DEPTH) {
                self.put(&Record::Thread(Thread {
                    id: thread_id,
                    forum: MAIN.into(),
                    title: format!("On matter {thread_id}"),
                    author: author.clone(),
                    created_at: at,
                    updated_at: at,
                    post_count: 0,
                    last_author: author.clone(),
                    last_post_id: 0,
                    deleted_at: None,
                    hidden_at: None,
                    closed_at: None,
                }));
            }
            let rare = self.dice.below(50_000);
            self.put(&Record::Post(Post {
                id: id as i64,
                thread_id,
                author,
                body: format!("I think of matter {thread_id} that word{rare} is what it comes to, all things considered, and that we should look again."),
                quote_post_id: None,
                quoted_post_body: None,
                quoted_author: None,
                created_at: at,
                edited_at: None,
                deleted_at: None,
                hidden_at: None,
                erased_at: None,
                run_id: None,
            }));
            self.at += 1;
        } else if self.agents < AGENTS {
            // Everyone's last visit was somewhere among the last hundredth of all posts.
            let post_id = (self.posts - self.dice.below(self.posts / 100 + 1)) as i64;
            let agent = format!("agent-{}", self.agents);
            self.put(&Record::Mark {
                agent,
                forum: MAIN.into(),
                post_id,
            });
            self.agents += 1;
        }
    }
}

impl Read for Lines {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(out)?;
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Lines {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.ready.is_empty() {
            self.more();
        }
        Ok(self.ready.make_contiguous())
    }

    fn consume(&mut self, n: usize) {
        self.ready.drain(..n);
    }
}

/// Returns the durations of calls, sorted.
fn times(calls: usize, mut call: impl FnMut(usize)) -> Vec<Duration> {
    let mut all: Vec<Duration> = (0..calls)
        .map(|i| {
            let began = Instant::now();
            call(i);
            began.elapsed()
        })
        .collect();
    all.sort();
    all
}

fn row(what: &str, times: &[Duration], floor: Duration) {
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let sum: Duration = times.iter().sum();
    println!(
        "  {what:<34} p50 {:>8.3} ms   p99 {:>8.3} ms   {:>8.0}/s   p50 / floor {:>6.1}",
        at(0.5).as_secs_f64() * 1e3,
        at(0.99).as_secs_f64() * 1e3,
        times.len() as f64 / sum.as_secs_f64(),
        at(0.5).as_secs_f64() / floor.as_secs_f64()
    );
}

fn measure(name: &str, place: &Place, posts: u64) {
    let began = Instant::now();
    let mut store = ForumStore::open(place, None).unwrap();
    store
        .import(&mut Lines::new(posts), Governance::InForce, Repeat::Refused)
        .unwrap();
    let took = began.elapsed().as_secs_f64();
    println!(
        "\n{name}: {posts} posts, {} threads, {AGENTS} agents; imported in {took:.1} s ({:.0} posts/s)",
        posts / DEPTH,
        posts as f64 / took
    );
    let mut dice = Dice(7);
    let mut run = |id: i64| drop(std::hint::black_box(store.run(id)));
    let floor = times(CALLS, |_| run(1));
    let floor = floor[floor.len() / 2];
    println!(
        "  floor: a look for one row by its number, p50 {:.3} ms",
        floor.as_secs_f64() * 1e3
    );
    let mut someone = || format!("agent-{}", dice.below(AGENTS));
    // Once each, so that no page is read from disk during a measurement.
    for _ in 0..200 {
        store.news(MAIN, &someone(), 8).unwrap();
    }
    let all = times(CALLS, |_| drop(store.news(MAIN, &someone(), 8).unwrap()));
    row("what is new to an agent", &all, floor);
    let all = times(CALLS, |i| {
        drop(store.news(MAIN, &format!("new-{i}"), 8).unwrap());
    });
    row("the same for one that never came", &all, floor);
    let now = Timestamp::now();
    let threads = posts / DEPTH;
    let mut pick = Dice(9);
    let all = times(WRITES, |_| {
        let post = NewPost {
            author: "writer",
            body: "One more word on this matter, which word77 told us.",
            ..NewPost::default()
        };
        store
            .reply(pick.below(threads) as i64 + 1, &post, now)
            .unwrap();
    });
    row("a post, on disk", &all, floor);
    let last = store.threads(MAIN, 1).unwrap()[0].last_post_id - 5;
    let all = times(CALLS, |_| {
        drop(store.posts_after(MAIN, last, 500).unwrap());
    });
    row("posts behind a number (watch)", &all, floor);
    let all = times(CALLS, |_| {
        let word = format!("word{}", pick.below(50_000));
        drop(store.search(MAIN, &word, SearchIn::All, 20).unwrap());
    });
    row("a search, rare word", &all, floor);
    let all = times(50, |_| {
        drop(
            store
                .search(MAIN, "matter considered", SearchIn::All, 20)
                .unwrap(),
        );
    });
    row("a search, words of every post", &all, floor);
}

fn main() {
    let posts = std::env::var("KD_BENCH_POSTS")
        .ok()
        .and_then(|n| n.parse().ok());
    let posts: u64 = posts.unwrap_or(1_000_000);
    let dir = tempfile::tempdir().unwrap();
    if std::env::args().all(|arg| arg != "postgres") {
        measure("SQLite", &Place::File(dir.path().join("forum.db")), posts);
    }
    if let Ok(url) = std::env::var("KD_TEST_POSTGRES_URL") {
        let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
        let fresh = "DROP SCHEMA IF EXISTS kd_bench CASCADE; CREATE SCHEMA kd_bench";
        client.batch_execute(fresh).unwrap();
        let joint = if url.contains('?') { '&' } else { '?' };
        let own = format!("{url}{joint}options=-csearch_path%3Dkd_bench");
        measure("PostgreSQL", &Place::Server(own), posts);
        client
            .batch_execute("DROP SCHEMA kd_bench CASCADE")
            .unwrap();
    }
}
