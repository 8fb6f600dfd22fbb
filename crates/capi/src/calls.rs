//! What the functions do, once their pointers are checked.

use crate::text::{c_text, set_message};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tidegate_device::{EgressDevice, SentPacket, Time};

/// A device of a C program.
#[derive(Debug)]
pub(crate) struct CDevice {
    device: EgressDevice,
    /// A call is under way. It stays so after a panic: what was done by then is unknown.
    busy: bool,
    /// The packet that the last poll gave: C reads its header bytes.
    pub(crate) sent: Option<SentPacket>,
    /// What the last commands listed.
    listing: CString,
}

/// What a call says when the library has a bug.
const BUG: &str = "a bug in tidegate stopped this call. Free the device, and please report the commands and calls that \
                   led here";

/// Runs a call: its error becomes the thread's message, and so does a panic, which never reaches C.
pub(crate) fn guard<R>(name: &str, failed: R, call: impl FnOnce() -> Result<R, String>) -> R {
    set_message(String::new());
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(done)) => done,
        Ok(Err(why)) => {
            set_message(format!("{name}: {why}"));
            failed
        }
        Err(_) => {
            set_message(format!("{name}: {BUG}"));
            failed
        }
    }
}

impl CDevice {
    pub(crate) fn new(device: EgressDevice) -> CDevice {
        CDevice { device, busy: false, sent: None, listing: CString::default() }
    }

    /// Does something with the device, unless an earlier call broke it.
    pub(crate) fn with<R>(&mut self, work: impl FnOnce(&mut EgressDevice) -> R) -> Result<R, String> {
        if std::mem::replace(&mut self.busy, true) {
            return Err(BUG.to_owned());
        }
        let done = work(&mut self.device);
        self.busy = false;
        Ok(done)
    }

    /// Can its parts be freed?
    pub(crate) fn is_whole(&self) -> bool {
        !self.busy
    }

    /// Carries out commands; what they list is kept until the next time.
    pub(crate) fn tc(&mut self, now: u64, commands: &str) -> Result<&CString, String> {
        let output =
            self.with(|device| device.tc(Time(now), commands))?.map_err(|error| error.to_string())?;
        set_message(output.warnings.join("\n"));
        self.listing = c_text(output.listing);
        Ok(&self.listing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::with_message;
    use tidegate_device::EgressConfig;

    fn message() -> String {
        with_message(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
    }

    #[test]
    fn a_panic_is_a_message_and_ends_the_device() {
        let device = EgressDevice::new(&EgressConfig::default(), "").expect("a device");
        let mut device = CDevice::new(device);
        assert_eq!(guard("f", -1, || device.with(|_| 7)), 7);
        assert_eq!(message(), "");
        let panics = guard("f", -1, || device.with(|_| panic!("on purpose")));
        assert_eq!((panics, message()), (-1, format!("f: {BUG}")));
        assert!(!device.is_whole());
        assert_eq!((guard("g", -1, || device.with(|_| 7)), message()), (-1, format!("g: {BUG}")));
    }

    #[test]
    fn a_nul_in_a_text_does_not_end_it() {
        assert_eq!(c_text("a\0b".to_owned()).to_bytes(), "a\u{fffd}b".as_bytes());
    }
}
