//! `grep`: lines by what they hold.

use std::io;
use std::path::Path;

use fief_plugin::{Output, ToolError};
use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::glob::Pattern;
use crate::place::{Place, Spot};
use crate::text;
use crate::walk::{Walked, walk};

/// What is searched for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grep {
    /// A regular expression, matched within lines.
    pub(crate) pattern: String,
    /// The directory or file to search in; absent: the working directory.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// Search only in files whose name matches, such as `*.rs`.
    #[serde(default)]
    pub(crate) glob: Option<String>,
    /// Lines to show before and after each match; absent: none.
    #[schemars(range(max = 50))]
    #[serde(default)]
    pub(crate) context: Option<usize>,
    /// Take capital and small letters as the same; absent: no.
    #[serde(default)]
    pub(crate) ignore_case: Option<bool>,
    /// How many matching lines to show at most; absent: 100.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default)]
    pub(crate) limit: Option<usize>,
}

const LIMIT: usize = 100;
const MOST: usize = 1_000;
/// Of the result, as of read.
const BYTES: usize = 64 << 10;
/// Of one line, around the match.
const LINE: usize = 300;
/// A line of more than this is skipped with its file: it must be held whole.
const HEAP: usize = 16 << 20;

pub(crate) fn grep(place: &Place, args: &Grep) -> Result<Output, ToolError> {
    if args.pattern.is_empty() {
        return Err(ToolError::invalid("`pattern` is empty: every line would match"));
    }
    if args.limit == Some(0) {
        return Err(ToolError::invalid("`limit` is 0: nothing would be shown"));
    }
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(args.ignore_case.unwrap_or(false))
        // `$` matches before CR LF and before LF alike.
        .crlf(true)
        .build(&args.pattern)
        .map_err(|error| {
            let hint = "hint: escape what is meant literally, such as `\\(`; a line break matches nothing";
            ToolError::invalid(format!("`pattern`: {error}\n{hint}"))
        })?;
    let filter = args.glob.as_deref().filter(|glob| !glob.is_empty());
    let filter = filter.map(|glob| Pattern::new("glob", glob)).transpose()?;
    let (start, metadata) = place.start(args.path.as_deref())?;
    let context = args.context.unwrap_or(0).min(50);
    let searcher = SearcherBuilder::new()
        .line_number(true)
        .line_terminator(LineTerminator::crlf())
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(HEAP))
        .binary_detection(BinaryDetection::quit(0))
        .build();
    let limit = args.limit.unwrap_or(LIMIT).min(MOST);
    let mut search = Search {
        place,
        matcher,
        searcher,
        limit,
        context,
        found: Found::default(),
    };
    let walked = if metadata.is_dir() {
        walk(&start, |entry| {
            let regular = entry.file_type().is_some_and(|kind| kind.is_file());
            if regular
                && filter
                    .as_ref()
                    .is_none_or(|filter| filter.matches(&start, entry.path()))
            {
                search.file(entry.path());
            }
            !search.found.cut
        })
    } else {
        place.open(&start)?;
        search.file(&start.path);
        Walked::default()
    };
    Ok(Output::text(search.result(args, &start, &walked)))
}

struct Search<'a> {
    place: &'a Place,
    matcher: RegexMatcher,
    searcher: Searcher,
    limit: usize,
    context: usize,
    found: Found,
}

#[derive(Default)]
struct Found {
    out: String,
    /// How much of `out` stays if the next match is one too many.
    keep: usize,
    matches: usize,
    files: u64,
    binary: u64,
    unreadable: u64,
    cut: bool,
}

impl Search<'_> {
    fn file(&mut self, path: &Path) {
        self.found.files += 1;
        let name = self.place.name(path);
        let apart = self.context > 0 && !self.found.out.is_empty();
        let lines = Lines {
            name: &name,
            matcher: &self.matcher,
            limit: self.limit,
            apart,
            found: &mut self.found,
        };
        if self.searcher.search_path(&self.matcher, path, lines).is_err() {
            self.found.unreadable += 1;
        }
    }

    fn result(self, args: &Grep, start: &Spot, walked: &Walked) -> String {
        let mut found = self.found;
        let mut notes = Vec::new();
        if found.matches == 0 {
            let searched = text::count(found.files, "file", "files");
            notes.push(format!(
                "no line matches `{}` in `{}`; {searched} searched",
                args.pattern, start.shown
            ));
        }
        if found.cut {
            let shown = text::count(found.matches as u64, "match", "matches");
            let raise = if self.limit < MOST { ", or raise `limit`" } else { "" };
            notes.push(format!(
                "the first {shown}, there are more: narrow `pattern`, `path` or `glob`{raise}"
            ));
        }
        if found.binary > 0 {
            notes.push(format!(
                "{} skipped",
                text::count(found.binary, "binary file", "binary files")
            ));
        }
        if found.unreadable > 0 {
            notes.push(format!(
                "{} could not be searched",
                text::count(found.unreadable, "file", "files")
            ));
        }
        walked.notes(&mut notes);
        if !notes.is_empty() {
            found.out += &format!("({})\n", notes.join("; "));
        }
        found.out
    }
}

/// Takes down what the searcher finds in one file.
struct Lines<'a> {
    name: &'a str,
    matcher: &'a RegexMatcher,
    limit: usize,
    /// Whether a break must come before the first line.
    apart: bool,
    found: &'a mut Found,
}

impl Lines<'_> {
    fn line(&mut self, number: Option<u64>, mark: char, line: &str) {
        if std::mem::take(&mut self.apart) {
            self.found.out += "--\n";
        }
        let number = number.unwrap_or(0);
        self.found.out += &format!("{}{mark}{number}{mark} {line}\n", self.name);
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.found.matches == self.limit || self.found.out.len() > BYTES {
            self.found.cut = true;
            let keep = self.found.keep;
            self.found.out.truncate(keep);
            return Ok(false);
        }
        let line = text::without_break(found.bytes());
        let at = self.matcher.find(line).ok().flatten().map_or(0, |span| span.start());
        let line = around(line, at);
        self.line(found.line_number(), ':', &line);
        self.found.matches += 1;
        self.found.keep = self.found.out.len();
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let line = around(text::without_break(context.bytes()), 0);
        self.line(context.line_number(), '-', &line);
        if *context.kind() == SinkContextKind::After {
            self.found.keep = self.found.out.len();
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.apart = true;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.found.binary += u64::from(finish.binary_byte_offset().is_some());
        Ok(())
    }
}

/// As much of a long line as is shown, with the match in it.
fn around(line: &[u8], at: usize) -> String {
    if line.len() <= LINE {
        return String::from_utf8_lossy(line).into_owned();
    }
    let mut from = if at < LINE * 2 / 3 { 0 } else { at - LINE / 3 };
    while from > 0 && line[from] & 0b1100_0000 == 0b1000_0000 {
        from -= 1;
    }
    let (shown, beyond) = text::cut(&line[from..], LINE);
    let before = if from > 0 { "…" } else { "" };
    let after = if beyond > 0 {
        format!("… (+{beyond} bytes)")
    } else {
        String::new()
    };
    format!("{before}{shown}{after}")
}
