//! `kd serve`: binds an address, prints it and how to connect, and serves until stopped.

use super::first;
use super::here::Here;
use super::mcp::{folder_host, name, signals};
use super::notices::notice_line;
use crate::args::serve::Serve;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::{Runtime, infile};
use kd_server::http::{self, Faces};
use kd_server::{Tokens, generate};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Maximum bytes of a token file.
const TOKENS_BYTES_MAX: u64 = 1 << 20;

/// Maximum time until a server reports that it works.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes of that answer.
const HEALTH_BYTES_MAX: u64 = 4096;
/// The variable for a token set by the user.
const TOKEN: &str = "KD_SERVE_TOKEN";

pub(super) fn run(args: &Serve, here: &Here) -> Result<Exit, Error> {
    if args.health {
        return health(args.listen);
    }
    // If nothing is chosen, all three are served.
    let all = !args.mcp && !args.models && !args.page;
    let faces = Faces {
        mcp: args.mcp || all,
        models: args.models || all,
        page: args.page || all,
    };
    let starter = name(args.name.as_deref())?;
    let (tokens, fresh) = tokens(args, here)?;
    let store = super::batch::store(&args.store, here)?;
    let host = folder_host(here, args.offline)?;
    if host.shows_the_demo() {
        first::notice(false, here);
    }
    let mut host = host.with_tokens(tokens.names()).with_fleet(store);
    if !args.listen.ip().is_loopback() && args.host.is_empty() {
        let what = format!(
            "{} is not an address of this machine alone",
            args.listen.ip()
        );
        return Err(Error::usage(what)
            .because("requests are admitted only for names that you list, so that no web page reaches the server")
            .next(format!("kd serve --listen {} --host NAME, with the name by which other machines reach this one", args.listen)));
    }
    if !args.host.is_empty() {
        let left_out;
        (host, left_out) = host.for_others();
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            notice_line(&format!(
                "agent programs are not offered to other machines: {names}"
            ));
        }
        notice_line(
            "there is no TLS: let a proxy on this machine add it, and keep the port closed to others",
        );
    }
    let host = Arc::new(host);
    let runtime = Runtime::new()?;
    let served = runtime.block_on(async {
        let bound = http::bind(args.listen, args.host.clone())
            .await
            .map_err(|e| {
                Error::new(
                    "io",
                    Exit::Error,
                    format!("{} cannot be served", args.listen),
                )
                .because(e)
                .next("kd serve --listen 127.0.0.1:0")
            })?;
        let mut out = crate::out::stdout().lock();
        for url in bound.urls(faces) {
            writeln!(out, "{url}")?;
        }
        out.flush()?;
        drop(out);
        if let Some(token) = &fresh {
            let _ = writeln!(
                crate::out::stderr(),
                "token (valid until this ends; set {TOKEN} for one that stays): {token}"
            );
            // After the #, it is neither sent nor logged.
            if let Some(page) = bound.page(faces) {
                let _ = writeln!(crate::out::stderr(), "open: {page}#token={token}");
            }
        }
        let mut signals = signals()?;
        let stop = async move { signals.stopped().await };
        bound
            .serve(faces, host, starter, tokens, stop)
            .await
            .map_err(|e| Error::new("io", Exit::Error, "the server failed").because(e))
    });
    drop(runtime);
    served.map(|()| Exit::Done)
}

/// Asks a server whether it works.
fn health(listen: SocketAddr) -> Result<Exit, Error> {
    // A server on all addresses is also on this one.
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let address = SocketAddr::new(ip, listen.port());
    let ask = || -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, HEALTH_TIMEOUT)?;
        stream.set_read_timeout(Some(HEALTH_TIMEOUT))?;
        stream.set_write_timeout(Some(HEALTH_TIMEOUT))?;
        let request =
            format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.take(HEALTH_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().map_err(|e| {
        Error::new("io", Exit::Error, format!("no server answers at {address}")).because(e)
    })?;
    if !answer.starts_with("HTTP/1.1 200 ") || !answer.ends_with("ok\n") {
        let first = kd_core::clean::clean_line(answer.lines().next().unwrap_or_default(), 80);
        let what = format!("what answers at {address} is no `kd serve` that works");
        return Err(Error::new("io", Exit::Error, what).because(first));
    }
    writeln!(crate::out::stdout(), "ok")?;
    Ok(Exit::Done)
}

/// Returns the accepted tokens, and the token itself if newly generated.
fn tokens(args: &Serve, here: &Here) -> Result<(Tokens, Option<String>), Error> {
    let bad = |place: &str, why: kd_server::BadTokens| {
        Error::usage(format!("{place}: {why}")).next("a line is TOKEN, or NAME TOKEN")
    };
    if let Some(path) = &args.tokens {
        let place = path.display().to_string();
        let text = infile::read_secret(path, TOKENS_BYTES_MAX, "the tokens file")?;
        return Ok((Tokens::parse(&text).map_err(|e| bad(&place, e))?, None));
    }
    if let Some(token) = here.var(TOKEN) {
        return Ok((Tokens::parse(&token).map_err(|e| bad(TOKEN, e))?, None));
    }
    let token = generate()
        .map_err(|e| Error::new("io", Exit::Error, "cannot get random numbers").because(e))?;
    let tokens = Tokens::parse(&token).map_err(|e| bad("token", e))?;
    Ok((tokens, Some(token)))
}
