//! Downloads one pinned file from the Hugging Face hub, or a mirror at `HF_ENDPOINT`, resuming where it stopped.

use super::Progress;
use super::store::Place;
use crate::env::Env;
use crate::transport::client::{self, Certificates, NoClient};
use kd_local::catalog::KnownModel;
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, StatusCode};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

/// The hub's address, unless `HF_ENDPOINT` is set.
const ENDPOINT: &str = "https://huggingface.co";
/// Connection timeout: short, so that a machine that cannot reach the hub tries the next source soon.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Timeout without any data.
const READ_LIMIT: Duration = Duration::from_secs(30);
/// Attempts without progress before this source is given up.
const IDLE_ATTEMPTS: u32 = 2;

fn limited(builder: ClientBuilder) -> ClientBuilder {
    builder
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(READ_LIMIT)
}

/// Returns a client for one address, which follows no redirect.
pub(super) fn one_host(url: &str) -> Result<Client, NoClient> {
    client::create(url, Certificates::System, |builder| {
        limited(builder).redirect(Policy::none())
    })
}

/// Returns the hub's display name.
pub(super) fn name(env: &Env) -> String {
    env.get("HF_ENDPOINT")
        .unwrap_or_else(|| ENDPOINT.to_owned())
}

/// Downloads the file to `place.part`; an error is a text for the user. A partial download is kept for the next
/// attempt.
pub(super) async fn fetch(
    model: &KnownModel,
    place: &Place,
    env: &Env,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), String> {
    let endpoint = name(env);
    let url = model.hub.url(&endpoint);
    let client = client::create(&url, Certificates::System, limited).map_err(|e| e.to_string())?;
    let mut have = length(place);
    progress(Progress::Trying {
        from: endpoint,
        have,
    });
    if let Some(sha256) = named(&url).await? {
        if sha256 != model.sha256 {
            return Err(format!(
                "it names the SHA-256 {sha256} for this file, but kd knows it as {}; nothing was downloaded",
                model.sha256
            ));
        }
        progress(Progress::Confirmed { sha256 });
    }
    let mut idle = 0;
    loop {
        match attempt(&client, &url, model, place, progress).await {
            Ok(()) => return Ok(()),
            Err(Stop::ForGood(why)) => return Err(why),
            Err(Stop::ForNow(why)) => {
                let now = length(place);
                idle = if now > have { 0 } else { idle + 1 };
                have = now;
                if idle >= IDLE_ATTEMPTS {
                    return Err(why);
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// Asks the hub for the SHA-256 of a file, before anything is downloaded. `None` if it names none: mirrors need not.
/// The header is on the hub's own response, which may redirect to the file.
async fn named(url: &str) -> Result<Option<String>, String> {
    let client = one_host(url).map_err(|e| e.to_string())?;
    let response = match client.head(url).send().await {
        Ok(response) => response,
        Err(e) if e.is_connect() => {
            let why = crate::status::io_words(&e);
            return Err(format!("cannot be reached ({why})"));
        }
        // The download tells what is wrong.
        Err(_) => return Ok(None),
    };
    let value = response.headers().get("x-linked-etag");
    let value = value.and_then(|v| v.to_str().ok()).unwrap_or_default();
    let value = value.trim_matches('"').to_ascii_lowercase();
    let is_sha256 = value.len() == 64 && value.bytes().all(|b| b.is_ascii_hexdigit());
    Ok(is_sha256.then_some(value))
}

/// Whether a retry is worthwhile.
enum Stop {
    ForGood(String),
    ForNow(String),
}

/// Checks the head of a response, and empties the file unless the response continues it. Returns how many bytes the file
/// has.
fn accepted(
    response: &reqwest::Response,
    file: &mut std::fs::File,
    have: u64,
    disk: &impl Fn(std::io::Error) -> Stop,
) -> Result<u64, Stop> {
    match response.status() {
        StatusCode::PARTIAL_CONTENT => {
            let range = response
                .headers()
                .get(CONTENT_RANGE)
                .and_then(|v| v.to_str().ok())
                .unwrap_or_default();
            if !range.starts_with(&format!("bytes {have}-")) {
                file.set_len(0).map_err(disk)?;
                return Err(Stop::ForNow("it sent another range than requested".into()));
            }
            Ok(have)
        }
        StatusCode::OK => {
            file.set_len(0).map_err(disk)?;
            Ok(0)
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            file.set_len(0).map_err(disk)?;
            Err(Stop::ForNow("it does not have the rest of the file".into()))
        }
        code if code.is_server_error() || code == StatusCode::TOO_MANY_REQUESTS => {
            Err(Stop::ForNow(format!("it answered HTTP {}", code.as_u16())))
        }
        code => Err(Stop::ForGood(format!("it answered HTTP {}", code.as_u16()))),
    }
}

async fn attempt(
    client: &reqwest::Client,
    url: &str,
    model: &KnownModel,
    place: &Place,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), Stop> {
    let disk =
        |e: std::io::Error| Stop::ForGood(format!("cannot write {}: {e}", place.part.display()));
    let mut have = length(place);
    if have == model.bytes {
        return Ok(());
    }
    if have > model.bytes {
        // It cannot be a part of this file.
        std::fs::remove_file(&place.part).map_err(disk)?;
        have = 0;
    }
    let mut request = client.get(url);
    if have > 0 {
        request = request.header(RANGE, format!("bytes={have}-"));
    }
    let sent = request.send().await;
    let mut response = sent.map_err(|e| {
        let why = format!("cannot be reached ({})", crate::status::io_words(&e));
        if e.is_connect() {
            Stop::ForGood(why)
        } else {
            Stop::ForNow(why)
        }
    })?;
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&place.part)
        .map_err(disk)?;
    have = accepted(&response, &mut file, have, &disk)?;
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) => {
                have += bytes.len() as u64;
                if have > model.bytes {
                    file.set_len(0).map_err(disk)?;
                    return Err(Stop::ForGood(format!(
                        "it sent more than the {} bytes of the model",
                        model.bytes
                    )));
                }
                file.write_all(&bytes).map_err(disk)?;
                progress(Progress::Bytes {
                    done: have,
                    total: model.bytes,
                });
            }
            Ok(None) if have == model.bytes => return Ok(()),
            Ok(None) => {
                return Err(Stop::ForNow(format!(
                    "it ended after {have} of {} bytes",
                    model.bytes
                )));
            }
            Err(e) => {
                return Err(Stop::ForNow(format!(
                    "the transfer failed ({})",
                    crate::status::io_words(&e)
                )));
            }
        }
    }
}

fn length(place: &Place) -> u64 {
    std::fs::metadata(&place.part).map_or(0, |m| m.len())
}
