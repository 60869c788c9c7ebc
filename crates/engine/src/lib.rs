//! The pipeline and what stands around it: a workspace that is opened, read, planned against, committed to, recovered.

mod clock;
mod findings;
mod ignored;
mod image;
mod landing;
mod seen;
mod shelf;
mod upkeep;
mod workspace;

pub mod effects;
pub mod pipeline;

pub use clock::Clock;
pub use cotenant_ledger::Idempotency;
pub use image::Image;
pub use landing::{Submitted, Wish};
pub use pipeline::{How, Landed, Question, Recovered};
pub use shelf::Shelf;
pub use workspace::{Options, Workspace, open_tree};
