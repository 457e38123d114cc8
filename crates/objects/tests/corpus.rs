//! The histories of `corpus/objects` have the verdicts that their files state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use consistory_certify::certify_object;
use consistory_formats::{Input, read};
use consistory_history::History;
use consistory_objects::{
    Calls, Engine, Inference, Levels, Options, Strategy, Task, Tuning, Visibility, infer_levels,
    judge_object, judge_objects,
};
use consistory_spec::{Level, NAMED, Object, ObjectModel, find, parse_object};
use consistory_verdict::{Budget, Judgement, ObjectCertificate};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/objects")
}

/// Expectation stated in a file: the object, and for each model the verdict and the operation that
/// cannot be explained.
struct Expected {
    object: Arc<dyn Object>,
    verdicts: BTreeMap<String, (String, Option<String>)>,
}

fn expected(text: &str) -> Expected {
    let said = |name: &str| {
        let prefix = format!("# {name}: ");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&prefix));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let name = said("object").pop().expect("a file names its object");
    let object: Arc<dyn Object> = if name.ends_with(".object") {
        let text = std::fs::read_to_string(folder().join(&name)).unwrap();
        Arc::new(parse_object(&name, &text).unwrap())
    } else {
        find(&name).unwrap()
    };
    let lines = said("expect");
    let entries = lines.iter().flat_map(|line| line.split("; "));
    let verdicts = entries.map(|entry| {
        let mut words = entry.split(' ').map(str::to_owned);
        let (model, verdict) = (words.next().unwrap(), words.next().unwrap());
        (model, (verdict, words.next()))
    });
    Expected { object, verdicts: verdicts.collect() }
}

fn histories() -> Vec<(String, History, Expected)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".hist") {
            let expected = expected(&std::fs::read_to_string(&path).unwrap());
            let mut histories: Vec<History> =
                read(&Input::File(path), None).map(Result::unwrap).collect();
            assert_eq!(histories.len(), 1, "{name} holds one history");
            found.push((name, histories.remove(0), expected));
        }
    }
    assert!(found.len() >= 15);
    found
}

#[test]
fn every_history_has_the_verdicts_that_it_says() {
    for (name, history, Expected { object, verdicts }) in histories() {
        let models: Vec<ObjectModel> =
            NAMED.iter().map(|id| ObjectModel::named(id).unwrap()).collect();
        let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(&object)).unwrap();
        let rulings = judge_objects(&task, &models, &Options::default());
        for (model, ruling) in models.iter().zip(rulings) {
            let (verdict, stuck) = verdicts
                .get(&*model.id)
                .unwrap_or_else(|| panic!("{name} says nothing about {}", model.id));
            assert_eq!(ruling.judgement.verdict().as_str(), verdict, "{name}: {}", model.id);
            let judged_by = ruling.via.and_then(ObjectModel::named).unwrap_or(model.clone());
            let certificate = ruling.judgement.certificate().unwrap();
            let accepted =
                certify_object(&history, &*object, &judged_by, certificate, &Budget::unlimited());
            assert_eq!(accepted, Ok(()), "{name}: {}", model.id);
            if let (
                Judgement::Violation { certificate: ObjectCertificate::Unexplained(found), .. },
                Some(stuck),
            ) = (&ruling.judgement, stuck)
            {
                let last = history.reference(*found.returned.last().unwrap()).to_string();
                assert_eq!(&last, stuck, "{name}: {}", model.id);
            }
        }
    }
}

#[test]
fn every_way_to_search_agrees() {
    for (name, history, Expected { object, verdicts }) in histories() {
        let task = Task::new(Calls::new(&history).unwrap(), object).unwrap();
        for (id, (verdict, _)) in &verdicts {
            let model = ObjectModel::named(id).unwrap();
            for strategy in [Strategy::WingGong, Strategy::JustInTime] {
                for visibility in [Visibility::Minimal, Visibility::All] {
                    let engine = Engine::Paper { strategy, visibility };
                    let options = Options::tuned(Tuning { engine, ..Tuning::default() });
                    let found = judge_object(&task, &model, &options).judgement.verdict();
                    assert_eq!(found.as_str(), verdict, "{name}: {id} by {engine:?}");
                }
            }
        }
    }
}

#[test]
fn levels_go_down_as_far_as_a_history_demands() {
    let all = histories();
    let infer = |name: &str, levels: &mut Levels| {
        let (_, history, expected) = all.iter().find(|(known, ..)| known == name).unwrap();
        let task = Task::new(Calls::new(history).unwrap(), expected.object.clone()).unwrap();
        infer_levels(&task, levels, &Options::default()).unwrap()
    };
    let mut levels = Levels::default();
    let lowered = vec![("containsValue".into(), Level::Causal)];
    assert_eq!(infer("paper-figure-1.hist", &mut levels), Inference::Lowered(lowered));
    assert_eq!(infer("paper-figure-1.hist", &mut levels), Inference::Kept);
    assert_eq!(levels.get("put"), Level::Complete);
    let Inference::Lowered(lowered) = infer("map-size-in-passing.hist", &mut levels) else {
        panic!("it is not linearizable");
    };
    assert!(lowered.iter().all(|(method, _)| **method == *"size"), "{lowered:?}");
    assert_eq!(infer("kv-appends.hist", &mut Levels::default()), Inference::Unexplained);
}
