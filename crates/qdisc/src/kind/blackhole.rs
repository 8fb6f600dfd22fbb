//! blackhole: every packet is dropped, and senders get the result of a packet that was taken.
//!
//! So a TCP sender continues until its packets time out; the qdiscs above count each one as a drop of their
//! own.

use super::NO_CHANGE;
use crate::batch::BuiltIn;
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState};
use tidegate_classify::FilterList;
use tidegate_packet::Pkt;
use tidegate_policy::{QdiscParams, TcError};

pub(crate) struct Blackhole;

impl Discipline for Blackhole {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        cx.drop(own.handle, pkt, DropReason::Full);
        Enqueue::DroppedSilently
    }

    fn dequeue(&mut self, _cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        Dequeue::Empty
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        _params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        Err(NO_CHANGE)
    }

    fn purge(&mut self, _cx: &mut Context<'_>, _own: QdiscState) {}

    fn params(&self) -> QdiscParams {
        QdiscParams::Blackhole
    }
}

impl BuiltIn for Blackhole {
    fn peek(&mut self, _cx: &mut Context<'_>) -> Option<Peek> {
        Some(Peek::Empty)
    }
}
