//! Moments: questions for a day that begin with "when" and speak of what has happened.

use super::language::is_han;

/// Verb and pronoun of the past, turned round: `Quand Napoléon est-il mort`.
fn is_turned(word: &str) -> bool {
    let verbs = ["est", "sont", "a-t", "ont", "fut", "furent"];
    let pronoun = ["-il", "-elle", "-ils", "-elles"]
        .iter()
        .find_map(|pronoun| word.strip_suffix(pronoun));
    pronoun.is_some_and(|verb| verbs.contains(&verb))
}

/// Whether a sentence, in lower case, asks when something happened.
pub(super) fn is_asked(lower: &str) -> bool {
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let bare = bare.trim_end_matches(|c: char| !c.is_alphanumeric());
    let mut words = bare.split_whitespace();
    let (first, second) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    match first {
        "when" => matches!(second, "was" | "were" | "did"),
        "what" if second == "day" => !bare.contains("of the week"),
        "wann" => matches!(
            second,
            "wurde"
                | "wurden"
                | "war"
                | "waren"
                | "begann"
                | "endete"
                | "fand"
                | "fiel"
                | "starb"
                | "trat"
                | "hat"
                | "ist"
        ),
        "quand" => {
            matches!(second, "a" | "ont" | "est" | "sont" | "fut" | "furent")
                || second.starts_with("s'est")
                || words.any(is_turned)
        }
        // The preterite: "cuándo se firmó", "cuándo murió".
        "cuándo" => {
            let past = |word: &str| {
                word.ends_with('ó')
                    || word.ends_with("aron")
                    || word.ends_with("ieron")
                    || word == "fue"
            };
            past(second) || second == "se" && words.next().is_some_and(past)
        }
        _ => {
            bare.chars().any(is_han)
                && ["什么时候", "何时"].iter().any(|w| bare.contains(w))
                && bare.ends_with('的')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_asked;

    #[test]
    fn what_has_happened_has_a_day_and_what_is_planned_has_none() {
        for asked in [
            "when was the treaty signed",
            "what day does the law apply from",
            "wann wurde goethe geboren",
            "quand a eu lieu la bataille",
            "quand napoléon est-il mort",
            "¿cuándo se firmó el tratado",
            "长城是什么时候修建的",
        ] {
            assert!(is_asked(asked), "{asked}");
        }
        for asked in [
            "when should we deploy",
            "when do i use a mutex",
            "wann soll man impfen",
            "quand est-ce que je dois partir",
            "¿cuándo conviene sembrar",
            "什么时候应该重构",
            "what day of the week is best",
        ] {
            assert!(!is_asked(asked), "{asked}");
        }
    }
}
