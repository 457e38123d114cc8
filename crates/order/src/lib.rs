//! Orders: chains and clocks, paths and cycles.
//!
//! The order that a history forces is sparse: a few long chains, one per session, and edges between
//! them. [`ChainOrder`] keeps its transitive closure as clocks, answers reachability with one
//! comparison, and grows edge by edge. [`Paths`] finds shortest paths and cycles, and returns the
//! edge of each step, so that a verdict can be explained.
//!
//! ```
//! use consistory_order::{ChainOrder, Chains, Edge, EdgeId, Inserted, Paths, PathStep};
//!
//! // Two chains, 0 ─ 1 and 2 ─ 3, and an edge from 1 to 2.
//! let chains = Chains::consecutive([2, 2]);
//! let edges = vec![Edge { from: 1_u32, to: 2, reason: 7 }];
//! let mut order = ChainOrder::build(chains, edges).unwrap();
//! assert!(order.before(0, 3));
//! assert_eq!(order.insert(Edge { from: 0, to: 3, reason: 8 }), Inserted::Implied);
//! assert_eq!(order.insert(Edge { from: 3, to: 0, reason: 9 }), Inserted::Cycle);
//!
//! let cycle = Paths::new(order.chains(), order.edges()).shortest_cycle(1_000).unwrap();
//! assert_eq!(cycle.len(), 4); // 0 ─ 1 → 2 ─ 3 → 0
//! assert!(cycle.contains(&PathStep::Edge(EdgeId(1))));
//! ```
//!
//! For small relations there is [`Matrix`], a relation as dense bits, with the operators of
//! relational algebra.
//!
//! Chains and edges have ids of their own types. Nodes are the caller's ids: any type that implements
//! [`Node`], such as the operations of a history, or plain numbers as here.

mod chains;
mod clocks;
mod edges;
mod ids;
mod matrix;
mod paths;
mod turns;

pub use chains::Chains;
pub use clocks::{ChainOrder, Cyclic, Growth, Inserted, Mark};
pub use edges::{Edge, topological_order};
pub use ids::{ChainId, EdgeId, Node};
pub use matrix::{Matrix, Set};
pub use paths::{PathStep, Paths};
pub use turns::{Awaited, take_turns};
