//! The first-run prompt: which model answers. Input: what is on this machine, and one key. Output: the user's
//! configuration. Asks nothing without a terminal, with an existing configuration, or without alternatives.

use super::here::Here;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::wrap::wrap;
use kd_app::setup::{Offer, first_question};
use kd_tui::terminal::{self, Key, Keys};
use std::io::{self, IsTerminal, Write};

/// Asks who answers, if nothing is configured and the user is at a terminal, and writes the choice to the user's
/// configuration.
///
/// # Errors
/// If the user leaves without a choice, or the choice cannot be saved.
pub(super) fn ask(here: &Here) -> Result<(), Error> {
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !terminal || here.is_on("CI") || here.var("KD_MODEL").is_some() {
        return Ok(());
    }
    let Some(first) = first_question(here)? else {
        return Ok(());
    };
    let offer = loop {
        let Some(offer) = pick(&first.offers, &first.file)? else {
            return Err(Error::new(
                "interrupted",
                Exit::Interrupted,
                "no member was asked, and nothing was changed",
            )
            .next("`kd init` has more to choose from; --members NAMES asks others just once"));
        };
        // A choice that cannot answer is not saved.
        match offer.fetch(here) {
            Ok(()) => break offer,
            Err(error) => {
                let columns = terminal::size_of_stderr().map(|(columns, _)| columns.into());
                Error::from(error).report(false, columns);
            }
        }
    };
    first.save(offer)?;
    say(&format!("{} from now on", offer.who))?;
    say("to choose again: kd init --user --force")
}

/// Shows the offers and waits for a key. `None` if the user leaves.
fn pick<'a>(offers: &'a [Offer], file: &str) -> Result<Option<&'a Offer>, Error> {
    // The built-in model is free, so there always is one.
    let default = offers.iter().position(|offer| offer.free).unwrap_or(0);
    let Some(mut keys) = Keys::take() else {
        return Ok(None);
    };
    let columns = terminal::size_of_stderr().map_or(80, |(columns, _)| columns.into());
    for line in question(offers, default, file, columns) {
        say(&line)?;
    }
    let mut err = crate::out::stderr().lock();
    write!(err, "> ")?;
    err.flush()?;
    let place = loop {
        match keys.pressed() {
            Key::Enter => break Some(default),
            Key::Leave => break None,
            Key::Char(digit) => {
                let place = digit.to_digit(10).and_then(|n| (n as usize).checked_sub(1));
                if let Some(place) = place.filter(|place| *place < offers.len()) {
                    break Some(place);
                }
            }
            Key::Other => {}
        }
    };
    let echo = place.map_or(String::new(), |place| (place + 1).to_string());
    writeln!(err, "{echo}")?;
    Ok(place.and_then(|place| offers.get(place)))
}

/// Formats the prompt in lines of at most `columns`.
fn question(offers: &[Offer], default: usize, file: &str, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(1).max(20);
    let mut lines = wrap(
        &format!("Nothing is configured yet. Who should answer? The choice is saved in {file}."),
        room,
    );
    for (at, offer) in offers.iter().enumerate() {
        let mut label = format!("  {}) ", at + 1);
        for line in wrap(&offer.line, room.saturating_sub(label.len())) {
            lines.push(format!("{label}{line}"));
            label = " ".repeat(label.len());
        }
    }
    let to = if offers.len() == 2 { "or" } else { "to" };
    let last = format!(
        "Press 1 {to} {}. Enter picks {}, q quits.",
        offers.len(),
        default + 1
    );
    lines.extend(wrap(&last, room));
    lines
}

fn say(line: &str) -> Result<(), Error> {
    Ok(writeln!(crate::out::stderr(), "{line}")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_app::Env;
    use kd_app::setup::{Discovered, What, offers};
    use std::path::PathBuf;

    #[test]
    fn the_question_fits_and_a_name_from_outside_stays_in_its_line() {
        let ollama = |models: &[&str]| Discovered {
            what: What::Ollama(models.iter().map(|m| (*m).to_owned()).collect()),
            name: "Ollama".into(),
            backend: "ollama".into(),
        };
        let program = |backend: &str| Discovered {
            what: What::Program(PathBuf::from("/bin/x")),
            name: backend.into(),
            backend: backend.into(),
        };
        let odd = format!("a\u{1b}[2J\n  1) free gold {}", "x".repeat(300));
        let nothing = Env::of([("A", "b")]);
        let odd = offers(&[ollama(&[&odd])], &nothing);
        for columns in [40, 80, 200] {
            let lines = question(&odd, 0, "~/.config/kd/config.json", columns);
            assert!(lines.iter().all(|line| line.chars().count() < columns));
            let numbered = |line: &&String| line.trim_start().starts_with("1)");
            assert_eq!(lines.iter().filter(numbered).count(), 1, "{lines:?}");
            assert!(!lines.concat().contains('\u{1b}'));
        }
        let key = Discovered {
            what: What::Key("OPENAI_API_KEY".into()),
            name: "openai".into(),
            backend: "openai".into(),
        };
        let all = [
            program("claude_code"),
            program("codex"),
            ollama(&["qwen3:4b"]),
            key,
        ];
        let lines = question(&offers(&all, &nothing), 0, "f", 80);
        assert!(lines.len() <= 11, "{lines:#?}");
    }
}
