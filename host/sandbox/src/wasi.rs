//! What base WASI shows of the host: built from a grant, here and nowhere else.

use fief_core::grant::Grant;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

use crate::host::log::{Stream, Words};

/// The context of one call. No arguments, no standard input, no host variable, no clock but the usual two.
pub(crate) fn context(grant: &Grant, words: &Words) -> WasiCtx {
    // Taken apart exhaustively: a new right does not compile until it is handled.
    let Grant {
        // Opened through the guest's own view of the file system; see `host::fs`.
        files: _,
        // Linked only if granted; see `host::http`.
        http: _,
        env,
        // Added to requests by the host; never shown to a guest.
        secrets: _,
        // Linked only if granted.
        toolbox: _,
        person: _,
        // Enforced around the call.
        limits: _,
    } = grant;
    let mut builder = WasiCtxBuilder::new();
    for (name, value) in env {
        builder.env(name, value);
    }
    builder.stdout(Stream::output(words)).stderr(Stream::error(words));
    // Not linked at all; refused here as well, should an interface that needs them ever be.
    builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    builder.build()
}
