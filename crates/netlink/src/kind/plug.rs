//! plug: a structure of two numbers; the kernel reports nothing of it.

use super::base::Codec;
use tidegate_netlink_wire::attribute::{Attributes, words};
use tidegate_netlink_wire::numbers::TCA_OPTIONS;
use tidegate_policy::{PlugCommand, PlugParams, QdiscParams};

pub(super) struct Plug;

impl Codec for Plug {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Plug(PlugParams { command: Some(command), limit }) = params {
            let number = match command {
                PlugCommand::Block => 0,
                PlugCommand::Release => 1,
                PlugCommand::ReleaseIndefinite => 2,
                PlugCommand::Limit => 3,
            };
            to.payload(TCA_OPTIONS, &words(&[number, *limit]));
        }
    }

    fn decode(&self, _options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Plug(PlugParams::default()))
    }
}
