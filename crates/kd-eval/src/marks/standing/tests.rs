use super::super::{By, Member, VERSION};
use super::*;

fn standing(marks: &[Mark], verdict: &Mark, required: Option<f64>) -> Standing {
    super::standing(&Evidence::of(marks.to_vec()), verdict, required)
}

/// Builds a verdict of three models, `backing` of which support it.
fn verdict(at: i64, backing: usize, right: bool) -> Mark {
    let member = |model: usize| Member {
        name: format!("m{model}"),
        model: format!("vendor/m{model}"),
        key: Some(if model < backing { "391" } else { "381" }.to_owned()),
        backs: model < backing,
        confidence: None,
    };
    Mark {
        v: VERSION,
        project: "p-1".into(),
        thread: format!("council-{at}"),
        message: 5,
        at: Timestamp::from_second(at * 86_400).expect("a time"),
        by: By::User,
        kind: "number".into(),
        protocol: "council".into(),
        members: (0..3).map(member).collect(),
        unasked: Vec::new(),
        stopping: None,
        winner: Some("391".into()),
        credit: f64::from(u8::from(right)),
        answer: None,
        calls: 3,
        usd: 0.0,
    }
}

fn series(groups: &[(usize, usize, usize)]) -> Vec<Mark> {
    let mut at = 0;
    let mut all = Vec::new();
    for (backing, right, wrong) in groups {
        for n in 0..right + wrong {
            at += 1;
            all.push(verdict(at, *backing, n >= *wrong));
        }
    }
    all
}

/// Alternates two kinds of verdicts, so that both are in the training quarter.
fn mixed(n: usize, sure_wrong_every: usize) -> Vec<Mark> {
    (0..n)
        .map(|at| match at % 2 {
            0 => verdict(at as i64, 3, at % sure_wrong_every != 0),
            _ => verdict(at as i64, 2, at % 8 == 1),
        })
        .collect()
}

#[test]
fn sure_verdicts_are_promised_and_unsure_ones_are_not() {
    let marks = mixed(600, 100);
    let sure = standing(&marks, &verdict(9999, 3, true), None);
    assert_eq!(sure.marks, 600);
    assert!(sure.right() >= Some(0.9), "{sure:?}");
    let unsure = standing(&marks, &verdict(9999, 2, true), None);
    assert!(matches!(unsure.state, State::Unsure { .. }), "{unsure:?}");
    assert!(
        sure.words()
            .starts_with("promise: verdicts like this are right at least 9"),
        "{}",
        sure.words()
    );
    assert!(
        unsure
            .words()
            .starts_with("no promise: the council agreed less"),
        "{}",
        unsure.words()
    );
}

#[test]
fn few_marks_promise_nothing_and_say_how_many_are_missing() {
    let none = standing(&[], &verdict(1, 3, true), None);
    assert!(
        matches!(none.state, State::None { more: Some(12..20) }),
        "{none:?}"
    );
    assert_eq!(
        none.words(),
        "no promise: about 16 more marks of number questions by this council would do (0 so far)"
    );
    let stricter = standing(&[], &verdict(1, 3, true), Some(0.95));
    assert!(
        matches!(
            stricter.state,
            State::None {
                more: Some(90..120)
            }
        ),
        "{stricter:?}"
    );
    // A single mark does not turn a handful into hundreds.
    for right in [1, 5, 10] {
        let few = standing(&series(&[(3, right, 0)]), &verdict(999, 3, true), None);
        let is_near = matches!(few.state, State::None { more: Some(5..35) });
        assert!(is_near, "{right}: {few:?}");
    }
    let wrong = standing(&series(&[(3, 0, 1)]), &verdict(999, 3, true), None);
    assert!(
        matches!(wrong.state, State::None { more: Some(20..50) }),
        "{wrong:?}"
    );
    let hopeless = standing(&series(&[(3, 100, 100)]), &verdict(999, 3, true), None);
    assert!(
        matches!(hopeless.state, State::None { more: None }),
        "{hopeless:?}"
    );
}

#[test]
fn a_probability_is_how_often_verdicts_as_sure_were_right() {
    let marks = mixed(600, 100);
    let sure = standing(&marks, &verdict(9999, 3, true), None);
    let unsure = standing(&marks, &verdict(9999, 2, true), None);
    let near = |told: Option<f64>, share: f64| {
        assert!(told.is_some_and(|p| (p - share).abs() < 0.03), "{told:?}");
    };
    near(sure.probability, 0.98);
    near(unsure.probability, 0.25);
    assert!(
        unsure
            .words()
            .ends_with("; probability of being right: about 25 %"),
        "{}",
        unsure.words()
    );
    let all_right = standing(&series(&[(3, 200, 0)]), &verdict(9999, 3, true), None);
    assert!(all_right.probability < Some(1.0), "{all_right:?}");
    assert!(
        all_right.words().ends_with("about 99 %"),
        "{}",
        all_right.words()
    );
    // 66 marks leave 50 for testing.
    for (marks, told) in [(65, false), (66, true)] {
        let few = standing(&series(&[(3, marks, 0)]), &verdict(9999, 3, true), None);
        assert_eq!(few.probability.is_some(), told, "{few:?}");
    }
}

#[test]
fn only_verdicts_like_it_count() {
    let marks = mixed(600, 100);
    let here = verdict(9999, 3, true);
    let mut other_kind = here.clone();
    other_kind.kind = "choice".into();
    let mut other_protocol = here.clone();
    other_protocol.protocol = "vote".into();
    let mut other_version = here.clone();
    other_version.members[1].model = "vendor/m1-20260101".into();
    let mut smaller = here.clone();
    smaller.members.pop();
    for other in [other_kind, other_protocol, other_version, smaller] {
        let standing = standing(&marks, &other, None);
        assert_eq!((standing.marks, standing.right()), (0, None), "{other:?}");
    }
    // A council of which a member was not asked is the same one.
    let mut early = here.clone();
    let spared = early.members.pop().expect("a member");
    early.unasked.push(spared.model);
    assert_eq!(standing(&marks, &early, None).marks, 600);
    let mut earlier = marks.clone();
    for mark in &mut earlier {
        let spared = mark.members.remove(0);
        mark.unasked.push(spared.model);
    }
    assert_eq!(standing(&earlier, &here, None).marks, 600);
    assert_eq!(standing(&earlier, &early, None).marks, 600);
    // So is one that ends by the same rule, but by no other.
    let by = |rule: Option<&str>, mark: &Mark| Mark {
        stopping: rule.map(str::to_owned),
        ..mark.clone()
    };
    let ruled: Vec<Mark> = marks.iter().map(|m| by(Some("margin"), m)).collect();
    for (marks, rule, like) in [
        (&ruled, Some("margin"), 600),
        (&ruled, Some("certainty 0.5"), 0),
        (&ruled, None, 0),
        (&marks, Some("settled"), 0),
    ] {
        assert_eq!(
            standing(marks, &by(rule, &early), None).marks,
            like,
            "{rule:?}"
        );
    }
    // Its own mark does not count.
    let own = standing(&marks, &marks[10], None);
    assert_eq!(own.marks, 599);
}

#[test]
fn full_councils_promise_nothing_for_one_answer() {
    // All three agree in every mark, and nearly all are right. Single answers are right in 55 % of the cases.
    let full: Vec<Mark> = series(&[(3, 252, 8)])
        .into_iter()
        .map(|mark| Mark {
            stopping: Some("margin".into()),
            ..mark
        })
        .collect();
    let mut one = verdict(9999, 3, true);
    let unasked = one.members.split_off(1);
    one.unasked = unasked.into_iter().map(|member| member.model).collect();
    one.stopping = Some("certainty 0.5".into());
    let found = standing(&full, &one, None);
    assert_eq!(
        (found.right(), found.probability),
        (None, None),
        "{found:?}"
    );
    let unmarked: Vec<Mark> = full
        .into_iter()
        .map(|m| Mark {
            stopping: None,
            ..m
        })
        .collect();
    assert_eq!(standing(&unmarked, &one, None).right(), None);
    // By their own rule they do promise.
    one.stopping = None;
    assert!(standing(&unmarked, &one, None).right() >= Some(0.9));
}

#[test]
fn a_promise_that_no_longer_holds_is_withdrawn_and_can_be_earned_again() {
    // 500 right ones, then every second one is wrong.
    let mut marks = series(&[(3, 500, 0)]);
    let from = marks.len() as i64;
    marks.extend((1..60).map(|n| verdict(from + n, 3, n % 2 == 0)));
    let here = verdict(9999, 3, true);
    let broken = standing(&marks, &here, None);
    assert!(broken.withdrawn.is_some(), "{broken:?}");
    assert_eq!(broken.right(), None, "{broken:?}");
    assert!(
        broken.words().contains("withdrawn on 1971-"),
        "{}",
        broken.words()
    );
    let from = 600;
    marks.extend((1..200).map(|n| verdict(from + n, 3, true)));
    let earned = standing(&marks, &here, None);
    assert!(
        earned.right().is_some() && earned.withdrawn.is_some(),
        "{earned:?}"
    );
}

#[test]
fn the_order_in_which_marks_are_stored_changes_nothing() {
    let marks = mixed(300, 50);
    let mut turned = marks.clone();
    turned.reverse();
    let here = verdict(9999, 3, true);
    assert_eq!(
        standing(&marks, &here, None),
        standing(&turned, &here, None)
    );
}

#[test]
fn what_is_learned_once_says_the_same_of_each_verdict() {
    let marks = mixed(600, 100);
    for required in [None, Some(0.85)] {
        let basis = Basis::of(
            &Evidence::of(marks.clone()),
            &verdict(9999, 3, true),
            required,
        );
        for backing in 0..=3 {
            let one = verdict(9000 + backing as i64, backing, true);
            let alone = standing(&marks, &one, required);
            assert_eq!(basis.standing(&one), alone);
            assert_eq!(basis.right(&one), alone.right());
        }
    }
}
