//! Asks the model in `KD_MODEL` one question: `cargo run -p kd-local --example say -- "What is the capital of France?"`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::Write;
use std::sync::mpsc::channel;

use kd_local::chat::{ChatMessage, Role};
use kd_local::{Engine, Job, Options, Piece, Sampling};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::var_os("KD_MODEL").ok_or("set KD_MODEL to a GGUF file")?;
    let question = std::env::args().nth(1).ok_or("what is the question?")?;
    let engine = Engine::load(path.as_ref(), Options::default())?;
    let (sender, pieces) = channel();
    let job = Job {
        messages: vec![ChatMessage::new(Role::User, question)],
        sampling: Sampling::default(),
        max_tokens: 200,
        stop: Vec::new(),
        schema: None,
        watch: None,
    };
    // The ticket keeps the job alive; the channel closes with the job.
    let _ticket = engine.submit(job, move |piece| drop(sender.send(piece)));
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                print!("{text}");
                std::io::stdout().flush()?;
            }
            Piece::Done { reason, usage } => eprintln!("\n{reason:?} {usage:?}"),
            Piece::Failed(error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}
