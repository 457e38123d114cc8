//! Random small protocols in Murphi.
//!
//! A protocol has a few variables that hold data (with or without indices, in records, in a
//! multiset), a flag per processor, and rules that load, store, copy and undefine data. Most of
//! these protocols are not sequentially consistent; what matters is that all ways of exploring them
//! agree.

use super::Random;

/// Style in which a protocol is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Whether processors and blocks are scalarsets, or ranges of numbers.
    pub(crate) scalarsets: bool,
    /// Whether there are variables that nothing reads.
    pub(crate) ghosts: bool,
}

/// A random protocol, independent of a style.
#[derive(Clone, Debug)]
pub(crate) struct RandomProtocol {
    procs: usize,
    blocks: usize,
    /// Places of data, as text in which `p` and `a` are free.
    places: Vec<&'static str>,
    /// Place from which each processor loads.
    loads: Vec<&'static str>,
    /// Places to which a store writes.
    stores: Vec<Vec<&'static str>>,
    /// Copies: target, source, and whether the flag guards the copy.
    copies: Vec<(&'static str, &'static str, Guard)>,
    undefines: Vec<&'static str>,
    /// Contents of each place in a start state.
    start: Vec<Start>,
    has_loop: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Start {
    Value,
    Other,
    Undefined,
}

#[derive(Clone, Copy, Debug)]
enum Guard {
    None,
    Set,
    Clear,
}

const PLACES: [&str; 5] = ["memory[a]", "cache[p][a].data", "buffer[p]", "shared", "queue[p][1]"];

impl RandomProtocol {
    pub(crate) fn new(random: &mut Random) -> Self {
        let mut places: Vec<&'static str> = vec!["memory[a]", "cache[p][a].data"];
        places.extend(PLACES[2..].iter().filter(|_| random.chance(1, 3)));
        let pick =
            |random: &mut Random, places: &[&'static str]| places[random.below(places.len())];
        let loads = (0..1 + random.below(2)).map(|_| pick(random, &places)).collect();
        let mut stores = Vec::new();
        for _ in 0..1 + random.below(2) {
            let count = 1 + random.below(3);
            let mut targets: Vec<&str> = (0..count).map(|_| pick(random, &places)).collect();
            targets.dedup();
            stores.push(targets);
        }
        let guard = |random: &mut Random| match random.below(4) {
            0 => Guard::Set,
            1 => Guard::Clear,
            _ => Guard::None,
        };
        let copies = (0..1 + random.below(3))
            .map(|_| (pick(random, &places), pick(random, &places), guard(random)))
            .collect();
        let undefines = (0..random.below(2)).map(|_| pick(random, &places)).collect();
        let start = places.iter().map(|_| match random.below(8) {
            0 => Start::Other,
            1 | 2 => Start::Undefined,
            _ => Start::Value,
        });
        RandomProtocol {
            start: start.collect(),
            procs: 2 + random.below(2),
            blocks: 1 + random.below(2),
            places,
            loads,
            stores,
            copies,
            undefines,
            has_loop: random.chance(1, 4),
        }
    }

    /// Writes the protocol as text.
    pub(crate) fn text(&self, style: Style) -> String {
        let RandomProtocol { procs, blocks, .. } = self;
        let index = |count: usize| match style.scalarsets {
            true => format!("scalarset({count})"),
            false => format!("0..{}", count - 1),
        };
        let (proc, block) = (index(*procs), index(*blocks));
        let ghosts = |text: &str| if style.ghosts { text.to_owned() } else { String::new() };
        let mut out = format!(
            "--@ data V\n\
             type P: {proc}; B: {block}; V: scalarset(2); L: record data: V; full: boolean; end;\n\
             var {}cache: array [P] of array [B] of L; memory: array [B] of V;\n\
             buffer: array [P] of V; shared: V; queue: array [P] of array [0..1] of V;\n\
             flag: array [P] of boolean; {}\n",
            ghosts("early: array [P] of V; "),
            ghosts("late: array [B] of record n: 0..1; data: V; end;")
        );
        out += "ruleset v: V; w: V do startstate\n  for p: P do flag[p] := false; end;\n";
        out += "  undefine shared; undefine buffer; undefine queue;\n";
        out += "  for p: P do for a: B do cache[p][a].full := false; end; end;\n";
        for (place, start) in self.places.iter().zip(&self.start) {
            let value = match start {
                Start::Value => format!("{place} := v;"),
                Start::Other => format!("{place} := w;"),
                Start::Undefined => format!("undefine {place};"),
            };
            out += &format!("  for p: P do for a: B do {value} end; end;\n");
        }
        if self.has_loop {
            out += "  for u: V do for a: B do memory[a] := u; end; end;\n";
        }
        out += &ghosts("  for a: B do late[a].n := 0; late[a].data := w; end;\n");
        out += "end; end;\n";
        out += "ruleset p: P; a: B do\n";
        for place in &self.loads {
            out += &format!("  --@ load proc=p block=a from={place}\n");
            out += &format!("  rule \"load\" !isundefined({place}) ==> end;\n");
        }
        for targets in &self.stores {
            out += "  ruleset v: V do\n    --@ store proc=p block=a\n    rule \"store\" true ==>\n";
            targets.iter().for_each(|place| out += &format!("      {place} := v;\n"));
            out += &ghosts("      early[p] := v;\n");
            out += "    end; end;\n";
        }
        for (to, from, guard) in &self.copies {
            let guard = match guard {
                Guard::None => "true",
                Guard::Set => "flag[p]",
                Guard::Clear => "!flag[p]",
            };
            out += &format!("  rule \"copy\" !isundefined({from}) & {guard} ==>\n");
            out += &format!("    {to} := {from}; flag[p] := !flag[p];\n");
            out += &ghosts(&format!("    late[a].data := {from};\n"));
            out += "  end;\n";
        }
        for place in &self.undefines {
            out += &format!("  rule \"drop\" true ==> undefine {place};");
            out += &ghosts(" undefine early[p];");
            out += " end;\n";
        }
        out + "end;\n"
    }
}
