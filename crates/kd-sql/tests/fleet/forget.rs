//! Erasing batches and questions, and what a server says to a user without rights.

use crate::support::{ID, LEASE, Site, answer, asked, finish, new, places};
use jiff::Timestamp;
use kd_core::batch::Row;
use kd_sql::fleet::{Erased, Fleet, FleetError, FleetReader, Store};

fn from_thread(text: &str, thread: &str) -> Row {
    Row {
        thread: Some(thread.into()),
        ..answer(text)
    }
}

/// Returns how often a text is anywhere in the tables.
fn mentions(site: &Site, text: &str) -> i64 {
    let mut client = postgres::Client::connect(&site.url, postgres::NoTls).unwrap();
    let sql = "SELECT (SELECT count(*) FROM kd_questions WHERE question LIKE $1) + (SELECT count(*) FROM kd_results WHERE line LIKE $1)
        + (SELECT count(*) FROM kd_threads WHERE convert_from(bytes, 'UTF8') LIKE $1)";
    let row = client.query_one(sql, &[&format!("%{text}%")]).unwrap();
    row.get(0)
}

fn threads(site: &Site, place: u64, text: &str) {
    site.sql(&format!(
        "INSERT INTO kd_threads VALUES ('{ID}', {place}, 'm1.md', convert_to('{text}', 'UTF8'))"
    ));
}

#[test]
fn a_question_is_erased_with_equal_ones_and_where_its_answer_was_used() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["secret?", "Two?", "secret?", "Three?"]);
    assert_eq!(places(&mut fleet, 9), [1, 2, 4]);
    assert!(finish(
        &mut fleet,
        1,
        &from_thread("secret!", "council-1"),
        true
    ));
    // Another thread may have the same short name: the question is another.
    assert!(finish(&mut fleet, 2, &from_thread("2", "council-1"), true));
    threads(&site, 1, "secret thread");
    let more = asked(&["Five?", "secret?", "Two?"]);
    fleet
        .create(&new("batch-2"), &more, Timestamp::now())
        .unwrap();
    assert_eq!(mentions(&site, "secret"), 3 + 3 + 1);
    let dry = fleet.forget(ID, Some("q1"), true).unwrap();
    assert_eq!(mentions(&site, "secret"), 7, "nothing is erased");
    let erased = fleet.forget(ID, Some("q1"), false).unwrap();
    let expected = Erased {
        questions: 2,
        results: 2,
        threads: 1,
        elsewhere: [("batch-2".to_owned(), 1)].into(),
        ..Erased::default()
    };
    assert_eq!((&dry, &erased), (&expected, &expected));
    assert_eq!(mentions(&site, "secret"), 0);
    assert_eq!(site.lines(&mut fleet, ID).len(), 1);
    assert_eq!(
        site.lines(&mut fleet, "batch-2").len(),
        1,
        "the answer to Two?"
    );
    assert!(fleet.known(&asked(&["secret?"])).unwrap().is_empty());
    assert_eq!(
        fleet.forget(ID, Some("q9"), false).unwrap(),
        Erased::default()
    );
    // What is still asked goes on.
    assert!(finish(&mut fleet, 4, &answer("3"), true));
}

#[test]
fn a_batch_is_erased_only_when_nobody_asks_it() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["secret?", "Two?"]);
    assert_eq!(places(&mut fleet, 1), [1]);
    let name = format!("w-{}", fleet.worker());
    for question in [None, Some("q1")] {
        let refused = fleet.forget(ID, question, false).unwrap();
        assert_eq!(refused.asking, [(name.clone(), 1)].into(), "{question:?}");
    }
    assert_eq!(mentions(&site, "secret"), 1);
    // A worker that is lost asks nothing.
    let mut other = Fleet::open(&site.store(), LEASE).unwrap();
    site.pass(LEASE * 2, fleet.worker());
    let found = other.forget(ID, None, true).unwrap();
    assert_eq!((found.questions, found.asking.len()), (2, 0));
    let erased = other.forget(ID, None, false).unwrap();
    assert_eq!((erased.questions, erased.asking.len()), (2, 0));
    assert_eq!(mentions(&site, "?"), 0);
    assert_eq!(FleetReader::new(&site.store()).look(9).unwrap().0, []);
    assert!(
        !finish(&mut fleet, 1, &answer("late secret"), true),
        "a late result is dropped"
    );
    assert_eq!(mentions(&site, "secret"), 0);
}

#[test]
fn a_user_without_rights_is_told_what_to_type() {
    let Some(site) = Site::new() else { return };
    let schema = site.url.rsplit("search_path%3D").next().unwrap();
    let poor = format!("{schema}_poor");
    site.sql(&format!("CREATE ROLE {poor} LOGIN"));
    let store = |url: &str| Store::parse(url).unwrap();
    let url = site.url.replacen("//kd@", &format!("//{poor}@"), 1);
    let refused = |url: &str| Fleet::open(&store(url), LEASE).unwrap_err().hint();
    // The schema is not even seen, then seen, then written to.
    let hint = refused(&url);
    assert!(
        hint.contains(&format!("CREATE SCHEMA AUTHORIZATION {poor};")),
        "{hint}"
    );
    site.sql(&format!("GRANT USAGE ON SCHEMA {schema} TO {poor}"));
    let hint = refused(&url);
    let grant = format!("GRANT USAGE, CREATE ON SCHEMA {schema} TO {poor};");
    assert!(hint.contains(&grant), "{hint}");
    site.sql(&grant);
    Fleet::open(&store(&url), LEASE).expect("what was typed helps");
    let hint = refused(&url.replace("/postgres?", "/nowhere?"));
    assert!(
        hint.contains(&format!("CREATE DATABASE nowhere OWNER {poor};")),
        "{hint}"
    );
    let hint = refused(&site.url.replacen("//kd@", "//nobody_here@", 1));
    assert!(hint.contains("CREATE ROLE nobody_here LOGIN"), "{hint}");
    let hint = refused("postgresql://kd@127.0.0.1:1/kd");
    assert!(hint.contains("pg_isready"), "{hint}");
    let hint = refused("postgresql://kd@/kd?host=/nowhere/at/all");
    assert!(hint.contains("socket"), "{hint}");
    site.sql("DROP TABLE kd_store; CREATE TABLE kd_store (version bigint); INSERT INTO kd_store VALUES (1); DROP TABLE kd_jobs CASCADE");
    let mut fleet = Fleet::open(&site.store(), LEASE).unwrap();
    let error = fleet.cancel(ID).unwrap_err();
    assert!(matches!(error, FleetError::Database { .. }), "{error}");
    assert!(
        error.hint().contains("DROP TABLE kd_store;"),
        "{}",
        error.hint()
    );
    site.sql(&format!("DROP OWNED BY {poor}; DROP ROLE {poor}"));
}
