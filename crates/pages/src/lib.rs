//! Pages of reports other than those of histories: litmus tests, protocols, contrasts and the
//! atlas.
//!
//! Each function takes the result of an analysis and returns a [`Case`](consistory_report::Case) or a
//! [`Scene`](consistory_scene::Scene). The command line writes cases into report files, and the local
//! page (`consistory-serve`) sends them to the browser, so both show the same. Pages of histories are
//! built by [`consistory::Report::page`].

mod atlas;
mod contrast;
mod cycle;
mod execution;
mod isa;
mod litmus;
mod protocol;
mod run;

pub use atlas::{AtlasEdge, atlas_case, lattice_scene, register_lattice, survey_case};
pub use contrast::{ContrastSide, contrast_case};
pub use execution::execution_scene;
pub use isa::{IsaResult, isa_assignment, isa_case, isa_execution_scene};
pub use litmus::{ModelResult, Witness, assignment, litmus_case};
pub use protocol::{ProtocolFindings, protocol_case};
pub use run::{changes, run_scene};
