//! Executes an object's program.

use consistory_history::Value;

use super::parse::{Definition, Expression, Function, Operator, Program, Statement, Variable};
use crate::footprint::Heap;
use crate::specification::{Effect, Method, Returns, Specification};

/// An object whose specification is a script.
#[derive(Clone, Debug)]
pub struct ScriptObject {
    program: Program,
    methods: Vec<Method>,
}

impl ScriptObject {
    pub(super) fn new(program: Program) -> Self {
        let method = |definition: &Definition| Method {
            name: definition.name.clone(),
            parameters: definition.parameters.clone(),
            aliases: definition.aliases.clone(),
            effect: match definition.changes_state {
                true => Effect::Writes,
                false => Effect::Reads,
            },
            result: "".into(),
            returns: if definition.returns { Returns::Value } else { Returns::Nothing },
        };
        ScriptObject { methods: program.methods.iter().map(method).collect(), program }
    }

    fn definition(&self, method: &str, arguments: usize) -> Option<&Definition> {
        let takes = |d: &&Definition| *d.name == *method && d.parameters.len() == arguments;
        self.program.methods.iter().find(takes)
    }
}

impl Specification for ScriptObject {
    type State = Vec<Value>;

    fn show(&self, state: &Vec<Value>) -> Option<String> {
        let names = self.program.state.iter().map(|(name, _)| name);
        let shown = names.zip(state).map(|(name, value)| format!("{name} = {value}"));
        Some(shown.collect::<Vec<_>>().join(", "))
    }

    fn initial(&self) -> Vec<Value> {
        let mut machine = ScriptMachine { state: Vec::new(), locals: Vec::new() };
        for (_, expression) in &self.program.state {
            let value = machine.evaluate(expression).unwrap_or(Value::Null);
            machine.state.push(value);
        }
        machine.state
    }

    fn invoke(&self, state: &mut Vec<Value>, method: &str, args: &[Value]) -> Option<Value> {
        let definition = self.definition(method, args.len())?;
        let mut locals = args.to_vec();
        locals.resize(definition.locals, Value::Null);
        let mut machine = ScriptMachine { state: std::mem::take(state), locals };
        let returned = machine.run(&definition.body);
        *state = machine.state;
        match returned {
            ScriptStep::Returned(value) => Some(value),
            ScriptStep::Done => Some(Value::Null),
            ScriptStep::Impossible => None,
        }
    }

    fn footprint(&self, state: &Self::State) -> usize {
        Heap::footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &self.methods
    }

    fn part(&self, method: &str, args: &[Value]) -> Option<Value> {
        args.get(self.definition(method, args.len())?.part?).cloned()
    }

    fn is_read_only(&self, method: &str, _returns: Option<&Value>) -> bool {
        // All methods of this name, with any number of parameters, must be reads.
        let mut named = self.methods.iter().filter(|m| *m.name == *method).peekable();
        named.peek().is_some() && named.all(|m| m.effect == Effect::Reads)
    }
}

/// The result of executing a statement.
enum ScriptStep {
    Done,
    Returned(Value),
    Impossible,
}

struct ScriptMachine {
    state: Vec<Value>,
    locals: Vec<Value>,
}

impl ScriptMachine {
    fn run(&mut self, statements: &[Statement]) -> ScriptStep {
        for statement in statements {
            match self.step(statement) {
                Some(ScriptStep::Done) => {}
                Some(ended) => return ended,
                None => return ScriptStep::Impossible,
            }
        }
        ScriptStep::Done
    }

    /// Executes a statement; `None` if an expression is ill-typed.
    fn step(&mut self, statement: &Statement) -> Option<ScriptStep> {
        match statement {
            Statement::Set(variable, expression) => {
                let value = self.evaluate(expression)?;
                match *variable {
                    Variable::State(at) => *self.state.get_mut(at)? = value,
                    Variable::Local(at) => *self.locals.get_mut(at)? = value,
                }
                Some(ScriptStep::Done)
            }
            Statement::If(condition, then, otherwise) => match self.evaluate(condition)? {
                Value::Bool(true) => Some(self.run(then)),
                Value::Bool(false) => Some(self.run(otherwise)),
                _ => None,
            },
            Statement::For(slot, list, body) => {
                for item in items(self.evaluate(list)?)? {
                    *self.locals.get_mut(*slot)? = item;
                    match self.run(body) {
                        ScriptStep::Done => {}
                        ended => return Some(ended),
                    }
                }
                Some(ScriptStep::Done)
            }
            Statement::Require(condition) => match self.evaluate(condition)? {
                Value::Bool(true) => Some(ScriptStep::Done),
                _ => Some(ScriptStep::Impossible),
            },
            Statement::Return(value) => Some(ScriptStep::Returned(self.evaluate(value)?)),
        }
    }

    fn evaluate(&self, expression: &Expression) -> Option<Value> {
        Some(match expression {
            Expression::Value(value) => value.clone(),
            Expression::Variable(Variable::State(at)) => self.state.get(*at)?.clone(),
            Expression::Variable(Variable::Local(at)) => self.locals.get(*at)?.clone(),
            Expression::List(items) => {
                Value::List(items.iter().map(|item| self.evaluate(item)).collect::<Option<_>>()?)
            }
            Expression::Not(inside) => match self.evaluate(inside)? {
                Value::Bool(b) => Value::Bool(!b),
                _ => return None,
            },
            Expression::Negative(inside) => match self.evaluate(inside)? {
                Value::Int(n) => Value::Int(n.checked_neg()?),
                _ => return None,
            },
            Expression::Binary(Operator::Or, a, b) => match self.evaluate(a)? {
                Value::Bool(true) => Value::Bool(true),
                Value::Bool(false) => self.evaluate(b)?,
                _ => return None,
            },
            Expression::Binary(Operator::And, a, b) => match self.evaluate(a)? {
                Value::Bool(false) => Value::Bool(false),
                Value::Bool(true) => self.evaluate(b)?,
                _ => return None,
            },
            Expression::Binary(operator, a, b) => {
                binary(*operator, self.evaluate(a)?, self.evaluate(b)?)?
            }
            Expression::At(list, index) => match (self.evaluate(list)?, self.evaluate(index)?) {
                (Value::List(list), Value::Int(at)) => list.get(usize::try_from(at).ok()?)?.clone(),
                _ => return None,
            },
            Expression::Call(function, arguments) => {
                let arguments: Option<Vec<Value>> =
                    arguments.iter().map(|argument| self.evaluate(argument)).collect();
                call(*function, arguments?)?
            }
        })
    }
}

fn binary(operator: Operator, a: Value, b: Value) -> Option<Value> {
    Some(match (operator, a, b) {
        (Operator::Equal, a, b) => Value::Bool(a == b),
        (Operator::Unequal, a, b) => Value::Bool(a != b),
        (Operator::Less, a, b) => Value::Bool(a < b),
        (Operator::AtMost, a, b) => Value::Bool(a <= b),
        (Operator::Greater, a, b) => Value::Bool(a > b),
        (Operator::AtLeast, a, b) => Value::Bool(a >= b),
        (Operator::Plus, Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(b)?),
        (Operator::Plus, Value::List(mut a), Value::List(b)) => {
            a.extend(b);
            Value::List(a)
        }
        (Operator::Plus, Value::Str(a), Value::Str(b)) => Value::Str(format!("{a}{b}").into()),
        (Operator::Minus, Value::Int(a), Value::Int(b)) => Value::Int(a.checked_sub(b)?),
        (Operator::Times, Value::Int(a), Value::Int(b)) => Value::Int(a.checked_mul(b)?),
        (Operator::Over, Value::Int(a), Value::Int(b)) => Value::Int(a.checked_div_euclid(b)?),
        (Operator::Modulo, Value::Int(a), Value::Int(b)) => Value::Int(a.checked_rem_euclid(b)?),
        _ => return None,
    })
}

fn items(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::List(items) => Some(items),
        _ => None,
    }
}

fn call(function: Function, arguments: Vec<Value>) -> Option<Value> {
    let mut arguments = arguments.into_iter();
    let first = arguments.next()?;
    if let (Function::Len, Value::Str(text)) = (function, &first) {
        return Some(Value::Int(text.chars().count() as i64));
    }
    let mut list = items(first)?;
    let second = arguments.next();
    let key_of = |pair: &Value| match pair {
        Value::List(pair) if pair.len() == 2 => Some(pair[0].clone()),
        _ => None,
    };
    let find = |list: &[Value], key: &Value| {
        list.iter().position(|pair| key_of(pair).as_ref() == Some(key))
    };
    Some(match function {
        Function::Len => Value::Int(list.len() as i64),
        Function::First => list.first()?.clone(),
        Function::Last => list.last()?.clone(),
        Function::Rest => {
            if !list.is_empty() {
                list.remove(0);
            }
            Value::List(list)
        }
        Function::Init => {
            list.pop();
            Value::List(list)
        }
        Function::Contains => Value::Bool(list.contains(&second?)),
        Function::IndexOf => {
            let wanted = second?;
            let at = list.iter().position(|item| *item == wanted);
            Value::Int(at.map_or(-1, |at| at as i64))
        }
        Function::Without => {
            let unwanted = second?;
            if let Some(at) = list.iter().position(|item| *item == unwanted) {
                list.remove(at);
            }
            Value::List(list)
        }
        Function::Sort => {
            list.sort();
            Value::List(list)
        }
        Function::Min => list.into_iter().min()?,
        Function::Max => list.into_iter().max()?,
        Function::Get => match find(&list, &second?) {
            Some(at) => items(list.swap_remove(at))?.pop()?,
            None => arguments.next().unwrap_or(Value::Null),
        },
        Function::Set => {
            let (key, value) = (second?, arguments.next()?);
            if let Some(at) = find(&list, &key) {
                list.remove(at);
            }
            let at = list.partition_point(|pair| key_of(pair).is_some_and(|k| k < key));
            list.insert(at, Value::List(vec![key, value]));
            Value::List(list)
        }
        Function::Unset => {
            if let Some(at) = find(&list, &second?) {
                list.remove(at);
            }
            Value::List(list)
        }
        Function::Keys => Value::List(list.iter().map(key_of).collect::<Option<_>>()?),
        Function::Values => {
            let value = |pair: Value| items(pair)?.pop();
            Value::List(list.into_iter().map(value).collect::<Option<_>>()?)
        }
    })
}
