//! Pictures and PDF documents that the user attaches to a message.
//!
//! The thread stays plain text: a message names the file in a block of [`crate::attached`], and a copy of the file lies
//! beside the message, under a name made of its SHA-256:
//!
//! ````text
//! [attached: `shot.png`, PNG image, 12.3 KiB]
//! ```copy
//! attached-5891b5b522d5df086d0ff0b110fbd9d2.png
//! ```
//! ````
//!
//! A request carries the copies that its prompt names. The first bytes of a copy decide its type, never its name.

use crate::attached;
use crate::clean::clean_line;
use crate::hex::hex;
use crate::ids::SeatName;
use crate::size::size;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum bytes of a picture: with base64 it stays below the 5 MB that Anthropic takes.
pub const PICTURE_BYTES_MAX: u64 = 7 << 19;
/// Maximum bytes of a document.
pub const DOCUMENT_BYTES_MAX: u64 = 8 << 20;
/// Maximum bytes of the pictures and documents of a message, and of a request.
pub const MEDIA_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of pictures and documents of a request; the newest are sent.
pub const MEDIA_MAX: usize = 20;
/// The language of the block that names a copy.
const LANGUAGE: &str = "copy";
/// The beginning of the name of a copy.
const PREFIX: &str = "attached-";
/// Hexadecimal digits of the SHA-256 in the name of a copy.
const DIGITS: usize = 32;
/// Maximum characters of a name in a notice.
const NAME_CHARS_MAX: usize = 120;
/// The words after the member's name in the notice about a file that it did not get.
const UNSEEN: &str = "did not see ";

/// Estimated tokens of a picture whose size in pixels is unknown: the most that a service counts for one.
const PICTURE_TOKENS_MAX: u64 = 1600;
/// Pixels of a picture per token.
const TOKEN_PIXELS: u64 = 750;
/// Estimated tokens of a page of a document: its text and its picture.
const PAGE_TOKENS: u64 = 2000;
/// Estimated bytes of a page where the pages cannot be counted.
const PAGE_BYTES: u64 = 64 << 10;

/// The kind of a file that is sent beside the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MediaKind {
    /// A PNG image.
    Png,
    /// A JPEG image.
    Jpeg,
    /// A GIF image.
    Gif,
    /// A WebP image.
    Webp,
    /// A PDF document.
    Pdf,
}

impl MediaKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp, Self::Pdf];

    /// Tells the kind by the first bytes; `None` for anything else.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        Some(match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Self::Png,
            [0xff, 0xd8, 0xff, ..] => Self::Jpeg,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Self::Gif,
            [b'%', b'P', b'D', b'F', b'-', ..] => Self::Pdf,
            _ if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") => Self::Webp,
            _ => return None,
        })
    }

    /// Returns its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Pdf => "application/pdf",
        }
    }

    /// Describes it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Png => "PNG image",
            Self::Jpeg => "JPEG image",
            Self::Gif => "GIF image",
            Self::Webp => "WebP image",
            Self::Pdf => "PDF document",
        }
    }

    /// Returns whether it is a picture.
    pub fn is_picture(self) -> bool {
        self != Self::Pdf
    }

    /// Returns the maximum bytes of a file of this kind.
    pub fn bytes_max(self) -> u64 {
        match self.is_picture() {
            true => PICTURE_BYTES_MAX,
            false => DOCUMENT_BYTES_MAX,
        }
    }

    fn ending(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Gif => "gif",
            Self::Webp => "webp",
            Self::Pdf => "pdf",
        }
    }
}

/// The name of a copy: `attached-`, 32 hexadecimal digits of its SHA-256, and the ending of its kind. Nothing else can be
/// one, so that a text can name no other file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CopyName(String);

impl CopyName {
    /// Returns the name of the copy of these bytes; `None` if they are of no known kind.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let kind = MediaKind::of(bytes)?;
        let digits = hex(&Sha256::digest(bytes));
        let name = format!("{PREFIX}{}.{}", &digits[..DIGITS], kind.ending());
        Some(Self(name))
    }

    /// Parses a name; `None` for any other text.
    pub fn parse(name: &str) -> Option<Self> {
        let (digits, ending) = name.strip_prefix(PREFIX)?.split_once('.')?;
        let is_digits = digits.len() == DIGITS
            && digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let is_kind = MediaKind::ALL.iter().any(|kind| kind.ending() == ending);
        (is_digits && is_kind).then(|| Self(name.to_owned()))
    }

    /// Returns whether these bytes are what the name says.
    pub fn fits(&self, bytes: &[u8]) -> bool {
        Self::of(bytes).as_ref() == Some(self)
    }
}

impl Deref for CopyName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A file that goes with a message or a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The name that the user typed, on one line.
    pub name: String,
    /// The name of its copy.
    pub copy: CopyName,
    /// Its kind.
    pub kind: MediaKind,
    /// Its copy, for programs that open files themselves; empty before it is stored.
    pub path: PathBuf,
    /// Its bytes, shared by all members.
    pub bytes: Arc<[u8]>,
}

impl Attachment {
    /// Creates the attachment of these bytes; `None` if they are of no known kind.
    pub fn new(name: &str, bytes: Vec<u8>) -> Option<Self> {
        Some(Self {
            name: clean_line(name, NAME_CHARS_MAX),
            copy: CopyName::of(&bytes)?,
            kind: MediaKind::of(&bytes)?,
            path: PathBuf::new(),
            bytes: bytes.into(),
        })
    }

    /// Returns the block of the message.
    pub fn block(&self) -> String {
        let about = format!("{}, {}", self.kind.words(), size(self.bytes.len() as u64));
        attached::block_of(&self.name, &about, LANGUAGE, &self.copy)
    }

    /// Estimates its tokens.
    pub fn tokens(&self) -> u64 {
        tokens(&self.bytes, self.bytes.len() as u64)
    }
}

/// A copy that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name that the user typed.
    pub name: String,
    /// The copy.
    pub copy: CopyName,
}

/// Returns the copies that a text names in blocks, each once, in order.
pub fn named(text: &str) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    for (named, _) in blocks(text) {
        if found.iter().all(|other| other.copy != named.copy) {
            found.push(named);
        }
    }
    found
}

/// Returns a text as it is shown: of each block that names a copy, only the line above it.
pub fn without_copies(text: Cow<'_, str>) -> Cow<'_, str> {
    let blocks = blocks(&text);
    if blocks.is_empty() {
        return text;
    }
    let mut shown = String::new();
    let mut from = 0;
    for (_, block) in blocks {
        shown.push_str(&text[from..block.start]);
        from = block.end;
    }
    shown.push_str(&text[from..]);
    Cow::Owned(shown)
}

/// Returns the copies that a text names, each with the range from the end of the line above its block to the end of the
/// block.
fn blocks(text: &str) -> Vec<(Named, Range<usize>)> {
    let mut found = Vec::new();
    let opening = format!("\n```{LANGUAGE}\n");
    for (at, _) in text.match_indices(&opening) {
        let rest = &text[at + opening.len()..];
        let Some((copy, rest)) = rest.split_once('\n') else {
            continue;
        };
        let head = &text[..at];
        let head = &head[head.rfind('\n').map_or(0, |end| end + 1)..];
        let name = attached::name_in(head);
        if let (Some(copy), Some(name), Some(rest)) =
            (CopyName::parse(copy), name, rest.strip_prefix("```"))
        {
            let name = name.to_owned();
            found.push((Named { name, copy }, at..text.len() - rest.len()));
        }
    }
    found
}

/// Estimates the tokens of a file by its first bytes and its length: a picture by its pixels, a document by its pages.
pub fn tokens(head: &[u8], len: u64) -> u64 {
    if MediaKind::of(head) == Some(MediaKind::Pdf) {
        let by_length = len.div_ceil(PAGE_BYTES);
        let pages = match head.len() as u64 == len {
            true => pages(head).unwrap_or(by_length),
            false => by_length,
        };
        return pages.max(1) * PAGE_TOKENS;
    }
    match pixels(head) {
        Some((width, height)) => {
            let pixels = u64::from(width) * u64::from(height);
            pixels.div_ceil(TOKEN_PIXELS).clamp(1, PICTURE_TOKENS_MAX)
        }
        None => PICTURE_TOKENS_MAX,
    }
}

/// Counts the pages of a document whose page objects are not compressed.
fn pages(bytes: &[u8]) -> Option<u64> {
    const TYPE: &[u8] = b"/Type";
    let mut pages = 0;
    let mut rest = bytes;
    while let Some(at) = rest.windows(TYPE.len()).position(|w| w == TYPE) {
        rest = &rest[at + TYPE.len()..];
        let value = rest.trim_ascii_start();
        let is_page = value.strip_prefix(b"/Page");
        if is_page.is_some_and(|after| !after.first().is_some_and(u8::is_ascii_alphabetic)) {
            pages += 1;
        }
    }
    (pages > 0).then_some(pages)
}

/// Returns width and height of a picture, where its first bytes tell them.
fn pixels(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let little = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    match MediaKind::of(bytes)? {
        MediaKind::Png => Some((big(16)?, big(20)?)),
        MediaKind::Gif => Some((little(6)?.into(), little(8)?.into())),
        MediaKind::Jpeg => jpeg_pixels(bytes),
        MediaKind::Webp if bytes.get(12..16) == Some(b"VP8X") => {
            let three = |at: usize| {
                let b = bytes.get(at..at + 3)?;
                Some(1 + u32::from_le_bytes([b[0], b[1], b[2], 0]))
            };
            Some((three(24)?, three(27)?))
        }
        MediaKind::Webp | MediaKind::Pdf => None,
    }
}

fn jpeg_pixels(bytes: &[u8]) -> Option<(u32, u32)> {
    let two = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    while *bytes.get(at)? == 0xff {
        match bytes.get(at + 1)? {
            0xff => at += 1,
            // Frame headers; the others of this range are tables.
            0xc0..=0xcf if !matches!(bytes[at + 1], 0xc4 | 0xc8 | 0xcc) => {
                return Some((two(at + 7)?.into(), two(at + 5)?.into()));
            }
            _ => at += 2 + usize::from(two(at + 2)?),
        }
    }
    None
}

/// Returns the notice to the user about files that a member does not get, and why. The engine sends it once.
pub fn unseen_notice(seat: &SeatName, names: &[&str], why: &str) -> String {
    format!("{seat} {UNSEEN}{}: {why}", names.join(", "))
}

/// Returns whether a notice of a turn is an [`unseen_notice`].
pub fn is_unseen_notice(text: &str) -> bool {
    text.split_once(' ')
        .is_some_and(|(_, rest)| rest.starts_with(UNSEEN))
}

/// Returns the line for a member that does not get files.
pub fn unseen_line(names: &[&str], why: &str) -> String {
    format!(
        "(You cannot see {}: {why}. Say so if the answer depends on it.)",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03\0\0\0\x02\x58";

    #[test]
    fn the_first_bytes_tell_the_kind() {
        for (bytes, kind) in [
            (PNG, Some(MediaKind::Png)),
            (b"\xff\xd8\xff\xe0", Some(MediaKind::Jpeg)),
            (b"GIF89a\x01\0\x01\0", Some(MediaKind::Gif)),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some(MediaKind::Webp)),
            (b"%PDF-1.7\n", Some(MediaKind::Pdf)),
            (b"\x89PNG", None),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"<svg/>", None),
            (b"", None),
        ] {
            assert_eq!(MediaKind::of(bytes), kind, "{bytes:?}");
        }
    }

    #[test]
    fn a_message_names_the_copy_and_nothing_else_does() {
        let shot = Attachment::new("a\n`shot`.png", PNG.to_vec()).unwrap();
        let block = shot.block();
        let copy = CopyName::of(PNG).unwrap();
        assert_eq!(
            block,
            format!(
                "[attached: `a 'shot'.png`, PNG image, 24 bytes]\n```copy\n{}\n```",
                &*copy
            )
        );
        let body = attached::append("What is in @shot.png?", std::slice::from_ref(&block));
        assert_eq!(attached::typed(&body), "What is in @shot.png?");
        let found = named(&format!("king: {body}\n\nann: {block}\n\nking: more"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].name.as_str(), &found[0].copy),
            ("a 'shot'.png", &copy)
        );
        let shown = |text: &str| without_copies(text.into()).into_owned();
        let head = "[attached: `a 'shot'.png`, PNG image, 24 bytes]";
        assert_eq!(shown(&body), format!("What is in @shot.png?\n\n{head}"));
        let twice = format!("{block}\n\n{block}\n\nmore");
        assert_eq!(shown(&twice), format!("{head}\n\n{head}\n\nmore"));
        for text in [
            block.replace("attached-", "../attached-"),
            block.replace(".png\n```", ".sh\n```"),
            block.replace("[attached", "[attacked"),
            block.replace("\n```copy", "\n```text"),
            block.replace("\n```copy\n", "\n```copy\nx\n"),
            block.replace('\n', "\n> "),
            format!(
                "{}\n```copy\n/etc/passwd\n```",
                block.split_once('\n').unwrap().0
            ),
            "[attached: `x`]\n```copy".to_owned(),
        ] {
            assert_eq!(named(&text), [], "{text}");
            assert_eq!(shown(&text), text, "only copies are left out");
        }
        assert!(copy.fits(PNG) && !copy.fits(b"\x89PNG\r\n\x1a\nother") && !copy.fits(b""));
        assert_eq!(Attachment::new("x", b"text".to_vec()), None);
    }

    #[test]
    fn tokens_follow_pixels_and_pages() {
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc4\0\x02\xff\xc2\0\x0b\x08\x02\x58\x03\x20rest";
        assert_eq!(pixels(jpeg), Some((800, 600)));
        assert_eq!(tokens(jpeg, 9), 640);
        assert_eq!(pixels(PNG), Some((768, 600)));
        let webp = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x1f\x03\0\x57\x02\0";
        assert_eq!(pixels(webp), Some((800, 600)));
        assert_eq!(tokens(b"GIF89a\x01\0\x01\0", 10), 1);
        assert_eq!(tokens(b"GIF89a\x01", 7), PICTURE_TOKENS_MAX);
        assert_eq!(tokens(b"\xff\xd8\xff", 3), PICTURE_TOKENS_MAX);
        let pdf = b"%PDF-1.7 <</Type /Pages>> <</Type/Page >> <</Type /Page/X>>";
        assert_eq!(tokens(pdf, pdf.len() as u64), 2 * PAGE_TOKENS);
        assert_eq!(tokens(b"%PDF-1.7", 8), PAGE_TOKENS);
        assert_eq!(tokens(b"%PDF-1.7", 10 * PAGE_BYTES), 10 * PAGE_TOKENS);
    }

    #[test]
    fn a_notice_is_known_by_its_beginning() {
        let ann = SeatName::new("ann").unwrap();
        let text = unseen_notice(&ann, &["a.png", "b.pdf"], "it reads text only");
        assert_eq!(text, "ann did not see a.png, b.pdf: it reads text only");
        assert!(is_unseen_notice(&text) && !is_unseen_notice("files changed"));
    }
}
