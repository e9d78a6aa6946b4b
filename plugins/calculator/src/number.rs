//! Numbers: whole ones stay exact for as long as they fit, the others are doubles.

use std::fmt;

/// A number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Number {
    /// Exact.
    Whole(i128),
    /// A double; never infinite and never NaN.
    Real(f64),
}

use Number::{Real, Whole};

/// What can go wrong with numbers.
pub(crate) type Fault = &'static str;

const TOO_LARGE: Fault = "the result is too large";
const UNDEFINED: Fault = "the result is undefined";

impl Number {
    #[allow(clippy::cast_precision_loss)] // Whoever mixes whole numbers with others gets double precision.
    pub(crate) fn as_real(self) -> f64 {
        match self {
            Whole(whole) => whole as f64,
            Real(real) => real,
        }
    }

    /// A double that came out of a computation.
    pub(crate) fn real(value: f64) -> Result<Self, Fault> {
        match value {
            v if v.is_nan() => Err(UNDEFINED),
            v if v.is_infinite() => Err(TOO_LARGE),
            v => Ok(Real(v)),
        }
    }

    /// A double that is whole by its meaning, such as `floor`'s.
    #[allow(clippy::cast_possible_truncation)] // Below 2^53 every whole double is an exact integer.
    pub(crate) fn rounded(value: f64) -> Result<Self, Fault> {
        if value.abs() < 9_007_199_254_740_992.0 {
            Ok(Whole(value as i128))
        } else {
            Self::real(value)
        }
    }

    fn exact(result: Option<i128>) -> Result<Self, Fault> {
        result
            .map(Whole)
            .ok_or("the result has more than 38 digits; write one number with a point to round it")
    }

    pub(crate) fn add(self, other: Self) -> Result<Self, Fault> {
        match (self, other) {
            (Whole(a), Whole(b)) => Self::exact(a.checked_add(b)),
            _ => Self::real(self.as_real() + other.as_real()),
        }
    }

    pub(crate) fn subtract(self, other: Self) -> Result<Self, Fault> {
        match (self, other) {
            (Whole(a), Whole(b)) => Self::exact(a.checked_sub(b)),
            _ => Self::real(self.as_real() - other.as_real()),
        }
    }

    pub(crate) fn multiply(self, other: Self) -> Result<Self, Fault> {
        match (self, other) {
            (Whole(a), Whole(b)) => Self::exact(a.checked_mul(b)),
            _ => Self::real(self.as_real() * other.as_real()),
        }
    }

    /// Whole where it comes out even.
    pub(crate) fn divide(self, other: Self) -> Result<Self, Fault> {
        match (self, other) {
            (_, Whole(0)) => Err("division by zero"),
            (_, Real(0.0)) => Err("division by zero"),
            (Whole(a), Whole(b)) if a.checked_rem(b) == Some(0) => Self::exact(a.checked_div(b)),
            _ => Self::real(self.as_real() / other.as_real()),
        }
    }

    /// What is left over; it has the sign of the dividend.
    pub(crate) fn remainder(self, other: Self) -> Result<Self, Fault> {
        match (self, other) {
            (_, Whole(0)) => Err("division by zero"),
            (_, Real(0.0)) => Err("division by zero"),
            // Only the smallest number divided by -1 overflows, and nothing is left over.
            (Whole(a), Whole(b)) => Ok(Whole(a.checked_rem(b).unwrap_or(0))),
            _ => Self::real(self.as_real() % other.as_real()),
        }
    }

    pub(crate) fn power(self, other: Self) -> Result<Self, Fault> {
        match (self, other) {
            (Whole(base), Whole(exponent)) if exponent >= 0 => match (base, u32::try_from(exponent)) {
                (0 | 1, _) => Ok(Whole(if exponent == 0 { 1 } else { base })),
                (-1, _) => Ok(Whole(if exponent % 2 == 0 { 1 } else { -1 })),
                (_, Ok(exponent)) => Self::exact(base.checked_pow(exponent)),
                (_, Err(_)) => Err(TOO_LARGE),
            },
            (Whole(0) | Real(0.0), _) if other.as_real() < 0.0 => Err("division by zero"),
            _ => Self::real(self.as_real().powf(other.as_real())),
        }
    }

    pub(crate) fn negate(self) -> Result<Self, Fault> {
        match self {
            Whole(whole) => Self::exact(whole.checked_neg()),
            Real(real) => Ok(Real(-real)),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whole(whole) => write!(f, "{whole}"),
            // A sum that comes to minus nothing is nothing.
            Real(0.0) => write!(f, "0"),
            Real(real) if (1e-6..1e17).contains(&real.abs()) => write!(f, "{real}"),
            Real(real) => write!(f, "{real:e}"),
        }
    }
}
