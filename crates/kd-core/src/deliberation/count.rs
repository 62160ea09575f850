//! Counts the votes of a pass: collects the ballots, applies the rule, and resolves ties.

use super::answer::AnswerKind;
use super::board::Board;
use super::fact::{ANSWERS, Counted, ESTIMATES, First};
use super::plan::{LENIENT, Plan, SHARED, Seat};
use crate::models;
use kd_eval::auto::quorum;
use kd_eval::calibration::agreement;
use kd_vote::{Backing, Ballot, Electorate, Mark, NANOS, Rank, Reads, Rule, Rules, TieStep, nanos};
use std::collections::BTreeSet;

/// Percentage of the estimates cut off at each end for the trimmed mean.
pub(super) const TRIM_PERCENT: usize = 20;
/// Minimum number of estimates of which a trimmed mean leaves out any.
pub(super) const TRIMMED_MIN: usize = 100 / TRIM_PERCENT;

/// Returns the name of the figure that decides about this many estimates.
pub(super) fn middle_word(count: usize) -> &'static str {
    match count < TRIMMED_MIN {
        true => "the median",
        false => "the trimmed mean",
    }
}

/// The votes to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The answers.
    Answers,
    /// The ballots, or the answers if no vote was held.
    Ballots,
    /// The reviewers' rankings.
    Rankings,
    /// The estimates: the first candidate is their trimmed mean, which decides.
    Estimates,
}

impl Source {
    pub(super) fn word(self) -> &'static str {
        match self {
            Source::Answers => ANSWERS,
            Source::Ballots => "ballots",
            Source::Rankings => "rankings",
            Source::Estimates => ESTIMATES,
        }
    }
}

/// Counts the votes on the board. Also returns the step that broke a tie, if any.
pub(super) fn count(plan: &Plan, board: &Board, source: Source) -> (Counted, Option<TieStep>) {
    let source = match source {
        Source::Estimates if plan.reading < LENIENT => Source::Answers,
        source => source_of(board, source),
    };
    let rule = rule_of(plan, source);
    count_cast(plan, board, source, rule, cast(plan, board, source, rule))
}

/// Returns the rule that counts these votes: the plan's, if it can use them.
pub(super) fn rule_of(plan: &Plan, source: Source) -> &'static Rule {
    let named = kd_vote::find(&plan.voting.method);
    let rule = match source {
        // An answer names one candidate: a rule for rankings or scores cannot use it.
        Source::Answers | Source::Estimates => {
            named.filter(|r| matches!(r.reads, Reads::Choice | Reads::Rounds))
        }
        Source::Rankings => named.filter(|r| matches!(r.reads, Reads::Ranking | Reads::Paper)),
        Source::Ballots => named,
    };
    let usual = match source {
        Source::Rankings => Reads::Ranking,
        Source::Answers | Source::Ballots | Source::Estimates => Reads::Choice,
    };
    rule.unwrap_or_else(|| kd_vote::usual(usual))
}

/// Returns the source that is counted if the requested one is empty.
pub(super) fn source_of(board: &Board, source: Source) -> Source {
    match source {
        Source::Ballots if board.ballots.is_empty() && board.absent.ballots.is_empty() => {
            Source::Answers
        }
        Source::Rankings if board.reviews.iter().all(|r| r.ranking.is_empty()) => Source::Answers,
        source => source,
    }
}

/// Returns every ballot with its voter and reason; a missing ballot counts as an abstention.
pub(super) fn cast(plan: &Plan, board: &Board, source: Source, rule: &Rule) -> Vec<Voted> {
    let trails = matches!(rule.reads, Reads::Rounds);
    let mut cast = match source {
        Source::Answers | Source::Estimates => from_answers(plan, board, trails),
        Source::Ballots => from_ballots(board, trails),
        Source::Rankings => from_reviews(board),
    };
    let absent = match source {
        Source::Answers | Source::Estimates => &board.absent.answers,
        Source::Ballots => &board.absent.ballots,
        Source::Rankings => &board.absent.reviews,
    };
    for seat in absent.iter().copied() {
        if !cast.iter().any(|(voter, ..)| *voter == seat) {
            cast.push((
                seat,
                Ballot::new(Mark::Unreadable("it cast no ballot".into())),
                String::new(),
            ));
        }
    }
    // The agent of a seat without a vote votes in another one.
    cast.retain(|(seat, ..)| !plan.seats[*seat].no_vote);
    cast.sort_by_key(|(seat, ..)| *seat);
    for (seat, ballot, _) in &mut cast {
        let member = &plan.seats[*seat];
        ballot.voter = member.name().to_string();
        ballot.weight = nanos(member.member.weight);
        ballot.reliability = member.reliability.map(nanos);
        ballot.family = match plan.reading {
            0 => member.member.model.clone(),
            _ => Some(kin(member)),
        };
    }
    cast
}

/// Counts ballots by a rule.
pub(super) fn count_cast(
    plan: &Plan,
    board: &Board,
    source: Source,
    rule: &'static Rule,
    cast: Vec<Voted>,
) -> (Counted, Option<TieStep>) {
    let ballots: Vec<Ballot> = cast.iter().map(|(_, ballot, _)| ballot.clone()).collect();
    let mut rules = Rules::of(board.candidates.iter().map(|c| c.name.clone()));
    rules.seed = plan.seed;
    rules.question = board.question.clone();
    // A learned rule, and weights fitted on all members together, have counted silent members already.
    let is_enough = (plan.enough.is_some() || plan.fitted) && rule.weighted;
    rules.quorum = match rule.weighted {
        _ if is_enough => 1,
        true => quorum(ballots.iter().map(|b| (b.weight, is_cast(&b.mark)))),
        false => ballots.len() as u64 / 2 + 1,
    };
    rules.electorate = Electorate::Voting;
    rules.arbiter = board.arbiter;
    rules.families_untie = plan.reading > 0;
    if let AnswerKind::Choice { options } = &plan.answers {
        rules.options = Some(options.len() as u64);
    }
    if plan.reading < SHARED {
        rules.backing = Backing::Alone;
        rules.super_majority = 2 * NANOS / 3;
    }
    if let Some(share) = plan.voting.threshold {
        rules.super_majority = nanos(share);
    }
    let tally = kd_vote::tally(rule, &ballots, &rules);
    let name = |c: &usize| board.candidates[*c].name.clone();
    let names = |set: &[usize]| set.iter().map(name).collect::<Vec<_>>().join(", ");
    let silent: Vec<usize> = tally.abstained.iter().map(|a| a.ballot).collect();
    let firsts: Vec<First> = cast
        .iter()
        .enumerate()
        .map(|(at, (seat, ballot, reason))| {
            let mut tied = match silent.contains(&at) {
                true => Vec::new(),
                false => firsts_of(&ballot.mark),
            };
            let candidate = match tied.as_slice() {
                [one] => Some(*one),
                _ => None,
            };
            if candidate.is_some() || plan.reading < SHARED {
                tied.clear();
            }
            First {
                seat: plan.seats[*seat].name().clone(),
                candidate,
                tied,
                confidence: ballot.confidence.map(|c| c as f64 / 1e9),
                reason: reason.clone(),
            }
        })
        .collect();
    let voters = (ballots.len() - silent.len()) as u64;
    let backing = |c: usize| firsts.iter().filter(|f| f.backs(c)).count() as u64;
    let leader = (0..board.candidates.len()).map(backing).max().unwrap_or(0);
    let mut winner = tally.winner;
    let mut form = tally.outcome;
    let mut notes = tally.notes.clone();
    let mut winners = tally.winners.clone();
    let mut tie_path = tally.tie_path;
    if source == Source::Estimates && form != kd_vote::Outcome::NoQuorum {
        (winner, winners) = (Some(0), vec![0]);
        tie_path.clear();
        form = form_of_estimates(board, backing(0), voters);
        notes.push(format!(
            "{} decides; {} of {voters} estimates are in the middle half",
            middle_word(voters as usize),
            backing(0)
        ));
    }
    let mut backers = winner.map_or(leader, backing);
    // A tie that was resolved, or that one vendor alone made, is decided; a lot decides nothing.
    let settled = tie_path
        .last()
        .filter(|step| step.left.len() == 1 && ["arbiter", "families"].contains(&step.step));
    if plan.reading > 0
        && form == kd_vote::Outcome::Split
        && winner.is_some()
        && let Some(step) = settled
    {
        form = kd_vote::Outcome::Plurality;
        notes.push(format!("the tie was settled by: {}", step.step));
    }
    if plan.reading > 0
        && !is_enough
        && let Some(note) = too_few_families(&ballots, &silent)
    {
        notes.push(note);
        winner = None;
        form = kd_vote::Outcome::NoQuorum;
        backers = leader;
    }
    if let (Some(c), Some(share)) = (winner, plan.voting.threshold)
        && (backing(c) as f64) < share * voters as f64
    {
        notes.push(format!(
            "undecided: {} of {voters} is less than the share of {share} that was asked for",
            backing(c)
        ));
        winner = None;
        form = kd_vote::Outcome::Split;
        backers = leader;
    }
    let counted = Counted {
        pass: board.pass,
        depth: board.depth,
        rule: tally.rule.to_owned(),
        source: source.word().to_owned(),
        candidates: board.candidates.iter().map(|c| c.name.clone()).collect(),
        scores: tally
            .scores
            .iter()
            .map(|s| s.as_ref().map(ToString::to_string))
            .collect(),
        winners,
        winner,
        form,
        electorate: ballots.len() as u64,
        voters,
        backers,
        agreement: agreement(backers, voters),
        firsts,
        rounds: tally
            .rounds
            .iter()
            .map(|round| {
                let standing: Vec<String> = round
                    .tally
                    .iter()
                    .map(|(c, n)| format!("{} {n}", name(c)))
                    .collect();
                let mut line = standing.join(", ");
                if !round.eliminated.is_empty() {
                    line.push_str(&format!("; dropped: {}", names(&round.eliminated)));
                }
                line
            })
            .collect(),
        tie_path: tie_path
            .iter()
            .map(|step| format!("{}: {}; left: {}", step.step, step.why, names(&step.left)))
            .collect(),
        abstained: tally
            .abstained
            .iter()
            .map(|a| format!("{}: {}", a.voter, a.why))
            .collect(),
        notes,
        seed: plan.seed,
    };
    (counted, tie_path.into_iter().next_back())
}

/// Returns the outcome of estimates: unanimous if all are equal, otherwise by how many are in the middle half.
fn form_of_estimates(board: &Board, inside: u64, voters: u64) -> kd_vote::Outcome {
    let given: BTreeSet<&str> = board
        .answers
        .iter()
        .filter_map(|a| a.key.as_deref())
        .collect();
    match given.len() {
        1 => kd_vote::Outcome::Unanimous,
        _ if 2 * inside > voters => kd_vote::Outcome::Majority,
        _ => kd_vote::Outcome::Plurality,
    }
}

/// Returns the family of a member: members of one family make the same mistakes.
pub(super) fn kin(seat: &Seat) -> String {
    models::kin(
        &seat.member.backend,
        seat.member.model.as_deref(),
        &seat.agent,
    )
}

fn is_cast(mark: &Mark) -> bool {
    !matches!(mark, Mark::Unreadable(_))
}

/// Returns why votes decide nothing although enough were cast: they come from too few model families. Three members of
/// one vendor are not three opinions. A council of one family is counted by member.
fn too_few_families(ballots: &[Ballot], silent: &[usize]) -> Option<String> {
    let all: BTreeSet<&str> = ballots.iter().filter_map(|b| b.family.as_deref()).collect();
    let cast = ballots
        .iter()
        .enumerate()
        .filter(|(at, _)| !silent.contains(at));
    let voted: BTreeSet<&str> = cast.filter_map(|(_, b)| b.family.as_deref()).collect();
    let heads = ballots.len() - silent.len();
    // There is more than one family, and only one of them voted.
    (all.len() > 1 && voted.len() == 1 && heads > 1).then(|| {
        format!(
            "undecided: all {heads} votes are of one family ({}), and {} other {} cast none",
            voted.iter().copied().collect::<Vec<_>>().join(", "),
            all.len() - 1,
            if all.len() == 2 { "family" } else { "families" },
        )
    })
}

/// A voter's index, ballot and reason.
pub(super) type Voted = (usize, Ballot, String);

fn from_answers(plan: &Plan, board: &Board, trails: bool) -> Vec<Voted> {
    let place = |key: &str| board.candidates.iter().position(|c| c.name == key);
    board
        .answers
        .iter()
        .map(|answer| {
            let stands = match &answer.key {
                Some(key) => place(key).or_else(|| board.stand_of(answer.seat)),
                None if plan.judged => board
                    .candidates
                    .iter()
                    .position(|c| c.given.contains(&(answer.seat, answer.sample))),
                None => board
                    .candidates
                    .iter()
                    .position(|c| c.authors.contains(&answer.seat) && !plan.answers.is_keyed()),
            };
            let mark = match stands {
                _ if trails => Mark::Trail(
                    board
                        .trail
                        .iter()
                        .map(|row| {
                            let said = row.iter().find(|(seat, _)| *seat == answer.seat);
                            said.and_then(|(_, key)| place(key.as_deref()?))
                        })
                        .collect(),
                ),
                Some(candidate) => Mark::Choice(candidate),
                None => Mark::Unreadable("its answer has no key".into()),
            };
            let mut ballot = Ballot::new(mark);
            ballot.confidence = answer.confidence.map(nanos);
            (answer.seat, ballot, String::new())
        })
        .collect()
}

/// With `trails`, adds the voter's answers of earlier rounds before the final vote.
fn from_ballots(board: &Board, trails: bool) -> Vec<Voted> {
    let place = |key: &str| board.candidates.iter().position(|c| c.name == key);
    let answered = |seat: usize| {
        board.trail.iter().map(move |row| {
            let said = row.iter().find(|(s, _)| *s == seat);
            said.and_then(|(_, key)| place(key.as_deref()?))
        })
    };
    board
        .ballots
        .iter()
        .map(|cast| {
            let mut ballot = cast.ballot.clone();
            if let (true, Mark::Choice(c)) = (trails, &ballot.mark) {
                ballot.mark = Mark::Trail(answered(cast.seat).chain([Some(*c)]).collect());
            }
            (cast.seat, ballot, cast.reason.clone())
        })
        .collect()
}

fn from_reviews(board: &Board) -> Vec<Voted> {
    board
        .reviews
        .iter()
        .map(|review| {
            let mut order: Vec<usize> = Vec::new();
            for candidate in review.ranking.iter().filter_map(|s| board.stand_of(*s)) {
                if !order.contains(&candidate) {
                    order.push(candidate);
                }
            }
            let mark = match order.is_empty() {
                true => Mark::Unreadable("its review ranks nothing".into()),
                false => Mark::Ranking(order.into_iter().map(Rank::One).collect()),
            };
            (review.seat, Ballot::new(mark), String::new())
        })
        .collect()
}

/// Returns the candidates that a vote puts first; several if it puts them equally high.
fn firsts_of(mark: &Mark) -> Vec<usize> {
    match mark {
        Mark::Choice(c) => vec![*c],
        Mark::Ranking(ranks) => match ranks.first() {
            Some(Rank::One(c)) => vec![*c],
            Some(Rank::Tied(several)) => several.clone(),
            _ => Vec::new(),
        },
        Mark::Scores(points) => {
            let best = points.iter().flatten().max();
            let is_best = |c: &usize| best.is_some() && points[*c].as_ref() == best;
            (0..points.len()).filter(is_best).collect()
        }
        Mark::Approvals(set) => set.clone(),
        Mark::Trail(rounds) => {
            let last = rounds.iter().rev().flatten().next();
            last.into_iter().copied().collect()
        }
        Mark::Unreadable(_) => Vec::new(),
    }
}
