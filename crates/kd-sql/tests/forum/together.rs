//! Several processes on one store: they start and write at the same time, and nothing is lost or skipped.
//!
//! `KD_TEST_POSTS=10000` sets the number of posts per process; without it, ten thousand are shared among them.

use crate::servers::{Site, each};
use crate::talk::{at, by};
use kd_forum::MAIN;
use kd_sql::forum::{ForumStore, Place};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

const PROCESSES: usize = 8;
const PLACE: &str = "KD_TEST_FORUM_PLACE";

fn posts_each() -> usize {
    std::env::var("KD_TEST_POSTS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(10_000 / PROCESSES)
}

/// The code of each process: the test program itself, running only this test.
#[test]
fn writer() {
    let Ok(place) = std::env::var(PLACE) else {
        return;
    };
    let me = format!("writer-{}", std::process::id());
    let mut store =
        ForumStore::open(&Place::parse(&place, std::path::Path::new("/")), None).expect("it opens");
    let shared = store.threads(MAIN, 1).expect("read").first().map(|t| t.id);
    let mut own = None;
    for number in 0..posts_each() {
        let body = format!("{me} {number}");
        match (number % 3, own, shared) {
            (0, Some(thread), _) | (_, _, Some(thread)) if number > 0 => {
                store
                    .reply(thread, &by(&me, &body), at(1))
                    .expect("written");
            }
            _ => {
                own = Some(
                    store
                        .create_thread(MAIN, &me, &by(&me, &body), at(1))
                        .expect("written")
                        .0
                        .id,
                )
            }
        }
    }
}

fn write_together(site: &Site) {
    let place = match &site.place {
        Place::File(path) => path.display().to_string(),
        Place::Server(url) => url.clone(),
    };
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(std::env::current_exe().expect("this program"))
                .args(["--exact", "together::writer", "--quiet"])
                .env(PLACE, &place)
                .stdout(Stdio::null())
                .spawn()
                .expect("it starts")
        })
        .collect();
    // A reader follows by its position meanwhile, as live views and agents do: it must not miss a number that arrives
    // late.
    let mut store = None;
    let mut followed = BTreeSet::new();
    let mut mark = 0;
    let mut children = children;
    loop {
        let running = children
            .iter_mut()
            .any(|c| c.try_wait().expect("waited").is_none());
        let store = store.get_or_insert_with(|| site.open());
        loop {
            let more = store.posts_after(MAIN, mark, 1000).expect("read");
            let Some(last) = more.last() else { break };
            mark = last.id;
            followed.extend(more.iter().map(|post| post.body.clone()));
        }
        if !running {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    for mut child in children {
        assert!(child.wait().expect("waited").success());
    }
    let wanted = PROCESSES * posts_each();
    let mut store = site.open();
    let mut bodies = BTreeSet::new();
    let (mut after, mut count) = (0, 0);
    loop {
        let page = store.posts_after(MAIN, after, 5000).expect("read");
        let Some(last) = page.last() else { break };
        after = last.id;
        count += page.len();
        bodies.extend(page.into_iter().map(|post| post.body));
    }
    assert_eq!(
        (count, bodies.len()),
        (wanted, wanted),
        "none lost, none doubled"
    );
    assert_eq!(followed, bodies, "none passed over by a reader's mark");
    let counted: i64 = store
        .threads(MAIN, 100_000)
        .expect("read")
        .iter()
        .map(|t| t.post_count)
        .sum();
    assert_eq!(counted as usize, wanted, "each thread knows its number");
}

#[test]
fn eight_processes_write_into_one_new_store() {
    each(write_together);
}
