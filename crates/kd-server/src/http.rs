//! The HTTP front ends, on this machine unless the user says otherwise: they require a bearer token, and check `Host` and `Origin` so that a web
//! page cannot pretend to be local. Connections, sessions, sizes and times are limited.

use crate::MCP;
use crate::blocking::off;
use crate::body::is_json;
use crate::connections::{self, Limits, Mark};
use crate::events;
use crate::identity::Tokens;
use crate::mcp::sessions::{SESSIONS_MAX, Sessions};
use crate::mcp::{self, Server};
use crate::metrics::{self, Metrics};
use crate::models;
use crate::page;
use crate::places::Places;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kd_app::host::Host;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The session ID header.
const SESSION: &str = "mcp-session-id";
/// Maximum bytes of a request: a question of 4 MiB and its surroundings.
pub(crate) const BODY_BYTES_MAX: usize = 8 << 20;
/// How long open streams may take to end when the server stops.
const FAREWELL: Duration = Duration::from_secs(3);

/// The front ends to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faces {
    /// The Model Context Protocol.
    pub mcp: bool,
    /// The council as a model, over the OpenAI and Anthropic APIs.
    pub models: bool,
    /// The web page.
    pub page: bool,
}

/// A server bound to its address.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    /// The names by which other machines reach it.
    names: Vec<HostName>,
}

/// A name by which other machines reach a server, with or without a port: `kd.example.org`, `10.0.0.7:7717`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

/// The reason why a text is not a host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a host name has letters, digits, dots and hyphens, and may end with a port: kd.example.org, 10.0.0.7:7717, [fd00::7]"
)]
pub struct BadHostName;

impl std::str::FromStr for HostName {
    type Err = BadHostName;

    fn from_str(text: &str) -> Result<Self, BadHostName> {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (text, None),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        let six = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let is_name = match six {
            Some(six) => six.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !name.is_empty() && name.len() <= 253 && name.chars().all(plain),
        };
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        match is_name && is_port {
            true => Ok(Self(text.to_ascii_lowercase())),
            false => Err(BadHostName),
        }
    }
}

impl HostName {
    /// Returns the authorities that requests may name. A request may add the server's port to a name without a port,
    /// or leave the port out, as behind a proxy.
    fn authorities(&self, port: u16) -> Vec<String> {
        let has_port = self
            .0
            .rsplit_once(':')
            .is_some_and(|(_, port)| !port.ends_with(']'));
        match has_port {
            true => vec![self.0.clone()],
            false => vec![format!("{}:{port}", self.0), self.0.clone()],
        }
    }
}

/// Binds an address; port 0 picks a free one. Other machines reach it only by one of `names`.
///
/// # Errors
/// If the address cannot be bound, or is not a loopback address and there is no name.
pub async fn bind(address: SocketAddr, names: Vec<HostName>) -> std::io::Result<Bound> {
    if !address.ip().is_loopback() && names.is_empty() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            format!(
                "{} is not an address of this machine alone, such as 127.0.0.1, and no name is given by which others reach it",
                address.ip()
            ),
        ));
    }
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok(Bound {
        listener,
        address,
        names,
    })
}

impl Bound {
    /// Returns the URLs of the front ends.
    pub fn urls(&self, faces: Faces) -> Vec<String> {
        let paths = [
            (faces.mcp, MCP),
            (faces.models, models::PATH),
            (faces.page, page::PATH),
        ];
        let served = paths.iter().filter(|(served, _)| *served);
        served
            .map(|(_, path)| format!("http://{}{path}", self.authority()))
            .collect()
    }

    /// Returns the name and the port under which it is reached.
    fn authority(&self) -> String {
        let port = self.address.port();
        let named = self
            .names
            .iter()
            .flat_map(|name| name.authorities(port))
            .next();
        named.unwrap_or_else(|| self.address.to_string())
    }

    /// Returns the URL of the page, if served.
    pub fn page(&self, faces: Faces) -> Option<String> {
        let path = faces.page.then_some(page::PATH)?;
        Some(format!("http://{}{path}", self.authority()))
    }

    /// Serves until `stop`.
    ///
    /// # Errors
    /// None at present: a connection that fails is closed, and the others continue.
    pub async fn serve(
        self,
        faces: Faces,
        host: Arc<dyn Host>,
        starter: Option<String>,
        tokens: Tokens,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        let ended = CancellationToken::new();
        let (named, origins) = self.names();
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(named.clone())
            .with_allowed_origins(origins.clone())
            .with_max_request_body_bytes(BODY_BYTES_MAX)
            .with_cancellation_token(ended.clone());
        let limits = Limits::default();
        let sessions = Arc::new(Sessions::new(SESSIONS_MAX));
        let server = Server::new(host.clone(), starter);
        let councils = server.running.clone();
        let counts = councils.metrics.clone();
        let door = Gate {
            metrics: counts.clone(),
            tokens,
            hosts: named,
            origins,
            is_named: !self.names.is_empty(),
            limits,
            places: Places::default(),
            sessions: sessions.clone(),
            page: faces.page,
        };
        let service =
            StreamableHttpService::new(move || Ok(server.for_session()), sessions, config);
        let measured = host.clone();
        let measure = move || async move {
            // Counts of the server itself do not need the database of batches.
            let read = off(&measured, |host| (host.batches(), host.fleet())).await;
            let (batches, fleet) = read.unwrap_or_else(|_| (Ok(Vec::new()), None));
            counts.response(batches.unwrap_or_default(), fleet)
        };
        let mut router = axum::Router::new()
            .route(metrics::HEALTH, get(|| async { "ok\n" }))
            .route(metrics::PATH, get(measure));
        if faces.models || faces.page {
            router = router.merge(events::router(host.clone()));
        }
        if faces.models {
            router = router.merge(models::router(host.clone(), councils.clone()));
        }
        if faces.page {
            router = router.merge(page::router(host, councils.clone()));
        }
        if faces.mcp {
            router = router.nest_service(MCP, service);
        }
        let router = router.layer(middleware::from_fn_with_state(Arc::new(door), admit));
        let serving = connections::serve(self.listener, router, limits, ended.clone());
        tokio::pin!(serving);
        tokio::select! {
            () = &mut serving => {}
            () = stop => ended.cancel(),
        }
        councils.end().await;
        // Cut streams that do not end.
        let _ = tokio::time::timeout(FAREWELL, serving).await;
        Ok(())
    }

    /// Returns the hosts and the origins that requests may name.
    fn names(&self) -> (Vec<String>, Vec<String>) {
        let port = self.address.port();
        let hosts = ["localhost", "127.0.0.1", "[::1]"];
        let here = hosts.iter().map(|host| format!("{host}:{port}"));
        let others = self.names.iter().flat_map(|name| name.authorities(port));
        let others: Vec<String> = others.collect();
        let named: Vec<String> = here.clone().chain(others.iter().cloned()).collect();
        let schemes = ["http", "https"];
        let origins = schemes.iter().flat_map(|scheme| {
            let of = others.iter().map(move |host| format!("{scheme}://{host}"));
            of.collect::<Vec<_>>()
        });
        let origins: Vec<String> = here
            .map(|host| format!("http://{host}"))
            .chain(origins)
            .collect();
        (named, origins)
    }
}

/// The requirements for a request to be admitted.
struct Gate {
    tokens: Tokens,
    /// The authorities of this server.
    hosts: Vec<String>,
    /// The origins of its page.
    origins: Vec<String>,
    /// Whether other machines reach it by a name.
    is_named: bool,
    limits: Limits,
    places: Places,
    sessions: Arc<Sessions>,
    /// Whether the page is served.
    page: bool,
    /// Counts answered requests.
    metrics: Metrics,
}

impl Gate {
    /// Returns why a request is not meant for this server. It must have exactly one `Host`, and that, the URI's
    /// authority and a page's origin must be this server's.
    fn stranger(&self, request: &Request) -> Option<&'static str> {
        let ours = |host: &str| self.hosts.iter().any(|h| h.eq_ignore_ascii_case(host));
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Some("a request must have one Host header");
        };
        let named = request.uri().authority().map(|a| a.as_str());
        let fits = host.to_str().is_ok_and(ours) && named.is_none_or(ours);
        if !fits {
            return Some("the host is not this server: `kd serve --host NAME` adds a name of it");
        }
        if !self.is_named && is_forwarded(request.headers()) {
            return Some(
                "the request comes through a proxy, perhaps from another machine: start `kd serve` with `--host NAME`, and let the proxy pass `Host` on",
            );
        }
        // Browsers send the page's origin; other programs mostly send none.
        let own = |origin: &str| self.origins.iter().any(|o| o.eq_ignore_ascii_case(origin));
        let mut origins = request.headers().get_all(header::ORIGIN).iter();
        let all_own = origins.all(|origin| origin.to_str().is_ok_and(own));
        (!all_own).then_some("the request comes from a page of another origin")
    }
}

/// Returns whether a proxy forwarded a request and says so in a header. A server without a configured host name is for
/// this machine only: it offers everything that its user may use.
fn is_forwarded(headers: &HeaderMap) -> bool {
    const SIGNS: &[&str] = &["forwarded", "via", "x-real-ip"];
    let mut names = headers.keys().map(HeaderName::as_str);
    names.any(|name| SIGNS.contains(&name) || name.starts_with("x-forwarded-"))
}

/// Admits requests, and counts their responses.
async fn admit(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let response = check(&gate, request, next).await;
    gate.metrics.answered(&response);
    response
}

/// Admits local requests that carry a token; reads their bodies, limited in size and time.
async fn check(gate: &Gate, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let headers = request.headers().clone();
    let away = |status, why| models::turned_away((&path, &headers), status, why);
    if let Some(why) = gate.stranger(&request) {
        return away(StatusCode::FORBIDDEN, why);
    }
    // The page's document contains no data, and a browser cannot send a token with it. Monitoring has no token either.
    let is_open = path == metrics::HEALTH || gate.page && path == page::PATH;
    if is_open && matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let Some(identity) = gate.tokens.caller(request.headers()) else {
        let why = "missing or wrong bearer token: `kd serve` prints it at the start";
        let mut response = away(StatusCode::UNAUTHORIZED, why);
        let scheme = HeaderValue::from_static("Bearer realm=\"kd\"");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, scheme);
        return response;
    };
    let session = request.headers().get(SESSION);
    let session = session.and_then(|id| id.to_str().ok());
    if session.is_some_and(|id| gate.sessions.is_anothers(id, &identity)) {
        return away(StatusCode::NOT_FOUND, "there is no such session");
    }
    let ends = request.method() == Method::DELETE;
    let taken = match gate.places.take(&request, &identity) {
        Ok(taken) => taken,
        Err((status, why)) => return models::busy((&path, &headers), status, why),
    };
    let mark = request.extensions().get::<Mark>().cloned();
    let hold = mark.unwrap_or_default().hold().with(taken);
    request.extensions_mut().insert(identity.clone());
    let (head, body) = request.into_parts();
    let too_long = || {
        let why = "the body is longer than 8 MiB, or was cut off";
        away(StatusCode::PAYLOAD_TOO_LARGE, why)
    };
    // A declared length that is too long need not be waited for.
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return too_long();
    }
    let body = to_bytes(body, BODY_BYTES_MAX);
    let body = match tokio::time::timeout(gate.limits.body, body).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return too_long(),
        Err(_) => return away(StatusCode::REQUEST_TIMEOUT, "the body took too long"),
    };
    let request = Request::from_parts(head, Body::from(body.clone()));
    let mut response = gate.sessions.answer(identity, next.run(request)).await;
    let is_refused = response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE;
    if is_refused && path.starts_with(MCP) && is_json(&headers) {
        response = mcp::no_message(&body);
    }
    // Clients expect 200 or 204 at the end of a session, but the SDK returns 202.
    if ends && response.status() == StatusCode::ACCEPTED {
        response = StatusCode::NO_CONTENT.into_response();
    }
    hold.until_sent(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        Gate {
            tokens: Tokens::parse("0123456789abcdef").unwrap(),
            hosts: vec!["127.0.0.1:80".into(), "localhost:80".into()],
            origins: vec!["http://127.0.0.1:80".into(), "http://localhost:80".into()],
            is_named: false,
            limits: Limits::default(),
            places: Places::default(),
            sessions: Arc::new(Sessions::new(1)),
            page: true,
            metrics: Metrics::default(),
        }
    }

    #[test]
    fn what_a_proxy_passed_on_needs_a_name_of_the_server() {
        for (header, forwarded) in [
            ("X-Forwarded-For", true),
            ("x-forwarded-host", true),
            ("Forwarded", true),
            ("Via", true),
            ("X-Real-IP", true),
            ("X-Request-Id", false),
        ] {
            for is_named in [false, true] {
                let request = Request::builder()
                    .uri("/v1/models")
                    .header(header, "203.0.113.5");
                let request = request.header(header::HOST, "localhost:80");
                let request = request.body(Body::empty()).unwrap();
                let gate = Gate { is_named, ..gate() };
                let refused = gate.stranger(&request).is_some();
                assert_eq!(refused, forwarded && !is_named, "{header} {is_named}");
            }
        }
    }

    #[test]
    fn a_name_is_one_host_and_no_pattern_or_address_of_a_page() {
        for (text, authorities) in [
            (
                "kd.example.org",
                Some(&["kd.example.org:80", "kd.example.org"][..]),
            ),
            ("KD.Example.org:443", Some(&["kd.example.org:443"])),
            ("10.0.0.7:7717", Some(&["10.0.0.7:7717"])),
            ("[fd00::7]", Some(&["[fd00::7]:80", "[fd00::7]"])),
            ("[fd00::7]:7717", Some(&["[fd00::7]:7717"])),
            ("", None),
            ("*", None),
            ("*.example.org", None),
            ("http://kd.example.org", None),
            ("kd.example.org/", None),
            ("kd.example.org:", None),
            ("kd.example.org:0", None),
            ("kd.example.org:99999", None),
            ("user@kd.example.org", None),
            ("a b", None),
            ("[x]", None),
            ("fd00::7", None),
        ] {
            let name = text.parse::<HostName>().ok();
            let found = name.map(|name| name.authorities(80));
            let expected = authorities.map(|all| all.iter().map(|a| (*a).to_owned()).collect());
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_request_names_this_server_and_no_other() {
        for (uri, hosts, fits) in [
            ("/mcp", &["127.0.0.1:80"][..], true),
            ("/mcp", &["LOCALHOST:80"], true),
            ("http://localhost:80/mcp", &["localhost:80"], true),
            ("http://evil.example/mcp", &["localhost:80"], false),
            ("/mcp", &[], false),
            ("/mcp", &["127.0.0.1:80", "evil.example"], false),
            ("/mcp", &["127.0.0.1:80", "127.0.0.1:80"], false),
            ("/mcp", &["x@127.0.0.1:80"], false),
            ("/mcp", &["x:y@127.0.0.1:80"], false),
            ("/mcp", &["127.0.0.1"], false),
            ("/mcp", &["127.0.0.1:81"], false),
            ("/mcp", &["127.0.0.1.:80"], false),
            ("/mcp", &["127.1:80"], false),
            ("/mcp", &["evil.example"], false),
            ("/mcp", &["\u{e4}"], false),
            ("/mcp", &[""], false),
        ] {
            let mut request = Request::builder().uri(uri);
            for host in hosts {
                request = request.header(header::HOST, *host);
            }
            let request = request.body(Body::empty()).unwrap();
            assert_eq!(gate().stranger(&request).is_none(), fits, "{uri} {hosts:?}");
        }
        for (origins, fits) in [
            (&[][..], true),
            (&["http://127.0.0.1:80"], true),
            (&["http://localhost:80"], true),
            (&["http://127.0.0.1:80", "http://evil.example"], false),
            (&["http://evil.example"], false),
            (&["https://localhost:80"], false),
            (&["null"], false),
            (&["app://localhost:80"], false),
            (&["\u{e4}"], false),
        ] {
            let mut request = Request::builder().uri("/v1/models");
            request = request.header(header::HOST, "localhost:80");
            for origin in origins {
                request = request.header(header::ORIGIN, *origin);
            }
            let request = request.body(Body::empty()).unwrap();
            assert_eq!(gate().stranger(&request).is_none(), fits, "{origins:?}");
        }
    }
}
