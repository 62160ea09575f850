//! Changed bytes of the record: in any value that the audit covers, at any position, on both databases.
//!
//! `KD_CHANGES=10000 cargo test -p kd-sql --test forum bytes -- --nocapture` tries more of them.

use crate::chain::{RECORD, audited, lead, live, live_otherwise};
use crate::dice::Dice;
use crate::servers::{Site, each};
use crate::talk::at;
use kd_forum::MAIN;
use kd_sql::forum::Place;

/// Number of changes to try.
const CHANGES: usize = 200;

/// Columns that posts, actions and cycles refer to, besides those of [`RECORD`].
const AROUND: &[(&str, &str, &[&str])] = &[
    ("cycles", "id", &["forum"]),
    ("runs", "id", &["forum"]),
    ("threads", "id", &["forum", "author", "created_at"]),
    ("motions", "id", &["title"]),
];

/// The database, accessed without kd.
enum Direct {
    Sqlite(rusqlite::Connection),
    Postgres(postgres::Client),
}

impl Direct {
    fn open(site: &Site) -> Self {
        match &site.place {
            Place::File(path) => {
                let direct = rusqlite::Connection::open(path).unwrap();
                direct.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
                Self::Sqlite(direct)
            }
            Place::Server(url) => {
                let mut direct = postgres::Client::connect(url, postgres::NoTls).unwrap();
                // No foreign keys either.
                let sql = "SET session_replication_role = replica";
                direct.batch_execute(sql).unwrap();
                Self::Postgres(direct)
            }
        }
    }

    /// Returns the keys and values of a column, as text.
    fn values(&mut self, table: &str, key: &str, column: &str) -> Vec<(String, String)> {
        let sql = format!(
            "SELECT CAST({key} AS TEXT), CAST({column} AS TEXT) FROM {table} WHERE {column} IS NOT NULL ORDER BY {key}"
        );
        match self {
            Self::Sqlite(direct) => {
                let mut statement = direct.prepare(&sql).unwrap();
                let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
                rows.unwrap().map(Result::unwrap).collect()
            }
            Self::Postgres(direct) => {
                let rows = direct.query(&sql, &[]).unwrap();
                rows.iter().map(|row| (row.get(0), row.get(1))).collect()
            }
        }
    }

    /// Sets one value; returns false if the database rejects it.
    fn put(&mut self, table: &str, key: &str, id: &str, column: &str, value: &str) -> bool {
        // A literal takes the type of its column in both databases.
        let value = value.replace('\'', "''");
        let sql =
            format!("UPDATE {table} SET {column} = '{value}' WHERE CAST({key} AS TEXT) = '{id}'");
        match self {
            Self::Sqlite(direct) => direct.execute(&sql, []).is_ok_and(|n| n == 1),
            Self::Postgres(direct) => direct.execute(&sql, &[]).is_ok_and(|n| n == 1),
        }
    }
}

/// Returns the text with one byte replaced by one that is valid in a text of the record.
fn replaced(text: &str, dice: &mut Dice) -> Option<String> {
    let number = text.parse::<i64>().is_ok();
    let mut bytes = text.as_bytes().to_vec();
    let at = dice.below(bytes.len().max(1));
    let old = *bytes.get(at)?;
    let new = match number {
        true => b'0' + dice.below(10) as u8,
        false => 1 + dice.below(126) as u8,
    };
    bytes[at] = new;
    let changed = String::from_utf8(bytes).ok()?;
    // Not another spelling of the same number.
    let same = number && changed.parse::<i64>().ok() == text.parse::<i64>().ok();
    (new != old && !same && (!number || changed.parse::<i64>().is_ok())).then_some(changed)
}

#[test]
fn a_changed_byte_anywhere_in_the_record_is_found() {
    let wanted = std::env::var("KD_CHANGES").ok();
    let wanted = wanted.and_then(|n| n.parse().ok()).unwrap_or(CHANGES);
    each(|site| {
        let mut store = site.open();
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 3);
        let post = store.posts_after(MAIN, 0, 2).unwrap().remove(1);
        store
            .edit_post(post.id, &post.author, "other words", at(5))
            .unwrap();
        live(&mut store, &mut leader, 3);
        live_otherwise(&mut store, &mut leader);
        live(&mut store, &mut leader, 1);
        assert_eq!(audited(&mut store).faults, Vec::new());
        let mut direct = Direct::open(site);
        let mut dice = Dice(1);
        let columns: Vec<(&str, &str, &str)> = RECORD
            .iter()
            .chain(AROUND)
            .flat_map(|(table, key, columns)| columns.iter().map(|c| (*table, *key, *c)))
            .collect();
        let (mut tried, mut missed) = (0, Vec::new());
        while tried < wanted {
            let (table, key, column) = columns[dice.below(columns.len())];
            let values = direct.values(table, key, column);
            if values.is_empty() {
                continue;
            }
            let (id, value) = &values[dice.below(values.len())];
            // For an edited post, only the author and the digest of its original text are sealed.
            let edited = table == "posts" && *id == post.id.to_string();
            let edited = edited && ["body", "created_at", "quote_post_id"].contains(&column);
            let Some(changed) = replaced(value, &mut dice).filter(|_| !edited) else {
                continue;
            };
            if !direct.put(table, key, id, column, &changed) {
                continue;
            }
            tried += 1;
            let all = store.audit(MAIN, &mut |_| {});
            if all.is_ok_and(|all| all.faults.is_empty()) {
                missed.push(format!(
                    "{table}.{column} of {id}: {value:?} to {changed:?}"
                ));
            }
            // The key itself may have been changed.
            let id = if column == key { &changed } else { id };
            assert!(direct.put(table, key, id, column, value));
        }
        assert_eq!(audited(&mut store).faults, Vec::new());
        eprintln!("{tried} changed bytes, {} not found", missed.len());
        missed.sort();
        missed.dedup();
        assert!(
            missed.is_empty(),
            "{} not found:\n{}",
            missed.len(),
            missed.join("\n")
        );
    });
}
