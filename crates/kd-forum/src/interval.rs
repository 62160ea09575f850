//! The time from the start of one cycle to the start of the next: fixed, or adapted to the activity.

use kd_core::config::forum::Settings;

/// Maximum deviation of `adaptive` from the configured interval, as a factor and its inverse.
const REACH: f64 = 4.0;

/// Returns the milliseconds from the start of a cycle to the start of the next. `posts` are those of the cycle, `turns`
/// the number of agents that had one.
///
/// `adaptive`: if every agent posts, the interval halves; if none does, it doubles, and so on from cycle to cycle,
/// within a quarter and four times the configured interval. `last_ms` is the previous interval.
pub fn next_ms(settings: &Settings, last_ms: Option<u64>, posts: usize, turns: usize) -> u64 {
    let set = settings.cycle_interval_secs.max(0.0) * 1000.0;
    if settings.interval != "adaptive" {
        return set.round() as u64;
    }
    let last = last_ms.map_or(set, |ms| ms as f64);
    let share = if turns == 0 {
        0.0
    } else {
        (posts as f64 / turns as f64).min(1.0)
    };
    // From 2 (no agent posts) through 1 (half of them) to 0.5 (all of them).
    let factor = 2f64.powf(1.0 - 2.0 * share);
    (last * factor).clamp(set / REACH, set * REACH).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_forum_goes_faster_and_a_silent_one_slower_within_bounds() {
        let fixed = Settings::default();
        assert_eq!(next_ms(&fixed, Some(7), 9, 9), 300_000);
        let adaptive = Settings {
            interval: "adaptive".into(),
            ..Settings::default()
        };
        assert_eq!(next_ms(&adaptive, None, 4, 4), 150_000);
        assert_eq!(next_ms(&adaptive, None, 0, 4), 600_000);
        assert_eq!(next_ms(&adaptive, Some(200_000), 2, 4), 200_000);
        let (mut busy, mut silent) = (None, None);
        for _ in 0..10 {
            busy = Some(next_ms(&adaptive, busy, 5, 5));
            silent = Some(next_ms(&adaptive, silent, 0, 5));
        }
        assert_eq!((busy, silent), (Some(75_000), Some(1_200_000)));
    }
}
