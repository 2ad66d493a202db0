//! What a producer wrote, before it is checked.
