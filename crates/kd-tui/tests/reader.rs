//! The forum screen on a `TestBackend`: three sizes, its keys, its input, and hostile posts.

use kd_app::{ErrorKind, UserError};
use kd_core::Timestamp;
use kd_forum::account::Role;
use kd_forum::order::Order;
use kd_forum::words::Choice;
use kd_forum::words::{Hit, Post, Thread};
use kd_tui::forum::{Deed, Done, Effect, Found, Item, KEYS, Looks, Reader, View};
use kd_tui::keys::Decoder;
use kd_tui::keys::Input;
use kd_tui::text::style::Styles;
use kd_tui::theme::{Depth, Ground, Theme};
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
        hidden_at: None,
        closed_at: None,
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
        erased_at: None,
        run_id: None,
        hidden_at: None,
    }
}

fn refused(what: &str) -> UserError {
    UserError::new(ErrorKind::Forum, what)
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

fn looks(color: bool) -> Looks {
    Looks {
        theme: match color {
            true => Theme::new(kd_tui::theme::Choice::Auto, Depth::True, Ground::Dark),
            false => Theme::new(kd_tui::theme::Choice::Plain, Depth::None, Ground::Dark),
        },
        styles: Styles {
            color,
            unicode: color,
        },
        zone: jiff::tz::TimeZone::UTC,
    }
}

/// Returns the result of a look into a store with these threads.
fn found(threads: Vec<Thread>) -> Found {
    let posts = threads.iter().map(|t| t.post_count).sum();
    Found {
        counts: (threads.len() as i64, posts),
        threads,
        me: ("king".into(), "owner".into()),
        ..Found::default()
    }
}

/// Simulates one look: the reader gets this result, and these posts if it has their thread open.
fn look(reader: &mut Reader, found: Found, posts: Vec<Post>) -> bool {
    let wants = reader.wants();
    let thread = wants
        .thread
        .and_then(|id| found.threads.iter().find(|t| t.id == id).cloned());
    let posts = posts
        .into_iter()
        .filter(|p| Some(p.thread_id) == wants.thread && p.id > wants.after)
        .collect();
    let found = Found {
        thread,
        posts,
        ..found
    };
    reader.learn(&wants, Ok(found))
}

fn reader() -> Reader {
    let mut reader = Reader::new("main", looks(true));
    assert!(look(&mut reader, found(threads()), vec![]));
    assert_eq!(reader.wants().thread, Some(2));
    assert!(look(&mut reader, found(threads()), posts()));
    assert!(
        !look(&mut reader, found(threads()), posts()),
        "nothing new, nothing drawn"
    );
    reader
}

fn shown(reader: &mut Reader, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    let drawn = terminal.draw(|frame| {
        reader.draw(frame.buffer_mut());
    });
    drawn.expect("drawn");
    terminal.backend().to_string()
}

/// Returns the effects of keys, without empty ones.
fn keys(reader: &mut Reader, bytes: &[u8]) -> Vec<Effect> {
    let mut decoder = Decoder::default();
    let mut inputs = decoder.feed(bytes);
    inputs.extend(decoder.flush());
    let effects = inputs.into_iter().map(|input| match input {
        Input::Key(key) => reader.key(key),
        Input::Paste(text) => {
            reader.paste(&text);
            Effect::Nothing
        }
        _ => Effect::Nothing,
    });
    effects.filter(|e| *e != Effect::Nothing).collect()
}

fn deed(reader: &mut Reader, bytes: &[u8]) -> Deed {
    match keys(reader, bytes).pop() {
        Some(Effect::Do(deed)) => deed,
        other => panic!("{other:?}"),
    }
}

fn motions() -> Vec<Item> {
    let item = |id: i64, title: &str, note: &str| Item {
        key: id.to_string(),
        title: format!("{id} {title}"),
        note: note.into(),
        text: vec![
            format!("# Motion {id}: {title}"),
            String::new(),
            "Votes are taken until the end of cycle 9.".into(),
            "  yes      ada: we miss too much".into(),
        ],
    };
    vec![
        item(7, "Sit out less", "open"),
        item(5, "Ask williams", "passed"),
    ]
}

#[test]
fn threads_left_and_posts_right_at_all_sizes() {
    let mut reader = reader();
    insta::assert_snapshot!("reader-80", shown(&mut reader, 80, 24));
    insta::assert_snapshot!("reader-60", shown(&mut reader, 60, 15));
    insta::assert_snapshot!("reader-200", shown(&mut reader, 200, 50));
    insta::assert_snapshot!("reader-40-threads", shown(&mut reader, 40, 10));
    keys(&mut reader, b"\r");
    insta::assert_snapshot!("reader-40-posts", shown(&mut reader, 40, 10));
    keys(&mut reader, b"?");
    insta::assert_snapshot!("help-80", shown(&mut reader, 80, 40));
    insta::assert_snapshot!("help-60", shown(&mut reader, 60, 15));
    for (columns, rows) in [(9, 2), (10, 4), (1, 1), (60, 3), (12, 5)] {
        shown(&mut reader, columns, rows);
    }
}

#[test]
fn it_follows_the_end_keeps_its_place_elsewhere_and_counts_what_is_new() {
    let mut reader = reader();
    let long: Vec<Post> = (10..60)
        .map(|i| post(i, 2, "ada", &format!("word {i}")))
        .collect();
    shown(&mut reader, 80, 12);
    keys(&mut reader, b"\r\x1b[F");
    look(&mut reader, found(threads()), long);
    assert!(
        shown(&mut reader, 80, 12).contains("word 59"),
        "at the end it follows"
    );
    keys(&mut reader, b"\x1b[5~");
    let before = shown(&mut reader, 80, 12);
    assert!(!before.contains("word 59"));
    // A reply in a thread of one post.
    let mut more = threads();
    more[0].last_post_id = 60;
    more[1].last_post_id = 61;
    more[1].post_count = 2;
    look(
        &mut reader,
        found(more.clone()),
        vec![post(60, 2, "bob", "late")],
    );
    let after = shown(&mut reader, 80, 12);
    assert!(after.contains("Ants") && after.contains("1 new"), "{after}");
    let right = |text: &str| -> Vec<String> {
        text.lines()
            .skip(2)
            .map(|l| l.chars().skip(28).collect())
            .collect()
    };
    assert_eq!(right(&before), right(&after), "what is read does not move");
    // Three more posts: four are new, and none once the thread is read.
    more[1].post_count = 5;
    more[1].last_post_id = 64;
    look(&mut reader, found(more.clone()), vec![]);
    assert!(shown(&mut reader, 80, 12).contains("4 new"));
    keys(&mut reader, b"\x1b\x1b[B");
    let ants: Vec<Post> = [1, 61, 62, 63, 64]
        .map(|i| post(i, 1, "ada", "an ant"))
        .into();
    look(&mut reader, found(more.clone()), ants);
    assert!(!shown(&mut reader, 80, 12).contains("new"));
}

#[test]
fn the_counts_are_those_of_the_whole_forum() {
    let mut reader = reader();
    let all = Found {
        counts: (20_001, 200_005),
        ..found(threads())
    };
    assert!(look(&mut reader, all, vec![]));
    let shown = shown(&mut reader, 80, 12);
    assert!(
        shown.contains("20001 threads · 200005 posts · you: king (owner)"),
        "{shown}"
    );
    // Reaching the end of the list loads more.
    let many: Vec<Thread> = (0..200).map(|i| thread(900 - i, "t", 1, 900 - i)).collect();
    assert_eq!(reader.wants().threads, 200);
    look(&mut reader, found(many), vec![]);
    keys(&mut reader, b"G");
    assert_eq!(reader.wants().threads, 400);
}

#[test]
fn keys_choose_scroll_and_leave_and_a_failure_is_told() {
    let mut reader = reader();
    shown(&mut reader, 80, 12);
    assert_eq!(keys(&mut reader, b"\x1b[B\x1b[B"), [Effect::Look]);
    assert_eq!(reader.wants().thread, Some(1), "the last stays the last");
    let wants = reader.wants();
    assert!(reader.learn(&wants, Err(refused("the store is gone").next("look at it"))));
    assert!(shown(&mut reader, 80, 12).contains("the store is gone; look at it"));
    assert!(look(&mut reader, found(threads()), vec![]));
    assert!(!shown(&mut reader, 80, 12).contains("the store is gone"));
    // The open thread is deleted: the first one opens instead.
    keys(&mut reader, b"\r");
    look(&mut reader, found(threads()[..1].to_vec()), vec![]);
    assert_eq!(reader.wants().thread, Some(2));
    for staying in [&b"\x1b"[..], b"\x1b\x1b", b"\t\x1b"] {
        assert!(!keys(&mut reader, staying).contains(&Effect::Leave));
    }
    for leaving in [&b"q"[..], b"\x03", b"\x04"] {
        assert_eq!(keys(&mut reader, leaving), [Effect::Leave], "{leaving:?}");
    }
    let mut empty = Reader::new("main", looks(false));
    look(&mut empty, found(vec![]), vec![]);
    assert!(shown(&mut empty, 80, 12).contains("no threads yet; w starts"));
    // Every key, with nothing to act on.
    for row in KEYS {
        for key in row.keys {
            empty.key(*key);
            shown(&mut empty, 60, 15);
            keys(&mut empty, b"\x1b\x1b");
        }
    }
}

#[test]
fn posts_are_written_with_the_editor_of_the_chat() {
    let mut reader = reader();
    shown(&mut reader, 80, 24);
    // Several lines: Ctrl+J, and a backslash before Enter.
    assert_eq!(
        deed(&mut reader, b"rDo they?\x0aI doubt it,\\\rreally.\r"),
        Deed::Reply {
            thread: 2,
            quote: None,
            body: "Do they?\nI doubt it,\nreally.".into()
        }
    );
    // Refused text returns to the input.
    assert_eq!(
        reader.done(Err(refused("the thread is gone").next("read another"))),
        Effect::Look
    );
    let back = shown(&mut reader, 80, 24);
    assert!(
        back.contains("the thread is gone") && back.contains("really."),
        "{back}"
    );
    insta::assert_snapshot!("writing-60", shown(&mut reader, 60, 15));
    // Esc clears, Ctrl+_ restores, Esc on an empty input stops writing.
    assert!(keys(&mut reader, b"\x1b").is_empty());
    assert!(!shown(&mut reader, 80, 24).contains("really."));
    keys(&mut reader, b"\x1f");
    assert!(shown(&mut reader, 80, 24).contains("really."));
    assert!(keys(&mut reader, b"\x1b").is_empty());
    assert!(keys(&mut reader, b"\x1b").is_empty());
    assert!(shown(&mut reader, 80, 24).contains("q leave"));
    // A quote of the chosen post: n moves to the second one.
    let quote = deed(&mut reader, b"nRYes.\r");
    assert_eq!(
        quote,
        Deed::Reply {
            thread: 2,
            quote: Some(3),
            body: "Yes.".into()
        }
    );
    let done = Done {
        told: "post 6 is written".into(),
        thread: Some(2),
    };
    reader.done(Ok(done));
    assert!(shown(&mut reader, 80, 24).contains("post 6 is written"));
    // A new thread: its title, then its first post. A paste is one edit and never sends.
    let opened = deed(
        &mut reader,
        b"w\x1b[200~Wasps\nand hornets\x1b[201~\r\x1b[200~Who?\nWhy?\n\x1b[201~\r",
    );
    assert_eq!(
        opened,
        Deed::Open {
            title: "Wasps and hornets".into(),
            body: "Who?\nWhy?".into()
        }
    );
    reader.done(Ok(Done {
        told: "thread 3 is open".into(),
        thread: Some(3),
    }));
    assert_eq!(reader.wants().thread, Some(3));
}

#[test]
fn only_posts_of_the_user_are_changed() {
    let mut reader = reader();
    shown(&mut reader, 80, 24);
    assert_eq!(
        deed(&mut reader, b"e\x15Why?\r"),
        Deed::Edit {
            post: 2,
            body: "Why?".into()
        }
    );
    reader.done(Ok(Done::default()));
    assert!(keys(&mut reader, b"ne").is_empty());
    assert!(shown(&mut reader, 80, 24).contains("post 3 is by ada: only its author can change it"));
    assert_eq!(
        keys(&mut reader, b"c"),
        [Effect::Copy(
            "To point the way:\n\n- how far\n- and *whither*".into(),
            "post 3".into()
        )]
    );
}

#[test]
fn a_search_lists_posts_and_opens_their_threads_there() {
    let mut reader = reader();
    shown(&mut reader, 80, 12);
    assert_eq!(keys(&mut reader, b"/point way\r"), [Effect::Look]);
    let wants = reader.wants();
    assert_eq!(
        (wants.search.as_deref(), wants.thread),
        (Some("point way"), None)
    );
    let hit = |post_id, thread: Thread, excerpt: &str| Hit {
        thread,
        post_id,
        author: "ada".into(),
        excerpt: excerpt.into(),
    };
    let hits = vec![
        hit(1, threads()[1].clone(), "an ant"),
        hit(5, threads()[0].clone(), "Is there \u{202e}more?"),
    ];
    let all = || Found {
        hits: Some(("point way".into(), hits.clone())),
        ..found(threads())
    };
    look(&mut reader, all(), vec![]);
    assert_eq!(reader.wants().thread, Some(1), "the first hit is read");
    keys(&mut reader, b"j");
    assert_eq!(reader.wants().thread, Some(2));
    look(&mut reader, all(), posts());
    keys(&mut reader, b"\r");
    let screen = shown(&mut reader, 80, 12);
    assert!(
        screen.contains("› ada: Is there more?") && screen.contains("#9 king"),
        "{screen}"
    );
    assert!(!screen.contains("Why do they"), "it goes to the post");
    keys(&mut reader, b"\x1b\x1b");
    assert_eq!(reader.wants().search, None);
    assert!(shown(&mut reader, 80, 12).contains("› Bees"));
}

#[test]
fn motions_are_moved_voted_on_accepted_and_refused() {
    let mut reader = reader();
    assert_eq!(keys(&mut reader, b"2"), [Effect::Look]);
    assert_eq!(reader.wants().view, View::Motions);
    let all = Found {
        items: motions(),
        open_motions: 1,
        ..found(threads())
    };
    assert!(look(&mut reader, all, vec![]));
    insta::assert_snapshot!("motions-80", shown(&mut reader, 80, 16));
    insta::assert_snapshot!("motions-60", shown(&mut reader, 60, 15));
    assert!(keys(&mut reader, b"vmaybe\r").is_empty());
    assert!(shown(&mut reader, 80, 16).contains("a vote begins with yes, no or abstain"));
    assert_eq!(
        deed(&mut reader, b"\x15y, I miss them\r"),
        Deed::Vote {
            motion: 7,
            choice: Choice::Yes,
            reason: "I miss them".into()
        }
    );
    reader.done(Ok(Done::default()));
    assert_eq!(deed(&mut reader, b"jayes\r"), Deed::Confirm { motion: 5 });
    reader.done(Ok(Done::default()));
    assert_eq!(
        deed(&mut reader, b"xtoo dear\r"),
        Deed::Veto {
            motion: 5,
            reason: "too dear".into()
        }
    );
    reader.done(Ok(Done::default()));
    assert!(keys(&mut reader, b"x\r").is_empty(), "a veto has a reason");
    keys(&mut reader, b"\x1b");
    assert_eq!(
        deed(
            &mut reader,
            b"wset skip_probability 0.1\rwe miss too much\r"
        ),
        Deed::Propose {
            what: "set skip_probability 0.1".into(),
            reason: "we miss too much".into()
        }
    );
}

#[test]
fn every_kind_of_motion_is_moved_from_the_screen() {
    for (words, reason) in [
        ("hide 17", "asks for keys"),
        ("unhide #17", "it was a quote"),
        ("close 3", "moved"),
        ("reopen 3", "not yet"),
        ("ban eve", "floods"),
        ("unban eve", "promised"),
        ("role eve reader", "for a week"),
    ] {
        let mut reader = reader();
        keys(&mut reader, b"2w");
        let label = shown(&mut reader, 120, 16);
        assert!(
            label.contains("your motion: keep, set, scheduler, undo, text, hide, unhide"),
            "{label}"
        );
        assert_eq!(
            deed(&mut reader, format!("{words}\r{reason}\r").as_bytes()),
            Deed::Propose {
                what: words.into(),
                reason: reason.into()
            }
        );
    }
    let mut reader = reader();
    keys(&mut reader, b"2");
    assert!(keys(&mut reader, b"wrole eve\r").is_empty());
    let told = shown(&mut reader, 80, 16);
    assert!(
        told.contains("write the motion as `role NAME ROLE`") && told.contains("role eve"),
        "{told}"
    );
}

#[test]
fn a_deed_under_way_is_not_done_twice() {
    let mut reader = reader();
    shown(&mut reader, 80, 12);
    deed(&mut reader, b"rone\r");
    assert!(keys(&mut reader, b"rtwo\r").is_empty());
    assert!(shown(&mut reader, 80, 12).contains("one moment"));
    // The first deed is refused meanwhile: the current input stays.
    reader.done(Err(refused("no")));
    assert!(shown(&mut reader, 80, 12).contains("> two"));
}

#[test]
fn a_changed_post_is_shown_as_it_is_now() {
    let mut reader = reader();
    shown(&mut reader, 80, 24);
    let wants = reader.wants();
    assert_eq!(wants.again, Some((2, 5)), "those that can be seen");
    let changed = Found {
        thread: Some(threads()[0].clone()),
        again: vec![post(5, 2, "ada", "It was nothing.")],
        ..found(threads())
    };
    assert!(reader.learn(&wants, Ok(changed)));
    let screen = shown(&mut reader, 80, 24);
    assert!(
        screen.contains("It was nothing.") && !screen.contains("Is there more?"),
        "{screen}"
    );
}

#[test]
fn hostile_posts_stay_in_their_column() {
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\u{202e}gnp.exe\u{2066}\r\n<b>&#27;[31m</b> [x](javascript:1)\n\n";
    let wide = "日本語👩‍👩‍👧e\u{301}\u{300}\u{301}".repeat(40);
    let lines = "line\n".repeat(100_000);
    let word = "x".repeat(300_000);
    let names = [
        "king\u{202e}",
        "**bold**",
        "<script>",
        "ada\n#9 king",
        "\u{200b}",
    ];
    let mut all: Vec<Post> = [evil, &wide, &lines, &word]
        .iter()
        .zip(2..)
        .map(|(body, id)| post(id, 2, "mallory", body))
        .collect();
    all.extend((6..).zip(names).map(|(id, name)| post(id, 2, name, name)));
    let mut list = threads();
    list[0].title = format!("{evil}{wide}");
    let mut reader = Reader::new("main\u{1b}[2J", looks(true));
    look(&mut reader, found(list.clone()), vec![]);
    look(&mut reader, found(list), all);
    for (columns, rows) in [(60, 15), (80, 24), (200, 50), (61, 9)] {
        keys(&mut reader, b"\x1bg");
        for _ in 0..12 {
            let screen = shown(&mut reader, columns, rows);
            for c in screen.chars() {
                assert!(
                    c == '\n' || !kd_tui::text::clean::is_unsafe(c),
                    "{c:?} at {columns} × {rows}"
                );
            }
            if columns >= 60 {
                let bar = usize::from(columns / 3).min(40) + 1;
                for line in screen.lines().skip(2).take(usize::from(rows) - 3) {
                    let left: usize =
                        kd_tui::text::wrap::width(line.split('│').next().unwrap_or_default());
                    assert!(left <= bar + 1, "{line}");
                }
            }
            keys(&mut reader, b"\x1bn");
        }
    }
    keys(&mut reader, b"gnn");
    let screen = shown(&mut reader, 80, 24);
    assert!(screen.contains("line"), "{screen}");
    keys(&mut reader, b"n\x1b[5~");
    let screen = shown(&mut reader, 80, 24);
    assert!(
        screen.contains("98000 more lines: kd forum read 2 prints all"),
        "{screen}"
    );
    // Text in a name cannot fake the head of another post: every real head has its mark.
    keys(&mut reader, b"G");
    let screen = shown(&mut reader, 200, 50);
    assert!(screen.contains("ada #9 king #9 "), "one line: {screen}");
}

#[test]
fn order_is_kept_with_a_reason_and_undone() {
    let mut reader = reader();
    shown(&mut reader, 80, 24);
    assert_eq!(
        deed(&mut reader, b"nxasks for keys\r"),
        Deed::Order {
            order: Order::hide(3, true),
            reason: "asks for keys".into()
        }
    );
    reader.done(Ok(Done::default()));
    // The post is hidden: its text is folded until `t`.
    let wants = reader.wants();
    let hidden = Post {
        hidden_at: Some(at(999)),
        ..posts()[1].clone()
    };
    let news = Found {
        thread: Some(threads()[0].clone()),
        again: vec![hidden],
        hidden: [(3, " by king: asks for keys".to_owned())].into(),
        ..found(threads())
    };
    assert!(reader.learn(&wants, Ok(news)));
    let screen = shown(&mut reader, 80, 24);
    assert!(
        screen.contains("(hidden by king: asks for keys; t shows it)")
            && !screen.contains("how far"),
        "{screen}"
    );
    keys(&mut reader, b"t");
    assert!(shown(&mut reader, 80, 24).contains("how far"));
    assert_eq!(
        deed(&mut reader, b"xa quote\r"),
        Deed::Order {
            order: Order::hide(3, false),
            reason: "a quote".into()
        }
    );
    reader.done(Ok(Done::default()));
    assert_eq!(
        deed(&mut reader, b"zit is said\r"),
        Deed::Order {
            order: Order::close(2, true),
            reason: "it is said".into()
        }
    );
    reader.done(Ok(Done::default()));
    for (keys, entry, reason) in [
        (&b"u\r"[..], None, ""),
        (b"u a joke\r", None, "a joke"),
        (b"u\x154 a joke\r", Some(4), "a joke"),
    ] {
        let reason = reason.to_owned();
        assert_eq!(deed(&mut reader, keys), Deed::Undo { entry, reason });
        reader.done(Ok(Done::default()));
    }
    // Members.
    keys(&mut reader, b"3");
    let member = |name: &str, note: &str| Item {
        key: name.into(),
        title: name.into(),
        note: note.into(),
        text: vec![format!("# {name}"), format!("Role: {note}")],
    };
    let all = Found {
        items: vec![member("ada", "agent"), member("eve", "banned")],
        ..found(threads())
    };
    look(&mut reader, all, vec![]);
    insta::assert_snapshot!("members-80", shown(&mut reader, 80, 12));
    assert!(keys(&mut reader, b"omoderator\r").is_empty(), "no reason");
    assert_eq!(
        deed(&mut reader, b" knows the place\r"),
        Deed::Order {
            order: Order::role("ada", Role::Moderator),
            reason: "knows the place".into()
        }
    );
    reader.done(Ok(Done::default()));
    for (keys, order) in [
        (&b"xfloods\r"[..], Order::ban("ada", true)),
        (b"jxpromised\r", Order::ban("eve", false)),
    ] {
        match deed(&mut reader, keys) {
            Deed::Order { order: given, .. } => assert_eq!(given, order),
            other => panic!("{other:?}"),
        }
        reader.done(Ok(Done::default()));
    }
}
