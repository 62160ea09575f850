//! Exact numbers: integers and fractions of any size. No vote total is ever a float.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use serde::{Serialize, Serializer};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// [`Nano`] units in one: weights, confidences and scores are given in billionths.
pub const NANOS: i128 = 1_000_000_000;

/// A number in billionths. Real values (a logarithm, a fitted map) are rounded to a billionth once, on input; all
/// further arithmetic is on integers, so the order of summation cannot matter.
pub type Nano = i128;

/// Rounds a real number to billionths. Values that are not finite become 0.
pub fn nanos(x: f64) -> Nano {
    if !x.is_finite() {
        return 0;
    }
    // Larger weights and scores make no sense, and sums of many would overflow.
    (x.clamp(-1e12, 1e12) * NANOS as f64).round() as Nano
}

/// A score or a tally: an exact fraction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(BigRational);

impl Amount {
    /// Returns zero.
    pub fn zero() -> Self {
        Self(BigRational::zero())
    }

    /// Creates an integer.
    pub fn whole(n: i128) -> Self {
        Self(BigRational::from_integer(BigInt::from(n)))
    }

    /// Creates a number from billionths.
    pub fn of_nanos(n: Nano) -> Self {
        Self::fraction(n, NANOS)
    }

    /// Returns `num / den`; zero if `den` is zero.
    pub fn fraction(num: i128, den: i128) -> Self {
        if den == 0 {
            return Self::zero();
        }
        Self(BigRational::new(BigInt::from(num), BigInt::from(den)))
    }

    /// Returns the quotient; `None` if the divisor is zero.
    #[must_use]
    pub fn over(&self, divisor: &Self) -> Option<Self> {
        (!divisor.0.is_zero()).then(|| Self(&self.0 / &divisor.0))
    }

    /// Returns whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// Returns whether it is negative.
    pub fn is_negative(&self) -> bool {
        self.0.is_negative()
    }

    /// Returns the nearest float: for display, never for decisions.
    pub fn to_f64(&self) -> f64 {
        self.0.to_f64().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Amount {
    /// Formats integers and short decimals as such, anything else as a fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_integer() {
            return write!(f, "{}", self.0.numer());
        }
        let scaled = &self.0 * BigInt::from(NANOS);
        if scaled.is_integer() {
            let n = scaled.to_integer();
            let sign = if n.is_negative() { "-" } else { "" };
            let n = n.abs();
            let unit = BigInt::from(NANOS);
            let digits = format!("{:0>9}", (&n % &unit).to_string());
            return write!(f, "{sign}{}.{}", n / unit, digits.trim_end_matches('0'));
        }
        write!(f, "{}/{}", self.0.numer(), self.0.denom())
    }
}

impl Serialize for Amount {
    /// Serializes an integer that fits 64 bits as a number, anything else as text: JSON has no exact fractions.
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0.is_integer().then(|| self.0.to_i64()).flatten() {
            Some(n) => s.serialize_i64(n),
            None => s.collect_str(self),
        }
    }
}

impl Add for Amount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for &Amount {
    type Output = Amount;
    fn sub(self, other: Self) -> Amount {
        Amount(&self.0 - &other.0)
    }
}

impl Mul for &Amount {
    type Output = Amount;
    fn mul(self, other: Self) -> Amount {
        Amount(&self.0 * &other.0)
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::zero(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_and_read_well() {
        let third = Amount::fraction(1, 3);
        assert_eq!(
            third.clone() + third.clone() + third.clone(),
            Amount::whole(1)
        );
        assert_eq!(third.to_string(), "1/3");
        assert_eq!(Amount::of_nanos(1_500_000_000).to_string(), "1.5");
        assert_eq!(Amount::fraction(-7, 2).to_string(), "-3.5");
        assert_eq!(Amount::fraction(-1, 4).to_string(), "-0.25");
        assert_eq!(Amount::fraction(3, 0), Amount::zero());
        assert_eq!(nanos(0.1) * 3, nanos(0.3), "no 0.30000000000000004");
        assert_eq!(nanos(f64::NAN), 0);
        assert_eq!(serde_json::to_string(&Amount::whole(4)).unwrap(), "4");
        assert_eq!(
            serde_json::to_string(&Amount::fraction(1, 3)).unwrap(),
            "\"1/3\""
        );
    }
}
