//! Finds the verdict of a reply by its position and by the kind of sentence: a first sentence that is only an option, a
//! sentence in which the author chooses ("I pick"), or the option that is left after all others are explicitly ruled out.
//! The reasons around it may praise, fault and compare the other options; only another choice or a change of mind makes
//! the verdict uncertain.

use super::clauses::{self, Before, Clause, Form, Role};
use super::cues;
use super::language::is_han;
use super::options::{Mention, Options};
use super::prose::is_about_confidence;
use super::said::Said;
use super::spoken::{DEPENDS, Spoken, prepared};
use super::standing::{FILLERS, is_alone};
use super::verdict_words::{
    BETTER, BETWEEN, CHOOSES, CHOSEN, INFINITIVES, LEADS, LEAVES, MEMBERS, ONE, PROPOSES, SUPERIOR,
    SURE, TELLS, THAN, TIES, WITHDRAWS, WOULD,
};
use super::weigh;
use super::{gate_account, ordinals, voices, weights};

/// Maximum number of sentences of a reply that is read by its shape.
const SENTENCES_MAX: usize = 60;

/// A sentence that commits its author to an option.
#[derive(Clone, Copy, Debug)]
struct Commitment {
    item: usize,
    /// Index of the sentence.
    place: usize,
    /// Whether the author chooses, rather than only calls it the best.
    own: bool,
}

/// Returns the option to which the shape of a reply commits its author; several if it adds an alternative.
pub(super) fn of(text: &str, options: &Options) -> Said<usize> {
    let mut said = prepared(text, options);
    if said.len() > SENTENCES_MAX || options.is_yes_no() {
        return Said::Nothing;
    }
    said.retain(|s| !is_about_confidence(&s.lower));
    let reply = Reply {
        said: &said,
        options,
    };
    match reply.chosen().or_else(|| reply.left()) {
        Some(item) => Said::Words(item),
        // The merits of each, behind words that no choice is made.
        None if reply.declines() => Said::Several,
        None if reply.goes_on_with_or() => Said::Several,
        None => Said::Nothing,
    }
}

struct Reply<'a> {
    said: &'a [Spoken],
    options: &'a Options,
}

impl Reply<'_> {
    /// Returns whether the first sentence makes no choice, and no later one does.
    fn declines(&self) -> bool {
        let first = self.said.first();
        first.is_some_and(|s| cues::has(&s.lower, cues::CANNOT_CHOOSE) && s.mentions.is_empty())
            && self.commitments().is_empty()
    }

    /// Returns whether the sentence behind a verdict adds an alternative: `Monday. Or Friday.`
    fn goes_on_with_or(&self) -> bool {
        let mut pairs = self.said.windows(2);
        pairs.any(|pair| {
            self.stated(&pair[0]).is_some()
                && begins_or(&pair[1].lower)
                && !pair[1].mentions.is_empty()
        })
    }

    /// Returns the option of the last commitments, if nothing takes them back. A choice outweighs praise.
    fn chosen(&self) -> Option<usize> {
        let mut all = self.commitments();
        if all.iter().any(|c| c.own) {
            all.retain(|c| c.own);
        }
        let last = all.last()?;
        let others = all.iter().filter(|c| c.item != last.item);
        let other = others.map(|c| c.place).max();
        let first = all.iter().find(|c| other.is_none_or(|o| c.place > o))?;
        // A change of mind leads from one to the other.
        if let Some(other) = other
            && !self.said[other..=first.place].iter().any(turns)
        {
            return None;
        }
        let rest = &self.said[first.place + 1..];
        (!rest.iter().any(|s| self.takes_back(s, last.item))).then_some(last.item)
    }

    fn commitments(&self) -> Vec<Commitment> {
        let opening = self.said.iter().position(|s| !is_opening(s));
        let mut all = Vec::new();
        for (place, said) in self.said.iter().enumerate() {
            let stated = || {
                (opening == Some(place))
                    .then(|| self.stated(said))
                    .flatten()
            };
            let own = self.picked(said).or_else(stated);
            let item = own.or_else(|| self.praised(said));
            let own = own.is_some();
            all.extend(item.map(|item| Commitment { item, place, own }));
        }
        all
    }

    /// Returns the option if a sentence is nothing but an option, words of assurance, a purpose and a reason. The part
    /// after a semicolon may fault other options.
    fn stated(&self, said: &Spoken) -> Option<usize> {
        let first = self.heads(said)?;
        let clauses = &said.sentence.clauses;
        let apart = clauses.iter().position(|c| c.before == Before::Semicolon);
        let far = apart.map_or(said.sentence.text.len(), |at| clauses[at].start);
        let mut others = said.mentions.iter().filter(|m| m.start >= far);
        let plain = others.all(|m| m.item == first.item && !m.rejected || !self.contends(said, m));
        plain.then_some(first.item)
    }

    /// Returns the option if the part of a sentence before its semicolon is nothing but an option.
    fn heads<'a>(&self, said: &'a Spoken) -> Option<&'a Mention> {
        let sentence = &said.sentence;
        let first = said.mentions.first()?;
        let headed = matches!(
            sentence.form,
            Some(Form::Heading | Form::Row | Form::Bullet | Form::Numbered(_))
        );
        let bold =
            sentence.form == Some(Form::Bold) && !sentence.text.contains(['.', '!', '。', '！']);
        if headed || bold || first.rejected || sentence.asks() {
            return None;
        }
        // `The colleague who wants to raise the price.`
        let head = said.lower.get(..first.start)?;
        let own = said.mentions.iter().all(|m| m.item == first.item);
        if own && cues::has(head, MEMBERS) && cues::has(head, PROPOSES) && is_gap(head, true) {
            return Some(first);
        }
        if first.partial {
            return None;
        }
        // `Sans hésiter, Python : l'équipe le connaît.`
        let sure = |c: &&Clause| {
            let text = said.lower.get(c.start..c.end);
            c.end <= first.start && text.is_some_and(|text| self.is_sure(text))
        };
        let led = sentence.clauses.iter().take_while(sure).count();
        let (own, rest) = sentence.clauses[led..].split_first()?;
        let alone = first.start < own.end
            && (is_alone(sentence, led, &said.mentions, first, self.options)
                || self.is_sure(said.lower.get(own.start..first.start.max(own.start))?)
                    && self.is_sure(said.lower.get(first.end..own.end)?));
        let named = |clause: &Clause| {
            let mut all = said.mentions.iter();
            all.any(|m| (clause.start..clause.end).contains(&m.start))
        };
        let near = rest.iter().take_while(|c| c.before != Before::Semicolon);
        let explained = rest
            .first()
            .is_some_and(|c| led > 0 && c.before == Before::Colon);
        let mut plain = near.map(|clause| {
            clause.role == Role::Reason
                || explained && !named(clause) && !gate_account::is_negative(&clause.lower)
                || begins_step(&clause.lower)
                || said
                    .lower
                    .get(clause.start..clause.end)
                    .is_some_and(|text| self.is_sure(text))
                || clause.before == Before::Comma && begins_purpose(&clause.lower) && !named(clause)
        });
        (alone && plain.all(|plain| plain)).then_some(first)
    }

    /// Returns whether a text consists of small words and words of assurance.
    fn is_sure(&self, lower: &str) -> bool {
        let mut words = lower
            .split(|c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|w| !w.is_empty());
        words.all(|w| SURE.contains(&w) || FILLERS.contains(&w))
    }

    /// Returns the option that the author chooses by a verb of choosing.
    fn picked(&self, said: &Spoken) -> Option<usize> {
        let sentence = &said.sentence;
        if said.mentions.is_empty()
            || sentence.asks()
            || said.lower.len() != sentence.text.len()
            || cues::has(&said.lower, DEPENDS)
        {
            return None;
        }
        let behind = cues::places(&said.lower, CHOOSES).filter_map(|(start, end)| {
            let mention = said.mentions.iter().find(|m| m.start >= end)?;
            let gap = said.lower.get(end..mention.start)?;
            self.chooses(said, start, gap, mention, CHOOSES)
        });
        /// German verbs at the end of a clause that choose nothing.
        const AVOIDS: [&str; 16] = [
            "ablehnen",
            "vermeiden",
            "verwerfen",
            "ausschließen",
            "streichen",
            "lassen",
            "weglassen",
            "meiden",
            "ersetzen",
            "bezweifeln",
            "vergleichen",
            "prüfen",
            "ansehen",
            "sagen",
            "erwarten",
            "abraten",
        ];
        /// Maximum number of words between the verbs beside the option.
        const GAP_WORDS_MAX: usize = 4;
        // `Ich würde Tee nehmen.`
        let split = cues::places(&said.lower, WOULD).filter_map(|(start, end)| {
            let mention = said.mentions.iter().find(|m| m.start >= end)?;
            let gap = said.lower.get(end..mention.start)?;
            let behind = said.lower.get(mention.end..)?;
            let verb = behind
                .split(|c: char| !c.is_alphanumeric())
                .find(|w| !w.is_empty())?;
            let clause = &sentence.clauses[sentence.clause_at(mention.start)];
            let ends = said.lower.get(mention.end..clause.end)?.split_whitespace();
            // `Ich würde hier auf QUIC setzen.`
            let last = ends.count() == 1 && verb.ends_with("en") && !AVOIDS.contains(&verb);
            let near = gap.split_whitespace().count() <= GAP_WORDS_MAX
                && !gap.contains([',', '.', ';', ':', '?'])
                && !gate_account::is_negative(gap);
            let gap = if last && near { "" } else { gap };
            self.chooses(said, start, gap, mention, WOULD)
                .filter(|_| INFINITIVES.contains(&verb) || last)
        });
        // `Take tea.`, `So: use tea.`
        let told = cues::places(&said.lower, TELLS).filter_map(|(start, end)| {
            let clause = &sentence.clauses[sentence.clause_at(start)];
            let head = said.lower.get(clause.start..start)?;
            let mention = said.mentions.iter().find(|m| m.start >= end)?;
            let gap = said.lower.get(end..mention.start)?;
            let opens = self.is_sure(head) && clause.before != Before::Word;
            self.chooses(said, start, gap, mention, TELLS)
                .filter(|_| opens)
        });
        let before = cues::places(&said.lower, CHOSEN).filter_map(|(start, _)| {
            let mention = said.mentions.iter().rev().find(|m| m.end <= start)?;
            let gap = said.lower.get(mention.end..start)?;
            let near = gap.chars().all(|c| !c.is_alphanumeric());
            self.chooses(said, start, gap, mention, CHOSEN)
                .filter(|_| near)
        });
        // `I'd stay in Kyoto.`, `Je mettrais du bois.`
        let would = said.mentions.iter().filter_map(|mention| {
            let clause = &sentence.clauses[sentence.clause_at(mention.start)];
            let head = said.lower.get(clause.start..mention.start)?;
            let chooses = weights::ends_in_own_conditional(head) || chooses_in_han(head);
            let own = chooses && !gate_account::is_negative(head);
            own.then(|| self.chooses(said, clause.start, "", mention, &[]))?
        });
        let mut all = behind.chain(before).chain(split).chain(told).chain(would);
        let item = all.next()?;
        all.all(|other| other == item).then_some(item)
    }

    /// Returns the option that a sentence calls the best or the only right option, or says that everything argues for.
    fn praised(&self, said: &Spoken) -> Option<usize> {
        /// Maximum number of words between the praise and the option.
        const WORDS_MAX: usize = 3;
        let sentence = &said.sentence;
        if sentence.asks()
            || said.lower.len() != sentence.text.len()
            || cues::has(&said.lower, DEPENDS)
            || sentence.form == Some(Form::Row)
        {
            return None;
        }
        let mut items = cues::places(&said.lower, SUPERIOR).filter_map(|(start, end)| {
            let at = sentence.clause_at(start);
            let clause = &sentence.clauses[at];
            // `Leipzig passt aber am besten`: a word begins a clause.
            let joined = at.checked_sub(1).filter(|_| clause.before == Before::Word);
            let from = joined.map_or(clause.start, |before| sentence.clauses[before].start);
            let near = |m: &&Mention| {
                let gap = match m.start >= end {
                    true => said.lower.get(end..m.start),
                    false => said.lower.get(m.end..start),
                };
                let few = |gap: &str| match gap.chars().any(is_han) {
                    true => gap.chars().count() <= 2 * WORDS_MAX,
                    false => gap.split_whitespace().count() <= WORDS_MAX,
                };
                (from..clause.end).contains(&m.start) && gap.is_some_and(few)
            };
            let mention = said.mentions.iter().find(near)?;
            let gap = said.lower.get(end..mention.start).unwrap_or_default();
            let small = gap.is_empty() || is_gap(gap, false);
            let verb = start.min(mention.start);
            self.chooses(said, verb, "", mention, SUPERIOR)
                .filter(|_| small && !weights::is_hypothetical(&clause.lower))
        });
        let item = items.next()?;
        items.all(|other| other == item).then_some(item)
    }

    /// Returns the option of a mention if a verb of choosing at `start`, with only small words in the gap, chooses it.
    fn chooses(
        &self,
        said: &Spoken,
        start: usize,
        gap: &str,
        mention: &Mention,
        verbs: &'static [&'static str],
    ) -> Option<usize> {
        let sentence = &said.sentence;
        let member = cues::has(gap, MEMBERS) || gap.contains("同事") || gap.contains('说');
        let verb = sentence.clause_at(start);
        let clause = &sentence.clauses[verb];
        let held = matches!(
            clause.role,
            Role::Claim | Role::Conclusion | Role::Contrast | Role::Reason
        );
        let conditional = sentence.clauses[verb + 1..]
            .iter()
            .any(|c| c.role == Role::Condition || c.role == Role::Otherwise);
        let reserved = !member && voices::is_reserved(sentence, verb, &said.mentions);
        let quoted = said.lower[..start].contains(['"', '“', '„', '«', '「']);
        let head = &said.lower[clause.start.min(start)..];
        let negated = weights::is_negated(head, verbs);
        let fits = held
            && !mention.rejected
            && !conditional
            && !reserved
            && !quoted
            && !negated
            && is_gap(gap, member)
            && !(mention.partial && gap.split_whitespace().count() > 3 && !member);
        let clear = fits
            && !said
                .mentions
                .iter()
                .any(|m| self.is_beside(said, start, mention, m));
        clear.then_some(mention.item)
    }

    /// Returns whether a sentence that chooses one option holds another one that may be chosen too.
    fn is_beside(&self, said: &Spoken, verb: usize, own: &Mention, other: &Mention) -> bool {
        const OVER: &[&str] = &[
            "over",
            "to",
            "than",
            "before",
            "rather than",
            "instead of",
            "not",
            "vor",
            "statt",
            "gegenüber",
            "als",
            "nicht",
            "à",
            "au",
            "plutôt que",
            "devant",
            "pas",
            "a",
            "antes que",
            "frente a",
            "no",
            "而不是",
            "不选",
            "而非",
            "不是",
        ];
        if other.item == own.item || other.rejected {
            return false;
        }
        let sentence = &said.sentence;
        let at = sentence.clause_at(other.start);
        let role = sentence.clauses[at].role;
        if matches!(role, Role::Reason | Role::Concession | Role::Report) {
            return false;
        }
        if other.start < verb {
            return self.contends(said, other);
        }
        if other.start < own.start {
            return true;
        }
        let between = said.lower.get(own.end..other.start).unwrap_or_default();
        let over = between.split_whitespace().count() <= 4 && cues::has(between, OVER);
        let from = sentence.clause_at(own.start);
        let explains = sentence.clauses[from + 1..=at.max(from)]
            .iter()
            .any(|c| c.before == Before::Colon || c.role == Role::Reason);
        !over && (!explains || self.contends(said, other))
    }

    /// Returns whether a later sentence takes a choice back, or commits to another option.
    fn takes_back(&self, said: &Spoken, item: usize) -> bool {
        let sentence = &said.sentence;
        let lower = &said.lower;
        let other = |m: &&Mention| m.item != item;
        let open = turns(said)
            || cues::has(lower, cues::CANNOT_CHOOSE)
            || cues::has(lower, DEPENDS)
            || cues::has(lower, TIES)
            || said.mentions.is_empty()
                && (voices::retracts(lower) || weigh::chooses_another(sentence, lower));
        open || said.mentions.iter().any(|m| m.item == item && m.rejected)
            || sentence.asks() && said.mentions.iter().any(|m| other(&m))
            || said
                .mentions
                .iter()
                .filter(other)
                .any(|m| self.contends(said, m))
    }

    /// Returns whether a mention commits to its option, or calls it better.
    fn contends(&self, said: &Spoken, mention: &Mention) -> bool {
        let sentence = &said.sentence;
        let at = sentence.clause_at(mention.start);
        let clause = &sentence.clauses[at];
        if mention.rejected
            || matches!(
                clause.role,
                Role::Condition | Role::Concession | Role::Report
            )
        {
            return false;
        }
        let head = said
            .lower
            .get(clause.start..mention.start)
            .unwrap_or_default();
        let denied = gate_account::is_negative(head);
        let compared = cues::places(head, THAN).any(|(_, end)| {
            let between = head.get(end..).unwrap_or_default();
            between.split_whitespace().count() <= 2
        });
        if weights::is_hypothetical(&clause.lower) || denied || compared {
            return false;
        }
        let alone = is_alone(sentence, at, &said.mentions, mention, self.options)
            && sentence.clauses.len() == 1;
        let better = cues::has(&clause.lower, BETTER)
            && !weights::is_negated(&clause.lower, BETTER)
            && !sentence.has(Role::Condition);
        let only = || !said.mentions.iter().any(|m| m.item != mention.item);
        let turned = clause.role == Role::Contrast
            && !cues::has(&clause.lower, cues::FAULTS)
            && !gate_account::is_negative(&clause.lower);
        alone
            || better
            || begins_or(&said.lower)
            || self.heads(said).is_some_and(|m| m.item == mention.item)
            || (turned || clause.role == Role::Conclusion) && only()
    }

    /// Returns the option that is left after an elimination: the option that the sentence names, the option at the position
    /// that it gives, or the only option that was not named before.
    fn left(&self) -> Option<usize> {
        let (place, said) = self
            .said
            .iter()
            .enumerate()
            .rev()
            .find(|(_, s)| cues::has(&s.lower, LEAVES))?;
        let sentence = &said.sentence;
        let (start, end) =
            cues::places(&said.lower, LEAVES).max_by_key(|(start, end)| (end - start, *start))?;
        let clause = &sentence.clauses[sentence.clause_at(start)];
        let claims = matches!(clause.role, Role::Claim | Role::Conclusion | Role::Contrast);
        if place == 0 && sentence.clauses.len() == 1
            || sentence.asks()
            || !claims
            || weights::is_negated(&clause.lower, LEAVES)
        {
            return None;
        }
        // Not `Tea remains a possibility for later.`
        let head = said.lower.get(clause.start..start)?;
        let mut words = head.split(|c: char| !c.is_alphanumeric() && c != '\'');
        if !words.all(|w| w.is_empty() || LEADS.contains(&w)) {
            return None;
        }
        let rest = said.lower.get(end..)?;
        let named = |item: usize| {
            let mut before = self.said[..place].iter().flat_map(|s| &s.mentions);
            before.any(|m| m.item == item)
        };
        let others_named =
            |item: usize| (0..self.options.count()).all(|other| other == item || named(other));
        let ends: Vec<usize> = said
            .mentions
            .iter()
            .filter(|m| m.start >= end && !m.rejected)
            .map(|m| m.item)
            .collect();
        let item = match ends.as_slice() {
            [one, more @ ..] if more.iter().all(|m| m == one) => *one,
            [_, ..] => return None,
            [] => match ordinals::named(rest, self.options) {
                Some(item) => item,
                None => {
                    let mut unnamed = (0..self.options.count()).filter(|item| !named(*item));
                    let item = unnamed.next().filter(|_| unnamed.next().is_none())?;
                    let led = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
                    let one = ONE.iter().any(|w| clauses::begins(led, w));
                    let told = sentence
                        .clauses
                        .iter()
                        .any(|c| c.start > start && c.before == Before::Colon);
                    if !one || told {
                        return None;
                    }
                    item
                }
            },
        };
        let later = &self.said[place + 1..];
        (others_named(item) && !later.iter().any(|s| self.takes_back(s, item))).then_some(item)
    }
}

/// Returns whether a text ends in a Chinese verb of choosing whose subject is the author: `我个人更推荐`.
fn chooses_in_han(head: &str) -> bool {
    const VERBS: [&str; 8] = ["推荐", "建议", "倾向于", "选择", "选", "支持", "投", "会用"];
    /// Maximum number of characters between the subject and the verb.
    const GAP_MAX: usize = 4;
    let before = VERBS.iter().find_map(|verb| head.strip_suffix(verb));
    let gap = before.and_then(|text| Some(&text[text.rfind('我')? + '我'.len_utf8()..]));
    gap.is_some_and(|gap| gap.chars().count() <= GAP_MAX && gap.chars().all(is_han))
}

/// Returns whether a sentence announces a change of mind, or withdraws an earlier statement.
fn turns(said: &Spoken) -> bool {
    cues::has(&said.lower, WITHDRAWS) || cues::has(&said.lower, cues::TURNS)
}

/// Returns whether a sentence only opens a reply: a greeting, or the question again.
fn is_opening(said: &Spoken) -> bool {
    const WORDS_MAX: usize = 5;
    let text = said.sentence.text.trim_end();
    let short = text.split_whitespace().count() <= WORDS_MAX;
    said.mentions.is_empty() && (said.sentence.asks() || short && text.ends_with(['!', '！']))
}

/// Returns whether there are only small words between a verb of choosing and an option. With `member`, words for a
/// member or its proposal count as small too.
fn is_gap(gap: &str, member: bool) -> bool {
    /// Maximum number of words.
    const WORDS_MAX: usize = 8;
    /// Maximum number of Chinese characters.
    const HAN_MAX: usize = 8;
    if gap.chars().any(is_han) {
        let denies = gap.contains(['不', '没', '非', '。', '？']);
        return !denies && gap.chars().filter(|c| is_han(*c)).count() <= HAN_MAX;
    }
    let mut words = gap
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty());
    let small =
        |w: &str| BETWEEN.contains(&w) || member && (MEMBERS.contains(&w) || PROPOSES.contains(&w));
    gap.split_whitespace().count() <= WORDS_MAX
        && !gap.contains(['.', ';', '?', '!'])
        && words.all(small)
}

/// Returns whether a clause begins with a later step: `, then publish`.
fn begins_step(lower: &str) -> bool {
    const THEN: [&str; 13] = [
        "then", "and then", "later", "puis", "ensuite", "dann", "danach", "und dann", "luego",
        "después", "y luego", "然后", "再",
    ];
    THEN.iter().any(|w| clauses::begins(lower, w))
}

fn begins_or(lower: &str) -> bool {
    const OR: [&str; 6] = ["or", "oder", "ou", "o", "或", "或者"];
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    OR.iter().any(|w| clauses::begins(bare, w))
}

/// Returns whether a clause begins with what an option is for: `for a static site`.
fn begins_purpose(lower: &str) -> bool {
    const FOR: [&str; 5] = ["for", "für", "pour", "para", "por"];
    FOR.iter().any(|w| clauses::begins(lower, w))
}
