//! The `ignores` part.
