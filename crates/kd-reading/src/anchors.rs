//! Bare answers: whether the first statement of a reply is just a number, a date, yes or no, a list, code, or something
//! named in the question. Decides how to compare the replies to a question whose form does not show it.

use super::kind_words::{IN_ORDER, TOOLS, any_in, has};
use super::language::{Language, is_han};
use super::options::Options;
use super::{
    Answer, Unread, Wanted, alternatives, asked, code, cues, date, lists, number, own_words, prose,
    units,
};

/// Maximum words before a block of code that is the answer.
const LEAD_WORDS_MAX: usize = 6;

/// Maximum bytes of a reply's statement that are kept; a bare answer is short.
const WHOLE_BYTES_MAX: usize = 4 << 10;
/// Maximum number of words in a short text.
const SHORT_WORDS_MAX: usize = 12;
/// Maximum number of words in a text that counts as one statement, whatever periods it contains: `Mo 26. Mai`.
const BARE_WORDS_MAX: usize = 5;
/// Maximum number of words in a list item, or in an item named in the question.
const THING_WORDS_MAX: usize = 4;
/// Maximum number of Chinese characters in a list item, or in an item named in the question.
const THING_HAN_MAX: usize = 8;

/// A reply that contains an answer.
#[derive(Clone, Debug)]
pub struct Head<'a> {
    /// The original reply.
    pub reply: &'a str,
    /// The statement: the answer field of its JSON, otherwise the whole reply.
    whole: String,
    /// The first sentence of the statement.
    first: String,
    /// Whether it has only a few words.
    pub is_short: bool,
}

/// Returns the replies that contain an answer, without those that are empty, decline, or briefly state no decision.
pub fn heads<'a>(replies: &[&'a str]) -> Vec<Head<'a>> {
    replies.iter().filter_map(|reply| head(reply)).collect()
}

/// What a reply in a fence or between backticks says about a question of yes and no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fenced {
    /// Yes or no as one word.
    Side(bool),
    /// Its contents, which are no code, without the fence.
    Text(String),
}

/// Returns what a reply says that is nothing but a fence or a span of code. `None` if there is more, or it is an object
/// of JSON.
///
/// # Errors
/// If the contents are code: a program or a formula answers no question of yes and no.
pub fn side_in_code(reply: &str) -> Result<Option<Fenced>, Unread> {
    const YES: &str = "yes true ja wahr oui vrai sí si verdadero 是 对";
    const NO: &str = "no false nein falsch non faux falso 否 不是 错";
    let text = prose::without_thoughts(reply);
    let text = text.trim();
    let Some(inner) = enclosed(text) else {
        let is_code = code::has_marks(text) && text.starts_with('=') || code::is_program(text);
        // `Yes(probably)`, but not `=SI(A1;1;0)`
        let is_formula = is_code && (text.starts_with('=') || asked::first_side(text).is_none());
        return match is_formula {
            true => Err(Unread::Missing),
            false => Ok(None),
        };
    };
    if serde_json::from_str::<serde_json::Value>(inner).is_ok_and(|value| value.is_object()) {
        return Ok(None);
    }
    let word = inner.trim_end_matches(['.', '!', ';', '。']).to_lowercase();
    let word = word.trim_matches(['"', '\'', '*']).trim_end_matches('.');
    match (has(YES, word), has(NO, word)) {
        (true, _) => Ok(Some(Fenced::Side(true))),
        (_, true) => Ok(Some(Fenced::Side(false))),
        _ if is_written(inner) => Ok(Some(Fenced::Text(inner.to_owned()))),
        _ => Err(Unread::Missing),
    }
}

/// Returns whether the contents of a fence are written for people: they have a label such as `ANSWER:`, begin with yes or
/// no as a statement does, or are a sentence. Anything else is a command or a program.
fn is_written(text: &str) -> bool {
    const SIDES: &str =
        "yes yeah yep no nope ja jein nein doch oui non sí si 是 对 否 不是 不 correct richtig";
    // Words of sentences that programs and commands hardly have.
    const SAYS: &str = "is isn't it's are aren't should shouldn't would will won't can can't cannot must does doesn't depends because \
         ist sind soll sollte kann es nicht weil hängt est n'est c'est sont faut peut parce es está son puede depende porque debe";
    let label = |line: &str| {
        let name = line.trim_start_matches(['*', '#', '-', '_', '>', ' ']);
        let (name, value) = name.split_once([':', '：']).unwrap_or_default();
        let value = value.trim_matches(['*', '_', ' ']);
        prose::is_label(name.trim_matches(['*', '_', ' '])) && !value.ends_with(['{', ','])
    };
    if text.lines().any(label) {
        return true;
    }
    let first = text.split(|c: char| !c.is_alphanumeric()).next();
    let first = first.unwrap_or_default();
    // `Yes, it is`, but `yes | cp a b`, `no shutdown`
    let after = text[first.len()..].trim_start_matches(['*', '"']);
    let states = after.starts_with([',', '.', ';', '!', ':', '，', '。', '；', '！'])
        || [" - ", " – ", " — ", "—"]
            .iter()
            .any(|dash| after.starts_with(dash));
    if states && has(SIDES, &first.to_lowercase()) {
        return true;
    }
    if text.chars().any(is_han) {
        return !code::has_marks(text) && !code::is_program(text);
    }
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '.' | ';' | ':'));
    let says = words
        .into_iter()
        .any(|w| has(SAYS, &w.to_lowercase().replace('’', "'")));
    let is_assigned = text.contains(['=', '{', '}', '$', '|', '<', '`', '\\']);
    says && !is_assigned && !code::has_marks(text) && !code::is_program(text)
}

/// Returns the contents of a text that is one block or one span of code.
fn enclosed(text: &str) -> Option<&str> {
    if let Some(block) = text.strip_prefix("```") {
        let inner = block.strip_suffix("```")?;
        // The language of the block.
        let inner = match inner.split_once('\n') {
            Some((tag, code)) if !tag.trim().contains(' ') => code,
            _ => inner,
        };
        return (!inner.contains("```")).then(|| inner.trim());
    }
    let span = text.strip_prefix('`')?.strip_suffix('`')?;
    (!span.contains(['`', '\n'])).then(|| span.trim())
}

fn head(reply: &str) -> Option<Head<'_>> {
    let whole = match super::read(&Wanted::Short, reply) {
        Ok((Answer::Text(text), _)) => text,
        Err(Unread::Empty | Unread::Refused) => return None,
        _ => {
            let text = prose::without_thoughts(reply);
            let lines = text.lines().filter(|l| !prose::is_about_confidence(l));
            lines.collect::<Vec<_>>().join("\n").trim().to_owned()
        }
    };
    let mut whole = whole;
    whole.truncate(whole.floor_char_boundary(WHOLE_BYTES_MAX));
    if !whole.chars().any(char::is_alphanumeric) {
        return None;
    }
    let words = whole.split_whitespace().count();
    let first = match words <= BARE_WORDS_MAX {
        true => whole.clone(),
        false => prose::sentences(&whole).into_iter().next()?,
    };
    let first = prose::bare(&first);
    let is_short = words <= SHORT_WORDS_MAX && !whole.contains('\n');
    if is_short && cues::has(&whole.to_lowercase(), cues::UNDECIDED) {
        return None;
    }
    Some(Head {
        reply,
        whole,
        first,
        is_short,
    })
}

impl Head<'_> {
    /// Returns whether its first words say yes or no.
    pub fn is_side(&self, question: &str) -> bool {
        // `=SI(B2>5;…)` is not a yes.
        if self.is_code() {
            return false;
        }
        let clause = clause(&self.first);
        asked::lettered_side(question, &clause).is_some()
            || asked::first_side(&clause).is_some()
            || asked::chinese_side(&self.first).is_some()
            || asked::echoed_side(question, &self.first).is_some()
    }

    /// Returns whether it is a number with a unit, or a calculation with its result.
    pub fn is_number(&self) -> bool {
        let read = super::read(&Wanted::Number, &self.first).is_ok();
        if code::has_marks(&self.first) {
            return false;
        }
        // A regular expression or a list of numbers.
        if self.first.contains(['\\', '{', '[', '^'].as_slice()) && !self.first.contains('=')
            || !self.first.contains(['=', '≈']) && self.is_several()
        {
            return false;
        }
        let words = alphabetic(&self.first);
        let han = self.first.chars().filter(|c| is_han(*c)).count();
        read && words <= 3 && han <= 6 && !self.has_month()
    }

    /// Returns whether it is a date, or a year if the question asks for one.
    pub fn is_date(&self, question: &str, is_likely: bool) -> bool {
        let words = alphabetic(&self.first);
        if words > 8 {
            return false;
        }
        if self.has_month() || date::weekday(&self.first).is_some() && words <= 2 {
            return true;
        }
        let year = date::only_year(&self.first).is_some() && words <= 4;
        let in_digits = date::only(&asked::with_days_first(&self.first, question)).is_some();
        (is_likely || asks_time(question)) && (year || in_digits)
    }

    /// Returns whether it names a month.
    pub fn has_month(&self) -> bool {
        date::only(&self.first).is_some_and(|key| key.len() > 4)
    }

    /// Returns whether it contains several short items.
    fn is_several(&self) -> bool {
        let Some(items) = lists::in_order(&self.whole) else {
            return false;
        };
        let short = |item: &String| match item.chars().any(is_han) {
            true => item.chars().count() <= THING_HAN_MAX,
            false => item.split(' ').count() <= THING_WORDS_MAX,
        };
        items.len() >= 2 && items.iter().all(short)
    }

    /// Returns whether it is a list of several items and nothing else.
    pub fn is_list(&self) -> bool {
        self.is_several() && !self.is_code()
    }

    /// Returns the number of items it names.
    pub fn count(&self) -> usize {
        lists::in_order(&self.whole).map_or(0, |items| items.len())
    }

    /// Returns whether it is code: marked as code, or a line that is not prose.
    pub fn is_code(&self) -> bool {
        let text = self.reply.trim();
        if let Some((before, _)) = text.split_once("```") {
            // Behind more words than `You can use the following command:`, it is an example of what they say.
            return before.split_whitespace().count() <= LEAD_WORDS_MAX;
        }
        if text.starts_with('`') && text.matches('`').count() == 2 {
            return true;
        }
        let whole = self.whole.trim_matches('`');
        let first = whole.split_whitespace().next().unwrap_or_default();
        const COMMANDS: &str = "rm mv cp ls chmod chown mkdir rmdir scp sudo apt apt-get brew lsof netstat df du ps wget unzip tar dig robocopy";
        let runs =
            (has(TOOLS, first) || has(COMMANDS, first)) && whole.split_whitespace().count() > 1;
        let marked = runs || code::has_marks(whole) || code::is_program(whole);
        marked && !whole.ends_with(['.', '!'])
    }

    /// Returns whether it names one of these options.
    pub fn names_one(&self, options: &[String]) -> bool {
        if self.lists_given(&options.join("\n")) || self.is_code() {
            return false;
        }
        let wanted = Wanted::Option(Options::new(options));
        let clause = clause(&self.first);
        let short = clause.split_whitespace().count() <= THING_WORDS_MAX + 2;
        short
            && (super::read(&wanted, &clause).is_ok()
                || own_words::of(options, "", &clause).is_some())
    }

    /// Returns whether it lists items named in a text.
    fn lists_given(&self, given: &str) -> bool {
        let given = given.to_lowercase();
        let items = lists::in_order(&self.whole).unwrap_or_default();
        self.is_several() && items.iter().all(|item| given.contains(item.as_str()))
    }

    /// Returns whether the numbers have several units, so that a bare number is ambiguous: 3 days and 3 weeks, 90 min
    /// and 2 h.
    pub fn mix_units(heads: &[Head<'_>]) -> bool {
        let mut units = heads.iter().filter_map(Head::unit);
        let first = units.next();
        units.any(|unit| Some(unit) != first)
    }

    /// Returns the unit of its only number. The bare form may lack the currency sign.
    fn unit(&self) -> Option<&'static str> {
        let whole = self.is_short.then_some(self.reply);
        Self::unit_in(&self.first).or_else(|| whole.and_then(Self::unit_in))
    }

    fn unit_in(text: &str) -> Option<&'static str> {
        let all = number::numbers(text, Language::of(text));
        let [one] = all.as_slice() else { return None };
        let digits = text.get(one.start..one.end)?;
        let glued = digits.trim_start_matches(|c: char| !c.is_alphabetic());
        let behind = text.get(one.end..).unwrap_or_default();
        let before = text.get(..one.start).unwrap_or_default();
        let before = before.split_whitespace().next_back().unwrap_or_default();
        let currency = before.trim_end_matches(['-', '−']);
        let currency = currency.ends_with(['$', '€', '£', '¥']);
        units::name(glued)
            .or_else(|| units::name(behind))
            .or_else(|| currency.then(|| units::name(before)).flatten())
    }
}

/// Returns whether the lists are ordered: the question asks for an order, an answer marks one, or answers differ only
/// in it.
pub fn are_orders(question: &str, heads: &[Head<'_>]) -> bool {
    const MARKS: [&str; 8] = ["→", "->", " > ", " < ", "≻", "➜", ">", "<"];
    let lists: Vec<Vec<String>> = heads
        .iter()
        .filter(|h| h.is_list())
        .filter_map(|h| lists::in_order(&h.whole))
        .collect();
    let sorted = |list: &Vec<String>| {
        let mut sorted = list.clone();
        sorted.sort();
        sorted
    };
    let marked = heads
        .iter()
        .any(|h| MARKS.iter().any(|m| h.whole.contains(m)));
    // The items to be ordered, as given in the question.
    let lower = question.to_lowercase();
    let given = |list: &Vec<String>| {
        list.iter()
            .filter(|item| lower.contains(item.as_str()))
            .count()
            >= 2
    };
    let moved = lists.iter().enumerate().any(|(at, one)| {
        lists[at + 1..]
            .iter()
            .any(|other| one != other && sorted(one) == sorted(other))
    });
    any_in(IN_ORDER, &lower) || marked || moved && lists.iter().any(given)
}

/// Returns the items of a question named by short answers: `spaces` and `tabs` for `tabs v spaces py`. Keeps the
/// longest form of each.
pub fn named(question: &str, heads: &[Head<'_>]) -> Vec<String> {
    let asked = tokens(question);
    let mut out: Vec<String> = Vec::new();
    for head in heads.iter().filter(|h| !h.lists_given(question)) {
        let clause = clause(&head.first);
        let Some(name) = name_in(question, &asked, &clause) else {
            continue;
        };
        let low = name.to_lowercase();
        let holds = |other: &String| other.to_lowercase().contains(&low);
        if out.iter().any(holds) {
            continue;
        }
        out.retain(|other| !low.contains(&other.to_lowercase()));
        out.push(name);
    }
    // Only one name: add the other items of the question.
    if let [one] = out.as_slice() {
        let given = alternatives::of_text(question);
        let low = one.to_lowercase();
        if given.iter().any(|other| other.to_lowercase() == low) {
            return given;
        }
    }
    out
}

/// Returns the words of an answer if they all appear in the question in the same order.
fn name_in(question: &str, asked: &[String], clause: &str) -> Option<String> {
    const LEADS: [&str; 8] = ["我选", "建议", "选择", "选", "用", "先", "听", "坐"];
    let lead = LEADS.iter().find_map(|lead| clause.strip_prefix(lead));
    let clause = lead.unwrap_or(clause).trim();
    if clause.chars().any(is_han) {
        let length = clause.chars().count();
        let fits = (2..=THING_HAN_MAX).contains(&length) && question.contains(clause);
        return fits.then(|| clause.to_owned());
    }
    let words = tokens(clause);
    if words.is_empty() || words.len() > THING_WORDS_MAX {
        return None;
    }
    let found = asked.windows(words.len()).any(|here| here == words);
    found.then(|| {
        clause
            .trim()
            .trim_matches(['`', '"', '*', '.', '„', '“', '”', '«', '»'])
            .to_owned()
    })
}

/// Returns the words that name something, in lower case.
fn tokens(text: &str) -> Vec<String> {
    const EMPTY: &str = "the a an of to in on at der die das den dem ein eine zu im am le la les l un une des du à au en el los las una unos del al";
    text.split(|c: char| is_han(c) || !c.is_alphanumeric() && !matches!(c, '.' | '+' | '#' | '-'))
        .map(|word| word.trim_matches(['.', '-']).to_lowercase())
        .filter(|word| !word.is_empty() && !has(EMPTY, word))
        .collect()
}

/// Returns the first clause of a sentence.
fn clause(sentence: &str) -> String {
    let chars: Vec<(usize, char)> = sentence.char_indices().collect();
    let end = chars.iter().enumerate().find_map(|(at, (place, c))| {
        let next = chars.get(at + 1).map(|(_, c)| *c);
        let mark = matches!(
            c,
            ',' | ';' | ':' | '!' | '，' | '；' | '：' | '。' | '！' | '–' | '—' | '(' | '（'
        );
        let point = *c == '.' && next.is_none_or(char::is_whitespace);
        let within = next.is_some_and(|n| n.is_ascii_digit()) && matches!(c, ',' | ':');
        (at > 0 && (mark && !within || point)).then_some(*place)
    });
    sentence
        .get(..end.unwrap_or(sentence.len()))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Counts the words of two or more letters.
fn alphabetic(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words
        .filter(|w| {
            w.chars()
                .filter(|c| c.is_alphabetic() && !is_han(*c))
                .count()
                > 1
        })
        .count()
}

/// Returns whether a question mentions a day or a year.
fn asks_time(question: &str) -> bool {
    const TIME: &str = "year yr date day when since deadline eol released birth jahr datum tag wann seit frist année annee an date jour quand depuis échéance \
        año fecha día cuándo cuando desde plazo vence";
    let lower = question.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|word| has(TIME, word)) || any_in("年|哪天|几号|日期|什么时候|何时", &lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fence around an answer is still an answer: only its contents may be code.
    #[test]
    fn a_fence_is_read_by_its_contents() {
        use Fenced::{Side, Text};
        let text = |text: &str| Ok(Some(Text(text.to_owned())));
        let code = || Err(Unread::Missing);
        let rows: [(&str, Result<Option<Fenced>, Unread>); 27] = [
            ("yes", Ok(Some(Side(true)))),
            ("No.", Ok(Some(Side(false)))),
            ("\"yes\"", Ok(Some(Side(true)))),
            ("**No**", Ok(Some(Side(false)))),
            ("True", Ok(Some(Side(true)))),
            ("是。", Ok(Some(Side(true)))),
            (
                "ANSWER: yes\nCONFIDENCE: 0.9",
                text("ANSWER: yes\nCONFIDENCE: 0.9"),
            ),
            ("**Answer:** yes", text("**Answer:** yes")),
            ("Antwort: nein", text("Antwort: nein")),
            (
                "Yes, it is safe: SQLite locks the file.",
                text("Yes, it is safe: SQLite locks the file."),
            ),
            ("Yes, it is safe", text("Yes, it is safe")),
            ("No - it loses data", text("No - it loses data")),
            ("Nein, das ist falsch.", text("Nein, das ist falsch.")),
            ("It is not safe.", text("It is not safe.")),
            ("It depends on the load", text("It depends on the load")),
            ("{\"answer\": \"yes\"}", Ok(None)),
            ("cp a b", code()),
            ("git reset --hard HEAD~1", code()),
            ("yes | cp -r a b", code()),
            ("no shutdown", code()),
            ("=SI(B2>5;1;0)", code()),
            ("print('yes')", code()),
            ("return True", code()),
            ("let is = true;", code()),
            ("SELECT yes FROM votes", code()),
            ("def f(x):\n    return is_safe(x)", code()),
            ("if [ -f a ]; then echo yes; fi", code()),
        ];
        for (contents, read) in rows {
            for reply in [
                format!("```\n{contents}\n```"),
                format!("```markdown\n{contents}\n```"),
            ] {
                assert_eq!(side_in_code(&reply), read, "{reply}");
            }
            if !contents.contains('\n') {
                assert_eq!(side_in_code(&format!("`{contents}`")), read, "{contents}");
            }
        }
    }

    #[test]
    fn a_long_reply_is_kept_in_part() {
        for piece in ["word ", "é是 ", "1, ", "line\n"] {
            let reply = piece.repeat(100_000);
            let heads = heads(&[reply.as_str()]);
            let held = heads.iter().map(|head| head.whole.len()).max();
            assert!(
                held.is_some_and(|held| held <= WHOLE_BYTES_MAX),
                "{piece}: {held:?}"
            );
        }
    }
}
