//! Reads machines from text, in the form that [`diagram`](super::diagram) writes.
//!
//! The first line has the name and, after a colon, a summary. Every other line with a bracket is a
//! stage, from the processors to the memory: `WQ[t,x]   WriteQueue for each thread and location`,
//! or two parts with ` & ` between them. The index is one of `t`, `x`, `t,x`, `t,v` and `v,x`.
//! Lines that start with `#`, and lines that only draw arrows, are ignored.

use consistory_diagnostic::{Diagnostics, Source};

use super::machine::{Component, Each, Machine, Part, Shape};

const COMPONENTS: [Component; 6] = [
    Component::Processor,
    Component::FutureRead,
    Component::WriteQueue,
    Component::StallQueue,
    Component::SetRead,
    Component::SimpleMem,
];

/// Reads a machine; `source` is the name in diagnostics.
///
/// The parts of a machine live as long as the process, so each call leaks a few hundred bytes.
pub fn read_machine(source: &str, text: &str) -> Result<Machine, Diagnostics> {
    let origin = Source::new(source, text);
    let mut diagnostics = Diagnostics::default();
    let mut title: Option<(&str, &str)> = None;
    let mut stages: Vec<&'static [Part]> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at + line.len() - line.trim_start().len();
        let place = start..at + line.trim_end().len().max(start - at);
        at += line.len();
        let line = line.trim();
        let draws = |c: char| "│▲▼┊".contains(c) || c.is_whitespace();
        if line.is_empty() || line.starts_with('#') || line.starts_with(draws) {
            continue;
        }
        if title.is_none() {
            let (name, summary) = line.split_once(':').unwrap_or((line, ""));
            title = Some((name.trim(), summary.trim()));
            continue;
        }
        match stage(line) {
            Ok(stage) => stages.push(stage.leak()),
            Err(message) => {
                let hint = "a stage is such as `WQ[t,x]   WriteQueue for each thread and location`";
                diagnostics.push_at(&origin, place, message, Some(hint.to_owned()));
            }
        }
    }
    let (name, summary) = title.unwrap_or((source, ""));
    let machine = Machine {
        id: name.to_lowercase().leak(),
        name: name.to_owned().leak(),
        summary: summary.to_owned().leak(),
        stages: stages.leak(),
    };
    if diagnostics.is_empty()
        && let Err(error) = Shape::of(&machine)
    {
        let hint = "stages come in this order: Processor, FutureRead, WriteQueue or StallQueue of a \
                    thread, WriteQueue of views, SetRead, SimpleMem";
        diagnostics.push_at(&origin, 0..0, error.to_string(), Some(hint.to_owned()));
    }
    if diagnostics.is_empty() { Ok(machine) } else { Err(diagnostics) }
}

fn stage(line: &str) -> Result<Vec<Part>, String> {
    // The labels end with the last bracket.
    let end = line.rfind(']').ok_or("expected a part with its index in brackets")?;
    let (labels, rest) = line.split_at(end + 1);
    let words: Vec<&str> = rest.split_whitespace().collect();
    let mut components = words.iter().filter_map(|word| {
        COMPONENTS.into_iter().find(|component| format!("{component:?}") == **word)
    });
    let mut parts = Vec::new();
    for label in labels.split('&') {
        let label = label.trim();
        let (name, index) = label
            .strip_suffix(']')
            .and_then(|label| label.split_once('['))
            .ok_or_else(|| format!("`{label}` is not a part with its index in brackets"))?;
        let each = match index.replace(' ', "").as_str() {
            "t" => Each::Thread,
            "x" => Each::Address,
            "t,x" => Each::ThreadAddress,
            "t,v" => Each::ThreadView,
            "v,x" => Each::ViewAddress,
            _ => return Err(format!("`{index}` is none of the indices t, x, t,x, t,v and v,x")),
        };
        let component = components.next().ok_or_else(|| {
            let known: Vec<String> = COMPONENTS.iter().map(|c| format!("{c:?}")).collect();
            format!("there is no component for `{name}`: there are {}", known.join(", "))
        })?;
        parts.push(Part { name: name.to_owned().leak(), component, each });
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operational::diagram;

    #[test]
    fn what_is_written_is_read() {
        for machine in &Machine::ALL {
            let read = read_machine("machine", &diagram(machine)).unwrap();
            assert_eq!(read.stages, machine.stages, "{}", machine.id);
            assert_eq!((read.name, read.summary), (machine.name, machine.summary));
        }
    }

    #[test]
    fn mistakes_are_named() {
        let of = |text: &str| read_machine("my.machine", text).unwrap_err().iter().count();
        assert_eq!(of("MINE\nPr[t] Processor\nQ[q] WriteQueue\nM[x] Memory\nX\n"), 3);
        assert_eq!(of("MINE\nPr[t] Processor\n"), 1);
    }
}
