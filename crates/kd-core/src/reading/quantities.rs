//! Quantities: questions that ask for a number by the name of what is measured, `What is its average speed?`.

/// What begins such a question, behind a preposition.
const ASKS: &[&str] = &[
    "what is",
    "what's",
    "what was",
    "at what",
    "what",
    "which",
    "was ist",
    "welche",
    "welcher",
    "welches",
    "wie lautet",
    "bei welcher",
    "mit welcher",
    "quel est",
    "quelle est",
    "quel",
    "quelle",
    "à quelle",
    "à quel",
    "cuál es",
    "cuál era",
    "cuál",
    "a qué",
    "qué",
];

/// What is measured.
const MEASURED: &[&str] = &[
    "temperature",
    "speed",
    "velocity",
    "price",
    "cost",
    "height",
    "length",
    "weight",
    "mass",
    "depth",
    "width",
    "distance",
    "area",
    "volume",
    "age",
    "percentage",
    "density",
    "altitude",
    "radius",
    "diameter",
    "perimeter",
    "circumference",
    "angle",
    "frequency",
    "voltage",
    "duration",
    "population",
    "temperatur",
    "geschwindigkeit",
    "preis",
    "höhe",
    "länge",
    "gewicht",
    "masse",
    "tiefe",
    "breite",
    "entfernung",
    "fläche",
    "volumen",
    "alter",
    "prozentsatz",
    "dichte",
    "durchmesser",
    "umfang",
    "winkel",
    "frequenz",
    "spannung",
    "dauer",
    "température",
    "vitesse",
    "prix",
    "coût",
    "hauteur",
    "longueur",
    "poids",
    "profondeur",
    "largeur",
    "surface",
    "aire",
    "âge",
    "pourcentage",
    "densité",
    "rayon",
    "diamètre",
    "périmètre",
    "fréquence",
    "tension",
    "durée",
    "temperatura",
    "velocidad",
    "precio",
    "costo",
    "coste",
    "altura",
    "longitud",
    "peso",
    "masa",
    "profundidad",
    "anchura",
    "distancia",
    "área",
    "volumen",
    "edad",
    "porcentaje",
    "densidad",
    "radio",
    "diámetro",
    "perímetro",
    "ángulo",
    "quersumme",
    "quotient",
    "mittelwert",
    "durchschnitt",
    "median",
    "fakultät",
    "ggt",
    "kgv",
    "factorial",
    "gcd",
    "lcm",
    "mean",
    "moyenne",
    "médiane",
    "pgcd",
    "ppcm",
    "promedio",
    "mediana",
    "mcd",
    "mcm",
    "frecuencia",
    "duración",
];

/// Words between the question word and what is measured, at most.
const BETWEEN_MAX: usize = 3;

/// Whether a sentence, in lower case, asks for a quantity.
pub(super) fn is_asked(lower: &str) -> bool {
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    if bare.starts_with("was kostet ") || bare.starts_with("was kosten ") {
        return true;
    }
    // A condition may come first: "If a train …, what is its speed?"
    let clauses = std::iter::once(bare).chain(bare.split(", ").skip(1));
    clauses.into_iter().any(|clause| {
        ASKS.iter().any(|ask| {
            let Some(rest) = clause.strip_prefix(ask).and_then(|r| r.strip_prefix(' ')) else {
                return false;
            };
            let words: Vec<&str> = rest.split_whitespace().collect();
            let at = words.iter().take(BETWEEN_MAX + 1).position(|word| {
                let word = word.trim_matches(|c: char| !c.is_alphanumeric());
                let word = word.rsplit_once(['\'', '’']).map_or(word, |(_, w)| w);
                MEASURED.contains(&word)
            });
            // Alone it asks what the thing is.
            let copula = |word: &&str| matches!(*word, "is" | "was" | "ist" | "est" | "es");
            at.is_some_and(|at| {
                at + 1 < words.len() || !words[..at].iter().all(copula) || *ask == "at what"
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::is_asked;

    #[test]
    fn what_is_measured_asks_for_a_number() {
        for asked in [
            "what is its average speed",
            "if a train travels 240 km in 3 hours, what is its speed",
            "at what temperature does water boil",
            "was kostet ein buch",
            "quel est le prix d'un livre",
            "¿cuál es la altura de la torre",
        ] {
            assert!(is_asked(asked), "{asked}");
        }
        for asked in [
            "what is speed",
            "what is the best database",
            "which weighs more",
            "qué es el amor",
        ] {
            assert!(!is_asked(asked), "{asked}");
        }
    }
}
