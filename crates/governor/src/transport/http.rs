//! Calls over HTTP.
