//! Shows how the ways compare: as text, JSON, a page, or files of Every Eval Ever.

use crate::args::eval::{Eval, Format};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::run::eval::sheet::{Part, Sheet, number, words};
use crate::run::eval::written;
use crate::run::here::Here;
use kd_app::live::{Answered, Best, Council, Known, Way, columns};
use kd_app::outfile;
use kd_app::words::count;
use kd_core::formats::EVAL_LIVE;
use kd_eval::intervals::Interval;
use kd_eval::live::{Compared, compared};
use kd_eval::paired::Verdict;
use kd_eval::replay::Replay;
use kd_records::About;
use serde_json::{Value, json as object};
use std::io::Write;

/// Questions named that were left out.
const LEFT_OUT_SHOWN: usize = 5;

/// The councils that were compared.
pub(super) struct All {
    /// The result of each; the council that was asked last is the first.
    pub(super) found: Vec<Found>,
    /// The number of shared questions without a right answer; `None` if the questions are not a share.
    pub(super) unmarked: Option<u64>,
}

impl All {
    pub(super) fn exit(&self) -> Exit {
        match self.found.iter().any(|found| found.compared.questions > 0) {
            true => Exit::Done,
            false => Exit::Failed,
        }
    }

    pub(super) fn show(&self, args: &Eval, here: &Here) -> Result<(), Error> {
        if args.format == Some(Format::Eee) {
            let files = (1..).zip(&self.found).flat_map(|(n, found)| found.eee(n));
            return written::files(&files.collect::<Vec<_>>(), args, here);
        }
        let text = match (args.format, args.json) {
            (_, true) => json::text(&self.json(), true)? + "\n",
            (Some(Format::Md), _) => self.sheet().markdown(),
            (Some(Format::Html), _) => {
                let sheet = self.sheet();
                kd_page::sheet(&sheet.title, &sheet.markdown())
            }
            _ => self.sheet().text(),
        };
        match &args.output {
            Some(path) => Ok(outfile::write(path, text.as_bytes(), here)?),
            None => Ok(crate::out::stdout().lock().write_all(text.as_bytes())?),
        }
    }

    /// Returns the first council as the object, and the others in a list.
    fn json(&self) -> Value {
        let mut found = self.found.iter().map(Found::json);
        let mut value = found.next().unwrap_or_else(|| object!({}));
        value["v"] = object!(EVAL_LIVE.version);
        if let Some(unmarked) = self.unmarked {
            value["unmarked"] = object!(unmarked);
            value["earlier_councils"] = found.collect();
        }
        value
    }

    fn sheet(&self) -> Sheet {
        let mut parts: Vec<Part> = self.found.iter().flat_map(Found::parts).collect();
        if let Some(unmarked @ 1..) = self.unmarked {
            parts.push(Part::Line(format!(
                "{} left out, because no mark tells the right answer",
                count(unmarked, "shared question"),
            )));
        }
        Sheet {
            title: "Does a council pay?".to_owned(),
            parts,
        }
    }
}

/// The result of a council.
pub(super) struct Found {
    pub(super) compared: Compared,
    pub(super) replay: Replay,
    pub(super) left_out: Vec<(String, String)>,
    pub(super) answered: Vec<(Way, Answered)>,
    pub(super) known: Vec<Known>,
    pub(super) source: String,
    pub(super) members: Vec<String>,
    pub(super) best: Best,
    pub(super) samples: u32,
    /// The council of a shared question.
    pub(super) council: Option<Council>,
}

impl Found {
    /// Compares answers.
    pub(super) fn of(known: Vec<Known>, answered: Vec<(Way, Answered)>, seed: u64) -> Self {
        let (replay, left_out) = columns(&known, &answered);
        Self {
            compared: compared(&replay, seed),
            replay,
            left_out,
            answered,
            known,
            source: String::new(),
            members: Vec::new(),
            best: Best::default(),
            samples: 0,
            council: None,
        }
    }

    /// Returns the name of a way for people.
    fn name(&self, way: &str) -> String {
        let best = &self.best.name;
        match way {
            "council" => "the council".to_owned(),
            "member" => format!("{best} alone"),
            _ => match self.samples {
                1 => format!("{best}, 1 sample"),
                n => format!("{best}, {n} samples"),
            },
        }
    }

    fn asked(&self) -> Vec<Vec<String>> {
        let of = |(way, _): &(Way, Answered)| match way {
            Way::Council => self.members.clone(),
            Way::Member | Way::Samples => vec![self.best.name.clone()],
        };
        self.answered.iter().map(of).collect()
    }

    fn json(&self) -> Value {
        let ways = self
            .compared
            .ways
            .iter()
            .zip(&self.answered)
            .zip(self.asked());
        let ways: Vec<Value> = ways
            .map(|((way, (_, answered)), members)| {
                object!({
                    "way": way.way, "members": members, "batch": answered.batch, "right": way.right,
                    "interval": way.interval, "cost": answered.cost(),
                })
            })
            .collect();
        let left_out: Vec<Value> = self
            .left_out
            .iter()
            .map(|(id, why)| object!({"id": id, "why": why}))
            .collect();
        let mut value = object!({
            "members": self.members, "best": self.best, "samples": self.samples,
            "questions": self.compared.questions, "left_out": left_out, "ways": ways, "pairs": self.compared.pairs,
        });
        if let Some(council) = &self.council {
            value["council"] = object!(council);
        }
        value
    }

    /// Returns the files of the council with this number, from 1 on.
    fn eee(&self, number: u32) -> Vec<kd_records::Written> {
        // Each council is a separate task: the same questions in another council are another evaluation.
        let task = match number {
            1 => "own-questions".to_owned(),
            n => format!("own-questions-{n}"),
        };
        let known = self.known.iter();
        let about = known.map(|known| {
            let gold = match &known.gold {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let about = About {
                task: task.clone(),
                id: known.id.clone(),
                input: known.text.clone(),
                gold: vec![gold],
            };
            (known.id.clone(), about)
        });
        kd_records::written_ways(
            &self.replay,
            &self.asked(),
            &about.collect(),
            written::now(),
        )
    }

    /// Returns the members with their models, and the protocol, of the council of a shared question; the members
    /// otherwise.
    fn title(&self) -> String {
        let Some(council) = &self.council else {
            return self.members.join(", ");
        };
        let members = council.members.iter();
        let members: Vec<String> = members
            .map(|m| format!("{} ({})", m.name, m.model))
            .collect();
        let stopping = council.stopping.as_deref();
        let stopping = stopping.map_or_else(String::new, |rule| format!(" ({rule})"));
        format!(
            "{} · protocol {}{stopping}",
            members.join(", "),
            council.protocol
        )
    }

    fn parts(&self) -> Vec<Part> {
        let pct = |share: f64| format!("{:.1}", share * 100.0);
        let range = |i: Interval| format!("{}–{}", pct(i.low), pct(i.high));
        let best = &self.best;
        let mut parts = vec![Part::Line(format!(
            "{} of {} · council of {} · best member {} ({})",
            count(self.compared.questions, "question"),
            self.source,
            self.title(),
            best.name,
            best.why
        ))];
        let ways = self.compared.ways.iter().zip(&self.answered);
        let ways = ways.map(|(way, (_, answered))| {
            let cost = answered.cost();
            vec![
                self.name(&way.way),
                pct(way.right),
                range(way.interval),
                format!("{:.1}", cost.calls),
                format!("{}{:.0}", cost.certainty.sign(), cost.tokens),
                match cost.usd {
                    Some(usd) => format!("{}{usd:.4}", cost.certainty.sign()),
                    None => "price unknown".to_owned(),
                },
            ]
        });
        let heads = vec![
            words("way"),
            number("right, %"),
            number("95 % interval"),
            number("calls per question"),
            number("tokens"),
            number("$"),
        ];
        parts.push(Part::Table(heads, ways.collect()));
        let signed = |points: f64| format!("{:+.1}", points * 100.0);
        let pairs = self.compared.pairs.iter().map(|pair| {
            let c = &pair.comparison;
            let verdict = match c.verdict {
                Verdict::NotShown if c.detectable > 0.0 => format!(
                    "{} (it would see {:.1})",
                    c.verdict.word(),
                    c.detectable * 100.0
                ),
                verdict => verdict.word().to_owned(),
            };
            vec![
                self.name(&pair.way),
                self.name(&pair.beside),
                signed(c.difference),
                format!("{} to {}", signed(c.interval.low), signed(c.interval.high)),
                format!("{:.4}", c.p),
                verdict,
            ]
        });
        let heads = vec![
            words("compared"),
            words("beside"),
            number("points"),
            number("95 % interval"),
            number("p"),
            words("verdict"),
        ];
        parts.push(Part::Table(heads, pairs.collect()));
        if !self.left_out.is_empty() {
            let named = self.left_out.iter().take(LEFT_OUT_SHOWN);
            let named: Vec<String> = named.map(|(id, why)| format!("{id} ({why})")).collect();
            parts.push(Part::Line(format!(
                "{} left out: {}{}",
                count(self.left_out.len() as u64, "question"),
                named.join("; "),
                if self.left_out.len() > LEFT_OUT_SHOWN {
                    "; …"
                } else {
                    ""
                }
            )));
        }
        parts
    }
}
