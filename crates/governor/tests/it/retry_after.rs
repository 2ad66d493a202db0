//! Reading the wait that a channel asked for, and keeping to it.
