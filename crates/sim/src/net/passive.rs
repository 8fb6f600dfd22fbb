//! TCP connections are watched at a device of the machine.

use super::Net;
use crate::machine::{Forwarder, Port};
use crate::passive::{PassiveTcp, TcpSighting};

impl<M: Forwarder> Net<M> {
    /// Watches the TCP connections whose packets pass this device, from now on; one device at a time.
    /// [`Net::take_tcp_sightings`] must then be called regularly: of more than 65,536 sightings the oldest
    /// are forgotten.
    pub fn watch_tcp(&mut self, port: Port) {
        self.passive = Some(PassiveTcp::new(port));
    }

    /// What was seen since the last call, in order.
    pub fn take_tcp_sightings(&mut self) -> impl Iterator<Item = TcpSighting> {
        self.passive.iter_mut().flat_map(|passive| passive.seen.drain(..))
    }
}
