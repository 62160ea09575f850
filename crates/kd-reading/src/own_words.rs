//! Finds the option named by words that are unique to it, in short replies that name no option in full: `Nantes.` for
//! `move to Nantes`, `XPS` for `XPS-Platten`, `option 2`.

use super::language::{Language, is_han};
use super::prose;

/// Maximum length of a clause to examine, in bytes.
const CLAUSE_BYTES_MAX: usize = 120;
/// Words that reject an option or leave it open.
const NEGATIONS: &str = "bad worse worst slow slower risky wrong expensive schlecht schlechter riskant falsch teuer langsam mauvais pire risqué cher malo peor caro \
    not no nor never neither none either both don't doesn't isn't won't wouldn't shouldn't can't against except without unless instead depends \
    nicht kein keine keinen nie weder statt ohne außer gegen beide ni pas non jamais sans sauf contre deux nunca sin contra ambos salvo ninguno ningún depende";
/// Words without content.
const EMPTY: &str = "the a an of for to in on at and or with der die das dem den ein eine und oder von für zu mit le la les un une de des du et ou à au en celui celle \
    el los las una unos del y o con para por that this one it its we our is are be on ist sind est es son go use take \
    i me my we us you your he she they them am was were will would should can could does did have has had where when how what which who as if than then there here now \
    ich du wir ihr sie mein dein bin bist habe hat wo wie wenn als da hier noch nur je tu il elle nous vous mon ma mes suis ai où quand que qui si comme \
    yo tú mi su estoy soy donde como cuando ya hay";

/// Returns the index of the option.
pub(super) fn of(options: &[String], question: &str, reply: &str) -> Option<usize> {
    let text = prose::without_thoughts(reply);
    let text = text.trim();
    if text.starts_with(['{', '[', '`']) {
        return None;
    }
    let clause = first_clause(text)?;
    if let Some(at) = numbered(options, question, &clause) {
        return Some(at);
    }
    // `merge sort` for `mergesort`
    let joined = |text: &str| text.to_lowercase().replace([' ', '-'], "");
    let mut same = (0..options.len()).filter(|at| joined(&options[*at]) == joined(&clause));
    if let (Some(at), None) = (same.next(), same.next()) {
        return Some(at);
    }
    let han = clause.chars().any(is_han);
    let words = words(&clause);
    let negated = words
        .iter()
        .any(|word| NEGATIONS.split_whitespace().any(|n| n == word));
    if negated || han && clause.contains(['不', '没', '别', '非', '都']) {
        return None;
    }
    // `0-1` and `½-½` are not words: no part of them names the option.
    let is_score =
        |option: &String| !option.chars().any(char::is_alphabetic) && option.contains('-');
    if options.iter().all(is_score) {
        return None;
    }
    let own: Vec<Vec<String>> = (0..options.len())
        .map(|at| own_words(options, at))
        .collect();
    let mut named = (0..options.len()).filter(|at| {
        own[*at].iter().any(|own| match han {
            true => clause.contains(own.as_str()),
            false => words.iter().any(|word| alike(word, own)),
        })
    });
    let at = named.next()?;
    named.next().is_none().then_some(at)
}

/// Returns the option that a short reply concludes with: after a word such as "so", or in a last sentence that is its name.
pub(super) fn concluded(options: &[String], question: &str, reply: &str) -> Option<usize> {
    const FOLLOWS: [&str; 14] = [
        "->",
        "=>",
        "→",
        "also ",
        "so ",
        "therefore ",
        "thus ",
        "hence ",
        "deshalb ",
        "donc ",
        "entonces ",
        "así que ",
        "所以",
        "因此",
    ];
    let text = reply.trim();
    if text.len() > 2 * CLAUSE_BYTES_MAX || text.contains(['{', '[', '?', '？']) {
        return None;
    }
    let lower = text.to_lowercase();
    let german = Language::of(question) == Language::German;
    // English "also" adds, German "also" concludes.
    let concludes = FOLLOWS.iter().filter(|word| german || **word != "also ");
    // Several arrows are a list.
    let arrows: usize = ["->", "=>", "→"]
        .iter()
        .map(|arrow| lower.matches(arrow).count())
        .sum();
    let is_list = |word: &&&str| arrows > 1 && ["->", "=>", "→"].contains(*word);
    let follows = concludes.filter(|word| !is_list(word)).filter_map(|word| {
        let at = lower.rfind(word)?;
        let free = lower[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric())
            || word.chars().any(is_han);
        free.then(|| at + word.len())
    });
    let last = lower
        .trim_end_matches(['.', '!', '。', '*'])
        .rfind([' ', '。', '！'])
        .and_then(|_| {
            lower
                .trim_end_matches(['.', '!', '。', '*'])
                .rfind(['.', '!', '。', '！'])
        })
        .map(|at| at + lower[at..].chars().next().map_or(1, char::len_utf8));
    // A last sentence that says more than the name may rule it out: `Kafka is overkill.`
    let alone = |at: &usize| {
        let said = words(lower.get(*at..).unwrap_or_default());
        !said.is_empty()
            && options
                .iter()
                .any(|option| words(&option.to_lowercase()) == said)
    };
    let from = follows.max().or(last.filter(alone))?;
    of(options, question, lower.get(from..)?)
}

/// Returns the first clause of a reply, in lower case.
fn first_clause(text: &str) -> Option<String> {
    let lower = text
        .to_lowercase()
        .replace(['*', '_', '"', '“', '”', '«', '»'], "");
    let chars: Vec<(usize, char)> = lower.char_indices().collect();
    let end = chars.iter().enumerate().find_map(|(at, (place, c))| {
        let next = chars.get(at + 1).map(|(_, c)| *c);
        let stop = matches!(
            c,
            ',' | ';' | ':' | '!' | '?' | '\n' | '，' | '。' | '；' | '：' | '！' | '–' | '—'
        ) && next.is_none_or(|n| !n.is_ascii_digit());
        let point = *c == '.' && next.is_none_or(char::is_whitespace);
        let aside = matches!(c, '(' | '（') && at > 0;
        (stop || point || aside).then_some(*place)
    });
    let clause = lower.get(..end.unwrap_or(lower.len()))?.trim().to_owned();
    (!clause.is_empty() && clause.len() <= CLAUSE_BYTES_MAX).then_some(clause)
}

/// Parses `(2)`, `option 2`, if the question numbers its options.
fn numbered(options: &[String], question: &str, clause: &str) -> Option<usize> {
    let labels = ['甲', '乙', '丙', '丁'];
    let mut named = labels
        .iter()
        .enumerate()
        .filter(|(_, label)| clause.contains(**label));
    if let (Some((at, _)), None) = (named.next(), named.next())
        && question.contains('甲')
        && question.contains('乙')
    {
        return (at < options.len()).then_some(at);
    }
    let bare = [
        "option", "opción", "nummer", "number", "nr.", "no.", "#", "die", "la", "l'option", "the",
        "选项", "方案", "第",
    ]
    .iter()
    .find_map(|word| clause.strip_prefix(word))
    .unwrap_or(clause);
    const NUMBERS: [&str; 4] = [
        "one eins un une uno una first erste la première 一",
        "two zwei deux dos second zweite deuxième segunda 二",
        "three drei trois tres third dritte troisième tercera 三",
        "four vier quatre cuatro fourth vierte quatrième cuarta 四",
    ];
    let bare = bare.trim().trim_matches(['(', ')', '.', ' ']);
    let in_words = || {
        let called = bare.len() < clause.len();
        let is = |words: &str| words.split(' ').any(|w| w == bare);
        let place = NUMBERS.iter().position(|words| is(words))?;
        called.then_some(place + 1)
    };
    let number: usize = bare.parse().ok().or_else(in_words)?;
    let labelled = [
        format!("({number})"),
        format!("{number})"),
        format!("\n{number}."),
    ];
    let digits = options
        .iter()
        .any(|o| o.starts_with(|c: char| c.is_ascii_digit()));
    let is_label = labelled
        .iter()
        .any(|label| question.contains(label.as_str()));
    (is_label && !digits && (1..=options.len()).contains(&number)).then(|| number - 1)
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '\'' | '+' | '#'))
        .map(|word| word.trim_matches(['.', '\'']).to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the words unique to one option; for Chinese, pairs of characters.
fn own_words(options: &[String], at: usize) -> Vec<String> {
    let of = |text: &str| -> Vec<String> {
        let lower = text.to_lowercase();
        if lower.chars().any(is_han) {
            let chars: Vec<char> = lower.chars().filter(|c| c.is_alphanumeric()).collect();
            return chars.windows(2).map(|pair| pair.iter().collect()).collect();
        }
        words(&lower)
    };
    let others: Vec<String> = options
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != at)
        .flat_map(|(_, option)| of(option))
        .collect();
    of(&options[at])
        .into_iter()
        .filter(|word| !others.iter().any(|other| alike(word, other)))
        .filter(|word| !EMPTY.split_whitespace().any(|empty| empty == word))
        .collect()
}

/// Returns whether two words are forms of the same word: `1.4` and `1.4m`, `déménage` and `déménager`, `v2.5.0` and
/// `2.5.0`, `Boskop` and `Boskoop`.
fn alike(one: &str, two: &str) -> bool {
    if one == two {
        return true;
    }
    let digits = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    if digits(one) || digits(two) {
        let bare = |word: &str| word.trim_matches(|c: char| !c.is_ascii_digit()).to_owned();
        let short = one.len().abs_diff(two.len()) <= 2;
        return digits(one) && digits(two) && short && bare(one) == bare(two);
    }
    let (short, long) = match one.len() < two.len() {
        true => (one, two),
        false => (two, one),
    };
    let simple = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.dedup();
        letters
    };
    let doubled = short.chars().count() >= 6 && simple(short) == simple(long);
    doubled
        || short.chars().count() >= 5 && long.starts_with(short) && long.len() - short.len() <= 3
}

#[cfg(test)]
mod tests {
    use super::of;

    fn named(options: &[&str], question: &str, reply: &str) -> Option<usize> {
        let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
        of(&options, question, reply)
    }

    #[test]
    fn words_of_one_option_name_it() {
        let cities = ["garde Paris", "déménage à Nantes", "passe au télétravail"];
        for (options, reply, at) in [
            (&cities[..], "Nantes", 1),
            (&cities, "Je dirais Nantes : 4 100 € de moins.", 1),
            (
                &["accept 1.4M", "hold out for 1.8M"],
                "Take the 1.4 now; it is enough.",
                0,
            ),
            (
                &["Mineralwolle", "XPS-Platten"],
                "Wegen der Feuchte klar **XPS**.",
                1,
            ),
            (
                &["招一名高级工程师", "招两名初级工程师"],
                "高级工程师一名就够了。",
                0,
            ),
        ] {
            assert_eq!(named(options, "", reply), Some(at), "{reply}");
        }
        let question = "Do we (1) wait or (2) ship?";
        assert_eq!(named(&["wait", "ship"], question, "Option 2"), Some(1));
        assert_eq!(named(&["wait", "ship"], "Wait or ship?", "2"), None);
        let options = ["Keycloak".to_owned(), "Auth0".to_owned()];
        for (reply, at) in [
            ("Auth0 frisst das halbe Budget. Also Keycloak.", Some(0)),
            ("keycloak is slow -> auth0", Some(1)),
            ("I looked at Auth0... it is risky. Keycloak.", Some(0)),
            ("Keycloak is slow, so Auth0 is bad as well.", None),
            ("Auth0 or Keycloak, so it depends", None),
        ] {
            assert_eq!(
                super::concluded(&options, "Nehmen wir Keycloak oder Auth0?", reply),
                at,
                "{reply}"
            );
        }
    }

    #[test]
    fn what_rules_out_or_names_two_names_none() {
        let cities = ["stay in Paris", "move to Nantes"];
        for reply in [
            "Not Nantes.",
            "Paris and Nantes",
            "Lyon",
            "Neither Paris",
            "It depends on Nantes",
            "",
        ] {
            assert_eq!(named(&cities, "", reply), None, "{reply}");
        }
    }
}
