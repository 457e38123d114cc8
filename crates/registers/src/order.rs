//! Orders of operations: the types of [`consistory_order`] with operations as nodes and with the
//! reasons that edges have in this crate.

use consistory_history::OpId;

use crate::reason::PackedReason;

pub(crate) type Chains = consistory_order::Chains<OpId>;
pub(crate) type ChainOrder = consistory_order::ChainOrder<OpId, PackedReason>;
pub(crate) type Cyclic = consistory_order::Cyclic<OpId, PackedReason>;
pub(crate) type Edge = consistory_order::Edge<OpId, PackedReason>;
pub(crate) type PathStep = consistory_order::PathStep<OpId>;
pub(crate) type Paths<'a> = consistory_order::Paths<'a, OpId, PackedReason>;
