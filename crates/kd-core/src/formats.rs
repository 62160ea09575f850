//! The formats of files that `kd` keeps or exchanges: one row each, with the current version.
//!
//! Input: the version stated in a file. Output: [`Newer`] if this `kd` does not know it. Code that reads a file checks
//! its row; `docs/formats.md` is the table of all rows.

use serde_json::Value;
use std::fmt::Write as _;

/// A versioned format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its name in errors: "the memory of a project".
    pub what: &'static str,
    /// The place where it is stored or printed.
    pub at: &'static str,
    /// The version currently written.
    pub version: u32,
    /// The field with the version.
    pub field: &'static str,
    /// The description of its structure, as a link in `docs/formats.md`.
    pub schema: &'static str,
    /// Handling of older versions.
    pub older: &'static str,
    /// Handling of newer versions.
    pub newer: &'static str,
}

/// A file has a version that this `kd` does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("version {found} of {}; this kd reads versions up to {}", format.what, format.version)]
pub struct Newer {
    /// Its format.
    pub format: &'static Format,
    /// Its version.
    pub found: u64,
}

impl Newer {
    /// Advice to the user.
    pub const HINT: &'static str = "update kd; nothing was changed";
}

impl Format {
    /// Checks the version stated in a file; `None` means version 1.
    ///
    /// # Errors
    /// If the version is newer than the current one.
    pub fn check(&'static self, found: Option<u64>) -> Result<(), Newer> {
        let found = found.unwrap_or(1);
        match found > self.version.into() {
            true => Err(Newer {
                format: self,
                found,
            }),
            false => Ok(()),
        }
    }
}

/// Returns the version in a field of a JSON object, given as bytes; `None` if there is none.
pub fn stated(bytes: &[u8], field: &str) -> Option<u64> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    value.get(field)?.as_u64()
}

const REFUSED: &str = "refused";
/// The text for formats with additive changes only: no older files need conversion.
const NONE: &str = "there are none";

/// `thread.json`. kingdom-cli reads it too and writes no version.
pub static THREAD: Format = Format {
    what: "a thread",
    at: "`thread.json` and the messages beside it",
    version: 1,
    field: "`kd_version`, left out for 1",
    schema: "[adr 0003](adr/0003-thread-files.md)",
    older: "read, also without any field but `id`, and without the file",
    newer: "the thread is refused, and left out of lists with a note",
};

/// The log of events, and `--jsonl`.
pub static EVENTS: Format = Format {
    what: "an event",
    at: "`.kd-events.jsonl` of a thread; `--jsonl`",
    version: 1,
    field: "`v` of each line",
    schema: "[record](schemas/record.schema.json)",
    older: NONE,
    newer: "the log is refused; messages are shown without it",
};

/// The rules by which a deliberation reads replies.
pub static READING: Format = Format {
    what: "the rules for reading replies",
    at: "the plan in `.kd-events.jsonl`",
    version: 5,
    field: "`reading`, left out for 0",
    schema: "[record](schemas/record.schema.json)",
    older: "0 to 4 are decided again by their own rules",
    newer: "`kd replay` and `kd why` refuse",
};

/// The rules by which a deliberation reserves and books spending.
pub static SPENDING: Format = Format {
    what: "the rules for spending",
    version: 3,
    field: "`spending`, left out for 0",
    older: "0 to 2 are decided again by their own rules",
    ..READING
};

/// The rules by which a deliberation writes its conclusion.
pub static WRITING: Format = Format {
    what: "the rules for conclusions",
    version: 5,
    field: "`writing`, left out for 0",
    ..READING
};

/// The settings.
pub static SETTINGS_FILE: Format = Format {
    what: "the settings",
    at: "`config.json`, `config.local.json`",
    version: 1,
    field: "`version`, left out for 1",
    schema: "[settings](configuration.md)",
    older: NONE,
    newer: "refused: the command exits, and `kd config set` changes nothing",
};

/// `memory.json`.
pub static MEMORY: Format = Format {
    what: "the memory of a project",
    at: "`.kd/memory.json`",
    version: 1,
    field: "`version`",
    schema: "",
    older: "read without a version too",
    newer: REFUSED,
};

/// Waiting messages.
pub static QUEUE: Format = Format {
    what: "a queued message",
    at: "`queue-*.jsonl` in your state folder",
    version: 1,
    field: "`v` of each line, left out for 1",
    schema: "",
    older: NONE,
    newer: "nothing of the file is sent, and the chat keeps no new messages across a kill",
};

/// The user's decisions about folders.
pub static TRUST: Format = Format {
    what: "your decisions about folders",
    at: "`trust.json` in your state folder",
    version: 1,
    field: "`version`",
    schema: "",
    older: NONE,
    newer: "refused: no folder is trusted",
};

/// The user's verdicts on findings, and the list of reports.
pub static REVIEWS: Format = Format {
    what: "the marks and reports of reviews",
    at: "`reviews/*/*.json` in your data folder",
    version: 1,
    field: "`version`",
    schema: "[review](schemas/review.schema.json)",
    older: NONE,
    newer: REFUSED,
};

/// The price table.
pub static PRICES: Format = Format {
    what: "the table of prices",
    at: "`prices.tsv` in your data folder",
    version: 1,
    field: "`# version`",
    schema: "[costs](costs.md)",
    older: NONE,
    newer: REFUSED,
};

/// The spending ledger.
pub static LEDGER: Format = Format {
    what: "the record of what was spent",
    at: "`spending/*.jsonl` in your data folder",
    version: 1,
    field: "`v` of each line",
    schema: "[costs](costs.md)",
    older: NONE,
    newer: "the line is left out, with a note",
};

/// The database of marks.
pub static MARKS: Format = Format {
    what: "the database of marks",
    at: "`marks.db` in your data folder",
    version: 4,
    field: "`PRAGMA user_version`",
    schema: "",
    older: "1 to 3 are converted",
    newer: REFUSED,
};

/// A mark.
pub static MARK: Format = Format {
    what: "a mark",
    at: "the rows of `marks.db`; `kd marks export`",
    version: kd_eval::marks::VERSION,
    field: "`v`",
    schema: "[mark-line](schemas/mark-line.schema.json)",
    older: NONE,
    newer: "refused; an import keeps nothing",
};

/// The database of batches.
pub static BATCHES: Format = Format {
    what: "the database of batches",
    at: "`batches/*.db` in your data folder",
    version: 1,
    field: "`PRAGMA user_version`",
    schema: "[batches](batch.md#where-it-is-kept)",
    older: NONE,
    newer: REFUSED,
};

/// The database of a fleet.
pub static FLEET: Format = Format {
    what: "the database of a fleet",
    at: "the tables `kd_*` that `--store` names",
    field: "`version` of `kd_store`",
    schema: "[batches](batch.md#several-machines)",
    ..BATCHES
};

/// A result of a batch.
pub static BATCH_RESULT: Format = Format {
    what: "a result of a batch",
    at: "`-o` of `kd batch run`; `kd batch results`",
    version: 1,
    field: "`v` of each line",
    schema: "[batch-result](schemas/batch-result.schema.json)",
    older: NONE,
    newer: "the answer is not used again, and the file is not replaced",
};

/// The tables of a forum.
pub static FORUM: Format = Format {
    what: "a forum",
    at: "`.kd/forum.db`, or PostgreSQL",
    version: 11,
    field: "`PRAGMA user_version`, or the table `kd_forum_form`",
    schema: "",
    older: "1 to 10 are converted; SQLite files are copied to `forum.db.form-N` first",
    newer: REFUSED,
};

/// A forum export, in lines.
pub static FORUM_EXPORT: Format = Format {
    what: "an exported forum",
    at: "`kd forum export`",
    version: 3,
    field: "`version` of the first line",
    schema: "",
    older: "1 and 2 are imported",
    newer: "refused; nothing is imported",
};

/// Secrets of future draws.
pub static FORUM_SECRETS: Format = Format {
    what: "the secrets of a forum",
    at: "`forums/*.json` in your state folder",
    version: 1,
    field: "`version`",
    schema: "",
    older: "read without a version too",
    newer: "refused: no cycle runs",
};

/// Records of running agents.
pub static RUN: Format = Format {
    what: "the record of a run",
    at: "`agents/*.json` in your runtime folder",
    version: 1,
    field: "`version`, left out for 1",
    schema: "",
    older: NONE,
    newer: "passed over: none of its processes is stopped",
};

/// Sealed threads.
pub static SEAL: Format = Format {
    what: "a sealed thread",
    at: "`*.seal.json`",
    version: 1,
    field: "`v` of `header`",
    schema: "[seals](record.md#the-format)",
    older: NONE,
    newer: REFUSED,
};

/// All file formats.
pub static FORMATS: &[&Format] = &[
    &THREAD,
    &EVENTS,
    &READING,
    &SPENDING,
    &WRITING,
    &SETTINGS_FILE,
    &MEMORY,
    &QUEUE,
    &TRUST,
    &REVIEWS,
    &PRICES,
    &LEDGER,
    &MARKS,
    &MARK,
    &BATCHES,
    &FLEET,
    &BATCH_RESULT,
    &FORUM,
    &FORUM_EXPORT,
    &FORUM_SECRETS,
    &RUN,
    &SEAL,
];

/// JSON output of a command, described by `docs/schemas/<schema>.schema.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The commands.
    pub by: &'static str,
    /// The name of its schema.
    pub schema: &'static str,
    /// The current version.
    pub version: u32,
    /// The field with the version; empty if a list or an error has no place for it.
    pub field: &'static str,
}

const fn printed(by: &'static str, schema: &'static str) -> Printed {
    Printed {
        by,
        schema,
        version: 1,
        field: "v",
    }
}

/// Creates an output without a version.
const fn unversioned(by: &'static str, schema: &'static str) -> Printed {
    Printed {
        field: "",
        ..printed(by, schema)
    }
}

/// An answered question.
pub static ASK: Printed = printed("`kd ask --json`, `kd think --json`", "ask");
/// A question asked in the background.
pub static BACKGROUND: Printed = printed("`kd ask --async --json`", "background");
/// A deliberation.
pub static DELIBERATE: Printed = printed(
    "`kd deliberate --json`, `kd why --export json`",
    "deliberate",
);
/// The explanation of a decision.
pub static WHY: Printed = printed("`kd why --json`", "why");
/// A replayed deliberation.
pub static REPLAY: Printed = printed("`kd replay --json`", "replay");
/// A hypothetical decision.
pub static WHAT_IF: Printed = printed(
    "`kd replay --json` with `--without`, `--rule`, `--seed`, `--weights` or `--all-rules`",
    "what-if",
);
/// Messages of a thread.
pub static SHOW: Printed = printed("`kd show --json`", "show");
/// The progress of each member.
pub static STATUS: Printed = printed("`kd status --json`", "status");
/// Threads, in the format of kingdom-cli.
pub static LIST: Printed = unversioned("`kd list --json`", "list");
/// A fork.
pub static FORK: Printed = printed("`kd fork --json`", "fork");
/// A thread as one document.
pub static EXPORT: Printed = printed("`kd export --json`, `kd export --format json`", "export");
/// The result of a seal.
pub static SEALED: Printed = printed("`kd seal --json`, `kd verify --json`", "seal");
/// An imported thread.
pub static IMPORTED: Printed = printed("`kd import --json`", "import");
/// A mark that was given.
pub static MARKED: Printed = printed("`kd mark --json`", "mark");
/// The marks by a file of right answers.
pub static MARKED_BY_GOLD: Printed = printed("`kd mark --gold FILE --json`", "mark-gold");
/// Marks.
pub static MARK_LIST: Printed = printed("`kd marks --json`", "marks");
/// Verdicts to mark.
pub static MARKS_NEXT: Printed = printed("`kd marks next --json`", "marks-next");
/// Problems with the files.
pub static FSCK: Printed = printed("`kd fsck --json`", "fsck");
/// The removed items.
pub static FORGET: Printed = printed("`kd forget --json`, also with `--dry-run`", "forget");
/// A review.
pub static REVIEW: Printed = Printed {
    field: "version",
    version: REVIEWS.version,
    ..printed(
        "`kd review --format json`, `kd review show --format json`",
        "review",
    )
};
/// The marks of findings.
pub static REVIEW_MARKS: Printed = Printed {
    field: "version",
    version: REVIEWS.version,
    ..printed("`kd review marks --json`", "review-marks")
};
/// The members that were set up.
pub static INIT: Printed = printed("`kd init --json`", "init");
/// The settings that a folder requests, and whether it is trusted.
pub static TRUSTED: Printed = printed("`kd trust --json`, also with `--yes`", "trust");
/// The decisions about folders.
pub static TRUST_LIST: Printed = printed("`kd trust --list --json`", "trust-list");
/// A revoked decision.
pub static TRUST_REVOKED: Printed = printed("`kd trust --revoke --json`", "trust-revoke");
/// The mistakes of a configuration.
pub static CONFIG_CHECK: Printed = printed("`kd config check --json`", "config-check");
/// The configuration files.
pub static CONFIG_PATHS: Printed = unversioned("`kd config path --json`", "config-path");
/// Checks of all members.
pub static DOCTOR: Printed = unversioned("`kd doctor --json`", "doctor");
/// The result of a count.
pub static TALLY: Printed = printed("`kd vote tally --json`, one line for each poll", "tally");
/// Counts compared with recorded winners.
pub static CHECK: Printed = printed("`kd vote check --json`", "vote-check");
/// The voting rules.
pub static RULES: Printed = unversioned("`kd vote rules --json`", "rules");
/// Settings.
pub static SETTINGS: Printed = unversioned("`kd config show --json`", "settings");
/// Built-in models.
pub static MODELS: Printed = unversioned("`kd model list --json`", "models");
/// The speed of a model.
pub static MODEL_BENCH: Printed = printed("`kd model bench --json`", "model-bench");
/// Model prices.
pub static PRICE_LIST: Printed = printed("`kd prices --json`", "prices");
/// Spending.
pub static COSTS: Printed = printed("`kd cost --json`", "cost");
/// The memory.
pub static REMEMBERED: Printed = printed("`kd memory show --json`", "memory");
/// A batch.
pub static BATCH: Printed = printed("`kd batch status --json`, `kd batch run --json`", "batch");
/// Batches.
pub static BATCH_LIST: Printed = printed("`kd batch list --json`", "batch-list");
/// The workers of a database.
pub static WORKER_LIST: Printed = printed("`kd worker list --json`", "worker-list");
/// The estimate of a batch.
pub static BATCH_ESTIMATE: Printed = printed("`kd batch run --dry-run --json`", "batch-estimate");
/// The log of a batch.
pub static BATCH_LOG: Printed =
    printed("`kd batch run --log`, one line for each event", "batch-log");
/// Threads of a forum.
pub static FORUM_THREADS: Printed = unversioned("`kd forum read --json`", "forum-threads");
/// A thread of a forum.
pub static FORUM_THREAD: Printed = printed("`kd forum read THREAD --json`", "forum-thread");
/// Forum posts found.
pub static FORUM_HITS: Printed = unversioned("`kd forum search --json`", "forum-hits");
/// Members of a forum.
pub static FORUM_MEMBERS: Printed = unversioned("`kd forum members --json`", "forum-members");
/// The forums of a store.
pub static FORUM_LIST: Printed = printed("`kd forum list --json`", "forum-list");
/// Rules of a forum.
pub static FORUM_RULES: Printed = printed("`kd forum rules --json`", "forum-rules");
/// The erased posts of a forum.
pub static FORUM_FORGET: Printed = printed(
    "`kd forum forget --json`, also with `--dry-run`",
    "forum-forget",
);
/// The agents of a forum.
pub static FORUM_AGENTS: Printed = unversioned("`kd forum agents --json`", "forum-agents");
/// Audits of a forum.
pub static FORUM_AUDIT: Printed = unversioned(
    "`kd forum audit --json`, one line for each cycle and one for the result",
    "forum-audit",
);
/// The fairness of a forum.
pub static FORUM_FAIRNESS: Printed = unversioned("`kd forum fairness --json`", "forum-fairness");
/// Simulated cycles of a forum.
pub static FORUM_CYCLES: Printed = printed("`kd forum run-cycle --virtual --json`", "forum-cycles");
/// The motions of a forum.
pub static FORUM_MOTIONS: Printed = unversioned("`kd forum motions --json`", "forum-motions");
/// A motion with its votes.
pub static FORUM_MOTION: Printed = printed("`kd forum motions MOTION --json`", "forum-motion");
/// Posts and log lines of a forum, as they come.
pub static FORUM_WATCH: Printed = unversioned(
    "`kd forum watch --jsonl`, one line for each post and event",
    "forum-watch",
);
/// The plan of a deliberation.
pub static DELIBERATE_PLAN: Printed =
    printed("`kd deliberate --dry-run --json`", "deliberate-plan");
/// The estimate of a review.
pub static REVIEW_ESTIMATE: Printed =
    printed("`kd review --dry-run --format json`", "review-estimate");
/// The ways to decide, for evaluations.
pub static EVAL_LIST: Printed = printed("`kd eval --list --json`", "eval-list");
/// Recorded answers, decided again.
pub static EVAL_REPLAY: Printed = printed("`kd eval --replay --json`", "eval-replay");
/// Random councils of recorded members.
pub static EVAL_COUNCILS: Printed =
    printed("`kd eval --replay --councils --json`", "eval-councils");
/// Promises, tried on recorded answers.
pub static EVAL_PROMISES: Printed = printed("`kd eval --replay --promise --json`", "eval-promises");
/// How soon broken promises are noticed.
pub static EVAL_DRIFT: Printed =
    printed("`kd eval --replay --promise --drift --json`", "eval-drift");
/// Whether a council pays, for the user's own questions.
pub static EVAL_LIVE: Printed = printed("`kd eval --live --json`", "eval-live");
/// The estimated spending.
pub static EVAL_LIVE_ESTIMATE: Printed =
    printed("`kd eval --live --dry-run --json`", "eval-live-estimate");
/// Simulated members.
pub static EVAL_SIMULATED: Printed = printed("`kd eval --simulate --json`", "eval-simulate");
/// The log of a forum.
pub static FORUM_LOG: Printed = unversioned(
    "`kd forum log`, `run-once`, `run-cycle`, `run-agent` and `visit` with `--jsonl`, one line for each event",
    "forum-log",
);
/// An error.
pub static ERROR: Printed = unversioned("an error, with any `--json`", "error");

/// All command outputs.
pub static PRINTED: &[&Printed] = &[
    &ASK,
    &BACKGROUND,
    &DELIBERATE,
    &WHY,
    &REPLAY,
    &WHAT_IF,
    &SHOW,
    &STATUS,
    &LIST,
    &FORK,
    &EXPORT,
    &SEALED,
    &IMPORTED,
    &MARKED,
    &MARKED_BY_GOLD,
    &MARK_LIST,
    &MARKS_NEXT,
    &FSCK,
    &FORGET,
    &REVIEW,
    &REVIEW_MARKS,
    &INIT,
    &TRUSTED,
    &TRUST_LIST,
    &TRUST_REVOKED,
    &CONFIG_CHECK,
    &CONFIG_PATHS,
    &DOCTOR,
    &TALLY,
    &CHECK,
    &RULES,
    &SETTINGS,
    &MODELS,
    &MODEL_BENCH,
    &PRICE_LIST,
    &COSTS,
    &REMEMBERED,
    &BATCH,
    &BATCH_LIST,
    &WORKER_LIST,
    &BATCH_ESTIMATE,
    &BATCH_LOG,
    &FORUM_THREADS,
    &FORUM_THREAD,
    &FORUM_HITS,
    &FORUM_MEMBERS,
    &FORUM_LIST,
    &FORUM_RULES,
    &FORUM_LOG,
    &FORUM_FORGET,
    &FORUM_AGENTS,
    &FORUM_AUDIT,
    &FORUM_FAIRNESS,
    &FORUM_CYCLES,
    &FORUM_MOTIONS,
    &FORUM_MOTION,
    &FORUM_WATCH,
    &DELIBERATE_PLAN,
    &REVIEW_ESTIMATE,
    &EVAL_LIST,
    &EVAL_REPLAY,
    &EVAL_COUNCILS,
    &EVAL_PROMISES,
    &EVAL_DRIFT,
    &EVAL_LIVE,
    &EVAL_LIVE_ESTIMATE,
    &EVAL_SIMULATED,
    &ERROR,
];

/// Returns the table of files in `docs/formats.md`.
pub fn table() -> String {
    let mut out = String::from(
        "| format | where | version | stated in | described in | older versions | newer versions |\n|---|---|---|---|---|---|---|\n",
    );
    for row in FORMATS {
        let Format {
            what,
            at,
            version,
            field,
            schema,
            older,
            newer,
        } = row;
        let _ = writeln!(
            out,
            "| {what} | {at} | {version} | {field} | {schema} | {older} | {newer} |"
        );
    }
    out
}

/// Returns the table of command outputs in `docs/formats.md`.
pub fn printed_table() -> String {
    let mut out = String::from("| output of | version | stated in | schema |\n|---|---|---|---|\n");
    for Printed {
        by,
        schema,
        version,
        field,
    } in PRINTED
    {
        let field = match *field {
            "" => "nothing".to_owned(),
            field => format!("`{field}`"),
        };
        let _ = writeln!(
            out,
            "| {by} | {version} | {field} | [{schema}](schemas/{schema}.schema.json) |"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_refuses_the_next_version_and_reads_its_own() {
        for format in FORMATS {
            let next = u64::from(format.version) + 1;
            for known in 0..next {
                assert_eq!(format.check(Some(known)), Ok(()));
            }
            assert_eq!(format.check(None), Ok(()));
            let error = format.check(Some(next)).unwrap_err().to_string();
            assert!(error.contains(&format!("version {next} of ")), "{error}");
            assert!(error.ends_with(&format!("up to {}", next - 1)), "{error}");
        }
    }
}
