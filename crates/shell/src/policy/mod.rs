//! Whether a command may run: its parts, the rules of the workspace, and the floor that nothing lifts.
