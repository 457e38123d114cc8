//! Determines the block of an initial value: the block that indexes its location.

use crate::murphi::{Type, TypeId};
use crate::system::System;

impl System {
    /// Returns for each location the block that indexes it, if there is exactly one.
    ///
    /// A value that a start state puts into `memory[a]` is the initial value of block `a`.
    pub fn location_homes(&self) -> Vec<Option<u32>> {
        let mut indices = Vec::new();
        for var in &self.program.globals {
            self.add_indices(self.program.variables[var.0 as usize].ty, &[], &mut indices);
        }
        let home = |&slot: &u32| match indices[slot as usize][..] {
            [block] => Some(block),
            _ => None,
        };
        self.layout.locations.iter().map(home).collect()
    }

    /// Lists for each slot of a type the blocks that index it, after those of `outer`.
    fn add_indices(&self, ty: TypeId, outer: &[u32], out: &mut Vec<Vec<u32>>) {
        let types = &self.program.types;
        match types.get(ty) {
            Type::Record(fields) => {
                fields.iter().for_each(|field| self.add_indices(field.ty, outer, out));
            }
            Type::Array { index, element } => {
                let is_block = self.flow.as_ref().is_some_and(|flow| flow.block == Some(*index));
                for at in 0..types.count(*index) {
                    let mut inner = outer.to_vec();
                    inner.extend(is_block.then_some(at));
                    self.add_indices(*element, &inner, out);
                }
            }
            Type::Multiset { capacity, element } => {
                for _ in 0..*capacity {
                    out.push(outer.to_vec());
                    self.add_indices(*element, outer, out);
                }
            }
            _ => out.push(outer.to_vec()),
        }
    }
}
