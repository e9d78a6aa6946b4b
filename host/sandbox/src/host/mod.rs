//! What guests import, each interface behind the grant that links it.

pub(crate) mod fs;
pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod person;
pub(crate) mod toolbox;
