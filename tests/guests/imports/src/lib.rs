//! Components that import what they should not have: each example is one.
