//! The collections of the JDK, and collections that are deliberately wrong.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use consistory_harness::{Campaign, Program, Programs, Runner};
use consistory_live::{Clock, JDK, Jdk, JdkCollection, JdkError, JdkOptions};
use consistory_objects::{Calls, Options, Task, judge_object};
use consistory_spec::ObjectModel;
use consistory_verdict::Verdict;

fn classes() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("jdk")
}

fn options(name: &str) -> JdkOptions {
    JdkOptions::new(JdkCollection::named(name).unwrap(), classes())
}

fn campaign(collection: &JdkCollection) -> Campaign {
    Campaign::new(collection.specification(), collection.signatures(&[]).unwrap())
}

/// Called by one thread, each collection returns what its specification returns.
#[test]
fn a_single_thread_finds_what_the_specification_says() {
    let linearizability = ObjectModel::named("linearizability").unwrap();
    for collection in &JDK {
        let mut jdk = Jdk::start(JdkOptions::new(collection, classes())).unwrap();
        let object = collection.specification();
        let signatures = collection.signatures(&[]).unwrap();
        let mut called = std::collections::BTreeSet::new();
        let mut programs = Programs::new(signatures.clone());
        (programs.threads, programs.calls, programs.keys) = (1, 24, 3);
        for number in 0..60 {
            let program = programs.get(number);
            called.extend(
                program.threads[0].iter().map(|call| (call.method.clone(), call.args.len())),
            );
            let outcomes = jdk.run(&program, 2).unwrap();
            assert_eq!(outcomes.iter().map(|(_, count)| count).sum::<u64>(), 2);
            for (outcome, _) in outcomes {
                let history = outcome.history(&program);
                let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(&object)).unwrap();
                let ruling = judge_object(&task, &linearizability, &Options::default());
                let verdict = ruling.judgement.verdict();
                let shown: Vec<String> =
                    history.ops().map(|op| history.show(op).to_string()).collect();
                assert_eq!(verdict, Verdict::Consistent, "{}: {shown:?}", collection.name);
            }
        }
        assert_eq!(called.len(), signatures.len(), "{}: all methods are called", collection.name);
    }
}

/// A check followed by an action is not atomic: the failure is found and shrunk to a small program.
#[test]
fn a_broken_collection_is_caught() {
    for clock in [Clock::Counters, Clock::Plain] {
        let options = JdkOptions { clock, ..options("Broken") };
        let mut campaign = campaign(options.collection);
        let only = ["putIfAbsent".to_owned(), "get".to_owned()];
        campaign.programs.signatures = options.collection.signatures(&only).unwrap();
        campaign.programs.keys = 1;
        campaign.time = Duration::from_secs(60);
        let report = campaign.run(&mut Jdk::start(options).unwrap(), |_| {}).unwrap();
        let failure = report.failures.first().expect("two threads both find the key absent");
        assert!(failure.program.to_string().matches("putIfAbsent").count() >= 2, "{failure}");
        assert!(failure.program.len() <= 4, "{failure}");
    }
}

/// Methods that hold one lock are atomic.
#[test]
fn a_locked_collection_is_linearizable() {
    for name in ["LinkedBlockingDeque", "ArrayBlockingQueue", "CopyOnWriteArrayList"] {
        for clock in [Clock::Counters, Clock::Plain] {
            let options = JdkOptions { clock, ..options(name) };
            let mut campaign = campaign(options.collection);
            (campaign.runs, campaign.rounds) = (Some(4_000), 200);
            let report = campaign.run(&mut Jdk::start(options).unwrap(), |_| {}).unwrap();
            report.assert_linearizable();
        }
    }
}

#[test]
fn a_method_that_is_not_there_is_named() {
    let error = JdkCollection::named("ConcurrentHashMap").unwrap().signatures(&["fly".to_owned()]);
    let error = error.unwrap_err();
    assert_eq!(error.to_string(), "ConcurrentHashMap has no method `fly`");
    assert!(error.known.contains(&"putIfAbsent"));
    let mut jdk = Jdk::start(options("ConcurrentHashMap")).unwrap();
    let program: Program = "t0: fly(1)".parse().unwrap();
    let error = jdk.run(&program, 1).unwrap_err();
    assert!(matches!(&error, JdkError::Refused { message } if message.contains("fly")), "{error}");
    // The runner can run further programs afterwards.
    let program: Program = "t0: put(1,2) get(1)".parse().unwrap();
    let outcomes = jdk.run(&program, 3).unwrap();
    assert_eq!(outcomes.len(), 1);
    assert_eq!(
        outcomes[0].0.history(&program).show(consistory_history::OpId(1)).to_string(),
        "get(1) => 2"
    );
}

/// Returns a folder in which `java` and `javac` are shell scripts.
#[cfg(unix)]
fn fake(name: &str, java: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fake-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, script) in [("java", java), ("javac", "exit 0")] {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

#[test]
#[cfg(unix)]
fn whatever_goes_wrong_is_said() {
    let program: Program = "t0: put(1,2)".parse().unwrap();
    let run = |home: PathBuf| {
        let options = JdkOptions {
            classes: home.join("classes"),
            home: Some(home),
            time: Duration::ZERO,
            patience: Duration::from_millis(300),
            ..options("ConcurrentHashMap")
        };
        Jdk::start(options).and_then(|mut jdk| jdk.run(&program, 1)).unwrap_err()
    };
    let none = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake-none");
    std::fs::create_dir_all(&none).unwrap();
    let error = run(none);
    assert!(matches!(&error, JdkError::Missing { command } if command == "javac"), "{error}");

    let error = run(fake("dies", "read line; echo out of memory >&2; exit 7"));
    assert_eq!(error.to_string(), "the Java program ended (exit status: 7):\nout of memory");
    let error = run(fake("garbles", "read line; echo hello"));
    assert_eq!(error.to_string(), "the Java program answers `hello`");
    let error = run(fake("hangs", "read line; sleep 20"));
    assert!(matches!(error, JdkError::Stuck { .. }), "{error}");

    let home = fake("refuses", "exit 0");
    std::fs::write(home.join("javac"), "#!/bin/sh\necho no such release >&2; exit 1\n").unwrap();
    let _ = std::fs::remove_dir_all(home.join("classes"));
    let error = run(home);
    assert_eq!(error.to_string(), "`javac` failed:\nno such release");
}
