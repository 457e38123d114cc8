//! Lanes as rows, time from left to right, nodes as bars.
//!
//! Times become columns: every distinct time in order, as far apart as the labels need, so that a
//! microsecond among seconds is still readable. Bars of one lane that overlap in time are stacked.
//! Edges are not drawn: which bar ends before which begins is what this view shows.

use std::collections::BTreeMap;

use crate::geometry::{NAME_TEXT, NODE_TEXT, Point, Rect, bold_width, mono_width, printable};
use crate::{Scene, View};

const MARGIN: f64 = 16.0;
/// Height of a bar with one line; each further line adds [`LINE_HEIGHT`].
const BAR_HEIGHT: f64 = 26.0;
const LINE_HEIGHT: f64 = 17.0;
/// Room between bars of one lane that overlap in time.
const BAR_GAP: f64 = 14.0;
const LANE_GAP: f64 = 10.0;
const COLUMN_GAP: f64 = 14.0;
const BAND_LABEL: f64 = 18.0;

/// Places the nodes that have times as bars; returns `None` if none has.
pub fn time_view(scene: &Scene) -> Option<View> {
    let timed: Vec<usize> =
        (0..scene.nodes.len()).filter(|&node| scene.nodes[node].start.is_some()).collect();
    if timed.is_empty() {
        return None;
    }
    let start = |node: usize| scene.nodes[node].start.expect("only nodes with times are looked at");
    let last = timed.iter().map(|&node| scene.nodes[node].end.unwrap_or(start(node))).max();
    let after_all = last.unwrap_or(0).saturating_add(1);
    // A pending bar runs to the right margin.
    let end = |node: usize| scene.nodes[node].end.map_or(after_all, |end| end.max(start(node)));

    let xs = columns(scene, &timed, &start, &end);
    let x_of = |moment: Moment| xs.range(..=moment).next_back().map_or(0.0, |(_, &x)| x);

    let names = scene.lanes.iter().map(|lane| bold_width(&lane.name, NAME_TEXT));
    let left = MARGIN + names.fold(0.0, f64::max) + 16.0;
    let right = left + xs.values().copied().fold(0.0, f64::max);
    let lanes = scene.nodes.iter().map(|node| node.lane + 1).max().unwrap_or(0);
    let lanes = lanes.max(scene.lanes.len());

    let mut view = View { edges: vec![None; scene.edges.len()], ..View::default() };
    view.nodes = vec![None; scene.nodes.len()];
    let mut order = timed.clone();
    order.sort_by_key(|&node| (scene.nodes[node].lane, start(node), end(node), node));
    let top = MARGIN + if scene.bands.is_empty() { 0.0 } else { BAND_LABEL };
    let mut y = top;
    for lane in 0..lanes {
        // A lane without times, such as that of initial values, takes no room.
        if !order.iter().any(|&node| scene.nodes[node].lane == lane) {
            view.lanes.push(Rect { x: MARGIN / 2.0, y, w: 0.0, h: 0.0 });
            view.names.push(Point { x: MARGIN, y });
            continue;
        }
        // End of the last bar in each of the lane's levels.
        let mut levels: Vec<i64> = Vec::new();
        let lines = order.iter().filter(|&&node| scene.nodes[node].lane == lane);
        let lines = lines.map(|&node| scene.nodes[node].lines.len()).max().unwrap_or(1).max(1);
        let bar_height = BAR_HEIGHT + (lines - 1) as f64 * LINE_HEIGHT;
        let pitch = bar_height + BAR_GAP;
        for &node in order.iter().filter(|&&node| scene.nodes[node].lane == lane) {
            let level = levels.iter().position(|&end| end < start(node)).unwrap_or_else(|| {
                levels.push(0);
                levels.len() - 1
            });
            levels[level] = end(node);
            let (x, to) = (left + x_of((start(node), 0)), left + x_of((end(node), 1)));
            let y = y + 7.0 + level as f64 * pitch;
            view.nodes[node] = Some(Rect { x, y, w: to - x, h: bar_height });
        }
        let h = levels.len().max(1) as f64 * pitch;
        view.lanes.push(Rect { x: MARGIN / 2.0, y, w: right - MARGIN / 2.0 + 16.0, h });
        view.names.push(Point { x: MARGIN, y: y + 7.0 + bar_height / 2.0 + 5.0 });
        y += h + LANE_GAP;
    }
    for band in &scene.bands {
        let (x, to) = (left + x_of((band.start, 0)), left + x_of((band.end, 1)));
        view.bands.push(Rect { x, y: MARGIN / 2.0, w: (to - x).max(3.0), h: y - MARGIN / 2.0 });
    }
    view.width = right + MARGIN + 16.0;
    view.height = y + MARGIN;
    Some(view)
}

/// A time, and whether something starts (0) or ends (1) at it: starts come first.
type Moment = (i64, u8);

/// Places every time that something starts or ends at, wide enough for the labels between them.
fn columns(
    scene: &Scene,
    timed: &[usize],
    start: &impl Fn(usize) -> i64,
    end: &impl Fn(usize) -> i64,
) -> BTreeMap<Moment, f64> {
    let mut ending: BTreeMap<Moment, Vec<usize>> = BTreeMap::new();
    for &node in timed {
        ending.entry((start(node), 0)).or_default();
        ending.entry((end(node), 1)).or_default().push(node);
    }
    for band in &scene.bands {
        ending.entry((band.start, 0)).or_default();
        ending.entry((band.end, 1)).or_default();
    }
    let mut xs = BTreeMap::new();
    let mut x = 0.0f64;
    for (&moment, nodes) in &ending {
        for &node in nodes {
            let place = scene.nodes[node].place.map_or(0, |place| place.to_string().len());
            let lines = scene.nodes[node].lines.iter();
            let widths = lines.map(|line| mono_width(&printable(line), NODE_TEXT));
            let needed = widths.fold(0.0, f64::max) + 26.0 + 12.0 * place as f64;
            x = x.max(xs.get(&(start(node), 0)).copied().unwrap_or(0.0) + needed);
        }
        xs.insert(moment, x);
        x += COLUMN_GAP;
    }
    xs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lane, Node, svg};

    #[test]
    fn a_lane_without_times_is_not_shown() {
        let mut scene = Scene::new("");
        scene.lanes = vec![Lane::new("initially"), Lane::new("t0")];
        let timed = Node { start: Some(1), end: Some(2), ..Node::new("t0:0", 1, 1, "w(x,1)") };
        scene.nodes = vec![Node::new("", 0, 0, "x=0"), timed];
        let view = time_view(&scene).unwrap();
        assert_eq!((view.lanes[0].h, view.lanes[1].y), (0.0, MARGIN));
        let picture = svg(&scene, &view);
        assert!(picture.contains("t0") && !picture.contains("initially"), "{picture}");
    }
}
