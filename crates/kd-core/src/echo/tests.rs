use super::*;
use proptest::prelude::*;

const TOLD: &str = "You are practical. Recommend the simplest thing that works today, say what it costs, and what would change your mind.";

fn known() -> Known {
    Known::new(RUN).instructions(TOLD)
}

#[test]
fn runs_of_instructions_are_found_where_they_begin() {
    for (text, at) in [
        (
            "I would.  The SIMPLEST thing, that works today – say it.",
            Some(10),
        ),
        ("Use the simplest thing that works.", None),
        ("recommend the simplest\nthing that works", Some(0)),
        ("", None),
        ("…", None),
    ] {
        let found = known().find(text);
        assert_eq!(found.map(|f| f.at), at, "{text}");
        assert!(found.is_none_or(|f| f.what == Repeated::Instructions));
    }
}

#[test]
fn no_sentence_begins_with_one_of_the_instructions() {
    for (text, found) in [
        ("You are practical. So am I.", true),
        ("You are practical", true),
        ("You are right.", false),
        ("Recommend the simplest thing, always.", true),
        ("Recommend the simplest answer.", false),
        ("I think you are practical.", false),
        ("Use SQLite. You are practical, so go with it.", true),
        ("Use SQLite.\n\n──── You are practical", true),
        ("Use SQLite, you are practical.", false),
        ("It works. You are right.", false),
    ] {
        assert_eq!(known().find(text).is_some(), found, "{text}");
    }
    // Two words are ordinary speech.
    let kind = Known::new(RUN).instructions("Be kind. Stay.");
    assert_eq!(kind.find("Be kind. Stay."), None);
}

#[test]
fn words_of_the_user_and_quoted_words_may_be_repeated() {
    let text = "The simplest thing that works today is SQLite.";
    assert!(known().find(text).is_some());
    let asked = known().spared("What is the simplest thing that works today?");
    assert_eq!(asked.find(text), None);
    // More than the user wrote is a repetition.
    assert!(
        asked
            .find("It is the simplest thing that works today, say what it costs")
            .is_some()
    );
    for told in [
        "End with “this is no advice of a lawyer at all”.",
        "End with \"this is no advice of a lawyer at all\".",
        "End with `this is no advice of a lawyer at all`.",
    ] {
        let known = Known::new(RUN).instructions(told);
        assert_eq!(
            known.find("No. This is no advice of a lawyer at all"),
            None,
            "{told}"
        );
    }
    let open = Known::new(RUN).instructions("A 5\" pipe is what you would talk about here");
    assert!(
        open.find("It is what you would talk about here").is_some(),
        "no quote"
    );
}

fn prompt() -> Prompt {
    let history = "[Previous conversation]\nking: Which database fits us best, and why do you think so?\n\nskeptic: Nobody knows how much data there will be, so start with one file and move later.";
    Prompt {
        rules: "Think for yourself at all times, please do.".into(),
        persona: TOLD.into(),
        history: history.into(),
        starts: vec![history.find("\n\nskeptic").unwrap()].into(),
        turn: "---\nYou are pragmatist. Answer the question.".into(),
    }
}

#[test]
fn a_prompt_is_known_by_its_parts() {
    let seat = SeatName::new("pragmatist").unwrap();
    let known = Known::of_prompt(&prompt(), &seat);
    for (text, what) in [
        ("You are pragmatist.", Some(Repeated::Instructions)),
        ("answer the question", Some(Repeated::Instructions)),
        (
            "Well, think for yourself at all times!",
            Some(Repeated::Instructions),
        ),
        ("pragmatist: Use SQLite.", Some(Repeated::Frame)),
        ("**Skeptic**: Use SQLite.", Some(Repeated::Frame)),
        ("king (to pragmatist): Use SQLite.", Some(Repeated::Frame)),
        ("Pragmatist here. Use SQLite.", None),
        (
            "which database fits us best, and why do you think so? SQLite.",
            None,
        ),
        (
            "Skeptic says nobody knows how much data there will be, so start small.",
            None,
        ),
        (
            "I say nobody knows how much data there will be, so start with one file.",
            Some(Repeated::Answer),
        ),
    ] {
        assert_eq!(known.find(text).map(|f| f.what), what, "{text}");
    }
    // What it said itself is not another's answer.
    let own = Known::of_prompt(&prompt(), &SeatName::new("skeptic").unwrap());
    let said = "Nobody knows how much data there will be, so start with one file and move later.";
    assert_eq!(own.find(said), None);
    assert!(known.find(said).is_some());
}

#[test]
fn an_equal_text_is_found_however_short() {
    let known = Known::new(4).whole("Why do they dance?").whole(" ");
    assert_eq!(
        known.find("why do they DANCE").unwrap().what,
        Repeated::Answer
    );
    assert_eq!(known.find("Why do they dance at all?"), None);
    assert_eq!(known.find(""), None);
}

#[test]
fn text_is_shown_as_soon_as_it_can_no_longer_be_a_repetition() {
    let mut listener = Listener::new(known());
    for (piece, shown) in [
        ("I ", "I "),
        ("wou", "I "),
        ("ld buy the", "I would buy "),
        // The last word may still be `simplest`; the run is held.
        (" simpl", "I would buy "),
        ("est", "I would buy "),
        (" thing,", "I would buy "),
        (" but", "I would buy "),
        (" not", "I would buy the simplest thing, but "),
    ] {
        assert_eq!(listener.push(piece), None);
        let safe = &listener.text()[..listener.safe()];
        assert_eq!(safe.trim_end(), shown.trim_end(), "after {piece:?}");
    }
    assert_eq!(listener.finish(), None);
}

proptest! {
    #[test]
    fn pieces_are_judged_as_the_whole(cuts in proptest::collection::vec(1usize..9, 0..40), text in text()) {
        let known = Known::of_prompt(&prompt(), &SeatName::new("pragmatist").unwrap());
        let whole = known.find(&text);
        let mut listener = Listener::new(&known);
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0_usize;
        let mut found = None;
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let end = at.saturating_add(cut).min(chars.len());
            let piece: String = chars[at..end].iter().collect();
            at = end;
            found = listener.push(&piece);
            prop_assert!(text.is_char_boundary(listener.safe()));
            if found.is_some() {
                break;
            }
            // Nothing that has been shown is part of a repetition found later.
            prop_assert!(whole.is_none_or(|w| w.what == Repeated::Frame || listener.safe() <= w.at));
        }
        let found = found.or_else(|| listener.finish());
        prop_assert_eq!(found.map(|f| f.what), whole.map(|f| f.what));
    }
}

/// Generates texts that often repeat something.
fn text() -> impl Strategy<Value = String> {
    let pieces = [
        "You are practical. ",
        "the simplest thing that works today",
        "pragmatist",
        ": ",
        "skeptic ",
        "so start with one file and move later",
        "nobody knows how much data there will be, ",
        "Use SQLite. ",
        "ä’é ",
        "\n\n",
        "that works",
        " say what it costs",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..10)
        .prop_map(|v| v.concat())
}
