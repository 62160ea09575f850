//! Limits of a mark: one table for marks that are stored, exported and imported.

use super::mark::{By, Mark};
use crate::hex::hex;
use crate::names::is_legible;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// Maximum characters of a name.
const NAME_CHARS_MAX: usize = 200;
/// Maximum members, asked or not.
const MEMBERS_MAX: usize = 1000;
/// Maximum bytes of an answer that is kept as it is. Of a longer answer a mark stores the beginning and a digest,
/// which is enough to compare answers.
pub const ANSWER_BYTES_MAX: usize = 256;
/// Characters of the beginning of a longer answer.
const BEGINNING_CHARS: usize = 32;
/// Maximum bytes of a mark as JSON: no mark within the other limits is longer.
pub const MARK_BYTES_MAX: usize = 4 << 20;

/// Why a line of a file is not a mark.
#[derive(Debug, thiserror::Error)]
pub enum BadLine {
    /// It is not the JSON object of a mark.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Its content cannot be true, or exceeds a limit.
    #[error("{0}")]
    Fault(&'static str),
}

impl Mark {
    /// Returns why a mark cannot be used; `None` if it can. Its time is not looked at: a clock may have been wrong.
    pub fn fault(&self) -> Option<&'static str> {
        let is_name = |name: &str| {
            let chars = name.chars().take(NAME_CHARS_MAX + 1);
            let is_edged = name.starts_with(' ') || name.ends_with(' ');
            !name.is_empty() && is_legible(name) && !is_edged && chars.count() <= NAME_CHARS_MAX
        };
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let confidences = self.members.iter().filter_map(|member| member.confidence);
        let names = [&self.project, &self.thread, &self.kind, &self.protocol];
        let members = self.members.iter().flat_map(|m| [&m.name, &m.model]);
        let members = members.chain(&self.unasked).chain(&self.stopping);
        let is_path = |name: &str| name.contains(['/', '\\']) || name.starts_with('.');
        [
            (self.message == 0, "messages are numbered from 1"),
            (
                self.members.is_empty() || self.members.len() + self.unasked.len() > MEMBERS_MAX,
                "it must have from 1 to 1,000 members",
            ),
            (
                !self.usd.is_finite() || self.usd < 0.0,
                "its cost must not be negative",
            ),
            (
                !is_share(self.credit) || !confidences.into_iter().all(is_share),
                "a share is not from 0 to 1",
            ),
            (
                is_path(&self.thread) || is_path(&self.project),
                "its thread or project is a path",
            ),
            (
                !names.into_iter().chain(members).all(|name| is_name(name)),
                "a name is empty, begins or ends with a space, has characters that show nothing, or is longer than 200 characters",
            ),
        ]
        .into_iter()
        .find_map(|(is_so, why)| is_so.then_some(why))
    }

    /// Shortens answers of more than [`ANSWER_BYTES_MAX`] bytes to their beginning, length and digest. Answers that were
    /// equal stay equal.
    pub fn shorten(&mut self) {
        let keys = self.members.iter_mut().map(|member| &mut member.key);
        let answers = keys.chain([&mut self.winner, &mut self.answer]);
        for answer in answers.flatten() {
            if let Some(short) = shortened(answer) {
                *answer = short;
            }
        }
    }

    /// Returns the mark as a line of a file, without the line break.
    ///
    /// # Errors
    /// The reason why [`Mark::of_line`] would refuse it.
    pub fn line(&self) -> Result<String, BadLine> {
        match self.fault() {
            Some(why) => Err(BadLine::Fault(why)),
            None => Ok(serde_json::to_string(self)?),
        }
    }

    /// Reads a line of a file: the mark is an imported one. A time after `now` counts as `now`: such a mark would count as
    /// the newest until then.
    ///
    /// # Errors
    /// It is not a mark, or cannot be used.
    pub fn of_line(line: &str, now: Timestamp) -> Result<Self, BadLine> {
        let mut mark: Self = serde_json::from_str(line)?;
        if let Some(why) = mark.fault() {
            return Err(BadLine::Fault(why));
        }
        mark.by = By::Import;
        mark.at = mark.at.min(now);
        mark.shorten();
        Ok(mark)
    }
}

/// Returns what a mark keeps of an answer that is too long; `None` if it is not.
pub fn shortened(answer: &str) -> Option<String> {
    if answer.len() <= ANSWER_BYTES_MAX {
        return None;
    }
    let digest = hex(&Sha256::digest(answer));
    let beginning: String = answer.chars().take(BEGINNING_CHARS).collect();
    let bytes = answer.len();
    Some(format!("{beginning}… ({bytes} bytes, sha256 {digest})"))
}

/// Returns whether an answer has the form of a shortened one.
pub fn is_shortened(answer: &str) -> bool {
    let Some((_, rest)) = answer.rsplit_once("… (") else {
        return false;
    };
    let Some((bytes, digest)) = rest.split_once(" bytes, sha256 ") else {
        return false;
    };
    let digest = digest.strip_suffix(')').unwrap_or_default();
    let is_digest = digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
    is_digest && bytes.parse::<usize>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::mark::{Member, VERSION};
    use super::*;
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    fn good() -> Mark {
        Mark {
            v: VERSION,
            project: "work-01234567".into(),
            thread: "council-a94d".into(),
            message: 6,
            at: "2026-03-01T09:00:00Z".parse().unwrap(),
            by: By::Import,
            kind: "number".into(),
            protocol: "vote".into(),
            members: vec![Member {
                name: "ann".into(),
                model: "vendor/m-1".into(),
                key: None,
                backs: true,
                confidence: Some(0.9),
            }],
            unasked: Vec::new(),
            stopping: None,
            winner: None,
            credit: 1.0,
            answer: None,
            calls: 3,
            usd: 0.01,
        }
    }

    #[test]
    fn a_mark_that_cannot_be_true_is_neither_exported_nor_imported() {
        assert_eq!(good().fault(), None);
        type Change = fn(&mut Mark);
        let changes: [(Change, &str); 22] = [
            (|m| m.message = 0, "numbered"),
            (|m| m.members.clear(), "members"),
            (|m| m.members = vec![m.members[0].clone(); 1001], "members"),
            (|m| m.usd = -5.0, "cost"),
            (|m| m.usd = f64::INFINITY, "cost"),
            (|m| m.usd = f64::NAN, "cost"),
            (|m| m.credit = 1.1, "share"),
            (|m| m.credit = f64::NAN, "share"),
            (|m| m.members[0].confidence = Some(-0.1), "share"),
            (|m| m.thread = "../../x".into(), "path"),
            (|m| m.project = ".hidden".into(), "path"),
            (|m| m.thread = "a\u{1b}[2Jb".into(), "show nothing"),
            (|m| m.kind = "k".repeat(100_000), "longer"),
            (|m| m.members[0].model.clear(), "empty"),
            (|m| m.unasked = vec![String::new()], "empty"),
            (|m| m.stopping = Some("a\u{1b}[2Jb".into()), "show nothing"),
            (|m| m.unasked = vec!["m".into(); 1000], "members"),
            // One name is never mistaken for another.
            (|m| m.members[0].name = "an\u{200b}n".into(), "show nothing"),
            (
                |m| m.members[0].model = "m-1\u{202e}".into(),
                "show nothing",
            ),
            (|m| m.unasked = vec!["m\u{e0041}".into()], "show nothing"),
            (|m| m.thread = "a\u{2028}b".into(), "show nothing"),
            (|m| m.kind = "number\u{feff}".into(), "show nothing"),
        ];
        for (change, why) in changes {
            let mut bad = good();
            change(&mut bad);
            let told = bad.line().expect_err(why).to_string();
            assert!(told.contains(why), "{why}: {told}");
            let text = serde_json::to_string(&bad).unwrap();
            assert!(Mark::of_line(&text, bad.at).is_err(), "{why}");
        }
    }

    /// Draws a text of up to `most` characters. Many of them need escapes or several bytes.
    fn text(draw: &mut ChaCha12Rng, most: usize) -> String {
        const SIGNS: [char; 12] = [
            'a', '7', '.', '/', '"', '\\', ' ', '\n', '\0', 'é', '日', '👩',
        ];
        let length = draw.random_range(0..=most);
        (0..length)
            .map(|_| SIGNS[draw.random_range(0..SIGNS.len())])
            .collect()
    }

    fn drawn(draw: &mut ChaCha12Rng) -> Mark {
        let maybe = |draw: &mut ChaCha12Rng, most| draw.random_bool(0.7).then(|| text(draw, most));
        // Most names are good: a mark with many random ones would always be refused.
        let name = |draw: &mut ChaCha12Rng| match draw.random_bool(0.02) {
            true => text(draw, 250),
            false => format!("n-{}\"é日", draw.random::<u32>()),
        };
        let share = |draw: &mut ChaCha12Rng| match draw.random_bool(0.02) {
            true => draw.random_range(-1.0..2.0),
            false => draw.random::<f64>(),
        };
        let members = draw.random_range(0..6);
        let members = (0..members)
            .map(|_| Member {
                name: name(draw),
                model: name(draw),
                key: maybe(draw, 600),
                backs: draw.random(),
                confidence: draw.random_bool(0.5).then(|| share(draw)),
            })
            .collect();
        let unasked = draw.random_range(0..3);
        Mark {
            v: VERSION,
            project: name(draw),
            thread: name(draw),
            message: draw.random_range(0..40),
            at: Timestamp::from_nanosecond(i128::from(draw.random::<i64>())).unwrap(),
            by: By::Import,
            kind: name(draw),
            protocol: name(draw),
            members,
            unasked: (0..unasked).map(|_| name(draw)).collect(),
            stopping: draw.random_bool(0.3).then(|| name(draw)),
            winner: maybe(draw, 600),
            credit: share(draw),
            answer: maybe(draw, 600),
            calls: draw.random(),
            usd: draw.random::<f64>() * 10.0,
        }
    }

    #[test]
    fn what_is_exported_is_imported_as_it_was() {
        let mut draw = ChaCha12Rng::seed_from_u64(18);
        let now = Timestamp::MAX;
        let (mut whole, mut refused) = (0, 0);
        for _ in 0..2000 {
            let mut mark = drawn(&mut draw);
            mark.shorten();
            match mark.line() {
                Ok(line) => {
                    whole += 1;
                    assert!(!line.contains('\n'));
                    assert_eq!(Mark::of_line(&line, now).expect("a mark"), mark);
                }
                Err(_) => {
                    refused += 1;
                    assert!(mark.fault().is_some());
                }
            }
        }
        assert!(whole > 500 && refused > 100, "{whole}, {refused}");
    }

    #[test]
    fn a_time_in_the_future_counts_as_now() {
        let mut mark = good();
        let now = mark.at;
        mark.at = "9000-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(Mark::of_line(&mark.line().unwrap(), now).unwrap(), good());
    }

    /// A file may have any date that a calendar has: no time zone has all of the last day.
    #[test]
    fn a_time_beyond_the_calendar_is_read_as_its_end() {
        let now: Timestamp = "2026-12-24T09:00:00Z".parse().unwrap();
        let line = good().line().unwrap();
        let read = |at: &str| Mark::of_line(&line.replace("2026-03-01T09:00:00Z", at), now);
        let mut draw = ChaCha12Rng::seed_from_u64(4);
        let mut number = |from: i32, to: i32| draw.random_range(from..=to);
        for _ in 0..2000 {
            let (year, month, day) = match number(0, 3) {
                0 => ("9999", 12, number(29, 31)),
                1 => ("-009999", 1, number(1, 3)),
                2 => ("9999", number(1, 12), number(1, 28)),
                _ => ("-009999", number(1, 12), number(1, 28)),
            };
            let time = (number(0, 23), number(0, 59), number(0, 59));
            let zone = match number(0, 2) {
                0 => "Z".to_owned(),
                1 => format!("+{:02}:{:02}", number(0, 23), number(0, 59)),
                _ => format!("-{:02}:{:02}", number(0, 23), number(0, 59)),
            };
            let (hour, minute, second) = time;
            let at = format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}");
            let mark = read(&at).unwrap_or_else(|why| panic!("{at}: {why}"));
            match year {
                "9999" => assert_eq!(mark.at, now, "{at}"),
                _ => assert!(mark.at < "-009998-01-02T00:00:00Z".parse().unwrap(), "{at}"),
            }
            // What was read is written so that it is read again.
            assert_eq!(Mark::of_line(&mark.line().unwrap(), now).unwrap(), mark);
        }
        for bad in [
            "",
            "yesterday",
            "9999-12-31",
            "9999-12-31T23:00:00",
            "9999-13-01T00:00:00Z",
            "9999-02-30T00:00:00Z",
            "+010000-01-01T00:00:00Z",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn long_answers_are_told_apart_by_their_digest() {
        let long = |end: &str| "日".repeat(100_000) + end;
        let mut mark = good();
        mark.members = ["x", "x", "y"]
            .map(|end| Member {
                key: Some(long(end)),
                ..mark.members[0].clone()
            })
            .into();
        mark.winner = Some(long("x"));
        mark.answer = Some(long("y"));
        let told = |mark: &Mark| -> Vec<Option<bool>> {
            mark.members.iter().map(|m| mark.was_right(m)).collect()
        };
        let before = told(&mark);
        mark.shorten();
        assert_eq!(told(&mark), before);
        assert_eq!(mark.members[0].key, mark.winner);
        assert_ne!(mark.winner, mark.answer);
        let kept = mark.winner.clone().unwrap();
        assert!(kept.contains("… (300001 bytes, sha256 "), "{kept}");
        assert!(kept.len() <= ANSWER_BYTES_MAX, "{kept}");
        assert!(is_shortened(&kept) && !is_shortened(&long("x")));
        let once = mark.clone();
        mark.shorten();
        assert_eq!(mark, once);
        assert_eq!(shortened(&"a".repeat(ANSWER_BYTES_MAX)), None);
    }

    #[test]
    fn no_mark_within_the_limits_is_longer_than_a_mark_may_be() {
        let name = "👩".repeat(NAME_CHARS_MAX);
        let answer = Some("\u{1}".repeat(ANSWER_BYTES_MAX));
        let mut mark = good();
        mark.members = vec![
            Member {
                name: name.clone(),
                model: name.clone(),
                key: answer.clone(),
                backs: false,
                confidence: Some(0.123_456_789_012_345_68),
            };
            MEMBERS_MAX
        ];
        for named in [&mut mark.project, &mut mark.kind, &mut mark.protocol] {
            named.clone_from(&name);
        }
        (mark.winner, mark.answer) = (answer.clone(), answer);
        let bytes = mark.line().expect("within the limits").len();
        assert!(bytes <= MARK_BYTES_MAX, "{bytes}");
    }
}
