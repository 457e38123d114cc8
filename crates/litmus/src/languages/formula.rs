//! The part after the program: `locations`, `filter` and the condition.

use super::initial::register_name;
use super::{Builder, Type, Wrong, number};
use crate::executions::test::{Formula, Observed, Source};
use crate::executions::{Asked, Language};

/// Parts of a test after the program.
pub(crate) struct Endings {
    pub(crate) observed: Vec<Observed>,
    pub(crate) filter: Option<Formula>,
    pub(crate) asked: Option<Asked>,
    pub(crate) proposition: Formula,
    pub(crate) text: String,
}

struct Parser<'p> {
    language: Language,
    text: &'p str,
    at: usize,
    builder: &'p mut Builder,
    observed: Vec<Observed>,
    states: usize,
    /// Whether the observed values being read are part of final states.
    visible: bool,
}

impl Endings {
    pub(crate) fn read(
        language: Language,
        text: &str,
        start: usize,
        builder: &mut Builder,
    ) -> Result<Self, Wrong> {
        let mut parser = Parser {
            language,
            text,
            at: start,
            builder,
            observed: Vec::new(),
            states: 0,
            visible: true,
        };
        let mut endings = Endings {
            observed: Vec::new(),
            filter: None,
            asked: None,
            proposition: Formula::True,
            text: "true".to_owned(),
        };
        loop {
            parser.skip();
            if parser.rest().is_empty() {
                break;
            }
            let start = parser.at;
            if parser.eat(";") {
                continue;
            }
            if parser.eat("~") || parser.eat_word("not") {
                parser.skip();
                if !parser.eat_word("exists") {
                    return Err(parser.wrong("expected `exists`"));
                }
                endings.asked = Some(Asked::NotExists);
                (endings.proposition, endings.text) = parser.proposition()?;
                continue;
            }
            match parser.word() {
                "exists" | "final" => {
                    endings.asked = Some(Asked::Exists);
                    (endings.proposition, endings.text) = parser.proposition()?;
                }
                "forall" => {
                    endings.asked = Some(Asked::Forall);
                    (endings.proposition, endings.text) = parser.proposition()?;
                }
                "observed" => {
                    (endings.proposition, endings.text) = parser.proposition()?;
                }
                "filter" => {
                    parser.visible = false;
                    endings.filter = Some(parser.proposition()?.0);
                    parser.visible = true;
                }
                "locations" => parser.locations()?,
                // Expected results of several models.
                "with" => parser.skip_with(),
                "scopes" => parser.skip_scopes(),
                "regions" => {
                    let end = parser.rest().find('\n').unwrap_or(parser.rest().len());
                    parser.at += end;
                }
                "" if parser.rest().starts_with("<<") => {
                    let end =
                        parser.rest().find(">>").map_or(text.len(), |end| parser.at + end + 2);
                    parser.at = end;
                }
                _ => {
                    parser.at = start;
                    // After the condition, any text may follow.
                    if endings.asked.is_some() {
                        break;
                    }
                    return Err(parser
                        .wrong("expected `exists`, `~exists`, `forall`, `locations` or `filter`"));
                }
            }
        }
        endings.observed = parser.observed;
        Ok(endings)
    }
}

impl<'p> Parser<'p> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, sign: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn word(&mut self) -> &'p str {
        self.skip();
        let text: &'p str = self.text;
        let rest = &text[self.at..];
        let end =
            rest.find(|c: char| !(c.is_alphanumeric() || "_.%$".contains(c))).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let start = self.at;
        let found = self.word() == word;
        if !found {
            self.at = start;
        }
        found
    }

    fn wrong(&self, message: &str) -> Wrong {
        let rest = self.rest();
        let shown: String = rest.trim_start().chars().take(12).collect();
        let start = self.at + rest.len() - rest.trim_start().len();
        let found = if shown.is_empty() {
            "the end of the file".to_owned()
        } else {
            format!("`{}`", shown.trim_end())
        };
        Wrong::new(start..start + shown.len(), format!("{message}, found {found}"))
    }

    fn skip_with(&mut self) {
        // `tso: ~exists; default: exists;` and so on, until the next token is not such a pair.
        loop {
            let start = self.at;
            let name = self.word();
            if name.is_empty() || !self.eat(":") {
                self.at = start;
                return;
            }
            match self.rest().find(';') {
                Some(end) => self.at += end + 1,
                None => self.at = self.text.len(),
            }
        }
    }

    fn skip_scopes(&mut self) {
        self.eat(":");
        self.skip();
        while self.rest().starts_with('(') {
            match super::layout::matching(self.text, self.at, '(', ')') {
                Some(end) => self.at = end + 1,
                None => self.at = self.text.len(),
            }
            self.skip();
        }
    }

    fn locations(&mut self) -> Result<(), Wrong> {
        if !self.eat("[") {
            return Err(self.wrong("expected `[`"));
        }
        loop {
            if self.eat("]") {
                return Ok(());
            }
            if self.eat(";") || self.eat(",") {
                continue;
            }
            self.skip();
            if self.rest().is_empty() {
                return Err(self.wrong("expected `]`"));
            }
            self.place()?;
        }
    }

    fn proposition(&mut self) -> Result<(Formula, String), Wrong> {
        self.skip();
        let start = self.at;
        let formula = self.implies()?;
        let text = self.text[start..self.at].split_whitespace().collect::<Vec<_>>().join(" ");
        Ok((formula, text))
    }

    fn implies(&mut self) -> Result<Formula, Wrong> {
        let left = self.or()?;
        if self.eat("=>") {
            let right = self.implies()?;
            return Ok(Formula::Implies(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }

    fn or(&mut self) -> Result<Formula, Wrong> {
        let mut left = self.and()?;
        while self.eat("\\/") || self.eat("||") {
            left = Formula::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Formula, Wrong> {
        let mut left = self.atom()?;
        while self.eat("/\\") || self.eat("&&") {
            left = Formula::And(Box::new(left), Box::new(self.atom()?));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Formula, Wrong> {
        if self.eat("~") || self.eat("!") || self.eat_word("not") {
            return Ok(Formula::Not(Box::new(self.atom()?)));
        }
        if self.eat("(") {
            let inner = self.implies()?;
            if !self.eat(")") {
                return Err(self.wrong("expected `)`"));
            }
            return Ok(inner);
        }
        if self.eat_word("true") {
            return Ok(Formula::True);
        }
        if self.eat_word("false") {
            return Ok(Formula::False);
        }
        let place = self.place()?;
        let negated = self.eat("!=") || self.eat("<>");
        if !(negated || self.eat("==") || self.eat("=")) {
            return Err(self.wrong("expected `=`"));
        }
        let equal = self.value(place)?;
        Ok(if negated { Formula::Not(Box::new(equal)) } else { equal })
    }

    fn number_text(&mut self) -> Option<i64> {
        self.skip();
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let end = rest[sign..]
            .find(|c: char| !c.is_ascii_alphanumeric())
            .map_or(rest.len(), |end| end + sign);
        let value = number(&rest[..end])?;
        self.at += end;
        Some(value)
    }

    fn value(&mut self, place: usize) -> Result<Formula, Wrong> {
        if self.eat("{") {
            let mut values = Vec::new();
            while !self.eat("}") {
                if self.eat(",") {
                    continue;
                }
                match self.number_text() {
                    Some(value) => values.push(value),
                    None => {
                        let name = self.word().to_owned();
                        if name.is_empty() {
                            return Err(self.wrong("expected a value"));
                        }
                        values.push(self.builder.address(&name));
                    }
                }
            }
            return Ok(Formula::Equal(place, values));
        }
        let start = self.at;
        if let Some(value) = self.number_text() {
            self.skip();
            // `0:r1=1:r2` compares two registers.
            if !self.rest().starts_with(':') {
                return Ok(Formula::Equal(place, vec![value]));
            }
            self.at = start;
            let other = self.place()?;
            return Ok(Formula::Same(place, other));
        }
        self.eat("&");
        let bracketed = self.eat("[");
        let name = self.word().to_owned();
        if name.is_empty() {
            return Err(self.wrong("expected a value"));
        }
        if bracketed {
            self.eat("]");
        }
        let mut address = self.builder.address(&name);
        if self.eat("[") {
            let at = self.builder.location(&name);
            let bytes = i64::from(self.builder.code.locations[at].bytes);
            address += self.number_text().unwrap_or(0) * bytes;
            self.eat("]");
        } else if self.eat("+") {
            address += self.number_text().unwrap_or(0);
        }
        Ok(Formula::Equal(place, vec![address]))
    }

    /// Reads a register or location, and returns its index among the observed values.
    fn place(&mut self) -> Result<usize, Wrong> {
        self.skip();
        let start = self.at;
        let bracketed = self.eat("[");
        self.eat("*");
        let word = self.word().to_owned();
        if word.is_empty() {
            return Err(self.wrong("expected a register or a location"));
        }
        let digits = word.trim_start_matches(['P', 'p']);
        if !bracketed
            && self.rest().trim_start().starts_with(':')
            && digits.parse::<usize>().is_ok()
        {
            self.eat(":");
            let thread: usize = digits.parse().unwrap_or(0);
            let name = self.word().to_owned();
            let Some(register) = register_name(self.language, &name) else {
                let message = format!("`{name}` is not a register of {}", self.language.as_str());
                return Err(Wrong::new(start..self.at, message));
            };
            if thread >= self.builder.code.threads.len() {
                return Err(Wrong::new(start..self.at, format!("there is no thread {thread}")));
            }
            let index = self.builder.code.threads[thread].register(&register);
            let of = self.builder.types.get(&(thread, index)).copied().unwrap_or(Type::INT);
            let source = Source::Register { thread, register: index };
            return Ok(self.observe(format!("{thread}:{register}"), source, of, false, 1));
        }
        let mut element = None;
        if self.rest().trim_start().starts_with('[') {
            self.eat("[");
            element = Some(self.number_text().ok_or_else(|| self.wrong("expected a number"))?);
            if !self.eat("]") {
                return Err(self.wrong("expected `]`"));
            }
        }
        if bracketed && !self.eat("]") {
            return Err(self.wrong("expected `]`"));
        }
        let at = self.builder.location(&word);
        let location = &self.builder.code.locations[at];
        let of = Type { bytes: location.bytes, signed: location.signed };
        let step = location.bytes;
        let (is_array, count, address) = match element {
            Some(element) => (false, 1, location.address + element * i64::from(step)),
            None if location.is_array => (true, location.initial.len(), location.address),
            None => (false, 1, location.address),
        };
        let name = element.map_or(word.clone(), |element| format!("{word}[{element}]"));
        Ok(self.observe(name, Source::Memory { address, count, step }, of, is_array, count))
    }

    fn observe(
        &mut self,
        name: String,
        source: Source,
        of: Type,
        is_array: bool,
        count: usize,
    ) -> usize {
        if let Some(at) = self.observed.iter().position(|known| known.name == name) {
            self.observed[at].visible |= self.visible;
            return at;
        }
        let first = self.states;
        self.states += count;
        self.observed.push(Observed {
            name,
            source,
            bytes: of.bytes,
            signed: of.signed,
            is_array,
            first,
            count,
            visible: self.visible,
        });
        self.observed.len() - 1
    }
}
