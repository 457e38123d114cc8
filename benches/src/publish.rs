//! Writes measurements into `docs/`.
//!
//! Tables and plots are written to `docs/figures/`. `docs/benchmarks.md` is prose in which each
//! program has a section between two comments, `<!-- thesis: begin -->` and `<!-- thesis: end -->`,
//! that it replaces by the results of a run.

use std::path::{Path, PathBuf};
use std::{env, fmt, fs, io, thread};

/// The machine on which a program runs, with its load.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Number of threads that can run at once.
    pub cores: usize,
    /// Name of the processor.
    pub processor: String,
    /// Size of memory in bytes.
    pub memory: u64,
    /// Average number of running processes in the last minute.
    pub load: String,
}

impl Machine {
    /// Describes this machine.
    pub fn here() -> Self {
        let field = |file: &str, name: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_once(':').map_or("unknown", |(_, value)| value.trim()).to_owned()
        };
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
        let memory = field("/proc/meminfo", "MemTotal");
        let kibibytes: u64 = memory.trim_end_matches(" kB").parse().unwrap_or(0);
        Machine {
            cores: thread::available_parallelism().map_or(1, |n| n.get()),
            processor: field("/proc/cpuinfo", "model name"),
            memory: kibibytes << 10,
            load: load.split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory as f64 / f64::from(1 << 30);
        let Machine { cores, processor, load, .. } = self;
        write!(f, "{cores} cores ({processor}), {memory:.1} GiB of memory and a load of {load}")
    }
}

/// A goal, and whether a run reached it.
#[derive(Clone, Debug)]
pub struct Goal {
    /// Description of the goal.
    pub aim: String,
    /// Measured value.
    pub measured: String,
    /// Whether the goal was reached; `None` if it was not measured.
    pub reached: Option<bool>,
}

/// Writes goals as a table.
pub fn goals(goals: &[Goal]) -> String {
    let rows: Vec<Vec<String>> = goals
        .iter()
        .map(|goal| {
            let reached = match goal.reached {
                Some(true) => "yes",
                Some(false) => "no",
                None => "not measured",
            };
            vec![goal.aim.clone(), goal.measured.clone(), reached.to_owned()]
        })
        .collect();
    markdown(&["goal", "measured", "reached"], &rows)
}

/// Writes a table in Markdown.
pub fn markdown(header: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let header: Vec<String> = header.iter().map(|&cell| cell.to_owned()).collect();
    let rule = vec!["---".to_owned(); header.len()];
    let rows = rows.iter().map(|row| line(row));
    [line(&header), line(&rule)].into_iter().chain(rows).collect()
}

/// Describes where and how this program was run, as the first paragraph of a report.
pub fn provenance(program: &str, machine: &Machine) -> String {
    let options: Vec<String> = env::args().skip(1).collect();
    let options =
        if options.is_empty() { String::new() } else { format!(" -- {}", options.join(" ")) };
    format!(
        "Measured in one run of `cargo run --release -p consistory-benches --bin {program}{options}` \
         on a machine with {machine} as the run began.\n"
    )
}

/// The folder `docs/`, or a replacement.
#[derive(Clone, Debug)]
pub struct Docs {
    root: PathBuf,
}

impl Docs {
    /// Uses a given folder, or by default the project's.
    pub fn new(root: Option<PathBuf>) -> Self {
        let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        Docs { root: root.unwrap_or_else(own) }
    }

    /// Writes a file into `figures/`.
    pub fn figure(&self, name: &str, text: &str) -> io::Result<()> {
        let folder = self.root.join("figures");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), text)
    }

    /// Replaces a section of `benchmarks.md`, or adds it at the end if there is none.
    pub fn refresh(&self, section: &str, text: &str) -> io::Result<()> {
        self.refresh_in("benchmarks.md", section, text)
    }

    /// Replaces a section of a page, or adds it at the end if there is none.
    pub fn refresh_in(&self, page: &str, section: &str, text: &str) -> io::Result<()> {
        let path = self.root.join(page);
        let page = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            page => page?,
        };
        fs::write(path, with_section(&page, section, text))
    }
}

fn with_section(page: &str, section: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- {section}: begin -->"), format!("<!-- {section}: end -->"));
    let found = page.split_once(&begin).and_then(|(before, rest)| {
        let (_, behind) = rest.split_once(&end)?;
        Some((before, behind))
    });
    let (before, behind) = found.unwrap_or((page, "\n"));
    format!("{before}{begin}\n{text}{end}{behind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rerun_replaces_its_own_section_only() {
        let page = with_section("# Speed\n\n", "a", "old\n");
        let page = with_section(&page, "b", "other\n");
        let page = with_section(&page, "a", "new\n");
        let expected = "# Speed\n\n<!-- a: begin -->\nnew\n<!-- a: end -->\n\
                        <!-- b: begin -->\nother\n<!-- b: end -->\n";
        assert_eq!(page, expected);
    }

    #[test]
    fn tables_are_markdown() {
        let table = markdown(&["a", "b"], &[vec!["1".into(), "2".into()]]);
        assert_eq!(table, "| a | b |\n| --- | --- |\n| 1 | 2 |\n");
    }
}
