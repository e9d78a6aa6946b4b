//! What guests import, each interface behind the grant that links it.

pub(crate) mod http;
