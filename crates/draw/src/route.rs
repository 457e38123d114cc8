//! The way of an arrow from box to box.
//!
//! Of many curves, from each side of the one box to each side of the other, that is taken which
//! costs least: running through a box costs most, then running along an arrow that is already
//! drawn, then length. If every plain curve hits a box, ways along the gutters between lanes and
//! the channels between rows are tried too. The arrows that matter most are routed first.

use std::collections::HashMap;

use crate::svg::{Point, Rect, at, pair};

/// How far an arrowhead reaches.
pub(crate) const HEAD: f64 = 9.0;
/// How far apart points are at which a curve is tested.
const STEP: f64 = 6.0;
/// How round the corners are.
const CORNER: f64 = 12.0;
/// What it costs to have a point in a box, near another arrow, or a port on a box's far side.
const HIT: f64 = 200.0;
const CROWDED: f64 = 4.0;
const AVERTED: f64 = 16.0;

/// A way that was taken.
pub(crate) struct Route {
    /// The path, as SVG has it; it ends where the arrowhead starts.
    pub(crate) path: String,
    /// Points along it, evenly apart.
    pub(crate) points: Vec<Point>,
    /// Where the arrowhead ends.
    pub(crate) tip: Point,
    /// Where the arrowhead points.
    pub(crate) along: Point,
}

/// Finds ways between boxes, each way avoiding those before it.
pub(crate) struct Router {
    obstacles: Vec<Rect>,
    /// The middles of the gutters between lanes, from the left.
    gutters: Vec<f64>,
    /// The middles of the channels between rows, from the top.
    channels: Vec<f64>,
    bounds: Rect,
    used: HashMap<(i32, i32), u32>,
}

enum Shape {
    Cubic([Point; 4]),
    Corners(Vec<Point>),
}

/// A way that might be taken.
struct Way {
    cost: f64,
    shape: Shape,
    end: Port,
}

#[derive(Clone, Copy)]
struct Port {
    /// On the edge of the box.
    touch: Point,
    /// The unit vector away from the box.
    out: Point,
    cost: f64,
}

impl Port {
    /// Gives the point a distance away from the box.
    fn off(&self, distance: f64) -> Point {
        at(self.touch.x + self.out.x * distance, self.touch.y + self.out.y * distance)
    }
}

impl Router {
    /// Makes a router that has routed nothing yet.
    pub(crate) fn new(
        obstacles: Vec<Rect>,
        gutters: Vec<f64>,
        channels: Vec<f64>,
        bounds: Rect,
    ) -> Self {
        Router { obstacles, gutters, channels, bounds, used: HashMap::new() }
    }

    /// Finds the way from one box to another, and remembers it.
    ///
    /// With a negative `lean` it keeps to the upper or left part of their sides, with a positive
    /// one to the other.
    pub(crate) fn route(&mut self, from: Rect, to: Rect, lean: f64) -> Route {
        let across = to.centre().x - from.centre().x;
        let starts = ports(from, lean, across);
        let ends = ports(to, lean, -across);
        let obstacles: Vec<Rect> = (self.obstacles.iter())
            .filter(|r| **r != from && **r != to)
            .map(|r| r.grown(3.0))
            .chain([from.grown(-1.0), to.grown(-1.0)])
            .collect();
        // In one lane an arrow stays on one side.
        let is_one_lane = across.abs() < 10.0;
        let pairs = starts
            .iter()
            .flat_map(|start| ends.iter().map(move |end| (start, end)))
            .filter(|(start, end)| !is_one_lane || start.out.x * end.out.x >= 0.0);
        let curves = pairs.clone().flat_map(|(start, end)| {
            let (a, b) = (start.touch, end.off(HEAD - 1.0));
            let distance = (b.x - a.x).hypot(b.y - a.y);
            [0.4, 0.65].map(|tension| {
                let reach = (tension * distance).clamp(14.0, 90.0);
                (*start, *end, Shape::Cubic([a, start.off(reach), end.off(HEAD + reach), b]))
            })
        });
        let mut best = self.cheapest(None, curves, &obstacles);
        if best.as_ref().is_none_or(|way| way.cost >= HIT) {
            let is_beside = |port: &Port| port.out.y == 0.0;
            let detours = pairs.filter(|(start, end)| is_beside(start) && is_beside(end)).flat_map(
                |(start, end)| {
                    let ways = self.detours(start, end);
                    ways.into_iter().map(|corners| (*start, *end, Shape::Corners(corners)))
                },
            );
            best = self.cheapest(best, detours, &obstacles);
        }
        let Way { shape, end, .. } = best.expect("every box has ports, and so there is a curve");
        let points = sampled(&shape);
        for p in &points {
            *self.used.entry(cell(*p)).or_default() += 1;
        }
        let path = match &shape {
            Shape::Cubic([a, b, c, d]) => {
                format!("M{}C{} {} {}", pair(*a), pair(*b), pair(*c), pair(*d))
            }
            Shape::Corners(corners) => rounded(corners),
        };
        Route { path, points, tip: end.off(1.0), along: at(-end.out.x, -end.out.y) }
    }

    /// Counts the points of other routes that lie in a rectangle.
    pub(crate) fn crowd(&self, area: Rect) -> u32 {
        let (x0, y0) = cell(at(area.x, area.y));
        let (x1, y1) = cell(at(area.x + area.w, area.y + area.h));
        (x0..=x1)
            .flat_map(|x| (y0..=y1).map(move |y| (x, y)))
            .filter_map(|c| self.used.get(&c))
            .sum()
    }

    /// Gives the way that costs least, if it costs less than the best so far.
    fn cheapest(
        &self,
        mut best: Option<Way>,
        ways: impl Iterator<Item = (Port, Port, Shape)>,
        obstacles: &[Rect],
    ) -> Option<Way> {
        for (start, end, shape) in ways {
            let most = best.as_ref().map_or(f64::INFINITY, |way| way.cost);
            if let Some(cost) = self.cost(&sampled(&shape), obstacles, start.cost + end.cost, most)
            {
                best = Some(Way { cost, shape, end });
            }
        }
        best
    }

    /// Adds up what a way costs, unless that is `most` or more.
    fn cost(&self, points: &[Point], obstacles: &[Rect], ports: f64, most: f64) -> Option<f64> {
        let mut cost = ports + points.len() as f64 * STEP * 0.12;
        for &p in points {
            if !self.bounds.contains(p) || obstacles.iter().any(|r| r.contains(p)) {
                cost += HIT;
            }
            let (x, y) = cell(p);
            let near = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)];
            if self.used.contains_key(&(x, y)) {
                cost += CROWDED;
            } else if near.iter().any(|cell| self.used.contains_key(cell)) {
                cost += CROWDED / 3.0;
            }
            if cost >= most {
                return None;
            }
        }
        Some(cost)
    }

    /// Lists ways out into a gutter, along it to a channel, along that to another gutter, and in.
    fn detours(&self, start: &Port, end: &Port) -> Vec<Vec<Point>> {
        let mut found = Vec::new();
        let (a, b) = (start.touch, end.off(HEAD - 1.0));
        let nearest = |p: &Port| {
            let mut beside =
                self.gutters.iter().copied().filter(|x| (x - p.touch.x) * p.out.x > 0.0);
            if p.out.x > 0.0 { beside.next() } else { beside.next_back() }
        };
        let (Some(first), Some(last)) = (nearest(start), nearest(end)) else { return found };
        let near = |y: f64| {
            let behind = self.channels.partition_point(|&c| c < y);
            self.channels[behind.saturating_sub(1)..(behind + 1).min(self.channels.len())].to_vec()
        };
        for x1 in [0.0, -14.0, 14.0].map(|shift| first + shift) {
            if first == last {
                found.push(vec![a, at(x1, a.y), at(x1, b.y), b]);
                continue;
            }
            for x2 in [0.0, -14.0, 14.0].map(|shift| last + shift) {
                for y in near(a.y).into_iter().chain(near(b.y)) {
                    for y in [y, y - 6.0, y + 6.0] {
                        found.push(vec![a, at(x1, a.y), at(x1, y), at(x2, y), at(x2, b.y), b]);
                    }
                }
            }
        }
        found
    }
}

/// Lists where arrows may touch a box; the far side is no good place.
fn ports(r: Rect, lean: f64, towards: f64) -> Vec<Port> {
    let centre = r.centre();
    let mut found = Vec::new();
    for shift in [0.0, -1.0, 1.0] {
        let cost = 2.5 * f64::abs(shift - lean);
        for (x, out) in [(r.x + r.w, 1.0), (r.x, -1.0)] {
            let averted = if towards.abs() > 10.0 && out * towards < 0.0 { AVERTED } else { 0.0 };
            let touch = at(x, centre.y + 8.0 * shift);
            found.push(Port { touch, out: at(out, 0.0), cost: cost + averted });
        }
        for (y, out) in [(r.y, -1.0), (r.y + r.h, 1.0)] {
            let touch = at(centre.x + 16.0 * shift, y);
            found.push(Port { touch, out: at(0.0, out), cost: cost + 4.0 });
        }
    }
    found
}

fn cell(p: Point) -> (i32, i32) {
    ((p.x / STEP).floor() as i32, (p.y / STEP).floor() as i32)
}

/// Lists points along a shape, about a step apart.
fn sampled(shape: &Shape) -> Vec<Point> {
    match shape {
        Shape::Cubic([a, b, c, d]) => {
            let rough = (b.x - a.x).hypot(b.y - a.y)
                + (c.x - b.x).hypot(c.y - b.y)
                + (d.x - c.x).hypot(d.y - c.y);
            let count = (rough / STEP).ceil().clamp(4.0, 400.0);
            (0..=count as usize)
                .map(|i| {
                    let t = i as f64 / count;
                    let s = 1.0 - t;
                    let mix = |a: f64, b: f64, c: f64, d: f64| {
                        s * s * s * a + 3.0 * s * s * t * b + 3.0 * s * t * t * c + t * t * t * d
                    };
                    at(mix(a.x, b.x, c.x, d.x), mix(a.y, b.y, c.y, d.y))
                })
                .collect()
        }
        Shape::Corners(corners) => corners
            .windows(2)
            .flat_map(|pair| {
                let (a, b) = (pair[0], pair[1]);
                let count = ((b.x - a.x).hypot(b.y - a.y) / STEP).ceil().clamp(1.0, 2000.0);
                (0..count as usize).map(move |i| {
                    let t = i as f64 / count;
                    at(a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t)
                })
            })
            .chain(corners.last().copied())
            .collect(),
    }
}

/// Writes a path with rounded corners.
fn rounded(corners: &[Point]) -> String {
    let mut out = format!("M{}", pair(corners[0]));
    for three in corners.windows(3) {
        let (before, corner, behind) = (three[0], three[1], three[2]);
        let towards = |p: Point| {
            let length = (p.x - corner.x).hypot(p.y - corner.y);
            let part = if length == 0.0 { 0.0 } else { CORNER.min(length / 2.0) / length };
            at(corner.x + (p.x - corner.x) * part, corner.y + (p.y - corner.y) * part)
        };
        out += &format!("L{}Q{} {}", pair(towards(before)), pair(corner), pair(towards(behind)));
    }
    if let Some(&last) = corners.last() {
        out += &format!("L{}", pair(last));
    }
    out
}
