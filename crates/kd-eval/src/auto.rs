//! `auto`: chooses the protocol and the decision rule of a council.
//!
//! Input: the kind of task, and the evidence about the members' strength. Output: an [`Auto`], with the reasons in
//! words. A pure function: the planner, `kd deliberate` and `kd eval` call the same one.
//!
//! The evidence: a plurality of unequal members is worse than the best of them (Li et al. 2025, arXiv 2502.00674; and
//! `kd eval` on recorded answers), voting helps with reasoning and discussion with knowledge (Kaesberg et al. 2025,
//! arXiv 2502.19130), and work in many dependent steps is best done by one member (arXiv 2512.08296).

use super::enough::MARGIN;
use super::intervals::{Interval, wilson};
use super::weights::{odds, outvotable};
use kd_vote::{NANOS, Nano, nanos};

/// Members this close to the best one are its peers: all councils of such members gained by plurality.
pub const PEERS: f64 = 0.05;

/// The smallest weight of a vote, in billionths.
const LEAST: Nano = 1_000;

/// The kind of task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// Not specified.
    #[default]
    Unknown,
    /// Recalling knowledge.
    Knowledge,
    /// Reasoning.
    Reasoning,
    /// A program can check whether an answer is right.
    Checkable,
    /// A number or a probability.
    Estimate,
    /// Free text, without a single answer to compare.
    OpenText,
    /// Many steps, each depending on the one before; tools.
    Sequential,
}

/// The share of right answers of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strength {
    /// The share of right answers, 0 to 1.
    pub right: f64,
    /// Number of questions measured.
    pub questions: u64,
}

impl Strength {
    /// Returns the share of right answers with one success and one failure added: few questions prove little.
    pub fn estimate(self) -> f64 {
        let n = self.questions as f64;
        let right = if self.right.is_finite() {
            self.right.clamp(0.0, 1.0)
        } else {
            0.5
        };
        (right * n + 1.0) / (n + 2.0)
    }

    /// Returns the 95 % interval of the estimate (Wilson 1927): wide if few questions were measured.
    pub fn interval(self) -> Interval {
        wilson(self.estimate() * self.questions as f64, self.questions)
    }
}

/// The facts that are known before a council starts.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The kind of task.
    pub task: Task,
    /// The strength of each member, in council order; `None` if not measured.
    pub members: Vec<Option<Strength>>,
    /// Weights fitted on questions that all members answered, in council order; `None` with too few of them.
    pub joint: Option<Vec<f64>>,
    /// The share of questions to which each member gave no answer, in council order; empty if not known.
    pub silent: Vec<f64>,
    /// Whether each member's strength was measured on questions of this kind, or is configured. Otherwise no member decides
    /// alone, and none outvotes two others.
    pub measured: bool,
    /// Whether to save calls if that costs little accuracy.
    pub thrifty: bool,
}

/// The choice of `auto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auto {
    /// The name of a protocol: `solo`, `sample-vote`, `vote`, `cascade`, `gate-debate`, `peer-review`, `delphi`.
    pub protocol: &'static str,
    /// The name of a decision rule of `kd vote rules`.
    pub rule: &'static str,
    /// The weight of each member's vote, in billionths, with a mean of one. Equal if nothing is known.
    pub weights: Vec<Nano>,
    /// The members to ask, in order; a cascade asks the last one only if the others disagree.
    pub seats: Vec<usize>,
    /// Whether the weights were fitted on answers of all members together. Then a member's silence counts as a wrong answer
    /// already, and any number of votes decides.
    pub fitted: bool,
    /// Whether a checker should discard wrong answers before the vote.
    pub verify: bool,
    /// The strongest member, if known; it breaks ties.
    pub best: Option<usize>,
    /// The reasons, one sentence per line.
    pub why: Vec<String>,
    /// A warning to show the user before the run costs money.
    pub warning: Option<String>,
}

/// Chooses protocol, rule, weights and members.
pub fn auto(known: &Known) -> Auto {
    let n = known.members.len();
    let strengths = known.members.iter();
    let estimates: Option<Vec<f64>> = strengths.map(|m| m.map(Strength::estimate)).collect();
    let joint = known
        .joint
        .as_ref()
        .filter(|joint| joint.len() == n && estimates.is_some());
    let mut raw = match (joint, estimates.as_deref()) {
        (Some(joint), _) => joint.clone(),
        (None, Some(right)) => odds(right),
        (None, None) => vec![1.0; n],
    };
    // Weights that are fitted rest on marks of all members.
    let measured = known.measured || joint.is_some();
    if !measured {
        outvotable(&mut raw);
    }
    let weights = scaled(&raw);
    let best = estimates.as_deref().and_then(strongest);
    let mut auto = Auto {
        protocol: "vote",
        rule: "plurality",
        weights: weights.iter().map(|w| nanos(*w)).collect(),
        seats: (0..n).collect(),
        fitted: joint.is_some(),
        verify: false,
        best,
        why: Vec::new(),
        warning: None,
    };
    if n < 2 {
        auto.protocol = "solo";
        auto.why.push("one member is not a council".into());
        return auto;
    }
    if known.task == Task::Sequential {
        auto.alone("solo", "one member works best on dependent steps");
        return auto;
    }
    judge_strength(&mut auto, estimates.as_deref());
    if let Some((protocol, rule, why)) = uncounted(known.task) {
        auto.protocol = protocol;
        auto.rule = rule;
        auto.why.push(why.into());
        return auto;
    }
    // A member that all others together cannot outvote decides alone: asking them would change nothing, unless it is
    // silent too often.
    if let (Some(heaviest), Some(_)) = (strongest(&weights), &estimates) {
        let own = weights[heaviest];
        let others: f64 = weights.iter().sum::<f64>() - own;
        let silent = known.silent.get(heaviest).copied().unwrap_or(0.0);
        if measured && own >= others && silent <= MARGIN {
            auto.best = Some(heaviest);
            auto.alone(
                "sample-vote",
                "the strongest member outweighs all others together: its own samples vote",
            );
            auto.rule = "plurality";
            return auto;
        }
    }
    vote(&mut auto, known, &weights);
    auto
}

/// Returns protocol, rule and reason for answers that cannot be counted by plurality.
fn uncounted(task: Task) -> Option<(&'static str, &'static str, &'static str)> {
    match task {
        Task::OpenText => Some((
            "peer-review",
            "borda",
            "texts cannot be counted, so members rank each other's answers without names",
        )),
        Task::Estimate => Some((
            "delphi",
            "plurality",
            "numbers are combined by their median, in two rounds",
        )),
        _ => None,
    }
}

/// Chooses a vote, or a method that is better than a vote for this kind of question.
fn vote(auto: &mut Auto, known: &Known, weights: &[f64]) {
    let n = weights.len();
    match known.task {
        Task::Checkable => {
            auto.verify = true;
            auto.why.push("a checker throws out wrong answers, then the rest is voted on".into());
        }
        Task::Knowledge => {
            auto.protocol = "gate-debate";
            auto.why.push("on knowledge a discussion can help: one round, and only where the vote is open".into());
        }
        _ => auto.why.push("a vote gives most of what a council gives; a debate moves it little and breaks right answers".into()),
    }
    if known.thrifty
        && n >= 3
        && auto.protocol == "vote"
        && let Some(best) = auto.best
    {
        auto.protocol = "cascade";
        let mut others: Vec<usize> = (0..n).filter(|m| *m != best).collect();
        others.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
        others.truncate(2);
        others.sort_unstable();
        others.push(best);
        auto.seats = others;
        auto.why
            .push("two answer first; the strongest is asked only where they disagree".into());
    }
}

impl Auto {
    /// Lets the strongest member work alone, or the first one if strengths are unknown.
    fn alone(&mut self, protocol: &'static str, why: &str) {
        self.protocol = protocol;
        self.seats = vec![self.best.unwrap_or(0)];
        self.why.push(why.into());
    }
}

/// Chooses the counting rule, and warns if members are unequal.
fn judge_strength(auto: &mut Auto, estimates: Option<&[f64]>) {
    let Some(p) = estimates else {
        auto.why
            .push("the strength of some members is unknown: every vote counts alike".into());
        auto.warning = Some("a member much stronger than the others may be right more often alone than this council; `kd eval` measures it".into());
        return;
    };
    let top = p.iter().copied().fold(0.0, f64::max);
    let low = p.iter().copied().fold(1.0, f64::min);
    auto.rule = "weighted";
    if top - low <= PEERS {
        auto.why.push(format!(
            "the members are near peers ({:.0} to {:.0} % right)",
            low * 100.0,
            top * 100.0
        ));
    } else {
        auto.warning = Some(format!(
            "the members are unequal ({:.0} to {:.0} % right): counted alike they would lose to the best of them, so votes are weighted",
            low * 100.0,
            top * 100.0
        ));
    }
    auto.why.push(match auto.fitted {
        true => "votes weigh what fits the marked questions that all members answered: those who err together share a weight".into(),
        false => "a vote weighs the odds that its voter is right".into(),
    });
}

/// Returns the minimum number of voters of a weighted vote: most of those asked, or any number with most of their weight.
/// A strong member is not overruled by the silence of weak ones. `votes` are the weight of each member asked, in
/// billionths, and whether it gave an answer.
pub fn quorum(votes: impl Iterator<Item = (Nano, bool)>) -> u64 {
    let (mut members, mut all, mut cast) = (0u64, 0, 0);
    for (weight, is_cast) in votes {
        members += 1;
        all += weight;
        cast += if is_cast { weight } else { 0 };
    }
    if cast > all - cast {
        1
    } else {
        members / 2 + 1
    }
}

/// Scales weights to a mean of one.
fn scaled(raw: &[f64]) -> Vec<f64> {
    let n = raw.len();
    let positive = |w: &f64| if w.is_finite() { w.max(0.0) } else { 0.0 };
    let sum: f64 = raw.iter().map(positive).sum();
    if sum <= 0.0 {
        return vec![1.0; n];
    }
    let scale = n as f64 / sum;
    // Rounded to billionths, so that the values compared here are the ones counted later. Never 0, so that an answer
    // that only weak members gave still counts.
    raw.iter()
        .map(|w| nanos(positive(w) * scale).max(LEAST) as f64 / NANOS as f64)
        .collect()
}

/// Returns the first of the greatest.
fn strongest(p: &[f64]) -> Option<usize> {
    (0..p.len()).max_by(|a, b| p[*a].total_cmp(&p[*b]).then(b.cmp(a)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn council(task: Task, right: &[f64]) -> Known {
        Known {
            task,
            members: right
                .iter()
                .map(|r| {
                    Some(Strength {
                        right: *r,
                        questions: 1000,
                    })
                })
                .collect(),
            measured: true,
            ..Known::default()
        }
    }

    #[test]
    fn each_kind_of_task_has_its_protocol() {
        let peers = [0.7, 0.69, 0.71];
        for (task, protocol, rule) in [
            (Task::Unknown, "vote", "weighted"),
            (Task::Reasoning, "vote", "weighted"),
            (Task::Knowledge, "gate-debate", "weighted"),
            (Task::Checkable, "vote", "weighted"),
            (Task::Estimate, "delphi", "plurality"),
            (Task::OpenText, "peer-review", "borda"),
        ] {
            let auto = auto(&council(task, &peers));
            assert_eq!((auto.protocol, auto.rule), (protocol, rule), "{task:?}");
            assert_eq!(auto.verify, task == Task::Checkable);
            assert_eq!(auto.warning, None, "near peers");
            assert_eq!(auto.seats, [0, 1, 2]);
            assert!(kd_vote::find(auto.rule).is_some(), "the rule exists");
        }
        let sequential = auto(&council(Task::Sequential, &peers));
        assert_eq!((sequential.protocol, sequential.seats), ("solo", vec![2]));
    }

    #[test]
    fn a_member_whom_nobody_can_outvote_is_asked_alone() {
        let auto = auto(&council(Task::Reasoning, &[0.5, 0.95, 0.6, 0.6]));
        assert_eq!(
            (auto.protocol, auto.seats, auto.best),
            ("sample-vote", vec![1], Some(1))
        );
        assert!(
            auto.warning
                .is_some_and(|w| w.contains("unequal (50 to 95 % right)"))
        );
    }

    #[test]
    fn a_strength_that_was_not_measured_here_lets_nobody_decide_alone() {
        let known = Known {
            measured: false,
            ..council(Task::Reasoning, &[0.5, 0.95, 0.6, 0.6])
        };
        let chosen = auto(&known);
        assert_eq!((chosen.protocol, chosen.best), ("vote", Some(1)));
        let others: Nano = [0, 2, 3].map(|at: usize| chosen.weights[at]).iter().sum();
        let own = chosen.weights[1];
        assert!(
            own < others && own > others * 9 / 10,
            "{:?}",
            chosen.weights
        );
        let pair = auto(&Known {
            members: known.members[..2].to_vec(),
            ..known
        });
        assert_eq!((pair.protocol, pair.seats), ("vote", vec![0, 1]));
    }

    #[test]
    fn a_member_that_is_often_silent_is_not_asked_alone() {
        let known = |silent: f64| Known {
            silent: vec![0.0, silent, 0.0, 0.0],
            ..council(Task::Reasoning, &[0.5, 0.95, 0.6, 0.6])
        };
        assert_eq!(auto(&known(0.004)).protocol, "sample-vote");
        assert_eq!(auto(&known(0.006)).protocol, "vote");
    }

    #[test]
    fn unequal_members_are_weighted_and_the_king_is_warned() {
        let auto = auto(&council(Task::Reasoning, &[0.8, 0.7, 0.7, 0.6]));
        assert_eq!(
            (auto.protocol, auto.rule, auto.best),
            ("vote", "weighted", Some(0))
        );
        assert_eq!(auto.weights.iter().sum::<Nano>(), 4 * NANOS);
        assert!(auto.weights[0] > auto.weights[1] && auto.weights[1] > auto.weights[3]);
        assert!(auto.warning.is_some());
    }

    #[test]
    fn weights_fitted_on_all_members_together_replace_odds() {
        let known = Known {
            joint: Some(vec![1.0, 2.0, -0.5, 1.5]),
            ..council(Task::Reasoning, &[0.8, 0.7, 0.7, 0.6])
        };
        let fitted = auto(&known);
        assert!(fitted.fitted && fitted.protocol == "vote", "{fitted:?}");
        assert!(fitted.weights[1] > fitted.weights[3] && fitted.weights[3] > fitted.weights[0]);
        assert!(
            fitted.weights[2] > 0,
            "a member without weight still decides among none"
        );
        let alone = auto(&Known {
            joint: Some(vec![1.0, 3.0, 0.5, 1.0]),
            ..known.clone()
        });
        assert_eq!((alone.protocol, alone.seats), ("sample-vote", vec![1]));
        let unknown = auto(&Known {
            members: vec![None; 4],
            ..known
        });
        assert!(!unknown.fitted, "{unknown:?}");
    }

    #[test]
    fn of_strangers_nothing_is_assumed() {
        let mut known = council(Task::Reasoning, &[0.9, 0.5, 0.5]);
        known.members[2] = None;
        let auto = auto(&known);
        assert_eq!(
            (auto.protocol, auto.rule, auto.best),
            ("vote", "plurality", None)
        );
        assert_eq!(auto.weights, [NANOS; 3]);
        assert!(auto.warning.is_some());
    }

    #[test]
    fn a_perfect_score_on_two_questions_is_no_proof() {
        assert_eq!(
            Strength {
                right: 1.0,
                questions: 2
            }
            .estimate(),
            0.75
        );
        assert_eq!(
            Strength {
                right: f64::NAN,
                questions: 2
            }
            .estimate(),
            0.5
        );
        let known = Known {
            members: vec![
                Some(Strength {
                    right: 1.0,
                    questions: 2,
                }),
                Some(Strength {
                    right: 0.8,
                    questions: 500,
                }),
                Some(Strength {
                    right: 0.8,
                    questions: 500,
                }),
            ],
            ..Known::default()
        };
        assert_eq!(auto(&known).best, Some(1));
    }

    #[test]
    fn thrift_asks_the_strongest_last() {
        let known = Known {
            thrifty: true,
            ..council(Task::Reasoning, &[0.8, 0.7, 0.6, 0.72])
        };
        let auto = auto(&known);
        assert_eq!((auto.protocol, auto.seats), ("cascade", vec![1, 3, 0]));
    }

    #[test]
    fn a_quorum_is_most_members_or_most_of_the_weight() {
        let of = |votes: &[(Nano, bool)]| quorum(votes.iter().copied());
        assert_eq!(of(&[(3, true), (1, false), (1, false)]), 1);
        assert_eq!(of(&[(3, false), (1, true), (1, true)]), 2);
        assert_eq!(of(&[(1, true), (1, false)]), 2, "half is not most");
        assert_eq!(of(&[]), 1);
    }

    #[test]
    fn nobody_and_one_are_no_council() {
        assert_eq!(auto(&Known::default()).seats, Vec::<usize>::new());
        assert_eq!(auto(&council(Task::Unknown, &[0.7])).protocol, "solo");
    }
}
