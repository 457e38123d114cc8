//! Execution of expressions and statements.

use consistory_verdict::{Budget, Stopped};

use crate::machine::code::{
    Address, Call, Chosen, Code, Computed, Element, Fit, IndexMap, Op, Orders, Pass, Put, Range,
    Routine, Scan, SiteId, UNDEFINED,
};
use crate::machine::layout::Layout;
use crate::murphi::{Piece, TypeId};

/// Largest number of rounds of a `while` loop.
pub(crate) const MAX_WHILE_ROUNDS: u32 = 1000;

/// Largest number of rounds of all loops of a rule together.
pub(crate) const MAX_LOOP_ROUNDS: u32 = 10_000_000;

/// Number of rounds of loops after which the clock is read.
const ROUNDS_BETWEEN_CHECKS: u32 = 1 << 14;

/// An interpreter of code: the memory, and the subprograms that it can call.
pub(crate) struct Machine<'a> {
    pub(crate) memory: Vec<i32>,
    routines: &'a [Routine],
    layout: &'a Layout,
    /// Symmetric scalarsets; doubtful loops over them are run in every order.
    pub(crate) symmetric: Vec<TypeId>,
    /// Number of rounds of loops that remain.
    pub(crate) fuel: u32,
    budget: Budget,
    /// Reason why the last rule was aborted, if it was; its result does not count.
    pub(crate) stopped: Option<Stopped>,
    /// Text that `put` printed, if it is recorded.
    pub(crate) printed: Option<Vec<Printed>>,
}

/// A piece of a rule's output.
#[derive(Clone, Debug)]
pub(crate) enum Printed {
    Text(std::sync::Arc<str>),
    Value(Vec<i32>, TypeId),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    Returned,
}

type Ran<T> = Result<T, SiteId>;

impl<'a> Machine<'a> {
    pub(crate) fn new(
        slots: usize,
        routines: &'a [Routine],
        layout: &'a Layout,
        budget: Budget,
    ) -> Self {
        let memory = vec![UNDEFINED; slots];
        Machine {
            memory,
            routines,
            layout,
            symmetric: Vec::new(),
            fuel: MAX_LOOP_ROUNDS,
            budget,
            stopped: None,
            printed: None,
        }
    }

    #[inline]
    fn load(&self, at: u32, site: SiteId) -> Ran<i32> {
        match self.memory[at as usize] {
            UNDEFINED => Err(site),
            code => Ok(code),
        }
    }

    fn pair(&mut self, pair: &[Code; 2]) -> Ran<(i32, i32)> {
        let left = self.eval(&pair[0])?;
        Ok((left, self.eval(&pair[1])?))
    }

    pub(crate) fn eval(&mut self, code: &Code) -> Ran<i32> {
        Ok(match code {
            Code::Const(code) => *code,
            Code::Is { at, code, site } => i32::from(self.load(*at, *site)? == *code),
            Code::IsNot { at, code, site } => i32::from(self.load(*at, *site)? != *code),
            Code::And(all) => {
                for code in all {
                    if self.eval(code)? == 0 {
                        return Ok(0);
                    }
                }
                1
            }
            Code::Or(all) => {
                for code in all {
                    if self.eval(code)? != 0 {
                        return Ok(1);
                    }
                }
                0
            }
            Code::Load { at, site } => self.load(*at, *site)?,
            Code::LoadFrom { at, site } => {
                let at = self.address(at)?;
                self.load(at, *site)?
            }
            Code::Equal(pair) => {
                let (a, b) = self.pair(pair)?;
                i32::from(a == b)
            }
            Code::Unequal(pair) => {
                let (a, b) = self.pair(pair)?;
                i32::from(a != b)
            }
            Code::Less(pair) => {
                let (a, b) = self.pair(pair)?;
                i32::from(a < b)
            }
            Code::LessEqual(pair) => {
                let (a, b) = self.pair(pair)?;
                i32::from(a <= b)
            }
            Code::Add(pair, site) => self.arithmetic(pair, *site, i32::checked_add)?,
            Code::Subtract(pair, site) => self.arithmetic(pair, *site, i32::checked_sub)?,
            Code::Multiply(pair, site) => self.arithmetic(pair, *site, i32::checked_mul)?,
            Code::Divide(pair, site) => self.arithmetic(pair, *site, i32::checked_div)?,
            Code::Remainder(pair, site) => self.arithmetic(pair, *site, i32::checked_rem)?,
            Code::Not(inner) => i32::from(self.eval(inner)? == 0),
            Code::Conditional(parts) => {
                let chosen = if self.eval(&parts[0])? != 0 { &parts[1] } else { &parts[2] };
                self.eval(chosen)?
            }
            Code::Exists { slot, domain, body } => i32::from(self.any(*slot, domain, body, 1)?),
            Code::Forall { slot, domain, body } => i32::from(!self.any(*slot, domain, body, 0)?),
            Code::IsUndefined(at) => {
                let at = self.address(at)?;
                i32::from(self.memory[at as usize] == UNDEFINED)
            }
            Code::IsMember(value, pieces) => {
                let code = self.eval(value)?;
                i32::from(is_inside(pieces, code))
            }
            Code::Call(call) => {
                self.call(call)?;
                self.memory[call.result as usize]
            }
            Code::Count(scan) => {
                let mut count = 0;
                let base = self.address(&scan.multiset)?;
                for index in 0..scan.capacity {
                    count += i32::from(self.holds(scan, base, index)?);
                }
                count
            }
        })
    }

    fn arithmetic(
        &mut self,
        pair: &[Code; 2],
        site: SiteId,
        operation: fn(i32, i32) -> Option<i32>,
    ) -> Ran<i32> {
        let (a, b) = self.pair(pair)?;
        operation(a, b).filter(|&code| code != UNDEFINED).ok_or(site)
    }

    /// Checks whether a condition evaluates to `wanted` for some value of a range.
    fn any(&mut self, slot: u32, domain: &Range, body: &Code, wanted: i32) -> Ran<bool> {
        let mut found = false;
        self.each(slot, domain, |machine| {
            found = machine.eval(body)? == wanted;
            Ok(if found { Flow::Returned } else { Flow::Next })
        })?;
        Ok(found)
    }

    /// Counts one round of a loop of the rule, and fails if none is left.
    #[inline]
    fn burn(&mut self, site: SiteId) -> Ran<()> {
        self.fuel = self.fuel.checked_sub(1).ok_or(site)?;
        if self.fuel.is_multiple_of(ROUNDS_BETWEEN_CHECKS) {
            self.stopped = self.budget.check().err();
        }
        if self.stopped.is_some() { Err(site) } else { Ok(()) }
    }

    /// Calls a function for each value of a range, until it returns a result that ends the loop.
    fn each(
        &mut self,
        slot: u32,
        domain: &Range,
        mut work: impl FnMut(&mut Self) -> Ran<Flow>,
    ) -> Ran<Flow> {
        match domain {
            Range::Pieces { pieces, site } => {
                for piece in pieces {
                    for position in 0..piece.count {
                        self.burn(*site)?;
                        self.memory[slot as usize] = piece.first + position as i32;
                        if work(self)? == Flow::Returned {
                            return Ok(Flow::Returned);
                        }
                    }
                }
            }
            Range::Counted { from, to, by, site } => {
                let (mut next, to) = (i64::from(self.eval(from)?), i64::from(self.eval(to)?));
                let by = i64::from(self.eval(by)?);
                if by == 0 {
                    return Err(*site);
                }
                while if by > 0 { next <= to } else { next >= to } {
                    self.burn(*site)?;
                    self.memory[slot as usize] = next as i32;
                    if work(self)? == Flow::Returned {
                        return Ok(Flow::Returned);
                    }
                    next += by;
                }
            }
        }
        Ok(Flow::Next)
    }

    /// Runs a loop in every order of its rounds; fails if the results differ.
    ///
    /// If different orders of the same rounds have equal results, the search continues from them
    /// only once: for n rounds that do not depend on their order, n 2^(n-1) rounds are run instead
    /// of n n!.
    fn every_order(
        &mut self,
        slot: u32,
        pieces: &[Piece],
        body: &[Op],
        orders: &Orders,
    ) -> Ran<Flow> {
        /// Largest number of rounds of such a loop; the number of sets of rounds is exponential in
        /// it.
        const MAX_ROUNDS_ORDERED: usize = 8;
        /// Largest number of rounds that are run; all orders of five rounds need fewer.
        const MAX_ROUNDS_RUN: usize = 5_000;
        /// Largest number of slots in all copies of the memory together.
        const MAX_COPIED_SLOTS: usize = 1 << 24;
        let values = pieces.iter().flat_map(|p| (0..p.count).map(|i| p.first + i as i32));
        let values: Vec<i32> = values.collect();
        if values.len() > MAX_ROUNDS_ORDERED {
            return Err(orders.site);
        }
        let before = self.memory.clone();
        let flow = self.rounds(slot, &values, body)?;
        let after = self.memory.clone();
        let left = self.left(orders);
        let all = (1usize << values.len()) - 1;
        // For each set of rounds, its possible results, each with the memory after it.
        let mut reached: Vec<Vec<(Vec<i32>, Vec<i32>)>> = vec![Vec::new(); all + 1];
        reached[0].push((Vec::new(), before));
        let (mut work, mut copied) = (0, 0);
        for done in 0..all {
            for (_, memory) in std::mem::take(&mut reached[done]) {
                for (at, &value) in values.iter().enumerate() {
                    let then = done | 1 << at;
                    if then == done {
                        continue;
                    }
                    work += 1;
                    self.memory.copy_from_slice(&memory);
                    let ran = self.rounds(slot, &[value], body).map_err(|_| orders.site)?;
                    let now = self.left(orders);
                    if ran == Flow::Returned || then == all {
                        if ran != flow || now != left {
                            return Err(orders.site);
                        }
                    } else if reached[then].iter().all(|(known, _)| *known != now) {
                        copied += self.memory.len();
                        reached[then].push((now, self.memory.clone()));
                    }
                }
                if work > MAX_ROUNDS_RUN || copied > MAX_COPIED_SLOTS {
                    return Err(orders.site);
                }
            }
        }
        self.memory.copy_from_slice(&after);
        Ok(flow)
    }

    fn rounds(&mut self, slot: u32, values: &[i32], body: &[Op]) -> Ran<Flow> {
        for &value in values {
            self.memory[slot as usize] = value;
            if self.run(body)? == Flow::Returned {
                return Ok(Flow::Returned);
            }
        }
        Ok(Flow::Next)
    }

    /// Returns the result of a loop: the state, with its multisets sorted, and the other slots in
    /// use.
    fn left(&self, orders: &Orders) -> Vec<i32> {
        let mut left = self.memory[..self.layout.slots.len()].to_vec();
        self.layout.sort_bags(&mut left);
        for &(at, count) in &*orders.live {
            left.extend_from_slice(&self.memory[at as usize..(at + count) as usize]);
        }
        left
    }

    /// Checks whether an element is present and satisfies a condition.
    fn holds(&mut self, scan: &Scan, base: u32, index: u32) -> Ran<bool> {
        if self.memory[(base + index * scan.stride) as usize] == UNDEFINED {
            return Ok(false);
        }
        self.memory[scan.slot as usize] = index as i32;
        Ok(self.eval(&scan.condition)? != 0)
    }

    #[inline]
    pub(crate) fn address(&mut self, address: &Address) -> Ran<u32> {
        match address {
            Address::At(at) => Ok(*at),
            Address::Computed(computed) => self.computed(computed),
        }
    }

    fn computed(&mut self, computed: &Computed) -> Ran<u32> {
        let mut at = computed.base;
        if let Some(slot) = computed.reference {
            at += self.memory[slot as usize] as u32;
        }
        for term in &computed.terms {
            let code = self.eval(&term.index)?;
            let position = match &term.map {
                IndexMap::Inside { first } => (code - first) as u32,
                IndexMap::Checked(piece) => piece.position(code).ok_or(term.site)?,
                IndexMap::Pieces(pieces) => position(pieces, code).ok_or(term.site)?,
            };
            at += position * term.stride;
        }
        Ok(at)
    }

    fn fit(&self, code: i32, check: &Option<Fit>) -> Ran<()> {
        match check {
            Some(fit) if !is_inside(&fit.pieces, code) => Err(fit.site),
            _ => Ok(()),
        }
    }

    /// Calls a subprogram, which stores its result in the slot that the call names.
    fn call(&mut self, call: &Call) -> Ran<()> {
        for pass in &call.arguments {
            match pass {
                Pass::Address { slot, at } => {
                    let at = self.address(at)?;
                    self.memory[*slot as usize] = at as i32;
                }
                Pass::Value { slot, temporary, value, check } => {
                    let code = self.eval(value)?;
                    self.fit(code, check)?;
                    self.memory[*temporary as usize] = code;
                    self.memory[*slot as usize] = *temporary as i32;
                }
                Pass::Result { slot, temporary, count, call } => {
                    self.call(call)?;
                    let from = call.result as usize;
                    self.memory.copy_within(from..from + *count as usize, *temporary as usize);
                    self.memory[*slot as usize] = *temporary as i32;
                }
            }
        }
        let routine = &self.routines[call.function as usize];
        self.undefine(&routine.locals);
        match (self.run(&routine.body)?, routine.no_return) {
            (Flow::Next, Some(site)) => Err(site),
            _ => Ok(()),
        }
    }

    pub(crate) fn undefine(&mut self, areas: &[(u32, u32)]) {
        for &(at, count) in areas {
            self.memory[at as usize..(at + count) as usize].fill(UNDEFINED);
        }
    }

    /// Binds aliases, and checks whether the chosen elements are present.
    pub(crate) fn prepare(&mut self, prelude: &[Op], chosen: &[Chosen]) -> Ran<bool> {
        let mut done = 0;
        for choice in chosen {
            self.run(&prelude[done..choice.after])?;
            done = choice.after;
            let base = self.address(&choice.multiset)?;
            let index = self.eval(&choice.index)? as u32;
            if self.memory[(base + index * choice.stride) as usize] == UNDEFINED {
                return Ok(false);
            }
        }
        self.run(&prelude[done..])?;
        Ok(true)
    }

    pub(crate) fn run(&mut self, ops: &[Op]) -> Ran<Flow> {
        for op in ops {
            if self.step(op)? == Flow::Returned {
                return Ok(Flow::Returned);
            }
        }
        Ok(Flow::Next)
    }

    fn step(&mut self, op: &Op) -> Ran<Flow> {
        match op {
            Op::Set { at, code } => self.memory[*at as usize] = *code,
            Op::Assign { at, value, check } => {
                let code = self.eval(value)?;
                self.fit(code, check)?;
                let at = self.address(at)?;
                self.memory[at as usize] = code;
            }
            Op::Copy { to, from, count } => {
                let (from, to) = (self.address(from)? as usize, self.address(to)? as usize);
                self.memory.copy_within(from..from + *count as usize, to);
            }
            Op::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.eval(condition)? != 0 {
                        return self.run(body);
                    }
                }
                return self.run(otherwise);
            }
            Op::Switch { subject, cases, otherwise } => {
                let code = self.eval(subject)?;
                for (labels, body) in cases {
                    for label in labels {
                        if self.eval(label)? == code {
                            return self.run(body);
                        }
                    }
                }
                return self.run(otherwise);
            }
            Op::For { slot, domain: Range::Pieces { pieces, .. }, body, orders: Some(orders) }
                if orders.over.iter().any(|ty| self.symmetric.contains(ty)) =>
            {
                return self.every_order(*slot, pieces, body, orders);
            }
            Op::For { slot, domain, body, .. } => {
                return self.each(*slot, domain, |machine| machine.run(body));
            }
            Op::While { condition, body, site } => {
                let mut rounds = 0;
                while self.eval(condition)? != 0 {
                    if rounds == MAX_WHILE_ROUNDS {
                        return Err(*site);
                    }
                    self.burn(*site)?;
                    rounds += 1;
                    if self.run(body)? == Flow::Returned {
                        return Ok(Flow::Returned);
                    }
                }
            }
            Op::Bind { slot, at } => {
                let at = self.address(at)?;
                self.memory[*slot as usize] = at as i32;
            }
            Op::Call(call) => self.call(call)?,
            Op::Return => return Ok(Flow::Returned),
            Op::Fill { at, codes } => {
                let at = self.address(at)? as usize;
                self.memory[at..at + codes.len()].copy_from_slice(codes);
            }
            Op::Add { multiset, capacity, stride, element, site } => {
                let value = match element {
                    Element::Value { value, check } => {
                        let code = self.eval(value)?;
                        self.fit(code, check)?;
                        Ok(code)
                    }
                    Element::Copy { from } => Err(self.address(from)?),
                    Element::Result(call) => {
                        self.call(call)?;
                        Err(call.result)
                    }
                };
                let base = self.address(multiset)?;
                let free = (0..*capacity)
                    .map(|index| (base + index * stride) as usize)
                    .find(|&at| self.memory[at] == UNDEFINED)
                    .ok_or(*site)?;
                self.memory[free] = 1;
                match value {
                    Ok(code) => self.memory[free + 1] = code,
                    Err(from) => {
                        let from = from as usize;
                        let count = *stride as usize - 1;
                        self.memory.copy_within(from..from + count, free + 1);
                    }
                }
            }
            Op::Remove { multiset, capacity, stride, index, site } => {
                let base = self.address(multiset)?;
                let index = self.eval(index)? as u32;
                let at = (base + index * stride) as usize;
                if index >= *capacity || self.memory[at] == UNDEFINED {
                    return Err(*site);
                }
                self.memory[at..at + *stride as usize].fill(UNDEFINED);
            }
            Op::RemovePred(scan) => {
                let base = self.address(&scan.multiset)?;
                for index in 0..scan.capacity {
                    if self.holds(scan, base, index)? {
                        let at = (base + index * scan.stride) as usize;
                        self.memory[at..at + scan.stride as usize].fill(UNDEFINED);
                    }
                }
            }
            Op::Fail(site) => return Err(*site),
            Op::Assert { condition, site } => {
                if self.eval(condition)? == 0 {
                    return Err(*site);
                }
            }
            Op::Put(put) => {
                let printed = match put {
                    Put::Text(text) => Printed::Text(text.clone()),
                    Put::Value { value, ty } => Printed::Value(vec![self.eval(value)?], *ty),
                    Put::Place { at, count, ty } => {
                        let at = self.address(at)? as usize;
                        Printed::Value(self.memory[at..at + *count as usize].to_vec(), *ty)
                    }
                };
                if let Some(all) = &mut self.printed {
                    all.push(printed);
                }
            }
        }
        Ok(Flow::Next)
    }
}

/// Advances to the next permutation; after the last one, starts again with the first and returns
/// `false`.
pub(crate) fn next_order<T: Ord>(order: &mut [T]) -> bool {
    let Some(at) = (1..order.len()).rev().find(|&at| order[at - 1] < order[at]) else {
        order.reverse();
        return false;
    };
    let swap = (at..order.len()).rev().find(|&other| order[other] > order[at - 1]);
    order.swap(at - 1, swap.expect("the one after is greater"));
    order[at..].reverse();
    true
}

fn is_inside(pieces: &[Piece], code: i32) -> bool {
    pieces.iter().any(|piece| piece.position(code).is_some())
}

/// Returns the position of a code in a type.
pub(crate) fn position(pieces: &[Piece], code: i32) -> Option<u32> {
    let mut before = 0;
    for piece in pieces {
        if let Some(position) = piece.position(code) {
            return Some(before + position);
        }
        before += piece.count;
    }
    None
}
