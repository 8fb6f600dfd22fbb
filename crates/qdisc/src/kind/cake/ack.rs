//! Which acknowledgements later ones make needless.

use super::Cake;
use crate::cx::Cx;
use crate::discipline::Own;

impl Cake {
    /// Leaves out an acknowledgement that the packet just put at the end of a flow makes needless.
    pub(super) fn filter_acks(&mut self, _cx: &mut Cx<'_>, _own: Own, _tin: usize, _flow: u32) {}
}
