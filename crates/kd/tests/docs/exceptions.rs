//! The command lines that are not run as shown, or whose output is not compared, and why. Each row names its page and
//! a part of the line; a row that matches no line fails the test.

use super::page::Shown;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// A page (`*`: any; `PAGE#SECTION`: one section), a part of the command line, and the reason.
type Row = (&'static str, &'static str, &'static str);

/// The programs that command lines may start. A line with another one must have a row in [`NOT_RUN`].
pub(crate) const LOCAL: &[&str] = &[
    "kd", "cat", "cd", "chmod", "echo", "export", "git", "head", "jq", "mkdir", "printf", "sed",
    "tail",
];

/// Not run.
const NOT_RUN: &[Row] = &[
    ("*", "cargo ", BUILDS),
    ("*", "tests/", OTHER_TEST),
    ("*", "curl ", NETWORK),
    ("*", "brew ", NETWORK),
    ("*", "npm ", NETWORK),
    ("*", "npx ", NETWORK),
    ("*", "uv ", NETWORK),
    ("*", "gh ", NETWORK),
    ("*", "podman ", NETWORK),
    ("*", "git clone ", NETWORK),
    ("*", "rustup ", NETWORK),
    ("*", "claude ", SUBSCRIPTION),
    ("*", "codex ", SUBSCRIPTION),
    ("*", "jq -c '.[]' review.json |", NETWORK),
    ("*", "sha256sum ", "needs the files of a release"),
    ("README.md", "path/to/larger.gguf", PLACEHOLDER),
    (
        "README.md",
        "kd batch run questions.jsonl -o results.jsonl --store postgresql:",
        DATABASE,
    ),
    ("README.md", "kd worker --store postgresql:", DATABASE),
    ("CONTRIBUTING.md", ".ci/run", OTHER_TEST),
    ("CONTRIBUTING.md", "cargo test -p kd-local", BUILDS),
    (
        "docs/batch.md",
        "--provider-batch",
        "needs a provider's batches; tests/provider_batch.rs",
    ),
    ("docs/batch.md", "export KD_BATCH_STORE=", DATABASE),
    ("docs/batch.md", "# on one machine", DATABASE),
    ("docs/batch.md", "kd worker", DATABASE),
    (
        "docs/batch.md",
        "kd batch forget 3f1c90ab --question q17",
        DATABASE,
    ),
    ("docs/costs.md", "kd prices update    ", NETWORK),
    ("docs/costs.md", "kd prices update --commit", NETWORK),
    ("docs/councils.md", "mmlu_pro_29models.csv --page 40", SLOW),
    ("docs/eval.md", "mmlu_pro_29models", SLOW),
    ("docs/eval.md", "for file in zeroeval", SLOW),
    ("docs/eval.md", "--members …", PLACEHOLDER),
    ("docs/local-model.md", "RUSTFLAGS=", BUILDS),
    ("docs/local-model.md", "kd model use qwen2.5-1.5b", MODEL),
    ("docs/local-model.md", "kd model path", MODEL),
    ("docs/local-model.md", "kd model bench", MODEL),
    ("docs/local-model.md", "--model qwen2.5-1.5b", MODEL),
    ("docs/marks.md", "BLESS=1 cargo", BUILDS),
    (
        "crates/kd-reading/README.md",
        "KD_REPLIES=FILE cargo",
        BUILDS,
    ),
    ("docs/serve.md", "claude --model kd/ask", SUBSCRIPTION),
    (
        "docs/serve.md",
        "--listen 0.0.0.0:7717",
        "listens for other machines; tests stay on loopback",
    ),
    ("docs/forum.md", "kd forum run-once ", MODEL),
    ("docs/forum.md", "kd forum run-cycle ", MODEL),
    ("docs/forum.md", "kd forum tui", TERMINAL),
    ("docs/forum.md", "kd forum visit lab", REMOTE),
    ("README.md", "kd init ", DIALOG),
    ("docs/batch.md", "run.log", "needs a batch that failed"),
    ("docs/marks.md", "|| ask-a-person", PLACEHOLDER),
    ("docs/eval.md", "# asks before it spends", DIALOG),
    ("docs/trust.md", "kd trust   ", DIALOG),
    ("docs/forum.md", "kd trust   ", DIALOG),
    ("docs/forum.md#Other MCP servers", "kd doctor", SERVER),
    (
        "docs/forum.md#Visiting a forum on another machine",
        "kd doctor",
        REMOTE,
    ),
    (
        "docs/forum.md#Changing the rules",
        "kd forum motions 3",
        "needs motions that passed; tests/forum/people.rs",
    ),
    (
        "docs/forum.md#A week",
        "kd forum ",
        "from the week of tests/forum-week",
    ),
    (
        "docs/eval.md",
        "kd eval --live --report",
        "needs marks of shared questions; tests/eval_share.rs",
    ),
];
const BUILDS: &str = "builds the workspace";
const OTHER_TEST: &str = "is a test of its own";
const NETWORK: &str = "needs the network, or a program that is not part of the project";
const SUBSCRIPTION: &str = "needs a program with a subscription; tests/real-agents";
const PLACEHOLDER: &str = "names a file or members of the reader";
const DATABASE: &str = "needs a PostgreSQL server; tests/fleet.rs";
const SLOW: &str = "takes half a minute without optimization";
const DIALOG: &str = "asks on a terminal; tests/first.rs, tests/trust.rs";
const SERVER: &str = "needs an MCP server; tests/forum/servers.rs";
const REMOTE: &str = "needs a forum on another machine; tests/forum/remote.rs";
const CYCLES: &str = "a forum with cycles; tests/forum/cycles.rs";
const MODEL: &str = "needs the file of a model";
const TERMINAL: &str = "needs a terminal; tests/screen.rs";

/// Run, but the output shown is an example.
const NOT_COMPARED: &[Row] = &[
    (
        "docs/ask.md",
        "kd ask \"Should a small team",
        "a moment of a terminal; tests/terminal.rs",
    ),
    (
        "docs/ask.md",
        "kd ask \"SQLite or PostgreSQL?\"",
        "a dialog on a terminal; tests/first.rs",
    ),
    ("docs/batch.md", "kd batch run questions.jsonl", AMOUNTS),
    ("docs/batch.md", "kd batch status", AMOUNTS),
    ("docs/costs.md", "kd cost", AMOUNTS),
    (
        "docs/council.md",
        "kd status",
        "a moment of a background run; tests/council.rs",
    ),
    (
        "docs/record.md",
        "Authorization: Bearer 9f…",
        "the token is left out",
    ),
    ("docs/think.md", "--seed 7", MODEL),
    ("docs/marks.md", "kd deliberate --protocol vote", WEEKS),
    (
        "docs/marks.md",
        "kd mark --gold",
        "a batch of 200 questions",
    ),
    ("docs/forum.md#A session", "kd forum read 1", MODEL),
    (
        "docs/forum.md",
        "kd serve --mcp --tokens",
        "the port of the test is another one; tests/mcp.rs",
    ),
    (
        "docs/record.md",
        "kd forget a94d --dry-run",
        "a thread with forks and memories; tests/forget.rs",
    ),
    ("docs/eval.md", "kd deliberate --answer number", DIALOG),
    (
        "docs/forum.md#Erase",
        "kd forum forget 17 --dry-run",
        CYCLES,
    ),
    ("docs/forum.md#Erase", "kd forum audit", CYCLES),
];
const WEEKS: &str = "needs the marks of weeks; tests/marks_weeks.rs";

const AMOUNTS: &str = "shows prices, failures and progress that scripted members do not have";

/// Stopped with Ctrl+C after the output shown, or after the first line.
const STOPPED: &[Row] = &[
    ("docs/serve.md", "kd serve", "serves until Ctrl+C"),
    ("docs/page.md", "kd serve --page", "serves until Ctrl+C"),
    ("docs/mcp.md", "kd serve --mcp", "serves until Ctrl+C"),
    ("docs/forum.md", "kd serve --mcp", "serves until Ctrl+C"),
];

/// Exit codes other than 0; `$` ends a whole line.
const CODES: &[(&str, &str, i32)] = &[
    ("docs/council.md", "kd council watch", 5),
    ("docs/formats.md", "kd memory show", 1),
    ("docs/threads.md", "kd fsck$", 1),
    ("docs/threads.md", "kd ask --continue", 1),
    ("docs/record.md", "kd ask --private", 2),
    (
        "docs/record.md",
        "kd verify council-2601.seal.json # changed",
        12,
    ),
    ("docs/chat.md", "kd                      #", 2),
    ("docs/forum.md", "thesis.md", 2),
];

/// Lines of screens that begin like a command line: the page and a part of the line.
pub(crate) const SCREENS: &[(&str, &str)] = &[
    // A session that is killed.
    ("docs/chat.md", "$ kd chat"),
    // Dialogs with a person.
    ("docs/trust.md", "$ kd ask \"Is this migration safe?\""),
    ("docs/trust.md", "$ kd trust"),
    // The real programs.
    ("docs/agents.md", "$ kd doctor claude codex gemini"),
];

/// The rows, and which of them were used.
#[derive(Default)]
pub(crate) struct Rows {
    used: Mutex<BTreeSet<(&'static str, usize)>>,
    lines: Mutex<[usize; 4]>,
}

impl Rows {
    fn find(&self, table: &'static str, rows: &[Row], page: &str, shown: &Shown) -> bool {
        let line = &shown.line;
        let section = format!("{page}#{}", shown.section);
        let mut found = false;
        for (at, (on, part, _)) in rows.iter().enumerate() {
            let starts = *on == "*" && line.starts_with(part);
            if starts || (*on == page || *on == section) && line.contains(part) {
                self.used.lock().unwrap().insert((table, at));
                found = true;
            }
        }
        found
    }

    pub(crate) fn not_run(&self, page: &str, shown: &Shown) -> bool {
        let found = self.find("not run", NOT_RUN, page, shown);
        self.lines.lock().unwrap()[usize::from(found)] += 1;
        found
    }

    pub(crate) fn not_compared(&self, page: &str, shown: &Shown) -> bool {
        let found = self.find("not compared", NOT_COMPARED, page, shown);
        self.lines.lock().unwrap()[2 + usize::from(found)] += 1;
        found
    }

    pub(crate) fn stopped(&self, page: &str, shown: &Shown) -> bool {
        self.find("stopped", STOPPED, page, shown)
    }

    /// Returns the exit code that a command line must have.
    pub(crate) fn code(&self, page: &str, line: &str) -> i32 {
        for (at, (on, part, code)) in CODES.iter().enumerate() {
            let found = match part.strip_suffix('$') {
                Some(whole) => line == whole,
                None => line.contains(part),
            };
            if *on == page && found {
                self.used.lock().unwrap().insert(("codes", at));
                return *code;
            }
        }
        0
    }

    /// Returns the rows that no line used.
    pub(crate) fn unused(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let used = self.used.lock().unwrap();
        let codes: Vec<Row> = CODES.iter().map(|(on, part, _)| (*on, *part, "")).collect();
        let tables = [
            ("not run", NOT_RUN),
            ("not compared", NOT_COMPARED),
            ("stopped", STOPPED),
            ("codes", &codes),
        ];
        let mut unused = Vec::new();
        for (table, rows) in tables {
            for (at, (on, part, _)) in rows.iter().enumerate() {
                if !used.contains(&(table, at)) {
                    unused.push((table, *on, *part));
                }
            }
        }
        unused
    }

    /// Returns how many lines were run and compared.
    pub(crate) fn summary(&self) -> String {
        let [run, not_run, compared, not_compared] = *self.lines.lock().unwrap();
        format!(
            "{run} command lines run, {not_run} not; {compared} outputs compared, {not_compared} shown as examples"
        )
    }
}
