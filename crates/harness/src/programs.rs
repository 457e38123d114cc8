//! Random client programs, determined by a seed.

use consistory_history::Value;
use consistory_random::Random;

use crate::program::{Call, Program};
use crate::signature::{Domain, Parameter, Signature};

/// Number of times that a program is redrawn if no call changes the object.
const MAX_REDRAWS: u32 = 16;

/// A sequence of random programs; the same seed yields the same programs on every machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Programs {
    /// The methods to call.
    pub signatures: Vec<Signature>,
    /// Number of threads.
    pub threads: usize,
    /// Number of calls per thread.
    pub calls: usize,
    /// Number of keys.
    pub keys: u32,
    /// The seed.
    pub seed: u64,
}

impl Programs {
    /// Builds programs of two threads with three calls each, on two keys.
    pub fn new(signatures: Vec<Signature>) -> Self {
        Programs { signatures, threads: 2, calls: 3, keys: 2, seed: 0 }
    }

    /// Returns the program with a number; it is empty if there is no method to call.
    pub fn get(&self, number: u64) -> Program {
        let mut random = Random::new(self.seed, number);
        let mut program = self.draw(&mut random);
        for _ in 0..MAX_REDRAWS {
            if program.1 {
                break;
            }
            program = self.draw(&mut random);
        }
        program.0
    }

    /// Returns a program with its keys and values renumbered from the start, in their order.
    pub(crate) fn tidy(&self, program: &Program) -> Program {
        let domain = |call: &Call, at: usize| {
            let is_it =
                |s: &&Signature| s.method == call.method && s.parameters.len() == call.args.len();
            self.signatures.iter().find(is_it).map(|signature| &signature.parameters[at])
        };
        let mut keys: Vec<Value> = Vec::new();
        let mut values: Vec<Value> = Vec::new();
        for call in program.threads.iter().flatten() {
            for (at, arg) in call.args.iter().enumerate() {
                match domain(call, at).map(|parameter| &parameter.domain) {
                    Some(Domain::Key) => keys.push(arg.clone()),
                    Some(Domain::Fresh | Domain::Used) => values.push(arg.clone()),
                    Some(Domain::Of(_)) | None => {}
                }
            }
        }
        for list in [&mut keys, &mut values] {
            list.sort();
            list.dedup();
        }
        let number = |list: &[Value], value: &Value| list.partition_point(|v| v < value) as u32;
        let mut tidy = program.clone();
        for call in tidy.threads.iter_mut().flatten() {
            for at in 0..call.args.len() {
                let Some(parameter) = domain(call, at) else { continue };
                let arg = &mut call.args[at];
                match parameter.domain {
                    Domain::Key => *arg = parameter.sort.value(number(&keys, arg)),
                    Domain::Fresh | Domain::Used => {
                        *arg = parameter.sort.value(number(&values, arg) + 1);
                    }
                    Domain::Of(_) => {}
                }
            }
        }
        tidy
    }

    /// Draws a program. Returns whether a call may change the object.
    fn draw(&self, random: &mut Random) -> (Program, bool) {
        let weights: u32 = self.signatures.iter().map(|s| s.weight).fold(0, u32::saturating_add);
        let mut program = Program::default();
        if weights == 0 {
            return (program, true);
        }
        let mut is_write = false;
        let mut fresh = 0;
        for _ in 0..self.threads {
            let mut calls = Vec::with_capacity(self.calls);
            for _ in 0..self.calls {
                let mut at = random.below(weights);
                let chosen = self.signatures.iter().find(|signature| {
                    let is_here = at < signature.weight;
                    at = at.saturating_sub(signature.weight);
                    is_here
                });
                let Some(signature) = chosen else { continue };
                is_write |= signature.is_write;
                let args = signature.parameters.iter();
                let args = args.map(|parameter| self.argument(parameter, &mut fresh, random));
                calls.push(Call { method: signature.method.clone(), args: args.collect() });
            }
            program.threads.push(calls);
        }
        (program, is_write)
    }

    fn argument(&self, parameter: &Parameter, fresh: &mut u32, random: &mut Random) -> Value {
        match &parameter.domain {
            Domain::Key => parameter.sort.value(random.below(self.keys)),
            Domain::Fresh => {
                *fresh += 1;
                parameter.sort.value(*fresh)
            }
            // One more than the number of inserted values, because another thread may insert the
            // next one.
            Domain::Used => parameter.sort.value(1 + random.below(*fresh + 1)),
            Domain::Of(values) => {
                let at = random.below(values.len() as u32) as usize;
                values.get(at).cloned().unwrap_or(Value::Null)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(weights: &[(&str, usize, u32)]) -> Programs {
        let map = consistory_spec::find("map").unwrap();
        let signature = |&(method, arity, weight): &(&str, usize, u32)| {
            Signature::of(&*map, method, arity).unwrap().weighted(weight)
        };
        Programs::new(weights.iter().map(signature).collect())
    }

    #[test]
    fn a_seed_decides_the_programs() {
        let programs = programs(&[("put", 2, 1), ("get", 1, 1), ("remove", 1, 1)]);
        assert_eq!(programs.get(5), programs.get(5));
        assert_ne!(programs.get(5), programs.get(6));
        let other = Programs { seed: 1, ..programs.clone() };
        assert_ne!(programs.get(5), other.get(5));
        // A complete program, so that a change of the generator is noticed.
        assert_eq!(
            programs.get(0).to_string(),
            "t0: get(1) remove(0) get(1)\nt1: get(0) put(1,1) get(1)"
        );
    }

    #[test]
    fn weights_decide_how_often_and_fresh_values_are_distinct() {
        let programs =
            Programs { threads: 4, calls: 10, ..programs(&[("put", 2, 3), ("get", 1, 1)]) };
        let (mut puts, mut all) = (0, 0);
        for number in 0..100 {
            let program = programs.get(number);
            let calls = || program.threads.iter().flatten();
            let mut values: Vec<_> =
                calls().filter(|call| &*call.method == "put").map(|call| &call.args[1]).collect();
            puts += values.len();
            all += calls().count();
            values.sort();
            assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{program}");
            assert!(calls().all(|call| call.args[0] <= Value::Int(1)));
        }
        assert_eq!(all, 4_000);
        assert!((2_850..3_150).contains(&puts), "{puts}");
    }

    #[test]
    fn a_program_changes_something_if_it_can() {
        let programs = programs(&[("put", 2, 1), ("get", 1, 20)]);
        let writes = (0..100).filter(|&number| {
            programs.get(number).threads.iter().flatten().any(|call| &*call.method == "put")
        });
        assert!(writes.count() > 95);
        assert!(Programs { signatures: Vec::new(), ..programs }.get(0).is_empty());
    }
}
