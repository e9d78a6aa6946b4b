//! JSON as models write it, read where only one reading is possible.
//!
//! Understood: comments, trailing commas, line breaks and tabs inside strings, a backslash before a character that JSON
//! does not escape (`\d`), quotes inside strings that are not escaped, and a last string that its closing tag ends.
//! Each only where nothing else can be meant; content is never rewritten. Everything else is an error that says what
//! is doubtful, for the model to write again.

use serde_json::{Map, Number, Value};

use crate::arguments::{fits, lossy};

/// The deepest nesting, as in `serde_json`.
const DEEPEST: usize = 127;

/// Where an object that begins at the start of `text` ends; `None` if it does not. Only quotes, braces and comments are
/// looked at.
pub(super) fn object_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while *bytes.get(at)? != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += bytes[at..].iter().position(|byte| *byte == b'\n')?;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => at += text.get(at + 2..)?.find("*/")? + 3,
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Reads an object. `closed` says that a closing tag follows, so that the text was not cut off: only then may it lack
/// the end of its last string.
///
/// # Errors
/// What cannot be read, or can be read in two ways.
pub(super) fn object(text: &str, closed: bool) -> Result<Map<String, Value>, String> {
    let mut reader = Reader {
        text,
        at: 0,
        closed,
        unterminated: false,
    };
    reader.blank()?;
    let value = match reader.peek() {
        Some('{') => reader.object(0)?,
        _ => return Err("must be a JSON object".into()),
    };
    reader.blank()?;
    if reader.at < text.len() {
        return Err(format!("something follows the JSON object: `{}`", reader.ahead()));
    }
    Ok(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    closed: bool,
    /// The closing tag has ended a string, and so everything around it.
    unterminated: bool,
}

/// Where a string stands, which decides what may follow it.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Key,
    Member,
    Element,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// A few characters for a message.
    fn ahead(&self) -> String {
        self.rest().chars().take(20).collect()
    }

    /// Skips white space and comments.
    fn blank(&mut self) -> Result<(), String> {
        self.at += blank(self.rest()).ok_or("a comment has no end")?;
        Ok(())
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn object(&mut self, depth: usize) -> Result<Map<String, Value>, String> {
        if depth >= DEEPEST {
            return Err("nested too deeply".into());
        }
        self.at += 1;
        let mut map = Map::new();
        loop {
            self.blank()?;
            if self.eat('}') {
                return Ok(map);
            }
            if !self.eat('"') {
                return Err(self.unexpected("a key in double quotes or `}`"));
            }
            let key = self.string(Place::Key, depth)?;
            self.blank()?;
            if !self.eat(':') {
                return Err(self.unexpected("`:`"));
            }
            self.blank()?;
            let value = self.value(Place::Member, depth + 1)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(format!("the key `{key}` occurs twice"));
            }
            if self.unterminated {
                return Ok(map);
            }
            self.blank()?;
            if !self.eat(',') && self.peek() != Some('}') {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        if depth >= DEEPEST {
            return Err("nested too deeply".into());
        }
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.blank()?;
            if self.eat(']') {
                return Ok(Value::Array(items));
            }
            items.push(self.value(Place::Element, depth + 1)?);
            self.blank()?;
            if !self.eat(',') && self.peek() != Some(']') {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
    }

    fn value(&mut self, place: Place, depth: usize) -> Result<Value, String> {
        match self.peek() {
            Some('{') => self.object(depth).map(Value::Object),
            Some('[') => self.array(depth),
            Some('"') => {
                self.at += 1;
                self.string(place, depth).map(Value::String)
            }
            Some('\'') => Err("write strings in double quotes, not in single ones".into()),
            Some(_) => self.word(),
            None => Err("the JSON breaks off".into()),
        }
    }

    /// A number, or a literal by its name.
    fn word(&mut self) -> Result<Value, String> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '+' | '.' | '_');
        let length = self.rest().find(|c| !plain(c)).unwrap_or(self.rest().len());
        let word = &self.text[self.at..self.at + length];
        let meant = match word {
            "true" | "false" | "null" => None,
            "True" => Some("true"),
            "False" => Some("false"),
            "None" | "undefined" | "nil" | "Null" => Some("null"),
            _ => match serde_json::from_str::<Number>(word) {
                Ok(_) if !fits(word) => return Err(lossy(word)),
                Ok(number) => {
                    self.at += length;
                    return Ok(Value::Number(number));
                }
                Err(_) => return Err(self.unexpected("a value")),
            },
        };
        if let Some(meant) = meant {
            return Err(format!("`{word}` is not JSON: write `{meant}`"));
        }
        self.at += length;
        Ok(match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::Null,
        })
    }

    /// A string, behind its opening quote.
    fn string(&mut self, place: Place, depth: usize) -> Result<String, String> {
        let mut text = String::new();
        let (mut inner, mut odd_escape, mut escape) = (0, None, None);
        loop {
            let Some(c) = self.peek() else {
                return self.ended_by_tag(&text, place, depth, inner);
            };
            self.at += c.len_utf8();
            match c {
                '"' if place == Place::Key || self.closes(place)? => break,
                '"' => {
                    inner += 1;
                    text.push('"');
                }
                '\\' => self.escape(&mut text, &mut escape, &mut odd_escape)?,
                '\n' | '\r' if place == Place::Key => return Err("a key holds a line break".into()),
                c => text.push(c),
            }
        }
        if inner % 2 == 1 {
            return Err("a quote inside a string is not escaped, and it is unclear where the string ends".into());
        }
        match (odd_escape, escape) {
            (Some(odd), Some(known)) => Err(format!(
                "a string holds `\\{odd}`, which JSON does not know, beside `\\{known}`: it is unclear whether the \
                 backslashes are meant; write `\\\\` for each that is"
            )),
            _ => Ok(text),
        }
    }

    /// What follows a backslash.
    fn escape(
        &mut self,
        text: &mut String,
        escape: &mut Option<char>,
        odd_escape: &mut Option<char>,
    ) -> Result<(), String> {
        let Some(c) = self.peek() else {
            return Err("the JSON breaks off in an escape".into());
        };
        self.at += c.len_utf8();
        let plain = match c {
            '"' | '\\' | '/' => {
                text.push(c);
                return Ok(());
            }
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                *escape = Some('u');
                text.push(self.code_unit()?);
                return Ok(());
            }
            '\'' | '`' | '\n' | '\r' => {
                return Err(format!(
                    "`\\{}` is not JSON: it is unclear whether the backslash is meant",
                    c.escape_debug()
                ));
            }
            odd => {
                *odd_escape = Some(odd);
                text.push('\\');
                text.push(odd);
                return Ok(());
            }
        };
        *escape = Some(c);
        text.push(plain);
        Ok(())
    }

    /// Four hexadecimal digits, or two such escapes that form one character.
    fn code_unit(&mut self) -> Result<char, String> {
        let hex = |reader: &mut Self| -> Option<u32> {
            let digits = reader.text.get(reader.at..reader.at + 4)?;
            let digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits)?;
            reader.at += 4;
            u32::from_str_radix(digits, 16).ok()
        };
        let bad = || "a `\\u` escape is not four hexadecimal digits that form a character".to_owned();
        let high = hex(self).ok_or_else(bad)?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high).ok_or_else(bad);
        }
        if !self.rest().starts_with("\\u") {
            return Err(bad());
        }
        self.at += 2;
        let low = hex(self).filter(|low| (0xdc00..0xe000).contains(low)).ok_or_else(bad)?;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)).ok_or_else(bad)
    }

    /// Whether the quote just read closes its string, by what follows it. An error where that is unclear.
    fn closes(&self, place: Place) -> Result<bool, String> {
        let unclear = || {
            let quote = format!("a quote before `{}` may end its string or belong to it", self.ahead());
            Err(format!("{quote}: escape the quotes inside strings"))
        };
        // What looks like a comment may be the rest of the string, and the quote in it the string's end: `"echo " // x"`.
        let Some(skip) = blank(self.rest()).filter(|skip| quotes(&self.rest()[..*skip]) == 0) else {
            return unclear();
        };
        let rest = &self.rest()[skip..];
        let mut chars = rest.chars();
        match chars.next() {
            None => Ok(true),
            Some(c @ (',' | '}' | ']')) => {
                let between = |skip: &usize| quotes(&chars.as_str()[..*skip]).is_multiple_of(2);
                let Some(skip) = blank(chars.as_str()).filter(between) else {
                    return unclear();
                };
                let after = chars.as_str()[skip..].chars().next();
                let sound = match (c, place) {
                    (',', Place::Member) => matches!(after, Some('"' | '}')),
                    (',', _) => {
                        after.is_some_and(|c| matches!(c, '"' | '{' | '[' | ']' | '-' | '0'..='9' | 't' | 'f' | 'n'))
                    }
                    ('}', Place::Member) | (']', Place::Element) => matches!(after, None | Some(',' | '}' | ']')),
                    _ => false,
                };
                if sound { Ok(true) } else { unclear() }
            }
            Some(':') => unclear(),
            Some(_) => Ok(false),
        }
    }

    /// The text has ended inside a string. A closing tag ends the string too, if the string is the last member of the
    /// outermost object and does not look as if its end lay before its last characters.
    fn ended_by_tag(&mut self, text: &str, place: Place, depth: usize, inner: usize) -> Result<String, String> {
        let kept = text.trim_end();
        let doubtful = kept.ends_with(['}', ']', ',', ':', '"', '\\']) || kept.is_empty();
        if !self.closed || place != Place::Member || depth != 1 || inner % 2 == 1 || doubtful {
            return Err("a string has no end: close it with `\"`, and the object with `}`".into());
        }
        self.unterminated = true;
        Ok(kept.to_owned())
    }

    fn unexpected(&self, wanted: &str) -> String {
        match self.peek() {
            Some(_) => format!("{wanted} must stand where `{}` stands", self.ahead()),
            None => format!("the JSON breaks off where {wanted} must stand"),
        }
    }
}

fn quotes(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'"').count()
}

/// The length of the white space and comments that `text` starts with; `None` if a comment has no end.
fn blank(text: &str) -> Option<usize> {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.find('\n').map_or("", |end| &comment[end..]);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = &comment[comment.find("*/")? + 2..];
        } else {
            return Some(text.len() - rest.len());
        }
    }
}

#[cfg(test)]
#[path = "lenient_tests.rs"]
mod tests;
