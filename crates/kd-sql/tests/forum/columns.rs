//! A column that holds what kd never writes is an error that names it, on both databases: no value takes its place.

use crate::chain::{lead, live};
use crate::servers::{Site, each, tamper};
use crate::talk::{at, by};
use kd_forum::MAIN;
use kd_sql::forum::{ForumError, Place, Sight};

/// A way to break a column: its name, the statement for each database, and what the error says it must hold.
struct Break {
    column: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
    wanted: &'static str,
}

const BREAKS: &[Break] = &[
    Break {
        column: "created_at",
        sqlite: "UPDATE posts SET created_at = 'soon'",
        postgres: "ALTER TABLE posts ALTER COLUMN created_at TYPE TEXT USING 'soon'",
        wanted: "a time in microseconds",
    },
    Break {
        column: "created_at",
        sqlite: "UPDATE posts SET created_at = 9223372036854775807",
        postgres: "UPDATE posts SET created_at = 9223372036854775807",
        wanted: "a time in microseconds",
    },
    Break {
        column: "body",
        sqlite: "UPDATE posts SET body = x'00ff'",
        postgres: "ALTER TABLE posts ALTER COLUMN body TYPE BYTEA USING 'x'::bytea",
        wanted: "text",
    },
    Break {
        column: "run_id",
        sqlite: "UPDATE posts SET run_id = 'none'",
        postgres: "ALTER TABLE posts ALTER COLUMN run_id TYPE TEXT USING 'none'",
        wanted: "an integer",
    },
];

fn broken(site: &Site, with: &Break) -> (String, &'static str, String) {
    let mut store = site.open();
    let (thread, _) = store
        .create_thread(MAIN, "A title", &by("ann", "A text"), at(0))
        .unwrap();
    tamper(
        site,
        match &site.place {
            Place::File(_) => with.sqlite,
            Place::Server(_) => with.postgres,
        },
    );
    match store.thread(thread.id, 0, 10) {
        Err(error @ ForumError::Column { .. }) => {
            let hint = error.hint();
            assert!(hint.contains("kd forum audit"), "{hint}");
            let ForumError::Column {
                column,
                wanted,
                found,
            } = error
            else {
                unreachable!()
            };
            (column, wanted, found)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_broken_column_is_an_error_that_names_it() {
    for with in BREAKS {
        each(|site| {
            let (column, wanted, found) = broken(site, with);
            assert_eq!((column.as_str(), wanted), (with.column, with.wanted));
            assert!(!found.is_empty());
        });
    }
}

/// A row whose word `kd` does not know: how it gets there, and its column.
const UNKNOWN: &[(&str, &str)] = &[
    (
        "INSERT INTO motions (forum, kind, title, reason, proposer, created_at, closes_after, state, outcome)
           VALUES ('main', 'coup', 't', 'r', 'ann', 1, 1, 'open', '')",
        "kind",
    ),
    (
        "INSERT INTO motions (forum, kind, title, reason, proposer, created_at, closes_after, state, outcome)
           VALUES ('main', 'text', 't', 'r', 'ann', 1, 1, 'undecided', '')",
        "state",
    ),
    ("UPDATE runs SET outcome = 'pleased'", "outcome"),
    ("UPDATE links SET origin = 'found'", "origin"),
    (
        "INSERT INTO orders (forum, at, actor, what, target, before, after, reason)
           VALUES ('main', 1, 'king', 'post', 'the first', '', '', '')",
        "target",
    ),
];

#[test]
fn an_unknown_word_is_an_error_that_names_its_column() {
    for (damage, column) in UNKNOWN {
        each(|site| {
            let mut store = site.open();
            let mut leader = lead(&mut store);
            live(&mut store, &mut leader, 1);
            tamper(site, damage);
            let cycle = store.cycles(MAIN, 1).map(|cycles| cycles[0].id);
            let read = [
                cycle.and_then(|id| store.runs_of(id)).err(),
                store.motions_for(Sight::All, MAIN, 9).err(),
                store.orders(MAIN, 9).err(),
            ];
            let found: Vec<String> = read
                .into_iter()
                .flatten()
                .map(|error| match error {
                    ForumError::Column { column, .. } => column,
                    other => panic!("{damage}: {other:?}"),
                })
                .collect();
            assert_eq!(found, [*column], "{damage}");
        });
    }
}
