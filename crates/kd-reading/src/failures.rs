//! Detects replies that are not an answer: a program's error, or a model stuck in a loop. Numbers and names in them are
//! ignored.

/// Returns whether a text is a program's error: a stack trace, an HTTP status, a message that begins with `error:`.
pub(super) fn is_error(text: &str) -> bool {
    const BEGINS: [&str; 14] = [
        "traceback (most recent call last)",
        "error:",
        "error code",
        "error code:",
        "fatal:",
        "fatal error",
        "panic:",
        "thread 'main' panicked",
        "segmentation fault",
        "exception in thread",
        "uncaught ",
        "unhandled exception",
        "internal server error",
        "command not found",
    ];
    let lower = text.trim_start().to_lowercase();
    if BEGINS.iter().any(|begin| lower.starts_with(begin)) {
        return true;
    }
    let first = text.trim_start().lines().next().unwrap_or_default();
    // `HTTP 429 Too Many Requests`, `HTTP/1.1 503`
    let status = first.strip_prefix("HTTP").is_some_and(|rest| {
        let code = rest.split_whitespace().find_map(|w| w.parse::<u16>().ok());
        code.is_some_and(|code| (400..600).contains(&code))
    });
    // `ValueError: …`, `java.lang.NullPointerException: …`
    let name = first.split(':').next().unwrap_or_default();
    let raised = first.contains(':')
        && (name.ends_with("Error") || name.ends_with("Exception"))
        && !name.contains(char::is_whitespace)
        && name.len() > "Error".len();
    status || raised
}

/// Minimum digits of a number that can be a loop.
const LOOP_DIGITS_MIN: usize = 30;
/// Maximum length of a repeated piece.
const PIECE_DIGITS_MAX: usize = 4;

/// Returns whether digits count up (`1234567891011…`) or repeat a piece, and so are not a meaningful number.
pub(super) fn is_loop(digits: &str) -> bool {
    if digits.len() < LOOP_DIGITS_MIN {
        return false;
    }
    let mut counted = String::new();
    let mut next = 1u32;
    while counted.len() < digits.len() {
        counted.push_str(&next.to_string());
        next += 1;
    }
    let bytes = digits.as_bytes();
    let repeats = |piece: usize| bytes.iter().zip(&bytes[piece..]).all(|(a, b)| a == b);
    counted.starts_with(digits) || (1..=PIECE_DIGITS_MAX).any(repeats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_programs_are_told_from_answers() {
        for (text, is) in [
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 2",
                true,
            ),
            (
                "ValueError: invalid literal for int() with base 10: '7'",
                true,
            ),
            ("java.lang.NullPointerException: 3", true),
            ("HTTP 429 Too Many Requests", true),
            ("HTTP/1.1 503 Service Unavailable", true),
            ("error: 5 tests failed", true),
            ("Error 5 is the right choice.", false),
            ("HTTP", false),
            ("42", false),
            ("The answer is 404: not found.", false),
        ] {
            assert_eq!(is_error(text), is, "{text}");
        }
    }

    #[test]
    fn loops_are_told_from_long_numbers() {
        for (digits, is) in [
            ("12345678910111213141516171819202122", true),
            ("777777777777777777777777777777777777", true),
            ("123123123123123123123123123123123", true),
            // 30!
            ("265252859812191058636308480000000", false),
            ("1000000000000000000000000000000000000", false),
            ("123456789", false),
        ] {
            assert_eq!(is_loop(digits), is, "{digits}");
        }
    }
}
