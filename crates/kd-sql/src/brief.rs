//! A mark in few bytes, beside its JSON text: a decision reads a thousand of them.
//!
//! Numbers have a fixed length, texts and lists are preceded by theirs, in little-endian order. A mark that cannot be read
//! is read from its JSON text.

use kd_core::Timestamp;
use kd_eval::marks::{By, Mark, Member};

/// The version of this form.
const FORM: u8 = 3;

/// Writes a mark.
pub(crate) fn write(mark: &Mark) -> Vec<u8> {
    let mut out = vec![FORM];
    out.extend(mark.v.to_le_bytes());
    out.extend(mark.message.to_le_bytes());
    out.extend(mark.at.as_nanosecond().to_le_bytes());
    out.push(match mark.by {
        By::User => 0,
        By::Command => 1,
        By::Gold => 2,
        By::Import => 3,
    });
    out.extend(mark.credit.to_le_bytes());
    out.extend(mark.calls.to_le_bytes());
    out.extend(mark.usd.to_le_bytes());
    for name in [&mark.project, &mark.thread, &mark.kind, &mark.protocol] {
        text(&mut out, name);
    }
    maybe(&mut out, mark.winner.as_deref());
    maybe(&mut out, mark.answer.as_deref());
    out.extend((mark.members.len() as u32).to_le_bytes());
    for member in &mark.members {
        text(&mut out, &member.name);
        text(&mut out, &member.model);
        maybe(&mut out, member.key.as_deref());
        out.push(u8::from(member.backs));
        out.push(u8::from(member.confidence.is_some()));
        out.extend(member.confidence.unwrap_or_default().to_le_bytes());
    }
    out.extend((mark.unasked.len() as u32).to_le_bytes());
    for model in &mark.unasked {
        text(&mut out, model);
    }
    maybe(&mut out, mark.stopping.as_deref());
    out
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

fn maybe(out: &mut Vec<u8>, found: Option<&str>) {
    out.push(u8::from(found.is_some()));
    text(out, found.unwrap_or_default());
}

/// Reads a mark; `None` if the bytes are not one.
pub(crate) fn read(bytes: &[u8]) -> Option<Mark> {
    let mut rest = Rest(bytes);
    (rest.byte()? == FORM).then_some(())?;
    let v = u32::from_le_bytes(rest.take()?);
    let message = u32::from_le_bytes(rest.take()?);
    let at = Timestamp::from_nanosecond(i128::from_le_bytes(rest.take()?)).ok()?;
    let by = match rest.byte()? {
        0 => By::User,
        1 => By::Command,
        2 => By::Gold,
        3 => By::Import,
        _ => return None,
    };
    let credit = f64::from_le_bytes(rest.take()?);
    let calls = u64::from_le_bytes(rest.take()?);
    let usd = f64::from_le_bytes(rest.take()?);
    let [project, thread, kind, protocol] =
        [rest.text()?, rest.text()?, rest.text()?, rest.text()?];
    let (winner, answer) = (rest.maybe()?, rest.maybe()?);
    let count = u32::from_le_bytes(rest.take()?) as usize;
    // A member has at least 23 bytes, so a false count reserves no memory.
    let mut members = Vec::with_capacity(count.min(rest.0.len() / 23));
    for _ in 0..count {
        members.push(Member {
            name: rest.text()?,
            model: rest.text()?,
            key: rest.maybe()?,
            backs: rest.byte()? == 1,
            confidence: {
                let is_stated = rest.byte()? == 1;
                let stated = f64::from_le_bytes(rest.take()?);
                is_stated.then_some(stated)
            },
        });
    }
    let count = u32::from_le_bytes(rest.take()?) as usize;
    let unasked: Option<Vec<String>> = (0..count).map(|_| rest.text()).collect();
    let unasked = unasked?;
    let stopping = rest.maybe()?;
    rest.0.is_empty().then_some(Mark {
        v,
        project,
        thread,
        message,
        at,
        by,
        kind,
        protocol,
        members,
        unasked,
        stopping,
        winner,
        credit,
        answer,
        calls,
        usd,
    })
}

/// The bytes that are not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn text(&mut self) -> Option<String> {
        let len = u32::from_le_bytes(self.take()?) as usize;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(text).ok().map(str::to_owned)
    }

    fn maybe(&mut self) -> Option<Option<String>> {
        let is_some = self.byte()? == 1;
        let text = self.text()?;
        Some(is_some.then_some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_eval::marks::VERSION;

    fn mark() -> Mark {
        let member = |key: Option<&str>, confidence| Member {
            name: "ann".into(),
            model: "vendor/modèle-1".into(),
            key: key.map(Into::into),
            backs: key.is_some(),
            confidence,
        };
        Mark {
            v: VERSION,
            project: "p-1".into(),
            thread: "council-4f2a".into(),
            message: 6,
            at: "2026-03-01T09:00:00.123456789Z".parse().unwrap(),
            by: By::Gold,
            kind: "number".into(),
            protocol: "vote".into(),
            members: vec![
                member(Some("391"), Some(0.8)),
                member(None, None),
                member(Some(""), None),
            ],
            unasked: vec!["vendor/m-2".into(), "m-3@lan-0a1b2c3d".into()],
            stopping: Some("certainty 0.9".into()),
            winner: Some("391".into()),
            credit: 0.7,
            answer: None,
            calls: 3,
            usd: 0.25,
        }
    }

    #[test]
    fn a_mark_comes_back_as_it_was() {
        for by in [By::User, By::Command, By::Gold, By::Import] {
            let mark = Mark { by, ..mark() };
            assert_eq!(read(&write(&mark)), Some(mark));
        }
        let json = serde_json::to_string(&mark()).unwrap();
        assert!(write(&mark()).len() < json.len(), "{}", json.len());
    }

    #[test]
    fn broken_bytes_are_no_mark() {
        let bytes = write(&mark());
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), None, "{end}");
        }
        assert_eq!(read(&[&bytes[..], &[0]].concat()), None);
        let mut other = bytes.clone();
        other[0] = 9;
        assert_eq!(read(&other), None);
        // A length beyond the end reserves nothing.
        let mut long = bytes;
        let at = long.len() - 1;
        long[at - 60..].fill(0xff);
        assert_eq!(read(&long), None);
    }
}
