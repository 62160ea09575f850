//! `kd serve`: binds a local address, prints it and how to connect, and serves until stopped.

use super::here::Here;
use super::mcp::{folder_host, name, signals};
use crate::args::serve::Serve;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::Runtime;
use kd_backends::secret_file::{self, Links};
use kd_server::http::{self, Faces};
use kd_server::{Tokens, generate};
use std::io::Write;
use std::sync::Arc;

/// Maximum bytes of a token file.
const TOKENS_BYTES_MAX: u64 = 1 << 20;

/// The variable for a token set by the user.
const TOKEN: &str = "KD_SERVE_TOKEN";

pub(super) fn run(args: &Serve, here: &Here) -> Result<Exit, Error> {
    // If nothing is chosen, all three are served.
    let all = !args.mcp && !args.models && !args.page;
    let faces = Faces {
        mcp: args.mcp || all,
        models: args.models || all,
        page: args.page || all,
    };
    let starter = name(args.name.as_deref())?;
    let (tokens, fresh) = tokens(args, here)?;
    let host = Arc::new(folder_host(here, args.offline)?.with_tokens(tokens.names()));
    let runtime = Runtime::new()?;
    let served = runtime.block_on(async {
        let bound = http::bind(args.listen).await.map_err(|e| {
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

/// Returns the accepted tokens, and the token itself if newly generated.
fn tokens(args: &Serve, here: &Here) -> Result<(Tokens, Option<String>), Error> {
    let bad = |place: &str, why: kd_server::BadTokens| {
        Error::usage(format!("{place}: {why}")).next("a line is TOKEN, or NAME TOKEN")
    };
    if let Some(path) = &args.tokens {
        let place = path.display().to_string();
        let text = secret_file::read(path, TOKENS_BYTES_MAX, Links::Refuse).map_err(|e| {
            let what = format!("the tokens file {place} cannot be used");
            let hint = e.hint();
            Error::new("io", Exit::Error, what).because(e).next(hint)
        })?;
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
