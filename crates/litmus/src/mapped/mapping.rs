//! Tables of instructions: how an access, a fence or a dependency is written in a language.
//!
//! There is one entry per line: a keyword, a name, and instructions separated by ` ; `. The
//! placeholders are `{r}` for the register that is read into, `{x}` for the location, `{v}` for the
//! value to write, `{n}` for the number, `{d}` for the register on which it depends, `{t}` and
//! `{u}` for scratch registers, and `{l}` for a label. `A => B` means that the instructions `A`
//! compute the operand `B`.

use consistory_diagnostic::{Diagnostics, Source};

use crate::executions::Language;

/// A table of accesses, fences and dependencies in a language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The language of the tests.
    pub language: Language,
    /// Names of registers, in the order in which they are used.
    pub(crate) registers: Vec<String>,
    /// Notation of a register that holds an address; without it, instructions name locations.
    pub(crate) pointer: Option<String>,
    /// Notation of a register in final states.
    pub(crate) register: String,
    /// Notation of a parameter of a function.
    pub(crate) parameter: String,
    pub(crate) value: Operand,
    pub(crate) loads: Vec<Entry>,
    pub(crate) stores: Vec<Entry>,
    pub(crate) fences: Vec<Entry>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A name with its instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) code: String,
}

/// Instructions, and the operand that they compute.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Operand {
    pub(crate) code: String,
    pub(crate) operand: String,
}

/// The kind of a dependency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Through {
    Data,
    Address,
    Control,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dependency {
    pub(crate) through: Through,
    pub(crate) name: String,
    pub(crate) text: Operand,
}

impl Dependency {
    /// Checks whether a kind of access can have this dependency on a read.
    pub(crate) fn applies_to(&self, is_read: bool) -> bool {
        match self.through {
            Through::Data => !is_read,
            Through::Address => true,
            // A declaration inside a block would be lost at the end of the block.
            Through::Control => !(is_read && self.text.code.contains("{access}")),
        }
    }
}

macro_rules! texts {
    ($($id:literal),* $(,)?) => {
        [$(($id, include_str!(concat!("../../models/litmus/mappings/", $id, ".map")))),*]
    };
}

const TEXTS: [(&str, &str); 11] = texts![
    "x86",
    "aarch64",
    "riscv",
    "power",
    "c11",
    "lkmm",
    "c11-x86",
    "c11-aarch64",
    "c11-riscv",
    "c11-power",
    "c11-lkmm",
];

/// Returns the ids of the built-in tables.
pub fn mapping_ids() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(id, _)| *id)
}

/// Finds a built-in table.
pub fn find_mapping(id: &str) -> Option<Mapping> {
    let (_, text) = TEXTS.iter().find(|(known, _)| *known == id)?;
    Some(read_mapping(id, text).expect("a table of our own has no errors: a test reads them all"))
}

/// Reads a table; `source` is the name in diagnostics.
pub fn read_mapping(source: &str, text: &str) -> Result<Mapping, Diagnostics> {
    let origin = Source::new(source, text);
    let mut diagnostics = Diagnostics::default();
    let mut mapping = Mapping {
        language: Language::Lisa,
        registers: Vec::new(),
        pointer: None,
        register: "{r}".to_owned(),
        parameter: String::new(),
        value: Operand { code: String::new(), operand: "{n}".to_owned() },
        loads: Vec::new(),
        stores: Vec::new(),
        fences: Vec::new(),
        dependencies: Vec::new(),
    };
    let mut has_language = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let place = at..at + line.trim_end().len();
        at += line.len();
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match entry(line, &mut mapping) {
            Ok(is_language) => has_language |= is_language,
            Err(message) => diagnostics.push_at(&origin, place, message, None),
        }
    }
    if diagnostics.is_empty() && !has_language {
        let message = "there is neither a `language` nor a `base`".to_owned();
        diagnostics.push_at(&origin, 0..0, message, None);
    }
    if diagnostics.is_empty() { Ok(mapping) } else { Err(diagnostics) }
}

/// Reads a line; returns whether it determines the language.
fn entry(line: &str, mapping: &mut Mapping) -> Result<bool, String> {
    let (keyword, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let named = || {
        let (name, code) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match name {
            "" => Err(format!("`{keyword}` needs a name")),
            name => Ok(Entry { name: name.to_owned(), code: code.trim().to_owned() }),
        }
    };
    let add = |entries: &mut Vec<Entry>| {
        let entry = named()?;
        if entries.iter().any(|known| known.name == entry.name) {
            return Err(format!("there are two entries `{keyword} {}`", entry.name));
        }
        entries.push(entry);
        Ok(false)
    };
    let dependency = |through| {
        let entry = named()?;
        let text = match through {
            Through::Control => Operand { code: entry.code, operand: String::new() },
            _ => operand(&entry.code),
        };
        Ok::<_, String>(Dependency { through, name: entry.name, text })
    };
    match keyword {
        "language" => {
            mapping.language = language(rest)
                .ok_or("there are X86, X86_64, AArch64, RISCV, PPC, C and LISA".to_owned())?;
            return Ok(true);
        }
        "base" => {
            let base = find_mapping(rest).ok_or_else(|| {
                let known: Vec<&str> = mapping_ids().collect();
                format!("there is no table `{rest}`: there are {}", known.join(", "))
            })?;
            *mapping =
                Mapping { loads: Vec::new(), stores: Vec::new(), fences: Vec::new(), ..base };
            return Ok(true);
        }
        "registers" => mapping.registers = registers(rest)?,
        "pointer" => mapping.pointer = Some(rest.to_owned()),
        "register" => mapping.register = rest.to_owned(),
        "parameter" => mapping.parameter = rest.to_owned(),
        "value" => mapping.value = operand(rest),
        "load" => return add(&mut mapping.loads),
        "store" => return add(&mut mapping.stores),
        "fence" => return add(&mut mapping.fences),
        "data" => mapping.dependencies.push(dependency(Through::Data)?),
        "address" => mapping.dependencies.push(dependency(Through::Address)?),
        "control" => mapping.dependencies.push(dependency(Through::Control)?),
        _ => {
            return Err(format!(
                "unknown entry `{keyword}`: there are language, base, registers, pointer, \
                 register, parameter, value, load, store, fence, data, address and control"
            ));
        }
    }
    Ok(false)
}

fn operand(text: &str) -> Operand {
    let (code, operand) = text.split_once("=>").unwrap_or(("", text));
    Operand { code: code.trim().to_owned(), operand: operand.trim().to_owned() }
}

fn language(name: &str) -> Option<Language> {
    Some(match name.to_ascii_lowercase().as_str() {
        "x86" => Language::X86,
        "x86_64" => Language::X86_64,
        "aarch64" => Language::AArch64,
        "riscv" => Language::RiscV,
        "ppc" => Language::Ppc,
        "c" => Language::C,
        "lisa" => Language::Lisa,
        _ => return None,
    })
}

/// Parses names of registers; `r1..r9` is a range.
fn registers(text: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        let Some((first, last)) = word.split_once("..") else {
            all.push(word.to_owned());
            continue;
        };
        let prefix = first.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = |name: &str| name.strip_prefix(prefix).and_then(|n| n.parse::<u32>().ok());
        let wrong = || format!("`{word}` is not a range of registers");
        let (from, to) = number(first).zip(number(last)).ok_or_else(wrong)?;
        all.extend((from..=to).map(|number| format!("{prefix}{number}")));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_our_own_are_read() {
        for id in mapping_ids() {
            let mapping = find_mapping(id).expect("it is built in");
            assert!(!mapping.loads.is_empty() && !mapping.stores.is_empty(), "{id}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let text = "language Z80\nload plain LD\nload plain LD\njump\nregisters r1..s2\n";
        let errors = read_mapping("my.map", text).unwrap_err();
        assert_eq!(errors.iter().count(), 4);
        assert!(read_mapping("my.map", "load plain LD\n").is_err());
    }
}
