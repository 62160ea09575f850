//! A model service that charges. A seed decides how each request is answered: normally, with nonsense, refused, late,
//! or cut off. It counts prompt tokens like the worst tokenizer, one per byte, and answers up to the requested limit.

use crate::{Fake, Reply, Step, Wire};
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// A small random generator (SplitMix64).
#[derive(Clone, Copy, Debug)]
pub struct Rng(
    /// Its state: any number as the seed.
    pub u64,
);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `most`, or 0.
    pub fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }
}

/// The price of a token, in pico-dollars (10^-12 US dollars).
#[derive(Clone, Copy, Debug, Default)]
pub struct Price {
    /// Price of a prompt token.
    pub input: u64,
    /// Price of an answer token.
    pub output: u64,
}

/// The tokens that a service counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokens {
    /// One for each byte of a prompt, and all that a request allows for the answer: it spends all it may.
    Worst,
    /// One for four bytes.
    Usual,
}

/// The requests and tokens that the service counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bill {
    /// Requests, including refused ones.
    pub requests: u64,
    /// Tokens of prompts and answers.
    pub tokens: u64,
    /// Money, in pico-dollars.
    pub pico_usd: u64,
    /// Whether it charged for something that it did not report.
    pub uncounted: bool,
}

/// A running service.
pub struct Billing {
    fake: Fake,
    bill: Arc<Mutex<Bill>>,
}

impl Billing {
    /// Starts a service with this seed and price.
    ///
    /// # Errors
    /// It cannot listen.
    pub async fn start(seed: u64, price: Price) -> io::Result<Self> {
        let bill = Arc::new(Mutex::new(Bill::default()));
        let own = Arc::clone(&bill);
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let fake = Fake::choosing(here, move |seen, number| {
            let mut rng = Rng(seed ^ (number as u64) << 32);
            let mut bill = own.lock().unwrap_or_else(PoisonError::into_inner);
            let reply = answer(seed, &seen.body, &mut rng, price, &mut bill);
            Some((Wire::OpenAi, reply))
        });
        Ok(Self {
            fake: fake.await?,
            bill,
        })
    }

    /// Starts a service without faults that fills every answer to its limit: five letters per token. It counts one
    /// token per byte of a prompt.
    ///
    /// # Errors
    /// It cannot listen.
    pub async fn greedy(price: Price) -> io::Result<Self> {
        let words = |_: &Value, output| "word ".repeat(usize::try_from(output).unwrap_or(0));
        Self::answering(price, "length", Tokens::Worst, words).await
    }

    /// Starts a service without faults that answers with this text. The closure gets the request and the number of
    /// tokens that it allows.
    ///
    /// # Errors
    /// It cannot listen.
    pub async fn answering(
        price: Price,
        finish: &'static str,
        tokens: Tokens,
        text: impl Fn(&Value, u64) -> String + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let bill = Arc::new(Mutex::new(Bill::default()));
        let own = Arc::clone(&bill);
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let fake = Fake::choosing(here, move |seen, _| {
            let request: Value = serde_json::from_str(&seen.body).unwrap_or_default();
            let most = request["max_tokens"].as_u64().unwrap_or(300);
            let text = text(&request, most);
            let bytes = seen.body.len() as u64;
            let (input, output) = match tokens {
                Tokens::Worst => (bytes, most),
                Tokens::Usual => (bytes / 4, text.len() as u64 / 4),
            };
            let mut bill = own.lock().unwrap_or_else(PoisonError::into_inner);
            bill.requests += 1;
            bill.tokens += input + output;
            bill.pico_usd += input * price.input + output * price.output;
            Some((Wire::OpenAi, said(&text, finish, input, output)))
        });
        Ok(Self {
            fake: fake.await?,
            bill,
        })
    }

    /// Returns `http://127.0.0.1:PORT`, without a path.
    pub fn url(&self) -> String {
        self.fake.url()
    }

    /// Returns the bill so far.
    pub fn bill(&self) -> Bill {
        *self.bill.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handles one request: decides the reply and updates the bill.
fn answer(seed: u64, body: &str, rng: &mut Rng, price: Price, bill: &mut Bill) -> Reply {
    bill.requests += 1;
    let request: Value = serde_json::from_str(body).unwrap_or_default();
    if seed.is_multiple_of(3) && request.get("response_format").is_some() {
        let why = json!({"error": {"message": "response_format is not supported"}});
        return Reply::Status {
            code: 400,
            headers: Vec::new(),
            body: Some(why.to_string()),
        };
    }
    let most = request["max_tokens"].as_u64();
    let input = match rng.below(4) {
        0 => body.len() as u64,
        _ => 1 + rng.below(body.len() as u64),
    };
    let output = match (most, rng.below(4)) {
        (Some(most), 0) => most,
        (most, _) => 1 + rng.below(most.unwrap_or(300)),
    };
    let mut bills = |input: u64, output: u64| {
        bill.tokens += input + output;
        bill.pico_usd += input * price.input + output * price.output;
    };
    let faults = 8 + seed % 24;
    match rng.below(faults) {
        0 => return Reply::status_with(429, "retry-after", "0"),
        1 => return Reply::status(503),
        // It worked on the answer before it failed.
        2 => {
            bills(input, output);
            bill.uncounted = true;
            return Reply::status(500);
        }
        3 => {
            bills(input, output);
            bill.uncounted = true;
            return Reply::Hangup;
        }
        4 => {
            bills(input, output);
            bill.uncounted = true;
            let half = event(&json!({"choices": [{"delta": {"content": "Half of an "}}]}));
            return Reply::Stream(vec![Step::Raw(half.into_bytes().into()), Step::Cut]);
        }
        _ => bills(input, output),
    }
    let text = words(&request, rng);
    let finish = if rng.below(8) == 0 { "length" } else { "stop" };
    said(&text, finish, input, output)
}

/// Builds a complete answer.
fn said(text: &str, finish: &str, input: u64, output: u64) -> Reply {
    let events = [
        event(&json!({"model": "model-1", "choices": [{"delta": {"content": text}}]})),
        event(&json!({"choices": [{"delta": {}, "finish_reason": finish}]})),
        event(
            &json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}}),
        ),
        "data: [DONE]\n\n".to_owned(),
    ];
    Reply::Stream(vec![Step::Raw(events.concat().into_bytes().into())])
}

fn event(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

/// Returns the model's text: what was asked for, or nonsense that forces a repair turn.
fn words(request: &Value, rng: &mut Rng) -> String {
    let asked: String = request["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|m| m["content"].as_str())
        .collect();
    let told = asked.rsplit_once("JSON schema allows:\n");
    let schema = match &request["response_format"]["json_schema"]["schema"] {
        Value::Null => told.and_then(|(_, schema)| serde_json::from_str(schema).ok()),
        schema => Some(schema.clone()),
    };
    match (schema, rng.below(5)) {
        (_, 0) => "Well, that is hard to say, it depends on many things.".to_owned(),
        (Some(schema), _) => instance(&schema, rng).to_string(),
        (None, 1) => "<council>Have you thought of the cache?</council> One moment.".to_owned(),
        (None, _) => format!("Yes, for reason {}.", rng.below(100)),
    }
}

/// Generates a value that the schema allows.
fn instance(schema: &Value, rng: &mut Rng) -> Value {
    if let Some(all) = schema["enum"].as_array().filter(|all| !all.is_empty()) {
        return all[rng.below(all.len() as u64) as usize].clone();
    }
    let kind = schema["type"].as_str().or(schema["type"][0].as_str());
    match kind.unwrap_or("string") {
        "object" => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            fields
                .map(|(name, of)| (name.clone(), instance(of, rng)))
                .collect()
        }
        "array" => {
            let least = schema["minItems"].as_u64().unwrap_or(1);
            (0..least)
                .map(|_| instance(&schema["items"], rng))
                .collect()
        }
        "integer" | "number" => json!(schema["minimum"].as_u64().unwrap_or(1) + rng.below(5)),
        "boolean" => json!(rng.below(2) == 0),
        _ => json!(if rng.below(3) == 0 { "no" } else { "yes" }),
    }
}
