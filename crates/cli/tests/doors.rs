//! Robustness: inputs that were once misread, limits of time and memory that hold in every phase,
//! and failures of the system at every point.

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{Folder, Ran};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/doors")
}

/// Creates a folder with a copy of every file of the corpus.
fn copied() -> Folder {
    let folder = Folder::new();
    for file in std::fs::read_dir(corpus()).unwrap() {
        let file = file.unwrap();
        folder.write(file.file_name().to_str().unwrap(), std::fs::read(file.path()).unwrap());
    }
    folder
}

#[test]
fn every_input_is_read_as_it_was_meant() {
    let folder = copied();
    let mut untried: BTreeSet<String> = std::fs::read_dir(corpus())
        .unwrap()
        .map(|file| file.unwrap().file_name().to_str().unwrap().to_owned())
        .filter(|name| name != "README.md")
        .collect();
    let mut tried = 0;
    for line in folder.read("README.md").lines().filter(|line| line.starts_with("| ")).skip(2) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [file, command, code, text] = cells[..] else { panic!("{line}") };
        let Ran { code: found, out, err } = folder.run(&command.replace("FILE", file));
        assert_eq!(found.to_string(), code, "{line}\n{out}{err}");
        assert!(format!("{out}{err}").contains(text), "{line}\n{out}{err}");
        untried.remove(file);
        tried += 1;
    }
    assert!(untried.is_empty() && tried >= 18, "no line for {untried:?}");
}

/// Runs the binary under a small Python program that measures it, and returns the exit code, the
/// output, the processor time in seconds and the peak of memory in MiB.
fn measured(folder: &Folder, args: &str) -> (i32, String, f64, f64) {
    const MEASURE: &str = "import resource, subprocess, sys
run = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
sys.stdout.buffer.write(run.stdout)
print()
print(run.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)";
    let output = Command::new("python3")
        .args(["-c", MEASURE, env!("CARGO_BIN_EXE_consistory")])
        .args(args.split_whitespace())
        .current_dir(folder.path())
        .output()
        .expect("python3 is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (rest, last) = text.trim_end().rsplit_once('\n').expect("there is a last line");
    let numbers: Vec<f64> = last.split(' ').map(|number| number.parse().expect(last)).collect();
    (numbers[0] as i32, rest.to_owned(), numbers[1], numbers[2])
}

/// Store buffering on two processors.
const SB: &str = "X86 sb\n{ x=0; y=0; }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";

/// An argument that would be ignored is an error.
#[test]
fn arguments_without_effect_are_refused() {
    let folder = Folder::new();
    folder.write("r.hist", "a: w(x,1) w(y,1)\nb: r(y,1) r(x,1)\n");
    folder.write("q.hist", "a: enqueue(1) => null @1..4\n");
    folder.write("t.hist", "a: [ w(x,1) r(y,0) ]\nb: [ w(y,1) r(x,1) ]\n");
    folder.write("own.cat", "\"Own\" acyclic po | wr as Own\n");
    folder.write("sb.litmus", SB);
    for args in [
        "check t.hist --anomalies --report o.html",
        "check t.hist --anomalies --part 1/2 --format json",
        "check t.hist --anomalies --resume o.json --format json",
        "check t.hist --anomalies --no-certify",
        "check q.hist --object queue --infer-levels --part 1/2 --format json",
        "check q.hist --object queue --infer-levels --shrink",
        "check q.hist --object queue --infer-levels --draw pictures",
        "check r.hist --draw-as dot",
        "watch q.hist --model ser --whole",
        "watch q.hist --model ser --pending 3",
        "watch q.hist --object queue --order realtime",
        "watch q.hist --object queue --until-idle 1s",
        "watch - --object queue --follow",
        "generate --distance 5",
        "generate --transactions --plant 3",
        "generate --lag 3",
        "verify m.m --show-tracking --plain",
        "verify --descriptor d.txt --states 5",
        "verify --descriptor d.txt -D N=3",
        "contrast tso sc --order realtime",
        "contrast tso sc --draw-as dot",
        "contrast si ser --fences",
        "litmus outcomes sb.litmus --model sc --format herd --witness",
        "litmus outcomes sb.litmus --model sc --variant foo",
        "litmus contrast --left sc --right tso --bell foo",
        "test sqlite --threads 2",
        "test sqlite --methods get",
        "test jdk:ConcurrentHashMap --faults kill",
        "test --list --faults kill",
    ] {
        let Ran { code, out, err } = folder.run(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args}: {err}");
        assert!(err.contains("no effect"), "{args}: {err}");
    }
    for (args, text) in [
        (
            "check r.hist --model sc --order realtime",
            "the order `realtime` is for isolation levels",
        ),
        ("check r.hist --order none", "the order `none` is for isolation levels"),
        ("check r.hist --model ./own.cat --order none", "is for isolation levels"),
        ("check q.hist --order realtime", "judged by models of objects"),
        ("check q.hist --object queue --engine sat", "the choice of an engine is for sc, tso"),
        ("check t.hist --model ser --engine sat", "judged by models of transactions"),
    ] {
        let Ran { code, out, err } = folder.run(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args}: {err}");
        assert!(err.contains(text), "{args}: {err}");
    }
    for args in [
        "check r.hist --model ser --order none",
        "check r.hist --model sc --order session --engine sat",
        "generate --memory tso --lag 3",
        "generate --plant 1 --distance 5",
    ] {
        assert_eq!(folder.run(args).code, 0, "{args}");
    }
}

/// No output replaces an input, and no count that cannot be reached is reached in part only.
#[test]
fn inputs_stay_and_counts_are_kept() {
    let folder = Folder::new();
    folder.write("r.hist", "a: w(x,1) w(y,1)\nb: r(y,1) r(x,1)\n");
    folder.write("sb.litmus", SB);
    folder.write("m.m", BROKEN);
    for part in ["1", "2"] {
        let args = format!("check r.hist --model cc,sc --format json --part {part}/2");
        folder.write(&format!("part{part}.json"), folder.run(&args).out);
    }
    for (args, file, text) in [
        ("check r.hist --report ./r.hist", "r.hist", "would be replaced"),
        (
            "litmus outcomes sb.litmus --model sc --report sb.litmus",
            "sb.litmus",
            "would be replaced",
        ),
        ("verify m.m --report m.m", "m.m", "would be replaced"),
        ("merge part1.json part2.json --output part2.json", "part2.json", "would be replaced"),
        ("generate -n 5 --plant 1000 -o r.hist", "r.hist", "of 1000 reads can get another value"),
        ("verify m.m -D N=2 -D N=3", "m.m", "gives `N` a value twice"),
        ("check r.hist --jobs 65535", "r.hist", "65535 is not in 1..=1024"),
    ] {
        let before = folder.read(file);
        let Ran { code, err, .. } = folder.run(args);
        assert_eq!(code, 2, "{args}: {err}");
        assert!(err.contains(text), "{args}: {err}");
        assert_eq!(folder.read(file), before, "{args}");
    }
    assert_eq!(folder.run("check r.hist --model sc --jobs 1024").code, 0);
    let Ran { code, err, .. } = folder.run("generate -n 5 --plant 1000 --count 4 -o many.hist");
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("warning: 4 of 4 histories have fewer than 1000 planted reads"), "{err}");
    // Without a run of the test nothing was seen, so nothing is said about the processor.
    let Ran { code, out, .. } = folder.run("litmus run sb.litmus --budget 0s");
    assert!(code == 3 && out.contains("0 runs"), "{code} {out}");
}

/// Creates calls of a queue with two values in overlapping sessions that are not linearizable.
fn hard_queue(sessions: u64, rounds: u64) -> String {
    let mut random = consistory_testkit::Random(9);
    let mut text = String::new();
    for session in 0..sessions {
        text += &format!("t{session}:");
        for round in 0..rounds {
            let start = round * 1000 + random.below(300) as u64;
            let end = start + 400 + random.below(290) as u64;
            let value = random.below(2);
            text += &match random.chance(50) {
                true => format!(" enqueue({value}) => null @{start}..{end}"),
                false => format!(" dequeue() => {value} @{start}..{end}"),
            };
        }
        text += "\n";
    }
    text
}

/// The limits hold: no command exceeds a limit by more than a fifth or a tenth of a second, in
/// addition to the cost of running the program without work.
#[test]
fn limits_hold_while_reading_judging_and_certifying() {
    let folder = copied();
    folder.write("small.hist", "a: w(x,1)\n");
    folder.write("queue.hist", hard_queue(40, 8));
    folder.write("sb.litmus", SB);
    let made = folder.run(
        "generate --operations 80000 --sessions 4 --variables 2 --values 5 --seed 1 -o repeated.hist",
    );
    assert_eq!(made.code, 0, "{}", made.err);
    let made = folder.run("generate --operations 400000 --sessions 4 --variables 20 -o long.jsonl");
    assert_eq!(made.code, 0, "{}", made.err);
    let made =
        folder.run("generate --operations 400000 --sessions 40 --variables 200 -o wide.jsonl");
    assert_eq!(made.code, 0, "{}", made.err);
    let made = folder.run("generate --operations 1000000 --sessions 1 -o line.hist");
    assert_eq!(made.code, 0, "{}", made.err);
    assert_eq!(folder.run("convert wide.jsonl --to plume -o plume.txt").code, 0);
    let (code, _, idle_time, idle_memory) = measured(&folder, "check small.hist --model sc");
    assert_eq!(code, 0);
    for (args, seconds, mebibytes) in [
        (
            "check queue.hist --object queue --budget 2s --memory 64MiB --model linearizability",
            2.0,
            64,
        ),
        (
            "check queue.hist --object queue --budget 2s --memory 32MiB --model read-my-writes",
            2.0,
            32,
        ),
        ("check queue.hist --object queue --budget 1s --memory 48MiB", 6.0, 48),
        // Two histories judged in parallel may use the limit twice, and the one being read half of
        // it.
        (
            "check queue.hist queue.hist queue.hist --object queue --budget 1s --memory 32MiB --jobs 2",
            18.0,
            80,
        ),
        ("check repeated.hist --model sc --budget 300ms --memory 64MiB --jobs 1", 0.6, 64),
        ("check long.jsonl --model cc --budget 50ms --memory 64MiB --jobs 1", 0.1, 64),
        ("check long.jsonl --model cc --memory 12MiB --jobs 1", 60.0, 12),
        // All operations are in one line, or have to be sorted by session after reading.
        ("check line.hist --model cc --budget 100ms --jobs 1", 0.1, 64),
        ("check line.hist --model cc --memory 12MiB --jobs 1", 60.0, 12),
        ("check plume.txt --from plume --model cc --budget 100ms --jobs 1", 0.1, 64),
        // Deciding and certifying would take three to five times the limit.
        ("check long.jsonl --from jsonl --model cc --budget 20ms --jobs 1", 0.1, 64),
        ("check wide.jsonl --from jsonl --model ccv --budget 50ms --jobs 1", 0.1, 80),
        ("check /dev/zero --from hist --budget 5s --memory 64MiB", 5.0, 64),
        ("check /dev/zero --from cobra --budget 5s --memory 64MiB", 5.0, 64),
        ("check small.hist --object /dev/zero --budget 5s", 5.0, 40),
        ("check small.hist --model /dev/zero --budget 5s", 5.0, 40),
        ("contrast doubling.cat sc --budget 1s", 1.0, 64),
        ("certify /dev/zero", 5.0, 128),
        ("test sqlite --schedule /dev/zero", 5.0, 64),
        ("verify --descriptor /dev/zero", 5.0, 128),
        ("litmus outcomes sb.litmus --model /dev/zero", 5.0, 64),
    ] {
        let (code, text, time, memory) = measured(&folder, args);
        assert!(code == 2 || code == 3, "{args}: {code}\n{text}");
        assert!(!text.contains("panicked"), "{args}\n{text}");
        // Processor time is measured, because the clock depends on the load of the machine.
        let most = (seconds * 1.2_f64).max(seconds + 0.1) + idle_time + 0.1;
        assert!(time <= most, "{args}: {time} s of {seconds} s\n{text}");
        let most = f64::from(mebibytes) * 1.2 + idle_memory + 4.0;
        assert!(
            memory <= most,
            "{args}: {memory} MiB of {mebibytes} MiB beside {idle_memory}\n{text}"
        );
    }
}

/// Creates a test of four processors with seven accesses each, which has very many executions.
fn wide_litmus() -> String {
    const ACCESSES: usize = 7;
    let access = |line: usize, processor: usize| {
        let location = ["x", "y", "z", "w"][(line + processor) % 4];
        match line % 2 {
            0 => format!("MOV [{location}],${}", processor * ACCESSES + line + 1),
            _ => format!("MOV E{}X,[{location}]", ["A", "B", "C"][line / 2]),
        }
    };
    let line = |line| (0..4).map(|p| access(line, p)).collect::<Vec<_>>().join(" | ");
    let lines: Vec<String> = (0..ACCESSES).map(|number| format!(" {} ;\n", line(number))).collect();
    let code = lines.concat();
    format!(
        "X86 wide\n{{ x=0; y=0; z=0; w=0; }}\n P0 | P1 | P2 | P3 ;\n{code}exists (0:EAX=0 /\\ 1:EAX=0)\n"
    )
}

/// Every engine stops at its limits of time and memory, measured by processor time and by the
/// memory that the system counts: no command exceeds a limit by more than a fifth or a tenth of a
/// second.
#[test]
fn every_engine_keeps_its_limits() {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in ["german.m", "serial-prefetch.m"] {
        folder.write(file, std::fs::read(root.join("corpus/protocols").join(file)).unwrap());
    }
    for file in ["sc.cat", "relations.cat"] {
        folder.write(file, std::fs::read(root.join("models").join(file)).unwrap());
    }
    folder.write("small.hist", "a: w(x,1)\n");
    folder.write("queue.hist", hard_queue(40, 8));
    folder.write("wide.litmus", wide_litmus());
    for args in [
        "--operations 80000 --sessions 4 --variables 2 --values 5 --seed 1 -o repeated.hist",
        "--operations 60000 --sessions 30 --variables 3 --seed 1 -o unique.hist",
        "--transactions --operations 60000 --sessions 30 --variables 100 --seed 1 -o txn.hist",
        "--transactions --lists --operations 60000 --sessions 30 --variables 100 -o lists.hist",
        "--memory ccv --operations 8000 --sessions 10 --variables 50 --seed 1 -o accepted.hist",
    ] {
        let made = folder.run(&format!("generate {args}"));
        assert_eq!(made.code, 0, "{}", made.err);
    }
    for (args, file) in [
        ("check accepted.hist --model ccv --certificates proofs", "verdicts.json"),
        ("check txn.hist --model ser --certificates proofs", "levels.json"),
    ] {
        let judged = folder.run(&format!("{args} --format json"));
        assert_eq!(judged.code, 0, "{}", judged.err);
        folder.write(file, judged.out);
    }
    // Command, limits in seconds and MiB; the histories and models would need many times as much.
    let mut rows: Vec<(String, f64, u32)> = Vec::new();
    for model in ["cc", "ccv", "cm", "ccm", "wccm", "wsc", "sc", "wtso", "tso", "pso", "rmo"] {
        let limits = "--budget 100ms --memory 24MiB --jobs 1";
        rows.push((format!("check repeated.hist --model {model} {limits}"), 0.1, 24));
    }
    for model in ["ccm", "wccm", "wsc", "sc", "wtso", "tso", "pso", "linearizability"] {
        let limits = "--budget 30ms --memory 24MiB --jobs 1";
        rows.push((format!("check unique.hist --model {model} {limits}"), 0.03, 24));
    }
    for engine in ["split", "frontier", "sat"] {
        let limits = "--budget 100ms --memory 24MiB --jobs 1";
        let args = format!("check unique.hist --model sc --engine {engine} {limits}");
        rows.push((args, 0.1, 24));
    }
    for model in ["cc", "ccv", "cm"] {
        let limits = "--budget 5ms --memory 24MiB --jobs 1";
        rows.push((format!("check unique.hist --model {model} {limits}"), 0.005, 24));
    }
    for (args, seconds, mebibytes) in [
        ("kernel unique.hist --budget 10ms --memory 24MiB --jobs 1", 0.01, 24),
        ("check txn.hist --model rc,ra,tcc --budget 3ms --jobs 1", 0.03, 32),
        ("check txn.hist --model psi,pc,si,ser --budget 3ms --jobs 1", 0.03, 32),
        ("check lists.hist --model ser --budget 5ms --memory 64MiB --jobs 1", 0.1, 64),
        // One stops while it is decided, the other while it is read.
        ("check lists.hist --model ser --memory 15500KiB --jobs 1", 60.0, 16),
        ("check lists.hist --model ser --memory 8MiB --jobs 1", 60.0, 8),
        ("check lists.hist --anomalies --budget 5ms --memory 64MiB --jobs 1", 0.1, 64),
        ("check queue.hist --object queue --model linearizability --budget 200ms", 0.2, 999),
        ("check queue.hist --object queue --model causal-convergence --budget 200ms", 0.25, 999),
        ("check queue.hist --object queue --budget 5s --memory 24MiB --jobs 1", 5.0, 24),
        ("check queue.hist --object queue --levels dequeue=weak --memory 24MiB --jobs 1", 5.0, 24),
        ("check queue.hist --object queue --infer-levels --memory 24MiB --jobs 1", 5.0, 24),
        ("verify german.m --budget 200ms --memory 32MiB --jobs 1", 0.2, 32),
        ("verify german.m --plain --budget 200ms --memory 32MiB --jobs 1", 0.2, 32),
        ("verify german.m --memory 4MiB --jobs 1", 20.0, 4),
        ("verify german.m --plain --memory 2MiB --jobs 1", 20.0, 2),
        ("verify serial-prefetch.m -D BLOCKS=65536 --plain --budget 1s --jobs 1", 1.0, 128),
        ("verify serial-prefetch.m -D BLOCKS=65536 --plain --memory 16MiB --jobs 1", 1.0, 16),
        ("contrast ./sc.cat sc --bound 9 --budget 200ms --jobs 1", 0.2, 32),
        ("atlas --bound 8 --budget 200ms --jobs 1", 0.2, 32),
        ("litmus outcomes wide.litmus --model sc,tso --budget 200ms --jobs 1", 0.4, 32),
        ("litmus outcomes wide.litmus --model rmo --budget 200ms --jobs 1", 0.2, 32),
        (
            "litmus contrast --left rmo --right rmo --right-style operational --bound 7 --budget 200ms --jobs 1",
            0.25,
            48,
        ),
        ("litmus generate --model rmo --bound 9 --output suite --budget 200ms --jobs 1", 0.25, 48),
        // Much time and memory is used before the first program of the largest size.
        (
            "litmus contrast --left sc --right sc --right-style operational --bound 8 --budget 3s --jobs 1",
            3.0,
            4096,
        ),
        (
            "litmus contrast --left sc --right sc --right-style operational --bound 8 --memory 24MiB --jobs 1",
            60.0,
            24,
        ),
        ("certify verdicts.json --budget 1ms", 0.2, 128),
        ("certify levels.json --budget 1ms", 0.2, 128),
    ] {
        rows.push((args.to_owned(), seconds, mebibytes));
    }
    let (_, _, idle_time, idle_memory) = measured(&folder, "check small.hist --model sc");
    let mut wrong = String::new();
    for (args, seconds, mebibytes) in rows {
        let (code, text, time, memory) = measured(&folder, &args);
        // Reading has at least a tenth of a second.
        let reading =
            if args.starts_with("check") || args.starts_with("kernel") { 0.1 } else { 0.0 };
        let in_time = time <= (seconds * 1.2).max(seconds + 0.1) + idle_time + reading;
        let in_memory = memory <= f64::from(mebibytes) * 1.2 + idle_memory + 4.0;
        if code != 3 || !in_time || !in_memory || text.contains("panicked") {
            wrong += &format!(
                "{args}: exit {code}, {time} s, {memory} MiB beside {idle_memory}\n{text}\n"
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A file named in a line of verdicts may be a pipe or a device, from which reading never ends.
#[cfg(unix)]
#[test]
fn a_line_of_verdicts_cannot_name_a_device() {
    let folder = Folder::new();
    folder.write("r.hist", "a: w(x,1) w(y,1)\nb: r(y,1) r(x,0)\n");
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    let verdicts = folder.run("check r.hist --model sc --format json").out;
    let line: serde_json::Value = serde_json::from_str(&verdicts).unwrap();
    for name in ["/dev/zero", "/dev/stdin", "pipe"] {
        let (mut source, mut certificate) = (line.clone(), line.clone());
        source["source"] = name.into();
        certificate["results"][0]["certificate"] = serde_json::json!({ "file": name });
        for forged in [source, certificate] {
            folder.write("forged.json", forged.to_string());
            let Ran { code, out, err } = folder.run("certify forged.json");
            assert_eq!(code, 2, "{out}{err}");
            assert!(err.contains("neither a file nor a folder"), "{err}");
        }
    }
    folder.write("verdicts.json", &verdicts);
    assert_eq!(folder.run("certify verdicts.json").code, 0);
}

/// The times of the verdicts add up to the time of the run, and each model has its own time.
#[test]
fn times_are_the_whole_truth() {
    let folder = Folder::new();
    folder.write("small.hist", "a: w(x,1)\n");
    folder.write("queue.hist", hard_queue(40, 8));
    let made = folder.run("generate --operations 80000 --sessions 20 --variables 20 -o long.hist");
    assert_eq!(made.code, 0, "{}", made.err);
    let (_, _, idle, _) = measured(&folder, "check small.hist --model sc");
    for (args, outside) in [
        ("check queue.hist --object queue --budget 200ms --jobs 1 --format json", 0.05),
        ("check queue.hist --object queue --memory 24MiB --jobs 1 --format json", 0.05),
        // Reading and printing are not included.
        ("check long.hist --model cc,ccv,cm,sc,tso --jobs 1 --format json", 0.3),
    ] {
        let (code, text, time, _) = measured(&folder, args);
        assert!(code == 0 || code == 3, "{args}: {text}");
        let line: serde_json::Value = serde_json::from_str(text.trim()).expect(&text);
        let results = line["results"].as_array().unwrap();
        let millis = |result: &serde_json::Value| result["millis"].as_f64().unwrap();
        let sum: f64 = results.iter().map(millis).sum();
        assert!(sum / 1000.0 >= time - idle - outside, "{args}: {sum} ms of {time} s\n{text}");
        if args.contains("200ms") {
            for result in results {
                assert!(millis(result) >= 100.0, "{result}");
            }
        }
    }
}

/// Runs a command with the n-th point of a kind failing, for every n until no further point is
/// reached. Every run must end by itself with a documented exit code and a message, and print whole
/// lines.
fn survive(folder: &Folder, point: &str, args: &str, codes: &[i32]) -> u64 {
    for nth in 1..=MOST_POINTS {
        let output = folder
            .command(args)
            .env("CONSISTORY_FAIL", format!("{point}:{nth}"))
            .output()
            .expect("it starts");
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        let what = format!("{point}:{nth} {args}\n{out}\n{err}");
        let code = output.status.code().unwrap_or_else(|| panic!("it was killed: {what}"));
        assert!(!err.contains("panicked"), "{what}");
        assert!(codes.contains(&code), "exit code {code}: {what}");
        assert!(
            out.is_empty() || out.ends_with('\n') || args.contains("svg"),
            "a torn line: {what}"
        );
        if !err.contains("injected\n") {
            return nth - 1;
        }
        assert!(point != "write" || code != 0, "a failed write is not success: {what}");
    }
    panic!("{point}: more than {MOST_POINTS} points in {args}");
}

/// A protocol with a load that returns a value other than the last one stored.
const BROKEN: &str = "type P: scalarset(2); V: 0..1;\n--@ data V\nvar memory: V; other: V;\n\
ruleset p: P do\n--@ load proc=p from=other\nrule \"load\" true ==> begin end;\nruleset v: V do\n\
--@ store proc=p\nrule \"store\" true ==> begin memory := v; end; end; end;\n\
startstate begin memory := 0; other := 0; end;\n";

/// More points of failure than any of these commands reaches.
const MOST_POINTS: u64 = 400;

#[test]
fn every_command_survives_every_failure() {
    let folder = Folder::new();
    folder.write("a.hist", "# object: queue\na: enqueue(1) => null @1..4 dequeue() => 2 @5..9\nb: enqueue(2) => null @2..3\n");
    folder.write("r.hist", "a: w(x,1) w(y,1)\nb: r(y,1) r(x,0)\n---\na: w(x,1) r(x,1)\n");
    folder.write("v.hist", "a: w(x,1) w(x,1)\nb: r(x,1) w(y,2)\nc: r(y,2) r(x,0)\n");
    folder.write("t.hist", "a: [ w(x,1) r(y,0) ]\nb: [ w(y,1) r(x,0) ]\n");
    folder.write("sb.litmus", SB);
    let serial = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/protocols/serial.m");
    let serial = std::fs::read_to_string(serial).unwrap();
    folder.write("serial.m", &serial);
    folder.write("broken.m", BROKEN);
    folder.write("transactions.jsonl", folder.run("convert t.hist --to jsonl").out);
    let verdicts = folder.run("check r.hist --model cc,sc --format json").out;
    folder.write("verdicts.json", &verdicts);
    for part in ["1", "2"] {
        let args = format!("check r.hist --model cc,sc --format json --part {part}/2");
        folder.write(&format!("part{part}.json"), folder.run(&args).out);
    }
    folder.run("simulate serial.m --descriptor -n 5 --seed 1 -o run.txt");
    folder.run(
        "generate --object queue --sessions 2 --operations 6 --seed 1 --events -o events.jsonl",
    );
    let any = [0, 1, 2, 3, 141];
    let mut reached = 0;
    for args in [
        "check r.hist --model cc,ccv,cm,sc,tso,pso",
        "check r.hist v.hist --model sc,wsc,rmo --format json",
        "check a.hist --format json --jobs 2",
        "check a.hist --shrink",
        "check t.hist --model rc,si,ser --format json",
        "check t.hist --anomalies",
        "kernel r.hist",
        "certify verdicts.json",
        "convert r.hist --to jsonl",
        "convert t.hist --to edn -o out.edn",
        "generate --operations 20 --count 3 --seed 1",
        "generate --transactions --operations 20 --seed 1 -o out.hist",
        "litmus outcomes sb.litmus --model sc,tso",
        "contrast cc sc --bound 4",
        "atlas --bound 3 --extended 2",
        "verify serial.m --jobs 2",
        "simulate serial.m -n 5 --seed 1",
        "check r.hist --model cc --report out.html",
        "check r.hist --model cc --certificates out --draw out --format json",
        "certify verdicts.json --from hist",
        "merge part1.json part2.json",
        "watch events.jsonl --object queue",
        "litmus run sb.litmus --runs 50",
        "litmus outcomes sb.litmus --model sc --format json --report out.html",
        "verify --descriptor run.txt",
        "verify serial.m --plain --report out.html --draw out",
        "simulate serial.m --descriptor -n 5 --seed 1",
        "record cpu --threads 2 --operations 20 --rounds 3 --seed 1",
        "record cpu --threads 2 --operations 20 --rounds 3 --seed 1 -o out.hist",
        "test sqlite --time 20s --operations 3 --clients 2 --seed 1 --output run",
        "check a.hist --object queue --infer-levels",
        "check v.hist --model sc --draw out",
        "watch transactions.jsonl --model ser",
        "litmus contrast --left sc --right tso --bound 3",
        "litmus generate --model tso --bound 3 --output suite",
        "litmus outcomes sb.litmus --model x86tso --witness --draw out",
        "verify broken.m --draw out",
        "verify serial.m --checkpoint checkpoint",
        "models show cc",
        "models",
        "man",
        "completions bash",
    ] {
        let Ran { code, err, .. } = folder.run(args);
        assert!(code < 2, "{args}: {err}");
        for point in ["memory", "read", "write", "thread", "clock"] {
            reached += survive(&folder, point, args, &any);
        }
    }
    assert!(reached > 400, "only {reached} points were reached");
    assert!(!folder.path().join("out.edn.partial").exists());
}

/// Sends a history to the page at an address; `None` if the connection was closed without an
/// answer.
fn asked(address: &str) -> Option<String> {
    let (host, token) = address.trim().strip_prefix("http://")?.split_once("/?token=")?;
    let body = r#"{"kind":"history","text":"t0: w(x,1)\nt1: r(x,1) r(x,0)","models":["cc"]}"#;
    let mut stream = TcpStream::connect(host).ok()?;
    let length = body.len();
    let sent = write!(
        stream,
        "POST /api/judge HTTP/1.1\r\nHost: {host}\r\nX-Token: {token}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let mut answer = String::new();
    sent.and_then(|()| stream.read_to_string(&mut answer)).ok()?;
    let complete = answer.split_once("\r\n\r\n").filter(|(head, body)| {
        head.starts_with("HTTP/1.1 200")
            && head.contains(&format!("Content-Length: {}", body.len()))
    });
    complete.map(|(_, body)| body.to_owned())
}

/// After a failure the connection is closed, and the next one is served.
#[cfg(unix)]
#[test]
fn the_page_survives_every_failure() {
    let folder = Folder::new();
    let mut reached = 0;
    for point in ["memory", "read", "write", "thread", "clock"] {
        for nth in 1.. {
            assert!(nth < MOST_POINTS, "{point}");
            let mut child = folder
                .command("serve --port 0")
                .env("CONSISTORY_FAIL", format!("{point}:{nth}"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it starts");
            let mut address = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
            if !address.is_empty() {
                let answers = [(); 3].map(|()| asked(&address).unwrap_or_default());
                let right = answers.iter().filter(|answer| answer.contains("violation")).count();
                assert!(right >= 2, "{point}:{nth} {answers:?}");
                let id = child.id().to_string();
                Command::new("kill").args(["-INT", &id]).status().unwrap();
            }
            let output = child.wait_with_output().unwrap();
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            let code = if address.is_empty() { 2 } else { 0 };
            assert_eq!(output.status.code(), Some(code), "{point}:{nth} {err}");
            assert!(!err.contains("panicked"), "{point}:{nth} {err}");
            if !err.contains("injected\n") {
                reached += nth - 1;
                break;
            }
        }
    }
    assert!(reached > 5, "only {reached} points were reached");
}

/// The name of a file cannot forge a line or change a colour, whichever command prints it.
#[cfg(unix)]
#[test]
fn names_of_files_do_nothing_to_a_terminal() {
    let folder = Folder::new();
    let serial = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/protocols/serial.m");
    let serial = std::fs::read_to_string(serial).unwrap();
    const NAME: &str = "a\u{1b}[31m\nforged: fine\u{202e}\u{9b}";
    folder.write(&format!("{NAME}.m"), serial.replace("rule \"load", "rule \"\u{1b}[31mload"));
    folder.write(&format!("{NAME}.hist"), "a: w(x,1) r(x,0)\n");
    folder.write(&format!("{NAME}.jsonl"), "{\"no\"\n");
    for (args, end) in [
        ("check --draw out", ".hist"),
        ("check", ".jsonl"),
        ("kernel", ".hist"),
        ("convert --to jsonl", ".jsonl"),
        ("certify", ".jsonl"),
        ("merge", ".hist"),
        ("watch --object queue", ".hist"),
        ("verify", ".m"),
        ("verify --plain", ".m"),
        ("verify --show-tracking", ".m"),
        ("verify --descriptor", ".m"),
        ("verify -D NO=1", ".m"),
        ("verify", ".hist"),
        ("simulate -D NO=1", ".m"),
        ("litmus outcomes --model sc", ".hist"),
        ("litmus run", ".hist"),
    ] {
        let output = folder.command(args).arg(format!("{NAME}{end}")).output().expect("it starts");
        for bytes in [output.stdout, output.stderr] {
            let text = String::from_utf8(bytes).unwrap();
            let acts = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!text.contains(acts) && !text.contains("\nforged"), "{args}: {text:?}");
        }
    }
}

/// A file next to the output belongs to somebody else and is kept.
#[test]
fn a_file_beside_the_output_stays() {
    let folder = Folder::new();
    folder.write("a.hist", "a: w(x,1)\n");
    folder.write("b.jsonl.partial", "mine");
    assert_eq!(folder.run("convert a.hist --to jsonl -o b.jsonl").code, 0);
    assert_eq!(folder.read("b.jsonl.partial"), "mine");
    assert!(folder.read("b.jsonl").ends_with('\n'));
    assert!(!folder.path().join("b.jsonl.partial1").exists());
}

/// A file named as the output appears when it is complete, and a killed run leaves neither a part
/// of the output nor a temporary file.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_run_leaves_the_output_as_it_was() {
    let folder = Folder::new();
    folder.run("generate --operations 60000 --sessions 4 --seed 1 -o long.hist");
    folder.write("out.jsonl", "before\n");
    let mut killed = 0;
    for turn in 0..12 {
        let mut child =
            folder.command("convert long.hist --to jsonl -o out.jsonl").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(turn * 4));
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
        let is_before = folder.read("out.jsonl") == "before\n";
        assert!(is_before || folder.read("out.jsonl").ends_with("}\n"));
        folder.write("out.jsonl", "before\n");
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 2, "turn {turn} left a file");
    }
    assert!(killed > 0, "every run was done before it was killed");
    assert_eq!(folder.run("convert long.hist --to jsonl -o out.jsonl").code, 0);
    assert!(folder.read("out.jsonl").len() > 100_000);
}

/// A signal ends the program between two lines, and the exit status shows the signal.
#[cfg(target_os = "linux")]
#[test]
fn signals_do_not_cut_lines() {
    use std::os::unix::process::ExitStatusExt;
    let folder = Folder::new();
    folder.run("generate --operations 40000 --sessions 4 --seed 1 -o long.hist");
    let mut interrupted = 0;
    for turn in 0..40 {
        let out = std::fs::File::create(folder.path().join("out.jsonl")).unwrap();
        let mut command = folder.command("convert long.hist --to jsonl");
        let mut child = command.stdout(out).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(turn * 2500));
        let (name, number) = [("-TERM", 15), ("-INT", 2), ("-HUP", 1)][turn as usize % 3];
        Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
        let status = child.wait().unwrap();
        assert!(status.success() || status.signal() == Some(number), "{status}");
        interrupted += u32::from(!status.success());
        let text = folder.read("out.jsonl");
        assert!(text.is_empty() || text.ends_with("}\n"), "{:?}", text.lines().last());
    }
    assert!(interrupted > 0, "every run was done before it was interrupted");
}

/// A certificate that was left out because it is large does not invalidate the rest of its line.
#[test]
fn a_line_without_a_large_certificate_is_not_rejected() {
    let folder = Folder::new();
    folder.run("generate --operations 30000 --sessions 3 -o long.hist");
    let verdicts = folder.run("check long.hist --model strongest --format json").out;
    folder.write("verdicts.json", verdicts);
    let Ran { code, out, err } = folder.run("certify verdicts.json");
    assert_eq!(code, 2, "{out}{err}");
    assert!(err.contains("too large to print") && !out.contains("the strongest"), "{out}{err}");
    assert!(out.ends_with(" 0 rejected, 0 undecided\n"), "{out}");
}

/// Small readers and writers of every format, in Python, agree with ours on random histories, and
/// the verdicts do not depend on the format.
#[test]
fn every_format_means_what_a_tiny_reader_says() {
    let rounds = if std::env::var_os("CONSISTORY_DEEP").is_some() { "200" } else { "3" };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/doors.py");
    let output = Command::new("python3")
        .arg(script)
        .args([env!("CARGO_BIN_EXE_consistory"), "--rounds", rounds, "--seed", "3"])
        .output()
        .expect("python3 is installed");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.ends_with(" 0 found\n"), "{text}");
}
