//! Reviews of changes: the change is read from git or from a diff, members report findings, and the report is stored.

mod change;
mod condition;
mod cost;
mod earlier;
mod git;
mod kinds;
mod names;
pub mod prose;
mod reading;
pub mod report;
mod request;
mod settings;
mod sides;
mod stored;

pub use condition::Condition;
pub use cost::Estimate;
pub use earlier::may_replace;
pub use request::{ChangeRequest, ReviewRequest};
pub use stored::{Mark, Reviews, Verdict, find, mark, read, reviews};

use self::change::Change;
use self::report::Kept;
use crate::council::{Opened, Started, clock_seed, held_event, names, new_layout};
use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use crate::process::sweep;
use crate::seating::REVIEW;
use crate::{ready, seating, secrets, trust};
use kd_core::config::{Config, is_program};
use kd_core::cost::Cost;
use kd_core::prompt::PREAMBLE;
use kd_core::review::{OpenReview, Report, Review};
use kd_core::seating::{LOCAL, SeatRequest};
use kd_core::secrets::{Masked, Secrets};
use kd_core::view::View;
use kd_core::{Address, Event, Member, Op, Roster};
use kd_engine::{Opening, agents};
use kd_store::config::Loaded;
use kd_store::{Layout, Thread, log};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A change that has been read, with the members who will review it. Nobody has been asked yet.
pub struct Reviewing {
    kingdom: Kingdom,
    change: Change,
    roster: Roster,
    opening: OpenReview,
    estimate: Estimate,
    reviews: Reviews,
    secrets: Secrets,
    request: ReviewRequest,
}

/// The handle that stores the report of a running review.
pub struct Keeping {
    change: Change,
    conditions: Vec<Condition>,
    reviews: Reviews,
    env: Env,
    layout: Layout,
    folder: PathBuf,
}

impl Kingdom {
    /// Reads the change in the working folder of an environment, and seats the members who will review it. The
    /// settings come from the user and from the base commit, never from the change, so this takes no open folder.
    ///
    /// # Errors
    /// If the change cannot be read or is empty, settings have mistakes, or no member can review.
    pub fn review(env: &Env, request: ReviewRequest) -> Result<Reviewing, UserError> {
        let mut change = Change::of(&request.change, env)?;
        let layout = env.find_layout()?;
        if let Some(layout) = &layout {
            sweep(env, layout);
        }
        let mut loaded = settings::load(env, layout.as_ref(), &change)?;
        request.terms.lay_over(&mut loaded.config);
        let roster = seat(&request, &loaded, env)?;
        change
            .notices
            .extend(disk_notice(&change, roster.members()));
        change
            .notices
            .extend(demo_notice(&loaded.config, roster.members()));
        let mut parts = change.parts();
        let secrets = secrets::of(&loaded.config, request.terms.allow_secrets, env);
        let mut masked = Masked::default();
        for part in &mut parts {
            masked.add(secrets.mask_in_place(part));
        }
        secrets::tell(&masked, env);
        let reviews = stored::reviews(env)?;
        let marks = stored::marks_of(&reviews)?;
        let opening = opening(&change, &loaded.config, &roster, parts, marks);
        Ok(Reviewing {
            estimate: Estimate::of(&loaded.config, &opening),
            kingdom: Kingdom::with(env.in_review(), layout, loaded),
            change,
            roster,
            opening,
            reviews,
            secrets,
            request,
        })
    }
}

impl Reviewing {
    /// Describes the change in one line.
    pub fn title(&self) -> String {
        self.change.title()
    }

    /// The base in the user's terms: a branch, a commit, `the index`. Empty if a diff applies to none.
    pub fn base(&self) -> &str {
        &self.change.base
    }

    /// The reviewed side in the user's terms.
    pub fn head(&self) -> &str {
        &self.change.head
    }

    /// Lists the changed files, one on each line.
    pub fn summary(&self) -> String {
        self.change.diff.summary()
    }

    /// The number of changed files.
    pub fn files(&self) -> usize {
        self.change.diff.files.len()
    }

    /// The number of parts in which members see the change.
    pub fn parts(&self) -> usize {
        self.opening.parts.len()
    }

    /// The members.
    pub fn members(&self) -> &[Member] {
        self.roster.members()
    }

    /// The expected cost.
    pub fn estimate(&self) -> &Estimate {
        &self.estimate
    }

    /// Returns what the limits do not allow, if anything.
    pub fn shortage(&self) -> Option<String> {
        self.opening.shortage()
    }

    /// The parts of the change that members do not see, and those that cannot be checked.
    pub fn notices(&self) -> &[String] {
        &self.change.notices
    }

    /// The settings in force.
    pub fn loaded(&self) -> &Loaded {
        self.kingdom.loaded()
    }

    /// Checks that the members can answer, and downloads the models of built-in ones.
    ///
    /// # Errors
    /// If they cannot.
    pub fn make_ready(&self) -> Result<(), UserError> {
        let offline = self.request.terms.offline;
        let (config, env) = (self.kingdom.config(), self.kingdom.env());
        ready::make_ready(config, offline, env, &self.roster)
    }

    /// Opens the session in a new thread. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the thread cannot be created or opened.
    pub fn start(self) -> Result<(Started, Keeping), UserError> {
        let env = self.kingdom.env();
        let layout = new_layout(env)?;
        let thread = Thread::create_for(&layout, &names(&self.roster), REVIEW)?;
        let folder = thread.path().to_path_buf();
        let opened = Opened::of(layout.clone(), &thread, true);
        let mut opening = self.opening;
        let say = Op::Say {
            body: opening.title.clone(),
            to: Address::All,
        };
        // Voters see this code, and quotes are looked up in it.
        opening.files = self.change.files();
        for text in opening.files.values_mut() {
            self.secrets.mask_keeping_lines(text);
        }
        let (machine, effects) = Review::open(opening);
        let opening = Opening {
            id: thread.id().clone(),
            machine: Box::new(machine),
            opened: effects,
            seats: self.roster.members().to_vec(),
        };
        let engine = self.kingdom.engine(self.kingdom.config(), self.secrets);
        let engine = engine.telling(held_event(&self.kingdom, &[]));
        let keeping = Keeping {
            change: self.change,
            conditions: self.request.conditions,
            reviews: self.reviews,
            env: env.clone(),
            layout,
            folder,
        };
        let started = Started::new(engine.run(thread, opening)?, say, opened);
        Ok((started, keeping))
    }

    /// Lets the members review, waits until everyone has answered or failed, and stores the report. Must be called inside
    /// a tokio runtime. Dropping the future cancels the review.
    ///
    /// # Errors
    /// If a member cannot answer, the thread cannot be opened, or there is no report.
    pub async fn report(self) -> Result<Kept, UserError> {
        self.make_ready()?;
        let (started, keeping) = self.start()?;
        let view = started.finished().await?;
        keeping.keep(view)
    }
}

impl Keeping {
    /// Stores the report of a review that has ended, for `kd review show`, and returns it.
    ///
    /// # Errors
    /// If the review has no report: it was interrupted.
    pub fn keep(self, view: View) -> Result<Kept, UserError> {
        // States are only for display.
        let _ = agents::tidy(&self.layout);
        let thread = Thread::open_folder(&self.folder);
        let report = view.review.map(|report| *report);
        let report = report.or_else(|| logged(thread.as_ref().ok()?));
        let id = thread.map(|thread| thread.id().clone())?;
        let Some(report) = report else {
            let error = UserError::new(ErrorKind::NoReport, "the review has no report");
            return Err(error.next(format!("partial answers are saved: kd show {}", id.0)));
        };
        let (added, removed) = self.change.diff.counts();
        let marks = self.reviews.marks().unwrap_or_else(|error| {
            self.env
                .warn(format!("dismissed findings are not known: {error}"));
            Vec::new()
        });
        let mut kept = Kept {
            version: report::VERSION,
            thread: id.0.clone(),
            base_commit: self.change.base_commit.clone(),
            head_commit: self.change.head_commit.clone(),
            size: (self.change.diff.files.len(), added, removed),
            places: self.change.places(),
            fail_on: Condition::check(&self.conditions, &report.findings)
                .map(|fail_on| fail_on.with_unseen(&self.change.left_out, self.change.is_unread)),
            left_out: self.change.left_out,
            dismissed: BTreeSet::new(),
            report,
        };
        kept.dismiss(stored::dismissed(&kept.report.findings, &marks));
        let value = serde_json::to_value(&kept).map_err(std::io::Error::other)?;
        if let Err(error) = self.reviews.keep(&id, &value) {
            self.env.warn(format!(
                "`kd review show` will not find this review: {error}"
            ));
        }
        Ok(kept)
    }
}

/// Seats the members. Nobody concludes a review.
fn seat(request: &ReviewRequest, loaded: &Loaded, env: &Env) -> Result<Roster, UserError> {
    let config = &loaded.config;
    let named = trust::Named {
        members: &request.members,
        reviews: true,
        ..trust::Named::default()
    };
    trust::check(&loaded.project, named, env)?;
    let members = match request.members.is_empty() {
        true => &config.council.review_members,
        false => &request.members,
    };
    let seats = SeatRequest {
        members: members.clone(),
        timeout: request.timeout_secs,
        ..SeatRequest::default()
    };
    let seated = seating::seat(config, seats, None)?;
    if seated.built_in {
        return Err(no_members());
    }
    Ok(Roster::new(seated.roster.members().to_vec(), None))
}

/// The error if nobody is configured: in CI, a missing key or file would pass for a review without findings.
fn no_members() -> UserError {
    UserError::new(
        ErrorKind::NoSeat,
        "no members are configured, and the small built-in model cannot review code",
    )
    .next(
        "`kd init` sets up agent programs, keys and Ollama; then name members with council.review_members or --members",
    )
}

/// Returns a notice if only the small built-in model reviews, because the user named it.
fn demo_notice(config: &Config, members: &[Member]) -> Option<String> {
    let is_demo = |member: &Member| member.backend == LOCAL && member.model.is_none();
    (config.local.model.is_none() && members.iter().all(is_demo)).then(|| {
        "only the small built-in model reviews: it cannot review code, and its findings are worthless (kd init)"
            .to_owned()
    })
}

/// Returns a notice if agent programs, which read the files on disk, do not find those under review there.
fn disk_notice(change: &Change, members: &[Member]) -> Option<String> {
    let programs = members.iter().filter(|m| is_program(&m.backend));
    let names: Vec<&str> = programs.map(|m| m.name.as_str()).collect();
    (change.elsewhere && !names.is_empty()).then(|| {
        format!(
            "agent programs read the files of your working folder, not those of {}: {}",
            change.head,
            names.join(", ")
        )
    })
}

/// Returns the inputs of a review. Files are empty: voters and quotes need them, the plan does not.
fn opening(
    change: &Change,
    config: &Config,
    roster: &Roster,
    parts: Vec<String>,
    marks: kd_core::review::Marks,
) -> OpenReview {
    let members = roster.members();
    let price = |member: &Member| {
        let price = Cost::of(config, member).price()?;
        Some((member.name.clone(), price))
    };
    OpenReview {
        base: change.base.clone(),
        head: change.head.clone(),
        title: change.title(),
        members: members.to_vec(),
        parts,
        files: BTreeMap::new(),
        preamble: match &config.council.preamble {
            Some(preamble) => preamble.clone(),
            None => PREAMBLE.trim().to_owned(),
        },
        guidance: config.prompts.review.clone(),
        judged: true,
        ceiling: config.limits.ceiling(),
        prices: members.iter().filter_map(price).collect(),
        marks,
        seed: clock_seed(),
        messages: 0,
        notices: change.notices.clone(),
    }
}

/// Returns the report in a thread's log.
fn logged(thread: &Thread) -> Option<Report> {
    let records = log::read(thread).ok()?.records;
    records.into_iter().rev().find_map(|record| {
        if let Event::Reviewed { report } = record.event {
            Some(*report)
        } else {
            None
        }
    })
}
