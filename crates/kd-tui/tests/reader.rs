//! The forum's reader on a `TestBackend`, at three sizes, and what its keys do.

use kd_core::Timestamp;
use kd_core::forum::words::{Post, Thread};
use kd_tui::forum::{Looks, News, Reader};
use kd_tui::keys::Decoder;
use kd_tui::keys::Input;
use kd_tui::text::style::Styles;
use kd_tui::theme::{Choice, Depth, Ground, Theme};
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_780_000_000 + second).expect("a time")
}

fn thread(id: i64, title: &str, posts: i64, last: i64) -> Thread {
    Thread {
        id,
        forum: "main".into(),
        title: title.into(),
        author: "king".into(),
        created_at: at(0),
        updated_at: at(last),
        post_count: posts,
        last_author: "ada".into(),
        last_post_id: last,
        deleted_at: None,
    }
}

fn post(id: i64, thread_id: i64, author: &str, body: &str) -> Post {
    Post {
        id,
        thread_id,
        author: author.into(),
        body: body.into(),
        quote_post_id: None,
        quoted_post_body: None,
        quoted_author: None,
        created_at: at(60 * id),
        edited_at: None,
        deleted_at: None,
        run_id: None,
    }
}

fn threads() -> Vec<Thread> {
    vec![
        thread(2, "Bees and \u{1b}[31mother dancers in the hive", 4, 5),
        thread(1, "Ants", 1, 1),
    ]
}

fn posts() -> Vec<Post> {
    vec![
        post(2, 2, "king", "Why do they **dance**?"),
        Post {
            quote_post_id: Some(2),
            quoted_post_body: Some("Why do they **dance**?\nReally".into()),
            quoted_author: Some("king".into()),
            edited_at: Some(at(900)),
            ..post(
                3,
                2,
                "ada",
                "To point the way:\n\n- how far\n- and *whither*",
            )
        },
        Post {
            deleted_at: Some(at(901)),
            ..post(4, 2, "bob", "")
        },
        post(
            5,
            2,
            "ada",
            "Is there more?\n#9 king 2026-01-01 00:00\nWords in a body start no line of another.",
        ),
    ]
}

fn reader() -> Reader {
    let mut reader = Reader::new(
        "main",
        Looks {
            theme: Theme::new(Choice::Auto, Depth::True, Ground::Dark),
            styles: Styles {
                color: true,
                unicode: true,
            },
            zone: jiff::tz::TimeZone::UTC,
        },
    );
    assert!(reader.learn(News::Found(threads(), None)));
    assert_eq!(reader.wants(), Some((2, 0)));
    assert!(reader.learn(News::Found(threads(), Some((2, posts())))));
    assert!(
        !reader.learn(News::Found(threads(), Some((2, vec![])))),
        "nothing new, nothing drawn"
    );
    reader
}

fn shown(reader: &mut Reader, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    let drawn = terminal.draw(|frame| reader.draw(frame.buffer_mut()));
    drawn.expect("drawn");
    terminal.backend().to_string()
}

/// False if the reader leaves.
fn keys(reader: &mut Reader, bytes: &[u8]) -> bool {
    let mut decoder = Decoder::default();
    let mut inputs = decoder.feed(bytes);
    inputs.extend(decoder.flush());
    inputs.into_iter().all(|input| match input {
        Input::Key(key) => reader.key(key),
        _ => true,
    })
}

#[test]
fn threads_left_and_posts_right_at_three_sizes() {
    let mut reader = reader();
    insta::assert_snapshot!("reader-100", shown(&mut reader, 100, 20));
    insta::assert_snapshot!("reader-40-threads", shown(&mut reader, 40, 10));
    assert!(keys(&mut reader, b"\r"));
    insta::assert_snapshot!("reader-40-posts", shown(&mut reader, 40, 10));
    shown(&mut reader, 9, 2);
}

#[test]
fn it_follows_the_end_keeps_its_place_elsewhere_and_marks_what_is_new() {
    let mut reader = reader();
    let long: Vec<Post> = (10..60)
        .map(|i| post(i, 2, "ada", &format!("word {i}")))
        .collect();
    shown(&mut reader, 80, 12);
    assert!(keys(&mut reader, b"\r\x1b[F"));
    reader.learn(News::Found(threads(), Some((2, long))));
    assert!(
        shown(&mut reader, 80, 12).contains("word 59"),
        "at the end it follows"
    );
    assert!(keys(&mut reader, b"\x1b[5~"));
    let before = shown(&mut reader, 80, 12);
    assert!(!before.contains("word 59"));
    let mut more = threads();
    more[0].last_post_id = 60;
    more[1].last_post_id = 61;
    reader.learn(News::Found(
        more,
        Some((2, vec![post(60, 2, "bob", "late")])),
    ));
    let after = shown(&mut reader, 80, 12);
    assert!(after.contains("Ants") && after.contains("1 new"), "{after}");
    let right = |text: &str| -> Vec<String> {
        text.lines()
            .skip(2)
            .map(|l| l.chars().skip(28).collect())
            .collect()
    };
    assert_eq!(right(&before), right(&after), "what is read does not move");
}

#[test]
fn keys_choose_scroll_and_leave_and_a_failure_is_told() {
    let mut reader = reader();
    shown(&mut reader, 80, 12);
    assert!(keys(&mut reader, b"\x1b[B\x1b[B"));
    assert_eq!(reader.wants(), Some((1, 0)), "the last stays the last");
    assert!(reader.learn(News::Failed("the store is gone; look at it".into())));
    assert!(shown(&mut reader, 80, 12).contains("the store is gone; look at it"));
    assert!(reader.learn(News::Found(threads(), None)));
    assert!(!shown(&mut reader, 80, 12).contains("the store is gone"));
    // The thread that was read is taken away: the first is read instead.
    reader.learn(News::Found(threads()[..1].to_vec(), None));
    assert_eq!(reader.wants(), Some((2, 0)));
    assert!(
        keys(&mut reader, b"\t\x1b"),
        "from the posts back to the threads"
    );
    for leaving in [&b"q"[..], b"\x03", b"\x1b"] {
        assert!(!keys(&mut reader, leaving), "{leaving:?}");
    }
    let mut empty = Reader::new(
        "main",
        Looks {
            theme: Theme::new(Choice::Plain, Depth::None, Ground::Dark),
            styles: Styles {
                color: false,
                unicode: false,
            },
            zone: jiff::tz::TimeZone::UTC,
        },
    );
    empty.learn(News::Found(vec![], None));
    assert!(shown(&mut empty, 80, 12).contains("no threads yet"));
    assert!(keys(&mut empty, b"\x1b[B\r\x1b[A"));
}
