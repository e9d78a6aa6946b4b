//! `files`: reads, searches and writes the files of the directories that the agent was granted.
//!
//! Every result is bounded, says when it was cut and how to get the rest; every error says what would be right.

mod edit;
mod glob;
mod grep;
mod list;
mod patience;
mod place;
mod read;
mod text;
mod walk;
mod write;

use fief_plugin::prelude::*;

use place::Place;

fn read(args: read::Read) -> Result<Output, ToolError> {
    read::read(&Place::granted(), &args)
}

fn write(args: write::Write) -> Result<Output, ToolError> {
    write::write(&Place::granted(), &args)
}

fn edit(args: edit::Edit) -> Result<Output, ToolError> {
    edit::edit(&Place::granted(), &args)
}

fn glob(args: glob::Glob) -> Result<Output, ToolError> {
    glob::glob(&Place::granted(), &args)
}

fn grep(args: grep::Grep) -> Result<Output, ToolError> {
    grep::grep(&Place::granted(), &args)
}

fn list(args: list::List) -> Result<Output, ToolError> {
    list::list(&Place::granted(), &args)
}

/// The plugin's tools.
#[must_use]
pub fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "read",
            "Read a text file, its lines numbered, or look at an image (PNG, JPEG, GIF, WebP). Gives up to 2000 lines; \
             for the rest of a long file pass `offset` and `limit`. The number and the tab before each line are not \
             part of the file. Read a file before you edit it. To find where something is, use grep first.",
            read,
        )
        .title("Read file")
        .read_only()
        .idempotent(),
        Tool::new(
            "write",
            "Create a file with this content, or replace the whole content of one; missing directories are created. \
             To change part of a file use edit, which cannot lose the rest.",
            write,
        )
        .title("Write file")
        .destructive()
        .idempotent(),
        Tool::new(
            "edit",
            "Replace an exact piece of text in a file. `old` must occur exactly once, so take enough of the lines \
             around it; or pass `all` to replace every occurrence. Copy `old` from what read showed, without the line \
             numbers and with its indentation.",
            edit,
        )
        .title("Edit file")
        .destructive(),
        Tool::new(
            "glob",
            "Find files by name: `*.rs` at any depth, `src/**/*.rs` below src, `{a,b}` either. Ignored files \
             (.gitignore) are left out. To search in what files contain, use grep.",
            glob,
        )
        .title("Find files")
        .read_only()
        .idempotent(),
        Tool::new(
            "grep",
            "Search the content of files with a regular expression (Rust's syntax: no look-around, no back-references; \
             escape a literal `(`, `{` or `.`), line by line. Gives `file:line: text`. Ignored files (.gitignore) and \
             binary files are left out, unless `path` names them. Narrow it with `path` and `glob`.",
            grep,
        )
        .title("Search in files")
        .read_only()
        .idempotent(),
        Tool::new(
            "list",
            "List one directory: its directories, then its files with their sizes. To look into directories at any \
             depth use glob.",
            list,
        )
        .title("List directory")
        .read_only()
        .idempotent(),
    ]
}

fief_plugin::export_tools!(tools);

#[cfg(test)]
mod tests;
