//! The guest of the benches: it does as little as a tool can, so that what is measured is the way to it and back.

use std::time::Duration;

use fief_plugin::prelude::*;

/// What comes back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// The text.
    text: String,
}

/// One row.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Its number.
    #[allow(dead_code)] // Parsed, as a tool would, and not looked at.
    id: u64,
    /// Its name.
    #[allow(dead_code)]
    name: String,
    /// What it costs.
    price: f64,
    /// Words.
    #[allow(dead_code)]
    tags: Vec<String>,
}

/// Many rows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rows {
    /// The rows.
    rows: Vec<Row>,
}

/// How long.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sleep {
    /// Milliseconds.
    ms: u64,
}

fn tools() -> Vec<Tool> {
    vec![
        Tool::new("echo", "Give a text back.", |args: Echo| Ok(args.text)),
        Tool::new("size", "Tell the length of a text.", |args: Echo| Ok(args.text.len().to_string())),
        Tool::new("sum", "Add up the prices of rows.", |args: Rows| {
            let sum: f64 = args.rows.iter().map(|row| row.price).sum();
            Ok(format!("{} rows, {sum}", args.rows.len()))
        }),
        Tool::new("sleep", "Wait in the host.", |args: Sleep| {
            std::thread::sleep(Duration::from_millis(args.ms));
            Ok("slept")
        }),
    ]
}

fief_plugin::export_tools!(tools);
