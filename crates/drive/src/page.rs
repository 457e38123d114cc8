//! The report of a run: one HTML file without scripts that needs no other file.

use std::fmt::Write;

use crate::nemesis::FaultEvent;
use crate::recorder::Row;
use crate::run::Run;
use crate::stats::{counts, spans};

/// What was found, in the words of whoever judged.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The title, such as `redis, register`.
    pub title: String,
    /// The verdict in one sentence.
    pub headline: String,
    /// Names and values: version, settings, seed, command.
    pub facts: Vec<(String, String)>,
    /// The verdict per model: model, verdict, pattern.
    pub verdicts: Vec<[String; 3]>,
    /// The operations of the smallest violation.
    pub core: Vec<CoreOperation>,
    /// Why they are a violation, in sentences.
    pub explanation: String,
    /// A drawing of them, as SVG.
    pub drawing: String,
}

/// An operation of the smallest violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoreOperation {
    /// The session.
    pub session: String,
    /// The operation, as `w(k1,7)`.
    pub text: String,
    /// Its start on the run's clock.
    pub start: u64,
    /// Its end; `None` if it never returned.
    pub end: Option<u64>,
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;\
    padding:0 1em;color:#1b1f24}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}\
    table{border-collapse:collapse}td,th{text-align:left;padding:.2em 1em .2em 0;\
    border-bottom:1px solid #e3e6ea;vertical-align:top}pre{background:#f6f8fa;padding:.8em;\
    overflow-x:auto}.violation{color:#b42318;font-weight:600}.consistent{color:#1a7f37}\
    .undecided{color:#9a6700}svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif}\
    @media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}pre{background:#161b22}\
    td,th{border-color:#30363d}svg{background:#fff;border-radius:4px}}";

/// Writes the report.
pub fn page(run: &Run, findings: &Findings) -> String {
    let title = escaped(&findings.title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'; img-src data:\"><title>{title}</title><style>{STYLE}</style></head><body>\n\
         <h1>{title}</h1>\n<p><strong>{}</strong></p>\n",
        escaped(&findings.headline)
    );
    if !findings.core.is_empty() {
        html += "<h2>The smallest violation</h2>\n";
        html += &timeline(&findings.core, run);
        let _ = writeln!(html, "<pre>{}</pre>", escaped(&findings.explanation));
        html += &findings.drawing;
    }
    html += "<h2>Verdicts</h2>\n<table><tr><th>model</th><th>verdict</th><th>pattern</th></tr>\n";
    for [model, verdict, pattern] in &findings.verdicts {
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td class=\"{verdict}\">{verdict}</td><td>{}</td></tr>",
            escaped(model),
            escaped(pattern)
        );
    }
    html += "</table>\n<h2>Rates and latencies</h2>\n";
    html += &charts(run);
    html += "<h2>Faults</h2>\n";
    html += &faults(&run.faults);
    if let Some(trouble) = &run.trouble {
        let _ = writeln!(html, "<p class=\"violation\">{}</p>", escaped(trouble));
    }
    html += "<h2>The run</h2>\n<table>\n";
    let counts = counts(&run.rows);
    let own = [
        ("operations", run.operations.to_string()),
        (
            "requests",
            format!("{} ok, {} failed, {} unknown", counts.ok, counts.failed, counts.unknown),
        ),
        (
            "time",
            format!(
                "{:.1} s, after {:.1} s of set-up",
                run.time.as_secs_f64(),
                run.start_time.as_secs_f64()
            ),
        ),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    for (name, value) in findings.facts.iter().cloned().chain(own) {
        let _ = writeln!(html, "<tr><td>{}</td><td>{}</td></tr>", escaped(&name), escaped(&value));
    }
    html + "</table>\n</body></html>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Finds the request that an operation belongs to.
fn row_of<'a>(rows: &'a [Row], operation: &CoreOperation) -> Option<&'a Row> {
    rows.iter().find(|row| row.start == operation.start)
}

/// Draws when the operations of the violation ran, on which nodes, and during which faults.
fn timeline(core: &[CoreOperation], run: &Run) -> String {
    const WIDTH: f64 = 860.0;
    const LEFT: f64 = 90.0;
    const LANE: f64 = 46.0;
    let mut sessions: Vec<&str> = core.iter().map(|operation| &*operation.session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    // Operations are far apart compared with their lengths, so they are placed by rank, in the
    // order of their starts, and the times are written below.
    let mut order: Vec<&CoreOperation> = core.iter().collect();
    order.sort_by_key(|operation| operation.start);
    let step = (WIDTH - LEFT) / order.len().max(1) as f64;
    let place = |time: u64| {
        let before = order.iter().filter(|operation| operation.start < time).count();
        LEFT + step * before as f64
    };
    let height = LANE * sessions.len() as f64 + 50.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"timeline of the violation\">\n"
    );
    for fault in &run.faults {
        let end = fault.end.unwrap_or(u64::MAX);
        let (from, to) = (place(fault.begin), place(end).min(WIDTH));
        if to > from {
            let _ = writeln!(
                svg,
                "<rect x=\"{from:.1}\" y=\"0\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#fde8e6\"/>\
                 <text x=\"{:.1}\" y=\"12\" fill=\"#b42318\">{}</text>",
                to - from,
                height - 20.0,
                from + 4.0,
                escaped(&fault.text)
            );
        }
    }
    for (lane, session) in sessions.iter().enumerate() {
        let y = 34.0 + LANE * lane as f64;
        let _ = writeln!(
            svg,
            "<text x=\"4\" y=\"{:.1}\">{}</text><line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{WIDTH}\" \
             y2=\"{y:.1}\" stroke=\"#d0d7de\"/>",
            y + 4.0,
            escaped(session)
        );
    }
    for (at, operation) in order.iter().enumerate() {
        let lane = sessions.iter().position(|session| *session == operation.session).unwrap_or(0);
        let (x, y) = (LEFT + step * at as f64 + 2.0, 34.0 + LANE * lane as f64);
        let node =
            row_of(&run.rows, operation).map_or(String::new(), |row| format!(" on {}", row.node));
        let end =
            operation.end.map_or("no answer".to_owned(), |end| format!("{:.3} s", seconds(end)));
        let _ = writeln!(
            svg,
            "<g><title>{:.3} s to {end}{node}</title><rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
             height=\"22\" rx=\"4\" fill=\"#dbeafe\" stroke=\"#2563eb\"/><text x=\"{:.1}\" \
             y=\"{:.1}\">{}</text><text x=\"{:.1}\" y=\"{:.1}\" fill=\"#57606a\">{:.3} s{node}</text></g>",
            seconds(operation.start),
            y - 11.0,
            step - 6.0,
            x + 5.0,
            y + 4.0,
            escaped(&operation.text),
            x,
            height - 4.0,
            seconds(operation.start),
        );
    }
    svg + "</svg>\n"
}

/// Draws requests per second and latencies over time, with the faults behind them.
fn charts(run: &Run) -> String {
    const WIDTH: f64 = 860.0;
    const LEFT: f64 = 60.0;
    const HEIGHT: f64 = 130.0;
    const SPAN: u64 = 250_000_000;
    let spans = spans(&run.rows, SPAN);
    if spans.is_empty() {
        return "<p>Nothing was recorded.</p>\n".to_owned();
    }
    let total = spans.len() as f64 * seconds(SPAN);
    let x = |time: f64| LEFT + (WIDTH - LEFT) * (time / total).min(1.0);
    let mut html = String::new();
    let per_second = 1.0 / seconds(SPAN);
    let rate = |f: fn(&crate::stats::Counts) -> u64| -> Vec<f64> {
        spans.iter().map(|span| f(&span.counts) as f64 * per_second).collect()
    };
    let charts = [
        (
            "requests per second",
            vec![
                ("ok", "#1a7f37", rate(|c| c.ok)),
                ("failed", "#9a6700", rate(|c| c.failed)),
                ("unknown", "#b42318", rate(|c| c.unknown)),
            ],
        ),
        (
            "latency in milliseconds",
            vec![
                ("median", "#2563eb", spans.iter().map(|s| s.median_ms).collect()),
                ("99 %", "#7c3aed", spans.iter().map(|s| s.p99_ms).collect()),
            ],
        ),
    ];
    for (name, lines) in charts {
        let top = lines.iter().flat_map(|(_, _, values)| values).fold(1.0_f64, |a, &b| a.max(b));
        let y = |value: f64| HEIGHT - 20.0 - (HEIGHT - 40.0) * value / top;
        let _ = writeln!(
            html,
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{name}\">"
        );
        for fault in &run.faults {
            let end = fault.end.map_or(total, seconds);
            let (from, to) = (x(seconds(fault.begin)), x(end));
            let _ = writeln!(
                html,
                "<rect x=\"{from:.1}\" y=\"14\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#fde8e6\">\
                 <title>{}</title></rect>",
                (to - from).max(1.0),
                HEIGHT - 34.0,
                escaped(&fault.text)
            );
        }
        let mut legend = LEFT + 170.0;
        for (label, colour, values) in &lines {
            let points: Vec<String> = (values.iter().enumerate())
                .map(|(at, &value)| {
                    format!("{:.1},{:.1}", x((at as f64 + 0.5) * seconds(SPAN)), y(value))
                })
                .collect();
            let _ = writeln!(
                html,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
                 <text x=\"{legend:.1}\" y=\"11\" fill=\"{colour}\">{label}</text>",
                points.join(" ")
            );
            legend += 80.0;
        }
        let _ = writeln!(
            html,
            "<text x=\"{LEFT}\" y=\"11\">{name}</text><text x=\"4\" y=\"{:.1}\">{top:.1}</text>\
             <text x=\"4\" y=\"{:.1}\">0</text><text x=\"{LEFT}\" y=\"{:.1}\">0 s</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{total:.0} s</text></svg>",
            y(top) + 4.0,
            y(0.0) + 4.0,
            HEIGHT - 4.0,
            WIDTH,
            HEIGHT - 4.0,
        );
    }
    html
}

fn faults(events: &[FaultEvent]) -> String {
    if events.is_empty() {
        return "<p>None.</p>\n".to_owned();
    }
    let mut html =
        "<table><tr><th>fault</th><th>from</th><th>to</th><th>writable again</th></tr>\n"
            .to_owned();
    for event in events {
        let time = |time: Option<u64>| {
            time.map_or("".to_owned(), |time| format!("{:.1} s", seconds(time)))
        };
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&event.text),
            time(Some(event.begin)),
            time(event.end),
            time(event.ready)
        );
    }
    html + "</table>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::NodeId;
    use crate::request::{Key, Outcome, Reply, Request, Step};

    #[test]
    fn a_page_holds_what_was_found_and_escapes_it() {
        let row = Row {
            session: 0,
            generation: 0,
            node: NodeId(1),
            request: Request::Single(Step::Write(Key(0), 1)),
            outcome: Outcome::Ok(vec![Reply::Done]),
            start: 1_000_000,
            end: 2_000_000,
        };
        let fault = FaultEvent {
            name: "kill".into(),
            text: "n1 <killed>".into(),
            node: None,
            begin: 500,
            end: None,
            ready: None,
        };
        let run = Run { rows: vec![row], faults: vec![fault], operations: 1, ..Run::default() };
        let core = vec![CoreOperation {
            session: "c1".into(),
            text: "w(k0,1)".into(),
            start: 1_000_000,
            end: Some(2_000_000),
        }];
        let findings = Findings {
            title: "a & b".into(),
            verdicts: vec![["cc".into(), "violation".into(), "WriteCORead".into()]],
            core,
            ..Findings::default()
        };
        let html = page(&run, &findings);
        assert!(html.contains("<h1>a &amp; b</h1>"));
        assert!(html.contains("n1 &lt;killed&gt;") && !html.contains("<killed>"));
        assert!(html.contains("on n2") && html.contains("WriteCORead"));
        let opened = html.matches("<svg").count();
        assert_eq!((opened, html.matches("</svg>").count()), (3, 3));
    }
}
