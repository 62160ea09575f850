//! Constrained answers: whatever the model prefers, the output is JSON that the schema allows.
//!
//! The "model" of these tests draws uniformly among the allowed tokens of the real vocabulary, or insists on one text;
//! both are harder on the grammar than a trained model.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod smol;
mod writer;

use std::sync::{Arc, LazyLock};

use kd_local::Error;
use kd_local::constrain::{Constraint, Vocab};
use kd_local::tokenizer::Tokenizer;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

static TOKENIZER: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| Arc::new(smol::tokenizer()));
static VOCAB: LazyLock<Vocab> = LazyLock::new(|| Vocab::new(Arc::clone(&TOKENIZER)));

/// An answer and how it was generated.
struct Answer {
    value: Value,
    text: String,
    /// Number of all tokens, and of the forced ones among them.
    tokens: usize,
    forced: usize,
}

/// Generates an answer with uniform draws among the allowed tokens.
fn draw_evenly(schema: &Value, rng: &mut ChaCha8Rng) -> Answer {
    let mut c = Constraint::new(&VOCAB, schema).unwrap();
    let mut ids = c.forced().unwrap();
    let mut forced = ids.len();
    while !c.is_done() {
        let mask = c.mask().unwrap();
        let nth = rng.random_range(0..mask.count());
        let token = mask.iter().nth(nth).unwrap();
        assert!(mask.allows(token));
        c.accept(token).unwrap();
        ids.push(token);
        let more = c.forced().unwrap();
        forced += more.len();
        ids.extend(more);
        assert!(
            ids.len() <= c.token_cap(),
            "{} tokens, cap {}",
            ids.len(),
            c.token_cap()
        );
    }
    let bytes: Vec<u8> = ids
        .iter()
        .flat_map(|&id| TOKENIZER.decode_bytes(id))
        .copied()
        .collect();
    assert_eq!(bytes, c.text());
    let text = String::from_utf8(bytes).expect("strings hold whole characters only");
    let value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    Answer {
        value,
        text,
        tokens: ids.len(),
        forced,
    }
}

fn vote() -> Value {
    json!({
        "type": "object",
        "properties": {
            "vote": {"enum": ["agree", "disagree", "abstain"]},
            "confidence": {"type": "integer", "minimum": 0, "maximum": 100}
        },
        "required": ["vote", "confidence"]
    })
}

fn reasoned_vote() -> Value {
    json!({
        "type": "object",
        "properties": {
            "reason": {"type": "string", "minLength": 10, "maxLength": 160},
            "vote": {"enum": ["agree", "disagree", "abstain"]},
            "confidence": {"type": "integer", "minimum": 0, "maximum": 100}
        },
        "required": ["reason", "vote", "confidence"]
    })
}

/// Two to four steps that depend only on earlier steps: acyclic by construction.
fn plan() -> Value {
    let step = |id: u64, needs: Value| {
        json!({
            "type": "object",
            "properties": {
                "id": {"const": id},
                "title": {"type": "string", "minLength": 1, "maxLength": 40},
                "owner": {"enum": ["anna", "ben"]},
                "needs": {"enum": needs}
            },
            "required": ["id", "title", "owner", "needs"]
        })
    };
    json!({
        "type": "object",
        "properties": {
            "goal": {"type": "string", "minLength": 1, "maxLength": 60},
            "steps": {
                "type": "array",
                "minItems": 2,
                "maxItems": 4,
                "prefixItems": [
                    step(1, json!([[]])),
                    step(2, json!([[], [1]])),
                    step(3, json!([[], [1], [2], [1, 2]])),
                    step(4, json!([[], [1], [2], [3], [1, 2], [1, 3], [2, 3], [1, 2, 3]]))
                ],
                "items": false
            }
        },
        "required": ["goal", "steps"]
    })
}

fn check_vote(v: &Value) {
    assert!(
        ["agree", "disagree", "abstain"].contains(&v["vote"].as_str().unwrap()),
        "{v}"
    );
    assert!(v["confidence"].as_u64().unwrap() <= 100, "{v}");
}

#[test]
fn votes_are_always_votes() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut tokens, mut forced) = (0, 0);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let answer = draw_evenly(&vote(), &mut rng);
        check_vote(&answer.value);
        assert_eq!(
            answer.value.as_object().unwrap().len(),
            2,
            "no other keys: {}",
            answer.text
        );
        assert!(
            answer.text.starts_with(r#"{"vote": ""#) && answer.text.contains(r#", "confidence": "#),
            "{}",
            answer.text
        );
        seen.insert(answer.value["vote"].as_str().unwrap().to_owned());
        tokens += answer.tokens;
        forced += answer.forced;
    }
    assert_eq!(seen.len(), 3, "every label can be reached");
    assert!(
        forced * 2 > tokens,
        "most tokens of a vote are certain: {forced} of {tokens}"
    );
}

#[test]
fn reasons_come_first_and_keep_their_length() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for _ in 0..40 {
        let answer = draw_evenly(&reasoned_vote(), &mut rng);
        check_vote(&answer.value);
        let reason = answer.value["reason"].as_str().unwrap();
        assert!((10..=160).contains(&reason.chars().count()), "{reason:?}");
        assert!(
            answer.text.starts_with(r#"{"reason": ""#),
            "{}",
            answer.text
        );
    }
}

#[test]
fn plans_have_no_circles() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for _ in 0..25 {
        let answer = draw_evenly(&plan(), &mut rng).value;
        let steps = answer["steps"].as_array().unwrap();
        assert!((2..=4).contains(&steps.len()));
        for (nth, step) in (1u64..).zip(steps) {
            assert_eq!(step["id"], nth);
            assert!(["anna", "ben"].contains(&step["owner"].as_str().unwrap()));
            let needs: Vec<u64> = serde_json::from_value(step["needs"].clone()).unwrap();
            assert!(
                needs.is_sorted() && needs.iter().all(|&n| n >= 1 && n < nth),
                "{needs:?}"
            );
        }
    }
}

#[test]
fn open_schemas_are_bounded_and_still_met() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let schema = json!({
        "properties": {
            "words": {"type": "array", "items": {"type": "string", "maxLength": 8}},
            "n": {"type": "integer"},
            "yes": {"type": "boolean"},
            "none": {"type": ["null", "integer"], "maximum": 3, "minimum": 2},
            "either": {"anyOf": [{"const": "x"}, {"type": "array", "items": {"const": 1}, "maxItems": 2}]},
            "list": {"$ref": "#/$defs/pair"}
        },
        "required": ["words", "n", "yes", "none", "either", "list"],
        "$defs": {"pair": {"type": "array", "prefixItems": [{"const": "a"}, {"type": "boolean"}], "minItems": 2, "items": false}}
    });
    for _ in 0..25 {
        let answer = draw_evenly(&schema, &mut rng).value;
        assert!(answer["words"].as_array().unwrap().len() <= 32);
        // `-0` is an integer too, but is parsed as a float.
        let n = answer["n"].as_f64().unwrap();
        assert!(n.fract() == 0.0 && n.abs() < 1e15, "{n}");
        assert!(answer["yes"].is_boolean());
        assert!(answer["none"].is_null() || (2..=3).contains(&answer["none"].as_i64().unwrap()));
        assert!(
            answer["either"] == "x" || answer["either"].as_array().unwrap().iter().all(|n| *n == 1)
        );
        assert!(answer["list"][0] == "a" && answer["list"][1].is_boolean());
    }
}

/// Insists on `text`: takes, of the allowed tokens, the one that gets furthest along it.
fn insist(c: &mut Constraint, text: &str) {
    c.forced().unwrap();
    while !c.is_done() {
        let rest = text.as_bytes().strip_prefix(c.text()).unwrap_or_else(|| {
            panic!("wanted {text}, wrote {}", String::from_utf8_lossy(c.text()))
        });
        let along =
            |id: &u32| rest.starts_with(TOKENIZER.decode_bytes(*id)) && !TOKENIZER.is_special(*id);
        let token = c
            .mask()
            .unwrap()
            .iter()
            .filter(along)
            .max_by_key(|&id| TOKENIZER.decode_bytes(id).len());
        c.accept(
            token.unwrap_or_else(|| {
                panic!("nothing leads on to {:?}", String::from_utf8_lossy(rest))
            }),
        )
        .unwrap();
        c.forced().unwrap();
    }
}

#[test]
fn what_is_allowed_can_be_said() {
    let said = r#"{"reason": "Größe \"zählt\" — 世界, <|im_end|> and 👍", "vote": "abstain", "confidence": 100}"#;
    let mut c = Constraint::new(&VOCAB, &reasoned_vote()).unwrap();
    insist(&mut c, said);
    assert_eq!(c.text(), said.as_bytes());
}

#[test]
fn special_tokens_are_never_allowed_before_the_end() {
    let schema = json!({"type": "string", "maxLength": 50});
    let mut c = Constraint::new(&VOCAB, &schema).unwrap();
    let mut quote = Vec::new();
    TOKENIZER.encode("\"", &mut quote);
    c.accept(quote[0]).unwrap();
    let mask = c.mask().unwrap();
    assert!(mask.count() > 10_000, "a string is wide open");
    assert!(mask.iter().all(|id| !TOKENIZER.is_special(id)));
    assert_eq!(
        mask.words()
            .iter()
            .map(|w| w.count_ones() as usize)
            .sum::<usize>(),
        mask.count()
    );
    assert!(!mask.allows(u32::MAX) && !mask.allows(2));

    let error = c.accept(2).unwrap_err();
    assert!(matches!(error, Error::Schema { .. }), "{error}");
}

#[test]
fn when_done_only_the_end_remains() {
    let mut c = Constraint::new(&VOCAB, &json!({"const": "yes"})).unwrap();
    let forced = c.forced().unwrap();
    assert_eq!(
        TOKENIZER.decode(&forced),
        "\"yes\"",
        "a constant is certain from the start"
    );
    assert!(c.is_done());
    assert_eq!(
        c.mask().unwrap().iter().collect::<Vec<_>>(),
        [0, 2],
        "both end tokens"
    );
    assert_eq!(c.forced().unwrap(), [0u32; 0]);
}

/// Steps until the choice is reported; returns the labels' probabilities under logits that favor `liked`.
fn probabilities(schema: &Value, labels: &[&str], written: &str, liked: &str) -> Option<Vec<f64>> {
    let labels: Vec<String> = labels.iter().map(|l| (*l).to_owned()).collect();
    let mut c = Constraint::new(&VOCAB, schema).unwrap();
    if !c.watch(&labels) {
        return None;
    }
    c.forced().unwrap();
    while !c.is_done() {
        if let Some(choice) = c.choice().unwrap() {
            assert_eq!(choice.labels(), labels);
            assert_eq!(c.choice().unwrap(), None, "told once");
            let logits: Vec<f32> = (0..TOKENIZER.vocab_len() as u32)
                .map(|id| {
                    let text = TOKENIZER.decode(&[id]);
                    if text.trim_matches(['"', ' ']).is_empty()
                        || !liked.starts_with(text.trim_matches(['"', ' ']))
                    {
                        0.0
                    } else {
                        12.0
                    }
                })
                .collect();
            return Some(choice.probabilities(&logits));
        }
        let rest = &written.as_bytes()[c.text().len()..];
        let along =
            |id: &u32| rest.starts_with(TOKENIZER.decode_bytes(*id)) && !TOKENIZER.is_special(*id);
        let token = c
            .mask()
            .unwrap()
            .iter()
            .filter(along)
            .max_by_key(|&id| TOKENIZER.decode_bytes(id).len())
            .unwrap();
        c.accept(token).unwrap();
        c.forced().unwrap();
    }
    None
}

#[test]
fn the_vote_s_probability_is_read_where_it_is_chosen() {
    let labels = ["agree", "disagree", "abstain"];
    // A reason that mentions the key, which must not be mistaken for it.
    let written = r#"{"reason": "my \"vote\": agree, \"vote\": \"agree\"", "vote": "disagree", "confidence": 1}"#;
    for (nth, liked) in labels.iter().enumerate() {
        let p = probabilities(&reasoned_vote(), &labels, written, liked)
            .expect("the probabilities are known");
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(p[nth] > 0.9, "{liked}: {p:?}");
    }
    assert_eq!(
        probabilities(&reasoned_vote(), &["yes", "no"], written, "yes"),
        None,
        "labels that the schema does not have"
    );
    assert_eq!(
        probabilities(
            &json!({"type": "object", "properties": {"vote": {"const": "agree"}}, "required": ["vote"]}),
            &labels,
            r#"{"vote": "agree"}"#,
            "agree"
        ),
        None,
        "no choice to make"
    );
}

#[test]
fn many_votes_in_one_answer_are_each_told() {
    let schema = json!({"type": "array", "minItems": 3, "maxItems": 3, "items": vote()});
    let mut c = Constraint::new(&VOCAB, &schema).unwrap();
    assert!(c.watch(&["agree".into(), "disagree".into(), "abstain".into()]));
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut told = 0;
    c.forced().unwrap();
    while !c.is_done() {
        told += usize::from(c.choice().unwrap().is_some());
        let mask = c.mask().unwrap();
        let token = mask.iter().nth(rng.random_range(0..mask.count())).unwrap();
        c.accept(token).unwrap();
        c.forced().unwrap();
    }
    assert_eq!(told, 3);
}

#[test]
fn schemas_that_cannot_be_met_say_so() {
    for schema in [
        json!(false),
        json!("text"),
        json!({"type": "integer", "minimum": 3, "maximum": 2}),
        json!({"type": "string", "format": "no-such-format"}),
        json!({"type": "string", "pattern": "("}),
        json!({"$ref": "#/$defs/missing"}),
        json!({"type": "object", "unknown_keyword_with_a_meaning": 1, "dependentRequired": {"a": ["b"]}}),
    ] {
        let error = Constraint::new(&VOCAB, &schema).expect_err(&schema.to_string());
        assert!(matches!(error, Error::Schema { .. }), "{schema}: {error}");
        assert!(
            !error.to_string().contains('\n') && error.to_string().len() < 400,
            "{error}"
        );
    }
}

#[test]
fn a_vocabulary_is_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    fn sent<T: Send>(_: &T) {}
    let vocab = Vocab::new(Arc::clone(&TOKENIZER));
    shared(&vocab);
    std::thread::scope(|s| {
        s.spawn(|| vocab.warm().unwrap());
        s.spawn(|| {
            let mut c = Constraint::new(&vocab, &vote()).unwrap();
            sent(&c);
            assert!(!c.forced().unwrap().is_empty());
        });
    });
}
