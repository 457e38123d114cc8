//! The lanes of a picture of a run, one for each participant.
//!
//! A run is drawn with one lane per processor and one lane for the parts of the state that belong
//! to no processor. In a description without marks, the type that indexes most of the state
//! replaces the processors.

use rustc_hash::FxHashMap;

use crate::murphi::ir::Binder;
use crate::murphi::{Type, TypeId};
use crate::system::{Entry, System};

/// Assignment of the parts of the state to lanes.
pub(crate) struct Lanes {
    ty: Option<TypeId>,
    /// Lane of each slot; the last lane is for slots that belong to no participant.
    slots: Vec<u32>,
    count: u32,
}

impl System {
    /// Returns the names of the lanes of a run; the last lane is for the shared state.
    pub fn lane_names(&self) -> Vec<String> {
        let mut names = self.lane_type().map_or(Vec::new(), |ty| self.value_names(ty));
        names.push("shared".to_owned());
        names
    }

    /// Returns the lane of each entry of a state, as an index into
    /// [`lane_names`](Self::lane_names).
    pub fn entry_lanes(&self) -> Vec<usize> {
        self.lanes().slots.into_iter().map(|lane| lane as usize).collect()
    }

    /// Returns the type whose values are the lanes.
    fn lane_type(&self) -> Option<TypeId> {
        if let Some(flow) = &self.flow {
            return Some(flow.proc);
        }
        let mut slots = FxHashMap::default();
        for &var in &self.program.globals {
            self.count_slots(self.program.variables[var.0 as usize].ty, &mut slots);
        }
        let is_lane = |ty: TypeId| (2..=MAX_LANES).contains(&self.program.types.count(ty));
        let best = slots.into_iter().filter(|&(ty, _)| is_lane(ty));
        best.max_by_key(|&(ty, count)| (count, std::cmp::Reverse(ty.0))).map(|(ty, _)| ty)
    }

    /// Counts the slots in arrays over each type.
    fn count_slots(&self, ty: TypeId, out: &mut FxHashMap<TypeId, u32>) {
        match self.program.types.get(ty) {
            Type::Record(fields) => fields.iter().for_each(|f| self.count_slots(f.ty, out)),
            Type::Array { index, element } => {
                *out.entry(*index).or_default() += self.program.types.slots(ty);
                self.count_slots(*element, out);
            }
            _ => {}
        }
    }

    pub(crate) fn lanes(&self) -> Lanes {
        let ty = self.lane_type();
        let count = ty.map_or(0, |ty| self.program.types.count(ty));
        let mut lanes = Lanes { ty, slots: Vec::new(), count };
        for &var in &self.program.globals {
            let ty = self.program.variables[var.0 as usize].ty;
            self.add_lanes(ty, Owner::Unknown { is_indexed: false }, &mut lanes);
        }
        lanes
    }

    fn add_lanes(&self, ty: TypeId, owner: Owner, out: &mut Lanes) {
        let types = &self.program.types;
        match types.get(ty) {
            Type::Record(fields) => {
                let owner = match owner {
                    Owner::Unknown { is_indexed: true } => Owner::Shared,
                    owner => owner,
                };
                fields.iter().for_each(|field| self.add_lanes(field.ty, owner, out));
            }
            Type::Array { index, element } => {
                for at in 0..types.count(*index) {
                    let owner = match owner {
                        Owner::Unknown { .. } if Some(*index) == out.ty => Owner::Lane(at),
                        Owner::Unknown { .. } => Owner::Unknown { is_indexed: true },
                        owner => owner,
                    };
                    self.add_lanes(*element, owner, out);
                }
            }
            Type::Multiset { capacity, element } => {
                for _ in 0..*capacity {
                    out.slots.push(out.of(owner));
                    self.add_lanes(*element, owner, out);
                }
            }
            _ => out.slots.push(out.of(owner)),
        }
    }

    /// Returns the lane that the first suitable parameter of a rule names.
    pub(crate) fn actor(&self, lanes: &Lanes, instance: usize) -> Option<u32> {
        let instance = &self.lowered.rules[instance];
        let binders = &self.program.rules[instance.rule as usize].binders;
        binders.iter().zip(&instance.parameters).find_map(|(binder, &code)| match binder {
            Binder::Quantifier { var, .. } => {
                let ty = self.program.variables[var.0 as usize].ty;
                let pieces = self.program.types.pieces(ty);
                (Some(ty) == lanes.ty).then(|| crate::machine::run::position(&pieces, code))?
            }
            _ => None,
        })
    }
}

/// Owner of a part of the state. The fields of a record inside an array over another type are
/// shared, even if processors index them.
#[derive(Clone, Copy)]
enum Owner {
    Unknown { is_indexed: bool },
    Lane(u32),
    Shared,
}

impl Lanes {
    fn of(&self, owner: Owner) -> u32 {
        match owner {
            Owner::Lane(lane) => lane,
            Owner::Unknown { .. } | Owner::Shared => self.count,
        }
    }

    /// Lists the lanes whose slots or data differ.
    pub(crate) fn touched(&self, before: &[Entry], after: &[Entry]) -> Vec<u32> {
        let changed = self.slots.iter().zip(before.iter().zip(after));
        let mut lanes: Vec<u32> =
            changed.filter(|(_, (old, new))| old != new).map(|(&lane, _)| lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }
}

/// Largest number of lanes of a readable picture.
const MAX_LANES: u32 = 16;
