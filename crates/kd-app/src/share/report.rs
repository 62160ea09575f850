//! The answers to shared questions, by council: what `kd eval --live --report` compares.

use super::private::unshare;
use super::source;
use crate::batch::of;
use crate::error::UserError;
use crate::kingdom::Kingdom;
use crate::live::{
    Answered, Council, Known, MarkedQuestion, PassedOver, Way, all_marked, all_places, judged,
    read_rows, thread_of,
};
use kd_core::Timestamp;
use kd_core::batch::Row;
use kd_store::{Layout, Place, Thread, Verdicts};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The answers to shared questions.
#[derive(Default)]
pub struct SharedAnswers {
    /// The questions whose right answer the user's marks give, by council; the council that was asked last is the
    /// first.
    pub councils: Vec<SharedCouncil>,
    /// Number of shared questions whose right answer is unknown.
    pub unmarked: u64,
    /// Marks without a right answer.
    pub passed_over: PassedOver,
}

/// The answers to the shared questions of one council.
pub struct SharedCouncil {
    /// The council.
    pub council: Council,
    /// The questions, each text once.
    pub known: Vec<Known>,
    /// The answers of each way.
    pub ways: Vec<(Way, Answered)>,
    /// The time when the newest thread of a question was opened, and the place of its mark among all marks.
    newest: (Option<Timestamp>, usize),
}

impl SharedCouncil {
    fn new(council: Council) -> Self {
        Self {
            council,
            known: Vec::new(),
            ways: Way::ALL.map(|way| (way, Answered::default())).into(),
            newest: (None, 0),
        }
    }

    /// Adds the questions of this council. Of equal questions the first counts whose answers can all be judged.
    fn add(
        &mut self,
        questions: Vec<(usize, MarkedQuestion)>,
        rows: &Rows,
        at: (&Layout, &Places, &Verdicts),
    ) {
        let mut texts = BTreeSet::new();
        let mut faulty: Vec<Self> = Vec::new();
        for (
            place,
            MarkedQuestion {
                known,
                council,
                at: opened,
            },
        ) in questions
        {
            self.newest = self.newest.max((opened, place));
            if texts.contains(&known.text) {
                continue;
            }
            let mut one = Self::new(council);
            for (way, answered) in &mut one.ways {
                let thread = match way {
                    Way::Council => known.id.split('#').next(),
                    _ => rows.thread(*way, &known.id),
                };
                answered.add(*way, &known, judged(&known, thread, at));
            }
            let is_faulty = |(_, answered): &(Way, Answered)| answered.is_faulty(&known.id);
            let is_whole = !one.ways.iter().any(is_faulty);
            one.known.push(known);
            match is_whole {
                true => {
                    texts.extend(one.known.iter().map(|known| known.text.clone()));
                    self.merge(one);
                }
                false => faulty.push(one),
            }
        }
        for one in faulty {
            if one
                .known
                .iter()
                .all(|known| texts.insert(known.text.clone()))
            {
                self.merge(one);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.known.extend(other.known);
        for ((_, ours), (_, theirs)) in self.ways.iter_mut().zip(other.ways) {
            ours.merge(theirs);
        }
    }
}

type Places = BTreeMap<String, Place>;

/// The rows of the batches of each way, by question.
#[derive(Default)]
struct Rows(BTreeMap<Way, BTreeMap<String, Row>>);

impl Rows {
    fn read(kingdom: &Kingdom) -> Result<Self, UserError> {
        let mut rows = Self::default();
        let Some(batches) = of(kingdom.env())? else {
            return Ok(rows);
        };
        for batch in batches.all()? {
            let of_way = |way: &Way| batch.about.source == source(*way);
            if let Some(way) = Way::ALL.into_iter().find(of_way) {
                read_rows(&batches, &batch.about.id, rows.0.entry(way).or_default())?;
            }
        }
        Ok(rows)
    }

    fn thread(&self, way: Way, id: &str) -> Option<&str> {
        self.0.get(&way)?.get(id).and_then(thread_of)
    }

    /// Returns the questions.
    fn ids(&self) -> BTreeSet<&str> {
        let ways = self.0.values();
        ways.flat_map(|rows| rows.keys().map(String::as_str))
            .collect()
    }
}

impl Kingdom {
    /// Returns the answers to shared questions. Leaves out deleted threads, and private threads, whose answers are
    /// removed.
    ///
    /// # Errors
    /// If the marks, the batches or the threads of the project cannot be read.
    pub fn shared(&self) -> Result<SharedAnswers, UserError> {
        let layout = self.env().layout()?;
        let threads = all_places(&layout)?;
        let rows = Rows::read(self)?;
        let mut ids = rows.ids();
        let mut private = BTreeSet::new();
        ids.retain(|id| {
            let thread = id.split('#').next().unwrap_or(id);
            let found = threads.get(thread).map(Thread::open);
            // A thread that cannot be read may become readable again.
            let is_private = matches!(&found, Some(Ok(thread)) if thread.meta().is_private());
            if is_private {
                private.insert(thread.to_owned());
            }
            found.is_some() && !is_private
        });
        let fell = layout.verdicts()?;
        let at = (&layout, &threads, &fell);
        let (mut marked, passed_over) = all_marked(self, at)?;
        marked.retain(|question| ids.contains(question.known.id.as_str()));
        let unmarked = (ids.len() - marked.len()) as u64;
        let mut councils: Vec<(Council, Vec<(usize, MarkedQuestion)>)> = Vec::new();
        for (place, question) in marked.into_iter().enumerate() {
            let mut known = councils.iter_mut();
            match known.find(|(council, _)| *council == question.council) {
                Some((_, questions)) => questions.push((place, question)),
                None => councils.push((question.council.clone(), vec![(place, question)])),
            }
        }
        let mut councils: Vec<SharedCouncil> = councils
            .into_iter()
            .map(|(council, questions)| {
                let mut found = SharedCouncil::new(council);
                found.add(questions, &rows, at);
                found
            })
            .collect();
        councils.sort_by_key(|council| Reverse(council.newest));
        for thread in private {
            unshare(&self.env().user_dirs(), &layout, &thread)?;
        }
        Ok(SharedAnswers {
            councils,
            unmarked,
            passed_over,
        })
    }
}
