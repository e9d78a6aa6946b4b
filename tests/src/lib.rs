//! Nothing: this package is its integration tests, in `cases/`.
