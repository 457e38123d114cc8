//! Programs in terms of the names of a mapping: enumeration of small ones, and their texts.

use std::fmt::Write as _;

use super::mapping::{Dependency, Entry, Mapping, Through};
use crate::enumerate::{Bound, Redundant, Shape, shapes};
use crate::executions::Language;

/// The names that programs consist of: those that two mappings share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alphabet {
    loads: Vec<String>,
    stores: Vec<String>,
    fences: Vec<String>,
    dependencies: Vec<(Through, String)>,
    /// For each dependency, whether a read can have it in both languages.
    of_reads: Vec<bool>,
}

impl Alphabet {
    /// Returns the names that both mappings define, in the order of the left one.
    pub fn shared(left: &Mapping, right: &Mapping) -> Alphabet {
        let both = |a: &[Entry], b: &[Entry]| -> Vec<String> {
            let shared = a.iter().filter(|entry| b.iter().any(|other| other.name == entry.name));
            shared.map(|entry| entry.name.clone()).collect()
        };
        let mut dependencies = Vec::new();
        let mut of_reads = Vec::new();
        for dependency in &left.dependencies {
            let Some(other) = find_dependency(right, dependency.through, &dependency.name) else {
                continue;
            };
            dependencies.push((dependency.through, dependency.name.clone()));
            of_reads.push(dependency.applies_to(true) && other.applies_to(true));
        }
        Alphabet {
            loads: both(&left.loads, &right.loads),
            stores: both(&left.stores, &right.stores),
            fences: both(&left.fences, &right.fences),
            dependencies,
            of_reads,
        }
    }

    /// Drops the fences.
    pub fn without_fences(self) -> Self {
        Alphabet { fences: Vec::new(), ..self }
    }

    /// Drops the dependencies.
    pub fn without_dependencies(self) -> Self {
        Alphabet { dependencies: Vec::new(), of_reads: Vec::new(), ..self }
    }

    /// Checks whether a mapping writes two names of the alphabet in the same way, so that different
    /// programs have the same text.
    pub(crate) fn repeats_itself(&self, mapping: &Mapping) -> bool {
        let repeats = |names: &[String], entries: &[Entry]| {
            let codes: Vec<&str> = entries
                .iter()
                .filter(|entry| names.contains(&entry.name))
                .map(|entry| entry.code.as_str())
                .collect();
            codes.iter().enumerate().any(|(at, code)| codes[..at].contains(code))
        };
        // A fence without an instruction has the same text as no fence.
        let is_empty = |entry: &Entry| entry.code.is_empty() && self.fences.contains(&entry.name);
        repeats(&self.loads, &mapping.loads)
            || repeats(&self.stores, &mapping.stores)
            || repeats(&self.fences, &mapping.fences)
            || mapping.fences.iter().any(is_empty)
    }

    /// Checks whether the alphabet has a load and a store.
    pub fn is_usable(&self) -> bool {
        !self.loads.is_empty() && !self.stores.is_empty()
    }

    /// Describes the alphabet in one line.
    pub fn summary(&self) -> String {
        let mut text =
            format!("loads {}; stores {}", self.loads.join(", "), self.stores.join(", "));
        if !self.fences.is_empty() {
            let _ = write!(text, "; fences {}", self.fences.join(", "));
        }
        if !self.dependencies.is_empty() {
            let names: Vec<&str> =
                self.dependencies.iter().map(|(_, name)| name.as_str()).collect();
            let _ = write!(text, "; dependencies {}", names.join(", "));
        }
        text
    }
}

fn find_dependency<'m>(
    mapping: &'m Mapping,
    through: Through,
    name: &str,
) -> Option<&'m Dependency> {
    mapping.dependencies.iter().find(|known| known.through == through && known.name == name)
}

/// The fence or dependency between an access and the one before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Link {
    None,
    Fence(u8),
    /// A dependency on an earlier read of the thread.
    Dependency {
        source: u8,
        kind: u8,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Access {
    is_read: bool,
    address: u8,
    /// Number of the load or store; 0 is the first of the alphabet.
    mark: u8,
    link: Link,
}

impl Access {
    fn weight(&self) -> usize {
        usize::from(self.mark > 0) + usize::from(self.link != Link::None)
    }
}

/// A program in terms of an alphabet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sketch {
    threads: Vec<Vec<Access>>,
}

/// An access of a given program, and the fence before it, by their names.
pub(super) struct Step<'s> {
    pub(super) is_read: bool,
    /// Index of its location, below [`Sketch::MAX_LOCATIONS`].
    pub(super) location: usize,
    pub(super) name: &'s str,
    pub(super) fence: Option<&'s str>,
}

/// A sketch as a litmus test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RenderedTest {
    /// Text without a condition; it lists the observed values.
    pub text: String,
    /// Names of the observed values: the register of each read, then locations with two writes or
    /// more.
    pub observed: Vec<String>,
}

/// A shape of accesses, and the permutations of threads that leave it unchanged.
pub(crate) struct Core {
    threads: Vec<Vec<Access>>,
    symmetries: Vec<Vec<usize>>,
}

/// Returns the shapes with a given number of accesses.
pub(crate) fn cores(bound: &Bound, accesses: usize, redundant: Redundant) -> Vec<Core> {
    let plain = Bound { fences: false, dependencies: false, ..*bound };
    let mut cores: Vec<Core> = shapes(&plain, accesses, redundant).iter().map(Core::new).collect();
    // Tests that observe only registers are easier to read.
    cores.sort_by_key(Core::memory_observed);
    cores
}

impl Core {
    fn new(shape: &Shape) -> Core {
        let threads: Vec<Vec<Access>> = shape
            .threads
            .iter()
            .map(|thread| {
                let plain = |access: &crate::enumerate::Access| Access {
                    is_read: access.is_read,
                    address: access.address,
                    mark: 0,
                    link: Link::None,
                };
                thread.iter().map(plain).collect()
            })
            .collect();
        let mut symmetries = Vec::new();
        let mut order: Vec<usize> = (0..threads.len()).collect();
        each_order(&mut order, 0, &mut |order| {
            let moved: Vec<Vec<Access>> = order.iter().map(|&at| threads[at].clone()).collect();
            if renamed(&moved) == threads {
                symmetries.push(order.to_vec());
            }
        });
        Core { threads, symmetries }
    }

    /// Checks whether there is only one thread.
    pub(crate) fn is_one_thread(&self) -> bool {
        self.threads.len() == 1
    }

    /// Counts the locations whose final value is observed.
    fn memory_observed(&self) -> usize {
        let accesses = self.threads.iter().flatten();
        let writes = |address: u8| {
            accesses.clone().filter(|access| !access.is_read && access.address == address).count()
        };
        (0..LOCATIONS.len() as u8).filter(|&address| writes(address) > 1).count()
    }

    /// Adds all sketches of the shape with `weight` marks, fences and dependencies, one for each
    /// symmetry class.
    pub(crate) fn sketches(&self, alphabet: &Alphabet, weight: usize, into: &mut Vec<Sketch>) {
        let mut threads = self.threads.clone();
        self.decorate(alphabet, &mut threads, 0, 0, weight, into);
    }

    fn decorate(
        &self,
        alphabet: &Alphabet,
        threads: &mut Vec<Vec<Access>>,
        thread: usize,
        at: usize,
        left: usize,
        into: &mut Vec<Sketch>,
    ) {
        if thread == threads.len() {
            let is_least = left == 0
                && self.symmetries.iter().all(|order| {
                    let moved: Vec<&Vec<Access>> = order.iter().map(|&at| &threads[at]).collect();
                    // Addresses are numbered in the order of appearance, so only the marks are
                    // compared.
                    let key = |threads: &mut dyn Iterator<Item = &Vec<Access>>| {
                        let all = threads.flatten();
                        all.map(|access| (access.mark, access.link)).collect::<Vec<_>>()
                    };
                    key(&mut threads.iter()) <= key(&mut moved.into_iter())
                });
            if is_least {
                into.push(Sketch { threads: threads.clone() });
            }
            return;
        }
        if at == threads[thread].len() {
            return self.decorate(alphabet, threads, thread + 1, 0, left, into);
        }
        // Each access takes at most two of the remaining decorations.
        let rest = threads[thread..].iter().map(Vec::len).sum::<usize>() - at;
        if left > 2 * rest {
            return;
        }
        let access = threads[thread][at];
        let marks = if access.is_read { alphabet.loads.len() } else { alphabet.stores.len() };
        let mut links = vec![Link::None];
        if at > 0 && left > 0 {
            links.extend((0..alphabet.fences.len()).map(|fence| Link::Fence(fence as u8)));
            for (kind, (through, _)) in alphabet.dependencies.iter().enumerate() {
                let applies = if access.is_read {
                    alphabet.of_reads[kind] && *through != Through::Data
                } else {
                    true
                };
                if applies {
                    for source in (0..at).filter(|&source| threads[thread][source].is_read) {
                        links.push(Link::Dependency { source: source as u8, kind: kind as u8 });
                    }
                }
            }
        }
        for mark in 0..marks as u8 {
            for &link in &links {
                let new = Access { mark, link, ..access };
                if new.weight() <= left {
                    threads[thread][at] = new;
                    self.decorate(alphabet, threads, thread, at + 1, left - new.weight(), into);
                }
            }
        }
        threads[thread][at] = access;
    }
}

fn each_order(order: &mut [usize], from: usize, visit: &mut dyn FnMut(&[usize])) {
    if from >= order.len() {
        visit(order);
        return;
    }
    for at in from..order.len() {
        order.swap(from, at);
        each_order(order, from + 1, visit);
        order.swap(from, at);
    }
}

/// Numbers the addresses in the order of appearance.
fn renamed(threads: &[Vec<Access>]) -> Vec<Vec<Access>> {
    let mut names: Vec<u8> = Vec::new();
    let mut rename = |access: &Access| {
        let at = names.iter().position(|&name| name == access.address).unwrap_or_else(|| {
            names.push(access.address);
            names.len() - 1
        });
        Access { address: at as u8, ..*access }
    };
    threads.iter().map(|thread| thread.iter().map(&mut rename).collect()).collect()
}

pub(super) const LOCATIONS: [&str; 6] = ["x", "y", "z", "a", "b", "c"];

impl Sketch {
    /// Counts the reads and writes.
    pub fn accesses(&self) -> usize {
        self.threads.iter().map(Vec::len).sum()
    }

    /// Counts the marks other than the first of the alphabet, fences and dependencies.
    pub fn decorations(&self) -> usize {
        self.threads.iter().flatten().map(Access::weight).sum()
    }

    /// Writes the program in one line, in terms of the alphabet:
    /// `store plain x; load plain y // ...`.
    pub fn describe(&self, alphabet: &Alphabet) -> String {
        let access = |access: &Access| {
            let (kind, names) = if access.is_read {
                ("load", &alphabet.loads)
            } else {
                ("store", &alphabet.stores)
            };
            let location = LOCATIONS.get(usize::from(access.address)).copied().unwrap_or("?");
            let name = &names[usize::from(access.mark)];
            match access.link {
                Link::None => format!("{kind} {name} {location}"),
                Link::Fence(fence) => {
                    let fence = &alphabet.fences[usize::from(fence)];
                    format!("fence {fence}; {kind} {name} {location}")
                }
                Link::Dependency { source, kind: dependency } => {
                    let (_, dependency) = &alphabet.dependencies[usize::from(dependency)];
                    let source = source + 1;
                    format!("{kind} {name} {location} ({dependency} from access {source})")
                }
            }
        };
        let thread =
            |thread: &Vec<Access>| thread.iter().map(access).collect::<Vec<_>>().join("; ");
        self.threads.iter().map(thread).collect::<Vec<_>>().join(" // ")
    }

    /// Returns the sketches with one mark, fence, dependency or access less.
    pub(crate) fn smaller(&self) -> Vec<Sketch> {
        let mut all = Vec::new();
        for (thread, accesses) in self.threads.iter().enumerate() {
            for (at, access) in accesses.iter().enumerate() {
                if access.mark > 0 {
                    let mut sketch = self.clone();
                    sketch.threads[thread][at].mark = 0;
                    all.push(sketch);
                }
                if access.link != Link::None {
                    let mut sketch = self.clone();
                    sketch.threads[thread][at].link = Link::None;
                    all.push(sketch);
                }
                let mut sketch = self.clone();
                let rest = &mut sketch.threads[thread];
                rest.remove(at);
                for later in &mut rest[at..] {
                    if let Link::Dependency { source, kind } = later.link {
                        later.link = match usize::from(source).cmp(&at) {
                            std::cmp::Ordering::Less => later.link,
                            std::cmp::Ordering::Equal => Link::None,
                            std::cmp::Ordering::Greater => {
                                Link::Dependency { source: source - 1, kind }
                            }
                        };
                    }
                }
                // A fence before a removed access is still between its neighbours.
                if let (Link::Fence(_), Some(next)) = (access.link, rest.get_mut(at))
                    && next.link == Link::None
                {
                    next.link = access.link;
                }
                if let Some(first) = rest.first_mut() {
                    first.link = Link::None;
                } else {
                    sketch.threads.remove(thread);
                }
                if !sketch.threads.is_empty() {
                    all.push(sketch);
                }
            }
        }
        all
    }

    /// Returns each thread with the number of writes in the threads before it, on which its values
    /// depend.
    pub(super) fn threads_and_offsets(&self) -> impl Iterator<Item = (&[Access], u32)> {
        self.threads.iter().scan(0, |writes, thread| {
            let before = *writes;
            *writes += thread.iter().filter(|access| !access.is_read).count() as u32;
            Some((&thread[..], before))
        })
    }

    /// Returns the locations that are written more than once, whose final values are observed.
    pub(super) fn observed_locations(&self) -> impl Iterator<Item = usize> {
        let accesses = self.threads.iter().flatten();
        (0..LOCATIONS.len()).filter(move |&address| {
            let is_write =
                |access: &&Access| !access.is_read && usize::from(access.address) == address;
            accesses.clone().filter(is_write).count() > 1
        })
    }

    /// Largest number of locations of a program.
    pub(super) const MAX_LOCATIONS: usize = LOCATIONS.len();

    /// Returns the name of a location in programs.
    pub(super) fn location_name(location: usize) -> &'static str {
        LOCATIONS[location]
    }

    /// Builds the sketch of a program; fails with the first name that the alphabet lacks.
    pub(super) fn of_steps(
        threads: &[Vec<Step<'_>>],
        alphabet: &Alphabet,
    ) -> Result<Sketch, String> {
        let find = |names: &[String], what: &str, name: &str| -> Result<u8, String> {
            let at = names.iter().position(|known| known == name);
            let at = at.ok_or_else(|| format!("the table has no {what} `{name}`"))?;
            u8::try_from(at).map_err(|_| "the table is too long".to_owned())
        };
        let access = |step: &Step<'_>| -> Result<Access, String> {
            let mark = if step.is_read {
                find(&alphabet.loads, "load", step.name)?
            } else {
                find(&alphabet.stores, "store", step.name)?
            };
            let link = match step.fence {
                None => Link::None,
                Some(fence) => Link::Fence(find(&alphabet.fences, "fence", fence)?),
            };
            Ok(Access { is_read: step.is_read, address: step.location as u8, mark, link })
        };
        let threads = threads
            .iter()
            .map(|steps| steps.iter().map(access).collect())
            .collect::<Result<_, String>>()?;
        Ok(Sketch { threads })
    }

    /// Writes a thread as a separate test; `offset` is the number of writes before it. Every
    /// location that it writes is observed.
    pub(super) fn render_thread(
        thread: &[Access],
        writes_before: u32,
        alphabet: &Alphabet,
        mapping: &Mapping,
    ) -> Option<RenderedTest> {
        let sketch = Sketch { threads: vec![thread.to_vec()] };
        let observed = Vec::new();
        let mut writer = Writer {
            sketch: &sketch,
            alphabet,
            mapping,
            value: writes_before,
            least_writes: 1,
            observed,
        };
        writer.write("thread")
    }

    /// Writes the sketch as a test; `None` if the mapping has too few registers or names.
    pub fn render(
        &self,
        alphabet: &Alphabet,
        mapping: &Mapping,
        name: &str,
    ) -> Option<RenderedTest> {
        let observed = Vec::new();
        let mut writer =
            Writer { sketch: self, alphabet, mapping, value: 0, least_writes: 2, observed };
        writer.write(name)
    }
}

struct Writer<'w> {
    sketch: &'w Sketch,
    alphabet: &'w Alphabet,
    mapping: &'w Mapping,
    /// Last number that was written.
    value: u32,
    /// Number of writes from which a location is observed.
    least_writes: usize,
    observed: Vec<String>,
}

impl Writer<'_> {
    fn write(&mut self, name: &str) -> Option<RenderedTest> {
        let is_c = matches!(self.mapping.language, Language::C | Language::LinuxC);
        let mut initial = String::new();
        let mut columns = Vec::new();
        for thread in 0..self.sketch.threads.len() {
            columns.push(self.thread(thread, &mut initial)?);
        }
        let accesses = self.sketch.threads.iter().flatten();
        let locations = accesses.clone().map(|access| access.address + 1).max().unwrap_or(0);
        for address in 0..locations {
            let writes = accesses.clone().filter(|a| !a.is_read && a.address == address).count();
            if writes >= self.least_writes {
                self.observed.push((*LOCATIONS.get(usize::from(address))?).to_owned());
            }
        }
        let mut text = format!("{} {name}\n", self.mapping.language.as_str());
        let names = LOCATIONS.get(..usize::from(locations))?;
        if is_c {
            text += "{ }\n";
            let parameters: Vec<String> =
                names.iter().map(|name| self.mapping.parameter.replace("{x}", name)).collect();
            for (thread, lines) in columns.iter().enumerate() {
                let _ = writeln!(text, "\nP{thread}({}) {{", parameters.join(", "));
                for line in lines {
                    let _ = writeln!(text, "  {line}");
                }
                text += "}\n";
            }
            text.push('\n');
        } else {
            if self.mapping.pointer.is_some() {
                let _ = writeln!(text, "{{\n{initial}}}");
            } else {
                let all: Vec<String> = names.iter().map(|name| format!("{name}=0;")).collect();
                let _ = writeln!(text, "{{ {} }}", all.join(" "));
            }
            text += &table(&columns);
        }
        let listed: Vec<String> = self.observed.iter().map(|name| format!("{name};")).collect();
        let _ = writeln!(text, "locations [{}]", listed.join(" "));
        Some(RenderedTest { text, observed: std::mem::take(&mut self.observed) })
    }

    /// Writes the instructions of a thread, and the registers that hold addresses.
    fn thread(&mut self, thread: usize, initial: &mut String) -> Option<Vec<String>> {
        let mapping = self.mapping;
        let is_c = matches!(mapping.language, Language::C | Language::LinuxC);
        let accesses = &self.sketch.threads[thread];
        let mut registers = mapping.registers.iter();
        let mut pointers: [Option<String>; LOCATIONS.len()] = Default::default();
        if let Some(pointer) = &mapping.pointer {
            for access in accesses {
                let slot = pointers.get_mut(usize::from(access.address))?;
                if slot.is_none() {
                    let register = registers.next()?;
                    let location = LOCATIONS[usize::from(access.address)];
                    let named = mapping.register.replace("{r}", register);
                    let _ = write!(initial, "{thread}:{named}={location}; ");
                    *slot = Some(pointer.replace("{t}", register));
                }
            }
            if initial.ends_with(' ') {
                initial.pop();
                initial.push('\n');
            }
        }
        let mut results: Vec<Option<&str>> = Vec::new();
        for access in accesses {
            let register = if access.is_read { Some(registers.next()?.as_str()) } else { None };
            results.push(register);
        }
        let scratch: Vec<&str> = registers.map(String::as_str).collect();
        let mut lines = Vec::new();
        for (at, access) in accesses.iter().enumerate() {
            let location = LOCATIONS.get(usize::from(access.address))?;
            let mut operand =
                pointers[usize::from(access.address)].as_deref().unwrap_or(location).to_owned();
            let source = match access.link {
                Link::Dependency { source, .. } => results[usize::from(source)].unwrap_or(""),
                _ => "",
            };
            let (mut used, mut labels) = (0, 0);
            let mut fill = |text: &str, x: &str, v: &str, n: u32| -> Option<String> {
                let mut text = text.replace("{d}", source).replace("{x}", x).replace("{v}", v);
                text = text.replace("{n}", &n.to_string());
                if text.contains("{l}") {
                    text = text.replace("{l}", &format!("L{thread}{at}{labels}"));
                    labels += 1;
                }
                text = text.replace("{r}", results[at].unwrap_or(""));
                for name in ["{t}", "{u}"] {
                    if text.contains(name) {
                        text = text.replace(name, scratch.get(used)?);
                        used += 1;
                    }
                }
                Some(text)
            };
            let mut value = String::new();
            let mut wrapped = None;
            let mut has_value = access.is_read;
            if !access.is_read {
                self.value += 1;
            }
            let number = self.value;
            let mut push = |text: &str| {
                if is_c {
                    if !text.is_empty() {
                        lines.push(text.to_owned());
                    }
                } else {
                    let cells = text.split(';').map(str::trim).filter(|cell| !cell.is_empty());
                    lines.extend(cells.map(str::to_owned));
                }
            };
            // Code and operand are filled in together, so that they use the same scratch registers.
            let split = |text: String| -> (String, String) {
                let (code, operand) = text.split_once("=>").unwrap_or(("", &text));
                (code.trim().to_owned(), operand.trim().to_owned())
            };
            match access.link {
                Link::None => {}
                Link::Fence(fence) => {
                    let name = &self.alphabet.fences[usize::from(fence)];
                    push(&mapping.fences.iter().find(|entry| entry.name == *name)?.code);
                }
                Link::Dependency { kind, .. } => {
                    let (through, name) = &self.alphabet.dependencies[usize::from(kind)];
                    let text = &find_dependency(mapping, *through, name)?.text;
                    match through {
                        Through::Data => {
                            let all = format!("{} => {}", text.code, text.operand);
                            let (code, operand) = split(fill(&all, &operand, "", number)?);
                            push(&code);
                            value = operand;
                            has_value = true;
                        }
                        Through::Address => {
                            let all = format!("{} => {}", text.code, text.operand);
                            let (code, new) = split(fill(&all, &operand, "", number)?);
                            push(&code);
                            operand = new;
                        }
                        Through::Control if text.code.contains("{access}") => {
                            wrapped = Some(fill(&text.code, &operand, "", number)?);
                        }
                        Through::Control => push(&fill(&text.code, &operand, "", number)?),
                    }
                }
            }
            if !has_value {
                let all = format!("{} => {}", mapping.value.code, mapping.value.operand);
                let (code, operand) = split(fill(&all, "", "", number)?);
                push(&code);
                value = operand;
            }
            let (entries, names) = if access.is_read {
                (&mapping.loads, &self.alphabet.loads)
            } else {
                (&mapping.stores, &self.alphabet.stores)
            };
            let name = &names[usize::from(access.mark)];
            let code = &entries.iter().find(|entry| entry.name == *name)?.code;
            let code = fill(code, &operand, &value, number)?;
            push(&match wrapped {
                Some(outer) => outer.replace("{access}", &code),
                None => code,
            });
            if let Some(register) = results[at] {
                let named = mapping.register.replace("{r}", register);
                self.observed.push(format!("{thread}:{named}"));
            }
        }
        Some(lines)
    }
}

/// Arranges the threads of a test as columns.
fn table(columns: &[Vec<String>]) -> String {
    let widths: Vec<usize> = columns
        .iter()
        .map(|lines| lines.iter().map(String::len).max().unwrap_or(0).max(2))
        .collect();
    let mut text = String::new();
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    for row in 0..=rows {
        for (thread, lines) in columns.iter().enumerate() {
            let cell = match row {
                0 => format!("P{thread}"),
                row => lines.get(row - 1).cloned().unwrap_or_default(),
            };
            let sign = if thread == 0 { "" } else { "|" };
            let _ = write!(text, "{sign} {cell:<width$} ", width = widths[thread]);
        }
        text += ";\n";
    }
    text
}
