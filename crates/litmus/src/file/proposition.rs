//! Propositions of conditions and filters: `0:EAX=1 /\ ~(x=2 \/ [y]=1) => true`.

use super::layout::{location, register};
use super::lexer::{Reader, Token, number};
use crate::condition::Proposition;
use crate::program::{Observable, Program, ThreadId, Value};

/// Largest nesting depth of propositions.
const DEPTH: usize = 100;

pub(super) struct Propositions<'a, 't> {
    reader: &'a mut Reader,
    program: &'a mut Program,
    tokens: &'a [Token<'t>],
    at: usize,
    end: usize,
    depth: usize,
}

impl<'a, 't> Propositions<'a, 't> {
    pub(super) fn new(
        reader: &'a mut Reader,
        program: &'a mut Program,
        tokens: &'a [Token<'t>],
        end: usize,
    ) -> Self {
        Propositions { reader, program, tokens, at: 0, end, depth: 0 }
    }

    pub(super) fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).copied()
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    pub(super) fn expected(&mut self, what: &str) {
        let (place, found) = match self.peek() {
            Some(token) => (token.range(), format!("`{}`", token.text)),
            None => (self.end..self.end, "the end of the file".to_owned()),
        };
        self.reader.error(place, format!("expected {what}, found {found}"));
    }

    fn eat(&mut self, text: &str) -> bool {
        let is_next = self.peek().is_some_and(|token| token.text == text);
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads `[x; 0:EAX;]`.
    pub(super) fn locations(&mut self, observed: &mut Vec<Observable>) {
        if !self.eat("[") {
            self.expected("`[`");
            return;
        }
        while !self.eat("]") {
            if self.peek().is_none() {
                self.expected("`]`");
                return;
            }
            if self.eat(";") {
                continue;
            }
            match self.observable() {
                Some(observable) => observed.push(observable),
                None => self.advance(),
            }
        }
    }

    /// Reads a proposition; `=>` is weakest and groups to the right, then `\/`, then `/\`.
    pub(super) fn proposition(&mut self) -> Option<Proposition> {
        if self.depth >= DEPTH {
            self.reader.error(self.place(), "nested too deeply");
            return None;
        }
        self.depth += 1;
        let premise = self.disjunction();
        let whole = match premise {
            Some(premise) if self.eat("=>") => self
                .proposition()
                .map(|conclusion| Proposition::Implies(premise.into(), conclusion.into())),
            premise => premise,
        };
        self.depth -= 1;
        whole
    }

    fn disjunction(&mut self) -> Option<Proposition> {
        let mut some = vec![self.conjunction()?];
        while self.eat("\\/") {
            some.push(self.conjunction()?);
        }
        Some(if some.len() == 1 { some.remove(0) } else { Proposition::Or(some) })
    }

    fn conjunction(&mut self) -> Option<Proposition> {
        let mut all = vec![self.atom()?];
        while self.eat("/\\") {
            all.push(self.atom()?);
        }
        Some(if all.len() == 1 { all.remove(0) } else { Proposition::And(all) })
    }

    fn atom(&mut self) -> Option<Proposition> {
        let mut is_negated = false;
        while self.eat("~") || self.eat("not") {
            is_negated = !is_negated;
        }
        let inner = if self.eat("(") {
            let inner = self.proposition()?;
            if !self.eat(")") {
                self.expected("`)`");
                return None;
            }
            inner
        } else if self.eat("true") {
            Proposition::True
        } else if self.eat("false") {
            is_negated = !is_negated;
            Proposition::True
        } else {
            let observable = self.observable()?;
            if !self.eat("=") && !self.eat("==") {
                self.expected("`=`");
                return None;
            }
            Proposition::Holds(observable, self.value()?)
        };
        Some(if is_negated { Proposition::Not(inner.into()) } else { inner })
    }

    fn value(&mut self) -> Option<Value> {
        let is_negative = self.eat("-");
        let value = self.peek().and_then(|token| number(token.text));
        match value {
            Some(value) => {
                self.advance();
                Some(if is_negative { -value } else { value })
            }
            None => {
                self.expected("a number");
                None
            }
        }
    }

    /// Reads `0:EAX`, `x` or `[x]`.
    fn observable(&mut self) -> Option<Observable> {
        let is_bracketed = self.eat("[");
        let Some(token) = self.peek() else {
            self.expected("a register or a location");
            return None;
        };
        let next_is_colon = self.tokens.get(self.at + 1).is_some_and(|next| next.text == ":");
        let observable = match number(token.text).filter(|_| next_is_colon) {
            Some(thread) => {
                self.at += 2;
                let name = self.peek().filter(Token::is_word);
                let Some(name) = name else {
                    self.expected("the name of a register");
                    return None;
                };
                self.advance();
                let index = usize::try_from(thread).unwrap_or(usize::MAX);
                let Some(thread) = self.program.threads.get_mut(index) else {
                    self.reader.error(token.range(), format!("there is no thread {thread}"));
                    return None;
                };
                Observable::Register(ThreadId::new(index), register(thread, name.text))
            }
            None if token.is_word() => {
                self.advance();
                Observable::Location(location(self.program, token.text))
            }
            None => {
                self.expected("a register as in `0:EAX`, or a location");
                return None;
            }
        };
        if is_bracketed && !self.eat("]") {
            self.expected("`]`");
            return None;
        }
        Some(observable)
    }

    fn place(&self) -> std::ops::Range<usize> {
        self.peek().map_or(self.end..self.end, |token| token.range())
    }
}
