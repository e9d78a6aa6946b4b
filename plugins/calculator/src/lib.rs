//! `calculator.evaluate`: arithmetic that a model should not do in its head.

mod evaluate;
mod number;

use fief_plugin::prelude::*;

/// What is evaluated.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evaluate {
    /// Such as `(17 + 4) * 2 ^ 10`, `sqrt(2) / 3` or `max(3, 4.5, 1e3)`.
    expression: String,
}

fn evaluate(args: Evaluate) -> Result<String, ToolError> {
    match evaluate::evaluate(&args.expression) {
        Ok(number) => Ok(number.to_string()),
        Err(fault) => Err(ToolError::invalid(fault.to_string())),
    }
}

/// The plugin's tools.
#[must_use]
pub fn tools() -> Vec<Tool> {
    let about = "Evaluate an arithmetic expression. Use it for every calculation beyond the trivial. \
                 Operators: + - * / % (remainder) ^ (power) and parentheses. Whole numbers are exact up to 38 digits, \
                 others have double precision. Constants: pi, e, tau. Functions: abs, acos, asin, atan, ceil, cos, exp, \
                 floor, ln, log2, log10, max, min, round, sin, sqrt, tan, trunc (angles in radians). \
                 No variables, no units.";
    vec![
        Tool::new("evaluate", about, evaluate)
            .title("Calculate")
            .read_only()
            .idempotent(),
    ]
}

fief_plugin::export_tools!(tools);
