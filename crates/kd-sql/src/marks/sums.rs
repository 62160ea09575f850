//! The sums of all marks per kind of question and model, and the columns by which they are found.

use super::{council, known};
use crate::brief;
use kd_eval::marks::Sums;
use rusqlite::params;

/// Fills the columns that earlier versions did not have, and the sums.
pub(super) fn index(tx: &rusqlite::Transaction<'_>) -> Result<(), rusqlite::Error> {
    let mut found = tx.prepare("SELECT id, mark FROM marks")?;
    let mut rows = found.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(mark) = known(row.get_ref(1)?) {
            tx.execute(
                "UPDATE marks SET kind = ?2, council = ?3, marked_us = ?4, brief = ?5 WHERE id = ?1",
                params![
                    row.get::<_, i64>(0)?,
                    mark.kind,
                    council(&mark),
                    mark.at.as_microsecond(),
                    brief::write(&mark)
                ],
            )?;
        }
    }
    sum_up(tx)
}

/// Computes the sums of all marks.
pub(super) fn sum_up(tx: &rusqlite::Transaction<'_>) -> Result<(), rusqlite::Error> {
    let mut sums = Sums::default();
    {
        let mut found = tx.prepare("SELECT mark FROM marks WHERE current = 1")?;
        let mut rows = found.query([])?;
        while let Some(row) = rows.next()? {
            if let Some(mark) = known(row.get_ref(0)?) {
                sums.add(&mark);
            }
        }
    }
    tx.execute("DELETE FROM sums", [])?;
    add_up(tx, &sums, 1)
}

/// Adds to the kept sums; subtracts if `sign` is -1.
pub(super) fn add_up(
    tx: &rusqlite::Transaction<'_>,
    sums: &Sums,
    sign: i64,
) -> Result<(), rusqlite::Error> {
    let mut add = tx.prepare_cached(
        "INSERT INTO sums (kind, model, right, questions) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (kind, model) DO UPDATE SET
         right = right + excluded.right, questions = questions + excluded.questions",
    )?;
    for (kind, model, sum) in sums.iter() {
        let signed = |n: u64| sign * n as i64;
        add.execute(params![
            kind,
            model,
            signed(sum.right),
            signed(sum.questions)
        ])?;
    }
    if sign < 0 {
        tx.execute("DELETE FROM sums WHERE questions <= 0", [])?;
    }
    Ok(())
}
