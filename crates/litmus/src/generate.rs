//! Suites of minimal tests whose outcomes one model allows and another forbids.
//!
//! Each minimal difference between two models becomes a test whose condition asks for the outcomes
//! that only the weaker one allows, so that it can be run elsewhere. Tests have their names from
//! the literature, if they have one; the others are numbered.

use crate::condition::{Condition, Proposition, Quantifier};
use crate::contrast::Difference;
use crate::enumerate::{Access, Shape};
use crate::file::{Arch, Test};
use crate::notation::parse_notation;
use crate::program::{Instruction, Outcomes, Program};

/// Tests with a name in the literature.
const NAMED: [(&str, &str); 16] = [
    ("CoRR", "X=1 // r1=X; r2=X"),
    ("SB", "X=1; r1=Y // Y=1; r2=X"),
    ("SB+fence+po", "X=1; fence; r1=Y // Y=1; r2=X"),
    ("MP", "X=1; Y=1 // r1=Y; r2=X"),
    ("MP+fence+po", "X=1; fence; Y=1 // r1=Y; r2=X"),
    ("MP+po+fence", "X=1; Y=1 // r1=Y; fence; r2=X"),
    ("LB", "r1=X; Y=1 // r2=Y; X=1"),
    ("LB+fence+po", "r1=X; fence; Y=1 // r2=Y; X=1"),
    ("WRC", "X=1 // r1=X; Y=1 // r2=Y; r3=X"),
    ("RWC", "X=1 // r1=X; r2=Y // Y=1; r3=X"),
    ("IRIW", "X=1 // Y=1 // r1=X; r2=Y // r3=Y; r4=X"),
    ("WWC", "X=1 // r1=X; Y=1 // r2=Y; X=2"),
    ("3.SB", "X=1; r1=Y // Y=1; r2=Z // Z=1; r3=X"),
    ("3.LB", "r1=X; Y=1 // r2=Y; Z=1 // r3=Z; X=1"),
    ("ISA2", "X=1; Y=1 // r1=Y; Z=1 // r2=Z; r3=X"),
    ("SB+rfi+fence", "X=1; r1=X; r2=Y // Y=1; fence; r3=X"),
];

/// Side of a difference that a test is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Outcomes that only the left model allows.
    Left,
    /// Outcomes that only the right model allows.
    Right,
}

/// Builds the test of each difference with outcomes on the given side.
///
/// A test without a name in the literature is called `prefix` and a number.
pub fn tests_of(differences: &[Difference], side: Side, prefix: &str) -> Vec<Test> {
    let names: Vec<(&str, Option<Shape>)> = NAMED
        .into_iter()
        .map(|(name, text)| (name, parse_notation(text).ok().and_then(|p| shape_of(&p))))
        .collect();
    let mut tests: Vec<Test> = Vec::new();
    for difference in differences {
        let outcomes = match side {
            Side::Left => &difference.only_left,
            Side::Right => &difference.only_right,
        };
        if outcomes.is_empty() {
            continue;
        }
        let known = names.iter().find(|(_, shape)| shape.as_ref() == Some(&difference.shape));
        let name = match known {
            Some((name, _)) => (*name).to_owned(),
            None => format!("{prefix}{}", tests.len() + 1),
        };
        tests.push(test(name, &difference.program, outcomes));
    }
    tests
}

/// Builds a test that asks for one of some outcomes.
fn test(name: String, program: &Program, outcomes: &Outcomes) -> Test {
    let one = |outcome: &crate::program::Outcome| {
        let pairs = program.observed.iter().zip(&outcome.0);
        let mut all: Vec<Proposition> =
            pairs.map(|(&observable, &value)| Proposition::Holds(observable, value)).collect();
        if all.len() == 1 { all.remove(0) } else { Proposition::And(all) }
    };
    let mut some: Vec<Proposition> = outcomes.iter().map(one).collect();
    let proposition = if some.len() == 1 { some.remove(0) } else { Proposition::Or(some) };
    Test {
        arch: Arch::Lisa,
        name,
        comment: None,
        info: Vec::new(),
        program: program.clone(),
        filter: None,
        condition: Some(Condition { quantifier: Quantifier::Exists, proposition }),
    }
}

/// Returns the symmetry class of a program of the paper's core.
fn shape_of(program: &Program) -> Option<Shape> {
    let mut threads = Vec::new();
    for thread in &program.threads {
        let mut accesses: Vec<Access> = Vec::new();
        let mut is_fenced = false;
        for instruction in &thread.code {
            if !instruction.is_core() {
                return None;
            }
            match instruction.location() {
                None => is_fenced = true,
                Some(location) => {
                    let is_read = matches!(instruction, Instruction::Read { .. });
                    let address = u8::try_from(location.0).ok()?;
                    accesses.push(Access { is_read, address, is_fenced, depends: 0 });
                    is_fenced = false;
                }
            }
        }
        threads.push(accesses);
    }
    Some(Shape { threads }.canonical())
}
