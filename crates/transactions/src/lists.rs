//! Version orders of lists, derived from the lists that were read.
//!
//! The external parts of all lists read of a key must be prefixes of the longest one, in which the
//! appends of a transaction are adjacent and in program order. Each list is compared with the
//! longest so far, which is linear in its length; only new elements are looked up.

use consistory_history::{History, KeyId, OpId, Value, ValueId};
use consistory_verdict::BadRead;
use rustc_hash::FxHashSet;

use crate::view::{INITIAL, Unit};
use crate::writes::Writes;

/// Rank of a transaction whose appends were not read: after all transactions whose appends were.
pub const UNREAD: u32 = u32::MAX;

/// The known version orders of the lists.
#[derive(Debug)]
pub struct Lists {
    keys: Vec<List>,
    /// Latest own appends: the transaction, and its values for each key.
    own: Vec<(u32, Vec<ValueId>)>,
    /// Position of each raw write in the longest list of its key, counted from 1; 0 if the list
    /// does not contain it.
    places: Vec<u32>,
}

#[derive(Debug, Default, Clone)]
struct List {
    /// The longest list: its value, and the number of external elements.
    longest: Option<(ValueId, usize)>,
    /// Read that returned the longest list.
    shown_by: Option<OpId>,
    /// Number of elements of the initial value.
    initial: usize,
    /// Appends of the longest list without the initial elements, as indices of raw writes.
    appends: Vec<u32>,
    /// Nodes of the version order; set once all reads are known.
    order: Vec<u32>,
}

impl Lists {
    pub(crate) fn new(history: &History) -> Self {
        let count = if history.has_lists() { history.key_count() } else { 0 };
        let mut keys = vec![List::default(); count];
        for (list, key) in keys.iter_mut().zip(history.keys()) {
            if let Value::List(elements) = history.value(history.initial_value(key)) {
                list.initial = elements.len();
            }
        }
        Lists { keys, own: vec![(u32::MAX, Vec::new()); count], places: Vec::new() }
    }

    /// Records an append of the transaction that is being scanned.
    pub(crate) fn append(&mut self, unit: u32, key: KeyId, value: ValueId) {
        let (by, values) = &mut self.own[key.index()];
        if *by != unit {
            *by = unit;
            values.clear();
        }
        values.push(value);
    }

    /// Returns the source of a read of a list, or the kind of bad read with the other list.
    pub(crate) fn read(
        &mut self,
        history: &History,
        unit: u32,
        op: OpId,
        (key, value): (KeyId, ValueId),
        units: &[Unit],
        writes: &Writes,
    ) -> Result<u32, (BadRead, Option<OpId>)> {
        self.places.resize(writes.len(), 0);
        let Value::List(all) = history.value(value) else { return Err((BadRead::ThinAir, None)) };
        let (by, own) = &self.own[key.index()];
        let own: &[ValueId] = if *by == unit { own } else { &[] };
        let external = all.len().checked_sub(own.len()).ok_or((BadRead::Internal, None))?;
        let ends_with_own = all[external..].iter().zip(own).all(|(a, &b)| a == history.value(b));
        if !ends_with_own {
            return Err((BadRead::Internal, None));
        }
        let read = &all[..external];
        let list = &mut self.keys[key.index()];
        let longest: &[Value] = match list.longest {
            Some((value, length)) => elements(history, value, length),
            None => elements(history, history.initial_value(key), list.initial),
        };
        let common = read.len().min(longest.len());
        if read[..common] != longest[..common] {
            let bad = bad_element(history, unit, key, (read, 0), units, writes);
            return Err((bad.unwrap_or(BadRead::IncompatibleOrder), list.shown_by.or(Some(op))));
        }
        if read.len() < list.initial {
            return Err((BadRead::Intermediate, None));
        }
        if read.len() > longest.len() {
            let new = (read, longest.len());
            if let Some(bad) = bad_element(history, unit, key, new, units, writes) {
                return Err((bad, None));
            }
            let known = list.appends.len();
            let find = |element: &Value| {
                let value = history.values().find(element);
                value
                    .and_then(|value| writes.append_of(key, value))
                    .expect("it was looked up above")
            };
            list.appends.extend(read[longest.len()..].iter().map(find));
            let last = list.appends.last().expect("the list grew");
            let bad = if !stand_together(&list.appends, known, &self.places, writes) {
                Some((BadRead::IncompatibleOrder, Some(op)))
            } else if !writes.get(*last).is_last {
                Some((BadRead::Intermediate, None))
            } else {
                None
            };
            if let Some(bad) = bad {
                list.appends.truncate(known);
                return Err(bad);
            }
            for (place, &append) in list.appends.iter().enumerate().skip(known) {
                self.places[append as usize] = place as u32 + 1;
            }
            list.longest = Some((value, external));
            list.shown_by = Some(op);
        }
        let appends = &list.appends[..read.len() - list.initial];
        // Appends of the own transaction that come later, or that are not at the end of the list.
        let is_in_prefix = |at: u32| {
            writes.get(at).key == key
                && (1..=appends.len() as u32).contains(&self.places[at as usize])
        };
        if writes.of_unit(unit).any(is_in_prefix) {
            return Err((BadRead::Future, None));
        }
        let Some(&last) = appends.last() else { return Ok(INITIAL) };
        let last = writes.get(last);
        if !last.is_last {
            return Err((BadRead::Intermediate, None));
        }
        Ok(units[last.unit as usize].node.expect("aborted appends were rejected"))
    }

    /// Converts the longest lists to orders of nodes, and makes all these nodes count.
    pub(crate) fn finish(&mut self, writes: &Writes, units: &[Unit], counts: &mut [bool]) {
        for list in &mut self.keys {
            let nodes = list.appends.iter();
            let nodes = nodes.map(|&at| units[writes.get(at).unit as usize].node);
            list.order = nodes.map(|node| node.expect("aborted appends were rejected")).collect();
            list.order.dedup();
            list.order.iter().for_each(|&node| counts[node as usize] = true);
        }
    }

    /// Returns the transactions whose appends to a key were read, in version order.
    pub fn order(&self, key: KeyId) -> &[u32] {
        self.keys.get(key.index()).map_or(&[], |list| &list.order)
    }

    /// Returns a read of the longest list of a key, if any list that is not initial was read.
    pub fn shown_by(&self, key: KeyId) -> Option<OpId> {
        self.keys.get(key.index()).and_then(|list| list.shown_by)
    }
}

fn elements(history: &History, value: ValueId, length: usize) -> &[Value] {
    match history.value(value) {
        Value::List(elements) => &elements[..length],
        _ => &[],
    }
}

/// Finds, from a position on, an element that no counting transaction appended.
fn bad_element(
    history: &History,
    unit: u32,
    key: KeyId,
    (read, from): (&[Value], usize),
    units: &[Unit],
    writes: &Writes,
) -> Option<BadRead> {
    let initial: &[Value] = match history.value(history.initial_value(key)) {
        Value::List(elements) => elements,
        _ => &[],
    };
    for (place, element) in read.iter().enumerate().skip(from) {
        if initial.get(place) == Some(element) {
            continue;
        }
        let value = history.values().find(element);
        let Some(append) = value.and_then(|value| writes.append_of(key, value)) else {
            return Some(BadRead::ThinAir);
        };
        let write = writes.get(append);
        if write.unit == unit {
            return Some(BadRead::Future);
        }
        if units[write.unit as usize].node.is_none() {
            return Some(BadRead::Aborted);
        }
    }
    None
}

/// Checks that, from a position on, the appends of each transaction are complete, in program order
/// and not repeated; the last transaction may be incomplete.
fn stand_together(appends: &[u32], from: usize, places: &[u32], writes: &Writes) -> bool {
    let mut seen = FxHashSet::default();
    (from..appends.len()).all(|at| {
        let this = appends[at];
        let unit = writes.get(this).unit;
        let fits = match at.checked_sub(1).map(|before| appends[before]) {
            Some(before) if writes.get(before).unit == unit => {
                writes.follows_in_transaction(before, this)
            }
            Some(before) => writes.get(before).is_last && writes.is_first_of_key(this),
            None => writes.is_first_of_key(this),
        };
        fits && places[this as usize] == 0 && seen.insert(this)
    })
}
