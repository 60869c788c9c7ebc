//! The mask of modes that commands inherit.

/// The process's umask, such as `0o022`; what the kernel does not tell is taken to be that.
pub fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_a_mask_of_permission_bits() {
        assert_eq!(super::umask() & !0o777, 0);
    }
}
