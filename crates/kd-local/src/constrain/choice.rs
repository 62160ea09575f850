//! Detects when the next token chooses among labels, and reads their probabilities from the logits.
//!
//! Input: the JSON written so far and the allowed next tokens. Output: the tokens of each label. The confidence that a
//! model writes next to its vote ("confidence": 100) means little; the probability it assigned to each label when
//! choosing comes at no cost.

use crate::tokenizer::Tokenizer;

/// A choice among labels made by the next token.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    labels: Vec<String>,
    /// The allowed tokens, each with the labels (by index) that it may lead to; at least one.
    tokens: Vec<(u32, Vec<usize>)>,
}

impl Choice {
    /// Returns the labels, in the given order.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Returns the probability of each label, normalized over the labels: from the model's logits at temperature 1,
    /// over the tokens that the schema allows.
    ///
    /// A token that begins several labels (`a` of `agree` and `abstain`) is divided among them in proportion to their
    /// other tokens, or evenly if they have none. `logits` has one number per token id, before any mask, penalty or
    /// temperature.
    pub fn probabilities(&self, logits: &[f32]) -> Vec<f64> {
        let logit = |id: u32| match logits.get(id as usize) {
            Some(&x) if !x.is_nan() => f64::from(x),
            _ => f64::NEG_INFINITY,
        };
        let most = self
            .tokens
            .iter()
            .map(|(id, _)| logit(*id))
            .fold(f64::NEG_INFINITY, f64::max);
        let weight = |id: u32| {
            if most.is_finite() {
                (logit(id) - most).exp()
            } else {
                1.0
            }
        };

        let mut own = vec![0.0; self.labels.len()];
        for (id, leads_to) in &self.tokens {
            if let [one] = leads_to[..] {
                own[one] += weight(*id);
            }
        }
        let mut mass = own.clone();
        for (id, leads_to) in self
            .tokens
            .iter()
            .filter(|(_, leads_to)| leads_to.len() > 1)
        {
            let among: f64 = leads_to.iter().map(|&label| own[label]).sum();
            for &label in leads_to {
                let share = if among > 0.0 {
                    own[label] / among
                } else {
                    1.0 / leads_to.len() as f64
                };
                mass[label] += weight(*id) * share;
            }
        }
        let all: f64 = mass.iter().sum();
        mass.iter().map(|m| m / all).collect()
    }
}

/// Waits for the positions where a watched key's value is chosen.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    labels: Vec<String>,
    /// Each label as it follows the key's colon: ` "agree"`.
    spelt: Vec<Vec<u8>>,
    /// `"vote":`, for each key whose value is chosen among the labels.
    keys: Vec<Vec<u8>>,
    /// The text has been searched for the keys up to here.
    searched: usize,
    /// The position at which the value of the last occurrence begins, until its choice has been reported.
    value: Option<usize>,
}

impl Watch {
    /// Watches the values of `keys`.
    pub(super) fn new(keys: &[String], labels: &[String]) -> Self {
        let json = |text: &str| serde_json::Value::from(text).to_string();
        Self {
            labels: labels.to_vec(),
            spelt: labels
                .iter()
                .map(|label| format!(" {}", json(label)).into_bytes())
                .collect(),
            keys: keys
                .iter()
                .map(|key| format!("{}:", json(key)).into_bytes())
                .collect(),
            searched: 0,
            value: None,
        }
    }

    /// Searches newly written text for the keys. Inside a string a key's quotes are escaped, so only real keys match.
    pub(super) fn look(&mut self, text: &[u8]) {
        for key in &self.keys {
            let from = self.searched.saturating_sub(key.len() - 1);
            let found = text[from..]
                .windows(key.len())
                .rposition(|part| part == key);
            let value = found.map(|at| from + at + key.len());
            // If several keys match, the last one counts; a position found before is not new.
            if value.is_some_and(|value| value > self.searched) {
                self.value = self.value.max(value);
            }
        }
        self.searched = text.len();
    }

    /// Returns whether a choice may be near, so that the allowed tokens are worth checking.
    pub(super) fn is_near(&self, text: &[u8]) -> bool {
        self.value.is_some_and(|value| {
            self.spelt
                .iter()
                .any(|label| label.starts_with(&text[value..]))
        })
    }

    /// Returns the choice if the next token decides it. Each occurrence of the key is reported once.
    pub(super) fn choice(
        &mut self,
        text: &[u8],
        allowed: impl Iterator<Item = u32>,
        tokenizer: &Tokenizer,
    ) -> Option<Choice> {
        let written = &text[self.value?..];
        let rests: Vec<Option<&[u8]>> = self
            .spelt
            .iter()
            .map(|label| label.strip_prefix(written))
            .collect();
        let open: Vec<usize> = (0..rests.len()).filter(|&i| rests[i].is_some()).collect();
        if open.len() < 2 {
            return None;
        }
        let mut tokens = Vec::new();
        for id in allowed {
            let leads_to = leads_to(tokenizer.decode_bytes(id), &rests);
            if !leads_to.is_empty() {
                tokens.push((id, leads_to));
            }
        }
        let decides = tokens
            .iter()
            .any(|(_, leads_to)| leads_to.len() < open.len());
        if !decides {
            return None;
        }
        self.value = None;
        Some(Choice {
            labels: self.labels.clone(),
            tokens,
        })
    }
}

/// Returns the labels that a token may lead to: labels that begin with it, and labels that it completes, unless it
/// also completes a longer label.
fn leads_to(token: &[u8], rests: &[Option<&[u8]>]) -> Vec<usize> {
    if token.is_empty() {
        return Vec::new();
    }
    let matched = |rest: &Option<&[u8]>| {
        rest.filter(|rest| rest.starts_with(token) || token.starts_with(rest))
            .map(|rest| rest.len().min(token.len()))
    };
    let longest = rests.iter().filter_map(matched).max();
    (0..rests.len())
        .filter(|&i| matched(&rests[i]).is_some_and(|len| Some(len) == longest))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(tokens: &[(u32, &[usize])]) -> Choice {
        let labels = vec!["agree".into(), "disagree".into(), "abstain".into()];
        Choice {
            labels,
            tokens: tokens.iter().map(|(id, l)| (*id, l.to_vec())).collect(),
        }
    }

    fn near(got: &[f64], expected: &[f64]) {
        assert_eq!(got.len(), expected.len());
        assert!(
            got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6),
            "{got:?} is not {expected:?}"
        );
    }

    #[test]
    fn probabilities_are_the_softmax_over_the_labels_tokens() {
        let c = choice(&[(0, &[0]), (1, &[1]), (2, &[2])]);
        near(
            &c.probabilities(&[2f32.ln(), 1f32.ln(), 1f32.ln(), 50.0]),
            &[0.5, 0.25, 0.25],
        );
        near(
            &c.probabilities(&[1000.0, -1000.0, -1000.0]),
            &[1.0, 0.0, 0.0],
        );
        near(&c.probabilities(&[f32::NEG_INFINITY; 3]), &[1.0 / 3.0; 3]);
        near(&c.probabilities(&[f32::NAN, 0.0]), &[0.0, 1.0, 0.0]);
    }

    #[test]
    fn a_shared_beginning_is_divided_in_proportion() {
        let c = choice(&[(0, &[0]), (1, &[1]), (2, &[2]), (3, &[0, 2])]);
        // 3 for agree, 2 for disagree, 1 for abstain, and 4 for `a`, three of which go to agree.
        near(
            &c.probabilities(&[3f32.ln(), 2f32.ln(), 0.0, 4f32.ln()]),
            &[0.6, 0.2, 0.2],
        );
        let even = choice(&[(1, &[1]), (3, &[0, 2])]);
        near(
            &even.probabilities(&[0.0, 0.0, 0.0, 2f32.ln()]),
            &[1.0 / 3.0; 3],
        );
    }

    #[test]
    fn tokens_lead_to_the_longest_labels_they_fit() {
        let rests = [Some(b"1".as_slice()), Some(b"10"), None, Some(b"2")];
        assert_eq!(leads_to(b"1", &rests), [0, 1]);
        assert_eq!(leads_to(b"10", &rests), [1]);
        assert_eq!(leads_to(b"1}", &rests), [0]);
        assert_eq!(leads_to(b"2,", &rests), [3]);
        assert_eq!(leads_to(b"3", &rests), [0; 0]);
        assert_eq!(leads_to(b"", &rests), [0; 0]);
    }
}
