//! Reads the values of flags whose form is our own.

use std::time::Duration;

/// `90`, `90s`, `2m`, `1h`: a time, in seconds unless it says otherwise.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let (digits, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(digits) => (digits, &text[digits.len()..]),
        None => (text, "s"),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "write a number of seconds, or for example `90s`, `2m`, `1h`".to_owned())?;
    let seconds = number.saturating_mul(match unit {
        "h" => 3600,
        "m" => 60,
        _ => 1,
    });
    if seconds == 0 {
        return Err("a time must be longer than nothing".to_owned());
    }
    Ok(Duration::from_secs(seconds))
}

/// A temperature from 0 to 2.
pub(super) fn temperature(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(t) if (0.0..=2.0).contains(&t) => Ok(t),
        _ => Err("write a number from 0 (always the likeliest word) to 2".to_owned()),
    }
}

/// An amount of US dollars.
pub(super) fn usd(text: &str) -> Result<f64, String> {
    match text.trim().trim_start_matches('$').parse::<f64>() {
        Ok(usd) if (0.0..=1_000_000.0).contains(&usd) => Ok(usd),
        _ => Err("write an amount of US dollars, for example `0.10`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("2m", 120), ("1h", 3600)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for bad in ["", "s", "0", "-1", "1d", "1.5", "ü"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn amounts_are_dollars() {
        assert_eq!((usd("0.10"), usd("$2")), (Ok(0.1), Ok(2.0)));
        for bad in ["-1", "NaN", "much", ""] {
            assert!(usd(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn temperatures_stay_in_their_range() {
        assert_eq!(temperature("0.7"), Ok(0.7));
        for bad in ["-0.1", "2.1", "NaN", "warm"] {
            assert!(temperature(bad).is_err(), "{bad}");
        }
    }
}
