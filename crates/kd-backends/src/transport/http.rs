//! One HTTP call to a model service: sends a request, receives server-sent events, emits deltas.
//!
//! A [`Dialect`] covers the differences between services; a [`Service`] holds address and key.

use crate::Backend;
use crate::attachments;
use crate::keys::Key;
use crate::providers::{AskedForm, Service};
use crate::spending::{Permit, Spending, Worst};
use crate::status;
use crate::transport::body::{Written, cache_key};
use crate::transport::refused::{no_tools, offers_optional, refuses_tools};
use crate::transport::sse::{Event, Splitter, TooLong};
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::media::{Attachment, MediaKind};
use kd_core::request::ToolCall;
use kd_core::{Delta, Failure, FailureKind, Finish, Request, Usage};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

/// Maximum length of an answer, in bytes of text and thinking.
const ANSWER_MAX: usize = 64 << 20;
/// Maximum length of an error response that is read, in bytes.
const ERROR_BODY_MAX: usize = 64 << 10;

/// Maximum number of available chunks read in one go. Services send each event as one chunk, and the connection returns
/// them one by one; without this, a burst would pass through the program token by token.
const TOGETHER_MAX: usize = 256;

/// The target of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct To<'a> {
    /// The service's address, without a trailing slash.
    pub(crate) base: &'a str,
    /// The model.
    pub(crate) model: &'a str,
    /// Whether to mark which part of a prompt the service should cache.
    pub(crate) keeps_prompts: bool,
    /// The key of such a prompt, for services that want one: see [`cache_key`].
    pub(crate) cache_key: Option<&'a str>,
}

/// The wire format of a kind of service.
pub(crate) trait Dialect: Send + Sync {
    /// Returns the URL to post to; `base` has no trailing slash.
    fn url(&self, base: &str, model: &str) -> String;
    /// Returns the header that carries the key, and its value.
    fn key_header(&self, key: &str) -> (HeaderName, String);
    /// Returns further headers.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
    /// Returns whether a request can carry files of this kind.
    fn takes(&self, _: MediaKind) -> bool {
        true
    }
    /// Builds the request body.
    fn body(&self, to: To<'_>, request: &Request) -> serde_json::Value;
    /// Replaces the schema in the body by a request for any JSON object; returns false if the wire format cannot.
    fn any_object(&self, body: &mut serde_json::Value) -> bool;
    /// Returns the answer limit that the wire format sets when a request has none.
    fn answer_tokens(&self) -> Option<u32> {
        None
    }
    /// Creates a decoder for one answer.
    fn decoder(&self) -> Box<dyn Decoder>;
}

/// Decodes the events of one answer. Pure: a recorded stream tests everything.
pub(crate) trait Decoder: Send {
    /// Decodes one event with data. An `Err` says what could not be parsed; the next event may be fine.
    fn event(&mut self, event: Event<'_>, out: &mut Out) -> Result<(), serde_json::Error>;
    /// Handles the end of the stream, regular or broken: the answer may be complete even so.
    fn over(&mut self, out: &mut Out);
}

/// Output of a decoder. Merges pieces of text that arrive together.
#[derive(Debug, Default)]
pub(crate) struct Out {
    deltas: VecDeque<Delta>,
    failure: Option<Failure>,
    /// Usage of an answer that will not complete.
    used: Option<Usage>,
    started: bool,
    ended: bool,
    size: usize,
}

impl Out {
    /// Records that the service accepted the request. Only the first call counts.
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

    /// Adds a piece of the answer.
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

    /// Adds a piece of thinking.
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

    /// Adds a tool call by the model. Arguments that are not valid JSON are passed on as text; the executor of the call
    /// reports the error.
    pub(crate) fn call(&mut self, id: &str, name: &str, arguments: &str) {
        self.signed_call(id, name, arguments, None);
    }

    /// Adds a tool call with what the service wants to get back with it.
    pub(crate) fn signed_call(
        &mut self,
        id: &str,
        name: &str,
        arguments: &str,
        signature: Option<String>,
    ) {
        self.grow(arguments);
        let arguments = match arguments.trim() {
            "" | "null" => serde_json::Value::Object(serde_json::Map::new()),
            text => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        };
        let call = ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
            signature,
        };
        self.deltas.push_back(Delta::Call { call });
    }

    /// Emits a sign of life without text.
    fn alive(&mut self) {
        if self.deltas.is_empty() && !self.ended {
            self.deltas.push_back(Delta::Text {
                text: String::new(),
            });
        }
    }

    /// Adds a notice for the user.
    fn notice(&mut self, text: String) {
        self.deltas.push_back(Delta::Notice { text });
    }

    /// Completes the answer. An incomplete token count is discarded: see [`Out::used`].
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

    /// Records usage for an answer that the service withholds. A count that lacks prompt tokens, or answer tokens
    /// although there was an answer, is too low: the request is charged at its worst case instead.
    pub(crate) fn used(&mut self, usage: Option<Usage>) {
        self.used = usage.filter(|usage| self.is_covered(usage));
    }

    /// Returns the bytes of the answer so far.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    fn is_covered(&self, usage: &Usage) -> bool {
        usage.input_tokens > 0 && (usage.output_tokens > 0 || self.size == 0)
    }

    /// Fails: the answer will not complete.
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
                    format!("the answer is longer than {} MiB", ANSWER_MAX >> 20),
                )
                .advise("set `max_tokens` for this member"),
            );
        }
    }
}

/// Splits bytes into events, decodes them, and counts malformed ones.
pub(crate) struct Reader {
    splitter: Splitter,
    decoder: Box<dyn Decoder>,
    malformed: usize,
    pub(crate) out: Out,
}

impl Reader {
    /// Creates a reader for one answer.
    pub(crate) fn new(decoder: Box<dyn Decoder>) -> Self {
        Self {
            splitter: Splitter::default(),
            decoder,
            malformed: 0,
            out: Out::default(),
        }
    }

    /// Reads more bytes of the body.
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

    /// Handles a result of the connection: more bytes, its end, or an error.
    fn hear<B: AsRef<[u8]>>(&mut self, chunk: reqwest::Result<Option<B>>) {
        match chunk {
            Ok(Some(bytes)) => self.push(bytes.as_ref()),
            Ok(None) => self.end(None),
            Err(error) => self.end(Some(status::io_words(&error))),
        }
    }

    /// Handles the end of the body; `broken` is the error if it did not end normally.
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
                    .advise("the partial answer is saved; try again"),
            );
        }
    }
}

/// The content of a complete response.
pub(crate) struct Whole {
    /// Its deltas, up to the end of the answer.
    pub(crate) deltas: Vec<Delta>,
    /// Why there is no answer.
    pub(crate) failure: Option<Failure>,
    /// Its usage, if it counts all tokens.
    pub(crate) usage: Option<Usage>,
}

/// Reads the events of a response that is known as a whole.
pub(crate) fn read_whole(decoder: Box<dyn Decoder>, events: &[serde_json::Value]) -> Whole {
    let mut reader = Reader::new(decoder);
    for event in events {
        let data = match event {
            serde_json::Value::String(text) => text.clone(),
            event => event.to_string(),
        };
        reader.push(format!("data: {data}\n\n").as_bytes());
    }
    reader.end(None);
    let mut deltas: Vec<Delta> = reader.out.deltas.into();
    deltas.retain(|delta| !matches!(delta, Delta::Text { text } if text.is_empty()));
    let counted = deltas.iter().find_map(|delta| match delta {
        Delta::Finished { usage, .. } => *usage,
        _ => None,
    });
    Whole {
        deltas,
        failure: reader.out.failure,
        usage: counted.or(reader.out.used),
    }
}

fn too_long() -> Failure {
    Failure::new(
        FailureKind::Decode,
        "the service sent one event of more than 32 MiB",
    )
    .advise("check that `base_url` is a model service")
}

fn read(decoder: &mut dyn Decoder, malformed: &mut usize, out: &mut Out, event: Event<'_>) {
    if out.ended || event.data.is_empty() {
        return;
    }
    if let Err(error) = decoder.event(event, out) {
        *malformed += 1;
        if *malformed == 1 {
            // The parser's message names a position, never the data.
            out.notice(format!(
                "a part of the answer could not be read and is left out ({error})"
            ));
        }
    }
}

/// A backend for one model of one service.
pub(crate) struct Http {
    service: Arc<Service>,
    dialect: &'static dyn Dialect,
    model: String,
    spending: Spending,
}

impl Http {
    /// Creates a backend for this model; its requests are charged to this account.
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

/// A call in progress.
struct Call {
    service: Arc<Service>,
    dialect: &'static dyn Dialect,
    model: String,
    spending: Spending,
    /// Taken when the call starts.
    request: Option<Request>,
    /// Known once the call starts; kept to remove it from every message.
    key: Option<Key>,
    /// The response; dropped once it is over, which closes the connection.
    body: Option<(Option<reqwest::Response>, Reader)>,
    /// The reservation for the answer. Charged in full if the call is dropped.
    permit: Option<Permit>,
}

impl Call {
    async fn next(&mut self) -> Option<Result<Delta, Failure>> {
        if let Some(mut request) = self.request.take() {
            let dialect = self.dialect;
            let why = "its service takes no files of this kind";
            let unseen = leave_out(&mut request, |kind| dialect.takes(kind), why);
            let mut unseen: Vec<Delta> = unseen.into_iter().collect();
            match self.begin(&mut request, &mut unseen).await {
                Ok((response, permit)) => {
                    self.permit = Some(permit);
                    let mut reader = Reader::new(self.dialect.decoder());
                    reader.out.deltas.extend(unseen);
                    self.body = Some((Some(response), reader));
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
                    && let Some(text) = permit.settle(usage.as_ref())
                {
                    reader.out.deltas.push_front(delta);
                    return Some(Ok(Delta::Notice { text }));
                }
                return Some(Ok(delta));
            }
            if let Some(failure) = reader.out.failure.take() {
                let used = reader.out.used.take();
                let used = used.map(|used| self.service.with_price(&self.model, used));
                let notice = self.permit.take().and_then(|p| p.settle(used.as_ref()));
                if let Some(text) = notice {
                    reader.out.failure = Some(failure);
                    return Some(Ok(Delta::Notice { text }));
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
                // The end of the transfer has usually arrived too; reading it lets the connection be reused.
                let _ = open.chunk().now_or_never();
            }
        }
    }

    /// Sends the request; returns a successful response. If a service refuses the form of the answer, asks again with a
    /// less strict one, and keeps that for later requests unless the schema is the user's. If it refuses a request with
    /// files, or tools that it can do without, asks again without them, and does not send them to this model again: most models
    /// that read no pictures or call no tools are known only by their refusal.
    async fn begin(
        &mut self,
        request: &mut Request,
        unseen: &mut Vec<Delta>,
    ) -> Result<(reqwest::Response, Permit), Failure> {
        let mut form = self.service.form(&self.model);
        let mut refused: Option<(Vec<Attachment>, String)> = None;
        let known = &self.service.refused_files;
        if let Some(why) = known.find(&self.model, &request.attachments) {
            unseen.extend(leave_out(request, |_| false, &why));
        }
        if offers_optional(request) && self.service.refused_tools.has(&self.model) {
            request.tools = None;
        }
        if request.tools.is_some() && request.reads {
            // Services refuse tools together with a schema.
            form = AskedForm::Words;
        }
        loop {
            match self.send(request, form).await {
                Err(Refusal::Tools(failure)) => {
                    request.tools = None;
                    form = self.service.form(&self.model);
                    if self.service.refused_tools.add(&self.model) {
                        unseen.push(Delta::Notice {
                            text: no_tools(&request.seat, &failure),
                        });
                    }
                }
                Err(Refusal::Form(_)) if form != AskedForm::Words => {
                    form = self.service.less_strict(&self.model, request, form);
                }
                Ok(answer) => {
                    if let Some((files, why)) = refused {
                        self.service.refused_files.add(&self.model, &files, why);
                    }
                    return Ok(answer);
                }
                Err(Refusal::Files(failure)) => {
                    let why = format!("its model does not take it ({})", failure.message);
                    let files = request.attachments.clone();
                    unseen.extend(leave_out(request, |_| false, &why));
                    refused = Some((files, why));
                }
                Err(Refusal::Form(failure) | Refusal::Other(failure)) => return Err(failure),
            }
        }
    }

    /// Returns the permit for a request and its body, with a lower answer limit if money or tokens are short.
    fn paid(&self, request: &Request, form: AskedForm) -> Result<(Permit, Written), Failure> {
        let (service, dialect) = (&self.service, self.dialect);
        let key = service.keeps_prompts.then(|| cache_key(&request.prompt));
        let key = key.flatten();
        let to = To {
            base: &service.base,
            model: &self.model,
            keeps_prompts: service.keeps_prompts,
            cache_key: key.as_deref(),
        };
        let write = |request: &Request| {
            let written = Written::new(request, |request| body(dialect, to, request, form));
            written.map_err(|error| {
                Failure::new(
                    FailureKind::Invalid,
                    format!("the request cannot be written: {error}"),
                )
            })
        };
        let body = write(request)?;
        let permit = self.spending.reserve(Worst {
            bytes: attachments::tokens_max(request, body.len()),
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
        let (mut headers, key) = key_headers(&self.service, self.dialect).await?;
        self.key = key;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
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
            // The service may have worked on the answer, and may bill it.
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
        let refuses_files = matches!(code.as_u16(), 400 | 404 | 413 | 415 | 422 | 501);
        if offers_optional(request) && refuses_tools(code.as_u16(), &body) {
            return Err(Refusal::Tools(failure));
        }
        Err(match request.schema.is_some() {
            true if refuses_form(code.as_u16(), &body) => Refusal::Form(failure),
            _ if refuses_files && !request.attachments.is_empty() => Refusal::Files(failure),
            _ => Refusal::Other(failure),
        })
    }
}

/// Returns the headers of every call to a service, and its key.
///
/// # Errors
/// There is no key, or it cannot be sent.
pub(crate) async fn key_headers(
    service: &Service,
    dialect: &dyn Dialect,
) -> Result<(HeaderMap, Option<Key>), Failure> {
    let mut headers = HeaderMap::new();
    for (name, value) in dialect.headers() {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    let key = service.key().await?;
    if let Some(key) = &key {
        let (name, value) = dialect.key_header(key.expose());
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            Failure::new(
                FailureKind::Auth,
                format!(
                    "the key for `{}` has characters that no key has",
                    service.name
                ),
            )
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok((headers, key))
}

/// Sends a request. Besides provider batches, this is the only code that sends a request to a service, and it
/// requires a permit. A request that never reached the service costs nothing.
///
/// # Errors
/// The turn is over; nothing is sent then.
async fn post(
    call: reqwest::RequestBuilder,
    permit: Permit,
) -> Result<reqwest::Result<(reqwest::Response, Permit)>, Failure> {
    permit.sending().await?;
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

/// Returns whether a status means that the service did no work for the request: it is malformed, not allowed, rate
/// limited, or rejected early. Other errors may be billed.
fn refuses_all(code: u16) -> bool {
    matches!(code, 300..=407 | 409..=499 | 503 | 529)
}

/// The reason why a request was rejected.
enum Refusal {
    /// The service does not support the requested form of the answer.
    Form(Failure),
    /// The service does not support tools, which the request can do without.
    Tools(Failure),
    /// The request carries files, which may be why.
    Files(Failure),
    /// Anything else.
    Other(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal::Other(failure)
    }
}

/// Returns whether an error is about the form of the answer.
pub(crate) fn refuses_form(code: u16, body: &str) -> bool {
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

/// Builds the body of a request, with the answer's form requested in this way.
pub(crate) fn body(
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

/// Removes the files that cannot be sent, and adds a note for the member. Returns the notice for the user.
fn leave_out(request: &mut Request, takes: impl Fn(MediaKind) -> bool, why: &str) -> Option<Delta> {
    let (line, notice) = attachments::leave_out(request, takes, why)?;
    attachments::say(request, &line);
    Some(notice)
}

/// Lets the other tasks of this thread run once, including the connection's, which then has the next chunk ready if it
/// has been received. Unlike a yield of the runtime, this does not poll the operating system.
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
