//! Checks the documentation. Every command line of a page is run in an empty home at 80 columns, in the order of the
//! page, and must print what is shown below it. Numbers of rules, roles, protocols and the like must be those of the
//! tables in the code.
//!
//! `BLESS=1` writes the real output into the pages; `KD_DOCS_PAGE=docs/ask.md` runs one page only. A page starts from
//! the script of its name in `setup/`, or from `setup/any.sh`; a section with a script (`PAGE--SECTION.sh`) starts a new session. `exceptions.rs` lists what is not run, and why.

#![allow(clippy::unwrap_used)] // tests may panic

mod compare;
mod exceptions;
mod page;
mod session;
mod tables;

use compare::{Ids, same};
use exceptions::{LOCAL, Rows};
use page::{Shown, misplaced, pages, programs, read, root, shown};
use session::{Ran, Session, any_script, script};
use std::sync::Mutex;

/// Pages at a time.
const WORKERS: usize = 4;

/// Returns whether a program is on the path.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs the command lines of a page. Returns what is wrong.
fn run(page: &str, rows: &Rows) -> Vec<String> {
    let text = read(page);
    let shown = shown(&text);
    if shown.is_empty() {
        return Vec::new();
    }
    let first = script(page, None).unwrap_or_else(any_script);
    let mut session = Session::open(&first);
    let mut section = String::new();
    let (mut ids, mut wrong, mut blessed) = (Ids::default(), Vec::new(), Vec::new());
    for shown in shown {
        if section != shown.section {
            section.clone_from(&shown.section);
            if let Some(script) = self::script(page, Some(&section)) {
                session = Session::open(&script);
                ids = Ids::default();
            }
        }
        if rows.not_run(page, &shown) {
            continue;
        }
        // Nothing is started that this machine may not expect.
        let needed = programs(&shown.line);
        let foreign = needed.iter().find(|name| !LOCAL.contains(&name.as_str()));
        if let Some(name) = foreign {
            let at = shown.at;
            wrong.push(format!(
                "{page}:{at}: `{name}` is not run here: a row of NOT_RUN says why"
            ));
            continue;
        }
        // The only program here that many machines lack; `.ci/run` installs it.
        if needed.iter().any(|name| name == "jq") && !is_installed("jq") {
            continue;
        }
        // A file shown exists for the commands that follow.
        if let Some(file) = shown.line.strip_prefix("cat ") {
            let file = session
                .work()
                .join(file.split(' ').next().unwrap_or_default());
            if !file.exists() {
                std::fs::write(file, shown.output.join("\n") + "\n").unwrap();
            }
        }
        let stopped = rows.stopped(page, &shown);
        let lines = shown.output.len().max(1);
        let mut line = ids.real(&shown.line, session.newest_thread().as_deref());
        if !line.contains("--listen") {
            // Other tests run at the same time.
            line = line.replace("kd serve", "kd serve --listen 127.0.0.1:0");
        }
        let ran = session.run(&line, |out| stopped && out.lines().count() >= lines);
        ids.learn(&shown.output, &format!("{}\n{}", ran.out, ran.err));
        let code = rows.code(page, &shown.line);
        if !stopped && ran.code != Some(code) {
            wrong.push(told(
                page,
                &shown,
                &ran,
                &format!("exit code {:?}, not {code}", ran.code),
            ));
        }
        let compared = !shown.output.is_empty() && !rows.not_compared(page, &shown);
        if !compared || same(&shown.output, &ran.out, &ran.err) {
            continue;
        }
        let home = session.home().display().to_string();
        let real = match ran.out.trim().is_empty() {
            true => &ran.err,
            false => &ran.out,
        };
        blessed.push((
            shown.below.clone(),
            ids.documented(&real.replace(&home, "/home/ada")),
        ));
        wrong.push(told(page, &shown, &ran, "another output"));
    }
    if std::env::var_os("BLESS").is_some() && !blessed.is_empty() {
        let mut lines: Vec<&str> = text.lines().collect();
        for (below, real) in blessed.iter().rev() {
            lines.splice(below.clone(), real.trim_end().lines().map(str::trim_end));
        }
        std::fs::write(root().join(page), lines.join("\n") + "\n").unwrap();
    }
    wrong
}

fn told(page: &str, shown: &Shown, ran: &Ran, what: &str) -> String {
    format!(
        "{page}:{}: {what}: $ {}\n--- shown there\n{}\n--- stdout\n{}--- stderr\n{}",
        shown.at,
        shown.line,
        shown.output.join("\n"),
        ran.out,
        ran.err
    )
}

#[test]
fn every_command_line_runs_and_prints_what_is_shown_below_it() {
    let only = std::env::var("KD_DOCS_PAGE").ok();
    let mut pages = pages();
    pages.retain(|page| only.as_ref().is_none_or(|only| only == page));
    let (rows, wrong, queue) = (Rows::default(), Mutex::new(Vec::new()), Mutex::new(pages));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let Some(page) = queue.lock().unwrap().pop() else {
                        break;
                    };
                    let found = run(&page, &rows);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    println!("{}", rows.summary());
    assert!(
        wrong.is_empty(),
        "{} wrong\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    if only.is_none() {
        let unused = rows.unused();
        assert!(unused.is_empty(), "rows that match no line: {unused:#?}");
    }
}

#[test]
fn command_lines_stand_in_blocks_that_are_run() {
    let mut wrong = Vec::new();
    for page in pages() {
        let text = read(&page);
        for (at, line) in misplaced(&text) {
            if !exceptions::SCREENS
                .iter()
                .any(|(on, part)| *on == page && line.contains(part))
            {
                wrong.push(format!("{page}:{at}: {line}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "make these blocks `console` or `sh`:\n{}",
        wrong.join("\n")
    );
}
