//! Uses what the host would know by a number that it was never given.

use contract::{Answer, Arguments, text};
use wasip2::io::poll::Pollable;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let number = u32::try_from(arguments.number("number")).unwrap_or(u32::MAX);
    // SAFETY: nothing of this program's stands behind it; that is the trick.
    let forged = unsafe { Pollable::from_handle(number) };
    text(format!("broke into handle {number}: {}", forged.ready()))
}
