//! What lists ask of filters of any kind.

use crate::context::DumpContext;
use tidegate_packet::Handle;
use tidegate_policy::dump::FilterEntry;

/// The operations that every kind of filter list shares; classifying and adding are the kinds' own.
pub(crate) trait Filters {
    fn is_empty(&self) -> bool;
    /// Is there one of this handle?
    fn has(&self, handle: u32) -> bool;
    /// Removes it; false: there is none.
    fn remove(&mut self, handle: u32) -> bool;
    /// Does one hold a class?
    fn binds(&self, class: Handle) -> bool;
    /// Those that lead to a class hold it, or no longer.
    fn rebind(&mut self, class: Handle, bound: bool);
    /// Shows the places of each one's actions.
    fn each_action(&self, show: &mut dyn FnMut(&[u32]));
    /// Tells of each, in the kernel's order.
    fn dump(&self, context: DumpContext<'_>, line: &mut dyn FnMut(FilterEntry));
}
