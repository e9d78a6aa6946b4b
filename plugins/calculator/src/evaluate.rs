//! Expressions, read by precedence climbing and evaluated as they are read.

use std::fmt;

use crate::number::{Fault, Number};

/// More than anybody writes, and less than what would exhaust the stack.
const DEEPEST: usize = 100;

/// What is wrong with an expression, and where.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Wrong {
    /// In characters, from 1.
    column: usize,
    reason: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.reason)
    }
}

/// The value of `expression`.
pub(crate) fn evaluate(expression: &str) -> Result<Number, Wrong> {
    let mut reader = Reader {
        characters: expression.chars().collect(),
        position: 0,
        depth: 0,
    };
    let value = reader.expression(0)?;
    match reader.peek() {
        None => Ok(value),
        Some(')') => Err(reader.wrong("`)` closes nothing")),
        Some(other) => Err(reader.wrong(format!("`{other}` where an operator or the end should be"))),
    }
}

struct Reader {
    characters: Vec<char>,
    position: usize,
    depth: usize,
}

/// How strongly `operator` binds, and how strongly what stands to its right must: `^` groups from the right.
fn binding(operator: char) -> Option<(u8, u8)> {
    match operator {
        '+' | '-' | '−' => Some((1, 2)),
        '*' | '/' | '%' | '×' | '·' | '÷' => Some((3, 4)),
        '^' => Some((8, 7)),
        _ => None,
    }
}

/// A sign binds more strongly than a product, and less than a power: `-2 ^ 2` is -4.
const SIGN: u8 = 5;

impl Reader {
    fn expression(&mut self, weakest: u8) -> Result<Number, Wrong> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong(format!("nested more than {DEEPEST} deep")));
        }
        let mut left = self.operand()?;
        while let Some((operator, length)) = self.operator() {
            let Some((_, right)) = binding(operator).filter(|(strength, _)| *strength >= weakest) else {
                break;
            };
            let at = self.position;
            self.position += length;
            let other = self.expression(right)?;
            let result = match operator {
                '+' => left.add(other),
                '-' | '−' => left.subtract(other),
                '*' | '×' | '·' => left.multiply(other),
                '/' | '÷' => left.divide(other),
                '%' => left.remainder(other),
                _ => left.power(other),
            };
            left = result.map_err(|fault| wrong_at(at, fault))?;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The next character as an operator, and its length: `**` is how many languages write `^`.
    fn operator(&mut self) -> Option<(char, usize)> {
        let first = self.peek()?;
        let twice = first == '*' && self.characters.get(self.position + 1) == Some(&'*');
        Some(if twice { ('^', 2) } else { (first, 1) })
    }

    fn operand(&mut self) -> Result<Number, Wrong> {
        let at = self.position_of_next();
        match self.peek() {
            None => Err(self.wrong("a number is missing at the end")),
            Some('(') => {
                self.position += 1;
                let value = self.expression(0)?;
                self.close(at)?;
                Ok(value)
            }
            Some('-' | '−') => {
                self.position += 1;
                self.expression(SIGN)?.negate().map_err(|fault| wrong_at(at, fault))
            }
            Some('+') => {
                self.position += 1;
                self.expression(SIGN)
            }
            Some(first) if first.is_ascii_digit() || first == '.' => self.number(),
            Some('π') => {
                self.position += 1;
                Ok(Number::Real(std::f64::consts::PI))
            }
            Some(first) if first.is_ascii_alphabetic() => self.name(),
            Some(other) => Err(self.wrong(format!("`{other}` where a number, a function or `(` should be"))),
        }
    }

    /// `12`, `1_000`, `0xff`, `1.5`, `.5`, `2e-3`.
    fn number(&mut self) -> Result<Number, Wrong> {
        let start = self.position;
        for (prefix, radix) in [('x', 16), ('b', 2), ('o', 8)] {
            if self.characters[start] == '0' && self.characters.get(start + 1) == Some(&prefix) {
                self.position += 2;
                let digits = self.take(|c| c.is_ascii_alphanumeric() || c == '_').replace('_', "");
                return i128::from_str_radix(&digits, radix)
                    .map(Number::Whole)
                    .map_err(|error| wrong_at(start, format!("`0{prefix}{digits}` is no number: {error}")));
            }
        }
        let mut text = self.take(|c| c.is_ascii_digit() || c == '_' || c == '.');
        let exponent = matches!(self.characters.get(self.position), Some('e' | 'E'));
        let sign = usize::from(matches!(self.characters.get(self.position + 1), Some('+' | '-')));
        // `2e` is no exponent without digits; it may be `2 e`, which then fails as two operands in a row.
        if exponent
            && self
                .characters
                .get(self.position + 1 + sign)
                .is_some_and(char::is_ascii_digit)
        {
            text.extend(&self.characters[self.position..=self.position + sign]);
            self.position += 1 + sign;
            text += &self.take(|c| c.is_ascii_digit() || c == '_');
        }
        let plain = text.replace('_', "");
        if plain.chars().all(|c| c.is_ascii_digit()) {
            let too_long = || wrong_at(start, format!("`{text}` has more than 38 digits"));
            return plain.parse().map(Number::Whole).map_err(|_| too_long());
        }
        match plain.parse::<f64>() {
            Ok(value) => Number::real(value).map_err(|fault| wrong_at(start, fault)),
            Err(_) => Err(wrong_at(start, format!("`{text}` is no number"))),
        }
    }

    fn name(&mut self) -> Result<Number, Wrong> {
        let start = self.position;
        let name = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
        let open = self.position_of_next();
        if self.peek() != Some('(') {
            return match name.as_str() {
                "pi" => Ok(Number::Real(std::f64::consts::PI)),
                "tau" => Ok(Number::Real(std::f64::consts::TAU)),
                "e" => Ok(Number::Real(std::f64::consts::E)),
                _ => Err(wrong_at(
                    start,
                    format!("`{name}` is unknown; the constants are `pi`, `e` and `tau`"),
                )),
            };
        }
        self.position += 1;
        let mut arguments = Vec::new();
        if self.peek() != Some(')') {
            arguments.push(self.expression(0)?);
            while self.peek() == Some(',') {
                self.position += 1;
                arguments.push(self.expression(0)?);
            }
        }
        self.close(open)?;
        apply(&name, &arguments).map_err(|reason| wrong_at(start, reason))
    }

    fn close(&mut self, opened: usize) -> Result<(), Wrong> {
        match self.peek() {
            Some(')') => {
                self.position += 1;
                Ok(())
            }
            Some(other) => Err(self.wrong(format!("`{other}` where an operator or `)` should be"))),
            None => Err(self.wrong(format!("the `(` in column {} is not closed", opened + 1))),
        }
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let rest = &self.characters[self.position..];
        let taken: String = rest.iter().copied().take_while(|c| belongs(*c)).collect();
        self.position += taken.chars().count();
        taken
    }

    /// The next character that is no white space; the position moves to it.
    fn peek(&mut self) -> Option<char> {
        self.position = self.position_of_next();
        self.characters.get(self.position).copied()
    }

    fn position_of_next(&self) -> usize {
        let rest = &self.characters[self.position..];
        self.position + rest.iter().take_while(|c| c.is_whitespace()).count()
    }

    fn wrong(&self, reason: impl Into<String>) -> Wrong {
        wrong_at(self.position, reason)
    }
}

fn wrong_at(position: usize, reason: impl Into<String>) -> Wrong {
    Wrong {
        column: position + 1,
        reason: reason.into(),
    }
}

const FUNCTIONS: &str =
    "abs, acos, asin, atan, ceil, cos, exp, floor, ln, log2, log10, max, min, round, sin, sqrt, tan, trunc";

fn apply(name: &str, arguments: &[Number]) -> Result<Number, String> {
    if let "max" | "min" = name {
        let keep = |a: Number, b: Number| {
            let greater = b.as_real() > a.as_real();
            if greater == (name == "max") { b } else { a }
        };
        return arguments
            .iter()
            .copied()
            .reduce(keep)
            .ok_or_else(|| format!("`{name}` needs a number"));
    }
    let real: fn(f64) -> f64 = match name {
        "abs" | "ceil" | "floor" | "round" | "trunc" => f64::abs,
        "acos" => f64::acos,
        "asin" => f64::asin,
        "atan" => f64::atan,
        "cos" => f64::cos,
        "exp" => f64::exp,
        "ln" => f64::ln,
        "log2" => f64::log2,
        "log10" => f64::log10,
        "sin" => f64::sin,
        "sqrt" => f64::sqrt,
        "tan" => f64::tan,
        _ => return Err(format!("no function `{name}`; there are {FUNCTIONS}")),
    };
    let [x] = *arguments else {
        return Err(format!("`{name}` takes one number, not {}", arguments.len()));
    };
    let result: Result<Number, Fault> = match (name, x) {
        ("abs", Number::Whole(whole)) if whole < 0 => x.negate(),
        ("abs" | "ceil" | "floor" | "round" | "trunc", Number::Whole(_)) => Ok(x),
        ("ceil", _) => Number::rounded(x.as_real().ceil()),
        ("floor", _) => Number::rounded(x.as_real().floor()),
        ("round", _) => Number::rounded(x.as_real().round()),
        ("trunc", _) => Number::rounded(x.as_real().trunc()),
        ("ln" | "log2" | "log10", _) if x.as_real() <= 0.0 => Err("only positive numbers have a logarithm"),
        ("sqrt", _) if x.as_real() < 0.0 => Err("negative numbers have no square root"),
        _ => Number::real(real(x.as_real())),
    };
    result.map_err(str::to_owned)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
