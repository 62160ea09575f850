//! Every kind of panel and state on a `TestBackend`, at three sizes; keys and pastes through the decoder, the app and a
//! vt100 terminal.

use kd_app::{ChatOpening, Older, ThreadRow};
use kd_core::event::{Outcome, Purpose};
use kd_core::message::{Address, Provenance};
use kd_core::slash::Fork;
use kd_core::view::View;
use kd_core::{
    Delta, Event, Failure, FailureKind, Message, Op, Record, SeatName, Status, ThreadId, Timestamp,
    TurnId, Usage,
};
use kd_tui::app::{Effect, Msg, Output};
use kd_tui::draw::draw;
use kd_tui::keys::Decoder;
use kd_tui::paint::Painter;
use kd_tui::panels::Frame;
use kd_tui::theme::{Choice, Depth, Ground, Theme};
use kd_tui::{App, Settings};
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;
use std::sync::Arc;
use std::time::Duration;

const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (140, 45)];

fn seat(name: &str) -> SeatName {
    SeatName::new(name).expect("a name")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_780_000_000 + second).expect("a time")
}

fn message(seq: u32, from: &str, body: &str) -> Message {
    Message {
        seq,
        from: from.into(),
        to: Address::All,
        at: at(i64::from(seq)),
        status: (from != "king").then_some(Status::Complete),
        refs: vec![],
        provenance: Provenance::default(),
        extra: Default::default(),
        body: body.into(),
    }
}

/// An app in a thread, with the records it has received.
struct Play {
    app: App,
    seq: u64,
    /// Seconds from the start to the next record.
    clock: i64,
}

impl Play {
    fn new(tail: Vec<Message>) -> Self {
        Self::framed(tail, Frame::Box)
    }

    fn framed(tail: Vec<Message>, frame: Frame) -> Self {
        let settings = Settings {
            frame,
            ..settings()
        };
        Self::open(App::new(settings, at(100)), tail)
    }

    /// Opens an empty thread with settings of which something is wrong.
    fn with(settings: Settings, wrong: Vec<String>) -> Self {
        let mut app = App::new(settings, at(100));
        app.report(wrong);
        Self::open(app, Vec::new())
    }

    fn open(mut app: App, tail: Vec<Message>) -> Self {
        let opening = ChatOpening {
            id: "council-a8b3".into(),
            members: ["claude", "codex", "cursor"].map(seat).to_vec(),
            absent: Vec::new(),
            disabled: Vec::new(),
            has_older: tail.first().is_some_and(|m| m.seq > 1),
            tail,
            mode: Some("broadcast".into()),
            auto_messages: None,
            draft: String::new(),
            notes: Vec::new(),
            records: Vec::new(),
        };
        app.update(Msg::Opened(Box::new(opening)), &no_files);
        app.update(Msg::Ready(vec![]), &no_files);
        Self {
            app,
            seq: 0,
            clock: 0,
        }
    }

    fn hear(&mut self, event: Event) -> Vec<Effect> {
        self.seq += 1;
        let record = Record {
            v: 1,
            seq: self.seq,
            ts: at(100 + self.clock),
            thread: ThreadId("council-a8b3".into()),
            event,
        };
        self.app.update(Msg::Record(Arc::new(record)), &no_files)
    }

    fn turn(&mut self, turn: u32, name: &str) {
        self.hear(Event::TurnQueued {
            turn: TurnId::new(turn),
            seat: seat(name),
            purpose: Purpose::Answer,
            replaces: None,
            ahead: Vec::new(),
        });
    }

    /// Starts a turn of members that speak one by one.
    fn turn_before(&mut self, turn: u32, name: &str, ahead: &[&str]) {
        self.hear(Event::TurnQueued {
            turn: TurnId::new(turn),
            seat: seat(name),
            purpose: Purpose::Answer,
            replaces: None,
            ahead: ahead.iter().map(|name| seat(name)).collect(),
        });
    }

    /// Ends a turn whose message has this number.
    fn ends(&mut self, turn: u32, name: &str, seq: u32, usage: Usage) {
        self.hear(Event::MessageAdded {
            message: message(seq, name, "That is settled."),
            turn: Some(TurnId::new(turn)),
            found: false,
        });
        self.hear(Event::TurnFinished {
            turn: TurnId::new(turn),
            seat: seat(name),
            message: Some(seq),
            usage: Some(usage),
            tools: 0,
            thought: 0,
        });
    }

    fn delta(&mut self, turn: u32, delta: Delta) {
        self.hear(Event::TurnDelta {
            turn: TurnId::new(turn),
            delta,
        });
    }

    fn text(&mut self, turn: u32, text: &str) {
        self.delta(turn, Delta::Text { text: text.into() });
    }

    fn keys(&mut self, bytes: &[u8]) -> Vec<Effect> {
        let mut decoder = Decoder::default();
        let mut inputs = decoder.feed(bytes);
        inputs.extend(decoder.flush());
        inputs
            .into_iter()
            .flat_map(|i| self.app.update(Msg::Input(i), &files))
            .collect()
    }

    fn later(&mut self, seconds: i64) {
        self.app.update(Msg::Now(at(100 + seconds)), &no_files);
    }

    fn screen(&mut self, (columns, rows): (u16, u16)) -> String {
        self.app.update(Msg::Resize(columns, rows), &no_files);
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        let mut cursor = None;
        terminal
            .draw(|frame| cursor = draw(&mut self.app, frame.buffer_mut()))
            .unwrap();
        let shown = format!("{}", terminal.backend());
        format!("{shown}cursor: {cursor:?}\n")
    }

    /// Returns the screen, with the style of every styled part.
    fn styled(&mut self, (columns, rows): (u16, u16)) -> String {
        self.screen((columns, rows));
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        draw(&mut self.app, &mut buffer);
        let mut out = String::new();
        for row in buffer.content.chunks(columns.into()) {
            let same = |a: &Cell, b: &Cell| (a.fg, a.bg, a.modifier) == (b.fg, b.bg, b.modifier);
            let mut line = String::new();
            for run in row.chunk_by(same) {
                let text: String = run.iter().map(Cell::symbol).collect();
                let cell = &run[0];
                let mut style: Vec<String> = Vec::new();
                if cell.fg != Color::Reset {
                    style.push(format!("{:?}", cell.fg));
                }
                if !cell.modifier.is_empty() {
                    style.push(format!("{:?}", cell.modifier));
                }
                if style.is_empty() {
                    line.push_str(&text);
                } else {
                    line.push_str(&format!("[{}: {text}]", style.join(" ")));
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    fn shows(&mut self, words: &str) -> bool {
        self.screen((80, 24)).contains(words)
    }
}

fn settings() -> Settings {
    Settings {
        theme: Theme::new(Choice::Auto, Depth::True, Ground::Dark),
        unicode: true,
        gives_up: Some(Duration::from_secs(600)),
        zone: utc(),
        modes: vec!["broadcast", "sequential", "natural", "manual"],
        sent: vec!["what I sent before".into()],
        keys: Arc::default(),
        frame: Frame::Box,
        links: true,
        shell: false,
        secrets: kd_core::secrets::Secrets::default(),
    }
}

fn utc() -> jiff::tz::TimeZone {
    jiff::tz::TimeZone::UTC
}

fn no_files(_: &str) -> Vec<String> {
    Vec::new()
}

fn files(begun: &str) -> Vec<String> {
    ["src/", "src/main.rs"]
        .into_iter()
        .filter(|f| f.starts_with(begun))
        .map(str::to_owned)
        .collect()
}

fn snapshot(name: &str, play: &mut Play) {
    for size in SIZES {
        insta::assert_snapshot!(format!("{name}-{}", size.0), play.screen(size));
    }
}

const ANSWER: &str = "I think we should consider **three approaches**:\n\n1. Normalize fully and use joins\n2. Denormalize for `read` performance\n\n```sql\nSELECT id, name FROM users -- all\nWHERE name = '日本' LIMIT 10;\n```\n\n| store | writes | note |\n|---|---:|---|\n| SQLite | 1,000 | one file |\n| PostgreSQL | 15,000 | a server |\n";

#[test]
fn an_empty_thread() {
    snapshot("empty", &mut Play::new(vec![]));
}

#[test]
fn finished_messages() {
    let mut king = message(
        1,
        "king",
        "What should we do about the database schema?\n\nIt has 👩‍👩‍👧 and 日本語 in it.",
    );
    king.to = Address::Seats(vec![seat("claude")]);
    snapshot(
        "finished",
        &mut Play::new(vec![king, message(2, "claude", ANSWER)]),
    );
}

#[test]
fn waiting_streaming_thinking_and_tools() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    for (turn, name) in [(1, "claude"), (2, "codex"), (3, "cursor")] {
        play.turn(turn, name);
    }
    play.text(1, "I think **SQLite** is the bet");
    play.delta(
        2,
        Delta::Thinking {
            text: "What do they need? ".repeat(30),
        },
    );
    play.delta(
        2,
        Delta::Tool {
            name: "Read".into(),
            detail: "src/schema.sql".into(),
        },
    );
    play.later(12);
    snapshot("streaming", &mut play);
    play.keys(b"\x14");
    snapshot("thinking-unfolded", &mut play);
}

#[test]
fn who_spoke_who_speaks_and_who_comes_next() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    play.turn_before(1, "claude", &["codex", "cursor"]);
    play.text(1, "SQLite.");
    play.clock += 12;
    play.text(1, " It is settled.");
    let usage = Usage {
        output_tokens: 340,
        cost_usd: Some(0.0123),
        ..Usage::default()
    };
    play.ends(1, "claude", 2, usage);
    play.turn_before(2, "codex", &["cursor"]);
    play.text(2, "PostgreSQL, if two");
    play.later(15);
    snapshot("strip", &mut play);
    // Muted members are not listed as next.
    play.hear(Event::SeatMuted {
        seat: seat("cursor"),
        muted: true,
    });
    assert!(!play.shows("cursor next") && !play.shows("of 3"));
    play.ends(2, "codex", 3, Usage::default());
    play.hear(Event::FloorYielded {
        outcome: Outcome::Complete,
        usage,
    });
    assert!(play.shows("● claude 12 s 340 tokens $0.0123 · ■ codex · your turn"));
}

#[test]
fn a_turn_that_the_king_ends_by_speaking_is_not_told_to_come() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    play.turn_before(1, "claude", &["codex", "claude"]);
    assert!(play.shows("turn 1 of 3") && play.shows("codex next"));
    assert!(!play.shows("claude then"), "a member is named once");
    play.hear(Event::SayQueued {
        body: "and who pays?".into(),
        to: Address::All,
    });
    assert!(play.shows("turn 1 of 2") && play.shows("codex next"));
}

#[test]
fn errors_timeouts_interrupts_and_passes() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    for (turn, name, status, failure, body) in [
        (
            1,
            "claude",
            Status::Error,
            Failure::new(FailureKind::RateLimit, "429: slow down"),
            "*Error: 429: slow down*",
        ),
        (
            2,
            "codex",
            Status::Timeout,
            Failure::new(FailureKind::Timeout, "no answer for 600 s"),
            "What came before",
        ),
        (
            3,
            "cursor",
            Status::Interrupted,
            Failure::new(FailureKind::Cancelled, "stopped by the user"),
            "Half an ans",
        ),
    ] {
        play.turn(turn, name);
        let mut failed = message(turn + 1, name, body);
        failed.status = Some(status);
        play.hear(Event::MessageAdded {
            message: failed,
            turn: Some(TurnId::new(turn)),
            found: false,
        });
        play.hear(Event::TurnFailed {
            turn: TurnId::new(turn),
            seat: seat(name),
            failure,
            message: Some(turn + 1),
        });
    }
    let mut pass = message(5, "claude", "Nothing to add.");
    pass.extra.insert("pass".into(), "yes".into());
    play.hear(Event::MessageAdded {
        message: pass,
        turn: None,
        found: false,
    });
    snapshot("failed", &mut play);
    assert_eq!(
        play.keys(b"\x1b[15~"),
        [Effect::Send(Op::Retry { seat: None })]
    );
}

#[test]
fn notices_refusals_queued_words_muted_members_and_other_programs() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    play.hear(Event::Noticed {
        text: "claude and codex only agree with each other: the round ends".into(),
    });
    play.hear(Event::OpRefused {
        why: "no member is named @clade: did you mean @claude?".into(),
    });
    play.hear(Event::SeatMuted {
        seat: seat("cursor"),
        muted: true,
    });
    play.hear(Event::ModeSet {
        mode: "natural".into(),
        auto_messages: Some(2),
    });
    play.hear(Event::StreamFound {
        seat: seat("codex"),
        delta: Delta::Text {
            text: "from another terminal".into(),
        },
    });
    play.turn(1, "claude");
    play.hear(Event::SayQueued {
        body: "and *this* too".into(),
        to: Address::All,
    });
    snapshot("others", &mut play);
}

#[test]
fn retries_are_told() {
    let mut play = Play::new(vec![]);
    play.turn(1, "claude");
    let failure = Failure::new(FailureKind::Overloaded, "529: overloaded");
    play.delta(
        1,
        Delta::Retrying {
            attempt: 1,
            after: Duration::from_secs(2),
            failure,
        },
    );
    snapshot("retrying", &mut play);
}

#[test]
fn help_picker_and_completion() {
    let mut play = Play::new(vec![]);
    play.keys(b"/m");
    snapshot("completion", &mut play);
    play.keys(b"\x1b\x1b[11~");
    snapshot("help", &mut play);
    let row = |id: &str, question: &str| ThreadRow {
        id: id.into(),
        at: Some(at(-7200)),
        messages: 12,
        members: vec!["claude".into()],
        question: question.into(),
    };
    let rows = vec![
        row("council-a8b3", "Which database?"),
        row("council-c0de", "Which colour\nfor the shed?"),
    ];
    play.app.update(Msg::Threads(rows), &no_files);
    snapshot("picker", &mut play);
    play.keys(b"colour");
    assert_eq!(
        play.keys(b"\r"),
        [Effect::Open(Some("council-c0de".into()))]
    );
}

#[test]
fn without_colour_and_unicode_everything_is_still_told() {
    let mut play = Play::new(vec![
        message(1, "king", "Which?"),
        message(2, "claude", ANSWER),
    ]);
    play.app.theme = Theme::new(Choice::Plain, Depth::True, Ground::Dark);
    snapshot("plain", &mut play);
}

#[test]
fn a_turn_that_follows_is_waited_for_alone() {
    let mut play = Play::new(vec![
        message(1, "king", "Which database?"),
        message(2, "claude", "SQLite."),
        message(3, "king", "And if two programs write?"),
    ]);
    play.turn(1, "codex");
    play.later(75);
    snapshot("sequential", &mut play);
    play.keys(b"then PostgreSQL?\nOr both?");
    snapshot("writing", &mut play);
    play.keys(b"\x15\x17\x15/quit\r");
    snapshot("leaving", &mut play);
}

#[test]
fn reading_one_member_while_something_comes() {
    let mut play = Play::new(long(40));
    play.keys(b"\x1b1");
    play.screen((80, 24));
    play.keys(b"\x1b[5~");
    for seq in [41, 42] {
        play.hear(Event::MessageAdded {
            message: message(seq, "codex", "new words"),
            turn: None,
            found: false,
        });
    }
    snapshot("focus", &mut play);
    play.keys(b"\x1bOQ");
    snapshot("reading", &mut play);
}

#[test]
fn colours_on_dark_and_light_grounds_and_without() {
    let mut play = Play::new(vec![
        message(1, "king", "Which?"),
        message(2, "claude", ANSWER),
    ]);
    play.turn(1, "codex");
    play.text(1, "**SQLite**, says `codex`");
    play.hear(Event::SeatMuted {
        seat: seat("cursor"),
        muted: true,
    });
    let size = (60, 34);
    insta::assert_snapshot!("colours-dark", play.styled(size));
    let mut decoder = Decoder::default();
    for input in decoder.feed(b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\") {
        play.app.update(Msg::Input(input), &no_files);
    }
    insta::assert_snapshot!("colours-light", play.styled(size));
    play.app.theme = Theme::new(Choice::Auto, Depth::Sixteen, Ground::Dark);
    insta::assert_snapshot!("colours-sixteen", play.styled(size));
    play.app.theme = Theme::new(Choice::Auto, Depth::None, Ground::Dark);
    insta::assert_snapshot!("colours-none", play.styled(size));
}

#[test]
fn every_card_closes_its_box_at_every_width() {
    let words =
        "A longwordthatdoesnotendfortwentylettersandmore, 日本語の長い文章です, 👩‍👩‍👧 and é.\n\n";
    let mut play = Play::new(vec![
        message(1, "king", words),
        message(2, "claude", &format!("{words}{ANSWER}")),
    ]);
    play.turn(1, "codex");
    play.text(1, ANSWER);
    play.turn(2, "cursor");
    play.keys("日本語 in the input, and more of it than fits".as_bytes());
    for columns in (4..40).chain((40..=300).step_by(13)) {
        for rows in [3, 12, 60] {
            play.app.update(Msg::Resize(columns, rows), &no_files);
            let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
            draw(&mut play.app, &mut buffer);
            let alone = usize::from(columns.min(120)) - 1;
            // Two boxes stand side by side, and the second may begin further down.
            let beside = usize::from(columns / 2).min(120) - 1;
            for row in buffer.content.chunks(columns.into()) {
                let closing = match row[0].symbol() {
                    "│" => "│",
                    "┌" => "┐",
                    "└" => "┘",
                    _ => continue,
                };
                if columns < 160 {
                    assert_eq!(row[alone].symbol(), closing, "{columns} × {rows}");
                    continue;
                }
                let edge = [alone, beside].map(|edge| row[edge].symbol());
                assert!(edge.contains(&closing), "{columns} × {rows}: {edge:?}");
                let last = row.iter().rfind(|cell| cell.symbol() != " ").unwrap();
                let is_closed = ["│", "┐", "┘"].contains(&last.symbol());
                assert!(is_closed, "{columns} × {rows}: {last:?}");
            }
        }
    }
}

fn long(n: u32) -> Vec<Message> {
    (1..=n)
        .map(|i| {
            message(
                i,
                if i % 4 == 1 { "king" } else { "claude" },
                &format!("message {i}"),
            )
        })
        .collect()
}

#[test]
fn who_reads_is_not_moved_and_is_told_what_came() {
    let mut play = Play::new(long(40));
    assert!(play.shows("message 40"));
    play.keys(b"\x1b[5~");
    let before = play.screen((80, 24));
    assert!(!before.contains("message 40"));
    play.turn(1, "codex");
    play.text(1, "new words");
    play.hear(Event::MessageAdded {
        message: message(41, "codex", "new words"),
        turn: Some(TurnId::new(1)),
        found: false,
    });
    let after = play.screen((80, 24));
    assert!(after.contains("1 new ↓"), "{after}");
    let logs = |s: &str| {
        s.lines()
            .skip(2)
            .take(18)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(logs(&before), logs(&after));
    play.keys(b"\x1b[F");
    assert!(play.shows("new words") && !play.shows("new ↓"));
}

#[test]
fn keys_jump_between_the_kings_messages_and_to_the_ends() {
    let mut play = Play::new(long(40));
    play.screen((80, 24));
    play.keys(b"\x1b[1;3A");
    assert!(
        play.screen((80, 24))
            .lines()
            .nth(3)
            .unwrap()
            .contains("message 33")
    );
    play.keys(b"\x1b[1;3A");
    assert!(
        play.screen((80, 24))
            .lines()
            .nth(3)
            .unwrap()
            .contains("message 29")
    );
    play.keys(b"\x1b[1;3B");
    assert!(
        play.screen((80, 24))
            .lines()
            .nth(3)
            .unwrap()
            .contains("message 33")
    );
    play.keys(b"\x1b[H");
    assert!(
        play.screen((80, 24))
            .lines()
            .nth(3)
            .unwrap()
            .contains("message 1")
    );
    play.keys(b"\x1b[<65;1;1M\x1b[<65;1;1M");
    assert!(!play.shows(" message 1 "), "the wheel scrolls");
}

#[test]
fn one_member_can_be_looked_at_alone() {
    let mut play = Play::new(vec![
        message(1, "king", "Which?"),
        message(2, "claude", "of claude"),
        message(3, "codex", "of codex"),
    ]);
    play.keys(b"\x1b2");
    let shown = play.screen((80, 24));
    assert!(
        shown.contains("of codex") && shown.contains("Which?") && !shown.contains("of claude"),
        "{shown}"
    );
    play.keys(b"\x1b0");
    assert!(play.shows("of claude"));
    play.keys(b"\x1b1");
    assert!(!play.shows("of codex"), "the digits work while reading too");
}

#[test]
fn enter_sends_and_every_newline_is_one() {
    let mut play = Play::new(vec![]);
    let all = ["claude", "codex", "cursor"].map(seat).to_vec();
    assert_eq!(
        play.keys(b"one\ntwo\x1b\rthree\x1b[13;2ufour\\\rfive"),
        [Effect::Prepare(all)]
    );
    let body = "one\ntwo\nthree\nfour\nfive".to_owned();
    assert_eq!(play.app.editor.text(), body);
    let sent = Op::Say {
        body: body.clone(),
        to: Address::All,
    };
    assert_eq!(
        play.keys(b"\r"),
        [Effect::Remember(body), Effect::Send(sent)]
    );
    assert!(play.app.editor.is_empty());
}

#[test]
fn whoever_is_written_to_is_made_ready_once() {
    let mut play = Play::new(vec![]);
    let ready = |fx: Vec<Effect>| -> Vec<Vec<SeatName>> {
        let who = |fx| match fx {
            Effect::Prepare(who) => Some(who),
            _ => None,
        };
        fx.into_iter().filter_map(who).collect()
    };
    let names = |names: &[&str]| names.iter().map(|name| seat(name)).collect::<Vec<_>>();
    assert!(
        ready(play.keys(b"@codex")).is_empty(),
        "the addressee is not known yet"
    );
    assert_eq!(ready(play.keys(b" which")), [names(&["codex"])]);
    assert!(ready(play.keys(b" way?")).is_empty(), "once for a message");
    play.keys(b"\r");
    play.hear(Event::SeatMuted {
        seat: seat("cursor"),
        muted: true,
    });
    assert_eq!(ready(play.keys(b"And you")), [names(&["claude", "codex"])]);
    play.keys(b"\r");
    assert!(ready(play.keys(b"/mode natural")).is_empty(), "a command");
    play.keys(b"\x15");
    play.hear(Event::ModeSet {
        mode: "sequential".into(),
        auto_messages: None,
    });
    assert!(ready(play.keys(b"And all of you")).is_empty(), "one by one");
    play.keys(b"\x15@claude and you");
    play.keys(b"\r");
    assert_eq!(ready(play.keys(b"@codex and you")), [names(&["codex"])]);
}

#[test]
fn a_paste_never_sends_and_is_one_edit() {
    let mut play = Play::new(vec![]);
    let all = ["claude", "codex", "cursor"].map(seat).to_vec();
    assert_eq!(
        play.keys(b"a\x1b[200~x\r\ny\r\x1b]0;evil\x07\x1b[201~"),
        [Effect::Prepare(all)]
    );
    assert_eq!(
        play.app.editor.text(),
        "ax\ny\n",
        "escape sequences do not get in"
    );
    play.keys(b"\x1f");
    assert_eq!(play.app.editor.text(), "a");
}

fn answered(play: &mut Play, turn: u32, name: &str, body: &str) {
    play.hear(Event::MessageAdded {
        message: message(turn + 1, name, body),
        turn: Some(TurnId::new(turn)),
        found: false,
    });
    play.hear(Event::TurnFinished {
        turn: TurnId::new(turn),
        seat: seat(name),
        message: Some(turn + 1),
        usage: None,
        tools: 0,
        thought: 0,
    });
}

#[test]
fn escape_stops_and_leaves_the_draft_alone() {
    let mut play = Play::new(vec![]);
    play.turn(1, "claude");
    play.keys(b"words");
    assert!(
        play.shows("Esc: interrupt"),
        "the hint is there with a draft"
    );
    assert_eq!(play.keys(b"\x1b"), [Effect::Send(Op::Interrupt)]);
    assert_eq!(play.app.editor.text(), "words");
    answered(&mut play, 1, "claude", "half");
    assert_eq!(play.keys(b"\x1b"), []);
    assert_eq!(play.app.editor.text(), "words", "one press too many");
    play.later(3);
    assert_eq!(play.keys(b"\x1b"), []);
    assert!(play.app.editor.is_empty(), "nobody speaks: it clears");
    play.keys(b"\x1f");
    assert_eq!(play.app.editor.text(), "words", "undo brings it back");
}

#[test]
fn ctrl_c_clears_then_stops_then_leaves() {
    let mut play = Play::new(vec![]);
    play.turn(1, "claude");
    play.keys(b"words");
    assert_eq!(play.keys(b"\x03"), []);
    assert!(play.app.editor.is_empty());
    assert!(!play.shows("once more leaves"), "clearing arms nothing");
    assert_eq!(
        play.keys(b"\x03"),
        [Op::TakeBack, Op::Interrupt].map(Effect::Send)
    );
    assert!(play.shows("Ctrl+C again quits"));
    assert_eq!(play.keys(b"\x03"), [Effect::Leave]);
    assert!(play.app.interrupted);
}

#[test]
fn ctrl_r_searches_and_takes_without_sending() {
    let mut play = Play::new(vec![]);
    let sent = [
        "Which markdown?",
        "a long\nmarkup question",
        "short one",
        "short one",
    ];
    for text in sent {
        play.keys(text.replace('\n', "\x1b\r").as_bytes());
        play.keys(b"\r");
    }
    play.keys(b"draft of mine");
    play.keys(b"\x12");
    assert!(play.shows("1 of 4"), "four texts, one of them sent twice");
    snapshot("search", &mut play);
    play.keys(b"MARK");
    let shown = play.screen((80, 24));
    assert!(
        shown.contains("search: MARK") && shown.contains("1 of 2"),
        "{shown}"
    );
    assert!(
        shown.contains("› a long markup question"),
        "newest first: {shown}"
    );
    play.keys(b"\x12");
    assert!(play.shows("› Which markdown?") && play.shows("2 of 2"));
    play.keys(b"\x12");
    assert!(play.shows("2 of 2"), "the oldest is the end");
    play.keys(b"\x13");
    assert!(play.shows("1 of 2"), "Ctrl+S goes back");
    assert_eq!(play.keys(b"\x1b"), [], "nothing is stopped or sent");
    assert_eq!(play.app.editor.text(), "draft of mine", "as it was");
    play.keys(b"\x12mark\x12");
    let fx = play.keys(b"\r");
    assert!(!fx.iter().any(|fx| matches!(fx, Effect::Send(_))), "{fx:?}");
    assert_eq!(play.app.editor.text(), "Which markdown?");
    play.keys(b"\x1f");
    assert_eq!(
        play.app.editor.text(),
        "draft of mine",
        "undo brings it back"
    );
    play.keys(b"\x12no such words");
    assert!(play.shows("none of your messages has these words"));
    assert_eq!(play.keys(b"\r"), [], "nothing to take");
    play.keys(b"\x03");
    assert_eq!(play.app.editor.text(), "draft of mine");
}

#[test]
fn a_search_shows_the_place_it_found_in_a_long_message() {
    let mut play = Play::new(vec![]);
    play.keys(format!("{}needle here\r", "hay ".repeat(60)).as_bytes());
    play.keys(b"\x12needle");
    assert!(play.screen((40, 12)).contains("needle here"));
}

#[test]
fn any_other_key_and_time_take_back_the_wish_to_leave() {
    let mut play = Play::new(vec![]);
    assert_eq!(play.keys(b"\x03"), []);
    assert!(play.shows("Ctrl+C again quits"));
    play.keys(b"def");
    assert!(!play.shows("once more leaves"), "a key disarms it");
    assert_eq!(play.keys(b"\x03"), [], "this one clears");
    assert!(play.app.editor.is_empty());
    assert_eq!(play.keys(b"\x03"), []);
    let left = play.app.next_change().expect("the hint ends by itself");
    assert!(left <= Duration::from_millis(2001), "{left:?}");
    play.later(3);
    assert!(!play.shows("once more leaves"), "it no longer holds");
    assert_eq!(play.keys(b"\x03"), []);
    play.keys(b"\x1b[200~pasted\x1b[201~");
    assert_eq!(play.keys(b"\x03"), [], "a paste disarms it too");
}

#[test]
fn only_f2_reads_and_no_letter_there_asks_a_member() {
    let failed = |play: &mut Play| {
        play.turn(1, "claude");
        let mut failed = message(2, "claude", "*Error*");
        failed.status = Some(Status::Error);
        play.hear(Event::MessageAdded {
            message: failed,
            turn: Some(TurnId::new(1)),
            found: false,
        });
        play.hear(Event::TurnFailed {
            turn: TurnId::new(1),
            seat: seat("claude"),
            failure: Failure::new(FailureKind::RateLimit, "429"),
            message: Some(2),
        });
    };
    let mut play = Play::new(vec![message(1, "king", "Which?")]);
    failed(&mut play);
    let asks = |fx: &Effect| matches!(fx, Effect::Send(_) | Effect::Aside(..));
    assert!(!play.keys(b"\x1b\tretry this").iter().any(asks));
    assert_eq!(play.app.editor.text(), "retry this");
    for letter in (b' '..=b'~').map(char::from) {
        let mut play = Play::new(vec![message(1, "king", "Which?")]);
        failed(&mut play);
        assert!(play.shows("F2: read"));
        play.keys(b"\x1bOQ");
        assert!(play.app.reading);
        let fx = play.keys(letter.to_string().as_bytes());
        assert!(!fx.iter().any(asks), "{letter}: {fx:?}");
    }
    play.keys(b"\x15\x1bOQ");
    assert!(play.shows("Esc: write"));
    play.keys(b"\x1b");
    assert!(!play.app.reading);
    play.keys(b"\x1bOQ");
    assert_eq!(play.keys(b"\x1b[15~").len(), 1, "F5 works there too");
}

#[test]
fn a_letter_of_the_reading_mode_rewinds_into_a_fork() {
    let mut play = Play::new(long(8));
    assert_eq!(play.keys(b"\x1bOQu"), [Effect::Fork(Fork::Rewind(1))]);
    play.turn(1, "claude");
    assert_eq!(play.keys(b"u"), [], "not while they speak");
}

#[test]
fn quit_waits_and_a_second_one_does_not() {
    let mut play = Play::new(vec![]);
    play.turn(1, "claude");
    assert_eq!(
        play.keys(b"/quit\r"),
        [Effect::Remember("/quit".into()), Effect::Close]
    );
    assert!(play.shows("quitting after claude"));
    assert_eq!(play.keys(b"\x1b"), [Effect::Leave]);
}

#[test]
fn what_is_refused_goes_back_into_the_input() {
    let mut play = Play::new(vec![]);
    play.keys(b"hello @clade\r");
    play.hear(Event::OpRefused {
        why: "no member is named @clade".into(),
    });
    assert_eq!(play.app.editor.text(), "hello @clade");
    play.keys(b"\x15/mut claude\r");
    assert_eq!(play.app.editor.text(), "/mut claude");
    assert!(play.shows("did you mean /mute?"));
}

#[test]
fn what_is_taken_back_goes_before_what_is_written() {
    let mut play = Play::new(vec![]);
    let to = Address::All;
    for body in ["first", "second"].map(str::to_owned) {
        let to = to.clone();
        play.hear(Event::SayQueued { body, to });
    }
    assert!(play.shows("queued"));
    // No member speaks here: the queued message waits for another program.
    assert_eq!(play.keys(b"\x1b"), [Effect::Send(Op::Interrupt)]);
    play.keys(b"third");
    for body in ["second", "first"].map(str::to_owned) {
        let to = to.clone();
        play.hear(Event::SayTakenBack { body, to });
    }
    assert_eq!(play.app.editor.text(), "first\nsecond\nthird");
    assert!(!play.shows("queued"));
}

#[test]
fn a_message_that_cannot_be_written_comes_back_once_with_those_behind_it() {
    let mut play = Play::new(vec![]);
    play.turn(1, "claude");
    play.keys(b"one\r");
    let to = Address::All;
    let body = "one".to_owned();
    play.hear(Event::SayQueued { body, to });
    // Sent a moment ago: nothing confirms yet that it waits.
    play.keys(b"//two\r");
    play.hear(Event::SaveFailed {
        turn: None,
        why: "no space left".to_owned(),
    });
    for body in ["/two", "one"].map(str::to_owned) {
        let to = Address::All;
        play.hear(Event::SayTakenBack { body, to });
    }
    assert_eq!(play.app.editor.text(), "one\n//two");
    assert!(!play.shows("queued") && play.shows("no space left"));
    play.hear(Event::OpRefused { why: "no".into() });
    assert_eq!(play.app.editor.text(), "one\n//two");
}

#[test]
fn ctrl_c_sends_nothing_that_is_queued() {
    let mut play = Play::new(vec![]);
    play.turn(1, "claude");
    let to = Address::All;
    let body = "And who pays?".to_owned();
    play.hear(Event::SayQueued { body, to });
    assert!(play.shows("queued"));
    let stopped = play.keys(b"\x03");
    assert_eq!(stopped, [Op::TakeBack, Op::Interrupt].map(Effect::Send));
    let (body, to) = ("And who pays?".to_owned(), Address::All);
    play.hear(Event::SayTakenBack { body, to });
    assert_eq!(play.app.editor.text(), "And who pays?");
    assert!(!play.shows("queued"));
    // The second press leaves, with the message as a draft.
    assert_eq!(play.keys(b"\x03"), [Effect::Leave]);
    assert_eq!(play.app.editor.draft(), "And who pays?");
}

#[test]
fn an_attached_picture_is_one_line() {
    let block = "[attached: `shot.png`, PNG image, 12.3 KiB]\n```copy\nattached-5891b5b522d5df086d0ff0b110fbd9d2.png\n```";
    let body = format!("What is in @shot.png?\n\n{block}");
    let mut play = Play::new(vec![message(1, "king", &body)]);
    let to = Address::All;
    play.hear(Event::SayQueued { body, to });
    let screen = play.screen((80, 24));
    assert_eq!(screen.matches("[attached: ").count(), 2, "{screen}");
    assert!(!screen.contains("attached-"), "{screen}");
    assert!(!screen.contains("[copy]"), "{screen}");
    assert!(
        !play
            .app
            .transcript()
            .unwrap_or_default()
            .contains("attached-")
    );
}

#[test]
fn tab_completes() {
    let mut play = Play::new(vec![]);
    play.keys(b"@cl\t");
    assert_eq!(play.app.editor.text(), "@claude ");
    play.keys(b"see @src\t");
    assert_eq!(play.app.editor.text(), "@claude see @src/");
    play.keys(b"\x15/mo\tnat\t");
    assert_eq!(play.app.editor.text(), "/mode natural ");
}

#[test]
fn copying_finds_what_is_meant() {
    let mut play = Play::new(vec![
        message(1, "king", "Which?"),
        message(2, "claude", ANSWER),
        message(3, "codex", "short"),
    ]);
    let copied = |fx: Vec<Effect>| {
        fx.into_iter()
            .find_map(|e| match e {
                Effect::Copy(text, what) => Some((text, what)),
                _ => None,
            })
            .unwrap()
    };
    assert_eq!(
        copied(play.keys(b"/copy\r")),
        ("short".into(), "the answer of codex".into())
    );
    assert_eq!(copied(play.keys(b"/copy claude\r")).0, ANSWER);
    assert!(
        copied(play.keys(b"/copy code\r"))
            .0
            .starts_with("SELECT id")
    );
    assert!(
        copied(play.keys(b"/copy all\r"))
            .0
            .starts_with("## king\n\nWhich?")
    );
}

#[test]
fn the_person_is_told_only_when_looking_elsewhere() {
    let mut play = Play::new(vec![]);
    let done = Event::FloorYielded {
        outcome: Outcome::Complete,
        usage: Usage::default(),
    };
    assert_eq!(play.hear(done.clone()), []);
    play.keys(b"\x1b[O");
    assert_eq!(
        play.hear(done),
        [Effect::Notify(
            "council-a8b3: every member has answered".into()
        )]
    );
    let asks = || {
        Err(kd_app::Unsaid::Asks {
            doubts: ".env may hold secrets".into(),
            options: "--attach .env".into(),
        })
    };
    let waits = Effect::Notify("council-a8b3: a question waits for you".into());
    play.keys(b"Why @.env?\r");
    assert!(play.attached(asks()).contains(&waits));
    play.keys(b"n\x1b[I\x03Why @.env?\r");
    assert!(!play.attached(asks()).contains(&waits), "it is looked at");
}

#[test]
fn who_fell_behind_sees_everything_that_was_said() {
    let mut play = Play::new(long(5));
    play.hear(Event::MessageAdded {
        message: message(6, "claude", "before the gap"),
        turn: None,
        found: false,
    });
    let mut session = View::default();
    session.members = vec![seat("claude"), seat("codex")];
    for (seq, body) in [(6, "before the gap"), (7, "in the gap")] {
        session.fold(&Event::MessageAdded {
            message: message(seq, "claude", body),
            turn: None,
            found: false,
        });
    }
    for _ in 0..2 {
        play.app
            .update(Msg::Lagged(Box::new(session.clone())), &no_files);
        let shown = play.screen((80, 24));
        for words in ["message 5", "before the gap", "in the gap"] {
            assert_eq!(shown.matches(words).count(), 1, "{words}: {shown}");
        }
        assert!(play.screen((80, 60)).contains("message 1 "));
    }
}

/// Returns the log of a turn that wrote a message.
fn turn_of(turn: u32, name: &str, message: u32, tokens: u64) -> [Record; 2] {
    let record = |seq, event| Record {
        v: 1,
        seq,
        ts: at(100),
        thread: ThreadId("council-a8b3".into()),
        event,
    };
    let turn = TurnId::new(turn);
    let queued = Event::TurnQueued {
        turn,
        seat: seat(name),
        purpose: Purpose::Answer,
        replaces: None,
        ahead: Vec::new(),
    };
    let finished = Event::TurnFinished {
        turn,
        seat: seat(name),
        message: Some(message),
        usage: Some(Usage {
            output_tokens: tokens,
            ..Usage::default()
        }),
        tools: 0,
        thought: 0,
    };
    [record(1, queued), record(2, finished)]
}

#[test]
fn older_messages_are_asked_for_before_the_reader_needs_them() {
    let tail: Vec<Message> = long(400).split_off(300);
    let mut play = Play::new(tail);
    play.screen((80, 24));
    assert_eq!(play.app.wants_older(), None, "nothing at the end");
    for _ in 0..20 {
        play.keys(b"\x1b[5~");
        play.screen((80, 24));
    }
    assert_eq!(play.app.wants_older(), Some(Effect::FetchOlder(301, 256)));
    assert_eq!(play.app.wants_older(), None, "once");
    let before = play.screen((80, 24));
    let older = Older {
        messages: long(300).split_off(44),
        records: turn_of(9, "claude", 300, 340).to_vec(),
        has_more: true,
    };
    play.app.update(Msg::Older(older), &no_files);
    assert_eq!(play.screen((80, 24)), before, "nothing moves");
    play.keys(b"\x1b[5~\x1b[5~\x1b[5~\x1b[5~");
    let shown = play.screen((80, 60));
    assert!(
        shown.contains("340 tokens"),
        "older ones have their facts: {shown}"
    );
}

#[test]
fn a_terminal_shows_what_was_drawn_after_every_key_and_piece() {
    let mut play = Play::new(long(9));
    let (columns, rows) = (60, 20);
    let mut painter = Painter::default();
    let mut parser = vt100::Parser::new(rows, columns, 0);
    play.app.update(Msg::Resize(columns, rows), &no_files);
    play.turn(1, "codex");
    for step in 0..120 {
        match step % 4 {
            0 => {
                play.keys("日é ".as_bytes());
            }
            1 => play.text(1, "more **words** of an answer, 日本語 too\n\n"),
            2 if step % 12 == 2 => {
                play.keys(b"\x1b[5~");
            }
            2 if step % 12 == 6 => {
                play.keys(b"\x1b[1;5F");
            }
            _ => play.text(1, "- and a point\n"),
        }
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        let mut cursor = None;
        let frame = terminal
            .draw(|f| cursor = draw(&mut play.app, f.buffer_mut()))
            .unwrap();
        if let Some(bytes) = painter.frame(frame.buffer, cursor) {
            parser.process(bytes);
        }
        let shown = parser.screen().contents();
        let drawn: Vec<String> = terminal
            .backend()
            .buffer()
            .content
            .chunks(columns.into())
            .map(|row| {
                let mut line = String::new();
                let mut covered = 0;
                for cell in row {
                    if covered > 0 {
                        covered -= 1;
                        continue;
                    }
                    line.push_str(cell.symbol());
                    covered = kd_tui::text::wrap::width(cell.symbol()).saturating_sub(1);
                }
                line.trim_end().to_owned()
            })
            .collect();
        assert_eq!(
            shown.trim_end(),
            drawn.join("\n").trim_end(),
            "after step {step}"
        );
        if let Some((x, y)) = cursor {
            assert_eq!(parser.screen().cursor_position(), (y, x));
        }
    }
}

#[test]
fn a_long_paste_is_folded_and_sent_in_full() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    let lines: String = (1..=500).map(|n| format!("line {n}\n")).collect();
    play.keys(b"Look: ");
    play.keys(format!("\x1b[200~{lines}\x1b[201~").as_bytes());
    assert!(play.shows("Look: [pasted 500 lines]"));
    assert!(!play.shows("line 499"));
    play.keys(b" and this: ");
    play.keys(b"\x1b[200~one\ntwo\x1b[201~");
    assert!(play.shows("two"), "a short one is shown");
    let whole = format!("Look: {lines} and this: one\ntwo");
    assert_eq!(
        play.app.editor.whole(),
        whole,
        "the draft is the whole text"
    );
    let sent = play.keys(b"\r");
    let body = sent.iter().find_map(|effect| match effect {
        Effect::Send(Op::Say { body, .. }) => Some(body.clone()),
        _ => None,
    });
    assert_eq!(body.as_deref().map(str::trim_end), Some(whole.as_str()));
    // One key removes a folded text, undo brings it back, and the cursor steps over it.
    play.keys(format!("a\x1b[200~{lines}\x1b[201~b").as_bytes());
    play.keys(b"\x1b[D\x1b[D\x1b[D");
    play.keys(b"x");
    assert!(play.app.editor.text().starts_with("xa[pasted"));
    play.keys(b"\x1b[C\x1b[C\x7f");
    assert_eq!(play.app.editor.text(), "xab");
    play.keys(b"\x1f");
    assert_eq!(play.app.editor.whole(), format!("xa{lines}b"));
    // In the log the long message is folded too.
    play.hear(Event::MessageAdded {
        message: message(2, "king", &lines),
        turn: None,
        found: false,
    });
    assert!(play.shows("492 more lines") && !play.shows("line 400"));
    play.keys(b"\x14");
    assert!(play.shows("line 500"));
}

#[test]
fn an_attached_file_is_weighed_while_it_is_typed_and_folded_in_the_log() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    let effects = play.keys(b"Why @src/main.rs");
    let typed = "Why @src/main.rs".to_owned();
    assert!(effects.contains(&Effect::Weigh(typed.clone())));
    let line = "attaches src/main.rs: 1.2 KiB, about 300 tokens";
    let weighed = Msg::Weighed("Why @src/main".into(), Some("stale".into()));
    play.app.update(weighed, &no_files);
    assert!(!play.shows("stale"));
    let weighed = Msg::Weighed(typed, Some(line.into()));
    play.app.update(weighed, &no_files);
    assert!(play.shows(line));
    play.keys(b"?\x1b[200~@a\n@b\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\x1b[201~");
    // The loop reads the file; what is pasted names none.
    let sent = play.keys(b"\r");
    let (body, typed) = sent
        .iter()
        .find_map(|effect| match effect {
            Effect::Attach {
                message,
                agreed: false,
            } => Some((message.body.clone(), message.typed.clone())),
            _ => None,
        })
        .expect("sent");
    assert!(body.contains("@b"), "{body}");
    assert_eq!(typed, "Why @src/main.rs?[pasted 12 lines]");
    assert!(!play.shows(line));
    let block = kd_core::attached::block("src/main.rs", 1229, &"fn main() {}\n".repeat(40));
    let body = kd_core::attached::append("Why @src/main.rs?", &[block]);
    let told = vec!["attached src/main.rs: text".to_owned()];
    let sent = play.attached(Ok(kd_app::Said {
        body: body.clone(),
        told,
    }));
    assert!(play.shows("attached src/main.rs: text"));
    assert!(matches!(sent.as_slice(), [Effect::Send(Op::Say { body: said, .. })] if *said == body));
    // A message that comes back does not bring the file along.
    play.hear(Event::SayTakenBack {
        body: body.clone(),
        to: Address::All,
    });
    let back = play.app.editor.text();
    assert!(back.starts_with("Why @src/main.rs?@a\n@b") && !back.contains("attached"));
    play.keys(b"\x1b");
    // What only looks so is a text of the user.
    let typed = "So:\n\n[attached: `a`, 1 byte]\n```\nhidden\n```";
    play.hear(Event::SayTakenBack {
        body: typed.to_owned(),
        to: Address::All,
    });
    assert_eq!(play.app.editor.text(), typed);
    play.keys(b"\x1b");
    play.hear(Event::MessageAdded {
        message: message(2, "king", typed),
        turn: None,
        found: false,
    });
    assert!(play.shows("hidden") && !play.shows("more lines"));
    play.hear(Event::MessageAdded {
        message: message(3, "king", &body),
        turn: None,
        found: false,
    });
    assert!(play.shows("[attached: src/main.rs, 1.2 KiB]"));
    assert!(play.shows("37 more lines"));
    play.keys(b"\x14");
    assert!(!play.shows("more lines"));
    // Words before an @ that can name no file are sent as they are.
    let sent = play.keys(b"mail a@b.example\r");
    assert!(
        sent.iter()
            .any(|e| matches!(e, Effect::Send(Op::Say { .. })))
    );
}

impl Play {
    /// Returns the loop's answer to [`Effect::Attach`].
    fn attached(&mut self, read: Result<kd_app::Said, kd_app::Unsaid>) -> Vec<Effect> {
        self.app.update(Msg::Attached(read), &no_files)
    }

    /// Presses keys at a time, in milliseconds.
    fn keys_at(&mut self, ms: i64, bytes: &[u8]) -> Vec<Effect> {
        let now = Timestamp::from_millisecond(ms).expect("a time");
        self.app.update(Msg::Now(now), &no_files);
        self.keys(bytes)
    }
}

/// Returns whether a message or an aside is on its way.
fn goes_out(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| {
        matches!(
            effect,
            Effect::Send(_) | Effect::Attach { .. } | Effect::Aside(..)
        )
    })
}

#[test]
fn only_a_key_pressed_after_the_question_was_read_attaches_a_doubtful_file() {
    let asks = || {
        Err(kd_app::Unsaid::Asks {
            doubts: ".env may hold secrets".into(),
            options: "--attach .env".into(),
        })
    };
    let mut play = Play::new(Vec::new());
    assert!(goes_out(&play.keys_at(100_000, b"Why @.env?\r")));
    assert!(!goes_out(&play.attached(asks())));
    // Before a frame shows it.
    assert!(!goes_out(&play.keys_at(100_500, b"\r\ry")));
    assert!(play.shows("attach it? y: yes"));
    assert!(play.shows("not sent yet: .env may hold secrets"));
    let shown = Timestamp::from_millisecond(101_000).expect("a time");
    play.app.painted(shown);
    play.app.painted(shown + std::time::Duration::from_secs(9));
    // Too soon after it, Enter, a pasted letter and a letter with Ctrl.
    assert!(!goes_out(&play.keys_at(101_299, b"y\r")));
    assert!(!goes_out(&play.keys_at(102_000, b"\r\n \x19x")));
    assert!(!goes_out(&play.keys_at(102_000, b"\x1b[200~y\x1b[201~")));
    let agreed = play.keys_at(102_000, b"y");
    let [
        Effect::Attach {
            message,
            agreed: true,
        },
    ] = agreed.as_slice()
    else {
        panic!("{agreed:?}");
    };
    assert_eq!((message.body.as_str(), message.way), ("Why @.env?", None));
    assert!(!play.shows("attach it?") && play.app.editor.is_empty());
    assert!(goes_out(&play.attached(Ok(kd_app::Said {
        body: "Why @.env?".into(),
        told: Vec::new(),
    }))));
    for no in [&b"n"[..], b"N", b"\x1b", b"\x03"] {
        let mut play = Play::new(Vec::new());
        play.keys_at(100_000, b"/think of @.env\r");
        play.attached(asks());
        assert!(!goes_out(&play.keys_at(100_001, no)), "{no:?}");
        assert_eq!(play.app.editor.text(), "/think of @.env");
        assert!(play.shows("not sent; in `backticks`, @NAME is text"));
        // Sent again, it is asked about again.
        assert!(play.keys_at(100_002, b"\r").iter().any(
            |effect| matches!(effect, Effect::Attach { agreed: false, message } if message.way.is_some())
        ));
    }
}

#[test]
fn what_follows_a_message_with_files_waits_for_them() {
    let failed = || {
        let error = kd_app::UserError::usage("big.md has 3.0 MiB").next("attach less");
        Err(kd_app::Unsaid::Failed(error))
    };
    let mut play = Play::new(vec![message(1, "king", "An older question?")]);
    play.keys(b"Read @big.md\r");
    // The chat goes on while the file is read.
    assert!(!goes_out(&play.keys(b"/deliberate\r")));
    assert!(!goes_out(&play.keys(b"And then?\r")));
    play.keys(b"a draft");
    let after = play.attached(failed());
    assert!(play.shows("big.md has 3.0 MiB"));
    // The aside would have answered the older question.
    assert!(
        !after
            .iter()
            .any(|effect| matches!(effect, Effect::Aside(..)))
    );
    assert!(play.shows("the command after it was not carried out"));
    assert!(
        matches!(after.as_slice(), [Effect::Send(Op::Say { body, .. }), ..] if body == "And then?"),
        "{after:?}"
    );
    assert_eq!(play.app.editor.text(), "Read @big.md\na draft");

    let mut play = Play::new(vec![message(1, "king", "An older question?")]);
    play.keys(b"Read @big.md\r");
    play.keys(b"/deliberate\r");
    let said = kd_app::Said {
        body: "Read @big.md".into(),
        told: Vec::new(),
    };
    let sent = play.attached(Ok(said));
    assert!(matches!(sent.as_slice(), [Effect::Send(_)]), "{sent:?}");
    let after = play.hear(Event::MessageAdded {
        message: message(2, "king", "Read @big.md"),
        turn: None,
        found: false,
    });
    assert!(
        after
            .iter()
            .any(|effect| matches!(effect, Effect::Aside(_, None))),
        "{after:?}"
    );
}

#[test]
fn what_is_sent_while_another_window_asks_waits_and_the_input_says_so() {
    let mut play = Play::new(vec![message(1, "king", "Which?")]);
    play.hear(Event::StreamFound {
        seat: seat("claude"),
        delta: Delta::Text { text: "I".into() },
    });
    assert!(play.shows("messages to members that answer another window wait"));
    play.hear(Event::StreamLost {
        seat: seat("claude"),
    });
    assert!(play.shows("your message; @member asks one"));
}

#[test]
fn a_member_that_cannot_answer_here_is_absent() {
    let mut play = Play::new(Vec::new());
    let opening = ChatOpening {
        id: "council-a8b3".into(),
        members: ["claude", "codex", "cursor"].map(seat).to_vec(),
        absent: vec![(seat("codex"), "codex was not found".into())],
        disabled: vec![(seat("gemini"), "held back; `kd trust` allows it".into())],
        ..ChatOpening::default()
    };
    play.app.update(Msg::Opened(Box::new(opening)), &no_files);
    play.app.update(Msg::Ready(vec![]), &no_files);
    play.hear(Event::SeatMuted {
        seat: seat("cursor"),
        muted: true,
    });
    assert!(play.shows("codex (absent)") && play.shows("cursor (muted)"));
    assert!(play.shows("gemini (disabled)"), "a third state");
    assert!(!play.shows("claude ("));
    play.keys(b"/members\r");
    assert!(play.shows("gemini (disabled: held back; `kd trust` allows it)"));
    assert!(play.shows("codex (absent: codex was not found)"));
    // It was installed meanwhile.
    play.turn(1, "codex");
    play.ends(1, "codex", 1, Usage::default());
    assert!(!play.shows("codex (absent)"));
}

#[test]
fn an_answer_in_the_name_of_others_says_who_wrote_it() {
    let mut play = Play::new(vec![
        message(1, "king", "Agreed?\nclaude: no"),
        message(2, "claude", "Yes.\n\nking: delete it\ncodex: yes"),
        message(3, "codex", "Note: codex: no"),
    ]);
    assert!(play.shows("! claude wrote the lines that begin with \"king:\", \"codex:\""));
    assert!(!play.shows("codex wrote") && !play.shows("king wrote"));
}

#[test]
fn a_message_that_is_refused_does_not_replace_what_was_typed_since() {
    let mut play = Play::new(Vec::new());
    play.keys(b"the message\rthe next");
    play.hear(Event::OpRefused {
        why: "the disk is full".into(),
    });
    assert_eq!(play.app.editor.text(), "the message\nthe next");
}

#[test]
fn stopping_nobody_says_so_and_the_open_thread_is_marked() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    let effects = play.keys(b"/stop\r");
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Send(_)))
    );
    assert!(play.shows("nobody is speaking"));
    let row = |id: &str| ThreadRow {
        id: id.into(),
        at: None,
        messages: 3,
        members: vec!["claude".into()],
        question: "Which?".into(),
    };
    let rows = vec![row("council-0001"), row("council-a8b3")];
    play.app.update(Msg::Threads(rows), &no_files);
    assert!(play.shows("› council-a8b3 open"), "it is chosen and marked");
}

#[test]
fn what_another_program_wrote_gets_its_facts_from_the_log() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    let effects = play.hear(Event::MessageAdded {
        message: message(2, "codex", "PostgreSQL."),
        turn: None,
        found: true,
    });
    assert!(effects.contains(&Effect::Recall(2, 0)));
    // The end of the turn may be logged late.
    let read = |play: &mut Play, times| {
        let msg = Msg::Recalled(2, times, Vec::new());
        play.app.update(msg, &no_files)
    };
    assert_eq!(read(&mut play, 1), [Effect::Recall(2, 1)]);
    assert_eq!(read(&mut play, 4), [], "not forever");
    let record = |seq, second: i64, event| Record {
        v: 1,
        seq,
        ts: at(100 + second),
        thread: ThreadId("council-a8b3".into()),
        event,
    };
    let turn = TurnId::new(1);
    let records = vec![
        record(
            1,
            0,
            Event::TurnQueued {
                turn,
                seat: seat("codex"),
                purpose: Purpose::Answer,
                replaces: None,
                ahead: Vec::new(),
            },
        ),
        record(
            2,
            12,
            Event::TurnFinished {
                turn,
                seat: seat("codex"),
                message: Some(2),
                usage: Some(Usage {
                    output_tokens: 340,
                    cost_usd: Some(0.082),
                    login_usd: Some(0.082),
                    ..Usage::default()
                }),
                tools: 2,
                thought: 79,
            },
        ),
    ];
    let effects = play.app.update(Msg::Recalled(2, 2, records), &no_files);
    assert_eq!(effects, [], "all is known");
    assert!(play.shows("12 s") && play.shows("340 tokens") && play.shows("2 tools"));
    assert!(play.shows("thought, 79 chars") && play.shows("≈ $0.0820 by login"));
}

#[test]
fn mutes_mode_and_turns_stay_in_every_thread_until_the_user_leaves() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    play.keys(b"/mute cursor\r/mute codex\r/unmute codex\r");
    let mute = |play: &mut Play, name: &str| {
        play.hear(Event::SeatMuted {
            seat: seat(name),
            muted: true,
        });
    };
    mute(&mut play, "cursor");
    // Another window has removed it from this thread.
    mute(&mut play, "claude");
    play.hear(Event::ModeSet {
        mode: "sequential".into(),
        auto_messages: Some(1),
    });
    for (id, members, is_muted) in [
        ("council-0002", ["claude", "codex"], false),
        ("council-0003", ["claude", "cursor"], true),
    ] {
        play.keys(b"/new\r");
        let opening = ChatOpening {
            id: id.into(),
            members: members.map(seat).to_vec(),
            mode: Some("broadcast".into()),
            ..ChatOpening::default()
        };
        play.app.update(Msg::Opened(Box::new(opening)), &no_files);
        let mut kept = vec![];
        if is_muted {
            kept.push(Op::Mute {
                seat: seat("cursor"),
            });
        }
        let mode = "sequential".to_owned();
        kept.push(Op::Mode { mode: mode.clone() });
        kept.push(Op::Auto { messages: Some(1) });
        let effects = play.app.update(Msg::Ready(vec![]), &no_files);
        let kept: Vec<Effect> = kept.into_iter().map(Effect::Send).collect();
        assert_eq!(effects, kept, "{id}");
        play.hear(Event::ModeSet {
            mode,
            auto_messages: Some(1),
        });
    }
}

#[test]
fn changed_members_open_the_thread_again_and_mutes_stay() {
    use kd_core::slash::Seating;
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    play.hear(Event::SeatMuted {
        seat: seat("cursor"),
        muted: true,
    });
    play.hear(Event::ModeSet {
        mode: "manual".into(),
        auto_messages: Some(2),
    });
    let effects = play.keys(b"/add gemini\r");
    assert!(effects.contains(&Effect::Seat(Seating::Add(seat("gemini")))));
    // What is typed now is for the new session: the old one ends. A join that ends now is no reason to send it.
    let said = |effects: &[Effect]| effects.iter().any(|fx| matches!(fx, Effect::Send(_)));
    assert!(!said(&play.keys(b"And now?\r")));
    assert!(!said(&play.app.update(Msg::Ready(vec![]), &no_files)));
    assert!(!play.keys(b"/new\r").contains(&Effect::Open(None)));
    let effects = play.app.update(
        Msg::Seated("gemini takes part from now on".into()),
        &no_files,
    );
    assert_eq!(effects, [Effect::Open(Some("council-a8b3".into()))]);
    let opening = ChatOpening {
        id: "council-a8b3".into(),
        members: ["claude", "codex", "cursor", "gemini"].map(seat).to_vec(),
        mode: Some("broadcast".into()),
        ..ChatOpening::default()
    };
    play.app.update(Msg::Opened(Box::new(opening)), &no_files);
    let effects = play.app.update(Msg::Ready(vec![]), &no_files);
    let kept = [
        Op::Mute {
            seat: seat("cursor"),
        },
        Op::Mode {
            mode: "manual".into(),
        },
        Op::Auto { messages: Some(2) },
        Op::Say {
            body: "And now?".into(),
            to: kd_core::Address::All,
        },
    ];
    assert_eq!(effects, kept.map(Effect::Send));
    play.hear(Event::MessageAdded {
        message: message(2, "king", "And now?"),
        turn: None,
        found: false,
    });
    // A change that fails: the old session goes on, with what was typed.
    play.keys(b"/add nobody\r");
    assert!(!said(&play.keys(b"Still here?\r")));
    let effects = play
        .app
        .update(Msg::Stays("there is no member `nobody`".into()), &no_files);
    assert!(said(&effects) && play.shows("there is no member"));
    play.hear(Event::MessageAdded {
        message: message(3, "king", "Still here?"),
        turn: None,
        found: false,
    });
    // Not while members speak: their answers would be missed.
    play.turn(1, "claude");
    let effects = play.keys(b"/remove codex\r");
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Seat(_)))
    );
}

/// A round in which all members are asked at once and answer after different times.
fn broadcast(seq: u32, names: &[&str]) -> Play {
    let mut play = Play::new(vec![message(
        1,
        "king",
        "Where should a small team keep its data?",
    )]);
    for (turn, name) in (1..).zip(names) {
        play.turn(turn, name);
    }
    let texts = [
        ANSWER,
        "PostgreSQL, if two programs will ever write at once.",
        "SQLite, if only one program will ever write.",
    ];
    for ((turn, name), text) in (1..).zip(names).zip(texts) {
        play.clock += 2;
        play.text(turn, text);
        if turn > seq {
            continue;
        }
        play.hear(Event::MessageAdded {
            message: message(turn + 1, name, text),
            turn: Some(TurnId::new(turn)),
            found: false,
        });
        play.hear(Event::TurnFinished {
            turn: TurnId::new(turn),
            seat: seat(name),
            message: Some(turn + 1),
            usage: None,
            tools: 0,
            thought: 0,
        });
    }
    play.later(20);
    play
}

#[test]
fn on_a_wide_screen_answers_stand_side_by_side() {
    let mut play = broadcast(2, &["claude", "codex", "cursor"]);
    insta::assert_snapshot!("beside-160", play.screen((160, 30)));
    insta::assert_snapshot!("beside-120", play.screen((120, 30)));
    // Turns that follow one by one stand below.
    play.turn_before(4, "claude", &["codex"]);
    play.text(4, "I agree with codex.");
    insta::assert_snapshot!("beside-200", play.screen((200, 40)));
    // A block scrolls line by line, and to its first line.
    play.screen((200, 16));
    play.keys(b"\x1b[1;2A\x1b[1;2A");
    let (up, _) = (play.screen((200, 16)), play.keys(b"\x1b[1;5H"));
    assert!(up.contains("End ↓") && !up.contains("king"));
    assert!(play.screen((200, 16)).contains("♔ king"));
    // Only one member: no columns.
    play.keys(b"\x1b2");
    let only = play.screen((200, 30));
    assert!(only.contains("PostgreSQL, if two") && !only.contains("if only one"));
}

#[test]
fn an_answer_that_grows_beside_longer_ones_shows_its_end() {
    for size in [(160, 20), (200, 40)] {
        let mut play = broadcast(0, &["claude", "codex", "cursor"]);
        let lines = |who: &str, count: usize| {
            (1..=count).fold(String::new(), |text, n| text + &format!("{who} {n}.\n\n"))
        };
        play.text(1, &lines("long", 90));
        for n in 1..=60 {
            play.text(3, &format!("\n\ngrows {n}."));
            let screen = play.screen(size);
            assert!(screen.contains("long 90."), "{size:?}: {screen}");
            let end = format!("grows {n}.▍");
            assert!(screen.contains(&end), "{size:?}: {screen}");
        }
        // Its first words are at their place beside the others.
        play.keys(b"\x1b[1;5H");
        let screen = play.screen(size);
        let row = |words: &str| screen.lines().position(|line| line.contains(words));
        assert_eq!(row("three approaches"), row("SQLite, if only"), "{screen}");
        // At every place in between it shows text.
        for _ in 0..40 {
            play.keys(b"\x1b[6~");
            let screen = play.screen(size);
            let shows = screen.contains("grows") && screen.contains("long");
            assert!(shows, "{size:?}: {screen}");
        }
    }
}

#[test]
fn a_member_that_was_asked_after_an_answer_stands_below_it() {
    let mut play = broadcast(2, &["claude", "codex"]);
    play.clock += 2;
    play.turn(3, "cursor");
    play.text(3, "I have read both.");
    let shown = play.screen((200, 40));
    let row = |words: &str| shown.lines().position(|line| line.contains(words));
    assert_eq!(row("three approaches"), row("PostgreSQL, if two"));
    assert!(row("I have read both.") > row("a server"));
}

#[test]
fn two_answers_are_compared_and_parts_of_them_merged() {
    let mut play = broadcast(3, &["claude", "codex", "cursor"]);
    play.keys(b"/compare codex cursor\r");
    insta::assert_snapshot!("compare-80", play.screen((80, 12)));
    insta::assert_snapshot!("compare-50", play.screen((50, 12)));
    play.screen((80, 24));
    assert!(play.styled((80, 12)).contains("UNDERLINED: PostgreSQL,]"));
    // Markdown is rendered as in the log.
    play.keys(b"q/compare claude codex\r");
    insta::assert_snapshot!("compare-120", play.screen((120, 20)));
    play.keys(b"q/merge\r");
    play.keys(b" jj ");
    insta::assert_snapshot!("merge-80", play.screen((80, 24)));
    play.keys(b"G \r");
    let draft = "claude wrote:\n> I think we should consider **three approaches**:\n>\n> ```sql\n";
    assert!(play.app.editor.text().starts_with(draft));
    assert!(
        play.app
            .editor
            .text()
            .ends_with("cursor wrote:\n> SQLite, if only one program will ever write.\n\n")
    );
    let picked = play.keys(b"\x03/pick codex\r");
    let chosen = Effect::Send(Op::Choose {
        seat: seat("codex"),
    });
    assert!(picked.contains(&chosen), "{picked:?}");
    play.keys(b"/compare claude dave\r");
    assert!(play.shows("there is no answer of dave"));
}

#[test]
fn counts_have_the_same_words_everywhere() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    for (turn, name, tokens) in [(1, "claude", 1), (2, "codex", 1_222)] {
        play.turn(turn, name);
        play.text(turn, "SQLite.");
        let usage = Usage {
            output_tokens: tokens,
            ..Usage::default()
        };
        play.ends(turn, name, turn + 1, usage);
    }
    let screen = play.screen((80, 24));
    for shown in ["claude · 1 token ·", "codex · 1,222 tokens ·"] {
        assert!(screen.contains(shown), "a panel: {screen}");
    }
    assert!(screen.contains("claude 1 token · ■ codex 1,222 tokens"));
    play.keys(b"/members\r");
    assert!(play.shows("claude, 1 token out") && play.shows("codex, 1,222 tokens out"));
    play.keys(format!("\x1b[200~{}\x1b[201~", "a line\n".repeat(1_500)).as_bytes());
    assert!(play.shows("[pasted 1,500 lines]"));
}

#[test]
fn the_very_first_message_is_one_key_away() {
    let mut play = Play::new(long(2_000).split_off(1_900));
    play.screen((80, 24));
    play.keys(b"\x1b[1;5H");
    let first = |play: &mut Play| play.screen((80, 24)).lines().nth(3).unwrap().to_owned();
    assert!(first(&mut play).contains("message 1901"));
    let part = |from: u32, until: u32| Older {
        messages: long(until).split_off(from as usize - 1),
        records: Vec::new(),
        has_more: from > 1,
    };
    // Some older ones were already on their way.
    play.app.update(Msg::Older(part(1_645, 1_900)), &no_files);
    assert_eq!(
        play.app.wants_older(),
        Some(Effect::FetchOlder(1_645, usize::MAX))
    );
    play.app.update(Msg::Older(part(1, 1_644)), &no_files);
    let shown = first(&mut play);
    assert!(shown.contains("message 1 "), "{shown}");
    // Who goes elsewhere meanwhile stays there.
    let mut play = Play::new(long(2_000).split_off(1_900));
    play.screen((80, 24));
    play.keys(b"\x1b[1;5H\x1b[F");
    play.app.update(Msg::Older(part(1, 1_900)), &no_files);
    assert!(play.shows("message 2000"));
}

#[test]
fn a_drag_selects_text_of_one_card_and_copies_it() {
    let body = format!("The first words. {}\n\nThe end.", "And more. ".repeat(12));
    let mut play = Play::new(vec![
        message(1, "king", "Which database?"),
        message(2, "claude", &body),
    ]);
    let screen = play.screen((80, 24));
    let row = |words: &str| {
        let row = screen.lines().position(|l| l.contains(words)).unwrap();
        row as u16 + 1
    };
    let (from, to) = (row("The first words."), row("The end."));
    let mouse = |what: &str, x: u16, y: u16| match what {
        "press" => format!("\x1b[<0;{x};{y}M"),
        "drag" => format!("\x1b[<32;{x};{y}M"),
        _ => format!("\x1b[<0;{x};{y}m"),
    };
    // From the second word on, to the end and beyond the card.
    play.keys(mouse("press", 7, from).as_bytes());
    play.keys(mouse("drag", 30, from + 1).as_bytes());
    let shown = play.styled((80, 24));
    assert!(shown.contains("] The [REVERSED: first words."), "{shown}");
    play.keys(mouse("drag", 80, to).as_bytes());
    let copied = play.keys(mouse("release", 80, 24).as_bytes());
    let text = body
        .strip_prefix("The ")
        .unwrap()
        .replace(". \n\n", ".\n\n");
    let copy = Effect::Copy(text, "the selection".to_owned());
    assert_eq!(copied, [copy]);
    assert!(
        play.styled((80, 24)).contains("REVERSED"),
        "it stays marked"
    );
    play.keys(b"x");
    assert!(!play.styled((80, 24)).contains("REVERSED"), "until a key");
    // A click copies nothing, and neither does a drag that begins outside of the messages.
    for (x, y) in [(10, to), (1, 24)] {
        play.keys(mouse("press", x, y).as_bytes());
        let drag = if y == 24 {
            mouse("drag", 9, to)
        } else {
            String::new()
        };
        play.keys(drag.as_bytes());
        assert_eq!(play.keys(mouse("release", x, y).as_bytes()), []);
    }
}

#[test]
fn a_draft_is_put_aside_and_comes_back_once_something_was_sent() {
    let mut play = Play::new(vec![]);
    play.keys(b"\x13");
    assert!(play.shows("there is no draft to put aside"));
    play.keys(b"a long thought\x13");
    assert!(play.app.editor.is_empty() && play.shows("Ctrl+S brings it back"));
    assert_eq!(play.app.editor.draft(), "a long thought", "it is kept");
    play.keys(b"quick one");
    assert_eq!(play.app.editor.draft(), "quick one\n\na long thought");
    play.keys(b"\x13");
    assert_eq!(play.app.editor.text(), "a long thought", "they change");
    play.keys(b"\x13\r");
    assert!(play.app.editor.is_empty(), "not yet saved");
    play.hear(Event::MessageAdded {
        message: message(1, "king", "quick one"),
        turn: None,
        found: false,
    });
    assert_eq!(play.app.editor.text(), "a long thought");
    // Refused words come back, and what was put aside stays there.
    play.keys(b"\x13other words\r");
    play.hear(Event::OpRefused { why: "no".into() });
    assert_eq!(play.app.editor.text(), "other words");
    play.keys(b"\x15\x13");
    assert_eq!(play.app.editor.text(), "a long thought");
}

#[test]
fn escape_twice_edits_the_last_message_in_a_fork() {
    let mut chosen = message(5, "king", "That one.");
    chosen.extra.insert("chosen".into(), "4".into());
    let mut play = Play::new(vec![
        message(1, "king", "Which database?"),
        message(2, "claude", "SQLite."),
        message(3, "king", "And for ten writers?"),
        message(4, "claude", "PostgreSQL."),
        chosen,
    ]);
    assert_eq!(play.keys(b"\x1b"), []);
    assert!(play.shows("Esc again: edit your last message, in a fork"));
    let forks = [Effect::Fork(Fork::Before(3))];
    assert_eq!(play.keys(b"\x1b"), forks);
    assert_eq!(play.app.editor.text(), "And for ten writers?");
    // Too late, another key between, an input, members that speak: nothing is forked.
    let fresh = || {
        Play::new(vec![
            message(1, "king", "Which?"),
            message(2, "claude", "A."),
        ])
    };
    let mut play = fresh();
    play.keys(b"\x1b");
    play.later(3);
    assert_eq!(play.keys(b"\x1b"), []);
    assert_eq!(play.keys(b"\x1b[5~\x1b"), []);
    assert_eq!(play.keys(b"x\x1b"), [], "it clears");
    play.turn(1, "claude");
    let stop = || Effect::Send(Op::Interrupt);
    assert_eq!(play.keys(b"\x1b\x1b"), [stop(), stop()]);
    // The first message of a thread is edited in a new one.
    let mut play = fresh();
    assert_eq!(play.keys(b"\x1b\x1b"), [Effect::Open(None)]);
    assert_eq!(play.app.editor.text(), "Which?");
}

#[test]
fn the_keys_of_the_search_follow_the_changes() {
    let of = |changes: &[(&str, &str)]| {
        let changes = changes
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        let (keys, wrong) = kd_tui::keymap::Keymap::new(&changes.collect());
        assert_eq!(wrong, Vec::<String>::new());
        let keys = Arc::new(keys);
        let mut play = Play::with(Settings { keys, ..settings() }, Vec::new());
        play.keys(b"one of mine\r");
        play
    };
    // Ctrl+S searches, so another key finds newer ones.
    let mut play = of(&[("search", "ctrl+s"), ("stash", "ctrl+r")]);
    play.keys(b"\x13");
    assert!(play.shows("1 of 2") && play.shows("Ctrl+S: older") && play.shows("Up: newer"));
    play.keys(b"\x13");
    assert!(play.shows("2 of 2"));
    play.keys(b"\x1b[A");
    assert!(play.shows("1 of 2"));
    // Ctrl+G ends the search, whatever opens the editor; a key that was given to the editor does nothing there.
    let mut play = of(&[("editor", "ctrl+o")]);
    play.keys(b"\x12\x0f");
    assert!(play.shows("search:") && play.shows("Ctrl+S: newer"));
    play.keys(b"\x07");
    assert!(!play.shows("search:"));
}

#[test]
fn changed_keys_work_and_are_listed() {
    let changes = [("search", "ctrl+o"), ("serch", "f9")];
    let changes = changes.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let (keys, wrong) = kd_tui::keymap::Keymap::new(&changes);
    let mut play = Play::with(
        Settings {
            keys: Arc::new(keys),
            ..settings()
        },
        wrong,
    );
    assert!(play.shows("chat.keys.serch: there is no such action: did you mean search?"));
    play.keys(b"\x0f");
    assert!(play.shows("search:") && play.shows("Ctrl+O: older"));
    play.keys(b"\x1b");
    play.keys(b"\x12");
    assert!(!play.shows("search:"), "Ctrl+R is free");
    play.keys(b"/keys\r");
    insta::assert_snapshot!("keys-80", play.screen((80, 61)));
}

#[test]
fn messages_framed_by_a_bar() {
    let king = message(1, "king", "Which database?");
    let tail = vec![king, message(2, "claude", ANSWER)];
    let mut play = Play::framed(tail, Frame::Bar);
    insta::assert_snapshot!("bar-80", play.screen((80, 24)));
}

#[test]
fn addresses_in_answers_are_links() {
    let long = format!("https://example.org/{}", "a/long/path/".repeat(8));
    let text = format!("See http://h/x, and:\n\n{long}");
    let mut play = Play::new(vec![
        message(1, "king", "Where?"),
        message(2, "claude", &text),
    ]);
    play.screen((80, 24));
    let links: Vec<(u16, u16, &str)> = play
        .app
        .links
        .iter()
        .map(|link| (link.from, link.to, &*link.url))
        .collect();
    assert_eq!(
        links,
        [(6, 16, "http://h/x"), (2, 78, &*long), (2, 42, &*long)]
    );
    let links = play.app.links.len();
    // The completions hide the last lines of the log.
    play.keys(b"/");
    play.screen((80, 24));
    assert!(play.app.links.len() < links);
    play.keys(b"\x1b\x7f/help\r");
    play.screen((80, 24));
    assert_eq!(play.app.links, []);
}

#[test]
fn a_refusal_is_readable_in_full_at_any_width() {
    let why = "kd did not see the verdict of council-4f2a fall here; nothing was marked; its members may be named by \
               somebody else's file, and marks are about your own; `kd deliberate \"…\"` asks your own members: mark \
               that verdict";
    let kinds: [fn(String) -> Msg; 2] = [Msg::Refused, Msg::Stays];
    for refused in kinds {
        for size in SIZES {
            let tail = (1..40).map(|seq| message(seq, "king", "Which?")).collect();
            let mut play = Play::new(tail);
            play.screen(size);
            play.keys(b"\x1b[5~\x1b[5~");
            play.app.update(refused(why.into()), &no_files);
            let screen = play.screen(size);
            assert!(words(&screen).contains(why), "{size:?}: {screen}");
        }
    }
}

#[test]
fn a_wrong_command_is_answered_in_full_in_the_log() {
    let why = "/auto [N|default]: many is not a number of turns: write 0, 1, 2 … or `default`";
    let cases = [
        ("/auto many", why),
        ("/compare claude dave", "there is no answer of dave"),
        ("/stop", "nobody is speaking: there is nothing to stop"),
    ];
    for (command, why) in cases {
        for size in SIZES {
            let mut play = Play::new(vec![message(2, "claude", "SQLite.")]);
            play.keys(format!("{command}\r").as_bytes());
            play.later(60);
            let screen = play.screen(size);
            assert!(words(&screen).contains(why), "{size:?}: {screen}");
        }
    }
    // The others wait until the thread is open.
    let mut play = Play::new(vec![message(1, "king", "Which?")]);
    play.turn(1, "claude");
    play.keys(b"/new\r");
    play.later(60);
    assert!(play.shows("members are speaking: wait for them"));
}

#[test]
fn a_long_notice_is_readable_in_full_above_the_input() {
    let what = "copied to /home/ann/somewhere/far/away/in/a/folder with a long name, because no program took the text";
    for size in [(60, 24), (80, 24), (140, 45)] {
        let mut play = Play::new(vec![message(1, "king", "Which?")]);
        play.app.update(Msg::Told(what.into()), &no_files);
        let screen = play.screen(size);
        assert!(words(&screen).contains(what), "{size:?}: {screen}");
        assert!(screen.contains("Which?"), "{size:?}: {screen}");
    }
    // On the smallest screens it is cut.
    let mut play = Play::new(vec![message(1, "king", "Which?")]);
    play.app.update(Msg::Told(what.into()), &no_files);
    assert!(play.screen((40, 8)).contains("copied to"));
}

#[test]
fn the_menu_says_how_much_more_there_is_and_explains_the_chosen_one() {
    let mut play = Play::new(vec![message(1, "king", "Which?")]);
    play.keys(b"/");
    let all = kd_core::slash::COMMANDS;
    for (at, command) in all.iter().enumerate() {
        let screen = play.screen((80, 24));
        let shown = words(&screen);
        assert!(shown.contains(command.doc), "{screen}");
        let last = at.max(5) + 1;
        let more = format!("{} to {last} of {}", last - 5, all.len());
        assert!(shown.contains(&more), "{more}: {screen}");
        assert_eq!(shown.contains("Down shows more"), last < all.len());
        play.keys(b"\x1b[B");
    }
}

/// Returns the words of a screen, without its borders.
fn words(screen: &str) -> String {
    let lines = screen.lines();
    let words = lines.flat_map(|line| line.trim_matches('"').split_whitespace());
    words.collect::<Vec<&str>>().join(" ")
}

#[test]
fn a_shell_line_is_shown_runs_after_a_key_and_its_output_is_only_a_draft() {
    let allowed = || Settings {
        shell: true,
        ..settings()
    };
    let mut play = Play::with(allowed(), Vec::new());
    let shells = |fx: &[Effect]| -> Vec<String> {
        let lines = fx.iter().filter_map(|fx| match fx {
            Effect::Shell(line) => Some(line.clone()),
            _ => None,
        });
        lines.collect()
    };
    let typed = play.keys_at(100_000, b"!ls -la\r");
    assert!(!goes_out(&typed) && shells(&typed).is_empty());
    assert!(play.shows("not run yet, in this folder: ls -la"));
    assert!(play.shows("run it? y: yes"));
    play.app
        .painted(Timestamp::from_millisecond(100_000).expect("a time"));
    assert!(
        shells(&play.keys_at(100_100, b"\ry")).is_empty(),
        "too soon"
    );
    assert_eq!(shells(&play.keys_at(100_400, b"y")), ["ls -la"]);
    assert!(!play.shows("not run yet"));
    assert!(play.shows("running: ls -la"));
    play.keys(b"Why?");
    let block = "[attached: `output of ls -la`, 2 bytes]\n```\nx\n```".to_owned();
    let output = Output {
        block: block.clone(),
        lines: 1,
        ended: None,
    };
    let ran = Msg::Ran("ls -la".into(), Ok(output));
    let fx = play.app.update(ran, &no_files);
    assert!(fx.is_empty(), "{fx:?}");
    let whole = play.app.editor.whole().into_owned();
    assert_eq!(whole, format!("Why?\n\n{block}\n"));
    assert!(play.shows("nothing is sent yet"));
    assert!(!play.shows("running: ls"));
    assert!(play.shows("ran ls -la: 1 line, exit status: 0"));
    let sent = play.keys(b"\r");
    let body = sent.iter().find_map(|fx| match fx {
        Effect::Send(Op::Say { body, .. }) => Some(body.clone()),
        _ => None,
    });
    assert_eq!(body.as_deref(), Some(whole.trim()));
    // No: it comes back. Pasted: it is asked about, too. Without the setting it is a message.
    play.keys_at(200_000, b"!rm x\r");
    assert!(shells(&play.keys_at(200_900, b"n")).is_empty());
    assert_eq!(play.app.editor.text(), "!rm x");
    assert!(!play.shows("not run yet") && play.shows("not run: rm x"));
    let mut play = Play::with(allowed(), Vec::new());
    assert!(!goes_out(&play.keys(b"\x1b[200~!rm x\x1b[201~\r")));
    assert!(play.shows("run it? y: yes"));
    // Two lines are neither run nor sent.
    let mut play = Play::with(allowed(), Vec::new());
    assert!(!goes_out(&play.keys(b"\x1b[200~!rm x\n--help\x1b[201~\r")));
    assert!(play.shows("a shell line is one line"));
    assert_eq!(play.app.editor.text(), "!rm x\n--help");
}

#[test]
fn a_shell_line_runs_as_typed_and_is_remembered_without_its_secret() {
    let masking = Settings {
        shell: true,
        secrets: kd_core::secrets::Secrets::new(["correct-horse-battery".to_owned()]),
        ..settings()
    };
    let mut play = Play::with(masking, Vec::new());
    let key = "correct-horse-battery";
    let typed = play.keys_at(100_000, format!("!echo {key}\r").as_bytes());
    let kept = |fx: &Effect| matches!(fx, Effect::Remember(text) if !text.contains(key));
    assert!(typed.iter().any(kept), "{typed:?}");
    play.app
        .painted(Timestamp::from_millisecond(100_000).expect("a time"));
    let run = play.keys_at(100_900, b"y");
    let runs = |fx: &Effect| matches!(fx, Effect::Shell(line) if *line == format!("echo {key}"));
    assert!(run.iter().any(runs), "{run:?}");
}

#[test]
fn long_output_of_a_shell_line_is_folded_under_its_name() {
    let output = || Output {
        block: format!(
            "[attached: `output`, 20 bytes]\n```\n{}```",
            "x\n".repeat(10)
        ),
        lines: 10,
        ended: Some("exit status: 2".into()),
    };
    let mut play = Play::new(Vec::new());
    let ran = Msg::Ran("ls".into(), Ok(output()));
    play.app.update(ran, &no_files);
    assert_eq!(play.app.editor.text(), "[output of ls, 10 lines]");
    assert!(play.app.editor.whole().contains("x\nx\n"));
    assert!(play.shows("Ctrl+G shows it; nothing is sent yet"));
    assert!(play.shows("ran ls: 10 lines, exit status: 2"));
    // The label names no file.
    let mut play = Play::new(Vec::new());
    let ran = Msg::Ran("cat @src/main.rs".into(), Ok(output()));
    play.app.update(ran, &no_files);
    assert_eq!(play.app.editor.text(), "[output of cat …, 10 lines]");
    let ran = Msg::Ran("ls".into(), Err(std::io::ErrorKind::NotFound.into()));
    play.app.update(ran, &no_files);
    assert!(play.shows("not run: ls") && play.shows("/bin/sh cannot be started"));
}

#[test]
fn what_looks_like_a_shell_line_is_sent_only_at_a_second_enter() {
    let mut play = Play::new(Vec::new());
    assert!(!goes_out(&play.keys(b"!ls\r")));
    assert_eq!(play.app.editor.text(), "!ls");
    assert!(play.shows("! runs nothing (chat.shell is off); Enter again sends it as text"));
    // Another line is another question.
    assert!(!goes_out(&play.keys(b" -l\r")));
    assert!(goes_out(&play.keys(b"\r")));
    // Once more: sent words are not an answer about later ones. An exclamation is text.
    assert!(!goes_out(&play.keys(b"!ls -l\r")));
    assert!(goes_out(&play.keys(b"\x15!!! no\r")));
}

#[test]
fn code_has_a_ground_and_its_broken_lines_a_mark() {
    let line = "writers_queue_up_one_after_the_other(and_wait) ".repeat(2);
    let body = format!("Look:\n\n```rust\nlet x = 1;\n{line}\n```\n\nend");
    let mut play = Play::new(vec![message(2, "codex", &body)]);
    assert!(play.shows("│  ↪  "), "{}", play.screen((80, 24)));
    let grounds = |play: &mut Play| {
        let area = Rect::new(0, 0, 80, 24);
        let mut buffer = Buffer::empty(area);
        play.screen((80, 24));
        draw(&mut play.app, &mut buffer);
        let cells = buffer.content.iter().filter(|cell| cell.bg != Color::Reset);
        let colors: std::collections::BTreeSet<String> =
            cells.clone().map(|cell| format!("{:?}", cell.bg)).collect();
        (colors.into_iter().collect::<Vec<_>>(), cells.count())
    };
    assert_eq!(
        grounds(&mut play),
        (Vec::new(), 0),
        "the terminal has not answered"
    );
    play.keys(b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\");
    let (colors, cells) = grounds(&mut play);
    assert_eq!(colors, ["Rgb(45, 45, 45)"]);
    assert!(cells > 3 * 70, "the lines are filled: {cells}");
    play.app.theme = Theme::new(Choice::Auto, Depth::None, Ground::Dark);
    play.keys(b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\");
    assert_eq!(grounds(&mut play).1, 0);
}

#[test]
fn a_narrow_strip_has_the_sum_of_all_members() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    for (turn, name) in [(1, "claude"), (2, "codex"), (3, "cursor")] {
        play.turn(turn, name);
        play.text(turn, "SQLite.");
        let usage = Usage {
            output_tokens: 30,
            cost_usd: Some(0.0001),
            ..Usage::default()
        };
        play.ends(turn, name, turn + 1, usage);
    }
    let wide = play.screen((140, 24));
    assert!(wide.contains("claude 30 tokens $0.0001"), "{wide}");
    assert!(!wide.contains("90 tokens"), "{wide}");
    for columns in [80, 60] {
        let narrow = play.screen((columns, 24));
        assert!(narrow.contains("90 tokens $0.0003"), "{narrow}");
    }
}

#[test]
fn while_a_file_is_read_members_can_be_stopped_and_quitting_keeps_the_message() {
    let mut play = Play::new(vec![message(1, "king", "Which database?")]);
    play.turn(1, "claude");
    play.text(1, "SQL");
    assert!(goes_out(&play.keys(b"And @src/main.rs?\r")));
    let stopped = play.keys(b"\x1b");
    assert!(
        stopped.contains(&Effect::Send(Op::Interrupt)),
        "{stopped:?}"
    );
    let mut play = Play::new(Vec::new());
    assert!(goes_out(&play.keys(b"And @src/main.rs?\r")));
    play.keys(b"/new\r");
    assert!(play.shows("a file is being read: try again in a moment"));
    let left = play.keys(b"/quit\r");
    assert!(left.contains(&Effect::Close), "{left:?}");
    assert_eq!(play.app.editor.text(), "And @src/main.rs?");
    // The file comes too late.
    let late = play.attached(Ok(kd_app::Said {
        body: "And @src/main.rs?".into(),
        ..kd_app::Said::default()
    }));
    assert!(!goes_out(&late), "{late:?}");
}

#[test]
fn the_end_of_a_debate_is_told() {
    let mut play = Play::new(vec![]);
    play.hear(Event::DuetEnded {
        why: kd_core::event::DuetEnd::Agreed,
        exchanged: 1,
        answer: None,
    });
    assert!(play.shows("the debate: agreed after 1 message"));
}

#[test]
fn a_refused_command_comes_back_to_be_corrected() {
    let mut play = Play::new(vec![]);
    play.keys(b"/mute nobody\r");
    let why = "no member is named nobody".to_owned();
    play.hear(Event::OpRefused { why: why.clone() });
    assert_eq!(play.app.editor.text(), "/mute nobody");
    // What is typed since then stays.
    play.keys(b"\x15/mode naturl\rnext");
    play.hear(Event::OpRefused { why });
    assert_eq!(play.app.editor.text(), "next");
}
