//! Reading `governor.toml`.
