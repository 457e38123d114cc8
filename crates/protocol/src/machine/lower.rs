//! Lowering of a checked program to code with addresses.
//!
//! With tracking, slots of the data type hold labels instead of values: a label denotes the
//! location, or the store of the current rule, from which the contents come. So copies need no
//! special code. Assertions and invariants that read data are omitted; they are checked only
//! without tracking.
//!
//! Start states run on concrete data even with tracking, because only then it is known which
//! initial values are equal. Therefore subprograms are lowered twice, once with labels for rules
//! and once with data for start states.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::machine::code::{
    Address, Call, Chosen, Claim, Code, Computed, Element, FaultKind, Fit, IndexMap, Instance,
    MarkCode, MarkWhat, Op, Orders, Pass, Put, Range, Routine, RuleCode, Scan, Site, SiteId, Term,
    UNDEFINED,
};
use crate::machine::run::{MAX_LOOP_ROUNDS, MAX_WHILE_ROUNDS};
use crate::murphi::commute::Symmetric;
use crate::murphi::flow;
use crate::murphi::ir::{
    Argument, Binder, Domain, Expr, ExprKind, Function, Invariant, MarkKind, Place, PlaceStep,
    Program, Role, Rule, Stmt, StmtKind, VarId,
};
use crate::murphi::{BinaryOp, Span, Type, TypeId, Types};

/// Largest number of instances of a rule or invariant that have separate code each.
const MAX_SPECIALISED_RULES: usize = 2000;

/// Label of the value of a rule's first store; the second store has the next label.
pub(crate) const STORE_LABEL: i32 = 1 << 24;
/// Label of cleared data.
pub(crate) const CLEARED_LABEL: i32 = 1 << 26;

/// All code of a system.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// Rules, sorted by priority number.
    pub(crate) rules: Vec<Instance>,
    /// End of the rules of each priority.
    pub(crate) priority_ends: Vec<usize>,
    pub(crate) starts: Vec<Instance>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) routines: Vec<Routine>,
    pub(crate) sites: Vec<Site>,
    /// For the site of each doubtful loop, the scalarsets that the loop ranges over.
    pub(crate) loops: FxHashMap<SiteId, Vec<TypeId>>,
    /// Number of slots; the state's slots come first.
    pub(crate) slots: u32,
}

/// Lowers a program, with tracking of a data type if one is given.
pub(crate) fn lower(
    program: &Program,
    text: &str,
    data: Option<TypeId>,
    symmetric: &Symmetric,
) -> Lowered {
    let mut next = 0u32;
    let mut place = |count: u32| {
        let at = next;
        next = next.saturating_add(count);
        at
    };
    let mut addresses = vec![0; program.variables.len()];
    for &VarId(var) in &program.globals {
        addresses[var as usize] = place(program.types.slots(program.variables[var as usize].ty));
    }
    for (variable, address) in program.variables.iter().zip(&mut addresses) {
        match variable.role {
            Role::Global => {}
            Role::Local => *address = place(program.types.slots(variable.ty)),
            Role::Value => *address = place(1),
            // The slot after its own one has room for an argument without an address.
            Role::Reference { .. } => *address = place(1 + program.types.slots(variable.ty)),
        }
    }
    let mut lowerer = Lowerer {
        program,
        types: &program.types,
        text,
        data,
        symmetric,
        live: Arc::default(),
        addresses,
        sites: Vec::new(),
        known_sites: FxHashMap::default(),
        loops: FxHashMap::default(),
        values: FxHashMap::default(),
        places: FxHashMap::default(),
        erased: data,
        first_routine: 0,
        copies: 1,
    };
    let mut routines = lowerer.routines();
    let mut rules = lowerer.rules(&program.rules);
    rules.sort_by_key(|instance| program.rules[instance.rule as usize].priority);
    let priority = |instance: &Instance| program.rules[instance.rule as usize].priority;
    let priority_ends = rules
        .chunk_by(|a, b| priority(a) == priority(b))
        .scan(0, |end, chunk| {
            *end += chunk.len();
            Some(*end)
        })
        .collect();
    if data.is_some() {
        lowerer.data = None;
        lowerer.first_routine = routines.len() as u32;
        routines.extend(lowerer.routines());
    }
    let starts = lowerer.rules(&program.starts);
    lowerer.data = data;
    lowerer.first_routine = 0;
    let mut claims = Vec::new();
    for (invariant, number) in program.invariants.iter().zip(0..) {
        lowerer.claims(invariant, number, &mut claims);
    }
    Lowered {
        priority_ends,
        rules,
        starts,
        claims,
        routines,
        sites: lowerer.sites,
        loops: lowerer.loops,
        slots: next,
    }
}

/// An iteration over the rules of a state; only enabled rules of the least priority fire.
pub(crate) struct ByPriority<'a> {
    ends: &'a [usize],
    is_enabled: bool,
}

impl Lowered {
    /// Starts an iteration over the rules.
    pub(crate) fn by_priority(&self) -> ByPriority<'_> {
        ByPriority { ends: &self.priority_ends, is_enabled: false }
    }
}

impl ByPriority<'_> {
    /// Checks whether a rule may still fire; must be called for the rules in their order.
    #[inline]
    pub(crate) fn admits(&mut self, rule: usize) -> bool {
        while let [end, rest @ ..] = self.ends
            && rule >= *end
        {
            if self.is_enabled {
                return false;
            }
            self.ends = rest;
        }
        true
    }

    /// Records that the last rule was enabled.
    #[inline]
    pub(crate) fn fired(&mut self) {
        self.is_enabled = true;
    }
}

struct Lowerer<'a> {
    program: &'a Program,
    types: &'a Types,
    text: &'a str,
    /// The data type, while its slots hold labels.
    data: Option<TypeId>,
    /// The data type, if rules run with labels; also set in start states, which run on data.
    erased: Option<TypeId>,
    /// Index of the first subprogram's routine; the routines for start states come after those for
    /// rules.
    first_routine: u32,
    symmetric: &'a Symmetric,
    /// Slots that may be in use while a subprogram or rule runs.
    live: Arc<[(u32, u32)]>,
    /// Address of each variable.
    addresses: Vec<u32>,
    sites: Vec<Site>,
    known_sites: FxHashMap<Site, SiteId>,
    loops: FxHashMap<SiteId, Vec<TypeId>>,
    /// Parameters that are built into the code.
    values: FxHashMap<VarId, i32>,
    /// Aliases whose address is known.
    places: FxHashMap<VarId, u32>,
    /// Number of copies into which the current expression is expanded.
    copies: u32,
}

impl Lowerer<'_> {
    fn site(&mut self, span: Span, kind: FaultKind) -> SiteId {
        let site = Site { span, kind };
        if let Some(&id) = self.known_sites.get(&site) {
            return id;
        }
        let id = SiteId(self.sites.len() as u32);
        self.sites.push(site.clone());
        self.known_sites.insert(site, id);
        id
    }

    fn text(&self, span: Span) -> String {
        const MAX_SHOWN_CHARS: usize = 60;
        let text = &self.text[span.start as usize..span.end as usize];
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.chars().count() <= MAX_SHOWN_CHARS {
            return text;
        }
        text.chars().take(MAX_SHOWN_CHARS).chain("...".chars()).collect()
    }

    fn undefined(&mut self, place: &Place) -> SiteId {
        let text = self.text(place.span);
        self.site(place.span, FaultKind::Undefined { place: text })
    }

    fn address_of(&self, var: VarId) -> u32 {
        self.addresses[var.0 as usize]
    }

    // ---- rules ----

    /// Lowers all subprograms.
    ///
    /// A subprogram is called only by later ones, whose locals are in use while it runs.
    fn routines(&mut self) -> Vec<Routine> {
        let functions = &self.program.functions;
        let mut routines = Vec::new();
        for (number, function) in functions.iter().enumerate() {
            self.live = self.in_use(number);
            routines.push(self.routine(function));
        }
        self.live = self.in_use(functions.len());
        routines
    }

    fn rules(&mut self, rules: &[Rule]) -> Vec<Instance> {
        let count: usize = rules.iter().map(|rule| self.choices(&rule.binders)).sum();
        let mut instances = Vec::new();
        for (rule, number) in rules.iter().zip(0..) {
            let mut shared = None;
            let mut choice = vec![0; rule.binders.len()];
            loop {
                let parameters = self.parameters(&rule.binders, &choice, rule);
                if count <= MAX_SPECIALISED_RULES {
                    self.bind(&rule.binders, &parameters);
                    let code = Arc::new(self.rule(rule));
                    let set = Vec::new();
                    instances.push(Instance { rule: number, parameters, set, code });
                } else {
                    let code = shared.get_or_insert_with(|| {
                        self.values.clear();
                        self.places.clear();
                        Arc::new(self.rule(rule))
                    });
                    let code = Arc::clone(code);
                    let set = self.settings(&rule.binders, &parameters);
                    instances.push(Instance { rule: number, parameters, set, code });
                }
                if !self.advance(&rule.binders, &mut choice) {
                    break;
                }
            }
            // A ruleset over an empty type has no rules.
            if self.choices(&rule.binders) == 0 {
                instances.pop();
            }
        }
        self.values.clear();
        self.places.clear();
        instances
    }

    /// Counts the values of a binder; with tracking, a binder of data has only one.
    fn width(&self, binder: &Binder) -> usize {
        match binder {
            Binder::Quantifier { var, .. } if self.is_data(self.ty(*var)) => 1,
            Binder::Quantifier { values, .. } => values.len(),
            Binder::Choose { multiset, .. } => match self.types.get(multiset.ty) {
                Type::Multiset { capacity, .. } => *capacity as usize,
                _ => 0,
            },
            Binder::Alias { .. } | Binder::AliasValue { .. } => 1,
        }
    }

    fn choices(&self, binders: &[Binder]) -> usize {
        binders.iter().fold(1, |product, binder| product.saturating_mul(self.width(binder)))
    }

    fn advance(&self, binders: &[Binder], choice: &mut [usize]) -> bool {
        for (binder, at) in binders.iter().zip(choice).rev() {
            *at += 1;
            if *at < self.width(binder) {
                return true;
            }
            *at = 0;
        }
        false
    }

    /// Returns the value of each binder; an alias has no value and counts as 0.
    fn parameters(&self, binders: &[Binder], choice: &[usize], rule: &Rule) -> Vec<i32> {
        let values = binders.iter().zip(choice).map(|(binder, &at)| match binder {
            Binder::Quantifier { var, .. } if self.is_data(self.ty(*var)) => {
                self.label_of(*var, rule)
            }
            Binder::Quantifier { values, .. } => values.get(at).copied().unwrap_or(0),
            Binder::Choose { .. } => at as i32,
            Binder::Alias { .. } | Binder::AliasValue { .. } => 0,
        });
        values.collect()
    }

    /// Returns the label of a ruleset's value of the data type.
    fn label_of(&self, var: VarId, rule: &Rule) -> i32 {
        let stores = rule.marks.iter().filter_map(|mark| match mark.kind {
            MarkKind::Store { value } => Some(value),
            _ => None,
        });
        stores
            .zip(STORE_LABEL..)
            .find(|&(value, _)| value == var)
            .map_or(CLEARED_LABEL, |(_, label)| label)
    }

    fn bind(&mut self, binders: &[Binder], parameters: &[i32]) {
        self.values.clear();
        self.places.clear();
        for (binder, &value) in binders.iter().zip(parameters) {
            if let Binder::Quantifier { var, .. } | Binder::Choose { var, .. } = binder {
                self.values.insert(*var, value);
            }
        }
    }

    fn settings(&self, binders: &[Binder], parameters: &[i32]) -> Vec<(u32, i32)> {
        let set = binders.iter().zip(parameters).filter_map(|(binder, &value)| match binder {
            Binder::Quantifier { var, .. } | Binder::Choose { var, .. } => {
                Some((self.address_of(*var), value))
            }
            Binder::Alias { .. } | Binder::AliasValue { .. } => None,
        });
        set.collect()
    }

    fn rule(&mut self, rule: &Rule) -> RuleCode {
        let (prelude, chosen) = self.prelude(&rule.binders);
        let guard = rule.guard.as_ref().map(|guard| self.expr(guard));
        let mut marks = Vec::new();
        if self.data.is_some() {
            for mark in &rule.marks {
                let kind = match &mark.kind {
                    MarkKind::Store { .. } => MarkWhat::Store,
                    MarkKind::Load { from } => MarkWhat::Load(self.address(from)),
                    MarkKind::Serialize { from } => MarkWhat::Serialize(self.address(from)),
                };
                let mut name = |expr: &Option<Expr>| {
                    expr.as_ref().map(|expr| {
                        let fit = self.fit_into(expr.ty, expr);
                        (self.expr(expr), fit)
                    })
                };
                let (proc, block) = (name(&mark.proc), name(&mark.block));
                marks.push(MarkCode { kind, proc, block });
            }
        }
        let locals = self.areas(&rule.locals);
        let body = self.stmts(&rule.body);
        RuleCode { prelude, chosen, guard, locals, body, marks }
    }

    fn prelude(&mut self, binders: &[Binder]) -> (Vec<Op>, Vec<Chosen>) {
        let (mut prelude, mut chosen) = (Vec::new(), Vec::new());
        for binder in binders {
            match binder {
                Binder::Quantifier { .. } => {}
                Binder::Alias { .. } | Binder::AliasValue { .. } => {
                    prelude.extend(self.alias(binder));
                }
                Binder::Choose { var, multiset } => {
                    let stride = self.multiset(multiset.ty).1;
                    let index = match self.values.get(var) {
                        Some(&value) => Code::Const(value),
                        None => self.variable(*var),
                    };
                    let multiset = self.address(multiset);
                    chosen.push(Chosen { after: prelude.len(), multiset, index, stride });
                }
            }
        }
        (prelude, chosen)
    }

    /// Binds an alias; returns an operation if its address is not known.
    fn alias(&mut self, binder: &Binder) -> Option<Op> {
        match binder {
            Binder::Alias { var, place } if self.values.contains_key(&place.root) => {
                let value = self.values[&place.root];
                self.values.insert(*var, value);
                None
            }
            Binder::Alias { var, place } => match self.address(place) {
                Address::At(at) => {
                    self.places.insert(*var, at);
                    None
                }
                at => {
                    self.places.remove(var);
                    Some(Op::Bind { slot: self.address_of(*var), at })
                }
            },
            Binder::AliasValue { var, value } => {
                let (at, value) = (Address::At(self.address_of(*var)), self.expr(value));
                Some(Op::Assign { at, value, check: None })
            }
            Binder::Quantifier { .. } | Binder::Choose { .. } => None,
        }
    }

    fn claims(&mut self, invariant: &Invariant, number: u32, out: &mut Vec<Claim>) {
        if let Some(data) = self.data
            && flow::mentions_data(self.program, data, &invariant.condition)
        {
            return;
        }
        let is_special = self.choices(&invariant.binders) <= MAX_SPECIALISED_RULES;
        if self.choices(&invariant.binders) == 0 {
            return;
        }
        let mut choice = vec![0; invariant.binders.len()];
        loop {
            let values = invariant.binders.iter().zip(&choice).map(|(binder, &at)| match binder {
                Binder::Quantifier { values, .. } => values[at],
                Binder::Choose { .. } => at as i32,
                _ => 0,
            });
            let parameters: Vec<i32> = values.collect();
            let set = if is_special {
                self.bind(&invariant.binders, &parameters);
                Vec::new()
            } else {
                self.settings(&invariant.binders, &parameters)
            };
            let (prelude, chosen) = self.prelude(&invariant.binders);
            let condition = self.expr(&invariant.condition);
            out.push(Claim { invariant: number, parameters, set, prelude, chosen, condition });
            if !self.advance(&invariant.binders, &mut choice) {
                break;
            }
        }
        self.values.clear();
        self.places.clear();
    }

    /// Lists the locals of all rules and of the subprograms from a given number on.
    fn in_use(&self, from: usize) -> Arc<[(u32, u32)]> {
        let program = self.program;
        let subprograms = program.functions[from..].iter();
        let variables =
            subprograms.flat_map(|function| function.locals.iter().chain(&function.result));
        let rules = program.rules.iter().chain(&program.starts).flat_map(|rule| &rule.locals);
        self.areas(&variables.chain(rules).copied().collect::<Vec<_>>()).into()
    }

    fn areas(&self, variables: &[VarId]) -> Vec<(u32, u32)> {
        let areas =
            variables.iter().map(|&var| (self.address_of(var), self.types.slots(self.ty(var))));
        areas.collect()
    }

    fn routine(&mut self, function: &Function) -> Routine {
        let no_return = function.result.map(|_| {
            let name = function.name.to_string();
            self.site(function.span, FaultKind::NoReturn { function: name })
        });
        let locals = self.areas(&function.locals);
        // The type of the function determines where a return stores the result.
        let body = self.stmts_of(&function.body, function.result);
        Routine { locals, body, no_return }
    }

    // ---- statements ----

    fn stmts(&mut self, stmts: &[Stmt]) -> Vec<Op> {
        self.stmts_of(stmts, None)
    }

    fn stmts_of(&mut self, stmts: &[Stmt], result: Option<VarId>) -> Vec<Op> {
        let mut ops = Vec::new();
        for stmt in stmts {
            self.stmt(stmt, result, &mut ops);
        }
        ops
    }

    fn stmt(&mut self, stmt: &Stmt, result: Option<VarId>, ops: &mut Vec<Op>) {
        let op = match &stmt.kind {
            StmtKind::Assign { target, value } => {
                let to = self.address(target);
                return self.assign(to, target.ty, value, ops);
            }
            StmtKind::If { branches, otherwise } => {
                // Such a condition only leads to errors; the analysis refuses all others.
                let reads =
                    |e: &Expr| self.data.is_some_and(|d| flow::reads_data(self.program, d, e));
                if branches.iter().any(|(condition, _)| reads(condition)) {
                    return;
                }
                let mut lowered = Vec::new();
                for (condition, body) in branches {
                    let condition = self.expr(condition);
                    lowered.push((condition, self.stmts_of(body, result)));
                }
                let otherwise = self.stmts_of(otherwise, result);
                Op::If { branches: lowered.into(), otherwise }
            }
            StmtKind::Switch { subject, cases, otherwise } => {
                let subject = self.expr(subject);
                let mut lowered = Vec::new();
                for (labels, body) in cases {
                    let labels = labels.iter().map(|label| self.expr(label)).collect();
                    lowered.push((labels, self.stmts_of(body, result)));
                }
                let otherwise = self.stmts_of(otherwise, result);
                Op::Switch { subject, cases: lowered.into(), otherwise }
            }
            StmtKind::For { var, domain, body } => {
                let domain = self.range(domain, stmt.span);
                let body = self.stmts_of(body, result);
                // The values of an erased data type are not permuted.
                let is_permuted = self.erased.is_none_or(|data| self.ty(*var) != data);
                let doubtful = self.symmetric.doubtful.get(var).filter(|_| is_permuted);
                let orders = doubtful.map(|over| {
                    let site = self.site(stmt.span, FaultKind::OrderedLoop);
                    self.loops.insert(site, over.clone());
                    Orders { site, over: over[..].into(), live: Arc::clone(&self.live) }
                });
                Op::For { slot: self.address_of(*var), domain, body, orders }
            }
            StmtKind::While { condition, body } => {
                let site = self.site(stmt.span, FaultKind::EndlessLoop { limit: MAX_WHILE_ROUNDS });
                let condition = self.expr(condition);
                Op::While { condition, body: self.stmts_of(body, result), site }
            }
            StmtKind::Alias { aliases, body } => {
                for alias in aliases {
                    ops.extend(self.alias(alias));
                }
                ops.extend(self.stmts_of(body, result));
                return;
            }
            StmtKind::Call { function, arguments } => {
                Op::Call(Box::new(self.call(function.0, arguments)))
            }
            StmtKind::Return(value) => {
                if let (Some(value), Some(result)) = (value, result) {
                    let to = Address::At(self.address_of(result));
                    self.assign(to, self.ty(result), value, ops);
                }
                Op::Return
            }
            StmtKind::Undefine(place) => {
                let codes = vec![UNDEFINED; self.types.slots(place.ty) as usize].into();
                Op::Fill { at: self.address(place), codes }
            }
            StmtKind::Clear(place) => {
                let mut codes = Vec::new();
                self.cleared(place.ty, &mut codes);
                Op::Fill { at: self.address(place), codes: codes.into() }
            }
            StmtKind::Add { element, multiset } => {
                let (capacity, stride, ty) = self.multiset(multiset.ty);
                let site = self.site(stmt.span, FaultKind::MultisetFull { capacity });
                let element = match &element.kind {
                    _ if self.types.is_simple(ty) => {
                        let check = self.fit(ty, element);
                        Element::Value { value: self.expr(element), check }
                    }
                    ExprKind::Read(place) => Element::Copy { from: self.address(place) },
                    ExprKind::Call { function, arguments } => {
                        Element::Result(self.call(function.0, arguments))
                    }
                    _ => return,
                };
                let multiset = self.address(multiset);
                Op::Add { multiset, capacity, stride, element, site }
            }
            StmtKind::Remove { index, multiset } => {
                let (capacity, stride, _) = self.multiset(multiset.ty);
                let site = self.site(stmt.span, FaultKind::NoElement);
                let (multiset, index) = (self.address(multiset), self.expr(index));
                Op::Remove { multiset, capacity, stride, index, site }
            }
            StmtKind::RemovePred { var, multiset, condition } => {
                Op::RemovePred(Box::new(self.scan(*var, multiset, condition)))
            }
            StmtKind::Error(message) => {
                let message = message.to_string();
                Op::Fail(self.site(stmt.span, FaultKind::Error { message }))
            }
            StmtKind::Assert { condition, message } => {
                if self.is_about_data(condition) {
                    return;
                }
                let message = match message {
                    Some(message) => message.to_string(),
                    None => self.text(condition.span),
                };
                let site = self.site(stmt.span, FaultKind::Assertion { message });
                Op::Assert { condition: self.expr(condition), site }
            }
            StmtKind::PutText(text) => Op::Put(Put::Text(text.clone())),
            StmtKind::PutValue(value) => {
                if self.is_about_data(value) {
                    return;
                }
                Op::Put(match &value.kind {
                    ExprKind::Read(place) => Put::Place {
                        at: self.address(place),
                        count: self.types.slots(value.ty),
                        ty: value.ty,
                    },
                    _ => Put::Value { value: self.expr(value), ty: value.ty },
                })
            }
        };
        ops.push(op);
    }

    /// Checks whether a check reads data, which tracking has erased.
    fn is_about_data(&self, condition: &Expr) -> bool {
        self.data.is_some_and(|data| flow::mentions_data(self.program, data, condition))
    }

    fn assign(&mut self, to: Address, ty: TypeId, value: &Expr, ops: &mut Vec<Op>) {
        if self.types.is_simple(ty) {
            let check = self.fit(ty, value);
            // A parameter may be bound to `undefined`, which is copied like a value.
            if let ExprKind::Read(place) = &value.kind
                && check.is_none()
                && self.is_value_parameter(place)
            {
                let from = self.address(place);
                return ops.push(Op::Copy { to, from, count: 1 });
            }
            let value = self.expr(value);
            ops.push(match (to, value, &check) {
                (Address::At(at), Code::Const(code), None) => Op::Set { at, code },
                (at, value, _) => Op::Assign { at, value, check },
            });
            return;
        }
        let count = self.types.slots(ty);
        match &value.kind {
            ExprKind::Read(place) => {
                let from = self.address(place);
                ops.push(Op::Copy { to, from, count });
            }
            ExprKind::Call { function, arguments } => {
                let call = self.call(function.0, arguments);
                let from = Address::At(call.result);
                ops.push(Op::Call(Box::new(call)));
                ops.push(Op::Copy { to, from, count });
            }
            _ => {}
        }
    }

    /// Checks whether a place is a whole parameter without `var`.
    fn is_value_parameter(&self, place: &Place) -> bool {
        let role = self.program.variables[place.root.0 as usize].role;
        role == Role::Reference { is_writable: false }
            && place.steps.is_empty()
            && self.program.functions.iter().any(|function| function.params.contains(&place.root))
    }

    /// Lists the codes to which `clear` sets slots: the least value of each simple type.
    fn cleared(&self, ty: TypeId, out: &mut Vec<i32>) {
        match self.types.get(ty) {
            _ if self.is_data(ty) => out.push(CLEARED_LABEL),
            Type::Record(fields) => fields.iter().for_each(|field| self.cleared(field.ty, out)),
            Type::Array { index, element } => {
                for _ in 0..self.types.count(*index) {
                    self.cleared(*element, out);
                }
            }
            Type::Multiset { .. } => {
                out.extend(std::iter::repeat_n(UNDEFINED, self.types.slots(ty) as usize));
            }
            _ => out.push(self.types.pieces(ty).first().map_or(0, |piece| piece.first)),
        }
    }

    fn is_data(&self, ty: TypeId) -> bool {
        self.data == Some(ty)
    }

    fn ty(&self, var: VarId) -> TypeId {
        self.program.variables[var.0 as usize].ty
    }

    /// Returns the capacity, stride and element type of a multiset.
    fn multiset(&self, ty: TypeId) -> (u32, u32, TypeId) {
        match *self.types.get(ty) {
            Type::Multiset { capacity, element } => {
                (capacity, 1 + self.types.slots(element), element)
            }
            _ => (0, 1, Types::ERROR),
        }
    }

    fn scan(&mut self, var: VarId, multiset: &Place, condition: &Expr) -> Scan {
        let (capacity, stride, _) = self.multiset(multiset.ty);
        let multiset = self.address(multiset);
        let condition = self.expr(condition);
        Scan { multiset, capacity, stride, slot: self.address_of(var), condition }
    }

    fn range(&mut self, domain: &Domain, span: Span) -> Range {
        match domain {
            Domain::Type(ty) => {
                let site = self.site(span, FaultKind::EndlessLoop { limit: MAX_LOOP_ROUNDS });
                Range::Pieces { pieces: self.types.pieces(*ty).into(), site }
            }
            Domain::Counted { from, to, by } => {
                let site = self.site(span, FaultKind::EndlessLoop { limit: MAX_LOOP_ROUNDS });
                let (from, to, by) = (self.expr(from), self.expr(to), self.expr(by));
                Range::Counted { from, to, by, site }
            }
        }
    }

    /// Returns the check that a value of one type needs before it is stored as another one, if any.
    fn fit(&mut self, ty: TypeId, value: &Expr) -> Option<Fit> {
        if self.types.includes(ty, value.ty) || self.is_data(ty) {
            return None;
        }
        let fit = self.fit_into(ty, value);
        match crate::murphi::fold(value) {
            Some(code) if fit.pieces.iter().any(|piece| piece.position(code).is_some()) => None,
            _ => Some(fit),
        }
    }

    fn fit_into(&mut self, ty: TypeId, value: &Expr) -> Fit {
        let kind = FaultKind::OutOfRange { value: self.text(value.span), ty: self.types.show(ty) };
        let site = self.site(value.span, kind);
        Fit { pieces: self.types.pieces(ty).into(), site }
    }

    // ---- places and calls ----

    fn address(&mut self, place: &Place) -> Address {
        let mut reference = None;
        let mut base = match (self.program.variables[place.root.0 as usize].role, place.root) {
            (Role::Reference { .. }, root) => match self.places.get(&root) {
                Some(&at) => at,
                None => {
                    reference = Some(self.address_of(root));
                    0
                }
            },
            (_, root) => self.address_of(root),
        };
        let mut terms = Vec::new();
        for step in &place.steps {
            let (index, map, stride, extra) = match step {
                PlaceStep::Field(offset) => {
                    base += offset;
                    continue;
                }
                PlaceStep::Index { index, over, stride } => {
                    let pieces = self.types.pieces(*over);
                    let is_inside = self.types.includes(*over, index.ty);
                    let map = match pieces[..] {
                        [piece] if is_inside => IndexMap::Inside { first: piece.first },
                        [piece] => IndexMap::Checked(piece),
                        _ => IndexMap::Pieces(pieces.into()),
                    };
                    (index, map, *stride, 0)
                }
                PlaceStep::Element { index, stride } => {
                    (index, IndexMap::Inside { first: 0 }, *stride, 1)
                }
            };
            base += extra;
            let site = match step {
                PlaceStep::Index { index, over, .. } => self.fit_into(*over, index).site,
                _ => self.site(place.span, FaultKind::NoElement),
            };
            let index = self.expr(index);
            let constant = match (&index, &map) {
                (Code::Const(code), IndexMap::Inside { first }) => Some((code - first) as u32),
                (Code::Const(code), IndexMap::Checked(piece)) => piece.position(*code),
                (Code::Const(code), IndexMap::Pieces(pieces)) => {
                    crate::machine::run::position(pieces, *code)
                }
                _ => None,
            };
            match constant {
                Some(position) => base += position * stride,
                None => terms.push(Term { index, map, stride, site }),
            }
        }
        if reference.is_none() && terms.is_empty() {
            return Address::At(base);
        }
        Address::Computed(Box::new(Computed { base, reference, terms: terms.into() }))
    }

    fn call(&mut self, function: u32, arguments: &[Argument]) -> Call {
        let declared = &self.program.functions[function as usize];
        let mut passes = Vec::new();
        for (&param, argument) in declared.params.iter().zip(arguments) {
            let slot = self.address_of(param);
            let ty = self.ty(param);
            passes.push(match argument {
                Argument::Place(place) => match self.known(place) {
                    Some(value) => Pass::Value { slot, temporary: slot + 1, value, check: None },
                    None => Pass::Address { slot, at: self.address(place) },
                },
                Argument::Value(value) => match &value.kind {
                    ExprKind::Call { function, arguments } if !self.types.is_simple(ty) => {
                        Pass::Result {
                            slot,
                            temporary: slot + 1,
                            count: self.types.slots(ty),
                            call: self.call(function.0, arguments),
                        }
                    }
                    _ => {
                        let check = self.fit(ty, value);
                        let value = self.expr(value);
                        Pass::Value { slot, temporary: slot + 1, value, check }
                    }
                },
            });
        }
        let result = declared.result.map_or(0, |result| self.address_of(result));
        Call { function: self.first_routine + function, arguments: passes.into(), result }
    }

    /// Returns the value of a parameter that is built into the code.
    fn known(&self, place: &Place) -> Option<Code> {
        self.values.get(&place.root).map(|&value| Code::Const(value))
    }

    /// Reads a variable that is never undefined.
    fn variable(&mut self, var: VarId) -> Code {
        let place = self.program.variables[var.0 as usize].name.to_string();
        let site = self.site(Span::default(), FaultKind::Undefined { place });
        Code::Load { at: self.address_of(var), site }
    }

    // ---- expressions ----

    fn expr(&mut self, expr: &Expr) -> Code {
        match &expr.kind {
            ExprKind::Value(code) => Code::Const(*code),
            // Only a call passes `undefined` on; a read of the parameter then fails.
            ExprKind::Undefined => Code::Const(UNDEFINED),
            ExprKind::Read(place) => {
                if let Some(value) = self.known(place) {
                    return value;
                }
                let site = self.undefined(place);
                match self.address(place) {
                    Address::At(at) => Code::Load { at, site },
                    at => Code::LoadFrom { at: Box::new(at), site },
                }
            }
            ExprKind::Not(inner) => match self.expr(inner) {
                Code::Const(code) => Code::Const(i32::from(code == 0)),
                Code::Is { at, code, site } => Code::IsNot { at, code, site },
                Code::IsNot { at, code, site } => Code::Is { at, code, site },
                code => Code::Not(Box::new(code)),
            },
            ExprKind::Negate(inner) => {
                let site = self.site(expr.span, FaultKind::Overflow);
                match self.expr(inner) {
                    Code::Const(code) => Code::Const(-code),
                    code => Code::Subtract(Box::new([Code::Const(0), code]), site),
                }
            }
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right, expr.span),
            ExprKind::Conditional(condition, yes, no) => match self.expr(condition) {
                Code::Const(0) => self.expr(no),
                Code::Const(_) => self.expr(yes),
                condition => {
                    Code::Conditional(Box::new([condition, self.expr(yes), self.expr(no)]))
                }
            },
            ExprKind::Quantified { is_forall, var, domain, body } => {
                self.quantified(*is_forall, *var, domain, body, expr.span)
            }
            ExprKind::IsUndefined(place) => match self.known(place) {
                Some(_) => Code::Const(0),
                None => Code::IsUndefined(Box::new(self.address(place))),
            },
            ExprKind::IsMember(value, pieces) => match self.expr(value) {
                Code::Const(code) => {
                    let is_inside = pieces.iter().any(|piece| piece.position(code).is_some());
                    Code::Const(i32::from(is_inside))
                }
                value => Code::IsMember(Box::new(value), pieces.clone().into()),
            },
            ExprKind::Call { function, arguments } => {
                Code::Call(Box::new(self.call(function.0, arguments)))
            }
            ExprKind::Count { var, multiset, condition } => {
                Code::Count(Box::new(self.scan(*var, multiset, condition)))
            }
        }
    }

    /// Lowers a quantifier; a quantifier over few known values is expanded.
    fn quantified(
        &mut self,
        is_forall: bool,
        var: VarId,
        domain: &Domain,
        body: &Expr,
        span: Span,
    ) -> Code {
        const MAX_UNROLLED: u32 = 128;
        if let Domain::Type(ty) = domain
            && self.copies.saturating_mul(self.types.count(*ty)) <= MAX_UNROLLED
        {
            let copies = self.copies;
            self.copies *= self.types.count(*ty);
            let pieces = self.types.pieces(*ty);
            let mut all = Vec::new();
            for code in pieces.iter().flat_map(|p| (0..p.count).map(|i| p.first + i as i32)) {
                let before = self.values.insert(var, code);
                all.push(self.expr(body));
                match before {
                    Some(before) => self.values.insert(var, before),
                    None => self.values.remove(&var),
                };
            }
            self.copies = copies;
            return if is_forall { and(all) } else { or(all) };
        }
        let domain = Box::new(self.range(domain, span));
        let (slot, body) = (self.address_of(var), Box::new(self.expr(body)));
        if is_forall {
            Code::Forall { slot, domain, body }
        } else {
            Code::Exists { slot, domain, body }
        }
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, span: Span) -> Code {
        use BinaryOp::*;
        if let (Implies, left) = (op, left) {
            let left = match self.expr(left) {
                Code::Const(code) => Code::Const(i32::from(code == 0)),
                Code::Is { at, code, site } => Code::IsNot { at, code, site },
                Code::IsNot { at, code, site } => Code::Is { at, code, site },
                code => Code::Not(Box::new(code)),
            };
            return or(vec![left, self.expr(right)]);
        }
        let pair = [self.expr(left), self.expr(right)];
        match op {
            And => return and(pair.into()),
            Or => return or(pair.into()),
            _ => {}
        }
        if let [Code::Const(a), Code::Const(b)] = pair
            && let Some(code) = constant(op, a, b)
        {
            return Code::Const(code);
        }
        let overflow = self.site(span, FaultKind::Overflow);
        match op {
            Equal | NotEqual => comparison(op == Equal, pair),
            Less => Code::Less(Box::new(pair)),
            LessEqual => Code::LessEqual(Box::new(pair)),
            Greater => Code::Less(Box::new(swapped(pair))),
            GreaterEqual => Code::LessEqual(Box::new(swapped(pair))),
            Add => Code::Add(Box::new(pair), overflow),
            Subtract => Code::Subtract(Box::new(pair), overflow),
            Multiply => Code::Multiply(Box::new(pair), overflow),
            Divide => Code::Divide(Box::new(pair), self.site(span, FaultKind::DivisionByZero)),
            Remainder => {
                Code::Remainder(Box::new(pair), self.site(span, FaultKind::DivisionByZero))
            }
            Implies | And | Or => Code::Const(0),
        }
    }
}

fn swapped([left, right]: [Code; 2]) -> [Code; 2] {
    [right, left]
}

fn comparison(is_equal: bool, pair: [Code; 2]) -> Code {
    match (pair, is_equal) {
        ([Code::Load { at, site }, Code::Const(code)], true)
        | ([Code::Const(code), Code::Load { at, site }], true) => Code::Is { at, code, site },
        ([Code::Load { at, site }, Code::Const(code)], false)
        | ([Code::Const(code), Code::Load { at, site }], false) => Code::IsNot { at, code, site },
        (pair, true) => Code::Equal(Box::new(pair)),
        (pair, false) => Code::Unequal(Box::new(pair)),
    }
}

fn constant(op: BinaryOp, a: i32, b: i32) -> Option<i32> {
    use BinaryOp::*;
    Some(match op {
        Equal => i32::from(a == b),
        NotEqual => i32::from(a != b),
        Less => i32::from(a < b),
        LessEqual => i32::from(a <= b),
        Greater => i32::from(a > b),
        GreaterEqual => i32::from(a >= b),
        Add => a.checked_add(b)?,
        Subtract => a.checked_sub(b)?,
        Multiply => a.checked_mul(b)?,
        Divide => a.checked_div(b)?,
        Remainder => a.checked_rem(b)?,
        Implies | And | Or => return None,
    })
}

/// Joins conditions, including those inside conjunctions; conditions after `false` are dropped,
/// since they never run.
fn and(all: Vec<Code>) -> Code {
    let mut flat = Vec::new();
    for code in all {
        match code {
            Code::Const(0) => {
                flat.push(Code::Const(0));
                break;
            }
            Code::Const(_) => {}
            Code::And(inner) => flat.extend(inner),
            code => flat.push(code),
        }
    }
    match flat.len() {
        0 => Code::Const(1),
        1 => flat.remove(0),
        _ if matches!(flat[0], Code::Const(0)) => Code::Const(0),
        _ => Code::And(flat.into()),
    }
}

fn or(all: Vec<Code>) -> Code {
    let mut flat = Vec::new();
    for code in all {
        match code {
            Code::Const(0) => {}
            Code::Const(_) => {
                flat.push(Code::Const(1));
                break;
            }
            Code::Or(inner) => flat.extend(inner),
            code => flat.push(code),
        }
    }
    match flat.len() {
        0 => Code::Const(0),
        1 => flat.remove(0),
        _ if matches!(flat[0], Code::Const(1)) => Code::Const(1),
        _ => Code::Or(flat.into()),
    }
}
