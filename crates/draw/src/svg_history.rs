//! A history drawn as lanes: a column a session, program order downwards, the cycle as arrows.

use std::collections::{BTreeMap, HashSet};

use consistory_history::{History, OpId};
use consistory_verdict::{Certificate, Judgement};

use crate::judgement::RegisterJudgement;

use crate::lanes::{
    Arrow, Emphasis, Extent, Item, Lanes, Role, arrows_of, emphasis, lanes, reads_from,
};
use crate::legend::{Legend, stroke};
use crate::proof::{Assumption, leaves};
use crate::route::{HEAD, Route, Router};
use crate::summary::explain_registers_line;
use crate::svg::{Anchor, Canvas, Font, INK, MUTED, Point, Rect, Stroke, at};
use crate::text::{
    clean, counted, grouped, initial, notation, quoted, reference, session_name, wrapped,
};

/// How a history is drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct DrawOptions {
    /// The model that was judged, for the title.
    pub model: String,
    /// Up to how many operations, but at most 200, all are drawn; of a larger history only those
    /// that matter.
    pub full_up_to: usize,
    /// How many neighbours of an operation that matters, but at most 20, are drawn on either side.
    pub context: usize,
    /// How many cases of a proof by cases, but at most 20, are drawn.
    pub cases: usize,
}

impl Default for DrawOptions {
    fn default() -> Self {
        DrawOptions { model: String::new(), full_up_to: 60, context: 1, cases: 4 }
    }
}

/// Drawings larger than this help nobody.
const MOST_FULL: usize = 200;
const MOST_CONTEXT: usize = 20;
const MOST_CASES: usize = 20;

const MARGIN: f64 = 20.0;
const BOX_HEIGHT: f64 = 30.0;
const ROW: f64 = 60.0;
const GUTTER: f64 = 96.0;
/// The room beside the outer lanes, where arrows may bend.
const SIDE: f64 = 56.0;
const HEADER: f64 = 26.0;
const NARROWEST: f64 = 480.0;
/// The colour of a lane.
const LANE: &str = "#f4f6f8";

/// Draws a history and, if the judgement is a violation, what is wrong with it.
///
/// Each session is a lane. The edges of the cycle are arrows in the colour of their relation,
/// dashed where a rule derives them; their premises are thin. A proof by cases gives a panel a
/// case. Without a cycle the arrows show which write each read takes its value from.
pub(crate) fn registers_svg(
    history: &History,
    judgement: &RegisterJudgement<'_>,
    options: &DrawOptions,
) -> String {
    let model = clean(&options.model, 60);
    let verdict = judgement.verdict().as_str();
    let mut title = if model.is_empty() { verdict.into() } else { format!("{model}: {verdict}") };
    let mut caption = explain_registers_line(history, &options.model, judgement);
    if let Judgement::Violation { pattern, .. } = judgement {
        title += &format!(", {}", clean(pattern, 60));
        if let Some(said) = caption.strip_prefix(&format!("{}: ", clean(pattern, 60))) {
            caption = said.into();
        }
    } else if let Some(said) = caption.strip_prefix(&format!("{verdict}: ")) {
        caption = said.into();
    }
    if let Some(name) = history.name() {
        title = format!("{}, {title}", clean(name, 60));
    }

    let mut panels = Vec::new();
    let mut further_cases = 0;
    match judgement {
        Judgement::Violation { certificate, .. } => {
            let (shown, total) = leaves(certificate, options.cases.clamp(1, MOST_CASES));
            further_cases = total - shown.len();
            for leaf in &shown {
                let heading: Vec<String> =
                    leaf.assumptions.iter().map(|a| assumption(history, *a)).collect();
                let mut panel = violation_panel(history, leaf.certificate, options);
                if !heading.is_empty() {
                    panel.heading = format!("If {}", heading.join(", and "));
                }
                panels.push(panel);
            }
        }
        Judgement::Consistent(certificate) => {
            let (Certificate::Order { wr, .. }
            | Certificate::SessionOrders { wr, .. }
            | Certificate::Witness { wr, .. }
            | Certificate::Closure { wr, .. }
            | Certificate::Views { wr, .. }) = certificate
            else {
                return page(&title, &caption, vec![plain_panel(history, &[], options)], 0);
            };
            panels.push(plain_panel(history, wr, options));
        }
        Judgement::Undecided(_) => panels.push(plain_panel(history, &[], options)),
    }
    page(&title, &caption, panels, further_cases)
}

/// Puts the title, the panels and the legend on a page.
fn page(title: &str, caption: &str, panels: Vec<Panel>, further_cases: usize) -> String {
    let title_font = Font::sans(18.0, INK).bold();
    let caption_font = Font::sans(13.0, MUTED);
    let heading_font = Font::sans(13.0, INK).bold();
    let widest = panels.iter().map(|p| p.width).fold(NARROWEST, f64::max);
    let width = widest.max(title_font.measure(title)) + 2.0 * MARGIN;
    let columns = ((width - 2.0 * MARGIN) / caption_font.measure("n")) as usize;

    let mut canvas = Canvas::default();
    let mut y = MARGIN + 16.0;
    canvas.text(at(MARGIN, y), title_font, title);
    for line in wrapped(caption, columns) {
        y += 19.0;
        canvas.text(at(MARGIN, y), caption_font, &line);
    }
    y += 22.0;
    let mut legend = Legend::default();
    for panel in panels {
        if !panel.heading.is_empty() {
            for line in wrapped(&panel.heading, columns * 9 / 10) {
                y += 16.0;
                canvas.text(at(MARGIN, y), heading_font, &line);
            }
            y += 14.0;
        }
        legend.merge(panel.legend);
        canvas.place(at(((width - panel.width) / 2.0).max(MARGIN), y), panel.canvas);
        y += panel.height + 14.0;
        for note in panel.notes {
            y += 4.0;
            canvas.text(at(MARGIN, y), caption_font, &note);
            y += 14.0;
        }
    }
    if further_cases > 0 {
        y += 6.0;
        let more = format!("{} not drawn", counted(further_cases, "further case"));
        canvas.text(at(MARGIN, y), caption_font, &more);
        y += 14.0;
    }
    y = legend.draw(&mut canvas, y, MARGIN, width - MARGIN);
    canvas.finish(width, y + MARGIN - 6.0, &format!("{title}. {caption}"))
}

/// A drawing of lanes.
struct Panel {
    heading: String,
    canvas: Canvas,
    width: f64,
    height: f64,
    notes: Vec<String>,
    legend: Legend,
}

fn violation_panel(history: &History, certificate: &Certificate, options: &DrawOptions) -> Panel {
    let found = arrows_of(history, certificate);
    let extra = match certificate {
        Certificate::ThinAirRead { read } => Some(*read),
        _ => None,
    };
    let emphasis = emphasis(&found.arrows, extra);
    let lanes = lanes(history, &emphasis, &found.arrows, extent(options));
    let mut panel = draw(history, &lanes, &found.arrows, &emphasis);
    if found.left_out > 0 {
        panel.notes.push(format!("{} not drawn", counted(found.left_out, "further premise")));
    }
    panel
}

fn plain_panel(history: &History, chosen: &[(OpId, OpId)], options: &DrawOptions) -> Panel {
    let nothing = BTreeMap::new();
    let mut lanes = lanes(history, &nothing, &[], extent(options));
    let arrows = reads_from(history, &lanes, chosen);
    lanes.assign_rows(&arrows);
    draw(history, &lanes, &arrows, &nothing)
}

fn extent(options: &DrawOptions) -> Extent {
    Extent {
        full_up_to: options.full_up_to.min(MOST_FULL),
        context: options.context.min(MOST_CONTEXT),
    }
}

/// Where everything stands.
struct Layout {
    /// The strip of each lane.
    strips: Vec<Rect>,
    headers: Vec<Rect>,
    boxes: BTreeMap<OpId, Rect>,
    gaps: Vec<(Rect, usize)>,
    width: f64,
    height: f64,
}

const OPERATION: Font<'static> =
    Font { size: 13.0, colour: INK, is_mono: true, is_bold: false, anchor: Anchor::Start };
const GAP: Font<'static> =
    Font { size: 12.0, colour: MUTED, is_mono: false, is_bold: false, anchor: Anchor::Middle };

fn layout(history: &History, lanes: &Lanes, arrows: &[Arrow]) -> Layout {
    let initials: Vec<OpId> = {
        let mut found: Vec<OpId> = arrows.iter().flat_map(|a| [a.from, a.to]).collect();
        found.retain(|&op| history.is_initial(op));
        found.sort();
        found.dedup();
        found
    };
    let top = if initials.is_empty() { 0.0 } else { BOX_HEIGHT + 34.0 };
    let first_row = top + HEADER + 12.0;
    let rows = lanes.rows().max(1);
    let height = first_row + (rows - 1) as f64 * ROW + BOX_HEIGHT + 10.0;

    let mut layout = Layout {
        strips: Vec::new(),
        headers: Vec::new(),
        boxes: BTreeMap::new(),
        gaps: Vec::new(),
        width: 0.0,
        height,
    };
    let mut x = SIDE;
    for lane in &lanes.lanes {
        let header = header_font().measure(&name(history, lane));
        let inner =
            lane.items.iter().map(|(item, _)| item_width(history, *item)).fold(0.0, f64::max);
        let w = inner.max(header + 20.0).max(84.0);
        layout.strips.push(Rect { x: x - 9.0, y: top, w: w + 18.0, h: height - top });
        layout.headers.push(Rect { x, y: top + 4.0, w, h: HEADER - 2.0 });
        for &(item, row) in &lane.items {
            let y = first_row + row as f64 * ROW;
            let rect = Rect { x, y, w, h: BOX_HEIGHT };
            match item {
                Item::Op(op) => {
                    layout.boxes.insert(op, rect);
                }
                Item::Gap(count) => layout.gaps.push((rect, count)),
            }
        }
        x += w + GUTTER;
    }
    layout.width = (x - GUTTER + SIDE).max(2.0 * SIDE);

    // An initial write stands beside the lanes that it is connected to, outside if it can.
    let last = layout.headers.last().map_or(0.0, |header| header.x);
    let mut wanted: Vec<(f64, OpId, f64)> = initials
        .into_iter()
        .map(|op| {
            let others: Vec<f64> = arrows
                .iter()
                .flat_map(|a| [(a.from, a.to), (a.to, a.from)])
                .filter(|&(end, _)| end == op)
                .filter_map(|(_, other)| layout.boxes.get(&other))
                .map(|r| if r.x == last { r.x + r.w } else { r.x - GUTTER / 2.0 })
                .collect();
            let x = others.iter().sum::<f64>() / others.len().max(1) as f64;
            (x.max(0.0), op, initial_width(history, op))
        })
        .collect();
    wanted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut free = 4.0;
    for (x, op, w) in wanted {
        let x = (x - w / 2.0).max(free);
        layout.boxes.insert(op, Rect { x, y: 2.0, w, h: BOX_HEIGHT });
        free = x + w + 24.0;
        layout.width = layout.width.max(x + w + 6.0);
    }
    layout
}

fn header_font() -> Font<'static> {
    Font::sans(14.0, INK).bold().anchored(Anchor::Middle)
}

fn name(history: &History, lane: &crate::lanes::Lane) -> String {
    session_name(history, lane.session)
}

fn item_width(history: &History, item: Item) -> f64 {
    match item {
        Item::Op(op) => {
            let index = Font::sans(10.0, MUTED).measure(&history.index_in_session(op).to_string());
            OPERATION.measure(&notation(history, op)) + 2.0 * (index + 12.0)
        }
        Item::Gap(count) => GAP.measure(&gap_words(count)) + 8.0,
    }
}

fn initial_width(history: &History, op: OpId) -> f64 {
    OPERATION.measure(&format!("init {}", initial(history, op, "="))) + 24.0
}

fn gap_words(count: usize) -> String {
    format!("⋮ {} operations", grouped(count))
}

fn draw(
    history: &History,
    lanes: &Lanes,
    arrows: &[Arrow],
    emphasis: &BTreeMap<OpId, Emphasis>,
) -> Panel {
    let layout = layout(history, lanes, arrows);
    let mut canvas = Canvas::default();
    for ((strip, header), lane) in layout.strips.iter().zip(&layout.headers).zip(&lanes.lanes) {
        canvas.rect(*strip, 8.0, LANE, None);
        canvas.text(at(header.centre().x, header.y + 16.0), header_font(), &name(history, lane));
    }
    for (rect, count) in &layout.gaps {
        let centre = rect.centre();
        canvas.text(at(centre.x, centre.y + 4.0), GAP, &gap_words(*count));
    }

    let mut router = router(&layout, lanes.rows());
    // Two arrows that run to and fro keep apart, one above the other.
    let pairs: HashSet<(OpId, OpId)> = arrows.iter().map(|a| (a.from, a.to)).collect();
    let lean = |a: &Arrow| match pairs.contains(&(a.to, a.from)) {
        true if a.from < a.to => -1.0,
        true => 1.0,
        false => 0.0,
    };
    let drawn: Vec<(&Arrow, Route)> = arrows
        .iter()
        .filter_map(|arrow| {
            let from = *layout.boxes.get(&arrow.from)?;
            let to = *layout.boxes.get(&arrow.to)?;
            Some((arrow, router.route(from, to, lean(arrow))))
        })
        .collect();
    // What matters most is drawn last, so that it lies on top.
    for (arrow, route) in drawn.iter().rev() {
        let stroke = stroke(arrow.relation, arrow.role, arrow.basis);
        let halo = Stroke { colour: "#ffffff", width: stroke.width + 3.0, dashes: "" };
        canvas.path(&route.path, halo);
        canvas.path(&route.path, stroke);
    }
    let usual = if emphasis.is_empty() { Emphasis::Support } else { Emphasis::Plain };
    for (&op, &rect) in &layout.boxes {
        let emphasis = emphasis.get(&op).copied().unwrap_or(usual);
        operation(&mut canvas, history, op, rect, emphasis);
    }
    for (arrow, route) in drawn.iter().rev() {
        let size =
            if matches!(arrow.role, Role::Premise | Role::Context) { HEAD - 2.0 } else { HEAD };
        canvas.arrowhead(
            route.tip,
            route.along,
            size,
            stroke(arrow.relation, arrow.role, arrow.basis).colour,
        );
    }
    labels(&mut canvas, &layout, &router, &drawn);

    let mut notes = Vec::new();
    if lanes.further_sessions > 0 {
        notes.push(format!("{} not drawn", counted(lanes.further_sessions, "further session")));
    }
    let mut legend = Legend::default();
    drawn.iter().for_each(|(arrow, _)| legend.add(arrow));
    let (width, height) = (layout.width, layout.height);
    Panel { heading: String::new(), canvas, width, height, notes, legend }
}

fn router(layout: &Layout, rows: usize) -> Router {
    let gaps = layout.gaps.iter().map(|(rect, _)| *rect);
    let obstacles =
        layout.boxes.values().copied().chain(gaps).chain(layout.headers.iter().copied()).collect();
    let mut gutters = vec![SIDE / 2.0 - 4.0];
    gutters.extend(layout.strips.windows(2).map(|s| (s[0].x + s[0].w + s[1].x) / 2.0));
    gutters.extend(layout.strips.last().map(|s| s.x + s.w + SIDE / 2.0 - 4.0));
    let first = layout.headers.first().map_or(0.0, |h| h.y + HEADER + 8.0);
    let channels = (0..=rows).map(|r| first + r as f64 * ROW - (ROW - BOX_HEIGHT) / 2.0).collect();
    let bounds = Rect { x: 0.0, y: -4.0, w: layout.width, h: layout.height + 8.0 };
    Router::new(obstacles, gutters, channels, bounds)
}

/// Draws the box of an operation.
fn operation(canvas: &mut Canvas, history: &History, op: OpId, rect: Rect, emphasis: Emphasis) {
    let is_initial = history.is_initial(op);
    let (fill, line, width, ink) = match emphasis {
        Emphasis::Cycle => ("#fff4d6", INK, 1.6, INK),
        Emphasis::Support => ("#ffffff", MUTED, 1.2, INK),
        Emphasis::Plain => ("#ffffff", "#c3cad3", 1.0, "#4a5460"),
    };
    let dashes = if is_initial { "4 3" } else { "" };
    let radius = if is_initial { BOX_HEIGHT / 2.0 } else { 7.0 };
    canvas.rect(rect, radius, fill, Some(Stroke { colour: line, width, dashes }));
    let centre = rect.centre();
    let words = if is_initial {
        format!("init {}", initial(history, op, "="))
    } else {
        let place = history.index_in_session(op).to_string();
        canvas.text(at(rect.x + 6.0, rect.y + 12.0), Font::sans(10.0, MUTED), &place);
        notation(history, op)
    };
    let font = Font { colour: ink, anchor: Anchor::Middle, ..OPERATION };
    canvas.text(at(centre.x, centre.y + 4.5), font, &words);
}

/// Writes the name of its relation on each arrow, where there is room.
fn labels(canvas: &mut Canvas, layout: &Layout, router: &Router, drawn: &[(&Arrow, Route)]) {
    let mut taken: Vec<Rect> = layout.boxes.values().map(|r| r.grown(2.0)).collect();
    taken.extend(layout.headers.iter().copied());
    taken.extend(layout.gaps.iter().map(|(rect, _)| *rect));
    for (arrow, route) in drawn {
        let is_thin = matches!(arrow.role, Role::Premise | Role::Context);
        let words = match arrow.role {
            Role::Skipped(count) => format!("{} more edges", grouped(count)),
            // A plain history has one kind of arrow, and the legend names it.
            Role::Context => continue,
            _ => clean(arrow.relation, 16),
        };
        let colour = stroke(arrow.relation, arrow.role, arrow.basis).colour;
        let font = Font::sans(if is_thin { 11.0 } else { 13.0 }, colour).anchored(Anchor::Middle);
        let font = if is_thin { font } else { font.bold() };
        let (w, h) = (font.measure(&words) + 6.0, font.size + 3.0);
        let cost = |(p, off_middle): &(Point, f64)| {
            let area = Rect::around(*p, w, h);
            let hits = taken.iter().filter(|r| r.meets(&area)).count();
            let crowd = router.crowd(area.grown(-1.0));
            1000.0 * hits as f64 + f64::from(crowd) * 5.0 + 30.0 * off_middle
        };
        let last = route.points.len() - 1;
        let (first_point, last_point) = (route.points[0], route.points[last]);
        let is_short = (first_point.y - last_point.y).abs() < 1.5 * BOX_HEIGHT
            && (first_point.x - last_point.x).abs() < 4.0;
        let places: Vec<(Point, f64)> = if is_short {
            // On a short arrow down the label would hide it.
            let middle = (first_point.y + last_point.y) / 2.0;
            let aside = w / 2.0 + 5.0;
            vec![(at(first_point.x + aside, middle), 0.0), (at(first_point.x - aside, middle), 0.1)]
        } else {
            (3..=17)
                .map(|twentieth| twentieth as f64 / 20.0)
                .map(|part| {
                    let i = (part * last as f64) as usize;
                    let bend = if is_straight(&route.points, i) { 0.0 } else { 1.0 };
                    (route.points[i], (part - 0.5).abs() + bend)
                })
                .collect()
        };
        let best = places.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let Some(&(p, _)) = best else { continue };
        let area = Rect::around(p, w, h);
        canvas.rect(area, 4.0, if is_short { LANE } else { "#ffffff" }, None);
        canvas.text(at(p.x, p.y + font.size * 0.35), font, &words);
        taken.push(area.grown(1.0));
    }
}

/// Says whether a route does not turn near one of its points.
fn is_straight(points: &[Point], i: usize) -> bool {
    let (before, here) = (points[i.saturating_sub(3)], points[i]);
    let behind = points[(i + 3).min(points.len() - 1)];
    let (a, b) =
        (at(here.x - before.x, here.y - before.y), at(behind.x - here.x, behind.y - here.y));
    a.x * b.x + a.y * b.y >= 0.8 * a.x.hypot(a.y) * b.x.hypot(b.y)
}

fn assumption(history: &History, assumption: Assumption) -> String {
    match assumption {
        Assumption::Before(a, b) => {
            format!("{} comes before {}", quoted(history, a), reference(history, b))
        }
        Assumption::ReadsFrom(read, write) => {
            format!("{} reads from {}", quoted(history, read), reference(history, write))
        }
        Assumption::Last(write) => format!("{} is the last write", quoted(history, write)),
    }
}
