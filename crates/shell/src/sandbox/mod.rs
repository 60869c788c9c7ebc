//! What the kernel is asked to allow a command: namespaces, an overlay, Landlock, seccomp.
