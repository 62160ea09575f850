//! Limits of requests at work: all together, and of followers, whose connections stay open for as long as their client
//! likes. A request beyond a limit is answered at once, before anybody is asked.

use crate::identity::Identity;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum requests at work.
pub(crate) const REQUESTS_MAX: usize = 512;
/// Maximum followers; the other requests have the rest.
const FOLLOWERS_MAX: usize = 256;
/// Maximum followers of one token: twice as many tabs and programs as one person has open.
const FOLLOWERS_OF_TOKEN_MAX: usize = 64;

/// The places of requests.
pub(crate) struct Places {
    requests: Arc<Semaphore>,
    followers: Arc<Semaphore>,
    /// By the digest of a token.
    of_token: Mutex<BTreeMap<[u8; 32], Arc<Semaphore>>>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            requests: Arc::new(Semaphore::new(REQUESTS_MAX)),
            followers: Arc::new(Semaphore::new(FOLLOWERS_MAX)),
            of_token: Mutex::default(),
        }
    }
}

/// The resources that an admitted request occupies until it is answered.
pub(crate) struct Taken {
    _places: Vec<OwnedSemaphorePermit>,
}

/// The status and the reason of a request that finds no place.
pub(crate) type Full = (StatusCode, &'static str);

impl Places {
    /// Takes the places that a request needs.
    ///
    /// # Errors
    /// If one of the limits is reached.
    pub(crate) fn take(&self, request: &Request, caller: &Identity) -> Result<Taken, Full> {
        let mut places = Vec::new();
        if follows(request) {
            let own = self.of(caller);
            let own = own.try_acquire_owned().map_err(|_| TOO_MANY_OF_TOKEN)?;
            let all = self.followers.clone().try_acquire_owned();
            places.extend([own, all.map_err(|_| TOO_MANY_FOLLOWERS)?]);
        }
        let request = self.requests.clone().try_acquire_owned();
        places.push(request.map_err(|_| TOO_MANY_REQUESTS)?);
        Ok(Taken { _places: places })
    }

    fn of(&self, caller: &Identity) -> Arc<Semaphore> {
        let mut known = self.of_token.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Semaphore::new(FOLLOWERS_OF_TOKEN_MAX));
        known.entry(*caller.print()).or_insert_with(new).clone()
    }
}

const TOO_MANY_OF_TOKEN: Full = (
    StatusCode::TOO_MANY_REQUESTS,
    "64 streams of events are open with this token: close one",
);
const TOO_MANY_FOLLOWERS: Full = (
    StatusCode::SERVICE_UNAVAILABLE,
    "256 streams of events are open: try again later",
);
const TOO_MANY_REQUESTS: Full = (
    StatusCode::SERVICE_UNAVAILABLE,
    "512 requests are being answered: try again later",
);

/// Returns whether a request opens a stream without an end: events of a thread, a thread of the page, MCP's own.
fn follows(request: &Request) -> bool {
    let path = request.uri().path();
    let streams = ["/threads/", "/page/threads/"];
    request.method() == Method::GET
        && (path == crate::MCP || streams.iter().any(|start| path.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Tokens;
    use axum::body::Body;

    fn get(path: &str) -> Request {
        Request::builder().uri(path).body(Body::empty()).unwrap()
    }

    #[test]
    fn followers_of_all_tokens_leave_places_for_requests() {
        let names: String = (0..5).map(|n| format!("0123456789abcde{n}\n")).collect();
        let tokens = Tokens::parse(&names).unwrap();
        let callers: Vec<Identity> = names.lines().filter_map(|t| tokens.owner(t)).collect();
        let places = Places::default();
        let mut taken = Vec::new();
        for (n, caller) in callers.iter().enumerate() {
            for (path, count) in [
                ("/threads/x/events", 40),
                ("/page/threads/x", 23),
                ("/mcp", 1),
            ] {
                let more = (0..count).filter_map(|_| places.take(&get(path), caller).ok());
                taken.extend(more);
            }
            assert_eq!(taken.len(), FOLLOWERS_MAX.min((n + 1) * 64));
            let full = places.take(&get("/mcp"), caller).err();
            let why = if n < 4 {
                TOO_MANY_OF_TOKEN
            } else {
                TOO_MANY_FOLLOWERS
            };
            assert_eq!(full, Some(why));
        }
        let rest = (0..600).filter_map(|_| places.take(&get("/page/threads"), &callers[0]).ok());
        let rest: Vec<Taken> = rest.collect();
        assert_eq!(rest.len(), REQUESTS_MAX - FOLLOWERS_MAX);
        let full = places.take(&get("/metrics"), &callers[1]).err();
        assert_eq!(full, Some(TOO_MANY_REQUESTS));
        drop((taken, rest));
        assert!(places.take(&get("/mcp"), &callers[0]).is_ok());
    }
}
