//! Protocols in Murphi as operational memory models: thread `i` runs on processor `i`, and location
//! `j` is block `j`.

use std::collections::BTreeMap;

use consistory_litmus::{
    Expression, Instruction, Observable, Outcome, Outcomes, OutcomesError, Program, Semantics,
    Value,
};
use consistory_protocol::{
    ClientAccess, ClientAnswers, ClientError, Loaded, Model, System, client_answers,
};
use consistory_verdict::Budget;

use crate::error::CliError;

/// A protocol on which litmus tests run.
pub(super) struct Protocol {
    name: String,
    system: System,
}

impl Protocol {
    /// Reads a description whose loads and stores are marked.
    pub(super) fn read(path: &str, text: &str) -> Result<Self, CliError> {
        let model = Model::parse(path, text)?;
        if let Some(why) = model.missing_marks() {
            return Err(CliError::usage(format!("{path}: {why}")));
        }
        Ok(Protocol { name: path.to_owned(), system: model.tracked()? })
    }

    /// Returns the largest numbers of threads and locations of a program.
    pub(super) fn size(&self) -> (usize, usize) {
        let shape = self.system.shape().expect("a tracked system has a shape");
        (shape.procs as usize, shape.blocks as usize)
    }

    fn unsupported(&self, what: &str) -> OutcomesError {
        OutcomesError::Unsupported { model: self.name.clone(), what: what.to_owned() }
    }

    fn answers(&self, program: &Program, budget: &Budget) -> Result<ClientAnswers, OutcomesError> {
        let mut threads = Vec::new();
        for thread in &program.threads {
            let mut accesses = Vec::new();
            for instruction in &thread.code {
                accesses.push(match instruction {
                    Instruction::Read { address, .. } if address.depends.is_empty() => {
                        ClientAccess::Load(address.location.index() as u32)
                    }
                    Instruction::Write { address, value: Expression::Constant(_) }
                        if address.depends.is_empty() =>
                    {
                        ClientAccess::Store(address.location.index() as u32)
                    }
                    Instruction::Fence(_) => return Err(self.unsupported("fences")),
                    Instruction::ReadModifyWrite { .. } => {
                        return Err(self.unsupported("read-modify-writes"));
                    }
                    _ => return Err(self.unsupported("registers that are computed with")),
                });
            }
            threads.push(accesses);
        }
        if program.observed.iter().any(|seen| matches!(seen, Observable::Location(_))) {
            return Err(self.unsupported("the final values of locations"));
        }
        client_answers(&self.system, &threads, budget).map_err(|error| match error {
            ClientError::Stopped(stopped) => OutcomesError::Stopped(stopped),
            ClientError::TooFew { what, found, limit } => {
                OutcomesError::TooLarge { what, found, limit }
            }
            other => self.unsupported(&format!("this program: {other}")),
        })
    }

    /// Finds every outcome, with the rules of a shortest run for each.
    pub(super) fn runs(
        &self,
        program: &Program,
        budget: &Budget,
    ) -> Result<BTreeMap<Outcome, Vec<String>>, OutcomesError> {
        let answers = self.answers(program, budget)?;
        let mut found: BTreeMap<Outcome, Vec<String>> = BTreeMap::new();
        for (loaded, rules) in answers {
            found.entry(outcome(program, &loaded)).or_insert(rules);
        }
        Ok(found)
    }
}

/// Computes the observed registers from the values of the loads.
fn outcome(program: &Program, loaded: &[Loaded]) -> Outcome {
    let mut registers: Vec<Vec<Value>> = Vec::new();
    let mut loaded = loaded.iter();
    for thread in &program.threads {
        let mut values: Vec<Value> =
            thread.registers.iter().map(|register| register.initial).collect();
        for instruction in &thread.code {
            let Instruction::Read { register, address } = instruction else { continue };
            let location = &program.locations[address.location.index()];
            values[register.index()] = match loaded.next() {
                Some(&Loaded::Store { thread, access }) => {
                    match &program.threads[thread as usize].code[access as usize] {
                        Instruction::Write { value: Expression::Constant(value), .. } => *value,
                        _ => unreachable!("only writes of constants are run"),
                    }
                }
                _ => location.initial,
            };
        }
        registers.push(values);
    }
    let value = |seen: &Observable| match seen {
        Observable::Register(thread, register) => registers[thread.index()][register.index()],
        Observable::Location(location) => program.locations[location.index()].initial,
    };
    Outcome(program.observed.iter().map(value).collect())
}

impl Semantics for Protocol {
    fn name(&self) -> &str {
        &self.name
    }

    fn outcomes(&self, program: &Program, budget: &Budget) -> Result<Outcomes, OutcomesError> {
        Ok(self.runs(program, budget)?.into_keys().collect())
    }
}
