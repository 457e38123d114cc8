//! Short and long versions of a test.

/// Checks whether the long versions of tests are requested: `CONSISTORY_DEEP=1`, which
/// `dev/test --deep` sets.
pub fn is_deep() -> bool {
    std::env::var_os("CONSISTORY_DEEP").is_some_and(|value| value == "1")
}

/// Returns the number of rounds of a test with two versions.
pub fn rounds(usual: u64, deep: u64) -> u64 {
    if is_deep() { deep } else { usual }
}
