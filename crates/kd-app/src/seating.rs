//! Selects the members and the recipients of the question, from configuration, flags and mentions.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::request::Question;
use kd_backends::adapters::programs::is_agent;
use kd_backends::guard::ROUNDS_MAX;
use kd_core::config::{Config, PhasePrompts};
use kd_core::deliberation::plan::Plan;
use kd_core::mention::{mentions, nearest};
use kd_core::prompt::PromptRules;
use kd_core::seating::{self, SeatRequest, Seated, SeatingError};
use kd_core::{Address, Member, Roster, SeatName};

/// The phase of a thread that reviews a change.
pub const REVIEW: &str = "review";
/// Returns whether a member can use tools on files.
pub fn has_hands(member: &Member) -> bool {
    is_agent(&member.backend)
}

/// Says which members read the folder with tools, and where the files go; `None` if none does.
pub fn readers<'m>(members: impl IntoIterator<Item = &'m Member>) -> Option<String> {
    let readers = members.into_iter().filter(|member| member.reads);
    let told: Vec<String> = readers
        .map(|member| format!("{} (sends them to {})", member.name, member.backend))
        .collect();
    (!told.is_empty()).then(|| format!("may read files here: {}", told.join(", ")))
}

/// Notes it before members are asked; a batch, whose questions are many, does not.
pub(crate) fn note_readers(roster: &Roster, env: &Env) {
    if let Some(readers) = readers(roster.members()).filter(|_| !env.is_in_batch()) {
        env.note(readers);
    }
}

/// Says it for a plan, whose estimate does not count their further calls.
pub fn readers_of_plan(plan: &Plan) -> Option<String> {
    let told = readers(plan.seats.iter().map(|seat| &seat.member))?;
    Some(format!(
        "{told}; each of their answers may take up to {ROUNDS_MAX} more calls, which the estimate does not count"
    ))
}

/// Seats a council. A continued thread keeps its members, unless others are requested. [`absent`] returns the members
/// that cannot take part again.
///
/// # Errors
/// If a requested name means nobody.
pub fn seat(
    config: &Config,
    request: SeatRequest,
    thread: Option<&[SeatName]>,
) -> Result<Seated, UserError> {
    if let Some(thread) = thread.filter(|members| request.members.is_empty() && !members.is_empty())
    {
        let seated = seating::seat_again(config, &request, thread)?;
        // They are the default, not the user's choice.
        let built_in = seating::seat(config, &SeatRequest::default()).is_ok_and(|s| s.built_in);
        return Ok(Seated { built_in, ..seated });
    }
    Ok(seating::seat(config, &request)?)
}

/// Names the members of a continued thread that cannot take part, and who is asked in their place, if nobody is left.
pub fn absent(seated: &Seated, thread: &[SeatName]) -> Option<String> {
    let mut unknown: Vec<&str> = Vec::new();
    let mut parts: Vec<String> = Vec::new();
    for (name, why) in &seated.absent {
        match why {
            SeatingError::LookAlike { .. } => parts.push(why.to_string()),
            SeatingError::Unknown { .. } | SeatingError::BadName(_) => unknown.push(name.as_str()),
        }
    }
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        parts.insert(0, format!("your settings have no member named {names}"));
    }
    if parts.is_empty() {
        return None;
    }
    let members = seated.roster.members().iter();
    let asked: Vec<&str> = members.map(|member| member.name.as_str()).collect();
    let whose = match seated.absent.len() == thread.len() {
        true => "nobody of this thread is left, so your settings' members are asked",
        false => "of this thread these are asked",
    };
    Some(format!(
        "{}: {whose}: {}",
        parts.join("; "),
        asked.join(", ")
    ))
}

impl From<SeatingError> for UserError {
    fn from(error: SeatingError) -> Self {
        UserError::new(ErrorKind::UnknownMember, error.to_string())
    }
}

/// Returns the members that the question addresses: those in `--to` and those mentioned. Without mentions, it
/// addresses all members.
///
/// # Errors
/// If a name of `to` is not a member's.
pub fn address(question: &Question, to: &[String], roster: &Roster) -> Result<Address, UserError> {
    let known: Vec<&SeatName> = roster.members().iter().map(|m| &m.name).collect();
    let mut seats: Vec<SeatName> = Vec::new();
    for name in to {
        let name = name.trim().trim_start_matches('@');
        if name == kd_core::names::ALL {
            seats.extend(known.iter().map(|s| (*s).clone()));
            continue;
        }
        match known.iter().find(|s| s.as_str() == name) {
            Some(seat) => seats.push((*seat).clone()),
            None => return Err(unknown(name, &known)),
        }
    }
    let said = mentions(&question.asked, &known);
    seats.extend(said.seats.iter().cloned());
    let mut first = std::collections::BTreeSet::new();
    seats.retain(|seat| first.insert(seat.clone()));
    let everybody = said.all && to.is_empty();
    if !seats.is_empty() && !everybody {
        return Ok(Address::Seats(seats));
    }
    // Names in the context below the question must not select members.
    let context = mentions(&question.text, &known);
    if !said.all && context != said {
        return Ok(Address::Seats(known.into_iter().cloned().collect()));
    }
    Ok(Address::All)
}

/// Returns a notice if the question begins with a misspelled member name.
pub fn near_miss(question: &Question, roster: &Roster) -> Option<String> {
    let known: Vec<&SeatName> = roster.members().iter().map(|m| &m.name).collect();
    mentions(&question.asked, &known).near_miss(&known)
}

/// Returns a notice if the question begins with an agent of the settings that does not take part.
pub(crate) fn unseated(question: &Question, config: &Config, roster: &Roster) -> Option<String> {
    let names = names_in(config, &[]);
    let first = question.asked.split_whitespace().next()?;
    let said = mentions(first, &names.iter().collect::<Vec<_>>()).seats;
    let name = said.first().filter(|_| first.starts_with('@'))?;
    let present: Vec<&str> = roster.members().iter().map(|m| m.name.as_str()).collect();
    (!present.contains(&name.as_str())).then(|| {
        format!(
            "{name} is no member here, so @{name} is read as text: `-m {},{name}` seats it too",
            present.join(",")
        )
    })
}

/// The same for questions that cannot address members: a notice is also returned if a member is addressed. Compares
/// with the names in the settings and the names of `members`.
pub(crate) fn near_miss_in(
    question: &Question,
    config: &Config,
    members: &[Member],
) -> Option<String> {
    let names = names_in(config, members);
    let known: Vec<&SeatName> = names.iter().collect();
    let first = question.asked.split_whitespace().next();
    let first = first.filter(|word| word.starts_with('@'));
    let named = first.and_then(|word| mentions(word, &known).seats.into_iter().next());
    if let Some(name) = named {
        return Some(format!(
            "@{name} is read as text here, and all members take part; `-m` chooses them, and `kd ask` asks one"
        ));
    }
    mentions(&question.asked, &known).near_miss(&known)
}

/// Returns the names of the settings and of these members.
pub fn names_in(config: &Config, members: &[Member]) -> Vec<SeatName> {
    let configured = config.agents.keys().chain(&config.council.members);
    let mut names: Vec<SeatName> = configured
        .filter_map(|name| SeatName::new(name).ok())
        .collect();
    names.extend(members.iter().map(|member| member.name.clone()));
    names
}

/// Returns the configured prompt of every member.
pub fn prompts(config: &Config, roster: &Roster, phase: &str) -> PromptRules {
    let words = |prompts: &PhasePrompts| match phase {
        REVIEW => prompts.review.clone(),
        _ => prompts.council.clone(),
    };
    let mut rules = PromptRules {
        phase: words(&config.prompts),
        say_read_only: roster.members().iter().any(has_hands),
        ..PromptRules::default()
    };
    if let Some(preamble) = &config.council.preamble {
        rules.preamble.clone_from(preamble);
    }
    for member in roster.members() {
        let agent = member.launch.agent.as_ref();
        let agent = agent.and_then(|name| config.agents.get(name));
        let own = agent.map(|agent| words(&agent.prompts)).unwrap_or_default();
        if !own.is_empty() {
            rules.phase_of.insert(member.name.clone(), own);
        }
    }
    rules
}

fn unknown(name: &str, known: &[&SeatName]) -> UserError {
    let names: Vec<&str> = known.iter().map(|s| s.as_str()).collect();
    let near = nearest(name, known)
        .map(|n| format!("; did you mean {n}?"))
        .unwrap_or_default();
    UserError::new(
        ErrorKind::UnknownMember,
        format!("no member is named {name}{near}"),
    )
    .next(format!("members are: {}, or all", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster() -> Roster {
        let request = SeatRequest {
            members: ["pragmatist", "skeptic"].map(str::to_owned).to_vec(),
            ..SeatRequest::default()
        };
        seating::seat(&Config::default(), &request)
            .expect("roles")
            .roster
    }

    #[test]
    fn a_phase_has_its_words_and_a_members_own_take_their_place() {
        let mut config = Config::default();
        config.prompts.council = "talk".into();
        config.prompts.review = "look".into();
        let mut agent = kd_core::config::AgentConfig {
            backend: "local".into(),
            ..Default::default()
        };
        agent.prompts.review = "look hard".into();
        config.agents.insert("skeptic".into(), agent);
        let skeptic = SeatName::new("skeptic").unwrap();
        let roster = seating::seat(&config, &SeatRequest::default())
            .expect("seats")
            .roster;
        let rules = prompts(&config, &roster, REVIEW);
        assert_eq!(
            (rules.phase.as_str(), rules.phase_of[&skeptic].as_str()),
            ("look", "look hard")
        );
        let rules = prompts(&config, &roster, "council");
        assert_eq!((rules.phase.as_str(), rules.phase_of.len()), ("talk", 0));
    }

    fn ask(text: &str, asked: &str, to: &[&str]) -> Result<String, UserError> {
        let question = Question {
            text: text.into(),
            asked: asked.into(),
            ..Question::default()
        };
        let to: Vec<String> = to.iter().map(|t| (*t).to_owned()).collect();
        address(&question, &to, &roster()).map(|a| a.to_string())
    }

    #[test]
    fn flags_and_mentions_pick_and_context_does_not() {
        assert_eq!(ask("hi", "hi", &[]).unwrap(), "all");
        assert_eq!(ask("@skeptic hi", "@skeptic hi", &[]).unwrap(), "skeptic");
        assert_eq!(ask("@all hi", "@all hi", &[]).unwrap(), "all");
        assert_eq!(
            ask("@skeptic hi", "@skeptic hi", &["pragmatist"]).unwrap(),
            "pragmatist, skeptic"
        );
        assert_eq!(ask("hi", "hi", &["skeptic", "skeptic"]).unwrap(), "skeptic");
        assert_eq!(
            ask("hi\n\n@skeptic said", "hi", &[]).unwrap(),
            "pragmatist, skeptic"
        );
        for text in ["mail a@b.org `@nobody`", "What does @dataclass do?"] {
            assert_eq!(ask(text, text, &[]).unwrap(), "all", "{text}");
        }
    }

    #[test]
    fn an_unknown_name_of_the_flag_is_told_with_the_choices() {
        let error = ask("hi", "hi", &["sceptic"]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::UnknownMember);
        assert!(error.what.contains("did you mean skeptic"), "{error}");
        assert!(error.next.unwrap().contains("pragmatist"));
    }
}
