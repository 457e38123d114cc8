//! Types, and the number of memory slots of their values.
//!
//! A value of a simple type is represented by a *code*: an integer is its own code, `false` and
//! `true` are 0 and 1, and every value of an enumeration or scalarset of a description has a unique
//! code. So a union needs no tag, and `ismember` is a comparison.

use std::sync::Arc;

/// Index of a type of a description.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TypeId(pub(crate) u32);

/// A range of consecutive codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Piece {
    pub(crate) first: i32,
    pub(crate) count: u32,
}

impl Piece {
    pub(crate) fn position(self, code: i32) -> Option<u32> {
        let position = i64::from(code) - i64::from(self.first);
        (0..i64::from(self.count)).contains(&position).then_some(position as u32)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// Type of an expression with an error; it fits everywhere.
    Error,
    /// Type of an arithmetic result: an integer of any size.
    Integer,
    Boolean,
    Range {
        first: i32,
        last: i32,
    },
    Enum {
        first: i32,
        names: Vec<Arc<str>>,
    },
    Scalarset {
        first: i32,
        size: u32,
    },
    /// The members, none of them a union.
    Union(Vec<TypeId>),
    Record(Vec<Field>),
    Array {
        index: TypeId,
        element: TypeId,
    },
    Multiset {
        capacity: u32,
        element: TypeId,
    },
    /// Index of an element of a multiset.
    Index {
        multiset: TypeId,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Arc<str>,
    pub(crate) ty: TypeId,
    /// Number of slots before it in the record.
    pub(crate) offset: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct TypeInfo {
    pub(crate) ty: Type,
    /// Name in the declaration.
    pub(crate) name: Option<Arc<str>>,
    /// Number of slots of a value.
    pub(crate) slots: u32,
}

/// All types of a description.
#[derive(Clone, Debug)]
pub(crate) struct Types {
    all: Vec<TypeInfo>,
    next_code: i32,
}

impl Types {
    pub(crate) const ERROR: TypeId = TypeId(0);
    pub(crate) const INTEGER: TypeId = TypeId(1);
    pub(crate) const BOOLEAN: TypeId = TypeId(2);

    /// Largest number of slots of a state.
    pub(crate) const MAX_SLOTS: u32 = 1 << 20;

    pub(crate) fn new() -> Self {
        let mut types = Types { all: Vec::new(), next_code: 2 };
        types.add(Type::Error);
        types.add(Type::Integer);
        types.add(Type::Boolean);
        types.all[2].name = Some("boolean".into());
        types
    }

    /// Adds a type; the number of its slots is capped at one more than the largest number of a
    /// state.
    pub(crate) fn add(&mut self, ty: Type) -> TypeId {
        let slots = match &ty {
            Type::Record(fields) => fields.iter().map(|f| u64::from(self.slots(f.ty))).sum(),
            Type::Array { index, element } => {
                u64::from(self.count(*index)) * u64::from(self.slots(*element))
            }
            Type::Multiset { capacity, element } => {
                u64::from(*capacity) * (1 + u64::from(self.slots(*element)))
            }
            _ => 1,
        };
        let slots = slots.min(u64::from(Self::MAX_SLOTS) + 1) as u32;
        self.all.push(TypeInfo { ty, name: None, slots });
        TypeId(self.all.len() as u32 - 1)
    }

    /// Returns the first of `count` unused consecutive codes.
    pub(crate) fn fresh_codes(&mut self, count: u32) -> i32 {
        let first = self.next_code;
        self.next_code = self.next_code.saturating_add(count as i32);
        first
    }

    pub(crate) fn set_name(&mut self, id: TypeId, name: &Arc<str>) {
        let known = &mut self.all[id.0 as usize].name;
        if known.is_none() {
            *known = Some(name.clone());
        }
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.all[id.0 as usize].ty
    }

    /// Lists the scalarsets.
    pub(crate) fn scalarsets(&self) -> impl Iterator<Item = TypeId> {
        let all = self.all.iter().zip(0..);
        all.filter(|(info, _)| matches!(info.ty, Type::Scalarset { .. })).map(|(_, id)| TypeId(id))
    }

    pub(crate) fn slots(&self, id: TypeId) -> u32 {
        self.all[id.0 as usize].slots
    }

    pub(crate) fn is_simple(&self, id: TypeId) -> bool {
        !matches!(self.get(id), Type::Record(_) | Type::Array { .. } | Type::Multiset { .. })
    }

    pub(crate) fn is_integer(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::Integer | Type::Range { .. } | Type::Error)
    }

    pub(crate) fn is_boolean(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::Boolean | Type::Error)
    }

    /// Lists the codes of a simple type; there are none for unbounded integers.
    pub(crate) fn pieces(&self, id: TypeId) -> Vec<Piece> {
        match self.get(id) {
            Type::Boolean => vec![Piece { first: 0, count: 2 }],
            Type::Range { first, last } => {
                let count = (i64::from(*last) - i64::from(*first) + 1).max(0) as u32;
                vec![Piece { first: *first, count }]
            }
            Type::Enum { first, names } => vec![Piece { first: *first, count: names.len() as u32 }],
            Type::Scalarset { first, size } => vec![Piece { first: *first, count: *size }],
            Type::Union(members) => {
                let mut pieces: Vec<Piece> =
                    members.iter().flat_map(|&member| self.pieces(member)).collect();
                pieces.sort_by_key(|piece| piece.first);
                let mut joined: Vec<Piece> = Vec::new();
                for piece in pieces {
                    match joined.last_mut() {
                        Some(last) if last.first + last.count as i32 == piece.first => {
                            last.count += piece.count;
                        }
                        _ => joined.push(piece),
                    }
                }
                joined
            }
            _ => Vec::new(),
        }
    }

    /// Counts the values of a simple type.
    pub(crate) fn count(&self, id: TypeId) -> u32 {
        self.pieces(id).iter().fold(0u32, |sum, piece| sum.saturating_add(piece.count))
    }

    /// Checks whether every value of `inner` is a value of `outer`.
    pub(crate) fn includes(&self, outer: TypeId, inner: TypeId) -> bool {
        if outer == inner {
            return true;
        }
        match (self.get(outer), self.get(inner)) {
            (Type::Error, _) | (_, Type::Error) | (Type::Integer, Type::Range { .. }) => true,
            (Type::Range { first, last }, Type::Range { first: f, last: l }) => {
                first <= f && l <= last
            }
            (Type::Union(outer), Type::Union(inner)) => inner.iter().all(|m| outer.contains(m)),
            (Type::Union(members), _) => members.contains(&inner),
            _ => false,
        }
    }

    /// Checks whether two types may have a value in common, so that their values can be compared,
    /// and assigned with a check.
    pub(crate) fn overlap(&self, a: TypeId, b: TypeId) -> bool {
        if a == b || self.includes(a, b) || self.includes(b, a) {
            return true;
        }
        match (self.get(a), self.get(b)) {
            (Type::Range { .. } | Type::Integer, Type::Range { .. } | Type::Integer) => true,
            (Type::Union(x), Type::Union(y)) => x.iter().any(|member| y.contains(member)),
            _ => false,
        }
    }

    /// Checks whether values of two types that are not simple can be copied slot by slot.
    pub(crate) fn same_shape(&self, a: TypeId, b: TypeId) -> bool {
        if a == b {
            return true;
        }
        match (self.get(a), self.get(b)) {
            (Type::Error, _) | (_, Type::Error) => true,
            (Type::Record(x), Type::Record(y)) => {
                x.len() == y.len()
                    && x.iter().zip(y).all(|(x, y)| x.name == y.name && self.same_shape(x.ty, y.ty))
            }
            (Type::Array { index: i, element: x }, Type::Array { index: j, element: y }) => {
                self.same_shape(*i, *j) && self.same_shape(*x, *y)
            }
            (
                Type::Multiset { capacity: i, element: x },
                Type::Multiset { capacity: j, element: y },
            ) => i == j && self.same_shape(*x, *y),
            (Type::Range { first, last }, Type::Range { first: f, last: l }) => {
                (first, last) == (f, l)
            }
            (Type::Union(x), Type::Union(y)) => x == y,
            _ => false,
        }
    }

    /// Returns the name of a type in messages.
    pub(crate) fn show(&self, id: TypeId) -> String {
        let info = &self.all[id.0 as usize];
        if let Some(name) = &info.name {
            return format!("`{name}`");
        }
        match &info.ty {
            Type::Error => "an error".into(),
            Type::Integer => "an integer".into(),
            Type::Boolean => "`boolean`".into(),
            Type::Range { first, last } => format!("`{first}..{last}`"),
            Type::Enum { .. } => "an enumeration".into(),
            Type::Scalarset { size, .. } => format!("`scalarset({size})`"),
            Type::Union(_) => "a union".into(),
            Type::Record(_) => "a record".into(),
            Type::Array { .. } => "an array".into(),
            Type::Multiset { .. } => "a multiset".into(),
            Type::Index { .. } => "an index of a multiset".into(),
        }
    }

    /// Writes a value of a simple type as a description would.
    pub(crate) fn show_code(&self, id: TypeId, code: i32) -> String {
        match self.get(id) {
            Type::Boolean => if code == 0 { "false" } else { "true" }.to_owned(),
            Type::Enum { first, names } => names
                .get((code - first) as usize)
                .map_or_else(|| code.to_string(), |n| n.to_string()),
            Type::Scalarset { first, .. } => {
                let name = self.all[id.0 as usize].name.as_deref().unwrap_or("scalarset");
                format!("{name}_{}", code - first + 1)
            }
            Type::Union(members) => {
                let member = members
                    .iter()
                    .find(|&&m| self.pieces(m).iter().any(|p| p.position(code).is_some()));
                member.map_or_else(|| code.to_string(), |&m| self.show_code(m, code))
            }
            Type::Index { .. } => format!("#{code}"),
            _ => code.to_string(),
        }
    }
}
