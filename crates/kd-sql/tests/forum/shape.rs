//! Files that only look like a forum: what SQLite would do for them must not happen.

use crate::talk::{at, by};
use kd_forum::MAIN;
use kd_sql::forum::{ForumError, ForumStore, Place};
use rusqlite::Connection;
use std::path::Path;

fn open(file: &Path) -> Result<ForumStore, ForumError> {
    ForumStore::open(&Place::File(file.to_path_buf()), None)
}

/// Creates a forum with one post, closed.
fn forum(file: &Path) {
    let mut store = open(file).unwrap();
    let post = by("ada", "words");
    store.create_thread(MAIN, "Bees", &post, at(0)).unwrap();
    drop(store);
    let db = Connection::open(file).unwrap();
    db.pragma_update(None, "journal_mode", "delete").unwrap();
}

/// Builds a journal that is rolled back when the database is opened, and that names `other`.
fn journal(database: &[u8], other: &str) -> Vec<u8> {
    const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    const PAGE: usize = 4096;
    let page = &database[..PAGE];
    let pages = (database.len() / PAGE) as u32;
    let mut sum: u32 = 1;
    let mut at = PAGE as i64 - 200;
    while at > 0 {
        sum = sum.wrapping_add(u32::from(page[at as usize]));
        at -= 200;
    }
    let mut bytes = MAGIC.to_vec();
    for number in [1, 1, pages, 512, PAGE as u32] {
        bytes.extend_from_slice(&u32::to_be_bytes(number));
    }
    bytes.resize(512, 0);
    bytes.extend_from_slice(&1_u32.to_be_bytes());
    bytes.extend_from_slice(page);
    bytes.extend_from_slice(&sum.to_be_bytes());
    bytes.extend_from_slice(&((1_u32 << 30) / PAGE as u32 + 1).to_be_bytes());
    bytes.extend_from_slice(other.as_bytes());
    bytes.extend_from_slice(&(other.len() as u32).to_be_bytes());
    let name_sum: u32 = other.bytes().map(u32::from).sum();
    bytes.extend_from_slice(&name_sum.to_be_bytes());
    bytes.extend_from_slice(&MAGIC);
    bytes
}

#[test]
fn a_journal_that_names_another_file_is_refused_and_the_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (file, victim) = (folder.path().join("forum.db"), folder.path().join("key"));
    forum(&file);
    std::fs::write(&victim, "secret").unwrap();
    let planted = journal(&std::fs::read(&file).unwrap(), victim.to_str().unwrap());
    let beside = folder.path().join("forum.db-journal");
    // The attack is real: SQLite alone deletes the file.
    std::fs::write(&beside, &planted).unwrap();
    let db = Connection::open(&file).unwrap();
    let _ = db.query_row("SELECT count(*) FROM posts", [], |row| row.get::<_, i64>(0));
    drop(db);
    assert!(!victim.exists(), "this test attacks nothing");
    std::fs::write(&victim, "secret").unwrap();
    std::fs::write(&beside, &planted).unwrap();
    let error = open(&file).unwrap_err();
    assert!(error.to_string().contains("names another file"), "{error}");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "secret");
    // Our own leftover journal is not an obstacle.
    std::fs::write(&beside, "").unwrap();
    assert_eq!(open(&file).unwrap().threads(MAIN, 9).unwrap().len(), 1);
}

#[test]
fn a_forum_with_other_tables_than_ours_is_refused() {
    let body = "body TEXT NOT NULL";
    let rewrite = |from: &str, to: &str| {
        format!(
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}') WHERE name = 'posts'"
        )
    };
    let planted = [
        rewrite(body, "body TEXT AS (printf(''%.30000000c'', ''x'')) VIRTUAL"),
        rewrite(body, "body TEXT NOT NULL DEFAULT (randomblob(9))"),
        rewrite(body, "body TEXT NOT NULL CHECK (length(body) < 9)"),
        "CREATE TRIGGER planted AFTER INSERT ON posts BEGIN UPDATE threads SET title = 'planted'; END".into(),
        "CREATE VIEW planted AS SELECT * FROM posts".into(),
        "CREATE INDEX planted ON posts (length(body))".into(),
        "CREATE TABLE planted (x)".into(),
        "DROP INDEX posts_by_thread".into(),
        "DROP TABLE words".into(),
        "DROP INDEX posts_by_thread; CREATE INDEX posts_by_thread ON posts (body)".into(),
        // As if another program had created it, with the first schema version.
        "PRAGMA user_version = 0".into(),
        "PRAGMA user_version = 1".into(),
        "PRAGMA user_version = -1".into(),
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'block BLOB', 'block BLOB AS (zeroblob(9))') WHERE name = 'words_data'".into(),
    ];
    for sql in planted {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("forum.db");
        forum(&file);
        let db = Connection::open(&file).unwrap();
        db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)
            .unwrap();
        db.execute_batch(&sql).unwrap();
        drop(db);
        let before = std::fs::read(&file).unwrap();
        let Err(error) = open(&file) else {
            panic!("opened after: {sql}");
        };
        assert!(
            matches!(error, ForumError::NotOurs { .. }),
            "{sql}: {error}"
        );
        assert!(
            std::fs::read(&file).unwrap() == before,
            "written after: {sql}"
        );
    }
}

#[test]
fn a_result_has_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("forum.db");
    forum(&file);
    let db = Connection::open(&file).unwrap();
    db.execute_batch(
        "INSERT INTO posts SELECT NULL, thread_id, author, body, quote_post_id, created_at, edited_at, deleted_at, run_id, call_no, hidden_at, erased_at FROM posts;
         UPDATE posts SET body = printf('%.9000000c', 'x');
         INSERT INTO posts SELECT NULL, thread_id, author, body, quote_post_id, created_at, edited_at, deleted_at, run_id, call_no, hidden_at, erased_at FROM posts;
         INSERT INTO posts SELECT NULL, thread_id, author, body, quote_post_id, created_at, edited_at, deleted_at, run_id, call_no, hidden_at, erased_at FROM posts;",
    )
    .unwrap();
    drop(db);
    let error = open(&file).unwrap().thread(1, 0, 50).unwrap_err();
    assert!(error.to_string().contains("64 MiB"), "{error}");
}
