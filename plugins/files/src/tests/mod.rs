//! The tools over real directories.
#![allow(clippy::unwrap_used)]

mod change;
mod look;
mod search;

use std::fs;
use std::path::Path;

use fief_plugin::{Output, ToolError};
use serde_json::{Value, from_value};

use crate::place::Place;

/// A working directory with some files, and what the tools make of it.
struct Desk {
    directory: tempfile::TempDir,
    place: Place,
}

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let place = Place::new([(directory.path().to_owned(), "/work".to_owned())]);
        Self { directory, place }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    fn call(&self, tool: &str, arguments: Value) -> Result<Output, ToolError> {
        let place = &self.place;
        match tool {
            "read" => crate::read::read(place, &from_value(arguments).unwrap()),
            "write" => crate::write::write(place, &from_value(arguments).unwrap()),
            "edit" => crate::edit::edit(place, &from_value(arguments).unwrap()),
            "glob" => crate::glob::glob(place, &from_value(arguments).unwrap()),
            "grep" => crate::grep::grep(place, &from_value(arguments).unwrap()),
            "list" => crate::list::list(place, &from_value(arguments).unwrap()),
            _ => panic!("no tool `{tool}`"),
        }
    }

    fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap().as_text()
    }

    fn error(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap_err().message().to_owned()
    }
}

#[test]
fn every_tool_describes_itself() {
    for tool in crate::tools() {
        assert!(!tool.name().is_empty());
        let error = tool.call(r#"{"no-such-argument": 1}"#).unwrap_err();
        assert!(matches!(error, ToolError::InvalidArguments(_)), "{error:?}");
    }
}
