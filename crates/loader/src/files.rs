//! Files of the outside; without the feature `run` there are none.

#[cfg(feature = "run")]
pub(crate) use tidegate_sys::input_file::{is_handed_over, read};

#[cfg(not(feature = "run"))]
pub(crate) fn is_handed_over(_: &std::path::Path) -> bool {
    false
}

#[cfg(not(feature = "run"))]
pub(crate) fn read(_: &std::path::Path, _: u64) -> std::io::Result<Vec<u8>> {
    Err(std::io::ErrorKind::Unsupported.into())
}
