//! What of a terminal depends on the system.

/// Forgets what was typed and not read yet.
#[cfg(unix)]
pub(crate) fn forget_what_is_typed() {
    // Where standard input is no terminal there is nothing to forget.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Forgets what was typed and not read yet: not known how on this system.
#[cfg(not(unix))]
pub(crate) fn forget_what_is_typed() {}
