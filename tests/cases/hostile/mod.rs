//! Hostile guests, held to what must become of them. The lists of `tests/guests/list.rs` are turned into tests here: a
//! trick for which no function of its name checks what became of it does not compile.
#![cfg(unix)] // The tricks with files are Unix's.

mod again;
mod binary;
mod egress;
mod files;
mod imports;
mod leaks;
mod limits;
mod listing;
mod malformed;
mod modules;
mod server;
mod stage;
mod state;
mod toolbox;
mod words;

pub use stage::soak;

include!("../../guests/list.rs");

macro_rules! tests {
    ($module:ident { $($checks:ident)* } $($name:ident)*) => {
        mod $module {
            mod checks {
                $(pub(super) use crate::hostile::$checks::*;)*
            }
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    checks::$name().await;
                }
            )*
        }
    };
}

macro_rules! tests_of_tricks { ($($name:ident)*) => { tests!(trick { limits words files state } $($name)*); } }
macro_rules! tests_of_requests { ($($name:ident)*) => { tests!(request { egress } $($name)*); } }
macro_rules! tests_of_listings { ($($name:ident)*) => { tests!(list { listing } $($name)*); } }
macro_rules! tests_of_imports { ($($name:ident)*) => { tests!(import { imports } $($name)*); } }
macro_rules! tests_of_modules { ($($name:ident)*) => { tests!(module { modules } $($name)*); } }

every_trick!(tests_of_tricks);
every_request!(tests_of_requests);
every_listing!(tests_of_listings);
every_import!(tests_of_imports);
every_module!(tests_of_modules);
