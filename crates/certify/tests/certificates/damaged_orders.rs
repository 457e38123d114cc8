//! Certificates of consistency: for small histories, every certificate and every damaged one is
//! accepted exactly if it is a proof.

use std::time::Duration;

use consistory_certify::{Rejection, certify, certify_within};
use consistory_history::{Action, History, HistoryBuilder, OpId, SessionId};
use consistory_verdict::{Budget, Certificate, Options, Stopped, Verdict};

use super::naive::{self, World, permutations, worlds};
use super::support::{Random, Shape, consistent, history, json, random_history, text};

/// Returns the world that a certificate's choices describe.
fn chosen<'a>(h: &'a History, choices: &[(OpId, OpId)]) -> Option<World<'a>> {
    let candidates = |read: OpId| {
        let ids = (0..h.len() + h.key_count()).map(OpId::new);
        ids.filter(|&w| w != read && h.writes(w) == h.reads(read)).count()
    };
    let repeated = |i: usize| choices[..i].iter().any(|(read, _)| *read == choices[i].0);
    if (0..choices.len()).any(repeated) {
        return None;
    }
    worlds(h).into_iter().find(|world| {
        let agrees = choices.iter().all(|(r, w)| world.source[r.index()] == Some(*w) && r != w);
        let complete = h.ops().filter(|&op| h.reads(op).is_some()).all(|op| {
            world.source[op.index()] != Some(op)
                && (candidates(op) == 1 || choices.iter().any(|(r, _)| *r == op))
        });
        agrees && complete
    })
}

/// Checks by definition whether a certificate proves consistency.
fn proves(h: &History, model: &str, certificate: &Certificate) -> bool {
    match (model, certificate) {
        (_, Certificate::Order { order, wr }) => chosen(h, wr).is_some_and(|world| {
            let all = |op: usize| world.counts[op] && op < h.len();
            is_linear_extension(&world, order) && {
                let complete = (0..h.len()).filter(|&op| all(op)).count() == order.len();
                complete && takes_last(&world, model, order)
            }
        }),
        (_, Certificate::SessionOrders { orders, wr }) => chosen(h, wr).is_some_and(|world| {
            let orders_of = |s| orders.iter().filter(move |(session, _)| *session == s);
            h.sessions().all(|s| {
                let own: Vec<OpId> =
                    h.session_ops(s).filter(|op| world.counts[op.index()]).collect();
                (own.is_empty() && orders_of(s).count() == 0)
                    || (orders_of(s).count() == 1
                        && orders_of(s).all(|(_, order)| {
                            is_linear_extension(&world, order)
                                && own.iter().all(|op| order.contains(op))
                                && own.iter().all(|&op| takes_last_before(&world, order, op))
                        }))
            })
        }),
        (_, Certificate::Witness { ww, wr }) => chosen(h, wr).is_some_and(|world| {
            let lists: Vec<Vec<OpId>> = ww.iter().map(|(_, list)| list.clone()).collect();
            if !world.store_lists().contains(&lists) {
                return false;
            }
            let pairs = world.store_order(&lists);
            let with = |own| {
                let both = naive::union(&own, &world.wre());
                world.acyclic_with(&both, &pairs)
            };
            let past = |op: OpId| {
                world.source[op.index()]
                    .is_none_or(|w| !world.same_session(w.index(), op.index()) || w < op)
            };
            with(world.ppo()) && with(world.poloc()) && h.ops().all(past)
        }),
        _ => false,
    }
}

/// Returns whether a list has no repetition, contains only operations that count, and contains
/// everything that precedes an operation in `po` and `wr` before it.
fn is_linear_extension(world: &World<'_>, order: &[OpId]) -> bool {
    let (po, wr) = (world.po(), world.wr());
    order.iter().enumerate().all(|(i, op)| {
        let before = |id: usize| {
            let id = OpId::new(id);
            !world.recorded(id.index()) || order[..i].contains(&id)
        };
        world.recorded(op.index())
            && world.counts[op.index()]
            && !order[..i].contains(op)
            && (0..world.ids()).all(|a| !(po[a][op.index()] || wr[a][op.index()]) || before(a))
    })
}

fn takes_last(world: &World<'_>, model: &str, order: &[OpId]) -> bool {
    match model {
        "cc" => world.satisfies("cc"),
        "sc" => order.iter().all(|&op| takes_last_before(world, order, op)),
        _ => {
            let co = world.co();
            order.iter().all(|&read| {
                let Some(key) = world.reads(read.index()) else { return true };
                let last = order
                    .iter()
                    .rev()
                    .find(|w| world.writes(w.index()) == Some(key) && co[w.index()][read.index()]);
                let last = last.copied().unwrap_or(world.h.initial_write(key));
                world.source[read.index()] == Some(last)
            })
        }
    }
}

fn takes_last_before(world: &World<'_>, order: &[OpId], read: OpId) -> bool {
    let Some(key) = world.reads(read.index()) else { return true };
    let before = order.iter().take_while(|&&op| op != read);
    let last = before.filter(|w| world.writes(w.index()) == Some(key)).last();
    world.source[read.index()] == Some(last.copied().unwrap_or(world.h.initial_write(key)))
}

/// Checks that the checker and the definition agree on a certificate; returns their common verdict.
#[track_caller]
fn agreed(h: &History, model: &str, certificate: &Certificate) -> bool {
    let verdict = certify(h, model, Verdict::Consistent, certificate);
    assert_eq!(
        verdict.is_ok(),
        proves(h, model, certificate),
        "{model}; {}; {}; {verdict:?}",
        text(h),
        json(h, certificate)
    );
    verdict.is_ok()
}

fn ambiguous_choices(world: &World<'_>) -> Vec<(OpId, OpId)> {
    let h = world.h;
    let of = |r: OpId| world.source[r.index()].map(|w| (r, w));
    let several = |r: &OpId| {
        let ids = (0..h.len() + h.key_count()).map(OpId::new);
        ids.filter(|&w| w != *r && h.writes(w) == h.reads(*r)).count() > 1
    };
    h.ops().filter(|r| h.reads(*r).is_some()).filter(several).filter_map(of).collect()
}

/// Returns every certificate of the right kind that lists operations that count, for each choice of
/// `wr`.
fn all_certificates(h: &History, model: &str) -> Vec<Certificate> {
    let mut all = Vec::new();
    for world in worlds(h) {
        let wr = ambiguous_choices(&world);
        let counting: Vec<OpId> = h.ops().filter(|op| world.counts[op.index()]).collect();
        if model == "tso" {
            all.extend(world.store_lists().into_iter().map(|lists| Certificate::Witness {
                ww: h.keys().zip(lists).collect(),
                wr: wr.clone(),
            }));
        } else {
            let order = |order| Certificate::Order { order, wr: wr.clone() };
            all.extend(permutations(&counting).into_iter().map(order));
        }
    }
    all
}

#[test]
fn a_model_holds_exactly_if_some_certificate_is_accepted() {
    let mut random = Random(0x5eed);
    let mut seen = [[0; 2]; 4];
    for round in 0..400 {
        let plain = round % 2 == 0;
        let shape = Shape { sessions: 2 + round % 2, ops: 5, keys: 1 + round % 2, plain };
        let h = random_history(&mut random, shape);
        for (m, model) in ["cc", "ccv", "sc", "tso"].into_iter().enumerate() {
            let mut accepted = false;
            for certificate in all_certificates(&h, model) {
                accepted |= agreed(&h, model, &certificate);
            }
            let holds = naive::satisfies(&h, model);
            assert_eq!(accepted, holds, "{model}; {}", text(&h));
            seen[m][usize::from(holds)] += 1;
        }
    }
    assert!(seen.iter().flatten().all(|&count| count > 20), "one-sided: {seen:?}");
}

/// Finds an order of a session for CM by trying all orders.
fn session_order(world: &World<'_>, session: SessionId) -> Option<Vec<OpId>> {
    let h = world.h;
    let co = world.co();
    let own: Vec<OpId> = h.session_ops(session).filter(|op| world.counts[op.index()]).collect();
    let last = own.last()?;
    let past: Vec<OpId> = h.ops().filter(|op| op == last || co[op.index()][last.index()]).collect();
    permutations(&past).into_iter().find(|order| {
        is_linear_extension(world, order)
            && own.iter().all(|&op| takes_last_before(world, order, op))
    })
}

#[test]
fn causal_memory_holds_exactly_if_each_session_has_an_order() {
    let mut random = Random(0xcafe);
    let mut seen = [0; 2];
    for round in 0..400 {
        let shape = Shape { sessions: 2 + round % 2, ops: 5, keys: 2, plain: round % 2 == 0 };
        let h = random_history(&mut random, shape);
        let mut accepted = false;
        for world in
            worlds(&h).iter().filter(|world| h.ops().all(|op| world.source[op.index()] != Some(op)))
        {
            let orders: Vec<(SessionId, Vec<OpId>)> =
                h.sessions().filter_map(|s| Some((s, session_order(world, s)?))).collect();
            let certificate = Certificate::SessionOrders { orders, wr: ambiguous_choices(world) };
            accepted |= agreed(&h, "cm", &certificate);
        }
        let holds = naive::satisfies(&h, "cm");
        assert_eq!(accepted, holds, "{}", text(&h));
        seen[usize::from(holds)] += 1;
    }
    assert!(seen.iter().all(|&count| count > 20), "one-sided: {seen:?}");
}

/// Returns every order that differs by one error: two operations swapped, or one dropped, doubled,
/// moved or replaced.
fn damaged_orders(h: &History, order: &[OpId]) -> Vec<Vec<OpId>> {
    let mut all = Vec::new();
    for i in 0..order.len() {
        let mut dropped = order.to_vec();
        let op = dropped.remove(i);
        for j in 0..=dropped.len() {
            let mut moved = dropped.clone();
            moved.insert(j, op);
            all.push(moved);
            let mut doubled = order.to_vec();
            doubled.insert(j, op);
            all.push(doubled);
        }
        for j in 0..i {
            let mut swapped = order.to_vec();
            swapped.swap(i, j);
            all.push(swapped);
        }
        for id in 0..h.len() + h.key_count() {
            let mut replaced = order.to_vec();
            replaced[i] = OpId::new(id);
            all.push(replaced);
        }
        all.push(dropped);
    }
    all
}

fn damaged_choices(h: &History, wr: &[(OpId, OpId)]) -> Vec<Vec<(OpId, OpId)>> {
    let mut all = Vec::new();
    for (i, &choice) in wr.iter().enumerate() {
        let mut dropped = wr.to_vec();
        dropped.remove(i);
        all.push(dropped);
        all.push([wr, &[choice]].concat());
        for id in 0..h.len() + h.key_count() {
            let mut other = wr.to_vec();
            other[i].1 = OpId::new(id);
            all.push(other);
        }
    }
    all
}

fn damaged(h: &History, certificate: &Certificate) -> Vec<Certificate> {
    let mut all = Vec::new();
    match certificate {
        Certificate::Order { order, wr } => {
            for order in damaged_orders(h, order) {
                all.push(Certificate::Order { order, wr: wr.clone() });
            }
            for wr in damaged_choices(h, wr) {
                all.push(Certificate::Order { order: order.clone(), wr });
            }
        }
        Certificate::SessionOrders { orders, wr } => {
            for i in 0..orders.len() {
                for order in damaged_orders(h, &orders[i].1) {
                    let mut orders = orders.clone();
                    orders[i].1 = order;
                    all.push(Certificate::SessionOrders { orders, wr: wr.clone() });
                }
                let mut dropped = orders.clone();
                dropped.remove(i);
                all.push(Certificate::SessionOrders { orders: dropped, wr: wr.clone() });
                let doubled = [&orders[..], &orders[i..=i]].concat();
                all.push(Certificate::SessionOrders { orders: doubled, wr: wr.clone() });
            }
            for wr in damaged_choices(h, wr) {
                all.push(Certificate::SessionOrders { orders: orders.clone(), wr });
            }
        }
        Certificate::Witness { ww, wr } => {
            for i in 0..ww.len() {
                for list in damaged_orders(h, &ww[i].1) {
                    let mut ww = ww.clone();
                    ww[i].1 = list;
                    all.push(Certificate::Witness { ww, wr: wr.clone() });
                }
            }
            for wr in damaged_choices(h, wr) {
                all.push(Certificate::Witness { ww: ww.clone(), wr });
            }
        }
        _ => unreachable!("not a certificate of consistency"),
    }
    all
}

const VALID: &[(&str, &str)] = &[
    ("t0: w(x,1) w(y,1); t1: r(y,1) r(x,1)", "t0:0 t0:1 t1:0 t1:1"),
    ("t0: w(x,1) w(x,2) w(y,1); t1: r(y,1) r(x,2); t2: r(x,1)", "t0:0 t2:0 t0:1 t0:2 t1:0 t1:1"),
    ("t0: rmw(x,0,1); t1: rmw(x,1,2); t2: rmw(x,2,3) r(x,3)", "t0:0 t1:0 t2:0 t2:1"),
    ("t0: w(x,1) r(y,0); t1: w(y,1) r(x,1)", "t0:0 t0:1 t1:0 t1:1"),
    ("t0: w(x,1) f r(y,0); t1: w(y,1) f r(x,1)", "t0:0 t0:1 t0:2 t1:0 t1:1 t1:2"),
    ("t0: w(x,1) w(x,1); t1: r(x,1) w(x,2)", "t0:0 t1:0 t0:1 t1:1 | t1:0<t0:0"),
    ("t0: w(x,1)? w(x,2)?; t1: r(x,2) w(x,3)!", "t0:1 t1:0"),
    ("t0: w(x,1)? w(x,1); t1: r(x,1)", "t0:1 t1:0 | t1:0<t0:1"),
    ("t0: r(x,0) w(x,0); t1: r(x,0) w(x,1)", "t0:0 t0:1 t1:0 t1:1 | t0:0<init:x t1:0<t0:1"),
    ("t0: w(x,1); t1: w(x,2); t2: r(x,1) r(x,2); t3: r(x,2)", "t0:0 t2:0 t1:0 t2:1 t3:0"),
    ("t0: w(x,1) w(y,2); t1: r(x,1) w(z,3); t2: r(z,3) r(x,1)", "t0:0 t1:0 t1:1 t2:0 t2:1 t0:1"),
    ("t0: w(x,1) w(y,1) rmw(x,1,2); t1: r(x,2) r(y,1)", "t0:0 t0:1 t0:2 t1:0 t1:1"),
];

#[test]
fn a_damaged_certificate_is_rejected_unless_it_still_proves() {
    let mut rejected = 0;
    for &(h, order) in VALID {
        let h = history(h);
        for model in ["cc", "ccv", "sc"] {
            assert_eq!(consistent(&h, model, order), Ok(()), "{}", text(&h));
        }
        let (ops, choices) = order.split_once('|').unwrap_or((order, ""));
        let ops: Vec<OpId> = ops.split_whitespace().map(|op| h.find(op).unwrap()).collect();
        let wr: Vec<(OpId, OpId)> = choices
            .split_whitespace()
            .map(|choice| choice.split_once('<').unwrap())
            .map(|(r, w)| (h.find(r).unwrap(), h.find(w).unwrap()))
            .collect();
        // An order for SC also proves every other model, in the form that the model requires.
        let orders = h.sessions().map(|s| (s, ops.clone())).collect();
        let writes = |key| -> Vec<OpId> {
            let of_key =
                ops.iter().copied().filter(|&w| h.writes(w).is_some_and(|(k, _)| k == key));
            [h.initial_write(key)].into_iter().chain(of_key).collect()
        };
        let ww = h.keys().map(|key| (key, writes(key))).collect();
        for (model, certificate) in [
            ("cc", Certificate::Order { order: ops.clone(), wr: wr.clone() }),
            ("ccv", Certificate::Order { order: ops.clone(), wr: wr.clone() }),
            ("sc", Certificate::Order { order: ops.clone(), wr: wr.clone() }),
            ("cm", Certificate::SessionOrders { orders, wr: wr.clone() }),
            ("tso", Certificate::Witness { ww, wr: wr.clone() }),
        ] {
            assert!(agreed(&h, model, &certificate), "{model}; {}", text(&h));
            for damaged in damaged(&h, &certificate) {
                rejected += usize::from(!agreed(&h, model, &damaged));
            }
        }
    }
    assert!(rejected > 3_000, "{rejected}");
}

/// Simulates two writers of one key and two readers that lag far behind; a reader mostly advances
/// and sometimes goes back. Returns the history and the order of the run.
fn lagging_run(random: &mut Random) -> (History, Vec<OpId>) {
    let mut b = HistoryBuilder::new();
    let sessions = [0, 1, 2, 3].map(|i| b.session(&format!("t{i}")));
    let key = b.key("x");
    let mut run = Vec::new();
    let mut lengths = [0; 4];
    let mut written = Vec::new();
    let mut seen = [0, 0];
    for step in 0..90 {
        let who = if step < 30 { random.below(2) } else { random.below(4) };
        let action = if who < 2 && random.below(8) > 0 {
            let value = b.int(step + 1);
            written.push(value);
            Action::Write { key, value }
        } else if let Some(reader) = who.checked_sub(2) {
            let next = seen[reader] + random.below(4);
            seen[reader] = if random.below(40) == 0 { 0 } else { next.min(written.len() - 1) };
            Action::Read { key, value: written[seen[reader]] }
        } else {
            let Some(&value) = written.last() else { continue };
            Action::Read { key, value }
        };
        b.push(sessions[who], action);
        run.push((who, lengths[who]));
        lengths[who] += 1;
    }
    let history = b.finish().unwrap();
    let order = run.iter().map(|&(who, at)| history.op_at(sessions[who], at)).collect();
    (history, order)
}

#[test]
fn orders_with_many_writes_between_a_write_and_its_read() {
    let mut random = Random(23);
    let mut tally = [[0, 0], [0, 0]];
    for _ in 0..300 {
        let (h, order) = lagging_run(&mut random);
        for (model, count) in ["cc", "ccv"].into_iter().zip(&mut tally) {
            let certificate = Certificate::Order { order: order.clone(), wr: vec![] };
            let accepted = certify(&h, model, Verdict::Consistent, &certificate);
            let expected = proves(&h, model, &certificate);
            assert_eq!(accepted.is_ok(), expected, "{model}: {accepted:?}\n{}", text(&h));
            count[usize::from(expected)] += 1;
        }
    }
    assert!(tally[0][0] > 20 && tally[0][1] > 20 && tally[1][0] > 20, "{tally:?}");
}

#[test]
fn limits_stop_the_checker_and_threads_change_nothing() {
    let mut random = Random(29);
    for _ in 0..40 {
        let (h, order) = lagging_run(&mut random);
        for model in ["cc", "ccv", "sc"] {
            let certificate = Certificate::Order { order: order.clone(), wr: vec![] };
            let claim = Verdict::Consistent;
            let alone = certify(&h, model, claim, &certificate);
            let with = |budget: Budget, jobs: usize| {
                let options = Options { budget, jobs, tuning: () };
                certify_within(&h, model, claim, &certificate, &options)
            };
            assert_eq!(with(Budget::unlimited(), 4), alone, "{}", text(&h));
            let stopped = |rejection: Result<(), Rejection>| match rejection {
                Err(Rejection::Stopped(stopped)) => Some(stopped),
                _ => None,
            };
            let no_time = stopped(with(Budget::unlimited().with_time(Duration::ZERO), 1));
            assert!(matches!(no_time, Some(Stopped::Time { .. })), "{no_time:?}");
            let no_memory = stopped(with(Budget::unlimited().with_memory(100), 1));
            assert!(matches!(no_memory, Some(Stopped::Memory { .. })), "{no_memory:?}");
        }
    }
}
