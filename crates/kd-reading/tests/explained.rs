//! Replies that name other options, numbers or items while they explain the answer, read for their question.
#![allow(clippy::unwrap_used)]

use kd_reading::kinds::{self, Kind};
use kd_reading::{Answer, Options, Unread, Wanted, choice, read};

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
