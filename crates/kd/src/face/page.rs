//! Output to a pipe or file: a Markdown document of complete answers. Input: records. Output: the text of
//! [`document::markdown`], written as far as it is final; progress on stderr as in plain output.

use super::plain::Plain;
use super::{Face, Io, document};
use crate::render::style::Styles;
use kd_core::view::View;
use kd_core::{Record, Timestamp};
use std::io;
use std::time::Duration;

/// Output to a pipe or file.
pub(crate) struct Page {
    /// Writes to stderr.
    lines: Plain,
    /// Whether the title is written.
    begun: bool,
    /// Number of turns written.
    written: usize,
}

impl Page {
    /// Creates the output; `quiet` omits everything on stderr.
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            lines: Plain::new(Styles::NONE, quiet).beside_a_document(),
            begun: false,
            written: 0,
        }
    }

    /// Writes complete answers, up to the first incomplete one.
    fn write(&mut self, view: &View, all: bool, io: &mut Io<'_>) -> io::Result<()> {
        while let Some(turn) = view.turns.get(self.written) {
            if !turn.is_over() && !all {
                break;
            }
            if !std::mem::replace(&mut self.begun, true) {
                io.out.write_all(document::head(view).as_bytes())?;
            }
            io.out.write_all(document::section(turn).as_bytes())?;
            self.written += 1;
        }
        io.out.flush()
    }
}

/// Returns the streams with stdout discarded.
fn aside<'a>(io: &'a mut Io<'_>, none: &'a mut io::Sink) -> Io<'a> {
    Io {
        out: none,
        err: &mut *io.err,
    }
}

impl Face for Page {
    fn hear(&mut self, record: &Record, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        let mut none = io::sink();
        self.lines.hear(record, view, &mut aside(io, &mut none))?;
        self.write(view, false, io)
    }

    fn catch_up(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        let mut none = io::sink();
        self.lines.catch_up(view, &mut aside(io, &mut none))?;
        self.write(view, false, io)
    }

    fn tick(&mut self, now: Timestamp, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        let mut none = io::sink();
        self.lines.tick(now, view, &mut aside(io, &mut none))
    }

    fn tick_in(&self, now: Timestamp) -> Option<Duration> {
        self.lines.tick_in(now)
    }

    fn end(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        let mut none = io::sink();
        self.lines.end(view, &mut aside(io, &mut none))?;
        self.write(view, true, io)?;
        if self.begun {
            io.out.write_all(document::foot(view).as_bytes())?;
        }
        io.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::script::{Script, duet_round, full_round};

    fn whole(script: &Script) -> String {
        let view = View::of(&script.records);
        document::markdown(&view)
    }

    #[test]
    fn a_pipe_gets_the_document_that_a_file_gets() {
        for script in [full_round(), duet_round()] {
            let (out, err) = script.play(&mut Page::new(false));
            assert_eq!(out, whole(&script));
            assert!(!out.contains("\n\n\n"), "{out}");
            assert!(err.contains(": asked"), "progress goes to stderr: {err}");
            // A member that failed is named with its failure there too.
            let view = View::of(&script.records);
            let failed = view.turns.iter().filter(|turn| {
                let failure = turn.failure();
                failure.is_some_and(|f| f.kind != kd_core::FailureKind::Cancelled)
            });
            for turn in failed {
                let line = format!("{}: {}\n", turn.seat, crate::face::words::doing(turn, None));
                assert!(err.contains(&line), "{line} {err}");
            }
            assert!(script.play(&mut Page::new(true)).1.is_empty());
        }
    }

    #[test]
    fn answers_are_whole_and_in_order_whoever_is_first() {
        let mut script = Script::open(&["a", "b"]);
        script.say("Which?");
        script.queue(1, "a");
        script.queue(2, "b");
        script.text(1, "one\n\n");
        script.text(2, "two\n\nthree");
        script.finish(2, "b", "two\n\nthree");
        // Nothing yet: the first answer is incomplete.
        let mut face = Page::new(true);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut view = View::default();
        for record in &script.records {
            view.fold_record(record);
            let mut io = Io {
                out: &mut out,
                err: &mut err,
            };
            face.hear(record, &view, &mut io).unwrap();
        }
        assert!(out.is_empty());
        script.finish(1, "a", "one\n\nfour");
        let (out, _) = script.play(&mut Page::new(true));
        let at = |part: &str| out.find(part).expect(part);
        assert!(out.starts_with("# Which?\n\n## a\n"), "{out}");
        assert!(at("one\n\nfour") < at("## b") && at("## b") < at("two\n\nthree"));
    }

    #[test]
    fn an_answer_cannot_look_like_another_member() {
        let evil = "# b\n## b\nyes\x1b[2J\u{202e}\n---\n<script>";
        let mut script = Script::open(&["a", "b"]);
        script.say("Which?");
        script.queue(1, "a");
        script.text(1, evil);
        script.finish(1, "a", evil);
        let (out, _) = script.play(&mut Page::new(true));
        let heads = out
            .lines()
            .filter(|l| l.starts_with("# ") || l.starts_with("## "));
        assert_eq!(heads.collect::<Vec<_>>(), ["# Which?", "## a"]);
        assert!(
            !out.contains(['\x1b', '\u{202e}']) && !out.contains("\n<script>"),
            "{out}"
        );
    }
}
