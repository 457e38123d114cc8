//! Translates a test of C11 by a table of instructions.
//!
//! The accesses and fences of the test are those of the table `c11`, so any table that defines the
//! same names states how they are implemented. Every write writes a unique number in the
//! translation. In the condition, a value becomes any of the numbers of the writes that wrote it.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::mapping::{Mapping, find_mapping};
use super::sketch::{Alphabet, Sketch, Step};
use crate::executions::code::{Code, Expr, Op, Register, Tags};
use crate::executions::test::{Formula, Source};
use crate::executions::{IsaTest, Language};

/// Content of a register.
#[derive(Clone, Copy)]
enum Held {
    Constant(i64),
    /// Value of the read with this number, counted over all threads.
    Read(usize),
    Computed,
}

/// Data of the program for translating the condition.
#[derive(Default)]
struct Found<'t> {
    threads: Vec<Vec<Step<'t>>>,
    /// Registers of each thread.
    held: Vec<HashMap<Register, Held>>,
    /// Location of each read.
    reads: Vec<usize>,
    /// Location and value of each write; its number in the translation is its index plus one.
    writes: Vec<(usize, i64)>,
    /// Index of each location of the test in the translation.
    places: Vec<usize>,
}

/// Translates a test of C11 by a table. Fails for unsupported constructs: branches, updates, locks,
/// and computed values.
pub fn translate_test(test: &IsaTest, mapping: &Mapping) -> Result<String, String> {
    if test.language != Language::C {
        return Err("only tests of C11 are translated by a table".to_owned());
    }
    let c11 = find_mapping("c11").ok_or("there is no table c11")?;
    let alphabet = Alphabet::shared(&c11, mapping);
    let mut found = Found { places: places(&test.code)?, ..Found::default() };
    for thread in 0..test.code.threads.len() {
        found.thread(&test.code, thread)?;
    }
    let sketch = Sketch::of_steps(&found.threads, &alphabet)?;
    let name = if test.name.is_empty() { "translated" } else { &test.name };
    let rendered = sketch
        .render(&alphabet, mapping, name)
        .ok_or("the table has too few registers or locations")?;
    let condition = found.formula(test, &test.proposition, &rendered.observed)?;
    if test.filter.is_some() {
        return Err("the test has a filter".to_owned());
    }
    let mut text = rendered.text;
    let _ = writeln!(text, "{} ({condition})", test.quantifier.as_str());
    Ok(text)
}

/// Returns the index of each location's name in the translation: its own name if all locations have
/// one there.
fn places(code: &Code) -> Result<Vec<usize>, String> {
    let known: Vec<&str> = (0..Sketch::MAX_LOCATIONS).map(Sketch::location_name).collect();
    let names: Vec<&str> = code.locations.iter().map(|location| location.name.as_str()).collect();
    if names.len() > known.len() {
        return Err(format!("there are more than {} locations", known.len()));
    }
    for location in &code.locations {
        if location.is_array || location.initial.iter().any(|&value| value != 0) {
            return Err(format!("`{}` does not start as 0", location.name));
        }
    }
    let own = |name: &&str| known.iter().position(|known| known == name);
    let all: Option<Vec<usize>> = names.iter().map(own).collect();
    Ok(all.unwrap_or_else(|| (0..names.len()).collect()))
}

impl<'t> Found<'t> {
    fn thread(&mut self, code: &'t Code, thread: usize) -> Result<(), String> {
        let mut steps = Vec::new();
        let mut held: HashMap<Register, Held> = HashMap::new();
        let mut fence = None;
        let place = |address: &Expr, held: &HashMap<Register, Held>| -> Result<usize, String> {
            match value(address, held) {
                Held::Constant(address) => match code.locate(address) {
                    Some((at, 0)) => Ok(self.places[at]),
                    _ => Err("an address is not a location".to_owned()),
                },
                _ => Err("an address is computed".to_owned()),
            }
        };
        for (register, &initial) in code.threads[thread].initial.iter().enumerate() {
            held.insert(register as Register, Held::Constant(initial));
        }
        for op in code.threads[thread].instructions.iter().flatten() {
            match op {
                Op::Set(register, expression) => {
                    let value = value(expression, &held);
                    held.insert(*register, value);
                }
                Op::Load { into, address, tags, exclusive: false, .. } => {
                    let location = place(address, &held)?;
                    let name = order(code, *tags, true)?;
                    steps.push(Step { is_read: true, location, name, fence: fence.take() });
                    held.insert(*into, Held::Read(self.reads.len()));
                    self.reads.push(location);
                }
                Op::Store { address, value: written, tags, .. } => {
                    let location = place(address, &held)?;
                    let Held::Constant(written) = value(written, &held) else {
                        return Err("a value that is written is computed".to_owned());
                    };
                    if code.locate(written).is_some() {
                        return Err("an address is written".to_owned());
                    }
                    let name = order(code, *tags, false)?;
                    steps.push(Step { is_read: false, location, name, fence: fence.take() });
                    self.writes.push((location, written));
                }
                Op::Fence { tags } => {
                    if fence.is_some() {
                        return Err("there are two adjacent fences".to_owned());
                    }
                    fence = Some(fence_name(code, *tags)?);
                }
                Op::OpenControl | Op::CloseControl => {}
                Op::Branch { .. } | Op::Jump(_) => {
                    return Err("branches are not translated".to_owned());
                }
                Op::Update { .. } => return Err("updates are not translated".to_owned()),
                _ => return Err("a statement is not translated".to_owned()),
            }
        }
        self.threads.push(steps);
        self.held.push(held);
        Ok(())
    }

    fn formula(
        &self,
        test: &IsaTest,
        formula: &Formula,
        observed: &[String],
    ) -> Result<String, String> {
        let inner = |formula: &Formula| self.formula(test, formula, observed);
        Ok(match formula {
            Formula::True => "true".to_owned(),
            Formula::False => "false".to_owned(),
            Formula::Not(of) => format!("not ({})", inner(of)?),
            Formula::And(a, b) => format!("({} /\\ {})", inner(a)?, inner(b)?),
            Formula::Or(a, b) => format!("({} \\/ {})", inner(a)?, inner(b)?),
            Formula::Implies(a, b) => format!("(not ({}) \\/ {})", inner(a)?, inner(b)?),
            Formula::Same(..) => return Err("the condition compares registers".to_owned()),
            Formula::Equal(at, values) => {
                let [wanted] = values[..] else {
                    return Err("the condition refers to an array".to_owned());
                };
                let (name, location) = match test.observed[*at].source {
                    Source::Register { thread, register } => {
                        match self.held[thread].get(&register) {
                            Some(Held::Read(read)) => (observed[*read].clone(), self.reads[*read]),
                            Some(Held::Constant(value)) => {
                                return Ok((*value == wanted).to_string());
                            }
                            _ => return Err("the condition asks for a computed value".to_owned()),
                        }
                    }
                    Source::Memory { address, .. } => match test.code.locate(address) {
                        Some((at, 0)) => {
                            let place = self.places[at];
                            (Sketch::location_name(place).to_owned(), place)
                        }
                        _ => return Err("the condition asks for an address".to_owned()),
                    },
                };
                let mut numbers: Vec<usize> = Vec::new();
                if wanted == 0 {
                    numbers.push(0);
                }
                let writes = self.writes.iter().enumerate();
                numbers.extend(
                    writes.filter(|(_, write)| **write == (location, wanted)).map(|(at, _)| at + 1),
                );
                let all: Vec<String> =
                    numbers.iter().map(|number| format!("{name}={number}")).collect();
                match &all[..] {
                    [] => "false".to_owned(),
                    [one] => one.clone(),
                    all => format!("({})", all.join(" \\/ ")),
                }
            }
        })
    }
}

fn value(expression: &Expr, held: &HashMap<Register, Held>) -> Held {
    match expression {
        Expr::Const(value) => Held::Constant(*value),
        Expr::Register(register) => held.get(register).copied().unwrap_or(Held::Computed),
        Expr::Extend { of, .. } => value(of, held),
        _ => Held::Computed,
    }
}

/// Returns the tags of a set by their names.
fn names(code: &Code, tags: Tags) -> Vec<&str> {
    let named = code.tags.iter().enumerate();
    named.filter(|(at, _)| tags >> at & 1 == 1).map(|(_, name)| name.as_str()).collect()
}

fn order(code: &Code, tags: Tags, is_read: bool) -> Result<&'static str, String> {
    let names = names(code, tags);
    let has = |name: &str| names.contains(&name);
    Ok(if has("SC") {
        "seq_cst"
    } else if is_read && has("ACQ") {
        "acquire"
    } else if !is_read && has("REL") {
        "release"
    } else if has("CON") || has("ACQ_REL") {
        return Err("an order of an access is not translated".to_owned());
    } else {
        // Plain accesses are compiled like relaxed ones.
        "relaxed"
    })
}

fn fence_name(code: &Code, tags: Tags) -> Result<&'static str, String> {
    let names = names(code, tags);
    let orders =
        [("SC", "seq_cst"), ("ACQ_REL", "acq_rel"), ("ACQ", "acquire"), ("REL", "release")];
    let found = orders.iter().find(|(tag, _)| names.contains(tag));
    found.map(|(_, name)| *name).ok_or_else(|| "a fence is not translated".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_isa_test;

    fn translated(body: &str, to: &str) -> Result<String, String> {
        let test = read_isa_test("test", body).unwrap();
        translate_test(&test, &find_mapping(to).unwrap())
    }

    const MP: &str = "C MP\n{ [x]=0; [y]=0; }\n\
        P0(atomic_int* x, atomic_int* y) {\n\
          atomic_store_explicit(x, 1, memory_order_relaxed);\n\
          atomic_thread_fence(memory_order_release);\n\
          atomic_store_explicit(y, 1, memory_order_release);\n}\n\
        P1(atomic_int* x, atomic_int* y) {\n\
          int r0 = atomic_load_explicit(y, memory_order_acquire);\n\
          int r1 = atomic_load_explicit(x, memory_order_relaxed);\n}\n\
        exists (1:r0=1 /\\ 1:r1=0)";

    #[test]
    fn a_test_of_c11_becomes_one_of_aarch64() {
        let wanted = "AArch64 MP\n{\n0:X0=x; 0:X1=y;\n1:X0=y; 1:X1=x;\n}\n \
                      P0           | P1            ;\n MOV W2,#1    | LDAPR W2,[X0] ;\n \
                      STR W2,[X0]  | LDR W3,[X1]   ;\n DMB SY       |               ;\n \
                      MOV W2,#2    |               ;\n STLR W2,[X1] |               ;\n\
                      locations [1:X2; 1:X3;]\nexists ((1:X2=2 /\\ 1:X3=0))\n";
        assert_eq!(translated(MP, "c11-aarch64").unwrap(), wanted);
    }

    #[test]
    fn every_architecture_reads_what_it_is_given() {
        for to in ["c11-x86", "c11-aarch64", "c11-riscv", "c11-power", "c11"] {
            let text = translated(MP, to).unwrap();
            read_isa_test(to, &text).unwrap_or_else(|error| panic!("{to}: {error}\n{text}"));
        }
    }

    #[test]
    fn a_value_that_two_writes_wrote_may_be_of_either() {
        let text = "C T\n{ }\nP0(atomic_int* x) {\n\
            atomic_store_explicit(x, 1, memory_order_relaxed);\n}\n\
            P1(atomic_int* x) {\n\
            atomic_store_explicit(x, 1, memory_order_relaxed);\n\
            int r0 = atomic_load_explicit(x, memory_order_relaxed);\n}\n\
            forall (1:r0=1)";
        let text = translated(text, "c11-riscv").unwrap();
        assert!(text.ends_with("forall ((1:x6=1 \\/ 1:x6=2))\n"), "{text}");
    }

    #[test]
    fn what_is_not_translated_is_said() {
        let update = "C T\n{ }\nP0(atomic_int* x) {\n\
            int r0 = atomic_fetch_add_explicit(x, 1, memory_order_relaxed);\n}\nexists (0:r0=1)";
        assert_eq!(translated(update, "c11-x86").unwrap_err(), "updates are not translated");
        let copy = "C T\n{ }\nP0(atomic_int* x) {\n\
            int r0 = atomic_load_explicit(x, memory_order_relaxed);\n\
            atomic_store_explicit(x, r0, memory_order_relaxed);\n}\nexists (0:r0=1)";
        let why = "a value that is written is computed";
        assert_eq!(translated(copy, "c11-x86").unwrap_err(), why);
        assert!(translated(MP, "riscv").unwrap_err().contains("the table has no"));
    }
}
