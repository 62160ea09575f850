//! Sameness: groups open answers by meaning and lists their claims. Two readings in opposite orders, by members of two
//! vendors if possible; only groups found by both are merged. A reading counts only if its groups partition the labels
//! shown. The claims are for display and decide nothing.

use super::{Asking, Reply, Stage, StageInput, as_it_came, labels, words_of};
use crate::clean::clean_line;
use crate::deliberation::answer::AnswerKind;
use crate::deliberation::blind;
use crate::deliberation::board::{Board, Grouped, ReadClaim, object_with};
use crate::deliberation::count::kin;
use crate::deliberation::fact::{Claimed, Fact, Group, Grouping};
use crate::deliberation::labels::Labels;
use crate::deliberation::plan::Plan;
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use crate::ids::SeatName;
use crate::roles::Duty;
use kd_reading::contrast;
use serde_json::{Value, json};

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "sameness",
    title: "which answers mean the same",
    purpose: Purpose::Arbitrate,
    spoken: false,
    seats,
    ask,
    read,
    end,
    body: as_it_came,
};

/// Readings per comparison.
pub(in crate::deliberation) const READINGS: usize = 2;
/// Maximum bytes of all answers in the prompt, and of one.
const ANSWERS_BYTES_MAX: usize = 16_000;
const ANSWER_BYTES_MAX: usize = 2_000;
/// Maximum tokens of a reading with claims, and of one without.
const CLAIMS_TOKENS: u32 = 900;
const GROUPS_TOKENS: u32 = 300;
/// Maximum number of claims, and of points not covered.
const CLAIMS_MAX: usize = 8;
const MISSING_MAX: usize = 3;
/// Maximum characters of a claim or point.
const LINE_CHARS_MAX: usize = 160;
/// Maximum length of a label, in bytes.
const LABEL_BYTES_MAX: usize = 12;

/// Returns the judges: an arbiter, otherwise the cheapest member, on a tie one without its own answer; then the
/// cheapest of another vendor, otherwise the same member with the reverse order.
pub(in crate::deliberation) fn judges(plan: &Plan) -> Vec<usize> {
    let at_the_table = plan.at_the_table();
    let price = |s: &usize| {
        plan.seats[*s]
            .price
            .map_or(u64::MAX, |p| p.input.saturating_add(p.output))
    };
    let mut seats: Vec<usize> = (0..plan.seats.len())
        .filter(|s| !plan.seats[*s].has(Duty::Reserve))
        .collect();
    seats.sort_by_key(|s| (price(s), at_the_table.contains(s), *s));
    let Some(first) = plan
        .with(Duty::Arbitrate)
        .first()
        .or(seats.first())
        .copied()
    else {
        return Vec::new();
    };
    let other = |s: &&usize| kin(&plan.seats[**s]) != kin(&plan.seats[first]);
    let second = seats.iter().find(other).copied().unwrap_or(first);
    vec![first, second]
}

fn seats(plan: &Plan, board: &Board) -> Vec<usize> {
    match plan.judged
        && plan.answers.is_comparable()
        && board.depth == 0
        && board.candidates.len() > 1
    {
        true => judges(plan),
        false => Vec::new(),
    }
}

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let (plan, board) = (input.plan, input.board);
    let second = input.sample > 0 || judges(plan).first() != Some(&input.seat);
    let place = format!(
        "{}/{}/{}/{}",
        STAGE.name, board.pass, board.depth, board.round
    );
    let all: Vec<usize> = (0..board.candidates.len()).collect();
    // Both readings use the same order, one of them reversed.
    let mut items = blind::deal(plan.seed, "", &place, &all);
    if second {
        items.reverse();
    }
    let most = (ANSWERS_BYTES_MAX / items.len().max(1)).min(ANSWER_BYTES_MAX);
    let texts: Vec<String> = items
        .iter()
        .map(|c| {
            let candidate = &board.candidates[*c];
            let said = match plan.answers {
                AnswerKind::Judged | AnswerKind::Set | AnswerKind::Ranking => &candidate.name,
                _ => &candidate.text,
            };
            blind::clip(&blind::anonymous(plan, said), most)
        })
        .collect();
    let names = labels(items.len());
    let list = json!({"type": "array", "items": {"type": "string", "enum": names}, "maxItems": names.len()});
    let mut fields = serde_json::Map::new();
    fields.insert(
        "groups".into(),
        json!({"type": "array", "items": list, "minItems": 1, "maxItems": names.len()}),
    );
    let mut task = "Group the answers by meaning. Two belong together only if they answer the question the same way, in whatever words; they do not if a number, a name, a condition or the advice differs. Every label stands in exactly one group; an answer like no other is a group alone. Reply with JSON: \"groups\" (lists of labels)".to_owned();
    if !second {
        let line = json!({"type": "string", "maxLength": LINE_CHARS_MAX});
        fields.insert(
            "claims".into(),
            json!({"type": "array", "maxItems": CLAIMS_MAX, "items": {"type": "object",
                "properties": {"claim": line, "says": list, "denies": list},
                "required": ["claim", "says", "denies"], "additionalProperties": false}}),
        );
        fields.insert(
            "missing".into(),
            json!({"type": "array", "maxItems": MISSING_MAX, "items": line}),
        );
        task.push_str(&format!(", \"claims\" (up to {CLAIMS_MAX} short statements of the answers, each with \"claim\", \"says\": labels of the answers that state it, \"denies\": labels of those that contradict it), \"missing\" (up to {MISSING_MAX} points that the question needs and no answer covers)"));
    }
    let required: Vec<String> = fields.keys().cloned().collect();
    Some(Asking {
        material: format!(
            "{}\n\n{}",
            input.question(),
            input.fenced(STAGE.name, &texts)
        ),
        task: format!("{task}."),
        schema: Some(
            json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false}),
        ),
        items,
        tokens: Some(if second { GROUPS_TOKENS } else { CLAIMS_TOKENS }),
    })
}

fn read(board: &mut Board, plan: &Run, reply: &Reply<'_>) -> Vec<Fact> {
    let groups = groups_in(reply);
    let object = object_with(plan, reply.text, &["groups"]).map(|(value, _)| value);
    let object = object.filter(|_| groups.is_ok()).unwrap_or_default();
    let text = match &groups {
        Ok(groups) if groups.len() == 1 => format!("all {} mean the same", reply.items.len()),
        Ok(groups) => format!("{} meanings in {} answers", groups.len(), reply.items.len()),
        Err(why) => format!("its groups do not count: {why}"),
    };
    let labels = Labels::of_candidates(plan, board, reply.items);
    let claims = claims_in(&object, reply.items, |text| match &labels {
        Some(labels) => labels.named(text),
        None => text.to_owned(),
    });
    board.readings.push(Grouped {
        seat: reply.seat,
        groups: groups.ok(),
        claims,
        missing: lines_in(&object, "missing", MISSING_MAX),
    });
    vec![Fact::Noted {
        seat: Some(plan.seats[reply.seat].name().clone()),
        stage: STAGE.name.into(),
        text,
    }]
}

/// Returns the groups of a reading, as indexes of candidates. Fails unless every label is in exactly one.
fn groups_in(reply: &Reply<'_>) -> Result<Vec<Vec<usize>>, String> {
    let has_groups = |value: &Value| kd_reading::field(value, "groups").is_some();
    let (value, _) =
        kd_reading::object(reply.text, has_groups).map_err(|why| why.words().to_owned())?;
    let listed = kd_reading::field(&value, "groups").and_then(Value::as_array);
    let listed = listed.ok_or("\"groups\" is no list")?;
    let mut seen = vec![false; reply.items.len()];
    let mut groups = Vec::new();
    for group in listed {
        let group = match group {
            Value::Array(labels) => labels.as_slice(),
            // A single answer without brackets.
            Value::String(_) => std::slice::from_ref(group),
            _ => return Err("a group is no list of labels".into()),
        };
        let mut members = Vec::new();
        for label in group {
            let place = place_of(label, reply.items.len()).ok_or("it names an unknown label")?;
            if std::mem::replace(&mut seen[place], true) {
                return Err(format!("{} stands in two groups", blind::label(place)));
            }
            members.push(reply.items[place]);
        }
        members.sort_unstable();
        groups.extend((!members.is_empty()).then_some(members));
    }
    match seen.iter().position(|seen| !seen) {
        Some(place) => Err(format!("{} stands in no group", blind::label(place))),
        None => {
            groups.sort();
            Ok(groups)
        }
    }
}

/// Returns the position of a text that is only a label.
fn place_of(label: &Value, count: usize) -> Option<usize> {
    let label = label.as_str().filter(|l| l.len() <= LABEL_BYTES_MAX)?;
    blind::place_of(label, count)
}

/// Returns the claims of a reading, without those that name unknown labels, no answer, or the same answer twice.
fn claims_in(object: &Value, items: &[usize], named: impl Fn(&str) -> String) -> Vec<ReadClaim> {
    let mut out: Vec<ReadClaim> = Vec::new();
    let listed = object.get("claims").and_then(Value::as_array);
    for claim in listed.into_iter().flatten() {
        let text = clean_line(&named(&words_of(claim, "claim")), LINE_CHARS_MAX);
        let labelled = |name: &str| -> Option<Vec<usize>> {
            let Some(listed) = claim.get(name).and_then(Value::as_array) else {
                return Some(Vec::new());
            };
            let places = listed
                .iter()
                .map(|l| place_of(l, items.len()).map(|p| items[p]));
            let mut places: Vec<usize> = places.collect::<Option<_>>()?;
            places.sort_unstable();
            places.dedup();
            Some(places)
        };
        let (Some(says), Some(denies)) = (labelled("says"), labelled("denies")) else {
            continue;
        };
        let split = says.iter().any(|c| denies.contains(c));
        let known = out.iter().any(|c| c.claim == text);
        if !text.is_empty() && !says.is_empty() && !split && !known {
            out.push(ReadClaim {
                claim: text,
                says,
                denies,
            });
        }
    }
    out.truncate(CLAIMS_MAX);
    out
}

fn lines_in(object: &Value, name: &str, most: usize) -> Vec<String> {
    let listed = object.get(name).and_then(Value::as_array);
    let lines = listed.into_iter().flatten().filter_map(Value::as_str);
    lines
        .map(|line| clean_line(line, LINE_CHARS_MAX))
        .filter(|line| !line.is_empty())
        .take(most)
        .collect()
}

fn end(board: &mut Board, plan: &Run) -> Vec<Fact> {
    let readings = std::mem::take(&mut board.readings);
    if seats(plan, board).is_empty() {
        return Vec::new();
    }
    let mut notices = Vec::new();
    let groups = merged(board, plan, &readings, &mut notices);
    // Claims refer to candidates as of the time they were read.
    let authors = |places: &[usize]| -> Vec<SeatName> {
        let mut seats: Vec<usize> = places
            .iter()
            .flat_map(|c| board.candidates[*c].authors.iter().copied())
            .collect();
        seats.sort_unstable();
        seats.dedup();
        seats
            .into_iter()
            .map(|s| plan.seats[s].name().clone())
            .collect()
    };
    let told = readings
        .iter()
        .find(|r| !r.claims.is_empty() || !r.missing.is_empty());
    let claims = told.map_or_else(Vec::new, |reading| {
        let row = |c: &ReadClaim| Claimed {
            claim: c.claim.clone(),
            says: authors(&c.says),
            denies: authors(&c.denies),
        };
        reading.claims.iter().map(row).collect()
    });
    let missing = told.map_or_else(Vec::new, |r| r.missing.clone());
    let shown = groups
        .iter()
        .map(|group| Group {
            name: board.candidates[group[0]].name.clone(),
            seats: authors(group),
        })
        .collect();
    let by = readings
        .iter()
        .map(|r| plan.seats[r.seat].name().clone())
        .collect();
    board.merge(plan, &groups);
    vec![Fact::Grouped(Grouping {
        pass: board.pass,
        by,
        groups: shown,
        claims,
        missing,
        notices,
    })]
}

/// Returns the groups common to both readings, sorted; candidates stay separate if the readings are insufficient.
fn merged(
    board: &Board,
    plan: &Run,
    readings: &[Grouped],
    notices: &mut Vec<String>,
) -> Vec<Vec<usize>> {
    let count = board.candidates.len();
    let alone = || (0..count).map(|c| vec![c]).collect();
    let counting: Vec<&Vec<Vec<usize>>> =
        readings.iter().filter_map(|r| r.groups.as_ref()).collect();
    let [one, two] = counting.as_slice() else {
        notices.push(format!(
            "{} of {READINGS} readings count: answers are the same only where their words are",
            counting.len()
        ));
        return alone();
    };
    let of = |groups: &[Vec<usize>], c: usize| groups.iter().position(|g| g.contains(&c));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for c in 0..count {
        let same = |g: &&mut Vec<usize>| of(one, g[0]) == of(one, c) && of(two, g[0]) == of(two, c);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(c),
            None => groups.push(vec![c]),
        }
    }
    if groups.len() > one.len().max(two.len()) || one != two {
        notices.push("the two readings differ: only what both put together is merged".into());
    }
    let text = |c: usize| match plan.answers {
        AnswerKind::Judged | AnswerKind::Set | AnswerKind::Ranking => {
            board.candidates[c].name.as_str()
        }
        _ => board.candidates[c].text.as_str(),
    };
    let apart = |a: &str, b: &str| {
        let between = || contrast::between(a, b).map(str::to_owned);
        plan.reader.read("contrast", a, b, between)
    };
    let mut out: Vec<Vec<usize>> = Vec::new();
    for group in groups {
        let pairs = group
            .iter()
            .enumerate()
            .flat_map(|(at, a)| group[at + 1..].iter().map(move |b| (*a, *b)));
        let differ = pairs
            .filter_map(|(a, b)| Some((a, b, apart(text(a), text(b))?)))
            .next();
        match differ {
            Some((a, b, why)) => {
                notices.push(format!(
                    "{} and {} stay apart: {why}",
                    board.candidates[a].name, board.candidates[b].name
                ));
                out.extend(group.into_iter().map(|c| vec![c]));
            }
            None => out.push(group),
        }
    }
    out.sort();
    out
}
