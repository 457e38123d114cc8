//! Compares the order engine with simple algorithms on many random graphs: Warshall's closure for
//! reachability, and breadth-first search in an explicit graph for lengths.

use consistory_order::{
    ChainId, ChainOrder, Chains, Edge, Inserted, PathStep, Paths, topological_order,
};
use consistory_testkit::Random;

/// Builds chains of random lengths over shuffled or consecutive nodes.
fn random_chains(random: &mut Random) -> Chains {
    let lengths: Vec<usize> = (0..1 + random.below(4)).map(|_| random.below(5)).collect();
    if random.below(2) == 0 {
        return Chains::consecutive(lengths);
    }
    let mut nodes: Vec<u32> = (0..lengths.iter().sum::<usize>() as u32).collect();
    for i in (1..nodes.len()).rev() {
        nodes.swap(i, random.below(i + 1));
    }
    let chain_of: Vec<ChainId> =
        nodes.iter().map(|_| ChainId(random.below(lengths.len()) as u32)).collect();
    Chains::along(nodes, &chain_of)
}

fn random_edges(random: &mut Random, nodes: usize, count: usize) -> Vec<Edge> {
    (0..count)
        .map(|reason| Edge {
            from: random.below(nodes) as u32,
            to: random.below(nodes) as u32,
            reason: reason as u32,
        })
        .collect()
}

fn closure(chains: &Chains, edges: &[Edge]) -> Vec<Vec<bool>> {
    let n = chains.nodes();
    let mut reach = vec![vec![false; n]; n];
    for chain in chains.ids() {
        for pair in chains.members(chain).windows(2) {
            reach[pair[0] as usize][pair[1] as usize] = true;
        }
    }
    for edge in edges {
        reach[edge.from as usize][edge.to as usize] = true;
    }
    for k in 0..n {
        for i in 0..n {
            if reach[i][k] {
                let through = reach[k].clone();
                reach[i].iter_mut().zip(through).for_each(|(slot, reached)| *slot |= reached);
            }
        }
    }
    reach
}

/// Returns the lengths of shortest walks with at least one step, where a run along a chain is one
/// step and two runs are never adjacent.
fn distances(chains: &Chains, edges: &[Edge]) -> Vec<Vec<usize>> {
    const FAR: usize = usize::MAX;
    let n = chains.nodes();
    let mut all = vec![vec![FAR; n]; n];
    for (start, row) in all.iter_mut().enumerate() {
        let mut frontier = vec![start];
        let mut distance = 0;
        while !frontier.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for node in frontier {
                let place = chains.place_of(node as u32) as usize;
                let later =
                    chains.members(chains.chain_of(node as u32))[place + 1..].iter().copied();
                let across = edges.iter().filter(|e| e.from as usize == node).map(|e| e.to);
                for to in later.chain(across) {
                    if row[to as usize] == FAR {
                        row[to as usize] = distance;
                        next.push(to as usize);
                    }
                }
            }
            frontier = next;
        }
    }
    all
}

fn assert_walk(chains: &Chains, edges: &[Edge], from: u32, to: u32, steps: &[PathStep]) {
    let mut here = from;
    for step in steps {
        here = match *step {
            PathStep::Run { from, to } => {
                assert_eq!(from, here);
                assert_eq!(chains.chain_of(from), chains.chain_of(to));
                assert!(chains.place_of(from) < chains.place_of(to));
                to
            }
            PathStep::Edge(id) => {
                assert_eq!(edges[id.index()].from, here);
                edges[id.index()].to
            }
        };
    }
    assert_eq!(here, to);
}

fn start_of(edges: &[Edge], step: PathStep) -> u32 {
    match step {
        PathStep::Run { from, .. } => from,
        PathStep::Edge(id) => edges[id.index()].from,
    }
}

#[test]
fn building_answers_reachability_as_the_closure_does() {
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let chains = random_chains(&mut random);
        if chains.nodes() == 0 {
            continue;
        }
        let count = random.below(8);
        let edges = random_edges(&mut random, chains.nodes(), count);
        let reach = closure(&chains, &edges);
        let cyclic = (0..chains.nodes()).any(|node| reach[node][node]);
        let extension = topological_order(&chains, &edges);
        assert_eq!(extension.is_none(), cyclic, "seed {seed}");
        match ChainOrder::build(chains.clone(), edges.clone()) {
            Err(_) => assert!(cyclic, "seed {seed}"),
            Ok(order) => {
                assert!(!cyclic, "seed {seed}");
                let mut rank = vec![0; chains.nodes()];
                for (at, &node) in extension.unwrap().iter().enumerate() {
                    rank[node as usize] = at;
                }
                for (a, row) in reach.iter().enumerate() {
                    for (b, &reached) in row.iter().enumerate() {
                        assert_eq!(order.before(a as u32, b as u32), reached, "seed {seed}");
                        assert!(!reached || rank[a] < rank[b], "seed {seed}");
                    }
                }
            }
        }
    }
}

#[test]
fn inserting_keeps_the_closure_and_finds_the_first_cycle() {
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let chains = random_chains(&mut random);
        if chains.nodes() == 0 {
            continue;
        }
        let mut kept: Vec<Edge> = Vec::new();
        let mut order = ChainOrder::build(chains.clone(), vec![]).unwrap();
        for edge in random_edges(&mut random, chains.nodes(), 10) {
            let reach = closure(&chains, &kept);
            let expected = if edge.from == edge.to || reach[edge.to as usize][edge.from as usize] {
                Inserted::Cycle
            } else if reach[edge.from as usize][edge.to as usize] {
                Inserted::Implied
            } else {
                Inserted::New
            };
            assert_eq!(order.insert(edge), expected, "seed {seed}");
            match expected {
                Inserted::Cycle => break,
                Inserted::Implied => continue,
                Inserted::New => kept.push(edge),
            }
            let reach = closure(&chains, &kept);
            for (a, row) in reach.iter().enumerate() {
                for (b, &reached) in row.iter().enumerate() {
                    assert_eq!(order.before(a as u32, b as u32), reached, "seed {seed}");
                }
            }
        }
    }
}

#[test]
fn paths_and_cycles_are_shortest() {
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let chains = random_chains(&mut random);
        let n = chains.nodes();
        if n == 0 {
            continue;
        }
        let count = random.below(10);
        let edges = random_edges(&mut random, n, count);
        let lengths = distances(&chains, &edges);
        let mut paths = Paths::new(&chains, &edges);
        for _ in 0..4 {
            let (from, to) = (random.below(n), random.below(n));
            if from == to {
                continue;
            }
            match paths.shortest_path(from as u32, to as u32, usize::MAX) {
                None => assert_eq!(lengths[from][to], usize::MAX, "seed {seed}"),
                Some(steps) => {
                    assert_walk(&chains, &edges, from as u32, to as u32, &steps);
                    assert_eq!(steps.len(), lengths[from][to], "seed {seed}");
                    let tight = paths.shortest_path(from as u32, to as u32, steps.len() - 1);
                    assert_eq!(tight, None, "seed {seed}");
                }
            }
        }
        let shortest = (0..n).map(|node| lengths[node][node]).min().unwrap_or(usize::MAX);
        match paths.shortest_cycle(u64::MAX) {
            None => assert_eq!(shortest, usize::MAX, "seed {seed}"),
            Some(steps) => {
                let start = start_of(&edges, steps[0]);
                assert_walk(&chains, &edges, start, start, &steps);
                assert_eq!(steps.len(), shortest, "seed {seed}");
            }
        }
    }
}

#[test]
fn undoing_gives_the_order_back() {
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let chains = random_chains(&mut random);
        let n = chains.nodes();
        if n == 0 {
            continue;
        }
        let mut kept: Vec<Edge> = Vec::new();
        let mut order = ChainOrder::build(chains.clone(), vec![]).unwrap();
        let mut marks = Vec::new();
        for edge in random_edges(&mut random, n, 14) {
            match random.below(4) {
                0 => marks.push((order.mark(), kept.clone())),
                1 => {
                    if let Some((mark, before)) = marks.pop() {
                        order.undo(mark);
                        kept = before;
                    }
                }
                _ => match order.insert(edge) {
                    Inserted::New => kept.push(edge),
                    Inserted::Implied => {}
                    Inserted::Cycle => {
                        let Some((mark, before)) = marks.pop() else { break };
                        order.undo(mark);
                        kept = before;
                    }
                },
            }
            assert_eq!(order.edges(), kept, "seed {seed}");
            let reach = closure(&chains, &kept);
            for (a, row) in reach.iter().enumerate() {
                for (b, &reached) in row.iter().enumerate() {
                    assert_eq!(order.before(a as u32, b as u32), reached, "seed {seed}");
                }
            }
        }
    }
}
