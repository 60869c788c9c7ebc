//! The `walk` part.
