//! Compares the generator, the compiled definitions and the reductions with simple implementations.

use std::collections::HashSet;

use consistory_history::{Action, History};
use consistory_models::{EvaluateOptions, catalogue, evaluate, implies, load};
use consistory_registers::Model;
use consistory_verdict::{Budget, Verdict};

use crate::compile::compile;
use crate::reduce::Reduction;
use crate::run::{Machine, Standing};
use crate::scan::{Outline, Question, ScanOptions, scan, scan_reduced};
use crate::shape::{Shape, Source, Space, skeletons};
use crate::sources::{Next, Visitor, choose};

/// Calls `each` for every history of exactly that many operations, once up to symmetry.
fn every_history(space: &Space, reduction: Reduction, each: &mut dyn FnMut(&Shape<'_>, &[Source])) {
    struct All<'a, 'b>(&'a Shape<'a>, &'b mut dyn FnMut(&Shape<'_>, &[Source]));
    impl Visitor for All<'_, '_> {
        fn partial(&mut self, _: &[Source]) -> Next {
            Next::Deeper
        }
        fn complete(&mut self, sources: &[Source]) -> bool {
            (self.1)(self.0, sources);
            true
        }
    }
    for sessions in 1..=space.sessions.min(space.operations) {
        for skeleton in skeletons(space, space.operations, sessions) {
            for variables in 0..=space.variables.min(space.operations) {
                skeleton.shapes(variables, &mut |shape, automorphisms| {
                    choose(shape, automorphisms, &reduction, &mut All(shape, each))
                });
            }
        }
    }
}

/// A history as a list of sessions of operations, each with its kind, variable and source; the
/// names of sessions and variables are numbers.
type Plain = Vec<Vec<(u8, u8, Option<(u8, u8)>)>>;

/// Returns the smallest of the histories that differ from the given one only in the names of
/// sessions and variables.
fn smallest(history: &Plain) -> Plain {
    let mut best: Option<Plain> = None;
    for order in permutations(history.len()) {
        let place = |session: u8| order.iter().position(|&s| s == session as usize).unwrap() as u8;
        let mut names: Vec<u8> = Vec::new();
        let renamed: Plain = order
            .iter()
            .map(|&session| {
                history[session]
                    .iter()
                    .map(|&(kind, variable, source)| {
                        let name = match names.iter().position(|&name| name == variable) {
                            Some(name) => name,
                            None => {
                                names.push(variable);
                                names.len() - 1
                            }
                        };
                        (kind, name as u8, source.map(|(session, at)| (place(session), at)))
                    })
                    .collect()
            })
            .collect();
        if best.as_ref().is_none_or(|best| renamed < *best) {
            best = Some(renamed);
        }
    }
    best.unwrap()
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    (0..count).fold(vec![Vec::new()], |all, _| {
        all.iter()
            .flat_map(|order| {
                (0..count)
                    .filter(|i| !order.contains(i))
                    .map(|i| [&order[..], &[i]].concat())
                    .collect::<Vec<_>>()
            })
            .collect()
    })
}

/// Lists every history of `operations` up to symmetry, without bad reads: generates all sessions
/// and variables in order of first use, and reduces each history to its smallest form.
fn plainly(operations: usize, kinds: u8) -> HashSet<Plain> {
    // Each operation is in the session of the previous one or in a new session.
    let mut all: Vec<Plain> = vec![Vec::new()];
    for _ in 0..operations {
        all = all
            .iter()
            .flat_map(|history| {
                let mut longer = Vec::new();
                let used = history.iter().flatten().map(|op| op.1 + 1).max().unwrap_or(0);
                for kind in 0..kinds {
                    for variable in 0..(if kind == 3 { 1 } else { used + 1 }) {
                        let op = (kind, variable, None);
                        let mut same = history.clone();
                        if let Some(last) = same.last_mut() {
                            last.push(op);
                            longer.push(same);
                        }
                        let mut new = history.clone();
                        new.push(vec![op]);
                        longer.push(new);
                    }
                }
                longer
            })
            .collect();
    }
    let mut classes = HashSet::new();
    for history in all {
        let places = || (0..history.len()).flat_map(|s| (0..history[s].len()).map(move |i| (s, i)));
        let mut chosen: Vec<Plain> = vec![history.clone()];
        for (s, i) in places() {
            let (kind, variable, _) = history[s][i];
            if !matches!(kind, 1 | 2) {
                continue;
            }
            let writes = places().filter(|&(t, j)| {
                matches!(history[t][j].0, 0 | 2) && history[t][j].1 == variable && (t != s || j < i)
            });
            let sources: Vec<Option<(u8, u8)>> = std::iter::once(None)
                .chain(writes.map(|(t, j)| Some((t as u8, j as u8))))
                .collect();
            chosen = chosen
                .iter()
                .flat_map(|history| {
                    sources.iter().map(|&source| {
                        let mut history = history.clone();
                        history[s][i].2 = source;
                        history
                    })
                })
                .collect();
        }
        // A fence has no variable, so its number must not count among the names.
        for mut history in chosen {
            for op in history.iter_mut().flatten().filter(|op| op.0 == 3) {
                op.1 = u8::MAX;
            }
            classes.insert(smallest(&history));
        }
    }
    classes
}

fn plain(shape: &Shape<'_>, sources: &[Source]) -> Plain {
    let sessions = shape.skeleton().sessions;
    let places = |session: usize| (0..shape.len()).filter(move |&at| shape.session(at) == session);
    let place = |at: usize| {
        let session = shape.session(at);
        (session as u8, places(session).position(|other| other == at).unwrap() as u8)
    };
    let source = |at: usize| sources.iter().find(|source| source.read == at);
    (0..sessions)
        .map(|session| {
            places(session)
                .map(|at| {
                    let variable = shape.variable(at).map_or(u8::MAX, |v| v as u8);
                    let write = source(at).and_then(|source| source.write).map(place);
                    (shape.kind(at) as u8, variable, write)
                })
                .collect()
        })
        .collect()
}

#[test]
fn each_history_is_generated_once_up_to_symmetry() {
    for (operations, fences, rmws) in
        [(1, false, false), (2, true, true), (3, true, true), (4, false, false), (5, false, false)]
    {
        let space = Space { fences, rmws, ..Space::of(operations) };
        let mut generated = 0;
        let mut classes = HashSet::new();
        every_history(&space, Reduction::None, &mut |shape, sources| {
            generated += 1;
            classes.insert(smallest(&plain(shape, sources)));
        });
        assert_eq!(generated, classes.len(), "{operations}: some class comes twice");
        let expected = plainly(operations, if rmws { 4 } else { 2 });
        assert_eq!(classes.len(), expected.len(), "{operations}");
        assert_eq!(classes, expected, "{operations}");
    }
}

fn catalogued() -> Vec<Model> {
    catalogue().iter().map(Model::Catalogued).collect()
}

fn own(text: &str) -> Model {
    let definition = load("own.cat", text, |_| None).unwrap();
    Model::Own { id: definition.title().into(), definition: definition.into() }
}

/// Compares compiled definitions with the reference evaluator on every history of a space, or on
/// some of them.
fn compare(models: &[Model], space: &Space, every: usize) {
    let codes: Vec<_> = models
        .iter()
        .map(|model| compile(model.definition(), &Budget::unlimited()).unwrap())
        .collect();
    let mut machines: Vec<Machine<'_>> = codes.iter().map(Machine::new).collect();
    let mut satisfied = vec![0; models.len()];
    let (mut seen, mut count) = (0, 0);
    every_history(space, Reduction::None, &mut |shape, sources| {
        seen += 1;
        if seen % every != 0 {
            return;
        }
        let history = Outline::of(shape).history(sources);
        count += 1;
        for (m, (machine, model)) in machines.iter_mut().zip(models).enumerate() {
            machine.load(shape);
            let judgement =
                evaluate(model.definition(), &history, &EvaluateOptions::default()).unwrap();
            let expected = judgement.verdict() == Verdict::Consistent;
            assert_eq!(
                machine.satisfies(sources),
                expected,
                "{} of {}",
                model.id(),
                text(&history)
            );
            satisfied[m] += usize::from(expected);
            // A partial choice of sources must not be pruned if some whole choice is allowed.
            for part in 0..sources.len() {
                if expected && machine.prunes() {
                    assert_eq!(machine.look(&sources[..part]), Standing::Open, "{}", model.id());
                }
            }
        }
    });
    for (model, satisfied) in models.iter().zip(satisfied) {
        assert!(0 < satisfied && satisfied < count, "{}: {satisfied} of {count}", model.id());
    }
}

fn text(history: &History) -> String {
    let show = |session| -> String {
        history.session_ops(session).map(|op| history.show(op).to_string() + " ").collect()
    };
    history.sessions().map(|session| show(session) + "// ").collect()
}

#[test]
fn compiled_definitions_decide_as_the_evaluator_does() {
    compare(&catalogued(), &Space::of(3), 1);
    compare(&catalogued(), &Space::of(4), 3);
    compare(&catalogued(), &Space { sessions: 3, variables: 2, ..Space::of(5) }, 41);
    compare(&catalogued(), &Space { fences: true, rmws: true, ..Space::of(3) }, 2);
    let space = Space { fences: true, rmws: true, sessions: 2, variables: 2, ..Space::of(4) };
    compare(&catalogued(), &space, 17);
}

/// Definitions with features that the catalogue does not use, some of which do not permit pruning.
#[test]
fn definitions_of_ones_own_are_compiled_too() {
    let models = [
        own("\"complement\" empty ((R * W) & po) \\ ~(loc | ext)"),
        own("\"star\" irreflexive (po | wr^-1)* ; wr"),
        own("\"no initial reads\" empty R \\ range([W \\ IW] ; wr)"),
        own("\"optional\" acyclic (po? ; (wr^-1)? ; po) \\ id"),
        own("\"order\" with ww from store-orders empty wr \\ (ww ; ww^-1 | wr & ext)"),
        own("\"sets\" forall o in R & range(wr & int) do empty [o] ; po end"),
        own("\"unions\" let first = union o in W do [o] ; po ; [o | R] end empty first ; wr^-1"),
    ];
    compare(&models, &Space::of(3), 1);
    let codes: Vec<_> = models
        .iter()
        .map(|model| compile(model.definition(), &Budget::unlimited()).unwrap())
        .collect();
    let prunes: Vec<bool> = codes.iter().map(|code| code.prunes_reads).collect();
    assert_eq!(prunes, [true, true, false, true, false, true, true]);
}

/// Reductions must not change answers, and proved implications must hold.
#[test]
fn reductions_lose_no_smallest_history() {
    let models = catalogued();
    let pairs = |m: usize| (0..models.len()).map(move |n| (m, n)).filter(|(m, n)| m != n);
    let questions: Vec<Question> = (0..models.len())
        .flat_map(pairs)
        .map(|(allows, forbids)| Question { allows, forbids })
        .collect();
    for space in [
        Space { variables: 3, ..Space::of(5) },
        Space { fences: true, rmws: true, ..Space::of(4) },
        Space { fences: true, sessions: 2, variables: 2, ..Space::of(5) },
    ] {
        let [all, reduced] = [Reduction::None, Reduction::Catalogue].map(|reduction| {
            scan_reduced(&models, &questions, &space, &ScanOptions::default(), reduction)
        });
        assert!(reduced.histories < all.histories);
        let mut separated = 0;
        for (question, (all, reduced)) in
            questions.iter().zip(all.answers.iter().zip(&reduced.answers))
        {
            let ids = [models[question.allows].id(), models[question.forbids].id()];
            let size = |history: &Option<History>| {
                history.as_ref().map(|h| (h.len(), h.session_count(), h.key_count()))
            };
            assert_eq!(size(all), size(reduced), "{ids:?} in {space:?}");
            separated += usize::from(all.is_some());
            if let Some(history) = all {
                assert!(implies(ids[0], ids[1]).is_none(), "{ids:?}: {}", text(history));
                let verdict = |m: usize| {
                    let options = EvaluateOptions::default();
                    evaluate(models[m].definition(), history, &options).unwrap().verdict()
                };
                assert_eq!(verdict(question.allows), Verdict::Consistent, "{}", text(history));
                assert_eq!(verdict(question.forbids), Verdict::Violation, "{}", text(history));
            }
        }
        assert!(separated > 40, "{separated} in {space:?}");
    }
}

/// A history may have no variables.
#[test]
fn fences_alone_are_histories() {
    let models = [catalogued().remove(0), own("\"one fence\" empty [F] ; po ; [F]")];
    let questions = [Question { allows: 0, forbids: 1 }];
    let found = |space: Space| {
        let scan = scan(&models, &questions, &space, &ScanOptions::default());
        scan.answers[0].as_ref().map(text)
    };
    assert_eq!(found(Space { fences: true, ..Space::of(3) }).as_deref(), Some("f f // "));
    assert_eq!(found(Space::of(3)), None);
}

#[test]
fn what_is_found_does_not_depend_on_the_number_of_threads() {
    let models = catalogued();
    let questions: Vec<Question> =
        (1..models.len()).map(|allows| Question { allows, forbids: 0 }).collect();
    let found = |jobs: usize| {
        let options = ScanOptions { jobs, ..ScanOptions::default() };
        let scan = scan_reduced(&models, &questions, &Space::of(5), &options, Reduction::Catalogue);
        let answers: Vec<_> = scan.answers.iter().map(|answer| answer.as_ref().map(text)).collect();
        (answers, scan.histories)
    };
    let alone = found(1);
    for jobs in 2..=5 {
        assert_eq!(found(jobs), alone);
    }
}

/// The written actions match the shape.
#[test]
fn histories_are_written_with_short_names() {
    let space = Space { fences: true, rmws: true, ..Space::of(3) };
    let mut count = 0;
    every_history(&space, Reduction::None, &mut |shape, sources| {
        let history = Outline::of(shape).history(sources);
        assert_eq!(history.len(), shape.len());
        for (at, op) in history.ops().enumerate() {
            assert_eq!(history.action(op) == Action::Fence, shape.variable(at).is_none());
            assert_eq!(history.writes(op).is_some(), shape.writes(at));
        }
        for source in sources {
            let (key, value) = history.reads(history.ops().nth(source.read).unwrap()).unwrap();
            let written = match source.write {
                Some(write) => history.writes(history.ops().nth(write).unwrap()),
                None => Some((key, history.initial_value(key))),
            };
            assert_eq!(written, Some((key, value)));
        }
        count += 1;
    });
    assert!(count > 500, "{count}");
}
