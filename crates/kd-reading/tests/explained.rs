//! Replies that name other options, numbers or items while they explain the answer, read for their question.
#![allow(clippy::unwrap_used)]

use kd_reading::kinds::{self, Kind};
use kd_reading::{Answer, Options, Unread, Wanted, amount, choice, read};

/// Returns the choice that a reply makes among the options of its question.
fn chosen(question: &str, reply: &str) -> Result<String, Unread> {
    let Kind::Choice(options) = kinds::of(question) else {
        panic!("{question} offers no choice");
    };
    choice(&options, question, reply).map(|(at, _)| options[at].clone())
}

const METAL: &str =
    "Which of these metals is liquid at 20 °C? (A) iron (B) zinc (C) copper (D) mercury";

#[test]
fn a_letter_is_not_outweighed_by_its_explanation() {
    for reply in [
        "D. Copper melts at 1085 °C.",
        "**D.** Zinc melts at 420 °C.",
        "Answer: D. Iron is solid until 1538 °C.",
        "**Answer: D.** Copper conducts well.",
        "Answer: D, because zinc is solid at 20 °C.",
        "Final answer: D – iron stays solid.",
        "The answer is D, since iron has to be heated a lot.",
        "D (zinc only melts at 420 °C)",
        "Antwort: D, denn zinc ist bei 20 °C fest.",
        "Réponse : D, car iron est solide.",
        "Respuesta: D, porque copper es sólido.",
        "答案：D，因为 iron 是固体。",
        r#"{"answer": "D. Zinc melts at 420 °C.", "confidence": 0.9}"#,
    ] {
        assert_eq!(chosen(METAL, reply), Ok("mercury".into()), "{reply}");
    }
    // The letter of one option and the name of another one.
    for reply in [
        "D) copper",
        "Answer: D. Copper.",
        "(D) zinc has a low melting point",
    ] {
        assert_eq!(chosen(METAL, reply), Err(Unread::Ambiguous), "{reply}");
    }
    // A change of mind.
    let reply = "Answer: D. Wait, no: it is A.";
    assert_ne!(chosen(METAL, reply), Ok("mercury".into()));
}

#[test]
fn a_short_last_sentence_chooses_nothing() {
    let question = "Should we use tmux or screen?";
    for reply in [
        "Tmux is easier. Screen is dated.",
        "Screen is lighter. Tmux is too much.",
        "Tmux is simpler to configure. Screen is painful.",
    ] {
        assert_eq!(chosen(question, reply), Err(Unread::Ambiguous), "{reply}");
    }
}

#[test]
fn what_comes_later_or_came_first_is_not_the_choice() {
    for (question, reply, want) in [
        (
            "Should we use cron or Airflow?",
            "Cron is plenty. You can always migrate to Airflow.",
            "cron",
        ),
        (
            "Should we use cron or Airflow?",
            "Cron covers it. Airflow is what you'd use at a larger scale.",
            "cron",
        ),
        (
            "Should we use cron or Airflow?",
            "I initially leaned towards Airflow. Given our size, I now favor cron.",
            "cron",
        ),
        (
            "Sollen wir cron oder Airflow nehmen?",
            "Cron reicht. Airflow können wir später einführen.",
            "cron",
        ),
        (
            "Sollen wir cron oder Airflow nehmen?",
            "Zuerst dachte ich an cron, aber hier führt kein Weg an Airflow vorbei.",
            "Airflow",
        ),
        (
            "Faut-il utiliser cron ou Airflow ?",
            "Cron suffit. Vous pourrez toujours passer à Airflow.",
            "cron",
        ),
        (
            "¿Deberíamos usar cron o Airflow?",
            "Cron basta. Siempre podremos pasar a Airflow.",
            "cron",
        ),
        (
            "我们应该用 cron 还是 Airflow？",
            "建议用 cron。以后可以换成 Airflow。",
            "cron",
        ),
    ] {
        let read = chosen(question, reply).map(|at| at.to_lowercase());
        assert_eq!(read, Ok(want.to_lowercase()), "{reply}");
    }
}

#[test]
fn a_yes_behind_a_no_does_not_turn_it() {
    let options = Options::new(&["yes".to_owned(), "no".to_owned()]);
    let said = |reply| read(&Wanted::Option(options.clone()), reply).map(|(answer, _)| answer);
    for reply in [
        "No, never. Yes, I know that it saves time.",
        "Nein, auf keinen Fall. Ja, auch am Wochenende.",
        "Non, jamais. Oui, même en test.",
        "No, nunca. Sí, incluso en pruebas.",
    ] {
        assert_ne!(said(reply), Ok(Answer::Option(0)), "{reply}");
    }
}

/// Returns the number that a reply gives to its question.
fn number(question: &str, reply: &str) -> Result<String, Unread> {
    amount(question, reply).map(|(key, _)| key)
}

#[test]
fn the_number_of_the_counted_things_is_read() {
    for (question, reply, want) in [
        (
            "How many moons does Uranus have?",
            "Uranus has twenty-eight moons, the first found in 1787.",
            "28",
        ),
        (
            "How many ribs does a person have?",
            "Since 1543 it has been known: a person has twenty-four ribs.",
            "24",
        ),
        (
            "How many teeth does an adult dog have?",
            "An adult dog has 42 teeth. Puppies start with 28.",
            "42",
        ),
        (
            "How many stars does the flag have?",
            "The flag has twelve stars and 1 stripe.",
            "12",
        ),
        (
            "How many seats were taken?",
            "Eighteen, out of a maximum of 40.",
            "18",
        ),
        (
            "How many sides has a pentagon?",
            "Five. A heptagon has 7.",
            "5",
        ),
        (
            "Wie viele Saiten hat ein Cello?",
            "Ein Cello hat vier Saiten, seit dem Jahr 1660.",
            "4",
        ),
        (
            "Wie viele Bundesländer hat Österreich?",
            "Neun. Deutschland hat 16.",
            "9",
        ),
        (
            "Combien de dents a un adulte ?",
            "Un adulte a 32 dents, contre environ 20 chez l'enfant.",
            "32",
        ),
        (
            "¿Cuántas provincias tiene Irlanda?",
            "Irlanda tiene cuatro provincias desde 1610.",
            "4",
        ),
        ("章鱼有多少颗心脏？", "章鱼有 3 颗心脏，人只有 1 颗。", "3"),
    ] {
        assert_eq!(number(question, reply), Ok(want.into()), "{reply}");
    }
    // The number of something else, or of another time.
    for (question, reply, wrong) in [
        (
            "How many moons does Uranus have?",
            "Jupiter has 95 moons, Uranus 28.",
            "95",
        ),
        (
            "How many moons does Uranus have?",
            "People think that there are 27 moons; it is 28.",
            "27",
        ),
        (
            "How many planets are there?",
            "Once there were 9 planets, today it is 8.",
            "9",
        ),
        (
            "How many moons does Uranus have?",
            "Most were found in 1986.",
            "1986",
        ),
        (
            "Wie viele Monde hat Uranus?",
            "Früher waren es 27 Monde, heute 28.",
            "27",
        ),
        (
            "How many apples are left?",
            "He had 12 apples and ate 2, so 10.",
            "12",
        ),
    ] {
        assert_ne!(number(question, reply), Ok(wrong.into()), "{reply}");
    }
}

#[test]
fn the_amount_in_the_asked_unit_is_read() {
    for (question, reply, want) in [
        (
            "How high is the tower in meters?",
            "72 meters, which is about 236 feet.",
            "72",
        ),
        (
            "How high is the tower in feet?",
            "72 meters, which is about 236 feet.",
            "236",
        ),
        (
            "How long is the film in minutes?",
            "It runs 120 minutes, that is 2 hours.",
            "120",
        ),
        (
            "How many minutes are in 3.5 hours?",
            "3.5 hours is 210 minutes.",
            "210",
        ),
        (
            "What is the oven set to in degrees Celsius?",
            "180 °C, which is 356 °F.",
            "180",
        ),
        (
            "Wie hoch ist der Turm in Metern?",
            "72 Meter, das sind etwa 236 Fuß.",
            "72",
        ),
        (
            "Quelle est la hauteur de la tour en mètres ?",
            "72 mètres, soit environ 236 pieds.",
            "72",
        ),
        (
            "¿Cuánto mide la torre en metros?",
            "72 metros, es decir, unos 236 pies.",
            "72",
        ),
        ("塔高多少米？", "72 米，也就是 236 英尺。", "72"),
    ] {
        assert_eq!(number(question, reply), Ok(want.into()), "{reply}");
    }
}

#[test]
fn an_equation_ends_with_its_result() {
    let question = "What is 5 factorial?";
    for reply in [
        "5! = 5 × 4 × 3 × 2 × 1 = **120**",
        "5! = 20 × 6 = 120.",
        "120. For comparison, 4! is 24.",
    ] {
        assert_eq!(number(question, reply), Ok("120".into()), "{reply}");
    }
}

#[test]
fn what_is_only_named_needs_a_second_sign() {
    let said = |names: &[&str], reply: &str| {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let read = read(&Wanted::Option(Options::new(&names)), reply);
        read.map(|(answer, _)| match answer {
            Answer::Option(at) => names[at].clone(),
            Answer::Text(text) => text,
        })
    };
    let fish = ["清蒸", "红烧", "油炸"];
    let reply = "鱼这么新鲜，当然是清蒸！红烧味道太重会盖住鲜味，油炸就更可惜了。";
    assert_eq!(said(&fish, reply), Ok("清蒸".into()));
    // The others share a sentence, which asks nothing.
    let sizes = ["velocity", "mass", "time"];
    let reply = "Only velocity has a direction. Mass and time are scalars.";
    assert_eq!(said(&sizes, reply), Ok("velocity".into()));
    let reply = "The press loves velocity. The vote is open between mass and time.";
    assert!(said(&sizes, reply).is_err());
    let sides = ["yes", "no"];
    for (reply, want) in [
        ("I am changing my vote from no to yes.", Some("yes")),
        ("A priori j'aurais dit oui.", None),
        ("Une part de moi dit oui, une autre dit non.", None),
        ("I can't give you a yes or no.", None),
    ] {
        assert_eq!(said(&sides, reply).ok().as_deref(), want, "{reply}");
    }
}
