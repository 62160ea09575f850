//! One HTTP call to a model service: a request goes out, server-sent events come in, deltas go on.
//!
//! What differs between services is a [`Dialect`]; what differs between places and keys is a [`Service`].

use crate::Backend;
use crate::keys::Key;
use crate::spending::{Permit, Spending, Worst};
use crate::transport::sse::{Event, Splitter, TooLong};
use crate::{providers::Service, status};
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::request::ToolCall;
use kd_core::{Delta, Failure, FailureKind, Finish, Request, Usage};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

/// The longest answer, in bytes of text and thinking: a bound, not a goal.
const ANSWER_MAX: usize = 64 << 20;
/// How much of an error's body is read, in bytes.
const ERROR_BODY_MAX: usize = 64 << 10;

/// Chunks that are taken together when they are there together: services send each event as one, and the connection
/// hands them out singly, so that without this a burst would go through the whole house token by token.
const TOGETHER_MAX: usize = 256;

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct To<'a> {
    /// The service's address, without a slash at its end.
    pub(crate) base: &'a str,
    /// The model.
    pub(crate) model: &'a str,
    /// Whether the service is told what of a prompt to keep for the next one.
    pub(crate) keeps_prompts: bool,
}

/// The dialect of a wire.
pub(crate) trait Dialect: Send + Sync {
    /// Where to post: `base` has no slash at its end.
    fn url(&self, base: &str, model: &str) -> String;
    /// The header that carries the key, and its value.
    fn key_header(&self, key: &str) -> (HeaderName, String);
    /// Further headers.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
    /// The body.
    fn body(&self, to: To<'_>, request: &Request) -> serde_json::Value;
    /// Asks for any JSON object in place of the schema in the body; false where the wire cannot.
    fn any_object(&self, body: &mut serde_json::Value) -> bool;
    /// The bound of an answer that the wire sets where a request has none.
    fn answer_tokens(&self) -> Option<u32> {
        None
    }
    /// A reader for one answer.
    fn decoder(&self) -> Box<dyn Decoder>;
}

/// How the form of an answer is asked for. Services and models that refuse one are asked by the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AskedForm {
    /// By its schema.
    #[default]
    Schema,
    /// As any JSON object; the schema stands in the prompt.
    Object,
    /// In words alone.
    Words,
}

/// Reads the events of one answer. Pure: a recorded stream is the whole test.
pub(crate) trait Decoder: Send {
    /// One event with data. An `Err` says what could not be read in it; the next event may be fine.
    fn event(&mut self, event: Event<'_>, out: &mut Out) -> Result<(), serde_json::Error>;
    /// The stream is over, by its end or by a break: whether the answer is whole all the same.
    fn over(&mut self, out: &mut Out);
}

/// What a decoder has to say. Pieces of text that arrive together leave together.
#[derive(Debug, Default)]
pub(crate) struct Out {
    deltas: VecDeque<Delta>,
    failure: Option<Failure>,
    /// What an answer used that will not be whole.
    used: Option<Usage>,
    started: bool,
    ended: bool,
    size: usize,
}

impl Out {
    /// The service took the question. Only the first call counts.
    pub(crate) fn started(&mut self, model: Option<&str>, session: Option<&str>) {
        if !self.started {
            self.started = true;
            let own = |s: Option<&str>| s.map(str::to_owned);
            self.deltas.push_back(Delta::Started {
                model: own(model),
                version: None,
                session: own(session),
            });
        }
    }

    /// More of the answer.
    pub(crate) fn text(&mut self, piece: &str) {
        self.grow(piece);
        match self.deltas.back_mut() {
            Some(Delta::Text { text }) => text.push_str(piece),
            _ if piece.is_empty() => {}
            _ => self.deltas.push_back(Delta::Text {
                text: piece.to_owned(),
            }),
        }
    }

    /// More of the thinking.
    pub(crate) fn thinking(&mut self, piece: &str) {
        self.grow(piece);
        match self.deltas.back_mut() {
            Some(Delta::Thinking { text }) => text.push_str(piece),
            _ if piece.is_empty() => {}
            _ => self.deltas.push_back(Delta::Thinking {
                text: piece.to_owned(),
            }),
        }
    }

    /// The model calls a tool. Arguments that are no JSON are handed on as text: whoever carries the call out says what
    /// is wrong with them.
    pub(crate) fn call(&mut self, id: &str, name: &str, arguments: &str) {
        self.grow(arguments);
        let arguments = match arguments.trim() {
            "" => serde_json::Value::Object(serde_json::Map::new()),
            text => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        };
        let call = ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
        };
        self.deltas.push_back(Delta::Call { call });
    }

    /// A sign of life without words.
    fn alive(&mut self) {
        if self.deltas.is_empty() && !self.ended {
            self.deltas.push_back(Delta::Text {
                text: String::new(),
            });
        }
    }

    /// Something the king should know.
    fn notice(&mut self, text: String) {
        self.deltas.push_back(Delta::Notice { text });
    }

    /// The answer is whole. A count that leaves something out is no count: see [`Out::used`].
    pub(crate) fn finish(&mut self, finish: Finish, usage: Option<Usage>) {
        if !self.ended {
            self.ended = true;
            let usage = usage.filter(|usage| self.is_covered(usage));
            self.deltas.push_back(Delta::Finished {
                finish,
                text: None,
                usage,
                choices: Vec::new(),
            });
        }
    }

    /// What the service counted for an answer that it withholds. A count without tokens of the prompt, or without tokens
    /// of an answer that came, says less than what was used: the request is booked at its worst case instead.
    pub(crate) fn used(&mut self, usage: Option<Usage>) {
        self.used = usage.filter(|usage| self.is_covered(usage));
    }

    /// Bytes of the answer so far.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    fn is_covered(&self, usage: &Usage) -> bool {
        usage.input_tokens > 0 && (usage.output_tokens > 0 || self.size == 0)
    }

    /// The answer will not be whole.
    pub(crate) fn fail(&mut self, failure: Failure) {
        if !self.ended {
            self.ended = true;
            self.failure = Some(failure);
        }
    }

    fn grow(&mut self, piece: &str) {
        self.size += piece.len();
        if self.size > ANSWER_MAX {
            self.fail(
                Failure::new(
                    FailureKind::Invalid,
                    format!("the answer is longer than {} MB", ANSWER_MAX >> 20),
                )
                .advise("set `max_tokens` for this member"),
            );
        }
    }
}

/// A decoder with its splitter: bytes in, deltas out, the malformed counted.
pub(crate) struct Reader {
    splitter: Splitter,
    decoder: Box<dyn Decoder>,
    malformed: usize,
    pub(crate) out: Out,
}

impl Reader {
    /// A reader for one answer.
    pub(crate) fn new(decoder: Box<dyn Decoder>) -> Self {
        Self {
            splitter: Splitter::default(),
            decoder,
            malformed: 0,
            out: Out::default(),
        }
    }

    /// More bytes of the body.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Self {
            splitter,
            decoder,
            malformed,
            out,
        } = self;
        let done = splitter.push(bytes, &mut |event| {
            read(&mut **decoder, malformed, out, event)
        });
        if done == Err(TooLong) {
            self.out.fail(too_long());
        }
        self.out.alive();
    }

    /// What the connection gave: more bytes, its end, or how it broke.
    fn hear<B: AsRef<[u8]>>(&mut self, chunk: reqwest::Result<Option<B>>) {
        match chunk {
            Ok(Some(bytes)) => self.push(bytes.as_ref()),
            Ok(None) => self.end(None),
            Err(error) => self.end(Some(status::io_words(&error))),
        }
    }

    /// The body is over; `broken` says how, when it did not end by itself.
    pub(crate) fn end(&mut self, broken: Option<String>) {
        let Self {
            splitter,
            decoder,
            malformed,
            out,
        } = self;
        if splitter.end(&mut |event| read(&mut **decoder, malformed, out, event)) == Err(TooLong) {
            out.fail(too_long());
        }
        if !out.ended {
            decoder.over(out);
        }
        if !out.ended {
            let what = match (self.malformed, broken) {
                (0, Some(how)) => format!("the answer was cut: {how}"),
                (0, None) => "the answer was cut: the stream ended without its end mark".to_owned(),
                (n, _) => format!("the answer was cut, and {n} of its events could not be read"),
            };
            self.out.fail(
                Failure::new(FailureKind::Decode, what)
                    .advise("the partial answer is kept; try again"),
            );
        }
    }
}

fn too_long() -> Failure {
    Failure::new(
        FailureKind::Decode,
        "the service sent one event of more than 32 MB",
    )
    .advise("see whether `base_url` is really a model service")
}

fn read(decoder: &mut dyn Decoder, malformed: &mut usize, out: &mut Out, event: Event<'_>) {
    if out.ended || event.data.is_empty() {
        return;
    }
    if let Err(error) = decoder.event(event, out) {
        *malformed += 1;
        if *malformed == 1 {
            // The parser's message names a place, never the data.
            out.notice(format!(
                "a part of the answer could not be read and is left out ({error})"
            ));
        }
    }
}

/// Asks one model of one service.
pub(crate) struct Http {
    service: Arc<Service>,
    dialect: &'static dyn Dialect,
    model: String,
    spending: Spending,
}

impl Http {
    /// A backend for this model, whose requests are paid from this account.
    pub(crate) fn new(
        service: Arc<Service>,
        dialect: &'static dyn Dialect,
        model: String,
        spending: Spending,
    ) -> Self {
        Self {
            service,
            dialect,
            model,
            spending,
        }
    }
}

impl Backend for Http {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let call = Call {
            service: Arc::clone(&self.service),
            dialect: self.dialect,
            model: self.model.clone(),
            spending: self.spending.clone(),
            request: Some(request),
            key: None,
            body: None,
            permit: None,
        };
        stream::unfold(call, |mut call| async move {
            let item = call.next().await?;
            Some((
                item.map_err(|failure| status::clean(failure, call.key.as_ref())),
                call,
            ))
        })
        .boxed()
    }
}

/// One call under way.
struct Call {
    service: Arc<Service>,
    dialect: &'static dyn Dialect,
    model: String,
    spending: Spending,
    /// Taken when the call is made.
    request: Option<Request>,
    /// Known once it is made, to keep it out of every message.
    key: Option<Key>,
    /// The answer; gone once it is over, which closes the connection.
    body: Option<(Option<reqwest::Response>, Reader)>,
    /// What is reserved for the answer. Dropped with the call, it is booked in full.
    permit: Option<Permit>,
}

impl Call {
    async fn next(&mut self) -> Option<Result<Delta, Failure>> {
        if let Some(request) = self.request.take() {
            match self.begin(&request).await {
                Ok((response, permit)) => {
                    self.permit = Some(permit);
                    self.body = Some((Some(response), Reader::new(self.dialect.decoder())))
                }
                Err(failure) => return Some(Err(failure)),
            }
        }
        let (response, reader) = self.body.as_mut()?;
        loop {
            if let Some(delta) = reader.out.deltas.pop_front() {
                let delta = self.service.priced(&self.model, delta);
                if let Delta::Finished { usage, .. } = &delta
                    && let Some(permit) = self.permit.take()
                {
                    permit.settle(usage.as_ref());
                }
                return Some(Ok(delta));
            }
            if let Some(failure) = reader.out.failure.take() {
                let used = reader.out.used.take();
                if let Some(permit) = self.permit.take() {
                    permit.settle(
                        used.map(|used| self.service.with_price(&self.model, used))
                            .as_ref(),
                    );
                }
                self.body = None;
                return Some(Err(failure));
            }
            let Some(open) = response.as_mut().filter(|_| !reader.out.ended) else {
                self.body = None;
                return None;
            };
            reader.hear(open.chunk().await);
            for _ in 0..TOGETHER_MAX {
                if reader.out.ended {
                    break;
                }
                step_aside().await;
                match open.chunk().now_or_never() {
                    Some(chunk) => reader.hear(chunk),
                    None => break,
                }
            }
            if reader.out.ended
                && let Some(mut open) = response.take()
            {
                // The transfer's own end usually came along: taking it lets the connection be used again.
                let _ = open.chunk().now_or_never();
            }
        }
    }

    /// Sends the request; an answer with a good status comes back. A service that refuses the form of the answer is
    /// asked again, less strictly, and so from then on.
    async fn begin(&mut self, request: &Request) -> Result<(reqwest::Response, Permit), Failure> {
        let mut form = self.service.form(&self.model);
        loop {
            match self.send(request, form).await {
                Err(Refusal::Form(_)) if form != AskedForm::Words => {
                    let next = match form {
                        AskedForm::Schema => AskedForm::Object,
                        _ => AskedForm::Words,
                    };
                    form = self.service.remember_form(&self.model, next);
                }
                Ok(answer) => return Ok(answer),
                Err(Refusal::Form(failure) | Refusal::Other(failure)) => return Err(failure),
            }
        }
    }

    /// The permit for a request, and its body: where money or tokens are short, with a tighter bound of the answer.
    fn paid(&self, request: &Request, form: AskedForm) -> Result<(Permit, Vec<u8>), Failure> {
        let (service, dialect) = (&self.service, self.dialect);
        let write = |request: &Request| {
            let to = To {
                base: &service.base,
                model: &self.model,
                keeps_prompts: service.keeps_prompts,
            };
            let body = body(dialect, to, request, form);
            serde_json::to_vec(&body).map_err(|error| {
                Failure::new(
                    FailureKind::Invalid,
                    format!("the request cannot be written: {error}"),
                )
            })
        };
        let body = write(request)?;
        let permit = self.spending.reserve(Worst {
            bytes: body.len() as u64,
            answer: request.sampling.max_tokens.or(dialect.answer_tokens()),
            price: service.price(&self.model),
        })?;
        if permit.answer() == request.sampling.max_tokens || permit.answer().is_none() {
            return Ok((permit, body));
        }
        let mut bounded = request.clone();
        bounded.sampling.max_tokens = permit.answer();
        let body = write(&bounded)?;
        Ok((permit, body))
    }

    async fn send(
        &mut self,
        request: &Request,
        form: AskedForm,
    ) -> Result<(reqwest::Response, Permit), Refusal> {
        self.key = self.service.key().await?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        for (name, value) in self.dialect.headers() {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        if let Some(key) = &self.key {
            let (name, value) = self.dialect.key_header(key.expose());
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                Failure::new(
                    FailureKind::Auth,
                    format!(
                        "the key for `{}` holds characters that no key has",
                        self.service.name
                    ),
                )
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let base = &self.service.base;
        let (permit, body) = self.paid(request, form)?;
        let url = self.dialect.url(base, &self.model);
        let call = self.service.client()?.post(url).headers(headers).body(body);
        let (mut response, permit) = post(call, permit)
            .await?
            .map_err(|error| status::unreachable(&self.service, &error))?;
        let code = response.status();
        let mime = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase();
        if code.is_success() && (mime.starts_with("text/event-stream") || mime.is_empty()) {
            return Ok((response, permit));
        }
        if refuses_all(code.as_u16()) {
            permit.refused();
        } else {
            // It may have worked for the answer, and may bill that.
            drop(permit);
        }
        let headers = std::mem::take(response.headers_mut());
        let mut body = Vec::new();
        while body.len() < ERROR_BODY_MAX
            && let Ok(Some(bytes)) = response.chunk().await
        {
            body.extend_from_slice(&bytes[..bytes.len().min(ERROR_BODY_MAX - body.len())]);
        }
        let body = String::from_utf8_lossy(&body);
        if code.is_success() {
            return Err(status::not_a_stream(&self.service, &mime, &body).into());
        }
        let failure = status::of(&self.service, &self.model, code.as_u16(), &headers, &body);
        Err(
            match request.schema.is_some() && refuses_form(code.as_u16(), &body) {
                true => Refusal::Form(failure),
                false => Refusal::Other(failure),
            },
        )
    }
}

/// Sends a request: the only way to a service, and it takes a permit. One that reached nobody costs nothing.
///
/// # Errors
/// When the turn is over; nothing is sent then.
async fn post(
    call: reqwest::RequestBuilder,
    permit: Permit,
) -> Result<reqwest::Result<(reqwest::Response, Permit)>, Failure> {
    permit.sending()?;
    Ok(match call.send().await {
        Ok(response) => Ok((response, permit)),
        Err(error) => {
            if error.is_connect() || error.is_builder() {
                permit.unsent();
            }
            Err(error)
        }
    })
}

/// Whether a status tells that the service did nothing for the request: it is not asked, not allowed, too much, or
/// turned away before any work. Other errors may be billed.
fn refuses_all(code: u16) -> bool {
    matches!(code, 300..=407 | 409..=499 | 503 | 529)
}

/// Why a request was not taken.
enum Refusal {
    /// The service does not take the form of the answer.
    Form(Failure),
    /// Anything else.
    Other(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal::Other(failure)
    }
}

/// Whether an error is about the form of the answer.
fn refuses_form(code: u16, body: &str) -> bool {
    const WORDS: &[&str] = &[
        "response_format",
        "response format",
        "responseformat",
        "json_schema",
        "json_object",
        "json schema",
        "json mode",
        "responsejsonschema",
        "response_schema",
        "responseschema",
        "response_json_schema",
        "responsemimetype",
        "response_mime_type",
        "output_config",
        "structured output",
        "guided",
        "grammar",
    ];
    let lower = body.to_lowercase();
    matches!(code, 400 | 404 | 415 | 422 | 501) && WORDS.iter().any(|word| lower.contains(word))
}

/// The body of a request, with the answer's form asked for in this way.
fn body(
    dialect: &dyn Dialect,
    to: To<'_>,
    request: &Request,
    form: AskedForm,
) -> serde_json::Value {
    let Some(schema) = request
        .schema
        .as_ref()
        .filter(|_| form != AskedForm::Schema)
    else {
        return dialect.body(to, request);
    };
    let mut told = request.clone();
    told.prompt.turn.push_str(&format!(
        "\n\nAnswer with nothing but one JSON value that this JSON schema allows:\n{schema}"
    ));
    if form == AskedForm::Object {
        let mut body = dialect.body(to, &told);
        if dialect.any_object(&mut body) {
            return body;
        }
    }
    told.schema = None;
    dialect.body(to, &told)
}

/// Lets the other tasks of this thread run once, the connection's among them, which then has the next chunk ready if it
/// was read already. Costs no look at the operating system, as a yield of the runtime would.
async fn step_aside() {
    let mut waited = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
