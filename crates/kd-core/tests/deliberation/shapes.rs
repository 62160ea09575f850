//! Ballots, reviews and lists of defects in the forms that models use in place of the requested one.

use crate::room::{Answer, Asked, Run, good, plan, run, seat};
use kd_core::deliberation::{AnswerKind, Fact, Plan};
use serde_json::{Value, json};
use std::cell::Cell;

/// Replaces the labels in a shape: `{red}` by the label of that answer.
fn labelled(asked: &Asked, shape: &str) -> String {
    asked.labels.iter().fold(shape.to_owned(), |text, l| {
        text.replace(&format!("{{{}}}", l.item), &l.label)
    })
}

fn colors(rule: &str) -> Plan {
    let mut plan = plan();
    plan.question = "Which color?".into();
    plan.answers = AnswerKind::parse("choice:red,blue,gray").expect("known");
    plan.voting.method = rule.into();
    plan
}

const WANTS: [(&str, &str); 3] = [("ann", "red"), ("bob", "blue"), ("cyd", "gray")];

/// Runs a vote in which cyd casts this ballot; returns what it marks, and whether it was asked once more.
fn cast(rule: &str, shape: &str) -> (Vec<String>, bool) {
    let again = Cell::new(0);
    let plan = colors(rule);
    let held = run(&plan, |asked| {
        let wants = WANTS.iter().find(|(name, _)| *name == asked.seat);
        let wants = wants.map_or("red", |(_, wants)| wants);
        if asked.stage.ends_with("vote") && asked.seat == "cyd" {
            again.set(again.get() + 1);
            return Answer::Text(labelled(asked, shape));
        }
        Answer::Text(good(asked, wants))
    });
    held.replays();
    let read = |fact: &Fact| match fact {
        Fact::BallotRead { seat, marks, .. } if seat.as_str() == "cyd" => Some(marks.clone()),
        _ => None,
    };
    let marks = held.facts().find_map(read).expect("a ballot");
    (marks, again.get() > 1)
}

#[test]
fn ballots_are_read_in_every_usual_shape() {
    let ranking: &[&str] = &[
        r#"{"ranking": ["{blue}", "{red}", "{gray}"]}"#,
        r#"{"ranking": ["blue", "red", "gray"]}"#,
        r#"{"ranking": ["1. {blue}", "2. {red}", "3. {gray}"]}"#,
        r#"{"ranking": "{blue} > {red} > {gray}"}"#,
        r#"{"ranking": [{"label": "{blue}", "rank": 1}, {"label": "{gray}", "rank": 3}, {"label": "{red}", "rank": 2}]}"#,
        r#"{"ranking": [{"{blue}": 1}, {"{red}": 2}, {"{gray}": 3}]}"#,
        r#"{"ranking": {"{red}": 2, "{blue}": 1, "{gray}": 3}}"#,
        r#"{"ranking": {"1": "{blue}", "2": "{red}", "3": "{gray}"}}"#,
        r#"{"ranking": {"first": "{blue}", "second": "red", "third": "{gray}"}}"#,
        r#"{"order": ["{blue}", "{red}", "{gray}"]}"#,
        r#"{"{red}": 2, "{blue}": 1, "{gray}": 3}"#,
        r#"["{blue}", "{red}", "{gray}"]"#,
        "Ranking: {blue} > {red} > {gray}",
        "1. {blue}\n2. {red}\n3. {gray}",
    ];
    let scores: &[&str] = &[
        r#"{"scores": {"{red}": 3, "{blue}": 5, "{gray}": 1}}"#,
        r#"{"scores": {"{red}": "3", "{blue}": "5", "{gray}": "1"}}"#,
        r#"{"scores": {"{red}": "3/5", "{blue}": "5 / 5", "{gray}": "1 out of 5"}}"#,
        r#"{"scores": {"red": 3, "blue": 5, "gray": 1}}"#,
        r#"{"scores": [{"label": "{red}", "score": 3}, {"label": "{blue}", "score": 5}, {"label": "{gray}", "score": 1}]}"#,
        r#"{"scores": ["{red}: 3", "{blue}: 5", "{gray}: 1"]}"#,
        r#"{"scores": "{red}: 3, {blue}: 5, {gray}: 1"}"#,
        r#"{"{red}": 3, "{blue}": 5, "{gray}": 1, "reason": "so", "confidence": 0.7}"#,
        r#"[{"option": "{red}", "points": 3}, {"option": "{blue}", "points": 5}, {"option": "{gray}", "points": 1}]"#,
        "{red}: 3\n{blue}: 5\n{gray}: 1",
        "- **{red}**: 3/5 – fine\n- **{blue}**: 5/5 – best\n- **{gray}**: 1/5 – dull",
        "| {red} | 3 |\n| {blue} | 5 |\n| {gray} | 1 |",
        "Scores: {red}: 3, {blue}: 5, {gray}: 1",
    ];
    let approvals: &[&str] = &[
        r#"{"approve": ["{blue}", "{red}"]}"#,
        r#"{"approve": "{blue}, {red}"}"#,
        r#"{"approve": "red and blue"}"#,
        r#"{"approve": {"{red}": true, "{blue}": true, "{gray}": false}}"#,
        r#"{"approve": {"{red}": "yes", "{blue}": "yes", "{gray}": "no"}}"#,
        r#"{"approved": ["red", "{blue}"]}"#,
        r#"{"{red}": true, "{blue}": true, "{gray}": false, "reason": "so"}"#,
        r#"{"approve": [{"label": "{red}"}, {"label": "{blue}"}]}"#,
        r#"["{red}", "{blue}"]"#,
        "I approve of red and blue.",
        "I approve {red} and {blue}, but not {gray}.",
        "Approved: {red}, {blue}",
        "**Approve:** red, blue",
    ];
    let tables: [(&[&str], &[&str], &[&str]); 3] = [
        (&["irv", "borda"], ranking, &["blue", "red", "gray"]),
        (
            &["score", "star"],
            scores,
            &["red: 3", "blue: 5", "gray: 1"],
        ),
        (&["approval"], approvals, &["red", "blue"]),
    ];
    let mut wrong = Vec::new();
    for (rules, shapes, wanted) in tables {
        for (rule, shape) in rules
            .iter()
            .flat_map(|r| shapes.iter().map(move |s| (r, s)))
        {
            assert!(kd_vote::find(rule).is_some(), "{rule}");
            let (mut marks, again) = cast(rule, shape);
            let mut wanted: Vec<String> = wanted.iter().map(|w| (*w).to_owned()).collect();
            if *rule == "approval" {
                marks.sort();
                wanted.sort();
            }
            if marks != wanted || again {
                wrong.push(format!("{rule} {shape}: {marks:?}, asked again: {again}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // One label alone.
    assert_eq!(
        cast("approval", r#"{"approve": "red"}"#),
        (vec!["red".into()], false)
    );
}

#[test]
fn a_ballot_that_puts_several_first_backs_each_of_them() {
    let approve = |other: &str| format!(r#"{{"approve": ["{{red}}", "{{{other}}}"]}}"#);
    let score = |other: &str| format!(r#"{{"scores": {{"{{red}}": 5, "{{{other}}}": 5}}}}"#);
    let shape = |rule: &str, other: &str| match rule {
        "approval" => approve(other),
        _ => score(other),
    };
    for rule in ["approval", "score", "median"] {
        for (reading, wanted) in [
            (5, "The council is unanimous (3 of 3)"),
            (4, "A plurality, no majority (0 of 3)"),
        ] {
            let mut plan = colors(rule);
            plan.reading = reading;
            let held = run(&plan, |asked| {
                let other = if asked.seat == "bob" { "gray" } else { "blue" };
                let wants = WANTS.iter().find(|(name, _)| *name == asked.seat);
                match asked.stage.ends_with("vote") {
                    true => Answer::Text(labelled(asked, &shape(rule, other))),
                    false => Answer::Text(good(asked, wants.map_or("red", |(_, wants)| wants))),
                }
            });
            held.replays();
            assert_eq!(held.verdict().heading, wanted, "{rule} {reading}");
            let counted = |fact: &Fact| match fact {
                Fact::Counted(counted) => Some(counted.clone()),
                _ => None,
            };
            let counted = held.facts().find_map(counted).expect("a count");
            let names = counted
                .firsts
                .iter()
                .map(|first| first.names(&counted.candidates));
            let names: Vec<Option<String>> = names.collect();
            let is_named = names
                .iter()
                .flatten()
                .all(|names| names.contains("red = ") || names.contains(" = red"));
            let count = if reading < 5 { 0 } else { 3 };
            assert!(
                is_named && names.iter().flatten().count() == count,
                "{names:?}"
            );
        }
    }
}

#[test]
fn ballots_that_say_several_things_are_not_read() {
    let cases = [
        ("irv", r#"{"{red}": 9, "{blue}": 5, "{gray}": 7}"#),
        (
            "irv",
            r#"{"ranking": {"{red}": 1, "{blue}": 1, "{gray}": 2}}"#,
        ),
        (
            "irv",
            r#"[{"label": "{red}", "score": 1}, {"label": "{blue}", "score": 5}, {"label": "{gray}", "score": 3}]"#,
        ),
        ("score", "{red}: 3\n{red}: 5"),
        ("score", "{red}: 5 of the members like it"),
        ("score", r#"{"scores": {"{red}": "3/10"}}"#),
        ("approval", r#"{"approve": "red or something else"}"#),
        ("approval", "I approve of red.\nI approve of blue."),
    ];
    for (rule, shape) in cases {
        let (marks, again) = cast(rule, shape);
        assert_eq!(marks, Vec::<String>::new(), "{rule} {shape}");
        assert!(again, "{rule} {shape}");
    }
}

fn reviewers(protocol: &str) -> Plan {
    let mut plan = plan();
    plan.question = "Which way?".into();
    plan.protocol = protocol.into();
    plan.answers = AnswerKind::Text;
    plan.seats.insert(3, seat("dan", "opinion-giver"));
    plan
}

/// Runs a peer review in which dan writes this review.
fn reviewed(protocol: &str, shape: &str, repaired: Option<&str>) -> (Run, u32) {
    let again = Cell::new(0);
    let held = run(&reviewers(protocol), |asked| {
        if asked.stage == "review" && asked.seat == "dan" {
            again.set(again.get() + 1);
            let shape = match repaired {
                Some(repaired) if again.get() > 1 => repaired,
                _ => shape,
            };
            return Answer::Text(labelled(asked, shape));
        }
        Answer::Text(good(asked, "ann"))
    });
    held.replays();
    (held, again.get())
}

/// The ratings and the ranking of dan's review.
fn read_of(held: &Run) -> (Vec<(String, u8)>, String) {
    let read = |fact: &Fact| match fact {
        Fact::ReviewRead {
            seat,
            ratings,
            ranking,
            ..
        } if seat.as_str() == "dan" => {
            let ratings = ratings.iter().map(|r| (r.seat.to_string(), r.rating));
            let ranking: Vec<&str> = ranking.iter().map(|s| s.as_str()).collect();
            Some((ratings.collect(), ranking.join(" ")))
        }
        _ => None,
    };
    let (mut ratings, ranking): (Vec<(String, u8)>, String) =
        held.facts().find_map(read).expect("a review");
    ratings.sort();
    (ratings, ranking)
}

#[test]
fn reviews_are_read_in_every_usual_shape() {
    let rated = [("ann", 6), ("bob", 9), ("cyd", 3)];
    let rated: Vec<(String, u8)> = rated.map(|(name, n)| (name.to_owned(), n)).to_vec();
    let with_ratings = [
        r#"{"{ann}": {"rating": 6, "weakness": "w"}, "{bob}": {"rating": 9, "weakness": "w"}, "{cyd}": {"rating": 3, "weakness": "w"}, "ranking": ["{bob}", "{ann}", "{cyd}"]}"#,
        r#"{"{ann}": {"rating": "6"}, "{bob}": {"rating": "9/10"}, "{cyd}": {"rating": 3.0}}"#,
        r#"{"{ann}": 6, "{bob}": 8.6, "{cyd}": 3, "ranking": "{bob} > {ann} > {cyd}"}"#,
        r#"{"ratings": {"{ann}": 6, "{bob}": 9, "{cyd}": 3}}"#,
        r#"{"reviews": [{"label": "{ann}", "rating": 6}, {"label": "{bob}", "rating": 9}, {"label": "{cyd}", "rating": 3}]}"#,
        r#"[{"answer": "{ann}", "rating": 6}, {"answer": "{bob}", "rating": 9}, {"answer": "{cyd}", "rating": 3}]"#,
        "Answer {ann}: 6/10 – vague\nAnswer {bob}: 9/10 – clear\nAnswer {cyd}: 3/10 – wrong",
        "- **{ann}**: 6/10\n- **{bob}**: 9/10\n- **{cyd}**: 3/10\n\nRanking: {bob} > {ann} > {cyd}",
    ];
    let without = [
        "Ranking: {bob} > {ann} > {cyd}",
        "1. {bob}\n2. {ann}\n3. {cyd}",
        r#"{"ranking": "{bob} > {ann} > {cyd}"}"#,
        r#"{"ranking": ["{bob}", "{ann}", "{cyd}"]}"#,
        r#"{"ranking": {"{bob}": 1, "{ann}": 2, "{cyd}": 3}}"#,
    ];
    let with_ratings = with_ratings.map(|shape| (shape, rated.clone()));
    let without = without.map(|shape| (shape, Vec::new()));
    let mut wrong = Vec::new();
    for (shape, ratings) in with_ratings.into_iter().chain(without) {
        let (held, asked) = reviewed("peer-review", shape, None);
        let found = read_of(&held);
        if found != (ratings, "bob ann cyd".to_owned()) || asked != 1 {
            wrong.push(format!("{shape}: {found:?}, asked {asked} times"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_review_that_is_the_ballot_is_asked_for_once_more() {
    let unclear = "All of them have merits.";
    let bare = r#"{"ranking": ["{bob}", "{ann}", "{cyd}"]}"#;
    let (held, asked) = reviewed("peer-review", unclear, Some(bare));
    assert_eq!((read_of(&held).1.as_str(), asked), ("bob ann cyd", 2));
    // Equal ratings are not a ranking, and the ratings stay.
    let equal = r#"{"{ann}": 6, "{bob}": 6, "{cyd}": 3}"#;
    let (held, asked) = reviewed("peer-review", equal, Some(bare));
    let (ratings, ranking) = read_of(&held);
    assert_eq!(
        (ratings.len(), ranking.as_str(), asked),
        (3, "bob ann cyd", 2)
    );
    // A refusal is final, and where a vote follows nobody is asked again.
    let (held, asked) = reviewed(
        "peer-review",
        "I'm sorry, but I can't help with that.",
        Some(bare),
    );
    assert_eq!((read_of(&held).1.as_str(), asked), ("", 1));
    let (_, asked) = reviewed("council", unclear, Some(bare));
    assert_eq!(asked, 1);
    // The follow-up shows the answers again, without their authors.
    let mut shown = String::new();
    run(&reviewers("peer-review"), |asked| {
        if asked.stage == "review" && asked.seat == "dan" {
            shown = asked.request.prompt.history.to_string();
            return Answer::Text(unclear.into());
        }
        Answer::Text(good(asked, "ann"))
    });
    assert!(
        shown.contains("Answer C") && !shown.contains("says ann"),
        "{shown}"
    );
}

/// Runs a red team in which bob replies so; returns what is noted of it.
fn attacked(reply: &str) -> String {
    let mut plan = reviewers("red-team");
    plan.seats.truncate(3);
    let held = run(&plan, |asked| match asked.stage.as_str() {
        "attack" if asked.seat == "bob" => Answer::Text(reply.into()),
        _ => Answer::Text(good(asked, "ann")),
    });
    held.replays();
    let noted = |fact: &Fact| match fact {
        Fact::Noted {
            seat: Some(seat),
            stage,
            text,
        } if stage == "attack" && seat.as_str() == "bob" => Some(text.clone()),
        _ => None,
    };
    held.facts().find_map(noted).expect("a note")
}

#[test]
fn defects_are_read_in_every_usual_shape() {
    let two = "It is slow; It is wrong";
    let cases: [(Value, &str); 6] = [
        (json!({"defects": ["It is slow", "It is wrong"]}), two),
        (
            json!({"defects": [{"defect": "It is slow"}, {"statement": "It is wrong"}]}),
            two,
        ),
        (json!({"issues": ["It is slow", "It is wrong"]}), two),
        (json!(["It is slow", "It is wrong"]), two),
        (json!({"defects": "It is slow"}), "It is slow"),
        (json!({"defects": []}), "finds no defect"),
    ];
    let cases = cases.map(|(value, wanted)| (value.to_string(), wanted));
    let words = [
        ("1. It is slow\n2. It is wrong", two),
        ("Two things:\n- It is slow\n- **It is wrong**", two),
        ("It is slow\n\nIt is wrong", two),
        (
            "The answer ignores the second writer.",
            "The answer ignores the second writer.",
        ),
        (
            "It gives no reason for the error in step 2, but it needs one.",
            "It gives no reason for the error in step 2, but it needs one.",
        ),
        ("I find no defects.", "finds no defect"),
        ("None.", "finds no defect"),
        (
            "I can't help with that.",
            "its list cannot be read and counts for nothing",
        ),
    ];
    let words = words.map(|(reply, wanted)| (reply.to_owned(), wanted));
    for (reply, wanted) in cases.into_iter().chain(words) {
        assert_eq!(attacked(&reply), wanted, "{reply}");
    }
}
