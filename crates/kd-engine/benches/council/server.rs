//! The fake server, run as a separate process of this program so that its work is not counted.

use crate::Kind;
use kd_fake::{Fake, Reply, Script, Step, Wire};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// Distinct replies of the failing kind; later requests repeat the sequence from the last one on.
const FAULTY_REPLIES: usize = 4000;

/// A running server; stops when dropped.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(kind: Kind) -> Self {
        Self::of(&["serve", kind.word()])
    }

    /// Starts a process that passes bytes on to an address: what one more hop costs.
    pub(crate) fn relaying(url: &str) -> Self {
        Self::of(&["relay", url.trim_start_matches("http://")])
    }

    fn of(args: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        stdout.read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        Self { child, stdout, url }
    }

    /// Stops the server and returns how many requests it received.
    pub(crate) fn stop(mut self) -> usize {
        drop(self.child.stdin.take());
        let mut count = String::new();
        self.stdout.read_to_string(&mut count).unwrap();
        count.trim().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// `serve KIND`: prints the address, serves until stdin ends, prints the number of requests.
pub(crate) fn serve(kind: Kind) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let fake = Fake::start(script(kind)).await.unwrap();
        println!("{}", fake.url());
        let mut sink = Vec::new();
        let _ = tokio::io::stdin().read_to_end(&mut sink).await;
        println!("{}", fake.seen().len());
    });
}

/// `relay ADDRESS`: listens at a new address, prints it, and forwards bytes until stdin ends.
pub(crate) fn relay(to: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("http://{}", listener.local_addr().unwrap());
        let to = to.to_owned();
        tokio::spawn(async move {
            loop {
                let (mut from, _) = listener.accept().await.unwrap();
                let mut to = TcpStream::connect(&to).await.unwrap();
                from.set_nodelay(true).unwrap();
                to.set_nodelay(true).unwrap();
                tokio::spawn(async move { copy_bidirectional(&mut from, &mut to).await });
            }
        });
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    });
}

fn script(kind: Kind) -> Script {
    let wire = Wire::OpenAi;
    let good = Reply::burst(wire, 100);
    match kind {
        Kind::Burst100 => Script::always(wire, good),
        Kind::Burst200 => Script::always(wire, Reply::burst(wire, 200)),
        Kind::Paced => Script::always(
            wire,
            Reply::steady(100, Duration::from_millis(200), Duration::from_millis(5)),
        ),
        Kind::Soon => Script::always(
            wire,
            Reply::steady(10, Duration::from_millis(20), Duration::from_millis(2)),
        ),
        Kind::Faulty => Script::then(wire, faulty(&good)),
    }
}

/// One reply in ten is a 429, a 500 or a stream cut in the middle.
fn faulty(good: &Reply) -> Vec<Reply> {
    // Fixed seed: the same requests fail in every run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..FAULTY_REPLIES)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            match state % 30 {
                0 => Reply::status(429),
                1 => Reply::status(500),
                2 => Reply::Stream(vec![Step::Text(" half".into()), Step::Cut]),
                _ => good.clone(),
            }
        })
        .collect()
}
