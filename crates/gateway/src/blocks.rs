//! Shared blocks: filters that several devices have in common.

use crate::device::DeviceId;
use crate::machine::Gateway;
use alloc::vec::Vec;
use tidegate_packet::{Handle, Time};
use tidegate_policy::dump::FilterDump;
use tidegate_policy::{Errno, FilterOp, FilterParams, FwParams, TcError, Verb};
use tidegate_qdisc::{NO_BLOCK, dump_block};

impl Gateway {
    /// Is there a shared block of this number?
    pub fn has_block(&self, number: u32) -> bool {
        self.shared.blocks.get(number).is_some()
    }

    /// The shared block whose filters a hook of a device has; 0: it has its own, or there is no such hook.
    pub fn block_at(&mut self, device: DeviceId, parent: Handle) -> u32 {
        self.port(device).shaper.block_at(parent)
    }

    /// The filters of a shared block, as tc lists them.
    ///
    /// # Errors
    /// When there is no such block.
    pub fn block_filters(&mut self, now: Time, number: u32) -> Result<Vec<FilterDump>, TcError> {
        self.count_actions(now);
        let mut dumps = dump_block(&self.shared, now, number)?;
        self.name_devices(&mut dumps);
        Ok(dumps)
    }

    /// The chains of filters of a shared block, oldest first.
    ///
    /// # Errors
    /// When there is no such block.
    pub fn block_chains(&self, number: u32) -> Result<Vec<u32>, TcError> {
        Ok(self.shared.blocks.get(number).ok_or(NO_BLOCK)?.chains())
    }

    /// A device that has the block of an operation, which is carried out by its clock and randomness.
    pub(crate) fn device_for(&self, op: &FilterOp) -> Result<DeviceId, TcError> {
        const NO_MARK: TcError =
            TcError::new(Errno::Inval, "Must specify mark when attaching fw filter to block");
        let bare = op.kind.as_deref() == Some("fw") && op.handle == 0 && op.verb != Verb::Delete;
        let says_nothing = matches!(
            &op.params,
            None | Some(FilterParams::Fw(FwParams { classid: None, mask: None, indev: None }))
        );
        match self.device_in(op.block) {
            // A mark that is a class of the qdisc needs a qdisc.
            Ok(_) if bare && says_nothing && op.actions.is_empty() => Err(NO_MARK),
            found => found,
        }
    }

    /// A device that has this block; there is no block without one.
    fn device_in(&self, number: u32) -> Result<DeviceId, TcError> {
        let has = |id: &DeviceId| {
            let blocks = self.ports[id.0 as usize].shaper.blocks();
            blocks.ingress == number || blocks.egress == number
        };
        self.devices().find(has).ok_or(NO_BLOCK)
    }
}
