//! Ballot formats: the format for each rule, and how a reply is parsed as a ballot: strictly, with one lenient
//! fallback, or not at all.

use super::recorded::{Recorded, points_of, ranked};
use super::{Reply, labels, said};
use crate::deliberation::answer::marked;
use crate::deliberation::blind;
use crate::deliberation::board::Board;
use crate::deliberation::plan::{NOTED, Plan};
use crate::deliberation::reader::Run;
use kd_reading::{Answer, Options, Step, Unread, Wanted};
use kd_vote::{Detail, Mark, Nano, Rank, Reads, Rules, nanos};
use serde_json::{Map, Value, json};

/// The best score on a score ballot.
pub(super) const SCORE_MAX: u32 = 5;

/// Returns the ballot format of the plan's rule.
pub(in crate::deliberation) fn form(plan: &Plan) -> Reads {
    match kd_vote::find(&plan.voting.method).map(|rule| rule.reads) {
        Some(Reads::Paper) => Reads::Ranking,
        // The last round is the ballot.
        Some(Reads::Rounds) | None => Reads::Choice,
        Some(form) => form,
    }
}

/// Returns whether the rule asks voters to predict the result.
pub(in crate::deliberation) fn foretells(plan: &Plan) -> bool {
    kd_vote::find(&plan.voting.method)
        .is_some_and(|rule| rule.details.contains(&Detail::Predictions))
}

/// Returns the instruction, the field name and its schema.
pub(super) fn field(form: Reads, names: &[String]) -> (String, &'static str, Value) {
    let one = json!({"type": "string", "enum": names});
    let points = |most: u64| {
        let mut fields = Map::new();
        for name in names {
            fields.insert(
                name.clone(),
                json!({"type": "integer", "minimum": 0, "maximum": most}),
            );
        }
        json!({"type": "object", "properties": fields, "required": names, "additionalProperties": false})
    };
    match form {
        Reads::Ranking | Reads::Paper => (
            "all labels from best to worst".to_owned(),
            "ranking",
            json!({"type": "array", "items": one, "minItems": names.len(), "maxItems": names.len()}),
        ),
        Reads::Scores => (
            format!("for each label points from 0 to {SCORE_MAX}"),
            "scores",
            points(SCORE_MAX.into()),
        ),
        Reads::Points => {
            let purse = purse();
            (
                format!("for each label points; you have {purse} points in all to spend"),
                "scores",
                points(purse),
            )
        }
        Reads::Approvals => {
            let most = names.len().div_ceil(2);
            (
                format!("the labels that would do, at most {most}"),
                "approve",
                json!({"type": "array", "items": one, "minItems": 1, "maxItems": most}),
            )
        }
        Reads::Choice | Reads::Rounds | Reads::Orders => {
            ("the label of the best answer".to_owned(), "choice", one)
        }
    }
}

/// Returns the points to spend per ballot.
fn purse() -> u64 {
    Rules::of(Vec::<String>::new()).points
}

/// Returns the schema of a prediction: for each label, the expected percentage of voters.
pub(super) fn forecast_field(names: &[String]) -> Value {
    let mut fields = Map::new();
    for name in names {
        fields.insert(
            name.clone(),
            json!({"type": "integer", "minimum": 0, "maximum": 100}),
        );
    }
    json!({"type": "object", "properties": fields, "required": names, "additionalProperties": false})
}

/// Returns the prediction on a ballot as a share per candidate; `None` unless it names every label.
pub(super) fn foretold(value: &Value, items: &[usize], candidates: usize) -> Option<Vec<f64>> {
    let said = value.get("forecast")?;
    let mut shares = vec![0.0; candidates];
    for (at, candidate) in items.iter().enumerate() {
        let percent = said.get(blind::label(at))?.as_f64()?;
        shares[*candidate] = percent.clamp(0.0, 100.0);
    }
    let sum: f64 = shares.iter().sum();
    (sum > 0.0).then(|| shares.iter().map(|s| s / sum).collect())
}

/// Formats a vote in names of candidates; empty if it could not be read.
pub(super) fn names(board: &Board, mark: &Mark) -> Vec<String> {
    let name = |c: &usize| board.candidates[*c].name.clone();
    match mark {
        Mark::Choice(c) => vec![name(c)],
        Mark::Ranking(ranks) => ranked(ranks).map(|c| name(&c)).collect(),
        Mark::Approvals(set) => set.iter().map(name).collect(),
        Mark::Scores(points) => points
            .iter()
            .enumerate()
            .filter_map(|(c, p)| Some(format!("{}: {}", name(&c), points_of((*p)?))))
            .collect(),
        Mark::Trail(orders) => orders
            .iter()
            .map(|c| c.as_ref().map_or_else(|| "-".to_owned(), name))
            .collect(),
        Mark::Unreadable(_) => Vec::new(),
    }
}

/// Reads a ballot: as JSON, however wrapped or damaged, otherwise in words.
pub(super) fn read(board: &Board, plan: &Run, reply: &Reply<'_>) -> Result<(Mark, Step), Unread> {
    let names: Vec<&str> = reply
        .items
        .iter()
        .filter_map(|c| Some(board.candidates.get(*c)?.name.as_str()))
        .collect();
    let asked = json!([format!("{:?}", form(plan)), reply.items, names]).to_string();
    let text = reply.decisive();
    let possible = |read: &Result<(Recorded, Step), Unread>| match read {
        Ok((vote, _)) => is_possible(board, form(plan), reply.items, vote),
        Err(_) => true,
    };
    let (recorded, step) = plan
        .reader
        .read_that("ballot", &asked, text, possible, || {
            let (mark, step) = find(board, plan, reply)?;
            Ok((Recorded::of(&mark).ok_or(Unread::Missing)?, step))
        })?;
    let mark = recorded.mark(board.candidates.len());
    Ok((mark.ok_or(Unread::Missing)?, step))
}

/// Returns whether a vote has the requested form and names only candidates that its voter saw, each at most once.
fn is_possible(board: &Board, form: Reads, items: &[usize], vote: &Recorded) -> bool {
    let distinct = |set: &[usize]| {
        let mut seen = std::collections::BTreeSet::new();
        set.iter().all(|c| items.contains(c) && seen.insert(*c))
    };
    match (form, vote) {
        (Reads::Choice | Reads::Rounds | Reads::Orders, Recorded::Choice(c)) => items.contains(c),
        (Reads::Ranking | Reads::Paper, Recorded::Ranking(set))
        | (Reads::Approvals, Recorded::Approvals(set)) => distinct(set),
        (Reads::Scores | Reads::Points, Recorded::Scores(points)) => {
            let most = nanos(most_of(form));
            let is_point = |point: &Nano| (0..=most).contains(point);
            points.len() == board.candidates.len() && points.iter().flatten().all(is_point)
        }
        _ => false,
    }
}

fn find(board: &Board, plan: &Run, reply: &Reply<'_>) -> Result<(Mark, Step), Unread> {
    let form = form(plan);
    if matches!(form, Reads::Choice | Reads::Rounds | Reads::Orders) {
        return chosen(board, plan, reply).map(|(at, step)| (Mark::Choice(at), step));
    }
    let names = labels(reply.items.len());
    let (_, name, _) = field(form, &names);
    let text = reply.decisive();
    let options = options(board, plan, reply);
    let by_name = |label: &str| options.stated(label).map(blind::label);
    let read = kd_reading::object(text, |value| kd_reading::field(value, name).is_some());
    let Ok((value, step)) = read else {
        if plan.reading >= NOTED && said::list_in(&kd_reading::without_thoughts(text)).is_some() {
            return otherwise(board, plan, reply, &options).ok_or(Unread::Missing);
        }
        let order = match form {
            Reads::Ranking | Reads::Paper => options.ranked(&kd_reading::without_thoughts(text)),
            _ => None,
        };
        if let Some(order) = order {
            let order = order.iter().map(|place| reply.items[*place]);
            return Ok((ranking(order), Step::Words));
        }
        if let Some(found) = otherwise(board, plan, reply, &options) {
            return Ok(found);
        }
        // A reply that names only one answer ranks it first, or approves of it.
        let mark: fn(usize) -> Mark = match form {
            _ if plan.reading < 2 => return Err(read.err().unwrap_or(Unread::Missing)),
            Reads::Ranking | Reads::Paper => |at| ranking([at]),
            Reads::Approvals => |at| Mark::Approvals(vec![at]),
            _ => return Err(read.err().unwrap_or(Unread::Missing)),
        };
        return chosen(board, plan, reply).map(|(at, step)| (mark(at), step));
    };
    // Points may be told in several ways, and one that is read alone would mislead.
    if matches!(form, Reads::Scores | Reads::Points) && plan.reading >= NOTED {
        let found = otherwise(board, plan, reply, &options);
        return found.ok_or(Unread::Missing);
    }
    // The text of an option is accepted for its label.
    let said = kd_reading::field(&value, name).cloned().unwrap_or_default();
    let said = match said {
        Value::Array(items) => Value::Array(
            items
                .into_iter()
                .map(|item| {
                    item.as_str()
                        .and_then(by_name)
                        .map_or(item.clone(), Value::String)
                })
                .collect(),
        ),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(label, points)| (by_name(&label).unwrap_or(label), points))
                .collect(),
        ),
        Value::String(line) => match options.ranked(&line) {
            Some(order) => Value::Array(
                order
                    .iter()
                    .map(|p| Value::String(blind::label(*p)))
                    .collect(),
            ),
            None => Value::String(line),
        },
        other => other,
    };
    let mut object = Map::new();
    object.insert(name.to_owned(), said);
    let mark = strict_mark(
        form,
        &Value::Object(object),
        reply.items,
        board.candidates.len(),
    );
    match mark {
        Mark::Unreadable(_) => otherwise(board, plan, reply, &options).ok_or(Unread::Missing),
        mark => Ok((mark, step)),
    }
}

/// Reads a ballot in another form than the requested one: in other fields, as an object by label, a list, lines.
fn otherwise(
    board: &Board,
    plan: &Run,
    reply: &Reply<'_>,
    options: &Options,
) -> Option<(Mark, Step)> {
    if plan.reading < NOTED {
        return None;
    }
    let form = form(plan);
    let count = reply.items.len();
    let text = kd_reading::without_thoughts(reply.decisive());
    let names: &[&str] = match form {
        Reads::Ranking | Reads::Paper => said::ORDERS,
        Reads::Scores | Reads::Points => said::SCORES,
        _ => said::APPROVALS,
    };
    let says = |value: &Value| mark_in(board, form, value, reply.items, options);
    let fits = |value: &Value| {
        let by_label =
            |fields: &Map<String, Value>| fields.keys().any(|name| options.stated(name).is_some());
        said::field_of(value, names).is_some() || value.as_object().is_some_and(by_label)
    };
    // Its items are objects, but none of them is the ballot.
    if let Some(list) = said::list_in(&text) {
        return says(&list).map(|mark| (mark, Step::Embedded));
    }
    match kd_reading::object(&text, fits) {
        Ok((value, step)) => {
            let said = said::field_of(&value, names).unwrap_or(&value);
            return says(said).map(|mark| (mark, step));
        }
        Err(Unread::Ambiguous | Unread::Refused) => return None,
        Err(_) => {}
    }
    let mark = match form {
        Reads::Scores | Reads::Points => {
            let lines = said::lines(&text, options, count, most_of(form))?;
            points(lines, form, reply.items, board.candidates.len())
        }
        Reads::Approvals => said::approved_in_words(&text, options)
            .map(|places| Mark::Approvals(places.iter().map(|p| reply.items[*p]).collect())),
        _ => None,
    };
    mark.map(|mark| (mark, Step::Words))
}

/// Reads the value of a ballot's field.
fn mark_in(
    board: &Board,
    form: Reads,
    value: &Value,
    items: &[usize],
    options: &Options,
) -> Option<Mark> {
    let of = |places: Vec<usize>| places.into_iter().map(|p| items[p]).collect::<Vec<_>>();
    match form {
        Reads::Ranking | Reads::Paper => said::order(value, options, items.len())
            .map(of)
            .map(ranking),
        Reads::Approvals => said::approved(value, options).map(of).map(Mark::Approvals),
        Reads::Scores | Reads::Points => {
            let said = said::table(value, options, items.len(), most_of(form))?;
            points(said, form, items, board.candidates.len())
        }
        Reads::Choice | Reads::Rounds | Reads::Orders => None,
    }
}

/// Returns the highest points for one label.
fn most_of(form: Reads) -> f64 {
    match form {
        Reads::Points => purse() as f64,
        _ => f64::from(SCORE_MAX),
    }
}

/// Returns the points of a ballot; `None` if none is within the scale.
fn points(
    said: Vec<Option<said::Said>>,
    form: Reads,
    items: &[usize],
    candidates: usize,
) -> Option<Mark> {
    let mut scores = vec![None; candidates];
    for (said, candidate) in said.into_iter().zip(items) {
        let number = said.map(|said| said.number);
        let number = number.filter(|p| (0.0..=most_of(form)).contains(p));
        scores[*candidate] = number.map(nanos);
    }
    let any = scores.iter().any(Option::is_some);
    any.then_some(Mark::Scores(scores))
}

/// Returns the candidate chosen by a reply, by label or words.
pub(super) fn chosen(
    board: &Board,
    plan: &Run,
    reply: &Reply<'_>,
) -> Result<(usize, Step), Unread> {
    let wanted = Wanted::Option(options(board, plan, reply));
    let read = kd_reading::read(&wanted, reply.decisive());
    if let (Err(Unread::Missing), false) = (&read, plan.answers.is_keyed())
        && let Some(at) = in_its_words(board, reply)
    {
        return Ok((at, Step::Words));
    }
    match read? {
        (Answer::Option(place), step) => {
            let at = reply.items.get(place).ok_or(Unread::Missing)?;
            Ok((*at, step))
        }
        _ => Err(Unread::Missing),
    }
}

/// Returns the open answer whose words a ballot repeats instead of its label.
fn in_its_words(board: &Board, reply: &Reply<'_>) -> Option<usize> {
    /// Minimum characters of an answer in its own words: shorter ones may be a label.
    const CHARS_MIN: usize = 3;
    let text = reply.decisive();
    let field = kd_reading::stated_field(text);
    let said = kd_reading::sameness::key(field.as_deref().unwrap_or(text));
    if said.chars().count() < CHARS_MIN {
        return None;
    }
    let is_said = |text: &str| kd_reading::sameness::key(text) == said;
    let mut named = reply.items.iter().copied().filter(|at| {
        let text = board.candidates.get(*at).map_or("", |c| c.text.as_str());
        let field = || kd_reading::stated_field(text).is_some_and(|field| is_said(&field));
        is_said(text) || text.lines().any(is_said) || field()
    });
    let at = named.next()?;
    named.next().is_none().then_some(at)
}

/// Returns the labels of a ballot, with the text behind each unless it is a label itself.
fn options(board: &Board, plan: &Run, reply: &Reply<'_>) -> Options {
    let labels = labels(reply.items.len());
    let names: Vec<String> = reply
        .items
        .iter()
        .filter_map(|c| board.candidates.get(*c))
        .map(|c| c.name.clone())
        .collect();
    let alike = |name: &String| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().skip(1).all(|c| c.is_ascii_digit())
    };
    match plan.answers.is_keyed() && names.len() == labels.len() && !names.iter().any(alike) {
        true => Options::labelled(&names, &labels),
        false => Options::labelled(&labels, &labels),
    }
}

/// Returns a ranking without ties.
fn ranking(order: impl IntoIterator<Item = usize>) -> Mark {
    Mark::Ranking(order.into_iter().map(Rank::One).collect())
}

/// Parses a ballot in the requested format.
pub(super) fn strict_mark(form: Reads, value: &Value, items: &[usize], candidates: usize) -> Mark {
    match form {
        Reads::Ranking | Reads::Paper => strict_list(value, "ranking", items, ranking),
        Reads::Approvals => strict_list(value, "approve", items, Mark::Approvals),
        Reads::Scores | Reads::Points => {
            let Some(points) = value.get("scores") else {
                return unreadable("it has no \"scores\"");
            };
            let most = most_of(form);
            let mut scores = vec![None; candidates];
            for (at, candidate) in items.iter().enumerate() {
                let said = points.get(blind::label(at)).and_then(Value::as_f64);
                scores[*candidate] = said.filter(|p| (0.0..=most).contains(p)).map(nanos);
            }
            match scores.iter().all(Option::is_none) {
                true => unreadable("it gives no points"),
                false => Mark::Scores(scores),
            }
        }
        Reads::Choice | Reads::Rounds | Reads::Orders => match value.get("choice") {
            Some(label) => place_of(label, items).map_or_else(|| no_label(label), Mark::Choice),
            None => unreadable("it has no \"choice\""),
        },
    }
}

/// Parses a field that lists labels. Only the first occurrence of a label counts.
fn strict_list(
    value: &Value,
    field: &str,
    items: &[usize],
    mark: impl FnOnce(Vec<usize>) -> Mark,
) -> Mark {
    let Some(listed) = value.get(field).and_then(Value::as_array) else {
        return unreadable(format!("it has no \"{field}\""));
    };
    let mut places = Vec::new();
    for label in listed {
        match place_of(label, items) {
            Some(candidate) if places.contains(&candidate) => {}
            Some(candidate) => places.push(candidate),
            None => return no_label(label),
        }
    }
    match places.is_empty() {
        true => unreadable("it marks nothing"),
        false => mark(places),
    }
}

fn place_of(label: &Value, items: &[usize]) -> Option<usize> {
    blind::place_of(label.as_str()?, items.len()).map(|place| items[place])
}

fn no_label(label: &Value) -> Mark {
    unreadable(format!("{label} is none of the labels"))
}

fn unreadable(why: impl Into<String>) -> Mark {
    Mark::Unreadable(why.into())
}

/// Returns the lenient fallback: a line `Choice: B`, or a reply that names exactly one label.
pub(super) fn lenient_mark(form: Reads, text: &str, items: &[usize]) -> Mark {
    if !matches!(form, Reads::Choice | Reads::Orders) {
        return unreadable("its ballot cannot be read");
    }
    for word in ["choice", "vote", "answer", "position"] {
        if let Some(at) = marked(text, word).and_then(|said| blind::place_of(&said, items.len())) {
            return Mark::Choice(items[at]);
        }
    }
    let mut named: Vec<usize> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| {
            w.chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        })
        .filter_map(|w| blind::place_of(w, items.len()))
        .collect();
    named.sort_unstable();
    named.dedup();
    match named.as_slice() {
        [one] if text.trim().len() <= 40 => Mark::Choice(items[*one]),
        _ => unreadable("its ballot cannot be read"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ballot_is_read_strictly_or_by_one_fallback_or_not_at_all() {
        let items = [2, 0, 1];
        let strict =
            |form, text: &str| strict_mark(form, &serde_json::from_str(text).unwrap(), &items, 3);
        assert_eq!(strict(Reads::Choice, r#"{"choice":"A"}"#), Mark::Choice(2));
        assert_eq!(
            strict(Reads::Ranking, r#"{"ranking":["B","B","A"]}"#),
            ranking([0, 2])
        );
        assert_eq!(
            strict(Reads::Scores, r#"{"scores":{"A":5,"B":9}}"#),
            Mark::Scores(vec![None, None, Some(nanos(5.0))])
        );
        for bad in [
            r#"{"choice":"Z"}"#,
            r#"{"choice":""}"#,
            r#"{}"#,
            r#"{"choice":["A"]}"#,
        ] {
            let mark = strict(Reads::Choice, bad);
            assert!(matches!(mark, Mark::Unreadable(_)), "{bad}");
        }
        let lenient = |text| lenient_mark(Reads::Choice, text, &items);
        assert_eq!(
            lenient("I thought a lot.\n**Choice:** Answer B"),
            Mark::Choice(0)
        );
        assert_eq!(lenient("C."), Mark::Choice(1));
        for bad in [
            "A or B",
            "",
            "A man walks into a bar and asks which of them is the best one",
        ] {
            assert!(matches!(lenient(bad), Mark::Unreadable(_)), "{bad}");
        }
    }
}
