//! MCP over streamable HTTP, on this machine only: a bearer token opens it, and a page in a browser does not get in by
//! pretending to be this machine (`Host` and `Origin` are checked).

use super::Server;
use super::identity::Tokens;
use crate::kingdom::Kingdom;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";
/// The most bytes of one request: a question of 4 MiB and what is around it.
const BODY_BYTES_MAX: usize = 8 << 20;
/// How long open streams get to end when the server is stopped.
const FAREWELL: Duration = Duration::from_secs(3);

/// A server that is bound to its address.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// Binds an address of this machine; port 0 takes a free one.
pub async fn bind(address: SocketAddr) -> std::io::Result<Bound> {
    if !address.ip().is_loopback() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            format!(
                "{} is not an address of this machine alone, such as 127.0.0.1",
                address.ip()
            ),
        ));
    }
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok(Bound { listener, address })
}

impl Bound {
    /// The address of the endpoint.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves until `stop`.
    pub async fn serve(
        self,
        kingdom: Arc<dyn Kingdom>,
        starter: Option<String>,
        tokens: Tokens,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        let ended = CancellationToken::new();
        let port = self.address.port();
        let hosts = ["localhost", "127.0.0.1", "[::1]"];
        let named = hosts.iter().map(|host| format!("{host}:{port}"));
        let origins = named.clone().map(|host| format!("http://{host}"));
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(named)
            .with_allowed_origins(origins)
            .with_max_request_body_bytes(BODY_BYTES_MAX)
            .with_cancellation_token(ended.clone());
        let server = Server::new(kingdom, starter);
        let councils = server.running.clone();
        let service = StreamableHttpService::new(
            move || Ok(server.clone()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let router = axum::Router::new()
            .nest_service(PATH, service)
            .layer(middleware::from_fn_with_state(Arc::new(tokens), admit));
        let closing = ended.clone();
        let serving = axum::serve(self.listener, router)
            .with_graceful_shutdown(async move { closing.cancelled_owned().await })
            .into_future();
        tokio::pin!(serving);
        tokio::select! {
            done = &mut serving => return done,
            () = stop => ended.cancel(),
        }
        councils.end().await;
        // Streams that do not end are cut.
        tokio::time::timeout(FAREWELL, serving)
            .await
            .unwrap_or(Ok(()))
    }
}

/// Lets in who has a token.
async fn admit(State(tokens): State<Arc<Tokens>>, mut request: Request, next: Next) -> Response {
    let header = request.headers().get(header::AUTHORIZATION);
    match tokens.caller(header.and_then(|h| h.to_str().ok())) {
        Some(identity) => {
            request.extensions_mut().insert(identity);
            next.run(request).await
        }
        None => (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, "Bearer realm=\"kd\"")],
            "a bearer token is needed: `kd serve` shows it when it starts\n",
        )
            .into_response(),
    }
}
