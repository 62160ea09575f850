use super::*;
use crate::testing::request;
use serde_json::{Value, json};

/// Reads a body; returns its text and the largest piece.
fn read(mut body: Written) -> (String, usize) {
    let (told, mut bytes, mut most) = (body.len(), Vec::new(), 0);
    let mut context = Context::from_waker(std::task::Waker::noop());
    while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) {
        let piece = frame.into_data().unwrap();
        most = most.max(piece.len());
        bytes.extend_from_slice(&piece);
        assert_eq!(body.size_hint().exact(), Some(told - bytes.len() as u64));
    }
    assert!(body.is_end_stream() && body.len() == 0);
    (String::from_utf8(bytes).unwrap(), most)
}

/// One text as most services want it, and blocks with a mark at the end of the history as others do.
fn build(request: &Request) -> Value {
    let blocks = request.prompt.blocks();
    let blocks = blocks
        .iter()
        .map(|b| json!({"text": b.text, "mark": b.repeats}));
    json!({"model": "m", "one": request.prompt.as_text(), "blocks": blocks.collect::<Vec<_>>(), "stream": true})
}

/// A request with a history of `messages` messages that need every kind of escape.
fn with_history(messages: usize) -> Request {
    let mut history = "[Previous conversation]\nking: Why?".to_owned();
    let mut starts = Vec::new();
    for n in 0..messages {
        starts.push(history.len());
        history.push_str(&format!(
            "\n\nann: {n} \"quoted\" \\ back\u{1}\u{7f} tab\t kd-0000;日本語 👍 {}",
            "word ".repeat(20)
        ));
    }
    let mut request = request("");
    request.prompt.rules = "R".into();
    request.prompt.history = history.into();
    request.prompt.starts = starts.into();
    request.prompt.turn = "---\nYou are ann.".into();
    request
}

#[test]
fn a_long_history_is_written_in_pieces_and_the_bytes_stay_the_same() {
    for messages in [0, 1, 40, 3_000] {
        let request = with_history(messages);
        let body = Written::new(&request, build).unwrap();
        let cuts = body.cuts.len();
        let (text, most) = read(body);
        assert_eq!(text, build(&request).to_string(), "{messages}");
        let is_long = request.prompt.history.len() >= WRITTEN_FROM;
        assert_eq!(is_long, cuts > 0, "{messages}");
        if is_long {
            assert!(most < 2 * PIECE_BYTES_MAX, "{most}");
        }
    }
}

#[test]
fn a_single_long_message_and_wrong_positions_are_written_too() {
    let mut request = request(&"ab\n".repeat(WRITTEN_FROM));
    let text = build(&request).to_string();
    assert_eq!(read(Written::new(&request, build).unwrap()).0, text);
    request.prompt.starts = vec![9, 4, usize::MAX].into();
    let text = build(&request).to_string();
    assert_eq!(read(Written::new(&request, build).unwrap()).0, text);
}

#[test]
fn bodies_share_the_text_of_the_history() {
    let request = with_history(3_000);
    let bodies = [(); 8].map(|()| Written::new(&request, build).unwrap());
    for body in &bodies {
        assert_eq!(body.history.as_ptr(), request.prompt.history.as_ptr());
        // One text, and a block for each message.
        assert_eq!(body.cuts.len(), 3_002);
        let held = body.json.len() + size_of_val(body.cuts.as_slice());
        assert!(held < 3_000 * 52, "{held}");
    }
}
