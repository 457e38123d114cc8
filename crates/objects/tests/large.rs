//! Generated histories are linearizable, and planted violations are found, in histories of a size
//! that no search would finish.

use consistory_certify::certify_object;
use consistory_generate::{ObjectWorkload, SharedObject, generate_calls};
use consistory_objects::{Calls, Options, Outcome, Task, judge_object, monitor};
use consistory_spec::{ObjectModel, find};
use consistory_verdict::{Budget, Judgement, ObjectCertificate};

fn workload(object: SharedObject, seed: u64) -> ObjectWorkload {
    ObjectWorkload {
        object,
        sessions: 8,
        operations: 5000,
        read_share: 0.5,
        pending_share: 0.0,
        plants: 0,
        distance: 100,
        seed,
    }
}

#[test]
fn generated_histories_are_linearizable_and_the_checker_accepts_their_orders() {
    let model = ObjectModel::named("linearizability").unwrap();
    for object in SharedObject::DECIDED {
        let spec = find(object.name()).unwrap();
        for seed in 0..3 {
            let history = generate_calls(&workload(object, seed));
            assert_eq!(history.len(), 5000);
            let task = Task::new(Calls::new(&history).unwrap(), spec.clone()).unwrap();
            let ruling = judge_object(&task, &model, &Options::default());
            let Judgement::Consistent(_) = ruling.judgement else {
                panic!("{object}, seed {seed}: {:?}", ruling.judgement);
            };
            let certificate = ruling.judgement.certificate().unwrap();
            certify_object(&history, &*spec, &model, certificate, &Budget::default())
                .unwrap_or_else(|error| panic!("{object}, seed {seed}: {error}"));
        }
    }
}

#[test]
fn planted_violations_are_found_and_the_checker_accepts_their_cores() {
    let model = ObjectModel::named("linearizability").unwrap();
    for object in SharedObject::DECIDED {
        let spec = find(object.name()).unwrap();
        let mut found = 0;
        for seed in 0..8 {
            let workload = ObjectWorkload { plants: 3, ..workload(object, seed) };
            let history = generate_calls(&workload);
            let task = Task::new(Calls::new(&history).unwrap(), spec.clone()).unwrap();
            let ruling = judge_object(&task, &model, &Options::default());
            let Judgement::Violation { certificate: ObjectCertificate::Core(core), .. } =
                &ruling.judgement
            else {
                continue;
            };
            assert!(core.operations.len() <= 32, "{object}, seed {seed}: {core:?}");
            // The decider does not always know which values the pending calls of the prefix
            // removed.
            let is_exact = !matches!(object, SharedObject::Stack | SharedObject::PriorityQueue);
            assert!(core.prefix.is_some() || !is_exact, "{object}, seed {seed}: {core:?}");
            let certificate = ruling.judgement.certificate().unwrap();
            certify_object(&history, &*spec, &model, certificate, &Budget::default())
                .unwrap_or_else(|error| panic!("{object}, seed {seed}: {error} {core:?}"));
            found += 1;
        }
        assert!(found >= 6, "{object}: {found}");
    }
}

#[test]
fn pending_calls_are_decided_but_for_few_histories_of_stacks_and_priority_queues() {
    for object in SharedObject::DECIDED {
        let spec = find(object.name()).unwrap();
        let is_exact = !matches!(object, SharedObject::Stack | SharedObject::PriorityQueue);
        for seed in 0..10 {
            let history =
                generate_calls(&ObjectWorkload { pending_share: 0.01, ..workload(object, seed) });
            let calls = Calls::new(&history).unwrap();
            match monitor(&calls, &*spec) {
                Outcome::Linearizable(_) => {}
                Outcome::NotApplicable(_) if !is_exact => {}
                outcome => panic!("{object}, seed {seed}: {outcome:?}"),
            }
        }
    }
}
