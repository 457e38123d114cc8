//! Compares two SAT solvers, CaDiCaL and BatSat, on clauses like those of the deciders.
//!
//! ```text
//! cargo run --release -p consistory-benches --bin solvers
//! ```
//!
//! Two families. *No first element*: a total order of n elements in which each has a predecessor; a
//! contradiction among store orders looks like this to a solver that sees only clauses; no such
//! order exists. *Sequential runs*: the plain encoding of sequential consistency for a history that
//! four sessions produced on one memory; an order exists. Both have a variable for every pair and
//! two clauses for every three elements.

use std::time::{Duration, Instant};

use batsat::{BasicSolver, Lit, SolverInterface, lbool};
use cadical::Solver;

/// Clauses over variables from 1 on, in the numbering of DIMACS.
struct Formula {
    elements: usize,
    clauses: Vec<Vec<i32>>,
}

impl Formula {
    /// Builds the clauses of a total order of `elements` elements.
    fn total_order(elements: usize) -> Self {
        let mut formula = Formula { elements, clauses: Vec::new() };
        for a in 0..elements {
            for b in a + 1..elements {
                for c in b + 1..elements {
                    let (ab, bc, ac) =
                        (formula.before(a, b), formula.before(b, c), formula.before(a, c));
                    formula.clauses.push(vec![-ab, -bc, ac]);
                    formula.clauses.push(vec![ab, bc, -ac]);
                }
            }
        }
        formula
    }

    /// Returns the literal for one element before another.
    fn before(&self, a: usize, b: usize) -> i32 {
        let (low, high) = (a.min(b), a.max(b));
        let variable = low * self.elements + high + 1;
        let literal = i32::try_from(variable).expect("there are few variables");
        if a < b { literal } else { -literal }
    }

    /// Builds the clauses of an order in which each element has a predecessor.
    fn no_first_element(elements: usize) -> Self {
        let mut formula = Formula::total_order(elements);
        for a in 0..elements {
            let others = (0..elements).filter(|&b| b != a);
            let clause = others.map(|b| formula.before(b, a)).collect();
            formula.clauses.push(clause);
        }
        formula
    }

    /// Builds the clauses of a sequential order of a history of reads and writes that has one.
    fn sequential_run(operations: usize, variables: u64, seed: u64) -> Self {
        const SESSIONS: u64 = 4;
        let mut formula = Formula::total_order(operations);
        let mut random = seed;
        let mut below = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % bound
        };
        let mut last_of_session = [None; SESSIONS as usize];
        let mut last_write: Vec<Option<usize>> = vec![None; variables as usize];
        let mut accesses: Vec<(u64, Option<Option<usize>>)> = Vec::new();
        for op in 0..operations {
            let (session, key) = (below(SESSIONS) as usize, below(variables));
            if let Some(earlier) = last_of_session[session].replace(op) {
                let order = formula.before(earlier, op);
                formula.clauses.push(vec![order]);
            }
            let is_read = below(2) == 0;
            accesses.push((key, is_read.then(|| last_write[key as usize])));
            if !is_read {
                last_write[key as usize] = Some(op);
            }
        }
        for (read, &(key, source)) in accesses.iter().enumerate() {
            let Some(source) = source else { continue };
            if let Some(source) = source {
                let order = formula.before(source, read);
                formula.clauses.push(vec![order]);
            }
            let writes = accesses.iter().enumerate().filter(|(_, a)| a.0 == key && a.1.is_none());
            for (other, _) in writes.filter(|(other, _)| Some(*other) != source) {
                let after_read = formula.before(read, other);
                match source {
                    Some(source) => {
                        let before_source = formula.before(other, source);
                        formula.clauses.push(vec![before_source, after_read]);
                    }
                    None => formula.clauses.push(vec![after_read]),
                }
            }
        }
        formula
    }

    fn by_cadical(&self) -> (bool, Duration) {
        let started = Instant::now();
        let mut solver: Solver = Solver::new();
        for clause in &self.clauses {
            solver.add_clause(clause.iter().copied());
        }
        (solver.solve() == Some(true), started.elapsed())
    }

    fn by_batsat(&self) -> (bool, Duration) {
        let started = Instant::now();
        let mut solver = BasicSolver::default();
        let variables: Vec<_> =
            (0..self.elements * self.elements + 1).map(|_| solver.new_var_default()).collect();
        for clause in &self.clauses {
            let mut literals: Vec<Lit> = clause
                .iter()
                .map(|&literal| Lit::new(variables[literal.unsigned_abs() as usize], literal > 0))
                .collect();
            solver.add_clause_reuse(&mut literals);
        }
        (solver.solve_limited(&[]) == lbool::TRUE, started.elapsed())
    }
}

fn main() {
    println!("| clauses | elements | satisfiable | CaDiCaL | BatSat | BatSat / CaDiCaL |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let show = |name: &str, formula: &Formula| {
        let (by_cadical, cadical) = formula.by_cadical();
        let (by_batsat, batsat) = formula.by_batsat();
        assert_eq!(by_cadical, by_batsat, "the solvers agree");
        let (cadical, batsat) = (cadical.as_secs_f64(), batsat.as_secs_f64());
        println!(
            "| {name} | {} | {by_cadical} | {cadical:.3} s | {batsat:.3} s | {:.2} |",
            formula.elements,
            batsat / cadical
        );
    };
    for elements in [10, 15, 20, 25, 30] {
        show("no first element", &Formula::no_first_element(elements));
    }
    for operations in [40, 80, 160] {
        show("sequential run", &Formula::sequential_run(operations, 4, 1));
    }
}
