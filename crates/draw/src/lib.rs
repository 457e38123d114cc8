//! Explanations and drawings of verdicts, as strings.
//!
//! All functions take data and return a string, without printing or accessing files.
//!
//! - [`explain`] describes in plain sentences why a verdict holds, [`explain_line`] in one line.
//! - [`history_svg`] draws a history as lanes, one per session, with the cycle of a violation as
//!   coloured arrows; an object's calls are drawn as intervals of time.
//! - [`line_plot`] draws measurements, [`scatter_plot`] one measurement against another.
//! - [`table`] aligns a table for the terminal.
//!
//! The size of the output is bounded for every input: a proof of a million edges is abbreviated,
//! and a history of a million operations is drawn with gaps. Equal inputs give equal strings. Names
//! and values are shown on one line without control characters, and escaped in SVG. An SVG has no
//! ids, styles or scripts, so any number of them can be embedded in one page.
//!
//! ```
//! use consistory_draw::explain_line;
//! use consistory_history::HistoryBuilder;
//! use consistory_verdict::{Judgement, Stopped};
//!
//! let history = HistoryBuilder::new().finish().unwrap();
//! let line = explain_line(&history, "sc", &Judgement::Undecided(Stopped::Interrupted));
//! assert_eq!(line, "undecided: it was interrupted");
//! ```

mod judgement;

mod text;

mod proof;

mod narrative;
mod summary;

mod svg;

mod lanes;
mod registers_scene;

mod calls;
mod calls_scene;
mod intervals;

mod transactions;
mod transactions_scene;

mod svg_plot;
mod svg_scatter;

mod table;

pub use judgement::{
    drawn_calls, explain, explain_line, explain_within, history_scenes, history_svg,
};
pub use registers_scene::DrawOptions;
pub use svg_plot::{Plot, Series, line_plot};
pub use svg_scatter::{Scatter, scatter_plot};
pub use table::{table, table_within};
