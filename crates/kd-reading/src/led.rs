//! Names behind words that only announce them, in the five languages.

use super::folded::Folded;
use super::language::is_han;
use super::prose;

/// Returns the name behind words that only announce it: `You are looking for tungsten.`
pub(super) fn name(text: &str) -> Option<String> {
    const LEADS: [&str; 105] = [
        "we call it ",
        "this describes ",
        "that describes ",
        "wir nennen es ",
        "das beschreibt ",
        "on l'appelle ",
        "cela décrit ",
        "lo llamamos ",
        "esto describe ",
        "eso describe ",
        "我们叫它",
        "这说的是",
        "这描述的是",
        "i'd say ",
        "i would say ",
        "it must be ",
        "must be ",
        "it has to be ",
        "it should be ",
        "the thing you describe is ",
        "what you describe is ",
        "what you mean is ",
        "ich würde sagen: ",
        "ich würde sagen ",
        "was du beschreibst, ist ",
        "was sie beschreiben, ist ",
        "das muss ",
        "es muss ",
        "je dirais ",
        "ce que vous décrivez est ",
        "ce doit être ",
        "cela doit être ",
        "yo diría ",
        "lo que describes es ",
        "tiene que ser ",
        "debe de ser ",
        "debe ser ",
        "我会说",
        "你描述的就是",
        "一定是",
        "你说的是",
        "那是",
        "这是",
        "the answer is ",
        "the correct answer is ",
        "the answer would be ",
        "you are looking for ",
        "you're looking for ",
        "the word is ",
        "the name is ",
        "the term is ",
        "it's called ",
        "it is called ",
        "this is called ",
        "that is called ",
        "that's called ",
        "that would be ",
        "it would be ",
        "it is ",
        "it's ",
        "that is ",
        "that's ",
        "this is ",
        "gesucht ist ",
        "die antwort ist ",
        "die antwort lautet ",
        "der name ist ",
        "der name lautet ",
        "das heißt ",
        "es heißt ",
        "man nennt es ",
        "man nennt das ",
        "das nennt man ",
        "das wäre ",
        "es wäre ",
        "das ist ",
        "es ist ",
        "vous cherchez ",
        "la réponse est ",
        "le nom est ",
        "son nom est ",
        "cela s'appelle ",
        "ça s'appelle ",
        "ce serait ",
        "c'est ",
        "il s'agit de ",
        "il s'agit d'",
        "lo que buscas es ",
        "la respuesta es ",
        "el nombre es ",
        "se llama ",
        "sería ",
        "se trata de ",
        "es ",
        "你要找的是",
        "答案是",
        "答案为",
        "名字是",
        "名称是",
        "它叫做",
        "它叫",
        "这叫做",
        "这叫",
        "应该是",
        "是",
    ];
    const DENIALS: [&str; 12] = [
        "not ", "no ", "nicht ", "kein", "pas ", "un ", "une ", "a ", "an ", "ein ", "eine ", "不",
    ];
    const WORDS_MAX: usize = 4;
    const HAN_MAX: usize = 12;
    const TAILS: [&str; 14] = [
        ", i believe",
        ", i think",
        ", i'd say",
        ", i guess",
        ", glaube ich",
        ", denke ich",
        ", würde ich sagen",
        ", je crois",
        ", je pense",
        ", creo",
        ", diría yo",
        "，我觉得",
        "，我想",
        "，我认为",
    ];
    let bare = prose::bare(text);
    let plain = bare.replace('’', "'");
    let low = plain.to_lowercase();
    let tail = TAILS
        .iter()
        .find(|tail| low.ends_with(**tail) && low.len() == plain.len());
    if let Some(tail) = tail {
        let head = prose::bare(&plain[..plain.len() - tail.len()]);
        return (head.split_whitespace().count() <= WORDS_MAX
            && !head.contains([',', '.', ':', '，']))
        .then_some(head);
    }
    let folded = Folded::new(&plain);
    let name = LEADS.iter().find_map(|lead| folded.strip_prefix(lead))?;
    let name = prose::bare(name.strip_suffix(" sein").unwrap_or(name));
    let han = name.chars().any(is_han);
    let short = match han {
        true => name.chars().count() <= HAN_MAX,
        false => (1..=WORDS_MAX).contains(&name.split_whitespace().count()),
    };
    let lower = name.to_lowercase();
    let denies = DENIALS.iter().any(|w| lower.starts_with(w));
    let ends = [
        ',', ';', ':', '(', '?', '.', '，', '；', '：', '？', '。', '\n',
    ];
    (short && !denies && !name.contains(ends)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn only_the_name_is_left_of_an_announcement() {
        for (text, want) in [
            ("You are looking for tungsten.", Some("tungsten")),
            ("Das nennt man Kulanz.", Some("Kulanz")),
            ("Il s'agit de Canberra.", Some("Canberra")),
            ("Lo que buscas es Canberra.", Some("Canberra")),
            ("应该是钨。", Some("钨")),
            ("tungsten, I believe.", Some("tungsten")),
            ("It is not tungsten.", None),
            ("It is tungsten, though some say wolfram.", None),
            ("Use a queue.", None),
        ] {
            assert_eq!(name(text).as_deref(), want, "{text}");
        }
    }
}
