//! The machine code of tests of AArch64: compared with a listing, and run by QEMU.
//!
//! QEMU runs the threads one after the other. This tests no memory model, but every instruction:
//! the final state must be one that sequential consistency allows. A test of one thread has only
//! one such state, unless it has exclusive stores, which may fail. `CONSISTORY_ARM_TESTS` names a
//! folder of further tests to run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use consistory_litmus::{
    FinalState, IsaOptions, IsaTest, Observable, ThreadId, find_isa_model, frame_of_isa,
    isa_outcomes, read_isa_test,
};
use consistory_native::{Options, assemble_test, run_test};
use consistory_verdict::Budget;

/// One thread with instructions of every kind, and the machine code in GNU's syntax.
const LISTING: &str = include_str!("listings/arm_test.txt");

fn single(instructions: &[&str]) -> IsaTest {
    let rows: String = instructions.iter().map(|text| format!(" {text} ;\n")).collect();
    let text = format!(
        "AArch64 T\n{{ uint64_t x=3; uint64_t y=5; 0:X1=x; 0:X2=y; 0:X3=7; uint64_t 0:X4=9; }}\n \
         P0 ;\n{rows}locations [x; y; 0:X3; 0:X4; 0:X5; 0:X6; 0:X7]"
    );
    read_isa_test("T", &text).unwrap_or_else(|error| panic!("{instructions:?}: {error:?}"))
}

fn words(test: &IsaTest, thread: u32) -> Vec<u32> {
    let code = assemble_test(test, ThreadId(thread)).unwrap();
    code.bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn accesses_are_those_of_the_test() {
    for line in LISTING.lines().filter(|line| !line.starts_with('#')) {
        let (word, rest) = line.split_once("  ").unwrap();
        let (_, source) = rest.split_once("; ").unwrap();
        let word = u32::from_str_radix(word, 16).unwrap();
        let found = words(&single(&[source]), 0);
        assert!(found.contains(&word), "{line}\n{found:08x?}");
    }
}

#[test]
fn what_is_not_run_is_said() {
    for (instructions, why) in [
        (&["L: LDR W5,[X1]", "CBNZ W5,L"][..], "loops are not run: nothing bounds them"),
        (&["LDP X5,X6,[X1]"], "accesses to more than eight bytes are not run"),
        (&["LDIAPP W5,W6,[X1]"], "pairs that acquire are not run"),
    ] {
        let error = assemble_test(&single(instructions), ThreadId(0)).map(|_| ()).unwrap_err();
        assert_eq!(error, why, "{instructions:?}");
    }
    let ran = run_test(&single(&["NOP"]), &Options::default());
    assert_eq!(ran.is_ok(), cfg!(all(target_arch = "aarch64", target_os = "linux")));
}

/// An ELF file that runs the threads of a test in a given order and writes its cells and registers.
struct Image {
    bytes: Vec<u8>,
    /// Index of each thread's first register in the written words.
    registers: Vec<usize>,
    words: usize,
}

const BASE: u64 = 0x40_0000;
const CODE: usize = 0x1000;
const DATA: usize = 0x2_0000;
const CELL: usize = 64;

impl Image {
    fn new(test: &IsaTest, order: &[usize]) -> Result<Image, String> {
        let program = frame_of_isa(test)?.program;
        let mut data: Vec<i64> = Vec::new();
        // Each cell has its own cache line.
        for location in &program.locations {
            data.push(location.initial);
            data.resize(data.len() + CELL / 8 - 1, 0);
        }
        let address = |word: usize| BASE + (DATA + word * 8) as u64;
        let mut registers = Vec::new();
        for thread in &program.threads {
            registers.push(data.len());
            data.extend(thread.registers.iter().map(|register| register.initial));
        }
        let words = data.len();
        let pointers = data.len();
        data.extend((0..program.locations.len()).map(|at| address(at * CELL / 8) as i64));
        let threads = (0..program.threads.len())
            .map(|thread| Ok(assemble_test(test, ThreadId::new(thread))?.bytes))
            .collect::<Result<Vec<_>, String>>()?;
        let mut code: Vec<u32> = Vec::new();
        let put = |code: &mut Vec<u32>, register: u32, value: u64| {
            for part in 0..4 {
                let operation = if part == 0 { 0xd280_0000 } else { 0xf280_0000 };
                let half = (value >> (16 * part)) as u32 & 0xffff;
                code.push(operation | part << 21 | half << 5 | register);
            }
        };
        let mut calls = Vec::new();
        for &thread in order {
            put(&mut code, 0, address(pointers));
            put(&mut code, 1, address(registers[thread]));
            calls.push((code.len(), thread));
            code.push(0x9400_0000);
        }
        // write(1, data, words), exit(0)
        for (register, value) in [(0, 1), (1, address(0)), (2, words as u64 * 8), (8, 64)] {
            put(&mut code, register, value);
        }
        code.push(0xd400_0001);
        put(&mut code, 0, 0);
        put(&mut code, 8, 93);
        code.push(0xd400_0001);
        let mut starts = Vec::new();
        for bytes in &threads {
            starts.push(code.len());
            let words = bytes.chunks_exact(4);
            code.extend(words.map(|word| u32::from_le_bytes(word.try_into().unwrap())));
        }
        for (place, thread) in calls {
            code[place] |= (starts[thread] - place) as u32;
        }
        let size = (DATA + data.len() * 8) as u64;
        let mut bytes = Vec::new();
        bytes.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        let half = |bytes: &mut Vec<u8>, value: u16| bytes.extend(value.to_le_bytes());
        let word = |bytes: &mut Vec<u8>, value: u32| bytes.extend(value.to_le_bytes());
        let long = |bytes: &mut Vec<u8>, value: u64| bytes.extend(value.to_le_bytes());
        half(&mut bytes, 2);
        half(&mut bytes, 183);
        word(&mut bytes, 1);
        long(&mut bytes, BASE + CODE as u64);
        long(&mut bytes, 64);
        long(&mut bytes, 0);
        word(&mut bytes, 0);
        for value in [64, 56, 1, 0, 0, 0] {
            half(&mut bytes, value);
        }
        // One segment that is readable, writable and executable.
        word(&mut bytes, 1);
        word(&mut bytes, 7);
        for value in [0, BASE, BASE, size, size, 0x1000] {
            long(&mut bytes, value);
        }
        bytes.resize(CODE, 0);
        bytes.extend(code.into_iter().flat_map(u32::to_le_bytes));
        assert!(bytes.len() <= DATA);
        bytes.resize(DATA, 0);
        bytes.extend(data.into_iter().flat_map(i64::to_le_bytes));
        Ok(Image { bytes, registers, words })
    }

    /// Runs the file and returns the final state.
    fn run(&self, test: &IsaTest, qemu: &Path, file: &Path) -> Option<FinalState> {
        fs::write(file, &self.bytes).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(file, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let ran = Command::new(qemu).args(["-cpu", "max"]).arg(file).output().unwrap();
        assert!(ran.status.success(), "{}: {ran:?}", test.name);
        assert_eq!(ran.stdout.len(), self.words * 8, "{}", test.name);
        let written: Vec<i64> = ran
            .stdout
            .chunks_exact(8)
            .map(|word| i64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        let program = frame_of_isa(test).unwrap().program;
        let cut = program.observed.iter().enumerate().map(|(at, observable)| {
            let word = match *observable {
                Observable::Register(thread, register) => {
                    self.registers[thread.index()] + register.index()
                }
                Observable::Location(location) => location.index() * CELL / 8,
            };
            // A register may hold the address of a cell.
            let value = written[word];
            let cell = value.wrapping_sub((BASE + DATA as u64) as i64);
            let location = test.code().locations.get(cell.max(0) as usize / CELL);
            match location {
                Some(location) if cell >= 0 && cell % CELL as i64 == 0 => location.address,
                _ => test.truncated(at, value),
            }
        });
        test.seen(cut.collect())
    }
}

fn qemu() -> Option<PathBuf> {
    let names = ["qemu-aarch64-static", "qemu-aarch64"];
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

/// Runs the threads of a test in different orders. Returns the reason if the test cannot be run.
fn check(test: &IsaTest, qemu: &Path, file: &Path) -> Result<(), String> {
    let model = find_isa_model("sc").unwrap();
    let options = IsaOptions {
        unroll: 2,
        condition_only: false,
        count: false,
        keep_executions: false,
        budget: Budget::unlimited(),
    };
    let allowed = isa_outcomes(test, &model, &options).unwrap().states;
    let forward: Vec<usize> = (0..test.thread_count()).collect();
    let backward: Vec<usize> = forward.iter().rev().copied().collect();
    for order in [forward, backward] {
        let state = Image::new(test, &order)?.run(test, qemu, file);
        if let Some(state) = state {
            assert!(allowed.contains(&state), "{} {order:?}: {state:?}, {allowed:?}", test.name);
        }
    }
    Ok(())
}

#[test]
fn qemu_computes_what_the_definition_of_the_instructions_says() {
    let Some(qemu) = qemu() else {
        eprintln!("SKIPPED: there is no qemu-aarch64-static (Debian: qemu-user-static)");
        return;
    };
    let folder = std::env::temp_dir().join(format!("consistory-arm-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("test");
    for line in LISTING.lines().filter(|line| !line.starts_with('#')) {
        let (_, source) = line.split_once("; ").unwrap();
        // Pairs that access halves of a cell have mixed sizes, which the models do not support.
        if source
            .split(' ')
            .next()
            .is_some_and(|name| name.ends_with('P') || name.starts_with("CASP"))
            && !source.starts_with("CMP")
            && !source.starts_with("SWP")
        {
            continue;
        }
        let test = single(&["SUBS W7,W3,W4", source]);
        check(&test, &qemu, &file).unwrap_or_else(|why| panic!("{source}: {why}"));
    }
    for instructions in PROGRAMS {
        let test = single(instructions);
        check(&test, &qemu, &file).unwrap_or_else(|why| panic!("{instructions:?}: {why}"));
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/executions/aarch64");
    let further = std::env::var_os("CONSISTORY_ARM_TESTS").map(PathBuf::from);
    let (mut ran, mut left) = (0, Vec::new());
    for folder in std::iter::once(&corpus).chain(&further) {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| path.extension().is_some_and(|e| e == "litmus"))
        {
            let text = fs::read_to_string(&path).unwrap();
            let Ok(test) = read_isa_test("test", &text) else { continue };
            match check(&test, &qemu, &file) {
                Ok(()) => ran += 1,
                Err(why) if *folder == corpus => panic!("{}: {why}", path.display()),
                Err(why) => left.push(format!("{}: {why}", path.display())),
            }
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    eprintln!("{ran} tests ran, {} did not:\n{}", left.len(), left.join("\n"));
    assert!(ran >= 13);
}

/// Programs of one thread.
const PROGRAMS: &[&[&str]] = &[
    &["LDXR W5,[X1]", "STXR W6,W3,[X1]", "LDR W7,[X1]"],
    &["LDAXR W5,[X1]", "STLXR W6,W3,[X2]"],
    &["LDXR X5,[X1]", "CLREX", "STXR W6,X3,[X1]"],
    &["STXR W6,W3,[X1]"],
    &["MOV W5,#3", "CAS W5,W3,[X1]", "LDR W6,[X1]"],
    &["MOV W5,#4", "CASAL W5,W3,[X1]", "LDR W6,[X1]"],
    &["LDR W5,[X1]", "EOR W6,W5,W5", "LDR W7,[X2,W6,SXTW]"],
    &["LDR W5,[X1]", "AND W6,W5,#0", "STR W3,[X2,W6,SXTW]"],
    &["LDR W5,[X1]", "CBNZ W5,L", "MOV W6,#1", "L: MOV W7,#2"],
    &["LDR W5,[X1]", "CBZ W5,L", "MOV W6,#1", "L: ISB", "LDR W7,[X2]"],
    &["LDR W5,[X1]", "TBNZ W5,#2,L", "STR W4,[X2]", "L:"],
    &["LDR W5,[X1]", "CMP W5,#3", "B.EQ L", "STR W4,[X2]", "L:"],
    &["LDR W5,[X1]", "CMP W5,#4", "CSEL W6,W3,W4,EQ", "STR W6,[X2]"],
    &["CMP W3,W4", "CSET W5,LT", "CSINC W6,W3,W4,GE", "CSNEG W7,W3,W4,HI"],
    &["B L", "MOV W5,#1", "L: MOV W6,#1", "RET", "MOV W7,#1"],
    &["MOV X5,#-5", "ASR X6,X5,#1", "SUBS X7,X5,X6", "CSET W3,MI"],
    &["STR X1,[X2]", "LDR X5,[X2]", "LDR X6,[X5]"],
    &["LDRB W5,[X1]", "LDRH W6,[X2]", "STRB W3,[X2]", "STRH W4,[X1]"],
];
