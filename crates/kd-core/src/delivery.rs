//! A message of the user in transit to the members: kept on disk until it is answered, so that a killed program neither
//! loses it nor has it answered twice.

use crate::ids::SeatName;
use crate::message::Address;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A message of the user that is not answered yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// 32 hex digits. The message and all replies to it carry them as `delivery_id`.
    pub id: String,
    /// The text.
    pub body: String,
    /// The recipients.
    pub to: Address,
    /// The members asked, once decided; the message itself is then on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Vec<SeatName>>,
}

/// Returns the id of the `count`th delivery of a session: deterministic per session, and unique in practice.
pub(crate) fn id(seed: u64, now: Timestamp, count: u64) -> String {
    let nanos = now.as_nanosecond() as u64;
    let high = mix(seed ^ mix(nanos));
    format!("{high:016x}{:016x}", mix(high ^ count))
}

/// One round of SplitMix64: spreads small differences over all bits.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_32_hex_digits_and_differ() {
        let second = |s| Timestamp::from_second(s).unwrap();
        let mut seen = BTreeSet::new();
        for seed in 0..4 {
            for at in 0..4 {
                for count in 0..4 {
                    let id = id(seed, second(at), count);
                    assert!(id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit()));
                    assert!(seen.insert(id));
                }
            }
        }
        assert_eq!(id(1, second(1), 1), id(1, second(1), 1));
    }
}
