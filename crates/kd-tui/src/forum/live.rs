//! The event loop of the forum screen: passes keys and looks to the reader, and its effects to the library and the
//! terminal.

use super::reader::{Effect, Reader};
use super::{Deed, Done, Found, Library, View, Wants};
use crate::keys::{Input, Reply};
use crate::paint::Painter;
use crate::run::{self};
use crate::signals::{Caught, Signals};
use crate::terminal::{Place, Terminal};
use kd_app::{ErrorKind, UserError};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinError, JoinHandle};

/// Interval between reads of the store: posts arrive every few seconds at most.
const LOOK: Duration = Duration::from_millis(300);
/// Interval between reads of the fairness table, which reads all cycles.
const LOOK_FAIRNESS: Duration = Duration::from_secs(5);
/// Divisor of the time that reads may take: at most one part in four.
const PART: u32 = 4;

type Look = (Wants, Result<Found, UserError>, Duration);
type Looking = JoinHandle<Look>;
type Doing = JoinHandle<Result<Done, UserError>>;

struct Screen {
    reader: Reader,
    library: Arc<dyn Library>,
    terminal: Terminal,
    painter: Painter,
    looking: Looking,
    doing: Option<Doing>,
}

/// Shows the forum until the user leaves. Must be called inside a tokio runtime.
///
/// # Errors
/// If stdin or stdout is not a terminal, the signal handlers cannot be installed, or the terminal cannot be written.
pub async fn run(reader: Reader, library: Arc<dyn Library>) -> io::Result<()> {
    let mut signals = Signals::listen(false)?;
    let terminal = Terminal::enter(Place::Alternate)?;
    let looking = look(&library, reader.wants(), Duration::ZERO);
    let mut screen = Screen {
        reader,
        library,
        terminal,
        painter: Painter::default(),
        looking,
        doing: None,
    };
    let mut dirty = true;
    loop {
        if std::mem::take(&mut dirty) {
            screen.paint()?;
        }
        dirty = true;
        tokio::select! {
            biased;
            input = screen.terminal.next() => match input {
                Some(input) => {
                    if !screen.input(input) {
                        break;
                    }
                }
                None => break,
            },
            signal = signals.next() => match signal {
                Caught::End => break,
                Caught::Resize | Caught::Continue => screen.painter.forget(),
                Caught::Interrupt | Caught::Suspend => dirty = false,
            },
            done = done(&mut screen.doing) => {
                screen.doing = None;
                let effect = screen.reader.done(done);
                screen.carry_out(effect);
            }
            looked = &mut screen.looking => dirty = screen.looked(looked),
        }
    }
    screen.looking.abort();
    if let Some(doing) = screen.doing.take() {
        // Let a deed already sent finish, whatever its result.
        let _ = doing.await;
    }
    Ok(())
}

impl Screen {
    fn paint(&mut self) -> io::Result<()> {
        let (columns, rows) = self.terminal.size();
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        let cursor = self.reader.draw(&mut buffer);
        if let Some(bytes) = self.painter.frame(&buffer, cursor) {
            self.terminal.write(bytes)?;
        }
        Ok(())
    }

    /// Handles input. Returns false if the user leaves.
    fn input(&mut self, input: Input) -> bool {
        match input {
            Input::Key(key) => {
                let effect = self.reader.key(key);
                return self.carry_out(effect);
            }
            Input::Paste(text) => self.reader.paste(&text),
            Input::Wheel(lines) => self.reader.wheel(lines),
            Input::Reply(Reply::Synchronized(yes)) => self.painter.synchronized = yes,
            Input::Reply(Reply::Ground(r, g, b)) => {
                self.reader.looks.theme.learn(r, g, b);
            }
            Input::Reply(_) | Input::Focus(_) | Input::Mouse(..) => {}
        }
        true
    }

    /// Carries out an effect. Returns false if the user leaves.
    fn carry_out(&mut self, effect: Effect) -> bool {
        match effect {
            Effect::Nothing => {}
            Effect::Look => {
                self.looking.abort();
                self.looking = look(&self.library, self.reader.wants(), Duration::ZERO);
            }
            Effect::Do(deed) => self.doing = Some(act(&self.library, deed)),
            Effect::Copy(text, what) => {
                let library = self.library.clone();
                let env = |name: &str| library.var(name);
                let spill = |_: &str| Err(UserError::new(ErrorKind::Io, "found no clipboard"));
                let told = run::copy(&self.terminal, &text, &env, &spill).told(&what);
                self.reader.tell(&told);
            }
            Effect::Edit(text) => {
                let library = self.library.clone();
                self.away(|reader| reader.edited(run::edit(&text, &|name| library.var(name))));
            }
            Effect::Suspend => self.away(|_| {
                let own = rustix::process::getpid();
                // If suspending fails, continue.
                let _ = rustix::process::kill_process(own, rustix::process::Signal::TSTP);
            }),
            Effect::Redraw => self.painter.forget(),
            Effect::Leave => return false,
        }
        true
    }

    /// Releases the terminal while another program uses it.
    fn away(&mut self, what: impl FnOnce(&mut Reader)) {
        self.terminal.pause();
        what(&mut self.reader);
        // If the terminal is gone, the next read ends the loop.
        let _ = self.terminal.resume();
        self.painter.forget();
    }

    /// Handles the result of a look. Returns true if there is anything new to draw.
    fn looked(&mut self, looked: Result<Look, JoinError>) -> bool {
        let (wants, found, took) = match looked {
            Ok(looked) => looked,
            Err(error) => (self.reader.wants(), Err(stopped(&error)), LOOK),
        };
        let more = self.reader.has_more(&wants, &found);
        let new = self.reader.learn(&wants, found);
        let next = self.reader.wants();
        let same = (wants.view, wants.thread, &wants.search, wants.threads)
            == (next.view, next.thread, &next.search, next.threads);
        let usual = match next.view {
            View::Fairness => LOOK_FAIRNESS,
            _ => LOOK,
        };
        let pause = match same && !more {
            true => usual.max(took * PART),
            false => Duration::ZERO,
        };
        self.looking = look(&self.library, next, pause);
        new
    }
}

/// Looks into the library after a pause.
fn look(library: &Arc<dyn Library>, wants: Wants, pause: Duration) -> Looking {
    let library = library.clone();
    tokio::spawn(async move {
        tokio::time::sleep(pause).await;
        let began = Instant::now();
        let asked = wants.clone();
        let found = tokio::task::spawn_blocking(move || library.look(&asked)).await;
        let found = found.unwrap_or_else(|error| Err(stopped(&error)));
        (wants, found, began.elapsed())
    })
}

fn act(library: &Arc<dyn Library>, deed: Deed) -> Doing {
    let library = library.clone();
    tokio::task::spawn_blocking(move || library.act(&deed))
}

async fn done(doing: &mut Option<Doing>) -> Result<Done, UserError> {
    match doing {
        Some(doing) => doing.await.unwrap_or_else(|error| Err(stopped(&error))),
        None => std::future::pending().await,
    }
}

fn stopped(error: &JoinError) -> UserError {
    UserError::new(ErrorKind::Forum, error.to_string())
}
