//! Diagrams of machines, derived from their stages.
//!
//! The SVG shows a machine for two threads and two locations, like the paper's figures: one row per
//! stage, solid lines for requests on their way down, dashed lines for answers on their way up. It
//! uses presentation attributes only, so that several can be embedded in one page.

use std::fmt::Write as _;

use crate::operational::machine::{Component, Each, Machine, Part};

/// Draws a machine as text, one line per stage, from the processors to the memory.
pub fn diagram(machine: &Machine) -> String {
    let mut text = format!("{}: {}\n\n", machine.name, machine.summary);
    let label = |stage: &[Part]| {
        let names = stage.iter().map(|part| format!("{}[{}]", part.name, index(part.each)));
        names.collect::<Vec<_>>().join(" & ")
    };
    let width = machine.stages.iter().map(|stage| label(stage).len()).max().unwrap_or(0);
    for (at, stage) in machine.stages.iter().enumerate() {
        if at > 0 {
            let is_sent_to_views = stage.iter().any(|part| part.each == Each::ViewAddress)
                && !machine.stages[at - 1].iter().any(|part| part.each == Each::ViewAddress);
            let note = match (is_sent_to_views, stage.len()) {
                (true, 1) => "  to every view at once",
                (true, _) => "  to every view at once, and on when first in both queues",
                _ => "",
            };
            let _ = writeln!(text, "    │ ▲{note}\n    ▼ ┊");
        }
        let what: Vec<String> = stage
            .iter()
            .map(|part| format!("{:?} for each {}", part.component, each(part.each)))
            .collect();
        let _ = writeln!(text, "  {:width$}   {}", label(stage), what.join(" and "));
    }
    text
}

fn index(each: Each) -> &'static str {
    match each {
        Each::Thread => "t",
        Each::Address => "x",
        Each::ThreadAddress => "t,x",
        Each::ThreadView => "t,v",
        Each::ViewAddress => "v,x",
    }
}

fn each(each: Each) -> &'static str {
    match each {
        Each::Thread => "thread",
        Each::Address => "location",
        Each::ThreadAddress => "thread and location",
        Each::ThreadView => "thread and view",
        Each::ViewAddress => "view and location",
    }
}

/// An instance of a part, with the thread whose writes it carries, its view and its location.
#[derive(Clone, Copy, Debug)]
struct Instance {
    part: Part,
    writer: Option<usize>,
    view: Option<usize>,
    location: Option<usize>,
}

const THREADS: usize = 2;
const LOCATIONS: [&str; 2] = ["x", "y"];
const BOX: (f64, f64) = (74.0, 34.0);
const GAP: (f64, f64) = (26.0, 62.0);
const MARGIN: f64 = 24.0;
const TITLE: f64 = 30.0;

/// Draws a machine for two threads and two locations as SVG.
pub fn svg_diagram(machine: &Machine) -> String {
    let mut after_views = false;
    let mut rows: Vec<Vec<Instance>> = Vec::new();
    for stage in machine.stages {
        rows.push(stage.iter().flat_map(|part| instances(*part, after_views)).collect());
        after_views |= stage.iter().any(|part| part.each == Each::ViewAddress);
    }
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0).max(3) as f64;
    let width = widest * BOX.0 + (widest - 1.0) * GAP.0 + 2.0 * MARGIN;
    let height = rows.len() as f64 * (BOX.1 + GAP.1) - GAP.1 + 2.0 * MARGIN + TITLE + 34.0;
    let middle = |row: usize, at: usize| {
        let count = rows[row].len() as f64;
        let spread = (width - 2.0 * MARGIN) / count.max(1.0);
        let x = MARGIN + spread * (at as f64 + 0.5);
        (x, MARGIN + TITLE + row as f64 * (BOX.1 + GAP.1) + BOX.1 / 2.0)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"{}\" font-size=\"16\" font-weight=\"bold\" \
         fill=\"#1f2933\">{}</text>\n",
        MARGIN + 4.0,
        machine.name,
    );
    for row in 1..rows.len() {
        for (above, from) in rows[row - 1].iter().enumerate() {
            for (below, to) in rows[row].iter().enumerate() {
                if !leads(from, to) {
                    continue;
                }
                let (from_at, to_at) = (middle(row - 1, above), middle(row, below));
                wire(&mut svg, from_at, to_at, carries_reads(from, to));
            }
        }
    }
    for (row, instances) in rows.iter().enumerate() {
        for (at, instance) in instances.iter().enumerate() {
            component(&mut svg, middle(row, at), instance);
        }
        if machine.stages[row].len() > 1 {
            let left = middle(row, THREADS * THREADS - 1).0;
            let right = middle(row, THREADS * THREADS).0;
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"18\" text-anchor=\"middle\" \
                 fill=\"#66707c\">&amp;</text>",
                (left + right) / 2.0,
                middle(row, 0).1 + 6.0
            );
        }
    }
    legend(&mut svg, height - 16.0);
    svg.push_str("</svg>\n");
    svg
}

fn instances(part: Part, after_views: bool) -> Vec<Instance> {
    let one = |writer, view, location| Instance { part, writer, view, location };
    let threads = 0..THREADS;
    let pairs = |second: usize| {
        let pair = move |first| (0..second).map(move |second| (first, second));
        (0..THREADS).flat_map(pair).collect::<Vec<_>>()
    };
    match part.each {
        Each::Thread => threads.map(|t| one(Some(t), None, None)).collect(),
        Each::Address => (0..LOCATIONS.len()).map(|l| one(None, None, Some(l))).collect(),
        Each::ThreadAddress => pairs(LOCATIONS.len())
            .into_iter()
            // After the queues to the views, the thread is the observing one.
            .map(|(t, l)| {
                if after_views { one(None, Some(t), Some(l)) } else { one(Some(t), None, Some(l)) }
            })
            .collect(),
        Each::ThreadView => {
            pairs(THREADS).into_iter().map(|(t, v)| one(Some(t), Some(v), None)).collect()
        }
        Each::ViewAddress => {
            let all = pairs(LOCATIONS.len()).into_iter();
            all.map(|(v, l)| one(None, Some(v), Some(l))).collect()
        }
    }
}

/// Checks whether a request can go from one instance to the other.
fn leads(from: &Instance, to: &Instance) -> bool {
    let agree = |a: Option<usize>, b: Option<usize>| a.is_none() || b.is_none() || a == b;
    agree(from.writer, to.writer) && agree(from.view, to.view) && agree(from.location, to.location)
}

/// Checks whether reads take this connection: a thread reads its own view, by location.
fn carries_reads(from: &Instance, to: &Instance) -> bool {
    let is_own = |thread: Option<usize>, view: Option<usize>| view.is_none() || thread == view;
    let by_location = to.part.each != Each::ThreadView && from.part.each != Each::ThreadView;
    by_location && (from.writer.is_none() || is_own(from.writer, to.view))
}

fn wire(svg: &mut String, from: (f64, f64), to: (f64, f64), answers: bool) {
    let (top, bottom) = (from.1 + BOX.1 / 2.0, to.1 - BOX.1 / 2.0);
    let shift = if answers { 5.0 } else { 0.0 };
    // Lines leave and enter a box at points spread along its edge, towards their other end.
    let lean = ((to.0 - from.0) * 0.12).clamp(-BOX.0 * 0.3, BOX.0 * 0.3);
    let (start, end) = (from.0 + lean, to.0 - lean);
    let mut line = |x1: f64, y1: f64, x2: f64, y2: f64, dashes: &str| {
        let _ = writeln!(
            svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" \
             stroke=\"#66707c\" stroke-width=\"1.2\"{dashes}/>"
        );
        let length = (x2 - x1).hypot(y2 - y1).max(1.0);
        let (dx, dy) = ((x2 - x1) / length, (y2 - y1) / length);
        let (bx, by) = (x2 - 8.0 * dx, y2 - 8.0 * dy);
        let _ = writeln!(
            svg,
            "<path d=\"M{x2:.1},{y2:.1} L{:.1},{:.1} L{:.1},{:.1} Z\" fill=\"#66707c\"/>",
            bx - 3.5 * dy,
            by + 3.5 * dx,
            bx + 3.5 * dy,
            by - 3.5 * dx
        );
    };
    line(start - shift, top, end - shift, bottom, "");
    if answers {
        line(end + shift, bottom, start + shift, top, " stroke-dasharray=\"4 3\"");
    }
}

fn component(svg: &mut String, (x, y): (f64, f64), instance: &Instance) {
    let (fill, round) = match instance.part.component {
        Component::Processor => ("#dbe9f6", 4.0),
        Component::FutureRead => ("#f6e3db", 12.0),
        Component::WriteQueue | Component::StallQueue => ("#f4efd3", 2.0),
        Component::SetRead => ("#e9dff4", 12.0),
        Component::SimpleMem => ("#dcefdf", 4.0),
    };
    let thread = instance.writer.map(|thread| thread.to_string());
    let view = instance.view.map(|view| view.to_string());
    let location = instance.location.map(|location| LOCATIONS[location].to_owned());
    let index: Vec<String> = [thread, view, location].into_iter().flatten().collect();
    let _ = writeln!(
        svg,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{}\" height=\"{}\" rx=\"{round}\" fill=\"{fill}\" \
         stroke=\"#1f2933\"/>\n<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"13\" \
         text-anchor=\"middle\" fill=\"#1f2933\">{}[{}]</text>",
        x - BOX.0 / 2.0,
        y - BOX.1 / 2.0,
        BOX.0,
        BOX.1,
        y + 4.5,
        instance.part.name,
        index.join(",")
    );
}

fn legend(svg: &mut String, y: f64) {
    let _ = writeln!(
        svg,
        "<line x1=\"{MARGIN}\" y1=\"{0:.1}\" x2=\"{1}\" y2=\"{0:.1}\" stroke=\"#66707c\" \
         stroke-width=\"1.2\"/>\n<text x=\"{2}\" y=\"{y:.1}\" font-size=\"11\" \
         fill=\"#66707c\">requests</text>\n<line x1=\"{3}\" y1=\"{0:.1}\" x2=\"{4}\" \
         y2=\"{0:.1}\" stroke=\"#66707c\" stroke-width=\"1.2\" stroke-dasharray=\"4 3\"/>\n\
         <text x=\"{5}\" y=\"{y:.1}\" font-size=\"11\" fill=\"#66707c\">answers</text>",
        y - 4.0,
        MARGIN + 24.0,
        MARGIN + 30.0,
        MARGIN + 90.0,
        MARGIN + 114.0,
        MARGIN + 120.0
    );
}
