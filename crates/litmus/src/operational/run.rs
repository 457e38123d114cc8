//! A run of a machine: the witness of an outcome.

use std::fmt::Write as _;

use crate::operational::compile::{Kind, Tables};
use crate::operational::component::PENDING;
use crate::operational::machine::{Component, Machine, Shape};
use crate::operational::step::{Actor, Step};
use crate::program::{
    Address, Expression, Fence, Instruction, Operator, Program, ThreadId, Update, Value,
};

/// The steps of a machine from the start to the end of a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// Steps, in the order in which they happen.
    pub steps: Vec<RunStep>,
}

/// A step of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunStep {
    /// Thread of the instruction.
    pub thread: ThreadId,
    /// Index of the instruction in the thread's code.
    pub instruction: usize,
    /// The event.
    pub action: Action,
}

/// The event of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The processor puts a write into its queue; the value is not known yet if it depends on a
    /// read that has not been answered.
    Enqueue,
    /// The write reaches the common memory, or the memory of its own thread and the queues of the
    /// other views.
    Arrive,
    /// The view of a thread takes the write.
    Take {
        /// Thread that can read the write from now on.
        view: ThreadId,
    },
    /// The read is answered.
    Read {
        /// Value.
        value: Value,
        /// The component that answers.
        origin: Origin,
    },
    /// The read is postponed.
    Wait,
    /// The postponed read is answered.
    Answer {
        /// Value.
        value: Value,
        /// The component that answers.
        origin: Origin,
    },
    /// The fence is passed.
    Fence,
    /// The read-modify-write is performed.
    Exchange,
    /// A register is computed.
    Compute,
    /// The jump is taken or not.
    Jump,
}

/// The component that answers a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The thread's queue, which contains a write to the location.
    Queue,
    /// The memory.
    Memory,
    /// The set of previous values of the memory.
    Past,
}

impl RunStep {
    /// Describes the effect of a step in a state.
    pub(super) fn new(tables: &Tables, state: &[u8], step: Step) -> RunStep {
        let (at, view) = match step.actor {
            Actor::Processor(thread) => (tables.program_counter(state, thread.into()), None),
            Actor::Queue(queue) => {
                let item = tables.local[usize::from(queue)].front(state);
                (usize::from(item.expect("a queue's step has an item").operation), None)
            }
            Actor::Waiting { operation, .. } => (usize::from(operation), None),
            Actor::View(cell) => {
                let cell = usize::from(cell);
                let item = tables.views[cell].front(state).expect("a view's step has an item");
                (usize::from(item.operation), Some(cell / tables.locations))
            }
        };
        let operation = &tables.operations[at];
        let action = match (step.actor, operation.kind) {
            (Actor::View(_), _) => Action::Take { view: ThreadId::new(view.unwrap_or(0)) },
            (Actor::Queue(_), _) => Action::Arrive,
            (_, Kind::Read) if step.choice == PENDING => Action::Wait,
            (_, Kind::Read) => {
                let now = state[tables.memory + tables.cell(operation.thread, operation.location)];
                let origin = match step.looks {
                    0 => Origin::Queue,
                    _ if step.choice == now => Origin::Memory,
                    _ => Origin::Past,
                };
                let value = tables.values.value(step.choice);
                match step.actor {
                    Actor::Waiting { .. } => Action::Answer { value, origin },
                    _ => Action::Read { value, origin },
                }
            }
            (_, Kind::Write) if tables.shape.local.is_some() => Action::Enqueue,
            (_, Kind::Write) => Action::Arrive,
            (_, Kind::FullFence | Kind::LoadFence | Kind::Nothing) => Action::Fence,
            (_, Kind::Assign) => Action::Compute,
            (_, Kind::Jump { .. }) => Action::Jump,
            (_, Kind::Exchange | Kind::Add | Kind::CompareExchange) => Action::Exchange,
        };
        let thread = ThreadId::new(operation.thread);
        RunStep { thread, instruction: operation.index, action }
    }
}

impl Run {
    /// Describes the run, one line per step: the component that acts, and its action.
    pub fn narrate(&self, program: &Program, machine: &Machine) -> String {
        let mut lines = Vec::new();
        for step in &self.steps {
            // An assignment that only names a value is not a step of the machine.
            let instruction = &program.threads[step.thread.index()].code[step.instruction];
            if step.action == Action::Fence && matches!(instruction, Instruction::Assign { .. }) {
                continue;
            }
            lines.push(tell(program, machine, step));
        }
        let width = lines.iter().map(|(actor, _)| actor.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (actor, what) in lines {
            let _ = writeln!(text, "{actor:width$}  {what}");
        }
        text
    }
}

fn tell(program: &Program, machine: &Machine, step: &RunStep) -> (String, String) {
    let thread = step.thread.index();
    let instruction = &program.threads[thread].code[step.instruction];
    let text = instruction_text(program, thread, instruction);
    let location = instruction.location().map(|l| program.locations[l.index()].name.as_str());
    let location = location.unwrap_or_default();
    let name = |component| part_name(machine, component).unwrap_or_default();
    let processor = format!("{}[{thread}]", name(Component::Processor));
    let future = format!("{}[{thread},{location}]", name(Component::FutureRead));
    let shape = Shape::of(machine).ok();
    let local = shape.and_then(|shape| shape.local);
    let queue = match local {
        Some(local) if local.by_address => format!("{}[{thread},{location}]", local.name),
        Some(local) => format!("{}[{thread}]", local.name),
        None => processor.clone(),
    };
    let views = shape.and_then(|shape| shape.views);
    let memory = name(Component::SimpleMem);
    let memory = match views {
        Some(_) => format!("{memory}[{thread},{location}]"),
        None => format!("{memory}[{location}]"),
    };
    match step.action {
        Action::Enqueue => (processor, format!("{text} goes into {queue}")),
        Action::Arrive => match views {
            Some(views) => {
                let to = format!("{memory} and on its way to the others in {}", views.name);
                (queue, format!("{text} goes to {to}"))
            }
            None => (queue, format!("{text} goes to {memory}")),
        },
        Action::Take { view } => {
            let queue = views.map_or("", |views| views.name);
            let to = format!("{}[{},{location}]", name(Component::SimpleMem), view.0);
            (format!("{queue}[{},{location}]", view.0), format!("{text} goes to {to}"))
        }
        Action::Read { value, origin } | Action::Answer { value, origin } => {
            let from = match origin {
                Origin::Queue => queue,
                Origin::Memory => memory,
                Origin::Past => {
                    format!("{}[{thread},{location}], the past", name(Component::SetRead))
                }
            };
            let late = matches!(step.action, Action::Answer { .. });
            (if late { future } else { processor }, format!("{text} reads {value} from {from}"))
        }
        Action::Wait => (future, format!("{text} is left for later in {queue}")),
        Action::Fence => (processor, format!("{text} is passed")),
        Action::Exchange | Action::Compute | Action::Jump => (processor, text),
    }
}

fn part_name(machine: &Machine, component: Component) -> Option<&'static str> {
    machine.parts().find(|part| part.component == component).map(|part| part.name)
}

/// Writes an instruction in the one-line notation, extended if necessary.
pub(super) fn instruction_text(
    program: &Program,
    thread: usize,
    instruction: &Instruction,
) -> String {
    let registers = &program.threads[thread].registers;
    let register = |id: crate::program::RegisterId| registers[id.index()].name.as_str();
    let address = |address: &Address| {
        let mut text = program.locations[address.location.index()].name.clone();
        for id in &address.depends {
            let _ = write!(text, "+0*{}", register(*id));
        }
        text
    };
    let value = |value: &Expression| expression_text(value, &register);
    match instruction {
        Instruction::Read { register: to, address: from } => {
            format!("{}={}", register(*to), address(from))
        }
        Instruction::Write { address: to, value: what } => {
            format!("{}={}", address(to), value(what))
        }
        Instruction::Fence(Fence::Full) => "fence".to_owned(),
        Instruction::Fence(Fence::Load) => "load fence".to_owned(),
        Instruction::Fence(Fence::Store) => "store fence".to_owned(),
        Instruction::Fence(Fence::Tagged(tag)) => format!("fence[{tag}]"),
        Instruction::ReadModifyWrite { register: to, address: at, update } => {
            let to = to.map_or(String::new(), |to| format!("{}=", register(to)));
            let at = address(at);
            match update {
                Update::Exchange(new) => format!("{to}xchg({at},{})", value(new)),
                Update::Add(addend) => format!("{to}add({at},{})", value(addend)),
                Update::CompareExchange { expected, new } => {
                    format!("{to}cas({at},{},{})", value(expected), value(new))
                }
            }
        }
        Instruction::Assign { register: to, value: what } => {
            format!("{}={}", register(*to), value(what))
        }
        Instruction::Jump { condition, target } => {
            format!("if {} jump to {target}", value(condition))
        }
    }
}

fn expression_text<'a>(
    value: &Expression,
    register: &impl Fn(crate::program::RegisterId) -> &'a str,
) -> String {
    match value {
        Expression::Constant(value) => value.to_string(),
        Expression::Register(id) => register(*id).to_owned(),
        Expression::Binary(operator, left, right) => {
            let sign = match operator {
                Operator::Add => "+",
                Operator::Subtract => "-",
                Operator::Xor => "^",
                Operator::And => "&",
                Operator::Or => "|",
                Operator::Equal => "==",
                Operator::NotEqual => "!=",
                Operator::Less => "<",
                Operator::LessOrEqual => "<=",
            };
            let (left, right) = (expression_text(left, register), expression_text(right, register));
            format!("({left}{sign}{right})")
        }
    }
}
