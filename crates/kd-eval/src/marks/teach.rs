//! Chooses the unmarked verdicts whose marks would teach most.
//!
//! Input: all marks, and verdicts that have none. Output: the most useful ones, best first. Verdicts are grouped by what a
//! promise is about: kind of question, protocol and models. Groups that are used often and marked rarely come first,
//! two verdicts of each group at most before any group has more. Within a group, verdicts at the edge of what is
//! promised come first: those just below the score from which a promise holds, or, without a promise, those with the
//! highest score, on which the first promise is tested.

use super::{Basis, Evidence, Mark};
use std::collections::BTreeMap;

/// Marks that every group is treated as having: with few marks the use of a group decides.
const HEAD_START: f64 = 10.0;
/// Verdicts of one group in a row.
const OF_ONE_GROUP: usize = 2;

/// Returns the positions in `unmarked` of up to `most` verdicts, the one that would teach most first.
pub fn teaching(marks: &[Mark], unmarked: &[Mark], most: usize) -> Vec<usize> {
    let mut groups: BTreeMap<Group<'_>, Vec<usize>> = BTreeMap::new();
    for (at, verdict) in unmarked.iter().enumerate() {
        groups.entry(group(verdict)).or_default().push(at);
    }
    let mut marked: BTreeMap<Group<'_>, usize> = BTreeMap::new();
    for mark in marks {
        *marked.entry(group(mark)).or_default() += 1;
    }
    let evidence = Evidence::of(marks.to_vec());
    let mut ranked: Vec<(f64, Vec<usize>)> = (groups.into_iter())
        .filter_map(|(key, mut places)| {
            let basis = Basis::of(&evidence, &unmarked[*places.first()?], None);
            let gap = |at: &usize| basis.gap(&unmarked[*at]).unwrap_or(f64::INFINITY);
            places.sort_by(|a, b| gap(a).total_cmp(&gap(b)));
            let marks = marked.get(&key).copied().unwrap_or(0) as f64;
            let uses = marks + places.len() as f64;
            Some((uses / (marks + HEAD_START), places))
        })
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut chosen = Vec::new();
    let mut from = 0;
    while chosen.len() < most && ranked.iter().any(|(_, places)| places.len() > from) {
        for (_, places) in &ranked {
            chosen.extend(places.iter().skip(from).take(OF_ONE_GROUP));
        }
        from += OF_ONE_GROUP;
    }
    chosen.truncate(most);
    chosen
}

/// The properties that all marks behind one promise share: kind, protocol, stopping rule, models.
type Group<'m> = (&'m str, &'m str, Option<&'m str>, Vec<&'m str>);

fn group(mark: &Mark) -> Group<'_> {
    let stopping = mark.stopping.as_deref();
    (&mark.kind, &mark.protocol, stopping, mark.models())
}

#[cfg(test)]
mod tests {
    use super::super::{By, Member, VERSION};
    use super::*;
    use jiff::Timestamp;

    /// Builds a verdict of three models, `backing` of which support it.
    fn verdict(kind: &str, at: i64, backing: usize, right: bool) -> Mark {
        let member = |model: usize| Member {
            name: format!("m{model}"),
            model: format!("vendor/m{model}"),
            key: Some(if model < backing { "1" } else { "2" }.to_owned()),
            backs: model < backing,
            confidence: None,
        };
        Mark {
            v: VERSION,
            project: "p-1".into(),
            thread: format!("council-{kind}-{at}"),
            message: 5,
            at: Timestamp::from_second(at * 86_400).expect("a time"),
            by: By::User,
            kind: kind.into(),
            protocol: "vote".into(),
            members: (0..3).map(member).collect(),
            unasked: Vec::new(),
            stopping: None,
            winner: Some("1".into()),
            credit: f64::from(u8::from(right)),
            answer: None,
            calls: 3,
            usd: 0.0,
        }
    }

    #[test]
    fn kinds_that_are_used_often_and_marked_rarely_come_first() {
        let marks: Vec<Mark> = (0..100).map(|at| verdict("number", at, 3, true)).collect();
        let mut unmarked: Vec<Mark> = (0..20)
            .map(|at| verdict("number", 200 + at, 3, true))
            .collect();
        unmarked.extend((0..8).map(|at| verdict("choice", 200 + at, 3, true)));
        unmarked.push(verdict("date", 300, 3, true));
        let kinds: Vec<&str> = (teaching(&marks, &unmarked, 5).into_iter())
            .map(|at| unmarked[at].kind.as_str())
            .collect();
        // 120 / 110, 8 / 10, 1 / 10.
        assert_eq!(kinds, ["number", "number", "choice", "choice", "date"]);
        let few: Vec<Mark> = marks.into_iter().take(3).collect();
        let first = teaching(&few, &unmarked, 50);
        assert_eq!(first.len(), unmarked.len(), "each is named once");
        let mut sorted = first.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), first.len());
        assert_eq!(teaching(&[], &[], 5), Vec::<usize>::new());
    }

    #[test]
    fn verdicts_at_the_edge_of_a_promise_come_first() {
        let unmarked: Vec<Mark> = [1, 2, 3, 2]
            .iter()
            .enumerate()
            .map(|(at, backing)| verdict("number", 500 + at as i64, *backing, true))
            .collect();
        // Without a promise, the surest one is tested first.
        assert_eq!(teaching(&[], &unmarked, 1), [2]);
        // With one for unanimous verdicts, the next lower score would extend it.
        let marks: Vec<Mark> = (0..200)
            .map(|at| match at % 2 {
                0 => verdict("number", at, 3, true),
                _ => verdict("number", at, 2, at % 4 == 1),
            })
            .collect();
        assert_eq!(teaching(&marks, &unmarked, 2), [1, 3]);
    }
}
