//! Shows how the ways compare: as text, JSON, a page, or files of Every Eval Ever.

use crate::args::eval::{Eval, Format};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::run::eval::sheet::{Part, Sheet, number, words};
use crate::run::eval::written;
use crate::run::here::Here;
use kd_app::live::{Answered, Best, Known, Way, columns};
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

/// What was found.
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
    /// Shared questions without a right answer.
    pub(super) unmarked: u64,
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
            unmarked: 0,
        }
    }

    pub(super) fn exit(&self) -> Exit {
        match self.compared.questions {
            0 => Exit::Failed,
            _ => Exit::Done,
        }
    }

    pub(super) fn show(&self, args: &Eval, here: &Here) -> Result<(), Error> {
        if args.format == Some(Format::Eee) {
            return written::files(&self.eee(), args, here);
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
        object!({
            "v": EVAL_LIVE.version, "members": self.members, "best": self.best, "samples": self.samples,
            "questions": self.compared.questions, "left_out": left_out, "ways": ways, "pairs": self.compared.pairs,
        })
    }

    fn eee(&self) -> Vec<kd_records::Written> {
        let known = self.known.iter();
        let about = known.map(|known| {
            let gold = match &known.gold {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let about = About {
                task: "own-questions".to_owned(),
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

    fn sheet(&self) -> Sheet {
        let pct = |share: f64| format!("{:.1}", share * 100.0);
        let range = |i: Interval| format!("{}–{}", pct(i.low), pct(i.high));
        let best = &self.best;
        let mut parts = vec![Part::Line(format!(
            "{} of {} · council of {} · best member {} ({})",
            count(self.compared.questions, "question"),
            self.source,
            self.members.join(", "),
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
        if self.unmarked > 0 {
            parts.push(Part::Line(format!(
                "{} left out, because no mark tells the right answer",
                count(self.unmarked, "shared question"),
            )));
        }
        Sheet {
            title: "Does a council pay?".to_owned(),
            parts,
        }
    }
}
