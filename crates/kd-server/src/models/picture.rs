//! Pictures in requests, in any API's form.

use super::fault::{Fault, NAME_CHARS_MAX};
use kd_core::acting::Talk;
use kd_core::clean::clean_line;
use kd_core::request::{Picture, PictureSource};
use serde_json::Value;

/// The types that all three services accept.
const TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Maximum pictures of a conversation: each is a separate message to the service.
const PICTURES_MAX: usize = 100;
/// Maximum bytes of an address.
const URL_BYTES_MAX: usize = 8 << 10;

/// Returns whether a part of a message is a picture: in Chat Completions, Responses or Messages.
pub(super) fn is_picture(kind: &str) -> bool {
    matches!(kind, "image_url" | "input_image" | "image")
}

/// Checks the pictures of a conversation that one member answers. `form` is the field of the format for the answer.
///
/// # Errors
/// If they are too many, or the answer is to have a format: without tools the text must be what the format says, and what
/// the member that sees pictures writes is passed on unchecked.
pub(super) fn check(talk: &Talk, has_tools: bool, form: &'static str) -> Result<(), Fault> {
    let pictures = talk.pictures().count();
    if pictures > PICTURES_MAX {
        let why = format!("there are {pictures} pictures: send at most {PICTURES_MAX}");
        return Err(Fault::invalid(None, why));
    }
    if pictures > 0 && !has_tools && talk.schema.is_some() {
        let why = format!(
            "`{form}` cannot be had with pictures: leave one of them out, or ask for the JSON in the next message"
        );
        return Err(Fault::invalid(Some(form), why));
    }
    Ok(())
}

/// Reads a picture.
///
/// # Errors
/// If it is neither an `https` address nor data in base64 of a known type.
pub(super) fn read(part: &Value, param: &'static str) -> Result<Picture, Fault> {
    let bad = |why: &str| Err(Fault::invalid(Some(param), why));
    let source = &part["source"];
    if source["type"] == "base64" {
        let word = |key: &str| source[key].as_str().unwrap_or_default();
        return data(word("media_type"), word("data"), param);
    }
    let url = match &part["image_url"] {
        Value::String(url) => Some(url.as_str()),
        nested => nested["url"].as_str(),
    };
    let Some(url) = url.or(source["url"].as_str()) else {
        return bad("a picture must be an address or data: files are not stored here");
    };
    if let Some(rest) = url.strip_prefix("data:") {
        let Some((head, content)) = rest.split_once(',') else {
            return bad("the `data:` address of a picture has no data");
        };
        let Some(media_type) = head.strip_suffix(";base64") else {
            return bad("the data of a picture must be in base64");
        };
        return data(media_type, content, param);
    }
    let is_plain = !url.contains(|c: char| c.is_control() || c.is_whitespace());
    if !url.starts_with("https://") || url.len() > URL_BYTES_MAX || !is_plain {
        return bad(
            "the address of a picture must begin with https:// or data:, and have at most 8 KiB and no blanks",
        );
    }
    Ok(Picture {
        media_type: String::new(),
        source: PictureSource::Url(url.to_owned()),
    })
}

fn data(media_type: &str, data: &str, param: &'static str) -> Result<Picture, Fault> {
    let media_type = media_type.to_ascii_lowercase();
    if !TYPES.contains(&media_type.as_str()) {
        let named = clean_line(&media_type, NAME_CHARS_MAX);
        let why = format!(
            "`{named}` is no picture that can be read: send {}",
            TYPES.join(", ")
        );
        return Err(Fault::invalid(Some(param), why));
    }
    let body = data.trim_end_matches('=');
    let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    let padding = data.len() - body.len();
    let is_whole = body.len() % 4 != 1 && (padding == 0 || data.len().is_multiple_of(4));
    if body.is_empty() || padding > 2 || !is_whole || !body.bytes().all(known) {
        return Err(Fault::invalid(
            Some(param),
            "the data of a picture is not base64",
        ));
    }
    Ok(Picture {
        media_type,
        source: PictureSource::Data(data.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pictures_are_read_in_every_form_and_nothing_else_is() {
        let here = |url: &str| {
            let picture = |part: Value| read(&part, "messages").map(|picture| picture.url());
            [
                picture(json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}})),
                picture(json!({"type": "input_image", "image_url": url})),
                picture(json!({"type": "image", "source": {"type": "url", "url": url}})),
            ]
        };
        for good in [
            "data:image/png;base64,aGk=",
            "data:IMAGE/JPEG;base64,aGkh",
            "https://example.org/a.png",
        ] {
            for read in here(good) {
                let same = read.expect("read").eq_ignore_ascii_case(good);
                assert!(same, "{good}");
            }
        }
        for bad in [
            "",
            "http://example.org/a.png",
            "file:///etc/passwd",
            "data:image/png;base64,",
            "data:image/png;base64,a b",
            "data:image/png;base64,aGk====",
            "data:image/png;base64,A",
            "data:image/png;base64,aGkhA",
            "data:image/png;base64,aGk==",
            "https://x/\r\nX: y",
            "https://x/a b",
            "data:image/png,aGk=",
            "data:image/svg+xml;base64,aGk=",
            "data:text/html;base64,aGk=",
            "data:",
        ] {
            assert!(here(bad).iter().all(Result::is_err), "{bad}");
        }
        let block = json!({"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "aGk="}});
        assert_eq!(
            read(&block, "messages").expect("read").url(),
            "data:image/webp;base64,aGk="
        );
        for bad in [
            json!({}),
            json!({"source": {"type": "file", "file_id": "x"}}),
        ] {
            assert!(read(&bad, "messages").is_err(), "{bad}");
        }
    }

    #[test]
    fn pictures_are_few_and_come_without_a_format() {
        use kd_core::request::Said;
        let part = json!({"type": "input_image", "image_url": "https://example.org/a.png"});
        let talk = |pictures: usize, schema: Option<Value>| {
            let picture = read(&part, "input").expect("read");
            let said = Said::Picture { picture };
            Talk {
                said: vec![said; pictures],
                schema,
                ..Talk::default()
            }
        };
        let any = || Some(json!({"type": "object"}));
        assert!(check(&talk(PICTURES_MAX, None), false, "text").is_ok());
        let many = check(&talk(PICTURES_MAX + 1, None), true, "text").expect_err("refused");
        assert!(many.message.contains("101 pictures"), "{}", many.message);
        let formed = check(&talk(1, any()), false, "text").expect_err("refused");
        assert_eq!(formed.param, Some("text"));
        // With tools, the service of the member has the format.
        assert!(check(&talk(1, any()), true, "text").is_ok());
        assert!(check(&talk(0, any()), false, "text").is_ok());
    }
}
