//! The order of marks whose clock was wrong. Marks made on this machine keep the order in which they were made, even
//! if the clock was wrong. Imported marks are ordered by their times.

use kd_core::Timestamp;
use kd_eval::marks::{By, Mark};
use rusqlite::Transaction;

/// Returns the time by which the newest marks are found, in microseconds: a mark made on this machine is always the
/// newest of its kind, even if the clock is wrong. Their order is corrected when they are read: see [`in_order`].
pub(super) fn place(tx: &Transaction<'_>, mark: &Mark) -> Result<i64, rusqlite::Error> {
    let at = mark.at.as_microsecond();
    if mark.by == By::Import {
        return Ok(at);
    }
    let query = "SELECT max(marked_us) FROM marks WHERE kind = ?1 AND current = 1";
    let mut newest = tx.prepare_cached(query)?;
    let newest: Option<i64> = newest.query_row([&mark.kind], |row| row.get(0))?;
    Ok(newest.map_or(at, |newest| newest.max(at)))
}

/// Sorts marks by time, oldest first; each comes with its row, and rows are in the order of marking. Of the marks made
/// here, those that contradict this order by their times get times that do not: one after `now` was made by a clock that
/// was ahead, and of two that contradict each other, the one that contradicts more others is wrong, else the earlier
/// one. A wrong time is replaced with the time of the next mark with a plausible time, or with `now`.
pub(super) fn in_order(mut rows: Vec<(i64, Mark)>, now: Timestamp) -> Vec<Mark> {
    rows.sort_unstable_by_key(|(row, _)| *row);
    let made: Vec<usize> = (0..rows.len())
        .filter(|at| rows[*at].1.by != By::Import)
        .collect();
    let times: Vec<Timestamp> = made.iter().map(|at| rows[*at].1.at).collect();
    let is_right = rising(&times, now);
    let mut next = now;
    for (place, at) in made.iter().enumerate().rev() {
        let mark = &mut rows[*at].1;
        match is_right[place] {
            true => next = mark.at,
            false => {
                // Before the next one, also where the thread decides between equal times.
                next = next.checked_sub(TICK).unwrap_or(next);
                mark.at = next;
            }
        }
    }
    for (_, mark) in &mut rows {
        mark.at = mark.at.min(now);
    }
    rows.sort_by_key(|(row, mark)| (mark.at, *row));
    rows.into_iter().map(|(_, mark)| mark).collect()
}

/// The smallest step of a time.
const TICK: jiff::SignedDuration = jiff::SignedDuration::from_nanos(1);

/// Returns which times are part of the longest non-decreasing sequence that ends by `now`. If there are several, uses
/// the one with the earliest times.
fn rising(times: &[Timestamp], now: Timestamp) -> Vec<bool> {
    // For each length, the sequence of it that ends earliest, by the place of its end.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; times.len()];
    for (place, time) in times.iter().enumerate() {
        if *time > now {
            continue;
        }
        let length = ends.partition_point(|end| times[*end] <= *time);
        before[place] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = place,
            None => ends.push(place),
        }
    }
    let mut is_part = vec![false; times.len()];
    let mut at = ends.last().copied();
    while let Some(place) = at {
        is_part[place] = true;
        at = before[place];
    }
    is_part
}

#[cfg(test)]
mod tests {
    use super::super::tests::mark;
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn made(rows: &[(i64, By)]) -> Vec<(i64, Mark)> {
        let mark = |(row, (second, by)): (usize, &(i64, By))| {
            let mut mark = mark(&format!("council-{row}"), 5, 1.0);
            (mark.at, mark.by) = (at(*second), *by);
            (row as i64, mark)
        };
        rows.iter().enumerate().map(mark).collect()
    }

    fn order(rows: &[(i64, By)], now: i64) -> Vec<usize> {
        let number = |mark: &Mark| mark.thread["council-".len()..].parse().unwrap();
        in_order(made(rows), at(now)).iter().map(number).collect()
    }

    fn of_user(seconds: &[i64]) -> Vec<(i64, By)> {
        seconds.iter().map(|second| (*second, By::User)).collect()
    }

    #[test]
    fn marks_made_here_are_in_the_order_of_marking_whatever_the_clock_said() {
        for (what, seconds, now) in [
            ("right", &[1, 2, 2, 3][..], 9),
            ("ahead, and it still is", &[1, 500, 501, 2, 3], 9),
            ("ahead, and that time has come", &[1, 500, 2, 3], 900),
            ("ahead, and nothing was marked since", &[1, 2, 500], 9),
            ("behind", &[100, 101, 1, 102, 103], 900),
            ("ahead from the first on", &[500, 1, 2], 9),
        ] {
            let rows = of_user(seconds);
            let all: Vec<usize> = (0..rows.len()).collect();
            assert_eq!(order(&rows, now), all, "{what}");
            let marks = in_order(made(&rows), at(now));
            assert!(marks.iter().all(|mark| mark.at <= at(now)), "{what}");
            // Where only times are looked at, the order is the same.
            let mut again = marks.clone();
            again.reverse();
            again.sort_by_key(|mark| mark.at);
            let strict = marks.windows(2).all(|two| two[0].at < two[1].at);
            assert!(!strict || again == marks, "{what}");
        }
    }

    #[test]
    fn a_wrong_time_becomes_that_of_the_next_mark() {
        let rows = of_user(&[1, 500, 501, 20, 30]);
        let times: Vec<i64> = in_order(made(&rows), at(900))
            .iter()
            .map(|mark| mark.at.as_nanosecond() as i64)
            .collect();
        let s = 1_000_000_000;
        assert_eq!(times, [s, 20 * s - 2, 20 * s - 1, 20 * s, 30 * s]);
    }

    #[test]
    fn imported_marks_are_placed_by_their_times() {
        let rows = [
            (50, By::User),
            (10, By::Import),
            (60, By::Command),
            (55, By::Import),
            (900, By::Import),
        ];
        assert_eq!(order(&rows, 100), [1, 0, 3, 2, 4]);
        // They tell nothing about the clock here.
        assert_eq!(order(&[(50, By::User), (10, By::Import)], 100), [1, 0]);
    }

    #[test]
    fn times_that_are_right_stay_as_they_are() {
        let rows = of_user(&[1, 1, 4, 9, 9]);
        let before: Vec<Mark> = made(&rows).into_iter().map(|(_, mark)| mark).collect();
        assert_eq!(in_order(made(&rows), at(9)), before);
    }
}
