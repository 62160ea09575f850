//! The map of a deliberation: rows of claims, or of answers if none were compared, and each member's position.

use super::report::Report;
use crate::ids::SeatName;
use serde::Serialize;

/// The kind of rows in a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// Claims, taken from the answers by the members that compared them.
    Claims,
    /// Whole answers; they were not compared.
    Answers,
}

/// A member's position on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// States it, or voted for it.
    Holds,
    /// Contradicts it, voted for another, or rated it 4 or less.
    Opposes,
    /// Unknown.
    Silent,
}

/// The members' combined position on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// All state it.
    Consensus,
    /// Some state it and some contradict it.
    Contradiction,
    /// Several answers state it, and no answer contradicts it.
    Shared,
    /// Only one states it.
    Single,
}

impl Standing {
    /// All variants, in display order.
    pub const ALL: [Self; 4] = [
        Self::Consensus,
        Self::Contradiction,
        Self::Shared,
        Self::Single,
    ];

    /// Returns its name in a map.
    pub fn words(self) -> &'static str {
        match self {
            Self::Consensus => "consensus",
            Self::Contradiction => "contradiction",
            Self::Shared => "several",
            Self::Single => "only one",
        }
    }

    fn of(stances: &[(SeatName, Stance)]) -> Self {
        let count = |stance| stances.iter().filter(|(_, s)| *s == stance).count();
        match (count(Stance::Holds), count(Stance::Opposes)) {
            (_, 1..) => Self::Contradiction,
            (1, 0) => Self::Single,
            (all, 0) if all == stances.len() => Self::Consensus,
            _ => Self::Shared,
        }
    }
}

/// A row: a claim and each member's position.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The claim, or a candidate's name.
    pub claim: String,
    /// The combined position; `None` for whole answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// Each member's position, in the order of [`Map::members`].
    pub stances: Vec<(SeatName, Stance)>,
}

/// The map.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Map {
    /// The kind of rows.
    pub of: Rows,
    /// The members that compared the answers.
    pub by: Vec<SeatName>,
    /// The members shown: those that answered, or voted if rows are answers.
    pub members: Vec<SeatName>,
    /// Members whose answers mean the same.
    pub groups: Vec<Vec<SeatName>>,
    /// The rows; claims in the order of [`Standing::ALL`].
    pub claims: Vec<Claim>,
    /// Points that no answer covers.
    pub missing: Vec<String>,
}

impl Map {
    /// Returns whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        match self.of {
            Rows::Claims => self.claims.is_empty() && self.missing.is_empty(),
            Rows::Answers => self.claims.len() < 2,
        }
    }
}

impl Report {
    /// Returns the map of the pass that counts.
    pub fn map(&self) -> Map {
        let best = self.verdict.as_ref().map_or(0, |v| v.best_pass);
        let of_pass = self
            .groupings
            .iter()
            .rev()
            .find(|g| best == 0 || g.pass == best);
        let groups = of_pass.map_or_else(Vec::new, |g| {
            g.groups.iter().map(|group| group.seats.clone()).collect()
        });
        let mut map = Map {
            of: Rows::Answers,
            by: of_pass.map_or_else(Vec::new, |g| g.by.clone()),
            members: Vec::new(),
            groups,
            claims: Vec::new(),
            missing: Vec::new(),
        };
        map.by.dedup();
        match of_pass.filter(|g| !g.claims.is_empty()) {
            Some(grouping) => {
                map.of = Rows::Claims;
                map.missing.clone_from(&grouping.missing);
                for seat in grouping.groups.iter().flat_map(|g| &g.seats) {
                    if !map.members.contains(seat) {
                        map.members.push(seat.clone());
                    }
                }
                self.in_order(&mut map.members);
                for row in &grouping.claims {
                    let stances: Vec<(SeatName, Stance)> = map
                        .members
                        .iter()
                        .map(|seat| {
                            let stance = match () {
                                // Several answers of one member may both state and contradict it.
                                () if row.says.contains(seat) => Stance::Holds,
                                () if row.denies.contains(seat) => Stance::Opposes,
                                () => Stance::Silent,
                            };
                            (seat.clone(), stance)
                        })
                        .collect();
                    map.claims.push(Claim {
                        claim: row.claim.clone(),
                        standing: Some(Standing::of(&stances)),
                        stances,
                    });
                }
                map.claims.sort_by_key(|claim| claim.standing);
            }
            None => self.answers(&mut map),
        }
        map
    }

    /// Sorts members in the order of the plan.
    fn in_order(&self, members: &mut [SeatName]) {
        if let Some(plan) = &self.plan {
            members.sort_by_key(|seat| plan.place(seat));
        }
    }

    /// Adds rows of whole answers: which members hold, oppose or are silent.
    fn answers(&self, map: &mut Map) {
        let Some(counted) = self.count() else {
            return;
        };
        for first in &counted.firsts {
            if !map.members.contains(&first.seat) {
                map.members.push(first.seat.clone());
            }
        }
        for (at, claim) in counted.candidates.iter().enumerate() {
            let stances = map
                .members
                .iter()
                .map(|seat| {
                    let own = counted.firsts.iter().find(|f| f.seat == *seat);
                    let holds = own.is_some_and(|f| f.backs(at));
                    let has_own = own.is_some_and(|f| !f.is_silent());
                    let rated = self
                        .ratings
                        .iter()
                        .find(|(by, of, _)| by == seat && *claim == format!("the answer of {of}"))
                        .map(|(.., rating)| *rating);
                    let is_author = *claim == format!("the answer of {seat}");
                    let stance = match rated {
                        _ if is_author || holds => Stance::Holds,
                        Some(7..=10) => Stance::Holds,
                        Some(0..=4) => Stance::Opposes,
                        None if has_own => Stance::Opposes,
                        _ => Stance::Silent,
                    };
                    (seat.clone(), stance)
                })
                .collect();
            map.claims.push(Claim {
                claim: claim.clone(),
                standing: None,
                stances,
            });
        }
    }
}
