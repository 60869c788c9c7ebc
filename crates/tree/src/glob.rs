//! The `glob` part.
