//! The rules played against a receiver, at random and to the end.
