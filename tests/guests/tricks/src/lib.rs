//! Tricks that need no grant, or files: each tool is one.

mod disk;

include!("../../list.rs");
every_trick!(contract::tools);
