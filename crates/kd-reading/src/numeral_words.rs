//! Number words of English, German, French and Spanish.

use super::language::Language;

/// The number words of a language.
pub(super) struct Table {
    pub(super) language: Language,
    /// Words that add their value.
    pub(super) values: &'static [(&'static str, u64)],
    /// Words that multiply what precedes them below one thousand by 100.
    pub(super) hundreds: &'static [&'static str],
    /// Words that multiply what precedes them, and whether they count alone: `mille`, but not `million`.
    pub(super) scales: &'static [(&'static str, u64, bool)],
    /// Words that join two parts: `one hundred and five`.
    pub(super) and: &'static [&'static str],
    /// Articles that mean one before a multiplier: `a hundred`.
    pub(super) one: &'static [&'static str],
}

pub(super) static TABLES: [Table; 4] = [
    Table {
        language: Language::English,
        values: &[
            ("zero", 0),
            ("two", 2),
            ("three", 3),
            ("four", 4),
            ("five", 5),
            ("six", 6),
            ("seven", 7),
            ("eight", 8),
            ("nine", 9),
            ("ten", 10),
            ("eleven", 11),
            ("twelve", 12),
            ("thirteen", 13),
            ("fourteen", 14),
            ("fifteen", 15),
            ("sixteen", 16),
            ("seventeen", 17),
            ("eighteen", 18),
            ("nineteen", 19),
            ("twenty", 20),
            ("thirty", 30),
            ("forty", 40),
            ("fourty", 40),
            ("fifty", 50),
            ("sixty", 60),
            ("seventy", 70),
            ("eighty", 80),
            ("ninety", 90),
        ],
        hundreds: &["hundred"],
        scales: &[
            ("dozen", 12, false),
            ("thousand", 1_000, false),
            ("million", 1_000_000, false),
            ("billion", 1_000_000_000, false),
        ],
        and: &["and"],
        one: &["a", "one"],
    },
    Table {
        language: Language::German,
        values: &[
            ("null", 0),
            ("zwei", 2),
            ("zwo", 2),
            ("drei", 3),
            ("vier", 4),
            ("fünf", 5),
            ("fuenf", 5),
            ("sechs", 6),
            ("sieben", 7),
            ("acht", 8),
            ("neun", 9),
            ("zehn", 10),
            ("elf", 11),
            ("zwölf", 12),
            ("zwoelf", 12),
            ("dreizehn", 13),
            ("vierzehn", 14),
            ("fünfzehn", 15),
            ("fuenfzehn", 15),
            ("sechzehn", 16),
            ("siebzehn", 17),
            ("achtzehn", 18),
            ("neunzehn", 19),
            ("zwanzig", 20),
            ("dreißig", 30),
            ("dreissig", 30),
            ("vierzig", 40),
            ("fünfzig", 50),
            ("fuenfzig", 50),
            ("sechzig", 60),
            ("siebzig", 70),
            ("achtzig", 80),
            ("neunzig", 90),
        ],
        hundreds: &[],
        scales: &[
            ("dutzend", 12, false),
            ("million", 1_000_000, false),
            ("millionen", 1_000_000, false),
            ("milliarde", 1_000_000_000, false),
            ("milliarden", 1_000_000_000, false),
        ],
        and: &[],
        one: &["ein", "eine"],
    },
    Table {
        language: Language::French,
        values: &[
            ("zéro", 0),
            ("deux", 2),
            ("trois", 3),
            ("quatre", 4),
            ("cinq", 5),
            ("six", 6),
            ("sept", 7),
            ("huit", 8),
            ("neuf", 9),
            ("dix", 10),
            ("onze", 11),
            ("douze", 12),
            ("treize", 13),
            ("quatorze", 14),
            ("quinze", 15),
            ("seize", 16),
            ("vingt", 20),
            ("vingts", 20),
            ("trente", 30),
            ("quarante", 40),
            ("cinquante", 50),
            ("soixante", 60),
            ("septante", 70),
            ("huitante", 80),
            ("octante", 80),
            ("nonante", 90),
        ],
        hundreds: &["cent", "cents"],
        scales: &[
            ("mille", 1_000, true),
            ("million", 1_000_000, false),
            ("millions", 1_000_000, false),
            ("milliard", 1_000_000_000, false),
            ("milliards", 1_000_000_000, false),
        ],
        and: &["et"],
        one: &["un", "une"],
    },
    Table {
        language: Language::Spanish,
        values: &[
            ("cero", 0),
            ("dos", 2),
            ("tres", 3),
            ("cuatro", 4),
            ("cinco", 5),
            ("seis", 6),
            ("siete", 7),
            ("ocho", 8),
            ("nueve", 9),
            ("diez", 10),
            ("once", 11),
            ("doce", 12),
            ("trece", 13),
            ("catorce", 14),
            ("quince", 15),
            ("dieciséis", 16),
            ("dieciseis", 16),
            ("diecisiete", 17),
            ("dieciocho", 18),
            ("diecinueve", 19),
            ("veinte", 20),
            ("veintiuno", 21),
            ("veintiuna", 21),
            ("veintiún", 21),
            ("veintidós", 22),
            ("veintidos", 22),
            ("veintitrés", 23),
            ("veintitres", 23),
            ("veinticuatro", 24),
            ("veinticinco", 25),
            ("veintiséis", 26),
            ("veintiseis", 26),
            ("veintisiete", 27),
            ("veintiocho", 28),
            ("veintinueve", 29),
            ("treinta", 30),
            ("cuarenta", 40),
            ("cincuenta", 50),
            ("sesenta", 60),
            ("setenta", 70),
            ("ochenta", 80),
            ("noventa", 90),
            ("cien", 100),
            ("ciento", 100),
            ("doscientos", 200),
            ("doscientas", 200),
            ("trescientos", 300),
            ("trescientas", 300),
            ("cuatrocientos", 400),
            ("cuatrocientas", 400),
            ("quinientos", 500),
            ("quinientas", 500),
            ("seiscientos", 600),
            ("seiscientas", 600),
            ("setecientos", 700),
            ("setecientas", 700),
            ("ochocientos", 800),
            ("ochocientas", 800),
            ("novecientos", 900),
            ("novecientas", 900),
        ],
        hundreds: &[],
        scales: &[
            ("docena", 12, false),
            ("docenas", 12, false),
            ("mil", 1_000, true),
            ("millón", 1_000_000, false),
            ("millones", 1_000_000, false),
        ],
        and: &["y"],
        one: &["un", "una"],
    },
];

/// Number words that mean something else in other languages, or often in their own: they count alone only as the whole
/// text, or in a text of their language.
pub(super) const AMBIGUOUS: &str = "once elf neuf null cent mil mille sept dos acht zéro";

/// The ones of a compound: `einundzwanzig`, `dreihunderteins`.
pub(super) const ONES: &str = "ein eins one un une uno una";

/// Words that add one half to the number before them.
pub(super) const HALVES: &[&[&str]] = &[
    &["and", "a", "half"],
    &["et", "demi"],
    &["et", "demie"],
    &["y", "medio"],
    &["y", "media"],
];

/// Words of a half that belongs to a number apart from it: `deux heures et demie`.
pub(super) const HALF_WORDS: &str =
    "half halb halbe halbes halben halber demi demie medio media anderthalb";

/// Words before the decimals of a number.
pub(super) const POINTS: &str = "point komma virgule coma punto";

/// Words that negate the number behind them.
pub(super) const SIGNS: &str = "minus negative negativ moins menos";

/// Words that make the multiplier behind them vague: `some hundred`.
pub(super) const VAGUE: &str = "some several few many couple paar einige mehrere viele quelques plusieurs varios unos unas algunos";

/// Denominators behind a number in words.
pub(super) const FRACTIONS: &str = "half halves third thirds quarter quarters fourths fifth fifths sixth sixths eighth eighths tenth tenths \
    hälfte hälften drittel viertel fünftel sechstel achtel zehntel tiers quart quarts cinquième cinquièmes sixième dixième dixièmes \
    tercio tercios cuarto cuartos quinto quintos sexto décimo décimos";
