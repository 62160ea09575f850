//! Words that several messages share.

use kd_core::display::is_unsafe;
use kd_core::event::DuetEnd;
use std::fmt::Write as _;

/// `1,234 chars`.
pub fn count(n: u64, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(n))
}

/// Describes the end of a debate, given the number of its messages; `missing` names failed members.
pub fn debate(why: DuetEnd, messages: u32, missing: &str) -> String {
    let after = format!("after {}", count(messages.into(), "message"));
    match why {
        DuetEnd::Agreed if messages == 0 => "answered at first look, unchecked".to_owned(),
        DuetEnd::Agreed => format!("agreed {after}"),
        DuetEnd::Unclear if messages == 0 => {
            "answered at first look, unchecked; the reply was cut off or drawn again".to_owned()
        }
        DuetEnd::Unclear => {
            format!("no agreement {after}: a reply was cut off or drawn again")
        }
        DuetEnd::Cap => format!("not agreed {after}: one member decided{missing}"),
        DuetEnd::Cycle => {
            format!("stopped {after}, which repeated another: one member decided{missing}")
        }
        DuetEnd::Budget => format!("out of tokens {after}: one member decided{missing}"),
        DuetEnd::Time => format!("out of time {after}: one member decided{missing}"),
        DuetEnd::Alone => format!("one member failed {after}: the other answered alone"),
        DuetEnd::Interrupted => format!("interrupted {after}; partial answers are saved"),
        DuetEnd::Failed => format!("no member could answer {after}"),
    }
}

/// `1,234`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// Returns a text in which nothing can control the terminal or hide from the reader.
pub fn shown_text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        let unseen = is_unsafe(c)
            || matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{180b}'..='\u{180f}'
                | '\u{3164}' | '\u{ffa0}' | '\u{115f}' | '\u{1160}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
            || (c.is_whitespace() && c != ' ');
        if unseen {
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Formats a size: `93.8 MiB`, `1.0 GiB`.
pub fn mebibytes(bytes: u64) -> String {
    const MIB: f64 = (1_u64 << 20) as f64;
    match bytes as f64 / MIB {
        mib if mib >= 1000.0 => format!("{:.1} GiB", mib / 1024.0),
        mib => format!("{mib:.1} MiB"),
    }
}
