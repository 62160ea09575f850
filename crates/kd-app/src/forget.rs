//! Forgets threads: finds their traces, and removes the traces in files of `kd`.

mod elsewhere;
mod posts;

pub use elsewhere::Elsewhere;
pub use kd_store::forget::{Busy, Found, Job, Scope};

use crate::env::Env;
use crate::error::UserError;
use crate::review::{self, Reviews};
use kd_core::config::Config;
use kd_core::{ThreadId, Timestamp};
use kd_sql::batch::{self, BatchesFile};
use kd_sql::forget::MarksFile;
use kd_sql::forum::ForumTexts;
use kd_sql::marks;
use kd_store::forget::{self, Holder};
use kd_store::user_dirs::project_key;
use kd_store::{Layout, Place};
use std::time::Duration;

/// The places that may hold something of a project's threads.
pub struct Holders {
    layout: Layout,
    reviews: Option<Reviews>,
    marks: Option<MarksFile>,
    batches: Option<BatchesFile>,
    forums: Vec<ForumTexts>,
    /// Forums that cannot be searched.
    unsearched: Vec<Elsewhere>,
    /// Whether posts that repeat a thread are erased with it.
    posts: bool,
}

/// A thread to forget, or a message of a thread, and the traces that were found.
pub struct Traced<'h> {
    /// The thread.
    pub place: Place,
    /// The message; `None` is the whole thread.
    pub message: Option<u32>,
    /// What forgets it.
    pub job: Job<'h>,
    /// What would be removed.
    pub found: Vec<Found>,
    /// Remaining messages that quote it.
    pub quotes: Vec<(ThreadId, u32)>,
}

/// The findings for several threads.
#[derive(Default)]
pub struct Traces<'h> {
    /// The threads that can be forgotten.
    pub threads: Vec<Traced<'h>>,
    /// Those in use, with the reason.
    pub busy: Vec<(ThreadId, Busy)>,
}

impl Holders {
    /// Finds the places of a project. `posts`: posts of its forums that repeat a thread are erased with it.
    ///
    /// # Errors
    /// The working folder is unknown.
    pub fn open(
        layout: Layout,
        config: &Config,
        posts: bool,
        env: &Env,
    ) -> Result<Self, UserError> {
        let dirs = env.user_dirs();
        let batches = batch::path(&dirs, &project_key(layout.root()));
        let (forums, unsearched) = posts::forums(config, &layout, env)?;
        Ok(Self {
            reviews: review::reviews(env).ok(),
            marks: marks::path(&dirs).ok().map(MarksFile::new),
            batches: batches.ok().map(BatchesFile::new),
            layout,
            forums,
            unsearched,
            posts,
        })
    }

    /// Returns the project.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn all(&self) -> Vec<&dyn Holder> {
        let marks = self.marks.iter().map(|file| file as &dyn Holder);
        let batches = self.batches.iter().map(|file| file as &dyn Holder);
        let erased = self.forums.iter().filter(|_| self.posts);
        marks
            .chain(batches)
            .chain(erased.map(|forum| forum as &dyn Holder))
            .collect()
    }

    /// Finds the traces of threads, or of one message of each thread. With `copies`, the copies of its messages in
    /// forks are forgotten, too.
    ///
    /// # Errors
    /// A place cannot be read, or a thread has no such message.
    pub fn look(
        &self,
        places: Vec<Place>,
        message: Option<u32>,
        copies: bool,
    ) -> Result<Traces<'_>, UserError> {
        let mut all: Vec<(Place, Option<u32>)> = Vec::new();
        for place in places {
            // Threads that asked the same question again are deleted with it completely: any of their messages may repeat
            // the question.
            let again = match &self.batches {
                Some(file) => file.again(&place.id.0, self.layout.batch_threads()?)?,
                None => Vec::new(),
            };
            all.push((place, message));
            all.extend(again.into_iter().map(|place| (place, None)));
        }
        let mut traces = Traces::default();
        for (place, message) in all {
            let reviews = self.reviews.as_ref();
            let job = Job::new(&self.layout, reviews, self.all(), &place, message, copies)?;
            match job.busy()? {
                Some(busy) => traces.busy.push(busy),
                None => traces.threads.push(Traced {
                    found: job.look()?,
                    quotes: job.quotes()?,
                    message,
                    place,
                    job,
                }),
            }
        }
        Ok(traces)
    }

    /// Returns possible copies of these threads that are not removed.
    ///
    /// # Errors
    /// A file of batches or a forum cannot be read.
    pub fn stays(&self, threads: &[Traced<'_>], env: &Env) -> Result<Vec<Elsewhere>, UserError> {
        let places: Vec<&Place> = threads
            .iter()
            .flat_map(|one| one.job.targets().iter().map(|target| &target.place))
            .collect();
        let mut stays = Vec::new();
        if !places.is_empty() {
            stays.clone_from(&self.unsearched);
            stays.extend(elsewhere::found(&self.layout, &places, env));
        }
        for place in &places {
            let batch = self.batches.as_ref();
            if let Some(batch) = batch.and_then(|file| file.of_fleet(&place.path)) {
                let short = batch.strip_prefix("batch-").unwrap_or(&batch);
                stays.push(Elsewhere {
                    path: place.path.clone(),
                    why: format!(
                        "it came from a database, which keeps it: kd batch forget {short} --store URL"
                    ),
                });
            }
            let outputs = self.batches.as_ref().map(|file| file.outputs(&place.id.0));
            for path in outputs.transpose()?.unwrap_or_default() {
                stays.push(Elsewhere {
                    path,
                    why: "your file of results has its answer; `kd batch run` writes it again without it"
                        .to_owned(),
                });
            }
        }
        if !self.posts {
            let jobs = threads.iter().map(|one| &one.job);
            stays.extend(posts::kept(&self.forums, jobs)?);
        }
        Ok(stays)
    }
}

/// Returns the threads of a project without activity for at least `age`.
///
/// # Errors
/// The threads cannot be read.
pub fn older(layout: &Layout, age: Duration) -> Result<Vec<Place>, UserError> {
    let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
    let before = Timestamp::now().as_second().saturating_sub(seconds);
    let mut places = Vec::new();
    for place in layout.all_threads(true)? {
        // A thread of unknown age is not old.
        if forget::newest(&place)?.is_some_and(|at| at.as_second() < before) {
            places.push(place);
        }
    }
    Ok(places)
}
