//! `kd forum tui`: what the reader of `kd-tui` asks of the store.

use super::super::here::Here;
use super::Site;
use crate::args::forum::Tui;
use crate::error::Error;
use crate::exit::Exit;
use kd_core::forum::words::{Post, Thread};
use kd_store::forum::{ForumError, ForumStore};
use kd_tui::forum::{Library, Looks, Reader};
use kd_tui::theme::{Choice, Depth, Theme, depth, ground};
use std::io::{IsTerminal, stdin, stdout};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Threads that are listed.
const THREADS: i64 = 500;
/// Posts that are read at once.
const PAGE: i64 = 1000;
/// The most posts of a thread that are held.
const POSTS_MAX: usize = 20_000;

pub(super) fn run(args: &Tui, here: &Here) -> Result<(), Error> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(
            Error::usage("the reader needs a terminal").next("kd forum read, kd forum watch")
        );
    }
    let site = Site::open(&args.place, here)?;
    let env = |name: &str| here.var(name);
    let styles = here.out_styles();
    let shade = if styles.color {
        depth(&env)
    } else {
        Depth::None
    };
    let looks = Looks {
        theme: Theme::new(Choice::Auto, shade, ground(&env)),
        styles,
        zone: jiff::tz::TimeZone::system(),
    };
    let failed =
        |e: std::io::Error| Error::new("io", Exit::Error, "no thread could be started").because(e);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(failed)?;
    let reader = Reader::new(&site.forum, looks);
    let shelf = Shelf {
        forum: site.forum,
        store: Mutex::new(site.store),
    };
    let ended = runtime.block_on(kd_tui::forum::run(reader, Arc::new(shelf)));
    runtime.shutdown_timeout(Duration::from_millis(500));
    ended.map_err(|e| {
        Error::new("terminal", Exit::Error, "the terminal cannot be used")
            .because(e)
            .next("kd forum read and kd forum watch work everywhere")
    })
}

/// The store, as the reader sees it.
struct Shelf {
    forum: String,
    store: Mutex<ForumStore>,
}

impl Shelf {
    fn ask<T>(
        &self,
        what: impl FnOnce(&mut ForumStore) -> Result<T, ForumError>,
    ) -> Result<T, String> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        what(&mut store).map_err(|e| format!("{e}; {}", e.hint()))
    }
}

impl Library for Shelf {
    fn threads(&self) -> Result<Vec<Thread>, String> {
        self.ask(|store| store.threads(&self.forum, THREADS))
    }

    fn posts(&self, thread: i64, after: i64) -> Result<Vec<Post>, String> {
        self.ask(|store| {
            let mut all = Vec::new();
            let mut after = after;
            loop {
                let (_, page) = store.thread(thread, after, PAGE)?;
                let full = page.len() == PAGE as usize;
                all.extend(page);
                match all.last() {
                    Some(last) if full && all.len() < POSTS_MAX => after = last.id,
                    _ => return Ok(all),
                }
            }
        })
    }
}
