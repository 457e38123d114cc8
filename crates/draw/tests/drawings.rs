//! Every drawing is well-formed and deterministic, and contains the expected parts.

use crate::support::{assert_well_formed, cycle, history, op, ring, violation};
use consistory_draw::{DrawOptions, Plot, Scatter, Series, history_svg, line_plot, scatter_plot};
use consistory_history::{Action, History, HistoryBuilder, Value};
use consistory_verdict::{Certificate, Edge, Judgement, Stopped};

fn draw(h: &History, judgement: &Judgement) -> String {
    let options = DrawOptions { model: "cc".into(), ..DrawOptions::default() };
    let svg = history_svg(h, judgement, &options);
    assert_well_formed(&svg);
    assert_eq!(svg, history_svg(h, judgement, &options), "the same drawing each time");
    svg
}

/// Counts the occurrences of a text in a drawing.
fn count(svg: &str, text: &str) -> usize {
    svg.matches(&format!(">{text}</text>")).count()
}

/// Counts the arrows: every arrow has its head.
fn arrows(svg: &str) -> usize {
    svg.matches("<polygon").count()
}

#[test]
fn a_cycle_is_drawn_with_its_operations_and_relations() {
    let h = history("t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)\nt2: w(z,9)");
    let text = "
t0:0 po t0:1
t0:1 wr t1:0
t1:0 po t1:1
t1:1 rw t0:0
  init:x wr t1:1
  init:x po t0:0";
    let svg = draw(&h, &violation("WriteCOInitRead", cycle(&h, text)));
    for shown in [
        "w(x,1)",
        "w(y,1)",
        "r(y,1)",
        "r(x,0)",
        "w(z,9)",
        "initially",
        "x=0",
        "t0",
        "t1",
        "t2",
        "cc: violation, WriteCOInitRead",
        "rw read before it was overwritten",
        "derived by a rule",
    ] {
        assert_eq!(count(&svg, shown), 1, "{shown} stands once");
    }
    assert_eq!([count(&svg, "po"), count(&svg, "wr"), count(&svg, "rw")], [2, 2, 1]);
    assert_eq!(arrows(&svg), 5);
}

#[test]
fn rows_follow_causality() {
    let h = history("t0: r(x,1) r(x,2)\nt1: w(x,1) w(x,2)");
    let order = h.ops().collect();
    let svg = draw(&h, &Judgement::Consistent(Certificate::Order { order, wr: vec![] }.into()));
    let y = |text: &str| -> f64 {
        let end = svg.find(&format!(">{text}</text>")).expect("the operation is drawn");
        let element = &svg[svg[..end].rfind("<text").unwrap()..end];
        element.split("y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    assert!(y("w(x,1)") < y("r(x,1)") && y("w(x,2)") < y("r(x,2)"), "reads stand below writes");
    assert_eq!(arrows(&svg), 2, "one per read");
}

#[test]
fn a_large_history_has_gaps() {
    let filler = |n: usize, key: &str, from: usize| -> String {
        (from..from + n).map(|i| format!("w({key},{i}) ")).collect()
    };
    let h = history(&format!(
        "t0: {}w(x,1) w(y,1) {}\nt1: {}r(y,1) r(x,0)\nt2: {}",
        filler(1_000, "a", 1),
        filler(500, "a", 2_000),
        filler(7, "b", 1),
        filler(40, "c", 1),
    ));
    let text = "
t0:1000 po t0:1001
t0:1001 wr t1:7
t1:7 po t1:8
t1:8 rw t0:1000
  init:x wr t1:8
  init:x po t0:1000";
    let svg = draw(&h, &violation("WriteCOInitRead", cycle(&h, text)));
    for shown in [
        "w(x,1)",
        "w(y,1)",
        "r(y,1)",
        "r(x,0)",
        "w(a,1000)",
        "w(a,2000)",
        "w(b,7)",
        "… 999 operations …",
        "… 499 operations …",
        "… 6 operations …",
        "1 further session not drawn",
    ] {
        assert_eq!(count(&svg, shown), 1, "{shown} stands once");
    }
    assert_eq!(count(&svg, "t2"), 0);
    assert!(svg.len() < 20_000, "{} bytes", svg.len());

    let undecided = draw(&h, &Judgement::Undecided(Stopped::Interrupted));
    assert_eq!(count(&undecided, "… 1,482 operations …"), 1, "the first of each session are shown");
    assert_eq!(count(&undecided, "t2"), 1);
}

#[test]
fn a_long_cycle_is_abbreviated() {
    let (h, judgement) = ring(500);
    let svg = draw(&h, &judgement);
    assert_eq!(count(&svg, "984 more edges"), 1);
    assert!(svg.len() < 40_000, "{} bytes", svg.len());
    let (h, judgement) = ring(4);
    let svg = draw(&h, &judgement);
    for op in h.ops() {
        assert_eq!(count(&svg, &h.show(op).to_string()), 1);
    }
}

#[test]
fn cases_have_a_panel_each() {
    let h = history("t0: w(x,1)\nt1: w(x,2)\nt2: r(x,1) r(x,2)\nt3: r(x,2) r(x,1)");
    let first =
        cycle(&h, "t1:0 wr t3:0\nt3:0 po t3:1\nt3:1 rw t1:0\n  t0:0 wr t3:1\n  t0:0 ww t1:0");
    let second = cycle(&h, "t1:0 ww t0:0\nt0:0 wr t2:0\nt2:0 po t2:1\nt2:1 rw t1:0");
    let writes = [op(&h, "t0:0"), op(&h, "t1:0")];
    let split = |a, b| Certificate::SplitOrder { writes, branches: Box::new([a, b]) };
    let tree = split(first.clone(), second.clone());
    let svg = draw(&h, &violation("check", tree.clone()));
    assert_eq!(count(&svg, "If t0:0 w(x,1) comes before t1:0"), 1);
    assert_eq!(count(&svg, "If t1:0 w(x,2) comes before t0:0"), 1);
    assert_eq!(count(&svg, "t3"), 2);
    assert_eq!(count(&svg, "assumed in this case"), 1);

    let many = split(split(tree.clone(), tree.clone()), tree);
    let svg = draw(&h, &violation("check", many));
    assert_eq!(count(&svg, "2 further cases not drawn"), 1);
}

#[test]
fn cases_of_the_last_write_have_a_panel_each() {
    let h = history("0: w(0,1) w(0,2)\n1: w(0,1) w(0,3)\nfinal: 0=1");
    let first = cycle(&h, "0:0 po 0:1\n0:1 final 0:0");
    let second = cycle(&h, "1:0 po 1:1\n1:1 final 1:0");
    let (key, branches) =
        (h.find_key("0").unwrap(), vec![(op(&h, "0:0"), first), (op(&h, "1:0"), second)]);
    let svg = draw(&h, &violation("FinalValue", Certificate::SplitLast { key, branches }));
    assert_eq!(count(&svg, "If 0:0 w(v0,1) is the last write"), 1);
    assert_eq!(count(&svg, "If 1:0 w(v0,1) is the last write"), 1);
    assert_eq!(count(&svg, "session 1"), 2);
    let none = Certificate::SplitLast { key, branches: vec![] };
    assert_eq!(count(&draw(&h, &violation("FinalValue", none)), "session 0"), 1);
}

#[test]
fn every_judgement_of_every_shape_is_drawn() {
    let empty = history("");
    let silent = history("t0:\nt1: w(x,1)");
    let one = history("t0: r(x,7) rmw(x,7,8) f");
    for h in [&empty, &silent, &one] {
        draw(h, &Judgement::Undecided(Stopped::Interrupted));
        draw(h, &Judgement::Consistent(Certificate::Order { order: vec![], wr: vec![] }.into()));
        let nothing = Certificate::Cycle { edges: vec![], observer: None, check: None };
        draw(h, &violation("", nothing));
    }
    let read = op(&one, "t0:0");
    let svg = draw(&one, &violation("ThinAirRead", Certificate::ThinAirRead { read }));
    assert_eq!(count(&svg, "r(x,7)"), 1);
    let own = Edge::given(read, read, "hb");
    let looped = Certificate::Cycle { edges: vec![own], observer: Some(read), check: Some(0) };
    draw(&one, &violation("CyclicHB", looped));
}

#[test]
fn hostile_names_are_escaped() {
    let evil = "<script>alert(\"1\" & '2')</script>\n]]>\u{0}\u{FFFF}\u{202E}";
    let mut b = HistoryBuilder::new();
    b.set_name(evil);
    let s = b.session(evil);
    let key = b.key(evil);
    let value = b.value(Value::Str(evil.into()));
    b.push(s, Action::Write { key, value });
    b.push(s, Action::Read { key, value });
    let h = b.finish().unwrap();
    let ops: Vec<_> = h.ops().collect();
    let edge = Edge { relation: evil.into(), ..Edge::given(ops[1], ops[0], "") };
    let list = vec![Edge::given(ops[0], ops[1], "po"), edge];
    let certificate = Certificate::Cycle { edges: list, observer: None, check: None };
    let options = DrawOptions { model: evil.into(), ..DrawOptions::default() };
    let svg = history_svg(&h, &violation(evil, certificate), &options);
    assert_well_formed(&svg);
    assert!(!svg.contains("<script"));

    let series = Series { name: evil.into(), points: vec![(1.0, 1.0)], missing: Some(evil.into()) };
    let [title, x_label, y_label] = [(); 3].map(|()| evil.to_owned());
    let plot = Plot { title, x_label, y_label, series: vec![series], ..Plot::default() };
    assert_well_formed(&line_plot(&plot));
    let Plot { title, x_label, y_label, .. } = plot;
    assert_well_formed(&scatter_plot(&Scatter { title, x_label, y_label, ..Scatter::default() }));
}

/// Returns the position of a text.
fn place(svg: &str, text: &str) -> (f64, f64) {
    let end = svg.find(&format!(">{text}</text>")).expect("the text is drawn");
    let element = &svg[svg[..end].rfind("<text").unwrap()..end];
    let number = |name: &str| {
        element.split(name).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    (number(" x=\""), number(" y=\""))
}

#[test]
fn a_plot_names_its_series_at_their_ends_or_below() {
    let series = |n: usize| -> Vec<Series> {
        (0..n)
            .map(|i| Series {
                name: format!("series {i}"),
                points: (1..9).map(|x| (x as f64 * 100.0, 0.001 * (i + x) as f64)).collect(),
                missing: (i == 0).then(|| "out of time".into()),
            })
            .collect()
    };
    for (n, log_x, log_y) in [(8, false, true), (40, true, false), (0, true, true)] {
        let plot =
            Plot { title: "times".into(), log_x, log_y, series: series(n), ..Plot::default() };
        let svg = line_plot(&plot);
        assert_well_formed(&svg);
        let mut names: Vec<(f64, f64)> =
            (1..n).map(|i| place(&svg, &format!("series {i}"))).collect();
        names.sort_by(|a, b| a.1.total_cmp(&b.1));
        for pair in names.windows(2) {
            let is_apart = pair[1].1 - pair[0].1 > 12.0 || (pair[1].0 - pair[0].0).abs() > 60.0;
            assert!(is_apart, "names do not overlap: {pair:?}");
        }
        assert_eq!(count(&svg, "series 0 (out of time)"), usize::from(n > 0));
        assert_eq!(count(&svg, "no data"), usize::from(n == 0));
    }
}

#[test]
fn a_plot_takes_any_numbers() {
    let wild =
        [0.0, -1.0, 1e-300, 1e300, f64::MAX, f64::MIN, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE];
    for a in wild {
        for b in wild {
            for (log_x, log_y) in [(false, false), (true, true), (false, true)] {
                let points = vec![(a, b), (b, a), (1.0, 1.0)];
                let series = vec![Series { name: "s".into(), points, missing: None }];
                assert_well_formed(&line_plot(&Plot { log_x, log_y, series, ..Plot::default() }));
            }
            let points = vec![(a, b), (b, a), (1.0, 2.0)];
            let scatter = Scatter { points, limit: Some(a), ..Scatter::default() };
            assert_well_formed(&scatter_plot(&scatter));
        }
    }
}

#[test]
fn a_scatter_plot_draws_near_points_once() {
    let points = vec![(0.1, 10.0), (0.1, 10.0), (10.0, 0.1), (1.0, 1.0)];
    let svg = scatter_plot(&Scatter { points, limit: Some(10.0), ..Scatter::default() });
    assert_well_formed(&svg);
    assert_eq!(svg.matches("h0").count(), 3, "equal points are one dot");
    assert_eq!(count(&svg, "as long"), 1);
    assert!(scatter_plot(&Scatter::default()).contains("no data"));
}
