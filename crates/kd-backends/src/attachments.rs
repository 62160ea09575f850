//! Pictures and documents in requests: which of them a backend accepts, and the note that members get about the others.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kd_core::media::{Attachment, CopyName, MediaKind, unseen_line, unseen_notice};
use kd_core::request::{Picture, PictureSource};
use kd_core::{Delta, Request};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// How many times the estimated tokens of a file are reserved.
const FILE_RESERVE: u64 = 2;
/// Maximum number of refusals that are remembered.
const REFUSED_MAX: usize = 64;

/// Files that models of a service refused, while the process runs. The same model may accept other files, because a
/// refusal can be about a single broken picture.
#[derive(Debug, Default)]
pub(crate) struct RefusedFiles(Mutex<VecDeque<Refused>>);

#[derive(Debug)]
struct Refused {
    model: String,
    copies: BTreeSet<CopyName>,
    why: String,
}

impl RefusedFiles {
    /// Remembers that a model refused these files together.
    pub(crate) fn add(&self, model: &str, files: &[Attachment], why: String) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REFUSED_MAX {
            all.pop_front();
        }
        all.push_back(Refused {
            model: model.to_owned(),
            copies: files.iter().map(|file| file.copy.clone()).collect(),
            why,
        });
    }

    /// Returns why a model will not take these files: it refused all or some of them; `None` if that is not known.
    pub(crate) fn find(&self, model: &str, files: &[Attachment]) -> Option<String> {
        if files.is_empty() {
            return None;
        }
        let copies: BTreeSet<CopyName> = files.iter().map(|file| file.copy.clone()).collect();
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            |refused: &&Refused| refused.model == model && refused.copies.is_subset(&copies);
        all.iter().find(known).map(|refused| refused.why.clone())
    }
}

/// Removes the files that a backend does not take. Returns the line for the member and the notice for the user; `None` if
/// it takes all.
pub(crate) fn leave_out(
    request: &mut Request,
    takes: impl Fn(MediaKind) -> bool,
    why: &str,
) -> Option<(String, Delta)> {
    let (taken, left): (Vec<_>, Vec<_>) = std::mem::take(&mut request.attachments)
        .into_iter()
        .partition(|file| takes(file.kind));
    request.attachments = taken;
    if left.is_empty() {
        return None;
    }
    let names: Vec<&str> = left.iter().map(|file| file.name.as_str()).collect();
    let text = unseen_notice(&request.seat, &names, why);
    Some((unseen_line(&names, why), Delta::Notice { text }))
}

/// Adds a line to the end of the prompt.
pub(crate) fn say(request: &mut Request, line: &str) {
    request.prompt.turn.push_str("\n\n");
    request.prompt.turn.push_str(line);
}

/// Returns the line that names a file before its bytes.
pub(crate) fn label(file: &Attachment) -> String {
    format!("{} ({}):", file.name, &*file.copy)
}

/// Returns a line that tells a program where it finds files, so that it can open them; `None` without files.
pub(crate) fn paths<'a>(files: impl IntoIterator<Item = &'a Attachment>) -> Option<String> {
    let told = files
        .into_iter()
        .map(|file| format!("{} is at {}", file.name, file.path.display()));
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("(Open the attached files: {}.)", told.join("; ")))
}

/// Returns the bytes of a file in base64.
pub(crate) fn base64(file: &Attachment) -> String {
    STANDARD.encode(&file.bytes)
}

/// Returns a file as a picture in base64.
pub(crate) fn picture(file: &Attachment) -> Picture {
    Picture {
        media_type: file.kind.media_type().to_owned(),
        source: PictureSource::Data(base64(file)),
    }
}

/// Returns content blocks of Anthropic's form for files, each after its name.
pub(crate) fn anthropic_blocks(files: &[Attachment]) -> Vec<Value> {
    let mut blocks = Vec::with_capacity(2 * files.len());
    for file in files {
        let source =
            json!({"type": "base64", "media_type": file.kind.media_type(), "data": base64(file)});
        let kind = match file.kind.is_picture() {
            true => "image",
            false => "document",
        };
        blocks.push(json!({"type": "text", "text": label(file)}));
        blocks.push(json!({"type": kind, "source": source}));
    }
    blocks
}

/// Puts the files of a request before content of Anthropic's form: a text, or blocks.
pub(crate) fn before(content: Value, request: &Request) -> Value {
    if request.attachments.is_empty() {
        return content;
    }
    let mut blocks = anthropic_blocks(&request.attachments);
    match content {
        Value::Array(others) => blocks.extend(others),
        text => blocks.push(json!({"type": "text", "text": text})),
    }
    blocks.into()
}

/// Returns the maximum tokens of a request of this many bytes: no text has more tokens than bytes, and files are counted by
/// their pixels and pages, with a reserve.
pub(crate) fn tokens_max(request: &Request, bytes: u64) -> u64 {
    let files = request.attachments.iter();
    let (encoded, tokens) = files.fold((0, 0), |(encoded, tokens), file| {
        let len = 4 * (file.bytes.len() as u64).div_ceil(3);
        (encoded + len, tokens + FILE_RESERVE * file.tokens())
    });
    bytes.saturating_sub(encoded) + tokens
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing;

    /// A picture and a document.
    pub(crate) fn files() -> Vec<Attachment> {
        let files = [
            ("a.png", &b"\x89PNG\r\n\x1a\n\0"[..]),
            ("b.pdf", b"%PDF-1.7 /Type /Page"),
        ];
        let files = files.map(|(name, bytes)| Attachment {
            path: format!("/t/{name}").into(),
            ..Attachment::new(name, bytes.to_vec()).expect("of a known kind")
        });
        files.into()
    }

    #[test]
    fn what_is_left_out_is_told_to_both() {
        let mut request = testing::request("hi");
        request.attachments = files();
        assert_eq!(leave_out(&mut request, |_| true, "why"), None);
        let (line, notice) = leave_out(&mut request, MediaKind::is_picture, "no PDF").expect("one");
        assert_eq!(request.attachments.len(), 1);
        assert!(line.contains("You cannot see b.pdf: no PDF."), "{line}");
        let text = format!("{} did not see b.pdf: no PDF", request.seat);
        assert_eq!(notice, Delta::Notice { text });
    }

    #[test]
    fn files_count_by_their_tokens_and_not_by_their_bytes() {
        let mut request = testing::request("hi");
        assert_eq!(tokens_max(&request, 100), 100);
        request.attachments = files();
        let encoded = 12 + 28;
        assert_eq!(tokens_max(&request, 100 + encoded), 100 + 2 * (1600 + 2000));
    }
}
