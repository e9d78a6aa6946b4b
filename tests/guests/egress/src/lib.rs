//! Tricks with requests over the network: each tool is one.

mod web;

include!("../../list.rs");
every_request!(contract::tools);
