//! Judges: members decide whether findings of others that the rules leave unclear are the same.

use super::{Effects, Review, Turn};
use crate::review::merge::{Judged, Merged, merge};
use crate::review::{ask, counted, read};

impl Review {
    /// Merges the findings, with the judges' answers so far.
    pub(super) fn merge(&self) -> Merged {
        let verdicts = self.verdicts.iter();
        let judged: Judged = verdicts.map(|(pair, (_, same))| (*pair, *same)).collect();
        merge(&self.raws, &judged)
    }

    /// Asks members about unclear pairs. A member that made one of the findings is not asked about the pair: it could
    /// merge its finding with one that others confirm, or split off a finding that agrees with its own. If only the two
    /// makers reviewed, the rules decide.
    pub(super) fn ask_judges(&mut self, fx: &mut Effects) {
        if self.interrupted {
            return;
        }
        let mut left: Vec<usize> = (0..self.merged.unclear.len()).collect();
        // A member that could not review cannot judge either.
        let mut able: Vec<usize> = (0..self.sums.len())
            .filter(|member| self.sums[*member].replied > 0)
            .collect();
        let mut unasked = 0;
        for _ in 0..self.plan.judges {
            let most = |member: &&usize| {
                left.iter()
                    .filter(|at| self.is_neutral(**member, **at))
                    .count()
            };
            // The first of the members that can judge most.
            let Some(judge) = able.iter().rev().max_by_key(most).copied() else {
                break;
            };
            able.retain(|member| *member != judge);
            let (pairs, others): (Vec<usize>, Vec<usize>) =
                left.iter().partition(|at| self.is_neutral(judge, **at));
            left = others;
            if !pairs.is_empty() {
                unasked += self.ask_judge(judge, &pairs, fx);
            }
        }
        let limited = left
            .iter()
            .filter(|at| able.iter().any(|member| self.is_neutral(*member, **at)));
        unasked += limited.count();
        if self.open.judged && unasked > 0 {
            let pairs = counted(unasked, "unclear pair");
            self.notices.push(format!(
                "the rules decided {pairs} of findings: there was no room to ask about them"
            ));
        }
    }

    /// Asks a judge about pairs. Returns how many did not fit into the request.
    fn ask_judge(&mut self, judge: usize, pairs: &[usize], fx: &mut Effects) -> usize {
        let unclear: Vec<(usize, usize)> =
            pairs.iter().map(|at| self.merged.unclear[*at]).collect();
        let bytes = self.plan.bytes;
        let (request, shown) =
            ask::pairs(&self.open, &self.hidden, judge, &self.raws, &unclear, bytes);
        let rest = pairs.len() - shown.len();
        let shown: Vec<(String, usize)> = shown
            .into_iter()
            .map(|(label, at)| (label, pairs[at]))
            .collect();
        if !shown.is_empty() {
            self.ask((judge, 0), request, shown, fx);
        }
        rest
    }

    /// Returns whether a member made neither finding of an unclear pair.
    fn is_neutral(&self, member: usize, pair: usize) -> bool {
        let (a, b) = self.merged.unclear[pair];
        let name = self.open.members[member].name.as_str();
        [a, b].iter().all(|at| self.raws[*at].member != name)
    }

    /// Takes a judge's answers.
    pub(super) fn take_verdicts(&mut self, turn: &Turn, name: &str, text: &str, labels: &[String]) {
        for (label, same) in read::same(text, labels) {
            let place = turn.shown.iter().find(|(shown, _)| *shown == label);
            if let Some(pair) = place.and_then(|(_, at)| self.merged.unclear.get(*at)) {
                self.verdicts.insert(*pair, (name.to_owned(), same));
            }
        }
    }
}
