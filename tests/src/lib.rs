//! What the integration tests in `cases/` and the fuzz targets in `fuzz/` at the root share.

pub mod guests;
pub mod targets;
