//! Parses flag values with a custom format.

use std::ops::{Bound, RangeBounds};
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
        return Err("a time must be greater than zero".to_owned());
    }
    Ok(Duration::from_secs(seconds))
}

/// `2/s`, `30/m`, `500/h`: a rate, as the time from one start to the next.
pub(super) fn rate(text: &str) -> Result<Duration, String> {
    let told = || "write a number per second, minute or hour: `2/s`, `30/m`, `500/h`".to_owned();
    let (number, unit) = text.trim().split_once('/').ok_or_else(told)?;
    let seconds = match unit.trim() {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(told()),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if (1e-3..=1e6).contains(&number) => {
            Ok(Duration::from_secs_f64(seconds / number))
        }
        _ => Err(told()),
    }
}

/// `90d`, `12w`, `1y`: an age in days, weeks or years.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    const DAY: u64 = 24 * 60 * 60;
    let text = text.trim();
    let days = match text.chars().last() {
        Some('d') => 1,
        Some('w') => 7,
        Some('y') => 365,
        _ => 0,
    };
    let number = text.get(..text.len().saturating_sub(1));
    match number.and_then(|number| number.parse::<u64>().ok()) {
        Some(number @ 1..=36_500) if days > 0 => Ok(Duration::from_secs(number * days * DAY)),
        _ => Err("write a number of days, weeks or years: `90d`, `12w`, `1y`".to_owned()),
    }
}

/// A whole number in a range.
pub(super) fn whole<T: TryFrom<i128> + Clone + Send + Sync + 'static>(
    range: impl RangeBounds<i128> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.trim().parse::<i128>().ok();
        let fitting = number.filter(|number| range.contains(number));
        let text = text.trim();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let ends = (range.start_bound(), range.end_bound());
        fitting
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| match ends {
                (Bound::Included(min), Bound::Included(max)) => {
                    format!("write a whole number from {min} to {max}")
                }
                // A number that is too large is a number all the same.
                (Bound::Included(min), _)
                    if is_number(text.trim_start_matches('0'))
                        && number.is_none_or(|n| n > *min) =>
                {
                    format!("write a whole number from {min} to {}", greatest::<T>())
                }
                (Bound::Included(min), _) => format!("write a whole number, {min} or more"),
                (_, Bound::Included(max)) => format!("write a whole number, {max} or less"),
                _ => "write a whole number".to_owned(),
            })
    }
}

/// Returns the greatest number of a type.
fn greatest<T: TryFrom<i128>>() -> i128 {
    let bits = (1..i128::BITS - 1).rev();
    let mut all = bits.map(|bits| (1_i128 << bits) - 1);
    all.find(|number| T::try_from(*number).is_ok()).unwrap_or(0)
}

/// A number for a random generator.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    whole(0..=i128::from(u64::MAX))(text)
}

/// A number of tokens.
pub(super) fn tokens(text: &str) -> Result<u32, String> {
    whole(1..)(text)
}

/// A chance of being right, at least that of a coin.
pub(super) fn share(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(share) if (0.5..=1.0).contains(&share) => Ok(share),
        _ => Err("write a share from 0.5 to 1, such as 0.9".to_owned()),
    }
}

/// A temperature from 0 to 2.
pub(super) fn temperature(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(t) if (0.0..=2.0).contains(&t) => Ok(t),
        _ => Err("write a number from 0 (deterministic) to 2".to_owned()),
    }
}

/// An amount of US dollars.
pub(super) fn usd(text: &str) -> Result<f64, String> {
    match text.trim().trim_start_matches('$').parse::<f64>() {
        Ok(usd) if (0.0..=1_000_000.0).contains(&usd) => Ok(usd),
        _ => Err("write an amount of US dollars, for example `0.10`".to_owned()),
    }
}

/// `bob=2`: a member and its weight.
pub(super) fn weight(text: &str) -> Result<(String, f64), String> {
    let parsed = text.split_once('=').and_then(|(name, weight)| {
        let weight: f64 = weight.trim().parse().ok()?;
        Some((name.trim().to_owned(), weight))
    });
    match parsed {
        Some((name, weight)) if !name.is_empty() && weight.is_finite() && weight >= 0.0 => {
            Ok((name, weight))
        }
        _ => Err("write a member and a weight of 0 or more, for example `bob=2`".to_owned()),
    }
}

/// Reads the share right that a promise must reach.
pub(crate) fn promise(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.5..=0.999).contains(&share) => Ok(share),
        _ => Err("write a share from 0.5 to 0.999, such as 0.95".to_owned()),
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
    fn whole_numbers_name_their_range() {
        assert_eq!(whole::<u32>(1..=9)("7"), Ok(7));
        assert_eq!(whole::<i64>(-5..=5)(" -5 "), Ok(-5));
        for (text, why) in [
            ("x", "write a whole number from 1 to 9"),
            ("0", "write a whole number from 1 to 9"),
            ("-1", "write a whole number from 1 to 9"),
            ("1.5", "write a whole number from 1 to 9"),
        ] {
            assert_eq!(whole::<u32>(1..=9)(text), Err(why.to_owned()), "{text}");
        }
        let huge = whole::<u32>(1..)("99999999999");
        assert_eq!(
            huge,
            Err("write a whole number from 1 to 4294967295".to_owned())
        );
        let beyond = whole::<u64>(1..)(&"9".repeat(60));
        assert_eq!(
            beyond,
            Err("write a whole number from 1 to 18446744073709551615".to_owned())
        );
        for small in ["0", "-99999999999", "x", ""] {
            let said = whole::<u32>(1..)(small);
            assert_eq!(said, Err("write a whole number, 1 or more".to_owned()));
        }
    }

    #[test]
    fn ages_are_days_weeks_and_years() {
        for (text, days) in [("90d", 90), ("2w", 14), ("1y", 365)] {
            assert_eq!(age(text), Ok(Duration::from_secs(days * 86_400)), "{text}");
        }
        for bad in ["", "d", "90", "0d", "-1d", "1.5d", "1m", "99999y", "ü"] {
            assert!(age(bad).is_err(), "{bad}");
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

    #[test]
    fn a_weight_names_its_member() {
        assert_eq!(weight("bob=2"), Ok(("bob".into(), 2.0)));
        assert_eq!(weight(" ann = 0.5"), Ok(("ann".into(), 0.5)));
        for bad in ["bob", "=2", "bob=", "bob=-1", "bob=inf", "bob=NaN", "bob=x"] {
            assert!(weight(bad).is_err(), "{bad}");
        }
    }
}
