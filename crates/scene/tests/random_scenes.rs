//! Views of random scenes: no label overlaps a label, a node or another edge's line, no edge
//! runs over a node, and every text fits its box.

use consistory_scene::{
    Edge, Emphasis, Lane, Node, NodeKind, Point, Scene, lattice_view, order_view, svg, text,
    time_view,
};

/// A small linear generator; the tests need variety, not quality.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n
    }
}

const RELATIONS: [&str; 9] =
    ["po", "wr", "ww", "rw", "rt", "so", "cf", "hb", "a long name of a user"];

fn random_scene(random: &mut Random, kind: usize) -> Scene {
    let mut scene = Scene::new(format!("scene of kind {kind}"));
    let lanes = 1 + random.below(7);
    scene.lanes = (0..lanes).map(|lane| Lane::new(format!("session {lane}"))).collect();
    let count = 1 + random.below(if kind == 0 { 40 } else { 18 });
    for index in 0..count {
        let lane = random.below(lanes);
        let row = random.below(12);
        let mut node =
            Node::new(format!("n{index}"), lane, row, format!("w(x{index},{})", index * 7));
        if kind == 1 {
            node.kind = NodeKind::Transaction;
            node.lines =
                (0..1 + random.below(4)).map(|i| format!("append(key{i},{index})")).collect();
        }
        if random.below(4) == 0 {
            node.emphasis = Emphasis::Proof;
        }
        if kind == 2 {
            let start = random.below(200) as i64;
            node.start = Some(start);
            node.end = (random.below(5) > 0).then(|| start + random.below(40) as i64);
        }
        scene.nodes.push(node);
    }
    for _ in 0..random.below(count * 2) {
        let (from, to) = (random.below(count), random.below(count));
        scene.edges.push(Edge::new(from, to, RELATIONS[random.below(RELATIONS.len())]));
    }
    scene
}

/// A scene like those of protocol runs: one row per step, boxes of several lines, unnamed edges to
/// the changes of a step in other lanes.
fn random_run(random: &mut Random) -> Scene {
    let mut scene = Scene::new("run");
    let lanes = 1 + random.below(5);
    scene.lanes = (0..lanes).map(|lane| Lane::new(format!("Proc_{lane}"))).collect();
    for step in 0..1 + random.below(14) {
        let actor = random.below(lanes);
        let head = scene.nodes.len();
        let lines = |random: &mut Random| -> Vec<String> {
            (0..1 + random.below(9)).map(|i| format!("cache[{step}][{i}].state: I → S")).collect()
        };
        let node = Node::new(format!("step {step}"), actor, step, "");
        scene.nodes.push(Node { lines: lines(random), ..node });
        for lane in (0..lanes).filter(|&lane| lane != actor) {
            if random.below(2) == 0 {
                scene.edges.push(Edge::new(head, scene.nodes.len(), ""));
                let node = Node::new(format!("step {step} at {lane}"), lane, step, "");
                scene.nodes.push(Node { lines: lines(random), ..node });
            }
        }
    }
    scene
}

/// A scene like those of executions of litmus tests: program order within each lane, and the
/// relations of memory between any two events.
fn random_execution(random: &mut Random) -> Scene {
    let mut scene = Scene::new("execution");
    let threads = 1 + random.below(5);
    scene.lanes = (0..threads).map(|thread| Lane::new(format!("P{thread}"))).collect();
    for thread in 0..threads {
        for row in 0..1 + random.below(5) {
            let index = scene.nodes.len();
            let node = Node::new(format!("P{thread}:{row}"), thread, row, format!("R x{index}=0"));
            scene.nodes.push(Node { place: Some(index + 1), ..node });
            if row > 0 {
                scene.edges.push(Edge::new(index - 1, index, "po"));
            }
        }
    }
    let count = scene.nodes.len();
    for _ in 0..random.below(2 * count) {
        let relation = ["rf", "co", "fr"][random.below(3)];
        scene.edges.push(Edge::new(random.below(count), random.below(count), relation));
    }
    scene
}

fn segments(points: &[Point]) -> impl Iterator<Item = (Point, Point)> {
    points.windows(2).map(|pair| (pair[0], pair[1]))
}

#[test]
fn nothing_overlaps_in_an_order_view() {
    let mut random = Random(1);
    for kind in 0..5 {
        for number in 0..200 {
            let scene = match kind {
                3 => random_run(&mut random),
                4 => random_execution(&mut random),
                kind => random_scene(&mut random, kind),
            };
            let view = order_view(&scene);
            let place = || format!("kind {kind}, scene {number}:\n{scene:?}");
            let nodes: Vec<_> = view.nodes.iter().map(|rect| rect.unwrap()).collect();
            for (i, a) in nodes.iter().enumerate() {
                assert!(a.x >= 0.0 && a.x + a.w <= view.width, "{}", place());
                assert!(a.y >= 0.0 && a.y + a.h <= view.height, "{}", place());
                let longest = scene.nodes[i].lines.iter().map(|l| l.chars().count()).max().unwrap();
                assert!(
                    a.w >= longest as f64 * 13.0 * 0.61 && a.h >= 15.0,
                    "text is cut: {}",
                    place()
                );
                assert!(
                    nodes[i + 1..].iter().all(|b| !a.overlaps(b)),
                    "nodes overlap: {}",
                    place()
                );
            }
            let routes: Vec<_> = view.edges.iter().map(|route| route.clone().unwrap()).collect();
            for (i, route) in routes.iter().enumerate() {
                assert!(route.label.x >= 0.0 && route.label.x + route.label.w <= view.width);
                for (a, b) in segments(&route.points) {
                    assert!(
                        a.x == b.x || a.y == b.y,
                        "an edge is not at right angles: {}",
                        place()
                    );
                    let node = nodes.iter().position(|node| node.is_crossed_by(a, b));
                    assert_eq!(node, None, "edge {i} runs over a node: {}", place());
                }
                assert!(nodes.iter().all(|node| !route.label.overlaps(node)), "{i}: {}", place());
                for (j, other) in routes.iter().enumerate().filter(|&(j, _)| j != i) {
                    assert!(!route.label.overlaps(&other.label), "labels {i} {j}: {}", place());
                    let is_crossed =
                        segments(&other.points).any(|(a, b)| route.label.is_crossed_by(a, b));
                    assert!(!is_crossed, "edge {j} runs over the label of {i}: {}", place());
                }
            }
        }
    }
}

#[test]
fn bars_do_not_overlap_in_a_time_view() {
    let mut random = Random(2);
    for _ in 0..200 {
        let mut scene = random_scene(&mut random, 2);
        for node in &mut scene.nodes {
            // Transactions have several lines, calls of a linearization have numbers.
            node.lines.extend((0..random.below(3)).map(|i| format!("append(key{i},{i})")));
            node.place = (random.below(2) == 0).then_some(1 + random.below(200));
        }
        let view = time_view(&scene).unwrap();
        let bars: Vec<_> = view.nodes.iter().map(|rect| rect.unwrap()).collect();
        for (i, a) in bars.iter().enumerate() {
            assert!(bars[i + 1..].iter().all(|b| !a.overlaps(b)), "{scene:?}");
            let lines = &scene.nodes[i].lines;
            let label = lines.iter().map(String::len).max().unwrap() as f64 * 13.0 * 0.61;
            // The position is to the left of the text, which is centred.
            let place = scene.nodes[i].place.map_or(0, |place| place.to_string().len());
            assert!(a.w >= label + 2.0 * (4.0 + 6.0 * place as f64), "text is cut: {scene:?}");
            assert!(a.h >= lines.len() as f64 * 17.0, "text is cut: {scene:?}");
            // Bars are in the order of time.
            for (j, b) in bars.iter().enumerate() {
                let (first, second) = (&scene.nodes[i], &scene.nodes[j]);
                if first.end.is_some() && first.end < second.start {
                    assert!(a.x + a.w <= b.x, "{i} ends before {j} begins: {scene:?}");
                }
            }
        }
    }
}

#[test]
fn beads_stand_on_their_bars_and_apart_and_ticks_have_room() {
    let mut random = Random(5);
    for _ in 0..200 {
        let mut scene = random_scene(&mut random, 2);
        // The order of the starts agrees with time.
        let mut order: Vec<usize> = (0..scene.nodes.len()).collect();
        order.sort_by_key(|&node| scene.nodes[node].start);
        let first = random.below(2000);
        for (place, &node) in order.iter().enumerate() {
            scene.nodes[node].place = Some(first + place + 1);
        }
        let view = time_view(&scene).unwrap();
        assert_eq!(view.beads.iter().map(|bead| bead.0).collect::<Vec<_>>(), order);
        let boxes: Vec<_> =
            view.beads.iter().map(|bead| bead.rect(scene.nodes[bead.0].place.unwrap())).collect();
        for (i, (bead, rect)) in view.beads.iter().zip(&boxes).enumerate() {
            let bar = view.nodes[bead.0].unwrap();
            assert!(rect.x >= bar.x && rect.x + rect.w <= bar.x + bar.w, "{bead:?} of {bar:?}");
            assert!(
                rect.y + rect.h <= bar.y + 7.0,
                "the bead covers the label: {bead:?} of {bar:?}"
            );
            assert!(boxes[i + 1..].iter().all(|other| !rect.overlaps(other)), "{scene:?}");
            for (node, other) in view.nodes.iter().enumerate().filter(|(node, _)| *node != bead.0) {
                assert!(!rect.overlaps(&other.unwrap()), "{bead:?} is on {node}: {scene:?}");
            }
        }
        let half = |label: &str| label.len() as f64 * 3.1;
        assert!(!view.ticks.is_empty());
        for pair in view.ticks.windows(2) {
            assert!(pair[0].0 + half(&pair[0].2) < pair[1].0 - half(&pair[1].2), "{pair:?}");
        }
        assert!(view.ticks.iter().all(|tick| tick.1 < view.height && tick.0 < view.width));
        let drawn = svg(&scene, &view);
        assert!(drawn.contains(&format!(">{}<", first + 1)));
        // An order that contradicts time has no beads.
        let (early, late) = (order[0], order[order.len() - 1]);
        if scene.nodes[early].end.is_some_and(|end| Some(end) < scene.nodes[late].start) {
            let place = scene.nodes[early].place;
            scene.nodes[early].place = scene.nodes[late].place;
            scene.nodes[late].place = place;
            assert!(time_view(&scene).unwrap().beads.is_empty());
        }
    }
}

#[test]
fn long_times_are_shown_as_distances_and_invented_ones_not_at_all() {
    let mut scene = Scene::new("");
    let timed = |start, end| Node { start: Some(start), end, ..Node::new("a", 0, 0, "w(x,1)") };
    scene.nodes =
        vec![timed(1_700_000_000_000, Some(1_700_000_001_500)), timed(1_700_000_002_000, None)];
    let labels = |scene: &Scene| {
        let view = time_view(scene).unwrap();
        view.ticks.into_iter().map(|tick| tick.2).collect::<Vec<_>>()
    };
    assert_eq!(labels(&scene), ["+0", "+1,500"]);
    scene.is_without_clock = true;
    assert!(labels(&scene).is_empty());
}

#[test]
fn edges_without_ends_and_empty_scenes_are_drawn() {
    let mut scene = Scene::new("");
    assert!(svg(&scene, &order_view(&scene)).starts_with("<svg"));
    assert!(time_view(&scene).is_none());
    scene.nodes = vec![Node::new("a", 3, 9, "x")];
    scene.edges = vec![Edge::new(0, 7, "wr"), Edge::new(0, 0, "po")];
    let view = order_view(&scene);
    assert!(view.edges[0].is_none() && view.edges[1].is_some());
}

/// A scene whose edges lead to lower rows, like those of a Hasse diagram.
fn random_lattice(random: &mut Random) -> Scene {
    let mut scene = Scene::new("lattice");
    let count = 1 + random.below(24);
    for index in 0..count {
        let mut node = Node::new(format!("m{index}"), 0, random.below(7), format!("m{index}"));
        if random.below(2) == 0 {
            node.lines.push("a title in several words".to_owned());
        }
        scene.nodes.push(node);
    }
    for _ in 0..random.below(count * 2) {
        let (a, b) = (random.below(count), random.below(count));
        let (from, to) = if scene.nodes[a].row < scene.nodes[b].row { (a, b) } else { (b, a) };
        let label = ["", "7", "12, open", "a longer label"][random.below(4)];
        scene.edges.push(Edge::new(from, to, label));
    }
    scene
}

#[test]
fn nothing_overlaps_in_a_lattice_view() {
    let mut random = Random(3);
    let mut shown = 0;
    for number in 0..200 {
        let scene = random_lattice(&mut random);
        let view = lattice_view(&scene);
        let place = || format!("lattice {number}:\n{scene:?}");
        let nodes: Vec<_> = view.nodes.iter().map(|rect| rect.unwrap()).collect();
        for (i, a) in nodes.iter().enumerate() {
            assert!(a.x >= 0.0 && a.x + a.w <= view.width && a.y + a.h <= view.height);
            let longest = scene.nodes[i].lines.iter().map(String::len).max().unwrap();
            assert!(a.w >= longest as f64 * 13.0 * 0.61, "text is cut: {}", place());
            let is_apart = nodes[i + 1..].iter().all(|b| !a.overlaps(b));
            assert!(is_apart, "nodes overlap: {}", place());
        }
        let routes: Vec<_> = view.edges.iter().flatten().collect();
        shown += routes.len();
        for (i, route) in routes.iter().enumerate() {
            // The bounding box of a slanted line is larger than the line, so this check is strict.
            for (a, b) in segments(&route.points) {
                let node = nodes.iter().position(|node| node.is_crossed_by(a, b));
                assert_eq!(node, None, "edge {i} runs over a node: {}", place());
            }
            assert!(nodes.iter().all(|node| !route.label.overlaps(node)), "{i}: {}", place());
            for (j, other) in routes.iter().enumerate().filter(|&(j, _)| j != i) {
                assert!(!route.label.overlaps(&other.label), "labels {i} {j}: {}", place());
                let is_crossed =
                    segments(&other.points).any(|(a, b)| route.label.is_crossed_by(a, b));
                assert!(!is_crossed, "edge {j} runs over the label of {i}: {}", place());
            }
        }
    }
    assert!(shown > 1000, "only {shown} edges were looked at");
}

#[test]
fn a_lattice_has_the_strong_above_the_weak_and_no_needless_crossing() {
    // In the given order, the two edges to the lowest layer would cross.
    let mut scene = Scene::new("");
    scene.nodes = [("a", 0), ("b", 3), ("c", 3), ("d", 9), ("e", 9)]
        .map(|(id, row)| Node::new(id, 0, row, id))
        .to_vec();
    scene.edges = [(0, 1), (0, 2), (1, 4), (2, 3), (0, 3), (7, 0), (1, 2)]
        .map(|(from, to)| Edge::new(from, to, ""))
        .to_vec();
    let view = lattice_view(&scene);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|node| view.nodes[node].unwrap().centre());
    assert!(a.y < b.y && b.y == c.y && c.y < d.y && d.y == e.y, "layers from top to bottom");
    assert_eq!(b.x < c.x, e.x < d.x, "edges to the lower layer do not cross");
    assert!(view.edges[5].is_none() && view.edges[6].is_none());
    assert!(svg(&scene, &view).contains(">a<"));
    assert!(lattice_view(&Scene::new("")).nodes.is_empty());
}

#[test]
fn a_scene_in_the_terminal_keeps_to_its_width() {
    let mut random = Random(4);
    for kind in 0..3 {
        for _ in 0..200 {
            let scene = random_scene(&mut random, kind);
            for width in [40, 80, 120] {
                for line in text(&scene, width).lines() {
                    assert!(line.chars().count() <= width, "{line}\n{scene:?}");
                }
            }
        }
    }
}
