use super::evaluate;

fn check(expression: &str, expected: &str) {
    let got = match evaluate(expression) {
        Ok(number) => number.to_string(),
        Err(wrong) => wrong.to_string(),
    };
    assert_eq!(got, expected, "{expression}");
}

#[test]
fn precedence_and_grouping() {
    for (expression, expected) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("2 ^ 3 ^ 2", "512"),
        ("2 ** 3 ** 2", "512"),
        ("2 * 3 ** 2", "18"),
        ("-2 ^ 2", "-4"),
        ("2 ^ -1", "0.5"),
        ("2 ** -1", "0.5"),
        ("-2 * -3", "6"),
        ("--1", "1"),
        ("10 - 4 - 3", "3"),
        ("24 / 4 / 2", "3"),
        ("7 % 4 * 2", "6"),
        ("-7 % 4", "-3"),
        ("2 × 3 ÷ 4 − 1", "0.5"),
    ] {
        check(expression, expected);
    }
}

#[test]
fn whole_numbers_stay_exact_and_others_are_doubles() {
    for (expression, expected) in [
        ("9007199254740993 + 0", "9007199254740993"),
        ("2 ^ 100", "1267650600228229401496703205376"),
        ("7 / 2", "3.5"),
        ("6 / 2", "3"),
        ("1_000_000 * 1_000_000", "1000000000000"),
        ("0xff + 0b11 + 0o7", "265"),
        ("0.1 + 0.2", "0.30000000000000004"),
        (".5 + 1.", "1.5"),
        ("2e3 + 1E-1", "2000.1"),
        ("1e300", "1e300"),
        ("1 - 1.0", "0"),
        ("0 ^ 0", "1"),
        ("(-1) ^ 99999999999999999999999", "-1"),
    ] {
        check(expression, expected);
    }
}

#[test]
fn functions_and_constants() {
    for (expression, expected) in [
        ("sqrt(16) + abs(-3)", "7"),
        ("max(1, 5, 3) - min(4, 2)", "3"),
        ("floor(2.7) + ceil(2.1) + round(2.5) + trunc(-2.7)", "6"),
        ("round(pi * 100)", "314"),
        ("ln(e)", "1"),
        ("log10(1000) + log2(8)", "6"),
        ("cos(0)", "1"),
        ("π - pi", "0"),
    ] {
        check(expression, expected);
    }
}

#[test]
fn errors_say_where_and_what_would_be_right() {
    for (expression, expected) in [
        ("", "column 1: a number is missing at the end"),
        ("1 +", "column 4: a number is missing at the end"),
        ("1 2", "column 3: `2` where an operator or the end should be"),
        ("(1 + 2", "column 7: the `(` in column 1 is not closed"),
        ("1)", "column 2: `)` closes nothing"),
        ("4 / (2 - 2)", "column 3: division by zero"),
        ("5 % 0", "column 3: division by zero"),
        ("0 ^ -1", "column 3: division by zero"),
        (
            "x + 1",
            "column 1: `x` is unknown; the constants are `pi`, `e` and `tau`",
        ),
        ("1 + $", "column 5: `$` where a number, a function or `(` should be"),
        ("sqrt(-1)", "column 1: negative numbers have no square root"),
        ("sqrt(1, 2)", "column 1: `sqrt` takes one number, not 2"),
        ("max()", "column 1: `max` needs a number"),
        ("ln(0)", "column 1: only positive numbers have a logarithm"),
        ("1.2.3", "column 1: `1.2.3` is no number"),
        ("0xzz", "column 1: `0xzz` is no number: invalid digit found in string"),
        (
            "10 ^ 39",
            "column 4: the result has more than 38 digits; write one number with a point to round it",
        ),
        ("10.0 ^ 400", "column 6: the result is too large"),
        ("(-8) ^ 0.5", "column 6: the result is undefined"),
    ] {
        check(expression, expected);
    }
    assert!(
        evaluate("nope(1)")
            .expect_err("unknown")
            .to_string()
            .contains("no function `nope`; there are abs, ")
    );
}

#[test]
fn deep_nesting_is_an_error_and_no_crash() {
    for deep in [
        "(".repeat(100_000),
        "-".repeat(100_000),
        "2^".repeat(100_000),
        "max(".repeat(100_000),
    ] {
        assert!(
            evaluate(&deep)
                .expect_err("too deep")
                .to_string()
                .contains("nested more than 100 deep")
        );
    }
    let long = vec!["1"; 20_000].join("+");
    check(&long, "20000");
}

proptest::proptest! {
    #[test]
    fn never_panics(expression in "[0-9a-z+*/%^()., _-]{0,40}|\\PC{0,20}") {
        let _ = evaluate(&expression);
    }

    #[test]
    fn agrees_with_whole_number_arithmetic(a in -10_000i128..10_000, b in -10_000i128..10_000, c in 1i128..100) {
        check(&format!("{a} + {b} * {c}"), &(a + b * c).to_string());
        check(&format!("({a} - {b}) % {c}"), &((a - b) % c).to_string());
    }
}
