//! What must hold of the disciplines whatever the tree, the packets and their times: nothing is lost from the books, flows stay in
//! order, rates and shares keep their bounds over every interval. And the exact vectors of the reference (V-…), by their names there.

mod bounds;
mod cake;
mod flat;
mod hashing;
mod tiny;
mod trees;
mod vectors;
mod world;
