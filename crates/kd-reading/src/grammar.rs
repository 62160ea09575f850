//! The kind of answer a sentence asks for by its grammar: a question word and its noun, the verb of a request, the verb
//! that begins a yes/no question, or a noun alone.

use super::arithmetic::is_arithmetic;
use super::asking::{Sentence, Word, strip, without_asides, words};
use super::chinese;
use super::kind::Kind;
use super::kind_words::*;
use super::language::{Language, is_han};

/// Returns the kind of a sentence; `None` if its grammar does not show it. `alone`: the text has no other sentence.
pub(super) fn kind(sentence: &Sentence<'_>, alone: bool) -> Option<Kind> {
    found(sentence, alone).map(|(kind, _)| kind)
}

/// Returns whether a noun, and no question word, precedes a French verb with its pronoun: `Le nombre 91 est-il
/// premier ?`
fn inverts_in_french(all: &[Word]) -> bool {
    const ENDS: [&str; 4] = ["-il", "-elle", "-ils", "-elles"];
    const ARTICLES: &str =
        "le la les l' ce cet cette ces mon ma mes son sa ses notre nos votre vos leur leurs un une";
    const ASKS: &str = "quel quelle quels quelles combien quand comment pourquoi qui que quoi qu'est-ce où lequel laquelle ou quelle";
    let opens = all.first().is_some_and(|w| has(ARTICLES, &w.low));
    let verb = all
        .iter()
        .any(|w| ENDS.iter().any(|end| w.low.ends_with(end)));
    opens && verb && !all.iter().any(|w| has(ASKS, &w.low))
}

/// Returns the kind of a sentence, and whether a question word or a verb gives it rather than a noun alone.
pub(super) fn found(sentence: &Sentence<'_>, alone: bool) -> Option<(Kind, bool)> {
    let (bare, _) = without_asides(sentence.text);
    let bare = without_lead(&bare);
    let lower = bare.to_lowercase();
    if bare.chars().any(is_han) {
        return chinese::kind(&lower, sentence.asks, alone).map(|kind| (kind, true));
    }
    let all = words(bare);
    if asks_mark(&lower) {
        return Some((Kind::Number, true));
    }
    if let Some(kind) = of_extract(&all, &lower) {
        return Some((kind, true));
    }
    if is_order(&all, &lower) {
        return Some((Kind::Ranking, true));
    }
    if inverts_in_french(&all) {
        return Some((Kind::YesNo, true));
    }
    let regular = "regular expression|expresión regular|expression régulière|expression rationnelle|regulärer ausdruck|regulären ausdruck";
    let tool = all.iter().any(is_tool) || any_in(regular, &lower);
    let clauses = clauses(&all);
    let first = clauses.first().copied()?;
    let mut whole = Whole {
        sentence,
        all: &all,
        lower: &lower,
        language: match bare.contains('¿') {
            true => Language::Spanish,
            false => Language::of(bare),
        },
        tool,
        is_first: true,
    };
    for (place, clause) in clauses.iter().enumerate() {
        whole.is_first = place == 0;
        if let Some(kind) = of_clause(clause, &whole) {
            return Some((kind, true));
        }
    }
    let measured = lower.starts_with(|c: char| c.is_ascii_digit()) && is_in_unit(&lower);
    if is_arithmetic(&lower) || measured {
        return Some((Kind::Number, false));
    }
    let listed = all.last().is_some_and(|w| {
        has(
            "auflisten aufzählen nennen lister énumérer listar enumerar",
            &w.low,
        )
    });
    if listed && alone {
        return Some((Kind::List, true));
    }
    if let Some(kind) = in_place(&all).filter(|_| sentence.asks || alone) {
        return Some((kind, true));
    }
    let inverted = all.iter().any(|w| is_inverted(&w.low)) || is_turned(&all);
    if inverted && is_turned(&all) && alone {
        return Some((Kind::YesNo, true));
    }
    // A noun alone: `Number of bits in an address?`, `Teamkasse: Betrag nach 3 Monaten`.
    let last = clauses.last().copied().unwrap_or(first);
    for clause in [last, first] {
        let code = of_code(clause, &all).filter(|_| !inverted);
        if starts_with_verb(clause) {
            match code {
                Some(kind) => return Some((kind, false)),
                None => continue,
            }
        }
        if let Some(kind) = code.or_else(|| of_phrase(clause, &whole)) {
            return Some((kind, false));
        }
    }
    if inverted && (sentence.asks || alone) {
        return Some((Kind::YesNo, true));
    }
    match sentence.asks && !is_phrase(first) {
        true => Some((Kind::YesNo, false)),
        false => None,
    }
}

/// Returns whether a sentence asks for a mark on a scale: `Rate it on a scale from 1 to 10`.
fn asks_mark(lower: &str) -> bool {
    const SCALES: &str = "on a scale of|on a scale from|on a scale between|auf einer skala|von 1 bis 10|von 0 bis 10|sur une échelle|de 1 à 10|de 0 à 10|\
        en una escala|del 1 al 10|de 1 a 10|de 0 a 10|from 1 to 10|from 0 to 10|out of ten|out of 10";
    any_in(SCALES, lower)
}

/// Returns the kind of a request to extract things from a text, or to repair code.
fn of_extract(all: &[Word<'_>], lower: &str) -> Option<Kind> {
    const EXTRACTS: &str =
        "extract extrahiere extrahieren extrais extrayez extrae extraiga relève relevez";
    const REPAIRS: &str = "fix repair correct debug korrigiere repariere corrige corrigez répare réparez arregla corrija";
    const CODE: &str = "function bug code query script snippet regex funktion fehler abfrage skript fonction requête función consulta";
    const SEVERAL_OF: &str = "every all alle sämtliche tous toutes todos todas";
    let first = all.first().map(|w| w.low.as_str())?;
    let holds = |table: &str| all.iter().skip(1).take(8).any(|w| has(table, &w.low));
    let plural = all
        .iter()
        .skip(1)
        .take(4)
        .any(|w| has("the die les los las", &w.low) || w.low.ends_with('s'));
    if has(EXTRACTS, first) && (holds(SEVERAL_OF) || plural) {
        return Some(Kind::List);
    }
    let marked = lower.contains('`') || lower.contains("“…”") || lower.contains('(');
    (has(REPAIRS, first) && holds(CODE) && marked).then_some(Kind::Code)
}

/// Returns the kind of a question whose question word is in the position of the answer: `C'est quand ?`, `Das kostet
/// wie viel?`
fn in_place(all: &[Word<'_>]) -> Option<Kind> {
    for pair in all.windows(2) {
        let (one, two) = (pair[0].low.as_str(), pair[1].low.as_str());
        if has(HOW_MANY, one)
            || has(HOW_MANY, two)
            || matches!(
                (one, two),
                ("how", "many" | "much") | ("wie", "viel" | "viele")
            )
        {
            return Some(Kind::Number);
        }
        if matches!(one, "quelle" | "quel") && matches!(two, "date" | "jour") {
            return Some(Kind::Date);
        }
        if one == "est" && matches!(two, "quand") {
            return Some(Kind::Date);
        }
        if one == "est" && matches!(two, "quoi" | "qui" | "où") || one == "de" && two == "quoi" {
            return Some(Kind::Open);
        }
    }
    match all.last()?.low.as_str() {
        "quand" => Some(Kind::Date),
        "quoi" | "où" | "comment" | "pourquoi" => Some(Kind::Open),
        _ => None,
    }
}

/// Strips greetings, polite phrases and connecting words from the beginning of a sentence.
pub(super) fn without_lead(text: &str) -> &str {
    let trim = |t: &str| -> usize {
        t.find(|c: char| {
            c.is_alphanumeric() || matches!(c, '¿' | '(' | '"' | '`' | '“' | '-' | '√' | '$')
        })
        .unwrap_or(0)
    };
    let mut rest = &text[trim(text)..];
    for _ in 0..4 {
        let bare = rest.trim_start_matches('¿');
        let longest = LEADS
            .split('|')
            .filter_map(|lead| {
                let after = strip(bare, lead.trim())?;
                let edge = after.starts_with([' ', ',', ':', '!', '.']);
                edge.then_some(after)
            })
            .min_by_key(|after| after.len());
        match longest {
            Some(after) if after.chars().any(char::is_alphanumeric) => rest = &after[trim(after)..],
            _ => break,
        }
    }
    rest
}

/// Splits a sentence into clauses.
fn clauses<'a, 'b>(all: &'a [Word<'b>]) -> Vec<&'a [Word<'b>]> {
    let mut out: Vec<&[Word<'_>]> = Vec::new();
    let mut from = 0;
    for at in 0..all.len() {
        let opens = at > from && all[at].text.starts_with('¿');
        if opens {
            out.push(&all[from..at]);
            from = at;
        }
        if all[at].ends {
            out.push(&all[from..=at]);
            from = at + 1;
        }
    }
    out.push(&all[from..]);
    out.retain(|clause| clause.iter().any(|w| !w.low.is_empty()));
    out
}

/// The context of a clause.
#[derive(Clone, Copy)]
struct Whole<'a> {
    sentence: &'a Sentence<'a>,
    all: &'a [Word<'a>],
    lower: &'a str,
    language: Language,
    /// Whether the sentence names a tool that takes typed input.
    tool: bool,
    is_first: bool,
}

/// Returns the kind of answer that a clause asks for by its first words.
fn of_clause(clause: &[Word<'_>], whole: &Whole<'_>) -> Option<Kind> {
    let Whole {
        sentence,
        lower,
        is_first,
        ..
    } = *whole;
    let clause = without_small_words(clause);
    let low = |at: usize| clause.get(at).map_or("", |w| w.low.as_str());
    // `for how many people`, `in welchem Jahr`, `¿a qué temperatura`
    let skip = usize::from(
        has(
            "in on at by for from to of with until since after before within under per im am an auf mit bei bis ab seit um zu für von nach aus unter \
             à en de depuis pour dans avec sur par jusqu' jusqu'à desde hasta a con por para según entre vers",
            low(0),
        ) && (is_question_word(low(1)) || has(HOW_MANY, low(1))),
    );
    let governor = if skip > 0 { low(0) } else { "" }.to_owned();
    let clause = &clause[skip..];
    let low = |at: usize| clause.get(at).map_or("", |w| w.low.as_str());
    let (first, second) = (low(0), low(1));
    if first.is_empty() {
        return None;
    }
    let french = matches!(Language::of(lower), Language::French);
    if has(HOW_MANY, first) && !(first == "cuanto" && second == "antes") {
        return Some(Kind::Number);
    }
    if has(HOW, first) && (is_first || first != "como") {
        return of_how(clause, whole);
    }
    if has(WHEN, first) {
        return of_when(clause, is_first, skip > 0, french, sentence);
    }
    if has(OPEN_WORDS, first)
        && (is_first || sentence.asks)
        && (is_first || !has("qui where who quien donde wo", first))
    {
        let several = clause.iter().take(6).any(|w| has(SEVERAL, &w.low))
            || is_several(clause.get(2..).unwrap_or_default());
        let plural = has("are sind sont étaient son eran fueron were waren", second)
            && several
            && !is_endless(clause);
        return Some(if plural { Kind::List } else { Kind::Open });
    }
    // `por qué`, `para qué`
    if has("por para", &governor) && matches!(first, "qué" | "que") {
        return Some(Kind::Open);
    }
    if has(WHICH, first) && !is_relative(clause, is_first, skip > 0, sentence) {
        return of_which(clause, whole);
    }
    if !is_first && !sentence.asks {
        return None;
    }
    if has(AUXILIARIES, first) && is_verb_first(clause, is_first, sentence) {
        return Some(Kind::YesNo);
    }
    if is_inverted(first) {
        return Some(Kind::YesNo);
    }
    match is_first || lower.contains(": ") {
        true => of_request(clause, whole),
        false => None,
    }
}

fn is_question_word(low: &str) -> bool {
    has(HOW_MANY, low)
        || has(WHICH, low)
        || has(WHEN, low)
        || has(HOW, low)
        || has("whom wem wen qui quién", low)
}

/// Strips small words before the question word: `also`, `genau`, `about`.
fn without_small_words<'a, 'b>(clause: &'a [Word<'b>]) -> &'a [Word<'b>] {
    let small = "and so then exactly roughly about approximately just but und also denn genau ungefähr etwa et alors environ y entonces aproximadamente \
         please bitte svp pls hm well also quick";
    let skip = clause
        .iter()
        .take_while(|w| w.low.is_empty() || has(small, &w.low))
        .count();
    &clause[skip.min(clause.len().saturating_sub(1))..]
}

/// Returns whether "which" or "que" joins a clause and asks nothing.
fn is_relative(
    clause: &[Word<'_>],
    is_first: bool,
    governed: bool,
    sentence: &Sentence<'_>,
) -> bool {
    let first = clause[0].low.as_str();
    let second = clause.get(1).map_or("", |w| w.low.as_str());
    match first {
        // `Was the wall built in 1961?`, or German `was`.
        "was" => {
            let verb = has(
                "ist sind war kostet kosten ergibt ergeben macht bedeutet heißt hat haben soll sollen sollte sollten kann können passiert geschieht wäre würde \
                tun tut wiegt verdient bringt spricht hältst haltet meint meinst braucht brauchen ich wir du man eignet unterscheidet",
                second,
            );
            let capital = clause
                .get(1)
                .is_some_and(|w| w.text.starts_with(char::is_uppercase));
            !verb
                && (capital
                    || has("the a an it he she there this that my our your", second)
                    || Language::of(sentence.text) != Language::German)
        }
        "que" | "qu'" => {
            !is_first && !sentence.text.contains('¿')
                || !sentence.asks && !governed && has("no se el la los las", second)
        }
        "which" | "welche" | "welcher" | "welches" | "welchen" | "welchem" | "what" => {
            !is_first && !sentence.asks && !governed
        }
        "cual" => !sentence.asks,
        _ => false,
    }
}

/// Returns the kind of answer that "how" asks for.
fn of_how(clause: &[Word<'_>], whole: &Whole<'_>) -> Option<Kind> {
    let low = |at: usize| clause.get(at).map_or("", |w| w.low.as_str());
    if has(MEASURES, low(1)) {
        let should = has("often long oft lange", low(1))
            && clause
                .iter()
                .any(|w| has("should sollte sollten soll", &w.low));
        let vague = matches!(low(1), "large" | "big" | "much" | "viel") && should;
        return Some(if vague { Kind::Open } else { Kind::Number });
    }
    // `Wie lautet das Datum`, `wie heißt der Befehl`
    if has("lautet lauten heißt heißen ist sind", low(1)) && has("der die das", low(2)) {
        return Some(
            of_noun(&clause[2..], true, whole)
                .filter(|k| *k != Kind::List)
                .unwrap_or(Kind::Open),
        );
    }
    Some(match is_operation(whole) {
        true => Kind::Code,
        false => Kind::Open,
    })
}

/// Returns whether the answer to a "how" question is something to type: it names a tool and a task for it.
fn is_operation(whole: &Whole<'_>) -> bool {
    let vague = whole.all.iter().any(|w| has(ABSTRACT, &w.low));
    let tool = whole.tool || whole.all.iter().any(|w| has(COMPUTING, &w.low));
    tool && !vague && whole.all.len() > 3
}

fn is_tool(word: &Word<'_>) -> bool {
    let low = word.low.as_str();
    let short = low.chars().count() <= 2
        || matches!(
            low,
            "make"
                | "go"
                | "swift"
                | "node"
                | "calc"
                | "react"
                | "rust"
                | "ruby"
                | "shell"
                | "julia"
        );
    let name = word.named;
    let one = |low: &str| has(TOOLS, low) && (!short || name);
    one(low) || low.split('-').any(|part| part.len() > 2 && one(part))
}

/// Returns the kind of answer that "when" asks for: a date or advice.
fn of_when(
    clause: &[Word<'_>],
    is_first: bool,
    governed: bool,
    french: bool,
    sentence: &Sentence<'_>,
) -> Option<Kind> {
    let low = |at: usize| clause.get(at).map_or("", |w| w.low.as_str());
    let first = low(0);
    // `when we deploy, …`, `quand on déménage`, `cuando llueve`: conditions.
    let turned = clause.iter().any(|w| is_inverted(&w.low));
    let asks = match first {
        "when" => {
            has(
                "is are was were do does did will would should can could has have must may exactly 's to",
                low(1),
            ) || is_first && governed
                || is_first && clause.len() < 12 && clause.iter().all(|w| !w.ends)
        }
        "quand" => {
            governed
                || turned
                || is_first
                    && (has(
                        "a est sont ont fut furent aura sera expire commence finit se faut-il doit est-ce s' l' tombe la le les l'",
                        low(1),
                    ) || sentence.asks)
        }
        "cuando" => {
            is_first
                && (has(
                    "fue es se era empezó terminó nació murió cayó vence empieza termina",
                    low(1),
                ))
        }
        _ => true,
    };
    if !asks {
        return None;
    }
    let calendar = sentence.text.split_whitespace().any(|w| {
        let low = w
            .trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase();
        has(CALENDAR, &low) || low.len() == 4 && low.chars().all(|c| c.is_ascii_digit())
    });
    let general = clause
        .iter()
        .skip(1)
        .take(4)
        .any(|w| has(WHEN_OPEN, &w.low))
        || has("do can", low(1))
            && has("i you we", low(2))
            && clause.iter().any(|w| has("use need", &w.low))
        || french
            && clause.iter().any(|w| w.low == "est-ce")
            && clause.iter().any(|w| has("dois doit devons", &w.low));
    Some(match general && !calendar {
        true => Kind::Open,
        false => Kind::Date,
    })
}

/// Returns the kind of answer that "which" or "what" asks for: the noun after it, or after the verb "be".
fn of_which(clause: &[Word<'_>], whole: &Whole<'_>) -> Option<Kind> {
    let lower = whole.lower;
    let low = |at: usize| clause.get(at).map_or("", |w| w.low.as_str());
    let first = low(0);
    let mut rest = &clause[1..];
    let mut is_copula = matches!(first, "what's" | "whats");
    let second = low(1).to_owned();
    if has(COPULAS, &second) && !(second == "son" && has("quel quelle", first)) {
        is_copula = true;
        rest = &clause[2..];
    }
    if first == "qu'est-ce" || second == "est-ce" {
        return Some(Kind::Open);
    }
    if is_arithmetic(lower) && (is_copula || has(COSTS, &second)) {
        return Some(Kind::Number);
    }
    if has(COSTS, &second) && !has("faire fait", &second)
        || clause
            .last()
            .is_some_and(|w| has("cost weigh costs weighs", &w.low))
            && !is_copula
    {
        return Some(Kind::Number);
    }
    if clause.len() > 3 && is_in_unit(lower) {
        return Some(Kind::Number);
    }
    let pays = clause
        .last()
        .is_some_and(|w| has("pay owe earn save zahlen bezahlen payer pagar", &w.low));
    if pays
        && has("what was que qué", first)
        && has(
            "do does did should must will would muss müssen zahle dois debo tengo hay",
            &second,
        )
    {
        return Some(Kind::Number);
    }
    if is_need(clause) {
        return Some(Kind::List);
    }
    let plural_verb = has("are were sind waren sont son lauten", &second);
    let named = of_noun(rest, is_copula, whole);
    let plural = is_plural(first, &second, rest, is_copula, plural_verb) && !is_endless(clause);
    let head = rest.iter().take(5).find(|w| noun(w).is_some());
    let heads = head.is_some_and(|w| w.low.ends_with(['s', 'n']));
    match named {
        // `Which HTTP methods are …`, `Which months have …`
        Some(_) if plural && heads && first != "was" => return Some(Kind::List),
        Some(kind) => return Some(kind),
        None if plural => return Some(Kind::List),
        None => {}
    }
    Some(Kind::Open)
}

/// Matches `What do I need for …`, `Was brauche ich für …`.
fn is_need(clause: &[Word<'_>]) -> bool {
    let low = |at: usize| clause.get(at).map_or("", |w| w.low.as_str());
    let english = has("do does", low(1)) && low(3) == "need";
    let other = has("was qué que", low(0))
        && has(
            "brauche braucht brauchen brauch benötige benötigt necesito necesitamos",
            low(1),
        );
    (english || other) && clause.len() > 4
}

/// Returns whether a sentence ends with the unit of the expected number: `in dollars`, `en euros`.
fn is_in_unit(lower: &str) -> bool {
    const UNITS: &str = "dollars euro euros eur usd km/h mph m/s km kilometers kilometres meters metres meter metern mètres metros miles minutes minuten minutos hours stunden heures horas \
        seconds sekunden secondes segundos days tagen tage jours días percent prozent percentage grams gramm grammes gramos kg kilos litres liters liter litern litros \
        pourcentage porcentaje mb gb mib gib bytes bits watts watt volt grad degrees celsius fahrenheit kelvin kcal cm mm ml";
    let mut words = lower
        .rsplit(' ')
        .skip_while(|w| has("roughly about approximately approx ungefähr etwa circa environ aproximadamente please pls svp bitte", w));
    let last = words
        .next()
        .unwrap_or_default()
        .trim_matches(|c: char| !c.is_alphanumeric());
    let before = words.next().unwrap_or_default();
    has(UNITS, last) && has("in en", before)
}

/// Returns whether the noun after a question word is plural.
fn is_plural(
    first: &str,
    second: &str,
    rest: &[Word<'_>],
    is_copula: bool,
    plural_verb: bool,
) -> bool {
    let low = |at: usize| rest.get(at).map_or("", |w| w.low.as_str());
    let should = rest.iter().any(|w| has("should sollte sollten soll sollen recommend recommendest empfehlt devrait devrions debería deberíamos", &w.low));
    let phrase: Vec<&str> = rest
        .iter()
        .take_while(|w| !has(STOPS, &w.low) || has(DETERMINERS, &w.low))
        .take(6)
        .map(|w| w.low.as_str())
        .collect();
    let near = phrase.iter().skip_while(|w| has(DETERMINERS, w)).take(2);
    if near.clone().any(|w| has(SEVERAL, w) || small_number(w)) && phrase.len() > 1 && !should {
        return true;
    }
    if should {
        return false;
    }
    // `Which of these are prime`
    if has("of von parmi entre", low(0))
        && rest
            .iter()
            .take(6)
            .any(|w| has("are were sind sont son", &w.low))
    {
        return true;
    }
    match first {
        "what's" | "was" | "wie" => plural_verb,
        "which" | "what" if plural_verb && is_copula => true,
        "which" | "what" => {
            let verbs = "weighs costs makes uses runs fits gives needs takes comes works lasts does has contains causes lives grows";
            let phrase: Vec<&str> = phrase
                .iter()
                .copied()
                .take_while(|w| !has(verbs, w))
                .collect();
            let noun = phrase.iter().take(3).position(|w| {
                w.len() > 3
                    && w.ends_with('s')
                    && !w.ends_with("ss")
                    && !w.ends_with("us")
                    && !w.ends_with("is")
            });
            let singular = noun.is_some_and(|at| {
                let after = rest.get(at + 1).map_or("", |w| w.low.as_str());
                has(
                    "is was does has more less better faster longer best most will would",
                    after,
                )
            });
            let agrees = noun.is_some_and(|at| {
                has(
                    "do are did have were can must could need would you we share border use speak belong contain exist",
                    rest.get(at + 1).map_or("", |w| w.low.as_str()),
                )
            });
            noun.is_some() && !singular && (first == "which" || agrees)
        }
        "welche" if rest.iter().take(4).any(|w| w.low == "gibt") => true,
        "welche" => {
            let singular = "nummer mauer steuer oper mutter feder leiter kammer feier dauer größer schwer teurer schneller besser eher";
            let noun = low(0);
            let plural = ["er", "en", "ern", "eln", "n"]
                .iter()
                .any(|e| noun.ends_with(e))
                || noun.ends_with('s') && noun.len() > 4;
            plural && !singular.split(' ').any(|s| noun.ends_with(s)) && !has(STOPS, noun)
                || has("sind lauten", noun)
        }
        "welchen" => false,
        "quels" | "quelles" | "lesquels" | "lesquelles" | "cuáles" | "cuales" => true,
        "qué" | "que" => {
            second.len() > 4
                && ["as", "os", "es"].iter().any(|e| second.ends_with(e))
                && !has("puedes debes tienes quieres piensas opinas", second)
        }
        _ => false,
    }
}

fn small_number(word: &str) -> bool {
    word.parse::<u32>().is_ok_and(|n| (2..=20).contains(&n))
}

/// Returns whether a clause asks for an open-ended set. A number with a word such as "main" makes the set finite.
fn is_endless(clause: &[Word<'_>]) -> bool {
    let counted = clause
        .iter()
        .take(5)
        .any(|w| has(SEVERAL, &w.low) || small_number(&w.low));
    let mut words = clause.iter().take(8);
    words.any(|w| has(ENDLESS, &w.low) && !(counted && has(MAIN, &w.low)))
}

/// Returns the kind of the first noun in a phrase that has one.
fn of_noun(phrase: &[Word<'_>], is_copula: bool, whole: &Whole<'_>) -> Option<Kind> {
    let mut seen = 0;
    let mut found: Option<(Kind, usize)> = None;
    for (at, word) in phrase.iter().enumerate() {
        let low = word.low.as_str();
        if has(DETERMINERS, low) && seen == 0 {
            continue;
        }
        if has(STOPS, low) || seen >= 5 {
            // `la fonction SQL`, `the last day of`
            break;
        }
        seen += 1;
        let other = matches!(low, "nombre" | "aire") && whole.language == Language::Spanish;
        if let Some(kind) = noun(word).filter(|_| !other) {
            // The head noun is the last in English and German, the first in French and Spanish; code takes precedence.
            if found.as_ref().is_none_or(|(k, _)| *k != Kind::Code) {
                found = Some((kind, at));
            }
        }
        if word.ends {
            break;
        }
    }
    let (kind, at) = found?;
    let word = phrase[at].low.as_str();
    let more = phrase.len() > at + 1;
    match kind {
        Kind::Code if has(CODE_VAGUE, word) && !whole.tool => None,
        // `What is speed?` asks for an explanation.
        Kind::Number if is_copula && !more && seen == 1 => None,
        Kind::Number if has(VAGUE, word) && !more && seen == 1 => None,
        kind => Some(kind),
    }
}

/// Returns the kind that a noun names, also as the end of a compound. German nouns are capitalized.
fn noun(word: &Word<'_>) -> Option<Kind> {
    let low = word.low.as_str();
    let capital = word.named;
    let last = low.rsplit('-').next().unwrap_or(low);
    let stems = |word: &str, table: &str| {
        has_loose(table, word)
            || ["s", "n", "e", "en", "es", "x"].iter().any(|end| {
                word.strip_suffix(end)
                    .is_some_and(|w| w.len() > 2 && has_loose(table, w))
            })
    };
    let compound = |table: &str| {
        low.chars().count() > 7
            && table
                .split_whitespace()
                .any(|w| w.chars().count() >= 4 && low.len() > w.len() && low.ends_with(w))
    };
    for (table, kind, german) in [
        (CODE_NOUNS, Kind::Code, false),
        (DATE_NOUNS, Kind::Date, false),
        (LIST_NOUNS, Kind::List, false),
        (NUMBER_NOUNS, Kind::Number, false),
        (GERMAN_NUMBERS, Kind::Number, true),
    ] {
        if german && !capital {
            continue;
        }
        if stems(low, table) || last != low && stems(last, table) {
            return Some(kind);
        }
    }
    for (table, kind) in [
        (
            "befehl kommando abfrage skript ausdruck formel anweisung",
            Kind::Code,
        ),
        ("datum wochentag stichtag termin", Kind::Date),
        (
            "anzahl preis betrag temperatur geschwindigkeit gewicht summe dauer quote satz kosten zahl höhe länge fläche menge punkt miete wert",
            Kind::Number,
        ),
    ] {
        if capital && compound(table) {
            return Some(kind);
        }
    }
    None
}

/// Returns the kind of a phrase that names a number, a date or code without a verb.
fn of_phrase(clause: &[Word<'_>], whole: &Whole<'_>) -> Option<Kind> {
    let low = |at: usize| clause.get(at).map_or("", |w| w.low.as_str());
    // `les nombres premiers entre 10 et 20`, `días del fin de semana`
    let plural = has("les los las alle all", low(0))
        && clause.len() > 2
        && !clause.iter().any(|w| has(AUXILIARIES, &w.low));
    let of = has(
        "of de del des d' between entre zwischen under unter",
        low(1),
    ) || has("between entre zwischen below under menores", low(2));
    let end = |at: usize| {
        let word = low(at);
        word.len() > 3
            && word.ends_with('s')
            && !["ss", "us", "is", "ws"].iter().any(|e| word.ends_with(e))
    };
    let named = end(0) && of || end(1) && has("between entre zwischen below under", low(2));
    if (plural || named) && !is_endless(clause) && !has(AUXILIARIES, low(0)) {
        return Some(Kind::List);
    }
    let kind = of_noun(clause, false, whole)?;
    let first = usize::from(has(DETERMINERS, low(0)));
    let at = (first..first + 3).find(|at| clause.get(*at).is_some_and(|w| noun(w).is_some()))?;
    // After the noun: its complement, or nothing.
    let ends = clause[at].ends || at + 1 >= clause.len();
    let of = has(STOPS, low(at + 1)) || clause.get(at + 1).is_some_and(|w| noun(w).is_some());
    let alone = whole.sentence.asks || clause.len() + usize::from(whole.tool) > 1;
    ((at == first || ends || of)
        && (at == first && has("der des", low(at + 1)) || !has(DETERMINERS, low(at + 1)))
        && alone)
        .then_some(kind)
}

/// Matches a request for code without a verb: `sql to count rows`, `git command to undo`, `Regex that matches …`.
fn of_code(clause: &[Word<'_>], all: &[Word<'_>]) -> Option<Kind> {
    let near = clause.iter().take(5);
    let named = near
        .clone()
        .any(|w| noun(w) == Some(Kind::Code) && !has(CODE_VAGUE, &w.low));
    let vague = near.clone().any(|w| noun(w) == Some(Kind::Code));
    let tool = near.clone().any(is_tool);
    let second = clause.get(1).map_or("", |w| w.low.as_str());
    let leads = clause.first().is_some_and(is_tool) && has("to for um für zum pour para", second);
    // `git: undo the last commit`, `en Python : afficher …`
    let colon = all.iter().take(8).position(|w| w.text.ends_with(':'));
    let topic = colon.is_some_and(|at| {
        let named = all[at.saturating_sub(1)..=at].iter().any(is_tool);
        let behind = all.get(at + 1).map(|w| w.text);
        named && behind.is_some() && clause.first().map(|w| w.text) == behind
    });
    let placed = matches!(all, [.., place, tool] if has("in en mit with auf avec con", &place.low) && is_tool(tool))
        && all.len() > 2;
    if leads || (topic || placed) && !clause.iter().any(|w| has(ABSTRACT, &w.low)) {
        return Some(Kind::Code);
    }
    let purpose = all.iter().any(|w| {
        has(
            "to that for um für pour qui para que der die das which",
            &w.low,
        )
    });
    (named && purpose || vague && tool && purpose).then_some(Kind::Code)
}

/// Returns the kind of answer that a request asks for by its verb.
fn of_request(clause: &[Word<'_>], whole: &Whole<'_>) -> Option<Kind> {
    let lower = whole.lower;
    let verb = clause[0].low.as_str();
    let rest = &clause[1..];
    // `Tell me how many …`, `Sag mir, wann …`
    let told = rest
        .iter()
        .take_while(|w| has("me us mir uns moi nous bitte please mal", &w.low))
        .count();
    if (has(NAME, verb) || has(WRITE, verb))
        && let Some(word) = rest.get(told)
        && (is_question_word(&word.low)
            || has(OPEN_WORDS, &word.low)
            || told > 0 && has(AUXILIARIES, &word.low))
    {
        let whole = Whole {
            is_first: true,
            ..*whole
        };
        return of_clause(&rest[told..], &whole);
    }
    if (has(NAME, verb) || has(WRITE, verb))
        && rest
            .get(told)
            .is_some_and(|w| told > 0 && has("if whether ob si", &w.low))
    {
        return Some(Kind::YesNo);
    }
    let digits = lower.chars().any(|c| c.is_ascii_digit());
    if has(EXPLAIN, verb) && verb != "tell" {
        return Some(Kind::Open);
    }
    let code = of_noun(rest, false, whole) == Some(Kind::Code)
        || of_code(rest, clause) == Some(Kind::Code);
    let code = code
        || clause.iter().take(12).any(is_tool)
            && has(
                "write implement code schreibe schreib implementiere écris écrivez implémente escribe implementa",
                verb,
            );
    let code = code
        || clause.iter().take(8).any(|w| noun(w) == Some(Kind::Code))
            && has(
                "write implement schreibe schreib implementiere écris écrivez escribe implementa",
                verb,
            );
    if has(WRITE, verb) && code {
        return Some(Kind::Code);
    }
    if has(COMPUTE, verb) {
        let counted = clause.iter().any(|w| {
            noun(w) == Some(Kind::Number)
                || has(HOW_MANY, &w.low)
                || w.low == "many"
                || w.low == "viele"
                || has("equation gleichung équation ecuación", &w.low)
        });
        let to_code = of_code(rest, clause) == Some(Kind::Code)
            || has("convert convertis convierte wandle", verb)
                && rest.iter().take(8).any(|w| noun(w) == Some(Kind::Code));
        return Some(match (digits || counted, to_code) {
            (_, true) => Kind::Code,
            (true, false) => Kind::Number,
            (false, false)
                if has(
                    "calculate compute estimate berechne schätze calcule calcula estima estime",
                    verb,
                ) =>
            {
                Kind::Number
            }
            _ => Kind::Open,
        });
    }
    if has(CHOOSE, verb) {
        return Some(Kind::Open);
    }
    if has(NAME, verb) {
        let noun = of_noun(rest, false, whole).filter(|k| *k != Kind::List);
        if let Some(kind) = noun.filter(|_| !is_several(rest)) {
            return Some(kind);
        }
        return Some(match is_several(rest) && !is_endless(rest) {
            true => Kind::List,
            false => Kind::Open,
        });
    }
    (has(WRITE, verb)).then_some(Kind::Open)
}

/// Returns whether a request names several items.
fn is_several(rest: &[Word<'_>]) -> bool {
    let rest: Vec<&str> = rest
        .iter()
        .map(|w| w.low.as_str())
        .skip_while(|w| has("me us mir uns moi nous", w))
        .take(6)
        .collect();
    let low = |at: usize| rest.get(at).copied().unwrap_or_default();
    if rest
        .iter()
        .take(4)
        .any(|w| has(SEVERAL, w) || small_number(w))
    {
        return true;
    }
    match low(0) {
        "les" | "des" | "los" | "las" | "unos" | "unas" => true,
        "the" | "all" | "any" | "every" => rest
            .iter()
            .skip(1)
            .take(4)
            .take_while(|w| !has(STOPS, w))
            .any(|w| {
                w.len() > 3
                    && (w.ends_with('s')
                        || has("people children men women countries teeth feet", w))
                    && !w.ends_with("ss")
                    && !w.ends_with("us")
                    && !w.ends_with("is")
            }),
        "die" | "der" => {
            rest.iter()
                .skip(1)
                .take(3)
                .take_while(|w| !has(STOPS, w))
                .any(|w| {
                    w.len() > 3
                        && (w.ends_with(['n', 's']) || w.ends_with("er"))
                        && !w.ends_with("ss")
                        && !w.ends_with("tion")
                        && !w.ends_with("ung")
                })
                && low(0) == "die"
        }
        _ => false,
    }
}

/// Returns whether a sentence asks for an order.
fn is_order(all: &[Word<'_>], lower: &str) -> bool {
    let first = all.first().map_or("", |w| w.low.as_str());
    let code = all.iter().any(|w| {
        is_tool(w)
            || has(
                "array list liste lista query function funktion fonction función",
                &w.low,
            )
    });
    if has(HOW, first)
        || has(EXPLAIN, first)
        || has(WRITE, first) && code
        || has("why warum pourquoi", first)
    {
        return false;
    }
    let several =
        lower.contains([',', ':', ';']) || lower.contains(" and ") || lower.contains(" these ");
    // `Classify the ticket as a, b or c`
    let sorts_in = has(
        "ordne ordnen classe classez classifie clasifica sort",
        first,
    ) && (any_in(" or | oder | ou | o ", lower)
        || lower.contains(" ein (")
        || lower.contains(" ein:")
        || lower.contains(" ein,"));
    if sorts_in && !any_in(IN_ORDER, lower) {
        return false;
    }
    if has(RANK, first) && several && (!code || lower.contains(':')) {
        return true;
    }
    let german = has(
        "bringe bring setze stelle mettez mets pon coloca put place",
        first,
    ) && any_in(IN_ORDER, lower);
    let of_time = any_in(
        "reihenfolge|order of operations|ordre de grandeur|in order to|orden de magnitud|purchase order|court order",
        lower,
    );
    german
        || any_in(IN_ORDER, lower)
            && (!of_time || lower.contains("reihenfolge"))
            && (several
                || lower.contains("order,")
                || first.is_empty()
                || has(NAME, first)
                || has(WHICH, first)
                || has("in", first))
}

/// Returns whether a clause begins with the verb of a yes/no question and is not a statement.
fn is_verb_first(clause: &[Word<'_>], is_first: bool, sentence: &Sentence<'_>) -> bool {
    let low = |at: usize| clause.get(at).map_or("", |w| w.low.as_str());
    let (first, second) = (low(0), low(1));
    // `Do not …`, `Have a look`: requests.
    if !sentence.asks
        && (has("do don't", first) && has("not it this that", second) || first == "have")
    {
        return false;
    }
    // Spanish and German statements can also begin with a verb.
    let statement = has(
        "es está están son hay ha hace tengo era fue será necesito necesitamos tiene tienen geht gibt",
        first,
    );
    if statement && !sentence.asks && !is_first {
        return false;
    }
    clause.len() > 1
}

/// Returns whether a clause begins with a verb that does not belong to a question word: `lower the bar`, `Trägt das
/// Team`.
fn starts_with_verb(clause: &[Word<'_>]) -> bool {
    let low = |at: usize| clause.get(at).map_or("", |w| w.low.as_str());
    let german = ["t", "en", "st"].iter().any(|e| low(0).ends_with(e));
    let object = has(PRONOUNS, low(1)) || german && has("die der das ein eine", low(1));
    object && !has(DETERMINERS, low(0)) && clause.first().is_none_or(|w| noun(w).is_none())
}

/// Returns whether a word is an inverted verb and pronoun: `est-il`, `a-t-on`.
fn is_inverted(low: &str) -> bool {
    let pronoun = [
        "-il", "-elle", "-ils", "-elles", "-on", "-nous", "-vous", "-je", "-tu",
    ]
    .iter()
    .find_map(|p| low.strip_suffix(p));
    pronoun.is_some_and(|verb| verb.chars().count() > 1 && !has("dites rendez peut-être", low))
}

/// Returns whether a verb and pronoun are inverted without a hyphen: `la tomate est elle`, `peut on`.
fn is_turned(all: &[Word<'_>]) -> bool {
    let open = all.iter().take(2).any(|w| {
        has(WHICH, &w.low) || has(WHEN, &w.low) || has(HOW, &w.low) || has(OPEN_WORDS, &w.low)
    });
    !open
        && all.windows(2).any(|pair| {
            has(
                "est sont peut doit faut a-t ont va vont peuvent doivent fait vaut",
                &pair[0].low,
            ) && has("il elle ils elles on ce t-il t-elle", &pair[1].low)
        })
}

/// Returns whether a clause is a phrase without a verb: `Capital of Peru`, `Best tea for the morning`.
fn is_phrase(clause: &[Word<'_>]) -> bool {
    let low = |at: usize| clause.get(at).map_or("", |w| w.low.as_str());
    let verb = clause.iter().any(|w| {
        let low = w.low.as_str();
        has(AUXILIARIES, low) && !matches!(low, "war" | "era" | "son" | "may" | "will" | "must")
            || has(
                "i we you it ich wir man je nous yo se peut peux doit dois va vais faut c' ça",
                low,
            )
            || is_inverted(low)
    });
    if verb || has("on il elle ils elles tu vous", low(0)) || starts_with_verb(clause) {
        return false;
    }
    let marked = clause.iter().take(3).any(|w| has(PHRASE_MARKS, &w.low));
    let of = (1..4).any(|at| has("of von de du des d' del der", low(at)));
    marked || of
}

/// Returns whether a sentence asks for one of several known things: `Which one would you take`.
pub(super) fn asks_which(text: &str) -> bool {
    let text = without_lead(text);
    let all = words(text);
    let which = "which what who whom wich wer wen wem qui quién lequel laquelle cuál welche welchen welches welcher was que qué quel quelle";
    let asks = all.iter().take(3).any(|w| has(which, &w.low));
    asks || all.first().is_some_and(|w| has(CHOOSE, &w.low))
        || any_in("哪个|哪一个|哪种|选什么|怎么选", text)
}
