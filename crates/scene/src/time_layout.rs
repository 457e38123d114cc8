//! Lanes as rows, time from left to right, nodes as bars.
//!
//! Times become columns: all distinct times in order, as far apart as the labels require, so that a
//! microsecond among seconds is still readable. Bars of one lane that overlap in time are stacked.
//! Edges are not drawn: the view shows which bar ends before which one begins. The axis labels
//! times where there is room. If the nodes have positions in an order that agrees with their times,
//! each has a bead at a point where it may take effect in that order, and a line connects the
//! beads.

use std::collections::BTreeMap;

use crate::geometry::{
    NAME_TEXT, NODE_TEXT, Point, Rect, bold_width, mono_width, printable, rounded,
};
use crate::{Bead, Scene, Tick, View, grouped};

const MARGIN: f64 = 16.0;
/// Height of a bar with one line; each further line adds [`LINE_HEIGHT`].
const BAR_HEIGHT: f64 = 26.0;
const LINE_HEIGHT: f64 = 17.0;
/// Distance between stacked bars of one lane.
const BAR_GAP: f64 = 14.0;
const LANE_GAP: f64 = 10.0;
const COLUMN_GAP: f64 = 14.0;
const BAND_LABEL: f64 = 18.0;
/// Distance between the top of a lane and its first bar, where beads are drawn.
const BAR_TOP: f64 = 10.0;
const AXIS_HEIGHT: f64 = 16.0;
const TICK_TEXT: f64 = 10.0;
/// Number of digits above which times are shown relative to the first.
const MAX_TIME_DIGITS: usize = 7;

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
    // A pending bar extends to the right margin.
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
        // A lane without times, such as that of initial values, has no height.
        if !order.iter().any(|&node| scene.nodes[node].lane == lane) {
            view.lanes.push(Rect { x: MARGIN / 2.0, y, w: 0.0, h: 0.0 });
            view.names.push(Point { x: MARGIN, y });
            continue;
        }
        // End of the last bar in each level of the lane.
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
            let y = y + BAR_TOP + level as f64 * pitch;
            view.nodes[node] = Some(Rect { x, y, w: to - x, h: bar_height });
        }
        let h = levels.len().max(1) as f64 * pitch + BAR_TOP - BAR_GAP / 2.0;
        view.lanes.push(Rect { x: MARGIN / 2.0, y, w: right - MARGIN / 2.0 + 16.0, h });
        view.names.push(Point { x: MARGIN, y: y + BAR_TOP + bar_height / 2.0 + 5.0 });
        y += h + LANE_GAP;
    }
    for band in &scene.bands {
        let (x, to) = (left + x_of((band.start, 0)), left + x_of((band.end, 1)));
        view.bands.push(Rect { x, y: MARGIN / 2.0, w: (to - x).max(3.0), h: y - MARGIN / 2.0 });
    }
    view.width = right + MARGIN + 16.0;
    view.height = y + MARGIN - LANE_GAP;
    if !scene.is_without_clock {
        let has_pending = timed.iter().any(|&node| scene.nodes[node].end.is_none());
        view.ticks = ticks(&xs, (left, view.width), y + 4.0, has_pending);
        view.height += AXIS_HEIGHT;
    }
    view.beads = beads(scene, &view.nodes);
    Some(view)
}

/// Labels times from left to right where there is room.
///
/// In a scene with pending bars the last time is artificial, and has no label.
fn ticks(
    xs: &BTreeMap<Moment, f64>,
    (left, width): (f64, f64),
    y: f64,
    is_last_invented: bool,
) -> Vec<Tick> {
    let (Some(&(first, _)), Some(&(last, _))) = (xs.keys().next(), xs.keys().next_back()) else {
        return Vec::new();
    };
    let is_long = |time: i64| time.unsigned_abs().to_string().len() > MAX_TIME_DIGITS;
    let is_relative = is_long(first) || is_long(last);
    let mut ticks: Vec<Tick> = Vec::new();
    let mut free = 0.0;
    let invented = if is_last_invented { Some(last) } else { None };
    for (&(time, _), x) in xs.iter().filter(|((time, _), _)| Some(*time) != invented) {
        let distance = usize::try_from(time.abs_diff(first)).unwrap_or(usize::MAX);
        let label = match is_relative {
            true => format!("+{}", grouped(distance)),
            false => time.to_string(),
        };
        let half = label.len() as f64 * TICK_TEXT * 0.31;
        let x = left + x;
        if x - half >= free && x + half <= width {
            free = x + half + 8.0;
            ticks.push(Tick(rounded(x), rounded(y + 10.0), label));
        }
    }
    ticks
}

/// Places a bead on the bar of each node with a position, not before the bead of an earlier
/// position if the widths of beads permit.
fn beads(scene: &Scene, boxes: &[Option<Rect>]) -> Vec<Bead> {
    let placed = scene.nodes.iter().zip(boxes).enumerate();
    let mut placed: Vec<(usize, usize, Rect)> =
        placed.filter_map(|(index, (node, rect))| Some((node.place?, index, (*rect)?))).collect();
    placed.sort_by_key(|&(place, ..)| place);
    // For an order that contradicts time there are no such points.
    let mut latest_start = i64::MIN;
    for &(_, node, _) in &placed {
        let node = &scene.nodes[node];
        latest_start = latest_start.max(node.start.unwrap_or(i64::MIN));
        if node.end.is_some_and(|end| end < latest_start) {
            return Vec::new();
        }
    }
    let mut x = f64::MIN;
    placed
        .into_iter()
        .map(|(place, node, rect)| {
            let half = Bead::half_width(place) + 2.0;
            x = (x + 3.0).max(rect.x + half).min((rect.x + rect.w - half).max(rect.x + half));
            Bead(node, rounded(x), rounded(rect.y - 1.0))
        })
        .collect()
}

/// A time, and whether something starts (0) or ends (1) at it; starts come first.
type Moment = (i64, u8);

/// Assigns a coordinate to every start and end, far enough apart for the labels between them.
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
