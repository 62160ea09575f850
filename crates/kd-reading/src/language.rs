//! Detects which of the five languages a text is written in, to distinguish a decimal comma from a thousands separator.

/// A natural language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English; also the default.
    #[default]
    English,
    /// German.
    German,
    /// French.
    French,
    /// Spanish.
    Spanish,
    /// Chinese.
    Chinese,
}

/// Frequent words that are unique to one language.
const FREQUENT: &[(Language, &[&str])] = &[
    (
        Language::German,
        &[
            "rund",
            "etwa",
            "ungefähr",
            "circa",
            "beim",
            "nach",
            "bei",
            "pro",
            "noch",
            "prozent",
            "stunden",
            "tage",
            "jahre",
            "minuten",
            "millionen",
            "kostet",
            "der",
            "die",
            "das",
            "und",
            "ist",
            "nicht",
            "ein",
            "eine",
            "ich",
            "wie",
            "wir",
            "mit",
            "von",
            "für",
            "zu",
            "auf",
            "also",
            "sind",
            "beträgt",
            "antwort",
            "dem",
            "den",
            "im",
            "ergibt",
            "was",
            "welche",
            "welcher",
            "wann",
            "viele",
            "wird",
            "oder",
            "es",
        ],
    ),
    (
        Language::French,
        &[
            "le",
            "les",
            "est",
            "et",
            "une",
            "des",
            "pas",
            "je",
            "du",
            "dans",
            "pour",
            "nous",
            "donc",
            "réponse",
            "sont",
            "avec",
            "au",
            "ce",
            "cette",
            "vaut",
            "quel",
            "quelle",
            "combien",
            "ou",
            "environ",
            "personnes",
            "heures",
            "presque",
            "coûte",
            "soit",
        ],
    ),
    (
        Language::Spanish,
        &[
            "el",
            "los",
            "las",
            "es",
            "y",
            "una",
            "del",
            "que",
            "por",
            "con",
            "respuesta",
            "son",
            "para",
            "lo",
            "más",
            "se",
            "como",
            "elijo",
            "resultado",
            "cuál",
            "cuántos",
            "qué",
            "cuándo",
            "mil",
            "aproximadamente",
            "unos",
            "unas",
            "personas",
            "kilómetros",
            "metros",
            "horas",
            "minutos",
            "casi",
            "alrededor",
            "millones",
            "cuesta",
            "equivale",
            "años",
            "días",
            "hay",
            "tiene",
        ],
    ),
    (
        Language::English,
        &[
            "the", "is", "and", "of", "to", "answer", "i", "that", "are", "in", "it", "this", "we",
            "what", "how", "which", "or", "be",
        ],
    ),
];

impl Language {
    /// Detects the language of a text.
    pub fn of(text: &str) -> Self {
        if text.chars().any(is_han) {
            return Self::Chinese;
        }
        let lower = text.to_lowercase();
        let mut best = (0, Self::English);
        for (language, frequent) in FREQUENT {
            let count = lower
                .split(|c: char| !c.is_alphabetic())
                .filter(|w| frequent.contains(w))
                .count();
            if count > best.0 {
                best = (count, *language);
            }
        }
        // If there are no such words, letters decide.
        let has = |letters: &str| lower.chars().any(|c| letters.contains(c));
        match best.0 {
            0 if has_decimal_comma(&lower) => Self::German,
            0 if has("äöüß") => Self::German,
            0 if has("ñ¿¡áíóú") => Self::Spanish,
            0 if has("çœèêàùâîô") => Self::French,
            _ => best.1,
        }
    }

    /// Returns whether the language uses a decimal comma.
    pub fn has_decimal_comma(self) -> bool {
        matches!(self, Self::German | Self::French | Self::Spanish)
    }
}

/// Returns whether a text writes an amount with a decimal comma: `45,50 €`, `1.638,20`.
fn has_decimal_comma(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut parts = text.match_indices(',').map(|(at, _)| text.split_at(at));
    parts.any(|(before, behind)| {
        let behind = &behind[1..];
        let two = digits(behind) == 2 && !behind[2..].starts_with([',', '.']);
        // `1, 12,13` lists.
        let listed = before.ends_with(|c: char| c.is_ascii_digit()) && !before.contains(',');
        let unit = behind[digits(behind)..].trim_start_matches([' ', '\u{a0}', '\u{202f}']);
        two && listed && unit.starts_with(['€', '%'])
    })
}

/// Returns whether a character is Chinese.
pub fn is_han(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}')
}
