//! The checker against the definition: the whole constraint graph is built and tested.

use std::collections::BTreeSet;

use consistory_protocol::descriptor::{
    Annotations, Block, Id, Label, Processor, Symbol, parse, parse_line,
};
use consistory_protocol::{Checker, Reason};

use crate::support::{Random, cases};

/// Graph of a descriptor: the label of each node, and each edge with its annotations.
struct Graph {
    labels: Vec<Label>,
    edges: Vec<(usize, usize, Annotations)>,
}

/// Builds the graph that a descriptor represents (section 3.2); `None` if an edge names an ID that
/// no node has.
fn graph(symbols: &[Symbol]) -> Option<Graph> {
    let mut graph = Graph { labels: Vec::new(), edges: Vec::new() };
    let mut holder: Vec<(Id, usize)> = Vec::new();
    for &symbol in symbols {
        let find = |id| holder.iter().find(|(held, _)| *held == id).map(|&(_, node)| node);
        match symbol {
            Symbol::Node { id, label } => {
                holder.retain(|(held, _)| *held != id);
                holder.push((id, graph.labels.len()));
                graph.labels.push(label);
            }
            Symbol::Edge { from, to, annotations } => {
                graph.edges.push((find(from)?, find(to)?, annotations));
            }
            Symbol::AddId { node, id } => {
                let node = find(node);
                holder.retain(|(held, _)| *held != id);
                holder.extend(node.map(|node| (id, node)));
            }
        }
    }
    Some(graph)
}

/// Decides, exactly by section 3.1, whether a graph is an acyclic constraint graph.
fn is_acyclic_constraint_graph(graph: &Graph) -> bool {
    let Graph { labels, edges } = graph;
    let n = labels.len();
    let annotated = |what: Annotations| -> Vec<(usize, usize)> {
        edges.iter().filter(|e| e.2.has(what)).map(|&(from, to, _)| (from, to)).collect()
    };
    let (po, sto) = (annotated(Annotations::PO), annotated(Annotations::STO));
    let (inh, forced) = (annotated(Annotations::INH), annotated(Annotations::FORCED));
    let closed = |edges: &[(usize, usize)]| {
        let mut reach = vec![vec![false; n]; n];
        edges.iter().for_each(|&(from, to)| reach[from][to] = true);
        for via in 0..n {
            let row = reach[via].clone();
            for from in reach.iter_mut().filter(|from| from[via]) {
                from.iter_mut().zip(&row).for_each(|(to, more)| *to |= more);
            }
        }
        reach
    };
    // 2. u - 1 edges that totally order the operations of a processor, as in the trace.
    let mut successive = Vec::new();
    for (to, label) in labels.iter().enumerate() {
        let before = (0..to).rev().find(|&from| labels[from].processor() == label.processor());
        successive.extend(before.map(|from| (from, to)));
    }
    let mut given = po.clone();
    given.sort_unstable();
    successive.sort_unstable();
    if given != successive {
        return false;
    }
    // 3. u - 1 edges that totally order the stores of a block.
    let stores_of_one = |&(from, to): &(usize, usize)| {
        let (from, to) = (labels[from], labels[to]);
        from.is_store() && to.is_store() && from.block() == to.block()
    };
    let store_order = closed(&sto);
    let blocks: BTreeSet<Block> = labels.iter().map(|label| label.block()).collect();
    let stores = |block: Block| -> Vec<usize> {
        (0..n).filter(|&s| labels[s].is_store() && labels[s].block() == block).collect()
    };
    for &block in &blocks {
        let stores = stores(block);
        let count = sto.iter().filter(|(from, _)| stores.contains(from)).count();
        let total = stores
            .iter()
            .all(|&s| stores.iter().all(|&t| s == t || store_order[s][t] || store_order[t][s]));
        if !total || count + 1 != stores.len().max(1) {
            return false;
        }
    }
    if !sto.iter().all(stores_of_one) {
        return false;
    }
    // 4. One inheritance edge to each load of a stored value, and no others.
    let inherits = |&(from, to): &(usize, usize)| {
        let (from, to) = (labels[from], labels[to]);
        from.is_store()
            && !to.is_store()
            && from.block() == to.block()
            && from.value() == to.value()
    };
    let sources = |load: usize| inh.iter().filter(|(_, to)| *to == load).count();
    let expected = |label: &Label| usize::from(!label.is_store() && label.value().is_some());
    if !inh.iter().all(inherits) || (0..n).any(|node| sources(node) != expected(&labels[node])) {
        return false;
    }
    // 5. Forced edges.
    let program = closed(&po);
    let follows = |j: usize, later: usize| j == later || program[j][later];
    for &(i, j) in &inh {
        for &(_, k) in sto.iter().filter(|(from, _)| *from == i) {
            let excused = |&(from, later): &(usize, usize)| {
                from == i && follows(j, later) && forced.contains(&(later, k))
            };
            if !inh.iter().any(excused) {
                return false;
            }
        }
    }
    for j in (0..n).filter(|&j| labels[j].value().is_none()) {
        let stores = stores(labels[j].block());
        let first = stores.iter().find(|&&s| stores.iter().all(|&t| !store_order[t][s]));
        let initial = |later: usize| {
            labels[later].value().is_none() && labels[later].block() == labels[j].block()
        };
        if let Some(&k) = first
            && !(0..n).any(|l| follows(j, l) && initial(l) && forced.contains(&(l, k)))
        {
            return false;
        }
    }
    let all: Vec<(usize, usize)> = edges.iter().map(|&(from, to, _)| (from, to)).collect();
    let reach = closed(&all);
    (0..n).all(|node| !reach[node][node])
}

fn accepts(symbols: &[Symbol]) -> Result<(), (usize, Reason)> {
    let mut checker = Checker::new();
    for (at, &symbol) in symbols.iter().enumerate() {
        checker.step(symbol).map_err(|reason| (at, reason))?;
    }
    checker.finish().map_err(|reason| (symbols.len(), reason))
}

fn by_definition(symbols: &[Symbol]) -> bool {
    graph(symbols).is_some_and(|graph| is_acyclic_constraint_graph(&graph))
}

/// Builds a descriptor of an acyclic constraint graph: that of a trace of a serial memory, in an
/// order different from the serial one.
fn valid(random: &mut Random) -> Vec<Symbol> {
    let (processors, blocks, values) =
        (1 + random.below(3), 1 + random.below(2), 1 + random.below(2));
    let length = random.below(11);
    // The serial order, with the store from which each load inherits.
    let mut serial: Vec<(Label, Option<usize>)> = Vec::new();
    let mut latest: Vec<Option<usize>> = vec![None; blocks];
    for at in 0..length {
        let processor = Processor(random.below(processors) as u32);
        let b = random.below(blocks);
        let block = Block(b as u32);
        if random.chance(1, 2) {
            let value = random.below(values) as u32;
            serial.push((Label::Store { processor, block, value }, None));
            latest[b] = Some(at);
        } else {
            let value = latest[b].and_then(|store| serial[store].0.value());
            serial.push((Label::Load { processor, block, value }, latest[b]));
        }
    }
    // A trace: the same operations, some moved earlier or later, each program in its order.
    let mut trace: Vec<usize> = (0..length).collect();
    for _ in 0..random.below(2 * length + 1) {
        let at = random.below(length.max(2) - 1);
        if at + 1 < length && serial[trace[at]].0.processor() != serial[trace[at + 1]].0.processor()
        {
            trace.swap(at, at + 1);
        }
    }
    let mut edges: Vec<(usize, usize, Annotations)> = Vec::new();
    let label = |at: usize| serial[at].0;
    for to in 0..length {
        let before = |same: &dyn Fn(usize) -> bool| (0..to).rev().find(|&from| same(from));
        let same = |from: usize| label(from).processor() == label(to).processor();
        edges.extend(before(&same).map(|from| (from, to, Annotations::PO)));
        let block =
            |from: usize| label(from).is_store() && label(from).block() == label(to).block();
        if label(to).is_store() {
            let previous = before(&block);
            edges.extend(previous.map(|from| (from, to, Annotations::STO)));
            let readers = (0..to).filter(|&l| {
                !label(l).is_store()
                    && label(l).block() == label(to).block()
                    && serial[l].1 == previous
            });
            for reader in readers {
                let last = !(reader + 1..length).any(|l| {
                    !label(l).is_store()
                        && label(l).block() == label(reader).block()
                        && label(l).processor() == label(reader).processor()
                        && serial[l].1 == serial[reader].1
                });
                if last || random.chance(1, 3) {
                    edges.push((reader, to, Annotations::FORCED));
                }
            }
        }
        edges.extend(serial[to].1.map(|from| (from, to, Annotations::INH)));
    }
    if length > 1 && random.chance(1, 4) {
        let to = 1 + random.below(length - 1);
        edges.push((random.below(to), to, Annotations::NONE));
    }
    write_descriptor(random, &serial, &trace, edges)
}

/// Writes the symbols of a graph in some order, reusing IDs.
fn write_descriptor(
    random: &mut Random,
    serial: &[(Label, Option<usize>)],
    trace: &[usize],
    mut edges: Vec<(usize, usize, Annotations)>,
) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    let mut ids: Vec<Vec<Id>> = vec![Vec::new(); serial.len()];
    let mut entered = vec![false; serial.len()];
    let mut next_id = 1;
    let mut free: Vec<Id> = Vec::new();
    let eager = random.chance(1, 2);
    let mut at = 0;
    while at < trace.len() || !edges.is_empty() {
        let ready: Vec<usize> =
            (0..edges.len()).filter(|&e| entered[edges[e].0] && entered[edges[e].1]).collect();
        let enter = at < trace.len() && (ready.is_empty() || (!eager && random.chance(1, 2)));
        if enter {
            let node = trace[at];
            at += 1;
            let id = free.pop().unwrap_or_else(|| {
                next_id += 1;
                Id(next_id - 1)
            });
            symbols.push(Symbol::Node { id, label: serial[node].0 });
            ids[node].push(id);
            entered[node] = true;
        } else {
            let (from, to, annotations) = edges.swap_remove(ready[random.below(ready.len())]);
            // Sometimes one symbol has all annotations between two nodes.
            let mut annotations = annotations;
            if random.chance(1, 2) {
                edges.retain(|&(f, t, more)| {
                    let same = (f, t) == (from, to);
                    if same {
                        annotations = annotations | more;
                    }
                    !same
                });
            }
            let (from, to) =
                (ids[from][random.below(ids[from].len())], ids[to][random.below(ids[to].len())]);
            symbols.push(Symbol::Edge { from, to, annotations });
        }
        if random.chance(1, 6) {
            let node = random.below(serial.len());
            if let Some(&id) = ids[node].first() {
                symbols.push(Symbol::AddId { node: id, id: Id(next_id) });
                ids[node].push(Id(next_id));
                next_id += 1;
            }
        }
        // A node that gets no more edges may lose its IDs.
        for node in 0..serial.len() {
            let done =
                entered[node] && !edges.iter().any(|&(from, to, _)| from == node || to == node);
            let followed = trace[at..]
                .iter()
                .any(|&later| serial[later].0.processor() == serial[node].0.processor());
            if done && !followed && random.chance(1, 2) {
                for id in ids[node].drain(..) {
                    if random.chance(1, 3) {
                        symbols.push(Symbol::AddId { node: Id(0), id });
                    }
                    free.push(id);
                }
            }
        }
    }
    symbols
}

/// Applies a small random damage to a descriptor.
fn damage(random: &mut Random, symbols: &mut Vec<Symbol>) {
    if symbols.is_empty() {
        return;
    }
    let at = random.below(symbols.len());
    match random.below(6) {
        0 => drop(symbols.remove(at)),
        1 => symbols.insert(random.below(symbols.len() + 1), symbols[at]),
        2 => {
            let other = random.below(symbols.len());
            symbols.swap(at, other);
        }
        3 => {
            let next = (at + 1) % symbols.len();
            symbols.swap(at, next);
        }
        _ => {
            let id = Id(1 + random.below(5) as u32);
            symbols[at] = match symbols[at] {
                Symbol::Node { label, .. } if random.chance(1, 3) => Symbol::Node { id, label },
                Symbol::Node { id, label } => {
                    let processor = Processor(random.below(2) as u32);
                    let block = Block(random.below(2) as u32);
                    let label = match (label, random.below(3)) {
                        (Label::Store { block, value, .. }, 0) => {
                            Label::Store { processor, block, value }
                        }
                        (Label::Store { processor, value, .. }, 1) => {
                            Label::Store { processor, block, value }
                        }
                        (Label::Store { value, .. }, _) => {
                            Label::Load { processor, block, value: Some(value) }
                        }
                        (Label::Load { processor, block, .. }, 0) => {
                            Label::Load { processor, block, value: None }
                        }
                        (Label::Load { block, value, .. }, 1) => {
                            Label::Load { processor, block, value }
                        }
                        (Label::Load { processor, value, .. }, _) => {
                            Label::Load { processor, block, value }
                        }
                    };
                    Symbol::Node { id, label }
                }
                Symbol::Edge { from, to, annotations } => match random.below(4) {
                    0 => Symbol::Edge { from: to, to: from, annotations },
                    1 => Symbol::Edge { from: id, to, annotations },
                    2 => Symbol::Edge { from, to: id, annotations },
                    _ => Symbol::Edge { from, to, annotations: annotations | Annotations::FORCED },
                },
                Symbol::AddId { id: old, .. } => Symbol::AddId { node: id, id: old },
            };
        }
    }
}

fn shown(symbols: &[Symbol]) -> String {
    symbols.iter().map(|symbol| format!("{symbol}\n")).collect()
}

#[test]
fn descriptors_of_serial_traces_are_accepted() {
    for seed in 0..cases(20_000) {
        let symbols = valid(&mut Random::new(seed));
        assert!(by_definition(&symbols), "seed {seed}: not valid\n{}", shown(&symbols));
        let verdict = accepts(&symbols);
        assert_eq!(verdict, Ok(()), "seed {seed}\n{}", shown(&symbols));
    }
}

#[test]
fn damaged_descriptors_are_judged_as_their_graphs_are() {
    let (mut accepted, mut rejected) = (0, 0);
    let mut reasons = BTreeSet::new();
    for seed in 0..cases(60_000) {
        let mut random = Random::new(seed);
        let mut symbols = valid(&mut random);
        for _ in 0..1 + random.below(3) {
            damage(&mut random, &mut symbols);
        }
        let expected = by_definition(&symbols);
        let verdict = accepts(&symbols);
        assert_eq!(verdict.is_ok(), expected, "seed {seed}: {verdict:?}\n{}", shown(&symbols));
        match verdict {
            Ok(()) => accepted += 1,
            Err((_, reason)) => {
                rejected += 1;
                let name = format!("{reason:?}");
                reasons.insert(name.split([' ', '{']).next().unwrap().to_owned());
            }
        }
    }
    assert!(accepted > 3000 && rejected > 30_000, "{accepted} accepted, {rejected} rejected");
    assert_eq!(reasons.len(), 15, "{reasons:?}");
}

/// Equal states have equal continuations, which makes the checker an automaton.
#[test]
fn equal_states_go_on_alike() {
    let mut seen: std::collections::HashMap<Vec<u8>, Vec<Symbol>> = Default::default();
    let mut met = 0;
    for seed in 0..cases(30_000) {
        let mut random = Random::new(seed);
        let symbols = valid(&mut random);
        let cut = random.below(symbols.len() + 1);
        let mut checker = Checker::new();
        symbols[..cut].iter().for_each(|&symbol| checker.step(symbol).unwrap());
        let mut state = Vec::new();
        checker.encode(&mut state);
        let Some(other) = seen.insert(state, symbols[..cut].to_vec()) else { continue };
        if other == symbols[..cut] {
            continue;
        }
        met += 1;
        let mut rest = symbols[cut..].to_vec();
        if random.chance(1, 2) {
            damage(&mut random, &mut rest);
        }
        let [here, there] = [&symbols[..cut], &other[..]]
            .map(|prefix| by_definition(&[prefix, &rest[..]].concat()));
        assert_eq!(here, there, "seed {seed}");
    }
    assert!(met > 500, "{met}");
}

/// A long stream with few IDs is checked in the memory for few nodes.
#[test]
fn memory_depends_on_the_bandwidth() {
    let mut checker = Checker::new();
    let mut largest = 0;
    let mut state = Vec::new();
    let edge = |from, to, annotations| Symbol::Edge { from: Id(from), to: Id(to), annotations };
    for round in 0..20_000u32 {
        let (now, before) = (1 + round % 2, 1 + (round + 1) % 2);
        let (processor, block) = (Processor(0), Block(0));
        let store = Label::Store { processor, block, value: round % 3 };
        let load = Label::Load { processor: Processor(1), block, value: Some(round % 3) };
        checker.step(Symbol::Node { id: Id(now), label: store }).unwrap();
        if round > 0 {
            checker.step(edge(before, now, Annotations::PO | Annotations::STO)).unwrap();
            checker.step(edge(2 + before, now, Annotations::FORCED)).unwrap();
        }
        checker.step(Symbol::Node { id: Id(2 + now), label: load }).unwrap();
        checker.step(edge(now, 2 + now, Annotations::INH)).unwrap();
        if round > 0 {
            checker.step(edge(2 + before, 2 + now, Annotations::PO)).unwrap();
        }
        checker.finish().unwrap();
        state.clear();
        checker.encode(&mut state);
        largest = largest.max(state.len());
    }
    assert!(checker.peak() <= 4 && largest <= 100, "{} nodes, {largest} bytes", checker.peak());
}

fn verdict(text: &str) -> String {
    match accepts(&parse(text).unwrap()) {
        Ok(()) => "accepted".to_owned(),
        Err((at, reason)) => format!("symbol {}: {reason}", at + 1),
    }
}

#[test]
fn the_figure_of_the_paper_is_accepted() {
    let figure = "1 ST(P1,B1,1)\n2 LD(P2,B1,1)\n1 -> 2 inh\n3 ST(P1,B1,2)\n1 -> 3 po-STo\n\
                  4 LD(P2,B1,1)\n1 -> 4 inh\n2 -> 4 po\n4 -> 3 forced\n\
                  1 LD(P2,B1,2)\n3 -> 1 inh\n4 -> 1 po";
    assert_eq!(verdict(figure), "accepted");
    assert_eq!(
        verdict(&figure.replace("4 -> 3 forced\n", "")),
        "symbol 12: LD(P2,B1,1) has no forced edge to the store that overwrites the loaded value"
    );
    assert_eq!(
        verdict(&figure.replace("3 -> 1 inh\n4 -> 1 po", "4 -> 1 po\n1 -> 3 forced\n3 -> 1 inh")),
        "symbol 13: this edge closes a cycle: LD(P2,B1,2) already comes before ST(P1,B1,2)"
    );
}

#[test]
fn a_line_is_read_at_a_time() {
    assert_eq!(parse_line(1, "# only a comment"), Ok(None));
    let symbol = parse_line(7, "1 -> 2 po").unwrap().unwrap();
    let reason = Checker::new().step(symbol).unwrap_err();
    assert_eq!(reason.to_string(), "no node has ID 1");
}
