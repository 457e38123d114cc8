//! The verdicts on Porcupine's own logs agree with Porcupine's, and every certificate is accepted.

use consistory_benches::logs::logs;
use consistory_certify::certify_object;
use consistory_objects::{Calls, Options, Task, judge_object};
use consistory_spec::{ObjectModel, find};
use consistory_verdict::{Budget, Verdict};

#[test]
fn logs_are_judged_as_porcupine_judges_them() {
    let model = ObjectModel::named("linearizability").unwrap();
    let logs = logs().unwrap();
    assert_eq!(logs.len(), 108);
    for log in logs {
        let history = log.read().unwrap();
        let object = find(log.object).unwrap();
        let task = Task::new(Calls::new(&history).unwrap(), object.clone()).unwrap();
        let judgement = judge_object(&task, &model, &Options::default()).judgement;
        let expected = if log.is_linearizable { Verdict::Consistent } else { Verdict::Violation };
        assert_eq!(judgement.verdict(), expected, "{}", log.name());
        let certificate = judgement.certificate().unwrap();
        let accepted = certify_object(&history, &*object, &model, certificate, &Budget::default());
        assert_eq!(accepted, Ok(()), "{}: {certificate:?}", log.name());
    }
}
