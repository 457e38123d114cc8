//! Windows over streams: always sound, and exact while nothing is forgotten.

mod support;

use consistory_formats::Format;
use consistory_history::{Action, Details, History, HistoryBuilder, OpId, Status};
use consistory_transactions::{NotWatchable, Sourceless, Window, judge};
use consistory_verdict::{Budget, ClientOrder, Judgement, Level};
use support::{Random, Shape, random_history};

const STREAM: Shape = Shape {
    transactions: 12,
    sessions: 3,
    keys: 2,
    ops: 4,
    lists: false,
    repeated: false,
    faults: true,
    times: true,
};

fn parse(text: &str) -> History {
    consistory_formats::parse_str(text, Format::Hist, "stream").unwrap().remove(0)
}

/// Cuts a history into histories of one transaction each, in an order that extends the sessions.
fn stream(history: &History, random: &mut Random) -> Vec<History> {
    let mut queues: Vec<Vec<_>> = vec![Vec::new(); history.session_count()];
    for transaction in history.all_transactions() {
        queues[history.session_of(OpId(transaction.ops.start)).index()].push(transaction);
    }
    queues.iter_mut().for_each(|queue| queue.reverse());
    let mut parts = Vec::new();
    while queues.iter().any(|queue| !queue.is_empty()) {
        let at = random.below(queues.len());
        let Some(transaction) = queues[at].pop() else { continue };
        let mut b = HistoryBuilder::new();
        let first = OpId(transaction.ops.start);
        let session = b.session(history.session_name(history.session_of(first)));
        let open = b.begin_transaction();
        b.set_transaction_status(open, transaction.status);
        for op in transaction.ops.clone().map(OpId) {
            let mut value = |id| b.value(history.value(id).clone());
            let action = match history.action(op) {
                Action::Read { key, value: read } => {
                    let value = value(read);
                    Action::Read { key: b.key(history.key_name(key)), value }
                }
                Action::Write { key, value: written } => {
                    let value = value(written);
                    Action::Write { key: b.key(history.key_name(key)), value }
                }
                Action::Append { key, value: appended } => {
                    let value = value(appended);
                    Action::Append { key: b.key(history.key_name(key)), value }
                }
                other => panic!("{other:?} in a random history"),
            };
            let status = match transaction.ops.len() {
                1 => Status::Ok,
                _ => history.own_status(op),
            };
            let details = Details { status, time: history.time(op), transaction: Some(open) };
            b.push_with(session, action, details);
        }
        parts.push(b.finish().unwrap());
    }
    parts
}

fn holds(history: &History, level: Level, order: ClientOrder) -> bool {
    let rulings = judge(history, order, &[level], &Budget::unlimited()).unwrap();
    matches!(rulings[0].judgement, Judgement::Consistent(_))
}

fn rounds(few: u64) -> u64 {
    if std::env::var_os("CONSISTORY_DEEP").is_some() { few * 25 } else { few }
}

/// A window that forgets nothing contains the whole stream; every prefix and every smaller window
/// only weakens the constraints.
#[test]
fn windows_are_sound_and_whole_ones_exact() {
    let (mut violated, mut found, mut lost) = (0, 0, 0);
    for round in 0..rounds(150) {
        let mut random = Random(77 + (round << 20));
        let lists = round % 2 == 1;
        let text = random_history(&mut random, Shape { lists, ..STREAM });
        let history = parse(&text);
        let parts = stream(&history, &mut random);
        for order in ClientOrder::ALL {
            let (mut whole, mut small) = (Window::new(1000), Window::new(8));
            let mut seen_small = [false; Level::ALL.len()];
            for (line, part) in (1..).zip(&parts) {
                whole.push(part, line).unwrap();
                // A window that is so small may receive a repeated value only if the stream repeats
                // it.
                small.push(part, line).unwrap();
                let kept = small.size().kept;
                let part = small.history(kept, Sourceless::LeftOut).unwrap();
                for (level, seen) in Level::ALL.into_iter().zip(&mut seen_small) {
                    *seen |= !holds(&part, level, order);
                }
                small.forget();
            }
            lost += small.size().forgotten;
            whole.finish();
            let all = whole.size().kept;
            assert_eq!(whole.size().unexplained_reads, 0);
            let same = whole.history(all, Sourceless::Kept).unwrap();
            let prefix = whole.history(all / 2, Sourceless::LeftOut).unwrap();
            for (level, seen) in Level::ALL.into_iter().zip(seen_small) {
                let expected = holds(&history, level, order);
                assert_eq!(holds(&same, level, order), expected, "{level} {order:?}\n{text}");
                assert!(!expected || holds(&prefix, level, order), "{level} {order:?}\n{text}");
                assert!(!(expected && seen), "a small window: {level} {order:?}\n{text}");
                violated += u32::from(!expected);
                found += u32::from(seen);
            }
        }
    }
    assert!(lost > 100 && found > violated / 4, "{found} of {violated} found, {lost} forgotten");
}

#[test]
fn repeated_values_are_refused() {
    let mut window = Window::new(8);
    window.push(&parse("t0: w(x,1)"), 1).unwrap();
    let error = window.push(&parse("t1: w(x,1)"), 2).unwrap_err();
    assert!(matches!(error, NotWatchable::RepeatedValue { .. }), "{error}");
    let error = Window::new(8).push(&parse("t1: w(x,0)"), 2).unwrap_err();
    assert!(matches!(error, NotWatchable::RepeatedValue { .. }), "{error}");
    let error = Window::new(8).push(&parse("init: x=7\nt1: r(x,7)"), 2).unwrap_err();
    assert!(matches!(error, NotWatchable::InitialValue { .. }), "{error}");
}

/// The source of a read may arrive later; for a read out of thin air it never does.
#[test]
fn reads_wait_for_their_source() {
    let mut window = Window::new(8);
    window.push(&parse("t0: r(x,1)"), 1).unwrap();
    assert_eq!(window.history(1, Sourceless::LeftOut).unwrap().len(), 0);
    assert!(!holds(
        &window.history(1, Sourceless::Kept).unwrap(),
        Level::ReadCommitted,
        ClientOrder::Session
    ));
    window.push(&parse("t1: w(x,1)"), 2).unwrap();
    assert_eq!(window.history(2, Sourceless::LeftOut).unwrap().len(), 2);
    assert_eq!(window.history(1, Sourceless::LeftOut).unwrap().len(), 0);
    assert_eq!(window.place_of(1), Some(("t1", 2)));
}

#[test]
fn memory_is_bounded_and_current_versions_stay() {
    let mut window = Window::new(40);
    window.push(&parse("t0: w(old,1)"), 0).unwrap();
    for i in 1..2000u64 {
        let text = format!("t{}: [ r(old,1) w(k{},{i}) ]", i % 3, i);
        window.push(&parse(&text), i).unwrap();
        window.forget();
        assert!(window.size().kept <= 41);
    }
    assert!(window.size().forgotten > 1900);
    window.push(&parse("t9: r(old,1) r(old,0)"), 2000).unwrap();
    let history = window.history(window.size().kept, Sourceless::LeftOut).unwrap();
    assert!(!holds(&history, Level::Causal, ClientOrder::Session));
    assert!(holds(&history, Level::ReadCommitted, ClientOrder::Session));
    window.push(&parse("t8: r(k1,1)"), 2001).unwrap();
    window.finish();
    assert_eq!(window.size().unexplained_reads, 1);
}
