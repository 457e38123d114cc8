//! Lanes as columns, rows downwards, edges routed at right angles.
//!
//! The picture is divided into regions, and each kind of element has its own regions:
//!
//! ```text
//!          zone │ tracks │ zone
//!   ┌──────┐    │   │    │    ┌──────┐
//!   │ node ├────┼───┘    │ wr▸│ node │      row
//!   └──┬───┘    │        │    └──────┘
//!      │ po     │        │                  strip
//!   ───┼────────┼────────┼──────────────    channel
//! ```
//!
//! - Nodes are in cells, one per lane and row.
//! - An edge leaves and enters a node through a port at its left or right side. Ports of one side
//!   are 16 units apart, and ports of the left and the right side never have the same height.
//! - The label of an edge is on its last stretch, inside the *zone* next to the node that it
//!   enters. At the height of a row, only the stubs of that side's ports cross a zone.
//! - Between two zones are the *tracks*: vertical stretches, in different tracks if they would
//!   overlap.
//! - Between two rows is a *channel* of horizontal tracks, for edges that pass other lanes.
//! - An edge to the next node of the same lane runs straight down; its label has a *strip* of its
//!   own below the node where it starts.
//!
//! So labels meet neither nodes nor other edges nor one another. The cost is about
//! `edges × log edges` plus the pairs of edges that share a gap.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::geometry::{
    LABEL_TEXT, NAME_TEXT, NODE_TEXT, Point, Rect, bold_width, columns, mono_width, printable,
};
use crate::{Route, Scene, View};

const MARGIN: f64 = 16.0;
const NAME_HEIGHT: f64 = 30.0;
const LINE_HEIGHT: f64 = 17.0;
const NODE_PADDING: f64 = 13.0;
const PORT_PITCH: f64 = 16.0;
const LABEL_HEIGHT: f64 = 14.0;
const STRIP_HEIGHT: f64 = 18.0;
const TRACK_PITCH: f64 = 13.0;
const ROW_GAP: f64 = 14.0;
/// Width of the zone next to a node without a label: room for an arrowhead and a margin.
const SMALLEST_ZONE: f64 = 16.0;
/// Room for the arrowhead between a label and the node.
const ARROW_ROOM: f64 = 13.0;
const NARROWEST_LANE: f64 = 72.0;

/// The side of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Side {
    Left,
    Right,
}

/// Course of an edge.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Course {
    /// Straight down to the next node of the lane.
    Straight,
    /// Through one gap between lanes.
    Gap { exit: Side, entry: Side, gap: usize },
    /// Through two gaps, and a channel between them.
    Channel { exit: Side, entry: Side, first: usize, last: usize, channel: usize },
}

/// Places a scene's nodes in columns and routes its edges.
///
/// If nodes of one lane have the same row, the later ones are moved down, in the order of the list.
/// An edge without existing ends is not shown.
pub fn order_view(scene: &Scene) -> View {
    let grid = Grid::new(scene);
    let courses = courses(scene, &grid);
    let ports = Ports::new(scene, &grid, &courses);
    let rows = Rows::new(scene, &grid, &courses, &ports);
    let gaps = Gaps::new(scene, &grid, &courses, &rows, &ports);

    let mut view =
        View { width: gaps.width + 2.0 * MARGIN, height: rows.height + MARGIN, ..View::default() };
    for lane in 0..grid.lanes {
        let (x, w) = gaps.lanes[lane];
        view.lanes.push(Rect { x: x - 6.0, y: MARGIN / 2.0, w: w + 12.0, h: rows.height });
        view.names.push(Point { x: x + w / 2.0, y: MARGIN / 2.0 + 20.0 });
    }
    for (node, &(lane, row)) in grid.cells.iter().enumerate() {
        let (x, w) = gaps.lanes[lane];
        let h = ports.heights[node];
        view.nodes.push(Some(Rect { x, y: rows.centres[row] - h / 2.0, w, h }));
    }
    for (index, edge) in scene.edges.iter().enumerate() {
        let Some(course) = courses[index] else {
            view.edges.push(None);
            continue;
        };
        let rect = |node: usize| view.nodes[node].expect("an order view shows every node");
        let (from, to) = (rect(edge.from), rect(edge.to));
        let out_of = |side: Side, rect: Rect| match side {
            Side::Left => rect.x,
            Side::Right => rect.x + rect.w,
        };
        let label_width = label_width(&edge.relation);
        let route = match course {
            Course::Straight => {
                let x = from.centre().x;
                let start = Point { x, y: from.y + from.h };
                let label = Rect { x: x + 5.0, y: start.y + 2.0, w: label_width, h: LABEL_HEIGHT };
                Route { points: vec![start, Point { x, y: to.y }], label }
            }
            Course::Gap { exit, entry, .. } | Course::Channel { exit, entry, .. } => {
                let start =
                    Point { x: out_of(exit, from), y: ports.y(index, 0, edge.from, &grid, &rows) };
                let end =
                    Point { x: out_of(entry, to), y: ports.y(index, 1, edge.to, &grid, &rows) };
                let mut points = vec![start];
                for (x, y) in gaps.corners(index, course, start.y, end.y) {
                    points.push(Point { x, y });
                }
                points.push(end);
                points.dedup();
                let x = match entry {
                    Side::Left => end.x - ARROW_ROOM - label_width,
                    Side::Right => end.x + ARROW_ROOM,
                };
                let y = end.y - LABEL_HEIGHT / 2.0;
                Route { points, label: Rect { x, y, w: label_width, h: LABEL_HEIGHT } }
            }
        };
        view.edges.push(Some(route));
    }
    view
}

/// The width of a label; an edge without a label has none.
fn label_width(relation: &str) -> f64 {
    if relation.is_empty() { 0.0 } else { bold_width(relation, LABEL_TEXT) + 6.0 }
}

/// Cells of the nodes.
struct Grid {
    lanes: usize,
    rows: usize,
    /// Lane and row of each node.
    cells: Vec<(usize, usize)>,
    /// Node that follows each node in its lane.
    next: Vec<Option<usize>>,
}

impl Grid {
    fn new(scene: &Scene) -> Self {
        let lanes =
            scene.nodes.iter().map(|node| node.lane + 1).max().unwrap_or(0).max(scene.lanes.len());
        let mut order: Vec<usize> = (0..scene.nodes.len()).collect();
        order.sort_by_key(|&node| (scene.nodes[node].lane, scene.nodes[node].row, node));
        let mut cells = vec![(0, 0); scene.nodes.len()];
        let mut next = vec![None; scene.nodes.len()];
        let mut above: Option<usize> = None;
        for &node in &order {
            let lane = scene.nodes[node].lane;
            let mut row = scene.nodes[node].row;
            if let Some(above) = above.filter(|&above| cells[above].0 == lane) {
                row = row.max(cells[above].1 + 1);
                next[above] = Some(node);
            }
            cells[node] = (lane, row);
            above = Some(node);
        }
        // Rows without nodes have no height.
        let used: BTreeMap<usize, usize> = {
            let mut rows: Vec<usize> = cells.iter().map(|cell| cell.1).collect();
            rows.sort_unstable();
            rows.dedup();
            rows.into_iter().enumerate().map(|(new, old)| (old, new)).collect()
        };
        for cell in &mut cells {
            cell.1 = used[&cell.1];
        }
        Grid { lanes, rows: used.len(), cells, next }
    }
}

/// Chooses the course of each edge; `None` if its ends do not exist.
fn courses(scene: &Scene, grid: &Grid) -> Vec<Option<Course>> {
    let mut straight = HashSet::new();
    // Number of edges in the gap at each side of a lane, for balancing those within one lane.
    let mut load = vec![0usize; grid.lanes + 1];
    let mut found = Vec::with_capacity(scene.edges.len());
    for edge in &scene.edges {
        if edge.from >= grid.cells.len() || edge.to >= grid.cells.len() {
            found.push(None);
            continue;
        }
        let ((lane, row), (to_lane, to_row)) = (grid.cells[edge.from], grid.cells[edge.to]);
        let course = if lane == to_lane {
            if grid.next[edge.from] == Some(edge.to) && straight.insert(edge.from) {
                Course::Straight
            } else if load[lane] < load[lane + 1] {
                Course::Gap { exit: Side::Left, entry: Side::Left, gap: lane }
            } else {
                Course::Gap { exit: Side::Right, entry: Side::Right, gap: lane + 1 }
            }
        } else {
            let (exit, entry, first, last) = if lane < to_lane {
                (Side::Right, Side::Left, lane + 1, to_lane)
            } else {
                (Side::Left, Side::Right, lane, to_lane + 1)
            };
            if first == last {
                Course::Gap { exit, entry, gap: first }
            } else {
                let channel = if to_row < row { row } else { row + 1 };
                Course::Channel { exit, entry, first, last, channel }
            }
        };
        match course {
            Course::Straight => {}
            Course::Gap { gap, .. } => load[gap] += 1,
            Course::Channel { first, last, .. } => {
                load[first] += 1;
                load[last] += 1;
            }
        }
        found.push(Some(course));
    }
    found
}

/// An end of an edge at a node: row and lane of the other end, the edge, 0 for exit or 1 for entry.
type PortEnd = (usize, usize, usize, usize);

/// The points at which edges touch the sides of nodes.
struct Ports {
    /// Distance of each end of each edge from its node's centre line: exit, then entry.
    offsets: Vec<[f64; 2]>,
    /// Height of each node: room for its text and its ports.
    heights: Vec<f64>,
}

impl Ports {
    fn new(scene: &Scene, grid: &Grid, courses: &[Option<Course>]) -> Self {
        let mut sides: HashMap<(usize, Side), Vec<PortEnd>> = HashMap::new();
        for (index, course) in courses.iter().enumerate() {
            let (Some(Course::Gap { exit, entry, .. }) | Some(Course::Channel { exit, entry, .. })) =
                *course
            else {
                continue;
            };
            let edge = &scene.edges[index];
            for (end, node, other, side) in
                [(0, edge.from, edge.to, exit), (1, edge.to, edge.from, entry)]
            {
                let (lane, row) = grid.cells[other];
                sides.entry((node, side)).or_default().push((row, lane, index, end));
            }
        }
        let mut offsets = vec![[0.0; 2]; courses.len()];
        let mut most = vec![0usize; grid.cells.len()];
        for ((node, side), mut ends) in sides {
            ends.sort_unstable();
            most[node] = most[node].max(ends.len());
            // Different shifts keep the ports of the two sides half a pitch apart, so that parallel
            // edges through a gap can be distinguished.
            let (shift, above) = match side {
                Side::Right => (PORT_PITCH / 4.0, ends.len() / 2),
                Side::Left => (-PORT_PITCH / 4.0, (ends.len() - 1) / 2),
            };
            let first = -(above as f64) * PORT_PITCH + shift;
            for (port, &(.., edge, end)) in ends.iter().enumerate() {
                offsets[edge][end] = first + port as f64 * PORT_PITCH;
            }
        }
        let heights = scene
            .nodes
            .iter()
            .zip(&most)
            .map(|(node, &ports)| {
                let text = node.lines.len().max(1) as f64 * LINE_HEIGHT + NODE_PADDING;
                text.max(ports as f64 * PORT_PITCH + 8.0)
            })
            .collect();
        Ports { offsets, heights }
    }

    fn y(&self, edge: usize, end: usize, node: usize, grid: &Grid, rows: &Rows) -> f64 {
        rows.centres[grid.cells[node].1] + self.offsets[edge][end]
    }
}

/// The positions of rows and channels.
struct Rows {
    /// Centre line of each row.
    centres: Vec<f64>,
    /// Height of each channel track that an edge uses, by edge.
    channel_y: HashMap<usize, f64>,
    height: f64,
}

impl Rows {
    fn new(scene: &Scene, grid: &Grid, courses: &[Option<Course>], ports: &Ports) -> Self {
        let mut heights = vec![0.0f64; grid.rows];
        for (node, &(_, row)) in grid.cells.iter().enumerate() {
            heights[row] = heights[row].max(ports.heights[node]);
        }
        let mut strips = vec![0.0f64; grid.rows];
        let mut tracks: Vec<Tracks> = vec![Tracks::default(); grid.rows + 1];
        let mut track_of = HashMap::new();
        for (index, course) in courses.iter().enumerate() {
            match *course {
                Some(Course::Straight) if !scene.edges[index].relation.is_empty() => {
                    strips[grid.cells[scene.edges[index].from].1] = STRIP_HEIGHT;
                }
                Some(Course::Channel { first, last, channel, .. }) => {
                    let (a, b) = (first.min(last) as f64, first.max(last) as f64);
                    track_of.insert(index, (channel, tracks[channel].take(a, b, 0.5)));
                }
                _ => {}
            }
        }
        let mut y = MARGIN / 2.0 + NAME_HEIGHT;
        let mut centres = Vec::with_capacity(grid.rows);
        let mut channel_top = Vec::with_capacity(grid.rows + 1);
        for row in 0..=grid.rows {
            channel_top.push(y + ROW_GAP / 2.0);
            y += tracks[row].len() as f64 * TRACK_PITCH + ROW_GAP;
            if row < grid.rows {
                centres.push(y + heights[row] / 2.0);
                y += heights[row] + strips[row];
            }
        }
        let channel_y = track_of
            .into_iter()
            .map(|(edge, (channel, track))| {
                (edge, channel_top[channel] + (track as f64 + 0.5) * TRACK_PITCH)
            })
            .collect();
        Rows { centres, channel_y, height: y }
    }
}

/// Intervals, distributed among tracks so that none overlap within a track.
#[derive(Clone, Default)]
struct Tracks {
    taken: Vec<Vec<(f64, f64)>>,
}

impl Tracks {
    /// Returns the first track in which the interval is free, with `apart` between intervals.
    fn take(&mut self, from: f64, to: f64, apart: f64) -> usize {
        let is_free = |track: &Vec<(f64, f64)>| {
            track.iter().all(|&(a, b)| b + apart <= from || to + apart <= a)
        };
        let track = self.taken.iter().position(is_free).unwrap_or_else(|| {
            self.taken.push(Vec::new());
            self.taken.len() - 1
        });
        self.taken[track].push((from, to));
        track
    }

    fn len(&self) -> usize {
        self.taken.len()
    }
}

/// The positions of lanes and of the gaps between them.
struct Gaps {
    /// Left side and width of each lane.
    lanes: Vec<(f64, f64)>,
    /// Horizontal position of each vertical stretch, by edge and gap.
    tracks: HashMap<(usize, usize), f64>,
    channel_y: HashMap<usize, f64>,
    width: f64,
}

impl Gaps {
    fn new(
        scene: &Scene,
        grid: &Grid,
        courses: &[Option<Course>],
        rows: &Rows,
        ports: &Ports,
    ) -> Self {
        let mut widths = vec![NARROWEST_LANE; grid.lanes];
        for (lane, width) in widths.iter_mut().enumerate() {
            if let Some(lane) = scene.lanes.get(lane) {
                *width = width.max(bold_width(&lane.name, NAME_TEXT) + 12.0);
            }
        }
        for (node, &(lane, _)) in scene.nodes.iter().zip(&grid.cells) {
            for line in &node.lines {
                widths[lane] = widths[lane].max(mono_width(&printable(line), NODE_TEXT) + 30.0);
            }
            if let Some(place) = node.place {
                let text = node.lines.iter().map(|line| columns(line)).max().unwrap_or(0);
                let digits = place.to_string().len() as f64 * 7.0;
                let needed = text as f64 * NODE_TEXT * 0.615 + 30.0 + 2.0 * digits;
                widths[lane] = widths[lane].max(needed);
            }
        }
        // Left and right zone of each lane.
        let mut zones = vec![[SMALLEST_ZONE; 2]; grid.lanes];
        let mut stretches: Vec<Vec<(f64, f64, usize)>> = vec![Vec::new(); grid.lanes + 1];
        for (index, course) in courses.iter().enumerate() {
            let Some(course) = *course else { continue };
            let edge = &scene.edges[index];
            let lane = grid.cells[edge.to].0;
            let needed = label_width(&edge.relation) + ARROW_ROOM + 5.0;
            let start = ports.y(index, 0, edge.from, grid, rows);
            let end = ports.y(index, 1, edge.to, grid, rows);
            let mut add = |gap: usize, a: f64, b: f64| {
                stretches[gap].push((a.min(b), a.max(b), index));
            };
            let entry = match course {
                Course::Straight => {
                    // The label is to the right of the centre line.
                    widths[lane] = widths[lane].max(2.0 * (label_width(&edge.relation) + 8.0));
                    continue;
                }
                Course::Gap { entry, gap, .. } => {
                    add(gap, start, end);
                    entry
                }
                Course::Channel { entry, first, last, .. } => {
                    add(first, start, rows.channel_y[&index]);
                    add(last, rows.channel_y[&index], end);
                    entry
                }
            };
            let zone = &mut zones[lane][usize::from(entry == Side::Right)];
            *zone = zone.max(needed);
        }
        let mut lanes = Vec::with_capacity(grid.lanes);
        let mut tracks = HashMap::new();
        let mut x = MARGIN;
        for (gap, mut stretches) in stretches.into_iter().enumerate() {
            // Short stretches first: they take the tracks next to the nodes.
            stretches.sort_by(|a, b| {
                (a.1 - a.0).total_cmp(&(b.1 - b.0)).then(a.0.total_cmp(&b.0)).then(a.2.cmp(&b.2))
            });
            let mut taken = Tracks::default();
            let places: Vec<(usize, usize)> =
                stretches.iter().map(|&(a, b, edge)| (edge, taken.take(a, b, 3.0))).collect();
            if gap > 0 {
                x += if places.is_empty() { 8.0 } else { zones[gap - 1][1] };
            }
            for (edge, track) in places {
                tracks.insert((edge, gap), x + (track as f64 + 0.5) * TRACK_PITCH);
            }
            x += taken.len() as f64 * TRACK_PITCH;
            if gap < grid.lanes {
                x += if taken.len() == 0 { 8.0 } else { zones[gap][0] };
                lanes.push((x, widths[gap]));
                x += widths[gap];
            }
        }
        Gaps { lanes, tracks, channel_y: rows.channel_y.clone(), width: x - MARGIN }
    }

    /// Returns the corners of an edge between its two ports.
    fn corners(&self, edge: usize, course: Course, start: f64, end: f64) -> Vec<(f64, f64)> {
        match course {
            Course::Straight => Vec::new(),
            Course::Gap { gap, .. } => {
                let x = self.tracks[&(edge, gap)];
                vec![(x, start), (x, end)]
            }
            Course::Channel { first, last, .. } => {
                let (a, b) = (self.tracks[&(edge, first)], self.tracks[&(edge, last)]);
                let y = self.channel_y[&edge];
                vec![(a, start), (a, y), (b, y), (b, end)]
            }
        }
    }
}
