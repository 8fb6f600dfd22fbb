//! Listings read back: what `tc qdisc show`, `class show` and `filter show` print, for people or with `-j`,
//! as the commands that make the same; and what a machine that was made so lists, compared with what was
//! given.
//!
//! ```text
//! text ──▶ text ────┐                                  ┌─▶ compare ──▶ what did not come back
//!                   ├─▶ ListedObject… ─▶ commands ─▶ (a machine) ─▶ its listing, read the same way
//! JSON ──▶ members ─┘   (options, filters, actions)
//! ```
//!
//! Making the commands may guess: a word that nothing is known about is left out, and the comparison finds
//! it. So no list says which kinds are read whole.
//!
//! Class and filter listings for people do not name their device: a line `$ tc class show dev eth0`, as a
//! session in a terminal has it, or `# dev eth0` names it for the lines that follow.

mod actions;
mod commands;
mod compare;
mod filters;
mod heading;
mod left_out;
mod members;
mod object;
mod options;
mod text;

pub use compare::{ListingDifference, compare};
pub use heading::{ListingHeading, listing_heading};
pub use members::object_of_members;
pub use object::{FilterHead, Listed, ListedObject, NotListed};
pub use text::is_listing;

/// What a text lists, which is number `file` of several.
///
/// # Errors
/// The first line that is none of tc's.
pub fn objects_of_listing(text: &str, file: usize) -> Result<Vec<ListedObject>, NotListed> {
    text::read(text, file)
}

/// Numbers u32's own tables as the commands will, where some were deleted meanwhile.
pub fn number_tables(objects: &mut [ListedObject]) {
    filters::number_tables(objects);
}

/// The commands that make what is listed, in an order in which they can be carried out: those of qdiscs that
/// the kernel attaches on its own are left out.
///
/// # Errors
/// An object is there twice, or hangs on something that is not listed, or is none that can be made.
pub fn commands_of_listing(objects: &[ListedObject]) -> Result<Vec<Listed>, NotListed> {
    commands::in_order(objects)
}

/// Why a listing is not enough to know what a qdisc with classes does, where it lists no class of the device;
/// it may have none.
pub fn without_classes(objects: &[ListedObject]) -> Option<NotListed> {
    commands::without_classes(objects)
}

/// The commands that make what a text lists.
///
/// # Errors
/// As for [`objects_of_listing`] and [`commands_of_listing`].
pub fn read_listing(text: &str) -> Result<Vec<Listed>, NotListed> {
    let mut objects = objects_of_listing(text, 0)?;
    number_tables(&mut objects);
    commands_of_listing(&objects)
}

#[cfg(test)]
mod tests;
